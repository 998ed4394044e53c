/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA queues as API 1.x has them: copies are enqueued, then posted as one transfer, then reset. */
#include <errno.h>
#include <stdlib.h>

#include "sisci/dma/queue.h"

#define ENQUEUE_FLAGS                                                                              \
	(SCI_FLAG_DMA_READ | SCI_FLAG_DMA_POST | SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_RESET)

/* Under the lock: these copies keep their segments no longer. */
static void drop_copies(struct sio_dma_copy *copy, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		copy[i].local->o.children--;
		copy[i].remote->o.children--;
		sio_object_put(&copy[i].local->o);
		sio_object_put(&copy[i].remote->o);
	}
	free(copy);
}

void sio_dma_gather_drop(struct sio_dma_queue *q)
{
	drop_copies(q->gathered, q->n_gathered);
	q->gathered = NULL;
	q->n_gathered = q->room_gathered = 0;
}

/* Under the lock. */
static int check_free(struct sio_dma_queue *q, struct sio_err *err)
{
	if (sio_dma_settle(q) == SCI_DMAQUEUE_POSTED || q->starting || q->posting)
		return sio_fail(err, -EPERM,
				"a transfer is under way on this queue: wait for it, or abort it");
	if (sio_object_is_leaving(&q->o))
		return sio_fail(err, -EINVAL, "the queue is being removed: make another");
	return 0;
}

/* Under the lock: room for one more. */
static int grow(struct sio_dma_queue *q, struct sio_err *err)
{
	unsigned room = q->room_gathered ? 2 * q->room_gathered : 16;
	struct sio_dma_copy *copy;

	if (q->n_gathered == q->max_entries || q->n_gathered == SIO_DMA_ENTRIES)
		return sio_fail_exhausted(
			err, (int)SCI_ERR_MAX_ENTRIES, SIO_OUT_OF_QUEUE_ENTRIES,
			"%u copies are enqueued; the queue was made for %u, and %d are the "
			"most",
			q->n_gathered, q->max_entries, SIO_DMA_ENTRIES);
	if (q->n_gathered < q->room_gathered)
		return 0;
	copy = realloc(q->gathered, room * sizeof(*copy));
	if (!copy)
		return sio_no_memory(err, "%u enqueued copies", room);
	q->gathered = copy;
	q->room_gathered = room;
	return 0;
}

static int add(struct sio_dma_queue *q, const struct sio_dma_copy *copy, struct sio_err *err)
{
	struct sio_library *lib = q->o.lib;
	sci_dma_queue_state_t next;
	int rc;

	sio_session_lock(lib->session);
	rc = check_free(q, err);
	if (!rc && !sio_dma_next((sci_dma_queue_state_t)q->state, SIO_DMA_ENQUEUE, &next))
		rc = sio_fail(err, -EPERM, "the queue was posted: SCIResetDMAQueue() comes first");
	if (!rc)
		rc = grow(q, err);
	if (!rc) {
		sio_handle_ref(lib->handles, copy->local->o.handle);
		sio_handle_ref(lib->handles, copy->remote->o.handle);
		copy->local->o.children++;
		copy->remote->o.children++;
		q->gathered[q->n_gathered++] = *copy;
		sio_dma_step(q, SIO_DMA_ENQUEUE);
	}
	sio_session_unlock(lib->session);
	return rc;
}

/* Take all that is gathered out, so that nobody changes it while it is posted. */
static int take(struct sio_dma_queue *q, struct sio_dma_copy **ret, unsigned *ret_n,
		struct sio_err *err)
{
	int rc;

	sio_session_lock(q->o.lib->session);
	rc = check_free(q, err);
	if (!rc && q->state != SCI_DMAQUEUE_GATHER)
		rc = sio_fail(err, -EPERM,
			      "nothing is enqueued: SCIEnqueueDMATransfer() comes first");
	if (!rc) {
		*ret = q->gathered;
		*ret_n = q->n_gathered;
		q->gathered = NULL;
		q->n_gathered = q->room_gathered = 0;
		q->posting = *ret;
	}
	sio_session_unlock(q->o.lib->session);
	return rc;
}

static int post(struct sio_dma_queue *q, const struct sio_dma_how *how, struct sio_err *err)
{
	struct sio_dma_copy *copy = NULL;
	unsigned n = 0;
	int rc = take(q, &copy, &n, err);

	if (rc)
		return rc;
	for (unsigned i = 0; !rc && i < n; i++)
		rc = sio_dma_check(q, &copy[i], err);
	if (!rc)
		rc = sio_dma_post(q, copy, n, how, err);
	sio_session_lock(q->o.lib->session);
	if (q->posting == copy) {
		/* As before. */
		q->posting = NULL;
		q->gathered = copy;
		q->n_gathered = q->room_gathered = n;
	} else {
		/* The engine has it; a callback, or a thread, may have gathered again since. */
		drop_copies(copy, n);
	}
	sio_session_unlock(q->o.lib->session);
	return rc;
}

