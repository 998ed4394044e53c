/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA queues: their state, waiting, abort and callbacks. queue_life.c makes and removes them. The
 * first thread that looks at a queue after its transfer is over records that (sio_dma_settle()):
 * then the state leaves POSTED and the segments are free. If there is a callback, the event thread
 * looks when the completion event is readable; the call of it is queued as the event thread's work,
 * whichever thread saw the end first.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/types.h"
#include "sisci/dma/queue.h"
#include "smartio/io.h"

#define FIRST_LOOKS 1024 /* before the first yield: a short transfer is over by then */
#define LOOKS 64	 /* and after it: on a processor that is shared nothing comes before one */

struct sio_dma_queue *sio_dma_get(struct sio_library *lib, sci_dma_queue_t handle,
				  struct sio_err *err)
{
	return sio_object_get(lib, handle, SIO_DMA_QUEUE, err);
}

bool sio_dma_step(struct sio_dma_queue *q, enum sio_dma_event event)
{
	sci_dma_queue_state_t next;

	if (!sio_dma_next((sci_dma_queue_state_t)q->state, event, &next))
		return false;
	/* pairs with the load in SCIDMAQueueState() */
	__atomic_store_n(&q->state, (uint32_t)next, __ATOMIC_RELEASE);
	return true;
}

/* Under the lock: the transfer no longer keeps its segments. */
static void release_users(struct sio_dma_queue *q)
{
	for (unsigned i = 0; i < q->n_users; i++) {
		q->users[i]->children--;
		sio_object_put(q->users[i]);
	}
	if (q->users != q->few)
		free(q->users);
	q->users = q->few;
	q->n_users = 0;
}

/* Under the lock: the transfer under way ended, with the engine's @result. */
static void over(struct sio_dma_queue *q, int result)
{
	struct sio_dma_call *call = q->call;
	struct sio_dma_called *called;

	q->call = NULL;
	if (q->out && result == 0 && !q->aborting)
		sio_copy_from(q->out, q->through_at, q->out_bytes);
	q->out = NULL;
	release_users(q);
	sio_dma_step(q, q->aborting ? SIO_DMA_ABORT : result == 0 ? SIO_DMA_DONE : SIO_DMA_FAIL);
	if (!call)
		return;
	if (q->aborting) {
		free(call);
		return;
	}
	call->status = result == 0 ? SCI_ERR_OK : SCI_ERR_TRANSFER_FAILED;
	*q->calls_end = call;
	q->calls_end = &call->next;
	if (q->listed)
		return;
	sio_handle_ref(q->o.lib->handles, q->o.handle);
	q->listed = true;
	called = sio_library_state(q->o.lib, SIO_DMA_QUEUE);
	q->next_called = called->first;
	called->first = q;
	sio_session_kick(q->o.lib->session);
}

static bool ring_says_done(const struct sio_dma_queue *q)
{
	uint32_t number = __atomic_load_n(&q->number, __ATOMIC_RELAXED);

	return (int32_t)(sio_read32(&q->ring->done) - number) >= 0;
}

sci_dma_queue_state_t sio_dma_settle(struct sio_dma_queue *q)
{
	if (q->state == SCI_DMAQUEUE_POSTED && ring_says_done(q)) {
		sio_from_fabric_barrier(); /* pairs with sio_to_fabric_barrier() in finish(), emu */
		over(q, (int)sio_read32(&q->ring->result[(q->number - 1) % SIO_DMA_RESULTS]));
	}
	return (sci_dma_queue_state_t)q->state;
}

void sio_dma_ring(struct sio_dma_queue *q)
{
	struct sio_world *w = q->o.lib->world;

	/* The tail before the look whether the engine sleeps, as it looks the other way round. */
	sio_full_barrier(); /* pairs with sio_full_barrier() in emu_room_engine_doze() */
	if (sio_read32(&q->ring->asleep))
		w->event_write(w, q->doorbell);
}

