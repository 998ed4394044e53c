/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces whose blocks are in files, with a store whose operations end when the test says so
 * (fake_store.h): which operations a command becomes, how it is completed, and which commands wait
 * for others.
 */
#include "rig.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "fake_store.h"

#define BLOCK 512u
#define BLOCKS 4096u
#define FUA (1u << 30)
#define MEDIA(name) ((unsigned)NVME_SCT_MEDIA << NVME_SCT_SHIFT | (unsigned)NVME_SC_##name)

static struct fake_store fake;

static struct rig *make(unsigned n_namespaces)
{
	struct sio_topo_device topo;
	struct rig *r;

	fake_store_init(&fake);
	rig_topo(&topo);
	topo.file = "/one";
	topo.n_namespaces = n_namespaces;
	for (unsigned i = 0; i < n_namespaces; i++)
		topo.namespaces[i] =
			(struct sio_topo_namespace){.size = BLOCKS * BLOCK, .block_size = BLOCK};
	if (n_namespaces) {
		topo.namespaces[0].file = "/one";
		topo.namespaces[n_namespaces - 1].file = "/two";
	}
	r = rig_new_on(&topo, &fake.store);
	rig_enable(r, 32, 32);
	rig_pair(r, 1, 64);
	return r;
}

static int setup(void **state)
{
	*state = make(0);
	return 0;
}

/* Three: in a file, in memory, in a file. */
static int setup_three(void **state)
{
	*state = make(3);
	return 0;
}

static int teardown(void **state)
{
	fake.hold = false;
	rig_free(*state);
	assert_int_equal(fake.n_begun, 0);
	for (unsigned i = 0; i < fake.n_files; i++)
		assert_null(fake.file[i].data);
	return 0;
}

static struct emu_nvme_sqe on(struct rig *r, uint8_t opcode, uint64_t lba, uint32_t blocks)
{
	return rig_rw(opcode, lba, blocks, rig_alloc(r, 8192), RIG_BASE);
}

static struct emu_nvme_sqe write_of(struct rig *r, uint64_t lba, uint32_t blocks, int byte)
{
	struct emu_nvme_sqe c = on(r, nvme_cmd_write, lba, blocks);

	memset(rig_at(r, le64toh(c.prp1)), byte, blocks * BLOCK);
	return c;
}

static unsigned write_byte(struct rig *r, uint64_t lba, int byte)
{
	return rig_do(r, 1, write_of(r, lba, 1, byte), NULL);
}

static uint8_t read_byte(struct rig *r, uint64_t lba)
{
	struct emu_nvme_sqe c = on(r, nvme_cmd_read, lba, 1);

	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	return *(uint8_t *)rig_at(r, le64toh(c.prp1));
}

static void begin(struct rig *r, struct emu_nvme_sqe c)
{
	rig_put(r, 1, c);
	rig_ring(r, 1);
	rig_run(r);
}

static void expect(const char *order)
{
	fake_store_expect(&fake, order);
}

static const void *identify(struct rig *r, uint32_t cns)
{
	uint64_t page = rig_alloc(r, 4096);
	struct emu_nvme_sqe c = {.opcode = nvme_admin_identify,
				 .nsid = htole32(cns == NVME_IDENTIFY_CNS_NS),
				 .cdw10 = htole32(cns),
				 .prp1 = htole64(page)};

	assert_int_equal(rig_do(r, 0, c, NULL), 0);
	return rig_at(r, page);
}

static unsigned cache(struct rig *r, uint8_t opcode, uint32_t value, uint32_t *result)
{
	return rig_do(r, 0,
		      (struct emu_nvme_sqe){.opcode = opcode,
					    .cdw10 = htole32(NVME_FEAT_FID_VOLATILE_WC),
					    .cdw11 = htole32(value)},
		      result);
}

static void blocks_are_in_the_file_6_9_6_15(void **state)
{
	struct rig *r = *state;

	assert_int_equal(write_byte(r, 7, 0x55), 0);
	assert_int_equal(fake.file[0].data[7 * BLOCK], 0x55);
	assert_int_equal(fake.file[0].data[8 * BLOCK - 1], 0x55);
	assert_int_equal(fake.file[0].data[8 * BLOCK], 0);
	fake.file[0].data[9 * BLOCK] = 0x66;
	assert_int_equal(read_byte(r, 9), 0x66);
	expect("wr");
	assert_int_equal(write_byte(r, BLOCKS, 1), RIG_SC(LBA_RANGE));
	expect("");
}

