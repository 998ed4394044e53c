/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The primary controller and its secondary ones (NVMe 1.4, section 8.5): Identify tells of them,
 * Virtualization Management takes them offline and online.
 */
#include "rig.h"

#include <endian.h>
#include <string.h>

#define ADMIN 32
#define CONTROLLERS 4u /* 0: the primary one */
#define PRIMARY 0

#define ALLOCATE NVME_VIRT_MGMT_ACT_PRIM_CTRL_FLEX_ALLOC
#define ASSIGN NVME_VIRT_MGMT_ACT_ASSIGN_SEC_CTRL
#define OFFLINE NVME_VIRT_MGMT_ACT_OFFLINE_SEC_CTRL
#define ONLINE NVME_VIRT_MGMT_ACT_ONLINE_SEC_CTRL

struct drive {
	struct rig *r[CONTROLLERS];
};
static unsigned enabled; /* virtual functions, by the SR-IOV capability */

static unsigned functions(struct emu_dev *dev)
{
	(void)dev;
	return enabled;
}

static int setup(void **state)
{
	static struct drive d;

	enabled = CONTROLLERS - 1;
	d.r[PRIMARY] = rig_new(NULL);
	d.r[PRIMARY]->dev.functions = functions;
	for (unsigned i = 1; i < CONTROLLERS; i++)
		d.r[i] = rig_new_function(d.r[PRIMARY]);
	for (unsigned i = 0; i < CONTROLLERS; i++)
		rig_enable(d.r[i], ADMIN, ADMIN);
	*state = &d;
	return 0;
}

static int teardown(void **state)
{
	struct drive *d = *state;

	for (unsigned i = CONTROLLERS; i-- > 0;)
		rig_free(d->r[i]);
	return 0;
}

static unsigned identify(struct rig *r, uint32_t cns, uint32_t first, void *ret)
{
	uint64_t page = rig_alloc(r, 4096);
	struct emu_nvme_sqe c = {.opcode = nvme_admin_identify,
				 .cdw10 = htole32(first << 16 | cns),
				 .prp1 = htole64(page)};
	unsigned status = rig_do(r, 0, c, NULL);

	memcpy(ret, rig_at(r, page), 4096);
	return status;
}

static unsigned manage(struct rig *r, uint32_t controller, uint32_t type, uint32_t action,
		       uint32_t number)
{
	struct emu_nvme_sqe c = {.opcode = nvme_admin_virtual_mgmt,
				 .cdw10 = htole32(controller << 16 | type << 8 | action),
				 .cdw11 = htole32(number)};
	uint32_t result = 0xffffffff;
	unsigned status = rig_do(r, 0, c, &result);

	assert_int_equal(result, 0);
	return status;
}

static bool is_online(struct drive *d, unsigned controller)
{
	struct nvme_secondary_ctrl_list list;

	assert_int_equal(
		identify(d->r[PRIMARY], NVME_IDENTIFY_CNS_SECONDARY_CTRL_LIST, controller, &list),
		0);
	assert_int_equal(le16toh(list.sc_entry[0].scid), controller);
	return list.sc_entry[0].scs & 1;
}

/* CFS and nothing else. */
static bool is_fatal(const struct rig *r)
{
	return rig_reg(r, NVME_REG_CSTS) == 1u << NVME_CSTS_CFS_SHIFT;
}

static void s5_15_identify_primary_controller_capabilities(void **state)
{
	static const struct nvme_primary_ctrl_cap want; /* no flexible resources; id 0 */
	struct nvme_primary_ctrl_cap c;
	struct drive *d = *state;

	assert_int_equal(identify(d->r[PRIMARY], NVME_IDENTIFY_CNS_PRIMARY_CTRL_CAP, 0, &c), 0);
	assert_memory_equal(&c, &want, sizeof(c));
	assert_int_equal(identify(d->r[1], NVME_IDENTIFY_CNS_PRIMARY_CTRL_CAP, 0, &c),
			 RIG_SC(INVALID_FIELD));
}

static void s5_15_identify_secondary_controller_list(void **state)
{
	static const struct nvme_secondary_ctrl_list zeros;
	struct nvme_secondary_ctrl_list list;
	struct drive *d = *state;

	for (unsigned first = 0; first < CONTROLLERS + 2; first++) {
		unsigned id = first ? first : 1, n = id < CONTROLLERS ? CONTROLLERS - id : 0;

		assert_int_equal(identify(d->r[PRIMARY], NVME_IDENTIFY_CNS_SECONDARY_CTRL_LIST,
					  first, &list),
				 0);
		assert_int_equal(list.num, n);
		for (unsigned i = 0; i < n; i++, id++) {
			const struct nvme_secondary_ctrl *s = &list.sc_entry[i];

			assert_int_equal(le16toh(s->scid), id);
			assert_int_equal(le16toh(s->vfn), id);
			assert_int_equal(s->pcid, 0);
			assert_int_equal(s->scs, 1);
			assert_int_equal(s->nvq | s->nvi, 0);
		}
		assert_memory_equal(&list.sc_entry[n], &zeros,
				    sizeof(list) - 32 - n * sizeof(list.sc_entry[0]));
	}
	assert_int_equal(identify(d->r[1], NVME_IDENTIFY_CNS_SECONDARY_CTRL_LIST, 0, &list),
			 RIG_SC(INVALID_FIELD));
}

