/* SPDX-License-Identifier: BSD-2-Clause */
/* Heads, tails, phases, full completion queues, bursts, and turns among queues. */
#include "rig.h"

#include <endian.h>
#include <string.h>

static const struct emu_nvme_sqe flush_cmd = {.opcode = nvme_cmd_flush, .nsid = 1};

/* Every size up to 9: the phase turns at each wrap, heads are reported, order is kept. */
static void wrap_and_phase_4_6(void **state)
{
	struct rig *r = *state;

	for (uint32_t entries = 2; entries <= 9; entries++) {
		unsigned qid = entries;
		struct emu_nvme_cqe cqe;

		rig_pair(r, qid, entries);
		for (unsigned round = 0; round < 50; round++) {
			unsigned n = 1 + round % (entries - 1);
			uint16_t first = (uint16_t)(r->cid + 1);

			for (unsigned i = 0; i < n; i++)
				rig_put(r, qid, flush_cmd);
			rig_ring(r, qid);
			rig_run(r);
			for (unsigned i = 0; i < n; i++) {
				assert_true(rig_take(r, qid, &cqe, true));
				assert_int_equal(le16toh(cqe.cid), first + i);
				assert_int_equal(le16toh(cqe.sq_id), qid);
				assert_true(le16toh(cqe.sq_head) < entries);
			}
			assert_int_equal(r->q[qid].sq_head, r->q[qid].tail);
			assert_false(rig_take(r, qid, &cqe, true));
		}
	}
}

static void a_burst_is_one_read_up_to_the_wrap_4_1(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;
	unsigned n_reads = 0;

	rig_pair(r, 1, 16);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(rig_do(r, 1, flush_cmd, NULL), 0);
	for (unsigned i = 0; i < 9; i++) /* 10...15, then 0...2 */
		rig_put(r, 1, flush_cmd);
	rig_ring(r, 1);
	r->n_calls = 0;
	rig_run(r);
	for (unsigned i = 0; i < r->n_calls; i++) {
		if (r->call[i].is_write)
			continue;
		assert_int_equal(r->call[i].len, (n_reads == 0 ? 6 : 3) * 64);
		n_reads++;
	}
	assert_int_equal(n_reads, 2);
	for (unsigned i = 0; i < 9; i++)
		assert_true(rig_take(r, 1, &cqe, true));
}

static void budget_bounds_a_step(void **state)
{
	struct rig *r = *state;

	rig_pair(r, 1, 64);
	for (unsigned i = 0; i < 40; i++)
		rig_put(r, 1, flush_cmd);
	rig_ring(r, 1);
	assert_int_equal(emu_nvme_model.step(r->model, 1), 1);
	assert_int_equal(emu_nvme_model.step(r->model, 7), 7);
	assert_int_equal(emu_nvme_model.step(r->model, 1000), 32);
	assert_int_equal(rig_counter(r, "commands_flush"), 40);
	assert_int_equal(emu_nvme_model.step(r->model, 1000), 0);
}

#define LARGE_PAGES 256u /* MDTS */

/* A read of as much as a command can ask for, all of it into one page. */
static struct emu_nvme_sqe large_read(struct rig *r)
{
	uint64_t page = rig_alloc(r, 4096), list = rig_alloc(r, 4096);
	uint64_t *entry = rig_at(r, list);

	for (unsigned i = 0; i < LARGE_PAGES - 1; i++)
		entry[i] = htole64(page);
	return rig_rw(nvme_cmd_read, 0, LARGE_PAGES * 8, page, list);
}

/* Each page of data is a unit; how much is begun follows what commands of that queue cost before.
 */
