/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restart: interrupts, rings and connections to them, as a library restores them after smartiod was
 * started again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/unclaimed.h"
#include "smartiod/interrupt/dint.h"
#include "smartiod/segment/restore.h"
#include "wire/ring.h"

/* The hub of a number: there, or what is left of it. */
static struct smartiod_dint *find_hub(struct smartiod *d, uint32_t adapter, uint32_t number,
				      uint64_t irq, struct sio_err *reterr)
{
	struct smartiod_dint *there = smartiod_dint_at(d, true, adapter, number);
	struct smartiod_unclaimed *l;

	if (there && there->is_hub && there->irq == irq)
		return there;
	if (there) {
		sio_fail(reterr, -EEXIST, "interrupt %u belongs to another program", number);
		return NULL;
	}
	l = smartiod_unclaimed_get(d, SIO_KIND_IRQ, 0, irq, reterr);
	if (!l || smartiod_unclaimed_check(l, reterr) < 0)
		return NULL;
	there = smartiod_hub_again(d, adapter, number, irq, l->fd[0], l->fd[1], reterr);
	if (!there)
		return NULL;
	smartiod_unclaimed_take_fd(l, 0);
	smartiod_unclaimed_take_fd(l, 1);
	smartiod_unclaimed_done(d, l);
	return there;
}

static int check_dint(struct smartiod *d, const struct sio_msg_dint_create *r, uint32_t number,
		      struct sio_err *reterr)
{
	uint32_t flags = sio_from_le32(r->flags), adapter = sio_from_le32(r->adapter);
	bool plain = flags & SIO_DINT_PLAIN;

	if (smartiod_dint_check_adapter(d, plain, adapter, reterr) < 0)
		return reterr->code;
	if (!(flags & SCI_FLAG_SHARED_INT) && smartiod_dint_at(d, plain, adapter, number))
		return sio_fail(reterr, -EEXIST, "number %u is taken", number);
	return 0;
}

int smartiod_restore_dint(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dint_create *r = (const void *)m->request;
	uint32_t flags = sio_from_le32(r->flags), number = sio_from_le32(m->number);
	uint32_t adapter = sio_from_le32(r->adapter);
	bool shared = flags & SCI_FLAG_SHARED_INT && flags & SIO_DINT_PLAIN;
	struct smartiod_dint *dint, *hub = NULL;
	struct smartiod_unclaimed *l;
	int rc = smartiod_seal_check(
		s, m, SIO_MSG_DINT_CREATE,
		smartiod_dint_seal_number(flags & SIO_DINT_PLAIN, adapter, number),
		sio_from_le64(m->extra), reterr);

	if (rc == 0)
		rc = check_dint(d, r, number, reterr);
	if (rc < 0)
		return rc;
	if (shared != (sio_from_le64(m->extra) != 0))
		return sio_fail(reterr, -EINVAL, "interrupt %u was not shared like that", number);
	l = smartiod_unclaimed_get(d, SIO_KIND_IRQ, s->owner, sio_from_le64(m->key), reterr);
	if (!l)
		return reterr->code;
	if (smartiod_unclaimed_check(l, reterr) < 0)
		return reterr->code;
	dint = smartiod_dint_new(d, s, r, number, reterr);
	if (!dint)
		return reterr->code;
	if (shared) {
		hub = find_hub(d, adapter, number, sio_from_le64(m->extra), reterr);
		if (!hub) {
			smartiod_dint_end(d, dint, true); /* its interrupt stays unclaimed */
			return reterr->code;
		}
	}
	dint->irq = l->by_id.key;
	dint->trigger_fd = smartiod_unclaimed_take_fd(l, 1);
	dint->ready = true;
	smartiod_unclaimed_done(d, l);
	if (shared)
		smartiod_hub_join(hub, dint);
	else
		smartiod_dint_publish(d, dint);
	return 0;
}

int smartiod_restore_ring(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_restore *m, struct sio_err *reterr)
{
	struct smartiod_dint *dint =
		smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_DINT, reterr);
	struct smartiod_unclaimed *l;
	struct smartiod_ring *ring;

	if (!dint)
		return reterr->code;
	l = smartiod_unclaimed_get(d, SIO_KIND_MEM, s->owner, sio_from_le64(m->key), reterr);
	if (!l)
		return reterr->code;
	if (dint->plain || l->length < SIO_RING_TOTAL)
		return sio_fail(reterr, -EINVAL, "this memory is not a ring");
	ring = smartiod_ring_again(d, dint, l->by_id.key, sio_from_le32(m->number),
				   sio_from_le32(m->flags) & SIO_RESTORE_ENDED, reterr);
	if (!ring)
		return reterr->code;
	smartiod_unclaimed_done(d, l);
	return 0;
}

/* Unclaimed yet: with this memory, of this interrupt. */
static struct smartiod_ring *find_ring(struct smartiod_dint *dint, uint64_t mem)
{
	struct smartiod_ring *ring = dint->rings;

	while (ring && (ring->mem != mem || ring->link || smartiod_ring_ended(ring)))
		ring = ring->next;
	return ring;
}

/* ---- connections to interrupts of other hosts ---- */

/* A window of the program to @node; NULL with *reterr. */
static struct smartiod_unclaimed *window_of(struct smartiod *d, const struct smartiod_session *s,
					    const struct smartiod_dint_link *l, uint64_t map,
					    struct sio_err *reterr)
{
	struct smartiod_unclaimed *u =
		smartiod_unclaimed_get(d, SIO_KIND_MAP, s->owner, map, reterr);

	if (u && (u->node != l->node || u->device != SIO_LIST_PATH(l->adapter, l->peer_adapter))) {
		sio_fail(reterr, -EINVAL, "map %" PRIu64 " is no window to interrupt %u of node %u",
			 map, l->number, l->node);
		return NULL;
	}
	return u;
}

