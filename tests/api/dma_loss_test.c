/* SPDX-License-Identifier: BSD-2-Clause */
/* Deaths and losses in the middle of DMA transfers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dma.h"

#define POSTED 1 /* steps */
#define FAILED 2
#define UP_AGAIN 3

static int serves_for_ever(void *arg)
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
	for (;;)
		pause();
}

/* One transfer after the other, so that one is under way at whatever instant. */
static int copies_for_ever(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	for (;;) {
		dma_start_long(&d, NULL, NULL);
		step_done(POSTED);
		SCIWaitForDMAQueue(d.queue, SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK_OK(error);
	}
}

/* Waits for a transfer that fails; @arg: the link comes up again. */
static int sees_it_fail(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_error_t error;
	struct dma d;

	dma_make(&d, sd, 8, DMA_READY);
	put_all(d.memory, 0x77, DMA_BYTES);
	dma_start_long(&d, NULL, NULL);
	step_done(POSTED);
	/* One that is over before the loss is no test of it: again. */
	while (SCIWaitForDMAQueue(d.queue, SCI_INFINITE_TIMEOUT, 0, &error) == SCI_DMAQUEUE_DONE &&
	       dma_try_long(&d, NULL, NULL) == SCI_ERR_OK)
		CHECK_OK(error);
	CHECK_OK(error);
	CHECK(SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_ERROR ||
	      SCIDMAQueueState(d.queue) == SCI_DMAQUEUE_DONE);
	step_done(FAILED);
	if (arg) {
		step_await(UP_AGAIN);
		do {
			error = dma_start(&d, 0, DMA_BYTES, 0, SCI_FLAG_DMA_WAIT);
		} while (error == SCI_ERR_TRANSFER_FAILED);
		CHECK_OK(error);
	} else {
		do { /* until we are told of the loss */
			error = dma_start(&d, 0, 1, 0, SCI_FLAG_DMA_WAIT);
		} while (error == SCI_ERR_TRANSFER_FAILED || error == SCI_ERR_NO_LINK_ACCESS ||
			 error == SCI_ERR_ILLEGAL_PARAMETER);
		CHECK_IS(error, SCI_ERR_SEGMENT_NOT_CONNECTED);
	}
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void the_program_is_killed(void **state)
{
	pid_t peer, copier;

	cluster_needs(NEEDS_ENGINE);
	/* The audit behind this test finds nothing of it; the peer's memory was its own all along.
	 */
	for (unsigned i = 0; i < 5; i++) {
		steps_reset();
		peer = cluster_fork(*state, 8, serves_for_ever, NULL);
		copier = cluster_fork(*state, 4, copies_for_ever, NULL);
		step_await(POSTED);
		usleep(1000 * i); /* nothing is awaited: another moment of the copying each time */
		kill(copier, SIGKILL);
		assert_int_equal(cluster_wait(copier), 128 + SIGKILL);
		kill(peer, SIGKILL);
		assert_int_equal(cluster_wait(peer), 128 + SIGKILL);
	}
}

static void the_exporter_is_killed(void **state)
{
	pid_t peer, copier;

	cluster_needs(NEEDS_ENGINE);
	steps_reset();
	peer = cluster_fork(*state, 8, serves_for_ever, NULL);
	copier = cluster_fork(*state, 4, sees_it_fail, NULL);
	step_await(POSTED);
	kill(peer, SIGKILL);
	assert_int_equal(cluster_wait(peer), 128 + SIGKILL);
	assert_int_equal(cluster_wait(copier), 0);
}

static void the_exporters_host_crashes(void **state)
{
	pid_t peer, copier;

	cluster_needs(NEEDS_ENGINE);
	steps_reset();
	peer = cluster_fork(*state, 8, serves_for_ever, NULL);
	copier = cluster_fork(*state, 4, sees_it_fail, NULL);
	step_await(POSTED);
	cluster_crash(*state, 8);
	assert_int_equal(cluster_wait(copier), 0);
	kill(peer, SIGKILL);
	cluster_wait(peer);
	assert_int_equal(cluster_restart(*state, 8, 4), 0);
}

static void the_link_goes_and_comes(void **state)
{
	pid_t peer, copier;

	cluster_needs(NEEDS_ENGINE);
	steps_reset();
	peer = cluster_fork(*state, 8, serves_for_ever, NULL);
	copier = cluster_fork(*state, 4, sees_it_fail, *state);
	step_await(POSTED);
	assert_int_equal(cluster_link(*state, 8, 0, false), 0);
	step_await(FAILED);
	assert_int_equal(cluster_link(*state, 8, 0, true), 0);
	step_done(UP_AGAIN);
	assert_int_equal(cluster_wait(copier), 0);
	kill(peer, SIGKILL);
	assert_int_equal(cluster_wait(peer), 128 + SIGKILL);
}

static sci_callback_action_t on_failure(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	(void)arg;
	CHECK_IS(status, SCI_ERR_TRANSFER_FAILED);
	CHECK(SCIDMAQueueState(queue) == SCI_DMAQUEUE_ERROR);
	step_done(FAILED);
	return SCI_CALLBACK_CONTINUE;
}

/* Its own smartiod is gone: the callback comes, a wait ends, nothing can be started. */
static int loses_its_host(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_dma_queue_t other;
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	dma_start_long(&d, on_failure, NULL);
	other = d.queue;
	SCICreateDMAQueue(sd, &d.queue, 0, 1, 0, &error);
	CHECK_OK(error);
	dma_start_long(&d, NULL, NULL);
	step_done(POSTED);
	CHECK(SCIWaitForDMAQueue(d.queue, SCI_INFINITE_TIMEOUT, 0, &error) == SCI_DMAQUEUE_ERROR);
	CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
	step_await(FAILED);
	CHECK_IS(dma_start(&d, 0, 1, 0, 0), SCI_ERR_NO_LINK_ACCESS);
	SCIAbortDMAQueue(other, 0, &error);
	CHECK_OK(error);
	SCIRemoveDMAQueue(other, 0, &error);
	CHECK_OK(error);
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void the_own_host_crashes(void **state)
{
	pid_t peer, copier;

	cluster_needs(NEEDS_ENGINE);
	steps_reset();
	peer = cluster_fork(*state, 8, serves_for_ever, NULL);
	copier = cluster_fork(*state, 4, loses_its_host, NULL);
	step_await(POSTED);
	cluster_crash(*state, 4);
	assert_int_equal(cluster_wait(copier), 0);
	kill(peer, SIGKILL);
	assert_int_equal(cluster_wait(peer), 128 + SIGKILL);
	assert_int_equal(cluster_restart(*state, 4, 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(the_program_is_killed),      API_TEST(the_exporter_is_killed),
		API_TEST(the_exporters_host_crashes), API_TEST(the_link_goes_and_comes),
		API_TEST(the_own_host_crashes),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