static void power_and_resets_leave_the_file(void **state)
{
	struct rig *r = *state;

	assert_int_equal(write_byte(r, 3, 0x11), 0);
	emu_nvme_model.reset(r->model, true);
	rig_enable(r, 32, 32);
	rig_pair(r, 1, 64);
	assert_int_equal(read_byte(r, 3), 0x11);
}

static void a_cache_is_told_of_5_15_5_21_1_6(void **state)
{
	struct rig *r = *state;
	const struct nvme_id_ctrl *c = identify(r, NVME_IDENTIFY_CNS_CTRL);
	uint32_t value = 0;

	assert_true(c->vwc & NVME_CTRL_VWC_PRESENT);
	assert_int_equal(cache(r, nvme_admin_get_features, 0, &value), 0);
	assert_int_equal(value, 1);
	assert_int_equal(write_byte(r, 0, 1), 0);
	expect("w");
	/* Off: what is in it is written, and then every write is. */
	assert_int_equal(cache(r, nvme_admin_set_features, 0, NULL), 0);
	expect("s");
	assert_int_equal(cache(r, nvme_admin_get_features, 0, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(write_byte(r, 0, 1), 0);
	expect("W");
	assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_write_zeroes, 0, 8), NULL), 0);
	expect("zs");
	rig_disable(r);
	rig_enable(r, 32, 32);
	assert_int_equal(cache(r, nvme_admin_get_features, 0, &value), 0);
	assert_int_equal(value, 1);
}

static void no_cache_without_a_file(void **state)
{
	struct rig *r = *state;
	const struct nvme_id_ctrl *c = identify(r, NVME_IDENTIFY_CNS_CTRL);

	assert_false(c->vwc & NVME_CTRL_VWC_PRESENT);
	assert_int_equal(cache(r, nvme_admin_get_features, 0, NULL), RIG_SC(INVALID_FIELD));
}

static void flush_and_fua_reach_the_disk_6_8_6_15(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c = write_of(r, 5, 1, 2);

	assert_int_equal(rig_do(r, 1, (struct emu_nvme_sqe){.nsid = htole32(1)}, NULL), 0);
	expect("s");
	c.cdw12 |= htole32(FUA);
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	expect("W");
	c = on(r, nvme_cmd_read, 5, 1);
	c.cdw12 |= htole32(FUA);
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	expect("sr");
	c = on(r, nvme_cmd_write_zeroes, 5, 1);
	c.cdw12 |= htole32(FUA);
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	expect("zs");
	assert_int_equal(read_byte(r, 5), 0);
}

static void flush_of_all_namespaces_6_8(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_do(r, 1, (struct emu_nvme_sqe){.nsid = htole32(2)}, NULL), 0);
	expect("");
	assert_int_equal(rig_do(r, 1, (struct emu_nvme_sqe){.nsid = htole32(NVME_NSID_ALL)}, NULL),
			 0);
	expect("ss");
	assert_int_equal(fake.file[0].n_sync, 1);
	assert_int_equal(fake.file[1].n_sync, 1);
}

static void shutdown_writes_first_7_6_2(void **state)
{
	struct rig *r = *state;

	fake.hold = true;
	begin(r, write_of(r, 0, 1, 1));
	rig_set_reg(r, NVME_REG_CC, rig_reg(r, NVME_REG_CC) | NVME_CC_SHN_NORMAL << 14);
	rig_run(r);
	assert_int_equal(NVME_CSTS_SHST(rig_reg(r, NVME_REG_CSTS)), NVME_CSTS_SHST_OCCUR);
	assert_true(fake_store_end(&fake));
	rig_run(r);
	assert_int_equal(NVME_CSTS_SHST(rig_reg(r, NVME_REG_CSTS)), NVME_CSTS_SHST_OCCUR);
	assert_true(fake_store_end(&fake));
	rig_run(r);
	assert_int_equal(NVME_CSTS_SHST(rig_reg(r, NVME_REG_CSTS)), NVME_CSTS_SHST_CMPLT);
	expect("ws");
}

