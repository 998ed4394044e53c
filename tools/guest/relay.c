/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "base/output.h"
#include "core/types.h"
#include "guest/relay.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define MSIX_ENTRY 16u

int relay_fail(struct sio_err *reterr, int rc, const char *what)
{
	return sio_fail(reterr, rc, "%s: %s", what, smartio_last_error());
}

static void enter(struct relay *r, enum relay_state next)
{
	/* Which states may follow each state, a bit each. */
	static const unsigned allowed[RELAY_STATES] = {
		[RELAY_IDLE] = 1u << RELAY_STOPPED,
		[RELAY_STOPPED] = 1u << RELAY_MASTER | 1u << RELAY_LOST | 1u << RELAY_IDLE,
		[RELAY_MASTER] = 1u << RELAY_STOPPED | 1u << RELAY_LOST,
		[RELAY_LOST] = 1u << RELAY_IDLE,
	};

	if (!(allowed[r->state] & 1u << next))
		tool_note("%s: state %d after %d, which cannot be", r->name, next, r->state);
	r->state = next;
}

void relay_lose(struct relay *r, const char *why)
{
	if (r->state == RELAY_LOST || r->state == RELAY_IDLE)
		return;
	tool_note("%s is lost to its machine: %s", r->name, why);
	enter(r, RELAY_LOST);
	relay_targets_follow(r->machine);
	if (r->session && r->unplug)
		sio_vfio_session_request(r->session);
}

void relay_event(struct relay *r)
{
	struct smartio_device_event event;
	sci_error_t err;

	for (;;) {
		smartio_wait_device_event(r->device, &event, 0, &err);
		if (err != SCI_ERR_OK)
			break;
		if (event.kind == SMARTIO_DEVICE_LOST)
			relay_lose(r, "the device, its lender or the way there is gone");
		else if (event.kind == SMARTIO_DEVICE_RESET && r->restarts)
			r->restarts--;
		else if (event.kind == SMARTIO_DEVICE_RESET)
			relay_lose(r, "its lender has reset it, by force");
	}
	if (err != SCI_ERR_TIMEOUT)
		relay_lose(r, smartio_last_error());
}

/* ---- memory: mapped while the driver has made the device a bus master ---- */

static void follow_master(struct relay *r)
{
	bool master = sio_vfio_config_is_master(&r->space);
	struct sio_err err;

	if (r->state == RELAY_LOST)
		return;
	if (master && relay_ram_open(r, &err) < 0) {
		relay_ram_close(r);
		relay_lose(r, err.text);
		return;
	}
	if (!master && r->state == RELAY_MASTER)
		relay_ram_close(r);
	if (master != (r->state == RELAY_MASTER))
		enter(r, master ? RELAY_MASTER : RELAY_STOPPED);
	relay_targets_follow(r->machine);
}

static void memory_changed(void *function)
{
	struct relay *r = function;

	if (r->session && r->state == RELAY_MASTER)
		follow_master(r);
}

/*
 * Nobody finds its BARs any more, then the device stops, then the memory that it might still have
 * written to is unmapped.
 */
static void reset(void *function)
{
	struct relay *r = function;
	sci_error_t err;

	if (r->state == RELAY_LOST)
		return;
	sio_vfio_config_reset(&r->space);
	relay_targets_follow(r->machine);
	smartio_device_restart(r->device, &err);
	r->restarts += err == SCI_ERR_OK;
	follow_master(r);
	if (err != SCI_ERR_OK)
		relay_lose(r, smartio_last_error());
}

/* ---- what the machine accesses ---- */

static void region(void *function, unsigned index, struct sio_vfio_region *ret)
{
	const struct relay *r = function;
	const struct relay_bar *b;

	if (index == SIO_VFIO_CONFIG) {
		ret->size = SIO_VFIO_CONFIG_BYTES;
		ret->flags = SIO_VFIO_REGION_READABLE | SIO_VFIO_REGION_WRITABLE;
		return;
	}
	if (index >= RELAY_BARS || !r->bar[index].size)
		return;
	b = &r->bar[index];
	ret->size = b->size;
	ret->flags = SIO_VFIO_REGION_READABLE | SIO_VFIO_REGION_WRITABLE;
	if (b->fd < 0)
		return;
	/* An area's place in the file is the sum of both, modulo 2^64. */
	ret->flags |= SIO_VFIO_REGION_MMAP;
	ret->fd = b->fd;
	ret->fd_offset = b->fd_offset - b->run;
	ret->n_areas = 1;
	ret->area[0] = (struct sio_vfio_area){b->run, b->run_bytes};
}

