/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's memory, range by range as its emulator announces it (DMA_MAP). Each range is a
 * segment of this host, and while the device is a bus master it is mapped for the device at the
 * address that it has in the machine. The device does not reach ranges that the emulator marks as
 * read-only (firmware); those that have no file (other devices' BARs) are target.c's. Source: the
 * paper, section 5.2, where low and high memory had to be found by probing; here the emulator says
 * where they lie.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/output.h"
#include "guest/relay.h"
#include "smartio/ext.h"

struct range {
	sci_local_segment_t segment; /* NULL: read-only, and not mapped for devices */
	bool mapped;
};

static int refuse(struct relay *r, struct range *range, const char *what,
		  const struct sio_vfio_range *at, int rc)
{
	sci_error_t ignored;

	tool_note("%s: %#llx bytes of the machine's memory at %#llx: %s: %s", r->name,
		  (unsigned long long)at->size, (unsigned long long)at->address, what,
		  smartio_last_error());
	if (range->segment)
		SCIRemoveSegment(range->segment, 0, &ignored);
	free(range);
	return rc;
}

static sci_error_t map(struct relay *r, struct range *range, const struct sio_vfio_range *at)
{
	sci_error_t err;

	smartio_map_segment_at(range->segment, r->adapter, r->device, at->address, 0, at->size, 0,
			       &err);
	range->mapped = err == SCI_ERR_OK;
	return err;
}

static void unmap(struct relay *r, struct range *range)
{
	sci_error_t err;

	if (!range->mapped)
		return;
	SCIUnmapLocalSegmentForDevice(range->segment, r->adapter, r->device, 0, &err);
	if (err != SCI_ERR_OK)
		tool_note("%s: memory is not taken from the device: %s", r->name,
			  smartio_last_error());
	range->mapped = false;
}

/*
 * Which addresses the device can have its lender knows alone: the range is mapped at once, to learn
 * it while the emulator can still be told. It stays so if the device is a bus master.
 */
int relay_ram_map(void *ctx, int fd, uint64_t offset, const struct sio_vfio_range *at, void **ret)
{
	struct relay *r = ctx;
	struct range *range = calloc(1, sizeof(*range));
	sci_error_t err;

	if (!range)
		return -ENOMEM;
	*ret = range;
	if (!at->can_write)
		return 0;
	smartio_import_segment(r->sd, &range->segment, 0, fd, offset, at->size, SCI_FLAG_AUTO_ID,
			       &err);
	if (err != SCI_ERR_OK) {
		range->segment = NULL;
		return refuse(r, range, "it is not taken", at, -ENOMEM);
	}
	SCIPrepareSegment(range->segment, r->adapter, 0, &err);
	if (err != SCI_ERR_OK)
		return refuse(r, range, "it is not prepared", at, -ENOMEM);
	if (r->state == RELAY_LOST)
		return 0;
	err = map(r, range, at);
	if (err != SCI_ERR_OK && !smartio_device_lost(r->device))
		return refuse(r, range, "the device cannot have it there", at, -EINVAL);
	if (r->state != RELAY_MASTER)
		unmap(r, range);
	return 0;
}

void relay_ram_unmap(void *ctx, void *data, uint64_t size)
{
	struct relay *r = ctx;
	struct range *range = data;
	sci_error_t err;

	(void)size;
	unmap(r, range);
	if (range->segment) {
		SCIRemoveSegment(range->segment, SCI_FLAG_FORCE_REMOVE, &err);
		if (err != SCI_ERR_OK)
			tool_note("%s: memory is not given back: %s", r->name,
				  smartio_last_error());
	}
	free(range);
}

int relay_ram_open(struct relay *r, struct sio_err *reterr)
{
	struct sio_vfio_memory *m = sio_vfio_session_memory(r->session);

	for (unsigned i = 0; i < m->n; i++) {
		const struct sio_vfio_range *at = &m->range[i];
		struct range *range = (void *)at->data;

		if (!range || !range->segment || range->mapped)
			continue;
		if (map(r, range, at) != SCI_ERR_OK)
			return relay_fail(reterr, -EIO, "the device cannot be given its memory");
	}
	return 0;
}

void relay_ram_close(struct relay *r)
{
	struct sio_vfio_memory *m = sio_vfio_session_memory(r->session);

	for (unsigned i = 0; i < m->n; i++)
		if (m->range[i].data)
			unmap(r, (void *)m->range[i].data);
}
