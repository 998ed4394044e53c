/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA queues: made with smartiod, which gives the ring, and removed. */
#include <errno.h>
#include <stdlib.h>

#include "core/types.h"
#include "sisci/dma/queue.h"
#include "smartio/uapi.h"

static void queue_free(struct sio_object *o)
{
	struct sio_dma_queue *q = (struct sio_dma_queue *)o;
	struct sio_world *w = o->lib->world;

	sio_session_lock(o->lib->session);
	sio_dma_forget(q);
	sio_session_unlock(o->lib->session);
	if (q->through_at)
		w->unmap(w, q->through_at, q->through_bytes);
	if (q->through)
		sio_object_put(&q->through->o);
	if (q->ring)
		w->unmap(w, q->ring, q->bytes);
	if (q->doorbell >= 0)
		w->close(w, q->doorbell);
	if (q->finished >= 0)
		w->close(w, q->finished);
	free(q);
}

/* Under the lock: smartiod is gone, and the engine with it. */
static void queue_lost(struct sio_object *o)
{
	struct sio_dma_queue *q = (struct sio_dma_queue *)o;
	struct sio_world *w = o->lib->world;

	sio_dma_cut_off(q);
	if (q->finished >= 0)
		w->event_write(w, q->finished);
}

static int map_ring(struct sio_dma_queue *q, int fd, uint64_t bytes, struct sio_err *err)
{
	struct sio_world *w = q->o.lib->world;
	void *at = NULL;
	int rc;

	if (bytes < sizeof(struct sio_dma_ring) || bytes % SIO_PAGE_SIZE || bytes > SIZE_MAX / 2)
		return sio_fail(err, -EPROTO, "smartiod's ring has %llu bytes",
				(unsigned long long)bytes);
	rc = w->reserve(w, NULL, false, (size_t)bytes, &at);
	if (rc == 0) {
		rc = w->map(w, at, (size_t)bytes, SIO_PROT_READ | SIO_PROT_WRITE, fd, 0);
		if (rc < 0)
			w->unmap(w, at, (size_t)bytes);
	}
	if (rc < 0)
		return sio_fail_mapping(q->o.lib, bytes, err);
	q->ring = at;
	q->bytes = (size_t)bytes;
	return 0;
}

static int ask_create(struct sio_dma_queue *q, struct sio_err *err)
{
	struct sio_msg_queue_create req = {.adapter = sio_to_le32(q->adapter)};
	struct sio_world *w = q->o.lib->world;
	struct sio_rep_queue_create rep;
	int fds[3] = {-1, -1, -1}, rc;
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_QUEUE_CREATE,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.fds = fds,
				.max_fds = 3,
				.done = sio_object_adopt,
				.arg = &q->o};

	rc = sio_session_call(q->o.lib->session, &call, err);
	if (rc < 0)
		return sio_error_as(rc, -EOPNOTSUPP, SCI_ERR_DMA_NOT_AVAILABLE);
	rc = sio_session_check_fds(q->o.lib->session, &call, 3, err);
	if (!rc)
		rc = map_ring(q, fds[0], sio_from_le64(rep.bytes), err);
	if (fds[0] >= 0)
		w->close(w, fds[0]);
	q->doorbell = fds[1];
	q->finished = fds[2];
	if (rc)
		sio_object_leave(&q->o, SIO_MSG_QUEUE_REMOVE, NULL);
	return rc;
}

int sio_dma_queue_new(struct sio_library *lib, struct sio_object *parent, unsigned adapter,
		      unsigned max_entries, struct sio_dma_queue **ret, struct sio_err *err)
{
	struct sio_dma_queue *q = calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return sio_no_memory(err, "a DMA queue");
	q->o.kind = SIO_DMA_QUEUE;
	q->doorbell = q->finished = -1;
	q->adapter = adapter;
	q->max_entries = max_entries;
	q->users = q->few;
	q->calls_end = &q->calls;
	rc = sio_object_add(lib, &q->o, parent, err);
	if (rc)
		return rc;
	rc = ask_create(q, err);
	if (rc) {
		sio_object_end(&q->o);
		return rc;
	}
	*ret = q;
	return 0;
}

