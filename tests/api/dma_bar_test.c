/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA queues and memory in BARs of borrowed devices, in this host and in others: what a queue may
 * reach, what crosses, and that it ends with the pages. With IOMMUs, and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DMA_BYTES (64u << 10) /* as the device's RAM */
#include "dma.h"
#include "p2p.h"

#define WAIT SCI_FLAG_DMA_WAIT
#define READ (SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_READ)

/* A queue of a program, and memory of its own. */
static void start(struct dma *d, sci_desc_t sd)
{
	sci_error_t error;

	dma_make_local(d, sd);
	SCICreateDMAQueue(sd, &d->queue, 0, 1, 0, &error);
	CHECK_OK(error);
}

static void stop(struct dma *d)
{
	sci_error_t error;

	SCIRemoveDMAQueue(d->queue, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(d->local_map, 0, &error);
	CHECK_OK(error);
	api_remove_segment(d->local);
}

static sci_error_t copy(const struct dma *d, sci_remote_segment_t bar, size_t own, size_t size,
			size_t there, unsigned flags)
{
	sci_error_t error;

	SCIStartDmaTransfer(d->queue, d->local, bar, own, size, there, NULL, NULL, flags, &error);
	return error;
}

/* ---- bytes ---- */

static int copies(void *arg)
{
	dis_dma_vec_t vec[2] = {{.local_offset = 0, .remote_offset = 7, .size = 9},
				{.local_offset = 9, .remote_offset = 60000, .size = 5000}};
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, 0, PAGE);
	uint8_t own[333];
	sci_error_t error;
	struct dma d;

	start(&d, sd);
	dma_fill(&d, 13, 4099);
	/* Neither words nor pages. */
	CHECK_OK(copy(&d, t.bar, 3, 3 * PAGE, PAGE + 5, WAIT));
	CHECK(get8(t.ram + 4) == 0 && get8(t.ram + 5 + 3 * PAGE) == 0);
	CHECK(same_bytes((const uint8_t *)(uintptr_t)t.ram + 5, d.memory + 3, 3 * PAGE));
	put_all(d.memory, 0, DMA_BYTES);
	CHECK_OK(copy(&d, t.bar, 100, 3 * PAGE, PAGE + 5, READ));
	CHECK(same_bytes(d.memory + 100, (const uint8_t *)(uintptr_t)t.ram + 5, 3 * PAGE));
	CHECK(get8(d.memory + 99) == 0 && get8(d.memory + 100 + 3 * PAGE) == 0);
	/* To the last byte, and not beyond it. */
	dma_fill(&d, 7, 911);
	CHECK_OK(copy(&d, t.bar, 0, DMA_BYTES, 0, WAIT));
	CHECK(same_bytes((const uint8_t *)(uintptr_t)t.ram, d.memory + PAGE, 4 * PAGE));
	CHECK_IS(copy(&d, t.bar, 0, DMA_BYTES, 1, WAIT), SCI_ERR_OUT_OF_RANGE);
	/* Several at once, and memory of the program. */
	SCIStartDmaTransferVec(d.queue, d.local, t.bar, 2, vec, NULL, NULL, WAIT, &error);
	CHECK_OK(error);
	put_all(d.memory, 0, DMA_BYTES);
	CHECK_OK(copy(&d, t.bar, 0, 9, 7, READ));
	CHECK_OK(copy(&d, t.bar, 9, 5000, 60000, READ));
	for (unsigned i = 0; i < 5009; i++)
		CHECK(get8(d.memory + i) == (uint8_t)(i * 7 + i / 911));
	memset(own, 0x5a, sizeof(own));
	SCIStartDmaTransferMem(d.queue, own, t.bar, sizeof(own), 2 * PAGE, NULL, NULL, WAIT,
			       &error);
	CHECK_OK(error);
	CHECK(get8(t.ram + PAGE) == 0x5a && get8(t.ram + PAGE + sizeof(own) - 1) == 0x5a);
	stop(&d);
	target_return(&t);
	api_end(sd);
	return 0;
}

