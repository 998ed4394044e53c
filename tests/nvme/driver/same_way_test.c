/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lender with two adapters that lead to the same host, one of which was down when a client mapped
 * its doorbells. What the client maps later goes the way of the doorbells all the same: only so
 * does the drive's answer to a read of one say that its data are here.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "serving.h"

enum { LENDER = 4, CLIENT = 8 };
enum { OPEN = SERVING + 1, BACK, WRITTEN, DOWN_AGAIN, READ, GOES_ON };
#define BYTES 4096u
#define PATTERN 0xa5

static const char topology[] = "cluster: sameway\n"
			       "switches: [sw]\n"
			       "hosts:\n"
			       "  lender: {ram: 64M, iommu: on, adapters: [{to: sw}, {to: sw}],\n"
			       "           devices: {nvme0: {type: nvme, size: 16M}}}\n"
			       "  client: {ram: 64M, iommu: off, adapters: [{to: sw}]}\n";

static int transfer(struct smartio_nvme_queue *q, enum smartio_nvme_op op,
		    struct smartio_nvme_buffer *b)
{
	struct smartio_nvme_completion c;
	int n;

	OK(smartio_nvme_submit(q, op, 0, BYTES / 512, b, 0, NULL));
	while ((n = smartio_nvme_poll(q, &c, 1)) == 0)
		;
	OK(n);
	return (int)c.status;
}

static int client(void *arg)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .cq_placement = SMARTIO_NVME_PLACE_DEVICE};
	uint8_t pattern[BYTES];
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open_wait("nvme0", 10000, &n));
	OK(smartio_nvme_queue_open(n, &o, &q));
	step_done(OPEN);
	step_await(BACK);
	OK(smartio_nvme_buffer_alloc(n, BYTES, &b));
	memset(pattern, PATTERN, sizeof(pattern));
	memcpy(smartio_nvme_buffer_data(b), pattern, BYTES);
	CHECK(transfer(q, SMARTIO_NVME_WRITE, b) == 0);
	memset(smartio_nvme_buffer_data(b), 0, BYTES);
	step_done(WRITTEN);
	step_await(DOWN_AGAIN);
	CHECK(transfer(q, SMARTIO_NVME_READ, b) == 0);
	CHECK(memcmp(smartio_nvme_buffer_data(b), pattern, BYTES) == 0);
	step_done(READ);
	step_await(GOES_ON);
	CHECK(transfer(q, SMARTIO_NVME_READ, b) == 0);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* Until its daemon knows that the first adapter leads to the client, or does not. */
static int await_link(void *arg)
{
	const bool up = *(const bool *)arg;
	sci_error_t error;
	sci_desc_t sd;

	begin();
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	while (SCIProbeNode(sd, 0, CLIENT, 0, &error) != up)
		smartio_wait_events(NULL, NULL, 1, &error);
	SCIClose(sd, 0, &error);
	CHECK_OK(error);
	SCITerminate();
	return 0;
}

static void first_link(struct cluster *c, bool up)
{
	assert_int_equal(cluster_link(c, LENDER, 0, up), 0);
	assert_int_equal(cluster_wait(cluster_fork(c, LENDER, await_link, &up)), 0);
}

static void data_go_the_way_of_the_doorbells(void **state)
{
	struct cluster *c = cluster_up(topology);
	pid_t m, k;

	(void)state;
	assert_non_null(c);
	steps_reset();
	m = cluster_fork(c, LENDER, manager, NULL);
	step_await(SERVING);
	first_link(c, false);
	k = cluster_fork(c, CLIENT, client, NULL);
	step_await(OPEN);
	first_link(c, true);
	step_done(BACK);
	step_await(WRITTEN);
	/* Nobody is told that this link is lost: the client has nothing but what it sees. */
	kill(cluster_daemon(c, LENDER), SIGSTOP);
	kill(cluster_daemon(c, CLIENT), SIGSTOP);
	assert_int_equal(cluster_link(c, LENDER, 0, false), 0);
	step_done(DOWN_AGAIN);
	step_await(READ);
	kill(cluster_daemon(c, LENDER), SIGCONT);
	kill(cluster_daemon(c, CLIENT), SIGCONT);
	step_done(GOES_ON);
	assert_int_equal(cluster_wait(k), 0);
	assert_int_equal(cluster_link(c, LENDER, 0, true), 0);
	end_serving(c, m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_go_the_way_of_the_doorbells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
