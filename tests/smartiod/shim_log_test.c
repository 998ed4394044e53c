/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA faults as the IOMMU drivers print them, and what only looks like one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "smartiod/port_shim/port_shim.h"

static void faults_of_both_kernels(void **state)
{
	static const struct {
		const char *line;
		uint32_t bdf, access;
		uint64_t address;
	} row[] = {
		{"DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr 0xdead0000 [fault "
		 "reason 0x05] PTE Write access is not set",
		 0x0100, SIO_FAULT_WRITE, 0xdead0000},
		{"DMAR: [DMA Read NO_PASID] Request device [00:1f.7] fault addr 0xffff123456789000 "
		 "[fault reason 0x06] PTE Read access is not set",
		 0x00ff, SIO_FAULT_READ, 0xffff123456789000},
		{"DMAR: [DMA Write PASID 1] Request device [ff:02.1] fault addr 0x0 [fault reason "
		 "0x71] SM: Present bit in first-level paging entry is clear",
		 0xff11, SIO_FAULT_WRITE, 0},
		{"smartio 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0013 "
		 "address=0x13370000 flags=0x0020]",
		 0x0100, SIO_FAULT_WRITE, 0x13370000},
		{"smartio 0001:ff:1f.7: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0000 "
		 "address=0xfffffffdf8000000 flags=0x0000]",
		 0xffff, SIO_FAULT_READ, 0xfffffffdf8000000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint32_t bdf = 1, access = 0;
		uint64_t address = 1;

		assert_true(port_shim_parse_fault(row[i].line, &bdf, &address, &access));
		assert_int_equal(bdf, row[i].bdf);
		assert_int_equal(access, row[i].access);
		assert_int_equal(address, row[i].address);
	}
}

static void other_lines(void **state)
{
	static const char *const line[] = {
		"",
		"DMAR: [DMA ",
		"DMAR: IOMMU enabled",
		"DMAR: DRHD: handling fault status reg 2",
		"DMAR: [INTR-REMAP] Request device [01:00.0] fault index 0x18 [fault reason 0x22]",
		"DMAR: [DMA Write NO_PASID] Request device [01:00.0]",
		"DMAR: [DMA Write NO_PASID] Request device [01:20.0] fault addr 0x1000 [",
		"DMAR: [DMA Write NO_PASID] Request device [01:00.8] fault addr 0x1000 [",
		"DMAR: [DMA Write NO_PASID] Request device [100:00.0] fault addr 0x1000 [",
		"DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr x [",
		"AMD-Vi: Interrupt remapping enabled",
		"AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:01:00.0 domain=0x0013 "
		"address=0x1000 flags=0x0020]",
		": AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0013 address=0x1000 flags=0x0020]",
		"smartio 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0013",
		"smartio 0000:01:20.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0013 "
		"address=0x1000 flags=0x0020]",
	};
	uint32_t bdf, access;
	uint64_t address;

	(void)state;
	for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++)
		assert_false(port_shim_parse_fault(line[i], &bdf, &address, &access));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_of_both_kernels),
		cmocka_unit_test(other_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
