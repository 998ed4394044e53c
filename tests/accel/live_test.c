/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accelerators on a live cluster, by their driver: beside the borrower, with a lender, and in a
 * third host. What they move is counted; what is wrong faults as that of any device; what a killed
 * program left under way ends. With IOMMUs, and without.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/cluster.h"
#include "smartio/accel.h"
#include "smartio/io.h"
#include "must.h"

#define BORROWER 8u
#define KIB 1024u
#define MIB (1024u * KIB)
#define PATIENCE_MS 10000u

#define HOSTS(iommu)                                                                               \
	"cluster: accelerators\n"                                                                  \
	"switches: [sw0]\n"                                                                        \
	"hosts:\n"                                                                                 \
	"  one:\n"                                                                                 \
	"    ram: 64M\n"                                                                           \
	"    iommu: " iommu "\n"                                                                   \
	"    devices:\n"                                                                           \
	"      acc0: {type: accelerator, size: 8M, units: 2}\n"                                    \
	"      beside: {type: accelerator, size: 1M, reset: none, vectors: 0}\n"                   \
	"  two: {ram: 64M, iommu: " iommu ", devices: {here: {type: accelerator, size: 1M}}}\n"    \
	"  three: {ram: 64M, iommu: " iommu ", devices: {far: {type: accelerator, size: 256M}}}\n"

static int up(void **state, const char *text)
{
	*state = cluster_up(text);
	return *state ? 0 : -1;
}

static int up_with(void **state)
{
	return up(state, HOSTS("on"));
}

static int up_without(void **state)
{
	return up(state, HOSTS("off"));
}

static int down(void **state)
{
	return *state ? cluster_down(*state) : 0;
}

static int audit(void **state)
{
	return cluster_audit(*state);
}

/* ---- programs ---- */

static struct smartio_accel *take(const char *name)
{
	struct smartio_accel *a;
	int rc;

	do /* the one before may be on his way out */
		rc = smartio_accel_open(name, 0, &a);
	while (rc == -EBUSY);
	MUST_ACCEL(rc);
	return a;
}

static struct smartio_accel_queue *queue(struct smartio_accel *a, enum smartio_accel_engine e,
					 uint32_t flags)
{
	struct smartio_accel_queue *q;

	MUST_ACCEL(smartio_accel_queue_open(a, e, 0, flags, &q));
	return q;
}

static uint64_t run(struct smartio_accel_queue *q, uint32_t operation, uint64_t a0, uint64_t a1,
		    uint64_t a2)
{
	const uint64_t argument[6] = {a0, a1, a2};
	uint64_t result;

	MUST_ACCEL(smartio_accel_do(q, operation, argument, PATIENCE_MS, &result));
	return result;
}

static uint64_t counter(const char *device, const char *name)
{
	struct smartio_counter all[64];
	unsigned fdid = 0, n;
	sci_error_t error;

	smartio_find_device(device, &fdid, &error);
	CHECK_OK(error);
	n = smartio_device_counters(fdid, all, 64, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(all[i].name, name))
			return all[i].value;
	CHECK(false);
	return 0;
}

static void put(volatile void *at, uint32_t words, uint32_t seed)
{
	for (uint32_t i = 0; i < words; i++)
		sio_write32((volatile uint32_t *)at + i, (i + seed) * 2654435761u);
	SCIFlush(NULL, 0);
}

static bool is(const volatile void *at, uint32_t words, uint32_t seed)
{
	for (uint32_t i = 0; i < words; i++)
		if (sio_read32((const volatile uint32_t *)at + i) != (i + seed) * 2654435761u)
			return false;
	return true;
}

/* ---- what it does ---- */

