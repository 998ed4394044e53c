/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "smartio/acceldev.h"
#include "smartio/memdev.h"
#include "smartiod/device/devclass.h"

#define NVME 0x010802
#define REG SMARTIOD_BAR_REGISTERS
#define BELL SMARTIOD_BAR_DOORBELLS
#define MEM SMARTIOD_BAR_MEMORY

struct run {
	uint64_t offset, length;
	enum smartiod_bar_use use;
};

static void runs_by_class_and_interrupt_table(void **state)
{
	static const struct {
		uint32_t class_code;
		uint64_t size;
		uint32_t msix_count, msix_bar, msix_offset, bar;
		unsigned n;
		struct run run[3];
	} table[] = {
		{NVME, 0x4000, 0, 0, 0, 0, 2, {{0, 0x1000, REG}, {0x1000, 0x1000, BELL}}},
		/* The interrupt table behind the doorbells, over them, and in another BAR. */
		{NVME, 0x4000, 32, 0, 0x2000, 0, 2, {{0, 0x1000, REG}, {0x1000, 0x1000, BELL}}},
		{NVME, 0x4000, 8, 0, 0x1800, 0, 1, {{0, 0x1000, REG}}},
		{NVME, 0x4000, 8, 0, 0x800, 0, 1, {{0x1000, 0x1000, BELL}}},
		{NVME, 0x4000, 8, 4, 0, 0, 2, {{0, 0x1000, REG}, {0x1000, 0x1000, BELL}}},
		/* A BAR too small for doorbells; that of a memory buffer; one that is not known. */
		{NVME, 0x1000, 0, 0, 0, 0, 1, {{0, 0x1000, REG}}},
		{NVME, 0x4000, 0, 0, 0, 2, 1, {{0, 0x4000, SMARTIOD_BAR_HOLDER}}},
		{NVME, 0x4000, 8, 2, 0, 2, 1, {{0x1000, 0x3000, SMARTIOD_BAR_HOLDER}}},
		{NVME, 0x4000, 0, 0, 0, 4, 0, {{0}}},
		/* Unknown class: all registers, around the interrupt table. */
		{0x030000, 0x8000, 0, 0, 0, 0, 1, {{0, 0x8000, REG}}},
		{0x030000, 0x8000, 257, 0, 0x2000, 0, 2, {{0, 0x2000, REG}, {0x4000, 0x4000, REG}}},
		{0x030000, 0x8000, 1, 0, 0, 0, 1, {{0x1000, 0x7000, REG}}},
		{0x030000, 0x8000, 1, 0, 0x7ff0, 0, 1, {{0, 0x7000, REG}}},
		{0x030000, 0x800, 0, 0, 0, 0, 0, {{0}}},
		{0x030000, 0x8000, 0, 0, 0, 6, 0, {{0}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct smartiod_bar_run got[SMARTIOD_BAR_RUNS];
		struct sio_evt_device d = {.class_code = table[i].class_code,
					   .msix_count = table[i].msix_count,
					   .msix_bar = table[i].msix_bar,
					   .msix_offset = table[i].msix_offset};

		d.bar_size[0] = d.bar_size[2] = d.bar_size[4] = table[i].size;
		assert_int_equal(smartiod_devclass_runs(&d, table[i].bar, got), table[i].n);
		for (unsigned k = 0; k < table[i].n; k++) {
			assert_int_equal(got[k].offset, table[i].run[k].offset);
			assert_int_equal(got[k].length, table[i].run[k].length);
			assert_int_equal(got[k].use, table[i].run[k].use);
		}
	}
}

/* Another device of that class is one that nothing is known of. */
static void the_memory_device_is_known_by_its_ids(void **state)
{
	struct smartiod_bar_run got[SMARTIOD_BAR_RUNS];
	struct sio_evt_device d = {.class_code = SIO_MEMDEV_CLASS,
				   .vendor = SIO_MEMDEV_VENDOR,
				   .device = SIO_MEMDEV_DEVICE,
				   .msix_count = 1,
				   .msix_offset = 0x2000,
				   .bar_size = {0x4000, 0, 0x100000}};

	(void)state;
	assert_int_equal(smartiod_devclass_runs(&d, SIO_MEMDEV_BAR_REGISTERS, got), 2);
	assert_int_equal(got[0].use, REG);
	assert_int_equal(got[1].use, BELL);
	assert_int_equal(got[1].offset, SIO_MEMDEV_DOORBELL);
	assert_int_equal(got[1].length, 0x1000);
	assert_int_equal(smartiod_devclass_runs(&d, SIO_MEMDEV_BAR_RAM, got), 1);
	assert_int_equal(got[0].use, MEM);
	assert_int_equal(got[0].length, 0x100000);
	d.device++;
	assert_int_equal(smartiod_devclass_runs(&d, SIO_MEMDEV_BAR_RAM, got), 1);
	assert_int_equal(got[0].use, REG);
}

static void the_accelerator_is_known_by_its_ids(void **state)
{
	struct smartiod_bar_run got[SMARTIOD_BAR_RUNS];
	struct sio_evt_device d = {.class_code = SIO_ACCEL_CLASS,
				   .vendor = SIO_ACCEL_VENDOR,
				   .device = SIO_ACCEL_DEVICE,
				   .msix_count = 16,
				   .msix_offset = 0x2000,
				   .bar_size = {0x4000, 0, 0x10000000}};

	(void)state;
	assert_int_equal(smartiod_devclass_runs(&d, SIO_ACCEL_BAR_REGISTERS, got), 2);
	assert_int_equal(got[0].use, REG);
	assert_int_equal(got[1].use, BELL);
	assert_int_equal(got[1].offset, SIO_ACCEL_DOORBELL(0));
	assert_int_equal(got[1].length, 0x1000);
	assert_int_equal(smartiod_devclass_runs(&d, SIO_ACCEL_BAR_MEMORY, got), 1);
	assert_int_equal(got[0].use, MEM);
	assert_int_equal(got[0].length, 0x10000000);
	d.vendor++;
	assert_int_equal(smartiod_devclass_runs(&d, SIO_ACCEL_BAR_MEMORY, got), 1);
	assert_int_equal(got[0].use, REG);
}

/* For a kernel's driver: one run, whatever the pages are for, up to the interrupt table. */
static void the_whole_of_a_bar(void **state)
{
	struct sio_evt_device d = {.class_code = NVME,
				   .msix_count = 65,
				   .msix_offset = 0x2010,
				   .bar_size = {0x4000, 0x800, 0x8000}};
	struct smartiod_bar_run got;

	(void)state;
	assert_true(smartiod_devclass_whole(&d, 0, &got));
	assert_int_equal(got.offset, 0);
	assert_int_equal(got.length, 0x2000);
	assert_int_equal(got.use, REG);
	assert_true(smartiod_devclass_whole(&d, 2, &got));
	assert_int_equal(got.length, 0x8000);
	assert_false(smartiod_devclass_whole(&d, 1, &got));
	d.msix_offset = 0x800;
	assert_false(smartiod_devclass_whole(&d, 0, &got));
	d.msix_count = 0;
	assert_true(smartiod_devclass_whole(&d, 0, &got));
	assert_int_equal(got.length, 0x4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(runs_by_class_and_interrupt_table),
					   cmocka_unit_test(the_whole_of_a_bar),
					   cmocka_unit_test(the_accelerator_is_known_by_its_ids),
					   cmocka_unit_test(the_memory_device_is_known_by_its_ids)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
