/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On a live cluster with little of everything: what runs out is named to the program, by number and
 * in words, with how many there are and whose they are, whoever refuses: the library, this host's
 * port, its daemon, or the lender's.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "program.h"
#include "smartio/ext.h"
#include "smartio/uapi.h"

enum { LENDER = 4, NARROW = 8, CLIENT = 12 };
enum { READY, HELD, GO };
#define PIECE (64u << 10) /* an entry of a window */
#define PAIRS 2
#define KEPT (768u << 10)

static const char topology[] =
	"cluster: little\n"
	"hosts:\n"
	"  lender: {ram: 4M, iommu: off, adapters: [{window: 1M, entries: 16, requesters: 4}],\n"
	"           devices: {nvme0: {type: nvme, size: 1M, queue_pairs: 2, vectors: 2}}}\n"
	"  narrow: {ram: 4M, iommu: off, adapters: [{window: 1M, entries: 16, requesters: 2}],\n"
	"           devices: {nvme1: {type: nvme, size: 1M, dma_bits: 32}}}\n"
	"  client: {ram: 4M, iommu: off, adapters: [{window: 1M, entries: 16}]}\n";

static void out_of(sci_error_t error, sci_error_t want, unsigned reason, const char *const *texts)
{
	char begin[80];

	CHECK_IS(error, want);
	snprintf(begin, sizeof(begin), "out of %s: ", smartio_exhausted_name(reason));
	if (smartio_last_exhausted() == reason &&
	    strncmp(smartio_last_error(), begin, strlen(begin)) == 0) {
		while (*texts && strstr(smartio_last_error(), *texts))
			texts++;
		if (!*texts)
			return;
	}
	fprintf(stderr, "reason %u: %s; expected %u: %s... %s\n", smartio_last_exhausted(),
		smartio_last_error(), reason, begin, *texts ? *texts : "");
	exit(1);
}
#define OUT_OF(error, want, reason, ...)                                                           \
	out_of(error, want, SIO_OUT_OF_##reason, (const char *const[]){__VA_ARGS__, NULL})

static sci_local_segment_t create(sci_desc_t sd, unsigned id, size_t size, sci_error_t *error)
{
	sci_local_segment_t segment = NULL;

	SCICreateSegment(sd, &segment, id, size, NULL, NULL, 0, error);
	return segment;
}

/* One that others can reach. */
static sci_local_segment_t offer(sci_desc_t sd, unsigned id, size_t size)
{
	sci_error_t error;
	sci_local_segment_t segment = create(sd, id, size, &error);

	CHECK_OK(error);
	SCIPrepareSegment(segment, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(segment, 0, 0, &error);
	CHECK_OK(error);
	return segment;
}

/* Many of an entry each, and one that no window has room for. */
static int exporter(void *arg)
{
	sci_desc_t sd = api_begin();

	(void)arg;
	for (unsigned i = 0; i < 20; i++)
		offer(sd, i, PIECE);
	offer(sd, 100, 2u << 20);
	step_done(READY);
	step_await(GO);
	SCITerminate();
	return 0;
}

static sci_error_t map_remote(sci_desc_t sd, unsigned id)
{
	sci_remote_segment_t segment;
	sci_error_t error;
	sci_map_t map;

	SCIConnectSegment(sd, &segment, LENDER, id, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(segment, &map, 0, SCIGetRemoteSegmentSize(segment), NULL, 0, &error);
	return error;
}

static int windows(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_error_t error = SCI_ERR_OK;

	(void)arg;
	OUT_OF(map_remote(sd, 100), SCI_ERR_HW_NOSPC, WINDOW, "adapter 0, node 12", "0 of 16",
	       "needs 3");
	for (unsigned i = 0; i < 20 && error == SCI_ERR_OK; i++)
		error = map_remote(sd, i);
	OUT_OF(error, SCI_ERR_HW_NOSPC, LUT_ENTRIES, "adapter 0, node 12",
	       "16 of 16 entries in use", "(node 4: 16)");
	SCITerminate();
	return 0;
}

static void windows_and_entries(void **state)
{
	pid_t pid = cluster_fork(*state, LENDER, exporter, NULL);

	step_await(READY);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT, windows, NULL)), 0);
	step_done(GO);
	assert_int_equal(cluster_wait(pid), 0);
}

