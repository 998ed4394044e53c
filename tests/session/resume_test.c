/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs whose smartiod goes at any moment, and another one comes (or none, or a stranger). */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/types.h"
#include "alive.h"
#include "server.h"
#include "wire/client.h"

#define THREADS 4
#define ROUNDS 300
#define KEPT 3

static void one_life(sci_desc_t sd, unsigned round)
{
	sci_local_segment_t segment;
	sci_error_t err = SCI_ERR_OK;
	unsigned *p;
	sci_map_t map;

	CALL(SCICreateSegment, sd, &segment, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID);
	CALL(SCIPrepareSegment, segment, 0, 0);
	CALL(SCISetSegmentAvailable, segment, 0, 0);
	p = SCIMapLocalSegment(segment, &map, 0, 4096, NULL, 0, &err);
	good("SCIMapLocalSegment", err);
	*p = round;
	CALL(SCIUnmapSegment, map, 0);
	CALL(SCISetSegmentUnavailable, segment, 0, 0);
	CALL(SCIRemoveSegment, segment, 0);
}

static void *lives(void *arg)
{
	sci_desc_t sd;

	(void)arg;
	CALL(SCIOpen, &sd, 0);
	for (unsigned i = 0; i < ROUNDS; i++)
		one_life(sd, i);
	CALL(SCIClose, sd, 0);
	return NULL;
}

/* Every call succeeds, and once; what is kept all the time keeps its memory. */
static void no_call_fails_and_none_is_done_twice(void **state)
{
	sci_local_segment_t kept[KEPT];
	pthread_t thread[THREADS];
	struct server_counts c;
	unsigned *p[KEPT];
	sci_map_t map[KEPT];
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	server_start(60, 20261121);
	initialize();
	CALL(SCIOpen, &sd, 0);
	for (unsigned i = 0; i < KEPT; i++) {
		CALL(SCICreateSegment, sd, &kept[i], 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID);
		p[i] = SCIMapLocalSegment(kept[i], &map[i], 0, 4096, NULL, 0, &err);
		good("SCIMapLocalSegment", err);
		*p[i] = 4711 + i;
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, lives, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < KEPT; i++)
		assert_int_equal(*p[i], 4711 + i);
	c = server_counts();
	assert_int_equal(c.wrong, 0);
	assert_int_equal(c.segments, KEPT);
	assert_true(c.hung_up > 60 && c.resumed > 60 && c.events > 5);
	for (unsigned i = 0; i < KEPT; i++) {
		CALL(SCIUnmapSegment, map[i], 0);
		CALL(SCIRemoveSegment, kept[i], 0);
	}
	assert_int_equal(server_counts().segments, 0);
	CALL(SCIClose, sd, 0);
	SCITerminate();
	server_stop();
}

static void *wait_for_it(void *arg)
{
	CALL(SCIWaitForInterrupt, arg, SCI_INFINITE_TIMEOUT, 0);
	return NULL;
}

static void *create_one(void *arg)
{
	CALL(SCICreateSegment, arg, &(sci_local_segment_t){0}, 0, 4096, NULL, NULL,
	     SCI_FLAG_AUTO_ID);
	return NULL;
}

/* What needs no smartiod goes on without one; what needs one waits for it. */
static void waits_and_memory_need_no_smartiod(void **state)
{
	sci_local_interrupt_t interrupt;
	sci_local_segment_t segment;
	unsigned number = 0, *p;
	pthread_t waiter, maker;
	sci_map_t map;
	sci_desc_t sd;

	(void)state;
	server_start(0, 1);
	initialize();
	CALL(SCIOpen, &sd, 0);
	CALL(SCICreateInterrupt, sd, &interrupt, 0, &number, NULL, NULL, 0);
	p = mapped_segment(sd, &segment, &map);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_it, interrupt), 0);
	server_away(true);
	assert_int_equal(pthread_create(&maker, NULL, create_one, sd), 0);
	*p = 815;
	server_trigger();
	pthread_join(waiter, NULL);
	server_away(false);
	pthread_join(maker, NULL);
	server_trigger();
	wait_for_it(interrupt);
	assert_int_equal(*p, 815);
	assert_int_equal(server_counts().segments, 2);
	assert_int_equal(server_counts().wrong, 0);
	SCITerminate();
	server_stop();
}