static void deallocate_and_zeroes_make_holes_6_7_6_16(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c = {.opcode = nvme_cmd_dsm, .nsid = htole32(1)};
	struct nvme_dsm_range *range;

	memset(fake.file[0].data, 0xff, BLOCKS * BLOCK);
	assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_write_zeroes, 3, 2), NULL), 0);
	c.prp1 = htole64(rig_alloc(r, 4096));
	c.cdw10 = htole32(1);
	c.cdw11 = htole32(NVME_DSMGMT_AD);
	range = rig_at(r, le64toh(c.prp1));
	range[0] = (struct nvme_dsm_range){.slba = htole64(10), .nlb = htole32(1)};
	range[1] = (struct nvme_dsm_range){.slba = htole64(100), .nlb = htole32(3)};
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	expect("zzz");
	for (unsigned i = 0; i < BLOCKS; i++) {
		bool hole = i == 3 || i == 4 || i == 10 || (i >= 100 && i < 103);

		assert_int_equal(fake.file[0].data[i * BLOCK], hole ? 0 : 0xff);
	}
	range[1].slba = htole64(BLOCKS);
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(LBA_RANGE));
	expect("");
}

static void zeros_are_written_where_no_holes_are(void **state)
{
	struct rig *r = *state;

	memset(fake.file[0].data, 0xff, BLOCKS * BLOCK);
	fake.no_holes = true;
	/* 2 MiB: two pieces. */
	assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_write_zeroes, 0, BLOCKS), NULL), 0);
	expect("zww");
	for (unsigned i = 0; i < BLOCKS * BLOCK; i++)
		assert_int_equal(fake.file[0].data[i], 0);
	assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_write_zeroes, 0, 1), NULL), 0);
	expect("w");
}

static void compare_and_verify_read_6_6_6_14(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c = write_of(r, 4, 2, 0x33);

	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	c.opcode = nvme_cmd_compare;
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	fake.file[0].data[6 * BLOCK - 1] = 0;
	assert_int_equal(rig_do(r, 1, c, NULL), MEDIA(COMPARE_FAILED));
	expect("wrr");
	assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_verify, 0, BLOCKS), NULL), 0);
	expect("rr");
}

static void format_empties_the_files_5_23(void **state)
{
	struct rig *r = *state;

	memset(fake.file[0].data, 1, BLOCKS * BLOCK);
	memset(fake.file[1].data, 1, BLOCKS * BLOCK);
	assert_int_equal(
		rig_do(r, 0,
		       (struct emu_nvme_sqe){.opcode = nvme_admin_format_nvm, .nsid = htole32(3)},
		       NULL),
		0);
	assert_int_equal(fake.file[0].data[0], 1);
	assert_int_equal(fake.file[1].data[BLOCKS * BLOCK - 1], 0);
	expect("zs");
	assert_int_equal(rig_do(r, 0,
				(struct emu_nvme_sqe){.opcode = nvme_admin_format_nvm,
						      .nsid = htole32(NVME_NSID_ALL)},
				NULL),
			 0);
	assert_int_equal(fake.file[0].data[0], 0);
	expect("zszs");
}

static void short_operations_go_on(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c = write_of(r, 1, 8, 0x44);

	fake.most = 700;
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	for (unsigned i = 0; i < 8 * BLOCK; i++)
		assert_int_equal(fake.file[0].data[BLOCK + i], 0x44);
	memset(rig_at(r, le64toh(c.prp1)), 0, 8 * BLOCK);
	c.opcode = nvme_cmd_read;
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	for (unsigned i = 0; i < 8 * BLOCK; i++)
		assert_int_equal(((uint8_t *)rig_at(r, le64toh(c.prp1)))[i], 0x44);
}

static uint64_t media_errors(struct rig *r)
{
	uint64_t page = rig_alloc(r, 4096), value;
	struct emu_nvme_sqe c = {.opcode = nvme_admin_get_log_page,
				 .nsid = htole32(NVME_NSID_ALL),
				 .cdw10 = htole32(127u << 16 | NVME_LOG_LID_SMART),
				 .prp1 = htole64(page)};

	assert_int_equal(rig_do(r, 0, c, NULL), 0);
	memcpy(&value, ((struct nvme_smart_log *)rig_at(r, page))->media_errors, sizeof(value));
	return le64toh(value);
}