/* The bit is where the command is: with the primary controller. */
static void s5_15_oacs_tells_of_virtualization_management(void **state)
{
	struct drive *d = *state;
	struct nvme_id_ctrl c;

	for (unsigned i = 0; i < CONTROLLERS; i++) {
		assert_int_equal(identify(d->r[i], NVME_IDENTIFY_CNS_CTRL, 0, &c), 0);
		assert_int_equal(!!(le16toh(c.oacs) & NVME_CTRL_OACS_VIRT_MGMT), i == PRIMARY);
		if (i != PRIMARY)
			assert_int_equal(manage(d->r[i], 1, 0, OFFLINE, 0), RIG_SC(INVALID_OPCODE));
	}
}

static void s5_14_1_5_the_effects_log_has_it(void **state)
{
	struct drive *d = *state;

	for (unsigned i = 0; i < 2; i++) {
		uint64_t page = rig_alloc(d->r[i], 4096);
		struct emu_nvme_sqe c = {.opcode = nvme_admin_get_log_page,
					 .cdw10 = htole32(1023u << 16 | NVME_LOG_LID_CMD_EFFECTS),
					 .prp1 = htole64(page)};
		const struct nvme_cmd_effects_log *e = rig_at(d->r[i], page);

		assert_int_equal(rig_do(d->r[i], 0, c, NULL), 0);
		assert_int_equal(le32toh(e->acs[nvme_admin_virtual_mgmt]),
				 i == PRIMARY ? NVME_CMD_EFFECTS_CSUPP : 0);
	}
}

/* A drive of one function has none of this. */
static void one_alone_is_no_primary(void **state)
{
	struct rig *r = rig_new(NULL);
	uint8_t page[4096];

	(void)state;
	rig_enable(r, ADMIN, ADMIN);
	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_PRIMARY_CTRL_CAP, 0, page),
			 RIG_SC(INVALID_FIELD));
	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_SECONDARY_CTRL_LIST, 0, page),
			 RIG_SC(INVALID_FIELD));
	assert_int_equal(manage(r, 0, 0, ALLOCATE, 1), RIG_SC(INVALID_OPCODE));
	rig_free(r);
}

static void s8_5_3_offline_is_fatal_until_it_is_online_again(void **state)
{
	struct drive *d = *state;
	struct rig *r = d->r[2];

	rig_pair(r, 1, 8);
	assert_int_equal(manage(d->r[PRIMARY], 2, 0, OFFLINE, 0), 0);
	assert_false(is_online(d, 2));
	assert_true(is_online(d, 1) && is_online(d, 3));
	assert_true(is_fatal(r));
	assert_int_equal(rig_counter(r, "queue_pairs"), 0);
	/* Its host can do nothing about it: not by CC, and not by a reset of the function. */
	rig_configure(r, ADMIN, ADMIN);
	rig_run(r);
	rig_settle(r);
	assert_true(is_fatal(r));
	rig_set_reg(r, NVME_REG_CC, 0);
	rig_run(r);
	assert_true(is_fatal(r));
	emu_nvme_model.reset(r->model, false);
	assert_true(is_fatal(r));
	assert_false(is_online(d, 2));
	/* Once more changes nothing; online it is as after a reset. */
	assert_int_equal(manage(d->r[PRIMARY], 2, 0, OFFLINE, 0), 0);
	assert_int_equal(manage(d->r[PRIMARY], 2, 0, ONLINE, 0), 0);
	assert_true(is_online(d, 2));
	assert_int_equal(rig_reg(r, NVME_REG_CSTS), 0);
	assert_int_equal(rig_reg(r, NVME_REG_CC), 0);
	rig_enable(r, ADMIN, ADMIN);
	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, rig_alloc(r, 4096), 0), NULL), 0);
}

static void s8_5_3_online_again_goes_on(void **state)
{
	struct drive *d = *state;

	rig_pair(d->r[1], 1, 8);
	assert_int_equal(manage(d->r[PRIMARY], 1, 0, ONLINE, 0), 0);
	assert_int_equal(rig_counter(d->r[1], "queue_pairs"), 1);
	assert_int_equal(rig_reg(d->r[1], NVME_REG_CSTS), 1);
}

static void s5_22_invalid_controller_identifier(void **state)
{
	static const uint32_t wrong[] = {PRIMARY, CONTROLLERS, 0xffff};
	struct drive *d = *state;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(manage(d->r[PRIMARY], wrong[i], 0, OFFLINE, 0),
				 RIG_SC1(INVALID_CTRL_ID));
		assert_int_equal(manage(d->r[PRIMARY], wrong[i], 0, ONLINE, 0),
				 RIG_SC1(INVALID_CTRL_ID));
		assert_int_equal(manage(d->r[PRIMARY], wrong[i], 0, ASSIGN, 1),
				 RIG_SC1(INVALID_CTRL_ID));
	}
	/* Resources of the primary one are given to itself. */
	assert_int_equal(manage(d->r[PRIMARY], 1, 0, ALLOCATE, 1), RIG_SC1(INVALID_CTRL_ID));
}

