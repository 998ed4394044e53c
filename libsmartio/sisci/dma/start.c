/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting DMA transfers. A segment that a queue has not used before is attached to it (slot.c);
 * from then on a start is entries in the ring, a tail, and at most one write.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "sisci/dma/queue.h"
#include "smartio/io.h"
#include "smartio/uapi.h"

/* ---- posting ---- */

static int check_remote(const struct sio_dma_copy *c, struct sio_err *err)
{
	if (sio_object_is_lost(&c->remote->o))
		return sio_refuse(err, SCI_ERR_SEGMENT_NOT_CONNECTED,
				  "the connection to segment %#x of node %u is lost",
				  c->remote->segment_id, c->remote->node);
	if (sio_remote_segment_check(c->remote, err))
		return SCI_ERR_SEGMENT_NOT_CONNECTED;
	if (c->remote->exact && c->read)
		return sio_fail(err, -EOPNOTSUPP,
				"nothing can be read from an exact multicast group");
	return 0;
}

static int check_segments(struct sio_dma_queue *q, const struct sio_dma_copy *c,
			  struct sio_err *err)
{
	struct sio_session *s = q->o.lib->session;
	bool prepared;
	int rc;

	if (sio_object_is_lost(&c->local->o))
		return sio_object_fail_lost(&c->local->o, err);
	rc = check_remote(c, err);
	if (rc)
		return rc;
	sio_session_lock(s);
	prepared = c->local->prepared >> q->adapter & 1;
	sio_session_unlock(s);
	if (!prepared)
		return sio_refuse(err, SCI_ERR_SEGMENT_NOT_PREPARED,
				  "segment %#x is not prepared on adapter %u: SCIPrepareSegment() "
				  "comes first",
				  c->local->segment_id, q->adapter);
	return 0;
}

static int check_side(const char *whose, uint64_t offset, uint64_t size, uint64_t bytes,
		      struct sio_err *err)
{
	uint64_t end;

	if (__builtin_add_overflow(offset, size, &end) || end > bytes)
		return sio_fail(err, -ERANGE,
				"offset %#" PRIx64 " + size %#" PRIx64
				" goes beyond the %s segment's %#" PRIx64 " bytes",
				offset, size, whose, bytes);
	return 0;
}

int sio_dma_check_remote(const struct sio_dma_copy *c, struct sio_err *err)
{
	int rc = check_remote(c, err);

	return rc ? rc : check_side("remote", c->remote_offset, c->size, c->remote->bytes, err);
}

static int check_ranges(const struct sio_dma_copy *c, struct sio_err *err)
{
	int rc = check_side("local", c->local_offset, c->size, c->local->bytes, err);

	return rc ? rc : check_side("remote", c->remote_offset, c->size, c->remote->bytes, err);
}

int sio_dma_check(struct sio_dma_queue *q, const struct sio_dma_copy *copy, struct sio_err *err)
{
	int rc = check_segments(q, copy, err);

	return rc ? rc : check_ranges(copy, err);
}

/* What a transfer needs, made before anything is changed. */
struct post {
	const struct sio_dma_copy *copy;
	unsigned n;
	const struct sio_dma_how *how;
	struct sio_object **users; /* NULL: the queue's own few will do */
	struct sio_dma_call *call;
};

/* How often the copies change from one segment to another. */
static unsigned count_users(const struct sio_dma_copy *c, unsigned n)
{
	unsigned users = 2;

	for (unsigned i = 1; i < n; i++)
		users += (c[i].local != c[i - 1].local) + (c[i].remote != c[i - 1].remote);
	return users;
}

static int prepare(struct post *p, struct sio_err *err)
{
	unsigned users = count_users(p->copy, p->n);

	if (users > 2)
		p->users = calloc(users, sizeof(struct sio_object *));
	if (p->how->callback)
		p->call = calloc(1, sizeof(*p->call));
	if ((users > 2 && !p->users) || (p->how->callback && !p->call))
		return sio_no_memory(err, "what %u copies use", p->n);
	if (p->call)
		*p->call = (struct sio_dma_call){.callback = p->how->callback, .arg = p->how->arg};
	return 0;
}

