/* SPDX-License-Identifier: BSD-2-Clause */
/* Transfers that are under way: what they keep, who waits, and who ends them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>

#include <cmocka.h>

#include "dma.h"

static sci_callback_action_t never(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	(void)queue;
	(void)status;
	__atomic_store_n((unsigned *)arg, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CONTINUE;
}

/* What is asked next finds a transfer that has just begun, however slow this machine was before. */
static void post_anew(struct dma *d)
{
	sci_error_t error;

	SCIAbortDMAQueue(d->queue, 0, &error);
	CHECK_OK(error);
	dma_start_long(d, NULL, NULL);
}

static int is_busy(void *arg)
{
	sci_desc_t sd = api_begin();
	unsigned called = 0;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, 0);
	SCIAbortDMAQueue(d.queue, 0, &error);
	CHECK_OK(error);
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_IDLE);
	dma_start_long(&d, NULL, NULL);
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_POSTED);
	CHECK_IS(dma_start(&d, 0, 1, 0, 0), SCI_ERR_ILLEGAL_OPERATION);
	post_anew(&d);
	CHECK(dma_wait(&d, 0, &error) == SCI_DMAQUEUE_POSTED);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	post_anew(&d);
	CHECK(dma_wait(&d, 5, &error) == SCI_DMAQUEUE_POSTED);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	post_anew(&d);
	SCIRemoveDMAQueue(d.queue, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	post_anew(&d);
	SCIClose(sd, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIUnmapSegment(d.local_map, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(d.remote_map, 0, &error);
	CHECK_OK(error);
	post_anew(&d);
	SCIRemoveSegment(d.local, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	post_anew(&d);
	SCIDisconnectSegment(d.remote, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	post_anew(&d);
	SCIAbortDMAQueue(d.queue, 0, &error);
	CHECK_OK(error);
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_ABORTED);
	CHECK(dma_wait(&d, 0, &error) == SCI_DMAQUEUE_ABORTED);
	CHECK_OK(error);
	/* With a callback nobody else waits, and after the abort nobody is called. */
	dma_start_long(&d, never, &called);
	CHECK(dma_wait(&d, 0, &error) == SCI_DMAQUEUE_POSTED);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIAbortDMAQueue(d.queue, 0, &error);
	CHECK_OK(error);
	CHECK_OK(dma_start(&d, 0, 4096, 0, SCI_FLAG_DMA_WAIT));
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_DONE);
	CHECK(called == 0);
	SCIAbortDMAQueue(d.queue, 0, &error);
	CHECK_OK(error);
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_DONE);
	/* What was posted and is over keeps nothing, although nobody looked. */
	CHECK_OK(dma_start(&d, 0, 4096, 0, 0));
	do {
		SCIDisconnectSegment(d.remote, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
	SCIRemoveSegment(d.local, 0, &error);
	CHECK_OK(error);
	SCIRemoveDMAQueue(d.queue, 0, &error);
	CHECK_OK(error);
	step_done(DMA_OVER);
	api_end(sd);
	return 0;
}

static void a_posted_queue_keeps_what_it_uses(void **state)
{
	dma_pair(state, is_busy);
}

#define TOO_LATE 8 /* once in some hundred runs, on a machine that does much else */

struct waiter {
	struct dma *d;
	sci_dma_queue_state_t state;
};

static void *waits_long(void *arg)
{
	struct waiter *w = arg;
	sci_error_t error;

	step_done(5);
	w->state = dma_wait(w->d, SCI_INFINITE_TIMEOUT, &error);
	CHECK_OK(error);
	return NULL;
}

/* How a transfer ended that was aborted while another thread waited for it. */
static sci_dma_queue_state_t abort_and_wait(struct dma *d)
{
	struct waiter w = {.d = d};
	pthread_t waiter;
	sci_error_t error;

	dma_start_long(d, NULL, NULL);
	CHECK(pthread_create(&waiter, NULL, waits_long, &w) == 0);
	step_await(5);
	SCIAbortDMAQueue(d->queue, 0, &error);
	CHECK_OK(error);
	CHECK(pthread_join(waiter, NULL) == 0);
	CHECK(SCIDMAQueueState(d->queue) == w.state);
	return w.state;
}

/* How a transfer ended whose segment was removed by force. */
static sci_dma_queue_state_t force_and_wait(struct dma *d)
{
	sci_dma_queue_state_t state;
	sci_error_t error;

	SCIUnmapSegment(d->local_map, 0, &error);
	CHECK_OK(error);
	dma_start_long(d, NULL, NULL);
	SCIRemoveSegment(d->local, SCI_FLAG_FORCE_REMOVE, &error);
	CHECK_OK(error);
	state = dma_wait(d, SCI_INFINITE_TIMEOUT, &error);
	CHECK_OK(error);
	return state;
}

static int is_forced(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_dma_queue_state_t state;
	unsigned late = 0;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, 0);
	/* An abort ends the waits of others. One that came too late is no test of it: again. */
	while ((state = abort_and_wait(&d)) != SCI_DMAQUEUE_ABORTED)
		CHECK(state == SCI_DMAQUEUE_DONE && ++late < TOO_LATE);
	/* The segment goes although it is used: the transfer fails. */
	while ((state = force_and_wait(&d)) != SCI_DMAQUEUE_ERROR) {
		CHECK(state == SCI_DMAQUEUE_DONE && ++late < TOO_LATE);
		dma_make_local(&d, sd);
	}
	/* A queue that failed can be used again. */
	dma_make_local(&d, sd);
	CHECK_OK(dma_start(&d, 0, 4096, 0, SCI_FLAG_DMA_WAIT));
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void waits_end_and_force_wins(void **state)
{
	dma_pair(state, is_forced);
}

/* Ends with everything open and a callback to come. */
static int terminates(void *arg)
{
	sci_desc_t sd = api_begin();
	unsigned called = 0;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, 0);
	dma_start_long(&d, never, &called);
	SCITerminate();
	CHECK(called == 0);
	step_done(DMA_OVER);
	return 0;
}

static void terminating_ends_transfers(void **state)
{
	dma_pair(state, terminates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(a_posted_queue_keeps_what_it_uses),
		API_TEST(waits_end_and_force_wins),
		API_TEST(terminating_ends_transfers),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