static void budget_bounds_the_data_of_a_step(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe large = large_read(r);
	struct emu_nvme_cqe done;

	rig_pair(r, 1, 64);
	rig_put(r, 1, large);
	rig_ring(r, 1);
	assert_int_equal(emu_nvme_model.step(r->model, 64), LARGE_PAGES);
	for (unsigned i = 0; i < 8; i++)
		rig_put(r, 1, large);
	rig_ring(r, 1);
	assert_int_equal(emu_nvme_model.step(r->model, 64), LARGE_PAGES);
	assert_int_equal(emu_nvme_model.step(r->model, LARGE_PAGES), LARGE_PAGES);
	assert_int_equal(emu_nvme_model.step(r->model, 4 * LARGE_PAGES + 1), 4 * LARGE_PAGES);
	assert_int_equal(emu_nvme_model.step(r->model, 1000 * LARGE_PAGES), 2 * LARGE_PAGES);
	for (unsigned i = 0; i < 9; i++)
		assert_true(rig_take(r, 1, &done, true));
	/* Small ones are many at once again, after the first. */
	for (unsigned i = 0; i < 20; i++)
		rig_put(r, 1, flush_cmd);
	rig_ring(r, 1);
	assert_int_equal(emu_nvme_model.step(r->model, 64), 1);
	assert_int_equal(emu_nvme_model.step(r->model, 64), 19);
}

/* Whoever asks for little does not wait for all that others ask for. */
static void small_commands_beside_large_ones(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe large = large_read(r);
	struct emu_nvme_cqe done;
	unsigned data = 0;

	for (unsigned qid = 1; qid <= 3; qid++) {
		rig_pair(r, qid, 64);
		rig_put(r, qid, large); /* the drive learns what they are like */
		rig_ring(r, qid);
	}
	rig_run(r);
	for (unsigned qid = 1; qid <= 3; qid++) {
		for (unsigned i = 0; i < 40; i++)
			rig_put(r, qid, large);
		rig_ring(r, qid);
	}
	rig_pair(r, 4, 64);
	for (unsigned i = 0; i < 10; i++)
		rig_put(r, 4, flush_cmd);
	rig_ring(r, 4);
	while (!rig_take(r, 4, &done, false))
		data += emu_nvme_model.step(r->model, LARGE_PAGES);
	assert_in_range(data, 10, 3 * LARGE_PAGES + 10);
}

static unsigned set_burst(struct rig *r, uint32_t log2)
{
	return rig_do(r, 0,
		      (struct emu_nvme_sqe){.opcode = nvme_admin_set_features,
					    .cdw10 = htole32(NVME_FEAT_FID_ARBITRATION),
					    .cdw11 = htole32(log2)},
		      NULL);
}

static void arbitration_burst_is_honoured_4_13(void **state)
{
	struct rig *r = *state;

	assert_int_equal(set_burst(r, 1), 0);
	rig_pair(r, 1, 16);
	for (unsigned i = 0; i < 5; i++)
		rig_put(r, 1, flush_cmd);
	rig_ring(r, 1);
	for (unsigned left = 5; left > 0; left -= left < 2 ? left : 2)
		assert_int_equal(emu_nvme_model.step(r->model, 100), left < 2 ? left : 2);

	/* 64, and without limit: what one read fetches is the limit. */
	for (uint32_t log2 = 6; log2 <= 7; log2++) {
		assert_int_equal(set_burst(r, log2), 0);
		rig_pair(r, log2, 64);
		for (unsigned i = 0; i < 40; i++)
			rig_put(r, log2, flush_cmd);
		rig_ring(r, log2);
		assert_int_equal(emu_nvme_model.step(r->model, 100), 32);
		assert_int_equal(emu_nvme_model.step(r->model, 100), 8);
	}
}

static void queues_take_turns_4_13(void **state)
{
	struct rig *r = *state;
	unsigned served[4] = {0};

	for (unsigned qid = 1; qid <= 4; qid++)
		rig_pair(r, qid, 128);
	for (unsigned qid = 1; qid <= 4; qid++) {
		for (unsigned i = 0; i < 100; i++)
			rig_put(r, qid, flush_cmd);
		rig_ring(r, qid);
	}
	for (unsigned i = 0; i < 40; i++) {
		r->n_calls = 0;
		assert_int_equal(emu_nvme_model.step(r->model, 4), 4);
		for (unsigned qid = 1; qid <= 4; qid++)
			served[qid - 1] += r->call[0].addr >= r->q[qid].sq &&
					   r->call[0].addr < r->q[qid].sq + 128 * 64;
	}
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(served[i], 10);
}

