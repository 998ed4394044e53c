/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A borrowed accelerator: its registers, doorbells and memory, and the memory of others that it
 * reaches.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

#define TRIES_TO_FREE 200 /* milliseconds that others may still be using what is freed */

void sio_accel_wake(const struct sio_accel_page *p)
{
	if (!p->sleeps)
		return;
	/*
	 * Either the device finds the store in its last look, or the word is found set here: pairs
	 * with the barrier in emu_watches_doze().
	 */
	sio_full_barrier();
	if (sio_read32(p->sleeps))
		smartio_map_wake(p->map);
}

void sio_accel_pause(unsigned *n)
{
	sci_error_t err;

	if ((*n)++ < 1000)
		smartio_yield();
	else
		smartio_wait_events(NULL, NULL, 1, &err);
}

bool sio_accel_not_yet_free(sci_error_t err, unsigned tries)
{
	sci_error_t ignored;

	if ((err != SCI_ERR_BUSY && err != SCI_ERR_NOSPC) || tries == TRIES_TO_FREE)
		return false;
	smartio_wait_events(NULL, NULL, 1, &ignored);
	return true;
}

int sio_accel_check(const struct smartio_accel *a)
{
	if (smartio_device_lost(a->handle))
		return sio_accel_fail(-ENODEV, "%s, or the path to it, is lost", a->name);
	if (smartio_device_generation(a->handle) != a->generation)
		return sio_accel_fail(-ENODEV, "%s was reset", a->name);
	return 0;
}

/* ---- open ---- */

static int find(struct smartio_accel *a, const char *name)
{
	sci_smartio_device_info_t info = {0};
	sci_smartio_query_device_t q = {.subcommand = SCI_Q_DEVICE_INFO, .data = &info};
	sci_error_t err;

	if (!name || !*name)
		return sio_accel_fail(-EINVAL, "no device name given");
	snprintf(a->name, sizeof(a->name), "%s", name);
	smartio_find_device(name, &a->fdid, &err);
	if (err == SCI_ERR_NO_SUCH_FDID)
		return sio_accel_fail(-ENODEV, "%s", smartio_last_error());
	if (err != SCI_ERR_OK)
		return sio_accel_fail_sci(err, "%s", a->name);
	q.fdid = a->fdid;
	SCIQuery(SCI_Q_DEVICE, &q, 0, &err);
	if (err != SCI_ERR_OK)
		return sio_accel_fail_sci(err, "%s: cannot ask what it is", a->name);
	if (info.pci_class != SIO_ACCEL_CLASS)
		return sio_accel_fail(-ENOTSUP,
				      "%s is not an accelerator: its class is %#06x, not %#06x",
				      a->name, info.pci_class, SIO_ACCEL_CLASS);
	a->info.adapter = info.adapter;
	a->info.lender_node = info.nodeid;
	SCIGetLocalNodeId(info.adapter, &a->node, 0, &err);
	return err == SCI_ERR_OK ? 0 : sio_accel_fail_sci(err, "adapter %u", info.adapter);
}

static int borrow(struct smartio_accel *a, uint32_t flags)
{
	sci_error_t err;

	SCIOpen(&a->sd, 0, &err);
	if (err != SCI_ERR_OK) {
		a->sd = NULL;
		return sio_accel_fail_sci(err, "%s", a->name);
	}
	SCIBorrowDevice(a->sd, &a->handle, a->fdid,
			flags & SMARTIO_ACCEL_EXCLUSIVE ? SCI_FLAG_EXCLUSIVE : 0, &err);
	if (err != SCI_ERR_OK) {
		a->handle = NULL;
		return sio_accel_fail_sci(err, "%s: cannot borrow it", a->name);
	}
	return 0;
}

static int connect_bar(struct smartio_accel *a, unsigned bar, sci_remote_segment_t *ret)
{
	sci_error_t err;

	SCIConnectDeviceSegment(a->handle, ret, bar, SCI_MEMTYPE_BAR, NULL, NULL, 0, &err);
	if (err == SCI_ERR_OK)
		return 0;
	*ret = NULL;
	return sio_accel_fail_sci(err, "%s: cannot connect BAR %u", a->name, bar);
}

