/* SPDX-License-Identifier: BSD-2-Clause */
/* When vectors are raised: queues with and without interrupts, aggregation, resets. */
#include "rig.h"

#include <endian.h>

#define UNIT_NS 100000u

static const struct emu_nvme_sqe flush_cmd = {.opcode = nvme_cmd_flush, .nsid = 1};
static const struct emu_nvme_sqe bad_cmd = {.opcode = 0x7f, .nsid = 1};

/* A pair of 16 entries whose completions raise @vector. */
static void pair(struct rig *r, unsigned qid, unsigned vector)
{
	struct emu_nvme_sqe c = rig_create_cq(r, qid, 16);

	c.cdw11 = htole32(vector << 16 | 3);
	assert_int_equal(rig_do(r, 0, c, NULL), 0);
	assert_int_equal(rig_do(r, 0, rig_create_sq(r, qid, 16, qid), NULL), 0);
}

static void forget(struct rig *r)
{
	for (unsigned i = 0; i < RIG_VECTORS; i++)
		r->raised[i] = 0;
	r->n_raised = 0;
}

/* @n commands at once, all taken afterwards. */
static void burst(struct rig *r, unsigned qid, struct emu_nvme_sqe sqe, unsigned n)
{
	struct emu_nvme_cqe cqe;

	for (unsigned i = 0; i < n; i++)
		rig_put(r, qid, sqe);
	rig_ring(r, qid);
	rig_run(r);
	for (unsigned i = 0; i < n; i++)
		assert_true(rig_take(r, qid, &cqe, true));
}

static void set_feature(struct rig *r, uint32_t id, uint32_t cdw11)
{
	struct emu_nvme_sqe c = {
		.opcode = nvme_admin_set_features, .cdw10 = htole32(id), .cdw11 = htole32(cdw11)};

	assert_int_equal(rig_do(r, 0, c, NULL), 0);
}

static uint32_t get_config(struct rig *r, uint32_t vector)
{
	struct emu_nvme_sqe c = {.opcode = nvme_admin_get_features,
				 .cdw10 = htole32(NVME_FEAT_FID_IRQ_CONFIG),
				 .cdw11 = htole32(vector)};
	uint32_t result = 0;

	assert_int_equal(rig_do(r, 0, c, &result), 0);
	return result;
}

static void the_table_has_pages_of_its_own_2_4(void **state)
{
	struct rig *r = *state;
	const struct emu_dev_pages *p = r->config.pages;

	assert_int_equal(r->config.msix_count, RIG_VECTORS);
	assert_int_equal(r->config.n_pages, 3);
	assert_int_equal(p[2].kind, EMU_PAGE_MSIX);
	assert_int_equal(p[2].offset, p[1].offset + p[1].length);
	assert_true(p[2].offset + p[2].length <= r->config.bar_size[0]);
}

static void a_drive_may_have_no_vectors_5_3(void **state)
{
	struct sio_topo_device topo;
	struct emu_nvme_sqe c;
	struct rig *r;

	(void)state;
	rig_topo(&topo);
	topo.vectors = 0;
	r = rig_new(&topo);
	rig_enable(r, 32, 32);
	assert_int_equal(r->config.msix_count, 0);
	assert_int_equal(r->config.n_pages, 2);
	c = rig_create_cq(r, 1, 16);
	c.cdw11 = htole32(1 << 16 | 3);
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC1(INVALID_VECTOR));
	pair(r, 1, 0); /* asked for, and never sent */
	burst(r, 1, flush_cmd, 3);
	assert_int_equal(get_config(r, 0), 0);
	assert_int_equal(r->n_raised, 0);
	rig_free(r);
}

static void each_queue_raises_its_vector_7_5(void **state)
{
	struct rig *r = *state;

	assert_int_equal(r->raised[0], 0);
	rig_pair(r, 1, 16); /* without interrupts */
	assert_int_equal(r->raised[0], 2);
	pair(r, 2, 3);
	pair(r, 3, 7);
	pair(r, 4, 7); /* shared */
	forget(r);
	burst(r, 1, flush_cmd, 5);
	assert_int_equal(r->n_raised, 0);
	burst(r, 2, flush_cmd, 5); /* one look at the queue: one interrupt */
	assert_int_equal(r->raised[3], 1);
	burst(r, 2, flush_cmd, 1);
	assert_int_equal(r->raised[3], 2);
	burst(r, 3, flush_cmd, 1);
	burst(r, 4, flush_cmd, 1);
	assert_int_equal(r->raised[7], 2);
	assert_int_equal(r->n_raised, 4);
	assert_int_equal(rig_counter(r, "interrupts"), 4 + 8);
}

/* A queue that is made again forgets that the one before had interrupts. */
static void a_new_queue_asks_anew_5_3(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe del = {.opcode = nvme_admin_delete_sq, .cdw10 = htole32(2)};

	pair(r, 2, 3);
	assert_int_equal(rig_do(r, 0, del, NULL), 0);
	del.opcode = nvme_admin_delete_cq;
	assert_int_equal(rig_do(r, 0, del, NULL), 0);
	r->q[2] = (struct rig_queue){0};
	rig_pair(r, 2, 16);
	forget(r);
	burst(r, 2, flush_cmd, 4);
	assert_int_equal(r->n_raised, 0);
}

