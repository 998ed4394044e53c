/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive under the driver's controller half (drivers/nvme-user/controller.c, admin.c): the API
 * calls that these make, over a struct drive, and the driver's view of it.
 */
#ifndef TESTS_NVME_COMPARE_BENCH_H
#define TESTS_NVME_COMPARE_BENCH_H

#include "controller.h"
#include "drive.h"

#define PAGES 512u /* scratch pages, "p0" to "p511" */
#define PAGE 4096u
#define ADMIN_ENTRIES 32u

struct bench_queue {
	uint64_t sq, cq; /* bus addresses */
	uint32_t sq_entries, cq_entries, tail, head, phase;
};

extern struct bench {
	struct drive *drive;
	struct sio_nvme_device device;
	struct sio_nvme_ctrl ctrl;
	struct bench_queue queue[DRIVE_PAIRS + 2]; /* of I/O, by id */
	uint16_t cid;
	bool open;
} bench;

/* Memory for the drive: pages of the scratch area, and more for queues. */
uint64_t bench_page(unsigned number);
uint8_t *bench_at(uint64_t addr); /* NULL: no memory of ours */
uint64_t bench_alloc(size_t bytes);
/* A drive as after power-on: function reset, our memory zero; then the driver opens it. */
int bench_begin(void);
void bench_end(void);

#endif
