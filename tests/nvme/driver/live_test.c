/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver on a live cluster: a manager and clients on different hosts share one drive, and one
 * after the other is killed. Programs are children of this test; a child that finds something wrong
 * says so and exits with 1.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../lib/cluster.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"
#include "serving.h"

enum { LENDER = 4, MANAGER = 8, CLIENT1 = 12, CLIENT2 = 16 };
enum { RUNNING = SERVING + 1, WRITTEN, GO, RESET, AGAIN };
#define PAIRS 6
#define CHUNK (256u << 10)
#define KILLS 12
#define VISITS 2000

static const char topology[] =
	"cluster: nvme\n"
	"switches: [sw0]\n"
	"hosts:\n"
	"  lender: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 16M, queue_pairs: 6}}}\n"
	"  manager: {ram: 64M, iommu: off}\n"
	"  client1: {ram: 64M, iommu: on}\n"
	"  client2: {ram: 64M, iommu: off}\n";

#define FAILS(call, error, text)                                                                   \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_ != (error) || !strstr(smartio_nvme_error(), text)) {                       \
			fprintf(stderr, "%s:%d: %s: %d: %s; expected %d: %s\n", __FILE__,          \
				__LINE__, #call, rc_, smartio_nvme_error(), error, text);          \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#if defined(__SANITIZE_THREAD__)
/*
 * The pages of a lost mapping are exchanged while the program reads them; the kernel does that at
 * once, and a reader sees the one or the other.
 */
const char *__tsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void)
{
	return "race:live_map_ones\n";
}
#endif

/* ---- programs ---- */
static void fill(uint8_t *data, unsigned seed, unsigned round)
{
	for (uint32_t i = 0; i < CHUNK; i++)
		data[i] = (uint8_t)((i * 2654435761u + seed * 97 + round * 13) >> 9);
}

/* Writes its own part of the drive, then reads the next client's. */
static int sharer(void *arg)
{
	const unsigned me = *(unsigned *)arg, next = (me + 1) % 3;
	uint8_t *data = malloc(CHUNK), *want = malloc(CHUNK);
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;

	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, NULL, &q));
	for (unsigned round = 0; round < 8; round++) {
		fill(data, me, round);
		OK(smartio_nvme_write(q, data, (me * 8 + round) * (uint64_t)CHUNK, CHUNK));
	}
	OK(smartio_nvme_flush(q));
	for (unsigned i = 0; i < 2; i++)
		step_done(WRITTEN + 1 + me);
	step_await(WRITTEN + 1 + next);
	for (unsigned round = 0; round < 8; round++) {
		OK(smartio_nvme_read(q, data, (next * 8 + round) * (uint64_t)CHUNK, CHUNK));
		fill(want, next, round);
		CHECK(memcmp(data, want, CHUNK) == 0);
	}
	smartio_nvme_close(n);
	SCITerminate();
	free(data);
	free(want);
	return 0;
}

static volatile sig_atomic_t ending;

static void on_end(int sig)
{
	(void)sig;
	ending = 1;
}

/* I/O at depth 16 at its own part of the drive, until SIGTERM; no error may come. */
static int worker(void *arg)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 16};
	const unsigned me = *(unsigned *)arg;
	struct smartio_nvme_completion c[16];
	struct smartio_nvme_buffer *b;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	uint64_t sent = 0, done = 0;
	uint8_t *data;
	int rc;

	signal(SIGTERM, on_end);
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, &o, &q));
	OK(smartio_nvme_buffer_alloc(n, 16 * 8192, &b));
	data = smartio_nvme_buffer_data(b);
	while (!ending || done < sent) {
		while (!ending && sent - done < 16) {
			size_t at = sent % 16 * 8192;

			memset(data + at, (int)(me + sent), 8192);
			OK(smartio_nvme_submit(q, sent & 1 ? SMARTIO_NVME_READ : SMARTIO_NVME_WRITE,
					       me * 4096 + sent / 2 % 100 * 16, 16, b, at, NULL));
			sent++;
		}
		rc = smartio_nvme_poll(q, c, 16);
		OK(rc);
		for (int i = 0; i < rc; i++)
			CHECK(c[i].status == 0);
		if (done == 0 && rc > 0)
			step_done(RUNNING);
		done += (unsigned)rc;
	}
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* Every queue pair of the drive, all at once, each doing something; one more is refused. */
static int all_pairs(void *arg)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4};
	struct smartio_nvme_queue *q[PAIRS + 1];
	unsigned others = arg ? *(unsigned *)arg : 0;
	struct smartio_nvme *n;
	uint8_t data[512];

	begin();
	OK(smartio_nvme_open("nvme0", &n));
	for (unsigned i = 0; i < PAIRS - others; i++)
		OK(smartio_nvme_queue_open(n, &o, &q[i]));
	FAILS(smartio_nvme_queue_open(n, &o, &q[PAIRS]), -ENOSPC,
	      "out of queue pairs: no queue pairs left: the 6 of nvme0 are held by node ");
	for (unsigned i = 0; i < PAIRS - others; i++)
		OK(smartio_nvme_read(q[i], data, 512 * i, sizeof(data)));
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* Goes through the death of its manager. */
static int survivor(void *arg)
{
	struct smartio_nvme_queue *q, *more;
	struct smartio_nvme *n, *late;
	uint8_t data[4096];
	int rc;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, NULL, &q));
	OK(smartio_nvme_read(q, data, 0, sizeof(data)));
	step_done(RUNNING);
	step_await(GO);
	/* The manager is dead: I/O goes on, nothing new is given. */
	for (unsigned i = 0; i < 1000; i++)
		OK(smartio_nvme_read(q, data, i * 4096, sizeof(data)));
	FAILS(smartio_nvme_queue_open(n, NULL, &more), -ENOTCONN, "no manager serves nvme0");
	FAILS(smartio_nvme_open("nvme0", &late), -ENOTCONN, "no manager serves nvme0");
	step_done(RESET);
	/* Another comes, and resets the drive. */
	while ((rc = smartio_nvme_read(q, data, 0, sizeof(data))) == 0)
		;
	FAILS(rc, -ECONNRESET, "reset or lost");
	smartio_nvme_queue_close(q);
	step_await(AGAIN);
	OK(smartio_nvme_queue_open(n, NULL, &q));
	OK(smartio_nvme_read(q, data, 0, sizeof(data)));
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static int second_manager(void *arg)
{
	struct smartio_nvme_manager *m;

	(void)arg;
	begin();
	FAILS(smartio_nvme_manager_open("nvme0", NULL, &m), -EBUSY,
	      "another manager (node 8) serves nvme0");
	SCITerminate();
	return 0;
}

