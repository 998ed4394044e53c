/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restart: segments, and connections to them, as a library restores them after smartiod was started
 * again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/base/room.h"
#include "smartiod/segment/connection.h"
#include "smartiod/segment/group.h"
#include "smartiod/segment/restore.h"

/* ---- segments ---- */

void smartiod_restore_notify_lost(struct smartiod *d, struct smartiod_session *s, uint32_t type,
				  sio_le32 handle)
{
	struct sio_evm_segment evm = {.handle = handle,
				      .reason = sio_to_le32(SCI_CB_LOST),
				      .node = sio_to_le32(d->node),
				      .loss = sio_to_le32(SIO_LOSS_LOST)};

	smartiod_event(d, s, type, &evm, sizeof(evm), NULL, 0);
}

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
	seg->published = seg->broadcast ? seg->available : 0;
	seg->exported = (sio_from_le32(m->exported) & adapters) | seg->available;
	seg->shared = sio_from_le32(m->flags) & SIO_RESTORE_SHARED && !seg->imported;
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
	smartiod_log(d, SMARTIOD_INFO, "pid %u: empty segment %#x belongs to another program",
		     s->pid, number);
	smartiod_restore_notify_lost(d, s, SIO_EVM_SEGMENT_LOCAL,
				     sio_to_le32(smartiod_handle(&seg->o)));
	smartiod_segment_end(d, seg, SCI_CB_LOST, false);
}

/*
 * What @s has made, as its seal says. It may belong to the daemon: the port was given it, and the
 * program had no answer to its removal, for which it asks again.
 */
static struct smartiod_unclaimed *own_memory(struct smartiod *d, const struct smartiod_session *s,
					     uint64_t mem, struct sio_err *reterr)
{
	struct smartiod_unclaimed *l = smartiod_unclaimed_get(d, SIO_KIND_MEM, 0, mem, reterr);

	return l ? l : smartiod_unclaimed_get(d, SIO_KIND_MEM, s->owner, mem, reterr);
}

/* Is memory @l what @flags of the segment say: a member of group @number, or no group's? */
static int check_group(struct smartiod *d, const struct smartiod_unclaimed *l, uint32_t flags,
		       uint32_t number, struct sio_err *reterr)
{
	if (!(flags & SCI_FLAG_BROADCAST))
		return l->device ? sio_fail(reterr, -EINVAL, "memory %" PRIu64 " is a group's",
					    l->by_id.key)
				 : 0;
	if (!smartiod_unclaimed_in_group(l, SIO_LIST_MEMBER, number))
		return sio_fail(reterr, -EINVAL, "memory %" PRIu64 " is no member of group %u",
				l->by_id.key, number);
	return smartiod_group_check(d, number, reterr);
}

/* What the library says, of what it filled: nothing follows from it but a line of a listing. */
static uint32_t restored_memory(const struct sio_msg_restore *m, bool imported)
{
	uint32_t memory = sio_from_le32(m->memory);

	if (memory >= SIO_MEMORY_PAGES && memory <= SIO_MEMORY_DMABUF)
		return memory;
	return imported ? SIO_MEMORY_FILE : SIO_MEMORY_HOST;
}

int smartiod_restore_segment(struct smartiod *d, struct smartiod_session *s,
			     const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_seg_create *r = (const void *)m->request;
	uint32_t flags = sio_from_le32(r->flags);
	bool empty = flags & SCI_FLAG_EMPTY && !(sio_from_le32(m->flags) & SIO_RESTORE_FILLED);
	bool named = !(flags & SCI_FLAG_BROADCAST) || flags & SCI_FLAG_ALLOW_UNICAST;
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_SEGMENTS, d->node, sio_from_le32(m->number));
	struct smartiod_unclaimed *l = NULL;
	uint64_t owner = s->owner;
	struct smartiod_segment *seg;
	int rc;

	rc = smartiod_seal_check(s, m, SIO_MSG_SEG_CREATE, sio_from_le32(m->number),
				 sio_from_le64(m->extra), reterr);
	/* The seal has no flags: what says that it was private is private from now on. */
	if (rc == 0 && !(flags & (SCI_FLAG_PRIVATE | SIO_SEG_IMPORT)))
		rc = smartiod_allow_program(d, s, &thing, reterr);
	if (rc < 0)
		return rc;
	if (!empty) {
		l = own_memory(d, s, sio_from_le64(m->key), reterr);
		if (!l)
			return reterr->code;
		if (check_group(d, l, flags, sio_from_le32(m->number), reterr) < 0 ||
		    smartiod_unclaimed_check(l, reterr) < 0)
			return reterr->code;
		if (named)
			smartiod_restore_take_number(d, sio_from_le32(m->number));
		owner = l->owner;
	}
	rc = smartiod_segment_new(d, s, owner, named, sio_from_le32(m->number),
				  sio_from_le64(m->extra), &seg, reterr);
	if (rc < 0)
		return rc;
	seg->imported = flags & SIO_SEG_IMPORT;
	seg->is_private = flags & SCI_FLAG_PRIVATE || seg->imported;
	seg->empty = empty;
	seg->memory = restored_memory(m, seg->imported);
	seg->filled = flags & SCI_FLAG_EMPTY && !empty;
	seg->told = sio_from_le32(m->told) < SMARTIOD_MAX_OBJECTS ? sio_from_le32(m->told)
								  : SMARTIOD_MAX_OBJECTS;
	if (l)
		smartiod_segment_take_unclaimed(d, seg, l);
	smartiod_restore_state(d, seg, m);
	if (owner == 0)
		smartiod_segment_mapped(d, seg);
	return 0;
}

