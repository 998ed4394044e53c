/* SPDX-License-Identifier: BSD-2-Clause */
/* Admin commands: queues, Abort, Asynchronous Event Request, what all commands have in common. */
#include "rig.h"

#include <endian.h>
#include <string.h>

static struct emu_nvme_sqe delete_queue(uint8_t opcode, unsigned qid)
{
	return (struct emu_nvme_sqe){.opcode = opcode, .cdw10 = htole32(qid)};
}

static void completion_queue_rules_5_3(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c;

	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 0, 8), NULL), RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, RIG_PAIRS + 1, 8), NULL),
			 RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 0xffff, 8), NULL), RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, 1), NULL), RIG_SC1(QUEUE_SIZE));
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, RIG_ENTRIES + 1), NULL),
			 RIG_SC1(QUEUE_SIZE));
	c = rig_create_cq(r, 1, 8);
	c.cdw11 = 0; /* not contiguous */
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC(INVALID_FIELD));
	c = rig_create_cq(r, 1, 8);
	c.prp1 = htole64(le64toh(c.prp1) + 16);
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC(PRP_INVALID_OFFSET));
	c = rig_create_cq(r, 1, 1024);
	c.prp1 = htole64(UINT64_MAX - 4095);
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC(INVALID_FIELD));
	c = rig_create_cq(r, 1, 8);
	c.cdw11 = htole32(RIG_VECTORS << 16 | 3); /* a vector too high */
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC1(INVALID_VECTOR));
	c.cdw11 = htole32(RIG_VECTORS << 16 | 1); /* nor without interrupts */
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC1(INVALID_VECTOR));
	c.cdw11 = htole32((RIG_VECTORS - 1) << 16 | 3);
	assert_int_equal(rig_do(r, 0, c, NULL), 0);
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, 8), NULL), RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, RIG_PAIRS, RIG_ENTRIES), NULL), 0);
}

static void submission_queue_rules_5_4(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c;

	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, 8), NULL), 0);
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 0, 8, 1), NULL), RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, RIG_PAIRS + 1, 8, 1), NULL),
			 RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 1, 8, 0), NULL), RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 1, 8, RIG_PAIRS + 1), NULL),
			 RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 1, 8, 2), NULL), RIG_SC1(CQ_INVALID));
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 1, 1, 1), NULL), RIG_SC1(QUEUE_SIZE));
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 1, RIG_ENTRIES + 1, 1), NULL),
			 RIG_SC1(QUEUE_SIZE));
	c = rig_create_sq(r, 1, 8, 1);
	c.cdw11 = htole32(1 << 16);
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC(INVALID_FIELD));
	c = rig_create_sq(r, 1, 8, 1);
	c.prp1 = htole64(le64toh(c.prp1) + 64);
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC(PRP_INVALID_OFFSET));
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 1, 8, 1), NULL), 0);
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 1, 8, 1), NULL), RIG_SC1(QID_INVALID));
	/* Several submission queues may share a completion queue. */
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 7, 8, 1), NULL), 0);
}

static void deletion_order_5_5_5_6(void **state)
{
	struct rig *r = *state;

	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 2, 8, 1), NULL), 0);
	assert_int_equal(rig_counter(r, "queue_pairs"), 2);
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_cq, 1), NULL),
			 RIG_SC1(INVALID_QUEUE));
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_sq, 1), NULL), 0);
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_sq, 1), NULL),
			 RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_cq, 1), NULL),
			 RIG_SC1(INVALID_QUEUE));
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_sq, 2), NULL), 0);
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_cq, 1), NULL), 0);
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_cq, 1), NULL),
			 RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_sq, 0), NULL),
			 RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_cq, 0), NULL),
			 RIG_SC1(QID_INVALID));
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_cq, 0xffff), NULL),
			 RIG_SC1(QID_INVALID));
	assert_int_equal(rig_counter(r, "queue_pairs"), 0);
}

