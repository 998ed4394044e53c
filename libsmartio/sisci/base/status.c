/* SPDX-License-Identifier: BSD-2-Clause */
/* The status page: which paths are up, and how often each went down. Written by the port alone. */
#include <errno.h>

#include "core/types.h"
#include "sisci/base/library.h"
#include "smartio/io.h"
#include "smartio/uapi.h"

/*
 * Address space for the largest cluster's; a port may have room for more than it will ever tell,
 * but not for anything.
 */
#define MAX_PATHS 4096
_Static_assert(MAX_PATHS >= SIO_MAX_HOSTS * SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS, "the largest");
#define MAX_BYTES ((SIO_STATUS_BYTES(MAX_PATHS) + SIO_PAGE_SIZE - 1) & ~(SIO_PAGE_SIZE - 1))

static uint32_t paths(const struct sio_library *lib)
{
	const volatile struct sio_status_page *page = lib->status;
	uint32_t n = sio_read32(&page->count);

	sio_from_fabric_barrier(); /* what counts is there; pairs with place() of smartio.ko */
	return n;
}

int sio_status_open(struct sio_library *lib, int fd, struct sio_err *err)
{
	struct sio_world *w = lib->world;
	const volatile struct sio_status_page *page;
	uint32_t magic, count, room;
	size_t bytes;

	/* The place is kept for good: a check may race with SCITerminate(). */
	if (!lib->status && w->reserve(w, NULL, false, MAX_BYTES, &lib->status) < 0)
		return sio_fail_exhausted(err, -ENOMEM, SIO_OUT_OF_ADDRESS_SPACE,
					  "no address space for the status page");
	if (w->map(w, lib->status, SIO_PAGE_SIZE, SIO_PROT_READ, fd, 0) < 0)
		return sio_fail(err, -ENOMEM, "the status page cannot be mapped: " SIO_MORE_MEMORY);
	page = lib->status;
	magic = sio_read32(&page->magic);
	count = sio_read32(&page->count);
	room = sio_read32(&page->room);
	if (magic != SIO_STATUS_MAGIC || count > room || room > MAX_PATHS)
		return sio_fail(err, -EPROTO,
				"smartiod gave a status page of %u paths of %u with mark %#x",
				count, room, magic);
	bytes = SIO_STATUS_BYTES(room);
	if (bytes > SIO_PAGE_SIZE &&
	    w->map(w, lib->status, (bytes + SIO_PAGE_SIZE - 1) & ~(size_t)(SIO_PAGE_SIZE - 1),
		   SIO_PROT_READ, fd, 0) < 0)
		return sio_fail(err, -ENOMEM, "the status page cannot be mapped: " SIO_MORE_MEMORY);
	return 0;
}

uint32_t sio_status_place(const struct sio_library *lib, uint32_t wire_path, uint32_t node)
{
	const volatile struct sio_status_page *page = lib->status;
	uint32_t n;

	if (wire_path == SIO_PATH_NONE || wire_path == SIO_PATH_EXACT)
		return 0;
	n = paths(lib);
	for (uint32_t i = 0; i < n; i++)
		if (sio_read32(&page->path[i].peer_node) == node &&
		    sio_read32(&page->path[i].adapter) == wire_path >> 16 &&
		    sio_read32(&page->path[i].peer_adapter) == (wire_path & 0xffff))
			return i + 1;
	return 0;
}

int sio_status_check(const struct sio_library *lib, uint32_t place, uint32_t node,
		     struct sio_err *err)
{
	const volatile struct sio_status_page *page = lib->status;

	if (place == 0 || sio_read32(&page->path[place - 1].state) == SIO_LINK_UP)
		return 0;
	return sio_fail(err, -ENETDOWN, "the link to node %u is down", node);
}

int sio_status_link(const struct sio_library *lib, unsigned adapter, int rc)
{
	const volatile struct sio_status_page *page = lib->status;
	uint32_t n;

	if (rc != -ENETDOWN)
		return rc;
	n = paths(lib);
	for (uint32_t i = 0; i < n; i++)
		if (sio_read32(&page->path[i].adapter) == adapter &&
		    sio_read32(&page->path[i].state) == SIO_LINK_UP)
			return SCI_ERR_NO_REMOTE_LINK_ACCESS;
	return rc;
}
