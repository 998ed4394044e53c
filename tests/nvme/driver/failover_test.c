/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Managers are killed under the I/O of clients on three hosts, or end by SIGTERM, one after the
 * other; a standby takes over each time. No command may fail, no block be wrong, the drive is never
 * reset, and a new client gets a queue pair. How long it took is printed.
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

#include "program.h"
#include "smartio/ext.h"

enum { LENDER = 4, MANAGER = 8, CLIENT1 = 12, CLIENT2 = 16 };
enum { SERVING, STANDING, TAKEN_OVER, RUNNING, GO_ON };
#define CLIENTS 3
#define KILLS 6
#define DEPTH 8
#define BYTES 4096u
#define HANDED_OVER 3 /* exit status of a manager */

static const char topology[] =
	"cluster: nvme\n"
	"switches: [sw0]\n"
	"hosts:\n"
	"  lender: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 16M, queue_pairs: 6}}}\n"
	"  manager: {ram: 64M, iommu: off}\n"
	"  client1: {ram: 64M, iommu: on}\n"
	"  client2: {ram: 64M, iommu: off}\n";

/* ---- programs ---- */
static struct smartio_nvme_manager *serving;

static void on_term(int sig)
{
	(void)sig;
	smartio_nvme_manager_stop(serving);
}

/* Serves, or stands by until it does; SIGTERM ends it. */
static int manager(void *arg)
{
	struct smartio_nvme_manager_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_STANDBY};
	struct smartio_nvme_manager_status s;
	bool handed_over;
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
		printf("took over from node %u in %llu us\n", s.other_node,
		       (unsigned long long)s.took_us);
		fflush(stdout);
		step_done(TAKEN_OVER);
	}
	while ((rc = smartio_nvme_manager_serve(serving, UINT32_MAX)) > 0)
		;
	if (rc < 0)
		fprintf(stderr, "the manager ends: %d: %s\n", rc, smartio_nvme_error());
	handed_over = smartio_nvme_manager_hand_over(serving) == 0;
	if (!handed_over)
		smartio_nvme_manager_close(serving);
	SCITerminate();
	return rc ? 2 : handed_over ? HANDED_OVER : 0;
}

/* A borrow of its own, by which it hears of each reset of the drive. */
static sci_smartio_device_t witness(void)
{
	sci_smartio_device_t device;
	sci_error_t error;
	unsigned fdid;
	sci_desc_t sd;

	smartio_find_device("nvme0", &fdid, &error);
	CHECK_OK(error);
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	CHECK_OK(error);
	return device;
}

static volatile sig_atomic_t ending;

static void on_end(int sig)
{
	(void)sig;
	ending = 1;
}

/* Each block says whose it is, and of which round. */
static void stamp(uint8_t *data, unsigned me, uint64_t round)
{
	for (size_t i = 0; i < BYTES; i += 16) {
		memcpy(data + i, &round, 8);
		memset(data + i + 8, (int)me, 8);
	}
}

static void await(struct smartio_nvme_queue *q, unsigned n)
{
	struct smartio_nvme_completion c[DEPTH];

	for (unsigned done = 0; done < n;) {
		int rc = smartio_nvme_poll(q, c, DEPTH);

		OK(rc);
		for (int i = 0; i < rc; i++)
			CHECK(c[i].status == 0);
		done += (unsigned)rc;
	}
}

