/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Submission queues in the drive's own memory, on a live cluster: data is right, a page is mapped
 * by one client alone, also after deaths and takeovers, and none is lost.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client.h"
#include "program.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/nvmeraw.h"

enum { LENDER = 4, MANAGER = 8, CLIENT1 = 12, CLIENT2 = 16 };
enum { SERVING, STANDING, TAKEN_OVER, RUNNING, SECOND, LET_GO, LEAVE };
#define PAGES 4u /* of the drive's memory */
#define PAGE 4096u
#define DEPTH 8u
#define BYTES 65536u /* of a command: it has a list */

static const char topology[] = "cluster: cmb\n"
			       "switches: [sw0]\n"
			       "hosts:\n"
			       "  lender:\n"
			       "    ram: 64M\n"
			       "    iommu: on\n"
			       "    devices:\n"
			       "      nvme0: {type: nvme, size: 16M, queue_pairs: 8, cmb: 16K}\n"
			       "      nvme1: {type: nvme, size: 16M}\n"
			       "  manager: {ram: 64M, iommu: off}\n"
			       "  client1: {ram: 64M, iommu: on}\n"
			       "  client2: {ram: 64M, iommu: off}\n";

/* ---- programs ---- */
static struct smartio_nvme_manager *serving;
static volatile sig_atomic_t ending;

static void on_term(int sig)
{
	(void)sig;
	ending = 1;
	if (serving)
		smartio_nvme_manager_stop(serving);
}

static int manage(const char *device, uint32_t flags)
{
	struct smartio_nvme_manager_options o = {.size = sizeof(o), .flags = flags};
	struct smartio_nvme_manager_status s;

	begin();
	OK(smartio_nvme_manager_open(device, &o, &serving));
	signal(SIGTERM, on_term);
	smartio_nvme_manager_get_status(serving, &s);
	step_done(s.serves ? SERVING : STANDING);
	if (!s.serves) {
		OK(smartio_nvme_manager_serve(serving, UINT32_MAX));
		smartio_nvme_manager_get_status(serving, &s);
		CHECK(ending || (s.takeovers == 1 && s.kept == 1));
		step_done(TAKEN_OVER);
	}
	while (!ending && smartio_nvme_manager_serve(serving, UINT32_MAX) > 0)
		;
	if (smartio_nvme_manager_hand_over(serving))
		smartio_nvme_manager_close(serving);
	SCITerminate();
	return 0;
}

static int manager(void *arg)
{
	(void)arg;
	return manage("nvme0", SMARTIO_NVME_STANDBY);
}

static int plain_manager(void *arg)
{
	return manage(arg, 0);
}

static int open_cmb(struct smartio_nvme *n, uint32_t depth, struct smartio_nvme_queue **ret)
{
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = depth, .sq_placement = SMARTIO_NVME_PLACE_CMB};

	return smartio_nvme_queue_open(n, &o, ret);
}

/* What the kernel has mapped at @at: the line of that, with what it is; false: nothing. */
static bool mapping_at(const volatile void *at, unsigned long *first, unsigned long *end,
		       char line[512])
{
	FILE *f = fopen("/proc/self/maps", "r");
	bool found = false;

	CHECK(f != NULL);
	while (!found && fgets(line, 512, f))
		found = sscanf(line, "%lx-%lx", first, end) == 2 && (uintptr_t)at >= *first &&
			(uintptr_t)at < *end;
	fclose(f);
	return found;
}

/* Is it memory of the drive's, and not what stands where a program has none of that? */
static bool is_drives(const volatile void *at)
{
	unsigned long first, end;
	char line[512];

	return mapping_at(at, &first, &end, line) &&
	       (strstr(line, "smartio-part") || strstr(line, "smartio-bar"));
}

/* The submission queue is mapped from a file that has its pages, and no others. */
static void check_alone(const struct smartio_nvme_queue *q)
{
	unsigned long first, end;
	char line[512], path[64];
	struct stat st;

	CHECK(mapping_at(q->sq, &first, &end, line));
	CHECK(strstr(line, "smartio-part") && end - first == PAGE);
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", first, end);
	/* Where the kernel lets us look, as it does root. */
	CHECK(stat(path, &st) || st.st_size == PAGE);
}

