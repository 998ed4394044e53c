/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restart: DMA queues and what they reach, as a library restores them after smartiod was started
 * again. The port's engine has gone on meanwhile, and goes on. Ranges of BARs are not restored: the
 * library attaches them again when a transfer needs one.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/unclaimed.h"
#include "smartiod/dma/queue.h"
#include "smartiod/segment/connection.h"
#include "smartiod/segment/restore.h"

static int restore_queue(struct smartiod *d, struct smartiod_session *s,
			 const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_queue_create *r = (const void *)m->request;
	struct smartiod_unclaimed *l =
		smartiod_unclaimed_get(d, SIO_KIND_DMA, s->owner, sio_from_le64(m->key), reterr);
	struct smartiod_queue *q;

	if (!l)
		return reterr->code;
	if (l->device != sio_from_le32(r->adapter))
		return sio_fail(reterr, -EINVAL, "this DMA channel is of adapter %" PRIu64,
				l->device);
	q = smartiod_queue_new(d, s, sio_from_le32(r->adapter), reterr);
	if (!q)
		return reterr->code;
	q->channel = l->by_id.key;
	q->pins = 0; /* no request of it is in progress */
	smartiod_unclaimed_done(d, l);
	return 0;
}

/* The window of @c, if it has one, and who has a range there. */
static int take_range(struct smartiod *d, struct smartiod_session *s, struct smartiod_queue *q,
		      struct smartiod_connection *c, const struct sio_msg_restore *m,
		      struct sio_err *reterr)
{
	struct sio_msg_restore window = *m;
	struct smartiod_range *g;
	int rc = 0;

	if (c->route == SMARTIOD_BAR)
		return sio_fail(reterr, -ENOENT, "a range of a BAR is not restored");
	g = smartiod_range_new(c, q);
	if (!g)
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	window.key = m->extra;
	if (c->route == SMARTIOD_REMOTE)
		rc = smartiod_window_again(d, s, c, &window, reterr);
	if (rc < 0)
		smartiod_range_forget(d, c, g);
	else
		g->id = sio_from_le64(m->key);
	return rc;
}

/* What the port lists as the target of a range to it; of a window only the library knows. */
static uint64_t target_of(const struct smartiod_segment *seg, const struct smartiod_connection *c,
			  const struct sio_msg_restore *m)
{
	if (c && c->route == SMARTIOD_LOCAL)
		return c->segment->mem;
	if (c && c->route == SMARTIOD_GROUP)
		return c->map;
	return seg ? seg->mem : sio_from_le64(m->extra);
}

static int restore_range(struct smartiod *d, struct smartiod_session *s,
			 const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_queue_attach *r = (const void *)m->request;
	struct smartiod_queue *q =
		smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_QUEUE, reterr);
	struct smartiod_connection *c = NULL;
	struct smartiod_segment *seg = NULL;
	struct smartiod_unclaimed *l;
	int rc;

	if (!q)
		return reterr->code;
	l = smartiod_unclaimed_get(d, SIO_KIND_DMA_RANGE, s->owner, sio_from_le64(m->key), reterr);
	if (!l)
		return reterr->code;
	rc = smartiod_queue_target(s, r, q, &seg, &c, reterr);
	if (rc < 0)
		return rc;
	if (l->cookie != target_of(seg, c, m))
		return sio_fail(reterr, -EINVAL,
				"range %" PRIu64 " of a DMA channel is of something else",
				l->by_id.key);
	if (c)
		rc = take_range(d, s, q, c, m, reterr);
	if (rc < 0)
		return rc;
	smartiod_unclaimed_done(d, l);
	return 0;
}

const struct smartiod_restorable smartiod_dma_restores[] = {
	{SIO_MSG_QUEUE_CREATE, SMARTIOD_RESTORE_ALL, restore_queue, NULL},
	{SIO_MSG_QUEUE_ATTACH, SMARTIOD_RESTORE_ALL, restore_range, NULL},
	{0, 0, NULL, NULL},
};
