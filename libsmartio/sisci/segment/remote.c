/* SPDX-License-Identifier: BSD-2-Clause */
/* Remote segments: connections to segments of hosts and of devices. */
#include <errno.h>
#include <stdlib.h>

#include "sisci/segment/segment.h"

static void remote_segment_free(struct sio_object *o)
{
	free(o);
}

static sci_callback_action_t run_callback(struct sio_object *o, void *arg)
{
	struct sio_remote_segment *seg = (void *)o;
	const struct sio_segment_event *e = arg;

	return seg->callback(seg->callback_arg, sio_object_handle(o),
			     (sci_segment_cb_reason_t)e->reason, e->status);
}

bool sio_remote_segment_step(struct sio_remote_segment *seg, enum sio_connection_event event)
{
	enum sio_connection next;

	if (!sio_connection_next((enum sio_connection)seg->connection, event, &next))
		return false;
	/* pairs with the load in sio_remote_segment_check() */
	__atomic_store_n(&seg->connection, next, __ATOMIC_RELEASE);
	return true;
}

/* Under the lock: its exporter, its path, or the exporter's wish to keep it. */
static bool take_event(struct sio_library *lib, const struct sio_msg *msg, int *fds, unsigned n_fds)
{
	const struct sio_evm_segment *e = (const void *)msg;
	uint32_t n, loss, reason;
	struct sio_remote_segment *seg;
	struct sio_object *o;

	(void)fds;
	(void)n_fds;
	if (sio_from_le32(msg->type) != SIO_EVM_SEGMENT_REMOTE)
		return false;
	o = sio_object_by_id(lib, SIO_REMOTE_SEGMENT, sio_from_le32(e->handle));
	seg = (void *)o;
	if (!seg)
		return true;
	n = sio_from_le32(e->count);
	loss = sio_from_le32(e->loss);
	reason = sio_from_le32(e->reason);
	if (loss == SIO_LOSS_LOST) {
		sio_object_lose(o);
		sio_remote_segment_step(seg, SIO_CONNECTION_LOSE);
	} else if (loss == SIO_LOSS_REMOVED) {
		if (!sio_remote_segment_step(seg, SIO_CONNECTION_REMOVE))
			return true; /* known already: this smartiod was started since */
	} else if (reason == SCI_CB_NOT_OPERATIONAL || reason == SCI_CB_OPERATIONAL) {
		sio_remote_segment_path(o, reason == SCI_CB_NOT_OPERATIONAL);
	}
	for (uint32_t i = 0; i < (n ? n : 1); i++)
		sio_segment_happened(o, reason, sio_from_le32(e->node), sio_from_le32(e->adapter),
				     sio_segment_event_status(e));
	return true;
}

/*
 * Under the lock: smartiod is gone. Of a segment that was lost with its device the event may still
 * be on its way, and comes no more.
 */
static void orphaned(struct sio_object *o)
{
	if (((const struct sio_remote_segment *)o)->connection != SIO_CONNECTION_LOST)
		sio_segment_happened(o, SCI_CB_LOST, 0, 0, SCI_ERR_NO_LINK_ACCESS);
}

static bool exporter_gone(const struct sio_object *o)
{
	uint32_t connection = ((const struct sio_remote_segment *)o)->connection;

	return o->lost || connection == SIO_CONNECTION_REMOVED ||
	       connection == SIO_CONNECTION_REMOVED_DOWN;
}

/* With the caller's reference. */
static int end_connection(struct sio_object *o, int claimed, struct sio_err *err)
{
	int rc = sio_object_close(o, claimed, SIO_MSG_SEG_DISCONNECT, 0, err);

	if (!rc)
		sio_object_end(o);
	return rc;
}

const struct sio_kind_ops sio_remote_segment_kind = {
	.kind = SIO_REMOTE_SEGMENT,
	.name = "remote segment",
	.leaves = true,
	.free = remote_segment_free,
	.lost = sio_segment_lose_maps,
	.is_stale = exporter_gone,
	.close = end_connection,
	.orphaned = orphaned,
	.event = take_event,
};