/* Under the lock. */
static void keep(struct sio_dma_queue *q, struct sio_object *o)
{
	sio_handle_ref(o->lib->handles, o->handle);
	o->children++;
	q->users[q->n_users++] = o;
}

static void keep_all(struct sio_dma_queue *q, struct post *p)
{
	q->users = p->users ? p->users : q->few;
	p->users = NULL;
	for (unsigned i = 0; i < p->n; i++) {
		if (i == 0 || p->copy[i].local != p->copy[i - 1].local)
			keep(q, &p->copy[i].local->o);
		if (i == 0 || p->copy[i].remote != p->copy[i - 1].remote)
			keep(q, &p->copy[i].remote->o);
	}
}

static int write_entry(struct sio_dma_queue *q, const struct sio_dma_copy *c, uint64_t first,
		       struct sio_dma_entry *ret, struct sio_err *err)
{
	const struct sio_dma_side local = {
		.segment = &c->local->o, .offset = c->local_offset, .bytes = c->size};
	const struct sio_dma_side remote = {.segment = &c->remote->o,
					    .remote = true,
					    .bar = c->remote->is_bar,
					    .offset = c->remote_offset,
					    .bytes = c->size};
	uint64_t from = 0, to = 0;
	uint32_t source = 0, target = 0;
	int rc = sio_dma_place(q, c->read ? &remote : &local, first, &source, &from, err);

	if (!rc)
		rc = sio_dma_place(q, c->read ? &local : &remote, first, &target, &to, err);
	*ret = (struct sio_dma_entry){.source = source,
				      .target = target,
				      .source_offset = from,
				      .target_offset = to,
				      .length = c->size};
	return rc;
}

/* The entries of a transfer, before the tail that gives them to the engine. */
static int write_entries(struct sio_dma_queue *q, const struct post *p, struct sio_err *err)
{
	uint64_t first = q->uses + 1;

	for (unsigned i = 0; i < p->n; i++) {
		struct sio_dma_entry e;
		int rc = write_entry(q, &p->copy[i], first, &e, err);

		if (rc)
			return rc;
		e.flags = i == p->n - 1 ? SIO_DMA_LAST : 0;
		sio_copy_to(&q->ring->entry[(q->tail + i) % SIO_DMA_ENTRIES], &e, sizeof(e));
	}
	return 0;
}

/* Under the lock: the event thread looks at the completion event of transfers with a callback. */
static int watch(struct sio_dma_queue *q, bool on, struct sio_err *err)
{
	struct sio_session *s = q->o.lib->session;

	if (on == q->watched)
		return 0;
	if (!on)
		sio_session_unwatch(s, q->o.handle);
	else if (sio_session_watch(s, q->finished, q->o.handle) < 0)
		return sio_no_memory(err, "the event of a DMA queue");
	q->watched = on;
	return 0;
}

static uint64_t count_bytes(const struct post *p)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p->n; i++)
		sum += p->copy[i].size;
	return sum;
}

/* Under the lock: hand it to the engine. */
static int submit(struct sio_dma_queue *q, struct post *p, struct sio_err *err)
{
	uint64_t count;
	bool stale;
	int rc;

	if (q->o.lost)
		return sio_fail(err, -ESHUTDOWN, "this host's smartiod is gone");
	rc = watch(q, p->call != NULL, err);
	if (rc)
		return rc;
	stale = sio_read32(&q->ring->waiting) && !q->watched;
	sio_write32(&q->ring->waiting, p->call != NULL);
	keep_all(q, p);
	q->call = p->call;
	q->called = p->call != NULL;
	p->call = NULL;
	q->out = p->how->out;
	q->out_bytes = p->how->out_bytes;
	q->aborting = false;
	q->posting = NULL;
	q->posted = count_bytes(p);
	q->begun = q->posted >= SIO_DMA_LONG ? q->o.lib->world->now(q->o.lib->world) : 0;
	__atomic_store_n(&q->number, q->number + 1, __ATOMIC_RELAXED);
	q->tail += p->n;
	sio_dma_step(q, SIO_DMA_POST);
	sio_to_fabric_barrier(); /* pairs with sio_from_fabric_barrier() in take_entry(), emu */
	sio_write32(&q->ring->tail, q->tail);
	sio_dma_ring(q);
	/* What was waited for before is said and done. The engine copies meanwhile. */
	if (stale)
		q->o.lib->world->event_read(q->o.lib->world, q->finished, &count);
	return 0;
}

