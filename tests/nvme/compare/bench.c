/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define BAR_BYTES 0x2000u     /* registers, doorbells */
#define QUEUES (PAGES * PAGE) /* where memory for queues begins, behind the scratch pages */

struct bench bench;
static uint8_t *bar; /* addresses without memory: the accessors know them */
static uint64_t next, clock_ns;

/* ---- memory ---- */

uint64_t bench_page(unsigned number)
{
	return DRIVE_MEMORY + (uint64_t)number * PAGE;
}

uint8_t *bench_at(uint64_t addr)
{
	if (addr < DRIVE_MEMORY || addr - DRIVE_MEMORY >= DRIVE_BYTES)
		return NULL;
	return bench.drive->memory + (addr - DRIVE_MEMORY);
}

uint64_t bench_alloc(size_t bytes)
{
	uint64_t at = next;

	next += (bytes + PAGE - 1) / PAGE * PAGE;
	if (next > DRIVE_MEMORY + DRIVE_BYTES) {
		fprintf(stderr, "a sequence needs more memory than there is\n");
		exit(1);
	}
	return at;
}

int sio_nvme_mem_device(struct sio_nvme_device *d, size_t size, unsigned hints, unsigned flags,
			struct sio_nvme_mem *mem)
{
	*mem = (struct sio_nvme_mem){
		.size = size, .d = d, .hints = hints, .flags = flags, .ioaddr = bench_alloc(size)};
	mem->at = bench_at(mem->ioaddr);
	return 0;
}

int sio_nvme_mem_lasting(struct sio_nvme_device *d, unsigned id, size_t size, unsigned hints,
			 struct sio_nvme_mem *mem)
{
	(void)id;
	return sio_nvme_mem_device(d, size, hints, 0, mem);
}

/* No manager before this one has left anything. */
int sio_nvme_mem_again(struct sio_nvme_device *d, unsigned id, size_t size, uint64_t ioaddr,
		       struct sio_nvme_mem *mem)
{
	(void)d;
	(void)id;
	(void)size;
	(void)ioaddr;
	memset(mem, 0, sizeof(*mem));
	return -ENOENT;
}

void sio_nvme_mem_done(struct sio_nvme_mem *mem)
{
	memset(mem, 0, sizeof(*mem));
}

void sio_nvme_mem_clear(struct sio_nvme_mem *mem, size_t bytes)
{
	memset((void *)(uintptr_t)mem->at, 0, bytes);
}

/* ---- time: passes while the drive works ---- */

uint64_t smartio_now_ns(void)
{
	return clock_ns += 1000;
}

void sio_nvme_pause(unsigned *n)
{
	++*n;
	clock_ns += 100000;
	bench.drive->turn(bench.drive);
}

uint64_t sio_nvme_deadline(uint64_t ms)
{
	return clock_ns + ms * 1000000;
}

void sio_nvme_wake(sci_map_t map, const volatile uint32_t *sleeps)
{
	(void)map;
	(void)sleeps;
}

/* ---- the accessors ---- */

static bool of_bar(const volatile void *addr, uint32_t *ret_offset)
{
	uintptr_t at = (uintptr_t)addr - (uintptr_t)bar;

	*ret_offset = (uint32_t)at;
	return at < BAR_BYTES;
}

uint32_t sio_hook_read(const volatile void *addr, unsigned width)
{
	uint32_t offset, value = 0;

	if (of_bar(addr, &offset))
		return bench.drive->read(bench.drive, offset);
	memcpy(&value, (const void *)(uintptr_t)addr, width);
	return value;
}

uint64_t sio_hook_read64(const volatile void *addr)
{
	uint32_t offset;
	uint64_t value;

	if (of_bar(addr, &offset))
		return bench.drive->read(bench.drive, offset) |
		       (uint64_t)bench.drive->read(bench.drive, offset + 4) << 32;
	memcpy(&value, (const void *)(uintptr_t)addr, sizeof(value));
	return value;
}