/* What waited in a queue when it was deleted is not done, and not when the id is used again. */
static void deleted_queues_are_forgotten_5_6(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);
	struct emu_nvme_cqe cqe;

	rig_pair(r, 3, 8);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_do(r, 3, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_sq, 3), NULL), 0);
	assert_int_equal(r->doorbells[6], 0);
	rig_put(r, 3, rig_rw(nvme_cmd_read, 0, 8, data, 0));
	rig_ring(r, 3);
	rig_settle(r);
	assert_false(rig_take(r, 3, &cqe, false));
	assert_int_equal(rig_do(r, 0, delete_queue(nvme_admin_delete_cq, 3), NULL), 0);
	assert_int_equal(r->doorbells[7], 0);
	r->doorbells[6] = 5;
	r->doorbells[7] = 5;
	rig_pair(r, 3, 8);
	assert_int_equal(r->doorbells[6], 0);
	assert_int_equal(r->doorbells[7], 0);
	assert_int_equal(rig_do(r, 3, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
}

static void entry_sizes_of_cc_are_checked_3_1_5(void **state)
{
	struct rig *r = *state;

	rig_disable(r);
	rig_configure(r, 32, 32);
	rig_set_reg(r, NVME_REG_CC, 1);
	rig_run(r);
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, 8), NULL), RIG_SC1(QUEUE_SIZE));
	rig_disable(r);
	rig_configure(r, 32, 32);
	rig_set_reg(r, NVME_REG_CC, 0x00400001);
	rig_run(r);
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, 8), NULL), 0);
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 1, 8, 1), NULL), RIG_SC1(QUEUE_SIZE));
}

static void all_pairs_can_be_had_and_no_more_5_21_1_7(void **state)
{
	struct rig *r = *state;

	for (unsigned qid = 1; qid <= RIG_PAIRS; qid++)
		rig_pair(r, qid, 4);
	assert_int_equal(rig_counter(r, "queue_pairs"), RIG_PAIRS);
	for (unsigned qid = 1; qid <= RIG_PAIRS; qid++) {
		uint64_t data = rig_alloc(r, 4096);

		assert_int_equal(rig_do(r, qid, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
	}
	rig_disable(r);
	assert_int_equal(rig_counter(r, "queue_pairs"), 0);
}

static void common_fields_4_2(void **state)
{
	static const uint8_t unknown[] = {0x03, 0x0d, 0x10, 0x11, 0x14, 0x15, 0x18, 0x19,
					  0x1a, 0x1c, 0x7d, 0x81, 0x84, 0xc0, 0xff};
	struct emu_nvme_sqe c = {.opcode = nvme_admin_get_features, .cdw10 = htole32(7)};
	struct rig *r = *state;

	for (unsigned i = 0; i < sizeof(unknown); i++)
		assert_int_equal(rig_do(r, 0, (struct emu_nvme_sqe){.opcode = unknown[i]}, NULL),
				 RIG_SC(INVALID_OPCODE));
	for (unsigned bit = 0; bit < 8; bit++) {
		bool is_used = bit < 2 || bit >= 6; /* FUSE, PSDT */

		c.flags = (uint8_t)(1 << bit);
		assert_int_equal(rig_do(r, 0, c, NULL), is_used ? RIG_SC(INVALID_FIELD) : 0);
	}
	c = rig_create_cq(r, 1, 8);
	c.nsid = htole32(1);
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC(INVALID_FIELD));
}

static uint16_t request_event(struct rig *r, uint16_t cid)
{
	cid = rig_put(r, 0,
		      (struct emu_nvme_sqe){.opcode = nvme_admin_async_event, .cid = htole16(cid)});
	rig_ring(r, 0);
	rig_run(r);
	return cid;
}

static struct emu_nvme_sqe abort_command(unsigned qid, uint16_t cid)
{
	return (struct emu_nvme_sqe){.opcode = nvme_admin_abort_cmd,
				     .cdw10 = htole32((uint32_t)cid << 16 | qid)};
}

static void abort_finds_event_requests_only_5_1(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;
	uint32_t result = 7;
	uint16_t cid;

	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 0, abort_command(0, 0x777), &result), 0);
	assert_int_equal(result, 1);
	assert_int_equal(rig_do(r, 0, abort_command(1, 3), &result), 0);
	assert_int_equal(result, 1);
	assert_int_equal(rig_do(r, 0, abort_command(2, 3), NULL), RIG_SC(INVALID_FIELD));
	assert_int_equal(rig_do(r, 0, abort_command(0xffff, 3), NULL), RIG_SC(INVALID_FIELD));

	request_event(r, 0x100);
	cid = request_event(r, 0x101);
	assert_int_equal(rig_do(r, 0, abort_command(1, cid), &result), 0);
	assert_int_equal(result, 1);
	/* The aborted command completes before the Abort. */
	rig_put(r, 0, abort_command(0, cid));
	rig_ring(r, 0);
	rig_run(r);
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), cid);
	assert_int_equal(le16toh(cqe.status) >> 1, RIG_SC(ABORT_REQ));
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), r->cid);
	assert_int_equal(le32toh(cqe.result), 0);
	assert_int_equal(rig_do(r, 0, abort_command(0, cid), &result), 0);
	assert_int_equal(result, 1);
}

