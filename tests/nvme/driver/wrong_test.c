/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive that does wrong, on a live cluster, by `smartio fault device`: a client that polls and
 * one that sleeps see their commands aborted, or their queue pair made again; writes of which
 * nobody knows are told. A third one goes on all the while, without an error and without an Abort.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../lib/cluster.h"
#include "serving.h"

enum { LENDER = 4, MANAGER = 8, CLIENT = 12, OTHER = 16 };
enum { OPENED = SERVING + 1, DONE, GO, BYSTANDER };
#define BYTES 4096u
#define LIMIT_MS 300u
#define ABORTED 0x007u

static const char topology[] =
	"cluster: wrong\n"
	"switches: [sw0]\n"
	"hosts:\n"
	"  lender: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 16M, queue_pairs: 8}}}\n"
	"  manager: {ram: 64M, iommu: off}\n"
	"  client: {ram: 64M, iommu: on}\n"
	"  other: {ram: 64M, iommu: off}\n";

struct work {
	uint32_t flags;
	enum smartio_nvme_op op;
	uint32_t status; /* that the command is to end with */
	int error;	 /* or what ends the queue */
	uint64_t aborts, overdue, renewals;
};

static int take_one(struct smartio_nvme_queue *q, uint32_t flags, struct smartio_nvme_completion *c)
{
	int rc;

	while ((rc = smartio_nvme_poll(q, c, 1)) == 0)
		if (flags & SMARTIO_NVME_INTERRUPT && smartio_nvme_wait(q, UINT32_MAX) < 0)
			return smartio_nvme_poll(q, c, 1);
	return rc;
}

/* A command that something is wrong with, then one that is as it should be. */
static int worker(void *arg)
{
	const struct work *w = arg;
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .flags = w->flags, .timeout_ms = LIMIT_MS};
	struct smartio_nvme_completion c;
	struct smartio_nvme_counters counted;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme *n;
	int rc;

	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, &o, &q));
	OK(smartio_nvme_buffer_alloc(n, BYTES, &b));
	memset(smartio_nvme_buffer_data(b), 0x5a, BYTES);
	OK(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, 4096, BYTES / 512, b, 0, NULL));
	CHECK(take_one(q, w->flags, &c) == 1 && c.status == 0);
	step_done(OPENED);
	step_await(GO);
	OK(smartio_nvme_submit(q, w->op, 4096, BYTES / 512, b, 0, NULL));
	rc = take_one(q, w->flags, &c);
	if (rc != (w->error ? w->error : 1) || (rc == 1 && c.status != w->status)) {
		fprintf(stderr, "%d, status %#x: %s\n", rc, rc == 1 ? c.status : 0,
			smartio_nvme_error());
		exit(1);
	}
	smartio_nvme_queue_counters(q, &counted);
	CHECK(counted.aborts == w->aborts && counted.overdue == w->overdue &&
	      counted.renewals == w->renewals);
	if (w->error) {
		smartio_nvme_queue_close(q);
		OK(smartio_nvme_queue_open(n, &o, &q));
	}
	memset(smartio_nvme_buffer_data(b), 0, BYTES);
	OK(smartio_nvme_submit(q, SMARTIO_NVME_READ, 4096, BYTES / 512, b, 0, NULL));
	CHECK(take_one(q, w->flags, &c) == 1 && c.status == 0);
	for (unsigned i = 0; i < BYTES; i++)
		CHECK(((uint8_t *)smartio_nvme_buffer_data(b))[i] == 0x5a);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static volatile sig_atomic_t ending;

static void on_end(int sig)
{
	(void)sig;
	ending = 1;
}

/* Its commands are flushes, which no fault of this test concerns. */
static int bystander(void *arg)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .timeout_ms = 100 * LIMIT_MS};
	struct smartio_nvme_counters counted;
	struct smartio_nvme_completion c;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	signal(SIGTERM, on_end);
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, &o, &q));
	step_done(BYSTANDER);
	while (!ending) {
		OK(smartio_nvme_submit(q, SMARTIO_NVME_FLUSH, 0, 0, NULL, 0, NULL));
		CHECK(take_one(q, 0, &c) == 1 && c.status == 0);
		usleep(100);
	}
	smartio_nvme_queue_counters(q, &counted);
	CHECK(counted.completed > 0 && counted.aborts == 0);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* ---- tests ---- */
