/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies into exact multicast groups. Each member has memory of its own, and only the DMA engine of
 * an adapter writes to all of them. So a copy call is a transfer by a DMA queue of the mapping's
 * own, which it waits for. The mapping's pages read as ones: a store would have to be trapped.
 */
#include <errno.h>

#include "sisci/copy/group.h"
#include "sisci/dma/queue.h"

#define PART (1u << 20) /* bytes of one transfer: what the queue keeps memory for */

static int copy(struct sio_mapping *m, const uint8_t *from, uint64_t offset, size_t size,
		struct sio_err *err)
{
	struct sio_map_copier *c = m->copier;
	struct sio_dma_queue *q = (struct sio_dma_queue *)c->queue;
	struct sio_dma_how how = {.wait = true};
	int rc = 0;

	if (!q) {
		rc = sio_dma_queue_new(m->o.lib, NULL,
				       ((struct sio_remote_segment *)m->o.parent)->adapter, 1, &q,
				       err);
		c->queue = rc ? NULL : &q->o;
	}
	for (size_t done = 0, part; !rc && done < size; done += part) {
		struct sio_dma_copy one = {.remote = (struct sio_remote_segment *)m->o.parent,
					   .remote_offset = offset + done};

		part = size - done < PART ? size - done : PART;
		one.size = part;
		rc = sio_dma_start_memory(q, (void *)(uintptr_t)(from + done), &one, &how, err);
	}
	return rc;
}

int sio_group_copy(struct sio_mapping *m, const void *from, const uint8_t *at, size_t size,
		   struct sio_err *err)
{
	int rc;

	if (size == 0)
		return 0;
	if (sio_map_copier_take(m))
		rc = sio_fail(err, -EINVAL, "the map is being removed");
	else
		rc = copy(m, from, m->offset + (uint64_t)(at - (const uint8_t *)m->base), size,
			  err);
	sio_map_copier_give(m, rc == SCI_ERR_TRANSFER_FAILED);
	return rc;
}