static void abort_waits_for_two_completion_entries_5_1(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	rig_disable(r);
	rig_enable(r, 8, 2); /* room for one completion at a time */
	request_event(r, 0x50);
	rig_put(r, 0, abort_command(0, 0x50));
	rig_put(r, 0, (struct emu_nvme_sqe){.opcode = nvme_admin_get_features, .cdw10 = 7});
	rig_ring(r, 0);
	rig_run(r);
	assert_true(emu_nvme_model.idle(r->model));
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), 0x50);
	assert_false(rig_take(r, 0, &cqe, true));
	rig_run(r);
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), r->cid - 1);
	assert_false(rig_take(r, 0, &cqe, true));
	rig_run(r);
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), r->cid);
}

static void event_requests_have_a_limit_5_2(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	for (uint16_t i = 0; i < 4; i++)
		request_event(r, (uint16_t)(0x200 + i));
	assert_false(rig_take(r, 0, &cqe, true));
	assert_int_equal(
		rig_do(r, 0, (struct emu_nvme_sqe){.opcode = nvme_admin_async_event}, NULL),
		RIG_SC1(ASYNC_LIMIT));
	assert_int_equal(rig_do(r, 0,
				(struct emu_nvme_sqe){.opcode = nvme_admin_get_features,
						      .cdw10 = 7,
						      .cid = htole16(0x201)},
				NULL),
			 RIG_SC(CMDID_CONFLICT));
	/* A reset takes the requests with it. */
	rig_disable(r);
	rig_enable(r, 32, 32);
	request_event(r, 0x200);
	assert_false(rig_take(r, 0, &cqe, true));
}

static unsigned read_log(struct rig *r, unsigned id, bool retain)
{
	uint64_t data = rig_alloc(r, 4096);

	return rig_do(
		r, 0,
		(struct emu_nvme_sqe){.opcode = nvme_admin_get_log_page,
				      .prp1 = htole64(data),
				      .cdw10 = htole32(127u << 16 | (unsigned)retain << 15 | id)},
		NULL);
}

