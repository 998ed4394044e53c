/* SPDX-License-Identifier: BSD-2-Clause */
/* What a library had before smartiod was started again: segments, connections, interrupts. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/restart/restore.h"
#include "wire/ring.h"

/* ---- segments ---- */

struct smartiod_segment *smartiod_segment_by_mem(struct smartiod *d, uint64_t mem,
						 struct sio_err *reterr)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while (mem && (n = smartiod_tree_after(&d->segments, key))) {
		struct smartiod_segment *seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);

		key = n->key;
		if (seg->mem == mem && smartiod_segment_usable(seg, false))
			return seg;
	}
	sio_fail(reterr, -ENOENT, "no segment lies in memory %" PRIu64, mem);
	return NULL;
}

void smartiod_restore_state(struct smartiod *d, struct smartiod_segment *seg,
			    const struct sio_msg_restore *m)
{
	uint32_t adapters = (1u << d->host->n_adapters) - 1;

	seg->prepared = sio_from_le32(m->prepared) & adapters;
	seg->available = sio_from_le32(m->available) & seg->prepared;
	seg->exported = (sio_from_le32(m->exported) & adapters) | seg->available;
	seg->shared = sio_from_le32(m->flags) & SIO_RESTORE_SHARED;
	if (seg->is_private)
		seg->available = seg->exported = 0;
}

/*
 * What has memory at the port has its number, too. That an empty segment had it, only a seal says,
 * which may be of one that was removed before another program took the number.
 */
void smartiod_restore_take_number(struct smartiod *d, uint32_t number)
{
	struct smartiod_segment *seg = smartiod_segment_by_id(d, number);
	struct smartiod_session *s = seg && seg->empty ? seg->o.session : NULL;

	if (!s || s->state != SMARTIOD_RESTORING)
		return;
	smartiod_log(d, SMARTIOD_INFO, "pid %u: empty segment %#x is another's", s->pid, number);
	smartiod_restore_tell_lost(d, s, SIO_EVM_SEGMENT_LOCAL,
				   sio_to_le32(smartiod_handle(&seg->o)));
	smartiod_segment_end(d, seg, SCI_CB_LOST, false);
}

/*
 * What @s has made, as its seal says. It may hang on the daemon: the port was given it, and the
 * program had no answer to its removal, for which it asks again.
 */
static struct smartiod_leftover *own_memory(struct smartiod *d, const struct smartiod_session *s,
					    uint64_t mem, struct sio_err *reterr)
{
	struct smartiod_leftover *l = smartiod_leftover_get(d, SIO_KIND_MEM, 0, mem, reterr);

	return l ? l : smartiod_leftover_get(d, SIO_KIND_MEM, s->owner, mem, reterr);
}

int smartiod_restore_segment(struct smartiod *d, struct smartiod_session *s,
			     const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_seg_create *r = (const void *)m->request;
	uint32_t flags = sio_from_le32(r->flags);
	bool empty = flags & SCI_FLAG_EMPTY && !(sio_from_le32(m->flags) & SIO_RESTORE_FILLED);
	struct smartiod_leftover *l = NULL;
	uint64_t owner = s->owner;
	struct smartiod_segment *seg;
	int rc;

	if (flags & SCI_FLAG_BROADCAST)
		return sio_fail(reterr, -ENOENT, "a group is not restored");
	rc = smartiod_seal_check(s, m, SIO_MSG_SEG_CREATE, sio_from_le32(m->number),
				 sio_from_le64(m->extra), reterr);
	if (rc < 0)
		return rc;
	if (!empty) {
		l = own_memory(d, s, sio_from_le64(m->key), reterr);
		if (!l)
			return reterr->code;
		if (l->fd[0] < 0)
			return sio_fail(reterr, -EMFILE, "its descriptor could not be had again");
		smartiod_restore_take_number(d, sio_from_le32(m->number));
		owner = l->owner;
	}
	rc = smartiod_segment_new(d, s, owner, true, sio_from_le32(m->number),
				  sio_from_le64(m->extra), &seg, reterr);
	if (rc < 0)
		return rc;
	seg->is_private = flags & SCI_FLAG_PRIVATE;
	seg->empty = empty;
	seg->filled = flags & SCI_FLAG_EMPTY && !empty;
	seg->told = sio_from_le32(m->told) < SMARTIOD_MAX_OBJECTS ? sio_from_le32(m->told)
								  : SMARTIOD_MAX_OBJECTS;
	smartiod_restore_state(d, seg, m);
	if (l)
		smartiod_segment_take_leftover(d, seg, l);
	if (owner == 0)
		smartiod_dma_claim(d, seg);
	return 0;
}

/* ---- connections ---- */

