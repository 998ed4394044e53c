/* SPDX-License-Identifier: BSD-2-Clause */
/* The link between two hosts goes down and comes back, under programs that share memory. */
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
#define BYTES (40 * PAGE)
#define ROUNDS 3u

static sci_local_segment_t export_segment(sci_desc_t sd, uint8_t **ret, sci_map_t *map)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, 1, BYTES, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	*ret = SCIMapLocalSegment(seg, map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	return seg;
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

static void expect_remote(sci_remote_segment_t seg, sci_segment_cb_reason_t reason,
			  sci_error_t expected)
{
	sci_error_t error, status = SCI_ERR_BUSY;

	CHECK(SCIWaitForRemoteSegmentEvent(seg, &status, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      reason);
	CHECK_OK(error);
	CHECK_IS(status, expected);
}

/* ---- down and up, with state kept ---- */

/*
 * Steps: 0 exported, 1 ready for the link to go, 2 down is seen, 5 a byte is stored, 6 it is seen,
 * 7 the end.
 */
static int is_far_away(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg;
	sci_error_t error;
	sci_map_t map;
	uint8_t *p;

	(void)arg;
	seg = export_segment(sd, &p, &map);
	put_all(p, 0x11, BYTES);
	step_done(0);
	expect_local(seg, SCI_CB_CONNECT);
	for (unsigned i = 0; i < ROUNDS; i++) {
		expect_local(seg, SCI_CB_NOT_OPERATIONAL);
		expect_local(seg, SCI_CB_OPERATIONAL);
		step_await(5);
		CHECK(get8(p) == 0x11 && get8(p + 1) == i && get8(p + BYTES - 1) == 0x11);
		step_done(6);
	}
	step_done(7);
	expect_local(seg, SCI_CB_DISCONNECT);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void check_down(sci_desc_t sd, sci_remote_segment_t seg, sci_map_t map,
		       sci_sequence_t sequence, sci_error_t whose)
{
	volatile uint8_t *p = SCIGetMapPointer(map);
	sci_remote_data_interrupt_t data = NULL;
	sci_remote_interrupt_t plain = NULL;
	sci_remote_segment_t other = NULL;
	sci_map_t more = NULL;
	sci_error_t error;
	uint8_t byte = 0;

	for (size_t i = 0; i < BYTES; i += 511)
		CHECK(get8(p + i) == 0xff);
	put8(p, 0x22); /* goes nowhere */
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	CHECK_OK(error);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	CHECK_OK(error);
	SCIMemCpy(NULL, &byte, map, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
	SCIMapRemoteSegment(seg, &more, 0, PAGE, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
	SCIConnectSegment(sd, &other, 8, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, whose);
	CHECK(!SCIProbeNode(sd, 0, 8, 0, &error));
	CHECK_IS(error, whose);
	SCIConnectInterrupt(sd, &plain, 8, 0, 5, 0, 0, &error);
	CHECK_IS(error, whose);
	SCIConnectDataInterrupt(sd, &data, 8, 0, 5, 0, 0, &error);
	CHECK_IS(error, whose);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
}

static int looks_through(void *arg)
{
	sci_remote_segment_t seg = NULL;
	sci_sequence_t sequence = NULL, later = NULL;
	sci_desc_t sd = api_begin();
	sci_map_t map, part;
	volatile uint8_t *p, *q;
	sci_error_t error;

	(void)arg;
	step_await(0);
	SCIConnectSegment(sd, &seg, 8, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(seg, &map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	q = SCIMapRemoteSegment(seg, &part, PAGE + 7, 100, NULL, SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	SCICreateMapSequence(map, &sequence, 0, &error);
	CHECK_OK(error);
	for (uint8_t i = 0; i < ROUNDS; i++) {
		CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_OK);
		CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
		CHECK(get8(p) == 0x11 && get8(q) == 0x11);
		step_done(1);
		expect_remote(seg, SCI_CB_NOT_OPERATIONAL, SCI_ERR_NO_LINK_ACCESS);
		check_down(sd, seg, map, sequence,
			   i % 2 ? SCI_ERR_NO_LINK_ACCESS : SCI_ERR_NO_REMOTE_LINK_ACCESS);
		CHECK(get8(q) == 0xff);
		SCICreateMapSequence(part, &later, 0, &error);
		CHECK_OK(error);
		CHECK(SCICheckSequence(later, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
		step_done(2);
		expect_remote(seg, SCI_CB_OPERATIONAL, SCI_ERR_OK);
		CHECK(get8(p) == 0x11 && get8(q) == 0x11 && get8(p + BYTES - 1) == 0x11);
		CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_RETRIABLE);
		CHECK_OK(error);
		CHECK(SCIStartSequence(later, 0, &error) == SCI_SEQ_OK);
		SCIRemoveSequence(later, 0, &error);
		CHECK_OK(error);
		CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_OK);
		put8(p + 1, i);
		SCIMemCpy(sequence, &i, map, 1, 1, SCI_FLAG_ERROR_CHECK, &error);
		CHECK_OK(error);
		CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
		step_done(5);
		step_await(6); /* the next round stores to the same byte */
	}
	/* The other host may see the link come back later than this one, even after our leaving. */
	step_await(7);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(part, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_link_comes_back(void **state)
{
	pid_t a, b;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	a = cluster_fork(*state, 8, is_far_away, NULL);
	b = cluster_fork(*state, 4, looks_through, NULL);
	for (unsigned i = 0; i < ROUNDS; i++) {
		step_await(1);
		assert_int_equal(cluster_link(*state, i % 2 ? 4 : 8, 0, false), 0);
		step_await(2);
		assert_int_equal(cluster_link(*state, i % 2 ? 4 : 8, 0, true), 0);
	}
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- what is done while it is down ---- */

struct heard {
	unsigned down, up, lost, other;
};

static sci_callback_action_t on_remote(void *arg, sci_remote_segment_t segment,
				       sci_segment_cb_reason_t reason, sci_error_t status)
{
	struct heard *h = arg;

	(void)segment;
	if (reason == SCI_CB_NOT_OPERATIONAL && status == SCI_ERR_NO_LINK_ACCESS)
		h->down++;
	else if (reason == SCI_CB_OPERATIONAL && status == SCI_ERR_OK)
		h->up++;
	else if (reason == SCI_CB_LOST && status == SCI_ERR_NOT_CONNECTED)
		h->lost++;
	else
		h->other++;
	step_done(2);
	return SCI_CALLBACK_CONTINUE;
}

static int exports(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg;
	sci_error_t error;
	sci_map_t map;
	uint8_t *p;

	(void)arg;
	seg = export_segment(sd, &p, &map);
	step_done(0);
	expect_local(seg, SCI_CB_CONNECT);
	expect_local(seg, SCI_CB_CONNECT);
	step_done(1);
	expect_local(seg, SCI_CB_NOT_OPERATIONAL);
	expect_local(seg, SCI_CB_NOT_OPERATIONAL);
	step_done(7);
	step_await(3);
	expect_local(seg, SCI_CB_DISCONNECT);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, SCI_FLAG_FORCE_REMOVE, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static int leaves_meanwhile(void *arg)
{
	sci_remote_segment_t seg = NULL, other = NULL;
	struct heard heard = {0};
	sci_desc_t sd = api_begin();
	volatile uint8_t *p;
	sci_error_t error, status;
	sci_map_t map, more;

	(void)arg;
	step_await(0);
	SCIConnectSegment(sd, &seg, 8, 1, 0, on_remote, &heard, 0, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &other, 8, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(seg, &map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(other, &more, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	step_done(6);
	step_await(2);
	CHECK(heard.down == 1 && heard.up == 0 && heard.lost == 0 && heard.other == 0);
	step_await(7);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	step_done(3);
	CHECK(SCIWaitForRemoteSegmentEvent(other, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_NOT_OPERATIONAL);
	CHECK(SCIWaitForRemoteSegmentEvent(other, &status, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	CHECK_IS(status, SCI_ERR_NOT_CONNECTED);
	CHECK(get8(p) == 0xff);
	step_done(4);
	step_await(5);
	CHECK(SCIWaitForRemoteSegmentEvent(other, NULL, 0, 0, &error) == 0);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	CHECK(get8(p) == 0xff);
	SCIUnmapSegment(more, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(other, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void both_sides_may_leave_meanwhile(void **state)
{
	pid_t a, b;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	a = cluster_fork(*state, 8, exports, NULL);
	b = cluster_fork(*state, 4, leaves_meanwhile, NULL);
	step_await(1);
	step_await(6);
	assert_int_equal(cluster_link(*state, 8, 0, false), 0);
	step_await(4);
	assert_int_equal(cluster_link(*state, 8, 0, true), 0);
	step_done(5);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_wait(b), 0);
}

/* ---- one side dies meanwhile ---- */

static int exports_for_ever(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_map_t map;
	uint8_t *p;

	(void)arg;
	export_segment(sd, &p, &map);
	put_all(p, 0x11, BYTES);
	step_done(0);
	while (pause() < 0)
		;
	return 0;
}

static int hears_of_the_end(void *arg)
{
	struct heard heard = {0};
	sci_remote_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	volatile uint8_t *p;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	step_await(0);
	SCIConnectSegment(sd, &seg, 8, 1, 0, on_remote, &heard, 0, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(seg, &map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get8(p) == 0x11);
	step_done(1);
	step_await(2);
	CHECK(heard.down == 1 && get8(p) == 0xff);
	step_done(3);
	step_await(2);
	CHECK(heard.lost == 1 && heard.up == 0 && heard.other == 0 && get8(p) == 0xff);
	step_done(4);
	step_await(5);
	CHECK(get8(p) == 0xff && heard.down == 1 && heard.up == 0);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void an_exporter_dies_meanwhile(void **state, bool with_host)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, exports_for_ever, NULL);
	b = cluster_fork(*state, 4, hears_of_the_end, NULL);
	step_await(1);
	assert_int_equal(cluster_link(*state, 8, 0, false), 0);
	step_await(3);
	if (with_host)
		cluster_crash(*state, 8);
	kill(a, SIGKILL);
	cluster_wait(a);
	step_await(4);
	assert_int_equal(cluster_link(*state, 8, 0, true), 0);
	if (with_host)
		assert_int_equal(cluster_restart(*state, 8, 4), 0);
	step_done(5);
	assert_int_equal(cluster_wait(b), 0);
}

static void the_exporter_is_killed_meanwhile(void **state)
{
	cluster_needs(NEEDS_LINK);
	an_exporter_dies_meanwhile(state, false);
}

static void the_exporters_host_crashes_meanwhile(void **state)
{
	cluster_needs(NEEDS_LINK);
	an_exporter_dies_meanwhile(state, true);
}

static int is_killed(void *arg)
{
	sci_remote_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	step_await(0);
	SCIConnectSegment(sd, &seg, 8, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(seg, &map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	step_done(6);
	expect_remote(seg, SCI_CB_NOT_OPERATIONAL, SCI_ERR_NO_LINK_ACCESS);
	step_done(3);
	while (pause() < 0)
		;
	return 0;
}

static int is_left(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg;
	sci_error_t error;
	sci_map_t map;
	uint8_t *p;

	(void)arg;
	seg = export_segment(sd, &p, &map);
	step_done(0);
	expect_local(seg, SCI_CB_CONNECT);
	step_done(1);
	expect_local(seg, SCI_CB_NOT_OPERATIONAL);
	step_done(7);
	expect_local(seg, SCI_CB_LOST);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void the_importer_is_killed_meanwhile(void **state)
{
	pid_t a, b;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	a = cluster_fork(*state, 8, is_left, NULL);
	b = cluster_fork(*state, 4, is_killed, NULL);
	step_await(1);
	step_await(6);
	assert_int_equal(cluster_link(*state, 4, 0, false), 0);
	step_await(3);
	step_await(7);
	kill(b, SIGKILL);
	cluster_wait(b);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_link(*state, 4, 0, true), 0);
}

/* ---- interrupts ---- */

static int is_triggered(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_data_interrupt_t data = NULL;
	sci_local_interrupt_t plain = NULL;
	unsigned number = 5, length, value = 0;
	sci_error_t error;

	(void)arg;
	SCICreateDataInterrupt(sd, &data, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	SCICreateInterrupt(sd, &plain, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	step_done(0);
	for (unsigned i = 1; i <= 2; i++) {
		length = sizeof(value);
		SCIWaitForDataInterrupt(data, &value, &length, SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK_OK(error);
		CHECK(value == i);
		SCIWaitForInterrupt(plain, SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK_OK(error);
		step_done(4);
	}
	step_await(5);
	SCIRemoveDataInterrupt(data, 0, &error);
	CHECK_OK(error);
	do {
		SCIRemoveInterrupt(plain, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static int triggers(void *arg)
{
	sci_remote_data_interrupt_t data = NULL;
	sci_remote_interrupt_t plain = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;
	unsigned value;

	(void)arg;
	step_await(0);
	SCIConnectDataInterrupt(sd, &data, 8, 0, 5, 0, 0, &error);
	CHECK_OK(error);
	SCIConnectInterrupt(sd, &plain, 8, 0, 5, 0, 0, &error);
	CHECK_OK(error);
	for (value = 1; value <= 2; value++) {
		SCITriggerDataInterrupt(data, &value, sizeof(value), 0, &error);
		CHECK_OK(error);
		SCITriggerInterrupt(plain, 0, &error);
		CHECK_OK(error);
		step_await(4);
		step_done(1);
		step_await(2);
		SCITriggerDataInterrupt(data, &value, sizeof(value), 0, &error);
		CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
		SCITriggerInterrupt(plain, 0, &error);
		CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
		step_done(3);
		step_await(6);
	}
	SCIDisconnectDataInterrupt(data, 0, &error);
	CHECK_OK(error);
	SCIDisconnectInterrupt(plain, 0, &error);
	CHECK_OK(error);
	step_done(5);
	api_end(sd);
	return 0;
}

static void interrupts_come_back_with_the_link(void **state)
{
	pid_t a, b;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	a = cluster_fork(*state, 8, is_triggered, NULL);
	b = cluster_fork(*state, 4, triggers, NULL);
	for (unsigned i = 0; i < 2; i++) {
		step_await(1);
		assert_int_equal(cluster_link(*state, 4, 0, false), 0);
		step_done(2);
		step_await(3);
		assert_int_equal(cluster_link(*state, 4, 0, true), 0);
		step_done(6);
	}
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(a_link_comes_back),
		API_TEST(both_sides_may_leave_meanwhile),
		API_TEST(the_exporter_is_killed_meanwhile),
		API_TEST(the_exporters_host_crashes_meanwhile),
		API_TEST(the_importer_is_killed_meanwhile),
		API_TEST(interrupts_come_back_with_the_link),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
