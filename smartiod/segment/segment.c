/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments: memory of this host that programs, peers and devices share. */
#include <errno.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/base/room.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/segment.h"

struct smartiod_segment *smartiod_segment_by_uid(struct smartiod *d, uint64_t uid)
{
	return SMARTIOD_OF(smartiod_tree_find(&d->segments, uid), struct smartiod_segment, by_uid);
}

/* Ids may be 0, keys may not. */
struct smartiod_segment *smartiod_segment_by_id(struct smartiod *d, uint32_t id)
{
	return SMARTIOD_OF(smartiod_tree_find(&d->segment_ids, (uint64_t)id + 1),
			   struct smartiod_segment, by_id);
}

int smartiod_segment_new(struct smartiod *d, struct smartiod_session *s, uint64_t owner, bool named,
			 uint32_t id, uint64_t bytes, struct smartiod_segment **ret,
			 struct sio_err *reterr)
{
	struct smartiod_segment *seg;

	if (named && smartiod_segment_by_id(d, id))
		return sio_fail(reterr, -EEXIST, "segment id %#x is taken on %s", id,
				d->host->name);
	seg = calloc(1, sizeof(*seg));
	if (!seg)
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	if (s && smartiod_object_add(s, &seg->o, SMARTIOD_SEGMENT, reterr) < 0) {
		free(seg);
		return reterr->code;
	}
	seg->fd = -1;
	seg->memory = SIO_MEMORY_HOST;
	sio_hash_init(&seg->refs_by_connection);
	seg->id = id;
	seg->owner = owner;
	seg->bytes = bytes;
	seg->pid = s ? s->pid : 0;
	if (s)
		smartiod_account_add(&s->program->account, &seg->charge, SIO_QUOTA_EXPORTED, bytes);
	seg->uid = smartiod_uid(d);
	smartiod_tree_add(&d->segments, &seg->by_uid, seg->uid);
	if (named) {
		seg->named = true;
		smartiod_tree_add(&d->segment_ids, &seg->by_id, (uint64_t)id + 1);
	}
	*ret = seg;
	return 0;
}

/*
 * On a real host the memory outlives the daemon, and other hosts know the segment by its number:
 * the next daemon has to call it the same.
 */
static void number_by_memory(struct smartiod *d, struct smartiod_segment *seg, uint64_t mem)
{
	seg->mem = mem;
	if (!smartiod_is_real(d))
		return;
	smartiod_tree_remove(&d->segments, &seg->by_uid);
	seg->uid = SMARTIOD_UID_MEM | mem;
	smartiod_tree_add(&d->segments, &seg->by_uid, seg->uid);
}

void smartiod_segment_ready(struct smartiod *d, struct smartiod_segment *seg,
			    const struct smartiod_answer *a)
{
	const struct sio_evt_alloc *evt = a->msg;

	number_by_memory(d, seg, evt->id);
	seg->bytes = evt->size;
	seg->phys = evt->address;
	seg->fd = smartiod_take_fd(a, 0);
	/* The answer to APERTURE, which has no descriptor, is shorter. */
	seg->fd_offset = seg->fd >= 0 ? evt->offset : 0;
	seg->ready = true;
}

void smartiod_segment_take_unclaimed(struct smartiod *d, struct smartiod_segment *seg,
				     struct smartiod_unclaimed *l)
{
	number_by_memory(d, seg, l->by_id.key);
	seg->bytes = l->length;
	seg->phys = l->address;
	seg->fd_offset = l->fd_offset;
	seg->fd = smartiod_unclaimed_take_fd(l, 0);
	seg->ready = true;
	if (smartiod_unclaimed_in_group(l, SIO_LIST_MEMBER, seg->id) && !d->member[seg->id]) {
		seg->broadcast = true;
		d->member[seg->id] = seg;
	}
	smartiod_grants_attach(d, seg);
	smartiod_unclaimed_done(d, l);
}

static void segment_free(struct smartiod *d, struct smartiod_segment *seg)
{
	smartiod_close_fd(d, &seg->fd);
	smartiod_charge_drop(&seg->charge);
	smartiod_segment_refs_free(seg);
	smartiod_tree_remove(&d->segments, &seg->by_uid);
	free(seg);
}

/* An event that cannot come is an error of ours: it ends the daemon, not somebody's memory. */
static void enter(struct smartiod *d, struct smartiod_segment *seg,
		  enum smartiod_segment_event event)
{
	enum smartiod_segment_state before = seg->state;

	if (!smartiod_segment_next(before, event, &seg->state))
		smartiod_fatal(d, "segment %#x: event %u in state %u", seg->id, event, seg->state);
	SIO_PROBE(smartiod, segment_state, seg->uid, before, seg->state, event);
}

