/* SPDX-License-Identifier: BSD-2-Clause */
/* What the model is asked to do wrong, and what Abort and deletion make of a command that waits. */
#include "rig.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "core/err.h"

#define MS 1000000ull

static int set(struct rig *r, enum emu_dev_fault_kind kind, uint32_t opcode, uint32_t count,
	       uint64_t value)
{
	const struct emu_dev_fault f = {.kind = kind,
					.opcode = opcode,
					.queue = EMU_FAULT_ANY,
					.count = count,
					.value = value};
	struct sio_err err;

	return emu_nvme_model.fault(r->model, &f, &err);
}

static uint16_t write_one(struct rig *r, unsigned qid)
{
	struct emu_nvme_sqe c = rig_rw(nvme_cmd_write, 5, 1, rig_alloc(r, 4096), 0);
	uint16_t cid;

	memset(rig_at(r, le64toh(c.prp1)), 0x77, 512);
	cid = rig_put(r, qid, c);
	rig_ring(r, qid);
	rig_run(r);
	return cid;
}

static uint8_t first_byte(struct rig *r, unsigned qid)
{
	struct emu_nvme_sqe c = rig_rw(nvme_cmd_read, 5, 1, rig_alloc(r, 4096), 0);

	assert_int_equal(rig_do(r, qid, c, NULL), 0);
	return *(uint8_t *)rig_at(r, le64toh(c.prp1));
}

static unsigned abort_it(struct rig *r, unsigned qid, uint16_t cid, uint32_t *result)
{
	struct emu_nvme_sqe c = {.opcode = nvme_admin_abort_cmd,
				 .cdw10 = htole32((uint32_t)cid << 16 | qid)};

	return rig_do(r, 0, c, result);
}

static void what_is_delayed_comes_in_its_time(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 16);
	assert_int_equal(set(r, EMU_FAULT_DELAY, nvme_cmd_write, 1, 5 * MS), 0);
	write_one(r, 1);
	assert_false(rig_take(r, 1, &cqe, true));
	assert_false(emu_nvme_model.idle(r->model));
	assert_int_equal(first_byte(r, 1), 0); /* not done yet, and nobody waits for it */
	r->now += 5 * MS;
	rig_run(r);
	assert_true(rig_take(r, 1, &cqe, true));
	assert_int_equal(le16toh(cqe.status) >> 1, 0);
	assert_int_equal(first_byte(r, 1), 0x77);
	assert_true(emu_nvme_model.idle(r->model));
}

static void a_command_that_waits_is_aborted_5_1(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;
	uint32_t result = 7;
	uint16_t cid;

	rig_pair(r, 1, 16);
	assert_int_equal(set(r, EMU_FAULT_DELAY, nvme_cmd_write, 1, 5 * MS), 0);
	cid = write_one(r, 1);
	assert_int_equal(abort_it(r, 1, (uint16_t)(cid + 1), &result), 0);
	assert_int_equal(result & 1, 1); /* it is not there */
	assert_int_equal(abort_it(r, 1, cid, &result), 0);
	assert_int_equal(result & 1, 0);
	assert_true(rig_take(r, 1, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), cid);
	assert_int_equal(le16toh(cqe.status) >> 1 & 0x7ff, RIG_SC(ABORT_REQ));
	r->now += 10 * MS;
	rig_run(r);
	assert_false(rig_take(r, 1, &cqe, true));
	assert_int_equal(first_byte(r, 1), 0);
	assert_int_equal(rig_counter(r, "commands_aborted"), 1);
}

static void what_waits_ends_with_its_queue_5_6(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c = {.opcode = nvme_admin_delete_sq, .cdw10 = htole32(1)};
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 16);
	rig_pair(r, 2, 16);
	assert_int_equal(set(r, EMU_FAULT_DELAY, nvme_cmd_write, 1, 5 * MS), 0);
	write_one(r, 1);
	assert_int_equal(rig_do(r, 0, c, NULL), 0);
	assert_true(rig_take(r, 1, &cqe, true));
	assert_int_equal(le16toh(cqe.status) >> 1 & 0x7ff, RIG_SC(ABORT_QUEUE));
	r->now += 10 * MS;
	rig_run(r);
	assert_int_equal(first_byte(r, 2), 0);
}