/* For a device of another host: it is that one's table that is full. */
static int lent(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = borrow(sd, "nvme0", 0), narrow = borrow(sd, "nvme1", 0);
	sci_error_t error = SCI_ERR_OK;
	sci_remote_segment_t memory;
	sci_ioaddr_t ioaddr;

	(void)arg;
	for (unsigned i = 0; i < 20 && error == SCI_ERR_OK; i++)
		SCIMapLocalSegmentForDevice(offer(sd, i, PIECE), 0, device, &ioaddr, 0, PIECE, 0,
					    &error);
	OUT_OF(error, SCI_ERR_HW_NOSPC, LUT_ENTRIES, "nvme0", "adapter 0, node 4",
	       "16 of 16 entries", "(node 12: 16)");
	SCIMapLocalSegmentForDevice(offer(sd, 50, PIECE), 0, narrow, &ioaddr, 0, PIECE, 0, &error);
	OUT_OF(error, SCI_ERR_HW_NOSPC, REQUESTERS, "nvme1", "adapter 0, node 8", "2 of 2 entries",
	       "CPUs: 2");
	SCICreateDeviceSegment(narrow, 1, PIECE, SCI_MEMTYPE_PRIVATE,
			       SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE,
			       SCI_FLAG_DEVICE_SIDE_ONLY, &error);
	CHECK_OK(error);
	SCIConnectDeviceSegment(narrow, &memory, 1, SCI_MEMTYPE_PRIVATE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegmentForDevice(memory, narrow, &ioaddr, 0, PIECE, 0, &error);
	OUT_OF(error, SCI_ERR_HW_NOSPC, REACH, "nvme1", "0xffffffff");
	SCICreateDeviceSegment(device, 2, 5u << 20, SCI_MEMTYPE_PRIVATE,
			       SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE,
			       SCI_FLAG_DEVICE_SIDE_ONLY, &error);
	OUT_OF(error, SCI_ERR_HW_NOSPC, RAM, "nvme0", "lender has 4194304");
	SCITerminate();
	return 0;
}

static void what_a_lender_has(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT, lent, NULL)), 0);
}

static int vectors(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = borrow(sd, "nvme0", 0);
	unsigned number, vector = SMARTIO_ANY_VECTOR;
	sci_remote_interrupt_t to;
	sci_local_interrupt_t irq;
	sci_error_t error;

	(void)arg;
	SCICreateInterrupt(sd, &irq, 0, &number, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIConnectInterrupt(sd, &to, CLIENT, 0, number, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
	smartio_connect_device_interrupt(device, &vector, to, &error);
	CHECK_OK(error);
	vector = SMARTIO_ANY_VECTOR;
	smartio_connect_device_interrupt(device, &vector, to, &error);
	OUT_OF(error, SCI_ERR_HW_NOSPC, VECTORS, "all 2 vectors of nvme0");
	SCITerminate();
	return 0;
}

/* Of this host and this program. */
static int local(void *arg)
{
	struct rlimit limit, few;
	sci_desc_t sd = api_begin();
	sci_error_t error;
	sci_dma_queue_t queue;
	sci_local_segment_t segment;

	(void)arg;
	create(sd, 1, 5u << 20, &error);
	OUT_OF(error, SCI_ERR_NOSPC, RAM, "client has 4194304 bytes");
	CHECK_OK((create(sd, 1, 3u << 20, &error), error));
	create(sd, 2, 2u << 20, &error);
	OUT_OF(error, SCI_ERR_NOSPC, RAM, "client", "2097152 bytes wanted", "of 4194304 are free");
	SCICreateSegment(sd, &segment, UINT32_MAX, 4096, NULL, NULL, SCI_FLAG_EMPTY, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 300 && error == SCI_ERR_OK; i++)
		SCICreateDMAQueue(sd, &queue, 0, 4, 0, &error);
	OUT_OF(error, SCI_ERR_HW_NOSPC, DMA_CHANNELS, "adapter 0", "256 channels");
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	few = limit;
	few.rlim_cur = 16;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	create(sd, 3, 4096, &error);
	OUT_OF(error, SCI_ERR_NOSPC, DESCRIPTORS, "ulimit -n");
	/* Sanitizers look for leaks with descriptors. */
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	SCITerminate();
	return 0;
}

static void what_a_host_has(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT, vectors, NULL)), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT, local, NULL)), 0);
}

