/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of segments that others use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "topology.h"

#define PAGE 4096u
#define ROUNDS 60u

static sci_local_segment_t export_segment(sci_desc_t sd, unsigned id)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	return seg;
}

/*
 * Both sides leave the other's mailbox and remove their own, each once, without a word to each
 * other. However slow this machine is, one of many rounds finds the other still there and succeeds.
 */
struct side {
	unsigned own, other, step;
};

static int leaves_and_removes(void *arg)
{
	const struct side *s = arg;
	sci_desc_t sd = api_begin();
	unsigned good = 0;
	sci_error_t error;

	for (unsigned i = 0; i < ROUNDS; i++) {
		sci_local_segment_t seg = export_segment(sd, 1);
		sci_remote_segment_t far = NULL;

		step_done(s->step);
		step_await(1 - s->step);
		SCIConnectSegment(sd, &far, s->other, 1, 0, NULL, NULL, 0, 0, &error);
		CHECK_OK(error);
		step_done(2 + s->step);
		step_await(3 - s->step);
		SCIDisconnectSegment(far, 0, &error);
		CHECK_OK(error);
		SCIRemoveSegment(seg, 0, &error);
		if (error == SCI_ERR_OK)
			good++;
		while (error == SCI_ERR_BUSY)
			SCIRemoveSegment(seg, 0, &error);
		CHECK_OK(error);
	}
	CHECK(good > ROUNDS / 2);
	api_end(sd);
	return 0;
}

static void both_sides_leave_at_the_same_time(void **state)
{
	struct side side[] = {{4, 8, 0}, {8, 4, 1}};
	pid_t a, b;

	cluster_needs(NEEDS_HOSTS); /* one segment id, twice */
	steps_reset();
	a = cluster_fork(*state, 4, leaves_and_removes, &side[0]);
	b = cluster_fork(*state, 8, leaves_and_removes, &side[1]);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_wait(b), 0);
}

/* What no peer's leaving can end is told at once, and nothing has changed. */
static int is_busy(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd, 2);
	sci_remote_segment_t far = NULL;
	sci_map_t map = NULL;
	sci_error_t error;

	(void)arg;
	SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &far, 4, 2, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	CHECK(SCIGetLocalSegmentId(seg) == 2);
	SCIRemoveSegment(seg, SCI_FLAG_FORCE_REMOVE, &error);
	CHECK_OK(error);
	CHECK(SCIWaitForRemoteSegmentEvent(far, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	CHECK_OK(error);
	SCIDisconnectSegment(far, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_segment_in_use_stays(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, is_busy, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(both_sides_leave_at_the_same_time),
		API_TEST(a_segment_in_use_stays),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