static void entries_are_aggregated_up_to_the_threshold_5_21_1_8(void **state)
{
	struct rig *r = *state;

	pair(r, 2, 3);
	set_feature(r, NVME_FEAT_FID_IRQ_COALESCE, 10 << 8 | 3); /* 4 entries, 1 ms */
	forget(r);
	for (unsigned i = 0; i < 3; i++)
		burst(r, 2, flush_cmd, 1);
	assert_int_equal(r->n_raised, 0);
	assert_false(emu_nvme_model.idle(r->model)); /* time alone makes work */
	burst(r, 2, flush_cmd, 1);
	assert_int_equal(r->raised[3], 1);
	assert_true(emu_nvme_model.idle(r->model));
	burst(r, 2, flush_cmd, 7); /* at once: more than the threshold */
	assert_int_equal(r->raised[3], 2);
}

static void entries_are_aggregated_up_to_the_time_5_21_1_8(void **state)
{
	struct rig *r = *state;

	pair(r, 2, 3);
	pair(r, 3, 4);
	set_feature(r, NVME_FEAT_FID_IRQ_COALESCE, 10 << 8 | 255);
	forget(r);
	burst(r, 2, flush_cmd, 2);
	r->now += 9 * UNIT_NS;
	burst(r, 3, flush_cmd, 2);
	assert_int_equal(r->n_raised, 0);
	r->now += 1 * UNIT_NS;
	rig_run(r);
	assert_int_equal(r->raised[3], 1);
	assert_int_equal(r->raised[4], 0);
	r->now += 9 * UNIT_NS;
	rig_run(r);
	assert_int_equal(r->raised[4], 1);
	r->now += 1000 * UNIT_NS;
	rig_run(r);
	assert_int_equal(r->n_raised, 2);
}

static void some_are_never_held_back_5_21_1_9(void **state)
{
	struct rig *r = *state;

	pair(r, 2, 3);
	pair(r, 3, 4);
	set_feature(r, NVME_FEAT_FID_IRQ_COALESCE, 255 << 8 | 255);
	set_feature(r, NVME_FEAT_FID_IRQ_CONFIG, 1 << 16 | 4);
	assert_int_equal(get_config(r, 4), 1 << 16 | 4);
	assert_int_equal(get_config(r, 3), 3);
	assert_int_not_equal(r->raised[0], 0); /* the admin queue */
	forget(r);
	burst(r, 3, flush_cmd, 1); /* coalescing disabled */
	assert_int_equal(r->raised[4], 1);
	burst(r, 2, flush_cmd, 1);
	assert_int_equal(r->raised[3], 0);
	burst(r, 2, bad_cmd, 1); /* a failure, and the one before with it */
	assert_int_equal(r->raised[3], 1);
	assert_true(emu_nvme_model.idle(r->model));
	/* No time: nothing is held back, whatever the threshold is. */
	set_feature(r, NVME_FEAT_FID_IRQ_COALESCE, 255);
	burst(r, 2, flush_cmd, 1);
	assert_int_equal(r->raised[3], 2);
}

static void a_reset_forgets_what_was_held_back_7_3_2(void **state)
{
	struct rig *r = *state;

	pair(r, 2, 3);
	set_feature(r, NVME_FEAT_FID_IRQ_CONFIG, 1 << 16 | 4);
	set_feature(r, NVME_FEAT_FID_IRQ_COALESCE, 10 << 8 | 255);
	burst(r, 2, flush_cmd, 1);
	forget(r);
	rig_disable(r);
	r->now += 1000 * UNIT_NS;
	rig_enable(r, 32, 32);
	rig_settle(r);
	assert_int_equal(r->n_raised, 0);
	assert_true(emu_nvme_model.idle(r->model));
	assert_int_equal(get_config(r, 4), 4);
	pair(r, 2, 3);
	forget(r);
	burst(r, 2, flush_cmd, 1); /* the default: no coalescing */
	assert_int_equal(r->raised[3], 1);
}

static void events_raise_the_admin_vector_5_2(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe aer = {.opcode = nvme_admin_async_event};
	struct emu_nvme_cqe cqe;

	rig_put(r, 0, aer);
	rig_ring(r, 0);
	rig_run(r);
	assert_int_equal(r->raised[0], 0);
	r->doorbells[2 * 5] = 1; /* of a queue that does not exist */
	rig_settle(r);
	assert_int_equal(r->raised[0], 1);
	assert_true(rig_take(r, 0, &cqe, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(the_table_has_pages_of_its_own_2_4),
		cmocka_unit_test(a_drive_may_have_no_vectors_5_3),
		rig_test(each_queue_raises_its_vector_7_5),
		rig_test(a_new_queue_asks_anew_5_3),
		rig_test(entries_are_aggregated_up_to_the_threshold_5_21_1_8),
		rig_test(entries_are_aggregated_up_to_the_time_5_21_1_8),
		rig_test(some_are_never_held_back_5_21_1_9),
		rig_test(a_reset_forgets_what_was_held_back_7_3_2),
		rig_test(events_raise_the_admin_vector_5_2),
	};

	return cmocka_run_group_tests_name("nvme model: interrupts", tests, NULL, NULL);
}