static void a_reset_forgets_what_waits_7_3(void **state)
{
	struct rig *r = *state;

	rig_pair(r, 1, 16);
	assert_int_equal(set(r, EMU_FAULT_DELAY, EMU_FAULT_ANY, 1, 5 * MS), 0);
	write_one(r, 1);
	rig_disable(r);
	rig_enable(r, 16, 16);
	r->now += 10 * MS;
	rig_run(r);
	rig_pair(r, 1, 16);
	assert_int_equal(first_byte(r, 1), 0);
}

static void completions_are_lost_wrong_or_two_4_6(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;
	uint16_t cid;

	rig_pair(r, 1, 16);
	assert_int_equal(set(r, EMU_FAULT_DROP, EMU_FAULT_ANY, 1, 0), 0);
	write_one(r, 1);
	assert_false(rig_take(r, 1, &cqe, true));
	assert_int_equal(first_byte(r, 1), 0x77); /* it was done */
	assert_int_equal(set(r, EMU_FAULT_WRONG_ID, EMU_FAULT_ANY, 1, 0), 0);
	cid = write_one(r, 1);
	assert_true(rig_take(r, 1, &cqe, true));
	assert_int_not_equal(le16toh(cqe.cid), cid);
	assert_int_equal(set(r, EMU_FAULT_TWICE, EMU_FAULT_ANY, 1, 0), 0);
	cid = write_one(r, 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(rig_take(r, 1, &cqe, true));
		assert_int_equal(le16toh(cqe.cid), cid);
	}
	assert_int_equal(set(r, EMU_FAULT_ERROR, EMU_FAULT_ANY, 1, 0x281), 0);
	write_one(r, 1);
	assert_true(rig_take(r, 1, &cqe, true));
	assert_int_equal(le16toh(cqe.status) >> 1 & 0x7ff, 0x281);
	assert_int_equal(rig_counter(r, "faults_asked_for"), 4);
}

static void a_doorbell_is_not_seen_once(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 16);
	assert_int_equal(set(r, EMU_FAULT_DOORBELL, EMU_FAULT_ANY, 1, 0), 0);
	write_one(r, 1);
	assert_false(rig_take(r, 1, &cqe, true));
	write_one(r, 1); /* the next one tells of both */
	assert_true(rig_take(r, 1, &cqe, true));
	assert_true(rig_take(r, 1, &cqe, true));
}

static void fatal_status_is_had_for_the_asking_9_5(void **state)
{
	struct rig *r = *state;

	rig_pair(r, 1, 16);
	assert_int_equal(set(r, EMU_FAULT_FATAL, EMU_FAULT_ANY, 1, 0), 0);
	write_one(r, 1);
	assert_int_equal(rig_reg(r, NVME_REG_CSTS) & 2, 2);
}

/* Counted, of one opcode, of one queue, after some. */
static void only_what_was_meant_is_wrong(void **state)
{
	struct emu_dev_fault f = {.kind = EMU_FAULT_DROP,
				  .opcode = nvme_cmd_write,
				  .queue = 2,
				  .after = 1,
				  .count = 2};
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;
	struct sio_err err;

	rig_pair(r, 1, 16);
	rig_pair(r, 2, 16);
	assert_int_equal(emu_nvme_model.fault(r->model, &f, &err), 0);
	for (unsigned i = 0; i < 4; i++) {
		write_one(r, 1);
		assert_true(rig_take(r, 1, &cqe, true));
		write_one(r, 2);
		assert_int_equal(rig_take(r, 2, &cqe, true), i == 0 || i == 3);
		assert_int_equal(first_byte(r, 2), 0x77);
	}
	f.count = 0;
	assert_int_equal(emu_nvme_model.fault(r->model, &f, &err), 0);
	assert_int_equal(emu_nvme_model.fault(r->model, NULL, &err), 0);
	write_one(r, 2);
	write_one(r, 2);
	assert_true(rig_take(r, 2, &cqe, true));
	assert_true(rig_take(r, 2, &cqe, true));
}

