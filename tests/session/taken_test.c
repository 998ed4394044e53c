/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs whose smartiod goes, and the next one cannot take over what they had. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "alive.h"
#include "server.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_read_as_ones_cannot_be_read),
		cmocka_unit_test(what_the_next_one_cannot_take_over_is_lost),
		cmocka_unit_test(what_is_lost_in_the_talk_is_given_back),
		cmocka_unit_test(waits_for_a_lost_interrupt_end),
		cmocka_unit_test(callbacks_hear_that_an_interrupt_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