static int moves_and_computes(void *name)
{
	struct smartio_accel_buffer *b;
	struct smartio_accel_queue *dma, *unit;
	struct smartio_accel_info info;
	sci_desc_t sd = api_begin();
	struct smartio_accel *a = take(name);
	volatile uint8_t *memory = smartio_accel_memory(a), *host;
	const uint32_t bytes = 256 * KIB;
	uint64_t sum = 0, address;

	smartio_accel_get_info(a, &info);
	CHECK(info.dma_queues == 2 && info.units == (strcmp(name, "acc0") ? 4 : 2));
	MUST_ACCEL(smartio_accel_buffer_alloc(a, bytes, &b));
	host = smartio_accel_buffer_data(b);
	address = smartio_accel_buffer_address(b);
	dma = queue(a, SMARTIO_ACCEL_DMA, 0);
	unit = queue(a, SMARTIO_ACCEL_UNIT, info.vectors ? SMARTIO_ACCEL_WITH_INTERRUPT : 0);
	put(host, bytes / 4, 1);
	sio_write32(memory, 0); /* of one that is not reset */
	sio_write32(memory + info.memory_bytes - 4, 0);
	CHECK(run(dma, SIO_ACCEL_TRANSFER, address, smartio_accel_local(64), bytes) == bytes);
	CHECK(is(memory + 64, bytes / 4, 1) && sio_read32(memory) == 0);
	for (uint32_t i = 0; i < bytes / 4; i++)
		sum += (uint64_t)((i + 1) * 2654435761u) * (2ull * i + 1);
	CHECK(run(unit, SIO_ACCEL_CHECKSUM, smartio_accel_local(64), bytes, 0) == sum);
	CHECK(run(unit, SIO_ACCEL_CHECKSUM, address, bytes, 0) == sum);
	run(unit, SIO_ACCEL_FILL, address, bytes, 7);
	CHECK(sio_read32(host) == 7 && sio_read32(host + bytes - 4) == 7);
	run(dma, SIO_ACCEL_TRANSFER, smartio_accel_local(info.memory_bytes - 4), address, 4);
	CHECK(sio_read32(host) == 0);
	/* The last byte of its memory is mapped, too. */
	put(memory + info.memory_bytes - 4, 1, 9);
	run(dma, SIO_ACCEL_TRANSFER, smartio_accel_local(info.memory_bytes - 4), address, 4);
	CHECK(is(host, 1, 9));
	smartio_accel_close(a);
	api_end(sd);
	return 0;
}

static void moves_and_computes_everywhere(void **state)
{
	static const char *const names[] = {"acc0", "beside", "here", "far"};

	for (unsigned i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%s", names[i]);
		assert_int_equal(
			cluster_wait(cluster_fork(*state, BORROWER, moves_and_computes, name)), 0);
	}
}

/* What it reads and writes at its port, by PCIe's rules; a completion and a command are beside. */
static int is_counted(void *arg)
{
	struct smartio_accel_buffer *b;
	struct smartio_accel_queue *dma;
	sci_desc_t sd = api_begin();
	struct smartio_accel *a = take("acc0");
	uint64_t before[2], at;

	(void)arg;
	MUST_ACCEL(smartio_accel_buffer_alloc(a, 64 * KIB, &b));
	at = smartio_accel_buffer_address(b);
	dma = queue(a, SMARTIO_ACCEL_DMA, 0);
	before[0] = counter("acc0", "rd_bytes");
	before[1] = counter("acc0", "wr_tlp");
	run(dma, SIO_ACCEL_TRANSFER, at, smartio_accel_local(0), 64 * KIB);
	CHECK(counter("acc0", "rd_bytes") - before[0] == 64 * KIB + 64);
	CHECK(counter("acc0", "wr_tlp") - before[1] == 1);
	run(dma, SIO_ACCEL_TRANSFER, smartio_accel_local(0), at, 64 * KIB);
	CHECK(counter("acc0", "rd_bytes") - before[0] == 64 * KIB + 2 * 64);
	CHECK(counter("acc0", "wr_tlp") - before[1] == 64 * KIB / 256 + 2);
	run(dma, SIO_ACCEL_TRANSFER, smartio_accel_local(0), smartio_accel_local(MIB), 64 * KIB);
	CHECK(counter("acc0", "rd_bytes") - before[0] == 64 * KIB + 3 * 64);
	CHECK(counter("acc0", "wr_tlp") - before[1] == 64 * KIB / 256 + 3);
	smartio_accel_close(a);
	api_end(sd);
	return 0;
}

