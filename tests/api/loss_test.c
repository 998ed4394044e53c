/* SPDX-License-Identifier: BSD-2-Clause */
/* Loss: an exporter dies, its host crashes, the own host's smartiod is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define PAGE 4096u

static int exports_for_ever(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = NULL;
	sci_local_data_interrupt_t dint = NULL;
	unsigned number = 9;
	sci_error_t error;
	sci_map_t map;
	uint8_t *p;

	(void)arg;
	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	SCICreateSegment(sd, &seg, 1, 3 << 20, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapLocalSegment(seg, &map, 0, 3 << 20, NULL, 0, &error);
	CHECK_OK(error);
	put_all(p, 0x11, 3 << 20);
	step_done(0);
	for (;;)
		pause();
}

struct lost {
	unsigned count;
	sci_segment_cb_reason_t reason;
};

static sci_callback_action_t on_remote(void *arg, sci_remote_segment_t segment,
				       sci_segment_cb_reason_t reason, sci_error_t status)
{
	struct lost *l = arg;

	(void)segment;
	if (reason == SCI_CB_NOT_OPERATIONAL) /* the link goes first, if a host crashes */
		return SCI_CALLBACK_CONTINUE;
	l->count++;
	l->reason = reason;
	CHECK(status != SCI_ERR_OK);
	step_done(2);
	return SCI_CALLBACK_CONTINUE;
}

static int survives(void *arg)
{
	bool own_host = arg != NULL;
	sci_remote_data_interrupt_t dint = NULL;
	sci_remote_segment_t seg = NULL;
	sci_sequence_t sequence = NULL;
	sci_desc_t sd = api_begin();
	struct lost lost = {0};
	volatile uint8_t *p;
	sci_error_t error;
	sci_map_t map, other;

	SCIConnectSegment(sd, &seg, cluster_node(8), 1, 0, on_remote, &lost, 0,
			  SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	SCIConnectDataInterrupt(sd, &dint, cluster_node(8), 0, 9, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(seg, &map, 0, 3 << 20, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get8(p) == 0x11 && get8(p + (3 << 20) - 1) == 0x11);
	step_done(1);
	step_await(2);
	CHECK(lost.count == 1 && lost.reason == SCI_CB_LOST);
	for (size_t i = 0; i < 3 << 20; i += 1023)
		CHECK(get8(p + i) == 0xff);
	put8(p + 5, 1); /* goes nowhere, and does not crash */
	SCICreateMapSequence(map, &sequence, 0, &error);
	CHECK_OK(error);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(seg, &other, 0, PAGE, NULL, 0, &error);
	CHECK_IS(error, own_host ? SCI_ERR_NO_LINK_ACCESS : SCI_ERR_NOT_CONNECTED);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	do {
		SCITriggerDataInterrupt(dint, NULL, 0, 0, &error);
	} while (error == SCI_ERR_OK || error == SCI_ERR_NOSPC ||
		 (error == SCI_ERR_NO_LINK_ACCESS && !own_host)); /* then it is known to be lost */
	CHECK_IS(error, own_host ? SCI_ERR_NO_LINK_ACCESS : SCI_ERR_NOT_CONNECTED);
	SCIDisconnectDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	if (own_host) {
		sci_desc_t second = NULL;

		SCIConnectSegment(sd, &seg, cluster_node(8), 1, 0, NULL, NULL, 0, 0, &error);
		CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
		CHECK(!SCIProbeNode(sd, 0, 8, 0, &error));
		CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
		SCIOpen(&second, 0, &error);
		CHECK_OK(error);
		SCIClose(second, 0, &error);
		CHECK_OK(error);
		SCIInitialize(0, &error);
		CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
	}
	api_end(sd);
	return 0;
}

static void start_pair(void **state, pid_t *exporter, pid_t *importer, void *own_host)
{
	steps_reset();
	*exporter = cluster_fork(*state, 8, exports_for_ever, NULL);
	step_await(0);
	*importer = cluster_fork(*state, 4, survives, own_host);
	step_await(1);
}

static void an_exporter_is_killed(void **state)
{
	pid_t a, b;

	start_pair(state, &a, &b, NULL);
	kill(a, SIGKILL);
	assert_int_equal(cluster_wait(a), 128 + SIGKILL);
	assert_int_equal(cluster_wait(b), 0);
}

static void an_exporters_host_crashes(void **state)
{
	pid_t a, b;

	cluster_needs(NEEDS_CRASH);
	start_pair(state, &a, &b, NULL);
	cluster_crash(*state, 8);
	assert_int_equal(cluster_wait(b), 0);
	kill(a, SIGKILL);
	cluster_wait(a);
	assert_int_equal(cluster_restart(*state, 8, 4), 0);
}

static void the_own_host_crashes(void **state)
{
	pid_t a, b;

	cluster_needs(NEEDS_CRASH);
	start_pair(state, &a, &b, *state);
	cluster_crash(*state, 4);
	assert_int_equal(cluster_wait(b), 0);
	kill(a, SIGKILL);
	cluster_wait(a);
	assert_int_equal(cluster_restart(*state, 4, 8), 0);
	/* All is as before. */
	an_exporter_is_killed(state);
}

/* A wait, and local memory, when the own smartiod goes. */
static int waits_and_loses(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_data_interrupt_t dint = NULL;
	sci_local_segment_t seg = NULL;
	unsigned number = 0, length = 0;
	sci_error_t error;
	sci_map_t map;
	uint8_t *p;

	(void)arg;
	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCICreateSegment(sd, &seg, 2, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	step_done(0);
	SCIWaitForDataInterrupt(dint, NULL, &length, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
	CHECK(get8(p) == 0xff);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	/* The host has nobody to talk to until it is started again. */
	SCIInitialize(0, &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	step_done(1);
	step_await(2);
	sd = api_begin();
	api_end(sd);
	return 0;
}

static void a_wait_ends_when_the_own_host_crashes(void **state)
{
	pid_t a;

	cluster_needs(NEEDS_CRASH);
	steps_reset();
	a = cluster_fork(*state, 12, waits_and_loses, NULL);
	step_await(0);
	cluster_crash(*state, 12);
	step_await(1);
	assert_int_equal(cluster_restart(*state, 12, 4), 0);
	step_done(2);
	assert_int_equal(cluster_wait(a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(an_exporter_is_killed),
		API_TEST(an_exporters_host_crashes),
		API_TEST(the_own_host_crashes),
		API_TEST(a_wait_ends_when_the_own_host_crashes),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
