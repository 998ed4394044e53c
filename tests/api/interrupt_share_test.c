/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts with several owners: in one process, in several, triggered from both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "topology.h"

#define SHARED 21u
#define TIMES 200u
#define SENDERS 2u
#define LONG 15000u /* ms */

static sci_local_interrupt_t own(sci_desc_t sd, unsigned flags)
{
	sci_local_interrupt_t i = NULL;
	unsigned number = SHARED;
	sci_error_t error;

	SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL,
			   SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO | flags, &error);
	CHECK_OK(error);
	CHECK(number == SHARED);
	return i;
}

static sci_remote_interrupt_t reach(sci_desc_t sd)
{
	sci_remote_interrupt_t i = NULL;
	sci_error_t error;

	SCIConnectInterrupt(sd, &i, cluster_node(8), 0, SHARED, 0, 0, &error);
	CHECK_OK(error);
	return i;
}

static void trigger(sci_remote_interrupt_t i, unsigned times)
{
	sci_error_t error;

	while (times-- > 0) {
		SCITriggerInterrupt(i, 0, &error);
		CHECK_OK(error);
	}
}

static sci_error_t wait_for(sci_local_interrupt_t i, unsigned timeout)
{
	sci_error_t error;

	SCIWaitForInterrupt(i, timeout, 0, &error);
	return error;
}

static sci_error_t remove_it(sci_local_interrupt_t i)
{
	sci_error_t error;

	SCIRemoveInterrupt(i, 0, &error);
	return error;
}