/* ---- connections ---- */

int smartiod_restore_connect(struct smartiod *d, struct smartiod_session *s,
			     struct smartiod_segment *seg, uint32_t adapter,
			     const struct sio_msg_restore *m, struct sio_err *reterr)
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
		smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_LOSE);
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

static int restore_plain_far(struct smartiod *d, struct smartiod_session *s, uint32_t node,
			     const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_SEGMENTS, node, sio_from_le32(m->number));

	if (smartiod_allow_program(d, s, &thing, reterr) < 0)
		return reterr->code;
	return smartiod_restore_far(d, s, node, NULL, m, reterr) ? 0 : reterr->code;
}

int smartiod_restore_connection(struct smartiod *d, struct smartiod_session *s,
				const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_seg_connect *r = (const void *)m->request;
	uint32_t adapter = sio_from_le32(r->adapter);
	uint32_t handle = s->forced; /* the maker may be this very session */
	struct sio_policy_thing thing;
	struct smartiod_segment *seg;
	int rc;

	if (sio_from_le32(r->flags) & SCI_FLAG_BROADCAST)
		return smartiod_group_again(d, s, m, reterr);
	if (sio_from_le32(r->node) != d->node)
		return restore_plain_far(d, s, sio_from_le32(r->node), m, reterr);
	if (adapter >= d->host->n_adapters)
		return sio_fail(reterr, -ENOENT, "%s has no adapter %u", d->host->name, adapter);
	if (smartiod_seal_check(s, m, SIO_MSG_SEG_CONNECT, adapter, 0, reterr) < 0)
		return reterr->code;
	seg = smartiod_segment_by_mem(d, sio_from_le64(m->key), reterr);
	if (!seg)
		seg = smartiod_restore_kept(d, sio_from_le64(m->key), sio_from_le32(r->segment_id),
					    reterr);
	if (!seg)
		return reterr->code;
	/* Whoever attached may not know whether its maker ever made it available; the seal does. */
	if ((!(seg->exported & 1u << adapter) && !seg->maker_released) || seg->device)
		return sio_fail(reterr, -EACCES, "segment %#x was never available there", seg->id);
	thing = smartiod_thing(d, SIO_POLICY_SEGMENTS, d->node, seg->id);
	if (smartiod_allow_program(d, s, &thing, reterr) < 0)
		return reterr->code;
	s->forced = handle;
	smartiod_segment_pin(seg);
	rc = smartiod_restore_connect(d, s, seg, adapter, m, reterr);
	smartiod_segment_unpin(d, seg);
	return rc;
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
static void notify_times(struct smartiod *d, const struct smartiod_object *handle, uint32_t reason,
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
 * Connections came or went while nobody could tell: all of a segment at once. Whoever attached has
 * heard of others than its maker, but misses the same.
 */
static void notify_difference(struct smartiod *d, struct smartiod_segment *seg)
{
	bool more = seg->n_refs > seg->told;
	uint32_t n = more ? new_connections(seg) : seg->told - seg->n_refs;
	uint32_t reason = more ? SCI_CB_CONNECT : SCI_CB_LOST;

	if (seg->maker_released)
		return;
	notify_times(d, &seg->o, reason, n);
	for (struct smartiod_attachment *a = seg->attachments; a; a = a->next)
		notify_times(d, &a->o, reason, n);
}

bool smartiod_segments_expected(const struct smartiod *d)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		if (d->peer[i].expected)
			return true;
	return false;
}

/* Other hosts may be connected to it, and say so later. */
void smartiod_segment_restored(struct smartiod *d, struct smartiod_object *o)
{
	struct smartiod_segment *seg = (struct smartiod_segment *)o;

	seg->untold = smartiod_segments_expected(d);
	if (!seg->untold)
		notify_difference(d, seg);
}

void smartiod_segments_notify(struct smartiod *d)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while (!smartiod_segments_expected(d) && (n = smartiod_tree_after(&d->segments, key))) {
		struct smartiod_segment *seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);

		key = n->key;
		if (seg->untold) {
			seg->untold = false;
			notify_difference(d, seg);
		}
		if (seg->reserved) {
			seg->reserved = false;
			smartiod_segment_check(d, seg);
		}
	}
}
