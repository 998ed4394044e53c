/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting without waiting (SCI_FLAG_ASYNCHRONOUS_CONNECT): the handle exists at once, and the
 * result is the segment's first event. The segment may be disconnected before that.
 */
#include <errno.h>
#include <stdlib.h>

#include "sisci/segment/segment.h"

struct attempt {
	struct sio_call call;
	struct sio_msg_seg_connect req;
	struct sio_rep_seg_connect rep;
	struct sio_err err;
	struct sio_remote_segment *segment; /* with a reference */
};

/* Under the lock: the program has disconnected it already, so smartiod is asked to. */
static void give_back(struct sio_object *o, const struct sio_rep_seg_connect *rep)
{
	struct sio_post *p = o->post;

	o->post = NULL;
	p->msg.handle = (struct sio_msg_handle){.handle = rep->handle};
	sio_session_post(o->lib->session, SIO_MSG_SEG_DISCONNECT, p, sizeof(p->msg.handle));
}

/* Under the lock. */
static void answered(struct sio_call *call)
{
	struct attempt *a = call->arg;
	struct sio_remote_segment *seg = a->segment;

	if (sio_object_is_leaving(&seg->o)) {
		give_back(&seg->o, &a->rep);
		return;
	}
	sio_object_take_id(&seg->o, a->rep.handle);
	/* The state last: it is read without the lock. */
	sio_remote_segment_fill(seg, &a->rep);
	sio_remote_segment_step(seg, SIO_CONNECTION_ANSWERED);
}

/* Under the lock: the answer was taken, or there will be none. */
static void finished(struct sio_call *call)
{
	struct attempt *a = call->arg;
	struct sio_object *o = &a->segment->o;
	int rc = sio_status_link(o->lib, sio_from_le32(a->req.adapter), call->result);

	if (!sio_object_is_leaving(o)) {
		if (rc) {
			sio_remote_segment_step(a->segment, SIO_CONNECTION_LOSE);
			sio_object_lose(o);
		}
		sio_segment_happened(o, rc ? SCI_CB_LOST : SCI_CB_OPERATIONAL, a->segment->node, 0,
				     sio_error_code(rc));
		sio_session_wake(o->lib->session);
	}
	sio_object_put(o);
	free(a);
}

int sio_remote_segment_start(struct sio_library *lib, struct sio_remote_segment *seg,
			     struct sio_object *parent, const struct sio_msg_seg_connect *req,
			     sci_remote_segment_t *ret, struct sio_err *err)
{
	struct attempt *a = calloc(1, sizeof(*a));
	int rc;

	if (!a) {
		free(seg);
		return sio_no_memory(err, "a connection attempt");
	}
	seg->connection = SIO_CONNECTING;
	seg->node = sio_from_le32(req->node);
	rc = sio_object_add(lib, &seg->o, parent, err);
	if (rc) {
		free(a);
		return rc;
	}
	a->req = *req;
	a->segment = seg;
	a->call = (struct sio_call){.req = &a->req.h,
				    .req_len = sizeof(a->req),
				    .type = SIO_MSG_SEG_CONNECT,
				    .rep = &a->rep,
				    .rep_len = sizeof(a->rep),
				    .done = answered,
				    .ended = finished,
				    .err = &a->err,
				    .arg = a};
	sio_handle_ref(lib->handles, seg->o.handle);
	/* The callback may be first to use it. */
	*ret = sio_object_handle(&seg->o);
	rc = sio_session_start(lib->session, &a->call, err);
	if (rc == 0) {
		sio_object_put(&seg->o);
		return 0;
	}
	*ret = NULL;
	sio_object_put(&seg->o);
	free(a);
	sio_object_end(&seg->o);
	return rc;
}
