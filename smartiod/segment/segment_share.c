/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several handles of one segment: programs of this host attach to one that is shared. State and
 * events are common to all handles; the memory ends with the last one. The memory is owned by the
 * session that made it, so for all handles it ends with that program, unless that program has
 * released its handle before.
 */
#include <errno.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/segment/requests.h"
#include "smartiod/segment/segment.h"

struct smartiod_segment *smartiod_segment_get(struct smartiod_session *s, uint32_t handle,
					      struct sio_err *reterr)
{
	struct smartiod_object *o;

	o = SMARTIOD_OF(smartiod_tree_find(&s->objects, handle), struct smartiod_object, by_handle);
	if (o && o->kind == SMARTIOD_SEGMENT && !((struct smartiod_segment *)o)->maker_released)
		return (struct smartiod_segment *)o;
	if (!o || o->kind != SMARTIOD_ATTACHMENT) {
		sio_fail(reterr, -EBADF,
			 "%u is no handle of a segment of this program: one that a reply brought "
			 "is right, until its end",
			 handle);
		return NULL;
	}
	if (!((struct smartiod_attachment *)o)->segment)
		sio_fail(reterr, -ECONNRESET, "the program that made the segment is gone");
	return ((struct smartiod_attachment *)o)->segment;
}

struct smartiod_segment *smartiod_segment_get_ready(struct smartiod_session *s, uint32_t handle,
						    struct sio_err *reterr)
{
	struct smartiod_segment *seg = smartiod_segment_get(s, handle, reterr);

	if (!seg || seg->ready)
		return seg;
	if (seg->empty)
		sio_fail(reterr, -EPERM,
			 "segment %#x has no memory yet: SCIRegisterSegmentMemory() comes first",
			 seg->id);
	else
		sio_fail(reterr, -EBADF, "this segment " SMARTIOD_NOT_YET);
	return NULL;
}

/* ---- attachments ---- */

static void attachment_free(struct smartiod_attachment *a)
{
	struct smartiod_attachment **at;

	smartiod_object_remove(&a->o);
	if (a->segment) {
		for (at = &a->segment->attachments; *at != a; at = &(*at)->next)
			;
		*at = a->next;
	}
	free(a);
}

void smartiod_segment_detach_all(struct smartiod *d, struct smartiod_segment *seg)
{
	while (seg->attachments) {
		struct smartiod_attachment *a = seg->attachments;
		struct sio_evm_segment evm = {
			.handle = sio_to_le32(smartiod_handle(&a->o)),
			.reason = sio_to_le32(SCI_CB_LOST),
			.node = sio_to_le32(d->node),
			.loss = sio_to_le32(SIO_LOSS_LOST),
		};

		seg->attachments = a->next;
		a->segment = NULL;
		smartiod_event(d, a->o.session, SIO_EVM_SEGMENT_LOCAL, &evm, sizeof(evm), NULL, 0);
	}
}

/* Whether @handle of @s is one of several: then it goes alone. */
bool smartiod_segment_release_handle(struct smartiod_session *s, uint32_t handle)
{
	struct smartiod_object *o = SMARTIOD_OF(smartiod_tree_find(&s->objects, handle),
						struct smartiod_object, by_handle);
	struct smartiod_segment *seg;

	if (!o) /* it went while it waited to go */
		return true;
	if (o->kind == SMARTIOD_ATTACHMENT) {
		struct smartiod_attachment *a = (struct smartiod_attachment *)o;

		seg = a->segment;
		if (seg && seg->maker_released && !a->next && seg->attachments == a)
			return false;
		attachment_free(a);
		return true;
	}
	seg = (struct smartiod_segment *)o;
	if (!seg->attachments)
		return false;
	/* It stays among the session's objects, because the memory is that session's. */
	seg->maker_released = true;
	return true;
}

/*
 * ---- the maker releases it, others have it ----
 *
 * The memory belongs to the maker's owner, and would end with it: the port gives it to us. If it
 * refuses, it stays among the maker's objects.
 */

struct give_op {
	struct smartiod_op op;
	struct smartiod_segment *segment; /* pinned */
};

static void give_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_segment *seg = ((struct give_op *)op)->segment;

	if (!a->error) {
		smartiod_object_remove(&seg->o);
		seg->owner_gone = false; /* if the maker has ended meanwhile, the memory has not */
	} else if (seg->o.session) {
		seg->owner = seg->o.session->owner;
	}
	smartiod_op_ok(d, op);
	smartiod_segment_unpin(d, seg);
	smartiod_op_free(d, op);
}

