/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host and a machine room for one NVMe model: memory at one bus address, register and doorbell
 * pages, DMA calls that are counted, written down, and made to fail at will.
 */
#ifndef TESTS_NVME_MODEL_RIG_H
#define TESTS_NVME_MODEL_RIG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <nvme/types.h>

#include "emu/devices/model.h"
#include "emu/devices/nvme/entry.h"

#define RIG_BASE 0x7000000000u /* where the memory lies on the bus */
#define RIG_SIZE (8u << 20)
#define RIG_BLOCKS 4096u /* of 512 bytes, unless a test asks for others */
#define RIG_PAIRS 31u
#define RIG_ENTRIES 1024u
#define RIG_VECTORS 8u
#define RIG_CALLS 64u
#define RIG_VIEW_BYTES 4096u

struct rig_call {
	bool is_write;
	uint64_t addr;
	size_t len;
};

struct rig_queue {
	uint64_t sq, cq; /* bus addresses */
	uint32_t sq_size, cq_size;
	uint32_t tail, head;
	uint16_t phase, sq_head;
};

struct rig {
	struct emu_dev dev;
	struct sio_topo_device topo;
	struct emu_dev_config config;
	void *model;
	uint8_t *mem;
	uint32_t *view, *mirror, *doorbells;
	uint8_t *cmb;	   /* of a drive that has one */
	uint64_t cmb_base; /* where the test told the drive that it lies; 0: nowhere */
	uint64_t now, next_page;
	unsigned n_reads, n_writes;
	unsigned fail_read, fail_write; /* the call that fails, counted from 1; 0: none */
	unsigned n_calls;
	struct rig_call call[RIG_CALLS];	/* the first ones since n_calls was made 0 */
	unsigned raised[RIG_VECTORS], n_raised; /* interrupts */
	unsigned n_logs;
	char log[256]; /* the last */
	uint16_t cid;
	struct rig_queue q[RIG_PAIRS + 1];
};

/* A drive as @topo says (NULL: the usual one), powered on, not enabled. */
struct rig *rig_new(const struct sio_topo_device *topo);
/* The same, with files that @store has. */
struct rig *rig_new_on(const struct sio_topo_device *topo, struct emu_store *store);
/* A virtual function of @physical, which must outlive it. */
struct rig *rig_new_function(struct rig *physical);
void rig_free(struct rig *r);
void rig_topo(struct sio_topo_device *topo);

/* Page-aligned memory that is never given back; and where the test finds it. */
uint64_t rig_alloc(struct rig *r, size_t bytes);
void *rig_at(struct rig *r, uint64_t addr);

uint32_t rig_reg(const struct rig *r, unsigned offset);
uint64_t rig_reg64(const struct rig *r, unsigned offset);
void rig_set_reg(struct rig *r, unsigned offset, uint32_t value);
/* Step until nothing is done. Return: work done. */
unsigned rig_run(struct rig *r);
/* Step so often that every register and doorbell was looked at. */
void rig_settle(struct rig *r);

/* Write AQA, ASQ, ACQ and CC as a driver does; does not step. */
void rig_configure(struct rig *r, uint32_t sq_entries, uint32_t cq_entries);
void rig_enable(struct rig *r, uint32_t sq_entries, uint32_t cq_entries);
void rig_disable(struct rig *r);

/* Put an entry into a submission queue; its cid, unless it has one. Return: the cid. */
uint16_t rig_put(struct rig *r, unsigned qid, struct emu_nvme_sqe sqe);
void rig_ring(struct rig *r, unsigned qid);
/* Take a completion, and ring the head's doorbell if @ring. False: there is none. */
bool rig_take(struct rig *r, unsigned qid, struct emu_nvme_cqe *cqe, bool ring);
/* Submit, run, take: the status; the completion must be the command's. @result may be NULL. */
unsigned rig_do(struct rig *r, unsigned qid, struct emu_nvme_sqe sqe, uint32_t *result);

struct emu_nvme_sqe rig_create_cq(struct rig *r, unsigned qid, uint32_t entries);
struct emu_nvme_sqe rig_create_sq(struct rig *r, unsigned qid, uint32_t entries, unsigned cq);
/* A pair, created by commands that must succeed. */
void rig_pair(struct rig *r, unsigned qid, uint32_t entries);
struct emu_nvme_sqe rig_rw(uint8_t opcode, uint64_t lba, uint32_t blocks, uint64_t prp1,
			   uint64_t prp2);
uint64_t rig_counter(struct rig *r, const char *name);

/* A status as the completion shows it, without More and Do Not Retry. */
#define RIG_SC(name) ((unsigned)NVME_SC_##name)
#define RIG_SC1(name) ((unsigned)NVME_SCT_CMD_SPECIFIC << NVME_SCT_SHIFT | (unsigned)NVME_SC_##name)

/* The usual drive, enabled with 32 admin entries: cmocka fixtures. */
int rig_setup(void **state);
int rig_teardown(void **state);

#define rig_test(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

#endif
