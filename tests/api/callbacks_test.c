/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks and threads: any call from inside, nothing held meanwhile, several threads on one
 * handle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define PAGE 4096u
#define ROUNDS 30u
#define THREADS 4u

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

/* Every call of a segment's life, and of an interrupt's, on this host alone. */
static void a_whole_life(sci_desc_t sd, unsigned id)
{
	sci_local_segment_t seg = export_segment(sd, id, NULL, NULL);
	sci_remote_data_interrupt_t remote = NULL;
	sci_local_data_interrupt_t dint = NULL;
	sci_remote_segment_t far = NULL;
	sci_sequence_t sequence = NULL;
	unsigned number = 0, node = 0;
	sci_desc_t own = NULL;
	sci_map_t near, map;
	volatile uint32_t *p;
	sci_error_t error;
	uint32_t *q;

	SCIOpen(&own, 0, &error);
	CHECK_OK(error);
	SCIGetLocalNodeId(0, &node, 0, &error);
	CHECK_OK(error);
	SCIShareSegment(seg, 0, &error);
	CHECK_OK(error);
	q = SCIMapLocalSegment(seg, &near, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(own, &far, node, id, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(far, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	SCICreateMapSequence(map, &sequence, 0, &error);
	CHECK_OK(error);
	put32(p, id);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK && get32(q) == id);
	CHECK(SCIWaitForLocalSegmentEvent(seg, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_CONNECT);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(near, 0, &error);
	CHECK_OK(error);
	SCISetSegmentUnavailable(seg, 0, SCI_FLAG_NOTIFY, &error);
	CHECK_OK(error);
	CHECK(SCIWaitForRemoteSegmentEvent(far, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	SCIDisconnectSegment(far, 0, &error);
	CHECK_OK(error);
	SCICreateDataInterrupt(own, &dint, 0, &number, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIConnectDataInterrupt(own, &remote, node, 0, number, 0, 0, &error);
	CHECK_OK(error);
	SCITriggerDataInterrupt(remote, &id, sizeof(id), 0, &error);
	CHECK_OK(error);
	number = sizeof(node);
	SCIWaitForDataInterrupt(dint, &node, &number, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
	CHECK(node == id);
	SCIDisconnectDataInterrupt(remote, 0, &error);
	CHECK_OK(error);
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	api_remove_segment(seg);
	SCIClose(own, 0, &error);
	CHECK_OK(error);
}

/* ---- any call inside ---- */

struct inside {
	sci_desc_t sd;
	unsigned local, remote;
};

static sci_callback_action_t local_inside(void *arg, sci_local_segment_t segment,
					  sci_segment_cb_reason_t reason, unsigned node,
					  unsigned adapter, sci_error_t status)
{
	struct inside *i = arg;
	sci_error_t error;

	(void)node;
	(void)adapter;
	(void)status;
	if (reason == SCI_CB_CONNECT) {
		a_whole_life(i->sd, 20);
		i->local++;
		return SCI_CALLBACK_CONTINUE;
	}
	/* Whoever was here is gone: so goes the segment, by its own callback. */
	CHECK(reason == SCI_CB_DISCONNECT);
	SCIRemoveSegment(segment, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(segment, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	i->local++;
	step_done(1);
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t remote_inside(void *arg, sci_remote_segment_t segment,
					   sci_segment_cb_reason_t reason, sci_error_t status)
{
	struct inside *i = arg;
	sci_error_t error;

	(void)status;
	CHECK(reason == SCI_CB_DISCONNECT);
	a_whole_life(i->sd, 21);
	SCIDisconnectSegment(segment, 0, &error);
	CHECK_OK(error);
	i->remote++;
	return SCI_CALLBACK_CONTINUE;
}

static int calls_inside(void *arg)
{
	struct inside i = {.sd = api_begin()};
	sci_local_segment_t seg = export_segment(i.sd, 1, local_inside, &i);
	sci_remote_segment_t far = NULL;
	sci_error_t error;

	(void)arg;
	SCIConnectSegment(i.sd, &far, 4, 1, 0, remote_inside, &i, 0, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	SCISetSegmentUnavailable(seg, 0, SCI_FLAG_NOTIFY, &error);
	CHECK_OK(error);
	step_await(1);
	CHECK(i.local == 2 && i.remote == 1);
	api_end(i.sd);
	return 0;
}

static void any_call_may_be_made_inside(void **state)
{
	steps_reset();
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, calls_inside, NULL)), 0);
}

/* ---- nothing is held meanwhile ---- */

static sci_callback_action_t stays_inside(void *arg, sci_local_segment_t segment,
					  sci_segment_cb_reason_t reason, unsigned node,
					  unsigned adapter, sci_error_t status)
{
	(void)arg;
	(void)segment;
	(void)node;
	(void)adapter;
	(void)status;
	if (reason == SCI_CB_CONNECT) {
		step_done(0);
		step_await(1);
	}
	return SCI_CALLBACK_CONTINUE;
}

static int others_go_on(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = export_segment(sd, 1, stays_inside, NULL);
	sci_remote_segment_t far = NULL, more = NULL;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	SCIConnectSegment(sd, &far, 4, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	step_await(0);
	a_whole_life(sd, 20);
	/* The very segment, too. */
	SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &more, 4, 1, 0, NULL, NULL, 0, SCI_FLAG_ASYNCHRONOUS_CONNECT, &error);
	CHECK_OK(error);
	CHECK(SCIWaitForRemoteSegmentEvent(more, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_OPERATIONAL);
	SCIDisconnectSegment(more, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(far, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, SCI_FLAG_NOTIFY, &error);
	CHECK(error == SCI_ERR_ILLEGAL_FLAG);
	step_done(1);
	step_done(1);
	do {
		SCIRemoveSegment(seg, 0, &error); /* waits for the callback */
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void nothing_is_held_while_a_callback_runs(void **state)
{
	steps_reset();
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, others_go_on, NULL)), 0);
}

/* ---- several threads on one handle ---- */

struct crowd {
	sci_desc_t sd;
	sci_local_segment_t segment;
	sci_remote_segment_t far;
	pthread_barrier_t start;
	unsigned removed, disconnected; /* atomic */
};

/* All that may happen to a handle that others use, and end, at the same time. */
static void *use_and_end(void *arg)
{
	struct crowd *c = arg;
	sci_error_t error;
	sci_map_t map;

	pthread_barrier_wait(&c->start);
	SCIMapRemoteSegment(c->far, &map, 0, PAGE, NULL, 0, &error);
	if (error == SCI_ERR_OK) {
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
	} else {
		CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	}
	SCIWaitForRemoteSegmentEvent(c->far, NULL, 0, 0, &error);
	CHECK(error == SCI_ERR_TIMEOUT || error == SCI_ERR_ILLEGAL_PARAMETER ||
	      error == SCI_ERR_CANCELLED);
	do {
		SCIDisconnectSegment(c->far, 0, &error);
	} while (error == SCI_ERR_BUSY);
	if (error == SCI_ERR_OK)
		__atomic_add_fetch(&c->disconnected, 1, __ATOMIC_SEQ_CST);
	else
		CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIMapLocalSegment(c->segment, &map, 0, PAGE, NULL, 0, &error);
	if (error == SCI_ERR_OK) {
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
	} else {
		CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	}
	do {
		SCIRemoveSegment(c->segment, 0, &error);
	} while (error == SCI_ERR_BUSY);
	if (error == SCI_ERR_OK)
		__atomic_add_fetch(&c->removed, 1, __ATOMIC_SEQ_CST);
	else
		CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	return NULL;
}

static int is_crowded(void *arg)
{
	struct crowd c = {.sd = api_begin()};
	pthread_t thread[THREADS];
	sci_error_t error;

	(void)arg;
	CHECK(!pthread_barrier_init(&c.start, NULL, THREADS));
	for (unsigned round = 0; round < ROUNDS; round++) {
		c.removed = c.disconnected = 0;
		c.segment = export_segment(c.sd, 1, NULL, NULL);
		c.far = NULL;
		SCIConnectSegment(c.sd, &c.far, 4, 1, 0, NULL, NULL, 0, 0, &error);
		CHECK_OK(error);
		for (unsigned i = 0; i < THREADS; i++)
			CHECK(!pthread_create(&thread[i], NULL, use_and_end, &c));
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		CHECK(c.removed == 1 && c.disconnected == 1);
	}
	pthread_barrier_destroy(&c.start);
	api_end(c.sd);
	return 0;
}

static void threads_share_handles(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, is_crowded, NULL)), 0);
}

/*
 * A removal that somebody is connected to, and what another thread does with the segment meanwhile.
 */
static void *remove_once(void *arg)
{
	sci_error_t error;

	step_done(0);
	SCIRemoveSegment(arg, 0, &error);
	CHECK(error == SCI_ERR_OK || error == SCI_ERR_BUSY || error == SCI_ERR_ILLEGAL_PARAMETER);
	return error == SCI_ERR_OK ? arg : NULL;
}

static int removes_twice(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	for (unsigned round = 0; round < 20; round++) {
		sci_local_segment_t seg = export_segment(sd, 1, NULL, NULL);
		sci_remote_segment_t far = NULL;
		void *removed;
		pthread_t thread;
		sci_map_t map;

		SCIConnectSegment(sd, &far, 4, 1, 0, NULL, NULL, 0, 0, &error);
		CHECK_OK(error);
		CHECK(!pthread_create(&thread, NULL, remove_once, seg));
		step_await(0);
		SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
		if (error == SCI_ERR_OK)
			SCIUnmapSegment(map, 0, &error);
		else
			CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
		SCIRemoveSegment(seg, SCI_FLAG_FORCE_REMOVE, &error);
		pthread_join(thread, &removed);
		CHECK((error == SCI_ERR_OK) != (removed != NULL));
		CHECK(SCIWaitForRemoteSegmentEvent(far, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
		      SCI_CB_DISCONNECT);
		SCIDisconnectSegment(far, 0, &error);
		CHECK_OK(error);
	}
	api_end(sd);
	return 0;
}

static void two_threads_remove_it(void **state)
{
	steps_reset();
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, removes_twice, NULL)), 0);
}

/* ---- fork while other threads are inside ---- */

static unsigned stop; /* atomic */

static void *live_and_live(void *arg)
{
	unsigned id = 30;

	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST))
		a_whole_life(arg, id++);
	return NULL;
}

static int forks_in_a_crowd(void *arg)
{
	sci_desc_t sd = api_begin();
	pthread_t thread;
	sci_error_t error;

	(void)arg;
	stop = 0;
	CHECK(!pthread_create(&thread, NULL, live_and_live, sd));
	for (unsigned i = 0; i < 10; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			__attribute__((unused)) sci_desc_t own;

			SCIClose(sd, 0, &error);
			CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
#ifndef __SANITIZE_THREAD__ /* which lets no such child start a thread */
			own = api_begin();
			export_segment(own, 1000 + i, NULL, NULL);
#endif
			_exit(0);
		}
		CHECK(cluster_wait(pid) == 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	api_end(sd);
	return 0;
}

static void fork_disturbs_nobody(void **state)
{
	cluster_needs_kernel(NEEDS_FORK);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, forks_in_a_crowd, NULL)), 0);
}

