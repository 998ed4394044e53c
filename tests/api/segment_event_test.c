/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for what happens to segments, at the exporter and at importers on other hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "topology.h"

#define PAGE 4096u
#define KEPT 32u

static sci_local_segment_t export_segment(sci_desc_t sd)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	return seg;
}

static sci_remote_segment_t import_segment(sci_desc_t sd)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t error;

	SCIConnectSegment(sd, &seg, cluster_node(8), 1, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, 0,
			  &error);
	CHECK_OK(error);
	return seg;
}

static void expect_local(sci_local_segment_t seg, sci_segment_cb_reason_t reason, unsigned node)
{
	unsigned who = 0, adapter = 99;
	sci_error_t error;

	CHECK(SCIWaitForLocalSegmentEvent(seg, &who, &adapter, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      reason);
	CHECK_OK(error);
	CHECK(who == node && adapter == 0);
}

static sci_error_t no_local(sci_local_segment_t seg, unsigned timeout)
{
	sci_error_t error;

	CHECK(SCIWaitForLocalSegmentEvent(seg, NULL, NULL, timeout, 0, &error) == 0);
	return error;
}

static void expect_remote(sci_remote_segment_t seg, sci_segment_cb_reason_t reason,
			  sci_error_t expected)
{
	sci_error_t error, status = SCI_ERR_BUSY;

	CHECK(SCIWaitForRemoteSegmentEvent(seg, &status, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      reason);
	CHECK_OK(error);
	CHECK_IS(status, expected);
}

static sci_error_t no_remote(sci_remote_segment_t seg, unsigned timeout)
{
	sci_error_t error;

	CHECK(SCIWaitForRemoteSegmentEvent(seg, NULL, timeout, 0, &error) == 0);
	return error;
}

/* ---- events in order ---- */

static int exporter(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd);
	sci_error_t error;

	(void)arg;
	CHECK_IS(no_local(seg, 0), SCI_ERR_TIMEOUT);
	CHECK_IS(no_local(seg, 10), SCI_ERR_TIMEOUT);
	step_done(0);
	expect_local(seg, SCI_CB_CONNECT, 4);
	SCISetSegmentUnavailable(seg, 0, SCI_FLAG_NOTIFY, &error);
	CHECK_OK(error);
	expect_local(seg, SCI_CB_DISCONNECT, 4);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	step_done(1);
	/* One that is killed. */
	expect_local(seg, SCI_CB_CONNECT, cluster_node(12));
	step_done(2);
	expect_local(seg, SCI_CB_LOST, cluster_node(12));
	CHECK_IS(no_local(seg, 0), SCI_ERR_TIMEOUT);
	/* More than are kept. */
	step_done(3);
	step_await(4);
	/* The answer comes behind all that our daemon has told us. */
	CHECK(SCIProbeNode(sd, 0, 4, 0, &error));
	CHECK_IS(no_local(seg, 0), SCI_ERR_OVERFLOW);
	for (unsigned i = 0; i < KEPT / 2; i++) {
		expect_local(seg, SCI_CB_CONNECT, 4);
		expect_local(seg, SCI_CB_DISCONNECT, 4);
	}
	CHECK_IS(no_local(seg, 0), SCI_ERR_TIMEOUT);
	step_done(5);
	expect_local(seg, SCI_CB_CONNECT, 4);
	SCIRemoveSegment(seg, SCI_FLAG_FORCE_REMOVE, &error);
	CHECK_OK(error);
	CHECK_IS(no_local(seg, 0), SCI_ERR_ILLEGAL_PARAMETER);
	api_end(sd);
	return 0;
}

static int importer(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t seg;
	sci_error_t error;

	(void)arg;
	step_await(0);
	seg = import_segment(sd);
	expect_remote(seg, SCI_CB_DISCONNECT, SCI_ERR_OK);
	CHECK_IS(no_remote(seg, 0), SCI_ERR_TIMEOUT);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	CHECK_IS(no_remote(seg, 0), SCI_ERR_ILLEGAL_PARAMETER);
	step_await(3);
	for (unsigned i = 0; i < KEPT; i++) {
		seg = import_segment(sd);
		SCIDisconnectSegment(seg, 0, &error);
		CHECK_OK(error);
	}
	/* Behind all this, in the order of the daemons' words. */
	CHECK(SCIProbeNode(sd, 0, cluster_node(8), 0, &error));
	step_done(4);
	step_await(5);
	seg = import_segment(sd);
	expect_remote(seg, SCI_CB_DISCONNECT, SCI_ERR_NOT_CONNECTED);
	CHECK_IS(no_remote(seg, SCI_INFINITE_TIMEOUT), SCI_ERR_NOT_CONNECTED);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static int importer_to_be_killed(void *arg)
{
	(void)arg;
	step_await(1);
	import_segment(api_begin());
	while (pause() < 0)
		;
	return 0;
}

static void events_come_in_order(void **state)
{
	pid_t a, b, c;

	steps_reset();
	a = cluster_fork(*state, 8, exporter, NULL);
	b = cluster_fork(*state, 4, importer, NULL);
	c = cluster_fork(*state, 12, importer_to_be_killed, NULL);
	step_await(2);
	kill(c, SIGKILL);
	assert_int_equal(cluster_wait(c), 128 + SIGKILL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- who ends by himself has left ---- */

struct end {
	int (*of)(void *arg); /* an importer */
	sci_segment_cb_reason_t reason;
};

/* @arg: ends, until one without a function. */
static int hears_who_leaves(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd);
	sci_error_t error;

	step_done(0);
	for (const struct end *end = arg; end->of; end++) {
		expect_local(seg, SCI_CB_CONNECT, cluster_node(4));
		expect_local(seg, end->reason, cluster_node(4));
	}
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static int terminates(void *arg)
{
	(void)arg;
	import_segment(api_begin());
	SCITerminate();
	return 0;
}

static int exits(void *arg)
{
	(void)arg;
	import_segment(api_begin());
	exit(0);
}

static int ends_at_once(void *arg)
{
	(void)arg;
	import_segment(api_begin());
	_exit(0);
}

static void leave(void **state, struct end *ends)
{
	pid_t a;

	steps_reset();
	a = cluster_fork(*state, 8, hears_who_leaves, ends);
	step_await(0);
	for (struct end *end = ends; end->of; end++)
		assert_int_equal(cluster_wait(cluster_fork(*state, 4, end->of, NULL)), 0);
	assert_int_equal(cluster_wait(a), 0);
}

static void terminating_is_leaving(void **state)
{
	static struct end ends[] = {
		{terminates, SCI_CB_DISCONNECT}, {terminates, SCI_CB_DISCONNECT}, {NULL, 0}};

	leave(state, ends);
}

static void exit_is_leaving(void **state)
{
	static struct end ends[] = {{exits, SCI_CB_DISCONNECT},
				    {ends_at_once, SCI_CB_LOST},
				    {exits, SCI_CB_DISCONNECT},
				    {NULL, 0}};

	cluster_needs_kernel(NEEDS_EXIT);
	leave(state, ends);
}

/* ---- waits that end ---- */

static void *wait_until_cancelled(void *arg)
{
	sci_error_t error = no_local(arg, SCI_INFINITE_TIMEOUT);

	if (error != SCI_ERR_ILLEGAL_PARAMETER) /* it came after the removal */
		CHECK_IS(error, SCI_ERR_CANCELLED);
	return NULL;
}

static sci_callback_action_t never(void *arg, sci_local_segment_t segment,
				   sci_segment_cb_reason_t reason, unsigned int node,
				   unsigned int adapter, sci_error_t error)
{
	(void)arg;
	(void)segment;
	(void)reason;
	(void)node;
	(void)adapter;
	(void)error;
	return SCI_CALLBACK_CONTINUE;
}

static int cancels(void *arg)
{
	sci_local_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;
	pthread_t t;

	(void)arg;
	SCICreateSegment(sd, &seg, 3, PAGE, never, NULL, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	CHECK_IS(no_local(seg, 0), SCI_ERR_ILLEGAL_OPERATION);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	seg = export_segment(sd);
	CHECK(SCIWaitForLocalSegmentEvent(seg, NULL, NULL, 0, 1, &error) == 0);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	CHECK_IS(no_remote((sci_remote_segment_t)seg, 0), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(!pthread_create(&t, NULL, wait_until_cancelled, seg));
	CHECK_IS(no_local(seg, 5), SCI_ERR_TIMEOUT);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	pthread_join(t, NULL);
	api_end(sd);
	return 0;
}

static void removal_ends_waits(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, cancels, NULL)), 0);
}

static int waits_for_ever(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd);
	sci_error_t error;

	(void)arg;
	step_done(0);
	CHECK_IS(no_local(seg, SCI_INFINITE_TIMEOUT), SCI_ERR_NO_LINK_ACCESS);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_wait_ends_when_the_own_host_crashes(void **state)
{
	pid_t a;

	cluster_needs(NEEDS_CRASH);
	steps_reset();
	a = cluster_fork(*state, 12, waits_for_ever, NULL);
	step_await(0);
	cluster_crash(*state, 12);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_restart(*state, 12, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(events_come_in_order),
		API_TEST(terminating_is_leaving),
		API_TEST(exit_is_leaving),
		API_TEST(removal_ends_waits),
		API_TEST(a_wait_ends_when_the_own_host_crashes),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
