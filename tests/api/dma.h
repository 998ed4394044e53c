/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of DMA queues share: a segment on a peer, one here, and a queue between them. */
#ifndef TESTS_API_DMA_H
#define TESTS_API_DMA_H

#include <stdint.h>

#include "../lib/mapped.h"
#include "topology.h"

#ifndef DMA_BYTES
#define DMA_BYTES (4u << 20)
#endif
#define DMA_SEGMENT 21u
#define DMA_READY 0 /* steps */
#define DMA_OVER 15

struct dma_place {
	unsigned own, peer;
};

struct dma {
	sci_local_segment_t local;
	sci_remote_segment_t remote;
	sci_dma_queue_t queue;
	sci_map_t local_map, remote_map;
	uint8_t *memory;	 /* of the local segment */
	const uint8_t *peer;	 /* what is there, as our CPU sees it */
	volatile uint8_t *store; /* the same, to be written */
};

static inline void dma_make_local(struct dma *d, sci_desc_t sd)
{
	sci_error_t error;

	SCICreateSegment(sd, &d->local, 300, DMA_BYTES, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
	CHECK_OK(error);
	SCIPrepareSegment(d->local, 0, SCI_FLAG_DMA_SOURCE_ONLY, &error);
	CHECK_OK(error);
	d->memory = SCIMapLocalSegment(d->local, &d->local_map, 0, DMA_BYTES, NULL, 0, &error);
	CHECK_OK(error);
}

/* Connected to the segment of dma_serves() on @peer. */
static inline void dma_make(struct dma *d, sci_desc_t sd, unsigned peer, unsigned step)
{
	sci_error_t error;

	step_await(step);
	dma_make_local(d, sd);
	SCIConnectSegment(sd, &d->remote, peer, DMA_SEGMENT, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCICreateDMAQueue(sd, &d->queue, 0, 1, 0, &error);
	CHECK_OK(error);
	/* To look at; DMA needs no map. */
	d->store = SCIMapRemoteSegment(d->remote, &d->remote_map, 0, DMA_BYTES, NULL, 0, &error);
	CHECK_OK(error);
	d->peer = (const uint8_t *)(uintptr_t)d->store;
}

/* Neighbours differ, and pages. */
static inline void dma_fill(struct dma *d, unsigned factor, unsigned divisor)
{
	uint8_t some[4096];

	for (unsigned done = 0; done < DMA_BYTES; done += sizeof(some)) {
		for (unsigned i = 0; i < sizeof(some); i++)
			some[i] = (uint8_t)((done + i) * factor + (done + i) / divisor);
		put_bytes(d->memory + done, some, sizeof(some));
	}
}

static inline void dma_end(struct dma *d)
{
	sci_error_t error;

	SCIUnmapSegment(d->local_map, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(d->remote_map, 0, &error);
	CHECK_OK(error);
	SCIRemoveDMAQueue(d->queue, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(d->remote, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(d->local, 0, &error);
	CHECK_OK(error);
	step_done(DMA_OVER);
}

static inline sci_error_t dma_start(struct dma *d, size_t from, size_t size, size_t to,
				    unsigned flags)
{
	sci_error_t error;

	SCIStartDmaTransfer(d->queue, d->local, d->remote, from, size, to, NULL, NULL, flags,
			    &error);
	return error;
}

static inline sci_dma_queue_state_t dma_wait(struct dma *d, unsigned timeout, sci_error_t *ret)
{
	return SCIWaitForDMAQueue(d->queue, timeout, 0, ret);
}

/* 256 times the segment: it is under way for longer than a test looks. */
static inline sci_error_t dma_try_long(struct dma *d, sci_cb_dma_t callback, void *arg)
{
	dis_dma_vec_t vec[DIS_DMA_MAX_VECLEN];
	sci_error_t error;

	for (unsigned i = 0; i < DIS_DMA_MAX_VECLEN; i++)
		vec[i] = (dis_dma_vec_t){.size = DMA_BYTES};
	SCIStartDmaTransferVec(d->queue, d->local, d->remote, DIS_DMA_MAX_VECLEN, vec, callback,
			       arg, callback ? SCI_FLAG_USE_CALLBACK : 0, &error);
	return error;
}

static inline void dma_start_long(struct dma *d, sci_cb_dma_t callback, void *arg)
{
	CHECK_OK(dma_try_long(d, callback, arg));
}

/* The peer: a segment until the other says that it is over. */
static inline int dma_serves(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &seg, DMA_SEGMENT, DMA_BYTES, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	step_done(DMA_READY);
	step_await(DMA_OVER);
	api_remove_segment(seg);
	api_end(sd);
	return 0;
}

/* @fn on node 4, with a peer on node 8. */
static inline void dma_pair(void **state, int (*fn)(void *arg))
{
	pid_t peer;

	cluster_needs(NEEDS_ENGINE);
	steps_reset();
	peer = cluster_fork(*state, 8, dma_serves, NULL);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, fn, NULL)), 0);
	assert_int_equal(cluster_wait(peer), 0);
}

#endif