/*
 * Whoever comes in its place and knows nothing of us: then it is over, as on the emulated cluster.
 */
static void a_stranger_ends_the_session(void **state)
{
	sci_local_segment_t segment;
	unsigned *p;
	sci_error_t err;
	sci_map_t map;
	sci_desc_t sd;

	(void)state;
	server_start(0, 1);
	initialize();
	CALL(SCIOpen, &sd, 0);
	p = mapped_segment(sd, &segment, &map);
	*p = 1;
	server_forget();
	SCIPrepareSegment(segment, 0, 0, &err);
	assert_int_equal(err, SCI_ERR_NO_LINK_ACCESS);
	assert_int_equal(*(volatile unsigned *)p, ~0u);
	CALL(SCIUnmapSegment, map, 0);
	CALL(SCIRemoveSegment, segment, 0);
	SCITerminate();
	server_stop();
}

/* Terminating needs no smartiod, and does not wait for one. */
static void terminating_waits_for_nobody(void **state)
{
	sci_local_segment_t segment;
	sci_desc_t sd;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		server_start(0, 1);
		initialize();
		CALL(SCIOpen, &sd, 0);
		CALL(SCICreateSegment, sd, &segment, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID);
		server_away(true);
		SCITerminate();
		server_stop();
	}
}

static void *wait_for_event(void *arg)
{
	unsigned node, adapter;
	sci_error_t err;

	SCIWaitForLocalSegmentEvent(arg, &node, &adapter, SCI_INFINITE_TIMEOUT, 0, &err);
	if (err == SCI_ERR_OK)
		abort();
	return NULL;
}

/* Whoever waits for an event may be the one that talks to the next smartiod. */
static void terminating_ends_a_talk(void **state)
{
	sci_local_segment_t segment;
	pthread_t waiter;
	sci_desc_t sd;

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		server_start(0, 1);
		initialize();
		CALL(SCIOpen, &sd, 0);
		CALL(SCICreateSegment, sd, &segment, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID);
		assert_int_equal(pthread_create(&waiter, NULL, wait_for_event, segment), 0);
		server_away(true);
		server_away(false);
		SCITerminate();
		pthread_join(waiter, NULL);
		server_stop();
	}
}

static void *wait_in_vain(void *arg)
{
	sci_error_t err;

	SCIWaitForInterrupt(arg, SCI_INFINITE_TIMEOUT, 0, &err);
	if (err == SCI_ERR_OK)
		abort();
	return NULL;
}

/* One that is there and talks nonsense: nothing tells those who wait at the socket but the end. */
static void nonsense_ends_the_session(void **state)
{
	sci_local_interrupt_t interrupt;
	unsigned number = 0;
	pthread_t waiter;
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	server_start(0, 1);
	initialize();
	CALL(SCIOpen, &sd, 0);
	CALL(SCICreateInterrupt, sd, &interrupt, 0, &number, NULL, NULL, 0);
	assert_int_equal(pthread_create(&waiter, NULL, wait_in_vain, interrupt), 0);
	server_babble();
	pthread_join(waiter, NULL);
	SCICreateInterrupt(sd, &interrupt, 0, &number, NULL, NULL, 0, &err);
	assert_int_equal(err, SCI_ERR_NO_LINK_ACCESS);
	SCITerminate();
	server_stop();
}

static sci_callback_action_t count_connects(void *arg, sci_local_segment_t segment,
					    sci_segment_cb_reason_t reason, unsigned node,
					    unsigned adapter, sci_error_t error)
{
	(void)segment;
	(void)adapter;
	if (reason == SCI_CB_CONNECT && node == 4 && error == SCI_ERR_OK)
		sem_post(arg);
	return SCI_CALLBACK_CONTINUE;
}

