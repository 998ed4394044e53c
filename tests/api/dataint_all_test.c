/* SPDX-License-Identifier: BSD-2-Clause */
/* Data interrupts to all nodes that have a number: to each, or to none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dataint.h"

#define NUMBER 31u
#define UNICAST 32u
#define MESSAGES 300u
#define LONG 15000u /* ms */

static sci_error_t reach_all(sci_desc_t sd, unsigned number, sci_remote_data_interrupt_t *ret)
{
	sci_error_t error;

	SCIConnectDataInterrupt(sd, ret, DIS_BROADCAST_NODEID_GROUP_ALL, 0, number, 0,
				SCI_FLAG_BROADCAST, &error);
	return error;
}

static sci_error_t send(sci_remote_data_interrupt_t d, unsigned value, unsigned flags)
{
	sci_error_t error;

	SCITriggerDataInterrupt(d, &value, sizeof(value), flags, &error);
	return error;
}

static unsigned take(sci_local_data_interrupt_t d)
{
	unsigned value = 0, length = sizeof(value);
	sci_error_t error;

	SCIWaitForDataInterrupt(d, &value, &length, LONG, 0, &error);
	CHECK_OK(error);
	CHECK(length == sizeof(value));
	return value;
}

static void end(sci_local_data_interrupt_t d)
{
	sci_error_t error;

	do {
		SCIRemoveDataInterrupt(d, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
}

/* ---- each message reaches each node, in order ---- */

static int receiver(void *arg)
{
	const bool stays = arg == NULL;
	sci_desc_t sd = api_begin();
	sci_local_data_interrupt_t all = listen_on(sd, NUMBER, SCI_FLAG_BROADCAST);
	sci_local_data_interrupt_t one = listen_on(sd, UNICAST, 0);
	unsigned last;

	step_done(0);
	for (unsigned i = 0; i < MESSAGES; i++)
		CHECK(take(all) == i);
	step_done(1);
	while (!stays)
		pause();
	/*
	 * Whoever connects to this node alone is welcome, too; that is another sender: in either
	 * order.
	 */
	last = take(all);
	CHECK(last == MESSAGES || last == MESSAGES + 1);
	CHECK(last + take(all) == 2 * MESSAGES + 1);
	end(all);
	end(one);
	step_done(2);
	api_end(sd);
	return 0;
}

static int sender(void *arg)
{
	sci_remote_data_interrupt_t all = NULL, none = NULL, single = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	for (unsigned i = 0; i < 3; i++)
		step_await(0);
	CHECK_IS(reach_all(sd, UNICAST, &none), SCI_ERR_NO_SUCH_INTNO);
	CHECK_IS(reach_all(sd, NUMBER + 7, &none), SCI_ERR_NO_SUCH_INTNO);
	SCIConnectDataInterrupt(sd, &none, cluster_node(8), 0, NUMBER, 0, SCI_FLAG_BROADCAST,
				&error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_NODEID);
	CHECK(none == NULL);
	CHECK_OK(reach_all(sd, NUMBER, &all));
	for (unsigned i = 0; i < MESSAGES; i++)
		CHECK_OK(send(all, i, i % 2 ? SCI_FLAG_BROADCAST : 0));
	SCITriggerDataInterrupt(all, &error, 9000, SCI_FLAG_BROADCAST, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	step_await(3);
	/* One is dead: the others are reached. */
	CHECK_OK(send(all, MESSAGES, SCI_FLAG_BROADCAST));
	SCIConnectDataInterrupt(sd, &single, cluster_node(8), 0, NUMBER, 0, 0, &error);
	CHECK_OK(error);
	CHECK_IS(send(single, 0, SCI_FLAG_BROADCAST), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_OK(send(single, MESSAGES + 1, 0));
	SCIDisconnectDataInterrupt(single, 0, &error);
	CHECK_OK(error);
	SCIConnectDataInterrupt(sd, &single, 4, 0, NUMBER, 0, 0, &error);
	CHECK_OK(error);
	CHECK_OK(send(single, MESSAGES + 1, 0));
	SCIDisconnectDataInterrupt(single, 0, &error);
	CHECK_OK(error);
	/* All are gone. */
	step_await(2);
	step_await(2);
	do {
		error = send(all, 0, 0);
	} while (error == SCI_ERR_OK || error == SCI_ERR_NOSPC);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	SCIDisconnectDataInterrupt(all, 0, &error);
	CHECK_OK(error);
	SCIDisconnectDataInterrupt(all, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	api_end(sd);
	return 0;
}

static void each_message_reaches_each_node(void **state)
{
	pid_t near, far, dies, from;

	cluster_needs(NEEDS_HOSTS); /* one number, on each */
	steps_reset();
	near = cluster_fork(*state, 4, receiver, NULL);
	far = cluster_fork(*state, 8, receiver, NULL);
	dies = cluster_fork(*state, 12, receiver, state);
	from = cluster_fork(*state, 4, sender, NULL);
	for (unsigned i = 0; i < 3; i++)
		step_await(1);
	kill(dies, SIGKILL);
	assert_int_equal(cluster_wait(dies), 128 + SIGKILL);
	step_done(3);
	assert_int_equal(cluster_wait(near), 0);
	assert_int_equal(cluster_wait(far), 0);
	assert_int_equal(cluster_wait(from), 0);
}

/* ---- full at one: nobody gets it ---- */

static int takes_when_told(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_data_interrupt_t d = listen_on(sd, NUMBER, SCI_FLAG_BROADCAST);
	unsigned value, length = sizeof(value), expected = 0;
	sci_error_t error;

	(void)arg;
	step_done(0);
	step_await(1);
	for (;;) {
		SCIWaitForDataInterrupt(d, &value, &length, 0, 0, &error);
		if (error == SCI_ERR_TIMEOUT)
			break;
		CHECK_OK(error);
		CHECK(value == expected);
		expected++;
	}
	CHECK(expected >= 100);
	step_done(2);
	CHECK(take(d) == 77);
	end(d);
	api_end(sd);
	return 0;
}

static int fills(void *arg)
{
	sci_remote_data_interrupt_t all = NULL;
	sci_desc_t sd = api_begin();
	unsigned sent = 0;
	sci_error_t error;

	(void)arg;
	step_await(0);
	step_await(0);
	CHECK_OK(reach_all(sd, NUMBER, &all));
	while ((error = send(all, sent, SCI_FLAG_BROADCAST)) == SCI_ERR_OK)
		sent++;
	CHECK_IS(error, SCI_ERR_NOSPC);
	CHECK(sent >= 100);
	step_done(1);
	step_await(2);
	/* One has room again, the other has not: still nobody gets it. */
	CHECK_IS(send(all, 99999, 0), SCI_ERR_NOSPC);
	step_done(1);
	step_await(2);
	CHECK_OK(send(all, 77, 0));
	SCIDisconnectDataInterrupt(all, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_message_reaches_all_or_none(void **state)
{
	pid_t a, b, from;

	cluster_needs(NEEDS_HOSTS);
	steps_reset();
	a = cluster_fork(*state, 8, takes_when_told, NULL);
	b = cluster_fork(*state, 12, takes_when_told, NULL);
	from = cluster_fork(*state, 4, fills, NULL);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(from), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(each_message_reaches_each_node),
		API_TEST(a_message_reaches_all_or_none),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
