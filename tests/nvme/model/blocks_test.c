/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compare, Write Zeroes, Verify, Dataset Management (NVMe 1.4, sections 6.6, 6.16, 6.14, 6.7),
 * Format (5.23), and the log that tells what commands do (5.14.1.5).
 */
#include "rig.h"

#include <endian.h>
#include <string.h>

#define BLOCK 512u

static struct rig *rig_of(void **state)
{
	struct rig *r = *state;

	rig_pair(r, 1, 8);
	return r;
}

static uint8_t content(uint64_t lba, unsigned i)
{
	return (uint8_t)(lba * 37 + i * 11 + 1);
}

/* Each block its own content, none zero. */
static void fill(struct rig *r, uint64_t lba, uint32_t n)
{
	uint64_t data = rig_alloc(r, BLOCK);
	uint8_t *p = rig_at(r, data);

	for (uint32_t k = 0; k < n; k++) {
		for (unsigned i = 0; i < BLOCK; i++)
			p[i] = content(lba + k, i) | 1;
		assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, lba + k, 1, data, 0), NULL),
				 0);
	}
}

/* Blocks from @first up to @end are zeros, the others of the drive's first @n are as filled. */
static void check(struct rig *r, uint32_t n, uint32_t first, uint32_t end)
{
	uint64_t data = rig_alloc(r, BLOCK);
	const uint8_t *p = rig_at(r, data);

	for (uint32_t lba = 0; lba < n; lba++) {
		assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, lba, 1, data, 0), NULL), 0);
		for (unsigned i = 0; i < BLOCK; i++)
			assert_int_equal(p[i], lba >= first && lba < end ? 0 : content(lba, i) | 1);
	}
}

/* Section 6.6 */
static void compare_finds_one_byte_6_6(void **state)
{
	struct rig *r = rig_of(state);
	uint64_t data = rig_alloc(r, 16 * 4096), list = rig_alloc(r, 4096);
	uint8_t *p = rig_at(r, data);
	uint64_t *entry = rig_at(r, list);
	struct emu_nvme_sqe c = rig_rw(nvme_cmd_compare, 8, 128, data, list);

	for (unsigned i = 0; i < 15; i++)
		entry[i] = htole64(data + (i + 1) * 4096);
	for (unsigned i = 0; i < 128 * BLOCK; i++)
		p[i] = (uint8_t)(i * 3 + i / 4096);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 8, 128, data, list), NULL), 0);
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	for (unsigned at = 0; at < 128 * BLOCK; at += 4095) {
		p[at] ^= 0x40;
		assert_int_equal(rig_do(r, 1, c, NULL),
				 NVME_SCT_MEDIA << NVME_SCT_SHIFT | NVME_SC_COMPARE_FAILED);
		p[at] ^= 0x40;
		assert_int_equal(rig_do(r, 1, c, NULL), 0);
	}
	r->fail_read = r->n_reads + 3; /* the entry, the list, data */
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(DATA_XFER_ERROR));
	assert_true(rig_counter(r, "commands_compare") > 32);
}

/* Sections 6.16 and 6.14 */
static void zeroes_and_nothing_else_6_16(void **state)
{
	struct rig *r = rig_of(state);

	fill(r, 0, 64);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_verify, 0, 64, 0, 0), NULL), 0);
	check(r, 64, 0, 0);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write_zeroes, 5, 1, 0, 0), NULL), 0);
	check(r, 64, 5, 6);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write_zeroes, 5, 38, 0, 0), NULL), 0);
	check(r, 64, 5, 43);
	assert_int_equal(rig_counter(r, "commands_write_zeroes"), 2);
	assert_int_equal(rig_counter(r, "commands_verify"), 1);
}

static unsigned bulk_calls;
static uint64_t bulk_bytes;

static void bulk_zero(struct emu_dev *d, void *data, uint64_t size)
{
	(void)d;
	bulk_calls++;
	bulk_bytes += size;
	memset(data, 0, size);
}

