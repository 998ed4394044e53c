/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restart: DMA queues and what they reach, as a library restores them after smartiod was started
 * again. The port's engine has gone on meanwhile, and goes on.
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

/* What @g is of: the window of @c, if it has one, or pages of a BAR. *ret: the port's target. */
static int take_target(struct smartiod *d, struct smartiod_session *s, struct smartiod_range *g,
		       struct smartiod_connection *c, const struct sio_msg_restore *m,
		       uint64_t *ret, struct sio_err *reterr)
{
	struct sio_msg_restore window = *m;
	int rc;

	switch (c->route) {
	case SMARTIOD_LOCAL:
		*ret = c->segment->mem;
		return 0;
	case SMARTIOD_GROUP:
		*ret = c->map;
		return 0;
	case SMARTIOD_BAR:
		rc = c->ops->reach_again(d, s, c, m, &g->bar, ret, reterr);
		/* As a program's map; charged, not asked for. */
		if (rc == 0 && c->node != d->node)
			smartiod_account_add(&s->program->account, &g->charge, SIO_QUOTA_WINDOWS,
					     1);
		return rc;
	case SMARTIOD_REMOTE:
		window.key = m->extra;
		rc = smartiod_window_again(d, s, c, &window, reterr);
		*ret = c->map;
		return rc;
	}
	return -EINVAL;
}

static int take_range(struct smartiod *d, struct smartiod_session *s, struct smartiod_queue *q,
		      struct smartiod_connection *c, const struct sio_msg_restore *m,
		      const struct smartiod_unclaimed *l, struct sio_err *reterr)
{
	struct smartiod_range *g = smartiod_range_new(c, q);
	uint64_t target = 0;
	int rc;

	if (!g)
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	rc = take_target(d, s, g, c, m, &target, reterr);
	if (rc == 0 && l->cookie != target)
		rc = sio_fail(reterr, -EINVAL,
			      "range %" PRIu64 " of a DMA channel is of something else",
			      l->by_id.key);
	if (rc < 0)
		smartiod_range_forget(d, c, g);
	else
		g->id = l->by_id.key;
	return rc;
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
	if (c)
		rc = take_range(d, s, q, c, m, l, reterr);
	else if (l->cookie != seg->mem)
		rc = sio_fail(reterr, -EINVAL,
			      "range %" PRIu64 " of a DMA channel is of something else",
			      l->by_id.key);
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
