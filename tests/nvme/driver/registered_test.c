/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a program as a buffer, on a live cluster: data lie where the program has them, I/O
 * sends no message to anybody, and what a program leaves when it is killed is given back.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../lib/cluster.h"
#include "serving.h"

enum { LENDER = 4, MANAGER = 8, CLIENT = 12 };
enum { REGISTERED = SERVING + 1, GO, DONE, END };
#define PAGE 4096u
#define BYTES (1u << 20)
#define ROUNDS 2000u

static const char topology[] =
	"cluster: registered\n"
	"switches: [sw0]\n"
	"hosts:\n"
	"  lender: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 16M, queue_pairs: 8}}}\n"
	"  manager: {ram: 64M, iommu: off}\n"
	"  client: {ram: 64M, iommu: on}\n";

static struct smartio_nvme *n;
static struct smartio_nvme_queue *q;
static struct smartio_nvme_buffer *b;
static uint8_t *p;

static void fill(uint8_t *at, unsigned seed)
{
	for (unsigned i = 0; i < BYTES; i++)
		at[i] = (uint8_t)(i / 512 * seed + i);
}

static void open_all(void)
{
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, NULL, &q));
	p = aligned_alloc(PAGE, BYTES);
	CHECK(p);
	fill(p, 1);
	OK(smartio_nvme_buffer_register(n, p, BYTES, &b));
}

static void command(enum smartio_nvme_op op, unsigned page)
{
	struct smartio_nvme_completion c;
	int rc;

	OK(smartio_nvme_submit(q, op, 8 * page, 8, b, (size_t)page * PAGE, NULL));
	while ((rc = smartio_nvme_poll(q, &c, 1)) == 0)
		;
	CHECK(rc == 1 && c.status == 0);
}

/* Heap memory, written and read by many commands, between two steps: who counts looks there. */
static int worker(void *arg)
{
	uint8_t *want = malloc(BYTES);

	(void)arg;
	CHECK(want);
	open_all();
	step_done(REGISTERED);
	step_await(GO);
	for (unsigned i = 0; i < ROUNDS; i++)
		command(SMARTIO_NVME_WRITE, i % (BYTES / PAGE));
	memset(p, 0, BYTES);
	for (unsigned i = 0; i < ROUNDS; i++)
		command(SMARTIO_NVME_READ, i % (BYTES / PAGE));
	OK(smartio_nvme_write(q, p, 1 << 20, BYTES)); /* the helpers, too */
	OK(smartio_nvme_read(q, p, 1 << 20, BYTES));
	step_done(DONE);
	step_await(END);
	fill(want, 1);
	CHECK(memcmp(p, want, BYTES) == 0);
	OK(smartio_nvme_buffer_free(b));
	CHECK(memcmp(p, want, BYTES) == 0);
	p = realloc(p, 2 * BYTES); /* it is the program's own */
	CHECK(p && memcmp(p, want, BYTES) == 0);
	free(p);
	free(want);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* While commands are under way: each time at another one. */
static int victim(void *arg)
{
	(void)arg;
	open_all();
	step_done(REGISTERED);
	for (unsigned i = 0;; i++) {
		smartio_nvme_submit(q, i & 1 ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ, 0,
				    BYTES / 512, b, 0, NULL);
		smartio_nvme_ring(q);
		if (i % 8 == 0) {
			struct smartio_nvme_completion c[32];

			while (smartio_nvme_poll(q, c, 32) > 0)
				;
		}
	}
	return 0;
}

static void refused(void *at, size_t bytes, int want)
{
	struct smartio_nvme_buffer *none = NULL;
	int rc = smartio_nvme_buffer_register(n, at, bytes, &none);

	if (rc != want) {
		fprintf(stderr, "%d instead of %d: %s\n", rc, want, smartio_nvme_error());
		exit(1);
	}
}

static int stranger(void *arg)
{
	char name[] = "/tmp/sio-registered-XXXXXX";
	int fd = mkstemp(name);
	void *at;

	(void)arg;
	open_all();
	CHECK(fd >= 0 && unlink(name) == 0 && ftruncate(fd, BYTES) == 0);
	refused(p, PAGE, -ENOTSUP); /* registered already */
	at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	refused(at, BYTES, -ENOTSUP);
	munmap(at, BYTES);
	refused(at, BYTES, -EFAULT); /* nothing is there */
	at = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	refused(at, BYTES, -EFAULT);
	refused(p, 0, -EINVAL);
	command(SMARTIO_NVME_WRITE, 0);
	/* Two that lie beside each other in the heap, at no page's start. */
	at = malloc(3 * PAGE);
	CHECK(at);
	memset(at, 0x3c, 3 * PAGE);
	OK(smartio_nvme_buffer_free(b));
	OK(smartio_nvme_buffer_register(n, at, 3 * PAGE, &b));
	OK(smartio_nvme_write(q, (uint8_t *)at + 16, 0, 4096));
	smartio_nvme_close(n);
	for (unsigned i = 0; i < 3 * PAGE; i++)
		CHECK(((uint8_t *)at)[i] == 0x3c);
	free(at);
	SCITerminate();
	return 0;
}

/* ---- tests ---- */
struct stage {
	struct cluster *c;
	pid_t manager;
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
	return 0;
}

static int down(void **state)
{
	struct stage *s = *state;
	int rc;

	kill(s->manager, SIGTERM);
	assert_int_equal(cluster_wait(s->manager), 0);
	rc = cluster_audit(s->c);
	rc |= cluster_down(s->c);
	free(s);
	return rc;
}

/* What asking for the counters itself counts is taken off. */
static void no_message_per_command(void **state)
{
	static const char *const names[] = {"client_messages", "peer_messages_sent"};
	long long before[2], idle[2], after[2];
	struct stage *s = *state;
	pid_t pid = cluster_fork(s->c, CLIENT, worker, NULL);

	step_await(REGISTERED);
	assert_int_equal(cluster_counters(s->c, CLIENT, names, 2, before), 0);
	assert_int_equal(cluster_counters(s->c, CLIENT, names, 2, idle), 0);
	step_done(GO);
	step_await(DONE);
	assert_int_equal(cluster_counters(s->c, CLIENT, names, 2, after), 0);
	assert_int_equal(after[0] - idle[0], idle[0] - before[0]);
	/* Daemons look after each other while time passes: far fewer than commands. */
	assert_true(after[1] - idle[1] < ROUNDS / 4);
	step_done(END);
	assert_int_equal(cluster_wait(pid), 0);
}

static void the_killed_leave_nothing(void **state)
{
	struct stage *s = *state;

	for (unsigned i = 0; i < 6; i++) {
		pid_t pid = cluster_fork(s->c, i & 1 ? LENDER : CLIENT, victim, NULL);

		step_await(REGISTERED);
		usleep(1000 * i);
		kill(pid, SIGKILL);
		assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
	}
	assert_int_equal(cluster_wait(cluster_fork(s->c, CLIENT, stranger, NULL)), 0);
}

static void what_cannot_be_is_refused(void **state)
{
	struct stage *s = *state;

	assert_int_equal(cluster_wait(cluster_fork(s->c, CLIENT, stranger, NULL)), 0);
	assert_int_equal(cluster_wait(cluster_fork(s->c, LENDER, stranger, NULL)), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_message_per_command),
		TEST(the_killed_leave_nothing),
		TEST(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
