/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCIStartDmaTransferMem(). An engine reaches segments, while memory of the program lies in pieces
 * and may be moved. So the bytes go through a segment of the queue, as large as the largest
 * transfer yet: it is filled before a push is posted, and copied to the program's memory when a
 * pull is over, before the queue leaves POSTED (over() in queue.c).
 */
#include <errno.h>

#include "core/types.h"
#include "sisci/dma/queue.h"
#include "smartio/io.h"
#include "smartio/uapi.h"

#define LEAST (64u << 10)    /* bytes, so that small transfers do not ask again and again */
#define FIRST_ID 0xffff0000u /* the search for an id: where programs have none */

static int map_through(struct sio_dma_queue *q, struct sio_err *err)
{
	struct sio_world *w = q->o.lib->world;
	size_t bytes = (size_t)q->through->bytes;
	void *at = NULL;
	int rc = w->reserve(w, NULL, false, bytes, &at);

	if (rc == 0) {
		rc = w->map(w, at, bytes, SIO_PROT_READ | SIO_PROT_WRITE, q->through->fd,
			    q->through->fd_offset);
		if (rc < 0)
			w->unmap(w, at, bytes);
	}
	if (rc < 0)
		return sio_fail_mapping(q->o.lib, bytes, err);
	q->through_at = at;
	q->through_bytes = bytes;
	return 0;
}

void sio_dma_through_end(struct sio_dma_queue *q)
{
	struct sio_world *w = q->o.lib->world;

	if (q->through_at)
		w->unmap(w, q->through_at, q->through_bytes);
	q->through_at = NULL;
	q->through_bytes = 0;
	if (!q->through)
		return;
	sio_object_leave(&q->through->o, SIO_MSG_SEG_REMOVE, NULL);
	sio_object_end(&q->through->o);
	q->through = NULL;
}

static int prepare(struct sio_dma_queue *q, struct sio_err *err)
{
	struct sio_msg_seg_adapter req = {.handle = sio_to_le32(q->through->o.id),
					  .adapter = sio_to_le32(q->adapter)};
	struct sio_msg rep;

	return sio_ask(q->o.lib, SIO_MSG_SEG_PREPARE, &req, sizeof(req), &rep, sizeof(rep), err);
}

/* By the thread that is starting: memory of the queue for @size bytes. */
static int make_room(struct sio_dma_queue *q, size_t size, struct sio_err *err)
{
	const unsigned flags = SCI_FLAG_PRIVATE | SCI_FLAG_AUTO_ID;
	struct sio_local_segment *seg;
	int rc;

	if (q->through_bytes >= size)
		return 0;
	sio_dma_through_end(q);
	seg = sio_local_segment_new(FIRST_ID, NULL, NULL, flags, err);
	if (!seg)
		return err->code;
	rc = sio_local_segment_create(q->o.lib, seg, NULL, size < LEAST ? LEAST : size, flags, err);
	if (rc)
		return rc;
	q->through = seg;
	rc = prepare(q, err);
	if (!rc)
		rc = map_through(q, err);
	if (rc)
		sio_dma_through_end(q);
	return rc;
}

int sio_dma_start_memory(struct sio_dma_queue *q, void *memory, struct sio_dma_copy *copy,
			 struct sio_dma_how *how, struct sio_err *err)
{
	int rc = sio_dma_check_remote(copy, err);

	if (!rc)
		rc = sio_dma_begin(q, 1, false, err);
	if (rc)
		return rc;
	rc = make_room(q, (size_t)copy->size, err);
	if (rc) {
		sio_dma_unbegin(q);
		return rc;
	}
	if (copy->read) {
		how->out = memory;
		how->out_bytes = (size_t)copy->size;
	} else {
		sio_copy_to(q->through_at, memory, (size_t)copy->size);
	}
	copy->local = q->through;
	return sio_dma_post_begun(q, copy, 1, how, err);
}

static int check(const void *memory, size_t size, sci_cb_dma_t callback, unsigned flags,
		 struct sio_err *err)
{
	int rc = sio_check_flags(flags, SIO_DMA_START_SERVED, 0, err);

	if (!rc && flags & SCI_FLAG_USE_CALLBACK)
		rc = sio_check_pointer((const void *)(uintptr_t)callback, "callback", err);
	if (!rc)
		rc = sio_check_pointer(memory, "localAddress", err);
	if (!rc && size == 0)
		rc = sio_refuse(err, SCI_ERR_SIZE_ALIGNMENT, "size 0; at least 1 byte is needed");
	return rc;
}

void SCIStartDmaTransferMem(sci_dma_queue_t dq, void *localAddress,
			    sci_remote_segment_t remoteSegment, size_t size, size_t remoteOffset,
			    sci_cb_dma_t callback, void *callbackArg, unsigned int flags,
			    sci_error_t *error)
{
	struct sio_dma_copy copy = {
		.remote_offset = remoteOffset, .size = size, .read = flags & SCI_FLAG_DMA_READ};
	struct sio_dma_how how = {.callback = flags & SCI_FLAG_USE_CALLBACK ? callback : NULL,
				  .arg = callbackArg,
				  .wait = flags & SCI_FLAG_DMA_WAIT};
	struct sio_dma_queue *q = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? check(localAddress, size, callback, flags, &err) : err.code;

	if (!rc) {
		q = sio_dma_get(lib, dq, &err);
		if (q)
			copy.remote = sio_object_get(lib, remoteSegment, SIO_REMOTE_SEGMENT, &err);
		rc = copy.remote ? sio_dma_start_memory(q, localAddress, &copy, &how, &err)
				 : err.code;
	}
	if (copy.remote)
		sio_object_put(&copy.remote->o);
	if (q)
		sio_object_put(&q->o);
	sio_api_leave(error, rc, &err);
}
