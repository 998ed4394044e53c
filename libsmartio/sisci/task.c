/* SPDX-License-Identifier: BSD-2-Clause */
/* Segment callbacks: queued where the event is taken, run by the event thread without a lock. */
#include <stdlib.h>

#include "sisci/segment.h"

struct sio_task {
	struct sio_task *next;
	struct sio_object *object; /* with a reference */
	unsigned reason, node, adapter;
	sci_error_t status;
};

void sio_task_segment(struct sio_object *o, unsigned reason, unsigned node, unsigned adapter,
		      sci_error_t status)
{
	struct sio_library *lib = o->lib;
	struct sio_task *t;

	if (o->muted)
		return;
	if (!(o->kind == SIO_LOCAL_SEGMENT ? sio_local_segment_has_callback(o)
					   : sio_remote_segment_has_callback(o))) {
		struct sio_segment_event event = {reason, node, adapter, status};

		sio_segment_note(o, &event);
		return;
	}
	t = calloc(1, sizeof(*t));
	if (!t) {
		lib->world->log(lib->world, "no memory: a segment's callback is not called");
		return;
	}
	sio_handle_ref(lib->handles, o->handle);
	*t = (struct sio_task){NULL, o, reason, node, adapter, status};
	*lib->tasks_end = t;
	lib->tasks_end = &t->next;
	sio_session_kick(lib->session);
}

static struct sio_task *next_task(struct sio_library *lib)
{
	struct sio_task *t;

	sio_session_lock(lib->session);
	t = lib->tasks;
	if (t) {
		lib->tasks = t->next;
		if (!lib->tasks)
			lib->tasks_end = &lib->tasks;
	}
	sio_session_unlock(lib->session);
	return t;
}

static sci_callback_action_t run_segment(struct sio_object *o, void *arg)
{
	const struct sio_task *t = arg;

	if (o->kind == SIO_LOCAL_SEGMENT)
		return sio_local_segment_callback(o, t->reason, t->node, t->adapter);
	return sio_remote_segment_callback(o, t->reason, t->status);
}

bool sio_task_waits(void *ctx)
{
	struct sio_library *lib = ctx;

	return lib->tasks || lib->called || lib->blocks_over;
}

void sio_task_run(void *ctx)
{
	struct sio_task *t;

	while ((t = next_task(ctx))) {
		sio_object_callback(t->object, run_segment, t);
		sio_object_put(t->object);
		free(t);
	}
	sio_dma_run(ctx);
	sio_block_run(ctx);
}

void sio_task_purge(struct sio_library *lib)
{
	struct sio_task *t;

	sio_dma_purge(lib);
	while ((t = next_task(lib))) {
		sio_object_put(t->object);
		free(t);
	}
}