/*
 * The completion event may still say what came before: who finds it readable for nothing clears it,
 * and makes it readable again if what it was for has come meanwhile, for others poll it, too.
 */
static void clear_finished(struct sio_dma_queue *q)
{
	struct sio_world *w = q->o.lib->world;
	uint64_t count;

	if (w->event_read(w, q->finished, &count) == 0 && ring_says_done(q))
		w->event_write(w, q->finished);
}

/* Is there still something to wait for? */
static bool is_under_way(const struct sio_dma_queue *q)
{
	return __atomic_load_n(&q->state, __ATOMIC_RELAXED) == SCI_DMAQUEUE_POSTED &&
	       !__atomic_load_n(&q->o.lost, __ATOMIC_RELAXED) && !ring_says_done(q);
}

/*
 * Under the lock, which others have meanwhile: look for a while before sleeping. To be woken takes
 * as long as the copy of a MiB; and only threads that say that they wait are signalled.
 */
static void look(struct sio_dma_queue *q, uint64_t deadline)
{
	struct sio_world *w = q->o.lib->world;
	uint64_t until;

	sio_session_unlock(q->o.lib->session);
	until = w->now(w) + w->look_ns;
	if (until > deadline)
		until = deadline;
	for (unsigned left = FIRST_LOOKS; is_under_way(q); left--) {
		if (left > 0)
			continue;
		if (w->now(w) >= until)
			break;
		w->yield(w);
		left = LOOKS;
	}
	sio_session_lock(q->o.lib->session);
}

/* Under the lock. Return: it is @until. */
static bool sleep_until(struct sio_dma_queue *q, uint64_t until)
{
	struct sio_poll p = {.fd = q->finished};
	bool late = false;

	while (sio_dma_settle(q) == SCI_DMAQUEUE_POSTED && !late) {
		if (p.readable)
			clear_finished(q);
		sio_write32(&q->ring->waiting, 1);
		/*
		 * That we wait before the look whether it is done, as it looks the other way round.
		 */
		sio_full_barrier(); /* pairs with sio_full_barrier() in finish(), emu */
		if (sio_dma_settle(q) != SCI_DMAQUEUE_POSTED)
			break;
		late = sio_session_wait(q->o.lib->session, &p, 1, until) == -ETIMEDOUT ||
		       until == 0;
	}
	return late;
}

/*
 * Under the lock: a transfer that is long, by what the last one took, is slept through but for its
 * end. Nobody need signal that then, unless others sleep.
 */
static void doze(struct sio_dma_queue *q, uint64_t deadline)
{
	struct sio_world *w = q->o.lib->world;
	uint64_t takes = (q->posted >> 10) * q->ns_per_mib >> 10;

	if (!q->begun || q->begun + takes < w->now(w) + 2 * w->look_ns ||
	    q->begun + takes - w->look_ns >= deadline)
		return;
	if (sleep_until(q, q->begun + takes - w->look_ns) && q->waiters == 1 && !q->watched)
		sio_write32(&q->ring->waiting, 0);
}

int sio_dma_await(struct sio_dma_queue *q, uint64_t deadline)
{
	struct sio_world *w = q->o.lib->world;
	bool waited = sio_dma_settle(q) == SCI_DMAQUEUE_POSTED;
	uint32_t number = q->number;

	q->waiters++;
	if (waited && deadline && w->look_ns) {
		doze(q, deadline);
		look(q, deadline);
	}
	sleep_until(q, deadline);
	q->waiters--;
	if (waited && q->begun && q->number == number && q->state == SCI_DMAQUEUE_DONE)
		q->ns_per_mib = ((w->now(w) - q->begun) << 10) / (q->posted >> 10);
	return sio_dma_settle(q) == SCI_DMAQUEUE_POSTED ? -ETIMEDOUT : 0;
}

/* ---- state, wait, abort ---- */