static void s5_22_invalid_secondary_controller_state(void **state)
{
	struct drive *d = *state;

	/* Resources are assigned to one that is offline. */
	assert_int_equal(manage(d->r[PRIMARY], 1, 0, ASSIGN, 1), RIG_SC1(INVALID_SEC_CTRL_STATE));
	/* Without its virtual function it cannot come online (section 8.5.4). */
	enabled = 2;
	assert_int_equal(manage(d->r[PRIMARY], 3, 0, ONLINE, 0), RIG_SC1(INVALID_SEC_CTRL_STATE));
	assert_false(is_online(d, 3));
	assert_true(is_online(d, 2));
	assert_int_equal(manage(d->r[PRIMARY], 3, 0, OFFLINE, 0), 0);
}

/* There are no flexible resources, of either type or of one that does not exist. */
static void s5_22_invalid_resource_identifier(void **state)
{
	struct drive *d = *state;

	assert_int_equal(manage(d->r[PRIMARY], 1, 0, OFFLINE, 0), 0);
	for (uint32_t type = 0; type < 8; type++) {
		assert_int_equal(manage(d->r[PRIMARY], 1, type, ASSIGN, 1),
				 RIG_SC1(INVALID_RESOURCE_ID));
		assert_int_equal(manage(d->r[PRIMARY], PRIMARY, type, ALLOCATE, 1),
				 RIG_SC1(INVALID_RESOURCE_ID));
	}
}

static void s5_22_invalid_field(void **state)
{
	struct emu_nvme_sqe of_namespace = {.opcode = nvme_admin_virtual_mgmt,
					    .nsid = htole32(1),
					    .cdw10 = htole32(1u << 16 | OFFLINE)};
	struct drive *d = *state;

	assert_int_equal(rig_do(d->r[PRIMARY], 0, of_namespace, NULL), RIG_SC(INVALID_FIELD));
	assert_true(is_online(d, 1));

	for (uint32_t action = 0; action < 16; action++)
		if (action != ALLOCATE && action != ASSIGN && action != OFFLINE && action != ONLINE)
			assert_int_equal(manage(d->r[PRIMARY], 1, 0, action, 0),
					 RIG_SC(INVALID_FIELD));
	for (uint32_t type = 1; type < 8; type++) /* of no meaning where no resource is named */
		assert_int_equal(manage(d->r[PRIMARY], 1, type, ONLINE, 0), 0);
}

/* A function that is taken away, or a drive that is reset, begins anew. */
static void s8_5_4_a_function_that_comes_back_is_online(void **state)
{
	struct drive *d = *state;

	assert_int_equal(manage(d->r[PRIMARY], 1, 0, OFFLINE, 0), 0);
	enabled = 0;
	emu_nvme_model.reset(d->r[1]->model, false);
	assert_false(is_online(d, 1));
	enabled = CONTROLLERS - 1;
	emu_nvme_model.reset(d->r[1]->model, false);
	assert_true(is_online(d, 1));
	assert_int_equal(rig_reg(d->r[1], NVME_REG_CSTS), 0);

	assert_int_equal(manage(d->r[PRIMARY], 2, 0, OFFLINE, 0), 0);
	rig_disable(d->r[PRIMARY]);
	rig_enable(d->r[PRIMARY], ADMIN, ADMIN);
	assert_false(is_online(d, 2));
	emu_nvme_model.reset(d->r[PRIMARY]->model, false);
	assert_int_equal(rig_reg(d->r[2], NVME_REG_CSTS), 0);
	memset(d->r[PRIMARY]->q, 0, sizeof(d->r[PRIMARY]->q));
	rig_enable(d->r[PRIMARY], ADMIN, ADMIN);
	assert_true(is_online(d, 2));

	assert_int_equal(manage(d->r[PRIMARY], 3, 0, OFFLINE, 0), 0);
	emu_nvme_model.reset(d->r[3]->model, true);
	assert_true(is_online(d, 3));
}

#define drive_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		drive_test(s5_15_identify_primary_controller_capabilities),
		drive_test(s5_15_identify_secondary_controller_list),
		drive_test(s5_15_oacs_tells_of_virtualization_management),
		drive_test(s5_14_1_5_the_effects_log_has_it),
		cmocka_unit_test(one_alone_is_no_primary),
		drive_test(s8_5_3_offline_is_fatal_until_it_is_online_again),
		drive_test(s8_5_3_online_again_goes_on),
		drive_test(s5_22_invalid_controller_identifier),
		drive_test(s5_22_invalid_secondary_controller_state),
		drive_test(s5_22_invalid_resource_identifier),
		drive_test(s5_22_invalid_field),
		drive_test(s8_5_4_a_function_that_comes_back_is_online),
	};

	return cmocka_run_group_tests_name("virtualization", tests, NULL, NULL);
}
