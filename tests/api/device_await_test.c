/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting until a device is there, or can be borrowed: smartio_await_device(); and for a notice of
 * who has its registers: smartio_device_notify().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "topology.h"

/* What it says at once. */
static sci_error_t look(const char *name, unsigned state)
{
	unsigned fdid = 0;
	sci_error_t error;

	smartio_await_device(name, state, 0, &fdid, &error);
	CHECK((error == SCI_ERR_OK) == (fdid != 0));
	return error;
}

static unsigned wait_for(unsigned state)
{
	unsigned fdid = 0, same;
	sci_error_t error;

	smartio_await_device(cluster_device(), state, SCI_INFINITE_TIMEOUT, &fdid, &error);
	CHECK_OK(error);
	smartio_find_device(cluster_device(), &same, &error);
	CHECK_OK(error);
	CHECK(fdid == same);
	return fdid;
}

static void borrow_and_return(sci_desc_t sd, unsigned fdid, unsigned flags)
{
	sci_smartio_device_t device = NULL;
	sci_error_t error;

	SCIBorrowDevice(sd, &device, fdid, flags, &error);
	CHECK_OK(error);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
}

static int has_it_exclusively(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, SCI_FLAG_EXCLUSIVE);
	sci_error_t error;

	(void)arg;
	step_done(0);
	step_await(1);
	SCIReleaseExclusiveBorrow(device, 0, &error);
	CHECK_OK(error);
	step_await(2);
	kill(getpid(), SIGKILL);
	return 1;
}

static int waits_for_it(void *arg)
{
	sci_desc_t sd = api_begin();
	unsigned fdid = 7;
	char number[16];
	sci_error_t error;

	(void)arg;
	step_await(0);
	CHECK(look(cluster_device(), SMARTIO_AWAIT_THERE) == SCI_ERR_OK);
	while (look(cluster_device(), SMARTIO_AWAIT_EXCLUSIVE) == SCI_ERR_OK)
		smartio_yield(); /* another host than the borrower's hears of it a little later */
	CHECK(look(cluster_device(), SMARTIO_AWAIT_EXCLUSIVE) == SCI_ERR_TIMEOUT);
	CHECK(look(cluster_device(), SMARTIO_AWAIT_SHARED) == SCI_ERR_TIMEOUT);
	CHECK(strstr(smartio_last_error(), "somebody has borrowed it exclusively") != NULL);
	smartio_await_device(cluster_device(), SMARTIO_AWAIT_SHARED, 3, &fdid, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	CHECK(fdid == 7);
	step_done(1);
	borrow_and_return(sd, wait_for(SMARTIO_AWAIT_SHARED), 0);
	CHECK(look(cluster_device(), SMARTIO_AWAIT_EXCLUSIVE) == SCI_ERR_TIMEOUT);
	step_done(2);
	fdid = wait_for(SMARTIO_AWAIT_EXCLUSIVE);
	borrow_and_return(sd, fdid, SCI_FLAG_EXCLUSIVE);
	snprintf(number, sizeof(number), "%#x", fdid);
	CHECK(look(number, SMARTIO_AWAIT_THERE) == SCI_ERR_OK);
	api_end(sd);
	return 0;
}

static void the_end_of_a_borrow_is_told(void **state)
{
	for (unsigned node = 4; node <= 12; node += 4) {
		pid_t a, b;

		steps_reset();
		a = cluster_fork(*state, 8, has_it_exclusively, NULL);
		b = cluster_fork(*state, node, waits_for_it, NULL);
		assert_int_equal(cluster_wait(b), 0);
		assert_int_equal(cluster_wait(a), 128 + SIGKILL);
	}
}

static int misuses(void *arg)
{
	char name[100];
	unsigned fdid;
	sci_error_t error;
	sci_desc_t sd;

	(void)arg;
	smartio_await_device("x", SMARTIO_AWAIT_THERE, 0, &fdid, &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	sd = api_begin();
	smartio_await_device(NULL, SMARTIO_AWAIT_THERE, 0, &fdid, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_await_device("x", SMARTIO_AWAIT_THERE, 0, NULL, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(look("", SMARTIO_AWAIT_THERE) == SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(look(cluster_device(), SMARTIO_AWAIT_EXCLUSIVE + 1) == SCI_ERR_ILLEGAL_PARAMETER);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(look(name, SMARTIO_AWAIT_THERE) == SCI_ERR_ILLEGAL_PARAMETER);
	name[63] = '\0';
	CHECK(look(name, SMARTIO_AWAIT_THERE) == SCI_ERR_TIMEOUT);
	CHECK(strstr(smartio_last_error(), "no host has announced it") != NULL);
	api_end(sd);
	return 0;
}

static void wrong_uses_are_refused(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, misuses, NULL)), 0);
}

static void *waits_in_vain(void *arg)
{
	unsigned fdid;
	sci_error_t error;

	__atomic_store_n((unsigned *)arg, 1, __ATOMIC_SEQ_CST);
	smartio_await_device("nobody", SMARTIO_AWAIT_THERE, SCI_INFINITE_TIMEOUT, &fdid, &error);
	CHECK(error == SCI_ERR_NO_LINK_ACCESS || error == SCI_ERR_NOT_INITIALIZED);
	return NULL;
}

static int terminates_meanwhile(void *arg)
{
	unsigned started = 0;
	pthread_t thread;
	sci_error_t error;

	(void)arg;
	SCIInitialize(0, &error);
	CHECK_OK(error);
	CHECK(!pthread_create(&thread, NULL, waits_in_vain, &started));
	while (!__atomic_load_n(&started, __ATOMIC_SEQ_CST))
		smartio_yield();
	CHECK(look("nobody", SMARTIO_AWAIT_THERE) == SCI_ERR_TIMEOUT);
	SCITerminate();
	pthread_join(thread, NULL);
	return 0;
}

static void the_librarys_end_ends_it(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, terminates_meanwhile, NULL)), 0);
}