sci_dma_queue_state_t SCIDMAQueueState(sci_dma_queue_t dq)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_dma_queue *q = lib ? sio_dma_get(lib, dq, &err) : NULL;
	uint32_t state = SCI_DMAQUEUE_ERROR;

	if (q) {
		/* pairs with the release in sio_dma_step() */
		state = __atomic_load_n(&q->state, __ATOMIC_ACQUIRE);
		if (state == SCI_DMAQUEUE_POSTED &&
		    (sio_object_is_lost(&q->o) || ring_says_done(q))) {
			sio_session_lock(lib->session);
			state = sio_dma_settle(q);
			sio_session_unlock(lib->session);
		}
		sio_object_put(&q->o);
	}
	sio_api_leave(NULL, q ? 0 : err.code, &err);
	return (sci_dma_queue_state_t)state;
}

#define WAIT_ACCEPTED                                                                              \
	(SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_POST | SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_RESET |      \
	 SCI_FLAG_DMA_READ | SCI_FLAG_DMA_GLOBAL | SCI_FLAG_DMA_SYSDMA | SCI_FLAG_DMA_ADAPTER)

static int wait_queue(struct sio_library *lib, sci_dma_queue_t dq, unsigned timeout, unsigned flags,
		      sci_dma_queue_state_t *ret, struct sio_err *err)
{
	struct sio_dma_queue *q;
	int rc = sio_check_flags(flags, WAIT_ACCEPTED, 0, err);

	if (rc)
		return rc;
	q = sio_dma_get(lib, dq, err);
	if (!q)
		return err->code;
	sio_session_lock(lib->session);
	*ret = sio_dma_settle(q);
	if (*ret == SCI_DMAQUEUE_GATHER)
		rc = sio_fail(err, -EPERM,
			      "what was enqueued is not posted yet: SCIPostDMAQueue() comes first");
	else if (*ret == SCI_DMAQUEUE_POSTED && q->called)
		rc = sio_fail(err, -EPERM,
			      "the transfer has a callback, which is called: wait for one posted "
			      "without");
	else if (sio_dma_await(q, sio_session_deadline(lib->world, timeout)) < 0)
		rc = sio_refuse(err, SCI_ERR_TIMEOUT, "the transfer is not over after %u ms",
				timeout);
	*ret = (sci_dma_queue_state_t)q->state;
	if (!rc && q->o.lost)
		rc = sio_fail(err, -ESHUTDOWN, "this host's smartiod is gone");
	sio_session_unlock(lib->session);
	sio_object_put(&q->o);
	return rc;
}

sci_dma_queue_state_t SCIWaitForDMAQueue(sci_dma_queue_t dq, unsigned int timeout,
					 unsigned int flags, sci_error_t *error)
{
	sci_dma_queue_state_t state = SCI_DMAQUEUE_ERROR;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? wait_queue(lib, dq, timeout, flags, &state, &err) : err.code;

	sio_api_leave(error, rc, &err);
	return state;
}

/* Under the lock: no callback of what is over will come. */
static void drop_calls(struct sio_dma_queue *q)
{
	while (q->calls) {
		struct sio_dma_call *call = q->calls;

		q->calls = call->next;
		free(call);
	}
	q->calls_end = &q->calls;
}

static void abort_queue(struct sio_dma_queue *q)
{
	struct sio_session *s = q->o.lib->session;

	sio_session_lock(s);
	if (sio_dma_settle(q) == SCI_DMAQUEUE_POSTED) {
		q->aborting = true;
		sio_write32(&q->ring->abort, q->number);
		sio_dma_ring(q);
		sio_dma_await(q, SIO_FOREVER);
	} else if (q->state == SCI_DMAQUEUE_GATHER && !q->posting) {
		sio_dma_gather_drop(q);
		sio_dma_step(q, SIO_DMA_ABORT);
	}
	drop_calls(q);
	while (q->o.in_callback && !sio_session_on_event_thread(s))
		sio_session_wait(s, NULL, 0, SIO_FOREVER);
	sio_session_unlock(s);
}