/* Its rings are a quarter of its host's memory at most. */
static int receiver(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_data_interrupt_t irq;
	unsigned number = 7;
	sci_error_t error;

	(void)arg;
	SCICreateDataInterrupt(sd, &irq, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	step_done(READY);
	step_await(GO);
	SCITerminate();
	return 0;
}

static int sender(void *arg)
{
	sci_remote_data_interrupt_t to;
	sci_desc_t sd = api_begin();
	sci_error_t error = SCI_ERR_OK;

	(void)arg;
	for (unsigned i = 0; i < 20 && error == SCI_ERR_OK; i++)
		SCIConnectDataInterrupt(sd, &to, NARROW, 0, 7, SCI_INFINITE_TIMEOUT, 0, &error);
	OUT_OF(error, SCI_ERR_HW_NOSPC, RINGS, "narrow", "15", "1/4 of the host's memory");
	SCITerminate();
	return 0;
}

static void rings(void **state)
{
	pid_t pid = cluster_fork(*state, NARROW, receiver, NULL);

	step_await(READY);
	assert_int_equal(cluster_wait(cluster_fork(*state, NARROW, sender, NULL)), 0);
	step_done(GO);
	assert_int_equal(cluster_wait(pid), 0);
}

/* As long as it lives the lender does not settle what others leave behind. */
static int keeper(void *arg)
{
	sci_desc_t sd = api_begin();

	(void)arg;
	borrow(sd, "nvme0", 0);
	step_done(READY);
	step_await(GO);
	SCITerminate();
	return 0;
}

/* Is killed while a drive may write to its memory. */
static int victim(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = borrow(sd, "nvme0", 0);
	sci_error_t error;
	sci_ioaddr_t ioaddr;

	(void)arg;
	SCIMapLocalSegmentForDevice(offer(sd, 1, KEPT), 0, device, &ioaddr, 0, KEPT, 0, &error);
	CHECK_OK(error);
	step_done(HELD);
	for (;;)
		pause();
}

static int heir(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_error_t error, ignored;

	(void)arg;
	create(sd, 1, (4u << 20) - KEPT - (512u << 10), &error);
	CHECK_OK(error);
	/* The port hears of the victim's end when it is reaped already. */
	while (create(sd, 2, 1u << 20, &error), smartio_last_exhausted() == SIO_OUT_OF_RAM)
		smartio_wait_events(NULL, NULL, 1, &ignored);
	OUT_OF(error, SCI_ERR_NOSPC, QUARANTINE, "client", "524288 of 4194304 are free",
	       "786432 in quarantine");
	SCITerminate();
	return 0;
}

static void quarantine(void **state)
{
	pid_t keeps = cluster_fork(*state, LENDER, keeper, NULL), pid;

	step_await(READY);
	pid = cluster_fork(*state, CLIENT, victim, NULL);
	step_await(HELD);
	kill(pid, SIGKILL);
	assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT, heir, NULL)), 0);
	step_done(GO);
	assert_int_equal(cluster_wait(keeps), 0);
}

static int manager(void *arg)
{
	struct smartio_nvme_manager *m;

	(void)arg;
	begin();
	OK(smartio_nvme_manager_open("nvme0", NULL, &m));
	step_done(READY);
	for (;;)
		CHECK(smartio_nvme_manager_serve(m, UINT32_MAX) > 0);
}

static int pairs(void *arg)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 2};
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	for (unsigned i = 0; i < PAIRS; i++)
		OK(smartio_nvme_queue_open(n, &o, &q));
	CHECK(smartio_nvme_queue_open(n, &o, &q) < 0);
	if (smartio_nvme_exhausted() != SIO_OUT_OF_QUEUE_PAIRS ||
	    !strstr(smartio_nvme_error(), "out of queue pairs: no queue pairs left: the 2 of nvme0 "
					  "are held by node 12: 2 (nvme-exhausted)")) {
		fprintf(stderr, "%s\n", smartio_nvme_error());
		return 1;
	}
	smartio_nvme_close(n);
	SCITerminate();
	return 0;
}

static void queue_pairs(void **state)
{
	pid_t pid = cluster_fork(*state, LENDER, manager, NULL);

	step_await(READY);
	assert_int_equal(cluster_wait(cluster_fork(*state, CLIENT, pairs, NULL)), 0);
	kill(pid, SIGKILL);
	assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
}

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(windows_and_entries),
		TEST(what_a_lender_has),
		TEST(what_a_host_has),
		TEST(quarantine),
		TEST(rings),
		TEST(queue_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
