/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices: finding, borrowing, BARs, device memory, maps for a device, deaths and their settling.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "smartio/io.h"
#include "../lib/mapped.h"
#include "admin.h"
#include "topology.h"

#define PAGE 4096u
#define NVME_VS 8 /* register: version */

static unsigned drive(void)
{
	unsigned fdid = 0;
	sci_error_t error;

	smartio_find_device(cluster_device(), &fdid, &error);
	CHECK_OK(error);
	return fdid;
}

static sci_remote_segment_t connect_to(sci_smartio_device_t device, unsigned id, unsigned type)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t error;

	SCIConnectDeviceSegment(device, &seg, id, type, NULL, NULL, 0, &error);
	CHECK_OK(error);
	return seg;
}

static void give_back(sci_smartio_device_t device)
{
	sci_error_t error;

	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
}

static void drop(sci_remote_segment_t seg, sci_map_t map)
{
	sci_error_t error;

	if (map) {
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
	}
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
}

/* ---- finding ---- */

static int finds(void *arg)
{
	sci_smartio_device_info_t info, filter = {.pci_class = 0x010802};
	sci_smartio_query_device_t query = {.subcommand = SCI_Q_DEVICE_INFO, .data = &info};
	sci_desc_t sd = api_begin();
	unsigned found[4] = {0}, fdid = 7;
	char number[16];
	sci_error_t error;

	(void)arg;
	CHECK(SCIGetDeviceList(sd, found, 4, NULL, 0, &error) == 1);
	CHECK_OK(error);
	CHECK(found[0] == drive());
	CHECK(SCIGetDeviceList(sd, found, 4, &filter, 0, &error) == 1);
	CHECK_OK(error);
	filter.pci_class = 0x020000;
	CHECK(SCIGetDeviceList(sd, found, 4, &filter, 0, &error) == 0);
	CHECK_OK(error);
	query.fdid = drive();
	SCIQuery(SCI_Q_DEVICE, &query, 0, &error);
	CHECK_OK(error);
	CHECK(info.fdid == drive() && info.nodeid == 4 && info.pci_class == 0x010802);
	CHECK(!strcmp(info.user_name, cluster_device()));
	query.fdid++;
	SCIQuery(SCI_Q_DEVICE, &query, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_FDID);
	snprintf(number, sizeof(number), "%#x", drive());
	smartio_find_device(number, &fdid, &error);
	CHECK_OK(error);
	CHECK(fdid == drive());
	smartio_find_device("nvme1", &fdid, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_FDID);
	CHECK(fdid == drive());
	api_end(sd);
	return 0;
}

static void a_device_is_found_from_everywhere(void **state)
{
	for (unsigned node = 4; node <= 12; node += 4)
		assert_int_equal(cluster_wait(cluster_fork(*state, node, finds, NULL)), 0);
}

/* ---- who may borrow, who has the registers ---- */