/* Much of it by whole pages at once; no block beside them is touched. */
static void zeroes_of_many_pages_6_16(void **state)
{
	struct rig *r = rig_of(state);

	r->dev.bulk_zero = bulk_zero;
	bulk_calls = 0;
	bulk_bytes = 0;
	fill(r, 0, RIG_BLOCKS);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write_zeroes, 3, 4001, 0, 0), NULL), 0);
	assert_int_equal(bulk_calls, 1);
	assert_int_equal(bulk_bytes, (4004 / 8 - 1) * 4096);
	check(r, RIG_BLOCKS, 3, 4004);
}

static void limits_6_6_6_16(void **state)
{
	static const uint8_t op[] = {nvme_cmd_compare, nvme_cmd_write_zeroes, nvme_cmd_verify};
	struct rig *r = rig_of(state);
	uint64_t data = rig_alloc(r, 4096);

	for (unsigned k = 0; k < sizeof(op); k++) {
		struct emu_nvme_sqe c = rig_rw(op[k], RIG_BLOCKS - 1, 1, data, 0);

		assert_int_equal(rig_do(r, 1, c, NULL), 0);
		assert_int_equal(rig_do(r, 1, rig_rw(op[k], RIG_BLOCKS - 1, 2, data, 0), NULL),
				 RIG_SC(LBA_RANGE));
		assert_int_equal(rig_do(r, 1, rig_rw(op[k], UINT64_MAX, 2, data, 0), NULL),
				 RIG_SC(LBA_RANGE));
		c.nsid = htole32(2);
		assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_NS));
		c.nsid = htole32(NVME_NSID_ALL);
		assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_FIELD));
	}
	/* Only what moves data has a largest transfer. */
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_compare, 0, 2049, data, 0), NULL),
			 RIG_SC(INVALID_FIELD));
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write_zeroes, 0, RIG_BLOCKS, 0, 0), NULL), 0);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_verify, 0, RIG_BLOCKS, 0, 0), NULL), 0);
}

static unsigned deallocate(struct rig *r, uint64_t data, unsigned n, uint32_t attributes)
{
	struct emu_nvme_sqe c = {.opcode = nvme_cmd_dsm,
				 .nsid = htole32(1),
				 .prp1 = htole64(data),
				 .cdw10 = htole32(n - 1),
				 .cdw11 = htole32(attributes)};

	return rig_do(r, 1, c, NULL);
}

/* Section 6.7 */
static void ranges_are_deallocated_6_7(void **state)
{
	struct rig *r = rig_of(state);
	uint64_t data = rig_alloc(r, 4096);
	struct nvme_dsm_range *range = rig_at(r, data);

	fill(r, 0, 64);
	for (unsigned i = 0; i < 256; i++)
		range[i].slba = htole64(i % 64); /* of no blocks */
	assert_int_equal(deallocate(r, data, 256, 4), 0);
	check(r, 64, 0, 0);
	range[0] = (struct nvme_dsm_range){.slba = htole64(10), .nlb = htole32(3)};
	range[1] = (struct nvme_dsm_range){.slba = htole64(13), .nlb = htole32(1)};
	range[2] = (struct nvme_dsm_range){.slba = htole64(14), .nlb = htole32(2)};
	/* Hints alone. */
	assert_int_equal(deallocate(r, data, 3, 3), 0);
	check(r, 64, 0, 0);
	assert_int_equal(deallocate(r, data, 2, 4), 0);
	check(r, 64, 10, 14);
	assert_int_equal(deallocate(r, data, 3, 7), 0);
	check(r, 64, 10, 16);
	/* One that is wrong, and none is done. */
	range[0] = (struct nvme_dsm_range){.slba = htole64(40), .nlb = htole32(3)};
	range[2] = (struct nvme_dsm_range){.slba = htole64(RIG_BLOCKS - 1), .nlb = htole32(2)};
	assert_int_equal(deallocate(r, data, 3, 4), RIG_SC(LBA_RANGE));
	range[2] = (struct nvme_dsm_range){.slba = htole64(UINT64_MAX), .nlb = htole32(1)};
	assert_int_equal(deallocate(r, data, 3, 4), RIG_SC(LBA_RANGE));
	check(r, 64, 10, 16);
	r->fail_read = r->n_reads + 2;
	assert_int_equal(deallocate(r, data, 1, 4), RIG_SC(DATA_XFER_ERROR));
	assert_int_equal(deallocate(r, data + 2, 1, 4), RIG_SC(PRP_INVALID_OFFSET));
	check(r, 64, 10, 16);
	assert_int_equal(rig_counter(r, "commands_deallocate"), 3);
}