static int waits_for_its_lender(void *arg)
{
	sci_desc_t sd = api_begin();
	unsigned fdid;

	(void)arg;
	fdid = wait_for(SMARTIO_AWAIT_EXCLUSIVE);
	step_done(0);
	step_await(1);
	while (look(cluster_device(), SMARTIO_AWAIT_THERE) == SCI_ERR_OK)
		smartio_yield(); /* this host hears a little later of the end */
	step_done(2);
	CHECK(wait_for(SMARTIO_AWAIT_EXCLUSIVE) == fdid);
	api_end(sd);
	return 0;
}

static void a_lender_comes_back(void **state)
{
	pid_t a;

	cluster_needs(NEEDS_CRASH);
	steps_reset();
	a = cluster_fork(*state, 8, waits_for_its_lender, NULL);
	step_await(0);
	cluster_crash(*state, 4);
	step_done(1);
	step_await(2);
	assert_int_equal(cluster_restart(*state, 4, 8), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- notices ---- */

static int sends_notices(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	struct smartio_device_event event;
	sci_remote_segment_t bar = NULL;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	smartio_device_notify(device, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	smartio_device_notify(NULL, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIConnectDeviceSegment(device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(bar, &map, 0, 4096, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	step_await(0);
	smartio_device_notify(device, &error);
	CHECK_OK(error);
	step_await(1);
	for (unsigned i = 0; i < 20; i++) {
		smartio_device_notify(device, &error);
		CHECK_OK(error);
	}
	step_done(2);
	step_await(3);
	/* It hears no notice itself; of the other one's return it would. */
	smartio_wait_device_event(device, &event, 0, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	step_done(4);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(bar, 0, &error);
	CHECK_OK(error);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static int hears_notices(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	struct smartio_device_event event;
	sci_error_t error;
	unsigned n = 0;

	(void)arg;
	step_done(0);
	smartio_wait_device_event(device, &event, SCI_INFINITE_TIMEOUT, &error);
	CHECK_OK(error);
	CHECK(event.kind == SMARTIO_DEVICE_NOTICE);
	smartio_wait_device_event(device, &event, 0, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	step_done(1);
	step_await(2);
	/* As many as come while nobody takes one are told as one. */
	smartio_wait_device_event(device, &event, SCI_INFINITE_TIMEOUT, &error);
	while (error == SCI_ERR_OK) {
		CHECK(event.kind == SMARTIO_DEVICE_NOTICE);
		n++;
		smartio_wait_device_event(device, &event, 0, &error);
	}
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	CHECK(n <= 20);
	step_done(3);
	step_await(4);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void notices_reach_all_others(void **state)
{
	for (unsigned node = 4; node <= 12; node += 4) {
		pid_t a, b;

		steps_reset();
		a = cluster_fork(*state, 8, sends_notices, NULL);
		b = cluster_fork(*state, node, hears_notices, NULL);
		assert_int_equal(cluster_wait(b), 0);
		assert_int_equal(cluster_wait(a), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(the_end_of_a_borrow_is_told), API_TEST(wrong_uses_are_refused),
		API_TEST(the_librarys_end_ends_it),    API_TEST(a_lender_comes_back),
		API_TEST(notices_reach_all_others),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
