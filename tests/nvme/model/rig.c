/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CC_ENABLE 0x00460001u
#define RIG_RUNAWAY 10000000u /* calls: the model does not come to an end */

static struct rig *to_rig(struct emu_dev *d)
{
	return (struct rig *)d;
}

static bool in_memory(uint64_t addr, size_t len)
{
	return addr >= RIG_BASE && len <= RIG_SIZE && addr - RIG_BASE <= RIG_SIZE - len;
}

static void note(struct rig *r, bool is_write, uint64_t addr, size_t len)
{
	if (r->n_calls < RIG_CALLS)
		r->call[r->n_calls] = (struct rig_call){is_write, addr, len};
	assert_true(++r->n_calls < RIG_RUNAWAY);
}

static int dma_read(struct emu_dev *d, uint64_t addr, void *buf, size_t len)
{
	struct rig *r = to_rig(d);

	note(r, false, addr, len);
	if (++r->n_reads == r->fail_read || !in_memory(addr, len))
		return -EFAULT;
	memcpy(buf, r->mem + (addr - RIG_BASE), len);
	return 0;
}

static int dma_write(struct emu_dev *d, uint64_t addr, const void *buf, size_t len)
{
	struct rig *r = to_rig(d);

	note(r, true, addr, len);
	if (++r->n_writes == r->fail_write || !in_memory(addr, len))
		return -EFAULT;
	memcpy(r->mem + (addr - RIG_BASE), buf, len);
	return 0;
}

static uint64_t dev_now(struct emu_dev *d)
{
	return to_rig(d)->now;
}

static void dev_log(struct emu_dev *d, const char *text)
{
	struct rig *r = to_rig(d);

	snprintf(r->log, sizeof(r->log), "%s", text);
	r->n_logs++;
}

static void dev_interrupt(struct emu_dev *d, unsigned vector)
{
	struct rig *r = to_rig(d);

	assert_true(vector < r->topo.vectors);
	if (vector < RIG_VECTORS)
		r->raised[vector]++;
	r->n_raised++;
}

static volatile void *dev_view(struct emu_dev *d, unsigned index)
{
	struct rig *r = to_rig(d);

	if (index >= 2)
		return r->cmb;
	return index == 0 ? (volatile void *)r->view : r->doorbells;
}

static volatile void *dev_mirror(struct emu_dev *d, unsigned index)
{
	return index == 0 ? to_rig(d)->mirror : NULL;
}

void rig_topo(struct sio_topo_device *topo)
{
	*topo = (struct sio_topo_device){
		.name = "nvme0",
		.type = "nvme",
		.size = RIG_BLOCKS * 512u,
		.block_size = 512,
		.queue_pairs = RIG_PAIRS,
		.queue_entries = RIG_ENTRIES,
		.vectors = RIG_VECTORS,
		.serial = "SN-0001",
	};
}

static struct rig *make(const struct sio_topo_device *topo, void *physical, struct emu_store *store)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct sio_err err;

	assert_non_null(r);
	rig_topo(&r->topo);
	if (topo)
		r->topo = *topo;
	r->dev = (struct emu_dev){.read = dma_read,
				  .write = dma_write,
				  .interrupt = dev_interrupt,
				  .now = dev_now,
				  .log = dev_log,
				  .view = dev_view,
				  .mirror = dev_mirror,
				  .physical = physical,
				  .store = store};
	r->now = 1000000000;
	assert_int_equal(emu_nvme_model.create(&r->dev, &r->topo, &r->config, &r->model, &err), 0);
	r->mem = calloc(1, RIG_SIZE);
	r->view = calloc(1, RIG_VIEW_BYTES);
	r->mirror = calloc(1, r->config.pages[0].length);
	r->doorbells = calloc(1, r->config.pages[1].length);
	r->cmb = calloc(1, r->topo.cmb + 1);
	assert_true(r->mem && r->view && r->mirror && r->doorbells && r->cmb);
	emu_nvme_model.reset(r->model, true);
	return r;
}

struct rig *rig_new(const struct sio_topo_device *topo)
{
	return make(topo, NULL, NULL);
}

struct rig *rig_new_on(const struct sio_topo_device *topo, struct emu_store *store)
{
	return make(topo, NULL, store);
}

