/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive that sequences of commands are run on: our model in this process, or QEMU's NVMe device,
 * which nobody here wrote, registers by hand or on a real kernel through smartio.ko. Memory lies at
 * the same bus addresses for the first two, so that results are equal to the byte.
 */
#ifndef TESTS_NVME_COMPARE_DRIVE_H
#define TESTS_NVME_COMPARE_DRIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRIVE_MEMORY 0x1000000u /* bus address of the memory */
#define DRIVE_BYTES (8u << 20)
#define DRIVE_PAIRS 4u
#define DRIVE_VECTORS 5u
#define DRIVE_ENTRIES 2048u
#define DRIVE_MEDIA (16u << 20) /* of 512 byte blocks */
#define DRIVE_CMB (1u << 20)	/* controller memory buffer, in BAR 2 */
#define DRIVE_SERIAL "COMPARE-1"
#define DRIVE_FUNCTIONS 3u /* virtual ones, of a drive that has them, which has no CMB */

struct drive {
	uint8_t *memory;				    /* as this process sees it */
	uint32_t (*read)(struct drive *d, uint32_t offset); /* registers; 4 bytes */
	void (*write)(struct drive *d, uint32_t offset, uint32_t value);
	void (*write64)(struct drive *d, uint32_t offset, uint64_t value);
	void (*turn)(struct drive *d); /* let the drive do something */
	void (*function_reset)(struct drive *d);
	/* NULL: it has no virtual functions; else the first @n are enabled, by SR-IOV. */
	void (*functions)(struct drive *d, unsigned n);
	/* Bit per vector that was raised since the last call. */
	uint32_t (*interrupts)(struct drive *d);
	void (*close)(struct drive *d);
};

/* NULL: stderr says why not. */
struct drive *drive_model(bool functions);
struct drive *drive_qemu(const char *program, bool functions);

/* Of the command line, where @more may be missing; NULL: it is not what drive_usage says. */
struct drive *drive_open(const char *kind, const char *more);
extern const char drive_usage[];

#endif
