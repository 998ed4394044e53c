/* SPDX-License-Identifier: BSD-2-Clause */
/* A borrowed drive that is driven by its registers. */
#ifndef TESTS_API_ADMIN_H
#define TESTS_API_ADMIN_H

#include <stdint.h>
#include <string.h>

#include "../lib/mapped.h"
#include "../lib/cluster.h"
#include "smartio/io.h"

#define ADMIN_PAGE 4096u
#define ADMIN_ENTRIES 16u

/* A controller with nothing but its admin queue; NVM Express Base Specification 1.4, section 3.1.
 */
struct admin {
	sci_desc_t sd;
	sci_smartio_device_t device;
	sci_remote_segment_t bar;
	sci_local_segment_t memory;
	sci_map_t regs_map, bells_map, memory_map;
	volatile uint8_t *regs, *bells;
	volatile uint32_t *sq, *cq; /* a page each */
	volatile uint8_t *data;	    /* one more, for commands */
	sci_ioaddr_t at, data_at;   /* of all, and of that, as the drive addresses it */
	uint32_t tail, head, phase;
	uint16_t cid;
};

/*
 * After a reset, which has taken doorbells away: those from now on, and the drive at work.
 */
static inline void admin_enable(struct admin *a)
{
	sci_error_t error;

	a->bells =
		SCIMapRemoteSegment(a->bar, &a->bells_map, ADMIN_PAGE, ADMIN_PAGE, NULL, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 2 * ADMIN_PAGE / 4; i++)
		put32(a->sq + i, 0);
	a->tail = a->head = 0;
	a->phase = 1;
	sio_write32(a->regs + 0x24, (ADMIN_ENTRIES - 1) << 16 | (ADMIN_ENTRIES - 1));
	sio_write32(a->regs + 0x28, (uint32_t)a->at);
	sio_write32(a->regs + 0x2c, (uint32_t)(a->at >> 32));
	sio_write32(a->regs + 0x30, (uint32_t)(a->at + ADMIN_PAGE));
	sio_write32(a->regs + 0x34, (uint32_t)((a->at + ADMIN_PAGE) >> 32));
	sio_to_fabric_barrier();
	sio_write32(a->regs + 0x14, 4u << 20 | 6u << 16 | 1);
	while (sio_read32(a->regs + 0x1c) != 1)
		smartio_yield();
}

/* No queue is left. The doorbells of before are the caller's to unmap: a->bells_map. */
static inline void admin_disable(struct admin *a)
{
	sio_write32(a->regs + 0x14, 0);
	while (sio_read32(a->regs + 0x1c) & 1)
		smartio_yield();
}

/* Memory of this program's, mapped here, and at *ret_at for @device. */
static inline volatile uint8_t *memory_for(sci_desc_t sd, sci_smartio_device_t device, size_t bytes,
					   sci_local_segment_t *ret, sci_map_t *ret_map,
					   sci_ioaddr_t *ret_at)
{
	volatile uint8_t *p;
	sci_error_t error;

	SCICreateSegment(sd, ret, 0, bytes, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
	CHECK_OK(error);
	SCIPrepareSegment(*ret, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(*ret, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapLocalSegment(*ret, ret_map, 0, bytes, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(*ret, 0, device, ret_at, 0, bytes, 0, &error);
	CHECK_OK(error);
	return p;
}

static inline void memory_end(sci_local_segment_t seg, sci_map_t map, sci_smartio_device_t device)
{
	sci_error_t error;

	SCIUnmapLocalSegmentForDevice(seg, 0, device, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
}

static inline void admin_start(struct admin *a)
{
	volatile uint8_t *p;
	sci_error_t error;

	memset(a, 0, sizeof(*a));
	a->sd = api_begin();
	a->device = api_borrow(a->sd, SCI_FLAG_EXCLUSIVE);
	SCIConnectDeviceSegment(a->device, &a->bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	a->regs = SCIMapRemoteSegment(a->bar, &a->regs_map, 0, ADMIN_PAGE, NULL, 0, &error);
	CHECK_OK(error);
	p = memory_for(a->sd, a->device, 3 * ADMIN_PAGE, &a->memory, &a->memory_map, &a->at);
	a->sq = (volatile uint32_t *)p;
	a->cq = (volatile uint32_t *)(p + ADMIN_PAGE);
	a->data = p + 2 * ADMIN_PAGE;
	a->data_at = a->at + 2 * ADMIN_PAGE;
	smartio_device_reset(a->device, &error);
	CHECK_OK(error);
	admin_enable(a);
}

/* @word10, @word11: the command's own; @at: its data, as the drive addresses it; 0: it has none. */
static inline void admin_command2(struct admin *a, uint8_t opcode, uint32_t nsid, uint64_t at,
				  uint32_t word10, uint32_t word11)
{
	volatile uint32_t *e = a->sq + a->tail * 16;

	for (unsigned i = 0; i < 16; i++)
		put32(e + i, 0);
	put32(e, opcode | (uint32_t)++a->cid << 16);
	put32(e + 1, nsid);
	put32(e + 6, (uint32_t)at);
	put32(e + 7, (uint32_t)(at >> 32));
	put32(e + 10, word10);
	put32(e + 11, word11);
	a->tail = (a->tail + 1) % ADMIN_ENTRIES;
	sio_to_fabric_barrier();
	sio_write32(a->bells, a->tail);
}

static inline void admin_command(struct admin *a, uint8_t opcode, uint32_t nsid, uint64_t at,
				 uint32_t word10)
{
	admin_command2(a, opcode, nsid, at, word10, 0);
}

/* Get Features, number of queues: a command that needs no memory. */
static inline void admin_submit(struct admin *a)
{
	admin_command(a, 0x0a, 0, 0, 7);
}

/* It is there already: no interrupt comes before what it tells of. */
static inline void admin_take(struct admin *a)
{
	volatile uint32_t *e = a->cq + a->head * 4;
	uint32_t last = sio_read32(e + 3);

	sio_from_fabric_barrier(); /* what is read next is at least as new */
	CHECK((last >> 16 & 1) == a->phase);
	CHECK((last & 0xffff) == a->cid && last >> 17 == 0);
	a->head = (a->head + 1) % ADMIN_ENTRIES;
	a->phase ^= a->head == 0;
	sio_write32(a->bells + 4, a->head);
}

static inline void admin_await(struct admin *a)
{
	while ((sio_read32(a->cq + a->head * 4 + 3) >> 16 & 1) != a->phase)
		smartio_yield();
	admin_take(a);
}

static inline void admin_give_back(struct admin *a)
{
	sci_error_t error;

	smartio_device_reset(a->device, &error);
	CHECK_OK(error);
	memory_end(a->memory, a->memory_map, a->device);
	SCIUnmapSegment(a->bells_map, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(a->regs_map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(a->bar, 0, &error);
	CHECK_OK(error);
	SCIReturnDevice(a->device, 0, &error);
	CHECK_OK(error);
}

static inline void admin_stop(struct admin *a)
{
	admin_give_back(a);
	api_end(a->sd);
}

#endif