/* Under the lock: nobody else may start it now. */
static int begin(struct sio_dma_queue *q, unsigned n, bool gathered, struct sio_err *err)
{
	if (sio_dma_settle(q) == SCI_DMAQUEUE_POSTED || q->starting)
		return sio_fail(err, -EPERM,
				"a transfer is under way on this queue: wait for it, or abort it");
	if (q->state == SCI_DMAQUEUE_GATHER && !gathered)
		return sio_fail(
			err, -EPERM,
			"what was enqueued is not posted yet: SCIPostDMAQueue() comes first");
	if (n > SIO_DMA_ENTRIES)
		return sio_refuse(err, SCI_ERR_MAX_ENTRIES, "%u copies; %d are the most", n,
				  SIO_DMA_ENTRIES);
	if (sio_object_is_leaving(&q->o))
		return sio_fail(err, -EINVAL, "the queue is being removed");
	q->starting = true;
	return 0;
}

static int outcome(struct sio_dma_queue *q, struct sio_err *err)
{
	if (q->state == SCI_DMAQUEUE_DONE)
		return 0;
	if (q->o.lost)
		return sio_fail(err, -ESHUTDOWN, "this host's smartiod is gone");
	if (q->state == SCI_DMAQUEUE_ABORTED)
		return sio_fail(err, -ECANCELED, "the transfer was aborted");
	return sio_refuse(err, SCI_ERR_TRANSFER_FAILED, "the transfer failed on its way");
}

int sio_dma_begin(struct sio_dma_queue *q, unsigned n, bool gathered, struct sio_err *err)
{
	int rc;

	sio_session_lock(q->o.lib->session);
	rc = begin(q, n, gathered, err);
	sio_session_unlock(q->o.lib->session);
	return rc;
}

void sio_dma_unbegin(struct sio_dma_queue *q)
{
	sio_session_lock(q->o.lib->session);
	q->starting = false;
	sio_session_unlock(q->o.lib->session);
}

int sio_dma_post_begun(struct sio_dma_queue *q, const struct sio_dma_copy *copy, unsigned n,
		       const struct sio_dma_how *how, struct sio_err *err)
{
	struct sio_session *s = q->o.lib->session;
	struct post p = {.copy = copy, .n = n, .how = how};
	int rc = prepare(&p, err);

	if (!rc)
		rc = write_entries(q, &p, err);
	sio_session_lock(s);
	if (!rc)
		rc = submit(q, &p, err);
	q->starting = false;
	if (!rc && how->wait) {
		sio_dma_await(q, SIO_FOREVER);
		rc = outcome(q, err);
	}
	sio_session_unlock(s);
	free(p.users);
	free(p.call);
	return rc;
}

int sio_dma_post(struct sio_dma_queue *q, const struct sio_dma_copy *copy, unsigned n,
		 const struct sio_dma_how *how, struct sio_err *err)
{
	int rc = sio_dma_begin(q, n, how->gathered, err);

	return rc ? rc : sio_dma_post_begun(q, copy, n, how, err);
}

/* ---- the API ---- */

/* What both starts are given beside their ranges. */
struct start {
	sci_dma_queue_t dq;
	sci_local_segment_t local;
	sci_remote_segment_t remote;
	sci_cb_dma_t callback;
	void *arg;
	unsigned flags;
};

struct started {
	struct sio_dma_queue *q;
	struct sio_local_segment *local;
	struct sio_remote_segment *remote;
};

static void put_all(struct started *d)
{
	if (d->q)
		sio_object_put(&d->q->o);
	if (d->local)
		sio_object_put(&d->local->o);
	if (d->remote)
		sio_object_put(&d->remote->o);
}

