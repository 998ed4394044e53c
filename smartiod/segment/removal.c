/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SEG_REMOVE. Connections and mappings of importers do not prevent the removal: importers are
 * notified, and the segment is kept for them (segment_life.h). Uses by programs of this host do
 * prevent it: a mapping for a device, or memory that is still being allocated. (The library itself
 * knows the program's own mappings.)
 */
#include <errno.h>

#include "smartiod/base/room.h"
#include "smartiod/segment/requests.h"
#include "smartiod/segment/segment.h"

/* ---- what prevents it ---- */

/*
 * Mappings for devices of this host and of others, by living programs of this host. Grants for a
 * program that has ended count until the lender has settled them.
 */
static unsigned own_mappings(struct smartiod *d, const struct smartiod_segment *seg)
{
	return seg->n_own_grants + (seg->dma ? smartiod_own_mappings(d, seg) : 0);
}

static int check_own_use(struct smartiod *d, const struct smartiod_segment *seg,
			 struct sio_err *reterr)
{
	unsigned mappings = own_mappings(d, seg);

	if (mappings)
		return sio_fail(reterr, -EBUSY,
				"segment %#x is mapped for devices %u times by programs of %s: "
				"unmap it first",
				seg->id, mappings, d->host->name);
	if (seg->filling)
		return sio_fail(reterr, -EBUSY, "the memory of segment %#x is being allocated",
				seg->id);
	return 0;
}

/* ---- kept for its importers ---- */

struct keep_op {
	struct smartiod_op op;
	struct smartiod_segment *segment; /* pinned */
};

static void keep_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_segment *seg = ((struct keep_op *)op)->segment;
	bool maker_gone = !seg->o.session;

	if (!a->error) /* the memory is ours now, and outlives its maker */
		smartiod_object_remove(&seg->o);
	else if (!maker_gone)
		seg->owner = seg->o.session->owner;
	if (a->error && maker_gone)
		smartiod_segment_end(d, seg, SCI_CB_LOST, true);
	else
		smartiod_segment_kept(d, seg, SMARTIOD_SEGMENT_GIVEN);
	smartiod_op_ok(d, op);
	smartiod_segment_unpin(d, seg);
	smartiod_op_free(d, op);
}

/*
 * The memory belongs to its maker's owner and would end with it: the port gives it to us. If it
 * refuses, the segment stays among the objects of its maker, and ends with it.
 */
static int give_and_keep(struct smartiod *d, struct smartiod_session *s,
			 const struct sio_msg_handle *msg, struct smartiod_segment *seg,
			 struct sio_err *reterr)
{
	struct sio_req_give req = {.h = {.op = SIO_OP_GIVE, .owner = seg->owner}, .id = seg->mem};
	struct keep_op *k = smartiod_op_new(d, s, msg, sizeof(*k), keep_step, reterr);

	if (!k)
		return reterr->code;
	smartiod_segment_forget_handle(s, sio_from_le32(msg->handle));
	k->segment = seg;
	smartiod_segment_pin(seg);
	smartiod_segment_leave(d, seg, SMARTIOD_SEGMENT_GIVE);
	seg->owner = 0; /* of what is granted from now on */
	smartiod_port_ask(d, &k->op, &req, sizeof(req));
	return 0;
}

static int keep(struct smartiod *d, struct smartiod_session *s, const struct sio_msg_handle *msg,
		struct smartiod_segment *seg, struct sio_err *reterr)
{
	if (d->served & 1ULL << SIO_OP_GIVE && seg->owner && seg->ready)
		return give_and_keep(d, s, msg, seg, reterr);
	smartiod_segment_forget_handle(s, sio_from_le32(msg->handle));
	if (seg->owner == 0)
		smartiod_object_remove(&seg->o);
	smartiod_reply_ok(d, s, msg);
	smartiod_segment_kept(d, seg, SMARTIOD_SEGMENT_KEEP);
	return 0;
}

/* ---- the request ---- */

/* One of several handles goes alone; the last one takes the segment with it, and is not told. */
static void remove_handle(struct smartiod *d, struct smartiod_session *s, uint32_t handle,
			  struct smartiod_segment *seg)
{
	if (smartiod_segment_release_handle(s, handle))
		return;
	smartiod_segment_forget_handle(s, handle);
	smartiod_segment_end(d, seg, SCI_CB_DISCONNECT, false);
}

int smartiod_seg_remove(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	uint32_t handle = sio_from_le32(m->handle), flags = sio_from_le32(m->flags);
	struct smartiod_segment *seg = smartiod_segment_get(s, handle, reterr);
	bool last = seg && !smartiod_segment_has_others(seg);

	if (!seg && reterr->code == -ECONNRESET) { /* its maker is gone, and it was notified */
		smartiod_segment_release_handle(s, handle);
		smartiod_reply_ok(d, s, msg);
		return 0;
	}
	if (!seg)
		return reterr->code;
	if (flags & ~SCI_FLAG_FORCE_REMOVE)
		return sio_fail(reterr, -EINVAL, "flags %#x do not belong to SCIRemoveSegment",
				flags);
	if (last && !(flags & SCI_FLAG_FORCE_REMOVE)) {
		if (check_own_use(d, seg, reterr) < 0)
			return reterr->code;
		/*
		 * After a restart importers of other hosts may not have reported yet. What was
		 * never available has none.
		 */
		seg->reserved = seg->untold && seg->exported && !seg->broadcast;
		/* A member that leaves its group takes its memory with it: the port's rule. */
		if (smartiod_segment_used(seg) && !seg->broadcast)
			return keep(d, s, m, seg, reterr);
	}
	if (smartiod_segment_can_give(d, s, handle, seg))
		return smartiod_segment_give(d, s, msg, seg, reterr);
	remove_handle(d, s, handle, seg);
	smartiod_reply_ok(d, s, msg);
	return 0;
}
