/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Submission queues in the memory of a device beside the drive, on a live cluster: data is right;
 * whoever dies, and whenever, the drive finds its queue until that is deleted, and only then is the
 * other device lent again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "client.h"
#include "serving.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/memdev.h"
#include "smartio/nvmeraw.h"

enum { LENDER = 4, MANAGER = 8, CLIENT1 = 12, CLIENT2 = 16 };
enum { RUNNING = SERVING + 1, HELD };
#define PAIRS 4u
#define DEPTH 8u
#define BYTES 65536u /* of a command: it has a list */
#define DEATHS 24u

#define TOPOLOGY(iommu)                                                                            \
	"cluster: beside\n"                                                                        \
	"switches: [sw0]\n"                                                                        \
	"hosts:\n"                                                                                 \
	"  lender:\n"                                                                              \
	"    ram: 64M\n"                                                                           \
	"    iommu: " iommu "\n"                                                                   \
	"    devices:\n"                                                                           \
	"      nvme0: {type: nvme, size: 16M, queue_pairs: 4}\n"                                   \
	"      mem0: {type: memory, size: 1M}\n"                                                   \
	"      acc0: {type: accelerator}\n"                                                        \
	"      nvme1: {type: nvme, size: 16M, cmb: 16K}\n"                                         \
	"  manager: {ram: 64M}\n"                                                                  \
	"  client1: {ram: 64M, iommu: on, adapters: [{to: sw0}, {to: sw0}]}\n"                     \
	"  client2: {ram: 64M}\n"

/* ---- programs ---- */
static int open_in(struct smartio_nvme *n, const char *device, struct smartio_nvme_queue **ret)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = DEPTH, .sq_device = device};

	return smartio_nvme_queue_open(n, &o, ret);
}

static void write_and_read(struct smartio_nvme_queue *q, unsigned what)
{
	static uint8_t out[BYTES], in[BYTES];

	for (size_t i = 0; i < BYTES; i++)
		out[i] = (uint8_t)(what + i / 512 * 7 + i);
	OK(smartio_nvme_write(q, out, 0, BYTES));
	memset(in, 0, BYTES);
	OK(smartio_nvme_read(q, in, 0, BYTES));
	CHECK(memcmp(in, out, BYTES) == 0);
}

/* In one after the other; each is another client's as soon as its queue is closed. */
static int client(void *arg)
{
	static const char *const device[] = {"mem0", "acc0"};
	struct smartio_nvme_raw raw = {.size = sizeof(raw)};
	struct smartio_nvme_queue *q[2], *more;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	CHECK(open_in(n, "nvme1", &more) == -EOPNOTSUPP);
	CHECK(strstr(smartio_nvme_error(), "nvme1 is a drive, whose memory is its owner's"));
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 2; i++)
			OK(open_in(n, device[i], &q[i]));
		CHECK(open_in(n, "mem0", &more) == -EBUSY);
		CHECK(smartio_nvme_queue_hand_over(q[0], &raw) == -EINVAL);
		for (unsigned i = 0; i < 20; i++)
			write_and_read(q[i % 2], round * 20 + i);
		for (unsigned i = 0; i < 2; i++)
			smartio_nvme_queue_close(q[i]);
	}
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/*
 * Leaves commands for the drive as long as it lives: at its death some are rung for, and not
 * fetched, and others are half written.
 */
static int victim(void *arg)
{
	struct smartio_nvme_completion c[DEPTH];
	struct smartio_nvme_buffer *b;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	int rc;

	(void)arg;
	begin();
	for (;;) {
		OK(smartio_nvme_open("nvme0", &n));
		/* Who was killed before may have it yet. */
		while ((rc = open_in(n, "mem0", &q)) == -EBUSY)
			usleep(500);
		OK(rc);
		OK(smartio_nvme_buffer_alloc(n, BYTES, &b));
		for (unsigned i = 0; i < 500; i++) {
			for (unsigned k = 0; k < DEPTH; k++)
				smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 4096 / 512, b, 0,
						    NULL);
			smartio_nvme_ring(q);
			OK(smartio_nvme_poll(q, c, DEPTH));
		}
		smartio_nvme_close(n);
	}
	return 1;
}

