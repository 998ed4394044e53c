/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting: without waiting, from inside callbacks, and to the own process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define PAGE 4096u
#define ROUNDS 40u

static sci_local_segment_t export_segment(sci_desc_t sd, unsigned id,
					  sci_cb_local_segment_t callback, void *arg)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, PAGE, callback, arg, callback ? SCI_FLAG_USE_CALLBACK : 0,
			 &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	return seg;
}

static sci_remote_segment_t start(sci_desc_t sd, unsigned node, unsigned id,
				  sci_cb_remote_segment_t callback, void *arg)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t error;

	SCIConnectSegment(sd, &seg, node, id, 0, callback, arg, SCI_INFINITE_TIMEOUT,
			  SCI_FLAG_ASYNCHRONOUS_CONNECT | (callback ? SCI_FLAG_USE_CALLBACK : 0),
			  &error);
	CHECK_OK(error);
	CHECK(seg != NULL);
	return seg;
}

static void disconnect(sci_remote_segment_t seg)
{
	sci_error_t error;

	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
}

/* ---- without waiting ---- */

static int exporter(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd, 1, NULL, NULL);
	sci_error_t error;
	sci_map_t map;
	char *p;

	(void)arg;
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	put_text(p, "here");
	step_done(0);
	step_await(1);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	api_remove_segment(seg);
	api_end(sd);
	return 0;
}

static void look(sci_remote_segment_t seg)
{
	sci_error_t error;
	sci_map_t map;
	volatile char *p;

	CHECK(SCIGetRemoteSegmentSize(seg) == PAGE);
	CHECK(SCIGetRemoteSegmentId(seg) == 1 && SCIGetRemoteSegmentNodeId(seg) == cluster_node(8));
	p = SCIMapRemoteSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(is_text(p, "here"));
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
}

/* Uses what it is told of, and leaves, all inside. */
static sci_callback_action_t on_connected(void *arg, sci_remote_segment_t segment,
					  sci_segment_cb_reason_t reason, sci_error_t status)
{
	CHECK_OK(status);
	CHECK(reason == SCI_CB_OPERATIONAL);
	look(segment);
	disconnect(segment);
	*(unsigned *)arg = 1;
	step_done(2);
	return SCI_CALLBACK_CANCEL;
}

static sci_callback_action_t on_refused(void *arg, sci_remote_segment_t segment,
					sci_segment_cb_reason_t reason, sci_error_t status)
{
	(void)segment;
	CHECK_IS(status, SCI_ERR_NO_SUCH_SEGMENT);
	CHECK(reason == SCI_CB_LOST);
	*(unsigned *)arg = 1;
	step_done(2);
	return SCI_CALLBACK_CONTINUE;
}

