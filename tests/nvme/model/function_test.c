/* SPDX-License-Identifier: BSD-2-Clause */
/* Controllers of one drive (NVMe 1.4, section 1.5): what they share, what is each one's own. */
#include "rig.h"

#include <endian.h>
#include <string.h>

#define ADMIN 32
#define FUNCTIONS 3

struct drive {
	struct rig *r[FUNCTIONS]; /* 0: the physical function */
};

static int setup(void **state)
{
	static struct drive d;

	d.r[0] = rig_new(NULL);
	for (unsigned i = 1; i < FUNCTIONS; i++)
		d.r[i] = rig_new_function(d.r[0]);
	*state = &d;
	return 0;
}

static int teardown(void **state)
{
	struct drive *d = *state;

	for (unsigned i = FUNCTIONS; i-- > 0;)
		rig_free(d->r[i]);
	return 0;
}

static void *identify(struct rig *r, uint32_t cns, uint32_t nsid)
{
	uint64_t page = rig_alloc(r, 4096);
	struct emu_nvme_sqe c = {.opcode = nvme_admin_identify,
				 .nsid = htole32(nsid),
				 .cdw10 = htole32(cns),
				 .prp1 = htole64(page)};

	assert_int_equal(rig_do(r, 0, c, NULL), 0);
	return rig_at(r, page);
}

static unsigned rw(struct rig *r, uint8_t opcode, uint64_t lba, uint64_t at)
{
	return rig_do(r, 1, rig_rw(opcode, lba, 8, at, 0), NULL);
}

static unsigned format(struct rig *r, uint32_t lbaf)
{
	struct emu_nvme_sqe c = {
		.opcode = nvme_admin_format_nvm, .nsid = htole32(1), .cdw10 = htole32(lbaf)};

	return rig_do(r, 0, c, NULL);
}

static void enable_all(struct drive *d)
{
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		rig_enable(d->r[i], ADMIN, ADMIN);
		rig_pair(d->r[i], 1, 8);
	}
}

static void identify_tells_of_one_subsystem_5_15(void **state)
{
	struct drive *d = *state;
	struct nvme_id_ctrl first;

	enable_all(d);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		struct nvme_id_ctrl *c = identify(d->r[i], NVME_IDENTIFY_CNS_CTRL, 0);
		struct nvme_id_ns *ns = identify(d->r[i], NVME_IDENTIFY_CNS_NS, 1);

		assert_int_equal(le16toh(c->cntlid), i);
		assert_int_equal(c->cmic,
				 NVME_CTRL_CMIC_MULTI_CTRL | (i ? NVME_CTRL_CMIC_MULTI_SRIOV : 0));
		assert_int_equal(ns->nmic, NVME_NS_NMIC_SHARED);
		if (i == 0)
			first = *c;
		assert_memory_equal(c->sn, first.sn, sizeof(c->sn));
		assert_memory_equal(c->subnqn, first.subnqn, sizeof(c->subnqn));
	}
}

static void one_alone_says_nothing_of_others_5_15(void **state)
{
	struct rig *r = rig_new(NULL);
	struct nvme_id_ctrl *c;
	struct nvme_id_ns *ns;

	(void)state;
	rig_enable(r, ADMIN, ADMIN);
	c = identify(r, NVME_IDENTIFY_CNS_CTRL, 0);
	ns = identify(r, NVME_IDENTIFY_CNS_NS, 1);
	assert_int_equal(c->cmic | c->cntlid | ns->nmic, 0);
	rig_free(r);
}

/* Each writes; all read each one's blocks. */
static void the_namespace_is_of_all_1_5(void **state)
{
	struct drive *d = *state;

	enable_all(d);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		uint64_t at = rig_alloc(d->r[i], 4096);

		memset(rig_at(d->r[i], at), (int)(0x10 + i), 4096);
		assert_int_equal(rw(d->r[i], nvme_cmd_write, 8 * i, at), 0);
		assert_int_equal(rig_counter(d->r[i], "commands_write"), 1);
	}
	for (unsigned i = 0; i < FUNCTIONS; i++)
		for (unsigned k = 0; k < FUNCTIONS; k++) {
			uint64_t at = rig_alloc(d->r[i], 4096);
			uint8_t want[4096];

			memset(want, (int)(0x10 + k), sizeof(want));
			assert_int_equal(rw(d->r[i], nvme_cmd_read, 8 * k, at), 0);
			assert_memory_equal(rig_at(d->r[i], at), want, sizeof(want));
		}
}

static void a_reset_touches_one_controller_7_3_2(void **state)
{
	struct drive *d = *state;

	enable_all(d);
	emu_nvme_model.reset(d->r[1]->model, false);
	rig_disable(d->r[0]);
	assert_int_equal(rw(d->r[2], nvme_cmd_read, 0, rig_alloc(d->r[2], 4096)), 0);
	assert_int_equal(rig_counter(d->r[1], "queue_pairs"), 0);
	assert_int_equal(rig_counter(d->r[2], "queue_pairs"), 1);
}

/* The specification lets a drive choose: ours keeps the blocks under another host's feet. */
static void format_waits_until_no_other_runs_5_23(void **state)
{
	struct drive *d = *state;
	const struct nvme_id_ns *ns;

	enable_all(d);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		assert_int_equal(format(d->r[i], 1), RIG_SC(CMD_SEQ_ERROR));
	rig_disable(d->r[0]);
	assert_int_equal(format(d->r[2], 1), RIG_SC(CMD_SEQ_ERROR));
	rig_disable(d->r[1]);
	assert_int_equal(format(d->r[2], 1), 0);
	rig_enable(d->r[0], ADMIN, ADMIN);
	ns = identify(d->r[0], NVME_IDENTIFY_CNS_NS, 1);
	assert_int_equal(ns->flbas, 1);
	assert_int_equal(le64toh(ns->nsze), RIG_BLOCKS / 8);
}

/* The media are the drive's: power lost is lost for all, and a function's own reset loses none. */
static void media_go_with_the_power_of_the_drive(void **state)
{
	static const uint8_t zeros[4096];
	struct drive *d = *state;
	uint64_t at;

	enable_all(d);
	at = rig_alloc(d->r[1], 4096);
	memset(rig_at(d->r[1], at), 0x5a, 4096);
	assert_int_equal(rw(d->r[1], nvme_cmd_write, 0, at), 0);
	emu_nvme_model.reset(d->r[2]->model, true);
	assert_int_equal(rw(d->r[0], nvme_cmd_read, 0, rig_alloc(d->r[0], 4096)), 0);
	assert_int_equal(rw(d->r[1], nvme_cmd_read, 0, at), 0);
	assert_int_equal(*(uint8_t *)rig_at(d->r[1], at), 0x5a);
	emu_nvme_model.reset(d->r[0]->model, true);
	assert_int_equal(rw(d->r[1], nvme_cmd_read, 0, at), 0);
	assert_memory_equal(rig_at(d->r[1], at), zeros, sizeof(zeros));
}

#define drive_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		drive_test(identify_tells_of_one_subsystem_5_15),
		cmocka_unit_test(one_alone_says_nothing_of_others_5_15),
		drive_test(the_namespace_is_of_all_1_5),
		drive_test(a_reset_touches_one_controller_7_3_2),
		drive_test(format_waits_until_no_other_runs_5_23),
		drive_test(media_go_with_the_power_of_the_drive),
	};

	return cmocka_run_group_tests_name("several functions", tests, NULL, NULL);
}