static int first_borrower(void *arg)
{
	sci_query_remote_segment_t query = {.subcommand = SCI_Q_REMOTE_SEGMENT_IOADDR};
	sci_smartio_device_t device = NULL;
	sci_remote_segment_t bar;
	sci_desc_t sd = api_begin();
	volatile uint8_t *p;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	SCIBorrowDevice(sd, &device, drive() + 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_FDID);
	CHECK(device == NULL);
	device = api_borrow(sd, SCI_FLAG_EXCLUSIVE);
	CHECK(SCIGetFabricDeviceId(device) == drive());
	CHECK(smartio_borrower_id(device) != 0);
	CHECK(!smartio_device_lost(device));
	CHECK(smartio_device_generation(device) % 2 == 0);
	CHECK(*smartio_device_generation_word(device) == smartio_device_generation(device));
	bar = connect_to(device, 0, SCI_MEMTYPE_BAR);
	CHECK(SCIGetRemoteSegmentSize(bar) >= 2 * PAGE);
	query.segment = bar;
	SCIQuery(SCI_Q_REMOTE_SEGMENT, &query, 0, &error);
	CHECK_OK(error);
	/* In the physical map of the drive's host; naturally aligned, as BARs are. */
	CHECK(query.data.ioaddr != 0 && query.data.ioaddr % SCIGetRemoteSegmentSize(bar) == 0);
	CHECK(!smartio_holds_registers(device));
	p = SCIMapRemoteSegment(bar, &map, 0, SCIGetRemoteSegmentSize(bar), NULL,
				SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	CHECK(smartio_holds_registers(device));
	CHECK(sio_read32(p + NVME_VS) >> 16 == 1);
	step_done(0);
	step_await(1);
	SCIReleaseExclusiveBorrow(device, 0, &error);
	CHECK_OK(error);
	SCIReleaseExclusiveBorrow(device, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	step_done(2);
	step_await(3);
	SCIReturnDevice(device, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	drop(bar, map);
	CHECK(!smartio_holds_registers(device));
	give_back(device);
	CHECK(smartio_device_lost(device) && smartio_device_generation(device) == 0);
	CHECK(smartio_device_event_fd(device) == -1);
	api_end(sd);
	return 0;
}

static int second_borrower(void *arg)
{
	sci_smartio_device_t device = NULL;
	sci_remote_segment_t bar;
	sci_desc_t sd = api_begin();
	volatile uint8_t *p, *q;
	sci_error_t error;
	sci_map_t map, one;

	(void)arg;
	step_await(0);
	SCIBorrowDevice(sd, &device, drive(), 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_AVAILABLE);
	step_done(1);
	step_await(2);
	SCIBorrowDevice(sd, &device, drive(), SCI_FLAG_EXCLUSIVE, &error);
	CHECK_IS(error, SCI_ERR_NOT_AVAILABLE);
	device = api_borrow(sd, 0);
	bar = connect_to(device, 0, SCI_MEMTYPE_BAR);
	p = SCIMapRemoteSegment(bar, &map, 0, 2 * PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	/* Registers alone cannot be mapped to be written, and who has them is told. */
	CHECK(!SCIMapRemoteSegment(bar, &one, 0, PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error));
	CHECK_IS(error, SCI_ERR_ACCESS);
	CHECK(strstr(smartio_last_error(), "are held by pid ") != NULL);
	q = SCIMapRemoteSegment(bar, &one, 0, PAGE, NULL,
				SCI_FLAG_IO_MAP_IOSPACE | SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	CHECK(sio_read32(q + NVME_VS) >> 16 == 1);
	SCIUnmapSegment(one, 0, &error);
	CHECK_OK(error);
	/* A mirror: it shows the registers. */
	CHECK(!smartio_holds_registers(device));
	CHECK(sio_read32(p + NVME_VS) >> 16 == 1);
	smartio_device_settled(device, SMARTIO_ALL_BORROWERS, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	drop(bar, map);
	give_back(device);
	step_done(3);
	api_end(sd);
	return 0;
}

static void registers_have_one_holder(void **state)
{
	for (unsigned node = 4; node <= 12; node += 4) {
		pid_t a, b;

		steps_reset();
		a = cluster_fork(*state, 8, first_borrower, NULL);
		b = cluster_fork(*state, node, second_borrower, NULL);
		assert_int_equal(cluster_wait(b), 0);
		assert_int_equal(cluster_wait(a), 0);
	}
}

/* ---- device memory, and memory mapped for the device ---- */

/* A segment of the program's own for the device, elsewhere than @other. */
static void map_own_memory(sci_desc_t sd, sci_smartio_device_t device, sci_ioaddr_t other)
{
	sci_local_segment_t local = NULL;
	sci_ioaddr_t second = 0, third = 0;
	sci_error_t error;

	SCICreateSegment(sd, &local, 0, 4 * PAGE, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(local, 0, device, &second, 0, 4 * PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_PREPARED);
	SCIPrepareSegment(local, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(local, 0, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(local, 0, device, &second, 0, 5 * PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIMapLocalSegmentForDevice(local, 0, device, &second, 0, 4 * PAGE, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(local, 0, device, &third, PAGE, PAGE, 0, &error);
	CHECK_OK(error);
	CHECK(second != 0 && second != other);
	SCIRemoveSegment(local, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIUnmapLocalSegmentForDevice(local, 0, device, 0, &error);
	CHECK_OK(error);
	SCIUnmapLocalSegmentForDevice(local, 0, device, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	SCIRemoveSegment(local, 0, &error);
	CHECK_OK(error);
}

static int shares_memory(void *arg)
{
	bool maker = arg != NULL;
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	sci_remote_segment_t seg = NULL, near = NULL;
	sci_ioaddr_t address = 0;
	sci_error_t error;
	volatile char *p;
	sci_map_t map;

	if (maker) {
		SCIConnectDeviceSegment(device, &seg, 5, SCI_MEMTYPE_SHARED, NULL, NULL, 0, &error);
		CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
		SCICreateDeviceSegment(device, 5, 100, SCI_MEMTYPE_SHARED,
				       SCI_MEMACCESS_MULTIHOST_READ | SCI_MEMACCESS_HOST_WRITE, 0,
				       &error);
		CHECK_OK(error);
		SCICreateDeviceSegment(device, 5, 100, SCI_MEMTYPE_SHARED,
				       SCI_MEMACCESS_MULTIHOST_READ, 0, &error);
		CHECK_IS(error, SCI_ERR_SEGMENTID_USED);
	} else {
		step_await(0);
	}
	SCICreateDeviceSegment(device, 1, 0, SCI_MEMTYPE_PRIVATE, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_SIZE_ALIGNMENT);
	SCICreateDeviceSegment(device, 1, 1, SCI_MEMTYPE_BAR, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	seg = connect_to(device, 5, SCI_MEMTYPE_SHARED);
	p = SCIMapRemoteSegment(seg, &map, 0, 100, NULL, 0, &error);
	CHECK_OK(error);
	if (maker) {
		put_text(p, "to all borrowers");
		SCIFlush(NULL, 0);
		step_done(0);
	} else {
		CHECK(is_text(p, "to all borrowers"));
	}
	/* What the device reads and we write lies with the lender. */
	SCICreateDeviceSegment(device, 1, PAGE, SCI_MEMTYPE_PRIVATE,
			       SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE, 0, &error);
	CHECK_OK(error);
	near = connect_to(device, 1, SCI_MEMTYPE_PRIVATE);
	CHECK(SCIGetRemoteSegmentNodeId(near) == 4);
	SCIMapRemoteSegmentForDevice(near, device, &address, 0, PAGE, 0, &error);
	CHECK_OK(error);
	CHECK(address != 0);
	SCIDisconnectSegment(near, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	map_own_memory(sd, device, address);
	SCIUnmapRemoteSegmentForDevice(near, device, 0, &error);
	CHECK_OK(error);
	drop(near, NULL);
	/* It ends with its last connection, so the maker's must be that. */
	if (maker)
		step_await(1);
	drop(seg, map);
	if (!maker)
		step_done(1);
	give_back(device);
	api_end(sd);
	return 0;
}

static void device_memory_is_shared_and_mapped(void **state)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 12, shares_memory, *state);
	b = cluster_fork(*state, 8, shares_memory, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
	/* And on the lender itself. */
	steps_reset();
	a = cluster_fork(*state, 4, shares_memory, *state);
	b = cluster_fork(*state, 4, shares_memory, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- events ---- */

static void *wake_soon(void *arg)
{
	smartio_wake(arg);
	return NULL;
}

static int holder(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	sci_remote_segment_t bar = connect_to(device, 0, SCI_MEMTYPE_BAR);
	struct pollfd p = {.fd = smartio_device_event_fd(device), .events = POLLIN};
	sci_local_data_interrupt_t dint = NULL;
	struct smartio_device_event event;
	uint32_t generation = smartio_device_generation(device);
	unsigned number = 0;
	uint64_t victim;
	pthread_t thread;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	SCIMapRemoteSegment(bar, &map, 0, PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	CHECK(smartio_holds_registers(device));
	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(poll(&p, 1, 0) == 0);
	smartio_wait_device_event(device, &event, 0, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	CHECK(smartio_wait_events(device, dint, 10, &error) == 0);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	CHECK(!pthread_create(&thread, NULL, wake_soon, device));
	CHECK(smartio_wait_events(device, dint, SCI_INFINITE_TIMEOUT, &error) ==
	      SMARTIO_READY_WAKE);
	CHECK_OK(error);
	pthread_join(thread, NULL);
	CHECK(smartio_wait_events(device, dint, 0, &error) == 0);
	CHECK(poll(&p, 1, 0) == 0);
	step_done(0);

	/* A borrower dies with memory mapped for the device. */
	CHECK(smartio_wait_events(device, dint, SCI_INFINITE_TIMEOUT, &error) ==
	      SMARTIO_READY_DEVICE);
	CHECK_OK(error);
	CHECK(poll(&p, 1, 0) == 1);
	smartio_wait_device_event(device, &event, 0, &error);
	CHECK_OK(error);
	CHECK(event.kind == SMARTIO_DEVICE_BORROWER_GONE);
	victim = event.borrower;
	CHECK(victim != 0 && victim != smartio_borrower_id(device));
	CHECK(poll(&p, 1, 0) == 0);
	smartio_device_settled(device, victim, &error);
	CHECK_OK(error);
	/* A reset is told, too; and the number is another one. */
	smartio_device_settled(device, SMARTIO_ALL_BORROWERS, &error);
	CHECK_OK(error);
	smartio_wait_device_event(device, &event, SCI_INFINITE_TIMEOUT, &error);
	CHECK_OK(error);
	CHECK(event.kind == SMARTIO_DEVICE_RESET);
	CHECK(smartio_device_generation(device) > generation);
	CHECK(smartio_device_generation(device) % 2 == 0);
	CHECK(event.generation == smartio_device_generation(device));
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
	drop(bar, map);
	give_back(device);
	api_end(sd);
	return 0;
}

/* ---- doorbells ---- */

/* Where the drive counts those; else 0. */
static bool count_doorbells(uint64_t *ret_wrong)
{
	struct smartio_counter all[64];
	sci_error_t error;
	unsigned n = smartio_device_counters(drive(), all, 64, &error);

	*ret_wrong = 0;
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(all[i].name, "invalid_doorbells")) {
			*ret_wrong = all[i].value;
			return true;
		}
	return false;
}

static uint64_t wrong_doorbells(void)
{
	uint64_t wrong;

	count_doorbells(&wrong);
	return wrong;
}

static void reset_by(struct admin *a, bool own_word)
{
	sci_error_t error;

	if (own_word) {
		admin_disable(a);
		smartio_device_settled(a->device, SMARTIO_ALL_BORROWERS, &error);
	} else {
		smartio_device_reset(a->device, &error);
	}
	CHECK_OK(error);
}

/*
 * Copies of registers: the bases of the admin queues, while the drive is disabled. The simulator
 * sees that they are single loads and stores, tests/sim/fabric/hook.c.
 */
static void copy_bases(const struct admin *a)
{
	uint64_t base[2] = {0x12345000, 0x6789a000}, back[2] = {0};
	volatile uint8_t *asq = a->regs + 0x28, *acq = a->regs + 0x30;
	sci_error_t error;

	SCIMemCpy(NULL, base, a->regs_map, 0x28, 16, 0, &error);
	CHECK_OK(error);
	CHECK(sio_read64(asq) == base[0] && sio_read64(acq) == base[1]);
	SCIMemCpy(NULL, back, a->regs_map, 0x28, 16, SCI_FLAG_BLOCK_READ, &error);
	CHECK_OK(error);
	CHECK(back[0] == base[0] && back[1] == base[1]);
	SCIMemWrite(&base[1], asq, 8, 0, &error);
	CHECK_OK(error);
	CHECK(sio_read64(asq) == base[1]);
	SCIMemCpy(NULL, base, a->regs_map, 0x28, 8, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	SCITransferBlock(a->regs_map, 0x28, a->regs_map, 0x30, 8, 0, &error);
	CHECK_OK(error);
	CHECK(sio_read64(asq) == base[0] && sio_read64(acq) == base[0]);
}

/* Resets the drive, twice, while somebody else has its doorbells mapped. */
static int resets_twice(void *arg)
{
	static struct admin a;
	volatile uint8_t *before;
	sci_map_t before_map;
	sci_error_t error;
	uint64_t wrong;

	(void)arg;
	admin_start(&a);
	SCIReleaseExclusiveBorrow(a.device, 0, &error);
	CHECK_OK(error);
	wrong = wrong_doorbells();
	for (unsigned i = 0; i < 2; i++) {
		admin_submit(&a);
		admin_await(&a);
		step_done(4 * i);
		step_await(4 * i + 1);
		before = a.bells;
		before_map = a.bells_map;
		reset_by(&a, i == 0);
		copy_bases(&a);
		admin_enable(&a);
		CHECK(sio_read32(before) == 0xffffffff);
		step_done(4 * i + 2);
		step_await(4 * i + 3);
		sio_write32(before, 9); /* ours leads nowhere, too */
		for (unsigned k = 0; k < 4; k++) {
			admin_submit(&a);
			admin_await(&a);
		}
		SCIUnmapSegment(before_map, 0, &error);
		CHECK_OK(error);
	}
	CHECK(wrong_doorbells() == wrong);
	admin_stop(&a);
	return 0;
}

static int rings_late(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device;
	sci_remote_segment_t bar;
	volatile uint8_t *p, *next;
	sci_map_t map, next_map;
	uint32_t generation;
	sci_error_t error;

	(void)arg;
	step_await(0);
	device = api_borrow(sd, 0);
	bar = connect_to(device, 0, SCI_MEMTYPE_BAR);
	p = SCIMapRemoteSegment(bar, &map, 0, 2 * PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 2; i++) {
		generation = smartio_device_generation(device);
		if (i > 0)
			step_await(4 * i);
		step_done(4 * i + 1);
		step_await(4 * i + 2);
		CHECK(sio_read32(p + PAGE) == 0xffffffff);
		for (unsigned k = 0; k < 8; k++) /* the admin queue's, and those of no queue */
			sio_write32(p + PAGE + 4 * k, 5);
		CHECK(sio_read32(p + NVME_VS) >> 16 == 1); /* registers stay */
		next = SCIMapRemoteSegment(bar, &next_map, 0, 2 * PAGE, NULL,
					   SCI_FLAG_IO_MAP_IOSPACE, &error);
		CHECK_OK(error);
		CHECK(smartio_device_generation(device) > generation);
		sio_write32(p + PAGE, 6);
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
		p = next;
		map = next_map;
		step_done(4 * i + 3);
	}
	drop(bar, map);
	give_back(device);
	api_end(sd);
	return 0;
}

static void a_reset_takes_doorbells_away(void **state)
{
	cluster_needs_module(NEEDS_REVOKE);
	for (unsigned node = 4; node <= 12; node += 4) {
		pid_t a, b;

		steps_reset();
		a = cluster_fork(*state, 8, resets_twice, NULL);
		b = cluster_fork(*state, node, rings_late, NULL);
		assert_int_equal(cluster_wait(b), 0);
		assert_int_equal(cluster_wait(a), 0);
	}
}

static int victim(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	sci_local_segment_t local = NULL;
	sci_ioaddr_t address;
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &local, 0, PAGE, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
	CHECK_OK(error);
	SCIPrepareSegment(local, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(local, 0, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(local, 0, device, &address, 0, PAGE, 0, &error);
	CHECK_OK(error);
	kill(getpid(), SIGKILL);
	return 1;
}

static void the_holder_is_told_of_deaths(void **state)
{
	for (unsigned node = 4; node <= 12; node += 4) {
		pid_t a;

		steps_reset();
		a = cluster_fork(*state, 8, holder, NULL);
		step_await(0);
		assert_int_equal(cluster_wait(cluster_fork(*state, node, victim, NULL)),
				 128 + SIGKILL);
		assert_int_equal(cluster_wait(a), 0);
	}
}

/* The drive is at work with its queue when its only borrower is killed. */
static int leaves_a_queue(void *arg)
{
	struct admin a;

	(void)arg;
	admin_start(&a);
	CHECK(sio_read32(a.regs + 0x24) != 0 && sio_read32(a.regs + 0x1c) == 1);
	kill(getpid(), SIGKILL);
	return 1;
}

/* Nobody but the lender could have reset it. */
static int finds_it_reset(void *arg)
{
	/* CC, CSTS; AQA, ASQ, ACQ, which QEMU's drive keeps over a function reset. */
	static const unsigned zero[] = {0x14, 0x1c, 0x24, 0x28, 0x2c, 0x30, 0x34};
	uint64_t wrong;
	sci_smartio_device_t device = NULL;
	sci_desc_t sd = api_begin();
	sci_remote_segment_t bar;
	volatile uint8_t *regs;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	do { /* its lender hears of a death a little later than we do */
		SCIBorrowDevice(sd, &device, drive(), SCI_FLAG_EXCLUSIVE, &error);
	} while (error == SCI_ERR_NOT_AVAILABLE);
	CHECK_OK(error);
	bar = connect_to(device, 0, SCI_MEMTYPE_BAR);
	regs = SCIMapRemoteSegment(bar, &map, 0, PAGE, NULL, SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	CHECK(sio_read32(regs + NVME_VS) >> 16 == 1);
	for (unsigned i = 0; i < (count_doorbells(&wrong) ? 7 : 2); i++)
		CHECK(sio_read32(regs + zero[i]) == 0);
	drop(bar, map);
	give_back(device);
	api_end(sd);
	return 0;
}

static void registers_of_the_one_before_are_gone(void **state)
{
	for (unsigned node = 4; node <= 12; node += 4) {
		assert_int_equal(cluster_wait(cluster_fork(*state, node, leaves_a_queue, NULL)),
				 128 + SIGKILL);
		assert_int_equal(cluster_wait(cluster_fork(*state, 8, finds_it_reset, NULL)), 0);
	}
}

static int loses_the_lender(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	sci_remote_segment_t bar = connect_to(device, 0, SCI_MEMTYPE_BAR);
	uint32_t generation = smartio_device_generation(device);
	struct smartio_device_event event;
	volatile uint8_t *p;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	p = SCIMapRemoteSegment(bar, &map, 0, 2 * PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	step_done(0);
	smartio_wait_device_event(device, &event, SCI_INFINITE_TIMEOUT, &error);
	CHECK_OK(error);
	CHECK(event.kind == SMARTIO_DEVICE_LOST);
	CHECK(smartio_device_lost(device));
	CHECK(smartio_device_generation(device) > generation);
	CHECK(sio_read32(p + NVME_VS) == 0xffffffff && sio_read32(p + PAGE) == 0xffffffff);
	smartio_wait_device_event(device, &event, SCI_INFINITE_TIMEOUT, &error);
	CHECK_IS(error, SCI_ERR_CANCELLED);
	SCIConnectDeviceSegment(device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	drop(bar, map);
	give_back(device);
	api_end(sd);
	return 0;
}

static void a_lost_lender_reads_as_ones(void **state)
{
	pid_t a;

	cluster_needs(NEEDS_CRASH);
	steps_reset();
	a = cluster_fork(*state, 8, loses_the_lender, NULL);
	step_await(0);
	cluster_crash(*state, 4);
	assert_int_equal(cluster_wait(a), 0);
	assert_int_equal(cluster_restart(*state, 4, 8), 0);
	a_device_is_found_from_everywhere(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(a_device_is_found_from_everywhere),
		API_TEST(registers_have_one_holder),
		API_TEST(device_memory_is_shared_and_mapped),
		API_TEST(the_holder_is_told_of_deaths),
		API_TEST(a_reset_takes_doorbells_away),
		API_TEST(registers_of_the_one_before_are_gone),
		API_TEST(a_lost_lender_reads_as_ones),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