static void errors_of_the_file_4_6_1_2(void **state)
{
	static const struct {
		int error;
		unsigned write, read;
	} all[] = {{EIO, MEDIA(WRITE_FAULT), MEDIA(READ_ERROR)},
		   {EROFS, MEDIA(WRITE_FAULT), MEDIA(READ_ERROR)},
		   {ENOSPC, RIG_SC(CAP_EXCEEDED), RIG_SC(CAP_EXCEEDED)},
		   {EDQUOT, RIG_SC(CAP_EXCEEDED), RIG_SC(CAP_EXCEEDED)},
		   {EFBIG, RIG_SC(CAP_EXCEEDED), RIG_SC(CAP_EXCEEDED)}};
	struct rig *r = *state;

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		fake.fail = all[i].error;
		assert_int_equal(write_byte(r, 0, 1), all[i].write);
		assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_read, 0, 1), NULL), all[i].read);
		assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_verify, 0, 1), NULL), all[i].read);
		assert_int_equal(rig_do(r, 1, (struct emu_nvme_sqe){.nsid = htole32(1)}, NULL),
				 all[i].write);
		assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_write_zeroes, 0, 1), NULL),
				 all[i].write);
		fake.fail = 0;
		assert_int_equal(write_byte(r, 0, 1), 0);
	}
	assert_int_equal(media_errors(r), 10);
}

static void a_file_cut_short_is_out_of_range(void **state)
{
	struct rig *r = *state;

	fake.file[0].size = 10 * BLOCK + 100;
	assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_read, 9, 1), NULL), 0);
	assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_read, 10, 1), NULL), RIG_SC(LBA_RANGE));
	assert_int_equal(rig_do(r, 1, on(r, nvme_cmd_read, 11, 1), NULL), RIG_SC(LBA_RANGE));
	fake.file[0].size = BLOCKS * BLOCK;
}

static void nothing_waits_for_a_slow_file(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	fake.hold = true;
	for (unsigned i = 0; i < 40; i++)
		rig_put(r, 1, write_of(r, i, 1, (int)i));
	rig_ring(r, 1);
	rig_run(r);
	assert_int_equal(fake.n_begun, 40);
	assert_false(rig_take(r, 1, &cqe, true));
	/* The loop may sleep: what ends wakes it. */
	assert_true(emu_nvme_model.idle(r->model));
	identify(r, NVME_IDENTIFY_CNS_CTRL);
	for (unsigned i = 0; i < 40; i++) {
		assert_true(fake_store_end(&fake));
		assert_false(emu_nvme_model.idle(r->model));
		rig_run(r);
		assert_true(rig_take(r, 1, &cqe, true));
		assert_int_equal(le16toh(cqe.status) >> 1, 0);
		assert_true(emu_nvme_model.idle(r->model));
	}
}

static void more_than_it_holds_wait_in_their_queue(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;
	unsigned n = 0;

	for (unsigned q = 2; q < 6; q++)
		rig_pair(r, q, 64);
	fake.hold = true;
	for (unsigned q = 1; q < 6; q++) {
		for (unsigned i = 0; i < 60; i++)
			rig_put(r, q, write_of(r, q * 60 + i, 1, 1));
		rig_ring(r, q);
	}
	rig_run(r);
	assert_int_equal(fake.n_begun, 128);
	fake.hold = false;
	rig_run(r);
	for (unsigned q = 1; q < 6; q++)
		while (rig_take(r, q, &cqe, true)) {
			assert_int_equal(le16toh(cqe.status) >> 1, 0);
			n++;
		}
	assert_int_equal(n, 5 * 60);
}

static void a_block_has_one_writer_at_a_time(void **state)
{
	struct rig *r = *state;

	fake.hold = true;
	begin(r, write_of(r, 10, 4, 1));
	begin(r, write_of(r, 13, 1, 2));
	begin(r, on(r, nvme_cmd_read, 12, 1));
	begin(r, on(r, nvme_cmd_read, 20, 1));
	assert_int_equal(fake.n_begun, 2); /* the first, and the last */
	while (fake_store_end(&fake))
		rig_run(r);
	expect("wrwr");
	assert_int_equal(fake.file[0].data[13 * BLOCK], 2);
}

