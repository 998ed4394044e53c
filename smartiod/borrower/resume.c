/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resynchronisation with a lender (wire/peer.h, RESUME_*). When two daemons have connected again,
 * because one of them was restarted or messages were lost, this daemon sends the other one what
 * programs of this host have of its devices. For a borrow that the lender does not know any more
 * the lender answers with BORROW_LOST.
 */
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

/* ---- HOLDs, which the lender forgets when it is started again ---- */

struct smartiod_held {
	struct smartiod_held *next;
	uint32_t node, fdid, count, generation; /* generation: the device's */
	uint64_t hold, borrow;			/* borrow: that took them, and may have ended */
};

static struct smartiod_held **find(struct smartiod *d, uint32_t fdid, uint64_t hold,
				   uint64_t borrow)
{
	struct smartiod_held **at = &d->held;

	while (*at && ((*at)->fdid != fdid || (*at)->hold != hold || (*at)->borrow != borrow))
		at = &(*at)->next;
	return at;
}

static void forget(struct smartiod_held **at)
{
	struct smartiod_held *h = *at;

	*at = h->next;
	free(h);
}

int smartiod_held_add(struct smartiod *d, const struct smartiod_borrow *b, uint64_t hold,
		      uint32_t generation)
{
	struct smartiod_held *h = *find(d, b->device->fdid, hold, b->id);

	if (b->node == d->node)
		return 0;
	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return -ENOMEM;
		*h = (struct smartiod_held){.next = d->held,
					    .node = b->node,
					    .fdid = b->device->fdid,
					    .hold = hold,
					    .borrow = b->id};
		d->held = h;
	}
	if (h->generation != generation)
		h->count = 0; /* a reset ended those before */
	h->generation = generation;
	h->count++;
	return 0;
}

void smartiod_held_drop(struct smartiod *d, uint32_t fdid, uint64_t hold, uint64_t borrow)
{
	struct smartiod_held **at = find(d, fdid, hold, borrow);

	if (*at && --(*at)->count == 0)
		forget(at);
}

int smartiod_peer_hold_gone(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			    struct sio_err *reterr)
{
	const struct sio_peer_hold_release *m = msg;
	const struct smartiod_held *h = *find(d, sio_from_le32(m->fdid), sio_from_le64(m->hold),
					      sio_from_le64(m->borrower));

	(void)reterr;
	if (h && h->node == from->node && h->generation == sio_from_le32(m->generation))
		smartiod_held_drop(d, h->fdid, h->hold, h->borrow);
	return 0;
}

void smartiod_held_reset(struct smartiod *d, const struct smartiod_device *dev)
{
	struct smartiod_held **at = &d->held;

	while (*at)
		if ((*at)->fdid == dev->fdid && (*at)->generation != dev->generation)
			forget(at);
		else
			at = &(*at)->next;
}

void smartiod_held_end(struct smartiod *d, const struct smartiod_device *dev)
{
	struct smartiod_held **at = &d->held;

	while (*at)
		if ((*at)->fdid == dev->fdid)
			forget(at);
		else
			at = &(*at)->next;
}

void smartiod_held_lost(struct smartiod *d, uint32_t node)
{
	struct smartiod_held **at = &d->held;

	while (*at)
		if ((*at)->node == node)
			forget(at);
		else
			at = &(*at)->next;
}

void smartiod_held_free_all(struct smartiod *d)
{
	while (d->held)
		forget(&d->held);
}

static void send_holds(struct smartiod *d, uint32_t node)
{
	for (const struct smartiod_held *h = d->held; h; h = h->next) {
		struct sio_peer_resume_hold msg = {
			.h.type = sio_to_le32(SIO_PEER_RESUME_HOLD),
			.borrower = sio_to_le64(h->borrow),
			.hold = sio_to_le64(h->hold),
			.fdid = sio_to_le32(h->fdid),
			.count = sio_to_le32(h->count),
			.generation = sio_to_le32(h->generation),
		};

		if (h->node == node)
			smartiod_peer_send(d, node, &msg, sizeof(msg));
	}
}

/* ---- borrows ---- */

static void send_borrow(struct smartiod *d, const struct smartiod_borrow *b)
{
	const struct smartiod_session *s = b->o.session;
	bool peers = s && s->shadow && s->peers && smartiod_shadow_is_of(b);
	struct sio_peer_resume_borrow msg = {
		.h.type = sio_to_le32(SIO_PEER_RESUME_BORROW),
		.borrower = sio_to_le64(b->id),
		.session = sio_to_le64(s ? s->client : 0),
		.ticket = sio_to_le64(b->ticket),
		.fdid = sio_to_le32(b->device->fdid),
		.pid = sio_to_le32(s ? s->pid : 0),
		.generation = sio_to_le32(b->generation),
		.flags = sio_to_le32((b->released ? SIO_RESUME_RELEASED : 0) |
				     (peers ? SIO_RESUME_PEERS : 0)),
	};

	smartiod_peer_send(d, b->node, &msg, sizeof(msg));
}