static void transactions_are_counted(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, BORROWER, is_counted, NULL)), 0);
}

/* From one to the other and back; and a game of two kernels. */
static int meets(void *name)
{
	const uint64_t rounds = 1000;
	struct smartio_accel_queue *dma, *left, *right;
	struct sio_accel_completion c;
	sci_desc_t sd = api_begin();
	struct smartio_accel *a = take("acc0"), *b = take(name);
	uint64_t to_b, to_a, same;
	volatile uint32_t *times;

	MUST_ACCEL(smartio_accel_reach(a, b, &to_b));
	MUST_ACCEL(smartio_accel_reach(b, a, &to_a));
	CHECK(smartio_accel_reach(a, b, &same) == -EEXIST);
	CHECK(smartio_accel_reach(a, a, &same) == -EINVAL);
	dma = queue(a, SMARTIO_ACCEL_DMA, 0);
	put(smartio_accel_memory(a), 128 * KIB / 4, 5);
	run(dma, SIO_ACCEL_TRANSFER, smartio_accel_local(0), to_b + 4096, 128 * KIB);
	CHECK(is((volatile uint8_t *)smartio_accel_memory(b) + 4096, 128 * KIB / 4, 5));
	run(dma, SIO_ACCEL_TRANSFER, to_b + 4096, smartio_accel_local(2 * MIB), 128 * KIB);
	CHECK(is((volatile uint8_t *)smartio_accel_memory(a) + 2 * MIB, 128 * KIB / 4, 5));
	put(smartio_accel_memory(a), 1, 0);
	left = queue(a, SMARTIO_ACCEL_UNIT, 0);
	right = queue(b, SMARTIO_ACCEL_UNIT, 0);
	MUST_ACCEL(smartio_accel_submit(right, SIO_ACCEL_PING_PONG,
					(uint64_t[6]){smartio_accel_local(0), to_a, rounds, 0}));
	smartio_accel_ring(right);
	MUST_ACCEL(smartio_accel_submit(
		left, SIO_ACCEL_PING_PONG,
		(uint64_t[6]){smartio_accel_local(0), to_b, rounds, 1, smartio_accel_local(MIB)}));
	MUST_ACCEL(smartio_accel_wait(left, PATIENCE_MS, &c));
	CHECK(c.status == SIO_ACCEL_OK && c.result == rounds);
	MUST_ACCEL(smartio_accel_wait(right, PATIENCE_MS, &c));
	CHECK(c.status == SIO_ACCEL_OK && c.result == rounds);
	times = (volatile uint32_t *)((volatile uint8_t *)smartio_accel_memory(a) + MIB);
	for (unsigned i = 0; i < rounds; i++)
		CHECK(sio_read32(times + i) > 0);
	CHECK(sio_read32(times + rounds) == 0);
	/* Each reaches the other: first the one, then the other, lets go. */
	smartio_accel_close(a);
	smartio_accel_close(b);
	api_end(sd);
	return 0;
}

static void two_reach_each_other(void **state)
{
	static const char *const names[] = {"beside", "here", "far"};

	for (unsigned i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%s", names[i]);
		assert_int_equal(cluster_wait(cluster_fork(*state, BORROWER, meets, name)), 0);
	}
}

/* ---- what is wrong ---- */