static void a_deleted_queue_aborts_and_keeps_order_5_6(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	rig_pair(r, 2, 64);
	fake.hold = true;
	begin(r, write_of(r, 1, 1, 1));
	assert_int_equal(
		rig_do(r, 0,
		       (struct emu_nvme_sqe){.opcode = nvme_admin_delete_sq, .cdw10 = htole32(1)},
		       NULL),
		0);
	assert_true(rig_take(r, 1, &cqe, true));
	assert_int_equal(le16toh(cqe.status) >> 1 & 0x7ff, NVME_SC_ABORT_QUEUE);
	/* The old write may still be on its way: the new one comes behind it. */
	rig_put(r, 2, write_of(r, 1, 1, 2));
	rig_ring(r, 2);
	rig_run(r);
	assert_int_equal(fake.n_begun, 1);
	while (fake_store_end(&fake))
		rig_run(r);
	assert_int_equal(fake.file[0].data[BLOCK], 2);
	assert_true(rig_take(r, 2, &cqe, true));
	assert_false(rig_take(r, 1, &cqe, true));
}

static uint16_t begin_one(struct rig *r, unsigned qid, struct emu_nvme_sqe c)
{
	uint16_t cid = rig_put(r, qid, c);

	rig_ring(r, qid);
	rig_run(r);
	return cid;
}

/* Return: whether Abort says that it ended the command. */
static bool was_aborted(struct rig *r, unsigned qid, uint16_t cid)
{
	uint32_t result = 0xdead;

	assert_int_equal(rig_do(r, 0,
				(struct emu_nvme_sqe){.opcode = nvme_admin_abort_cmd,
						      .cdw10 = htole32((uint32_t)cid << 16 | qid)},
				&result),
			 0);
	assert_true(result <= 1);
	return result == 0;
}

static void expect_end(struct rig *r, unsigned qid, uint16_t cid, unsigned status)
{
	struct emu_nvme_cqe cqe;

	assert_true(rig_take(r, qid, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), cid);
	assert_int_equal(le16toh(cqe.status) >> 1 & 0x7ff, status);
}

static void expect_silence(struct rig *r, unsigned qid)
{
	struct emu_nvme_cqe cqe;

	rig_run(r);
	assert_false(rig_take(r, qid, &cqe, true));
}

static void abort_ends_what_waits_for_others_5_1(void **state)
{
	struct rig *r = *state;
	uint16_t first, second;

	fake.hold = true;
	first = begin_one(r, 1, write_of(r, 1, 1, 1));
	second = begin_one(r, 1, write_of(r, 1, 1, 2));
	assert_true(was_aborted(r, 1, second));
	expect_end(r, 1, second, NVME_SC_ABORT_REQ);
	assert_int_equal(rig_counter(r, "commands_aborted"), 1);
	assert_false(was_aborted(r, 1, second));
	while (fake_store_end(&fake))
		rig_run(r);
	expect("w");
	expect_end(r, 1, first, 0);
	expect_silence(r, 1);
	assert_int_equal(fake.file[0].data[BLOCK], 1);
	assert_int_equal(fake.n_cancelled, 0);
}

static void abort_ends_what_the_store_has_begun_5_1(void **state)
{
	struct rig *r = *state;
	uint16_t cid, next;

	fake.hold = true;
	fake.most = BLOCK;
	cid = begin_one(r, 1, write_of(r, 1, 8, 1));
	assert_true(fake_store_end(&fake));
	rig_run(r);
	assert_true(was_aborted(r, 1, cid));
	assert_int_equal(fake.n_cancelled, 1);
	expect_end(r, 1, cid, NVME_SC_ABORT_REQ);
	/* What is under way is the last of it, and ends before later commands on its blocks. */
	next = begin_one(r, 1, write_of(r, 3, 1, 2));
	assert_int_equal(fake.n_begun, 1);
	while (fake_store_end(&fake))
		rig_run(r);
	expect("www");
	expect_end(r, 1, next, 0);
	expect_silence(r, 1);
	assert_int_equal(fake.file[0].data[2 * BLOCK], 1);
	assert_int_equal(fake.file[0].data[3 * BLOCK], 2);
	assert_int_equal(fake.file[0].data[4 * BLOCK], 0);
}

