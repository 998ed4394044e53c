/* SPDX-License-Identifier: BSD-2-Clause */
/* Local segments. Their state is smartiod's; the copy here serves to return the right errors. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/types.h"
#include "sisci/segment/segment.h"
#include "smartio/guest.h"

#define CREATE_SERVED                                                                              \
	(SCI_FLAG_USE_CALLBACK | SCI_FLAG_PRIVATE | SCI_FLAG_AUTO_ID | SCI_FLAG_DMA_GLOBAL |       \
	 SCI_FLAG_EMPTY | SCI_FLAG_BROADCAST | SCI_FLAG_ALLOW_UNICAST)
#define CREATE_KNOWN SCI_FLAG_PHYSICAL
#define NOT_OF_GROUPS (SCI_FLAG_PRIVATE | SCI_FLAG_AUTO_ID | SCI_FLAG_EMPTY)

static void local_segment_free(struct sio_object *o)
{
	struct sio_local_segment *seg = (void *)o;
	struct sio_world *w = o->lib->world;
	struct sio_err err;

	if (sio_local_segment_return_pages(seg, &err))
		w->log(w, "no memory: pages of a removed segment stay shared with its memory");
	if (seg->fd >= 0)
		w->close(w, seg->fd);
	free(seg);
}

static struct sio_local_segment *get(struct sio_library *lib, sci_local_segment_t handle,
				     struct sio_err *err)
{
	return sio_object_get(lib, handle, SIO_LOCAL_SEGMENT, err);
}

/* What is imported; of other segments zero, and no descriptor. */
struct import {
	int fd;
	uint64_t offset;
};

static int ask_create(struct sio_local_segment *seg, size_t size, unsigned flags,
		      const struct import *from, struct sio_err *err)
{
	struct sio_msg_seg_create req = {
		.segment_id = sio_to_le32(seg->segment_id),
		.flags =
			sio_to_le32((flags & (SCI_FLAG_PRIVATE | SCI_FLAG_AUTO_ID | SCI_FLAG_EMPTY |
					      SCI_FLAG_BROADCAST | SCI_FLAG_ALLOW_UNICAST)) |
				    (from ? SIO_SEG_IMPORT : 0)),
		.bytes = sio_to_le64(size),
		.offset = sio_to_le64(from ? from->offset : 0)};
	struct sio_rep_seg_create rep;
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_SEG_CREATE,
				.req_fds = from ? &from->fd : NULL,
				.n_req_fds = from != NULL,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.fds = &seg->fd,
				.max_fds = 1,
				.done = sio_object_adopt,
				.arg = &seg->o};
	int rc = sio_session_call(seg->o.lib->session, &call, err);

	if (rc < 0) /* more than the host has is not a lack of windows */
		return sio_error_as(rc, -ENOSPC, SCI_ERR_NOSPC);
	seg->segment_id = sio_from_le32(rep.segment_id);
	seg->bytes = sio_from_le64(rep.bytes);
	seg->phys_addr = sio_from_le64(rep.phys_addr);
	seg->fd_offset = sio_from_le64(rep.fd_offset);
	rc = sio_session_check_fds(seg->o.lib->session, &call, seg->memory == SIO_HAS_MEMORY, err);
	if (!rc && seg->bytes < size)
		rc = sio_fail(err, -EPROTO, "smartiod gave %" PRIu64 " of %zu bytes", seg->bytes,
			      size);
	if (rc)
		sio_object_leave(&seg->o, SIO_MSG_SEG_REMOVE, NULL);
	return rc;
}

static sci_callback_action_t run_callback(struct sio_object *o, void *arg)
{
	struct sio_local_segment *seg = (void *)o;
	const struct sio_segment_event *e = arg;

	return seg->callback(seg->callback_arg, sio_object_handle(o),
			     (sci_segment_cb_reason_t)e->reason, e->node, e->adapter, SCI_ERR_OK);
}

