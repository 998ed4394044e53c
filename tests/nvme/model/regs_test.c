/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers, and the handshakes of enable, disable, shutdown and fatal status. */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

static struct rig *off(void **state)
{
	struct rig *r = *state;

	rig_disable(r);
	return r;
}

static void capabilities_say_what_is_there_3_1_1(void **state)
{
	struct rig *r = *state;
	uint64_t cap = rig_reg64(r, NVME_REG_CAP);

	assert_int_equal(NVME_CAP_MQES(cap), RIG_ENTRIES - 1);
	assert_int_equal(NVME_CAP_CQR(cap), 1);
	assert_int_equal(NVME_CAP_AMS(cap), 0);
	assert_true(NVME_CAP_TO(cap) > 0);
	assert_int_equal(NVME_CAP_DSTRD(cap), 0);
	assert_int_equal(NVME_CAP_NSSRC(cap), 0);
	assert_int_equal(NVME_CAP_CSS(cap), NVME_CAP_CSS_NVM);
	assert_int_equal(NVME_CAP_MPSMIN(cap), 0);
	assert_int_equal(NVME_CAP_MPSMAX(cap), 0);
	assert_int_equal(cap >> NVME_CAP_PMRS_SHIFT, 0);
	assert_int_equal(rig_reg(r, NVME_REG_VS), 0x00010400);
	assert_int_equal(rig_reg(r, NVME_REG_CMBLOC), 0);
	assert_int_equal(rig_reg(r, NVME_REG_CMBSZ), 0);
}

static void identity_and_layout_2_1(void **state)
{
	struct rig *r = *state;
	const struct emu_dev_config *c = &r->config;

	assert_int_equal(c->class_code, 0x010802);
	assert_int_equal(c->n_pages, 3);
	assert_int_equal(c->pages[0].kind, EMU_PAGE_REGISTERS);
	assert_int_equal(c->pages[0].offset, 0);
	assert_int_equal(c->pages[0].length, 4096);
	assert_int_equal(c->pages[1].kind, EMU_PAGE_DOORBELLS);
	assert_int_equal(c->pages[1].offset, 4096);
	assert_int_equal(c->pages[1].length, 4096);
	assert_int_equal(c->bar_size[0] & (c->bar_size[0] - 1), 0);
	assert_true(c->bar_size[0] >= 8192);
	assert_int_equal(c->msix_count, RIG_VECTORS);
}

static void enable_and_disable_3_1_5(void **state)
{
	struct rig *r = off(state);

	rig_enable(r, 2, 2);
	assert_int_equal(r->mirror[NVME_REG_CSTS / 4], 1);
	assert_int_equal(r->mirror[NVME_REG_CC / 4], rig_reg(r, NVME_REG_CC));
	rig_disable(r);
	rig_enable(r, 4096, 4096);
}

static void admin_queue_registers_survive_a_controller_reset_7_3_2(void **state)
{
	struct rig *r = *state;
	uint64_t asq = rig_reg64(r, NVME_REG_ASQ);
	uint32_t aqa = rig_reg(r, NVME_REG_AQA);

	rig_set_reg(r, NVME_REG_INTMS, 5);
	rig_settle(r);
	assert_int_equal(rig_reg(r, NVME_REG_INTMS), 5);
	rig_disable(r);
	rig_settle(r);
	assert_true(asq == rig_reg64(r, NVME_REG_ASQ));
	assert_int_equal(rig_reg(r, NVME_REG_AQA), aqa);
	assert_int_equal(rig_reg(r, NVME_REG_CC), 0); /* and no other */
	assert_int_equal(rig_reg(r, NVME_REG_INTMS), 0);
}

static void bad_configuration_is_fatal_3_1_5(void **state)
{
	static const struct {
		uint32_t cc, aqa, asq_low, acq_low;
	} bad[] = {
		{0x00460011, 0x001f001f, 0, 0}, /* CSS */
		{0x00460081, 0x001f001f, 0, 0}, /* MPS */
		{0x00460801, 0x001f001f, 0, 0}, /* AMS */
		{0x00460001, 0x001f0000, 0, 0}, /* one submission entry */
		{0x00460001, 0x0000001f, 0, 0}, /* one completion entry */
		{0x00460001, 0x001f001f, 8, 0}, /* not at a page */
		{0x00460001, 0x001f001f, 0, 64},
	};
	struct rig *r = off(state);

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unsigned logs = r->n_logs;

		rig_configure(r, 32, 32);
		rig_set_reg(r, NVME_REG_AQA, bad[i].aqa);
		rig_set_reg(r, NVME_REG_ASQ, rig_reg(r, NVME_REG_ASQ) | bad[i].asq_low);
		rig_set_reg(r, NVME_REG_ACQ, rig_reg(r, NVME_REG_ACQ) | bad[i].acq_low);
		rig_set_reg(r, NVME_REG_CC, bad[i].cc);
		rig_run(r);
		assert_int_equal(rig_reg(r, NVME_REG_CSTS), 2); /* CFS, not RDY */
		assert_int_equal(r->n_logs, logs + 1);
		rig_disable(r);
	}
	rig_enable(r, 32, 32);
}

