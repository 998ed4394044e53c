/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA queues between hosts: push, pull, states, callbacks, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <cmocka.h>

#include "dma.h"

/* ---- push and pull, with and without the link between ---- */

static int copies(void *arg)
{
	const struct dma_place *place = arg;
	sci_desc_t sd = api_begin();
	sci_error_t error;
	struct dma d;

	dma_make(&d, sd, place->peer, 0);
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_IDLE);
	CHECK(dma_wait(&d, 0, &error) == SCI_DMAQUEUE_IDLE);
	CHECK_OK(error);
	dma_fill(&d, 13, 4099);
	/* Neither words nor pages. */
	CHECK_OK(dma_start(&d, 3, DMA_BYTES - 8, 5, 0));
	CHECK(dma_wait(&d, SCI_INFINITE_TIMEOUT, &error) == SCI_DMAQUEUE_DONE);
	CHECK_OK(error);
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_DONE);
	CHECK(get8(d.peer + 4) == 0 && get8(d.peer + DMA_BYTES - 3) == 0);
	CHECK(same_bytes(d.peer + 5, d.memory + 3, DMA_BYTES - 8));
	/* Back, into another place; the call waits by itself, and a wait after it returns at once.
	 */
	put_all(d.memory, 0, DMA_BYTES);
	CHECK_OK(dma_start(&d, 100, 70000, 5, SCI_FLAG_DMA_READ | SCI_FLAG_DMA_WAIT));
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_DONE);
	CHECK(dma_wait(&d, 0, &error) == SCI_DMAQUEUE_DONE);
	CHECK_OK(error);
	CHECK(same_bytes(d.memory + 100, d.peer + 5, 70000));
	CHECK(get8(d.memory + 99) == 0 && get8(d.memory + 70100) == 0);
	/* All ways to say which engine; a state that is polled gets there, too. */
	CHECK_OK(dma_start(&d, 0, 1, 1,
			   SCI_FLAG_DMA_GLOBAL | SCI_FLAG_DMA_SYSDMA | SCI_FLAG_DMA_ADAPTER));
	while (SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_POSTED)
		sched_yield();
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_DONE);
	/* The same by this CPU: large copies go another way than small ones. */
	dma_fill(&d, 5, 777);
	SCIMemCpy(NULL, d.memory + 1, d.remote_map, 3, DMA_BYTES - 5, 0, &error);
	CHECK_OK(error);
	CHECK(same_bytes(d.peer + 3, d.memory + 1, DMA_BYTES - 5));
	SCIMemWrite(d.memory, d.store, DMA_BYTES, 0, &error);
	CHECK_OK(error);
	CHECK(same_bytes(d.peer, d.memory, DMA_BYTES));
	put_all(d.memory, 0, DMA_BYTES);
	SCIMemCpy(NULL, d.memory + 7, d.remote_map, 11, 600000, SCI_FLAG_BLOCK_READ, &error);
	CHECK_OK(error);
	CHECK(same_bytes(d.memory + 7, d.peer + 11, 600000));
	CHECK(get8(d.memory + 6) == 0 && get8(d.memory + 600007) == 0);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void data_arrives_either_way(void **state)
{
	static struct dma_place places[] = {{4, 8}, {8, 12}, {12, 4}, {4, 4}, {12, 12}};

	cluster_needs(NEEDS_ENGINE);
	cluster_needs(NEEDS_SPEED);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		pid_t peer;

		steps_reset();
		peer = cluster_fork(*state, places[i].peer, dma_serves, NULL);
		assert_int_equal(
			cluster_wait(cluster_fork(*state, places[i].own, copies, &places[i])), 0);
		assert_int_equal(cluster_wait(peer), 0);
	}
}

/* ---- callbacks ---- */

struct rounds {
	struct dma *d;
	unsigned done;	 /* atomic */
	unsigned wanted; /* it starts itself until then */
	pthread_t thread;
};