/* Under the lock: of one that another program made, or that a new smartiod does not know. */
static bool take_event(struct sio_library *lib, const struct sio_msg *msg, int *fds, unsigned n_fds)
{
	const struct sio_evm_segment *e = (const void *)msg;
	uint32_t n, loss;
	struct sio_object *o;

	(void)fds;
	(void)n_fds;
	if (sio_from_le32(msg->type) != SIO_EVM_SEGMENT_LOCAL)
		return false;
	o = sio_object_by_id(lib, SIO_LOCAL_SEGMENT, sio_from_le32(e->handle));
	if (!o)
		return true;
	n = sio_from_le32(e->count);
	loss = sio_from_le32(e->loss);
	if (loss == SIO_LOSS_LOST)
		sio_object_lose(o);
	for (uint32_t i = 0; i < (n ? n : 1); i++)
		sio_segment_happened(o, sio_from_le32(e->reason), sio_from_le32(e->node),
				     sio_from_le32(e->adapter), sio_segment_event_status(e));
	return true;
}

static bool is_own(const struct sio_object *o)
{
	return !((const struct sio_local_segment *)o)->attached;
}

const struct sio_kind_ops sio_local_segment_kind = {
	.kind = SIO_LOCAL_SEGMENT,
	.name = "local segment",
	.leaves = true,
	.free = local_segment_free,
	.lost = sio_segment_lose_maps,
	.is_own = is_own,
	.event = take_event,
	.state_bytes = sizeof(struct sio_segment_tasks),
	.init = sio_segment_tasks_init,
	.waits = sio_segment_tasks_wait,
	.run = sio_segment_tasks_run,
	.purge = sio_segment_tasks_purge,
};

struct sio_local_segment *sio_local_segment_new(uint32_t id, sci_cb_local_segment_t callback,
						void *arg, unsigned flags, struct sio_err *err)
{
	struct sio_local_segment *seg = calloc(1, sizeof(*seg));

	if (!seg) {
		sio_no_memory(err, "a local segment");
		return NULL;
	}
	seg->o.kind = SIO_LOCAL_SEGMENT;
	seg->fd = -1;
	seg->segment_id = id;
	seg->is_private = flags & SCI_FLAG_PRIVATE;
	seg->memory = flags & SCI_FLAG_EMPTY ? SIO_EMPTY : SIO_HAS_MEMORY;
	seg->callback = flags & SCI_FLAG_USE_CALLBACK ? callback : NULL;
	seg->callback_arg = arg;
	seg->events.run = seg->callback ? run_callback : NULL;
	return seg;
}

int sio_local_segment_create(struct sio_library *lib, struct sio_local_segment *seg,
			     struct sio_object *parent, size_t size, unsigned flags,
			     struct sio_err *err)
{
	int rc = sio_object_add(lib, &seg->o, parent, err);

	if (rc)
		return rc;
	rc = ask_create(seg, size, flags, NULL, err);
	if (rc)
		sio_object_end(&seg->o);
	return rc;
}

static int import(struct sio_library *lib, sci_desc_t sd, sci_local_segment_t *ret, unsigned id,
		  const struct import *from, size_t size, unsigned flags, struct sio_err *err)
{
	struct sio_local_segment *seg;
	struct sio_object *desc;
	int rc = sio_check_pointer(ret, "segment", err);

	if (!rc)
		rc = sio_check_flags(flags, SCI_FLAG_AUTO_ID, 0, err);
	if (!rc && (size == 0 || (size | from->offset) % SIO_PAGE_SIZE))
		rc = sio_fail(err, -EINVAL, "%#zx bytes at %#" PRIx64 " are not whole pages", size,
			      from->offset);
	if (!rc && from->fd < 0)
		rc = sio_fail(err, -EINVAL, "%d is no descriptor", from->fd);
	if (rc)
		return rc;
	desc = sio_object_get(lib, sd, SIO_DESC, err);
	if (!desc)
		return err->code;
	flags |= SCI_FLAG_PRIVATE;
	seg = sio_local_segment_new(id, NULL, NULL, flags, err);
	if (seg)
		seg->imported = true;
	rc = seg ? sio_object_add(lib, &seg->o, desc, err) : err->code;
	sio_object_put(desc);
	if (rc)
		return rc;
	rc = sio_error_as(ask_create(seg, size, flags, from, err), -EBADF,
			  SCI_ERR_ILLEGAL_PARAMETER);
	if (rc) {
		sio_object_end(&seg->o);
		return rc;
	}
	*ret = sio_object_handle(&seg->o);
	sio_object_put(&seg->o);
	return 0;
}