static void shutdown_completes_and_needs_a_reset_7_6_2(void **state)
{
	struct rig *r = *state;

	for (uint32_t kind = 1; kind <= 2; kind++) {
		rig_set_reg(r, NVME_REG_CC, rig_reg(r, NVME_REG_CC) | kind << 14);
		rig_run(r);
		assert_int_equal(NVME_CSTS_SHST(rig_reg(r, NVME_REG_CSTS)), NVME_CSTS_SHST_CMPLT);
		/* No command is done any more. */
		rig_put(r, 0, (struct emu_nvme_sqe){.opcode = nvme_admin_async_event});
		rig_ring(r, 0);
		r->n_reads = 0;
		rig_run(r);
		assert_int_equal(r->n_reads, 0);
		rig_disable(r);
		rig_enable(r, 32, 32);
	}
}

static void read_only_registers_are_restored_3_1(void **state)
{
	static const unsigned at[] = {NVME_REG_CAP,    NVME_REG_CAP + 4, NVME_REG_VS, 0x18,
				      NVME_REG_CSTS,   NVME_REG_NSSR,	 0x38,	      0x3c,
				      NVME_REG_CMBMSC, NVME_REG_PMRCAP,	 0xffc};
	struct rig *r = *state;
	uint32_t before[RIG_VIEW_BYTES / 4];

	rig_settle(r);
	memcpy(before, r->view, sizeof(before));
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		rig_set_reg(r, at[i], ~rig_reg(r, at[i]));
	rig_settle(r);
	assert_memory_equal(before, r->view, sizeof(before));
	assert_memory_equal(before, r->mirror, sizeof(before));
}

static void interrupt_masks_are_one_register_3_1_3_3_1_4(void **state)
{
	struct rig *r = *state;

	rig_set_reg(r, NVME_REG_INTMS, 5);
	rig_settle(r);
	assert_int_equal(rig_reg(r, NVME_REG_INTMS), 5);
	assert_int_equal(rig_reg(r, NVME_REG_INTMC), 5);
	rig_set_reg(r, NVME_REG_INTMS, 2);
	rig_settle(r);
	assert_int_equal(rig_reg(r, NVME_REG_INTMC), 7);
	rig_set_reg(r, NVME_REG_INTMC, 1);
	rig_settle(r);
	assert_int_equal(rig_reg(r, NVME_REG_INTMS), 6);
	assert_int_equal(rig_reg(r, NVME_REG_INTMC), 6);
}

/* The owner of the registers dies while others do I/O; a new one gets a fresh page. */
static void registers_change_hands(void **state)
{
	struct rig *r = *state;
	uint32_t *first = r->view, before[RIG_VIEW_BYTES / 4];
	uint64_t data = rig_alloc(r, 4096);

	rig_pair(r, 1, 8);
	rig_settle(r);
	memcpy(before, first, sizeof(before));
	r->view = NULL;
	emu_nvme_model.view_changed(r->model, 0);
	memset(first, 0, RIG_VIEW_BYTES); /* would be a disable, if anyone still looked */
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
	r->view = calloc(1, RIG_VIEW_BYTES);
	assert_non_null(r->view);
	free(first);
	emu_nvme_model.view_changed(r->model, 0);
	assert_memory_equal(before, r->view, sizeof(before));
	assert_memory_equal(before, r->mirror, sizeof(before));
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
	rig_disable(r);
}

