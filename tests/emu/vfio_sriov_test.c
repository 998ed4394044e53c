/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SR-IOV extended capability in a configuration space (PCI Express Base 6.0, section 9.3.3):
 * what a host reads, and what it may write when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <linux/pci_regs.h>

#include "vfio/config.h"

#define AT 0x100u /* the only extended capability, so the list begins with it */
#define ON (PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE)

static const struct sio_vfio_config_identity id = {
	.vendor = 0x1b36,
	.device = 0x10,
	.bar_size = {0x4000, 0, 1 << 20},
	.prefetchable = {false, false, true},
	.functions = {.total = 7, .offset = 1, .stride = 1, .device = 0x11},
};
static struct sio_vfio_config c;

static int setup(void **state)
{
	(void)state;
	sio_vfio_config_init(&c, &id);
	return 0;
}

static uint32_t get(unsigned offset, unsigned width)
{
	uint8_t bytes[4] = {0};

	sio_vfio_config_read(&c, AT + offset, bytes, width);
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static void put(unsigned offset, unsigned width, uint32_t value)
{
	const uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
				  (uint8_t)(value >> 24)};

	assert_false(sio_vfio_config_write(&c, AT + offset, bytes, width));
}

static void none_without_functions(void **state)
{
	struct sio_vfio_config_identity other = id;

	(void)state;
	other.functions.total = 0;
	sio_vfio_config_init(&c, &other);
	assert_int_equal(get(0, 4), 0);
	put(PCI_SRIOV_CTRL, 2, ON);
	put(PCI_SRIOV_NUM_VF, 2, 1);
	assert_int_equal(get(PCI_SRIOV_CTRL, 2), 0);
	assert_int_equal(sio_vfio_config_functions(&c), 0);
}