static struct sio_remote_segment *get(struct sio_library *lib, sci_remote_segment_t handle,
				      struct sio_err *err)
{
	return sio_object_get(lib, handle, SIO_REMOTE_SEGMENT, err);
}

struct sio_remote_segment *sio_remote_segment_new(uint32_t segment_id, unsigned flags,
						  sci_cb_remote_segment_t callback, void *arg,
						  struct sio_err *err)
{
	struct sio_remote_segment *seg = calloc(1, sizeof(*seg));

	if (!seg) {
		sio_no_memory(err, "a remote segment");
		return NULL;
	}
	seg->o.kind = SIO_REMOTE_SEGMENT;
	seg->connection = SIO_CONNECTED; /* before anybody can see it */
	seg->segment_id = segment_id;
	seg->callback = flags & SCI_FLAG_USE_CALLBACK ? callback : NULL;
	seg->callback_arg = arg;
	seg->events.run = seg->callback ? run_callback : NULL;
	return seg;
}

int sio_remote_segment_connect(struct sio_library *lib, struct sio_remote_segment *seg,
			       struct sio_object *parent, uint32_t type, void *req, size_t req_len,
			       struct sio_err *err)
{
	struct sio_rep_seg_connect rep;
	struct sio_call call = {.req = req,
				.req_len = req_len,
				.type = type,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.done = sio_object_adopt,
				.arg = &seg->o};
	int rc = sio_object_add(lib, &seg->o, parent, err);

	if (rc)
		return rc;
	rc = sio_session_call(lib->session, &call, err);
	if (rc) {
		sio_object_end(&seg->o);
		return rc;
	}
	sio_remote_segment_fill(seg, &rep);
	return 0;
}

void sio_remote_segment_fill(struct sio_remote_segment *seg, const struct sio_rep_seg_connect *rep)
{
	seg->node = sio_from_le32(rep->node);
	seg->exact = sio_from_le32(rep->path) == SIO_PATH_EXACT;
	seg->path = sio_status_place(seg->o.lib, sio_from_le32(rep->path), seg->node);
	seg->peer_boot = (uint32_t)sio_from_le64(rep->peer_boot);
	seg->bytes = sio_from_le64(rep->bytes);
	seg->bar_address = sio_from_le64(rep->bar_addr);
}

int sio_remote_segment_check(const struct sio_remote_segment *seg, struct sio_err *err)
{
	/* Whoever sees it connected sees its size: pairs with sio_remote_segment_step(). */
	if (__atomic_load_n(&seg->connection, __ATOMIC_ACQUIRE) == SIO_CONNECTING)
		return sio_fail(err, -ENOTCONN,
				"segment %#x is not connected yet: wait for SCI_CB_OPERATIONAL",
				seg->segment_id);
	return 0;
}

static int connect_segment(struct sio_library *lib, sci_desc_t sd, sci_remote_segment_t *ret,
			   struct sio_msg_seg_connect *req, sci_cb_remote_segment_t callback,
			   void *arg, unsigned flags, struct sio_err *err)
{
	struct sio_remote_segment *seg;
	struct sio_object *desc;
	int rc = sio_check_pointer(ret, "segment", err);

	if (!rc && flags & SCI_FLAG_USE_CALLBACK)
		rc = sio_check_pointer((const void *)(uintptr_t)callback, "callback", err);
	if (rc)
		return rc;
	desc = sio_object_get(lib, sd, SIO_DESC, err);
	if (!desc)
		return err->code;
	seg = sio_remote_segment_new(sio_from_le32(req->segment_id), flags, callback, arg, err);
	if (seg)
		seg->adapter = sio_from_le32(req->adapter);
	if (!seg)
		rc = err->code;
	else if (flags & SCI_FLAG_ASYNCHRONOUS_CONNECT)
		rc = sio_remote_segment_start(lib, seg, desc, req, ret, err);
	else
		rc = sio_remote_segment_connect(lib, seg, desc, SIO_MSG_SEG_CONNECT, req,
						sizeof(*req), err);
	sio_object_put(desc);
	if (rc || flags & SCI_FLAG_ASYNCHRONOUS_CONNECT)
		return rc;
	*ret = sio_object_handle(&seg->o);
	sio_object_put(&seg->o);
	return 0;
}