void smartio_import_segment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId,
			    int fd, uint64_t offset, size_t size, unsigned int flags,
			    sci_error_t *error)
{
	const struct import from = {fd, offset};
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? import(lib, sd, segment, segmentId, &from, size, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

static int create(struct sio_library *lib, sci_desc_t sd, sci_local_segment_t *ret, unsigned id,
		  size_t size, sci_cb_local_segment_t callback, void *arg, unsigned flags,
		  struct sio_err *err)
{
	struct sio_local_segment *seg;
	struct sio_object *desc;
	int rc = sio_check_pointer(ret, "segment", err);

	if (!rc)
		rc = sio_check_flags(flags, CREATE_SERVED, CREATE_KNOWN, err);
	if (!rc && flags & SCI_FLAG_BROADCAST && flags & NOT_OF_GROUPS)
		rc = sio_refuse(err, SCI_ERR_ILLEGAL_FLAG,
				"flags %#x do not go with SCI_FLAG_BROADCAST",
				flags & NOT_OF_GROUPS);
	if (!rc && flags & SCI_FLAG_ALLOW_UNICAST && !(flags & SCI_FLAG_BROADCAST))
		rc = sio_refuse(err, SCI_ERR_ILLEGAL_FLAG,
				"SCI_FLAG_ALLOW_UNICAST goes with SCI_FLAG_BROADCAST");
	if (!rc && flags & SCI_FLAG_USE_CALLBACK)
		rc = sio_check_pointer((const void *)(uintptr_t)callback, "callback", err);
	if (!rc && size == 0)
		rc = sio_refuse(err, SCI_ERR_SIZE_ALIGNMENT,
				"segment %#x: size 0; at least 1 byte is needed", id);
	if (rc)
		return rc;
	desc = sio_object_get(lib, sd, SIO_DESC, err);
	if (!desc)
		return err->code;
	seg = sio_local_segment_new(id, callback, arg, flags, err);
	rc = seg ? sio_local_segment_create(lib, seg, desc, size, flags, err) : err->code;
	sio_object_put(desc);
	if (rc)
		return rc;
	*ret = sio_object_handle(&seg->o);
	sio_object_put(&seg->o);
	return 0;
}

void SCICreateSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId,
		      size_t size, sci_cb_local_segment_t callback, void *callbackArg,
		      unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? create(lib, sd, segment, segmentId, size, callback, callbackArg, flags, &err)
		     : err.code;

	sio_api_leave(error, rc, &err);
}

enum step { PREPARE, AVAILABLE, UNAVAILABLE };

/* smartiod refused: by its right name. Other handles may have changed the state, so it is asked
 * first. */
static int refused(const struct sio_local_segment *seg, enum step step, unsigned adapter, int rc,
		   struct sio_err *err)
{
	if (rc == -EPERM && step == AVAILABLE && !seg->is_private)
		return sio_refuse(err, SCI_ERR_SEGMENT_NOT_PREPARED,
				  "segment %#x is not prepared on adapter %u: SCIPrepareSegment() "
				  "comes first",
				  seg->segment_id, adapter);
	/* Of one that another program made, it says that this program is gone. */
	if (rc == -ECONNRESET && !seg->attached) /* its number was another's when we came back */
		return sio_fail(err, -ESHUTDOWN,
				"segment %#x was lost when this host's smartiod was started again",
				seg->segment_id);
	return rc;
}

static void note_step(struct sio_local_segment *seg, enum step step, unsigned adapter)
{
	sio_session_lock(seg->o.lib->session);
	if (step == PREPARE)
		seg->prepared |= 1u << adapter;
	else if (step == AVAILABLE)
		seg->available |= 1u << adapter;
	else
		seg->available &= ~(1u << adapter);
	sio_session_unlock(seg->o.lib->session);
}

static int take_step(struct sio_library *lib, sci_local_segment_t segment, enum step step,
		     unsigned adapter, unsigned flags, unsigned served, struct sio_err *err)
{
	static const uint32_t type[] = {SIO_MSG_SEG_PREPARE, SIO_MSG_SEG_AVAILABLE,
					SIO_MSG_SEG_UNAVAILABLE};
	struct sio_msg_seg_adapter req = {.adapter = sio_to_le32(adapter),
					  .flags = sio_to_le32(flags)};
	struct sio_local_segment *seg;
	struct sio_msg rep;
	int rc = sio_check_flags(flags, served, 0, err);

	if (!rc)
		rc = sio_check_adapter(lib, adapter, err);
	if (rc)
		return rc;
	seg = get(lib, segment, err);
	if (!seg)
		return err->code;
	sio_session_lock(lib->session);
	if (seg->memory != SIO_HAS_MEMORY)
		rc = sio_fail(
			err, -EPERM,
			"segment %#x has no memory yet: SCIRegisterSegmentMemory() comes first",
			seg->segment_id);
	sio_session_unlock(lib->session);
	if (rc) {
		sio_object_put(&seg->o);
		return rc;
	}
	req.handle = sio_to_le32(seg->o.id);
	rc = sio_ask(lib, type[step], &req, sizeof(req), &rep, sizeof(rep), err);
	if (rc)
		rc = refused(seg, step, adapter, rc, err);
	else
		note_step(seg, step, adapter);
	sio_object_put(&seg->o);
	return rc;
}

void SCIPrepareSegment(sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags,
		       sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? take_step(lib, segment, PREPARE, localAdapterNo, flags,
				 SCI_FLAG_DMA_SOURCE_ONLY | SCI_FLAG_BROADCAST, &err)
		     : err.code;

	sio_api_leave(error, rc, &err);
}

void SCISetSegmentAvailable(sci_local_segment_t segment, unsigned int localAdapterNo,
			    unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc =
		lib ? take_step(lib, segment, AVAILABLE, localAdapterNo, flags, 0, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

void SCISetSegmentUnavailable(sci_local_segment_t segment, unsigned int localAdapterNo,
			      unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? take_step(lib, segment, UNAVAILABLE, localAdapterNo, flags,
				 SCI_FLAG_NOTIFY | SCI_FLAG_FORCE_DISCONNECT, &err)
		     : err.code;

	sio_api_leave(error, rc, &err);
}

static int remove_segment(struct sio_library *lib, sci_local_segment_t segment, unsigned flags,
			  struct sio_err *err)
{
	struct sio_local_segment *seg;
	int rc = sio_check_flags(flags, SCI_FLAG_FORCE_REMOVE, 0, err);

	if (rc)
		return rc;
	seg = get(lib, segment, err);
	if (!seg)
		return err->code;
	/* Nobody could name them any more, and their device could never be returned. */
	if (flags & SCI_FLAG_FORCE_REMOVE)
		rc = sio_object_close_nameless(&seg->o, err);
	if (!rc)
		rc = sio_object_claim(&seg->o, flags & SCI_FLAG_FORCE_REMOVE, err);
	rc = sio_object_close(&seg->o, rc, SIO_MSG_SEG_REMOVE, flags, err);
	if (rc)
		return rc;
	/* The handle stays for the pages alone: smartiod will say that it knows it no more. */
	rc = sio_local_segment_return_pages(seg, err);
	if (rc) {
		sio_object_unclaim(&seg->o);
		sio_object_put(&seg->o);
		return rc;
	}
	sio_object_end(&seg->o);
	return 0;
}

void SCIRemoveSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? remove_segment(lib, segment, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

unsigned int SCIGetLocalSegmentId(sci_local_segment_t segment)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_local_segment *seg = lib ? get(lib, segment, &err) : NULL;
	unsigned id = seg ? seg->segment_id : 0;

	if (seg)
		sio_object_put(&seg->o);
	sio_api_leave(NULL, seg ? 0 : err.code, &err);
	return id;
}

size_t SCIGetLocalSegmentSize(sci_local_segment_t segment)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_local_segment *seg = lib ? get(lib, segment, &err) : NULL;
	size_t size = seg ? (size_t)seg->bytes : 0;

	if (seg)
		sio_object_put(&seg->o);
	sio_api_leave(NULL, seg ? 0 : err.code, &err);
	return size;
}