static int map_page(struct smartio_accel *a, struct sio_accel_page *p, size_t offset,
		    const char *what)
{
	sci_error_t err;

	p->at = SCIMapRemoteSegment(a->bar, &p->map, offset, SIO_ACCEL_PAGE, NULL,
				    SCI_FLAG_IO_MAP_IOSPACE, &err);
	if (err == SCI_ERR_OK) {
		p->sleeps = smartio_map_sleep_word(p->map);
		return 0;
	}
	p->map = NULL;
	if (err == SCI_ERR_ACCESS)
		return sio_accel_fail(-EBUSY, "another program drives %s", a->name);
	return sio_accel_fail_sci(err, "%s: cannot map its %s", a->name, what);
}

static int map_registers(struct smartio_accel *a)
{
	int rc = connect_bar(a, SIO_ACCEL_BAR_REGISTERS, &a->bar);

	if (rc == 0)
		rc = map_page(a, &a->registers, 0, "registers");
	if (rc == 0 && !smartio_holds_registers(a->handle))
		rc = sio_accel_fail(-EBUSY, "another program drives %s", a->name);
	return rc;
}

/* One without a reset: none of its queues does anything any more. */
static int quiesce(struct smartio_accel *a)
{
	for (unsigned i = 0; i < a->info.dma_queues + a->info.units; i++) {
		volatile uint8_t *queue = a->registers.at + SIO_ACCEL_QUEUE(i);
		unsigned pauses = 0;

		sio_write32(queue + SIO_ACCEL_CONTROL, 0);
		sio_accel_wake(&a->registers);
		while (sio_read32(queue + SIO_ACCEL_STATUS) != 0) {
			if (smartio_device_lost(a->handle))
				return sio_accel_fail(-ENODEV, "%s is gone", a->name);
			sio_accel_pause(&pauses);
		}
	}
	return 0;
}

/*
 * What a program before left, which may have died with a kernel under way, ends here; then nothing
 * of it can be in use any more, and the doorbells are new.
 */
static int begin_anew(struct smartio_accel *a)
{
	sci_error_t err;
	int rc;

	smartio_device_reset(a->handle, &err);
	if (err == SCI_ERR_NOT_SUPPORTED) {
		rc = quiesce(a);
		if (rc)
			return rc;
		smartio_device_settled(a->handle, SMARTIO_ALL_BORROWERS, &err);
	}
	if (err != SCI_ERR_OK)
		return sio_accel_fail_sci(err, "%s: cannot reset it", a->name);
	a->generation = smartio_device_generation(a->handle);
	return map_page(a, &a->doorbells, SIO_ACCEL_DOORBELL(0), "doorbells");
}

/* What its registers say, and whether this driver knows such a device. */
static int read_registers(struct smartio_accel *a)
{
	const volatile uint8_t *r = a->registers.at;
	uint32_t queues = sio_read32(r + SIO_ACCEL_QUEUES);

	if (sio_read32(r + SIO_ACCEL_MAGIC) != SIO_ACCEL_MAGIC_VALUE ||
	    sio_read32(r + SIO_ACCEL_VERSION) != 1)
		return sio_accel_fail(
			-ENOTSUP, "%s is an accelerator that this driver does not know", a->name);
	a->info.memory_bytes = sio_read64(r + SIO_ACCEL_MEMORY_BYTES);
	a->info.vectors = sio_read32(r + SIO_ACCEL_VECTORS);
	a->info.dma_queues = sio_read32(r + SIO_ACCEL_DMA_QUEUES);
	if (queues > SIO_ACCEL_MOST_QUEUES || queues <= a->info.dma_queues)
		return sio_accel_fail(-ENOTSUP, "%s has %u queues, %u of them for DMA", a->name,
				      queues, a->info.dma_queues);
	a->info.units = queues - a->info.dma_queues;
	return 0;
}

static int map_memory(struct smartio_accel *a)
{
	int rc = connect_bar(a, SIO_ACCEL_BAR_MEMORY, &a->memory);
	sci_error_t err;

	if (rc)
		return rc;
	if (SCIGetRemoteSegmentSize(a->memory) != a->info.memory_bytes)
		return sio_accel_fail(-ENOTSUP, "%s has a BAR of %zu bytes for a memory of %llu",
				      a->name, SCIGetRemoteSegmentSize(a->memory),
				      (unsigned long long)a->info.memory_bytes);
	a->at = SCIMapRemoteSegment(a->memory, &a->map, 0, a->info.memory_bytes, NULL, 0, &err);
	if (err == SCI_ERR_OK)
		return 0;
	a->map = NULL;
	return sio_accel_fail_sci(err, "%s: cannot map its memory", a->name);
}

