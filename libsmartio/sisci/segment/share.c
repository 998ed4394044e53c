/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments that several processes of one host have handles of. */
#include <errno.h>

#include "sisci/segment/segment.h"

static int share(struct sio_library *lib, sci_local_segment_t segment, unsigned flags,
		 struct sio_err *err)
{
	struct sio_local_segment *seg;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	seg = sio_object_get(lib, segment, SIO_LOCAL_SEGMENT, err);
	if (!seg)
		return err->code;
	rc = sio_ask_handle(lib, SIO_MSG_SEG_SHARE, seg->o.id, 0, err);
	sio_object_put(&seg->o);
	return rc;
}

void SCIShareSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? share(lib, segment, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

static int ask_attach(struct sio_local_segment *seg, struct sio_err *err)
{
	struct sio_msg_seg_attach req = {.segment_id = sio_to_le32(seg->segment_id)};
	struct sio_rep_seg_attach rep;
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_SEG_ATTACH,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.fds = &seg->fd,
				.max_fds = 1,
				.done = sio_object_adopt,
				.arg = &seg->o};
	int rc = sio_session_call(seg->o.lib->session, &call, err);

	if (rc < 0)
		return rc;
	seg->bytes = sio_from_le64(rep.bytes);
	seg->phys_addr = sio_from_le64(rep.phys_addr);
	seg->fd_offset = sio_from_le64(rep.fd_offset);
	seg->is_private = sio_from_le32(rep.is_private) != 0;
	seg->prepared = sio_from_le32(rep.prepared);
	seg->available = sio_from_le32(rep.available);
	rc = sio_session_check_fds(seg->o.lib->session, &call, 1, err);
	if (rc)
		sio_object_leave(&seg->o, SIO_MSG_SEG_REMOVE, NULL);
	return rc;
}

static int attach(struct sio_library *lib, sci_desc_t sd, sci_local_segment_t *ret, unsigned id,
		  size_t *ret_size, sci_cb_local_segment_t callback, void *arg, unsigned flags,
		  struct sio_err *err)
{
	struct sio_local_segment *seg;
	struct sio_object *desc;
	int rc = sio_check_pointer(ret, "segment", err);

	if (!rc)
		rc = sio_check_flags(flags, SCI_FLAG_USE_CALLBACK, SCI_FLAG_BROADCAST, err);
	if (!rc && flags & SCI_FLAG_USE_CALLBACK)
		rc = sio_check_pointer((const void *)(uintptr_t)callback, "callback", err);
	if (rc)
		return rc;
	desc = sio_object_get(lib, sd, SIO_DESC, err);
	if (!desc)
		return err->code;
	seg = sio_local_segment_new(id, callback, arg, flags, err);
	if (seg)
		seg->attached = true;
	rc = seg ? sio_object_add(lib, &seg->o, desc, err) : err->code;
	sio_object_put(desc);
	if (rc)
		return rc;
	rc = ask_attach(seg, err);
	if (rc) {
		sio_object_end(&seg->o);
		return rc;
	}
	*ret = sio_object_handle(&seg->o);
	if (ret_size)
		*ret_size = (size_t)seg->bytes;
	sio_object_put(&seg->o);
	return 0;
}

void SCIAttachLocalSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId,
			   size_t *size, sci_cb_local_segment_t callback, void *callbackArg,
			   unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? attach(lib, sd, segment, segmentId, size, callback, callbackArg, flags, &err)
		     : err.code;

	sio_api_leave(error, rc, &err);
}
