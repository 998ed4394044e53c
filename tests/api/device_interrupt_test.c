/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt vectors of a borrowed device: a drive that is driven by its registers completes admin
 * commands, and interrupts of all hosts hear of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>

#include <cmocka.h>

#include "admin.h"
#include "topology.h"

#define PAGE 4096u
#define ROUNDS 200u

static sci_local_interrupt_t listen_on(sci_desc_t sd, unsigned number)
{
	sci_local_interrupt_t i = NULL;
	sci_error_t error;

	SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL,
			   SCI_FLAG_FIXED_INTNO | SCI_FLAG_COUNTING_INT, &error);
	CHECK_OK(error);
	return i;
}

/* Tie @vector to interrupt @number of @node; the connection is needed for this alone. */
static sci_error_t tie(struct admin *a, unsigned *vector, unsigned node, unsigned number)
{
	sci_remote_interrupt_t to = NULL;
	sci_error_t error, rc;

	SCIConnectInterrupt(a->sd, &to, node, 0, number, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
	smartio_connect_device_interrupt(a->device, vector, to, &rc);
	SCIDisconnectInterrupt(to, 0, &error);
	CHECK_OK(error);
	return rc;
}

static void untie(struct admin *a, unsigned vector)
{
	sci_error_t error;

	smartio_disconnect_device_interrupt(a->device, vector, &error);
	CHECK_OK(error);
}

static void wait_for(sci_local_interrupt_t i)
{
	sci_error_t error;

	SCIWaitForInterrupt(i, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
}

static void nothing_comes(sci_local_interrupt_t i)
{
	sci_error_t error;

	SCIWaitForInterrupt(i, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
}

static void remove_int(sci_local_interrupt_t i)
{
	sci_error_t error;

	SCIRemoveInterrupt(i, 0, &error);
	CHECK_OK(error);
}

/* Commands one at a time: each is told of once, by the time it is told. */
static int drives(void *arg)
{
	unsigned node = *(unsigned *)arg, vector = 0;
	sci_local_interrupt_t i;
	struct admin a;
	sci_error_t error;

	admin_start(&a);
	i = listen_on(a.sd, 5);
	CHECK_OK(tie(&a, &vector, node, 5));
	CHECK(vector == 0);
	for (unsigned n = 0; n < ROUNDS; n++) {
		admin_submit(&a);
		wait_for(i);
		admin_take(&a);
		nothing_comes(i);
	}
	SCIRemoveInterrupt(i, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	/* Untied, it hears nothing; what came meanwhile is not told later. */
	untie(&a, 0);
	admin_submit(&a);
	admin_await(&a);
	nothing_comes(i);
	CHECK_OK(tie(&a, &vector, node, 5));
	nothing_comes(i);
	/* A reset leaves the tie: it is of the borrow. */
	admin_submit(&a);
	wait_for(i);
	admin_take(&a);
	untie(&a, 0);
	remove_int(i);
	admin_stop(&a);
	return 0;
}

static void a_drive_interrupts_the_host_that_uses_it(void **state)
{
	for (unsigned host = 4; host <= 12; host += 4) {
		unsigned node = cluster_node(host);

		assert_int_equal(cluster_wait(cluster_fork(*state, host, drives, &node)), 0);
	}
}

static int hears(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_interrupt_t i = listen_on(sd, 6);

	(void)arg;
	step_done(0);
	for (unsigned n = 0; n < ROUNDS; n++)
		wait_for(i);
	step_done(1);
	step_await(2);
	nothing_comes(i);
	remove_int(i);
	api_end(sd);
	return 0;
}

static int drives_for_another(void *arg)
{
	unsigned vector = 0, other = SMARTIO_ANY_VECTOR;
	struct admin a;

	admin_start(&a);
	step_await(0);
	CHECK_OK(tie(&a, &vector, *(unsigned *)arg, 6));
	CHECK_IS(tie(&a, &vector, *(unsigned *)arg, 6), SCI_ERR_BUSY);
	CHECK_OK(tie(&a, &other, *(unsigned *)arg, 6));
	CHECK(other == 1);
	for (unsigned n = 0; n < ROUNDS; n++) {
		admin_submit(&a);
		admin_await(&a);
	}
	step_await(1);
	untie(&a, 1);
	untie(&a, 0);
	step_done(2);
	admin_stop(&a);
	return 0;
}

static void a_drive_interrupts_other_hosts(void **state)
{
	static const unsigned pair[][2] = {{4, 8}, {4, 12}, {8, 12}, {8, 4}, {12, 8}};

	/* A processor takes two messages that come at once for one. */
	cluster_needs("a count of each message of the drive");
	for (unsigned k = 0; k < sizeof(pair) / sizeof(pair[0]); k++) {
		unsigned to = cluster_node(pair[k][1]);
		pid_t a, b;

		steps_reset();
		b = cluster_fork(*state, to, hears, NULL);
		a = cluster_fork(*state, pair[k][0], drives_for_another, &to);
		assert_int_equal(cluster_wait(a), 0);
		assert_int_equal(cluster_wait(b), 0);
	}
}

/* Drivers of kernels get devices of real hosts. */
static void refuses_to_plug(sci_smartio_device_t device, sci_local_interrupt_t i)
{
	uint32_t place = 0;
	sci_error_t error;

	smartio_plug_in(NULL, &i, 1, 0, SMARTIO_ALL_MEMORY, &place, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_plug_in(device, &i, 1, 0, SMARTIO_ALL_MEMORY, NULL, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_plug_in(device, NULL, 1, 0, SMARTIO_ALL_MEMORY, &place, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_plug_in(device, &i, SMARTIO_PLUG_VECTORS + 1, 0, SMARTIO_ALL_MEMORY, &place,
			&error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_plug_in(device, &i, 1, 0, SMARTIO_ALL_MEMORY, &place, &error);
	if (getenv("SMARTIO_TEST_PAIR")) { /* whose windows are shorter than all memory */
		CHECK(strstr(smartio_last_error(), "out of look-up entries"));
	} else {
		CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
		CHECK(strstr(smartio_last_error(), "smartio_lend.ko"));
	}
	smartio_unplug(device, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_unplug(NULL, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(place == 0);
}

static int refuses(void *arg)
{
	sci_remote_interrupt_t to = NULL;
	unsigned vector = 32, any = SMARTIO_ANY_VECTOR;
	sci_local_interrupt_t i;
	struct admin a;
	sci_error_t error;

	(void)arg;
	admin_start(&a);
	i = listen_on(a.sd, 7);
	refuses_to_plug(a.device, i);
	SCIConnectInterrupt(a.sd, &to, cluster_node(8), 0, 7, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
	smartio_connect_device_interrupt(a.device, NULL, to, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_connect_device_interrupt(NULL, &any, to, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_connect_device_interrupt(a.device, &any, NULL, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_connect_device_interrupt(a.device, &vector, to, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(strstr(smartio_last_error(), "32 from 0 on"));
	smartio_disconnect_device_interrupt(a.device, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_disconnect_device_interrupt(NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	for (unsigned n = 1; n < 32; n++) {
		any = SMARTIO_ANY_VECTOR;
		smartio_connect_device_interrupt(a.device, &any, to, &error);
		CHECK_OK(error);
		CHECK(any == n);
	}
	any = SMARTIO_ANY_VECTOR;
	smartio_connect_device_interrupt(a.device, &any, to, &error);
	CHECK_IS(error, SCI_ERR_HW_NOSPC);
	CHECK(any == SMARTIO_ANY_VECTOR);
	/* The rest ends with the borrow: then the interrupt can be removed. */
	SCIDisconnectInterrupt(to, 0, &error);
	CHECK_OK(error);
	SCIRemoveInterrupt(i, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	step_done(0);
	step_await(1);
	admin_give_back(&a);
	remove_int(i);
	api_end(a.sd);
	return 0;
}

static void what_cannot_be_is_refused(void **state)
{
	pid_t a;

	steps_reset();
	a = cluster_fork(*state, 8, refuses, NULL);
	step_await(0);
	assert_int_equal(cluster_count(*state, "one: port vectors"), 31);
	step_done(1);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- deaths ---- */

static int ties_and_waits(void *arg)
{
	unsigned vector = 0;
	struct admin a;

	(void)arg;
	admin_start(&a);
	step_await(0);
	CHECK_OK(tie(&a, &vector, cluster_node(12), 8));
	vector = SMARTIO_ANY_VECTOR;
	CHECK_OK(tie(&a, &vector, cluster_node(12), 8));
	step_done(1);
	step_await(2);
	/* Whoever listened is gone: the commands go on, nobody is told. */
	admin_submit(&a);
	admin_await(&a);
	step_done(3);
	step_await(4);
	return 1;
}

static int listens_and_waits(void *arg)
{
	sci_desc_t sd = api_begin();

	(void)arg;
	listen_on(sd, 8);
	step_done(0);
	step_await(5);
	return 1;
}

/* Ends what the dead left in quarantine. */
static int resets(void *arg)
{
	struct admin a;

	(void)arg;
	admin_start(&a);
	admin_stop(&a);
	return 0;
}

static void whoever_dies_nothing_is_left(void **state)
{
	for (unsigned crash = 0; crash < (cluster_is_machine() ? 1 : 2); crash++) {
		pid_t driver, listener;

		steps_reset();
		listener = cluster_fork(*state, 12, listens_and_waits, NULL);
		driver = cluster_fork(*state, 8, ties_and_waits, NULL);
		step_await(1);
		assert_int_equal(cluster_count(*state, "one: port vectors"), 2);
		if (crash)
			cluster_crash(*state, 12);
		kill(listener, SIGKILL);
		cluster_wait(listener);
		if (crash)
			assert_int_equal(cluster_restart(*state, 12, 4), 0);
		while (cluster_count(*state, "one: port vectors") != 0)
			smartio_yield();
		step_done(2);
		step_await(3);
		kill(driver, SIGKILL);
		cluster_wait(driver);
		assert_int_equal(cluster_wait(cluster_fork(*state, 4, resets, NULL)), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(a_drive_interrupts_the_host_that_uses_it),
		API_TEST(a_drive_interrupts_other_hosts),
		API_TEST(what_cannot_be_is_refused),
		API_TEST(whoever_dies_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