static int importer(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t seg, many[ROUNDS];
	sci_error_t error, status;
	unsigned told = 0;
	sci_map_t map;

	(void)arg;
	step_await(0);
	start(sd, cluster_node(8), 1, on_connected, &told);
	step_await(2);
	CHECK(told == 1);
	/* Without a callback: who waits is told. */
	seg = start(sd, cluster_node(8), 1, NULL, NULL);
	SCIMapRemoteSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	if (error == SCI_ERR_OK) /* it was quick */
		SCIUnmapSegment(map, 0, &error);
	else
		CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	CHECK(SCIWaitForRemoteSegmentEvent(seg, &status, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_OPERATIONAL);
	CHECK_OK(error);
	CHECK_OK(status);
	look(seg);
	disconnect(seg);
	/* There is none. */
	told = 0;
	seg = start(sd, cluster_node(8), 2, on_refused, &told);
	step_await(2);
	CHECK(told == 1);
	SCIMapRemoteSegment(seg, &map, 0, 1, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	disconnect(seg);
	/* Let go of before, or while, the answer comes. */
	for (unsigned i = 0; i < ROUNDS; i++) {
		seg = start(sd, cluster_node(8), 1 + i % 2, NULL, NULL);
		for (unsigned j = 0; j < i; j++)
			smartio_yield();
		disconnect(seg);
	}
	/* Many at once. */
	for (unsigned i = 0; i < ROUNDS; i++)
		many[i] = start(sd, cluster_node(8), 1, NULL, NULL);
	for (unsigned i = 0; i < ROUNDS; i++) {
		CHECK(SCIWaitForRemoteSegmentEvent(many[i], NULL, SCI_INFINITE_TIMEOUT, 0,
						   &error) == SCI_CB_OPERATIONAL);
		disconnect(many[i]);
	}
	start(sd, cluster_node(8), 1, NULL, NULL);
	SCIClose(sd, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCITerminate(); /* with one under way */
	step_done(1);
	return 0;
}

static void connecting_need_not_be_waited_for(void **state)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, exporter, NULL);
	b = cluster_fork(*state, 4, importer, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- from inside callbacks ---- */

struct meeting {
	sci_desc_t sd;
	unsigned other, connects, disconnects;
};

/* Whoever is connected to connects back, writes, and leaves, while the other does the same. */
static sci_callback_action_t on_guest(void *arg, sci_local_segment_t segment,
				      sci_segment_cb_reason_t reason, unsigned node,
				      unsigned adapter, sci_error_t status)
{
	struct meeting *m = arg;
	sci_remote_segment_t back = NULL;
	volatile uint32_t *p;
	sci_error_t error;
	sci_map_t map;

	CHECK_OK(status);
	CHECK(node == m->other && adapter == 0 && SCIGetLocalSegmentId(segment) == 1);
	if (reason == SCI_CB_DISCONNECT) {
		m->disconnects++;
		step_done(node == 4 ? 5 : 6);
		return SCI_CALLBACK_CONTINUE;
	}
	CHECK(reason == SCI_CB_CONNECT);
	m->connects++;
	SCIConnectSegment(m->sd, &back, node, 2, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(back, &map, 0, sizeof(*p), NULL, 0, &error);
	CHECK_OK(error);
	put32(p, get32(p) + 1);
	(void)get32(p); /* a store is posted: between machines the step would be there before it */
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	disconnect(back);
	step_done(node == 4 ? 3 : 4);
	return SCI_CALLBACK_CONTINUE;
}

static int meets(void *arg)
{
	struct meeting m = {.sd = api_begin(), .other = *(unsigned *)arg};
	unsigned mine = m.other == 4 ? 1 : 0;
	sci_local_segment_t first = export_segment(m.sd, 1, on_guest, &m);
	sci_local_segment_t second = export_segment(m.sd, 2, NULL, NULL);
	sci_remote_segment_t seg = NULL;
	sci_error_t error;
	sci_map_t map;
	uint32_t *p;

	p = SCIMapLocalSegment(second, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	step_done(mine);
	step_await(1 - mine);
	for (unsigned i = 0; i < ROUNDS; i++) {
		SCIConnectSegment(m.sd, &seg, m.other, 1, 0, NULL, NULL, 0, 0, &error);
		CHECK_OK(error);
		step_await(m.other == 4 ? 4 : 3); /* it has been here */
		CHECK(get32(p) == i + 1);
		disconnect(seg);
		step_await(m.other == 4 ? 6 : 5);
	}
	/* The other's callback may still need our second segment. */
	step_done(7 + mine);
	step_await(8 - mine);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	api_remove_segment(first);
	api_remove_segment(second);
	CHECK(m.connects == ROUNDS && m.disconnects == ROUNDS);
	api_end(m.sd);
	return 0;
}

static void callbacks_connect(void **state)
{
	unsigned four = 4, eight = 8;
	pid_t a, b;

	cluster_needs(NEEDS_HOSTS); /* one segment id, twice */
	steps_reset();
	a = cluster_fork(*state, 8, meets, &four);
	b = cluster_fork(*state, 4, meets, &eight);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- to oneself ---- */

static int is_its_own_peer(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd, 3, NULL, NULL);
	sci_remote_segment_t first = NULL, second;
	volatile uint32_t *p, *q;
	unsigned node = 0;
	sci_error_t error;
	sci_map_t near, far, again;
	uint32_t *own;

	(void)arg;
	own = SCIMapLocalSegment(seg, &near, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &first, 4, 3, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	second = start(sd, SCI_LOCAL_HOST, 3, NULL, NULL);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(SCIWaitForLocalSegmentEvent(seg, &node, NULL, SCI_INFINITE_TIMEOUT, 0,
						  &error) == SCI_CB_CONNECT);
		CHECK(node == 4);
	}
	CHECK(SCIWaitForRemoteSegmentEvent(second, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_OPERATIONAL);
	p = SCIMapRemoteSegment(first, &far, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	q = SCIMapRemoteSegment(second, &again, 4, 4, NULL, 0, &error);
	CHECK_OK(error);
	put32(p, 7);
	put32(q, 8);
	CHECK(get32(own) == 7 && get32(own + 1) == 8 && get32(p + 1) == 8);
	SCIUnmapSegment(near, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(far, 0, &error);
	CHECK_OK(error);
	disconnect(first);
	CHECK(SCIWaitForLocalSegmentEvent(seg, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	SCIRemoveSegment(seg, SCI_FLAG_FORCE_REMOVE, &error);
	CHECK_OK(error);
	CHECK(SCIWaitForRemoteSegmentEvent(second, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	CHECK(get32(q) == 0xffffffff);
	SCIUnmapSegment(again, 0, &error);
	CHECK_OK(error);
	disconnect(second);
	api_end(sd);
	return 0;
}

static void a_process_is_its_own_peer(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, is_its_own_peer, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(connecting_need_not_be_waited_for),
		API_TEST(callbacks_connect),
		API_TEST(a_process_is_its_own_peer),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
