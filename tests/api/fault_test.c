/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each allocation and each call to the world fails once: the library reports an error or does
 * without, loses nothing, and goes on. The objects of the library are linked in, with a world that
 * passes on to the live one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "session/world.h"
#include "fault.h"
#include "topology.h"

#define PAGE 4096u

/* world_live.c is compiled with these names changed. */
struct sio_world *sio_world_live(void);

static unsigned calls, failing; /* atomic; the failing-th call fails; 0: none */

static bool fails(void)
{
	return __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) == failing;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

static int connect_or_fail(struct sio_world *w)
{
	return fails() ? -EMFILE : sio_world_live()->connect(w);
}

static ssize_t send_or_fail(struct sio_world *w, int fd, const void *buf, size_t len,
			    const int *fds, unsigned n_fds)
{
	return fails() ? -ENOBUFS : sio_world_live()->send(w, fd, buf, len, fds, n_fds);
}

static int event_new_or_fail(struct sio_world *w)
{
	return fails() ? -EMFILE : sio_world_live()->event_new(w);
}

static int reserve_or_fail(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret)
{
	return fails() ? -ENOMEM : sio_world_live()->reserve(w, hint, fixed, len, ret);
}

static bool no_faults;

static unsigned wake_ways(struct sio_world *w)
{
	unsigned ways = sio_world_live()->wake_ways(w);

	return no_faults ? ways & ~SIO_WAKE_FAULT : ways;
}

static int fault_new_or_fail(struct sio_world *w, void *at, size_t len)
{
	return fails() ? -EMFILE : sio_world_live()->fault_new(w, at, len);
}

static int map_or_fail(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset)
{
	return fails() ? -ENOMEM : sio_world_live()->map(w, at, len, prot, fd, offset);
}

static int map_ones_or_fail(struct sio_world *w, void *at, size_t len)
{
	return fails() ? -ENOMEM : sio_world_live()->map_ones(w, at, len);
}

static int map_aside_or_fail(struct sio_world *w, void *at, size_t len, void **ret)
{
	return fails() ? -ENOMEM : sio_world_live()->map_aside(w, at, len, ret);
}

static int map_back_or_fail(struct sio_world *w, void *aside, void *at, size_t len)
{
	return fails() ? -ENOMEM : sio_world_live()->map_back(w, aside, at, len);
}

static int pages_adopt_or_fail(struct sio_world *w, void *at, size_t len, int fd)
{
	return fails() ? -ENOMEM : sio_world_live()->pages_adopt(w, at, len, fd);
}

static int thread_start_or_fail(struct sio_world *w, void (*fn)(void *), void *arg,
				struct sio_world_thread **ret)
{
	return fails() ? -EAGAIN : sio_world_live()->thread_start(w, fn, arg, ret);
}

static int lock_new_or_fail(struct sio_world *w, struct sio_world_lock **ret)
{
	return fails() ? -ENOMEM : sio_world_live()->lock_new(w, ret);
}

static void log_nothing(struct sio_world *w, const char *text)
{
	(void)w;
	(void)text;
}

struct sio_world *sio_world_current(void)
{
	static struct sio_world world;

