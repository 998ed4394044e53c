/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SEG_REMOVE. Programs disconnect on both sides at about the same time and then remove once: so who
 * removes waits a moment for the last word of importers. What no importer's leaving can end is
 * refused at once.
 */
#include <errno.h>

#include "smartiod/internal.h"

struct removal_op {
	struct smartiod_op op;
	struct smartiod_segment *segment; /* kept by seg->removal: it does not end without us */
	uint32_t handle;
};

static int fail_busy(const struct smartiod_segment *seg, struct sio_err *reterr)
{
	return sio_fail(reterr, -EBUSY,
			"segment %#x has %u connections, %u windows and %u device maps", seg->id,
			seg->n_refs, seg->n_grants - seg->n_adrift - seg->n_device_grants,
			seg->dma + seg->n_device_grants);
}

/* One of several handles goes alone; the last one takes the segment with it, and is not told. */
static void remove_handle(struct smartiod *d, struct smartiod_session *s, uint32_t handle,
			  struct smartiod_segment *seg)
{
	if (smartiod_segment_let_go(s, handle))
		return;
	smartiod_segment_forget_handle(s, handle);
	smartiod_segment_end(d, seg, SCI_CB_DISCONNECT, false);
}

static void removal_step(struct smartiod *d, struct smartiod_op *op,
			 const struct smartiod_answer *a)
{
	struct removal_op *r = (struct removal_op *)op;
	struct sio_msg request = {.type = sio_to_le32(op->type), .id = sio_to_le32(op->id)};
	struct smartiod_segment *seg = r->segment;
	struct sio_err err;

	seg->removal = NULL;
	if (a->error == -ETIMEDOUT) {
		fail_busy(seg, &err);
		smartiod_op_fail(d, op, &err);
	} else if (!a->error && !seg->removed &&
		   smartiod_segment_can_give(d, op->session, r->handle, seg)) {
		if (smartiod_segment_give(d, op->session, &request, seg, &err) < 0)
			smartiod_op_fail(d, op, &err);
	} else if (!a->error) { /* the last user is gone, or somebody removed it by force */
		if (!seg->removed)
			remove_handle(d, op->session, r->handle, seg);
		smartiod_op_ok(d, op);
	}
	smartiod_op_free(d, op);
}

static int wait_for_users(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_handle *msg, struct smartiod_segment *seg,
			  struct sio_err *reterr)
{
	struct removal_op *r;

	if (seg->dma || seg->n_device_grants)
		return fail_busy(seg, reterr);
	if (seg->removal)
		return sio_fail(reterr, -EBUSY, "segment %#x is being removed already", seg->id);
	r = smartiod_op_new(d, s, msg, sizeof(*r), removal_step, reterr);
	if (!r)
		return reterr->code;
	r->segment = seg;
	r->handle = sio_from_le32(msg->handle);
	seg->removal = &r->op;
	smartiod_op_doze(d, &r->op, SMARTIOD_REMOVE_WAIT_NS);
	return 0;
}

int smartiod_seg_remove(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	uint32_t flags = sio_from_le32(m->flags);
	struct smartiod_segment *seg;

	seg = smartiod_segment_get(s, sio_from_le32(m->handle), reterr);
	if (!seg && reterr->code == -ECONNRESET) { /* its maker is gone, and it was told */
		smartiod_segment_let_go(s, sio_from_le32(m->handle));
		smartiod_reply_ok(d, s, msg);
		return 0;
	}
	if (!seg)
		return reterr->code;
	if (flags & ~SCI_FLAG_FORCE_REMOVE)
		return sio_fail(reterr, -EINVAL, "flags %#x do not belong to SCIRemoveSegment",
				flags);
	if (!(flags & SCI_FLAG_FORCE_REMOVE) && smartiod_segment_used(seg) &&
	    !smartiod_segment_has_others(seg))
		return wait_for_users(d, s, m, seg, reterr);
	if (smartiod_segment_can_give(d, s, sio_from_le32(m->handle), seg))
		return smartiod_segment_give(d, s, msg, seg, reterr);
	remove_handle(d, s, sio_from_le32(m->handle), seg);
	smartiod_reply_ok(d, s, msg);
	return 0;
}