static int connect(struct smartiod *d, struct smartiod_session *s, struct smartiod_segment *seg,
		   uint32_t adapter, const struct sio_msg_restore *m, struct sio_err *reterr)
{
	struct smartiod_connection *c = smartiod_connection_new(d, s, SMARTIOD_LOCAL, reterr);

	if (!c)
		return reterr->code;
	c->node = d->node;
	c->adapter = adapter;
	c->segment = seg;
	c->segment_id = seg->id;
	c->uid = seg->uid;
	c->bytes = seg->bytes;
	if (smartiod_segment_ref(seg, d->node, adapter, c->id, reterr) < 0) {
		c->lost = true;
		smartiod_connection_close(d, c, SCI_CB_LOST);
		return reterr->code;
	}
	seg->refs->leaving =
		sio_from_le32(m->flags) & SIO_RESTORE_LEAVING; /* the newest is first */
	smartiod_segment_connected(d, seg, d->node, adapter);
	/* The smartiod before may have ended before it told. */
	if (seg->state == SMARTIOD_SEGMENT_KEPT)
		smartiod_connection_event(d, d->node, c->id, SCI_CB_DISCONNECT, SIO_LOSS_REMOVED);
	return 0;
}

int smartiod_restore_connection(struct smartiod *d, struct smartiod_session *s,
				const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_seg_connect *r = (const void *)m->request;
	uint32_t adapter = sio_from_le32(r->adapter);
	uint32_t handle = s->forced; /* the maker may be this very session */
	struct smartiod_segment *seg;
	int rc;

	if (sio_from_le32(r->node) != d->node || adapter >= d->host->n_adapters ||
	    sio_from_le32(r->flags) & SCI_FLAG_BROADCAST)
		return sio_fail(reterr, -ENOENT, "a connection to another host is not restored");
	if (smartiod_seal_check(s, m, SIO_MSG_SEG_CONNECT, adapter, 0, reterr) < 0)
		return reterr->code;
	seg = smartiod_segment_by_mem(d, sio_from_le64(m->key), reterr);
	if (!seg)
		seg = smartiod_restore_kept(d, sio_from_le64(m->key), sio_from_le32(r->segment_id),
					    reterr);
	if (!seg)
		return reterr->code;
	/* Who attached may not know whether its maker ever made it available; the seal does. */
	if ((!(seg->exported & 1u << adapter) && !seg->let_go) || seg->device)
		return sio_fail(reterr, -EACCES, "segment %#x was never available there", seg->id);
	s->forced = handle;
	smartiod_segment_pin(seg);
	rc = connect(d, s, seg, adapter, m, reterr);
	smartiod_segment_unpin(d, seg);
	return rc;
}

int smartiod_restore_dev_connection(struct smartiod *d, struct smartiod_session *s,
				    const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_seg_connect *r = (const void *)m->request;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(r->device), reterr);
	const struct smartiod_dev_seg *ds;
	struct smartiod_segment *seg;

	if (!b)
		return reterr->code;
	if (sio_from_le32(r->memtype) == SCI_MEMTYPE_BAR)
		return smartiod_connect_bar(d, s, b, sio_from_le32(r->segment_id), reterr)
			       ? 0
			       : reterr->code;
	if (smartiod_seal_check(s, m, SIO_MSG_SEG_CONNECT, 0, 0, reterr) < 0)
		return reterr->code;
	seg = smartiod_segment_by_mem(d, sio_from_le64(m->key), reterr);
	if (!seg)
		return reterr->code;
	ds = b->device->lent->segs;
	while (ds && ds->segment != seg)
		ds = ds->next;
	if (!ds || (ds->private_to && ds->private_to != b->id))
		return sio_fail(reterr, -EACCES,
				"it is no device segment that this borrow can have");
	return connect(d, s, seg, 0, m, reterr);
}

int smartiod_restore_map(struct smartiod *d, struct smartiod_session *s,
			 const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_seg_map *r = (const void *)m->request;
	struct smartiod_connection *c =
		smartiod_object_get(s, sio_from_le32(r->handle), SMARTIOD_CONNECTION, reterr);

	if (!c)
		return reterr->code;
	if (c->lost)
		return sio_fail(reterr, -ECONNRESET, "the connection is lost");
	if (c->route == SMARTIOD_BAR)
		return smartiod_restore_bar_map(d, s, m, reterr);
	return smartiod_map_new(s, c, reterr) ? 0 : reterr->code;
}

/* ---- interrupts ---- */

