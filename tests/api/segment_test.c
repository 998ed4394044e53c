/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of segments that others use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/mapped.h"
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
 * other.
 */
struct side {
	unsigned own, other, step;
};

static int leaves_and_removes(void *arg)
{
	const struct side *s = arg;
	sci_desc_t sd = api_begin();
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
		CHECK_OK(error);
	}
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

/* What this program itself does with it is said at once, and nothing has changed. */
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
	CHECK(SCIGetLocalSegmentId(seg) == 2);
	SCIConnectSegment(sd, &far, 4, 2, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	CHECK(SCIWaitForRemoteSegmentEvent(far, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	CHECK_OK(error);
	SCIDisconnectSegment(far, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_mapped_segment_stays(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, is_busy, NULL)), 0);
}

/* ---- removed while importers have it ---- */

enum { EXPORTED, MAPPED, REMOVED, STILL_THERE, GONE, LEFT };
enum { ENDS, IS_KILLED };

static int removes(void *arg)
{
	const unsigned *how = arg;
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd, 3), again;
	sci_error_t error;
	volatile uint32_t *p;
	sci_map_t map;

	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	put32(p, 33);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	step_done(EXPORTED);
	step_await(MAPPED);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	/* The id is free at once, and stands for other memory. */
	again = export_segment(sd, 3);
	p = SCIMapLocalSegment(again, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get32(p) == 0);
	put32(p, 44);
	step_done(REMOVED);
	step_await(STILL_THERE);
	CHECK(get32(p) == 44);
	if (*how == IS_KILLED)
		return 0; /* by its end, with all that it has */
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(again, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static int has_it(void *arg)
{
	const unsigned *node = arg;
	sci_remote_segment_t seg = NULL, other = NULL;
	sci_desc_t sd = api_begin();
	volatile uint32_t *p, *q;
	sci_map_t map, more;
	sci_error_t error;

	step_await(EXPORTED);
	SCIConnectSegment(sd, &seg, *node, 3, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get32(p) == 33);
	step_done(MAPPED);
	CHECK(SCIWaitForRemoteSegmentEvent(seg, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	CHECK_OK(error);
	step_await(REMOVED);
	SCIConnectSegment(sd, &other, *node, 3, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	q = SCIMapRemoteSegment(other, &more, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get32(p) == 33 && get32(q) == 44);
	put32(p, 35);
	CHECK(get32(p) == 35 && get32(q) == 44);
	SCIUnmapSegment(more, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(other, 0, &error);
	CHECK_OK(error);
	step_done(STILL_THERE);
	step_await(GONE);
	/* Its exporter has ended: it is kept all the same, and can be mapped once more. */
	CHECK(get32(p) == 35);
	q = SCIMapRemoteSegment(seg, &more, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get32(q) == 35);
	SCIUnmapSegment(more, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_removed_segment_is_kept(void **state)
{
	unsigned nodes[] = {8, 4};

	for (unsigned i = 0; i < 4; i++) {
		unsigned node = cluster_node(nodes[i % 2]), how = i < 2 ? ENDS : IS_KILLED;
		pid_t a, b;

		steps_reset();
		a = cluster_fork(*state, node, removes, &how);
		b = cluster_fork(*state, 4, has_it, &node);
		assert_int_equal(cluster_wait(a), 0);
		step_done(GONE);
		assert_int_equal(cluster_wait(b), 0);
	}
}

/* ---- what a virtual device may be closed with ---- */

static int closes(void *arg)
{
	sci_local_segment_t seg[3];
	sci_remote_segment_t far[3];
	sci_desc_t own = api_begin(), sd;
	volatile uint32_t *p;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 3; i++) {
		seg[i] = export_segment(own, 10 + i);
		SCIConnectSegment(sd, &far[i], 4, 10 + i, 0, NULL, NULL, 0, 0, &error);
		CHECK_OK(error);
	}
	p = SCIMapRemoteSegment(far[2], &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	put32(p, 77);
	SCIRemoveSegment(seg[0], SCI_FLAG_FORCE_REMOVE, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg[2], 0, &error);
	CHECK_OK(error);
	CHECK(SCIWaitForRemoteSegmentEvent(far[2], NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	/* One is open; the others, whose exporters are gone, stay as they are as long as it is. */
	SCIClose(sd, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	CHECK(SCIGetRemoteSegmentSize(far[0]) == PAGE);
	SCIRemoveSegment(seg[1], 0, &error);
	CHECK_OK(error);
	CHECK(SCIWaitForRemoteSegmentEvent(far[1], NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	SCIClose(sd, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(far[0], 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIDisconnectSegment(far[1], 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	/* What is mapped stays until it is unmapped: the program has a pointer to it. */
	CHECK(get32(p) == 77);
	SCIDisconnectSegment(far[2], 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(far[2], 0, &error);
	CHECK_OK(error);
	api_end(own);
	return 0;
}

static void what_is_gone_is_not_open(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, closes, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(both_sides_leave_at_the_same_time),
		API_TEST(a_mapped_segment_stays),
		API_TEST(a_removed_segment_is_kept),
		API_TEST(what_is_gone_is_not_open),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