/* ---- the object of a callback is removed meanwhile ---- */

struct removed {
	sci_desc_t sd;
	unsigned over; /* atomic */
};

/* Goes on long after smartiod has removed the segment. */
static sci_callback_action_t uses_its_handle(void *arg, sci_local_segment_t segment,
					     sci_segment_cb_reason_t reason, unsigned node,
					     unsigned adapter, sci_error_t status)
{
	sci_remote_segment_t again = NULL;
	struct removed *r = arg;
	sci_error_t error;

	(void)reason;
	(void)node;
	(void)adapter;
	(void)status;
	step_done(0);
	do {
		SCIConnectSegment(r->sd, &again, SCI_LOCAL_HOST, 55, 0, NULL, NULL, 0, 0, &error);
		if (error == SCI_ERR_OK)
			SCIDisconnectSegment(again, 0, &error);
	} while (error == SCI_ERR_OK);
	CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
	for (unsigned i = 0; i < ROUNDS; i++) {
		CHECK(SCIProbeNode(r->sd, 0, cluster_node(4), 0, &error));
		CHECK(SCIGetLocalSegmentId(segment) == 55);
	}
	__atomic_store_n(&r->over, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CONTINUE;
}

static int removes_meanwhile(void *arg)
{
	struct removed r = {.sd = api_begin()};
	sci_remote_segment_t far = NULL;
	sci_local_segment_t seg;
	sci_error_t error;

	(void)arg;
	seg = export_segment(r.sd, 55, uses_its_handle, &r);
	SCIConnectSegment(r.sd, &far, SCI_LOCAL_HOST, 55, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	step_await(0);
	SCIRemoveSegment(seg, SCI_FLAG_FORCE_REMOVE, &error);
	CHECK_OK(error);
	CHECK(__atomic_load_n(&r.over, __ATOMIC_SEQ_CST));
	SCIDisconnectSegment(far, 0, &error);
	CHECK_OK(error);
	api_end(r.sd);
	return 0;
}

static void a_callback_keeps_its_handle(void **state)
{
	steps_reset();
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, removes_meanwhile, NULL)), 0);
}

