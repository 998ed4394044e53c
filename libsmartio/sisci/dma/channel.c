/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA channels as the API names them. The engine of an adapter gives each queue a channel of its
 * own (queue.c), so there is no limit to enforce: this file only records which numbers the program
 * uses.
 */
#include <errno.h>
#include <stdlib.h>

#include "sisci/dma/queue.h"

struct channel {
	struct sio_object o; /* parent: a virtual device */
	unsigned adapter, id;
	bool shared;
};

static void channel_free(struct sio_object *o)
{
	free((void *)o);
}

const struct sio_kind_ops sio_dma_channel_kind = {
	.kind = SIO_DMA_CHANNEL,
	.name = "DMA channel",
	.free = channel_free,
};

/* Under the lock: another one of this program with the same number, that does not share it. */
static bool is_taken(const struct channel *c)
{
	for (struct sio_object *o = c->o.lib->objects; o; o = o->next) {
		const struct channel *other = (const void *)o;

		if (o != &c->o && o->kind == SIO_DMA_CHANNEL && other->adapter == c->adapter &&
		    other->id == c->id && !(other->shared && c->shared))
			return true;
	}
	return false;
}

static int check_request(struct sio_library *lib, const void *ret, unsigned adapter,
			 sci_dma_type_t type, unsigned flags, struct sio_err *err)
{
	int rc = sio_check_pointer(ret, "channel", err);

	if (!rc)
		rc = sio_check_flags(flags, SCI_FLAG_DMA_CHANNEL_SHARED, 0, err);
	if (!rc)
		rc = sio_check_adapter(lib, adapter, err);
	if (rc)
		return rc;
	if (type == SCI_DMA_TYPE_TRANSPARENT)
		return sio_refuse(err, SCI_ERR_DMA_NOT_AVAILABLE,
				  "there is no transparent DMA, only the adapters' engines");
	if (type < SCI_DMA_TYPE_DONTCARE || type > SCI_DMA_TYPE_TRANSPARENT)
		return sio_fail(err, -EINVAL, "%d is no type of DMA", (int)type);
	return 0;
}

static int request(struct sio_library *lib, sci_desc_t sd, sci_dma_channel_t *ret, unsigned adapter,
		   unsigned id, unsigned flags, struct sio_err *err)
{
	struct sio_object *desc = sio_object_get(lib, sd, SIO_DESC, err);
	struct sio_rep_adapter rep;
	struct channel *c;
	bool taken;
	int rc;

	if (!desc)
		return err->code;
	rc = sio_ask_adapter(lib, adapter, &rep, err);
	if (!rc)
		rc = sio_need_engine(&rep, adapter, err);
	c = rc ? NULL : calloc(1, sizeof(*c));
	if (!c) {
		sio_object_put(desc);
		return rc ? rc : sio_no_memory(err, "a DMA channel");
	}
	c->o.kind = SIO_DMA_CHANNEL;
	c->adapter = adapter;
	c->id = id;
	c->shared = flags & SCI_FLAG_DMA_CHANNEL_SHARED;
	rc = sio_object_add(lib, &c->o, desc, err);
	sio_object_put(desc);
	if (rc)
		return rc;
	sio_session_lock(lib->session);
	taken = id != SCI_DMA_CHANNEL_ID_DONTCARE && is_taken(c);
	sio_session_unlock(lib->session);
	if (taken) {
		sio_object_end(&c->o);
		return sio_fail(err, -EBUSY, "this program has channel %u of adapter %u already",
				id, adapter);
	}
	*ret = sio_object_handle(&c->o);
	sio_object_put(&c->o);
	return 0;
}

void SCIRequestDMAChannel(sci_desc_t sd, sci_dma_channel_t *channel, unsigned int adapterNo,
			  sci_dma_type_t type, unsigned int channelId, unsigned int flags,
			  sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? check_request(lib, channel, adapterNo, type, flags, &err) : err.code;

	if (!rc)
		rc = request(lib, sd, channel, adapterNo, channelId, flags, &err);
	sio_api_leave(error, rc, &err);
}