	if (!world.connect) {
		world = *sio_world_live();
		world.connect = connect_or_fail;
		world.send = send_or_fail;
		world.event_new = event_new_or_fail;
		world.reserve = reserve_or_fail;
		world.map = map_or_fail;
		world.map_ones = map_ones_or_fail;
		world.map_aside = map_aside_or_fail;
		world.map_back = map_back_or_fail;
		world.pages_adopt = pages_adopt_or_fail;
		world.fault_new = fault_new_or_fail;
		world.wake_ways = wake_ways;
		world.thread_start = thread_start_or_fail;
		world.lock_new = lock_new_or_fail;
		world.log = log_nothing;
	}
	return &world;
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* After an error there is a text; a failure may end the connection, and then that is the error. */
bool worked(sci_error_t error)
{
	CHECK(error == SCI_ERR_OK || smartio_last_error()[0]);
	return error == SCI_ERR_OK;
}

static void use_segments(sci_desc_t sd)
{
	sci_remote_segment_t remote = NULL;
	sci_sequence_t sequence = NULL;
	sci_map_t map = NULL, far = NULL;
	sci_local_segment_t seg = NULL;
	sci_error_t error;
	uint8_t *p;

	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	if (!worked(error))
		return;
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	if (worked(error))
		*p = 7;
	SCIPrepareSegment(seg, 0, 0, &error);
	worked(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	worked(error);
	SCIConnectSegment(sd, &remote, 4, 1, 0, NULL, NULL, 0, 0, &error);
	if (worked(error)) {
		SCIMapRemoteSegment(remote, &far, 0, PAGE, NULL, 0, &error);
		if (worked(error)) {
			SCICreateMapSequence(far, &sequence, 0, &error);
			if (worked(error)) {
				SCICheckSequence(sequence, 0, &error);
				CHECK_OK(error);
				SCIRemoveSequence(sequence, 0, &error);
				CHECK_OK(error);
			}
			SCIUnmapSegment(far, 0, &error);
			CHECK_OK(error);
		}
		SCIDisconnectSegment(remote, 0, &error);
		CHECK_OK(error);
	}
	if (map) {
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
	}
	do {
		SCIRemoveSegment(seg, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
}

static void use_interrupts(sci_desc_t sd)
{
	sci_remote_data_interrupt_t remote = NULL;
	sci_local_data_interrupt_t dint = NULL;
	unsigned number = 0, length = 0;
	sci_error_t error;

	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL, 0, &error);
	if (!worked(error))
		return;
	SCIConnectDataInterrupt(sd, &remote, 4, 0, number, 0, 0, &error);
	if (worked(error)) {
		SCITriggerDataInterrupt(remote, NULL, 0, 0, &error);
		worked(error);
		SCIWaitForDataInterrupt(dint, NULL, &length, 50, 0, &error);
		worked(error);
		SCIDisconnectDataInterrupt(remote, 0, &error);
		CHECK_OK(error);
		SCIWaitForDataInterrupt(dint, NULL, &length, 0, 0, &error);
		worked(error);
	}
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
}

/* Stores wake the drive by faults, or by an event descriptor. */
static void use_doorbells(sci_remote_segment_t bar, bool by_event)
{
	const volatile uint32_t *word;
	sci_error_t error;
	sci_map_t map;

	no_faults = by_event;
	SCIMapRemoteSegment(bar, &map, 0, 2 * PAGE, NULL, 0, &error);
	no_faults = false;
	if (!worked(error))
		return;
	word = smartio_map_sleep_word(map);
	CHECK(word == smartio_map_sleep_word(map) || by_event); /* a failure may pass */
	CHECK(!word || *word < 2);
	smartio_map_wake(map);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
}

static void use_plain_interrupts(sci_desc_t sd)
{
	sci_remote_interrupt_t remote = NULL;
	sci_local_interrupt_t i = NULL;
	unsigned number = 0;
	sci_error_t error;

	SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL, 0, &error);
	if (!worked(error))
		return;
	SCIConnectInterrupt(sd, &remote, 4, 0, number, 0, 0, &error);
	if (worked(error)) {
		SCITriggerInterrupt(remote, 0, &error);
		worked(error);
		SCIWaitForInterrupt(i, 50, 0, &error);
		worked(error);
		SCIDisconnectInterrupt(remote, 0, &error);
		CHECK_OK(error);
	}
	do {
		SCIRemoveInterrupt(i, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
}

static void use_device(sci_desc_t sd)
{
	sci_remote_segment_t bar = NULL, seg = NULL;
	sci_smartio_device_t device = NULL;
	sci_ioaddr_t address;
	unsigned fdid = 0;
	sci_error_t error;

	smartio_find_device(cluster_device(), &fdid, &error);
	if (!worked(error))
		return;
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	if (!worked(error))
		return;
	SCIConnectDeviceSegment(device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	if (worked(error)) {
		use_doorbells(bar, false);
		use_doorbells(bar, true);
		SCIDisconnectSegment(bar, 0, &error);
		CHECK_OK(error);
	}
	SCICreateDeviceSegment(device, 1, PAGE, SCI_MEMTYPE_PRIVATE, SCI_MEMACCESS_DEVICE_READ, 0,
			       &error);
	worked(error);
	SCIConnectDeviceSegment(device, &seg, 1, SCI_MEMTYPE_PRIVATE, NULL, NULL, 0, &error);
	if (worked(error)) {
		SCIMapRemoteSegmentForDevice(seg, device, &address, 0, PAGE, 0, &error);
		if (worked(error)) {
			SCIUnmapRemoteSegmentForDevice(seg, device, 0, &error);
			CHECK_OK(error);
		}
		SCIDisconnectSegment(seg, 0, &error);
		CHECK_OK(error);
	}
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
}

static sci_callback_action_t on_dma(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	(void)arg;
	(void)queue;
	(void)status;
	return SCI_CALLBACK_CONTINUE;
}

static void use_transfers(sci_dma_queue_t queue, sci_local_segment_t local,
			  sci_remote_segment_t remote)
{
	sci_error_t error;

	SCIStartDmaTransfer(queue, local, remote, 0, 64, 128, NULL, NULL, SCI_FLAG_DMA_WAIT,
			    &error);
	worked(error);
	SCIStartDmaTransfer(queue, local, remote, 0, 64, 128, on_dma, NULL,
			    SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_READ, &error);
	if (worked(error))
		while (SCIDMAQueueState(queue) == SCI_DMAQUEUE_POSTED)
			usleep(1000);
}

static void use_queues(sci_desc_t sd)
{
	sci_remote_segment_t remote = NULL;
	sci_local_segment_t seg = NULL;
	sci_dma_queue_t queue = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, 5, PAGE, NULL, NULL, 0, &error);
	if (!worked(error))
		return;
	SCIPrepareSegment(seg, 0, 0, &error);
	worked(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	worked(error);
	SCIConnectSegment(sd, &remote, 4, 5, 0, NULL, NULL, 0, 0, &error);
	if (worked(error)) {
		SCICreateDMAQueue(sd, &queue, 0, 1, 0, &error);
		if (worked(error)) {
			use_transfers(queue, seg, remote);
			SCIRemoveDMAQueue(queue, 0, &error);
			CHECK_OK(error);
		}
		SCIDisconnectSegment(remote, 0, &error);
		CHECK_OK(error);
	}
	do {
		SCIRemoveSegment(seg, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
}

static bool use_all(void)
{
	sci_desc_t sd = NULL;
	sci_error_t error;

	SCIInitialize(0, &error);
	if (!worked(error))
		return false;
	SCIOpen(&sd, 0, &error);
	if (worked(error)) {
		use_segments(sd);
		use_more_segments(sd);
		use_interrupts(sd);
		use_plain_interrupts(sd);
		use_queues(sd);
		use_more_kinds(sd);
		use_device(sd);
		SCIClose(sd, 0, &error);
		CHECK_OK(error);
	}
	SCITerminate();
	return true;
}

/* Exit status: 0; 2: there were fewer calls than that. */
static int with_failure(void *arg)
{
	unsigned before = open_descriptors();

	calls = 0;
	failing = (unsigned)(uintptr_t)arg;
	use_all();
	CHECK(open_descriptors() <= before + 1); /* the file of ones stays */
	if (calls < failing)
		return 2;
	failing = 0;
	/* As if nothing had been. */
	CHECK(use_all());
	CHECK(open_descriptors() <= before + 1);
	return 0;
}

/*
 * A failure may end the connection while memory is mapped for the device; then only a holder of the
 * registers can end its quarantine.
 */
static int settles(void *arg)
{
	sci_smartio_device_t device = NULL;
	sci_remote_segment_t bar = NULL;
	sci_desc_t sd = api_begin();
	unsigned fdid = 0;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	smartio_find_device(cluster_device(), &fdid, &error);
	CHECK_OK(error);
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	CHECK_OK(error);
	SCIConnectDeviceSegment(device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(bar, &map, 0, 2 * PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	smartio_device_settled(device, SMARTIO_ALL_BORROWERS, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(bar, 0, &error);
	CHECK_OK(error);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void each_call_fails_once(void **state)
{
	unsigned n = 0;
	int rc;

	do {
		rc = cluster_wait(cluster_fork(*state, 4, with_failure, (void *)(uintptr_t)++n));
		if (rc != 0 && rc != 2)
			fail_msg("with the %u-th call failing: exit status %d", n, rc);
	} while (rc == 0);
	/* The whole list was walked. */
	assert_in_range(n, 40, 2000);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, settles, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(each_call_fails_once),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