struct rig *rig_new_function(struct rig *physical)
{
	return make(&physical->topo, physical->model, physical->dev.store);
}

void rig_free(struct rig *r)
{
	if (!r)
		return;
	emu_nvme_model.destroy(r->model);
	free(r->cmb);
	free(r->doorbells);
	free(r->mirror);
	free(r->view);
	free(r->mem);
	free(r);
}

uint64_t rig_alloc(struct rig *r, size_t bytes)
{
	uint64_t at = r->next_page;

	r->next_page += (bytes + 4095) / 4096 * 4096;
	assert_true(r->next_page <= RIG_SIZE);
	return RIG_BASE + at;
}

void *rig_at(struct rig *r, uint64_t addr)
{
	if (r->cmb_base && addr - r->cmb_base < r->topo.cmb)
		return r->cmb + (addr - r->cmb_base);
	assert_true(in_memory(addr, 1));
	return r->mem + (addr - RIG_BASE);
}

uint32_t rig_reg(const struct rig *r, unsigned offset)
{
	return le32toh(r->view[offset / 4]);
}

uint64_t rig_reg64(const struct rig *r, unsigned offset)
{
	return (uint64_t)rig_reg(r, offset + 4) << 32 | rig_reg(r, offset);
}

void rig_set_reg(struct rig *r, unsigned offset, uint32_t value)
{
	r->view[offset / 4] = value;
}

unsigned rig_run(struct rig *r)
{
	unsigned done = 0, now, steps = 0;

	do {
		now = emu_nvme_model.step(r->model, 16);
		done += now;
		assert_true(++steps < 100000);
	} while (now > 0);
	return done;
}

void rig_settle(struct rig *r)
{
	/* 16 doorbells each 8 idle steps. */
	for (unsigned i = 0; i < (1024 / 16 + 1) * 8; i++)
		rig_run(r);
}

static void set_reg64(struct rig *r, unsigned offset, uint64_t value)
{
	rig_set_reg(r, offset, (uint32_t)value);
	rig_set_reg(r, offset + 4, (uint32_t)(value >> 32));
}

static void queue_memory(struct rig *r, unsigned qid, uint32_t sq_entries, uint32_t cq_entries)
{
	struct rig_queue *q = &r->q[qid];

	if (cq_entries) {
		q->cq = rig_alloc(r, cq_entries * sizeof(struct emu_nvme_cqe));
		memset(rig_at(r, q->cq), 0, cq_entries * sizeof(struct emu_nvme_cqe));
		q->cq_size = cq_entries;
		q->head = 0;
		q->phase = 1;
	}
	if (sq_entries) {
		q->sq = rig_alloc(r, sq_entries * sizeof(struct emu_nvme_sqe));
		q->sq_size = sq_entries;
		q->tail = q->sq_head = 0;
	}
}

void rig_configure(struct rig *r, uint32_t sq_entries, uint32_t cq_entries)
{
	queue_memory(r, 0, sq_entries, cq_entries);
	rig_set_reg(r, NVME_REG_AQA, (cq_entries - 1) << 16 | (sq_entries - 1));
	set_reg64(r, NVME_REG_ASQ, r->q[0].sq);
	set_reg64(r, NVME_REG_ACQ, r->q[0].cq);
	rig_set_reg(r, NVME_REG_CC, CC_ENABLE);
}

void rig_enable(struct rig *r, uint32_t sq_entries, uint32_t cq_entries)
{
	rig_configure(r, sq_entries, cq_entries);
	rig_run(r);
	assert_int_equal(rig_reg(r, NVME_REG_CSTS), 1);
}

void rig_disable(struct rig *r)
{
	rig_set_reg(r, NVME_REG_CC, 0);
	rig_run(r);
	assert_int_equal(rig_reg(r, NVME_REG_CSTS), 0);
}

uint16_t rig_put(struct rig *r, unsigned qid, struct emu_nvme_sqe sqe)
{
	struct rig_queue *q = &r->q[qid];
	struct emu_nvme_sqe *slot = (struct emu_nvme_sqe *)rig_at(r, q->sq) + q->tail;

	if (sqe.cid == 0)
		sqe.cid = htole16(++r->cid ? r->cid : ++r->cid);
	*slot = sqe;
	q->tail = (q->tail + 1) % q->sq_size;
	return le16toh(sqe.cid);
}

