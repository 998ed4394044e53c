/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of segments: received from smartiod under the session's lock, queued, and passed to the
 * segment's callback by the event thread, or kept until a thread waits for them (wait.c).
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "sisci/segment/segment.h"

_Static_assert(offsetof(struct sio_local_segment, events) == sizeof(struct sio_object) &&
		       offsetof(struct sio_remote_segment, events) == sizeof(struct sio_object),
	       "sio_segment_events() finds both");

/* Of all segments; kept by the kind local segment. */
static struct sio_segment_tasks *tasks_of(struct sio_library *lib)
{
	return sio_library_state(lib, SIO_LOCAL_SEGMENT);
}

void sio_segment_tasks_init(void *state)
{
	struct sio_segment_tasks *tasks = state;

	tasks->end = &tasks->first;
}

bool sio_segment_tasks_wait(const void *state)
{
	return ((const struct sio_segment_tasks *)state)->first != NULL;
}

struct sio_segment_events *sio_segment_events(struct sio_object *o)
{
	return &((struct sio_local_segment *)o)->events;
}

static void note(struct sio_object *o, const struct sio_segment_event *event)
{
	struct sio_segment_events *q = sio_segment_events(o);

	if (q->n == SIO_SEGMENT_EVENTS) {
		q->first = (q->first + 1) % SIO_SEGMENT_EVENTS;
		q->n--;
		q->overflow = true;
	}
	q->event[(q->first + q->n++) % SIO_SEGMENT_EVENTS] = *event;
}

int sio_segment_take(struct sio_segment_events *q, struct sio_segment_event *ret)
{
	if (q->overflow) {
		q->overflow = false;
		return -EOVERFLOW;
	}
	if (q->n == 0)
		return -EAGAIN;
	*ret = q->event[q->first];
	q->first = (q->first + 1) % SIO_SEGMENT_EVENTS;
	q->n--;
	return 0;
}

/* Behind all that is queued. */
static void queue(struct sio_library *lib, struct sio_task *t, struct sio_object *o)
{
	struct sio_segment_tasks *tasks = tasks_of(lib);

	sio_handle_ref(lib->handles, o->handle);
	t->next = NULL;
	t->object = o;
	*tasks->end = t;
	tasks->end = &t->next;
	sio_session_kick(lib->session);
}

sci_error_t sio_segment_event_status(const struct sio_evm_segment *e)
{
	if (sio_from_le32(e->loss) == SIO_LOSS_LOST)
		return SCI_ERR_NOT_CONNECTED;
	return sio_from_le32(e->reason) == SCI_CB_NOT_OPERATIONAL ? SCI_ERR_NO_LINK_ACCESS
								  : SCI_ERR_OK;
}

void sio_segment_happened(struct sio_object *o, unsigned reason, unsigned node, unsigned adapter,
			  sci_error_t status)
{
	struct sio_segment_event event = {reason, node, adapter, status};
	struct sio_segment_events *kept = sio_segment_events(o);
	struct sio_library *lib = o->lib;
	struct sio_task *t;

	if (o->muted)
		return;
	if (!kept->run) {
		note(o, &event);
		return;
	}
	/* What came without memory is passed on first. */
	t = kept->task.object ? NULL : calloc(1, sizeof(*t));
	if (t) {
		t->event = event;
		queue(lib, t, o);
		return;
	}
	note(o, &event);
	if (!kept->task.object)
		queue(lib, &kept->task, o);
}

/* The first one; *ret_own: it is a segment's own. */
static struct sio_task *next_task(struct sio_library *lib, bool *ret_own)
{
	struct sio_segment_tasks *tasks = tasks_of(lib);
	struct sio_task *t;

	sio_session_lock(lib->session);
	t = tasks->first;
	if (t) {
		tasks->first = t->next;
		if (!tasks->first)
			tasks->end = &tasks->first;
		*ret_own = t == &sio_segment_events(t->object)->task;
	}
	sio_session_unlock(lib->session);
	return t;
}

/* What was noted for a callback. False: nothing any more, and its task can be queued again. */
static bool take_kept(struct sio_object *o, struct sio_segment_event *ret)
{
	struct sio_segment_events *kept = sio_segment_events(o);
	struct sio_library *lib = o->lib;
	int rc;

	sio_session_lock(lib->session);
	rc = sio_segment_take(kept, ret);
	if (rc == -EOVERFLOW) {
		lib->world->log(lib->world, "no memory: callbacks of a segment are not called");
		rc = sio_segment_take(kept, ret);
	}
	if (rc < 0)
		kept->task.object = NULL;
	sio_session_unlock(lib->session);
	return rc == 0;
}

void sio_segment_tasks_run(struct sio_library *lib)
{
	struct sio_task *t;
	bool own;

	while ((t = next_task(lib, &own))) {
		struct sio_object *o = t->object;
		struct sio_segment_events *kept = sio_segment_events(o);
		struct sio_segment_event event = t->event;

		if (own) {
			while (take_kept(o, &event))
				sio_object_callback(o, kept->run, &event);
		} else {
			free(t);
			sio_object_callback(o, kept->run, &event);
		}
		sio_object_put(o);
	}
}

void sio_segment_tasks_purge(struct sio_library *lib)
{
	struct sio_task *t;
	bool own;

	while ((t = next_task(lib, &own))) {
		struct sio_object *o = t->object;

		if (own)
			t->object = NULL;
		else
			free(t);
		sio_object_put(o);
	}
}