/* One word of a smartiod may tell of many connections: programs hear of each. */
static void each_connection_is_heard_of(void **state)
{
	sci_local_segment_t called, asked;
	unsigned node, adapter;
	sci_error_t err;
	sci_desc_t sd;
	sem_t calls;

	(void)state;
	sem_init(&calls, 0, 0);
	server_start(0, 1);
	initialize();
	CALL(SCIOpen, &sd, 0);
	CALL(SCICreateSegment, sd, &called, 0, 4096, count_connects, &calls,
	     SCI_FLAG_AUTO_ID | SCI_FLAG_USE_CALLBACK);
	CALL(SCICreateSegment, sd, &asked, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID);
	server_connected(5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(SCIWaitForLocalSegmentEvent(asked, &node, &adapter,
							     SCI_INFINITE_TIMEOUT, 0, &err),
				 SCI_CB_CONNECT);
		assert_int_equal(err, SCI_ERR_OK);
	}
	SCIWaitForLocalSegmentEvent(asked, &node, &adapter, 0, 0, &err);
	assert_int_equal(err, SCI_ERR_TIMEOUT);
	for (unsigned i = 0; i < 5; i++)
		sem_wait(&calls);
	CALL(SCIRemoveSegment, asked, 0);
	CALL(SCIRemoveSegment, called, 0);
	assert_int_equal(sem_trywait(&calls), -1);
	sem_destroy(&calls);
	SCITerminate();
	server_stop();
}

/* Nor is one believed that says so of more than a word can tell of. */
static void a_count_that_cannot_be_ends_the_session(void **state)
{
	static const unsigned counts[] = {SIO_EVM_TIMES, SIO_EVM_TIMES + 1};
	sci_local_segment_t called;
	sci_error_t err;
	sci_desc_t sd;
	int n = -1;
	sem_t calls;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		sem_init(&calls, 0, 0);
		server_start(0, 1);
		initialize();
		CALL(SCIOpen, &sd, 0);
		CALL(SCICreateSegment, sd, &called, 0, 4096, count_connects, &calls,
		     SCI_FLAG_AUTO_ID | SCI_FLAG_USE_CALLBACK);
		server_connected(counts[i]);
		for (unsigned j = 0; i == 0 && j < counts[i]; j++)
			sem_wait(&calls);
		SCIPrepareSegment(called, 0, 0, &err); /* the event comes first */
		assert_int_equal(err, i ? SCI_ERR_NO_LINK_ACCESS : SCI_ERR_OK);
		SCITerminate();
		assert_int_equal(sem_getvalue(&calls, &n), 0);
		assert_int_equal(n, 0);
		sem_destroy(&calls);
		server_stop();
	}
}

static void no_host_has_that_many_adapters(void **state)
{
	sci_error_t err;

	(void)state;
	server_start(0, 1);
	server_adapters(SIO_MAX_ADAPTERS + 1);
	SCIInitialize(0, &err);
	assert_int_equal(err, SCI_ERR_INCONSISTENT_VERSIONS);
	assert_non_null(strstr(smartio_last_error(), "5 adapters"));
	server_adapters(SIO_MAX_ADAPTERS);
	initialize();
	SCITerminate();
	server_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_call_fails_and_none_is_done_twice),
		cmocka_unit_test(waits_and_memory_need_no_smartiod),
		cmocka_unit_test(a_stranger_ends_the_session),
		cmocka_unit_test(terminating_waits_for_nobody),
		cmocka_unit_test(terminating_ends_a_talk),
		cmocka_unit_test(nonsense_ends_the_session),
		cmocka_unit_test(each_connection_is_heard_of),
		cmocka_unit_test(a_count_that_cannot_be_ends_the_session),
		cmocka_unit_test(no_host_has_that_many_adapters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
