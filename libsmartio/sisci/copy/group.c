/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In an exact multicast group each member has memory of its own. What writes to all of them is the
 * engine in an adapter, so a copy call is a transfer by a DMA queue of the map's own, which it
 * waits for. The map's pages read as ones: a store would have to be trapped.
 */
#include <errno.h>
#include <stdlib.h>

#include "sisci/copy/group.h"
#include "sisci/dma/queue.h"
#include "sisci/copy/sequence.h"

#define PART (1u << 20) /* bytes of one transfer: what the queue keeps memory for */

struct sio_group_copier {
	struct sio_dma_queue *queue; /* with a reference; made for the first copy */
	bool busy;		     /* a thread copies. Under the lock */
};

int sio_group_open(struct sio_mapping *m, struct sio_err *err)
{
	m->copier = calloc(1, sizeof(*m->copier));
	if (!m->copier)
		return sio_fail(err, -ENOMEM, "no memory");
	__atomic_add_fetch(&m->o.lib->special_maps, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Return: is the map being removed? While we waited, it may have been. */
static bool take_turn(struct sio_mapping *m)
{
	struct sio_session *s = m->o.lib->session;
	bool removing;

	sio_session_lock(s);
	while (m->copier->busy)
		sio_session_wait(s, NULL, 0, SIO_FOREVER);
	m->copier->busy = true;
	removing = m->o.removing;
	sio_session_unlock(s);
	return removing;
}

static void give_turn(struct sio_mapping *m, bool missed)
{
	struct sio_session *s = m->o.lib->session;

	sio_session_lock(s);
	m->copier->busy = false;
	if (missed) {
		__atomic_add_fetch(&m->cuts, 1, __ATOMIC_SEQ_CST);
		sio_sequence_tell(m, m->o.lost || !m->base ? SIO_MAP_LOST : SIO_MAP_WAS_DOWN);
	}
	sio_session_wake(s);
	sio_session_unlock(s);
}

void sio_group_close(struct sio_mapping *m)
{
	if (!m->copier)
		return;
	take_turn(m);
	if (m->copier->queue)
		sio_dma_queue_drop(m->copier->queue);
	m->copier->queue = NULL;
	give_turn(m, false);
}

void sio_group_free(struct sio_mapping *m)
{
	if (!m->copier)
		return;
	if (m->copier->queue)
		sio_object_put(&m->copier->queue->o);
	free(m->copier);
	__atomic_sub_fetch(&m->o.lib->special_maps, 1, __ATOMIC_RELAXED);
}

static int copy(struct sio_mapping *m, const uint8_t *from, uint64_t offset, size_t size,
		struct sio_err *err)
{
	struct sio_group_copier *c = m->copier;
	struct sio_dma_how how = {.wait = true};
	int rc = 0;

	if (!c->queue)
		rc = sio_dma_queue_new(m->o.lib, NULL,
				       ((struct sio_remote_segment *)m->o.parent)->adapter, 1,
				       &c->queue, err);
	for (size_t done = 0, part; !rc && done < size; done += part) {
		struct sio_dma_copy one = {.remote = (struct sio_remote_segment *)m->o.parent,
					   .remote_offset = offset + done};

		part = size - done < PART ? size - done : PART;
		one.size = part;
		rc = sio_dma_start_memory(c->queue, (void *)(uintptr_t)(from + done), &one, &how,
					  err);
	}
	return rc;
}

int sio_group_copy(struct sio_mapping *m, const void *from, const uint8_t *at, size_t size,
		   struct sio_err *err)
{
	int rc;

	if (size == 0)
		return 0;
	if (take_turn(m))
		rc = sio_fail(err, -EINVAL, "the map is being removed");
	else
		rc = copy(m, from, m->offset + (uint64_t)(at - (const uint8_t *)m->base), size,
			  err);
	give_turn(m, rc == SCI_ERR_TRANSFER_FAILED);
	return rc;
}