static void s9_3_3_what_only_can_be_read(void **state)
{
	static const struct {
		unsigned offset, width;
		uint32_t value;
	} registers[] = {
		{0, 4, PCI_EXT_CAP_ID_SRIOV | 1 << 16}, /* version 1, no next one */
		{PCI_SRIOV_CAP, 4, 0},			/* no migration */
		{PCI_SRIOV_STATUS, 2, 0},
		{PCI_SRIOV_INITIAL_VF, 2, 7},
		{PCI_SRIOV_TOTAL_VF, 2, 7},
		{PCI_SRIOV_FUNC_LINK, 1, 0}, /* of itself */
		{PCI_SRIOV_VF_OFFSET, 2, 1},
		{PCI_SRIOV_VF_STRIDE, 2, 1},
		{PCI_SRIOV_VF_DID, 2, 0x11},
		{PCI_SRIOV_SUP_PGSIZE, 4, 0x553},
		{PCI_SRIOV_VFM, 4, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		put(registers[i].offset, registers[i].width, UINT32_MAX);
		assert_int_equal(get(registers[i].offset, registers[i].width), registers[i].value);
	}
}

static void s9_3_3_3_control_has_enable_memory_and_ari(void **state)
{
	(void)state;
	assert_int_equal(get(PCI_SRIOV_CTRL, 2), 0);
	put(PCI_SRIOV_CTRL, 2, 0xffff);
	assert_int_equal(get(PCI_SRIOV_CTRL, 2), ON | PCI_SRIOV_CTRL_ARI);
}

static void s9_3_3_7_num_vfs_is_written_while_vf_enable_is_clear(void **state)
{
	(void)state;
	put(PCI_SRIOV_NUM_VF, 2, 3);
	assert_int_equal(sio_vfio_config_functions(&c), 0);
	put(PCI_SRIOV_CTRL, 2, PCI_SRIOV_CTRL_VFE);
	assert_int_equal(sio_vfio_config_functions(&c), 0);
	put(PCI_SRIOV_CTRL, 2, ON);
	assert_int_equal(sio_vfio_config_functions(&c), 3);
	put(PCI_SRIOV_NUM_VF, 2, 5);
	assert_int_equal(get(PCI_SRIOV_NUM_VF, 2), 3);
	put(PCI_SRIOV_CTRL, 2, PCI_SRIOV_CTRL_MSE);
	assert_int_equal(sio_vfio_config_functions(&c), 0);
	put(PCI_SRIOV_NUM_VF, 2, 8);
	assert_int_equal(get(PCI_SRIOV_NUM_VF, 2), 3);
	put(PCI_SRIOV_NUM_VF, 2, 7);
	put(PCI_SRIOV_CTRL, 2, ON);
	assert_int_equal(sio_vfio_config_functions(&c), 7);
}

static void s9_3_3_13_system_page_size_is_one_that_is_supported(void **state)
{
	(void)state;
	put(PCI_SRIOV_SYS_PGSIZE, 4, 1 << 4);
	assert_int_equal(get(PCI_SRIOV_SYS_PGSIZE, 4), 1 << 4);
	put(PCI_SRIOV_SYS_PGSIZE, 4, 1 << 2); /* 16 KiB */
	assert_int_equal(get(PCI_SRIOV_SYS_PGSIZE, 4), 1 << 4);
	put(PCI_SRIOV_SYS_PGSIZE, 4, 3);
	assert_int_equal(get(PCI_SRIOV_SYS_PGSIZE, 4), 1 << 4);
	put(PCI_SRIOV_SYS_PGSIZE, 4, 0);
	assert_int_equal(get(PCI_SRIOV_SYS_PGSIZE, 4), 1 << 4);
	put(PCI_SRIOV_CTRL, 2, ON);
	put(PCI_SRIOV_SYS_PGSIZE, 4, 1);
	assert_int_equal(get(PCI_SRIOV_SYS_PGSIZE, 4), 1 << 4);
}

/* As a kernel finds out how large they are: of one function, and no less than a page. */
static void s9_3_3_14_bars_have_the_size_of_one_function(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++)
		put(PCI_SRIOV_BAR + 4 * i, 4, UINT32_MAX);
	assert_int_equal(get(PCI_SRIOV_BAR, 4), 0xffffc000 | PCI_BASE_ADDRESS_MEM_TYPE_64);
	assert_int_equal(get(PCI_SRIOV_BAR + 4, 4), UINT32_MAX);
	assert_int_equal(get(PCI_SRIOV_BAR + 8, 4),
			 0xfff00000 | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	assert_int_equal(get(PCI_SRIOV_BAR + 16, 4), 0);
	put(PCI_SRIOV_SYS_PGSIZE, 4, 1 << 4);
	assert_int_equal(get(PCI_SRIOV_BAR, 4), 0xffff0000 | PCI_BASE_ADDRESS_MEM_TYPE_64);
	put(PCI_SRIOV_BAR, 4, 0xfedcba98);
	assert_int_equal(get(PCI_SRIOV_BAR, 4), 0xfedc0000 | PCI_BASE_ADDRESS_MEM_TYPE_64);
	put(PCI_SRIOV_SYS_PGSIZE, 4, 1);
	put(PCI_SRIOV_BAR, 4, 0xfedcba98);
	assert_int_equal(get(PCI_SRIOV_BAR, 4), 0xfedc8000 | PCI_BASE_ADDRESS_MEM_TYPE_64);
}

static void s9_2_2_3_a_reset_clears_vf_enable(void **state)
{
	(void)state;
	put(PCI_SRIOV_SYS_PGSIZE, 4, 1 << 4);
	put(PCI_SRIOV_NUM_VF, 2, 2);
	put(PCI_SRIOV_CTRL, 2, ON);
	sio_vfio_config_reset(&c);
	assert_int_equal(get(PCI_SRIOV_CTRL, 2), 0);
	assert_int_equal(get(PCI_SRIOV_NUM_VF, 2), 0);
	assert_int_equal(get(PCI_SRIOV_SYS_PGSIZE, 4), 1);
	assert_int_equal(sio_vfio_config_functions(&c), 0);
	put(PCI_SRIOV_BAR, 4, UINT32_MAX);
	assert_int_equal(get(PCI_SRIOV_BAR, 4), 0xffffc000 | PCI_BASE_ADDRESS_MEM_TYPE_64);
}

#define space_test(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		space_test(none_without_functions),
		space_test(s9_3_3_what_only_can_be_read),
		space_test(s9_3_3_3_control_has_enable_memory_and_ari),
		space_test(s9_3_3_7_num_vfs_is_written_while_vf_enable_is_clear),
		space_test(s9_3_3_13_system_page_size_is_one_that_is_supported),
		space_test(s9_3_3_14_bars_have_the_size_of_one_function),
		space_test(s9_2_2_3_a_reset_clears_vf_enable),
	};

	return cmocka_run_group_tests_name("SR-IOV capability", tests, NULL, NULL);
}