static sci_callback_action_t again(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	struct rounds *r = arg;
	unsigned wanted = r->wanted; /* who waits changes it when the last one is counted */
	sci_error_t error;

	CHECK_OK(status);
	CHECK(queue == r->d->queue);
	CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_DONE);
	CHECK(!pthread_equal(pthread_self(), r->thread));
	CHECK(same_bytes(r->d->peer, r->d->memory, 4096));
	if (__atomic_add_fetch(&r->done, 1, __ATOMIC_SEQ_CST) < wanted) {
		put8(r->d->memory + wanted, (uint8_t)(get8(r->d->memory + wanted) + 1));
		SCIStartDmaTransfer(queue, r->d->local, r->d->remote, 0, 4096, 0, again, r,
				    SCI_FLAG_USE_CALLBACK, &error);
		CHECK_OK(error);
	}
	return SCI_CALLBACK_CANCEL; /* each start brings its own */
}

/* May come when the queue was started again. */
static sci_callback_action_t counts(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	struct rounds *r = arg;

	CHECK_OK(status);
	CHECK(queue == r->d->queue);
	__atomic_add_fetch(&r->done, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CONTINUE;
}

static void start_called(struct rounds *r, unsigned wanted)
{
	sci_error_t error;

	r->done = 0;
	r->wanted = wanted;
	SCIStartDmaTransfer(r->d->queue, r->d->local, r->d->remote, 0, 4096, 0, again, r,
			    SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
}

static void await_called(struct rounds *r)
{
	while (__atomic_load_n(&r->done, __ATOMIC_SEQ_CST) < r->wanted)
		sched_yield();
}

static int is_called(void *arg)
{
	sci_desc_t sd = api_begin();
	struct rounds r = {.thread = pthread_self()};
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, 0);
	r.d = &d;
	put_all(d.memory, 0x3c, 4096);
	start_called(&r, 200); /* restarts in the callback */
	await_called(&r);
	for (unsigned i = 0; i < 200;
	     i++) { /* restarts by another thread as soon as it is called */
		start_called(&r, 1);
		await_called(&r);
	}
	/* Turns of transfers with and without a callback, with somebody who waits for both. */
	for (unsigned i = 0; i < 200; i++) {
		CHECK_OK(dma_start(&d, 0, 4096, 0, 0));
		CHECK(dma_wait(&d, SCI_INFINITE_TIMEOUT, &error) == SCI_DMAQUEUE_DONE);
		CHECK_OK(error);
		r.done = 0;
		r.wanted = 1;
		SCIStartDmaTransfer(d.queue, d.local, d.remote, 0, 4096, 0, counts, &r,
				    SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_WAIT, &error);
		CHECK_OK(error);
		CHECK_OK(dma_start(&d, 0, 4096, 0, SCI_FLAG_DMA_WAIT));
		await_called(&r);
	}
	/* A callback without the flag is nobody's. */
	SCIStartDmaTransfer(d.queue, d.local, d.remote, 0, 4096, 0, again, &r, SCI_FLAG_DMA_WAIT,
			    &error);
	CHECK_OK(error);
	CHECK(r.done == 1);
	SCIStartDmaTransfer(d.queue, d.local, d.remote, 0, 4096, 0, NULL, NULL,
			    SCI_FLAG_USE_CALLBACK, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void callbacks_may_do_anything(void **state)
{
	dma_pair(state, is_called);
}

/* ---- errors ---- */

static int makes_mistakes(void *arg)
{
	sci_dma_queue_t queue = NULL, gone;
	sci_desc_t sd = api_begin();
	sci_local_segment_t raw = NULL;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, 0);
	SCICreateDMAQueue(sd, NULL, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateDMAQueue(NULL, &queue, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateDMAQueue(sd, &queue, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateDMAQueue(sd, &queue, 1, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_ADAPTERNO);
	SCICreateDMAQueue(sd, &queue, DIS_MAX_NSCIS, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_ADAPTERNO);
	SCICreateDMAQueue(sd, &queue, 0, 1, SCI_FLAG_DMA_PHDMA, &error);
	CHECK_IS(error, SCI_ERR_FLAG_NOT_IMPLEMENTED);
	SCICreateDMAQueue(sd, &queue, 0, 1, SCI_FLAG_DMA_READ, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	CHECK(queue == NULL);
	SCICreateDMAQueue(sd, &gone, 0, 10, 0, &error);
	CHECK_OK(error);
	SCIRemoveDMAQueue(gone, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIRemoveDMAQueue(gone, 0, &error);
	CHECK_OK(error);
	SCIRemoveDMAQueue(gone, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(SCIDMAQueueState(gone) == SCI_DMAQUEUE_ERROR);
	SCIAbortDMAQueue(gone, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIAbortDMAQueue(d.queue, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIWaitForDMAQueue(NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIWaitForDMAQueue(d.queue, 0, 0x80000000, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIWaitForDMAQueue(d.queue, 0, SCI_FLAG_DMA_READ | SCI_FLAG_DMA_GLOBAL, &error);
	CHECK_OK(error);
	CHECK_IS(dma_start(&d, 0, 0, 0, 0), SCI_ERR_SIZE_ALIGNMENT);
	CHECK_IS(dma_start(&d, 1, DMA_BYTES, 0, 0), SCI_ERR_OUT_OF_RANGE);
	CHECK_IS(dma_start(&d, 0, DMA_BYTES, 1, 0), SCI_ERR_OUT_OF_RANGE);
	CHECK_IS(dma_start(&d, SIZE_MAX, 2, 0, 0), SCI_ERR_OUT_OF_RANGE);
	CHECK_IS(dma_start(&d, 0, 1, 0, SCI_FLAG_DMA_POST), SCI_ERR_ILLEGAL_FLAG);
	SCIStartDmaTransfer(gone, d.local, d.remote, 0, 1, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIStartDmaTransfer(d.queue, NULL, d.remote, 0, 1, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIStartDmaTransfer(d.queue, d.local, (sci_remote_segment_t)(void *)d.local, 0, 1, 0, NULL,
			    NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateSegment(sd, &raw, 77, 4096, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIStartDmaTransfer(d.queue, raw, d.remote, 0, 1, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_PREPARED);
	SCIRemoveSegment(raw, 0, &error);
	CHECK_OK(error);
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_IDLE);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void mistakes_get_their_errors(void **state)
{
	dma_pair(state, makes_mistakes);
}

/* More segments than the channel has slots: those used longest ago make room. */
#define SEGMENTS 140

static int uses_many_segments(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t local[SEGMENTS];
	sci_remote_segment_t remote[SEGMENTS];
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, 0);
	put_all(d.memory, 0, 4096);
	for (unsigned i = 0; i < SEGMENTS; i++) {
		SCICreateSegment(sd, &local[i], 1000 + i, 4096, NULL, NULL, 0, &error);
		CHECK_OK(error);
		SCIPrepareSegment(local[i], 0, 0, &error);
		CHECK_OK(error);
		SCIConnectSegment(sd, &remote[i], 8, DMA_SEGMENT, 0, NULL, NULL, 0, 0, &error);
		CHECK_OK(error);
	}
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < SEGMENTS; i++) {
			/* Out, in a round later than it was fetched, and back again. */
			put8(d.memory, (uint8_t)(i + round));
			CHECK_OK(dma_start(&d, 0, 8, 64 * i, SCI_FLAG_DMA_WAIT));
			SCIStartDmaTransfer(d.queue, local[i], remote[i], 0, 8, 64 * i, NULL, NULL,
					    SCI_FLAG_DMA_READ | SCI_FLAG_DMA_WAIT, &error);
			CHECK_OK(error);
			SCIStartDmaTransfer(d.queue, local[i], d.remote, 0, 8, 64 * i + 32, NULL,
					    NULL, SCI_FLAG_DMA_WAIT, &error);
			CHECK_OK(error);
			CHECK(get8(d.peer + 64 * i + 32) == (uint8_t)(i + round));
		}
	for (unsigned i = 0; i < SEGMENTS; i++) {
		SCIRemoveSegment(local[i], 0, &error);
		CHECK_OK(error);
		SCIDisconnectSegment(remote[i], 0, &error);
		CHECK_OK(error);
	}
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void slots_are_used_again(void **state)
{
	cluster_needs(NEEDS_ENGINE);
	cluster_needs(NEEDS_SPACE);
	dma_pair(state, uses_many_segments);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(data_arrives_either_way),
		API_TEST(callbacks_may_do_anything),
		API_TEST(mistakes_get_their_errors),
		API_TEST(slots_are_used_again),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
