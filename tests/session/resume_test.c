/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs whose smartiod goes at any moment, and another one comes (or none, or a stranger). */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/types.h"
#include "server.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "wire/client.h"

#define THREADS 4
#define ROUNDS 300
#define KEPT 3

static void good(const char *call, sci_error_t err)
{
	if (err == SCI_ERR_OK)
		return;
	fprintf(stderr, "%s: error %#x: %s\n", call, err, smartio_last_error());
	abort(); /* not a thread's to tell cmocka */
}

#define CALL(name, ...)                                                                            \
	do {                                                                                       \
		sci_error_t err_ = SCI_ERR_OK;                                                     \
		name(__VA_ARGS__, &err_);                                                          \
		good(#name, err_);                                                                 \
	} while (0)

static void initialize(void)
{
	sci_error_t err;

	do /* a server that hangs up at once is met by chance */
		SCIInitialize(0, &err);
	while (err == SCI_ERR_NOT_INITIALIZED);
	assert_int_equal(err, SCI_ERR_OK);
}

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

/* A new segment, and its memory. */
static unsigned *mapped_segment(sci_desc_t sd, sci_local_segment_t *segment, sci_map_t *map)
{
	sci_error_t err;
	unsigned *p;

	CALL(SCICreateSegment, sd, segment, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID);
	p = SCIMapLocalSegment(*segment, map, 0, 4096, NULL, 0, &err);
	good("SCIMapLocalSegment", err);
	return p;
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

/*
 * What is the program's own is lost with this host's smartiod alone: each call says the same of it.
 */
static void what_the_next_one_cannot_take_over_is_lost(void **state)
{
	sci_local_segment_t segment, other;
	unsigned *p, node, adapter;
	sci_map_t map, again;
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	server_start(0, 1);
	initialize();
	CALL(SCIOpen, &sd, 0);
	p = mapped_segment(sd, &segment, &map);
	*p = 1;
	server_lose_all();
	CALL(SCICreateSegment, sd, &other, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID);
	assert_int_equal(*(volatile unsigned *)p, ~0u);
	assert_int_equal(SCIWaitForLocalSegmentEvent(segment, &node, &adapter, SCI_INFINITE_TIMEOUT,
						     0, &err),
			 SCI_CB_LOST);
	assert_null(SCIMapLocalSegment(segment, &again, 0, 4096, NULL, 0, &err));
	assert_int_equal(err, SCI_ERR_NO_LINK_ACCESS);
	SCIWaitForLocalSegmentEvent(segment, &node, &adapter, SCI_INFINITE_TIMEOUT, 0, &err);
	assert_int_equal(err, SCI_ERR_NO_LINK_ACCESS);
	SCIPrepareSegment(segment, 0, 0, &err);
	assert_int_equal(err, SCI_ERR_NO_LINK_ACCESS);
	SCIMemCpy(NULL, &node, map, 0, sizeof(node), 0, &err);
	assert_int_equal(err, SCI_ERR_NO_LINK_ACCESS);
	CALL(SCIUnmapSegment, map, 0);
	CALL(SCIRemoveSegment, segment, 0);
	CALL(SCIRemoveSegment, other, 0);
	SCITerminate();
	server_stop();
}

/*
 * Something is lost while we tell the next one that we have it: who was giving it back does so, for
 * that one has its handle.
 */
static void what_is_lost_in_the_talk_is_given_back(void **state)
{
	sci_local_segment_t segment;
	sci_desc_t sd;

	(void)state;
	server_start(0, 1);
	initialize();
	CALL(SCIOpen, &sd, 0);
	CALL(SCICreateSegment, sd, &segment, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID);
	server_lose_at_removal();
	CALL(SCIRemoveSegment, segment, 0);
	assert_int_equal(server_counts().restored, 1);
	assert_int_equal(server_counts().segments, 0);
	assert_int_equal(server_counts().wrong, 0);
	SCITerminate();
	server_stop();
}

static void *wait_that_ends(void *arg)
{
	sci_error_t err;

	SCIWaitForInterrupt(arg, SCI_INFINITE_TIMEOUT, 0, &err);
	return (void *)(uintptr_t)err;
}

static void *wait_for_data_that_ends(void *arg)
{
	unsigned char data[64];
	unsigned length = sizeof(data);
	sci_error_t err;

	SCIWaitForDataInterrupt(arg, data, &length, SCI_INFINITE_TIMEOUT, 0, &err);
	return (void *)(uintptr_t)err;
}

/* Interrupts, too, with data and without: who waits, and who will. */
static void waits_for_a_lost_interrupt_end(void **state)
{
	sci_local_data_interrupt_t data;
	sci_local_interrupt_t plain;
	unsigned number = 0, other = 0;
	pthread_t waiter[4];
	sci_error_t err;
	sci_desc_t sd;
	void *said;

	(void)state;
	server_start(0, 1);
	initialize();
	CALL(SCIOpen, &sd, 0);
	CALL(SCICreateInterrupt, sd, &plain, 0, &number, NULL, NULL, 0);
	CALL(SCICreateDataInterrupt, sd, &data, 0, &other, NULL, NULL, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&waiter[i], NULL,
						i % 2 ? wait_for_data_that_ends : wait_that_ends,
						i % 2 ? (void *)data : (void *)plain),
				 0);
	server_lose_all();
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(waiter[i], &said);
		assert_int_equal((uintptr_t)said, SCI_ERR_NO_LINK_ACCESS);
	}
	assert_int_equal((uintptr_t)wait_that_ends(plain), SCI_ERR_NO_LINK_ACCESS);
	assert_non_null(strstr(smartio_last_error(), "local interrupt was lost"));
	assert_int_equal((uintptr_t)wait_for_data_that_ends(data), SCI_ERR_NO_LINK_ACCESS);
	assert_non_null(strstr(smartio_last_error(), "local data interrupt was lost"));
	smartio_wait_events(NULL, data, SCI_INFINITE_TIMEOUT, &err);
	assert_int_equal(err, SCI_ERR_CANCELLED);
	CALL(SCIRemoveInterrupt, plain, 0);
	CALL(SCIRemoveDataInterrupt, data, 0);
	assert_int_equal(server_counts().restored, 2);
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

/* Who waits for an event may be the one that talks to the next smartiod. */
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

struct told {
	sem_t lost;
	unsigned others;
};

static sci_callback_action_t on_trigger(void *arg, sci_local_interrupt_t interrupt,
					sci_error_t status)
{
	struct told *t = arg;

	(void)interrupt;
	if (status == SCI_ERR_NO_LINK_ACCESS)
		sem_post(&t->lost);
	else
		t->others++;
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_message(void *arg, sci_local_data_interrupt_t interrupt, void *data,
					unsigned length, sci_error_t status)
{
	struct told *t = arg;

	(void)interrupt;
	if (status == SCI_ERR_NO_LINK_ACCESS && !data && !length)
		sem_post(&t->lost);
	else
		t->others++;
	return SCI_CALLBACK_CONTINUE;
}

/* Nobody waits, so a callback hears of it: once, and not when the program itself ends all. */
static void callbacks_hear_that_an_interrupt_is_lost(void **state)
{
	sci_local_data_interrupt_t data;
	sci_local_interrupt_t plain;
	unsigned number = 0;
	struct told told = {.others = 0};
	sci_desc_t sd;
	int left;

	(void)state;
	assert_int_equal(sem_init(&told.lost, 0, 0), 0);
	server_start(0, 1);
	for (unsigned ends = 0; ends < 3; ends++) { /* of interrupts, of the session, of neither */
		initialize();
		CALL(SCIOpen, &sd, 0);
		CALL(SCICreateInterrupt, sd, &plain, 0, &number, on_trigger, &told,
		     SCI_FLAG_USE_CALLBACK);
		CALL(SCICreateDataInterrupt, sd, &data, 0, &number, on_message, &told,
		     SCI_FLAG_USE_CALLBACK);
		if (ends == 0)
			server_lose_all();
		else if (ends == 1)
			server_babble();
		for (unsigned i = 0; i < 2 && ends < 2; i++)
			sem_wait(&told.lost);
		SCITerminate();
	}
	sem_getvalue(&told.lost, &left);
	assert_int_equal(left, 0);
	assert_int_equal(told.others, 0);
	server_stop();
	sem_destroy(&told.lost);
}

/*
 * No descriptor is left for pages of ones: what may be another's memory by now is not there at all.
 * The first test, for the library makes that descriptor once.
 */
static void what_cannot_read_as_ones_cannot_be_read(void **state)
{
	struct rlimit limit, none;
	sci_local_segment_t segment;
	sci_error_t err = SCI_ERR_OK;
	sci_desc_t sd;
	sci_map_t map;
	unsigned *p;
	int fd[2];

	(void)state;
	server_start(0, 1);
	initialize();
	CALL(SCIOpen, &sd, 0);
	p = mapped_segment(sd, &segment, &map);
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], p, 1), 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 3; /* standard ones, which are open; poll() takes no more than that */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	server_babble();
	while (err == SCI_ERR_OK)
		SCIProbeNode(sd, 0, 4, 0, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(write(fd[1], p, 1), -1);
	assert_int_equal(errno, EFAULT);
	close(fd[0]);
	close(fd[1]);
	SCITerminate();
	server_stop();
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
		cmocka_unit_test(what_cannot_read_as_ones_cannot_be_read),
		cmocka_unit_test(no_call_fails_and_none_is_done_twice),
		cmocka_unit_test(waits_and_memory_need_no_smartiod),
		cmocka_unit_test(a_stranger_ends_the_session),
		cmocka_unit_test(what_the_next_one_cannot_take_over_is_lost),
		cmocka_unit_test(what_is_lost_in_the_talk_is_given_back),
		cmocka_unit_test(waits_for_a_lost_interrupt_end),
		cmocka_unit_test(callbacks_hear_that_an_interrupt_is_lost),
		cmocka_unit_test(terminating_waits_for_nobody),
		cmocka_unit_test(terminating_ends_a_talk),
		cmocka_unit_test(nonsense_ends_the_session),
		cmocka_unit_test(each_connection_is_heard_of),
		cmocka_unit_test(a_count_that_cannot_be_ends_the_session),
		cmocka_unit_test(no_host_has_that_many_adapters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
