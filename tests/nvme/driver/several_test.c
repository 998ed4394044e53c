/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients on a live cluster whose submission queues complete in one completion queue each: they are
 * killed at any time, also while they open and close queues, and so are managers. Whoever lives has
 * the data and completions that are its own, the drive is not reset, and no queue pair is lost.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "program.h"
#include "smartio/ext.h"

enum { LENDER = 4, MANAGER = 8, CLIENT1 = 12, CLIENT2 = 16 };
enum { SERVING, STANDING, TAKEN_OVER, RUNNING };
#define PAIRS 9u
#define QUEUES 3u
#define DEPTH 4u
#define BYTES 4096u
#define KILLS 12u
#define MANAGERS 4u
#define WAIT_MS 30000u

static const char topology[] =
	"cluster: several\n"
	"switches: [sw0]\n"
	"hosts:\n"
	"  lender: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 16M, queue_pairs: 9}}}\n"
	"  manager: {ram: 64M, iommu: off}\n"
	"  client1: {ram: 64M, iommu: on}\n"
	"  client2: {ram: 64M, iommu: off}\n";

/* ---- programs ---- */
static struct smartio_nvme_manager *serving;
static volatile sig_atomic_t ending;

static void on_term(int sig)
{
	(void)sig;
	smartio_nvme_manager_stop(serving);
}

static int manager(void *arg)
{
	struct smartio_nvme_manager_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_STANDBY};
	struct smartio_nvme_manager_status s;
	int rc;

	(void)arg;
	begin();
	OK(smartio_nvme_manager_open("nvme0", &o, &serving));
	signal(SIGTERM, on_term);
	smartio_nvme_manager_get_status(serving, &s);
	step_done(s.serves ? SERVING : STANDING);
	if (!s.serves) {
		OK(smartio_nvme_manager_serve(serving, UINT32_MAX));
		smartio_nvme_manager_get_status(serving, &s);
		CHECK(s.serves && s.takeovers == 1 && s.kept == 1);
		step_done(TAKEN_OVER);
	}
	while ((rc = smartio_nvme_manager_serve(serving, UINT32_MAX)) > 0)
		;
	if (rc < 0)
		fprintf(stderr, "the manager ends: %d: %s\n", rc, smartio_nvme_error());
	smartio_nvme_manager_close(serving);
	SCITerminate();
	return rc ? 2 : 0;
}

static void on_end(int sig)
{
	(void)sig;
	ending = 1;
}

struct worker {
	unsigned me;
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q[QUEUES];
	struct smartio_nvme_buffer *b;
	uint64_t round;
};

/* Each block says whose it is, of which queue, and of which round. */
static void stamp(const struct worker *w, unsigned queue, unsigned i, uint8_t *data)
{
	const uint64_t word[2] = {w->round, (uint64_t)w->me << 32 | queue << 8 | i};

	for (size_t at = 0; at < BYTES; at += sizeof(word))
		memcpy(data + at, word, sizeof(word));
}

static void open_first(struct worker *w)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o),
						     .depth = DEPTH,
						     .cq_depth = QUEUES * DEPTH,
						     .flags = w->me ? SMARTIO_NVME_INTERRUPT : 0,
						     .wait_ms = WAIT_MS};

	OK(smartio_nvme_queue_open(w->n, &o, &w->q[0]));
}

static void open_more(struct worker *w, unsigned i)
{
	const struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = DEPTH, .completes_in = w->q[0], .wait_ms = WAIT_MS};

	OK(smartio_nvme_queue_open(w->n, &o, &w->q[i]));
}

/* Of all queues at once, polled by any of them. */
static void all_of(struct worker *w, enum smartio_nvme_op op)
{
	struct smartio_nvme_completion c[QUEUES * DEPTH];
	unsigned done[QUEUES] = {0};

	for (unsigned k = 0; k < QUEUES * DEPTH; k++)
		OK(smartio_nvme_submit(w->q[k % QUEUES], op, (w->me * 32 + k) * 8, 8, w->b,
				       (size_t)k * BYTES, (void *)(uintptr_t)(k % QUEUES)));
	for (unsigned all = 0; all < QUEUES * DEPTH;) {
		struct smartio_nvme_queue *any = w->q[smartio_random() % QUEUES];
		int rc = smartio_nvme_poll(any, c, QUEUES * DEPTH);

		OK(rc);
		if (rc == 0 && w->me)
			CHECK(smartio_nvme_wait(any, WAIT_MS) == 1);
		for (int i = 0; i < rc; i++) {
			const unsigned of = (unsigned)(uintptr_t)c[i].cookie;

			CHECK(c[i].status == 0);
			CHECK(c[i].queue == smartio_nvme_queue_id(w->q[of]));
			done[of]++;
		}
		all += (unsigned)rc;
	}
	for (unsigned i = 0; i < QUEUES; i++)
		CHECK(done[i] == DEPTH);
}