/* Writes and reads its own blocks over and over; in between it makes and deletes a second pair. */
static int worker(void *arg)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = DEPTH};
	const unsigned me = *(unsigned *)arg;
	struct smartio_nvme_queue *q, *more;
	struct smartio_nvme_buffer *b;
	uint8_t *data, want[BYTES];
	sci_smartio_device_t device;
	struct smartio_nvme *n;
	uint32_t generation;

	signal(SIGTERM, on_end);
	begin();
	device = witness();
	generation = smartio_device_generation(device);
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, &o, &q));
	OK(smartio_nvme_buffer_alloc(n, DEPTH * BYTES, &b));
	data = smartio_nvme_buffer_data(b);
	for (uint64_t round = 0; !ending; round++) {
		for (unsigned i = 0; i < DEPTH; i++) {
			stamp(data + i * BYTES, me, round + i);
			OK(smartio_nvme_submit(q, SMARTIO_NVME_WRITE, me * 1024 + i * 8, 8, b,
					       i * BYTES, NULL));
		}
		await(q, DEPTH);
		memset(data, 0, DEPTH * BYTES);
		for (unsigned i = 0; i < DEPTH; i++)
			OK(smartio_nvme_submit(q, SMARTIO_NVME_READ, me * 1024 + i * 8, 8, b,
					       i * BYTES, NULL));
		await(q, DEPTH);
		for (unsigned i = 0; i < DEPTH; i++) {
			stamp(want, me, round + i);
			CHECK(memcmp(data + i * BYTES, want, BYTES) == 0);
		}
		if (round == 0)
			step_done(RUNNING);
		if (me == 0) {
			OK(smartio_nvme_queue_open(n, &o, &more));
			OK(smartio_nvme_read(more, want, 0, BYTES));
			smartio_nvme_queue_close(more);
		}
	}
	CHECK(smartio_device_generation(device) == generation);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static int newcomer(void *arg)
{
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	uint8_t data[512];

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(smartio_nvme_queue_open(n, NULL, &q));
	OK(smartio_nvme_read(q, data, 0, sizeof(data)));
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* All pairs that others have not: none was lost with a manager. */
static int all_pairs(void *arg)
{
	struct smartio_nvme_queue *q[6];
	struct smartio_nvme_pair pair[6];
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	CHECK(smartio_nvme_get_pairs(n, pair, 6) == 0);
	for (unsigned i = 0; i < 6; i++)
		OK(smartio_nvme_queue_open(n, NULL, &q[i]));
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

static pid_t stand_by(struct cluster *c, unsigned i)
{
	static const unsigned node[] = {LENDER, MANAGER, CLIENT1};
	pid_t pid = cluster_fork(c, node[i % 3], manager, NULL);

	step_await(STANDING);
	return pid;
}

static void kill_it(pid_t serves, unsigned i)
{
	kill(serves, i % 2 ? SIGSTOP : SIGKILL); /* a stopped one has its registers */
	if (i % 2) {
		usleep(20000);
		kill(serves, SIGKILL);
	}
	assert_int_equal(cluster_wait(serves), 128 + SIGKILL);
}

static void end_it(pid_t serves, unsigned i)
{
	(void)i;
	kill(serves, SIGTERM);
	assert_int_equal(cluster_wait(serves), HANDED_OVER);
}

/* @end: of the manager that serves, while another stands by. */
static void under_io(void **state, void (*end)(pid_t serves, unsigned i))
{
	static unsigned who[CLIENTS] = {0, 1, 2};
	static const unsigned node[CLIENTS] = {CLIENT1, CLIENT2, LENDER};
	pid_t serves = cluster_fork(*state, MANAGER, manager, NULL), next, client[CLIENTS];

	step_await(SERVING);
	for (unsigned i = 0; i < CLIENTS; i++) {
		client[i] = cluster_fork(*state, node[i], worker, &who[i]);
		step_await(RUNNING);
	}
	for (unsigned i = 0; i < KILLS; i++) {
		next = stand_by(*state, i);
		end(serves, i);
		step_await(TAKEN_OVER);
		serves = next;
		assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT2, newcomer, NULL)), 0);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		kill(client[i], SIGTERM);
		assert_int_equal(cluster_wait(client[i]), 0);
	}
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT1, all_pairs, NULL)), 0);
	kill(serves, SIGTERM);
	assert_int_equal(cluster_wait(serves), 0);
}

static void clients_notice_nothing(void **state)
{
	under_io(state, kill_it);
}

static void one_that_ends_hands_the_drive_over(void **state)
{
	under_io(state, end_it);
}

/* A client dies with its manager, and no standby is there: one that is started later goes on. */
static void one_that_comes_later_goes_on(void **state)
{
	static unsigned who[2] = {1, 2};
	pid_t serves = cluster_fork(*state, MANAGER, manager, NULL), client, victim;

	step_await(SERVING);
	client = cluster_fork(*state, CLIENT1, worker, &who[0]);
	step_await(RUNNING);
	victim = cluster_fork(*state, CLIENT2, worker, &who[1]);
	step_await(RUNNING);
	kill(serves, SIGKILL);
	assert_int_equal(cluster_wait(serves), 128 + SIGKILL);
	kill(victim, SIGKILL);
	assert_int_equal(cluster_wait(victim), 128 + SIGKILL);
	serves = cluster_fork(*state, LENDER, manager, NULL);
	step_await(SERVING);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT2, newcomer, NULL)), 0);
	kill(client, SIGTERM);
	assert_int_equal(cluster_wait(client), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT1, all_pairs, NULL)), 0);
	kill(serves, SIGTERM);
	assert_int_equal(cluster_wait(serves), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(clients_notice_nothing),
		TEST(one_that_ends_hands_the_drive_over),
		TEST(one_that_comes_later_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