/* Has a queue in mem0, with commands that are not rung for, until it is killed. */
static int holder(void *arg)
{
	struct smartio_nvme_buffer *b;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(open_in(n, "mem0", &q));
	CHECK(smartio_nvme_queue_id(q) == 1);
	write_and_read(q, 1);
	OK(smartio_nvme_buffer_alloc(n, BYTES, &b));
	for (unsigned k = 0; k < DEPTH - 1; k++)
		OK(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	step_done(RUNNING);
	for (;;)
		pause();
	return 1;
}

/*
 * The holder is dead, and its queue is not deleted yet: nobody is lent the device that it lies in,
 * and whoever rings for the queue, the drive finds it.
 */
static int visitor(void *arg)
{
	sci_smartio_device_t device;
	struct smartio_nvme *n;
	sci_error_t error;
	unsigned fdid;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	smartio_find_device("mem0", &fdid, &error);
	CHECK_OK(error);
	do { /* while the dead's borrow is ending it is somebody's */
		SCIBorrowDevice(n->d.sd, &device, fdid, 0, &error);
		CHECK_IS(error, SCI_ERR_NOT_AVAILABLE);
	} while (!strstr(smartio_last_error(), "queues of another device lie in its memory"));
	/* Its doorbell is where all are. 16 commands of before, 7 that wait. */
	for (uint32_t tail = 0; tail <= DEPTH; tail++)
		sio_write32((volatile uint32_t *)(n->doorbells->at + 2 * n->meta.doorbell_stride),
			    tail);
	SCIBorrowDevice(n->d.sd, &device, fdid, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_AVAILABLE);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* All pairs can be had, and so can the device. */
static int heir(void *arg)
{
	struct smartio_nvme_queue *q[PAIRS];
	struct smartio_nvme *n;
	int rc;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	while ((rc = open_in(n, "mem0", &q[0])) == -EBUSY)
		usleep(500);
	OK(rc);
	for (unsigned i = 1; i < PAIRS; i++)
		OK(smartio_nvme_queue_open(n, NULL, &q[i]));
	for (unsigned i = 0; i < PAIRS; i++)
		write_and_read(q[i], i);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* ---- without a manager: the lender's word alone ---- */

static struct {
	uint64_t borrower;
	sci_ioaddr_t ioaddr;
} * named; /* as a client names its queue's memory to a manager */

static sci_remote_segment_t bar_of(sci_smartio_device_t device, unsigned bar)
{
	sci_remote_segment_t segment;
	sci_error_t error;
	sci_map_t map;

	SCIConnectDeviceSegment(device, &segment, bar, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(segment, &map, 0, 4096, NULL, 0, &error);
	CHECK_OK(error);
	return segment;
}

/* Of nvme0 it has nothing that goes over a link. */
static int half(void *arg)
{
	sci_smartio_device_t nvme;
	sci_remote_segment_t memory;
	sci_error_t error;
	sci_desc_t sd;

	(void)arg;
	begin();
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	nvme = borrow(sd, "nvme0", 0);
	memory = bar_of(borrow(sd, "mem0", 0), SIO_MEMDEV_BAR_RAM);
	SCIMapRemoteSegmentForDevice(memory, nvme, &named->ioaddr, 0, 4096, 0, &error);
	CHECK_OK(error);
	named->borrower = smartio_borrower_id(nvme);
	step_done(RUNNING);
	for (;;)
		pause();
	return 1;
}

/*
 * Memory of another drive that its manager gives out: when its borrow ends it is somebody else's
 * who has that drive already, and who would write the commands that this one fetches.
 */
static int owner_of_two(void *arg)
{
	sci_smartio_device_t nvme, other;
	sci_remote_segment_t memory;
	sci_ioaddr_t ioaddr;
	sci_error_t error;
	uint64_t hold;
	sci_desc_t sd;

	(void)arg;
	begin();
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	nvme = borrow(sd, "nvme0", 0);
	other = borrow(sd, "nvme1", 0);
	(void)bar_of(nvme, 0);
	(void)bar_of(other, 0);
	memory = bar_of(other, SIO_NVME_CMB_BAR);
	SCIMapRemoteSegmentForDevice(memory, nvme, &ioaddr, 0, 4096, 0, &error);
	CHECK_OK(error);
	smartio_device_hold(nvme, smartio_borrower_id(nvme), ioaddr, 4096, &hold, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	CHECK(strstr(smartio_last_error(), "only in memory that all its borrowers have"));
	SCITerminate();
	return 0;
}

/* Has the registers of nvme0, and the drive no queue. */
static int keeper(void *arg)
{
	const bool reset = *(const bool *)arg;
	sci_smartio_device_t nvme, device;
	uint64_t hold[2], more;
	sci_error_t error;
	unsigned fdid;
	sci_desc_t sd;

	begin();
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	nvme = borrow(sd, "nvme0", 0);
	(void)bar_of(nvme, 0);
	step_await(RUNNING);
	for (unsigned i = 0; i < 2; i++) {
		smartio_device_hold(nvme, named->borrower, named->ioaddr, 4096, &hold[i], &error);
		CHECK_OK(error);
	}
	step_done(HELD);
	smartio_find_device("mem0", &fdid, &error);
	CHECK_OK(error);
	do {
		SCIBorrowDevice(sd, &device, fdid, SCI_FLAG_EXCLUSIVE, &error);
		CHECK_IS(error, SCI_ERR_NOT_AVAILABLE);
	} while (!strstr(smartio_last_error(), "queues of another device lie in its memory"));
	/* Whose borrow has ended has no more than was held. */
	smartio_device_hold(nvme, named->borrower, named->ioaddr, 4096, &more, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	if (reset) {
		smartio_device_reset(nvme, &error);
		CHECK_OK(error);
	} else {
		smartio_device_unhold(nvme, hold[0], &error);
		CHECK_OK(error);
		SCIBorrowDevice(sd, &device, fdid, SCI_FLAG_EXCLUSIVE, &error);
		CHECK_IS(error, SCI_ERR_NOT_AVAILABLE);
		smartio_device_unhold(nvme, hold[1], &error);
		CHECK_OK(error);
	}
	SCIBorrowDevice(sd, &device, fdid, SCI_FLAG_EXCLUSIVE, &error);
	CHECK_OK(error);
	smartio_device_hold(nvme, named->borrower, named->ioaddr, 4096, &more, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT); /* it is mem0's next borrower's */
	SCITerminate();
	return 0;
}

/* ---- tests ---- */
struct beside {
	struct cluster *c;
	pid_t manager;
};

static int up_alone(void **state)
{
	static struct beside t;

	named = mmap(NULL, sizeof(*named), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (named == MAP_FAILED)
		return -1;
	steps_reset();
	t.c = cluster_up(TOPOLOGY("on"));
	*state = &t;
	return t.c ? 0 : -1;
}

static int down_alone(void **state)
{
	struct beside *t = *state;
	int rc = cluster_audit(t->c);

	rc |= cluster_down(t->c);
	rc |= munmap(named, sizeof(*named));
	return rc ? -1 : 0;
}

static int up_with(void **state, const char *topology)
{
	static struct beside t;

	steps_reset();
	t.c = cluster_up(topology);
	if (!t.c)
		return -1;
	t.manager = cluster_fork(t.c, MANAGER, manager, NULL);
	step_await(SERVING);
	*state = &t;
	return 0;
}

static int up(void **state)
{
	return up_with(state, TOPOLOGY("on"));
}

static int up_without(void **state)
{
	return up_with(state, TOPOLOGY("off"));
}

/* Whatever happened, nothing is left of it, and the drive never stopped. */
static int down(void **state)
{
	struct beside *t = *state;
	int rc = cluster_wait(cluster_fork(t->c, CLIENT1, heir, NULL));

	if (cluster_count(t->c, "lender: nvme0 fatal errors") != 0)
		rc |= fprintf(stderr, "the drive went to fatal status\n");
	if (kill(t->manager, SIGTERM) == 0)
		rc |= cluster_wait(t->manager);
	rc |= cluster_audit(t->c);
	rc |= cluster_down(t->c);
	return rc ? -1 : 0;
}

static void commands_are_fetched_from_it(void **state)
{
	static const unsigned node[] = {CLIENT1, LENDER, MANAGER};
	struct beside *t = *state;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(cluster_wait(cluster_fork(t->c, node[i], client, NULL)), 0);
}

static void a_death_at_any_time_stops_nobody(void **state)
{
	static const unsigned node[] = {CLIENT1, LENDER, CLIENT2};
	struct beside *t = *state;

	for (unsigned i = 0; i < DEATHS; i++) {
		pid_t pid = cluster_fork(t->c, node[i % 3], victim, NULL);

		usleep((useconds_t)(smartio_random() % 60000));
		kill(pid, SIGKILL);
		assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
	}
}

/* A client of host @node, whose queue nobody deletes: the manager is to be woken. */
static void die_while_the_manager_sleeps(const struct beside *t, unsigned node)
{
	pid_t pid = cluster_fork(t->c, node, holder, NULL);

	step_await(RUNNING);
	kill(t->manager, SIGSTOP);
	kill(pid, SIGKILL);
	assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
	assert_int_equal(cluster_wait(cluster_fork(t->c, CLIENT2, visitor, NULL)), 0);
}

static void it_is_kept_until_the_queue_is_deleted(void **state)
{
	static const unsigned node[] = {CLIENT1, LENDER};
	struct beside *t = *state;

	for (unsigned i = 0; i < 2; i++) {
		die_while_the_manager_sleeps(t, node[i]);
		kill(t->manager, SIGCONT);
		assert_int_equal(cluster_wait(cluster_fork(t->c, CLIENT2, heir, NULL)), 0);
	}
}

/* A host that is gone says nothing, and its programs may still write: the same. */
static void it_is_kept_when_the_client_s_host_crashes(void **state)
{
	struct beside *t = *state;
	pid_t pid = cluster_fork(t->c, CLIENT1, holder, NULL);

	step_await(RUNNING);
	kill(t->manager, SIGSTOP);
	kill(pid, SIGSTOP);
	cluster_crash(t->c, CLIENT1);
	kill(pid, SIGKILL);
	assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
	assert_int_equal(cluster_wait(cluster_fork(t->c, CLIENT2, visitor, NULL)), 0);
	kill(t->manager, SIGCONT);
	assert_int_equal(cluster_restart(t->c, CLIENT1, CLIENT2), 0);
}

/* No manager is there to delete the queue: the next one's reset of the drive does. */
static void it_is_kept_until_the_drive_is_reset(void **state)
{
	struct beside *t = *state;

	die_while_the_manager_sleeps(t, CLIENT1);
	kill(t->manager, SIGKILL);
	assert_int_equal(cluster_wait(t->manager), 128 + SIGKILL);
	t->manager = cluster_fork(t->c, MANAGER, manager, NULL);
	step_await(SERVING);
}

/* What is pulled out keeps nothing; it is another device's memory that comes back. */
static void it_is_pulled_out_while_it_is_kept(void **state)
{
	struct beside *t = *state;

	die_while_the_manager_sleeps(t, CLIENT1);
	assert_int_equal(cluster_slot(t->c, "mem0", false), 0);
	kill(t->manager, SIGCONT);
	assert_int_equal(cluster_slot(t->c, "mem0", true), 0);
}

static void what_a_manager_gives_out_is_not_kept(void **state)
{
	struct beside *t = *state;

	assert_int_equal(cluster_wait(cluster_fork(t->c, LENDER, owner_of_two, NULL)), 0);
}

/*
 * Its client lives, and still has the drive, when it loses the other device alone: it is lent again
 * with the last hold, not when that client ends.
 */
static void it_is_kept_no_longer_than_it_is_held(void **state)
{
	static bool reset;
	struct beside *t = *state;

	for (unsigned i = 0; i < 2; i++) {
		pid_t client_pid = cluster_fork(t->c, CLIENT1, half, NULL), pid;

		reset = i;
		pid = cluster_fork(t->c, LENDER, keeper, &reset);
		step_await(HELD);
		assert_int_equal(cluster_link(t->c, CLIENT1, 0, false), 0);
		assert_int_equal(cluster_wait(pid), 0);
		assert_int_equal(cluster_link(t->c, CLIENT1, 0, true), 0);
		kill(client_pid, SIGKILL);
		assert_int_equal(cluster_wait(client_pid), 128 + SIGKILL);
		steps_reset();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
#define TEST_WITHOUT(name) cmocka_unit_test_setup_teardown(name, up_without, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(commands_are_fetched_from_it),
		TEST_WITHOUT(commands_are_fetched_from_it),
		TEST(a_death_at_any_time_stops_nobody),
		TEST(it_is_kept_until_the_queue_is_deleted),
		TEST_WITHOUT(it_is_kept_until_the_queue_is_deleted),
		TEST(it_is_kept_when_the_client_s_host_crashes),
		TEST(it_is_kept_until_the_drive_is_reset),
		TEST(it_is_pulled_out_while_it_is_kept),
		cmocka_unit_test_setup_teardown(what_a_manager_gives_out_is_not_kept, up_alone,
						down_alone),
		cmocka_unit_test_setup_teardown(it_is_kept_no_longer_than_it_is_held, up_alone,
						down_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