/* As much as the drive has, and the commands behind it are done in their order, each once. */
static void overlapping_ranges_end_6_7(void **state)
{
	struct rig *r = rig_of(state);
	uint64_t data = rig_alloc(r, 4096), in = rig_alloc(r, 8 * 512);
	struct nvme_dsm_range *range = rig_at(r, data);
	struct emu_nvme_sqe c = {.opcode = nvme_cmd_dsm,
				 .nsid = htole32(1),
				 .prp1 = htole64(data),
				 .cdw10 = htole32(255),
				 .cdw11 = htole32(4)};
	struct emu_nvme_cqe cqe;
	uint16_t cid[6];

	r->dev.bulk_zero = bulk_zero;
	bulk_calls = 0;
	fill(r, 0, 8);
	for (unsigned i = 0; i < 256; i++)
		range[i].nlb = htole32(RIG_BLOCKS / 2);
	for (unsigned i = 0; i < 6; i++) {
		cid[i] = rig_put(r, 1, i % 2 ? rig_rw(nvme_cmd_read, i, 1, in + i * 512, 0) : c);
	}
	rig_ring(r, 1);
	rig_run(r);
	for (unsigned i = 0; i < 6; i++) {
		assert_true(rig_take(r, 1, &cqe, true));
		assert_int_equal(le16toh(cqe.cid), cid[i]);
		assert_int_equal(le16toh(cqe.status) >> 1, 0);
	}
	assert_false(rig_take(r, 1, &cqe, true));
	assert_int_equal(rig_counter(r, "commands_deallocate"), 3);
	assert_int_equal(bulk_calls, 3 * 2);
	check(r, 8, 0, 8);
}

static unsigned format(struct rig *r, uint32_t nsid, uint32_t cdw10)
{
	struct emu_nvme_sqe c = {
		.opcode = nvme_admin_format_nvm, .nsid = htole32(nsid), .cdw10 = htole32(cdw10)};

	return rig_do(r, 0, c, NULL);
}

static uint64_t blocks(struct rig *r, unsigned *flbas)
{
	uint64_t data = rig_alloc(r, 4096);
	const struct nvme_id_ns *ns = rig_at(r, data);
	struct emu_nvme_sqe c = {
		.opcode = nvme_admin_identify, .nsid = htole32(1), .prp1 = htole64(data)};

	assert_int_equal(rig_do(r, 0, c, NULL), 0);
	*flbas = ns->flbas;
	return le64toh(ns->nsze);
}

