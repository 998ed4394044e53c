/* SPDX-License-Identifier: BSD-2-Clause */
/* Read, Write, Flush: fields, limits, and what goes over the bus for each. */
#include "rig.h"

#include <endian.h>
#include <string.h>

static void data_come_back_6_9_6_15(void **state)
{
	struct rig *r = *state;
	uint64_t out = rig_alloc(r, 8192), in = rig_alloc(r, 8192);
	uint8_t *p = rig_at(r, out);

	rig_pair(r, 1, 8);
	for (unsigned i = 0; i < 8192; i++)
		p[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 100, 16, out, out + 4096), NULL), 0);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 100, 16, in, in + 4096), NULL), 0);
	assert_memory_equal(p, rig_at(r, in), 8192);
	/* One block of it, to a place inside a page. */
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 103, 1, in + 1028, 0), NULL), 0);
	assert_memory_equal(p + 3 * 512, rig_at(r, in + 1028), 512);
	assert_int_equal(rig_counter(r, "commands_read"), 2);
	assert_int_equal(rig_counter(r, "commands_write"), 1);
	assert_int_equal(rig_counter(r, "bytes_read"), 8192 + 512);
	assert_int_equal(rig_counter(r, "bytes_written"), 8192);
}

static void an_aligned_read_costs_three_transfers_6_9(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);

	rig_pair(r, 1, 8);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t sqe = r->q[1].sq + r->q[1].tail * 64, cqe = r->q[1].cq + r->q[1].head * 16;

		r->n_calls = 0;
		assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, i * 8, 8, data, 0), NULL), 0);
		assert_int_equal(r->n_calls, 3);
		assert_false(r->call[0].is_write);
		assert_int_equal(r->call[0].addr, sqe);
		assert_int_equal(r->call[0].len, 64);
		assert_true(r->call[1].is_write);
		assert_int_equal(r->call[1].addr, data);
		assert_int_equal(r->call[1].len, 4096);
		assert_true(r->call[2].is_write);
		assert_int_equal(r->call[2].addr, cqe);
		assert_int_equal(r->call[2].len, 16);
	}
}

static void ranges_and_namespaces_6_1_6_9_6_15(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);
	struct emu_nvme_sqe c;

	rig_pair(r, 1, 8);
	for (unsigned k = 0; k < 2; k++) {
		uint8_t op = k ? nvme_cmd_write : nvme_cmd_read;

		assert_int_equal(rig_do(r, 1, rig_rw(op, RIG_BLOCKS - 8, 8, data, 0), NULL), 0);
		assert_int_equal(rig_do(r, 1, rig_rw(op, RIG_BLOCKS - 7, 8, data, 0), NULL),
				 RIG_SC(LBA_RANGE));
		assert_int_equal(rig_do(r, 1, rig_rw(op, RIG_BLOCKS, 1, data, 0), NULL),
				 RIG_SC(LBA_RANGE));
		assert_int_equal(rig_do(r, 1, rig_rw(op, UINT64_MAX, 1, data, 0), NULL),
				 RIG_SC(LBA_RANGE));
		assert_int_equal(rig_do(r, 1, rig_rw(op, UINT64_MAX - 3, 8, data, 0), NULL),
				 RIG_SC(LBA_RANGE));
		/* 2^55 blocks of 512 bytes are 2^64 bytes. */
		assert_int_equal(rig_do(r, 1, rig_rw(op, 1ull << 55, 1, data, 0), NULL),
				 RIG_SC(LBA_RANGE));
		c = rig_rw(op, 0, 8, data, 0);
		for (unsigned n = 0; n < 4; n++) {
			static const uint32_t nsid[] = {0, 2, 0xfffffffe, 0xffffffff};

			c.nsid = htole32(nsid[n]);
			assert_int_equal(rig_do(r, 1, c, NULL),
					 n == 3 ? RIG_SC(INVALID_FIELD) : RIG_SC(INVALID_NS));
		}
		/* Past the largest transfer, though inside the namespace. */
		assert_int_equal(rig_do(r, 1, rig_rw(op, 0, 2049, data, 0), NULL),
				 RIG_SC(INVALID_FIELD));
	}
}

static void flags_and_opcodes_4_2(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);
	struct emu_nvme_sqe c = rig_rw(nvme_cmd_write, 0, 8, data, 0);

	rig_pair(r, 1, 8);
	for (unsigned bit = 0; bit < 8; bit++) {
		/* Fused operations; with SGLs its PRP entries are a wrong one. */
		unsigned want = bit < 2	  ? RIG_SC(INVALID_FIELD)
				: bit < 6 ? 0
					  : RIG_SC(SGL_INVALID_DATA);

		c.flags = (uint8_t)(1 << bit);
		assert_int_equal(rig_do(r, 1, c, NULL), want);
	}
	c.flags = 0xc0; /* reserved */
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_FIELD));
	c.flags = 0;
	c.cdw12 = htole32(7 | 1u << 31 | 1u << 30); /* limited retry, force unit access */
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	c.cdw12 = htole32(7 | 1 << 20); /* a directive */
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_FIELD));
	for (unsigned op = 3; op < 256; op++) {
		if (op == nvme_cmd_compare || op == nvme_cmd_write_zeroes || op == nvme_cmd_dsm ||
		    op == nvme_cmd_verify)
			continue;
		c.opcode = (uint8_t)op;
		assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_OPCODE));
	}
}

static void flush_takes_one_or_all_namespaces_6_8(void **state)
{
	struct emu_nvme_sqe c = {.opcode = nvme_cmd_flush};
	struct rig *r = *state;

	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_NS));
	c.nsid = htole32(1);
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	c.nsid = htole32(0xffffffff);
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	c.nsid = htole32(2);
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_NS));
	assert_int_equal(rig_counter(r, "commands_flush"), 2);
}

static void blocks_of_4096_6_9_6_15(void **state)
{
	struct sio_topo_device topo;
	struct emu_nvme_sqe c;
	uint64_t data;
	struct rig *r;

	(void)state;
	rig_topo(&topo);
	topo.block_size = 4096;
	topo.size = 16 * 4096;
	topo.queue_pairs = 1;
	topo.queue_entries = 4;
	r = rig_new(&topo);
	rig_enable(r, 4, 4);
	rig_pair(r, 1, 4);
	data = rig_alloc(r, 8192);
	memset(rig_at(r, data), 0x77, 4096);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 15, 1, data, 0), NULL), 0);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 15, 1, data + 4096, 0), NULL), 0);
	assert_memory_equal(rig_at(r, data), rig_at(r, data + 4096), 4096);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 16, 1, data, 0), NULL),
			 RIG_SC(LBA_RANGE));
	c = rig_rw(nvme_cmd_read, 0, 257, data, 0);
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_FIELD));
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(data_come_back_6_9_6_15),
		rig_test(an_aligned_read_costs_three_transfers_6_9),
		rig_test(ranges_and_namespaces_6_1_6_9_6_15),
		rig_test(flags_and_opcodes_4_2),
		rig_test(flush_takes_one_or_all_namespaces_6_8),
		cmocka_unit_test(blocks_of_4096_6_9_6_15),
	};

	return cmocka_run_group_tests_name("nvme model: commands", tests, NULL, NULL);
}
