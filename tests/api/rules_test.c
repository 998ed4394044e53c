/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of delivery, and surprises that programs rely on, which belong to no one kind of object:
 * what a callback without its flag is, what cancelling one leaves, that connecting never waits, how
 * much one descriptor holds, who is told of what while a link is down.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define PAGE 4096u
#define MANY 100u /* of each kind, on one descriptor */

static unsigned called; /* atomic */

static sci_callback_action_t on_local(void *arg, sci_local_segment_t segment,
				      sci_segment_cb_reason_t reason, unsigned node,
				      unsigned adapter, sci_error_t status)
{
	(void)arg;
	(void)segment;
	(void)reason;
	(void)node;
	(void)adapter;
	(void)status;
	__atomic_add_fetch(&called, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CANCEL;
}

static sci_callback_action_t on_remote(void *arg, sci_remote_segment_t segment,
				       sci_segment_cb_reason_t reason, sci_error_t status)
{
	(void)arg;
	(void)segment;
	(void)reason;
	(void)status;
	__atomic_add_fetch(&called, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CANCEL;
}

static sci_callback_action_t on_interrupt(void *arg, sci_local_interrupt_t interrupt,
					  sci_error_t status)
{
	(void)arg;
	(void)interrupt;
	(void)status;
	__atomic_add_fetch(&called, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CANCEL;
}

static sci_callback_action_t on_data(void *arg, sci_local_data_interrupt_t interrupt, void *data,
				     unsigned length, sci_error_t status)
{
	(void)arg;
	(void)interrupt;
	(void)data;
	(void)length;
	(void)status;
	__atomic_add_fetch(&called, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CANCEL;
}

static void await_called(unsigned n)
{
	while (__atomic_load_n(&called, __ATOMIC_SEQ_CST) < n)
		sched_yield();
}

/* One of each, all of this program: it is its own peer. */
struct all {
	sci_desc_t sd;
	sci_local_segment_t segment;
	sci_remote_segment_t remote;
	sci_local_interrupt_t interrupt;
	sci_remote_interrupt_t trigger;
	sci_local_data_interrupt_t data;
	sci_remote_data_interrupt_t sender;
};

static void make(struct all *a, unsigned flag)
{
	unsigned node = cluster_node(4), number = 0, data_number = 0;
	sci_error_t error;

	a->sd = api_begin();
	SCICreateSegment(a->sd, &a->segment, 1, PAGE, on_local, NULL, flag, &error);
	CHECK_OK(error);
	SCIPrepareSegment(a->segment, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(a->segment, 0, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(a->sd, &a->remote, node, 1, 0, on_remote, NULL, 0, flag, &error);
	CHECK_OK(error);
	SCICreateInterrupt(a->sd, &a->interrupt, 0, &number, on_interrupt, NULL, flag, &error);
	CHECK_OK(error);
	SCIConnectInterrupt(a->sd, &a->trigger, node, 0, number, 0, 0, &error);
	CHECK_OK(error);
	SCICreateDataInterrupt(a->sd, &a->data, 0, &data_number, on_data, NULL, flag, &error);
	CHECK_OK(error);
	SCIConnectDataInterrupt(a->sd, &a->sender, node, 0, data_number, 0, 0, &error);
	CHECK_OK(error);
}

/*
 * Something happens to each of the four that may have callbacks; to the first it did by connecting.
 */
static void stir(struct all *a)
{
	sci_error_t error;

	SCISetSegmentUnavailable(a->segment, 0, SCI_FLAG_NOTIFY, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(a->segment, 0, 0, &error);
	CHECK_OK(error);
	SCITriggerInterrupt(a->trigger, 0, &error);
	CHECK_OK(error);
	SCITriggerDataInterrupt(a->sender, &error, sizeof(error), 0, &error);
	CHECK_OK(error);
}

static void end(struct all *a)
{
	sci_error_t error;

	SCIDisconnectDataInterrupt(a->sender, 0, &error);
	CHECK_OK(error);
	SCIDisconnectInterrupt(a->trigger, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(a->remote, 0, &error);
	CHECK_OK(error);
	SCIRemoveDataInterrupt(a->data, 0, &error);
	CHECK_OK(error);
	SCIRemoveInterrupt(a->interrupt, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(a->segment, 0, &error);
	CHECK_OK(error);
	api_end(a->sd);
}

static int passes_pointers(void *arg)
{
	unsigned length = sizeof(unsigned), value;
	sci_error_t error;
	struct all a;

	(void)arg;
	make(&a, 0);
	stir(&a);
	/* Whoever waits gets it all. */
	CHECK(SCIWaitForLocalSegmentEvent(a.segment, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_CONNECT);
	CHECK_OK(error);
	CHECK(SCIWaitForRemoteSegmentEvent(a.remote, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	CHECK_OK(error);
	SCIWaitForInterrupt(a.interrupt, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
	SCIWaitForDataInterrupt(a.data, &value, &length, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
	end(&a);
	CHECK(called == 0);
	return 0;
}

static void a_callback_without_its_flag_is_nobodys(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, passes_pointers, NULL)), 0);
}

static int cancels(void *arg)
{
	unsigned length = sizeof(unsigned), value;
	sci_error_t error;
	struct all a;

	(void)arg;
	make(&a, SCI_FLAG_USE_CALLBACK);
	stir(&a);
	await_called(4);
	stir(&a);
	stir(&a);
	SCIWaitForLocalSegmentEvent(a.segment, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIWaitForInterrupt(a.interrupt, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIWaitForDataInterrupt(a.data, &value, &length, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	end(&a); /* what is cancelled is removed as ever */
	CHECK(called == 4);
	return 0;
}

static void a_cancelled_callback_comes_no_more(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, cancels, NULL)), 0);
}

/* ---- connecting never waits ---- */

static int connects_to_nothing(void *arg)
{
	static const unsigned timeouts[] = {0, 5000, SCI_INFINITE_TIMEOUT};
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	for (unsigned i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		sci_remote_data_interrupt_t sender = NULL;
		sci_remote_interrupt_t trigger = NULL;
		sci_remote_segment_t remote = NULL;

		SCIConnectSegment(sd, &remote, cluster_node(8), 99, 0, NULL, NULL, timeouts[i], 0,
				  &error);
		CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
		SCIConnectInterrupt(sd, &trigger, cluster_node(8), 0, 99, timeouts[i], 0, &error);
		CHECK_IS(error, SCI_ERR_NO_SUCH_INTNO);
		SCIConnectDataInterrupt(sd, &sender, cluster_node(8), 0, 99, timeouts[i], 0,
					&error);
		CHECK_IS(error, SCI_ERR_NO_SUCH_INTNO);
		CHECK(!remote && !trigger && !sender);
	}
	api_end(sd);
	return 0;
}

static void connecting_returns_whatever_the_timeout(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, connects_to_nothing, NULL)), 0);
}

/* ---- many of a kind ---- */

static int makes_many(void *arg)
{
	static struct {
		sci_local_segment_t segment;
		sci_remote_segment_t remote;
		sci_map_t map, far;
		sci_local_interrupt_t interrupt;
		sci_local_data_interrupt_t data;
	} all[MANY];
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	for (unsigned i = 0; i < MANY; i++) {
		unsigned number = 1000 + i;

		SCICreateSegment(sd, &all[i].segment, 0, 32, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
		CHECK_OK(error);
		SCIPrepareSegment(all[i].segment, 0, 0, &error);
		CHECK_OK(error);
		SCISetSegmentAvailable(all[i].segment, 0, 0, &error);
		CHECK_OK(error);
		SCIMapLocalSegment(all[i].segment, &all[i].map, 0, 32, NULL, 0, &error);
		CHECK_OK(error);
		SCIConnectSegment(sd, &all[i].remote, cluster_node(4),
				  SCIGetLocalSegmentId(all[i].segment), 0, NULL, NULL, 0, 0,
				  &error);
		CHECK_OK(error);
		SCIMapRemoteSegment(all[i].remote, &all[i].far, 0, 32, NULL, 0, &error);
		CHECK_OK(error);
		SCICreateInterrupt(sd, &all[i].interrupt, 0, &number, NULL, NULL,
				   SCI_FLAG_FIXED_INTNO, &error);
		CHECK_OK(error);
		SCICreateDataInterrupt(sd, &all[i].data, 0, &number, NULL, NULL,
				       SCI_FLAG_FIXED_INTNO, &error);
		CHECK_OK(error);
	}
	SCIClose(sd, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	for (unsigned i = 0; i < MANY; i++) {
		SCIUnmapSegment(all[i].far, 0, &error);
		CHECK_OK(error);
		SCIUnmapSegment(all[i].map, 0, &error);
		CHECK_OK(error);
		SCIDisconnectSegment(all[i].remote, 0, &error);
		CHECK_OK(error);
		SCIRemoveSegment(all[i].segment, 0, &error);
		CHECK_OK(error);
		SCIRemoveInterrupt(all[i].interrupt, 0, &error);
		CHECK_OK(error);
		SCIRemoveDataInterrupt(all[i].data, 0, &error);
		CHECK_OK(error);
	}
	api_end(sd);
	return 0;
}

static void one_descriptor_holds_many(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, makes_many, NULL)), 0);
}

/* ---- one event for each connection; leaving while the link is down ---- */

static void expect_local(sci_local_segment_t seg, sci_segment_cb_reason_t reason)
{
	unsigned node = 0;
	sci_error_t error;

	CHECK(SCIWaitForLocalSegmentEvent(seg, &node, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      reason);
	CHECK_OK(error);
	CHECK(node == 8);
}

static void expect_remote(sci_remote_segment_t seg, sci_segment_cb_reason_t reason)
{
	sci_error_t error;

	CHECK(SCIWaitForRemoteSegmentEvent(seg, NULL, SCI_INFINITE_TIMEOUT, 0, &error) == reason);
	CHECK_OK(error);
}

static int asks_to_leave(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = NULL;
	volatile uint32_t *p;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	step_done(0);
	/* Two connections of one program are two events each time. */
	expect_local(seg, SCI_CB_CONNECT);
	expect_local(seg, SCI_CB_CONNECT);
	SCISetSegmentUnavailable(seg, 0, SCI_FLAG_NOTIFY, &error);
	CHECK_OK(error);
	expect_local(seg, SCI_CB_NOT_OPERATIONAL);
	expect_local(seg, SCI_CB_NOT_OPERATIONAL);
	expect_local(seg, SCI_CB_OPERATIONAL);
	expect_local(seg, SCI_CB_OPERATIONAL);
	expect_local(seg, SCI_CB_DISCONNECT);
	expect_local(seg, SCI_CB_DISCONNECT);
	CHECK(get32(p) == 2);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

/* Asked to leave, it may take its time: data flow until it does, also after the link was down. */
static int takes_its_time(void *arg)
{
	sci_remote_segment_t a = NULL, b = NULL, late = NULL;
	sci_desc_t sd = api_begin();
	volatile uint32_t *p;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	SCIConnectSegment(sd, &a, 4, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &b, 4, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(a, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	expect_remote(a, SCI_CB_DISCONNECT);
	expect_remote(b, SCI_CB_DISCONNECT);
	SCIConnectSegment(sd, &late, 4, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
	put32(p, 1);
	CHECK(get32(p) == 1);
	step_done(1);
	expect_remote(a, SCI_CB_NOT_OPERATIONAL);
	expect_remote(b, SCI_CB_NOT_OPERATIONAL);
	CHECK(get32(p) == 0xffffffff);
	step_done(2);
	expect_remote(a, SCI_CB_OPERATIONAL);
	expect_remote(b, SCI_CB_OPERATIONAL);
	CHECK(get32(p) == 1);
	put32(p, 2);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(a, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(b, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void leaving_takes_its_time(void **state)
{
	pid_t exporter, importer;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	exporter = cluster_fork(*state, 4, asks_to_leave, NULL);
	step_await(0);
	importer = cluster_fork(*state, 8, takes_its_time, NULL);
	step_await(1);
	assert_int_equal(cluster_link(*state, 8, 0, false), 0);
	step_await(2);
	assert_int_equal(cluster_link(*state, 8, 0, true), 0);
	assert_int_equal(cluster_wait(importer), 0);
	assert_int_equal(cluster_wait(exporter), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(a_callback_without_its_flag_is_nobodys),
		API_TEST(a_cancelled_callback_comes_no_more),
		API_TEST(connecting_returns_whatever_the_timeout),
		API_TEST(one_descriptor_holds_many),
		API_TEST(leaving_takes_its_time),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