void SCIConnectSegment(sci_desc_t sd, sci_remote_segment_t *segment, unsigned int nodeId,
		       unsigned int segmentId, unsigned int localAdapterNo,
		       sci_cb_remote_segment_t callback, void *callbackArg, unsigned int timeout,
		       unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	(void)timeout;
	if (lib)
		rc = sio_check_flags(flags,
				     SCI_FLAG_USE_CALLBACK | SCI_FLAG_ASYNCHRONOUS_CONNECT |
					     SCI_FLAG_BROADCAST,
				     0, &err);
	if (!rc && flags & SCI_FLAG_BROADCAST && flags & SCI_FLAG_ASYNCHRONOUS_CONNECT)
		rc = sio_refuse(&err, SCI_ERR_ILLEGAL_FLAG,
				"SCI_FLAG_ASYNCHRONOUS_CONNECT does not go with "
				"SCI_FLAG_BROADCAST");
	if (!rc && flags & SCI_FLAG_BROADCAST && nodeId != DIS_BROADCAST_NODEID_GROUP_ALL)
		rc = sio_refuse(&err, SCI_ERR_ILLEGAL_NODEID,
				"node id %u; a group has DIS_BROADCAST_NODEID_GROUP_ALL", nodeId);
	if (!rc)
		rc = sio_check_adapter(lib, localAdapterNo, &err);
	if (!rc)
		rc = sio_check_node(lib, &nodeId, &err);
	if (!rc) {
		struct sio_msg_seg_connect req = {.node = sio_to_le32(nodeId),
						  .segment_id = sio_to_le32(segmentId),
						  .adapter = sio_to_le32(localAdapterNo),
						  .flags = sio_to_le32(flags & SCI_FLAG_BROADCAST)};

		rc = connect_segment(lib, sd, segment, &req, callback, callbackArg, flags, &err);
		rc = sio_status_link(lib, localAdapterNo, rc);
	}
	sio_api_leave(error, rc, &err);
}

static int disconnect(struct sio_library *lib, sci_remote_segment_t segment, unsigned flags,
		      struct sio_err *err)
{
	struct sio_remote_segment *seg;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	seg = get(lib, segment, err);
	return seg ? end_connection(&seg->o, sio_object_claim(&seg->o, false, err), err)
		   : err->code;
}

void SCIDisconnectSegment(sci_remote_segment_t segment, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? disconnect(lib, segment, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

enum property { SEGMENT_ID, NODE, BYTES };

static uint64_t get_property(sci_remote_segment_t segment, enum property which)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_remote_segment *seg = lib ? get(lib, segment, &err) : NULL;
	uint64_t value = 0;

	if (seg) {
		value = which == SEGMENT_ID ? seg->segment_id
			: which == NODE	    ? seg->node
					    : seg->bytes;
		sio_object_put(&seg->o);
	}
	sio_api_leave(NULL, seg ? 0 : err.code, &err);
	return value;
}

size_t SCIGetRemoteSegmentSize(sci_remote_segment_t segment)
{
	return (size_t)get_property(segment, BYTES);
}

unsigned int SCIGetRemoteSegmentId(sci_remote_segment_t segment)
{
	return (unsigned)get_property(segment, SEGMENT_ID);
}

unsigned int SCIGetRemoteSegmentNodeId(sci_remote_segment_t segment)
{
	return (unsigned)get_property(segment, NODE);
}
