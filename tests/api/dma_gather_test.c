/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA queues as API 1.x has them: enqueue, post, wait, reset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dma.h"

#define ENTRIES 4u
#define PIECE 1000u

static sci_dma_queue_t small_queue(sci_desc_t sd)
{
	sci_dma_queue_t q = NULL;
	sci_error_t error;

	SCICreateDMAQueue(sd, &q, 0, ENTRIES, 0, &error);
	CHECK_OK(error);
	return q;
}

static void remove_queue(sci_dma_queue_t q)
{
	sci_error_t error;

	SCIRemoveDMAQueue(q, 0, &error);
	CHECK_OK(error);
}

static sci_error_t enqueue(struct dma *d, sci_dma_queue_t q, unsigned from, unsigned to,
			   unsigned flags)
{
	sci_error_t error;

	SCIEnqueueDMATransfer(q, d->local, d->remote, from, to, PIECE, flags, &error);
	return error;
}

static sci_error_t post(sci_dma_queue_t q)
{
	sci_error_t error;

	SCIPostDMAQueue(q, NULL, NULL, 0, &error);
	return error;
}

static sci_error_t reset(sci_dma_queue_t q)
{
	sci_error_t error;

	SCIResetDMAQueue(q, 0, &error);
	return error;
}

static void finish(sci_dma_queue_t q)
{
	sci_error_t error;

	CHECK(SCIWaitForDMAQueue(q, SCI_INFINITE_TIMEOUT, 0, &error) == SCI_DMAQUEUE_DONE);
	CHECK_OK(error);
}

/* ---- the round of a 1.x program ---- */

