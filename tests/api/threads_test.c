/* SPDX-License-Identifier: BSD-2-Clause */
/* Many threads in one process: all calls at once, on objects of their own and on shared ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <pthread.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define THREADS 6u
#define ROUNDS 40u
#define PAGE 4096u

static sci_callback_action_t count_event(void *arg, sci_local_segment_t segment,
					 sci_segment_cb_reason_t reason, unsigned node,
					 unsigned adapter, sci_error_t error)
{
	unsigned *count = arg;

	(void)segment;
	(void)node;
	(void)adapter;
	CHECK_OK(error);
	CHECK(reason == SCI_CB_CONNECT || reason == SCI_CB_DISCONNECT);
	__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
	return SCI_CALLBACK_CONTINUE;
}

/* A segment's whole life, with this host as its own peer. */
static void one_life(sci_desc_t sd, unsigned id)
{
	sci_local_segment_t seg = NULL;
	sci_remote_segment_t remote = NULL;
	/* Until the segment is removed; after that no callback writes to it. */
	unsigned events = 0;
	sci_map_t map, near;
	volatile uint32_t *p;
	uint32_t *q;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, PAGE, count_event, &events, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	q = SCIMapLocalSegment(seg, &near, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &remote, 4, id, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(remote, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	put32(p, id);
	SCIStoreBarrier(NULL, 0);
	CHECK(get32(q) == id);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(remote, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(near, 0, &error);
	CHECK_OK(error);
	api_remove_segment(seg);
	CHECK(events <= 2);
}

struct worker {
	sci_desc_t shared;
	unsigned index;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	sci_desc_t own = NULL;
	sci_error_t error;

	for (unsigned i = 0; i < ROUNDS; i++) {
		SCIOpen(&own, 0, &error);
		CHECK_OK(error);
		one_life(i % 2 ? own : w->shared, 1000 + w->index);
		SCIClose(own, 0, &error);
		CHECK_OK(error);
	}
	return NULL;
}

static int all_at_once(void *arg)
{
	sci_desc_t sd = api_begin();
	struct worker worker[THREADS];
	pthread_t thread[THREADS];

	(void)arg;
	for (unsigned i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){sd, i};
		CHECK(!pthread_create(&thread[i], NULL, work, &worker[i]));
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	api_end(sd);
	return 0;
}

static void threads_make_all_calls_at_once(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, all_at_once, NULL)), 0);
}

static void live(void *arg)
{
	work(arg);
}

/* The same in threads that the library starts. */
static int started_by_the_library(void *arg)
{
	struct worker worker[THREADS];
	smartio_thread_t thread[THREADS];
	sci_error_t error;
	sci_desc_t sd;

	(void)arg;
	smartio_thread_start(live, &worker[0], &thread[0], &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	sd = api_begin();
	smartio_thread_start(NULL, &worker[0], &thread[0], &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_thread_start(live, &worker[0], NULL, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	for (unsigned i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){sd, i};
		smartio_thread_start(live, &worker[i], &thread[i], &error);
		CHECK_OK(error);
	}
	for (unsigned i = 0; i < THREADS; i++)
		smartio_thread_join(thread[i]);
	smartio_thread_join(NULL);
	api_end(sd);
	return 0;
}

static void the_library_starts_threads(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, started_by_the_library, NULL)), 0);
}

/* Threads that use, and remove, the same handles: one wins, the others get an error. */
struct contest {
	sci_desc_t sd;
	sci_local_segment_t segment;
	sci_map_t map;
	unsigned unmapped, removed; /* atomic */
	pthread_barrier_t start;
};

static void *compete(void *arg)
{
	struct contest *c = arg;
	sci_error_t error;

	pthread_barrier_wait(&c->start);
	SCIGetMapPointer(c->map);
	SCIUnmapSegment(c->map, 0, &error);
	CHECK(error == SCI_ERR_OK || error == SCI_ERR_ILLEGAL_PARAMETER);
	if (error == SCI_ERR_OK)
		__atomic_add_fetch(&c->unmapped, 1, __ATOMIC_SEQ_CST);
	SCIGetLocalSegmentSize(c->segment);
	do {
		SCIRemoveSegment(c->segment, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK(error == SCI_ERR_OK || error == SCI_ERR_ILLEGAL_PARAMETER);
	if (error == SCI_ERR_OK)
		__atomic_add_fetch(&c->removed, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static int contests(void *arg)
{
	struct contest c = {.sd = api_begin()};
	pthread_t thread[THREADS];
	sci_error_t error;

	(void)arg;
	CHECK(!pthread_barrier_init(&c.start, NULL, THREADS));
	for (unsigned round = 0; round < ROUNDS; round++) {
		c.unmapped = c.removed = 0;
		SCICreateSegment(c.sd, &c.segment, 0, 1, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
		CHECK_OK(error);
		SCIMapLocalSegment(c.segment, &c.map, 0, 1, NULL, 0, &error);
		CHECK_OK(error);
		for (unsigned i = 0; i < THREADS; i++)
			CHECK(!pthread_create(&thread[i], NULL, compete, &c));
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		CHECK(c.unmapped == 1 && c.removed == 1);
	}
	pthread_barrier_destroy(&c.start);
	api_end(c.sd);
	return 0;
}

static void one_thread_wins_a_removal(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, contests, NULL)), 0);
}

/* SCITerminate while others are inside calls: they end, with an error. */
struct ending {
	unsigned started; /* atomic */
	unsigned stop;
};

static void *until_the_end(void *arg)
{
	struct ending *e = arg;
	sci_local_data_interrupt_t dint = NULL;
	unsigned number, length;
	sci_desc_t sd = NULL;
	sci_error_t error;

	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	number = 0;
	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL, 0, &error);
	CHECK_OK(error);
	__atomic_add_fetch(&e->started, 1, __ATOMIC_SEQ_CST);
	length = 0;
	if (number % 2) {
		SCIWaitForDataInterrupt(dint, NULL, &length, SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK(error != SCI_ERR_OK && error != SCI_ERR_TIMEOUT);
	} else {
		while (SCIProbeNode(sd, 0, cluster_node(8), 0, &error))
			;
		CHECK(error == SCI_ERR_NO_LINK_ACCESS || error == SCI_ERR_NOT_INITIALIZED ||
		      error == SCI_ERR_ILLEGAL_PARAMETER);
	}
	return NULL;
}

static int ends_under_load(void *arg)
{
	pthread_t thread[THREADS];

	(void)arg;
	for (unsigned round = 0; round < 10; round++) {
		struct ending e = {0};
		sci_error_t error;

		SCIInitialize(0, &error);
		CHECK_OK(error);
		for (unsigned i = 0; i < THREADS; i++)
			CHECK(!pthread_create(&thread[i], NULL, until_the_end, &e));
		while (__atomic_load_n(&e.started, __ATOMIC_SEQ_CST) < THREADS)
			smartio_yield();
		SCITerminate();
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
	return 0;
}

static void terminate_ends_calls_under_way(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, ends_under_load, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(threads_make_all_calls_at_once),
		API_TEST(the_library_starts_threads),
		API_TEST(one_thread_wins_a_removal),
		API_TEST(terminate_ends_calls_under_way),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
