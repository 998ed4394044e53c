/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On a live cluster: programs of two hosts wait for a queue pair of a drive that has two. Who has
 * waited longest does not have the first one that is free, if its host has one already.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "manager.h"
#include "program.h"

enum { LENDER = 4, FIRST = 8, SECOND = 12 };
enum { READY, HELD, ONE_WAITS, BOTH_WAIT, CLOSE_ONE, SECOND_HAS, CLOSE_OTHER, FIRST_HAS, END };

static const char topology[] =
	"cluster: fair\n"
	"hosts:\n"
	"  lender: {ram: 16M, devices: {nvme0: {type: nvme, size: 1M, queue_pairs: 2}}}\n"
	"  first: {ram: 16M}\n"
	"  second: {ram: 16M}\n"
	"switches: [sw0]\n";

/* Nodes, in the order in which they got a pair; in memory that the programs share. */
static struct order {
	unsigned n, node[2];
} * order;

/* Who waits has been refused, and is recorded. */
static int manager(void *arg)
{
	struct smartio_nvme_manager *m;
	uint32_t seen = 0;

	(void)arg;
	begin();
	OK(smartio_nvme_manager_open("nvme0", NULL, &m));
	step_done(READY);
	for (;;) {
		CHECK(smartio_nvme_manager_serve(m, UINT32_MAX) > 0);
		for (; seen < m->waiters.n && seen < 2; seen++)
			step_done(seen == 0 ? ONE_WAITS : BOTH_WAIT);
	}
}

static int holder(void *arg)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 2};
	struct smartio_nvme_queue *q[2];
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	for (unsigned i = 0; i < 2; i++)
		OK(smartio_nvme_queue_open(n, &o, &q[i]));
	step_done(HELD);
	step_await(CLOSE_ONE);
	smartio_nvme_queue_close(q[0]);
	step_await(CLOSE_OTHER);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static int waits(void *arg)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 2, .wait_ms = UINT32_MAX};
	unsigned node = *(unsigned *)arg;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;

	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, &o, &q));
	order->node[__atomic_fetch_add(&order->n, 1, __ATOMIC_RELAXED)] = node;
	step_done(node == FIRST ? FIRST_HAS : SECOND_HAS);
	step_await(END);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static void who_has_fewer_is_next(void **state)
{
	static unsigned first = FIRST, second = SECOND;
	struct cluster *c = *state;
	pid_t m = cluster_fork(c, LENDER, manager, NULL), h, w[2];

	step_await(READY);
	h = cluster_fork(c, FIRST, holder, NULL);
	step_await(HELD);
	w[0] = cluster_fork(c, FIRST, waits, &first);
	step_await(ONE_WAITS);
	w[1] = cluster_fork(c, SECOND, waits, &second);
	step_await(BOTH_WAIT);
	step_done(CLOSE_ONE);
	step_await(SECOND_HAS);
	assert_int_equal(__atomic_load_n(&order->n, __ATOMIC_RELAXED), 1);
	step_done(CLOSE_OTHER);
	step_await(FIRST_HAS);
	assert_int_equal(order->node[0], SECOND);
	assert_int_equal(order->node[1], FIRST);
	for (unsigned i = 0; i < 2; i++)
		step_done(END);
	assert_int_equal(cluster_wait(h), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(cluster_wait(w[i]), 0);
	kill(m, SIGKILL);
	assert_int_equal(cluster_wait(m), 128 + SIGKILL);
}

static int up(void **state)
{
	steps_reset();
	order = mmap(NULL, sizeof(*order), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (order == MAP_FAILED)
		return -1;
	*state = cluster_up(topology);
	return *state ? 0 : -1;
}

static int down(void **state)
{
	munmap(order, sizeof(*order));
	return cluster_down(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_has_fewer_is_next, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
