/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ways between all hosts, and one goes: manager and clients hear at once that what they had of
 * the drive over it is lost, and go on over the other one. Programs are children of this test; each
 * says when it went on, and the test prints how long nothing was done.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../lib/cluster.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"
#include "serving.h"

enum { LENDER = 4, MANAGER = 8, CLIENT1 = 12, CLIENT2 = 16 };
enum { RUNNING = SERVING + 1, LOST = RUNNING + 2 }; /* the last two: one for each client */
#define DEPTH 16
#define PIECE 8192u
#define MANY 64u /* completions: it goes on */

static const char topology[] =
	"cluster: paths\n"
	"switches: [red, blue]\n"
	"hosts:\n"
	"  lender: {ram: 64M, iommu: on, adapters: [{to: red}, {to: blue}],\n"
	"           devices: {nvme0: {type: nvme, size: 16M, queue_pairs: 6}}}\n"
	"  manager: {ram: 64M, iommu: off, adapters: [{to: red}, {to: blue}]}\n"
	"  client1: {ram: 64M, iommu: on, adapters: [{to: red}, {to: blue}]}\n"
	"  client2: {ram: 64M, iommu: off, adapters: [{to: red}, {to: blue}]}\n";

/* What the programs tell the test. */
static struct shared {
	unsigned round;	     /* counts links that were pulled */
	uint64_t longest[2]; /* a client's longest time without a completion, in this round */
	unsigned lost[2];    /* how often a client lost its queue */
	unsigned ending;
	struct returns returns; /* of the manager */
	unsigned generation;	/* of the drive, as a program that came was told */
} * shared;

struct client {
	unsigned me;
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	uint64_t sent, done, last;
	unsigned round, seen; /* completions in that round */
};

static int try_drive(struct client *c)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = DEPTH};
	int rc = smartio_nvme_open_wait("nvme0", 10000, &c->n);

	c->sent = c->done = 0;
	if (rc)
		return rc;
	rc = smartio_nvme_queue_open(c->n, &o, &c->q);
	if (rc == 0)
		rc = smartio_nvme_buffer_alloc(c->n, DEPTH * PIECE, &c->b);
	if (rc)
		smartio_nvme_close(c->n);
	return rc;
}

/* The drive, by whatever way there is; that may go meanwhile, or the manager's. */
static void connect_drive(struct client *c)
{
	int rc;

	while ((rc = try_drive(c)) != 0)
		if (rc != -ECONNRESET && rc != -ENODEV && rc != -ENETDOWN && rc != -ENOTCONN)
			OK(rc);
}

static int run(struct client *c)
{
	struct smartio_nvme_completion done[DEPTH];
	uint8_t *data = smartio_nvme_buffer_data(c->b);
	int rc;

	while (c->sent - c->done < DEPTH) {
		size_t at = c->sent % DEPTH * PIECE;

		memset(data + at, (int)(c->me + c->sent), PIECE);
		rc = smartio_nvme_submit(c->q, c->sent & 1 ? SMARTIO_NVME_READ : SMARTIO_NVME_WRITE,
					 c->me * 4096 + c->sent / 2 % 100 * 16, 16, c->b, at, NULL);
		if (rc)
			return rc;
		c->sent++;
	}
	rc = smartio_nvme_poll(c->q, done, DEPTH);
	for (int i = 0; i < rc; i++)
		CHECK(done[i].status == 0);
	if (rc > 0)
		c->done += (unsigned)rc;
	return rc;
}

/*
 * Behind a link that was pulled MANY completions mean that it goes on: fewer than those can have
 * been on their way.
 */
static void count(struct client *c, unsigned n)
{
	unsigned round = __atomic_load_n(&shared->round, __ATOMIC_ACQUIRE);
	uint64_t now = smartio_now_ns();

	if (c->last && now - c->last > shared->longest[c->me])
		shared->longest[c->me] = now - c->last;
	c->last = now;
	if (c->round != round) {
		c->round = round;
		c->seen = 0;
	}
	if (c->seen < MANY && c->seen + n >= MANY)
		step_done(RUNNING + c->me);
	c->seen += n;
}

/* I/O until it is told to end; whatever it loses it has again. */
static int client(void *arg)
{
	struct client c = {.me = *(unsigned *)arg};
	int rc;

	begin();
	connect_drive(&c);
	while (!__atomic_load_n(&shared->ending, __ATOMIC_ACQUIRE)) {
		rc = run(&c);
		if (rc > 0)
			count(&c, (unsigned)rc);
		if (rc >= 0)
			continue;
		CHECK(rc == -ECONNRESET || rc == -ENODEV);
		__atomic_add_fetch(&shared->lost[c.me], 1, __ATOMIC_RELEASE);
		step_done(LOST + c.me);
		smartio_nvme_close(c.n);
		connect_drive(&c);
	}
	smartio_nvme_close(c.n);
	SCITerminate();
	return 0;
}

/* Each host and the lender reach each other over both ways again. */
static int reaches(void *arg)
{
	const unsigned node = *(const unsigned *)arg;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	for (unsigned adapter = 0; adapter < 2; adapter++)
		do {
			sci_error_t ignored;

			SCIProbeNode(sd, adapter, node, 0, &error);
			if (error != SCI_ERR_OK)
				smartio_wait_events(NULL, NULL, 1, &ignored);
		} while (error != SCI_ERR_OK);
	api_end(sd);
	return 0;
}

static void join(struct cluster *c)
{
	static unsigned lender = LENDER, other[] = {MANAGER, CLIENT1, CLIENT2};

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(cluster_wait(cluster_fork(c, other[i], reaches, &lender)), 0);
		assert_int_equal(cluster_wait(cluster_fork(c, LENDER, reaches, &other[i])), 0);
	}
}