static void a_full_completion_queue_loses_nothing_4_1(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;
	uint16_t first;
	unsigned taken = 0;

	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, 4), NULL), 0);
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 1, 64, 1), NULL), 0);
	first = (uint16_t)(r->cid + 1);
	for (unsigned i = 0; i < 50; i++)
		rig_put(r, 1, flush_cmd);
	rig_ring(r, 1);
	while (taken < 50) {
		unsigned n = 0;

		rig_run(r);
		assert_true(emu_nvme_model.idle(r->model));
		while (rig_take(r, 1, &cqe, false)) {
			assert_int_equal(le16toh(cqe.cid), first + taken);
			taken++;
			n++;
		}
		assert_true(n >= 1 && n <= 3);
		r->doorbells[3] = r->q[1].head;
	}
	rig_run(r);
	assert_false(rig_take(r, 1, &cqe, false));
}

static void admin_commands_wait_for_room_too_4_1(void **state)
{
	const struct emu_nvme_sqe get = {.opcode = nvme_admin_get_features, .cdw10 = 7};
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	rig_disable(r);
	rig_enable(r, 16, 3);
	for (unsigned i = 0; i < 10; i++)
		rig_put(r, 0, get);
	rig_ring(r, 0);
	for (unsigned taken = 0; taken < 10; taken++) {
		rig_run(r);
		assert_true(rig_take(r, 0, &cqe, true));
		assert_int_equal(le16toh(cqe.cid), r->cid - 9 + taken);
	}
	assert_false(rig_take(r, 0, &cqe, true));
}

static void queues_share_a_completion_queue_4_1(void **state)
{
	struct rig *r = *state;
	unsigned from[4] = {0};
	struct emu_nvme_cqe cqe;

	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, 8), NULL), 0);
	for (unsigned qid = 1; qid <= 3; qid++) {
		assert_int_equal(rig_do(r, 0, rig_create_sq(r, qid, 16, 1), NULL), 0);
		for (unsigned i = 0; i < 12; i++)
			rig_put(r, qid, flush_cmd);
		rig_ring(r, qid);
	}
	for (unsigned taken = 0; taken < 36; taken++) {
		rig_run(r);
		assert_true(rig_take(r, 1, &cqe, true));
		from[le16toh(cqe.sq_id)]++;
		assert_int_equal(le16toh(cqe.sq_head) >= from[le16toh(cqe.sq_id)], 1);
	}
	for (unsigned qid = 1; qid <= 3; qid++)
		assert_int_equal(from[qid], 12);
}

static void a_reset_forgets_all_queues_7_3(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 8);
	rig_put(r, 1, flush_cmd);
	rig_ring(r, 1);
	rig_disable(r);
	for (unsigned i = 0; i < 1024; i++)
		assert_int_equal(r->doorbells[i], 0);
	rig_enable(r, 32, 32);
	assert_false(rig_take(r, 1, &cqe, false));
	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 1, flush_cmd, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(wrap_and_phase_4_6),
		rig_test(a_burst_is_one_read_up_to_the_wrap_4_1),
		rig_test(budget_bounds_a_step),
		rig_test(budget_bounds_the_data_of_a_step),
		rig_test(small_commands_beside_large_ones),
		rig_test(arbitration_burst_is_honoured_4_13),
		rig_test(queues_take_turns_4_13),
		rig_test(a_full_completion_queue_loses_nothing_4_1),
		rig_test(admin_commands_wait_for_room_too_4_1),
		rig_test(queues_share_a_completion_queue_4_1),
		rig_test(a_reset_forgets_all_queues_7_3),
	};

	return cmocka_run_group_tests_name("nvme model: queues", tests, NULL, NULL);
}
