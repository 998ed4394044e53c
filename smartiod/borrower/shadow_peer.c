/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peer-to-peer between shadows of this host. When a shadow is added, it and each other shadow are
 * made to reach each other, if both ask for that. The lender of the device that is to reach the
 * other maps that one's BARs, as for a program that has borrowed both, and the kernel is given the
 * addresses. So no daemon takes part when a driver maps. What is not possible is logged, and is
 * refused to the driver.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"

/* Who reaches, and whom. */
struct pair {
	struct smartiod_session *of, *target;
	struct smartiod_borrow *of_borrow, *target_borrow;
	uint32_t bar;
};

static bool has_peers(struct smartiod_session *s)
{
	const struct smartiod_borrow *b;

	if (!s->shadow || !s->peers || s->ending)
		return false;
	b = smartiod_shadow_borrow(s);
	return b && !smartiod_borrow_lost(b) && !smartiod_borrow_ended(b);
}

/* The pair that @p has come to. false: one of the two is not there any more. */
static bool pair_of(struct smartiod *d, struct smartiod_session *s,
		    const struct smartiod_peering *p, struct pair *ret)
{
	struct smartiod_session *other = smartiod_session_find(d, p->client);
	bool back = p->place >= SIO_DEVICE_BARS;

	if (!other || !has_peers(other) || !has_peers(s))
		return false;
	ret->of = back ? other : s;
	ret->target = back ? s : other;
	ret->of_borrow = smartiod_shadow_borrow(ret->of);
	ret->target_borrow = smartiod_shadow_borrow(ret->target);
	ret->bar = p->place % SIO_DEVICE_BARS;
	return true;
}

/* What the lender has granted of it to this host; 0: nothing. */
static uint64_t bytes_of(const struct pair *q)
{
	for (const struct smartiod_bar_map *m = q->target_borrow->maps; m; m = m->next)
		if (!m->connection && !m->closed && m->bar == q->bar && m->n == 1)
			return m->piece[0].bytes;
	return 0;
}

static bool ask(struct smartiod *d, struct smartiod_op *op, struct smartiod_peering *p,
		const struct pair *q)
{
	struct sio_peer_dma_map msg = {
		.h.type = sio_to_le32(SIO_PEER_DMA_MAP),
		.borrower = sio_to_le64(q->of_borrow->id),
		.uid = sio_to_le64(q->target_borrow->id),
		.connection = sio_to_le64(q->target_borrow->ticket),
		.fdid = sio_to_le32(q->of_borrow->device->fdid),
		.exporter = sio_to_le32(q->target_borrow->node),
		.adapter = sio_to_le32(SIO_PEER_ANY_ADAPTER),
		.target = sio_to_le32(q->target_borrow->device->fdid),
		.bar = sio_to_le32(q->bar | SIO_PEER_BAR_WHOLE),
	};

	p->bytes = bytes_of(q);
	if (!p->bytes)
		return false;
	p->of = q->of->shadow;
	p->target = q->target->shadow;
	p->node = q->of_borrow->node;
	msg.bytes = sio_to_le64(p->bytes);
	smartiod_ask(d, op, q->of_borrow->node, &msg, sizeof(msg));
	return true;
}

bool smartiod_peering_ask(struct smartiod *d, struct smartiod_op *op, struct smartiod_peering *p)
{
	struct smartiod_session *s = op->session;
	struct smartiod_tree_node *n;
	struct pair q;

	for (;;) {
		while (p->client && p->place < 2 * SIO_DEVICE_BARS) {
			if (pair_of(d, s, p, &q) && ask(d, op, p, &q))
				return true;
			p->place++;
		}
		n = smartiod_tree_after(&d->sessions, p->client);
		if (!n)
			return false;
		p->client = n->key;
		p->place = n->key == s->client ? 2 * SIO_DEVICE_BARS : 0;
	}
}

/* Nobody fails for it: its driver may never want this. */
static void complain(struct smartiod *d, const struct pair *q, const char *text)
{
	smartiod_log(d, SMARTIOD_WARNING, "%s does not reach BAR %" PRIu32 " of %s: %s",
		     q->of_borrow->device->topo->name, q->bar, q->target_borrow->device->topo->name,
		     text);
}

bool smartiod_peering_mapped(struct smartiod *d, struct smartiod_op *op, struct smartiod_peering *p,
			     const struct smartiod_answer *a)
{
	const struct sio_prep_dma_map *rep = a->msg;
	struct sio_req_shadow_peer req = {.h.op = SIO_OP_SHADOW_PEER, .length = p->bytes};
	bool fits = !a->error && sio_from_le64(rep->bytes) == p->bytes;
	struct smartiod_peer_map *m;
	struct pair q;
	/* Meanwhile either program may have plugged in another device. */
	bool same = pair_of(d, op->session, p, &q) && q.of->shadow == p->of &&
		    q.target->shadow == p->target;

	m = same && fits ? calloc(1, sizeof(*m)) : NULL;
	if (!a->error && !m)
		smartiod_dma_late(d, p->node, rep);
	if (same && !m)
		complain(d, &q,
			 a->error ? a->text
			 : fits	  ? "the daemon is out of memory: " SIO_MORE_MEMORY
				  : "its lender mapped less than that");
	if (!m)
		return false;
	p->mapped = m->mapped = *rep;
	m->next = q.of_borrow->peer_maps;
	q.of_borrow->peer_maps = m;
	req.h.owner = q.of->owner;
	req.id = q.of->shadow;
	req.target = q.target->shadow;
	req.address = sio_from_le64(rep->ioaddr);
	req.bar = q.bar;
	smartiod_port_ask(d, op, &req, sizeof(req));
	return true;
}

/* Of @b; NULL: its driver has gone, and the lender was told. */
static struct smartiod_peer_map *take_map(struct smartiod_borrow *b,
					  const struct sio_prep_dma_map *mapped)
{
	struct smartiod_peer_map **at = &b->peer_maps, *m;

	while (*at && sio_from_le64((*at)->mapped.map) != sio_from_le64(mapped->map))
		at = &(*at)->next;
	m = *at;
	if (m)
		*at = m->next;
	return m;
}

/* Two that come at the same time tell the same; one mapping is enough. */
void smartiod_peering_answered(struct smartiod *d, struct smartiod_op *op,
			       struct smartiod_peering *p, const struct smartiod_answer *a)
{
	struct smartiod_peer_map *m;
	struct pair q;

	if (!a->error || !pair_of(d, op->session, p, &q))
		return;
	m = take_map(q.of_borrow, &p->mapped);
	if (m)
		smartiod_dma_late(d, p->node, &m->mapped);
	free(m);
	if (a->error != -EEXIST)
		complain(d, &q, a->text);
}