static int get_all(struct sio_library *lib, const struct start *s, struct started *ret,
		   struct sio_err *err)
{
	int rc = sio_check_flags(s->flags, SIO_DMA_START_SERVED, 0, err);

	if (!rc && s->flags & SCI_FLAG_USE_CALLBACK)
		rc = sio_check_pointer((const void *)(uintptr_t)s->callback, "callback", err);
	if (rc)
		return rc;
	ret->q = sio_dma_get(lib, s->dq, err);
	if (ret->q)
		ret->local = sio_object_get(lib, s->local, SIO_LOCAL_SEGMENT, err);
	if (ret->local)
		ret->remote = sio_object_get(lib, s->remote, SIO_REMOTE_SEGMENT, err);
	return ret->remote ? 0 : err->code;
}

static int start(struct started *d, const struct start *s, struct sio_dma_copy *copy, unsigned n,
		 struct sio_err *err)
{
	struct sio_dma_how how = {.callback = s->flags & SCI_FLAG_USE_CALLBACK ? s->callback : NULL,
				  .arg = s->arg,
				  .wait = s->flags & SCI_FLAG_DMA_WAIT};
	int rc;

	for (unsigned i = 0; i < n; i++) {
		copy[i].local = d->local;
		copy[i].remote = d->remote;
		copy[i].read = s->flags & SCI_FLAG_DMA_READ;
	}
	rc = check_segments(d->q, copy, err);
	for (unsigned i = 0; !rc && i < n; i++)
		rc = check_ranges(&copy[i], err);
	return rc ? rc : sio_dma_post(d->q, copy, n, &how, err);
}

void SCIStartDmaTransfer(sci_dma_queue_t dq, sci_local_segment_t localSegment,
			 sci_remote_segment_t remoteSegment, size_t localOffset, size_t size,
			 size_t remoteOffset, sci_cb_dma_t callback, void *callbackArg,
			 unsigned int flags, sci_error_t *error)
{
	struct start s = {dq, localSegment, remoteSegment, callback, callbackArg, flags};
	struct sio_dma_copy copy = {
		.local_offset = localOffset, .remote_offset = remoteOffset, .size = size};
	struct started d = {.q = NULL};
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? get_all(lib, &s, &d, &err) : err.code;

	if (!rc && size == 0)
		rc = sio_refuse(&err, SCI_ERR_SIZE_ALIGNMENT, "size 0; at least 1 byte is needed");
	if (!rc)
		rc = start(&d, &s, &copy, 1, &err);
	put_all(&d);
	sio_api_leave(error, rc, &err);
}

static int start_vec(struct started *d, const struct start *s, const dis_dma_vec_t *vec, size_t n,
		     struct sio_err *err)
{
	struct sio_dma_copy copy[DIS_DMA_MAX_VECLEN];

	if (n == 0)
		return sio_fail(err, -EINVAL, "vecLength is 0; at least 1 is right");
	if (n > DIS_DMA_MAX_VECLEN)
		return sio_refuse(err, SCI_ERR_MAX_ENTRIES, "vecLength is %zu; %d is the most", n,
				  DIS_DMA_MAX_VECLEN);
	for (size_t i = 0; i < n; i++)
		copy[i] = (struct sio_dma_copy){.local_offset = vec[i].local_offset,
						.remote_offset = vec[i].remote_offset,
						.size = vec[i].size};
	return start(d, s, copy, (unsigned)n, err);
}

void SCIStartDmaTransferVec(sci_dma_queue_t dq, sci_local_segment_t localSegment,
			    sci_remote_segment_t remoteSegment, size_t vecLength,
			    dis_dma_vec_t *disDmaVec, sci_cb_dma_t callback, void *callbackArg,
			    unsigned int flags, sci_error_t *error)
{
	struct start s = {dq, localSegment, remoteSegment, callback, callbackArg, flags};
	struct started d = {.q = NULL};
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? sio_check_pointer(disDmaVec, "disDmaVec", &err) : err.code;

	if (!rc)
		rc = get_all(lib, &s, &d, &err);
	if (!rc)
		rc = start_vec(&d, &s, disDmaVec, vecLength, &err);
	put_all(&d);
	sio_api_leave(error, rc, &err);
}