void SCIReturnDMAChannel(sci_dma_channel_t channel, sci_error_t *error)
{
	struct sio_object *o = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib) {
		o = sio_object_get(lib, channel, SIO_DMA_CHANNEL, &err);
		rc = o ? sio_object_claim(o, false, &err) : err.code;
	}
	if (o && rc)
		sio_object_put(o);
	else if (o)
		sio_object_end(o);
	sio_api_leave(error, rc, &err);
}

/* A channel, with a reference, after what all of the calls below check. */
static struct channel *get(struct sio_library *lib, sci_dma_channel_t channel, unsigned flags,
			   struct sio_err *err)
{
	if (sio_check_flags(flags, 0, 0, err))
		return NULL;
	return sio_object_get(lib, channel, SIO_DMA_CHANNEL, err);
}

void SCIAssignDMAChannel(sci_dma_channel_t channel, sci_dma_queue_t queue, unsigned int flags,
			 sci_error_t *error)
{
	struct sio_dma_queue *q = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct channel *c = lib ? get(lib, channel, flags, &err) : NULL;
	int rc = err.code;

	if (c) {
		q = sio_dma_get(lib, queue, &err);
		rc = err.code;
	}
	if (q && q->adapter != c->adapter)
		rc = sio_fail(&err, -EINVAL,
			      "the channel is of adapter %u, the queue of adapter %u", c->adapter,
			      q->adapter);
	if (q && !rc && SCIDMAQueueState(queue) == SCI_DMAQUEUE_POSTED)
		rc = sio_fail(&err, -EPERM,
			      "a transfer is under way on this queue: wait for it, or abort it");
	if (q)
		sio_object_put(&q->o);
	if (c)
		sio_object_put(&c->o);
	sio_api_leave(error, rc, &err);
}

void SCIPrepareLocalSegmentForDMA(sci_dma_channel_t channel, sci_local_segment_t segment,
				  unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct channel *c = lib ? get(lib, channel, flags, &err) : NULL;

	if (!c) {
		sio_api_leave(error, err.code, &err);
		return;
	}
	SCIPrepareSegment(segment, c->adapter, 0, error);
	sio_object_put(&c->o);
}

/* Nothing is to be done for a segment, or undone: a queue's first transfer with it does that. */
static void check_segment(sci_dma_channel_t channel, const void *segment, enum sio_kind kind,
			  unsigned flags, sci_error_t *error)
{
	struct sio_object *seg = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct channel *c = lib ? get(lib, channel, flags, &err) : NULL;
	int rc = err.code;

	if (c) {
		seg = sio_object_get(lib, segment, kind, &err);
		rc = seg ? 0 : err.code;
		sio_object_put(&c->o);
	}
	if (seg && sio_object_is_lost(seg))
		rc = sio_object_fail_lost(seg, &err);
	sio_object_put(seg);
	sio_api_leave(error, rc, &err);
}

void SCIPrepareRemoteSegmentForDMA(sci_dma_channel_t channel, sci_remote_segment_t segment,
				   unsigned int flags, sci_error_t *error)
{
	check_segment(channel, segment, SIO_REMOTE_SEGMENT, flags, error);
}

void SCIUnprepareLocalSegmentForDMA(sci_dma_channel_t channel, sci_local_segment_t segment,
				    unsigned int flags, sci_error_t *error)
{
	check_segment(channel, segment, SIO_LOCAL_SEGMENT, flags, error);
}

void SCIUnprepareRemoteSegmentForDMA(sci_dma_channel_t channel, sci_remote_segment_t segment,
				     unsigned int flags, sci_error_t *error)
{
	check_segment(channel, segment, SIO_REMOTE_SEGMENT, flags, error);
}
