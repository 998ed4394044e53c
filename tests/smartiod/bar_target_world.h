/* SPDX-License-Identifier: BSD-2-Clause */
/* A real host with two devices, and a program that has borrowed both: one may reach the other. */
#ifndef SMARTIO_TESTS_BAR_TARGET_WORLD_H
#define SMARTIO_TESTS_BAR_TARGET_WORLD_H

#include "device_calls.h"
#include "fake_device.h"
#include "library.h"
#include "smartiod/restart/restore.h"

#define DRIVE 0x400001
#define TARGET 0x400002
#define CMB_BAR 2
#define CMB 0x10000
#define PAGE 4096

struct fixture {
	struct world *w;
	struct fake_device drive, target;
	struct world_client *c; /* has both, and the registers of the target */
	struct call_borrow on, of;
	uint32_t regs, regs_map, access[4], cmb;
};

/* Libraries hear what came to them: w->before_step. */
int setup(void **state);
int setup_without_iommu(void **state);
/* The target is a memory device. */
int setup_memory(void **state);
/* The target is of a class that nobody knows, and its registers are nobody's yet. */
int setup_strange(void **state);
/* It was borrowed before the drive. */
int setup_target_first(void **state);
int teardown(void **state);
/* All are back afterwards. */
void restart(struct fixture *f);
/* A range of a BAR of the target, for the drive. Return: as device_calls.h. */
int map(struct fixture *f, uint32_t bar, uint64_t offset, uint64_t bytes, uint32_t *ret);
int unmap(struct fixture *f, uint32_t dma);
/* How many mappings the drive has that lead to something, or (@cut) nowhere. */
unsigned reach(const struct fixture *f, bool cut);
/* Views of pages from @offset of the target's BAR 0, or of its memory: */
unsigned views(const struct fixture *f, uint64_t offset);
#define MEMORY (FAKE_CMB_ADDRESS - FAKE_BAR_ADDRESS)
/* How often the program was told that @connection is lost. */
unsigned lost(struct fixture *f, uint32_t connection);
void reset_target(struct fixture *f);

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