static int reset(struct sio_dma_queue *q, struct sio_err *err)
{
	int rc;

	sio_session_lock(q->o.lib->session);
	rc = check_free(q, err);
	if (!rc) {
		sio_dma_gather_drop(q);
		sio_dma_step(q, SIO_DMA_RESET);
	}
	sio_session_unlock(q->o.lib->session);
	return rc;
}

/* What the flags of an enqueueing ask for beside it. */
static int go_on(struct sio_dma_queue *q, unsigned flags, struct sio_err *err)
{
	struct sio_session *s = q->o.lib->session;
	struct sio_dma_how how = {.gathered = true};
	bool done;
	int rc;

	if (!(flags & SCI_FLAG_DMA_POST))
		return 0;
	rc = post(q, &how, err);
	if (rc || !(flags & SCI_FLAG_DMA_WAIT))
		return rc;
	sio_session_lock(s);
	sio_dma_await(q, SIO_FOREVER);
	done = q->state == SCI_DMAQUEUE_DONE;
	sio_session_unlock(s);
	if (!done)
		return sio_refuse(err, SCI_ERR_TRANSFER_FAILED,
				  "the transfer failed on its way, or was aborted");
	return flags & SCI_FLAG_DMA_RESET ? reset(q, err) : 0;
}

static int check_enqueue(unsigned size, unsigned flags, struct sio_err *err)
{
	int rc = sio_check_flags(flags, ENQUEUE_FLAGS, 0, err);

	if (rc)
		return rc;
	if ((flags & SCI_FLAG_DMA_WAIT && !(flags & SCI_FLAG_DMA_POST)) ||
	    (flags & SCI_FLAG_DMA_RESET && !(flags & SCI_FLAG_DMA_WAIT)))
		return sio_fail(err, -EINVAL, "DMA_WAIT needs DMA_POST, DMA_RESET needs both");
	if (size == 0)
		return sio_refuse(err, SCI_ERR_SIZE_ALIGNMENT, "size 0; at least 1 byte is needed");
	return 0;
}

sci_dma_queue_state_t SCIEnqueueDMATransfer(sci_dma_queue_t dq, sci_local_segment_t localSegment,
					    sci_remote_segment_t remoteSegment,
					    unsigned int localOffset, unsigned int remoteOffset,
					    unsigned int size, unsigned int flags,
					    sci_error_t *error)
{
	struct sio_dma_copy copy = {.local_offset = localOffset,
				    .remote_offset = remoteOffset,
				    .size = size,
				    .read = flags & SCI_FLAG_DMA_READ};
	sci_dma_queue_state_t state = SCI_DMAQUEUE_ERROR;
	struct sio_dma_queue *q = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? check_enqueue(size, flags, &err) : err.code;

	if (!rc) {
		q = sio_dma_get(lib, dq, &err);
		if (q)
			copy.local = sio_object_get(lib, localSegment, SIO_LOCAL_SEGMENT, &err);
		if (copy.local)
			copy.remote = sio_object_get(lib, remoteSegment, SIO_REMOTE_SEGMENT, &err);
		rc = copy.remote ? sio_dma_check(q, &copy, &err) : err.code;
	}
	if (!rc)
		rc = add(q, &copy, &err);
	if (!rc)
		rc = go_on(q, flags, &err);
	if (q) /* pairs with the release in sio_dma_step() */
		state = (sci_dma_queue_state_t)__atomic_load_n(&q->state, __ATOMIC_ACQUIRE);
	if (copy.remote)
		sio_object_put(&copy.remote->o);
	if (copy.local)
		sio_object_put(&copy.local->o);
	if (q)
		sio_object_put(&q->o);
	sio_api_leave(error, rc, &err);
	return state;
}

void SCIPostDMAQueue(sci_dma_queue_t dq, sci_cb_dma_t callback, void *callbackArg,
		     unsigned int flags, sci_error_t *error)
{
	struct sio_dma_how how = {.callback = flags & SCI_FLAG_USE_CALLBACK ? callback : NULL,
				  .arg = callbackArg,
				  .gathered = true};
	struct sio_dma_queue *q = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? sio_check_flags(flags, SCI_FLAG_USE_CALLBACK, 0, &err) : err.code;

	if (!rc && flags & SCI_FLAG_USE_CALLBACK)
		rc = sio_check_pointer((const void *)(uintptr_t)callback, "callback", &err);
	if (!rc) {
		q = sio_dma_get(lib, dq, &err);
		rc = q ? post(q, &how, &err) : err.code;
	}
	if (q)
		sio_object_put(&q->o);
	sio_api_leave(error, rc, &err);
}

void SCIResetDMAQueue(sci_dma_queue_t dq, unsigned int flags, sci_error_t *error)
{
	struct sio_dma_queue *q = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? sio_check_flags(flags, 0, 0, &err) : err.code;

	if (!rc) {
		q = sio_dma_get(lib, dq, &err);
		rc = q ? reset(q, &err) : err.code;
	}
	if (q)
		sio_object_put(&q->o);
	sio_api_leave(error, rc, &err);
}