static void memory_of_a_device_is_reached(void **state)
{
	cluster_needs(NEEDS_MEMORY);
	cluster_needs(NEEDS_ENGINE);
	for (unsigned k = 0; k < PLACES; k++)
		assert_int_equal(cluster_wait(cluster_fork(*state, BORROWER, copies, places[k])),
				 0);
}

/* ---- what crosses ---- */

static int writes_pages(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, 0, PAGE);
	struct dma d;

	start(&d, sd);
	CHECK_OK(copy(&d, t.bar, 0, PAGE, PAGE, WAIT)); /* what it takes to attach is behind it */
	step_done(0);
	step_await(1);
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(copy(&d, t.bar, i * PAGE, PAGE, (i + 1) * PAGE, WAIT));
	step_done(2);
	step_await(3);
	stop(&d);
	target_return(&t);
	api_end(sd);
	return 0;
}

static unsigned long long bytes_in(const struct cluster *c, unsigned node)
{
	unsigned long long bytes;

	assert_int_equal(cluster_adapter_counter(c, node, 0, "wr_bytes", &bytes), 0);
	return bytes;
}

/* The bytes once by the adapters of both hosts, and by no other. */
static void it_crosses_its_route_once(void **state)
{
	static const unsigned host_of[PLACES] = {4, 8, 12};
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	cluster_needs(NEEDS_ENGINE);
	for (unsigned k = 0; k < PLACES; k++) {
		unsigned long long before[3];
		pid_t pid;

		steps_reset();
		pid = cluster_fork(c, BORROWER, writes_pages, places[k]);
		step_await(0);
		for (unsigned h = 0; h < 3; h++)
			before[h] = bytes_in(c, 4 * (h + 1));
		step_done(1);
		step_await(2);
		for (unsigned h = 0; h < 3; h++) {
			unsigned node = 4 * (h + 1);
			bool passes =
				host_of[k] != BORROWER && (node == BORROWER || node == host_of[k]);

			assert_int_equal(bytes_in(c, node) - before[h], passes ? 4 * PAGE : 0);
		}
		step_done(3);
		assert_int_equal(cluster_wait(pid), 0);
	}
}

/* ---- what is not reached ---- */

static int asks_for_registers(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, 0, PAGE);
	sci_remote_segment_t regs = connect_bar(t.device, SIO_MEMDEV_BAR_REGISTERS);
	struct dma d;

	start(&d, sd);
	CHECK_IS(copy(&d, regs, 0, 8, 0, WAIT), SCI_ERR_ACCESS);
	CHECK_IS(copy(&d, regs, 0, 8, PAGE, WAIT), SCI_ERR_ACCESS); /* doorbells */
	CHECK_IS(copy(&d, regs, 0, 8, 0, READ), SCI_ERR_ACCESS);
	CHECK(!smartio_holds_registers(t.device));
	/* The queue is as good as before. */
	CHECK_OK(copy(&d, t.bar, 0, 8, 0, WAIT));
	stop(&d);
	drop_bar(regs, NULL);
	target_return(&t);
	api_end(sd);
	return 0;
}

static void registers_and_doorbells_are_not(void **state)
{
	cluster_needs(NEEDS_MEMORY);
	cluster_needs(NEEDS_ENGINE);
	for (unsigned k = 0; k < PLACES; k++)
		assert_int_equal(
			cluster_wait(cluster_fork(*state, BORROWER, asks_for_registers, places[k])),
			0);
}

/* ---- ends ---- */