static int early_client(void *arg)
{
	struct smartio_nvme *n;

	(void)arg;
	begin();
	FAILS(smartio_nvme_open("nvme0", &n), -ENOTCONN, "no manager serves nvme0");
	FAILS(smartio_nvme_open("nvme1", &n), -ENODEV, "nvme1");
	SCITerminate();
	return 0;
}

/* Loses the drive with its host. */
static int loser(void *arg)
{
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	uint8_t data[4096];
	int rc;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, NULL, &q));
	OK(smartio_nvme_read(q, data, 0, sizeof(data)));
	step_done(RUNNING);
	while ((rc = smartio_nvme_read(q, data, 0, sizeof(data))) == 0)
		;
	FAILS(rc, -ECONNRESET, "reset or lost");
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* Threads of one client: a queue pair and buffers each, all other calls as they come. */
#define THREADS 4
struct thread {
	struct smartio_nvme *n;
	unsigned index;
};

static void *thread(void *arg)
{
	const struct thread *t = arg;
	uint8_t *out = malloc(65536), *in = malloc(65536);
	struct smartio_nvme_completion c;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_info info;
	int rc;

	for (unsigned round = 0; round < 5; round++) {
		uint64_t offset = (t->index * 5 + round) * 65536ull;

		OK(smartio_nvme_queue_open(t->n, NULL, &q));
		OK(smartio_nvme_buffer_alloc(t->n, 8192, &b));
		smartio_nvme_get_info(t->n, &info);
		CHECK(info.queue_pairs == PAIRS);
		memset(out, (int)(t->index * 16 + round), 65536);
		OK(smartio_nvme_write(q, out, offset, 65536));
		OK(smartio_nvme_read(q, in, offset, 65536));
		CHECK(memcmp(in, out, 65536) == 0);
		OK(smartio_nvme_submit(q, SMARTIO_NVME_READ, offset / 512, 16, b, 0, NULL));
		while ((rc = smartio_nvme_poll(q, &c, 1)) == 0)
			;
		CHECK(rc == 1 && c.status == 0);
		OK(smartio_nvme_identify(t->n, 1, 0, in));
		OK(smartio_nvme_buffer_free(b));
		smartio_nvme_queue_close(q);
	}
	free(out);
	free(in);
	return NULL;
}