static void write_and_read(struct smartio_nvme_queue *q, uint8_t *out, uint8_t *in, unsigned what,
			   uint64_t at)
{
	for (size_t i = 0; i < BYTES; i++)
		out[i] = (uint8_t)(what + i / 512 * 7 + i);
	OK(smartio_nvme_write(q, out, at, BYTES));
	memset(in, 0, BYTES);
	OK(smartio_nvme_read(q, in, at, BYTES));
	CHECK(memcmp(in, out, BYTES) == 0);
}

/* Until SIGTERM. */
static int worker(void *arg)
{
	const unsigned me = *(const unsigned *)arg;
	static uint8_t out[BYTES], in[BYTES];
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;

	signal(SIGTERM, on_term);
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(open_cmb(n, DEPTH, &q));
	CHECK(q->cmb_map != NULL);
	check_alone(q);
	for (unsigned round = 0; !ending; round++) {
		write_and_read(q, out, in, me * 31 + round, me * (uint64_t)BYTES);
		if (round == 2)
			step_done(RUNNING);
	}
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* All pages that others have not; then one more queue, which has no room and says why. */
static int greedy(void *arg)
{
	const unsigned left = *(const unsigned *)arg;
	static uint8_t out[BYTES], in[BYTES];
	struct smartio_nvme_queue *q[PAGES], *more;
	struct smartio_nvme *n;

	begin();
	OK(smartio_nvme_open("nvme0", &n));
	for (unsigned i = 0; i < left; i++) {
		OK(open_cmb(n, DEPTH, &q[i]));
		write_and_read(q[i], out, in, 100 + i, (8 + i) * (uint64_t)BYTES);
	}
	CHECK(open_cmb(n, DEPTH, &more) == -ENOSPC);
	CHECK(strstr(smartio_nvme_error(), "no room for a submission queue of 1 page: of its 4 "
					   "pages queues have 4"));
	/* Others are not in their way. */
	OK(smartio_nvme_queue_open(n, NULL, &more));
	smartio_nvme_queue_close(more);
	for (unsigned i = 0; i < left; i++)
		smartio_nvme_queue_close(q[i]);
	/* Given back, they are had again: another client's may still be going. */
	for (unsigned i = 0; i < left; i++)
		OK(open_cmb(n, DEPTH, &q[i]));
	/* A queue of more pages than there are in a row. */
	CHECK(open_cmb(n, 255, &more) == -ENOSPC);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* How many pages of the drive's memory it gets. */
static unsigned pages_got(sci_remote_segment_t bar)
{
	unsigned n = 0;

	for (unsigned page = 0; page < PAGES; page++) {
		const volatile uint8_t *at;
		sci_error_t error;
		sci_map_t map;

		at = SCIMapRemoteSegment(bar, &map, page * PAGE, PAGE, NULL, 0, &error);
		if (error != SCI_ERR_OK)
			continue;
		n += is_drives(at);
		SCIUnmapSegment(map, 0, &error);
	}
	return n;
}

/* Maps what is another's, and what is nobody's. */
static int trespasser(void *arg)
{
	struct smartio_nvme_queue *q;
	sci_remote_segment_t bar;
	struct smartio_nvme *n;
	sci_error_t error;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	SCIConnectDeviceSegment(n->d.handle, &bar, SIO_NVME_CMB_BAR, SCI_MEMTYPE_BAR, NULL, NULL, 0,
				&error);
	CHECK_OK(error);
	CHECK(pages_got(bar) == 0);
	OK(open_cmb(n, DEPTH, &q));
	CHECK(pages_got(bar) == 1);
	/* Nor may it give itself any, or another one. */
	smartio_device_assign(n->d.handle, smartio_borrower_id(n->d.handle), SIO_NVME_CMB_BAR, 0,
			      PAGE, &error);
	CHECK(error == SCI_ERR_ACCESS);
	SCIDisconnectSegment(bar, 0, &error);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/* Closes its queue, but keeps its page mapped: nobody else gets that one. */
static int keeper(void *arg)
{
	struct smartio_nvme_queue *q, *more;
	sci_remote_segment_t bar;
	struct smartio_nvme *n;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(open_cmb(n, DEPTH, &q));
	SCIConnectDeviceSegment(n->d.handle, &bar, SIO_NVME_CMB_BAR, SCI_MEMTYPE_BAR, NULL, NULL, 0,
				&error);
	CHECK_OK(error);
	/* The first page is free, and first come first served. */
	CHECK(is_drives(SCIMapRemoteSegment(bar, &map, 0, PAGE, NULL, 0, &error)));
	smartio_nvme_queue_close(q);
	step_done(RUNNING);
	step_await(SECOND);
	/* Its own again. */
	OK(open_cmb(n, DEPTH, &more));
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static int beside_keeper(void *arg)
{
	struct smartio_nvme_queue *q[PAGES];
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	for (unsigned i = 0; i + 1 < PAGES; i++)
		OK(open_cmb(n, DEPTH, &q[i]));
	CHECK(open_cmb(n, DEPTH, &q[PAGES - 1]) == -ENOSPC);
	CHECK(strstr(smartio_nvme_error(), "queues have 3, and 1 are still mapped"));
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/*
 * Keeps two pages mapped that it had a queue in, and has a queue in one again: the other is nobody
 * else's for that. What it leaves there it releases when another client's queue runs.
 */
static int hoarder(void *arg)
{
	struct smartio_nvme_queue *q;
	volatile uint8_t *at;
	sci_remote_segment_t bar;
	struct smartio_nvme *n;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(open_cmb(n, 100, &q));
	SCIConnectDeviceSegment(n->d.handle, &bar, SIO_NVME_CMB_BAR, SCI_MEMTYPE_BAR, NULL, NULL, 0,
				&error);
	CHECK_OK(error);
	at = SCIMapRemoteSegment(bar, &map, 0, 2 * PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(is_drives(at) && is_drives(at + PAGE));
	smartio_nvme_queue_close(q);
	OK(open_cmb(n, DEPTH, &q));
	step_done(RUNNING);
	step_await(SECOND);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(bar, 0, &error);
	CHECK_OK(error);
	step_done(LET_GO);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static int beside_hoarder(void *arg)
{
	static uint8_t out[BYTES], in[BYTES];
	struct smartio_nvme_queue *q, *more;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(open_cmb(n, DEPTH, &q));
	write_and_read(q, out, in, 1, 0);
	/* Two are the hoarder's, one is its queue's, one ours. */
	CHECK(open_cmb(n, DEPTH, &more) == -ENOSPC);
	step_done(SECOND);
	step_await(LET_GO);
	for (unsigned i = 0; i < 2 * DEPTH; i++)
		write_and_read(q, out, in, 2 + i, 0);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

/*
 * Its first queue is of one manager, its second of the next: they lie in pages of their own. What
 * it has closed is others', though it stays.
 */
static int stayer(void *arg)
{
	static uint8_t out[BYTES], in[BYTES], before[PAGE];
	struct smartio_nvme_raw raw = {.size = sizeof(raw)};
	struct smartio_nvme_queue *q, *second;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	OK(open_cmb(n, DEPTH, &q));
	CHECK(smartio_nvme_queue_hand_over(q, &raw) == -EINVAL);
	CHECK(strstr(smartio_nvme_error(), "in the drive's own memory"));
	write_and_read(q, out, in, 1, 0);
	step_done(RUNNING);
	step_await(SECOND);
	OK(open_cmb(n, DEPTH, &second));
	sio_copy_from(before, q->sq, PAGE);
	write_and_read(second, out, in, 2, BYTES);
	sio_copy_from(out, q->sq, PAGE);
	CHECK(memcmp(out, before, PAGE) == 0);
	write_and_read(q, out, in, 3, 0);
	smartio_nvme_queue_close(q);
	smartio_nvme_queue_close(second);
	step_done(LET_GO);
	step_await(LEAVE);
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static int without(void *arg)
{
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;

	begin();
	OK(smartio_nvme_open(arg, &n));
	CHECK(open_cmb(n, DEPTH, &q) == -ENOTSUP);
	CHECK(strstr(smartio_nvme_error(), "nvme1 has no controller memory buffer"));
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

static unsigned number[] = {0, 1, 2, 3, 4};

static void ends_well(void **state, unsigned node, int (*program)(void *), void *arg)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, node, program, arg)), 0);
}

static void ends(pid_t pid)
{
	kill(pid, SIGTERM);
	assert_int_equal(cluster_wait(pid), 0);
}

static void dies(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
}

static pid_t runs(void **state, unsigned node, unsigned who)
{
	pid_t pid = cluster_fork(*state, node, worker, &number[who]);

	step_await(RUNNING);
	return pid;
}

static pid_t serves(void **state, unsigned node)
{
	pid_t pid = cluster_fork(*state, node, manager, NULL);

	step_await(SERVING);
	return pid;
}

static void each_page_is_one_clients(void **state)
{
	pid_t m = serves(state, MANAGER), one, two, here;

	one = runs(state, CLIENT1, 0);
	two = runs(state, CLIENT2, 1);
	ends_well(state, CLIENT2, trespasser, NULL);
	ends_well(state, LENDER, trespasser, NULL);
	ends_well(state, CLIENT1, greedy, &number[2]);
	here = runs(state, LENDER, 2);
	ends_well(state, LENDER, greedy, &number[1]);
	ends(one);
	ends(two);
	ends(here);
	ends_well(state, CLIENT2, greedy, &number[4]);
	ends(m);
}

/* Their pages come back when their queues are deleted. */
static void the_dead_keep_none(void **state)
{
	static const unsigned node[] = {CLIENT1, CLIENT2, LENDER};
	pid_t m = serves(state, MANAGER), lives = runs(state, CLIENT2, 0);

	for (unsigned i = 0; i < 6; i++) {
		dies(runs(state, node[i % 3], 1));
		ends_well(state, node[(i + 1) % 3], greedy, &number[3]);
	}
	ends(lives);
	ends(m);
}

/* Whoever follows knows from the record which pages queues lie in. */
static void takeovers_keep_the_record(void **state)
{
	pid_t m = serves(state, MANAGER), next, one = runs(state, CLIENT1, 0),
	      two = runs(state, LENDER, 1);

	for (unsigned i = 0; i < 4; i++) {
		next = cluster_fork(*state, i % 2 ? MANAGER : CLIENT2, manager, NULL);
		step_await(STANDING);
		if (i < 2)
			dies(m);
		else
			ends(m);
		step_await(TAKEN_OVER);
		m = next;
		ends_well(state, CLIENT2, greedy, &number[2]);
	}
	dies(two);
	ends_well(state, CLIENT2, greedy, &number[3]);
	ends(one);
	ends(m);
}

static void nor_do_two_queues_of_a_client_meet(void **state)
{
	pid_t m = serves(state, MANAGER), next, s = cluster_fork(*state, CLIENT1, stayer, NULL);

	step_await(RUNNING);
	next = cluster_fork(*state, CLIENT2, manager, NULL);
	step_await(STANDING);
	dies(m);
	step_await(TAKEN_OVER);
	step_done(SECOND);
	step_await(LET_GO);
	ends_well(state, CLIENT2, greedy, &number[4]);
	step_done(LEAVE);
	assert_int_equal(cluster_wait(s), 0);
	ends(next);
}

static void a_page_that_is_mapped_is_nobody_elses(void **state)
{
	pid_t m = serves(state, MANAGER), k = cluster_fork(*state, CLIENT1, keeper, NULL);

	step_await(RUNNING);
	ends_well(state, CLIENT2, beside_keeper, NULL);
	step_done(SECOND);
	assert_int_equal(cluster_wait(k), 0);
	ends_well(state, CLIENT2, greedy, &number[4]);
	ends(m);
}

static void nor_is_one_beside_it(void **state)
{
	pid_t m = serves(state, MANAGER), h = cluster_fork(*state, CLIENT1, hoarder, NULL);

	step_await(RUNNING);
	ends_well(state, CLIENT2, beside_hoarder, NULL);
	assert_int_equal(cluster_wait(h), 0);
	ends_well(state, CLIENT2, greedy, &number[4]);
	ends(m);
}

static void a_drive_without_says_so(void **state)
{
	pid_t m = cluster_fork(*state, MANAGER, plain_manager, (void *)(uintptr_t) "nvme1");

	step_await(SERVING);
	ends_well(state, CLIENT1, without, (void *)(uintptr_t) "nvme1");
	ends(m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_page_is_one_clients),
		TEST(the_dead_keep_none),
		TEST(takeovers_keep_the_record),
		TEST(nor_do_two_queues_of_a_client_meet),
		TEST(a_page_that_is_mapped_is_nobody_elses),
		TEST(nor_is_one_beside_it),
		TEST(a_drive_without_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
