/* SPDX-License-Identifier: BSD-2-Clause */
/* Segment callbacks: queued where the event is taken, run by the event thread without a lock. */
#include <errno.h>
#include <stdlib.h>

#include "sisci/segment/segment.h"

/* Behind all that is queued. */
static void queue(struct sio_library *lib, struct sio_task *t, struct sio_object *o)
{
	sio_handle_ref(lib->handles, o->handle);
	t->next = NULL;
	t->object = o;
	*lib->tasks_end = t;
	lib->tasks_end = &t->next;
	sio_session_kick(lib->session);
}

void sio_task_segment(struct sio_object *o, unsigned reason, unsigned node, unsigned adapter,
		      sci_error_t status)
{
	struct sio_segment_event event = {reason, node, adapter, status};
	struct sio_segment_events *kept = sio_segment_events(o);
	struct sio_library *lib = o->lib;
	struct sio_task *t;

	if (o->muted)
		return;
	if (!(o->kind == SIO_LOCAL_SEGMENT ? sio_local_segment_has_callback(o)
					   : sio_remote_segment_has_callback(o))) {
		sio_segment_note(o, &event);
		return;
	}
	/* What came without memory is told first. */
	t = kept->task.object ? NULL : calloc(1, sizeof(*t));
	if (t) {
		t->event = event;
		queue(lib, t, o);
		return;
	}
	sio_segment_note(o, &event);
	if (!kept->task.object)
		queue(lib, &kept->task, o);
}

/* The first one; *ret_own: it is a segment's own. */
static struct sio_task *next_task(struct sio_library *lib, bool *ret_own)
{
	struct sio_task *t;

	sio_session_lock(lib->session);
	t = lib->tasks;
	if (t) {
		lib->tasks = t->next;
		if (!lib->tasks)
			lib->tasks_end = &lib->tasks;
		*ret_own = t == &sio_segment_events(t->object)->task;
	}
	sio_session_unlock(lib->session);
	return t;
}

static sci_callback_action_t run_segment(struct sio_object *o, void *arg)
{
	const struct sio_segment_event *e = arg;

	if (o->kind == SIO_LOCAL_SEGMENT)
		return sio_local_segment_callback(o, e->reason, e->node, e->adapter);
	return sio_remote_segment_callback(o, e->reason, e->status);
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

bool sio_task_waits(void *ctx)
{
	struct sio_library *lib = ctx;

	return lib->tasks || lib->called || lib->blocks_over;
}

void sio_task_run(void *ctx)
{
	struct sio_task *t;
	bool own;

	while ((t = next_task(ctx, &own))) {
		struct sio_object *o = t->object;
		struct sio_segment_event event = t->event;

		if (own) {
			while (take_kept(o, &event))
				sio_object_callback(o, run_segment, &event);
		} else {
			free(t);
			sio_object_callback(o, run_segment, &event);
		}
		sio_object_put(o);
	}
	sio_dma_run(ctx);
	sio_block_run(ctx);
}

void sio_task_purge(struct sio_library *lib)
{
	struct sio_task *t;
	bool own;

	sio_dma_purge(lib);
	while ((t = next_task(lib, &own))) {
		struct sio_object *o = t->object;

		if (own)
			t->object = NULL;
		else
			free(t);
		sio_object_put(o);
	}
}