static void fails_with(struct smartio_accel_queue *q, uint32_t operation, uint64_t a0, uint64_t a1,
		       uint64_t a2, uint32_t status)
{
	struct sio_accel_completion c;

	MUST_ACCEL(smartio_accel_submit(q, operation, (uint64_t[6]){a0, a1, a2}));
	MUST_ACCEL(smartio_accel_wait(q, PATIENCE_MS, &c));
	CHECK(c.status == status);
}

static int goes_wild(void *arg)
{
	struct smartio_accel_queue *dma, *unit, *other;
	sci_desc_t sd = api_begin();
	struct smartio_accel *a = take("acc0"), *again;
	const uint64_t nowhere = 0x7f0000000000;
	uint64_t before = counter("acc0", "faults");

	(void)arg;
	CHECK(smartio_accel_open("acc0", 0, &again) == -EBUSY);
	CHECK(smartio_accel_open("acc0", 2, &again) == -EINVAL);
	CHECK(smartio_accel_open("nobody", 0, &again) == -ENODEV);
	dma = queue(a, SMARTIO_ACCEL_DMA, 0);
	unit = queue(a, SMARTIO_ACCEL_UNIT, 0);
	fails_with(dma, SIO_ACCEL_TRANSFER, nowhere, smartio_accel_local(0), 64,
		   SIO_ACCEL_READ_FAILED);
	fails_with(dma, SIO_ACCEL_TRANSFER, smartio_accel_local(0), nowhere, 8192,
		   SIO_ACCEL_WRITE_FAILED);
	fails_with(unit, SIO_ACCEL_CHECKSUM, nowhere, 4, 0, SIO_ACCEL_READ_FAILED);
	fails_with(unit, SIO_ACCEL_FILL, nowhere, 4, 0, SIO_ACCEL_WRITE_FAILED);
	CHECK(counter("acc0", "faults") >= before + 4);
	/* One fault each, however much a kernel would touch. */
	before = counter("acc0", "faults");
	fails_with(unit, SIO_ACCEL_CHECKSUM, nowhere, MIB, 0, SIO_ACCEL_READ_FAILED);
	fails_with(unit, SIO_ACCEL_FILL, nowhere, MIB, 0, SIO_ACCEL_WRITE_FAILED);
	CHECK(counter("acc0", "faults") == before + 2);
	/* What is wrong in itself goes nowhere. */
	before = counter("acc0", "faults");
	fails_with(dma, SIO_ACCEL_TRANSFER, smartio_accel_local(8 * MIB - 63),
		   smartio_accel_local(0), 64, SIO_ACCEL_INVALID);
	fails_with(unit, 999, 0, 0, 0, SIO_ACCEL_INVALID);
	fails_with(unit, SIO_ACCEL_FILL, smartio_accel_local(8 * MIB), 4, 0,
		   SIO_ACCEL_WRITE_FAILED);
	CHECK(counter("acc0", "faults") == before);
	CHECK(smartio_accel_do(unit, 999, (uint64_t[6]){0}, PATIENCE_MS, NULL) == -EIO);
	MUST_ACCEL(smartio_accel_queue_open(a, SMARTIO_ACCEL_UNIT, 0, 0, &other));
	CHECK(smartio_accel_queue_open(a, SMARTIO_ACCEL_UNIT, 0, 0, &other) == -EBUSY);
	CHECK(smartio_accel_queue_open(a, SMARTIO_ACCEL_DMA, 3, 0, &other) == -EINVAL);
	smartio_accel_close(a);
	again = take("beside");
	CHECK(smartio_accel_queue_open(again, SMARTIO_ACCEL_DMA, 0, SMARTIO_ACCEL_WITH_INTERRUPT,
				       &other) == -ENOTSUP);
	smartio_accel_close(again);
	api_end(sd);
	return 0;
}

static void wild_accesses_fault(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, BORROWER, goes_wild, NULL)), 0);
}

static void await(const volatile void *reg, uint32_t value)
{
	while (sio_read32(reg) != value)
		smartio_yield();
}