static unsigned losses(unsigned me)
{
	return __atomic_load_n(&shared->lost[me], __ATOMIC_ACQUIRE);
}

/*
 * One end of a way goes: @many of the clients, the first ones, lose their queues, and everybody
 * goes on; then it is back.
 */
static void pull(struct cluster *c, const char *who, unsigned node, unsigned adapter, unsigned many)
{
	const unsigned before[] = {losses(0), losses(1)};
	const unsigned came_back = __atomic_load_n(&shared->returns.all, __ATOMIC_ACQUIRE);

	shared->longest[0] = shared->longest[1] = 0;
	assert_int_equal(cluster_link(c, node, adapter, false), 0);
	for (unsigned i = 0; i < many; i++)
		while (losses(i) == before[i])
			step_await(LOST + i);
	__atomic_add_fetch(&shared->round, 1, __ATOMIC_RELEASE);
	step_await(RUNNING);
	step_await(RUNNING + 1);
	if (node != CLIENT1) /* before the link is up again: over the other one */
		await_return(came_back + 1);
	printf("# %s loses adapter %u: clients did nothing for %.1f and %.1f ms (measured), and "
	       "lost their queues %u and %u times\n",
	       who, adapter, (double)shared->longest[0] / 1e6, (double)shared->longest[1] / 1e6,
	       losses(0) - before[0], losses(1) - before[1]);
	assert_int_equal(cluster_link(c, node, adapter, true), 0);
	join(c);
}

/* It counts the drive's resets, whoever made them. */
static int look(void *arg)
{
	sci_smartio_device_t device;
	sci_desc_t sd = api_begin();
	sci_error_t error;
	unsigned fdid;

	(void)arg;
	smartio_find_device("nvme0", &fdid, &error);
	CHECK_OK(error);
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	CHECK_OK(error);
	shared->generation = smartio_device_generation(device);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static unsigned generation(struct cluster *c)
{
	assert_int_equal(cluster_wait(cluster_fork(c, LENDER, look, NULL)), 0);
	return shared->generation;
}

static void everybody_goes_on_over_what_is_left(void **state)
{
	static unsigned me[2] = {0, 1};
	unsigned before[2];
	pid_t m, k[2];

	m = cluster_fork(*state, MANAGER, manager, NULL);
	step_await(SERVING);
	k[0] = cluster_fork(*state, CLIENT1, client, &me[0]);
	k[1] = cluster_fork(*state, CLIENT2, client, &me[1]);
	step_await(RUNNING);
	step_await(RUNNING + 1);
	for (unsigned adapter = 0; adapter < 2; adapter++) {
		pull(*state, "client1", CLIENT1, adapter, 1);
		if (adapter == 0) /* it has had nothing to do with that */
			assert_int_equal(losses(1), 0);
		/* It goes on where it was, and its clients notice nothing. */
		before[0] = losses(0);
		before[1] = losses(1);
		pull(*state, "the manager", MANAGER, adapter, 0);
		assert_int_equal(losses(0), before[0]);
		assert_int_equal(losses(1), before[1]);
	}
	assert_int_equal(shared->returns.kept, 2);
	/*
	 * By now all have come to the first one, and all but the manager's second borrow is lost
	 * with it: the drive is not reset.
	 */
	before[0] = generation(*state);
	for (unsigned adapter = 0; adapter < 2; adapter++) {
		await_second_path();
		pull(*state, "the lender", LENDER, adapter, 2);
		assert_int_equal(generation(*state), before[0]);
	}
	assert_int_equal(shared->returns.kept, 4);
	__atomic_store_n(&shared->ending, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(cluster_wait(k[i]), 0);
	kill(m, SIGTERM);
	assert_int_equal(cluster_wait(m), 0);
	assert_int_equal(cluster_audit(*state), 0);
}

/* Nobody but the manager has borrowed the drive, twice: it is reset as soon as none is left. */
static void a_drive_of_which_no_borrow_is_left_is_reset(void **state)
{
	unsigned before;
	pid_t m;

	m = cluster_fork(*state, MANAGER, manager, NULL);
	step_await(SERVING);
	await_second_path();
	before = generation(*state);
	kill(m, SIGKILL);
	assert_int_equal(cluster_wait(m), 128 + SIGKILL);
	assert_int_not_equal(generation(*state), before);

	shared->returns = (struct returns){0};
	m = cluster_fork(*state, MANAGER, manager, NULL);
	step_await(SERVING);
	await_second_path();
	before = generation(*state);
	/* One way: it goes on over the other. Both: it has lost the drive. */
	assert_int_equal(cluster_link(*state, MANAGER, 0, false), 0);
	await_return(1);
	assert_int_equal(shared->returns.kept, 1);
	assert_int_equal(generation(*state), before);
	assert_int_equal(cluster_link(*state, MANAGER, 1, false), 0);
	assert_int_equal(cluster_wait(m), 2);
	assert_int_not_equal(generation(*state), before);
	for (unsigned adapter = 0; adapter < 2; adapter++)
		assert_int_equal(cluster_link(*state, MANAGER, adapter, true), 0);
	join(*state);
	assert_int_equal(cluster_audit(*state), 0);
}

static int up(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return -1;
	returns = &shared->returns;
	steps_reset();
	*state = cluster_up(topology);
	return *state ? 0 : -1;
}

static int down(void **state)
{
	munmap(shared, sizeof(*shared));
	return cluster_down(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everybody_goes_on_over_what_is_left, up, down),
		cmocka_unit_test_setup_teardown(a_drive_of_which_no_borrow_is_left_is_reset, up,
						down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