void SCIAbortDMAQueue(sci_dma_queue_t dq, unsigned int flags, sci_error_t *error)
{
	struct sio_dma_queue *q = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? sio_check_flags(flags, 0, 0, &err) : err.code;

	if (!rc) {
		q = sio_dma_get(lib, dq, &err);
		rc = err.code;
	}
	if (q) {
		abort_queue(q);
		sio_object_put(&q->o);
	}
	sio_api_leave(error, rc, &err);
}

void sio_dma_forget(struct sio_dma_queue *q)
{
	release_users(q);
	sio_dma_gather_drop(q);
	free(q->call);
	q->call = NULL;
	drop_calls(q);
}

void sio_dma_cut_off(struct sio_dma_queue *q)
{
	if (q->ring && sio_dma_settle(q) == SCI_DMAQUEUE_POSTED)
		over(q, -ESHUTDOWN);
}

/* ---- callbacks ---- */

/*
 * Event thread. An abort in between takes the calls away, or waits for us. Each start brings its
 * callback, so that there is nothing to cancel.
 */
static sci_callback_action_t run_call(struct sio_object *o, void *arg)
{
	struct sio_dma_queue *q = (struct sio_dma_queue *)o;
	struct sio_dma_call *call;

	(void)arg;
	sio_session_lock(o->lib->session);
	call = q->calls;
	if (call) {
		q->calls = call->next;
		if (!q->calls)
			q->calls_end = &q->calls;
	}
	sio_session_unlock(o->lib->session);
	if (call)
		call->callback(call->arg, sio_object_handle(o), call->status);
	free(call);
	return SCI_CALLBACK_CONTINUE;
}

/* Under the lock, by the event thread: the completion event is readable. */
static void take_finished(struct sio_dma_queue *q)
{
	struct sio_world *w = q->o.lib->world;
	uint64_t count;

	if (!q->watched)
		return;
	w->event_read(w, q->finished, &count);
	sio_dma_settle(q);
	/*
	 * The completion is theirs, too. We come here repeatedly until they have seen it: not for
	 * long.
	 */
	if (q->waiters && q->state != SCI_DMAQUEUE_POSTED)
		w->event_write(w, q->finished);
}

void sio_dma_ready(struct sio_object *o)
{
	sio_session_lock(o->lib->session);
	take_finished((struct sio_dma_queue *)o);
	sio_session_unlock(o->lib->session);
}

bool sio_dma_waits(const void *state)
{
	return ((const struct sio_dma_called *)state)->first != NULL;
}

static struct sio_dma_queue *next_called(struct sio_library *lib)
{
	struct sio_dma_called *called = sio_library_state(lib, SIO_DMA_QUEUE);
	struct sio_dma_queue *q;

	sio_session_lock(lib->session);
	q = called->first;
	if (q) {
		called->first = q->next_called;
		q->listed = false;
	}
	sio_session_unlock(lib->session);
	return q;
}

/* Nobody wants it: the queue is going, or the library. */
static bool has_call(struct sio_dma_queue *q)
{
	bool has;

	sio_session_lock(q->o.lib->session);
	if (q->o.muted || !q->o.lib->up)
		drop_calls(q);
	has = q->calls != NULL;
	sio_session_unlock(q->o.lib->session);
	return has;
}

void sio_dma_run(struct sio_library *lib)
{
	struct sio_dma_queue *q;

	while ((q = next_called(lib))) {
		while (has_call(q))
			sio_object_callback(&q->o, run_call, NULL);
		sio_object_put(&q->o);
	}
}

void sio_dma_purge(struct sio_library *lib)
{
	struct sio_dma_queue *q;

	while ((q = next_called(lib)))
		sio_object_put(&q->o);
}
