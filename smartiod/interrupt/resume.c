/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resynchronisation of interrupts between two daemons (wire/peer.h, RESUME_*). The sender's names
 * each connection that it has, also one whose windows it is still unmapping. The receiver's ends the
 * rings that it does not name, and tells it of those that it has not itself.
 *
 * A receiver's daemon that was started again has its interrupts, and the rings of those with data,
 * from their programs, and from its port the grants of both. Which sender a ring is of, the sender
 * says: it names the grants.
 */
#include <errno.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/interrupt/dint.h"

/* ---- the sender ---- */

static void send_link(struct smartiod *d, const struct smartiod_dint_link *l)
{
	struct sio_peer_resume_ring msg = {
		.h.type = sio_to_le32(SIO_PEER_RESUME_RING),
		.link = sio_to_le64(l->id),
		.ring = sio_to_le64(l->ring_uid),
		.memory = sio_to_le64(l->memory_grant),
		.trigger = sio_to_le64(l->trigger_grant),
		.number = sio_to_le32(l->number),
		.adapter = sio_to_le32(l->peer_adapter),
		.flags = sio_to_le32(l->plain ? SIO_DINT_PLAIN : 0),
	};

	smartiod_peer_send(d, l->node, &msg, sizeof(msg));
}

/*
 * One of before our start leads to the receiver's start that its path had then. False: it leads
 * nowhere.
 */
static bool know_start(struct smartiod *d, struct smartiod_dint_link *l)
{
	if (!l->start &&
	    l->peer_boot == smartiod_path_start(d, l->node, l->adapter, l->peer_adapter))
		l->start = smartiod_peer_find(d, l->node)->generation;
	return l->start || l->of_device;
}

void smartiod_interrupt_resume(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dint_links, key))) {
		struct smartiod_dint_link *l = SMARTIOD_OF(n, struct smartiod_dint_link, by_id);

		key = n->key;
		if (l->node != node || !l->ring_uid)
			continue;
		if (know_start(d, l))
			send_link(d, l);
		else
			smartiod_dint_link_lost(d, node, l->id);
	}
}

/* ---- the receiver ---- */

static uint32_t meeting_with(struct smartiod *d, uint32_t node)
{
	return smartiod_peer_find(d, node)->meeting;
}

static void notify_lost(struct smartiod *d, uint32_t node, const struct sio_peer_resume_ring *m)
{
	struct sio_peer_dint_event msg = {.h.type = sio_to_le32(SIO_PEER_DINT_EVENT),
					  .link = m->link};

	smartiod_notify(d, node, &msg, sizeof(msg));
}

static bool is_building(const struct smartiod_ring *ring)
{
	return ring->state == SMARTIOD_RING_BUILDING || ring->state == SMARTIOD_RING_BUILDING_FREED;
}

/* Of before our start, with that memory, and its sender has not been heard of. */
static struct smartiod_ring *ring_of_before(struct smartiod_dint *dint, uint32_t node,
					    uint64_t memory)
{
	struct smartiod_ring *ring = dint->rings;

	while (ring && (ring->link || ring->node != node || !memory ||
			ring->memory_grant != memory || smartiod_ring_ended(ring)))
		ring = ring->next;
	return ring;
}

/*
 * The ring of a sender of which we know the grants alone, as the port has kept them; NULL. Its
 * number is one of an earlier start, and cannot be one of ours: those are greater.
 */
static struct smartiod_ring *ring_again(struct smartiod *d, uint32_t node,
					const struct sio_peer_resume_ring *m)
{
	uint32_t flags = sio_from_le32(m->flags);
	uint64_t trigger = sio_from_le64(m->trigger), uid = sio_from_le64(m->ring);
	struct smartiod_dint *dint;
	struct sio_err err;

	if (flags & ~SIO_DINT_PLAIN || uid == 0 || uid >> 32 >= d->next_uid >> 32)
		return NULL;
	dint = smartiod_dint_find(d, flags, sio_from_le32(m->adapter), sio_from_le32(m->number));
	if (!dint || !smartiod_grant_of_irq(d, trigger, node, dint->irq) ||
	    smartiod_dint_may_send(d, node, dint, &err) < 0)
		return NULL;
	return smartiod_ring_resume(
		d, dint, node, m,
		dint->plain ? NULL : ring_of_before(dint, node, sio_from_le64(m->memory)));
}

int smartiod_peer_resume_ring(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_resume_ring *m = msg;
	struct smartiod_ring *ring =
		SMARTIOD_OF(smartiod_tree_find(&d->rings, sio_from_le64(m->ring)),
			    struct smartiod_ring, by_uid);

	(void)reterr;
	if (!ring)
		ring = ring_again(d, from->node, m);
	if (!ring || ring->node != from->node || smartiod_ring_ended(ring) || is_building(ring)) {
		notify_lost(d, from->node, m);
		return 0;
	}
	ring->link = sio_from_le64(m->link); /* another one, of a sender that was started again */
	ring->meeting = meeting_with(d, from->node);
	if (ring->dint->removed || ring->state == SMARTIOD_RING_FREED)
		notify_lost(d, from->node, m); /* it may not have heard of it */
	return 0;
}

void smartiod_interrupt_answered(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->rings, key))) {
		struct smartiod_ring *ring = SMARTIOD_OF(n, struct smartiod_ring, by_uid);

		key = n->key;
		if (ring->node == node && ring->meeting != meeting_with(d, node) &&
		    !is_building(ring) && !smartiod_ring_ended(ring))
			smartiod_ring_drop(d, ring);
	}
	smartiod_grants_of_irqs_end(d, node);
}