/* Whoever has the registers stores anything anywhere in them, and rings all doorbells. */
static int is_hostile(void *name)
{
	sci_remote_segment_t bar;
	sci_smartio_device_t device;
	volatile uint8_t *regs;
	sci_desc_t sd = api_begin();
	uint64_t before;
	unsigned fdid = 0;
	sci_error_t error;
	uint32_t x = 1;
	sci_map_t map;

	smartio_find_device(name, &fdid, &error);
	CHECK_OK(error);
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	CHECK_OK(error);
	SCIConnectDeviceSegment(device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	regs = SCIMapRemoteSegment(bar, &map, 0, 2 * 4096, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 200000; i++) {
		uint32_t offset;

		x = x * 1664525 + 1013904223;
		offset = x >> 8 & 0x1ffc;
		x = x * 1664525 + 1013904223;
		/* Often what makes sense, so that queues start. */
		sio_write32(regs + offset, i % 3 == 0 ? 1u : i % 3 == 1 ? x >> 24 << 6 : x);
	}
	/* It is still there: commands of zeros, which its memory is full of, fail one by one. */
	sio_write32(regs + SIO_ACCEL_QUEUE(0), 0);
	await(regs + SIO_ACCEL_QUEUE(0) + SIO_ACCEL_STATUS, 0);
	before = counter(name, "commands_failed");
	sio_write32(regs + SIO_ACCEL_QUEUE(0) + SIO_ACCEL_RING_BASE, 0);
	sio_write32(regs + SIO_ACCEL_QUEUE(0) + SIO_ACCEL_RING_BASE + 4, 0x80000000);
	sio_write32(regs + SIO_ACCEL_QUEUE(0) + SIO_ACCEL_RING_ENTRIES, 8);
	sio_to_fabric_barrier();
	sio_write32(regs + SIO_ACCEL_QUEUE(0), SIO_ACCEL_ENABLE);
	await(regs + SIO_ACCEL_QUEUE(0) + SIO_ACCEL_STATUS, SIO_ACCEL_RUNNING);
	sio_write32(regs + SIO_ACCEL_DOORBELL(0), 8);
	await(regs + SIO_ACCEL_QUEUE(0) + SIO_ACCEL_DONE, 8);
	CHECK(counter(name, "commands_failed") >= before + 8);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(bar, 0, &error);
	CHECK_OK(error);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void hostile_registers_harm_nobody(void **state)
{
	char name[] = "acc0";

	assert_int_equal(cluster_wait(cluster_fork(*state, BORROWER, is_hostile, name)), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, BORROWER, moves_and_computes, name)), 0);
}

/* ---- what is left ---- */

/* With a kernel that waits for ever, a transfer under way, memory that both reach. */
static int is_killed(void *name)
{
	struct smartio_accel_buffer *b;
	struct smartio_accel_queue *unit;
	struct smartio_accel *a, *other;
	uint64_t far;

	api_begin();
	a = take(name);
	other = take("here");
	MUST_ACCEL(smartio_accel_buffer_alloc(a, MIB, &b));
	MUST_ACCEL(smartio_accel_reach(a, other, &far));
	unit = queue(a, SMARTIO_ACCEL_UNIT, 0);
	put(smartio_accel_memory(a), 64, 3);
	MUST_ACCEL(smartio_accel_submit(unit, SIO_ACCEL_WAIT,
					(uint64_t[6]){smartio_accel_local(0), 1}));
	smartio_accel_ring(unit);
	step_done(0);
	for (;;)
		pause();
	return 0;
}

static void a_death_is_cleaned_up(void **state)
{
	static const char *const names[] = {"acc0", "beside", "far"};

	for (unsigned i = 0; i < 3; i++) {
		char name[16], here[] = "here";
		pid_t pid;

		snprintf(name, sizeof(name), "%s", names[i]);
		steps_reset();
		pid = cluster_fork(*state, BORROWER, is_killed, name);
		step_await(0);
		kill(pid, SIGKILL);
		assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
		/* Whoever comes next finds it as new, and nothing stays in quarantine. */
		assert_int_equal(
			cluster_wait(cluster_fork(*state, BORROWER, moves_and_computes, name)), 0);
		assert_int_equal(
			cluster_wait(cluster_fork(*state, BORROWER, moves_and_computes, here)), 0);
	}
}