static int goes_round(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_dma_queue_t q;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	q = small_queue(sd);
	for (unsigned round = 0; round < 3; round++) {
		CHECK(SCIDMAQueueState(q) == SCI_DMAQUEUE_IDLE);
		CHECK_IS(post(q), SCI_ERR_ILLEGAL_OPERATION);
		put_all(d.memory, (uint8_t)(round + 1), 2 * PIECE);
		put_all(d.memory + 2 * PIECE, 0, PIECE);
		CHECK(SCIEnqueueDMATransfer(q, d.local, d.remote, 0, 7, PIECE, 0, &error) ==
		      SCI_DMAQUEUE_GATHER);
		CHECK_OK(error);
		CHECK_OK(enqueue(&d, q, PIECE, 7 + PIECE, 0));
		/* In order: what was pushed just now is pulled into another place. */
		CHECK_OK(enqueue(&d, q, 2 * PIECE, 7, SCI_FLAG_DMA_READ));
		SCIStartDmaTransfer(q, d.local, d.remote, 0, 1, 0, NULL, NULL, 0, &error);
		CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
		SCIWaitForDMAQueue(q, 0, 0, &error);
		CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
		CHECK_OK(post(q));
		finish(q);
		CHECK(same_bytes(d.peer + 7, d.memory, 2 * PIECE));
		CHECK(same_bytes(d.memory + 2 * PIECE, d.memory, PIECE));
		CHECK_IS(enqueue(&d, q, 0, 0, 0), SCI_ERR_ILLEGAL_OPERATION);
		CHECK_OK(reset(q));
	}
	/* All in one call. */
	put_all(d.memory, 9, PIECE);
	CHECK(SCIEnqueueDMATransfer(q, d.local, d.remote, 0, 1, PIECE,
				    SCI_FLAG_DMA_POST | SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_RESET,
				    &error) == SCI_DMAQUEUE_IDLE);
	CHECK_OK(error);
	CHECK(get8(d.peer + 1) == 9 && get8(d.peer + PIECE) == 9);
	CHECK(SCIEnqueueDMATransfer(q, d.local, d.remote, 0, 1, PIECE,
				    SCI_FLAG_DMA_POST | SCI_FLAG_DMA_WAIT,
				    &error) == SCI_DMAQUEUE_DONE);
	CHECK_OK(error);
	/* The calls of today and those of then, on one queue. */
	SCIStartDmaTransfer(q, d.local, d.remote, 0, 1, 0, NULL, NULL, SCI_FLAG_DMA_WAIT, &error);
	CHECK_OK(error);
	CHECK_OK(reset(q));
	remove_queue(q);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void enqueue_post_wait_reset(void **state)
{
	dma_pair(state, goes_round);
}

/* ---- what keeps what, and what is refused ---- */

static int holds(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t other = NULL;
	sci_dma_queue_t q;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	q = small_queue(sd);
	SCICreateSegment(sd, &other, 5, PIECE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIEnqueueDMATransfer(q, other, d.remote, 0, 0, PIECE, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_PREPARED);
	SCIPrepareSegment(other, 0, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < ENTRIES; i++) {
		SCIEnqueueDMATransfer(q, i ? d.local : other, d.remote, 0, 0, PIECE, 0, &error);
		CHECK_OK(error);
	}
	CHECK_IS(enqueue(&d, q, 0, 0, 0), SCI_ERR_MAX_ENTRIES);
	/* Nothing of it may go, until the queue forgets it: by a reset, an abort, its own end. */
	SCIRemoveSegment(other, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	CHECK_OK(reset(q));
	CHECK_OK(enqueue(&d, q, 0, 0, 0));
	SCIAbortDMAQueue(q, 0, &error);
	CHECK_OK(error);
	CHECK(SCIDMAQueueState(q) == SCI_DMAQUEUE_ABORTED);
	CHECK_OK(reset(q));
	SCIEnqueueDMATransfer(q, other, d.remote, 0, 0, PIECE, 0, &error);
	CHECK_OK(error);
	remove_queue(q);
	SCIRemoveSegment(other, 0, &error);
	CHECK_OK(error);
	CHECK_IS(enqueue(&d, q, 0, 0, 0), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(post(q), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(reset(q), SCI_ERR_ILLEGAL_PARAMETER);
	q = small_queue(sd);
	CHECK_IS(enqueue(&d, q, DMA_BYTES - PIECE + 1, 0, 0), SCI_ERR_OUT_OF_RANGE);
	CHECK_IS(enqueue(&d, q, 0, DMA_BYTES - PIECE + 1, 0), SCI_ERR_OUT_OF_RANGE);
	CHECK_IS(enqueue(&d, q, 0, 0, SCI_FLAG_DMA_WAIT), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(enqueue(&d, q, 0, 0, SCI_FLAG_DMA_POST | SCI_FLAG_DMA_RESET),
		 SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(enqueue(&d, q, 0, 0, 0x8000), SCI_ERR_ILLEGAL_FLAG);
	SCIEnqueueDMATransfer(q, d.local, d.remote, 0, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_SIZE_ALIGNMENT);
	SCIPostDMAQueue(q, NULL, NULL, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(SCIDMAQueueState(q) == SCI_DMAQUEUE_IDLE);
	/* While it runs, nothing is added and nothing forgotten. */
	dma_start_long(&d, NULL, NULL);
	CHECK_IS(enqueue(&d, d.queue, 0, 0, 0), SCI_ERR_ILLEGAL_OPERATION);
	CHECK_IS(reset(d.queue), SCI_ERR_ILLEGAL_OPERATION);
	SCIAbortDMAQueue(d.queue, 0, &error);
	CHECK_OK(error);
	remove_queue(q);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void what_is_enqueued_stays(void **state)
{
	dma_pair(state, holds);
}

/* As many as the engine's ring has room for, at once. */
static int fills_the_ring(void *arg)
{
	const unsigned most = 1024;
	sci_desc_t sd = api_begin();
	sci_dma_queue_t q = NULL;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	SCICreateDMAQueue(sd, &q, 0, 2 * most, 0, &error);
	CHECK_OK(error);
	for (unsigned round = 1; round < 4; round++) {
		put_all(d.memory, (uint8_t)round, most);
		for (unsigned i = 0; i < most; i++) {
			SCIEnqueueDMATransfer(q, d.local, d.remote, i, 2 * i, 1, 0, &error);
			CHECK_OK(error);
		}
		SCIEnqueueDMATransfer(q, d.local, d.remote, 0, 0, 1, 0, &error);
		CHECK_IS(error, SCI_ERR_MAX_ENTRIES);
		CHECK_OK(post(q));
		finish(q);
		for (unsigned i = 0; i < most; i++)
			CHECK(get8(d.peer + 2 * i) == round && get8(d.peer + 2 * i + 1) == 0);
		CHECK_OK(reset(q));
	}
	remove_queue(q);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void a_full_ring_is_one_transfer(void **state)
{
	dma_pair(state, fills_the_ring);
}

/* ---- many segments in one transfer ---- */

#define MANY 256u /* copies, of which none is over when the test looks */

static sci_remote_segment_t another(sci_desc_t sd)
{
	sci_remote_segment_t remote = NULL;
	sci_error_t error;

	SCIConnectSegment(sd, &remote, 8, DMA_SEGMENT, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	return remote;
}

static int keeps_each(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_dma_queue_t q = NULL;
	sci_remote_segment_t last;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	last = another(sd);
	SCICreateDMAQueue(sd, &q, 0, MANY, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < MANY; i++) {
		SCIEnqueueDMATransfer(q, d.local, i < MANY - 1 ? d.remote : last, 0, 0, DMA_BYTES,
				      0, &error);
		CHECK_OK(error);
	}
	CHECK_OK(post(q));
	SCIDisconnectSegment(last, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIAbortDMAQueue(q, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(last, 0, &error);
	CHECK_OK(error);
	remove_queue(q);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void each_segment_of_a_transfer_is_kept(void **state)
{
	dma_pair(state, keeps_each);
}

/* One more than the engine has slots for; what is used first must not make room for the last. */
static int has_too_many(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t remote[MANY];
	sci_local_segment_t once = NULL;
	sci_dma_queue_t q = NULL;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	SCICreateSegment(sd, &once, 5, PIECE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(once, 0, 0, &error);
	CHECK_OK(error);
	SCICreateDMAQueue(sd, &q, 0, MANY, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < MANY; i++)
		remote[i] = another(sd);
	/* Both local segments and all remote ones but the last fit. */
	for (unsigned last = MANY - 2; last < MANY; last++) {
		put8(d.store, 7);
		for (unsigned i = 0; i < last; i++) {
			SCIEnqueueDMATransfer(q, i ? d.local : once, remote[i], 0, i * 8, 8, 0,
					      &error);
			CHECK_OK(error);
		}
		CHECK_IS(post(q), last == MANY - 2 ? SCI_ERR_OK : SCI_ERR_HW_NOSPC);
		if (last == MANY - 2)
			finish(q);
		CHECK(get8(d.peer) == (last == MANY - 2 ? 0 : 7));
		CHECK_OK(reset(q));
	}
	remove_queue(q);
	for (unsigned i = 0; i < MANY; i++) {
		SCIDisconnectSegment(remote[i], 0, &error);
		CHECK_OK(error);
	}
	SCIRemoveSegment(once, 0, &error);
	CHECK_OK(error);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void a_transfer_has_its_slots_at_once(void **state)
{
	cluster_needs(NEEDS_ENGINE);
	cluster_needs(NEEDS_SPACE);
	dma_pair(state, has_too_many);
}

/* ---- callbacks ---- */

static sci_callback_action_t told(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_DONE);
	CHECK_OK(status);
	CHECK(*(int *)arg == 77);
	/* From inside: ready for the next round. */
	CHECK_OK(reset(queue));
	step_done(1);
	return SCI_CALLBACK_CONTINUE;
}

static int is_told(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_dma_queue_t q;
	sci_error_t error;
	struct dma d;
	int value = 77;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	q = small_queue(sd);
	for (unsigned round = 0; round < 10; round++) {
		CHECK_OK(enqueue(&d, q, 0, 0, 0));
		CHECK_OK(enqueue(&d, q, PIECE, PIECE, 0));
		SCIPostDMAQueue(q, told, &value, SCI_FLAG_USE_CALLBACK, &error);
		CHECK_OK(error);
		step_await(1);
		CHECK(SCIDMAQueueState(q) == SCI_DMAQUEUE_IDLE);
	}
	remove_queue(q);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void a_posted_queue_calls_back(void **state)
{
	dma_pair(state, is_told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(enqueue_post_wait_reset),
		API_TEST(what_is_enqueued_stays),
		API_TEST(a_full_ring_is_one_transfer),
		API_TEST(each_segment_of_a_transfer_is_kept),
		API_TEST(a_transfer_has_its_slots_at_once),
		API_TEST(a_posted_queue_calls_back),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