static void abort_lets_the_store_undo_5_1(void **state)
{
	struct rig *r = *state;
	uint16_t cid;

	fake.hold = fake.undo = true;
	cid = begin_one(r, 1, write_of(r, 1, 1, 1));
	assert_true(was_aborted(r, 1, cid));
	expect_end(r, 1, cid, NVME_SC_ABORT_REQ);
	assert_true(fake_store_end(&fake));
	expect_silence(r, 1);
	expect("");
	assert_int_equal(media_errors(r), 0);
	fake.hold = false;
	assert_int_equal(read_byte(r, 1), 0);
}

/* The host may use its memory for something else, once it has the completion. */
static void what_is_aborted_moves_no_data_5_1(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c = on(r, nvme_cmd_read, 1, 1);
	uint8_t *memory = rig_at(r, le64toh(c.prp1));
	uint16_t cid;

	fake.hold = true;
	cid = begin_one(r, 1, c);
	assert_true(was_aborted(r, 1, cid));
	expect_end(r, 1, cid, NVME_SC_ABORT_REQ);
	memset(memory, 0x77, BLOCK);
	assert_true(fake_store_end(&fake));
	expect_silence(r, 1);
	expect("r");
	assert_int_equal(memory[0], 0x77);
}

static void abort_says_what_it_did_not_find_5_1(void **state)
{
	struct rig *r = *state;
	uint16_t first, second, format;

	rig_pair(r, 2, 2); /* room for one completion */
	fake.hold = true;
	first = begin_one(r, 2, on(r, nvme_cmd_read, 1, 1));
	second = begin_one(r, 2, on(r, nvme_cmd_read, 2, 1));
	assert_false(was_aborted(r, 1, first));
	assert_false(was_aborted(r, 2, (uint16_t)(second + 1)));
	/* It has ended, and waits for room; one that is under way would have to. */
	assert_true(fake_store_end(&fake));
	rig_run(r);
	assert_false(was_aborted(r, 2, second));
	assert_true(fake_store_end(&fake));
	rig_run(r);
	assert_false(was_aborted(r, 2, second));
	expect_end(r, 2, first, 0);
	rig_settle(r);
	expect_end(r, 2, second, 0);
	/* A Format that has begun goes on. */
	format = begin_one(
		r, 0, (struct emu_nvme_sqe){.opcode = nvme_admin_format_nvm, .nsid = htole32(1)});
	assert_false(was_aborted(r, 0, format));
	assert_true(fake_store_end(&fake));
	rig_run(r);
	assert_true(fake_store_end(&fake));
	rig_run(r);
	expect_end(r, 0, format, 0);
	assert_int_equal(fake.n_cancelled, 0);
}

static void a_reset_forgets_and_keeps_order(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c;
	uint64_t old;

	fake.hold = true;
	c = on(r, nvme_cmd_read, 1, 1);
	old = le64toh(c.prp1);
	memset(rig_at(r, old), 0x77, BLOCK);
	begin(r, c);
	begin(r, write_of(r, 2, 1, 1));
	begin(r, write_of(r, 2, 1, 3)); /* not begun: never will be */
	rig_disable(r);
	rig_enable(r, 32, 32);
	rig_pair(r, 1, 64);
	begin(r, write_of(r, 2, 1, 2));
	assert_int_equal(fake.n_begun, 2);
	while (fake_store_end(&fake))
		rig_run(r);
	expect("rww");
	assert_int_equal(fake.file[0].data[2 * BLOCK], 2);
	/* Memory of the time before the reset is not written any more. */
	assert_int_equal(*(uint8_t *)rig_at(r, old), 0x77);
}

static void a_drive_goes_with_work_under_way(void **state)
{
	struct rig *r = *state;

	fake.hold = true;
	begin(r, write_of(r, 2, 1, 1));
	begin(r, write_of(r, 2, 1, 2));
	begin(r, on(r, nvme_cmd_read, 9, 1)); /* teardown() frees all */
}