void sio_hook_write(volatile void *addr, uint64_t value, unsigned width)
{
	uint32_t offset;

	if (!of_bar(addr, &offset))
		memcpy((void *)(uintptr_t)addr, &value, width);
	else if (width == 8)
		bench.drive->write64(bench.drive, offset, value);
	else
		bench.drive->write(bench.drive, offset, (uint32_t)value);
}

void sio_hook_copy_to(volatile void *dst, const void *src, size_t len)
{
	memcpy((void *)(uintptr_t)dst, src, len);
}

void sio_hook_copy_from(void *dst, const volatile void *src, size_t len)
{
	memcpy(dst, (const void *)(uintptr_t)src, len);
}

void sio_hook_barrier(int which)
{
	(void)which;
	__sync_synchronize(); /* gcc knows no atomic fence under ThreadSanitizer */
}

/* ---- the API, as far as the controller half calls it ---- */

void SCIConnectDeviceSegment(sci_smartio_device_t device, sci_remote_segment_t *segment,
			     unsigned int segmentId, unsigned int memtype,
			     sci_cb_remote_segment_t callback, void *callbackArg,
			     unsigned int flags, sci_error_t *error)
{
	(void)device;
	(void)segmentId;
	(void)memtype;
	(void)callback;
	(void)callbackArg;
	(void)flags;
	*segment = (sci_remote_segment_t)&bench;
	*error = SCI_ERR_OK;
}

void SCIDisconnectSegment(sci_remote_segment_t segment, unsigned int flags, sci_error_t *error)
{
	(void)segment;
	(void)flags;
	*error = SCI_ERR_OK;
}

unsigned int SCIGetRemoteSegmentNodeId(sci_remote_segment_t segment)
{
	(void)segment;
	return 1; /* all memory lies together */
}

volatile void *SCIMapRemoteSegment(sci_remote_segment_t segment, sci_map_t *map, size_t offset,
				   size_t size, void *addr, unsigned int flags, sci_error_t *error)
{
	(void)segment;
	(void)size;
	(void)addr;
	(void)flags;
	*map = (sci_map_t)&bench;
	*error = SCI_ERR_OK;
	return bar + offset;
}

void SCIUnmapSegment(sci_map_t map, unsigned int flags, sci_error_t *error)
{
	(void)map;
	(void)flags;
	*error = SCI_ERR_OK;
}

const volatile uint32_t *smartio_map_sleep_word(sci_map_t map)
{
	(void)map;
	return NULL;
}

int smartio_holds_registers(sci_smartio_device_t device)
{
	(void)device;
	return 1;
}

int smartio_device_lost(sci_smartio_device_t device)
{
	(void)device;
	return 0;
}

const char *SCIGetErrorString(sci_error_t code)
{
	(void)code;
	return "";
}

unsigned int smartio_last_exhausted(void)
{
	return 0;
}

const char *smartio_last_error(void)
{
	return "";
}

/* ---- */

int bench_begin(void)
{
	int rc;

	if (!bar) {
		bar = mmap(NULL, BAR_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (bar == MAP_FAILED)
			return -ENOMEM;
	}
	next = DRIVE_MEMORY + QUEUES;
	memset(bench.queue, 0, sizeof(bench.queue));
	memset(bench.drive->memory, 0, DRIVE_BYTES);
	bench.cid = 0x1000;
	strcpy(bench.device.name, "the drive");
	bench.drive->function_reset(bench.drive);
	rc = sio_nvme_ctrl_open(&bench.ctrl, &bench.device, 0);
	if (rc == 0)
		rc = sio_nvme_ctrl_disable(&bench.ctrl);
	if (rc == 0)
		rc = sio_nvme_ctrl_doorbells(&bench.ctrl);
	if (rc == 0)
		rc = sio_nvme_ctrl_enable(&bench.ctrl, ADMIN_ENTRIES);
	bench.drive->interrupts(bench.drive);
	bench.open = rc == 0;
	return rc;
}

void bench_end(void)
{
	if (bench.open)
		sio_nvme_ctrl_disable(&bench.ctrl);
	sio_nvme_ctrl_done(&bench.ctrl, true);
	bench.open = false;
}