void rig_ring(struct rig *r, unsigned qid)
{
	r->doorbells[2 * qid] = r->q[qid].tail;
}

bool rig_take(struct rig *r, unsigned qid, struct emu_nvme_cqe *cqe, bool ring)
{
	struct rig_queue *q = &r->q[qid];
	const struct emu_nvme_cqe *slot = (struct emu_nvme_cqe *)rig_at(r, q->cq) + q->head;

	if ((le16toh(slot->status) & 1) != q->phase)
		return false;
	*cqe = *slot;
	if (++q->head == q->cq_size) {
		q->head = 0;
		q->phase ^= 1;
	}
	if (le16toh(cqe->sq_id) <= RIG_PAIRS)
		r->q[le16toh(cqe->sq_id)].sq_head = le16toh(cqe->sq_head);
	if (ring)
		r->doorbells[2 * qid + 1] = q->head;
	return true;
}

unsigned rig_do(struct rig *r, unsigned qid, struct emu_nvme_sqe sqe, uint32_t *result)
{
	uint16_t cid = rig_put(r, qid, sqe);
	struct emu_nvme_cqe cqe;
	unsigned status;

	rig_ring(r, qid);
	rig_run(r);
	assert_true(rig_take(r, qid, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), cid);
	assert_int_equal(le16toh(cqe.sq_id), qid);
	assert_int_equal(le16toh(cqe.sq_head), r->q[qid].tail);
	if (result)
		*result = le32toh(cqe.result);
	status = le16toh(cqe.status) >> 1;
	/* Every failure is in the error log, and says so. */
	assert_int_equal(!!(status & NVME_SC_MORE), status != 0);
	return status & ~(unsigned)(NVME_SC_MORE | NVME_SC_DNR);
}

struct emu_nvme_sqe rig_create_cq(struct rig *r, unsigned qid, uint32_t entries)
{
	if (qid != 0 && qid <= RIG_PAIRS)
		queue_memory(r, qid, 0, entries);
	return (struct emu_nvme_sqe){.opcode = nvme_admin_create_cq,
				     .prp1 = htole64(qid <= RIG_PAIRS ? r->q[qid].cq : RIG_BASE),
				     .cdw10 = htole32((entries - 1) << 16 | qid),
				     .cdw11 = htole32(1)};
}

struct emu_nvme_sqe rig_create_sq(struct rig *r, unsigned qid, uint32_t entries, unsigned cq)
{
	if (qid != 0 && qid <= RIG_PAIRS)
		queue_memory(r, qid, entries, 0);
	return (struct emu_nvme_sqe){.opcode = nvme_admin_create_sq,
				     .prp1 = htole64(qid <= RIG_PAIRS ? r->q[qid].sq : RIG_BASE),
				     .cdw10 = htole32((entries - 1) << 16 | qid),
				     .cdw11 = htole32(cq << 16 | 1)};
}

void rig_pair(struct rig *r, unsigned qid, uint32_t entries)
{
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, qid, entries), NULL), 0);
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, qid, entries, qid), NULL), 0);
}

struct emu_nvme_sqe rig_rw(uint8_t opcode, uint64_t lba, uint32_t blocks, uint64_t prp1,
			   uint64_t prp2)
{
	return (struct emu_nvme_sqe){.opcode = opcode,
				     .nsid = htole32(1),
				     .prp1 = htole64(prp1),
				     .prp2 = htole64(prp2),
				     .cdw10 = htole32((uint32_t)lba),
				     .cdw11 = htole32((uint32_t)(lba >> 32)),
				     .cdw12 = htole32(blocks - 1)};
}

uint64_t rig_counter(struct rig *r, const char *name)
{
	char names[64][32];
	uint64_t values[64];
	unsigned n = emu_nvme_model.counters(r->model, names, values, 64);

	for (unsigned i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return values[i];
	fail_msg("no counter %s", name);
	return 0;
}

int rig_setup(void **state)
{
	struct rig *r = rig_new(NULL);

	rig_enable(r, 32, 32);
	*state = r;
	return 0;
}

int rig_teardown(void **state)
{
	rig_free(*state);
	return 0;
}
