/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of multicast overlays share: hosts over a cascade, memory devices as members, and
 * a drive that writes to the group.
 */
#ifndef TESTS_API_OVERLAY_H
#define TESTS_API_OVERLAY_H

#include <stdint.h>
#include <string.h>

#include "admin.h"
#include "member.h"
#include "target.h"

#define GROUP 3u
#define GROUP_BYTES (2 * PAGE)
#define DRIVER 8u
#define HOSTS 4u

#define CLUSTER(kind)                                                                              \
	"cluster: overlay\n"                                                                       \
	"multicast: " kind "\n"                                                                    \
	"switches: [{name: left, ports: 24, lanes: 4}, {name: right, ports: 24, lanes: 4}]\n"      \
	"links: [{from: left, to: right, width: 16}]\n"                                            \
	"hosts:\n"                                                                                 \
	"  one:\n"                                                                                 \
	"    ram: 64M\n"                                                                           \
	"    iommu: on\n"                                                                          \
	"    adapters: [{to: left}]\n"                                                             \
	"    devices:\n"                                                                           \
	"      nvme0: {type: nvme, size: 16M, cmb: 64K}\n"                                         \
	"      beside: {type: memory, size: 64K}\n"                                                \
	"  two: {ram: 64M, adapters: [{to: left}]}\n"                                              \
	"  three:\n"                                                                               \
	"    ram: 64M\n"                                                                           \
	"    iommu: on\n"                                                                          \
	"    adapters: [{to: right}]\n"                                                            \
	"    chassis: {box: {}}\n"                                                                 \
	"    devices: {far: {type: memory, size: 64K, in: box}}\n"                                 \
	"  four: {ram: 64M, adapters: [{to: right}]}\n"

static inline int up_as(void **state, const char *text)
{
	*state = cluster_up(text);
	return *state ? 0 : -1;
}

static inline int up(void **state)
{
	return up_as(state, CLUSTER("exact"));
}

static inline int down(void **state)
{
	return *state ? cluster_down(*state) : 0;
}

static inline int audit(void **state)
{
	return cluster_audit(*state);
}

/* ---- members ---- */

static inline void enter(const struct target *t)
{
	sci_error_t error;

	smartio_join_group(t->bar, GROUP, PAGE, GROUP_BYTES, 0, &error);
	CHECK_OK(error);
}

static inline void quit(const struct target *t)
{
	sci_error_t error;

	smartio_leave_group(t->bar, GROUP, 0, &error);
	CHECK_OK(error);
}

/* ---- the drive ---- */

/* A queue pair for I/O, numbered 1, and data, in this program's memory. */
struct io {
	struct admin a;
	sci_local_segment_t memory;
	sci_map_t map;
	sci_remote_segment_t group;
	sci_ioaddr_t at, group_at;
	volatile uint32_t *sq, *cq;
	volatile uint8_t *data;
	uint32_t tail, head, phase;
};

enum { SQ_AT = 0, CQ_AT = PAGE, DATA_AT = 2 * PAGE, IO_BYTES = 2 * PAGE + GROUP_BYTES };

/* Make a queue: @opcode, at @at. */
static inline void make_queue(struct io *io, uint8_t opcode, sci_ioaddr_t at, uint32_t word11)
{
	admin_command2(&io->a, opcode, 0, at, (ADMIN_ENTRIES - 1) << 16 | 1, word11);
	admin_await(&io->a);
}

static inline void io_start(struct io *io)
{
	volatile uint8_t *p;

	memset(io, 0, sizeof(*io));
	admin_start(&io->a);
	p = memory_for(io->a.sd, io->a.device, IO_BYTES, &io->memory, &io->map, &io->at);
	io->sq = (volatile uint32_t *)(p + SQ_AT);
	io->cq = (volatile uint32_t *)(p + CQ_AT);
	io->data = p + DATA_AT;
	io->phase = 1;
	make_queue(io, 0x05, io->at + CQ_AT, 1);
	make_queue(io, 0x01, io->at + SQ_AT, 1u << 16 | 1);
}

static inline void reach_group(struct io *io)
{
	sci_error_t error;

	CHECK_OK(group_reach(io->a.sd, GROUP, &io->group));
	SCIMapRemoteSegmentForDevice(io->group, io->a.device, &io->group_at, 0, GROUP_BYTES, 0,
				     &error);
	CHECK_OK(error);
}

/* Two pages of it from or to @at; what it says of that. */
static inline uint32_t io_command(struct io *io, uint8_t opcode, sci_ioaddr_t at, uint32_t unit)
{
	volatile uint32_t *e = io->sq + io->tail * 16;
	const uint32_t blocks = GROUP_BYTES / 512;
	uint32_t last;

	for (unsigned i = 0; i < 16; i++)
		put32(e + i, 0);
	put32(e, opcode);
	put32(e + 1, 1);
	put32(e + 6, (uint32_t)at);
	put32(e + 7, (uint32_t)(at >> 32));
	put32(e + 8, (uint32_t)(at + PAGE));
	put32(e + 9, (uint32_t)((at + PAGE) >> 32));
	put32(e + 10, unit * blocks);
	put32(e + 12, blocks - 1);
	io->tail = (io->tail + 1) % ADMIN_ENTRIES;
	sio_to_fabric_barrier();
	sio_write32(io->a.bells + 8, io->tail);
	while ((sio_read32(io->cq + io->head * 4 + 3) >> 16 & 1) != io->phase)
		smartio_yield();
	last = sio_read32(io->cq + io->head * 4 + 3);
	sio_from_fabric_barrier();
	io->head = (io->head + 1) % ADMIN_ENTRIES;
	io->phase ^= io->head == 0;
	sio_write32(io->a.bells + 12, io->head);
	return last >> 17;
}

/* What the drive has there: word after word, no two units alike. */
static inline uint32_t word_of(uint32_t unit, unsigned i)
{
	return (unit + 1) << 16 | i;
}

static inline void fill_drive(struct io *io, uint32_t units)
{
	for (uint32_t unit = 0; unit < units; unit++) {
		for (unsigned i = 0; i < GROUP_BYTES / 4; i++)
			put32(io->data + 4 * i, word_of(unit, i));
		CHECK(io_command(io, 0x01, io->at + DATA_AT, unit) == 0);
	}
}

static inline bool holds(const volatile uint8_t *p, uint32_t unit)
{
	for (unsigned i = 0; i < GROUP_BYTES / 4; i++)
		if (get32(p + 4 * i) != word_of(unit, i))
			return false;
	return true;
}

static inline void io_stop(struct io *io)
{
	sci_error_t error;

	if (io->group) {
		SCIUnmapRemoteSegmentForDevice(io->group, io->a.device, 0, &error);
		CHECK_OK(error);
		SCIDisconnectSegment(io->group, 0, &error);
		CHECK_OK(error);
	}
	smartio_device_reset(io->a.device, &error);
	CHECK_OK(error);
	memory_end(io->memory, io->map, io->a.device);
	admin_stop(&io->a);
}

#endif
