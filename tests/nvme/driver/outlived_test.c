/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On a live cluster: queues of a lost path that are dead, or that nobody polls, while another queue
 * of the client has that path made anew and returns to it.
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
enum { RUNS = SERVING + 1, MOVED = RUNS + 2, UP = MOVED + 2, HOME = UP + 2 };
#define BYTES 4096u
#define ROUNDS 2u

static const char topology[] =
	"cluster: outlived\n"
	"switches: [red, blue]\n"
	"hosts:\n"
	"  lender: {ram: 64M, iommu: on, adapters: [{to: red}, {to: blue}],\n"
	"           devices: {nvme0: {type: nvme, size: 16M}}}\n"
	"  client: {ram: 64M, iommu: on, adapters: [{to: red}, {to: blue}]}\n";

static struct smartio_nvme_queue *open_queue(struct smartio_nvme *n, uint32_t flags)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4, .flags = flags};
	struct smartio_nvme_queue *q;

	OK(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

static void read_one(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b, uint8_t expected)
{
	const uint8_t *data = smartio_nvme_buffer_data(b);

	read_surviving(q, 8, BYTES / 512, b);
	CHECK(data[0] == expected && data[BYTES - 1] == expected);
}

static void check_dead(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b)
{
	struct smartio_nvme_completion c;

	CHECK(smartio_nvme_poll(q, &c, 1) == -ECONNRESET);
	CHECK(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 1, b, 0, NULL) == -ECONNRESET);
}

static int client(void *arg)
{
	const struct smartio_nvme_open_options oo = {
		.size = sizeof(oo), .wait_ms = 10000, .flags = SMARTIO_NVME_MULTIPATH};
	struct smartio_nvme_queue *dead[ROUNDS], *idle, *q;
	static uint8_t data[BYTES];
	struct smartio_nvme_buffer *b;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open_with("nvme0", &oo, &n));
	OK(smartio_nvme_buffer_alloc(n, BYTES, &b));
	idle = open_queue(n, SMARTIO_NVME_SURVIVE);
	smartio_nvme_queue_close(open_queue(n, SMARTIO_NVME_SURVIVE)); /* of the other way */
	q = open_queue(n, SMARTIO_NVME_SURVIVE);
	CHECK(idle->leg == n && q->leg == n);
	memset(data, 0x5a, sizeof(data));
	OK(smartio_nvme_write(q, data, 8 * 512, sizeof(data)));
	for (unsigned i = 0; i < ROUNDS; i++) {
		dead[i] = open_queue(n, 0);
		read_one(dead[i], b, 0x5a);
		read_one(idle, b, 0x5a);
		step_done(RUNS + i);
		while (q->leg == n || !q->sq_mem)
			read_one(q, b, 0x5a);
		step_done(MOVED + i);
		step_await(UP + i);
		while (q->leg != n || !q->sq_mem)
			read_one(q, b, 0x5a);
		CHECK(n->gone);
		check_dead(dead[i], b);
		step_done(HOME + i);
	}
	for (unsigned i = 0; i < 100; i++)
		read_one(idle, b, 0x5a);
	smartio_nvme_queue_close(dead[0]);
	check_dead(dead[1], b);
	smartio_nvme_queue_close(dead[1]);
	while (n->gone) /* what the idle one had */
		read_one(q, b, 0x5a);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static void a_path_comes_back_beside_what_is_left_of_it(void **state)
{
	struct cluster *c = cluster_up(topology);
	pid_t m, k;

	(void)state;
	assert_non_null(c);
	steps_reset();
	m = cluster_fork(c, LENDER, manager, NULL);
	step_await(SERVING);
	k = cluster_fork(c, CLIENT, client, NULL);
	for (unsigned i = 0; i < ROUNDS; i++) {
		step_await(RUNS + i);
		assert_int_equal(cluster_link(c, CLIENT, 0, false), 0);
		step_await(MOVED + i);
		assert_int_equal(cluster_link(c, CLIENT, 0, true), 0);
		step_done(UP + i);
		step_await(HOME + i);
	}
	assert_int_equal(cluster_wait(k), 0);
	kill(m, SIGTERM);
	assert_int_equal(cluster_wait(m), 0);
	assert_int_equal(cluster_audit(c), 0);
	assert_int_equal(cluster_down(c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_comes_back_beside_what_is_left_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