static void send_map(struct smartiod *d, const struct smartiod_borrow *b,
		     const struct smartiod_bar_map *bar)
{
	struct sio_peer_resume_view msg = {
		.h.type = sio_to_le32(SIO_PEER_RESUME_VIEW),
		.borrower = sio_to_le64(b->id),
		.fdid = sio_to_le32(b->device->fdid),
		.bar = sio_to_le32(bar->bar),
		.adapter = sio_to_le32(bar->peer_adapter),
		.peer_adapter = sio_to_le32(bar->adapter),
		.member = sio_to_le32(bar->is_member),
		.group = sio_to_le32(bar->group),
	};

	for (unsigned i = 0; i < bar->n && !bar->closed; i++) {
		msg.view = sio_to_le64(bar->piece[i].view);
		msg.grant = sio_to_le64(bar->piece[i].grant);
		smartiod_peer_send(d, b->node, &msg, sizeof(msg));
	}
}

static void send_dma(struct smartiod *d, const struct smartiod_borrow *b, uint64_t map, bool bar)
{
	struct sio_peer_resume_dma msg = {
		.h.type = sio_to_le32(SIO_PEER_RESUME_DMA),
		.borrower = sio_to_le64(b->id),
		.map = sio_to_le64(map),
		.fdid = sio_to_le32(b->device->fdid),
		.bar = sio_to_le32(bar),
	};

	if (map)
		smartiod_peer_send(d, b->node, &msg, sizeof(msg));
}

static void send_vector(struct smartiod *d, const struct smartiod_borrow *b, uint32_t number)
{
	struct sio_peer_resume_vector msg = {
		.h.type = sio_to_le32(SIO_PEER_RESUME_VECTOR),
		.borrower = sio_to_le64(b->id),
		.fdid = sio_to_le32(b->device->fdid),
		.vector = sio_to_le32(number),
	};

	smartiod_peer_send(d, b->node, &msg, sizeof(msg));
}

static void send_placed(struct smartiod *d, const struct smartiod_borrow *b,
			const struct smartiod_placed *p)
{
	struct sio_peer_resume_placed msg = {
		.h.type = sio_to_le32(SIO_PEER_RESUME_PLACED),
		.borrower = sio_to_le64(b->id),
		.bytes = sio_to_le64(p->segment->bytes),
		.uid = sio_to_le64(p->segment->uid),
		.fdid = sio_to_le32(b->device->fdid),
		.segment_id = sio_to_le32(p->segment->id),
		.memtype = sio_to_le32(p->memtype),
	};

	/* One whose lender was just asked has perhaps an id that is another's. */
	if (p->known)
		smartiod_peer_send(d, b->node, &msg, sizeof(msg));
}

/*
 * Maps of before our start are of grants of the lender's start in which it gave the borrow its
 * number. Of another start it does not know the borrow.
 */
static void know_start(struct smartiod *d, struct smartiod_borrow *b)
{
	uint64_t start = smartiod_peer_find(d, b->node)->generation;

	for (struct smartiod_bar_map *bar = b->maps; bar; bar = bar->next)
		if (!bar->start && (uint32_t)start == b->id >> 32)
			bar->start = start;
}

void smartiod_borrow_resume(struct smartiod *d, uint32_t node)
{
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next) {
		if (b->node == node && b->id)
			know_start(d, b);
		if (b->node != node || !b->id || smartiod_borrow_ended(b) ||
		    smartiod_borrow_lost(b))
			continue;
		send_borrow(d, b);
		for (const struct smartiod_bar_map *bar = b->maps; bar; bar = bar->next)
			send_map(d, b, bar);
		for (const struct smartiod_dma_handle *h = b->dma; h; h = h->next)
			send_dma(d, b, h->map,
				 h->connection && h->connection->route == SMARTIOD_BAR);
		send_dma(d, b, b->shadow_dma, false);
		for (const struct smartiod_placed *p = b->placed; p; p = p->next)
			send_placed(d, b, p);
		smartiod_made_resume(d, b);
		for (const struct smartiod_set_vector *v = b->vectors; v; v = v->next)
			if (!v->asked && !v->leaving)
				send_vector(d, b, v->number);
	}
	send_holds(d, node);
}
