/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for events of segments that have no callback. */
#include <errno.h>

#include "sisci/segment/segment.h"

static int wait_event(struct sio_object *o, unsigned timeout, struct sio_segment_event *ret,
		      struct sio_err *err)
{
	struct sio_session *s = o->lib->session;
	uint64_t deadline = sio_session_deadline(o->lib->world, timeout);
	bool late = false, lost, ended;
	int rc;

	if (sio_segment_events(o)->run)
		return sio_fail(
			err, -EPERM,
			"the segment has a callback, which is called: wait for one made without");
	sio_session_lock(s);
	while ((rc = sio_segment_take(sio_segment_events(o), ret)) == -EAGAIN &&
	       o->life != SIO_ENDED && !o->lost && !late)
		late = sio_session_wait(s, NULL, 0, deadline) == -ETIMEDOUT || deadline == 0;
	lost = o->lost;
	ended = o->life == SIO_ENDED;
	sio_session_unlock(s);
	if (rc == 0)
		return 0;
	if (rc == -EOVERFLOW)
		return sio_refuse(err, SCI_ERR_OVERFLOW,
				  "more than %u events waited: the oldest were dropped",
				  SIO_SEGMENT_EVENTS);
	if (ended)
		return sio_fail(err, -ECANCELED, "the segment was removed");
	if (lost)
		return sio_object_fail_lost(o, err);
	return sio_refuse(err, SCI_ERR_TIMEOUT, "no event in %u ms", timeout);
}

/* Of a segment of kind @kind, for the call of this thread; *@ret is zeros on error. */
static int wait_at(struct sio_library *lib, void *segment, enum sio_kind kind, unsigned timeout,
		   unsigned flags, struct sio_segment_event *ret, struct sio_err *err)
{
	struct sio_object *o;
	int rc;

	*ret = (struct sio_segment_event){.reason = 0};
	if (!lib)
		return err->code;
	rc = sio_check_flags(flags, 0, 0, err);
	if (rc)
		return rc;
	o = sio_object_get(lib, segment, kind, err);
	if (!o)
		return err->code;
	rc = wait_event(o, timeout, ret, err);
	sio_object_put(o);
	return rc;
}

sci_segment_cb_reason_t SCIWaitForLocalSegmentEvent(sci_local_segment_t segment,
						    unsigned int *sourcenodeId,
						    unsigned int *localAdapterNo,
						    unsigned int timeout, unsigned int flags,
						    sci_error_t *error)
{
	struct sio_segment_event event;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = wait_at(lib, segment, SIO_LOCAL_SEGMENT, timeout, flags, &event, &err);

	if (!rc && sourcenodeId)
		*sourcenodeId = event.node;
	if (!rc && localAdapterNo)
		*localAdapterNo = event.adapter;
	sio_api_leave(error, rc, &err);
	return (sci_segment_cb_reason_t)event.reason;
}

sci_segment_cb_reason_t SCIWaitForRemoteSegmentEvent(sci_remote_segment_t segment,
						     sci_error_t *status, unsigned int timeout,
						     unsigned int flags, sci_error_t *error)
{
	struct sio_segment_event event;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = wait_at(lib, segment, SIO_REMOTE_SEGMENT, timeout, flags, &event, &err);

	if (!rc && status)
		*status = event.status;
	sio_api_leave(error, rc, &err);
	return (sci_segment_cb_reason_t)event.reason;
}