/* A queue does not keep a connection, nor does it remember the one before. */
static int connects_again(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, SCI_FLAG_EXCLUSIVE, PAGE);
	sci_error_t error;
	struct dma d;

	start(&d, sd);
	dma_fill(&d, 3, 57);
	for (unsigned i = 0; i < 40; i++) { /* more than a queue has slots */
		CHECK_OK(copy(&d, t.bar, 0, PAGE, PAGE, WAIT));
		CHECK(same_bytes((const uint8_t *)(uintptr_t)t.ram, d.memory, PAGE));
		drop_bar(t.bar, t.map);
		t.bar = connect_bar(t.device, SIO_MEMDEV_BAR_RAM);
		t.ram = SCIMapRemoteSegment(t.bar, &t.map, PAGE, 4 * PAGE, NULL, 0, &error);
		CHECK_OK(error);
		put_all(t.ram, 0, PAGE);
	}
	/* A reset zeroes the RAM, and takes nothing away that lies there. */
	CHECK_OK(copy(&d, t.bar, 0, PAGE, PAGE, WAIT));
	smartio_device_reset(t.device, &error);
	CHECK_OK(error);
	CHECK(get32(t.ram) == 0);
	CHECK_OK(copy(&d, t.bar, 0, PAGE, PAGE, WAIT));
	CHECK(same_bytes((const uint8_t *)(uintptr_t)t.ram, d.memory, PAGE));
	/* The queue goes first, or the borrow. */
	stop(&d);
	start(&d, sd);
	CHECK_OK(copy(&d, t.bar, 0, PAGE, PAGE, WAIT));
	target_return(&t);
	stop(&d);
	api_end(sd);
	return 0;
}

static void a_connection_ends_its_ranges(void **state)
{
	cluster_needs(NEEDS_MEMORY);
	cluster_needs(NEEDS_ENGINE);
	for (unsigned k = 0; k < PLACES; k++)
		assert_int_equal(
			cluster_wait(cluster_fork(*state, BORROWER, connects_again, places[k])), 0);
}

/* Under transfers; those that are started when the device is gone are refused, or fail. */
static int loses_the_device(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, 0, PAGE);
	sci_error_t error;
	struct dma d;

	start(&d, sd);
	CHECK_OK(copy(&d, t.bar, 0, DMA_BYTES, 0, WAIT));
	step_done(0);
	while ((error = copy(&d, t.bar, 0, DMA_BYTES, 0, WAIT)) == SCI_ERR_OK)
		;
	CHECK(error == SCI_ERR_TRANSFER_FAILED || error == SCI_ERR_SEGMENT_NOT_CONNECTED);
	while ((error = copy(&d, t.bar, 0, 8, 0, WAIT)) == SCI_ERR_TRANSFER_FAILED)
		;
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_CONNECTED);
	step_await(1);
	target_return(&t);
	t = target_take(sd, arg, 0, PAGE);
	CHECK(get32(t.ram) == 0);
	dma_fill(&d, 3, 57);
	CHECK_OK(copy(&d, t.bar, 0, PAGE, PAGE, WAIT));
	CHECK(same_bytes((const uint8_t *)(uintptr_t)t.ram, d.memory, PAGE));
	stop(&d);
	target_return(&t);
	api_end(sd);
	return 0;
}

static void a_device_that_goes_fails_its_transfers(void **state)
{
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	cluster_needs(NEEDS_ENGINE);
	for (unsigned k = 0; k < PLACES; k++) {
		pid_t a;

		steps_reset();
		a = cluster_fork(c, BORROWER, loses_the_device, places[k]);
		step_await(0);
		assert_int_equal(cluster_slot(c, places[k], false), 0);
		assert_int_equal(cluster_slot(c, places[k], true), 0);
		step_done(1);
		assert_int_equal(cluster_wait(a), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(memory_of_a_device_is_reached, audit),
		cmocka_unit_test_teardown(it_crosses_its_route_once, audit),
		cmocka_unit_test_teardown(registers_and_doorbells_are_not, audit),
		cmocka_unit_test_teardown(a_connection_ends_its_ranges, audit),
		cmocka_unit_test_teardown(a_device_that_goes_fails_its_transfers, audit),
	};
	int failed = cmocka_run_group_tests_name("with IOMMUs", tests, up_with, down);

	return failed + cmocka_run_group_tests_name("without", tests, up_without, down);
}
