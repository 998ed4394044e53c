/* SPDX-License-Identifier: BSD-2-Clause */
/* A host with more paths to others than a page of their states can hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/cluster.h"
#include "../lib/mapped.h"

#define PAGE 4096u
#define LAST 3u	 /* adapter of the first host; its way leads to */
#define FIRST 0u /* of the last one */
#define HOST "{ram: 16M, adapters: [{}, {}, {}, {}]}\n"

/* 16 paths to each of nine others; the state of the last one of the first host is in page two. */
#define TOPOLOGY                                                                                   \
	"cluster: wide\n"                                                                          \
	"hosts:\n"                                                                                 \
	"  a: " HOST "  b: " HOST "  c: " HOST "  d: " HOST "  e: " HOST "  f: " HOST "  g: " HOST \
	"  h: " HOST "  i: " HOST "  j: " HOST

static int up(void **state)
{
	*state = cluster_up(TOPOLOGY);
	return *state ? 0 : -1;
}

static int audit(void **state)
{
	return cluster_audit(*state);
}

static int down(void **state)
{
	return *state ? cluster_down(*state) : 0;
}

static int serves(void *arg)
{
	sci_local_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, FIRST, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, FIRST, 0, &error);
	CHECK_OK(error);
	step_done(0);
	step_await(3);
	api_remove_segment(seg);
	api_end(sd);
	return 0;
}

static int looks(void *arg)
{
	sci_remote_segment_t seg = NULL;
	sci_sequence_t sequence = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	step_await(0);
	SCIConnectSegment(sd, &seg, 40, 1, LAST, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	CHECK(SCIMapRemoteSegment(seg, &map, 0, PAGE, NULL, 0, &error));
	CHECK_OK(error);
	SCICreateMapSequence(map, &sequence, 0, &error);
	CHECK_OK(error);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_OK);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
	step_done(1);
	CHECK(SCIWaitForRemoteSegmentEvent(seg, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_NOT_OPERATIONAL);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	step_done(2);
	CHECK(SCIWaitForRemoteSegmentEvent(seg, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_OPERATIONAL);
	/* The page's own count of changes tells, and the next start takes it up. */
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_RETRIABLE);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_OK);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	step_done(3);
	api_end(sd);
	return 0;
}

static void the_last_of_many_paths_is_watched(void **state)
{
	pid_t a, b;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	a = cluster_fork(*state, 40, serves, NULL);
	b = cluster_fork(*state, 4, looks, NULL);
	step_await(1);
	assert_int_equal(cluster_link(*state, 40, FIRST, false), 0);
	step_await(2);
	assert_int_equal(cluster_link(*state, 40, FIRST, true), 0);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_last_of_many_paths_is_watched, audit),
	};

	return cmocka_run_group_tests(tests, up, down);
}