static uint32_t vectors(void *function)
{
	return ((const struct relay *)function)->layout.msix_count;
}

/*
 * An access of the program is one access to the hardware. One that the hardware has not, of more
 * bytes or across their multiples, is several, each as long as can be.
 */
static size_t piece(const volatile uint8_t *at, size_t len)
{
	size_t n = 8;

	while (n > len || (uintptr_t)at % n)
		n /= 2;
	return n;
}

static void load_one(uint8_t *to, const volatile uint8_t *from, size_t len)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	if (len == 8) {
		v8 = sio_read64(from);
		memcpy(to, &v8, sizeof(v8));
	} else if (len == 4) {
		v4 = sio_read32(from);
		memcpy(to, &v4, sizeof(v4));
	} else if (len == 2) {
		v2 = sio_read16(from);
		memcpy(to, &v2, sizeof(v2));
	} else {
		*to = sio_read8(from);
	}
}

static void store_one(volatile uint8_t *to, const uint8_t *from, size_t len)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	if (len == 8) {
		memcpy(&v8, from, sizeof(v8));
		sio_write64(to, v8);
	} else if (len == 4) {
		memcpy(&v4, from, sizeof(v4));
		sio_write32(to, v4);
	} else if (len == 2) {
		memcpy(&v2, from, sizeof(v2));
		sio_write16(to, v2);
	} else {
		sio_write8(to, *from);
	}
}

static void load(void *to, const volatile uint8_t *from, size_t len)
{
	for (size_t n, done = 0; done < len; done += n) {
		n = piece(from + done, len - done);
		load_one((uint8_t *)to + done, from + done, n);
	}
}

static void store(volatile uint8_t *to, const void *from, size_t len)
{
	for (size_t n, done = 0; done < len; done += n) {
		n = piece(to + done, len - done);
		store_one(to + done, (const uint8_t *)from + done, n);
	}
}

static int read_region(void *function, unsigned index, uint64_t offset, void *buf, size_t len)
{
	struct relay *r = function;

	if (r->state == RELAY_LOST || smartio_device_lost(r->device))
		memset(buf, 0xff, len);
	else if (index == SIO_VFIO_CONFIG)
		sio_vfio_config_read(&r->space, offset, buf, len);
	else
		load(buf, r->bar[index].at + offset, len);
	return 0;
}

static int write_region(void *function, unsigned index, uint64_t offset, const void *buf,
			size_t len)
{
	struct relay *r = function;

	if (r->state == RELAY_LOST || smartio_device_lost(r->device))
		return 0;
	if (index != SIO_VFIO_CONFIG)
		store(r->bar[index].at + offset, buf, len);
	else if (sio_vfio_config_write(&r->space, offset, buf, len))
		reset(r);
	else
		follow_master(r);
	return 0;
}

static void vector_changed(void *function, unsigned vector, int fd)
{
	relay_vector_set(function, vector, fd);
}

const struct sio_vfio_function_ops relay_function = {
	.region = region,
	.vectors = vectors,
	.read = read_region,
	.write = write_region,
	.reset = reset,
	.memory_changed = memory_changed,
	.vector_changed = vector_changed,
	.requests = true,
};

/* ---- borrowed and returned ---- */

/* The first run of the BAR's pages that the emulator may map. */
static void find_run(struct relay_bar *b)
{
	uint64_t at = 0, fd_offset;
	sci_error_t err;
	size_t bytes;

	for (b->fd = -1; at < b->size && b->fd < 0; at += SIO_PAGE_SIZE) {
		b->fd = smartio_map_file(b->map, at, &fd_offset, &bytes, &err);
		if (b->fd < 0)
			continue;
		b->fd_offset = fd_offset;
		b->run = at;
		b->run_bytes = bytes;
	}
}

static int map_bar(struct relay *r, unsigned index, struct sio_err *reterr)
{
	struct relay_bar *b = &r->bar[index];
	sci_error_t err;

	SCIConnectDeviceSegment(r->device, &b->segment, index, SCI_MEMTYPE_BAR, NULL, NULL, 0,
				&err);
	if (err != SCI_ERR_OK) {
		b->segment = NULL;
		return relay_fail(reterr, -EIO, "a BAR");
	}
	b->at = SCIMapRemoteSegment(b->segment, &b->map, 0, b->size, NULL, SMARTIO_FLAG_KEEP_FILES,
				    &err);
	if (err != SCI_ERR_OK) {
		b->at = NULL;
		return relay_fail(reterr, -EIO, "a BAR");
	}
	find_run(b);
	return 0;
}