static int threads(void *arg)
{
	struct thread t[THREADS];
	pthread_t id[THREADS];
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	for (unsigned i = 0; i < THREADS; i++) {
		t[i] = (struct thread){n, i};
		CHECK(pthread_create(&id[i], NULL, thread, &t[i]) == 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* Opens the drive and does nothing. */
static int idler(void *arg)
{
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	step_done(RUNNING);
	step_await(GO);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* Comes to the data interrupt of another program of CLIENT1 and goes, time and again. */
static int visitor(void *arg)
{
	sci_remote_data_interrupt_t dint;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	for (unsigned i = 0; i < VISITS; i++) {
		/*
		 * Rings of those that left take room until the idle one's library has read of it.
		 */
		do {
			SCIConnectDataInterrupt(sd, &dint, CLIENT1, 0, 1, 0, 0, &error);
			if (error == SCI_ERR_HW_NOSPC)
				smartio_yield();
		} while (error == SCI_ERR_HW_NOSPC);
		CHECK_OK(error);
		SCIDisconnectDataInterrupt(dint, 0, &error);
		CHECK_OK(error);
	}
	api_end(sd);
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

static pid_t start_manager(struct cluster *c)
{
	pid_t pid = cluster_fork(c, MANAGER, manager, NULL);

	step_await(SERVING);
	return pid;
}

static void stop_manager(pid_t pid)
{
	kill(pid, SIGTERM);
	assert_int_equal(cluster_wait(pid), 0);
}

static void three_hosts_share_the_drive(void **state)
{
	static unsigned who[3] = {0, 1, 2};
	static const unsigned node[3] = {LENDER, CLIENT1, CLIENT2};
	pid_t m, child[3];

	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT1, early_client, NULL)), 0);
	m = start_manager(*state);
	for (unsigned i = 0; i < 3; i++)
		child[i] = cluster_fork(*state, node[i], sharer, &who[i]);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(cluster_wait(child[i]), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT2, second_manager, NULL)), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT2, all_pairs, NULL)), 0);
	stop_manager(m);
}

static void threads_share_a_client(void **state)
{
	pid_t m = start_manager(*state);

	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT1, threads, NULL)), 0);
	stop_manager(m);
}

static void killed_clients_leave_nothing(void **state)
{
	static unsigned victim = 0, other = 1, one = 1;
	struct timespec t = {0};
	pid_t m = start_manager(*state), bystander, pid;

	bystander = cluster_fork(*state, LENDER, worker, &other);
	step_await(RUNNING);
	for (unsigned i = 0; i < KILLS; i++) {
		pid = cluster_fork(*state, i % 2 ? CLIENT1 : CLIENT2, worker, &victim);
		step_await(RUNNING);
		/* Anywhere in its I/O. */
		t.tv_nsec = (long)(i * 337 % 1000) * 1000;
		nanosleep(&t, NULL);
		kill(pid, SIGKILL);
		assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
	}
	/* Its pair is in use; all the others can be had, as soon as the last death was handled. */
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT1, all_pairs, &one)), 0);
	kill(bystander, SIGTERM);
	assert_int_equal(cluster_wait(bystander), 0);
	stop_manager(m);
}

/* Its only data interrupt, number 1, is the one for replies. */
static void visitors_cost_an_idle_client_nothing(void **state)
{
	pid_t m = start_manager(*state), pid = cluster_fork(*state, CLIENT1, idler, NULL);
	long before;

	step_await(RUNNING);
	before = cluster_count(*state, "client1: port memory");
	assert_true(before >= 0);
	assert_int_equal(cluster_count(*state, "client1: port interrupts"), 1);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT2, visitor, NULL)), 0);
	assert_int_equal(cluster_count(*state, "client1: port memory"), before);
	step_done(GO);
	assert_int_equal(cluster_wait(pid), 0);
	stop_manager(m);
}

static void manager_dies_and_another_comes(void **state)
{
	pid_t m = start_manager(*state), pid = cluster_fork(*state, CLIENT1, survivor, NULL);

	step_await(RUNNING);
	kill(m, SIGKILL);
	assert_int_equal(cluster_wait(m), 128 + SIGKILL);
	step_done(GO);
	step_await(RESET);
	m = start_manager(*state);
	step_done(AGAIN);
	assert_int_equal(cluster_wait(pid), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT2, all_pairs, NULL)), 0);
	stop_manager(m);
}

static void crashed_host_of_a_client_is_cleaned_up(void **state)
{
	static unsigned victim = 0, other = 1;
	pid_t m = start_manager(*state), bystander, pid;

	bystander = cluster_fork(*state, CLIENT1, worker, &other);
	step_await(RUNNING);
	pid = cluster_fork(*state, CLIENT2, worker, &victim);
	step_await(RUNNING);
	/* A crash takes the programs with it: this one sees nothing of it. */
	kill(pid, SIGSTOP);
	cluster_crash(*state, CLIENT2);
	kill(pid, SIGKILL);
	assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
	kill(bystander, SIGTERM);
	assert_int_equal(cluster_wait(bystander), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, LENDER, all_pairs, NULL)), 0);
	stop_manager(m);
}

static void lender_crashes(void **state)
{
	pid_t m = start_manager(*state), pid = cluster_fork(*state, CLIENT1, loser, NULL);

	step_await(RUNNING);
	cluster_crash(*state, LENDER);
	assert_int_equal(cluster_wait(pid), 0);
	assert_int_equal(cluster_wait(m), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(three_hosts_share_the_drive),
		TEST(threads_share_a_client),
		TEST(killed_clients_leave_nothing),
		TEST(visitors_cost_an_idle_client_nothing),
		TEST(manager_dies_and_another_comes),
		TEST(crashed_host_of_a_client_is_cleaned_up),
		TEST(lender_crashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