static void wrong_doorbells_raise_events_once_5_2(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 8);
	request_event(r, 0x300);
	request_event(r, 0x301);
	r->doorbells[2] = 8; /* past the submission queue */
	rig_settle(r);
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), 0x300);
	assert_int_equal(le32toh(cqe.result), 0x010100); /* error log, invalid value, error */
	assert_int_equal(rig_counter(r, "invalid_doorbells"), 1);

	/* Silent until the log was read, and then another kind of the same type. */
	r->doorbells[2 * 9] = 1; /* no such queue */
	rig_settle(r);
	assert_int_equal(r->doorbells[2 * 9], 0);
	assert_int_equal(rig_counter(r, "invalid_doorbells"), 2);
	assert_false(rig_take(r, 0, &cqe, true));
	assert_int_equal(read_log(r, NVME_LOG_LID_ERROR, true), 0);
	rig_settle(r);
	assert_false(rig_take(r, 0, &cqe, true));
	rig_put(r, 0,
		(struct emu_nvme_sqe){.opcode = nvme_admin_get_log_page,
				      .prp1 = htole64(rig_alloc(r, 4096)),
				      .cdw10 = htole32(127u << 16 | NVME_LOG_LID_ERROR)});
	rig_ring(r, 0);
	rig_settle(r);
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), r->cid);
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), 0x301);
	assert_int_equal(le32toh(cqe.result), 0x010000);
	assert_false(rig_take(r, 0, &cqe, true));
}

static void wrong_doorbells_move_nothing_4_1(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);
	uint64_t bad;

	rig_pair(r, 1, 8);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
	bad = rig_counter(r, "invalid_doorbells");
	for (uint32_t value = 8; value != 0; value <<= 1) {
		r->n_calls = 0;
		r->doorbells[2] = value;
		rig_settle(r);
		r->doorbells[3] = value;
		rig_settle(r);
		assert_int_equal(r->n_calls, 0);
		bad += 2;
		assert_int_equal(rig_counter(r, "invalid_doorbells"), bad);
	}
	r->doorbells[3] = 6; /* frees an entry that was not posted */
	rig_settle(r);
	assert_int_equal(rig_counter(r, "invalid_doorbells"), bad + 1);
	r->doorbells[2] = r->q[1].tail;
	r->doorbells[3] = r->q[1].head;
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
	assert_int_equal(rig_reg(r, NVME_REG_CSTS), 1);
	/* Logged now and then, not once per store. */
	assert_true(r->n_logs < 10);
}

static void a_tail_that_moves_back_is_wrong_4_1(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 8);
	/* Fill the completion queue, so that entries stay waiting. */
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, 2, 16, 1), NULL), 0);
	for (unsigned i = 0; i < 10; i++)
		rig_put(r, 2, (struct emu_nvme_sqe){.opcode = nvme_cmd_flush, .nsid = htole32(1)});
	rig_ring(r, 2);
	rig_run(r);
	r->doorbells[4] = 8; /* 7 were fetched, 10 announced */
	rig_settle(r);
	assert_int_equal(rig_counter(r, "invalid_doorbells"), 1);
	for (unsigned i = 0; i < 7; i++)
		assert_true(rig_take(r, 1, &cqe, true));
	rig_run(r);
	for (unsigned i = 0; i < 3; i++)
		assert_true(rig_take(r, 1, &cqe, true));
	assert_false(rig_take(r, 1, &cqe, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(completion_queue_rules_5_3),
		rig_test(submission_queue_rules_5_4),
		rig_test(deletion_order_5_5_5_6),
		rig_test(deleted_queues_are_forgotten_5_6),
		rig_test(entry_sizes_of_cc_are_checked_3_1_5),
		rig_test(all_pairs_can_be_had_and_no_more_5_21_1_7),
		rig_test(common_fields_4_2),
		rig_test(abort_finds_event_requests_only_5_1),
		rig_test(abort_waits_for_two_completion_entries_5_1),
		rig_test(event_requests_have_a_limit_5_2),
		rig_test(wrong_doorbells_raise_events_once_5_2),
		rig_test(wrong_doorbells_move_nothing_4_1),
		rig_test(a_tail_that_moves_back_is_wrong_4_1),
	};

	return cmocka_run_group_tests_name("nvme model: admin commands", tests, NULL, NULL);
}