/* Section 5.23 */
static void format_makes_other_blocks_of_zeros_5_23(void **state)
{
	struct rig *r = rig_of(state);
	uint64_t data = rig_alloc(r, 4096);
	const uint8_t *p = rig_at(r, data);
	unsigned flbas;

	fill(r, 0, 64);
	assert_int_equal(format(r, 1, 2), RIG_SC1(INVALID_FORMAT));
	assert_int_equal(format(r, 1, 15), RIG_SC1(INVALID_FORMAT));
	assert_int_equal(format(r, 1, 1 << 5), RIG_SC1(INVALID_FORMAT));
	assert_int_equal(format(r, 1, 2 << 9), RIG_SC(INVALID_FIELD));
	assert_int_equal(format(r, 0, 0), RIG_SC(INVALID_NS));
	assert_int_equal(format(r, 2, 0), RIG_SC(INVALID_NS));
	check(r, 64, 0, 0);
	assert_int_equal(rig_counter(r, "formats"), 0);

	assert_int_equal(format(r, 1, 1), 0);
	assert_int_equal(blocks(r, &flbas), RIG_BLOCKS / 8);
	assert_int_equal(flbas, 1);
	for (unsigned lba = 0; lba < RIG_BLOCKS / 8; lba++) {
		memset(rig_at(r, data), 0xff, 4096);
		assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, lba, 1, data, 0), NULL), 0);
		for (unsigned i = 0; i < 4096; i++)
			assert_int_equal(p[i], 0);
	}
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, RIG_BLOCKS / 8, 1, data, 0), NULL),
			 RIG_SC(LBA_RANGE));
	/* It is the namespace's, which a reset leaves as it is. */
	rig_disable(r);
	rig_enable(r, 32, 32);
	assert_int_equal(blocks(r, &flbas), RIG_BLOCKS / 8);
	assert_int_equal(format(r, NVME_NSID_ALL, 1 << 9), 0);
	assert_int_equal(blocks(r, &flbas), RIG_BLOCKS);
	assert_int_equal(flbas, 0);
}

/* Section 5.14.1.5: what is said to be there is, and nothing else. */
static void effects_are_of_the_commands_that_there_are_5_14_1_5(void **state)
{
	struct rig *r = rig_of(state);
	uint64_t data = rig_alloc(r, 4096), more = rig_alloc(r, 4096);
	const struct nvme_cmd_effects_log *e = rig_at(r, data);
	struct emu_nvme_sqe c = {.opcode = nvme_admin_get_log_page,
				 .prp1 = htole64(data),
				 .cdw10 = htole32(1023u << 16 | NVME_LOG_LID_CMD_EFFECTS)};

	assert_int_equal(rig_do(r, 0, c, NULL), 0);
	for (unsigned op = 0; op < 256; op++) {
		struct emu_nvme_sqe any = {.opcode = (uint8_t)op, .nsid = htole32(1)};

		any.prp1 = htole64(more);
		assert_int_equal(rig_do(r, 1, any, NULL) == RIG_SC(INVALID_OPCODE),
				 !(le32toh(e->iocs[op]) & NVME_CMD_EFFECTS_CSUPP));
		if (op == nvme_admin_async_event)
			continue;      /* is not answered */
		any.nsid = htole32(7); /* what would do something refuses that */
		assert_int_equal(rig_do(r, 0, any, NULL) == RIG_SC(INVALID_OPCODE),
				 !(le32toh(e->acs[op]) & NVME_CMD_EFFECTS_CSUPP));
	}
	assert_true(le32toh(e->acs[nvme_admin_async_event]) & NVME_CMD_EFFECTS_CSUPP);
	assert_true(le32toh(e->iocs[nvme_cmd_dsm]) & NVME_CMD_EFFECTS_LBCC);
	assert_false(le32toh(e->iocs[nvme_cmd_read]) & NVME_CMD_EFFECTS_LBCC);
	assert_true(le32toh(e->acs[nvme_admin_format_nvm]) & NVME_CMD_EFFECTS_NCC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(compare_finds_one_byte_6_6),
		rig_test(zeroes_and_nothing_else_6_16),
		rig_test(zeroes_of_many_pages_6_16),
		rig_test(limits_6_6_6_16),
		rig_test(ranges_are_deallocated_6_7),
		rig_test(overlapping_ranges_end_6_7),
		rig_test(format_makes_other_blocks_of_zeros_5_23),
		rig_test(effects_are_of_the_commands_that_there_are_5_14_1_5),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
