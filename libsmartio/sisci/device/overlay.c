/* SPDX-License-Identifier: BSD-2-Clause */
/* BARs of borrowed devices as members of multicast groups. */
#include <errno.h>
#include <stdlib.h>

#include "sisci/device/device.h"
#include "sisci/segment/segment.h"

struct overlay {
	struct sio_object o; /* parent: the BAR */
	uint32_t group;
};

static void overlay_free(struct sio_object *o)
{
	free(o);
}

/* With the caller's reference. */
static int close_overlay(struct sio_object *o, int claimed, struct sio_err *err)
{
	int rc = sio_object_close(o, claimed, SIO_MSG_GROUP_LEAVE, 0, err);

	if (!rc)
		sio_object_end(o);
	return rc;
}

const struct sio_kind_ops sio_overlay_kind = {
	.kind = SIO_OVERLAY,
	.name = "member of a group",
	.nameless = true,
	.free = overlay_free,
	.close = close_overlay,
};

static int ask_join(struct overlay *m, struct sio_msg_group_join *req, struct sio_err *err)
{
	struct sio_rep_group_join rep;
	struct sio_call call = {.req = &req->h,
				.req_len = sizeof(*req),
				.type = SIO_MSG_GROUP_JOIN,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.done = sio_object_adopt,
				.arg = &m->o};

	return sio_session_call(m->o.lib->session, &call, err);
}

/* Of @req range and group are set. */
static int join(struct sio_library *lib, struct sio_remote_segment *seg,
		struct sio_msg_group_join *req, struct sio_err *err)
{
	struct overlay *m;
	int rc;

	if (!seg->is_bar)
		return sio_fail(err, -EINVAL,
				"segment %#x is no BAR of a device; memory of a host is a member "
				"as a segment with SCI_FLAG_BROADCAST",
				seg->segment_id);
	m = calloc(1, sizeof(*m));
	if (!m)
		return sio_no_memory(err, "a member of a group");
	m->o.kind = SIO_OVERLAY;
	m->group = sio_from_le32(req->group);
	rc = sio_object_add(lib, &m->o, &seg->o, err);
	if (rc)
		return rc;
	req->handle = sio_to_le32(seg->o.id);
	rc = ask_join(m, req, err);
	if (rc)
		sio_object_end(&m->o);
	else
		sio_object_put(&m->o);
	return rc;
}

void smartio_join_group(sci_remote_segment_t bar, unsigned int group, size_t offset, size_t size,
			unsigned int flags, sci_error_t *error)
{
	struct sio_msg_group_join req = {.group = sio_to_le32(group),
					 .offset = sio_to_le64(offset),
					 .bytes = sio_to_le64(size)};
	struct sio_remote_segment *seg = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc) {
		seg = sio_object_get(lib, bar, SIO_REMOTE_SEGMENT, &err);
		rc = seg ? sio_remote_segment_check(seg, &err) : err.code;
	}
	if (!rc)
		rc = sio_check_range(offset, size, seg->bytes, &err);
	if (!rc)
		rc = join(lib, seg, &req, &err);
	if (seg)
		sio_object_put(&seg->o);
	sio_api_leave(error, rc, &err);
}

/* Under the lock: the member, claimed and with a reference; NULL. */
static struct sio_object *claim_member(const struct sio_object *bar, uint32_t group)
{
	struct sio_object *o = bar->first_child;

	while (o && (o->kind != SIO_OVERLAY || sio_object_is_leaving(o) || o->id == 0 ||
		     ((struct overlay *)o)->group != group))
		o = o->sibling;
	if (o) {
		sio_object_step(o, SIO_LIFE_CLAIM);
		sio_handle_ref(o->lib->handles, o->handle);
	}
	return o;
}

static int leave(struct sio_library *lib, const struct sio_object *bar, uint32_t group,
		 struct sio_err *err)
{
	struct sio_object *member;

	sio_session_lock(lib->session);
	member = claim_member(bar, group);
	sio_session_unlock(lib->session);
	return member ? close_overlay(member, 0, err)
		      : sio_fail(err, -EPERM,
				 "the segment has no member of group %u: it joins first", group);
}

void smartio_leave_group(sci_remote_segment_t bar, unsigned int group, unsigned int flags,
			 sci_error_t *error)
{
	struct sio_object *seg = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc) {
		seg = sio_object_get(lib, bar, SIO_REMOTE_SEGMENT, &err);
		rc = seg ? leave(lib, seg, group, &err) : err.code;
	}
	sio_object_put(seg);
	sio_api_leave(error, rc, &err);
}
