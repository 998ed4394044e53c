/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections to what a device has, with callbacks. Nobody goes on with a device that could not be
 * reached for a while, so they end with the link as they do with the lender.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define PAGE 4096u

/* Steps: 0 connected; then one for each reason, of the registers and of the memory. */
#define STEP_OF(what, reason) ((what)*5 + (reason))

struct seen {
	sci_remote_segment_t segment;
	/* Of the callback's thread, which may run before the connect has returned. */
	sci_remote_segment_t told;
	unsigned step;
	unsigned calls; /* with the last word */
};

static unsigned calls_of(const struct seen *s)
{
	return __atomic_load_n(&s->calls, __ATOMIC_SEQ_CST);
}

static sci_callback_action_t note(void *arg, sci_remote_segment_t segment,
				  sci_segment_cb_reason_t reason, sci_error_t status)
{
	struct seen *s = arg;

	__atomic_store_n(&s->told, segment, __ATOMIC_SEQ_CST);
	CHECK(calls_of(s) == 0);
	/* That the path is down may be known before what comes of it. */
	if (reason == SCI_CB_NOT_OPERATIONAL) {
		CHECK_IS(status, SCI_ERR_NO_LINK_ACCESS);
		return SCI_CALLBACK_CONTINUE;
	}
	CHECK(reason == SCI_CB_LOST);
	CHECK_IS(status, SCI_ERR_NOT_CONNECTED);
	__atomic_add_fetch(&s->calls, 1, __ATOMIC_SEQ_CST);
	step_done(s->step);
	return SCI_CALLBACK_CONTINUE;
}

static void connect_to(sci_smartio_device_t device, unsigned id, unsigned type, struct seen *s)
{
	sci_error_t error, status;

	SCIConnectDeviceSegment(device, &s->segment, id, type, NULL, s, SCI_FLAG_USE_CALLBACK,
				&error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(s->segment == NULL);
	SCIConnectDeviceSegment(device, &s->segment, id, type, note, s, SCI_FLAG_USE_CALLBACK,
				&error);
	CHECK_OK(error);
	/* What has a callback is not waited for. */
	CHECK(SCIWaitForRemoteSegmentEvent(s->segment, &status, 0, 0, &error) == 0);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
}

static int borrows(void *arg)
{
	struct seen registers = {.step = 1}, memory = {.step = 2};
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	sci_error_t error;

	(void)arg;
	SCICreateDeviceSegment(device, 1, PAGE, SCI_MEMTYPE_PRIVATE, SCI_MEMACCESS_HOST_WRITE,
			       SCI_FLAG_DEVICE_SIDE_ONLY, &error);
	CHECK_OK(error);
	connect_to(device, 0, SCI_MEMTYPE_BAR, &registers);
	connect_to(device, 1, SCI_MEMTYPE_PRIVATE, &memory);
	CHECK(calls_of(&registers) == 0 && calls_of(&memory) == 0);
	step_done(0);
	step_await(1);
	step_await(2);
	CHECK(__atomic_load_n(&registers.told, __ATOMIC_SEQ_CST) == registers.segment);
	CHECK(__atomic_load_n(&memory.told, __ATOMIC_SEQ_CST) == memory.segment);
	SCIDisconnectSegment(registers.segment, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(memory.segment, 0, &error);
	CHECK_OK(error);
	CHECK(calls_of(&registers) == 1 && calls_of(&memory) == 1);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_callback_tells_that_the_link_went(void **state)
{
	pid_t a;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	a = cluster_fork(*state, 8, borrows, NULL);
	step_await(0);
	assert_int_equal(cluster_link(*state, 8, 0, false), 0);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_link(*state, 8, 0, true), 0);
}

static void a_callback_tells_that_the_lender_died(void **state)
{
	pid_t a;

	cluster_needs(NEEDS_CRASH);
	steps_reset();
	a = cluster_fork(*state, 8, borrows, NULL);
	step_await(0);
	cluster_crash(*state, 4);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_restart(*state, 4, 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(a_callback_tells_that_the_link_went),
		API_TEST(a_callback_tells_that_the_lender_died),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