/* Another drive's poll of the store found it. */
static void a_drive_goes_with_work_that_has_ended(void **state)
{
	fake.hold = true;
	begin(*state, write_of(*state, 2, 1, 1));
	assert_true(fake_store_end(&fake));
}

static void functions_share_the_file(void **state)
{
	struct rig *r = *state, *vf = rig_new_function(r);

	rig_enable(vf, 32, 32);
	rig_pair(vf, 1, 64);
	assert_int_equal(write_byte(vf, 30, 9), 0);
	assert_int_equal(read_byte(r, 30), 9);
	fake.hold = true;
	begin(vf, write_of(vf, 31, 1, 1));
	rig_free(vf);
	begin(r, write_of(r, 31, 1, 2));
	assert_int_equal(fake.n_begun, 1);
	while (fake_store_end(&fake))
		rig_run(r);
	assert_int_equal(fake.file[0].data[31 * BLOCK], 2);
}

static void interrupts_follow_completions_7_5(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c = rig_create_cq(r, 2, 64);

	c.cdw11 = htole32(3u << 16 | 3); /* vector 3 */
	assert_int_equal(rig_do(r, 0, c, NULL), 0);
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 2, 64, 2), NULL), 0);
	fake.hold = true;
	rig_put(r, 2, write_of(r, 0, 1, 1));
	rig_ring(r, 2);
	rig_run(r);
	assert_int_equal(r->raised[3], 0);
	assert_true(fake_store_end(&fake));
	rig_run(r);
	assert_int_equal(r->raised[3], 1);
}

static void a_file_that_cannot_be_opened(void **state)
{
	struct sio_topo_device topo;
	struct emu_dev_config config;
	struct emu_dev dev = {.store = &fake.store};
	struct sio_err err;
	void *model = NULL;

	(void)state;
	fake_store_init(&fake);
	rig_topo(&topo);
	topo.n_namespaces = 2;
	topo.namespaces[0] =
		(struct sio_topo_namespace){.size = 8192, .block_size = 512, .file = "/good"};
	topo.namespaces[1] = topo.namespaces[0];
	topo.namespaces[1].file = "/bad";
	assert_int_equal(emu_nvme_model.create(&dev, &topo, &config, &model, &err), -EISDIR);
	assert_non_null(strstr(err.text, "/bad"));
	assert_null(fake.file[0].data);
	dev.store = NULL;
	assert_int_equal(emu_nvme_model.create(&dev, &topo, &config, &model, &err), -ENOTSUP);
}

#define filed(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		filed(blocks_are_in_the_file_6_9_6_15),
		filed(power_and_resets_leave_the_file),
		filed(a_cache_is_told_of_5_15_5_21_1_6),
		rig_test(no_cache_without_a_file),
		filed(flush_and_fua_reach_the_disk_6_8_6_15),
		cmocka_unit_test_setup_teardown(flush_of_all_namespaces_6_8, setup_three, teardown),
		filed(shutdown_writes_first_7_6_2),
		filed(deallocate_and_zeroes_make_holes_6_7_6_16),
		filed(zeros_are_written_where_no_holes_are),
		filed(compare_and_verify_read_6_6_6_14),
		cmocka_unit_test_setup_teardown(format_empties_the_files_5_23, setup_three,
						teardown),
		filed(short_operations_go_on),
		filed(errors_of_the_file_4_6_1_2),
		filed(a_file_cut_short_is_out_of_range),
		filed(nothing_waits_for_a_slow_file),
		filed(more_than_it_holds_wait_in_their_queue),
		filed(a_block_has_one_writer_at_a_time),
		filed(a_deleted_queue_aborts_and_keeps_order_5_6),
		filed(abort_ends_what_waits_for_others_5_1),
		filed(abort_ends_what_the_store_has_begun_5_1),
		filed(abort_lets_the_store_undo_5_1),
		filed(what_is_aborted_moves_no_data_5_1),
		filed(abort_says_what_it_did_not_find_5_1),
		filed(a_reset_forgets_and_keeps_order),
		filed(a_drive_goes_with_work_under_way),
		filed(a_drive_goes_with_work_that_has_ended),
		filed(functions_share_the_file),
		filed(interrupts_follow_completions_7_5),
		cmocka_unit_test(a_file_that_cannot_be_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
