/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "vfio/memory.h"
#include "vfio/message.h"

void sio_vfio_memory_init(struct sio_vfio_memory *m, const struct sio_vfio_memory_ops *ops,
			  void *ctx)
{
	*m = (struct sio_vfio_memory){.ops = ops, .ctx = ctx};
}

static void drop(struct sio_vfio_memory *m, const struct sio_vfio_range *r)
{
	if (!r->data)
		return;
	m->ops->unmap(m->ctx, r->data, r->size);
	m->mapped -= r->size;
}

void sio_vfio_memory_clear(struct sio_vfio_memory *m)
{
	for (unsigned i = 0; i < m->n; i++)
		drop(m, &m->range[i]);
	free(m->range);
	m->range = NULL;
	m->n = m->room = 0;
}

/* How many ranges begin at or below @address. */
static unsigned up_to(const struct sio_vfio_memory *m, uint64_t address)
{
	unsigned low = 0, high = m->n;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (m->range[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t last(const struct sio_vfio_range *r)
{
	return r->address + (r->size - 1);
}

static int make_room(struct sio_vfio_memory *m, struct sio_err *reterr)
{
	unsigned room = m->room ? 2 * m->room : 16;
	struct sio_vfio_range *range;

	if (m->n == SIO_VFIO_MAX_MAPS)
		return sio_fail(reterr, -ENOSPC, "DMA_MAP: a range too many; at most %u are right",
				SIO_VFIO_MAX_MAPS);
	if (m->n < m->room)
		return 0;
	range = reallocarray(m->range, room, sizeof(*range));
	if (!range)
		return sio_fail(reterr, -ENOMEM,
				"DMA_MAP: no memory for one more range: " SIO_MORE_MEMORY);
	m->range = range;
	m->room = room;
	return 0;
}

int sio_vfio_memory_add(struct sio_vfio_memory *m, uint64_t address, uint64_t size, int fd,
			uint64_t offset, bool can_read, bool can_write, struct sio_err *reterr)
{
	struct sio_vfio_range r = {
		.address = address, .size = size, .can_read = can_read, .can_write = can_write};
	unsigned at = up_to(m, address);
	void *data = NULL;
	int rc;

	if ((at > 0 && last(&m->range[at - 1]) >= address) ||
	    (at < m->n && m->range[at].address <= last(&r)))
		return sio_fail(reterr, -EEXIST,
				"DMA_MAP: %#" PRIx64 " bytes at %#" PRIx64
				" overlap what is mapped already",
				size, address);
	rc = make_room(m, reterr);
	if (rc < 0)
		return rc;
	if (fd >= 0 && (can_read || can_write)) {
		if (size > SIO_VFIO_MAX_MAPPED - m->mapped)
			return sio_fail(reterr, -ENOSPC,
					"DMA_MAP: %#" PRIx64 " bytes at %#" PRIx64
					" beside %#" PRIx64 "; at most %#llx are right in all",
					size, address, m->mapped, SIO_VFIO_MAX_MAPPED);
		rc = m->ops->map(m->ctx, fd, offset, &r, &data);
		if (rc < 0)
			return sio_fail(reterr, rc,
					"DMA_MAP: %#" PRIx64 " bytes at %#" PRIx64
					" cannot be mapped from its file's offset %#" PRIx64,
					size, address, offset);
	}
	r.data = data;
	if (data)
		m->mapped += size;
	memmove(&m->range[at + 1], &m->range[at], (m->n - at) * sizeof(r));
	m->range[at] = r;
	m->n++;
	return 0;
}

int sio_vfio_memory_remove(struct sio_vfio_memory *m, uint64_t address, uint64_t size,
			   struct sio_err *reterr)
{
	uint64_t end = address + (size - 1);
	unsigned first = up_to(m, address), n;

	if (end < address)
		return sio_fail(reterr, -EINVAL, "DMA_UNMAP: address and size overflow");
	if (first > 0 && last(&m->range[first - 1]) >= address)
		first--;
	for (n = first; n < m->n && m->range[n].address <= end; n++)
		if (m->range[n].address < address || last(&m->range[n]) > end)
			return sio_fail(reterr, -EINVAL,
					"DMA_UNMAP: %#" PRIx64 " bytes at %#" PRIx64
					" are a part of a range; a whole one is right",
					size, address);
	if (n == first)
		return sio_fail(reterr, -ENOENT,
				"DMA_UNMAP: nothing is mapped in %#" PRIx64 " bytes at %#" PRIx64,
				size, address);
	for (unsigned i = first; i < n; i++)
		drop(m, &m->range[i]);
	memmove(&m->range[first], &m->range[n], (m->n - n) * sizeof(*m->range));
	m->n -= n - first;
	return 0;
}

const struct sio_vfio_range *sio_vfio_memory_at(const struct sio_vfio_memory *m, uint64_t address)
{
	unsigned at = up_to(m, address);

	return at > 0 && last(&m->range[at - 1]) >= address ? &m->range[at - 1] : NULL;
}

const struct sio_vfio_range *sio_vfio_memory_part(const struct sio_vfio_memory *m, uint64_t address,
						  size_t len, bool write, size_t *part)
{
	const struct sio_vfio_range *r = sio_vfio_memory_at(m, address);
	uint64_t left;

	if (!r || !(write ? r->can_write : r->can_read))
		return NULL;
	left = last(r) - address; /* and one byte */
	*part = left < len ? (size_t)left + 1 : len;
	return r;
}