struct waits {
	sci_local_segment_t segment;
	pthread_t thread;
};

static void *maps_while_it_can(void *arg)
{
	const struct waits *w = arg;
	sci_error_t error;
	sci_map_t map;

	do {
		SCIMapLocalSegment(w->segment, &map, 0, 4096, NULL, 0, &error);
		if (error == SCI_ERR_OK)
			SCIUnmapSegment(map, 0, &error);
	} while (error == SCI_ERR_OK);
	return NULL;
}

static sci_callback_action_t waits_for_a_thread(void *arg, sci_local_segment_t segment,
						sci_segment_cb_reason_t reason, unsigned node,
						unsigned adapter, sci_error_t status)
{
	struct waits *w = arg;

	(void)segment;
	(void)reason;
	(void)node;
	(void)adapter;
	(void)status;
	step_done(0);
	CHECK(pthread_join(w->thread, NULL) == 0);
	return SCI_CALLBACK_CANCEL;
}

static int removes_what_others_wait_for(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t far = NULL;
	sci_error_t error;
	struct waits w;

	(void)arg;
	w.segment = export_segment(sd, 56, waits_for_a_thread, &w);
	CHECK(pthread_create(&w.thread, NULL, maps_while_it_can, &w) == 0);
	SCIConnectSegment(sd, &far, SCI_LOCAL_HOST, 56, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	step_await(0);
	do
		SCIRemoveSegment(w.segment, SCI_FLAG_FORCE_REMOVE, &error);
	while (error == SCI_ERR_BUSY); /* it is mapped just now */
	CHECK_OK(error);
	SCIDisconnectSegment(far, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

/*
 * The callback waits for a thread, that for the removal, that for the callback: somebody must give
 * in.
 */
static void a_callback_may_wait_for_a_thread(void **state)
{
	steps_reset();
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, removes_what_others_wait_for, NULL)),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(any_call_may_be_made_inside),
		API_TEST(nothing_is_held_while_a_callback_runs),
		API_TEST(threads_share_handles),
		API_TEST(two_threads_remove_it),
		API_TEST(a_callback_keeps_its_handle),
		API_TEST(a_callback_may_wait_for_a_thread),
		API_TEST(fork_disturbs_nobody),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