static int create(struct sio_library *lib, sci_desc_t sd, sci_dma_queue_t *ret, unsigned adapter,
		  unsigned max_entries, struct sio_err *err)
{
	struct sio_object *desc = sio_object_get(lib, sd, SIO_DESC, err);
	struct sio_dma_queue *q = NULL;
	int rc;

	if (!desc)
		return err->code;
	rc = sio_dma_queue_new(lib, desc, adapter, max_entries, &q, err);
	sio_object_put(desc);
	if (rc)
		return rc;
	*ret = sio_object_handle(&q->o);
	sio_object_put(&q->o);
	return 0;
}

void SCICreateDMAQueue(sci_desc_t sd, sci_dma_queue_t *dq, unsigned int localAdapterNo,
		       unsigned int maxEntries, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? sio_check_pointer(dq, "dq", &err) : err.code;

	if (!rc)
		rc = sio_check_flags(flags, 0, SCI_FLAG_DMA_PHDMA, &err);
	if (!rc)
		rc = sio_check_adapter(lib, localAdapterNo, &err);
	if (!rc && maxEntries == 0)
		rc = sio_fail(&err, -EINVAL, "maxEntries is 0; at least 1 is right");
	if (!rc)
		rc = create(lib, sd, dq, localAdapterNo, maxEntries, &err);
	sio_api_leave(error, rc, &err);
}

/* It may have been posted while the claim was made. */
static int claim(struct sio_dma_queue *q, struct sio_err *err)
{
	struct sio_library *lib = q->o.lib;
	int rc = sio_object_claim(&q->o, false, err);

	if (rc)
		return rc;
	sio_session_lock(lib->session);
	if (q->starting || q->posting || sio_dma_settle(q) == SCI_DMAQUEUE_POSTED)
		rc = sio_fail(err, -EPERM, "a transfer is under way: wait for it, or abort it");
	sio_session_unlock(lib->session);
	if (rc)
		sio_object_unclaim(&q->o);
	return rc;
}

static void give_back(struct sio_dma_queue *q)
{
	struct sio_session *s = q->o.lib->session;

	sio_session_lock(s);
	if (q->watched)
		sio_session_unwatch(s, q->o.handle);
	q->watched = false;
	sio_dma_gather_drop(q);
	sio_session_unlock(s);
	sio_dma_through_end(q);
	sio_object_end(&q->o);
}

static void drop(struct sio_object *o)
{
	sio_object_leave(o, SIO_MSG_QUEUE_REMOVE, NULL);
	give_back((struct sio_dma_queue *)o);
}

/* Under the lock. */
static void settle(struct sio_object *o)
{
	sio_dma_settle((struct sio_dma_queue *)o);
}

const struct sio_kind_ops sio_dma_queue_kind = {
	.kind = SIO_DMA_QUEUE,
	.name = "DMA queue",
	.leaves = true,
	.never_refused = true,
	.free = queue_free,
	.lost = queue_lost,
	.drop = drop,
	.settle = settle,
	.ready = sio_dma_ready,
	.state_bytes = sizeof(struct sio_dma_called),
	.waits = sio_dma_waits,
	.run = sio_dma_run,
	.purge = sio_dma_purge,
};

static int remove_queue(struct sio_library *lib, sci_dma_queue_t dq, unsigned flags,
			struct sio_err *err)
{
	struct sio_dma_queue *q;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	q = sio_dma_get(lib, dq, err);
	if (!q)
		return err->code;
	rc = claim(q, err);
	rc = sio_object_close(&q->o, rc, SIO_MSG_QUEUE_REMOVE, 0, err);
	if (!rc)
		give_back(q);
	return rc;
}

void SCIRemoveDMAQueue(sci_dma_queue_t dq, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? remove_queue(lib, dq, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}
