/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lender whose daemon is stopped (SIGSTOP) while its links are up: what a client asks of it to
 * have a lost path again is not answered. The queue's I/O goes on over the other path all the
 * while, and when the daemon goes on the queue returns to its own path.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client.h"
#include "serving.h"

enum { LENDER = 4, CLIENT = 8 };
enum { RUNS = SERVING + 1, MOVED, UP, LINKED, STOPPED, WENT_ON };
#define BYTES 4096u
#define MANY 2000u /* reads while the daemon is stopped */

/* When the daemon is stopped. */
enum when { BEFORE_THE_PATH, BEFORE_THE_NEXT_PAIR };

static const char topology[] =
	"cluster: stopped\n"
	"switches: [red, blue]\n"
	"hosts:\n"
	"  lender: {ram: 64M, iommu: on, adapters: [{to: red}, {to: blue}],\n"
	"           devices: {nvme0: {type: nvme, size: 16M}}}\n"
	"  client: {ram: 64M, iommu: on, adapters: [{to: red}, {to: blue}]}\n";

static void read_one(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b)
{
	read_surviving(q, 0, BYTES / 512, b);
}

/* The lender answers over the first path: so what is asked of it after that waits for it alone. */
static void await_path(struct smartio_nvme *n)
{
	sci_smartio_device_t device;
	sci_error_t error;

	do
		smartio_borrow_device_over(n->second->d.sd, &device, n->d.fdid, n->d.adapter, 0,
					   &error);
	while (error != SCI_ERR_OK);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
}

static bool is_at_work(const struct smartio_nvme *n)
{
	return __atomic_load_n(&n->aside.working, __ATOMIC_ACQUIRE);
}

static int client(void *arg)
{
	const struct smartio_nvme_open_options oo = {
		.size = sizeof(oo), .wait_ms = 10000, .flags = SMARTIO_NVME_MULTIPATH};
	const struct smartio_nvme_queue_options qo = {
		.size = sizeof(qo), .depth = 4, .flags = SMARTIO_NVME_SURVIVE};
	const enum when when = *(const enum when *)arg;
	struct smartio_nvme_info info;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme *n;

	begin();
	OK(smartio_nvme_open_with("nvme0", &oo, &n));
	OK(smartio_nvme_queue_open(n, &qo, &q));
	OK(smartio_nvme_buffer_alloc(n, BYTES, &b));
	CHECK(q->leg == n);
	step_done(RUNS);
	while (q->leg == n || !q->sq_mem)
		read_one(q, b);
	step_done(MOVED);
	step_await(UP);
	await_path(n);
	while (when == BEFORE_THE_NEXT_PAIR && (!sio_nvme_leg_open(n) || is_at_work(n) || n->gone))
		if (is_at_work(n))
			smartio_yield();
		else
			read_one(q, b);
	step_done(LINKED);
	step_await(STOPPED);
	while (!is_at_work(n))
		read_one(q, b);
	for (unsigned i = 0; i < MANY; i++) {
		read_one(q, b);
		/* Nor does it hold calls that have no need of the lender. */
		if (when == BEFORE_THE_NEXT_PAIR)
			smartio_nvme_get_info(n, &info);
		CHECK(is_at_work(n) && q->leg == n->second);
	}
	step_done(WENT_ON);
	while (q->leg != n || !q->sq_mem)
		read_one(q, b);
	for (unsigned i = 0; i < 100; i++)
		read_one(q, b);
	CHECK(sio_nvme_leg_open(n) && q->leg == n);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static void stop_the_lender(enum when when)
{
	struct cluster *c = cluster_up(topology);
	pid_t m, k;

	assert_non_null(c);
	steps_reset();
	m = cluster_fork(c, CLIENT, manager, NULL);
	step_await(SERVING);
	k = cluster_fork(c, CLIENT, client, &when);
	step_await(RUNS);
	assert_int_equal(cluster_link(c, LENDER, 0, false), 0);
	step_await(MOVED);
	assert_int_equal(cluster_link(c, LENDER, 0, true), 0);
	step_done(UP);
	step_await(LINKED);
	kill(cluster_daemon(c, LENDER), SIGSTOP);
	step_done(STOPPED);
	step_await(WENT_ON);
	kill(cluster_daemon(c, LENDER), SIGCONT);
	assert_int_equal(cluster_wait(k), 0);
	end_serving(c, m);
}

static void a_path_that_is_made_anew_holds_no_io(void **state)
{
	(void)state;
	stop_the_lender(BEFORE_THE_PATH);
}

static void what_a_pair_needs_at_home_holds_no_io(void **state)
{
	(void)state;
	stop_the_lender(BEFORE_THE_NEXT_PAIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_is_made_anew_holds_no_io),
		cmocka_unit_test(what_a_pair_needs_at_home_holds_no_io),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