int smartio_accel_open(const char *device, uint32_t flags, struct smartio_accel **ret)
{
	struct smartio_accel *a;
	int rc;

	if (flags & ~SMARTIO_ACCEL_EXCLUSIVE)
		return sio_accel_fail(
			-EINVAL, "flags %#x of an accelerator; only %#x (exclusive) is allowed",
			flags, SMARTIO_ACCEL_EXCLUSIVE);
	a = calloc(1, sizeof(*a));
	if (!a)
		return sio_accel_no_memory("an accelerator");
	rc = find(a, device);
	if (rc == 0)
		rc = borrow(a, flags);
	if (rc == 0)
		rc = map_registers(a);
	if (rc == 0)
		rc = read_registers(a);
	if (rc == 0)
		rc = begin_anew(a);
	if (rc == 0)
		rc = map_memory(a);
	if (rc) {
		smartio_accel_close(a);
		return rc;
	}
	*ret = a;
	return 0;
}

/* ---- close ---- */

static void unreach(struct sio_accel_reach *r)
{
	struct sio_accel_reach **at;
	sci_error_t err;

	for (at = &r->by->reaches; *at != r; at = &(*at)->next_by)
		;
	*at = r->next_by;
	for (at = &r->other->reached; *at != r; at = &(*at)->next_other)
		;
	*at = r->next_other;
	SIO_ACCEL_UNTIL_FREE(
		err, SCIUnmapRemoteSegmentForDevice(r->other->memory, r->by->handle, 0, &err));
	free(r);
}

static void unmap(sci_map_t map)
{
	sci_error_t err;

	if (map)
		SCIUnmapSegment(map, 0, &err);
}

static void disconnect(sci_remote_segment_t segment)
{
	sci_error_t err;

	if (segment)
		SIO_ACCEL_UNTIL_FREE(err, SCIDisconnectSegment(segment, 0, &err));
}

void smartio_accel_close(struct smartio_accel *a)
{
	sci_error_t err;

	if (!a)
		return;
	while (a->queues)
		smartio_accel_queue_close(a->queues);
	while (a->buffers)
		smartio_accel_buffer_free(a->buffers);
	while (a->reaches)
		unreach(a->reaches);
	while (a->reached)
		unreach(a->reached);
	unmap(a->map);
	unmap(a->doorbells.map);
	unmap(a->registers.map);
	disconnect(a->memory);
	disconnect(a->bar);
	if (a->handle)
		SIO_ACCEL_UNTIL_FREE(err, SCIReturnDevice(a->handle, 0, &err));
	if (a->sd)
		SCIClose(a->sd, 0, &err);
	free(a);
}

/* ---- what it has ---- */

void smartio_accel_get_info(const struct smartio_accel *a, struct smartio_accel_info *info)
{
	*info = a->info;
}

volatile void *smartio_accel_memory(const struct smartio_accel *a)
{
	return a->at;
}

sci_smartio_device_t smartio_accel_device(const struct smartio_accel *a)
{
	return a->handle;
}

sci_remote_segment_t smartio_accel_segment(const struct smartio_accel *a)
{
	return a->memory;
}

int smartio_accel_reach(struct smartio_accel *a, struct smartio_accel *other, uint64_t *ret_address)
{
	struct sio_accel_reach *r;
	sci_ioaddr_t at = 0;
	sci_error_t err;

	if (a == other)
		return sio_accel_fail(-EINVAL, "%s reaches its own memory by smartio_accel_local()",
				      a->name);
	for (r = a->reaches; r; r = r->next_by)
		if (r->other == other)
			return sio_accel_fail(-EEXIST, "%s reaches the memory of %s already",
					      a->name, other->name);
	r = calloc(1, sizeof(*r));
	if (!r)
		return sio_accel_no_memory("a mapping");
	SCIMapRemoteSegmentForDevice(other->memory, a->handle, &at, 0, other->info.memory_bytes, 0,
				     &err);
	if (err != SCI_ERR_OK) {
		free(r);
		return sio_accel_fail_sci(err, "%s cannot reach the memory of %s", a->name,
					  other->name);
	}
	*r = (struct sio_accel_reach){
		.by = a, .other = other, .next_by = a->reaches, .next_other = other->reached};
	a->reaches = other->reached = r;
	*ret_address = at;
	return 0;
}
