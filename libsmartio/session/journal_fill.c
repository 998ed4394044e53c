/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/journal_fill.h"

static void fill_connection(struct sio_msg_restore *m, const struct sio_rep_seg_connect *connect)
{
	m->key = connect->key;
	m->seal = connect->seal;
	m->extra = connect->connection;
	m->number = connect->segment_id;
	m->node = connect->node;
	m->path = connect->path;
	m->bytes = connect->bytes;
	m->peer_boot = connect->peer_boot;
}

static void fill_map(struct sio_msg_restore *m, const struct sio_rep_seg_map *map)
{
	unsigned n = sio_from_le32(map->n_pieces);

	m->key = map->key;
	m->seal = map->seal;
	m->path = map->path;
	m->doorbells = map->doorbells;
	for (unsigned i = 0; i < n && i < SIO_MAP_PIECES; i++)
		m->claim[i] = map->claim[i];
}

static void fill_link(struct sio_msg_restore *m, const struct sio_rep_dint_connect *link)
{
	m->key = link->key;
	m->seal = link->seal;
	m->path = link->path;
	m->peer_boot = link->peer_boot;
	for (unsigned i = 0; i < sizeof(link->claim) / sizeof(link->claim[0]); i++)
		m->claim[i] = link->claim[i];
}

static void fill_member(struct sio_msg_restore *m, const struct sio_rep_group_join *member)
{
	m->seal = member->seal;
	m->claim[0] = member->claim;
}

void sio_journal_fill_object(struct sio_msg_restore *m, const struct sio_msg *req,
			     const void *reply)
{
	const struct sio_rep_seg_create *seg = reply;
	const struct sio_rep_seg_attach *attach = reply;
	const struct sio_rep_dint_create *dint = reply;
	const struct sio_rep_dev_borrow *borrow = reply;

	m->handle = dint->handle; /* every reply that creates an object begins with its handle */
	switch (sio_from_le32(m->type)) {
	case SIO_MSG_SEG_CREATE:
		m->number = seg->segment_id;
		m->key = seg->key;
		m->seal = seg->seal;
		m->extra = seg->bytes;
		return;
	case SIO_MSG_SEG_ATTACH:
		m->number = ((const struct sio_msg_seg_attach *)req)->segment_id;
		m->prepared = attach->prepared;
		m->available = m->exported = attach->available;
		m->key = attach->key;
		m->seal = attach->seal;
		return;
	case SIO_MSG_SEG_CONNECT:
	case SIO_MSG_DEV_SEG_CONNECT:
		fill_connection(m, reply);
		return;
	case SIO_MSG_DINT_CREATE:
		m->number = dint->number;
		m->key = dint->key;
		m->extra = dint->extra;
		m->seal = dint->seal;
		return;
	case SIO_MSG_DINT_CONNECT:
		fill_link(m, reply);
		return;
	case SIO_MSG_DEV_BORROW:
		m->number = borrow->generation;
		m->key = borrow->borrower;
		m->seal = borrow->seal;
		m->bdf = borrow->info.bdf;
		m->class_code = borrow->info.class_code;
		return;
	case SIO_MSG_DMA_MAP:
		m->key = ((const struct sio_rep_dma_map *)reply)->key;
		return;
	case SIO_MSG_QUEUE_CREATE:
		m->key = ((const struct sio_rep_queue_create *)reply)->channel;
		return;
	case SIO_MSG_SEG_MAP:
		fill_map(m, reply);
		return;
	case SIO_MSG_GROUP_JOIN:
		fill_member(m, reply);
		return;
	}
}

static void fill_range(struct sio_msg_restore *m, const struct sio_msg_queue_attach *req,
		       const struct sio_rep_queue_attach *range)
{
	m->handle = req->queue;
	m->key = range->range;
	m->extra = range->window;
	m->seal = range->seal;
	m->path = range->path;
	m->claim[0] = range->claim;
}

static void fill_shadow(struct sio_msg_restore *m, const struct sio_rep_shadow *shadow)
{
	m->key = shadow->key;
	m->extra = shadow->extra;
	m->seal = shadow->seal;
	m->path = shadow->path;
	m->flags = shadow->flags;
	for (unsigned i = 0; i < SIO_SHADOW_CLAIMS; i++)
		m->claim[i] = shadow->claim[i];
}

void sio_journal_fill_part(struct sio_msg_restore *m, const struct sio_msg *req, const void *reply)
{
	switch (sio_from_le32(m->type)) {
	case SIO_MSG_DEV_SEG_CREATE:
		m->handle = ((const struct sio_msg_dev_seg_create *)req)->device;
		m->key = ((const struct sio_rep_dev_seg_create *)reply)->key;
		return;
	case SIO_MSG_DEV_VECTOR:
		m->handle = ((const struct sio_msg_dev_vector *)req)->device;
		m->number = ((const struct sio_rep_dev_vector *)reply)->vector;
		return;
	case SIO_MSG_DEV_HOLD:
		m->handle = ((const struct sio_msg_dev_hold *)req)->device;
		m->key = ((const struct sio_rep_dev_hold *)reply)->hold;
		m->seal = ((const struct sio_rep_dev_hold *)reply)->seal;
		return;
	case SIO_MSG_QUEUE_ATTACH:
		fill_range(m, (const void *)req, reply);
		return;
	case SIO_MSG_SHADOW:
		m->handle = ((const struct sio_msg_shadow *)req)->device;
		fill_shadow(m, reply);
		return;
	}
}