static void write_and_read(struct worker *w)
{
	uint8_t *data = smartio_nvme_buffer_data(w->b), want[BYTES];

	for (unsigned k = 0; k < QUEUES * DEPTH; k++)
		stamp(w, k % QUEUES, k / QUEUES, data + (size_t)k * BYTES);
	all_of(w, SMARTIO_NVME_WRITE);
	memset(data, 0, (size_t)QUEUES * DEPTH * BYTES);
	all_of(w, SMARTIO_NVME_READ);
	for (unsigned k = 0; k < QUEUES * DEPTH; k++) {
		stamp(w, k % QUEUES, k / QUEUES, want);
		CHECK(memcmp(data + (size_t)k * BYTES, want, BYTES) == 0);
	}
}

/* Some queues, or all, in an order that changes, are closed and opened anew. */
static void open_anew(struct worker *w)
{
	const unsigned one = smartio_random() % QUEUES;

	if (one) {
		smartio_nvme_queue_close(w->q[one]);
		open_more(w, one);
		return;
	}
	/* The one with the completion queue first: it lives until the last. */
	for (unsigned i = 0; i < QUEUES; i++)
		smartio_nvme_queue_close(w->q[i]);
	open_first(w);
	for (unsigned i = 1; i < QUEUES; i++)
		open_more(w, i);
}

static int worker(void *arg)
{
	struct worker w = {.me = *(unsigned *)arg};

	signal(SIGTERM, on_end);
	begin();
	OK(smartio_nvme_open("nvme0", &w.n));
	OK(smartio_nvme_buffer_alloc(w.n, (size_t)QUEUES * DEPTH * BYTES, &w.b));
	open_first(&w);
	for (unsigned i = 1; i < QUEUES; i++)
		open_more(&w, i);
	for (; !ending; w.round++) {
		write_and_read(&w);
		if (w.round == 0)
			step_done(RUNNING);
		if (w.round % 4 == 3)
			open_anew(&w);
	}
	smartio_nvme_close(w.n);
	SCITerminate();
	return 0;
}

/* All pairs can be had: none was lost with a client or a manager. */
static int all_pairs(void *arg)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o), .wait_ms = WAIT_MS};
	struct smartio_nvme_queue *q[PAIRS];
	struct smartio_nvme *n;
	uint8_t data[512];

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	for (unsigned i = 0; i < PAIRS; i++) {
		OK(smartio_nvme_queue_open(n, &o, &q[i]));
		OK(smartio_nvme_read(q[i], data, 0, sizeof(data)));
	}
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* ---- tests ---- */
static int up(void **state)
{
	steps_reset();
	*state = cluster_up(topology);
	return *state ? 0 : -1;
}

static int down(void **state)
{
	return cluster_down(*state);
}

static pid_t start(struct cluster *c, unsigned node, unsigned *who)
{
	pid_t pid = cluster_fork(c, node, worker, who);

	step_await(RUNNING);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGTERM);
	assert_int_equal(cluster_wait(pid), 0);
}

/* A client dies at a time of its own, while two others go on, of which one sleeps for completions.
 */
static void deaths_of_clients_are_noticed_by_nobody(void **state)
{
	static unsigned who[3] = {0, 1, 2};
	pid_t serves = cluster_fork(*state, MANAGER, manager, NULL), other[2], victim;

	step_await(SERVING);
	other[0] = start(*state, CLIENT2, &who[0]);
	other[1] = start(*state, LENDER, &who[1]);
	for (unsigned i = 0; i < KILLS; i++) {
		victim = start(*state, CLIENT1, &who[2]);
		usleep((useconds_t)(smartio_random() % 40000));
		kill(victim, SIGKILL);
		assert_int_equal(cluster_wait(victim), 128 + SIGKILL);
	}
	end(other[0]);
	end(other[1]);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT1, all_pairs, NULL)), 0);
	end(serves);
}

/* Managers die while clients open and close, and one time a client with it. */
static void deaths_of_managers_are_noticed_by_nobody(void **state)
{
	static unsigned who[3] = {0, 1, 2};
	static const unsigned node[] = {LENDER, MANAGER, CLIENT1};
	pid_t serves = cluster_fork(*state, MANAGER, manager, NULL), next, client[3];

	step_await(SERVING);
	client[0] = start(*state, CLIENT1, &who[0]);
	client[1] = start(*state, CLIENT2, &who[1]);
	client[2] = start(*state, LENDER, &who[2]);
	for (unsigned i = 0; i < MANAGERS; i++) {
		next = cluster_fork(*state, node[i % 3], manager, NULL);
		step_await(STANDING);
		usleep((useconds_t)(smartio_random() % 40000));
		if (i == MANAGERS - 1)
			kill(client[2], SIGKILL);
		kill(serves, SIGKILL);
		assert_int_equal(cluster_wait(serves), 128 + SIGKILL);
		step_await(TAKEN_OVER);
		serves = next;
	}
	assert_int_equal(cluster_wait(client[2]), 128 + SIGKILL);
	end(client[0]);
	end(client[1]);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT1, all_pairs, NULL)), 0);
	end(serves);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(deaths_of_clients_are_noticed_by_nobody),
		TEST(deaths_of_managers_are_noticed_by_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