static void unmap_bars(struct relay *r)
{
	sci_error_t err;

	for (unsigned i = 0; i < RELAY_BARS; i++) {
		struct relay_bar *b = &r->bar[i];

		if (b->at)
			SCIUnmapSegment(b->map, 0, &err);
		if (b->segment)
			SCIDisconnectSegment(b->segment, 0, &err);
		b->at = NULL;
		b->segment = NULL;
		b->fd = -1;
	}
}

int relay_borrow(struct relay *r, struct sio_err *reterr)
{
	sci_error_t err;
	int rc = 0;

	SCIBorrowDevice(r->sd, &r->device, r->fdid, SCI_FLAG_EXCLUSIVE, &err);
	if (err != SCI_ERR_OK)
		return relay_fail(reterr, err == SCI_ERR_NOT_AVAILABLE ? -EBUSY : -ENODEV,
				  "it cannot be borrowed");
	enter(r, RELAY_STOPPED);
	memset(r->vector, 0, sizeof(r->vector));
	r->restarts = 0;
	r->told = 0;
	for (unsigned i = 0; rc == 0 && i < RELAY_BARS; i++)
		if (r->bar[i].size)
			rc = map_bar(r, i, reterr);
	if (rc < 0)
		relay_return(r);
	else
		sio_vfio_config_reset(&r->space);
	return rc;
}

/* The emulator may go on, so its doorbells are taken away, too. */
void relay_stop(struct relay *r)
{
	sci_error_t err;

	if (r->state == RELAY_LOST)
		return;
	smartio_device_reset(r->device, &err);
	if (err != SCI_ERR_OK)
		relay_lose(r, smartio_last_error());
}

void relay_return(struct relay *r)
{
	sci_error_t err;

	if (r->state == RELAY_MASTER)
		enter(r, RELAY_STOPPED);
	relay_targets_follow(r->machine);
	unmap_bars(r);
	SCIReturnDevice(r->device, 0, &err);
	if (err != SCI_ERR_OK)
		tool_note("%s is not returned: %s", r->name, smartio_last_error());
	enter(r, RELAY_IDLE);
	r->device = NULL;
}

/* ---- the device's description for the machine ---- */

static void describe(struct relay *r)
{
	const struct smartio_device_layout *l = &r->layout;
	struct sio_vfio_config_identity id = {
		.vendor = l->vendor,
		.device = l->device,
		.subsys_vendor = l->subsystem_vendor,
		.subsys_device = l->subsystem_device,
		.class_code = l->class_code,
		.msix_count = l->msix_count,
		.msix_bar = l->msix_bar,
		.msix_table = l->msix_offset,
		.msix_pending = l->msix_offset + l->msix_count * MSIX_ENTRY,
	};

	for (unsigned i = 0; i < RELAY_BARS; i++) {
		id.bar_size[i] = r->bar[i].size = l->bar_size[i];
		r->bar[i].fd = -1;
	}
	sio_vfio_config_init(&r->space, &id);
}

int relay_open(struct relay *r, const char *name, struct sio_err *reterr)
{
	sci_error_t err;

	r->name = name;
	SCIOpen(&r->sd, 0, &err);
	if (err == SCI_ERR_OK)
		smartio_find_device(name, &r->fdid, &err);
	if (err == SCI_ERR_OK)
		smartio_device_layout(r->fdid, &r->layout, &err);
	if (err != SCI_ERR_OK)
		return sio_fail(reterr, err == SCI_ERR_NO_SUCH_FDID ? -ENODEV : -ENOTCONN, "%s",
				smartio_last_error());
	r->adapter = r->layout.adapter;
	SCIGetLocalNodeId(r->adapter, &r->node, 0, &err);
	if (err != SCI_ERR_OK)
		return relay_fail(reterr, -ENXIO, "this host");
	if (!r->layout.translated)
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s: its host's IOMMU does not translate: a machine's driver could "
				"have it write to that host's memory",
				name);
	if (!r->layout.resets)
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s has no reset: it could not be stopped for a machine", name);
	if (r->layout.msix_count == 0 || r->layout.msix_count > SIO_VFIO_VECTORS)
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s has no MSI-X: INTx is not passed through, for it is a wire of "
				"the lender's",
				name);
	describe(r);
	return 0;
}
