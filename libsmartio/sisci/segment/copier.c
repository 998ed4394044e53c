/* SPDX-License-Identifier: BSD-2-Clause */
/* The DMA queue of a mapping of an exact multicast group: which thread uses it, and its end. */
#include <errno.h>
#include <stdlib.h>

#include "sisci/segment/segment.h"

int sio_map_copier_open(struct sio_mapping *m, struct sio_err *err)
{
	m->copier = calloc(1, sizeof(*m->copier));
	if (!m->copier)
		return sio_no_memory(err, "the queue of a group's map");
	__atomic_add_fetch(&m->o.lib->special_maps, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Return: is the map being removed? While we waited, it may have been. */
bool sio_map_copier_take(struct sio_mapping *m)
{
	struct sio_session *s = m->o.lib->session;
	bool removing;

	sio_session_lock(s);
	while (m->copier->busy)
		sio_session_wait(s, NULL, 0, SIO_FOREVER);
	m->copier->busy = true;
	removing = sio_object_is_leaving(&m->o);
	sio_session_unlock(s);
	return removing;
}

void sio_map_copier_give(struct sio_mapping *m, bool missed)
{
	struct sio_session *s = m->o.lib->session;

	sio_session_lock(s);
	m->copier->busy = false;
	if (missed) {
		__atomic_add_fetch(&m->cuts, 1, __ATOMIC_SEQ_CST); /* pairs with sio_copy_judge() */
		sio_mapping_notify(m, m->o.lost || !m->base ? SIO_MAP_LOST : SIO_MAP_WAS_DOWN);
	}
	sio_session_wake(s);
	sio_session_unlock(s);
}

void sio_map_copier_close(struct sio_mapping *m)
{
	if (!m->copier)
		return;
	sio_map_copier_take(m);
	if (m->copier->queue)
		sio_object_ops(m->copier->queue)->drop(m->copier->queue);
	m->copier->queue = NULL;
	sio_map_copier_give(m, false);
}

void sio_map_copier_free(struct sio_mapping *m)
{
	if (!m->copier)
		return;
	if (m->copier->queue)
		sio_object_put(m->copier->queue);
	free(m->copier);
	__atomic_sub_fetch(&m->o.lib->special_maps, 1, __ATOMIC_RELAXED);
}