/* The hub of a number: there, or what is left of it. */
static struct smartiod_dint *find_hub(struct smartiod *d, uint32_t adapter, uint32_t number,
				      uint64_t irq, struct sio_err *reterr)
{
	struct smartiod_dint *there = smartiod_dint_at(d, true, adapter, number);
	struct smartiod_leftover *l;

	if (there && there->is_hub && there->irq == irq)
		return there;
	if (there) {
		sio_fail(reterr, -EEXIST, "interrupt %u is another's", number);
		return NULL;
	}
	l = smartiod_leftover_get(d, SIO_KIND_IRQ, 0, irq, reterr);
	if (!l)
		return NULL;
	if (l->fd[0] < 0 || l->fd[1] < 0) {
		sio_fail(reterr, -EMFILE, "its descriptors could not be had again");
		return NULL;
	}
	there = smartiod_hub_again(d, adapter, number, irq, smartiod_leftover_take_fd(l, 0),
				   smartiod_leftover_take_fd(l, 1), reterr);
	smartiod_leftover_done(d, l);
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
	struct smartiod_leftover *l;
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
	l = smartiod_leftover_get(d, SIO_KIND_IRQ, s->owner, sio_from_le64(m->key), reterr);
	if (!l)
		return reterr->code;
	if (l->fd[1] < 0)
		return sio_fail(reterr, -EMFILE, "its descriptor could not be had again");
	if (shared) {
		hub = find_hub(d, adapter, number, sio_from_le64(m->extra), reterr);
		if (!hub)
			return reterr->code;
	}
	dint = smartiod_dint_new(d, s, r, number, reterr);
	if (!dint) {
		if (hub && !hub->members)
			smartiod_dint_end(d, hub, false);
		return reterr->code;
	}
	dint->irq = l->by_id.key;
	dint->trigger_fd = smartiod_leftover_take_fd(l, 1);
	dint->ready = true;
	smartiod_leftover_done(d, l);
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
	struct smartiod_leftover *l;
	struct smartiod_ring *ring;

	if (!dint)
		return reterr->code;
	l = smartiod_leftover_get(d, SIO_KIND_MEM, s->owner, sio_from_le64(m->key), reterr);
	if (!l)
		return reterr->code;
	if (dint->plain || l->length < SIO_RING_TOTAL)
		return sio_fail(reterr, -EINVAL, "that is no ring");
	ring = smartiod_ring_again(d, dint, l->by_id.key, sio_from_le32(m->number), reterr);
	if (!ring)
		return reterr->code;
	ring->ended = sio_from_le32(m->flags) & SIO_RESTORE_ENDED;
	smartiod_leftover_done(d, l);
	return 0;
}

/* Nobody's yet: with this memory, of this interrupt. */
static struct smartiod_ring *find_ring(struct smartiod_dint *dint, uint64_t mem)
{
	struct smartiod_ring *ring = dint->rings;

	while (ring && (ring->mem != mem || ring->link || ring->ended))
		ring = ring->next;
	return ring;
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

	if (smartiod_seal_check(s, m, SIO_MSG_DINT_CONNECT,
				smartiod_dint_seal_number(plain, sio_from_le32(r->adapter), number),
				0, reterr) < 0)
		return reterr->code;
	if (sio_from_le32(r->node) == d->node)
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
	link->connecting = false;
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

/* ---- when all is said ---- */

/*
 * A segment has connections that its library has not heard of, or has heard of the end of: the
 * latter are those that are about to go. Return: how many are new to it.
 */
static uint32_t new_connections(struct smartiod_segment *seg)
{
	uint32_t n = seg->n_refs - seg->told;

	for (struct smartiod_ref *r = seg->refs; r && n > 0; r = r->next) {
		r->known_gone = r->leaving;
		n -= r->leaving;
	}
	return n;
}

/* To one handle of a segment, in as few words as can be. */
static void tell_times(struct smartiod *d, const struct smartiod_object *handle, uint32_t reason,
		       uint32_t n)
{
	struct sio_evm_segment evm = {.handle = sio_to_le32(smartiod_handle(handle)),
				      .reason = sio_to_le32(reason),
				      .node = sio_to_le32(d->node)};

	while (n > 0) {
		uint32_t times = n < SIO_EVM_TIMES ? n : SIO_EVM_TIMES;

		evm.count = sio_to_le32(times);
		smartiod_event(d, handle->session, SIO_EVM_SEGMENT_LOCAL, &evm, sizeof(evm), NULL,
			       0);
		n -= times;
	}
}

/*
 * Connections came or went while nobody could tell: all of a segment at once. Who attached has
 * heard of others than its maker, but misses the same.
 */
static void tell_connections(struct smartiod *d, struct smartiod_segment *seg)
{
	bool more = seg->n_refs > seg->told;
	uint32_t n = more ? new_connections(seg) : seg->told - seg->n_refs;
	uint32_t reason = more ? SCI_CB_CONNECT : SCI_CB_LOST;

	if (seg->let_go)
		return;
	tell_times(d, &seg->o, reason, n);
	for (struct smartiod_attachment *a = seg->attachments; a; a = a->next)
		tell_times(d, &a->o, reason, n);
}

static void end_rings(struct smartiod *d, struct smartiod_dint *dint)
{
	struct smartiod_ring *ring, *next;

	for (ring = dint->rings; ring; ring = next) {
		next = ring->next;
		if (!ring->link && !ring->ended)
			smartiod_ring_end(d, ring);
	}
}

void smartiod_restore_finish_base(struct smartiod *d, struct smartiod_session *s)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&s->objects, key))) {
		struct smartiod_object *o = SMARTIOD_OF(n, struct smartiod_object, by_handle);

		key = n->key;
		if (o->kind == SMARTIOD_SEGMENT)
			tell_connections(d, (struct smartiod_segment *)o);
		else if (o->kind == SMARTIOD_DINT)
			end_rings(d, (struct smartiod_dint *)o);
	}
	smartiod_leftovers_give_back(d, s->owner);
}
