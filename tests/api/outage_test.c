/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cluster switches lose their power and links between them are pulled out, under programs that
 * share memory: ways lead around what is out while they can.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/cluster.h"
#include "../lib/mapped.h"

#define PAGE 4096u

/* Three switches in a triangle; node 4 at left, 8 at right. */
#define TRIANGLE                                                                                   \
	"cluster: triangle\n"                                                                      \
	"switches: [left, right, top]\n"                                                           \
	"links: [{from: left, to: right}, {from: left, to: top}, {from: top, to: right}]\n"        \
	"hosts:\n"                                                                                 \
	"  one: {ram: 16M, iommu: on, adapters: [{to: left}]}\n"                                   \
	"  two: {ram: 16M, adapters: [{to: right}]}\n"

enum { MADE, USED, AROUND, SEEN_AROUND, CUT, SEEN_CUT_1, SEEN_CUT_2, BACK_1, BACK_2, OVER };

static int up(void **state)
{
	*state = cluster_up(TRIANGLE);
	return *state ? 0 : -1;
}

static int down(void **state)
{
	return *state ? cluster_down(*state) : 0;
}

static int audit(void **state)
{
	return cluster_audit(*state);
}

static void expect_local(sci_local_segment_t seg, sci_segment_cb_reason_t reason)
{
	unsigned node = 0, adapter = 9;
	sci_error_t error;

	CHECK(SCIWaitForLocalSegmentEvent(seg, &node, &adapter, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      reason);
	CHECK_OK(error);
	CHECK(node == 4 && adapter == 0);
}

static void expect_remote(sci_remote_segment_t seg, sci_segment_cb_reason_t reason)
{
	sci_error_t error, status;

	CHECK(SCIWaitForRemoteSegmentEvent(seg, &status, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      reason);
	CHECK_OK(error);
}

static uint32_t adapter_is_up(sci_desc_t sd)
{
	sci_query_adapter_t q = {.localAdapterNo = 0, .subcommand = SCI_Q_ADAPTER_LINK_OPERATIONAL};
	unsigned yes = 9;
	sci_error_t error;

	(void)sd;
	q.data = &yes;
	SCIQuery(SCI_Q_ADAPTER, &q, 0, &error);
	CHECK_OK(error);
	return yes;
}

static int has_memory(void *arg)
{
	sci_local_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;
	sci_map_t map;
	uint8_t *p;

	(void)arg;
	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	step_done(MADE);
	expect_local(seg, SCI_CB_CONNECT);
	step_await(SEEN_AROUND);
	CHECK(get8(p) == 2);
	/* What comes first is this: while a way led around it there was nothing to tell. */
	expect_local(seg, SCI_CB_NOT_OPERATIONAL);
	step_done(SEEN_CUT_1);
	expect_local(seg, SCI_CB_OPERATIONAL);
	step_done(BACK_1);
	step_await(OVER);
	CHECK(get8(p) == 3);
	expect_local(seg, SCI_CB_DISCONNECT);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

/* @arg: this host's own adapter loses its link when they are cut off. */
static int looks_there(void *arg)
{
	sci_remote_segment_t seg = NULL;
	sci_sequence_t sequence = NULL;
	sci_desc_t sd = api_begin();
	volatile uint8_t *p;
	sci_error_t error;
	sci_map_t map;

	step_await(MADE);
	SCIConnectSegment(sd, &seg, 8, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	SCICreateMapSequence(map, &sequence, 0, &error);
	CHECK_OK(error);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_OK);
	put8(p, 1);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
	step_done(USED);
	step_await(AROUND);
	put8(p, 2);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
	CHECK(SCIProbeNode(sd, 0, 8, 0, &error));
	step_done(SEEN_AROUND); /* for the other program, and for who pulls */
	step_done(SEEN_AROUND);
	expect_remote(seg, SCI_CB_NOT_OPERATIONAL);
	CHECK(get8(p) == 0xff);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	CHECK(!SCIProbeNode(sd, 0, 8, 0, &error));
	CHECK(adapter_is_up(sd) == !arg);
	step_done(SEEN_CUT_2);
	expect_remote(seg, SCI_CB_OPERATIONAL);
	CHECK(adapter_is_up(sd));
	CHECK(get8(p) == 2);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_RETRIABLE);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_OK);
	put8(p, 3);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
	step_done(BACK_2);
	step_await(OVER);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

struct programs {
	pid_t has, looks;
};

/* Both share memory by a way around the link that was pulled out. */
static struct programs begin(void **state, bool own_link)
{
	struct programs p;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	p.has = cluster_fork(*state, 8, has_memory, NULL);
	p.looks = cluster_fork(*state, 4, looks_there, own_link ? *state : NULL);
	step_await(USED);
	assert_int_equal(cluster_trunk(*state, "left", "right", false), 0);
	step_done(AROUND);
	step_await(SEEN_AROUND);
	return p;
}

static void await_cut(void)
{
	step_await(SEEN_CUT_1);
	step_await(SEEN_CUT_2);
}

static void end(struct programs p)
{
	step_await(BACK_1);
	step_await(BACK_2);
	step_done(OVER);
	step_done(OVER);
	assert_int_equal(cluster_wait(p.has), 0);
	assert_int_equal(cluster_wait(p.looks), 0);
}

static void a_second_link_cuts_them_off(void **state)
{
	struct programs p = begin(state, false);

	assert_int_equal(cluster_trunk(*state, "right", "top", false), 0);
	await_cut();
	assert_int_equal(cluster_trunk(*state, "left", "right", true), 0);
	end(p);
	assert_int_equal(cluster_trunk(*state, "top", "right", true), 0);
}

static void a_switch_between_them_cuts_them_off(void **state)
{
	struct programs p = begin(state, false);

	assert_int_equal(cluster_switch(*state, "top", false), 0);
	await_cut();
	assert_int_equal(cluster_switch(*state, "top", true), 0);
	end(p);
	assert_int_equal(cluster_trunk(*state, "left", "right", true), 0);
}

static void a_switch_takes_its_hosts_links(void **state)
{
	struct programs p = begin(state, true);

	assert_int_equal(cluster_switch(*state, "left", false), 0);
	await_cut();
	/* Nor does its link come back before its power. */
	assert_int_equal(cluster_trunk(*state, "left", "right", true), 0);
	assert_int_equal(cluster_switch(*state, "left", true), 0);
	end(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_second_link_cuts_them_off, audit),
		cmocka_unit_test_teardown(a_switch_between_them_cuts_them_off, audit),
		cmocka_unit_test_teardown(a_switch_takes_its_hosts_links, audit),
	};

	return cmocka_run_group_tests(tests, up, down);
}