/* Two owners in this process, one of which counts; one more in the other. */
static int first_owner(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_interrupt_t latched = own(sd, 0), counting = own(sd, SCI_FLAG_COUNTING_INT);
	sci_local_interrupt_t other = NULL;
	unsigned number = SHARED;
	sci_error_t error;

	(void)arg;
	SCICreateInterrupt(sd, &other, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_IS(error, SCI_ERR_INTNO_USED);
	/* Without a number, one that nobody has. */
	SCICreateInterrupt(sd, &other, 0, &number, NULL, NULL, SCI_FLAG_SHARED_INT, &error);
	CHECK_OK(error);
	CHECK(number != SHARED);
	CHECK_OK(remove_it(other));
	for (unsigned i = 0; i < SENDERS; i++)
		step_done(0);
	for (unsigned i = 0; i < SENDERS * TIMES; i++)
		CHECK_OK(wait_for(counting, LONG));
	CHECK_IS(wait_for(counting, 0), SCI_ERR_TIMEOUT);
	CHECK_OK(wait_for(latched, LONG));
	/* Not the last owner: nobody's connection is in the way. */
	CHECK_OK(remove_it(counting));
	CHECK_OK(remove_it(latched));
	CHECK_IS(wait_for(latched, 0), SCI_ERR_ILLEGAL_PARAMETER);
	step_done(1);
	api_end(sd);
	return 0;
}

static sci_callback_action_t count(void *arg, sci_local_interrupt_t interrupt, sci_error_t status)
{
	unsigned *counted = arg;

	CHECK(interrupt != NULL);
	CHECK_OK(status);
	if (__atomic_add_fetch(counted, 1, __ATOMIC_SEQ_CST) == SENDERS * TIMES)
		step_done(2);
	return SCI_CALLBACK_CONTINUE;
}

static int second_owner(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_interrupt_t i = NULL;
	unsigned number = SHARED, counted = 0;
	sci_error_t error;

	(void)arg;
	SCICreateInterrupt(sd, &i, 0, &number, count, &counted,
			   SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO | SCI_FLAG_COUNTING_INT |
				   SCI_FLAG_USE_CALLBACK,
			   &error);
	CHECK_OK(error);
	for (unsigned n = 0; n < SENDERS; n++)
		step_done(3);
	step_await(1);
	step_await(2);
	/* The last one: senders are connected. */
	CHECK_IS(remove_it(i), SCI_ERR_BUSY);
	for (unsigned n = 0; n < SENDERS; n++)
		step_done(4);
	do {
		error = remove_it(i);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
	CHECK(counted == SENDERS * TIMES);
	api_end(sd);
	return 0;
}

static int sender(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_interrupt_t r;
	sci_error_t error;

	(void)arg;
	step_await(0);
	step_await(3);
	r = reach(sd);
	trigger(r, TIMES);
	step_await(4);
	SCIDisconnectInterrupt(r, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void each_trigger_reaches_each_owner(void **state)
{
	pid_t first, second, far, near;

	steps_reset();
	first = cluster_fork(*state, 8, first_owner, NULL);
	second = cluster_fork(*state, 8, second_owner, NULL);
	far = cluster_fork(*state, 4, sender, NULL);
	near = cluster_fork(*state, 8, sender, NULL);
	assert_int_equal(cluster_wait(first), 0);
	assert_int_equal(cluster_wait(second), 0);
	assert_int_equal(cluster_wait(far), 0);
	assert_int_equal(cluster_wait(near), 0);
}

static int dies(void *arg)
{
	sci_desc_t sd = api_begin();

	(void)arg;
	own(sd, 0);
	step_done(0);
	while (pause() < 0)
		;
	return 0;
}

static int survives(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_interrupt_t i = own(sd, SCI_FLAG_COUNTING_INT);

	(void)arg;
	step_done(1);
	for (unsigned n = 0; n < TIMES; n++)
		CHECK_OK(wait_for(i, LONG));
	step_done(2);
	while (pause() < 0)
		;
	return 0;
}

static int goes_on(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_interrupt_t r;
	sci_error_t error;

	(void)arg;
	step_await(0);
	step_await(1);
	r = reach(sd);
	step_done(3);
	trigger(r, TIMES);
	step_done(4);
	do {
		SCITriggerInterrupt(r, 0, &error);
	} while (error == SCI_ERR_OK);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	SCIDisconnectInterrupt(r, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

/* One owner dies: the other goes on. The other dies: senders are told. */
static void senders_are_told_when_the_last_owner_is_dead(void **state)
{
	pid_t a, b, c;

	steps_reset();
	a = cluster_fork(*state, 8, dies, NULL);
	b = cluster_fork(*state, 8, survives, NULL);
	c = cluster_fork(*state, 4, goes_on, NULL);
	step_await(3);
	kill(a, SIGKILL);
	assert_int_equal(cluster_wait(a), 128 + SIGKILL);
	step_await(2);
	step_await(4);
	kill(b, SIGKILL);
	assert_int_equal(cluster_wait(b), 128 + SIGKILL);
	assert_int_equal(cluster_wait(c), 0);
}

static bool is_event(int fd)
{
	char path[32], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return strcmp(name, "anon_inode:[eventfd]") == 0 || strstr(name, "[smartio interrupt]");
}

/* An interrupt whose descriptors have lost O_NONBLOCK, and are full. */
static int hostile(void *arg)
{
	sci_desc_t sd = api_begin();
	uint64_t full = 0xfffffffffffffffeull;
	bool before[64];
	unsigned filled = 0;

	(void)arg;
	for (int fd = 0; fd < 64; fd++)
		before[fd] = is_event(fd);
	own(sd, 0);
	for (int fd = 0; fd < 64; fd++) {
		if (before[fd] || !is_event(fd))
			continue;
		fcntl(fd, F_SETFL, 0);
		CHECK(write(fd, &full, sizeof(full)) == sizeof(full));
		filled++;
	}
	CHECK(filled == 1);
	step_done(0);
	while (pause() < 0)
		;
	return 0;
}

/* smartiod, which writes to what the hostile owner has filled, goes on with the other. */
static void a_hostile_owner_stops_nobody(void **state)
{
	pid_t a, b, c;

	cluster_needs_kernel(NEEDS_PROC);
	steps_reset();
	a = cluster_fork(*state, 8, hostile, NULL);
	b = cluster_fork(*state, 8, survives, NULL);
	c = cluster_fork(*state, 4, goes_on, NULL);
	step_await(2);
	step_await(4);
	kill(a, SIGKILL);
	assert_int_equal(cluster_wait(a), 128 + SIGKILL);
	kill(b, SIGKILL);
	assert_int_equal(cluster_wait(b), 128 + SIGKILL);
	assert_int_equal(cluster_wait(c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(each_trigger_reaches_each_owner),
		API_TEST(senders_are_told_when_the_last_owner_is_dead),
		API_TEST(a_hostile_owner_stops_nobody),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
