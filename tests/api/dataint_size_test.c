/* SPDX-License-Identifier: BSD-2-Clause */
/* Data interrupts of every length class: what comes out is what went in, to the last byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dataint.h"

#define NUMBER 19u
#define MOST 8192u /* programs are promised 4 KiB at least */

/* All short ones, then those around each power of two and each page's end, then the longest. */
static unsigned next_length(unsigned length)
{
	unsigned power = 64;

	if (length < power)
		return length + 1;
	while (power < length)
		power *= 2;
	/* length is one of power / 2 + 1, somewhere between, power - 1, power */
	if (length == power)
		return power < MOST ? power + 1 : 0;
	if (length == power / 2 + 1)
		return length + 7;
	if (length < power * 3 / 4)
		return power * 3 / 4;
	return length < power - 1 ? power - 1 : power;
}

static void fill(uint8_t *data, unsigned length)
{
	for (unsigned i = 0; i < length; i++)
		data[i] = (uint8_t)(i * 7 + i / 251 + length);
}

static int receives(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_data_interrupt_t dint = listen_on(sd, NUMBER, 0);
	static uint8_t data[MOST + 1], expected[MOST];
	unsigned length;
	sci_error_t error;

	(void)arg;
	step_done(0);
	for (unsigned n = 1; n; n = next_length(n)) {
		memset(data, 0xee, sizeof(data));
		length = sizeof(data);
		SCIWaitForDataInterrupt(dint, data, &length, SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK_OK(error);
		fill(expected, n);
		CHECK(length == n);
		CHECK(!memcmp(data, expected, n));
		CHECK(data[n] == 0xee);
	}
	/* What is longer was refused, and is not there in part. */
	step_await(1);
	remove_empty(dint);
	api_end(sd);
	return 0;
}

static int sends(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_data_interrupt_t dint;
	uint8_t data[MOST + 1];
	unsigned sent = 0, last = 0;
	sci_error_t error;

	(void)arg;
	step_await(0);
	dint = reach(sd, cluster_node(4), NUMBER);
	for (unsigned n = 1; n; n = next_length(n)) {
		fill(data, n);
		do {
			SCITriggerDataInterrupt(dint, data, n, 0, &error);
			if (error == SCI_ERR_NOSPC)
				smartio_yield();
		} while (error == SCI_ERR_NOSPC);
		CHECK_OK(error);
		sent++;
		last = n;
	}
	CHECK(last == MOST && sent >= 64 + 7 * 4);
	fill(data, MOST + 1);
	SCITriggerDataInterrupt(dint, data, MOST + 1, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	step_done(1);
	SCIDisconnectDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

/* From another host, and from the receiver's own. */
static void each_length_arrives_whole(void **state)
{
	for (unsigned node = 4; node <= 8; node += 4) {
		pid_t receiver, sender;

		steps_reset();
		receiver = cluster_fork(*state, 4, receives, NULL);
		sender = cluster_fork(*state, node, sends, NULL);
		assert_int_equal(cluster_wait(sender), 0);
		assert_int_equal(cluster_wait(receiver), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(each_length_arrives_whole),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
