/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies from map to map that nobody waits for in the call: results, callbacks, aborts, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dma.h"

#define MANY 3000u /* of DMA_BYTES: the last is not over for longer than a test looks */

static sci_error_t start(struct dma *d, unsigned from, unsigned to, unsigned size,
			 sci_block_transfer_t *ret)
{
	sci_error_t error;

	SCITransferBlockAsync(d->local_map, from, d->remote_map, to, size, ret, NULL, NULL, 0,
			      &error);
	return error;
}

static sci_error_t wait_for(sci_block_transfer_t block, unsigned timeout)
{
	sci_error_t error;

	SCIWaitForBlockTransfer(block, timeout, 0, &error);
	return error;
}

static sci_error_t give_up(sci_block_transfer_t block)
{
	sci_error_t error;

	SCIAbortBlockTransfer(block, 0, &error);
	return error;
}

/* ---- results ---- */

static int copies(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_block_transfer_t block[8];
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	dma_fill(&d, 7, 4093);
	CHECK_OK(start(&d, 3, 5, DMA_BYTES - 8, &block[0]));
	CHECK_OK(wait_for(block[0], SCI_INFINITE_TIMEOUT));
	CHECK(get8(d.peer + 4) == 0 && get8(d.peer + DMA_BYTES - 3) == 0);
	CHECK(same_bytes(d.peer + 5, d.memory + 3, DMA_BYTES - 8));
	CHECK_IS(wait_for(block[0], 0), SCI_ERR_ILLEGAL_PARAMETER);
	/* Back; the flag says nothing that the maps do not. */
	SCITransferBlockAsync(d.remote_map, 5, d.local_map, 100, 70000, &block[0], NULL, NULL,
			      SCI_FLAG_BLOCK_READ, &error);
	CHECK_OK(error);
	CHECK_OK(wait_for(block[0], SCI_INFINITE_TIMEOUT));
	CHECK(same_bytes(d.memory + 100, d.peer + 5, 70000));
	/* In the order of their start: each copies what the one before brought. */
	put_all(d.memory, 0, DMA_BYTES);
	put_all(d.memory, 0x5a, 100000);
	for (unsigned i = 0; i < 8; i++) {
		bool there = i % 2 == 0;

		SCITransferBlockAsync(there ? d.local_map : d.remote_map, i * 100000,
				      there ? d.remote_map : d.local_map, (i + 1) * 100000, 100000,
				      &block[i], NULL, NULL, 0, &error);
		CHECK_OK(error);
	}
	CHECK_OK(wait_for(block[7], SCI_INFINITE_TIMEOUT));
	CHECK(get8(d.memory + 800000) == 0x5a);
	CHECK(same_bytes(d.memory + 800000, d.memory, 100000));
	/* One that is over is not given up; its result waits. Nothing is in use any more. */
	CHECK_IS(give_up(block[0]), SCI_ERR_ILLEGAL_OPERATION);
	for (unsigned i = 0; i < 7; i++)
		CHECK_OK(wait_for(block[i], 0));
	/* Nobody ever waits for this one. */
	CHECK_OK(start(&d, 0, 0, 0, &block[0]));
	do {
		SCIUnmapSegment(d.remote_map, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
	SCIMapRemoteSegment(d.remote, &d.remote_map, 0, 4096, NULL, 0, &error);
	CHECK_OK(error);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void results_are_waited_for(void **state)
{
	cluster_needs(NEEDS_ENGINE);
	cluster_needs(NEEDS_SPEED);
	dma_pair(state, copies);
}

/* ---- callbacks ---- */

struct rounds {
	struct dma *d;
	unsigned called; /* atomic */
	unsigned wanted;
	pthread_t thread;
};

static int again(void *arg, sci_block_transfer_t block, sci_error_t status)
{
	struct rounds *r = arg;
	sci_block_transfer_t next;
	sci_error_t error;

	CHECK_OK(status);
	CHECK(!pthread_equal(pthread_self(), r->thread));
	CHECK_IS(wait_for(block, 0), SCI_ERR_ILLEGAL_OPERATION);
	CHECK_IS(give_up(block), SCI_ERR_ILLEGAL_OPERATION);
	CHECK(same_bytes(r->d->peer, r->d->memory, 4096));
	if (r->called + 1 < r->wanted) {
		put8(r->d->memory + r->called, (uint8_t)(r->called + 1));
		SCITransferBlockAsync(r->d->local_map, 0, r->d->remote_map, 0, 4096, &next, again,
				      r, SCI_FLAG_USE_CALLBACK, &error);
		CHECK_OK(error);
	}
	__atomic_add_fetch(&r->called, 1, __ATOMIC_SEQ_CST);
	step_done(1);
	return 12345;
}

static int is_called(void *arg)
{
	sci_desc_t sd = api_begin();
	struct rounds r = {.wanted = 200, .thread = pthread_self()};
	sci_block_transfer_t block;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	r.d = &d;
	SCITransferBlockAsync(d.local_map, 0, d.remote_map, 0, 4096, &block, again, &r,
			      SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < r.wanted; i++)
		step_await(1);
	/* Without the flag nobody is called. */
	SCITransferBlockAsync(d.local_map, 0, d.remote_map, 0, 4096, &block, again, &r, 0, &error);
	CHECK_OK(error);
	CHECK_OK(wait_for(block, SCI_INFINITE_TIMEOUT));
	CHECK(__atomic_load_n(&r.called, __ATOMIC_SEQ_CST) == r.wanted);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void callbacks_come_once(void **state)
{
	dma_pair(state, is_called);
}

/* ---- under way ---- */

static int never(void *arg, sci_block_transfer_t block, sci_error_t status)
{
	(void)block;
	(void)status;
	__atomic_store_n((unsigned *)arg, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void start_many(struct dma *d, sci_block_transfer_t *block)
{
	for (unsigned i = 0; i < MANY; i++)
		CHECK_OK(start(d, 0, 0, DMA_BYTES, &block[i]));
}

static void *waits(void *arg)
{
	sci_error_t error = wait_for(arg, SCI_INFINITE_TIMEOUT);

	/* That it is gone is told to who waited, and to who came too late. */
	CHECK(error == SCI_ERR_CANCELLED || error == SCI_ERR_ILLEGAL_PARAMETER);
	return NULL;
}

static int gives_up(void *arg)
{
	sci_block_transfer_t block[MANY], heard;
	sci_desc_t sd = api_begin();
	unsigned called = 0;
	pthread_t thread;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	start_many(&d, block);
	SCITransferBlockAsync(d.local_map, 0, d.remote_map, 0, DMA_BYTES, &heard, never, &called,
			      SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	CHECK_IS(wait_for(block[MANY - 1], 0), SCI_ERR_TIMEOUT);
	CHECK_IS(wait_for(block[MANY - 1], 1), SCI_ERR_TIMEOUT);
	SCIUnmapSegment(d.local_map, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIUnmapSegment(d.remote_map, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	CHECK(pthread_create(&thread, NULL, waits, block[MANY - 1]) == 0);
	CHECK_OK(give_up(heard));
	CHECK_OK(give_up(block[MANY - 1]));
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK_IS(give_up(block[MANY - 1]), SCI_ERR_ILLEGAL_PARAMETER);
	/* From the first on, so that the one under way is among them. */
	for (unsigned i = 0; i < MANY - 1; i++) {
		error = give_up(block[i]);
		CHECK(error == SCI_ERR_OK || error == SCI_ERR_ILLEGAL_OPERATION);
		if (error)
			CHECK_OK(wait_for(block[i], 0));
	}
	CHECK_OK(start(&d, 0, 0, 64, &block[0]));
	CHECK_OK(wait_for(block[0], SCI_INFINITE_TIMEOUT));
	CHECK(called == 0);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void what_is_under_way_is_given_up(void **state)
{
	dma_pair(state, gives_up);
}

static int leaves(void *arg)
{
	sci_block_transfer_t block[MANY];
	sci_error_t error;
	struct dma d;

	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		sci_desc_t sd = api_begin();

		if (i == 0)
			step_await(DMA_READY);
		step_done(DMA_READY);
		dma_make(&d, sd, 8, DMA_READY);
		start_many(&d, block);
		SCIClose(sd, 0, &error);
		CHECK_IS(error, SCI_ERR_BUSY);
		SCITerminate();
		CHECK_IS(wait_for(block[0], 0), SCI_ERR_NOT_INITIALIZED);
	}
	step_done(DMA_OVER);
	return 0;
}

static void the_end_of_the_library_ends_them(void **state)
{
	dma_pair(state, leaves);
}

/* ---- loss ---- */

static int removes_by_force(void *arg)
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
	step_await(1);
	SCIRemoveSegment(seg, SCI_FLAG_FORCE_REMOVE, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static int fails(void *arg, sci_block_transfer_t block, sci_error_t status)
{
	(void)block;
	CHECK_IS(status, SCI_ERR_TRANSFER_FAILED);
	__atomic_store_n((unsigned *)arg, 1, __ATOMIC_SEQ_CST);
	step_done(2);
	return 0;
}

static int loses(void *arg)
{
	sci_block_transfer_t block[MANY], heard;
	sci_desc_t sd = api_begin();
	unsigned called = 0, failed = 0;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	start_many(&d, block);
	SCITransferBlockAsync(d.local_map, 0, d.remote_map, 0, DMA_BYTES, &heard, fails, &called,
			      SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	step_done(1);
	step_await(2);
	CHECK(called == 1);
	for (unsigned i = 0; i < MANY; i++) {
		error = wait_for(block[i], SCI_INFINITE_TIMEOUT);
		CHECK(error == (failed ? SCI_ERR_TRANSFER_FAILED : SCI_ERR_OK) ||
		      error == SCI_ERR_TRANSFER_FAILED);
		failed += error != SCI_ERR_OK;
	}
	CHECK(failed > 0);
	CHECK_IS(start(&d, 0, 0, 64, &heard), SCI_ERR_NOT_CONNECTED);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void a_loss_fails_them(void **state)
{
	pid_t peer;

	cluster_needs(NEEDS_ENGINE);
	steps_reset();
	peer = cluster_fork(*state, 8, removes_by_force, NULL);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, loses, NULL)), 0);
	assert_int_equal(cluster_wait(peer), 0);
}

/* ---- errors ---- */

static int errs(void *arg)
{
	sci_block_transfer_t block = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;
	sci_map_t read_only;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	SCIMapRemoteSegment(d.remote, &read_only, 0, 4096, NULL, SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	SCITransferBlockAsync(d.local_map, 0, read_only, 0, 1, &block, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	SCITransferBlock(d.local_map, 0, read_only, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	SCIUnmapSegment(read_only, 0, &error);
	CHECK_OK(error);
	SCITransferBlockAsync(read_only, 0, d.remote_map, 0, 1, &block, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(start(&d, 0, 0, 1, NULL), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(start(&d, 1, 0, DMA_BYTES, &block), SCI_ERR_OUT_OF_RANGE);
	CHECK_IS(start(&d, 0, DMA_BYTES - 63, 64, &block), SCI_ERR_OUT_OF_RANGE);
	SCITransferBlockAsync(d.local_map, 0, d.remote_map, 0, 1, &block, never, NULL,
			      SCI_FLAG_ERROR_CHECK | 0x100, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCITransferBlockAsync(d.local_map, 0, d.remote_map, 0, 1, &block, NULL, NULL,
			      SCI_FLAG_USE_CALLBACK, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(block == NULL);
	CHECK_IS(wait_for(NULL, 0), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_IS(give_up((sci_block_transfer_t)d.queue), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_OK(start(&d, 0, 0, 1, &block));
	SCIWaitForBlockTransfer(block, 0, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIAbortBlockTransfer(block, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	CHECK_OK(wait_for(block, SCI_INFINITE_TIMEOUT));
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
		API_TEST(results_are_waited_for),
		API_TEST(callbacks_come_once),
		API_TEST(what_is_under_way_is_given_up),
		API_TEST(the_end_of_the_library_ends_them),
		API_TEST(a_loss_fails_them),
		API_TEST(errors_are_told),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