/* Its windows are those that the port has kept; the receiver says at the meeting what it has. */
static int take_windows(struct smartiod *d, const struct smartiod_session *s,
			const struct smartiod_dint_link *l, struct sio_err *reterr)
{
	struct smartiod_unclaimed *irq = window_of(d, s, l, l->irq_map, reterr), *ring = NULL;

	if (irq && !l->plain)
		ring = window_of(d, s, l, l->ring_map, reterr);
	if (!irq || (!l->plain && !ring))
		return reterr->code;
	smartiod_unclaimed_done(d, irq);
	if (ring)
		smartiod_unclaimed_done(d, ring);
	return 0;
}

static bool leads_elsewhere(struct smartiod *d, const struct smartiod_dint_link *l)
{
	return smartiod_path_up(d, l->node, l->adapter, l->peer_adapter) &&
	       l->peer_boot != smartiod_path_start(d, l->node, l->adapter, l->peer_adapter);
}

static void fill_far(struct smartiod_dint_link *l, const struct sio_msg_restore *m)
{
	const struct sio_msg_dint_connect *r = (const void *)m->request;
	uint32_t path = sio_from_le32(m->path);

	l->number = sio_from_le32(r->number);
	l->adapter = path >> 16;
	l->peer_adapter = path & 0xffff;
	l->peer_boot = sio_from_le64(m->peer_boot);
	l->ring_uid = sio_from_le64(m->claim[0].view);
	l->trigger_grant = sio_from_le64(m->claim[0].grant);
	l->irq_map = sio_from_le64(m->claim[0].map);
	l->start = sio_from_le64(m->claim[1].view);
	l->memory_grant = sio_from_le64(m->claim[1].grant);
	l->ring_map = sio_from_le64(m->claim[1].map);
}

static int restore_far(struct smartiod *d, struct smartiod_session *s, uint32_t node,
		       const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dint_connect *r = (const void *)m->request;
	bool plain = sio_from_le32(r->flags) & SIO_DINT_PLAIN;
	struct smartiod_dint_link *l;
	int rc = smartiod_restore_peer(d, node, reterr);

	if (rc < 0)
		return rc;
	l = smartiod_dint_link_new(d, s, node, plain, reterr);
	if (!l)
		return reterr->code;
	fill_far(l, m);
	rc = smartiod_seal_compare(s, m, smartiod_dint_link_seal(s, l), reterr);
	if (rc == 0 && leads_elsewhere(d, l))
		rc = sio_fail(reterr, -ENOENT,
			      "node %u has started again, or its path has other addresses", node);
	if (rc == 0)
		rc = take_windows(d, s, l, reterr);
	if (rc < 0) /* what it names is not its own */
		l->ring_uid = l->irq_map = l->ring_map = l->memory_grant = l->trigger_grant = 0;
	smartiod_dint_link_enter(d, l, SMARTIOD_SENDER_MADE);
	if (rc < 0)
		smartiod_dint_link_close(d, l);
	return rc;
}

int smartiod_restore_dint_link(struct smartiod *d, struct smartiod_session *s,
			       const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dint_connect *r = (const void *)m->request;
	uint32_t flags = sio_from_le32(r->flags), number = sio_from_le32(r->number);
	uint64_t key = sio_from_le64(m->key);
	bool plain = flags & SIO_DINT_PLAIN;
	struct smartiod_dint_link *link;
	struct smartiod_ring *ring = NULL;
	struct smartiod_dint *dint = NULL;

	if (sio_from_le32(r->node) != d->node)
		return restore_far(d, s, sio_from_le32(r->node), m, reterr);
	if (smartiod_seal_check(s, m, SIO_MSG_DINT_CONNECT,
				smartiod_dint_seal_number(plain, sio_from_le32(r->adapter), number),
				0, reterr) < 0)
		return reterr->code;
	dint = smartiod_dint_find(d, flags, sio_from_le32(r->adapter), number);
	/* Another may have the number: it triggers what was there. 0: of a smartiod of old. */
	if (dint && plain && key && dint->irq != key)
		dint = NULL;
	if (dint && !plain)
		ring = find_ring(dint, key);
	if (!dint || (!plain && !ring))
		return sio_fail(reterr, -ENOENT, "%s %u is gone", smartiod_dint_word(plain),
				number);
	link = smartiod_dint_link_new(d, s, d->node, plain, reterr);
	if (!link)
		return reterr->code;
	link->number = number;
	link->adapter = sio_from_le32(r->adapter);
	smartiod_dint_link_enter(d, link, SMARTIOD_SENDER_MADE);
	if (plain)
		ring = smartiod_ring_plain(d, dint, link->id, reterr);
	if (!ring) {
		smartiod_dint_link_close(d, link);
		return reterr->code;
	}
	ring->link = link->id;
	link->ring_uid = ring->uid;
	return 0;
}

/* Its sender is on another host, whose daemon will name it when we have met. */
static bool is_expected(struct smartiod *d, const struct smartiod_ring *ring)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, ring->node);

	return ring->memory_grant && p && p->unmet;
}

/* The session has restored all of interrupt @o: rings end whose senders nobody has reported. */
void smartiod_dint_restored(struct smartiod *d, struct smartiod_object *o)
{
	struct smartiod_dint *dint = (struct smartiod_dint *)o;
	struct smartiod_ring *ring, *next;

	for (ring = dint->rings; ring; ring = next) {
		next = ring->next;
		if (!ring->link && !smartiod_ring_ended(ring) && !is_expected(d, ring))
			smartiod_ring_drop(d, ring);
	}
}