bool smartiod_segment_can_give(const struct smartiod *d, const struct smartiod_session *s,
			       uint32_t handle, const struct smartiod_segment *seg)
{
	return d->served & 1ULL << SIO_OP_GIVE && seg->attachments && !seg->maker_released &&
	       seg->mem && seg->o.session == s && smartiod_handle(&seg->o) == handle;
}

int smartiod_segment_give(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct smartiod_segment *seg, struct sio_err *reterr)
{
	struct sio_req_give req = {.h = {.op = SIO_OP_GIVE, .owner = seg->owner}, .id = seg->mem};
	struct give_op *g = smartiod_op_new(d, s, msg, sizeof(*g), give_step, reterr);

	if (!g)
		return reterr->code;
	g->segment = seg;
	smartiod_segment_pin(seg);
	seg->maker_released = true;
	seg->owner = 0; /* of what is granted from now on */
	smartiod_port_ask(d, &g->op, &req, sizeof(req));
	return 0;
}

bool smartiod_segment_has_others(const struct smartiod_segment *seg)
{
	return seg->maker_released ? seg->attachments && seg->attachments->next
				   : seg->attachments != NULL;
}

void smartiod_segment_forget_handle(struct smartiod_session *s, uint32_t handle)
{
	struct smartiod_object *o = SMARTIOD_OF(smartiod_tree_find(&s->objects, handle),
						struct smartiod_object, by_handle);

	if (o && o->kind == SMARTIOD_ATTACHMENT)
		attachment_free((struct smartiod_attachment *)o);
}

void smartiod_attachment_drop(struct smartiod *d, struct smartiod_object *o)
{
	struct smartiod_segment *seg = ((struct smartiod_attachment *)o)->segment;

	attachment_free((struct smartiod_attachment *)o);
	if (seg && seg->maker_released && !seg->attachments)
		smartiod_segment_end(d, seg, SCI_CB_LOST, false);
}

/* ---- requests ---- */

int smartiod_seg_share(struct smartiod *d, struct smartiod_session *s, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	struct smartiod_segment *seg = smartiod_segment_get(s, sio_from_le32(m->handle), reterr);

	if (!seg)
		return reterr->code;
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "SCIShareSegment takes no flags");
	if (seg->imported)
		return sio_fail(reterr, -EPERM,
				"segment %#x is a part of a file of the program's, which nobody "
				"else gets",
				seg->id);
	seg->shared = true;
	smartiod_reply_ok(d, s, msg);
	return 0;
}

int smartiod_seg_attach(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_seg_attach *m = msg;
	uint32_t id = sio_from_le32(m->segment_id);
	struct smartiod_segment *seg = smartiod_segment_by_id(d, id);
	const struct sio_policy_thing thing = smartiod_thing(d, SIO_POLICY_SEGMENTS, d->node, id);
	struct smartiod_attachment *a;
	struct sio_rep_seg_attach rep;

	if (m->flags)
		return sio_fail(reterr, -EINVAL, "flags %#x do not belong to SCIAttachLocalSegment",
				sio_from_le32(m->flags));
	if (!seg || !seg->ready)
		return sio_fail(reterr, -ENOENT, "%s has no segment %#x", d->host->name, id);
	if (!seg->shared)
		return sio_fail(
			reterr, -EACCES,
			"segment %#x of %s is not shared: its maker calls SCIShareSegment() first",
			id, d->host->name);
	if (smartiod_allow_program(d, s, &thing, reterr) < 0)
		return reterr->code;
	a = calloc(1, sizeof(*a));
	if (!a)
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	if (smartiod_object_add(s, &a->o, SMARTIOD_ATTACHMENT, reterr) < 0) {
		free(a);
		return reterr->code;
	}
	a->segment = seg;
	a->next = seg->attachments;
	seg->attachments = a;
	rep = (struct sio_rep_seg_attach){
		.handle = sio_to_le32(smartiod_handle(&a->o)),
		.is_private = sio_to_le32(seg->is_private),
		.prepared = sio_to_le32(seg->prepared),
		.available = sio_to_le32(seg->available),
		.bytes = sio_to_le64(seg->bytes),
		.phys_addr = sio_to_le64(seg->phys),
		.key = sio_to_le64(seg->mem),
		.seal = sio_to_le64(smartiod_seal(s, SIO_MSG_SEG_ATTACH, smartiod_handle(&a->o),
						  seg->mem, seg->id, 0)),
		.fd_offset = sio_to_le64(seg->fd_offset),
	};
	smartiod_reply(d, s, msg, &rep, sizeof(rep), &seg->fd, 1);
	return 0;
}