struct stage {
	struct cluster *c;
	pid_t manager, bystander;
};

static int up(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));

	steps_reset();
	s->c = cluster_up(topology);
	if (!s->c)
		return -1;
	*state = s;
	s->manager = cluster_fork(s->c, MANAGER, manager, NULL);
	step_await(SERVING);
	s->bystander = cluster_fork(s->c, OTHER, bystander, NULL);
	step_await(BYSTANDER);
	return 0;
}

static int down(void **state)
{
	struct stage *s = *state;
	int rc;

	kill(s->bystander, SIGTERM);
	assert_int_equal(cluster_wait(s->bystander), 0);
	kill(s->manager, SIGTERM);
	assert_int_equal(cluster_wait(s->manager), 0);
	rc = cluster_down(s->c);
	free(s);
	return rc;
}

#define FAULT(...)                                                                                 \
	assert_int_equal(cluster_fault(s->c, (const char *const[]){__VA_ARGS__, NULL}), 0)

/* The client is on its own host, and on the lender. */
#define EACH(s, w, ...)                                                                            \
	for (unsigned i = 0; i < 2; i++) {                                                         \
		pid_t pid = cluster_fork((s)->c, i ? LENDER : CLIENT, worker, (w));                \
                                                                                                   \
		step_await(OPENED);                                                                \
		FAULT("nvme0", __VA_ARGS__);                                                       \
		step_done(GO);                                                                     \
		assert_int_equal(cluster_wait(pid), 0);                                            \
	}

static void late_ones_are_aborted(void **state)
{
	struct stage *s = *state;

	for (unsigned sleeps = 0; sleeps < 2; sleeps++) {
		struct work w = {.flags = sleeps ? SMARTIO_NVME_INTERRUPT : 0,
				 .op = SMARTIO_NVME_READ,
				 .status = ABORTED,
				 .aborts = 1};

		EACH(s, &w, "delay", "--opcode", "read", "--time", "600000");
	}
}

static void lost_reads_are_sent_again(void **state)
{
	struct stage *s = *state;

	for (unsigned sleeps = 0; sleeps < 2; sleeps++) {
		struct work w = {.flags = SMARTIO_NVME_SURVIVE |
					  (sleeps ? SMARTIO_NVME_INTERRUPT : 0),
				 .op = SMARTIO_NVME_READ,
				 .aborts = 1,
				 .overdue = 1,
				 .renewals = 1};

		EACH(s, &w, "drop", "--opcode", "read");
	}
}

static void lost_writes_are_told(void **state)
{
	struct work w = {.flags = SMARTIO_NVME_SURVIVE,
			 .op = SMARTIO_NVME_WRITE,
			 .status = SMARTIO_NVME_UNSURE,
			 .aborts = 1,
			 .overdue = 1,
			 .renewals = 1};
	struct stage *s = *state;

	EACH(s, &w, "drop", "--opcode", "write");
}

static void others_end(void **state)
{
	struct work w = {.op = SMARTIO_NVME_WRITE, .error = -ETIMEDOUT, .aborts = 1, .overdue = 1};
	struct stage *s = *state;

	EACH(s, &w, "drop", "--opcode", "write");
}

static void errors_and_ids_are_told(void **state)
{
	struct work failed = {.op = SMARTIO_NVME_READ, .status = 0x281};
	struct work wrong = {.op = SMARTIO_NVME_READ, .error = -EPROTO};
	struct stage *s = *state;

	EACH(s, &failed, "error", "--opcode", "read", "--status", "0x281");
	EACH(s, &wrong, "wrong-id", "--opcode", "read");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(late_ones_are_aborted),   TEST(lost_reads_are_sent_again),
		TEST(lost_writes_are_told),    TEST(others_end),
		TEST(errors_and_ids_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
