/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA that fails: what each kind of failure does to the controller, and the n-th one for all n. */
#include "rig.h"

#include <endian.h>
#include <string.h>

#define PAGES 8u

static uint32_t csts(const struct rig *r)
{
	return rig_reg(r, NVME_REG_CSTS);
}

static void entry_that_cannot_be_fetched_is_fatal_9_5(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	for (unsigned qid = 0; qid < 2; qid++) {
		if (qid)
			rig_pair(r, 1, 8);
		rig_put(r, qid, (struct emu_nvme_sqe){.nsid = htole32(1)});
		rig_ring(r, qid);
		r->fail_read = r->n_reads + 1;
		rig_run(r);
		assert_int_equal(csts(r), 3); /* ready, fatal */
		assert_int_equal(r->mirror[NVME_REG_CSTS / 4], 3);
		assert_non_null(strstr(r->log, "nvme0"));
		assert_non_null(strstr(r->log, "fatal"));
		assert_int_equal(rig_counter(r, "fatal"), qid + 1);
		/* Nothing is done until the reset, which mends it. */
		r->n_calls = 0;
		rig_put(r, 0, (struct emu_nvme_sqe){.opcode = nvme_admin_get_features});
		rig_ring(r, 0);
		rig_settle(r);
		assert_int_equal(r->n_calls, 0);
		assert_false(rig_take(r, qid, &cqe, false));
		assert_true(emu_nvme_model.idle(r->model));
		rig_disable(r);
		rig_enable(r, 32, 32);
	}
}

static void queue_memory_that_vanished_is_fatal_9_5(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c;

	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, 8), NULL), 0);
	c = rig_create_sq(r, 1, 8, 1);
	c.prp1 = htole64(0x1000); /* nothing lies there */
	assert_int_equal(rig_do(r, 0, c, NULL), 0);
	assert_int_equal(csts(r), 1);
	r->doorbells[2] = 1;
	rig_run(r);
	assert_int_equal(csts(r), 3);
}

static void data_that_cannot_be_read_4_6_1_2(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 8192);

	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 0, 8, 0x1000, 0), NULL),
			 RIG_SC(DATA_XFER_ERROR));
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 0, 16, data, 0x1000), NULL),
			 RIG_SC(DATA_XFER_ERROR));
	/* The list of a read, too. */
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 64, data, 0x1000), NULL),
			 RIG_SC(DATA_XFER_ERROR));
	assert_int_equal(csts(r), 1);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 0, 8, data, 0), NULL), 0);
}

static void data_transfer_errors_may_be_retried_4_6_1(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 8);
	rig_put(r, 1, rig_rw(nvme_cmd_write, 0, 8, 0x1000, 0));
	rig_put(r, 1, rig_rw(nvme_cmd_write, RIG_BLOCKS, 8, 0x1000, 0));
	rig_ring(r, 1);
	rig_run(r);
	assert_true(rig_take(r, 1, &cqe, true));
	assert_int_equal(le16toh(cqe.status) >> 1, RIG_SC(DATA_XFER_ERROR) | NVME_SC_MORE);
	assert_true(rig_take(r, 1, &cqe, true));
	assert_int_equal(le16toh(cqe.status) >> 1, RIG_SC(LBA_RANGE) | NVME_SC_MORE | NVME_SC_DNR);
}

static void data_that_cannot_be_written_vanish(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);

	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, 0x1000, 0), NULL), 0);
	assert_int_equal(rig_do(r, 0,
				(struct emu_nvme_sqe){.opcode = nvme_admin_identify,
						      .prp1 = htole64(0x1000),
						      .cdw10 = htole32(1)},
				NULL),
			 0);
	assert_int_equal(rig_counter(r, "lost_writes"), 2);
	assert_int_equal(csts(r), 1);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
}

static void a_lost_completion_keeps_its_place_4_6(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 8);
	for (unsigned i = 0; i < 3; i++)
		rig_put(r, 1, (struct emu_nvme_sqe){.nsid = htole32(1)});
	rig_ring(r, 1);
	r->fail_write = r->n_writes + 2;
	rig_run(r);
	assert_true(rig_take(r, 1, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), r->cid - 2);
	assert_false(rig_take(r, 1, &cqe, true)); /* the hole */
	r->q[1].head++;
	assert_true(rig_take(r, 1, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), r->cid);
	assert_int_equal(csts(r), 1);
}

/* The same each time: make a pair, write and read through a list, and some. */
static void story(struct rig *r)
{
	uint64_t data = rig_alloc(r, (PAGES + 1) * 4096), list = rig_alloc(r, 4096);
	const struct emu_nvme_sqe cmds[] = {
		rig_create_cq(r, 1, 8),
		rig_create_sq(r, 1, 8, 1),
		rig_rw(nvme_cmd_write, 8, PAGES * 8, data, list),
		rig_rw(nvme_cmd_read, 8, PAGES * 8, data, list),
		rig_rw(nvme_cmd_write, 0, 12, data + 2048, data + 4096),
		{.opcode = nvme_admin_identify, .cdw10 = htole32(1), .prp1 = htole64(list)},
	};
	struct emu_nvme_cqe cqe;

	for (unsigned i = 0; i < PAGES; i++)
		((uint64_t *)rig_at(r, list))[i] = htole64(data + (i + 1ull) * 4096);
	for (unsigned i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		unsigned qid = i >= 2 && i <= 4;

		rig_put(r, qid, cmds[i]);
		rig_ring(r, qid);
		rig_run(r);
		rig_take(r, qid, &cqe, true);
	}
}

/* Whichever call fails: the controller ends ready or fatal, and a reset makes it whole. */
static void the_nth_call_fails_for_all_n(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 2; kind++) {
		unsigned total = 1, n_fatal = 0;

		for (unsigned n = 1; n <= total; n++) {
			struct rig *r = rig_new(NULL);
			uint64_t data;

			rig_enable(r, 16, 16);
			if (n == 1) { /* nothing fails: how many calls are there? */
				story(r);
				total = kind == 0 ? r->n_reads : r->n_writes;
				assert_int_equal(csts(r), 1);
				rig_disable(r);
				rig_enable(r, 16, 16);
				r->n_reads = r->n_writes = 0;
			}
			if (kind == 0)
				r->fail_read = n;
			else
				r->fail_write = n;
			story(r);
			assert_true(csts(r) == 1 || (kind == 0 && csts(r) == 3));
			n_fatal += csts(r) == 3;
			r->fail_read = r->fail_write = 0;
			rig_disable(r);
			rig_enable(r, 16, 16);
			rig_pair(r, 1, 8);
			data = rig_alloc(r, 4096);
			assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL),
					 0);
			rig_free(r);
		}
		assert_int_equal(n_fatal, kind == 0 ? 6 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(entry_that_cannot_be_fetched_is_fatal_9_5),
		rig_test(queue_memory_that_vanished_is_fatal_9_5),
		rig_test(data_that_cannot_be_read_4_6_1_2),
		rig_test(data_transfer_errors_may_be_retried_4_6_1),
		rig_test(data_that_cannot_be_written_vanish),
		rig_test(a_lost_completion_keeps_its_place_4_6),
		cmocka_unit_test(the_nth_call_fails_for_all_n),
	};

	return cmocka_run_group_tests_name("nvme model: faults", tests, NULL, NULL);
}