static int set_admin(struct rig *r, enum emu_dev_fault_kind kind, uint32_t opcode, uint64_t value)
{
	const struct emu_dev_fault f = {
		.kind = kind, .opcode = opcode, .queue = 0, .count = 1, .value = value};
	struct sio_err err;

	return emu_nvme_model.fault(r->model, &f, &err);
}

static uint16_t look(struct rig *r)
{
	uint16_t cid = rig_put(r, 0,
			       (struct emu_nvme_sqe){.opcode = nvme_admin_get_features,
						     .cdw10 = htole32(NVME_FEAT_FID_NUM_QUEUES)});

	rig_ring(r, 0);
	rig_run(r);
	return cid;
}

static void expect_features(struct rig *r, uint16_t cid)
{
	struct emu_nvme_cqe cqe;

	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), cid);
	assert_int_equal(le16toh(cqe.status) >> 1, 0);
	assert_int_not_equal(le32toh(cqe.result), 0);
}

/* Only where its queue is named; a command that waits lets others pass, and Abort finds it. */
static void admin_commands_too_where_they_are_meant(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;
	uint16_t late, next;
	uint32_t result = 7;

	assert_int_equal(set(r, EMU_FAULT_DROP, EMU_FAULT_ANY, 1, 0), 0);
	expect_features(r, look(r));
	assert_int_equal(emu_nvme_model.fault(r->model, NULL, NULL), 0);

	assert_int_equal(set_admin(r, EMU_FAULT_DELAY, nvme_admin_get_features, 5 * MS), 0);
	late = look(r);
	assert_false(rig_take(r, 0, &cqe, true));
	next = look(r);
	expect_features(r, next);
	r->now += 5 * MS;
	rig_run(r);
	expect_features(r, late);

	assert_int_equal(set_admin(r, EMU_FAULT_DELAY, nvme_admin_get_features, 5 * MS), 0);
	late = look(r);
	rig_put(r, 0,
		(struct emu_nvme_sqe){.opcode = nvme_admin_abort_cmd,
				      .cdw10 = htole32((uint32_t)late << 16)});
	rig_ring(r, 0);
	rig_run(r);
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), late);
	assert_int_equal(le16toh(cqe.status) >> 1 & 0x7ff, RIG_SC(ABORT_REQ));
	assert_true(rig_take(r, 0, &cqe, true));
	result = le32toh(cqe.result);
	assert_int_equal(result & 1, 0);

	assert_int_equal(set_admin(r, EMU_FAULT_TWICE, nvme_admin_get_features, 0), 0);
	next = look(r);
	expect_features(r, next);
	expect_features(r, next);
	assert_int_equal(set_admin(r, EMU_FAULT_ERROR, nvme_admin_get_features, 6), 0);
	look(r);
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.status) >> 1 & 0x7ff, 6);
	assert_int_equal(set_admin(r, EMU_FAULT_DROP, nvme_admin_get_features, 0), 0);
	look(r);
	assert_false(rig_take(r, 0, &cqe, true));
	expect_features(r, look(r));
}

static void what_cannot_be_is_refused(void **state)
{
	struct rig *r = *state;

	assert_int_equal(set(r, EMU_FAULT_NONE, 0, 0, 0), -EINVAL);
	assert_int_equal(set(r, EMU_FAULT_KINDS, 0, 0, 0), -EINVAL);
	assert_int_equal(set(r, EMU_FAULT_ERROR, 0, 0, 0), -EINVAL);
	assert_int_equal(set(r, EMU_FAULT_ERROR, 0, 0, 0x800), -EINVAL);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(set(r, EMU_FAULT_DROP, 0, 0, 0), 0);
	assert_int_equal(set(r, EMU_FAULT_DROP, 0, 0, 0), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(what_is_delayed_comes_in_its_time),
		rig_test(a_command_that_waits_is_aborted_5_1),
		rig_test(what_waits_ends_with_its_queue_5_6),
		rig_test(a_reset_forgets_what_waits_7_3),
		rig_test(completions_are_lost_wrong_or_two_4_6),
		rig_test(a_doorbell_is_not_seen_once),
		rig_test(fatal_status_is_had_for_the_asking_9_5),
		rig_test(only_what_was_meant_is_wrong),
		rig_test(admin_commands_too_where_they_are_meant),
		rig_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
