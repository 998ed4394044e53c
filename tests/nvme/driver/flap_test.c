/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link that goes and comes back before any daemon does something about it: nobody has lost a
 * borrow, the drive answers, and what was dropped meanwhile nobody knows. A completion that lies
 * with the lender is not believed then.
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
enum { READS = SERVING + 1, WAS_DOWN, SEEN, GOES_ON };
#define BYTES 4096u

static const char topology[] = "cluster: flap\n"
			       "hosts:\n"
			       "  lender: {ram: 64M, iommu: on, adapters: [{to: client}],\n"
			       "           devices: {nvme0: {type: nvme, size: 16M}}}\n"
			       "  client: {ram: 64M, iommu: off, adapters: [{to: lender}]}\n";

static int read_one(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b,
		    struct smartio_nvme_completion *c)
{
	int n;

	OK(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, BYTES / 512, b, 0, NULL));
	while ((n = smartio_nvme_poll(q, c, 1)) == 0)
		;
	return n;
}

static int client(void *arg)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .cq_placement = SMARTIO_NVME_PLACE_DEVICE};
	struct smartio_nvme_completion c;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open_wait("nvme0", 10000, &n));
	OK(smartio_nvme_queue_open(n, &o, &q));
	OK(smartio_nvme_buffer_alloc(n, BYTES, &b));
	for (unsigned i = 0; i < 100; i++)
		CHECK(read_one(q, b, &c) == 1 && c.status == 0);
	step_done(READS);
	step_await(WAS_DOWN);
	CHECK(read_one(q, b, &c) == -ENETDOWN);
	CHECK(smartio_nvme_buffer_free(b) == -EBUSY);
	step_done(SEEN);
	step_await(GOES_ON);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static void a_completion_at_the_lender_is_not_believed(void **state)
{
	struct cluster *c = cluster_up(topology);
	pid_t m, k;

	(void)state;
	assert_non_null(c);
	steps_reset();
	m = cluster_fork(c, LENDER, manager, NULL);
	step_await(SERVING);
	k = cluster_fork(c, CLIENT, client, NULL);
	step_await(READS);
	kill(cluster_daemon(c, LENDER), SIGSTOP);
	kill(cluster_daemon(c, CLIENT), SIGSTOP);
	assert_int_equal(cluster_link(c, CLIENT, 0, false), 0);
	assert_int_equal(cluster_link(c, CLIENT, 0, true), 0);
	step_done(WAS_DOWN);
	step_await(SEEN);
	kill(cluster_daemon(c, LENDER), SIGCONT);
	kill(cluster_daemon(c, CLIENT), SIGCONT);
	step_done(GOES_ON);
	assert_int_equal(cluster_wait(k), 0);
	end_serving(c, m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_completion_at_the_lender_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
