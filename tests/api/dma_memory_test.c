/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA between memory of the program, of any kind, and a remote segment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dma.h"

static sci_error_t start(struct dma *d, void *memory, size_t size, size_t to, unsigned flags)
{
	sci_error_t error;

	SCIStartDmaTransferMem(d->queue, memory, d->remote, size, to, NULL, NULL, flags, &error);
	return error;
}

static sci_dma_queue_state_t wait_for(struct dma *d)
{
	sci_error_t error;
	sci_dma_queue_state_t state = SCIWaitForDMAQueue(d->queue, SCI_INFINITE_TIMEOUT, 0, &error);

	CHECK_OK(error);
	return state;
}

static int copies(void *arg)
{
	const struct dma_place *place = arg;
	sci_desc_t sd = api_begin();
	uint8_t *heap = malloc(DMA_BYTES), stack[5000], data[] = "of the program";
	struct dma d;

	dma_make(&d, sd, place->peer, DMA_READY);
	/* From the stack: what is sent may be changed at once. */
	for (unsigned i = 0; i < sizeof(stack); i++)
		stack[i] = (uint8_t)(i * 3 + 1);
	CHECK_OK(start(&d, stack + 1, 4098, 7, 0));
	memset(stack, 0, sizeof(stack));
	CHECK(wait_for(&d) == SCI_DMAQUEUE_DONE);
	for (unsigned i = 0; i < 4098; i++)
		CHECK(get8(d.peer + 7 + i) == (uint8_t)((i + 1) * 3 + 1));
	CHECK(get8(d.peer + 6) == 0 && get8(d.peer + 7 + 4098) == 0);
	/* And back, the call waiting by itself. */
	CHECK_OK(start(&d, stack + 3, 4098, 7, SCI_FLAG_DMA_READ | SCI_FLAG_DMA_WAIT));
	CHECK(same_bytes(stack + 3, d.peer + 7, 4098) && !stack[2] && !stack[3 + 4098]);
	/* From the heap, as large as the segment: the queue's memory grows. */
	for (unsigned i = 0; i < DMA_BYTES; i++)
		heap[i] = (uint8_t)(i * 5 + i / 4097);
	CHECK_OK(start(&d, heap, DMA_BYTES, 0,
		       SCI_FLAG_DMA_GLOBAL | SCI_FLAG_DMA_SYSDMA | SCI_FLAG_DMA_ADAPTER));
	CHECK(wait_for(&d) == SCI_DMAQUEUE_DONE);
	CHECK(same_bytes(d.peer, heap, DMA_BYTES));
	memset(heap, 0, DMA_BYTES);
	CHECK_OK(start(&d, heap, DMA_BYTES, 0, SCI_FLAG_DMA_READ));
	while (SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_POSTED)
		sched_yield();
	CHECK(same_bytes(d.peer, heap, DMA_BYTES));
	/* Turns with transfers of segments, whose memory is not touched by it. */
	put_bytes(d.memory, "of the segment", sizeof(data));
	for (unsigned i = 0; i < 100; i++) {
		CHECK_OK(start(&d, data, sizeof(data), 64, 0));
		CHECK(wait_for(&d) == SCI_DMAQUEUE_DONE);
		CHECK(same_bytes(d.peer + 64, "of the program", sizeof(data)));
		CHECK_OK(dma_start(&d, 0, sizeof(data), 64, SCI_FLAG_DMA_WAIT));
		CHECK(same_bytes(d.peer + 64, "of the segment", sizeof(data)));
	}
	CHECK(memcmp(data, "of the program", sizeof(data)) == 0);
	free(heap);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void memory_of_any_kind(void **state)
{
	static struct dma_place places[] = {{4, 8}, {12, 4}, {8, 8}};

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

/* ---- callbacks and aborts ---- */

struct reading {
	struct dma *d;
	uint8_t memory[256];
	unsigned rounds;
};

static sci_callback_action_t again(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	struct reading *r = arg;
	sci_error_t error;

	CHECK_OK(status);
	CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_DONE);
	CHECK(same_bytes(r->memory, r->d->peer, sizeof(r->memory)));
	if (++r->rounds < 100) {
		put8(r->d->store + r->rounds, (uint8_t)(get8(r->d->store + r->rounds) + 1));
		SCIStartDmaTransferMem(queue, r->memory, r->d->remote, sizeof(r->memory), 0, again,
				       r, SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_READ, &error);
		CHECK_OK(error);
	} else {
		step_done(1);
	}
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t counts(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	(void)queue;
	CHECK_OK(status);
	__atomic_add_fetch((unsigned *)arg, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CONTINUE;
}

/*
 * An abort that comes in time leaves the program's memory alone, and nobody is called; a late one
 * finds it all there.
 */
static void abort_reads(struct dma *d)
{
	uint8_t *heap = malloc(DMA_BYTES);
	unsigned called = 0;
	sci_error_t error;

	put_all(d->store, 0x77, DMA_BYTES);
	for (unsigned i = 0; i < 20; i++) {
		sci_dma_queue_state_t state;
		unsigned before = __atomic_load_n(&called, __ATOMIC_SEQ_CST);

		memset(heap, 0x11, DMA_BYTES);
		SCIStartDmaTransferMem(d->queue, heap, d->remote, DMA_BYTES, 0, counts, &called,
				       SCI_FLAG_DMA_READ | (i % 2 ? SCI_FLAG_USE_CALLBACK : 0),
				       &error);
		CHECK_OK(error);
		SCIAbortDMAQueue(d->queue, 0, &error);
		CHECK_OK(error);
		state = SCIDMAQueueState(d->queue);
		CHECK(state == SCI_DMAQUEUE_ABORTED || state == SCI_DMAQUEUE_DONE);
		CHECK(__atomic_load_n(&called, __ATOMIC_SEQ_CST) == before ||
		      (i % 2 && state == SCI_DMAQUEUE_DONE));
		for (unsigned k = 0; k < DMA_BYTES; k++)
			CHECK(heap[k] == (state == SCI_DMAQUEUE_DONE ? 0x77 : 0x11));
	}
	free(heap);
}

static int is_called(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_error_t error;
	struct dma d;
	struct reading r = {.d = &d};

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	SCIStartDmaTransferMem(d.queue, r.memory, d.remote, sizeof(r.memory), 0, again, &r,
			       SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_READ, &error);
	CHECK_OK(error);
	step_await(1);
	abort_reads(&d);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void callbacks_find_it_in_place(void **state)
{
	dma_pair(state, is_called);
}

/* ---- errors ---- */

/* Its other end goes away under it: what it brought until then is nobody's. */
static int pulls(void *arg)
{
	sci_desc_t sd = api_begin();
	uint8_t *heap = malloc(DMA_BYTES);
	sci_dma_queue_state_t last;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	put_all(d.store, 0x77, DMA_BYTES);
	step_done(1);
	do {
		memset(heap, 0x11, DMA_BYTES);
		error = start(&d, heap, DMA_BYTES, 0, SCI_FLAG_DMA_READ);
		if (error == SCI_ERR_SEGMENT_NOT_CONNECTED)
			break;
		CHECK_OK(error);
		last = wait_for(&d);
		for (unsigned k = 0; k < DMA_BYTES; k++)
			CHECK(heap[k] == (last == SCI_DMAQUEUE_DONE ? 0x77 : 0x11));
	} while (last == SCI_DMAQUEUE_DONE);
	free(heap);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void a_pull_that_fails_brings_nothing(void **state)
{
	pid_t peer, puller;

	cluster_needs(NEEDS_ENGINE);
	for (unsigned i = 0; i < 4; i++) {
		steps_reset();
		peer = cluster_fork(*state, 8, dma_serves, NULL);
		puller = cluster_fork(*state, 4, pulls, NULL);
		step_await(1);
		usleep(100 * i); /* nothing is awaited: another moment of the pulling each time */
		kill(peer, SIGKILL);
		assert_int_equal(cluster_wait(peer), 128 + SIGKILL);
		assert_int_equal(cluster_wait(puller), 0);
	}
}

static int errs(void *arg)
{
	sci_remote_segment_t gone;
	sci_desc_t sd = api_begin();
	uint8_t memory[64] = {0};
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	CHECK_IS(start(&d, NULL, 64, 0, 0), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(start(&d, memory, 0, 0, 0), SCI_ERR_SIZE_ALIGNMENT);
	CHECK_IS(start(&d, memory, 64, DMA_BYTES - 63, 0), SCI_ERR_OUT_OF_RANGE);
	CHECK_IS(start(&d, memory, SIZE_MAX, 64, 0), SCI_ERR_OUT_OF_RANGE);
	CHECK_IS(start(&d, memory, 64, 0, 0x10000), SCI_ERR_ILLEGAL_FLAG);
	CHECK_IS(start(&d, memory, 64, 0, SCI_FLAG_USE_CALLBACK), SCI_ERR_ILLEGAL_PARAMETER);
	SCIStartDmaTransferMem(NULL, memory, d.remote, 64, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIStartDmaTransferMem(d.queue, memory, NULL, 64, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIConnectSegment(sd, &gone, 8, DMA_SEGMENT, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(gone, 0, &error);
	CHECK_OK(error);
	SCIStartDmaTransferMem(d.queue, memory, gone, 64, 0, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_IDLE);
	dma_start_long(&d, NULL, NULL);
	CHECK_IS(start(&d, memory, 64, 0, 0), SCI_ERR_ILLEGAL_OPERATION);
	SCIAbortDMAQueue(d.queue, 0, &error);
	CHECK_OK(error);
	SCIResetDMAQueue(d.queue, 0, &error);
	CHECK_OK(error);
	/* What was enqueued is not thrown away. */
	CHECK(SCIEnqueueDMATransfer(d.queue, d.local, d.remote, 0, 0, 64, 0, &error) ==
	      SCI_DMAQUEUE_GATHER);
	CHECK_IS(start(&d, memory, 64, 0, SCI_FLAG_BROADCAST), SCI_ERR_ILLEGAL_OPERATION);
	SCIAbortDMAQueue(d.queue, 0, &error);
	CHECK_OK(error);
	CHECK_OK(start(&d, memory, 64, 0, SCI_FLAG_DMA_WAIT));
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void errors_are_told(void **state)
{
	dma_pair(state, errs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(memory_of_any_kind),
		API_TEST(callbacks_find_it_in_place),
		API_TEST(a_pull_that_fails_brings_nothing),
		API_TEST(errors_are_told),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