/* Its last user has released it: then it ends, if it was removed before. */
void smartiod_segment_check(struct smartiod *d, struct smartiod_segment *seg)
{
	if (smartiod_segment_used(seg))
		return;
	enter(d, seg, SMARTIOD_SEGMENT_UNUSED);
	if (seg->state != SMARTIOD_SEGMENT_ENDED || seg->n_orphaned)
		return;
	smartiod_object_remove(&seg->o);
	if (!seg->owner_gone)
		smartiod_port_free(d, seg->mem);
	segment_free(d, seg);
}

void smartiod_segment_unpin(struct smartiod *d, struct smartiod_segment *seg)
{
	seg->pins--;
	smartiod_segment_check(d, seg);
}

void smartiod_segment_dma_put(struct smartiod *d, struct smartiod_segment *seg)
{
	seg->dma--;
	smartiod_segment_check(d, seg);
}

void smartiod_segment_grant_put(struct smartiod *d, struct smartiod_segment *seg,
				const struct smartiod_grant *grant)
{
	seg->n_grants--;
	if (grant->orphaned)
		seg->n_orphaned--;
	else
		seg->n_own_grants -= grant->own_borrow;
	smartiod_segment_check(d, seg);
}

void smartiod_segment_free_all(struct smartiod *d)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->segments, 0))) {
		struct smartiod_segment *seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);

		segment_free(d, seg);
	}
}

void smartiod_segment_leave(struct smartiod *d, struct smartiod_segment *seg,
			    enum smartiod_segment_event event)
{
	enter(d, seg, event);
	if (seg->named) {
		smartiod_tree_remove(&d->segment_ids, &seg->by_id);
		seg->named = false;
	}
	if (seg->broadcast && d->member[seg->id] == seg)
		d->member[seg->id] = NULL;
	seg->available = 0;
	seg->maker_released |= seg->state != SMARTIOD_SEGMENT_ENDED;
}

void smartiod_segment_kept(struct smartiod *d, struct smartiod_segment *seg,
			   enum smartiod_segment_event event)
{
	smartiod_segment_leave(d, seg, event);
	smartiod_segment_mapped(d, seg);
	smartiod_segment_notify_removed(d, seg);
	smartiod_segment_check(d, seg);
}

void smartiod_segment_end(struct smartiod *d, struct smartiod_segment *seg, uint32_t reason,
			  bool owner_gone)
{
	smartiod_object_remove(&seg->o);
	smartiod_segment_detach_all(d, seg);
	smartiod_segment_leave(d, seg,
			       owner_gone ? SMARTIOD_SEGMENT_MAKER_GONE : SMARTIOD_SEGMENT_CUT);
	seg->owner_gone |= owner_gone;
	seg->pins++; /* it stays while importers of this host release it */
	if (!seg->owner_gone)
		smartiod_segment_mapped(d, seg);
	smartiod_segment_cut(d, seg, SIO_ADAPTER_ANY, reason);
	smartiod_segment_unpin(d, seg);
}

bool smartiod_segment_usable(const struct smartiod_segment *seg, bool by_owner)
{
	return seg->ready && (by_owner ? seg->state == SMARTIOD_SEGMENT_OWNED
				       : seg->state != SMARTIOD_SEGMENT_ENDED);
}

/* Numbers of segments can be guessed: by one of a device's no other device's can be had. */
static bool may_connect(const struct smartiod_segment *seg, const struct smartiod_wanted *w,
			uint32_t adapter)
{
	uint32_t there = adapter == SIO_ADAPTER_ANY ? UINT32_MAX : 1u << adapter;

	if (!smartiod_segment_usable(seg, true))
		return false;
	return w->uid ? seg->device && seg->device == w->device : (seg->available & there) != 0;
}

struct smartiod_segment *smartiod_segment_lookup(struct smartiod *d,
						 const struct smartiod_wanted *w, uint32_t adapter,
						 struct sio_err *reterr)
{
	struct smartiod_segment *seg =
		w->uid ? smartiod_segment_by_uid(d, w->uid) : smartiod_segment_by_id(d, w->id);

	if (seg && may_connect(seg, w, adapter))
		return seg;
	if (seg && smartiod_segment_usable(seg, true) && adapter != SIO_ADAPTER_ANY)
		sio_fail(reterr, -ENOENT, "segment %#x of %s is not available on its adapter %u",
			 w->id, d->host->name, adapter);
	else
		sio_fail(reterr, -ENOENT, "%s has no segment %#x that is available", d->host->name,
			 w->id);
	return NULL;
}