static void function_reset_restores_defaults_and_keeps_media_7_3_2(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);

	rig_pair(r, 1, 8);
	memset(rig_at(r, data), 0x5a, 4096);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 8, 8, data, 0), NULL), 0);
	emu_nvme_model.reset(r->model, false);
	assert_int_equal(rig_reg(r, NVME_REG_CC), 0);
	assert_int_equal(rig_reg(r, NVME_REG_CSTS), 0);
	assert_int_equal(rig_reg(r, NVME_REG_AQA), 0);
	assert_true(rig_reg64(r, NVME_REG_ASQ) == 0);
	for (unsigned i = 0; i < 1024; i++)
		assert_int_equal(r->doorbells[i], 0);
	assert_int_equal(rig_counter(r, "queue_pairs"), 0);

	rig_enable(r, 32, 32);
	rig_pair(r, 1, 8);
	memset(rig_at(r, data), 0, 4096);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 8, 8, data, 0), NULL), 0);
	assert_int_equal(*(uint8_t *)rig_at(r, data + 4095), 0x5a);

	emu_nvme_model.reset(r->model, true);
	rig_enable(r, 32, 32);
	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 8, 8, data, 0), NULL), 0);
	assert_int_equal(*(uint8_t *)rig_at(r, data + 4095), 0);
}

static void idle_means_that_only_a_store_can_make_work(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_cqe cqe;

	assert_true(emu_nvme_model.idle(r->model));
	rig_put(r, 0, (struct emu_nvme_sqe){.opcode = nvme_admin_get_features, .cdw10 = 7});
	rig_put(r, 0, (struct emu_nvme_sqe){.opcode = nvme_admin_get_features, .cdw10 = 7});
	rig_ring(r, 0);
	assert_int_equal(emu_nvme_model.step(r->model, 1), 1);
	assert_false(emu_nvme_model.idle(r->model));
	assert_int_equal(emu_nvme_model.step(r->model, 1), 1);
	assert_true(emu_nvme_model.idle(r->model));
	assert_int_equal(emu_nvme_model.step(r->model, 1), 0);

	for (unsigned i = 0; i < 2; i++)
		assert_true(rig_take(r, 0, &cqe, true));
	rig_pair(r, 1, 8);
	for (unsigned i = 0; i < 2; i++)
		rig_put(r, 1, (struct emu_nvme_sqe){.opcode = nvme_cmd_flush, .nsid = 1});
	rig_ring(r, 1);
	assert_int_equal(emu_nvme_model.step(r->model, 1), 1);
	assert_false(emu_nvme_model.idle(r->model));
	assert_int_equal(emu_nvme_model.step(r->model, 1), 1);
	assert_true(emu_nvme_model.idle(r->model));
}

static void bad_topology_is_refused_with_its_reason(void **state)
{
	struct sio_topo_device good, t;
	struct emu_dev_config config;
	struct emu_dev dev = {0};
	struct sio_err err;
	void *model = NULL;

	(void)state;
	rig_topo(&good);
	for (unsigned i = 0; i < 8; i++) {
		static const char *const word[] = {"block",	    "size",	   "size",
						   "queue_pairs",   "queue_pairs", "queue_entries",
						   "queue_entries", "vectors"};

		t = good;
		if (i == 0)
			t.block_size = 1024;
		else if (i == 1)
			t.size = 0;
		else if (i == 2)
			t.size = 4097;
		else if (i == 3)
			t.queue_pairs = 0;
		else if (i == 4)
			t.queue_pairs = 65536;
		else if (i == 5)
			t.queue_entries = 1;
		else if (i == 6)
			t.queue_entries = 65537;
		else
			t.vectors = 2049;
		assert_int_equal(emu_nvme_model.create(&dev, &t, &config, &model, &err), -22);
		assert_non_null(strstr(err.text, word[i]));
		assert_non_null(strstr(err.text, "nvme0"));
		assert_null(model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(capabilities_say_what_is_there_3_1_1),
		rig_test(identity_and_layout_2_1),
		rig_test(enable_and_disable_3_1_5),
		rig_test(admin_queue_registers_survive_a_controller_reset_7_3_2),
		rig_test(bad_configuration_is_fatal_3_1_5),
		rig_test(shutdown_completes_and_needs_a_reset_7_6_2),
		rig_test(read_only_registers_are_restored_3_1),
		rig_test(interrupt_masks_are_one_register_3_1_3_3_1_4),
		rig_test(registers_change_hands),
		rig_test(function_reset_restores_defaults_and_keeps_media_7_3_2),
		rig_test(idle_means_that_only_a_store_can_make_work),
		cmocka_unit_test(bad_topology_is_refused_with_its_reason),
	};

	return cmocka_run_group_tests_name("nvme model: registers", tests, NULL, NULL);
}