static int is_reset(void *arg)
{
	struct smartio_accel_queue *q;
	struct sio_accel_completion c;
	sci_desc_t sd = api_begin();
	struct smartio_accel *a = take("acc0");
	sci_error_t error;

	(void)arg;
	q = queue(a, SMARTIO_ACCEL_UNIT, 0);
	put(smartio_accel_memory(a), 1, 4);
	MUST_ACCEL(
		smartio_accel_submit(q, SIO_ACCEL_WAIT, (uint64_t[6]){smartio_accel_local(0), 1}));
	CHECK(smartio_accel_wait(q, 0, &c) == -ETIMEDOUT);
	smartio_device_reset(smartio_accel_device(a), &error);
	CHECK_OK(error);
	CHECK(smartio_accel_wait(q, PATIENCE_MS, &c) == -ENODEV);
	/* Also of a queue with room left, and of one without. */
	for (unsigned i = 0; i < 100; i++)
		CHECK(smartio_accel_submit(q, SIO_ACCEL_WAIT, (uint64_t[6]){0}) == -ENODEV);
	CHECK(sio_read32(smartio_accel_memory(a)) == 0);
	smartio_accel_close(a);
	api_end(sd);
	return 0;
}

static int is_pulled_out(void *arg)
{
	struct smartio_accel_queue *q;
	struct sio_accel_completion c;
	sci_desc_t sd = api_begin();
	struct smartio_accel *a = take("acc0");
	int rc;

	(void)arg;
	q = queue(a, SMARTIO_ACCEL_UNIT, 0);
	MUST_ACCEL(
		smartio_accel_submit(q, SIO_ACCEL_WAIT, (uint64_t[6]){smartio_accel_local(0), 1}));
	smartio_accel_ring(q);
	step_done(0);
	CHECK(smartio_accel_wait(q, PATIENCE_MS, &c) == -ENODEV);
	step_await(1);
	smartio_accel_close(a);
	do /* this host may not have heard yet that it is back */
		rc = smartio_accel_open("acc0", 0, &a);
	while (rc == -ENODEV || rc == -EBUSY);
	MUST_ACCEL(rc);
	CHECK(sio_read32(smartio_accel_memory(a)) == 0);
	smartio_accel_close(a);
	api_end(sd);
	return 0;
}

static void a_reset_or_removal_ends_all(void **state)
{
	pid_t pid;

	assert_int_equal(cluster_wait(cluster_fork(*state, BORROWER, is_reset, NULL)), 0);
	steps_reset();
	pid = cluster_fork(*state, BORROWER, is_pulled_out, NULL);
	step_await(0);
	assert_int_equal(cluster_slot(*state, "acc0", false), 0);
	assert_int_equal(cluster_slot(*state, "acc0", true), 0);
	step_done(1);
	assert_int_equal(cluster_wait(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(moves_and_computes_everywhere, audit),
		cmocka_unit_test_teardown(transactions_are_counted, audit),
		cmocka_unit_test_teardown(two_reach_each_other, audit),
		cmocka_unit_test_teardown(wild_accesses_fault, audit),
		cmocka_unit_test_teardown(hostile_registers_harm_nobody, audit),
		cmocka_unit_test_teardown(a_death_is_cleaned_up, audit),
		cmocka_unit_test_teardown(a_reset_or_removal_ends_all, audit),
	};
	int failed = cmocka_run_group_tests_name("with IOMMUs", tests, up_with, down);

	return failed + cmocka_run_group_tests_name("without", tests, up_without, down);
}
