/* SPDX-License-Identifier: BSD-2-Clause */
/* Identify, Get and Set Features, Get Log Page. */
#include "rig.h"

#include <endian.h>
#include <string.h>

static unsigned identify(struct rig *r, uint32_t cns, uint32_t nsid, uint64_t data)
{
	return rig_do(r, 0,
		      (struct emu_nvme_sqe){.opcode = nvme_admin_identify,
					    .nsid = htole32(nsid),
					    .prp1 = htole64(data),
					    .cdw10 = htole32(cns)},
		      NULL);
}

/* The same for this serial number for ever. */
#define NQN "nqn.2014-08.org.nvmexpress:uuid:320bed46-4f06-8151-8b7d-3ba7c2ae6b39"

static void identify_controller_advertises_what_there_is_5_15(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);
	const struct nvme_id_ctrl *c = rig_at(r, data);

	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_CTRL, 0, data), 0);
	assert_memory_equal(c->sn, "SN-0001             ", 20);
	assert_memory_equal(c->mn, "SmartIO emulated NVMe drive             ", 40);
	assert_memory_equal(c->fr, "0.1.0   ", 8);
	assert_int_equal(le32toh(c->ver), 0x10400);
	assert_int_equal(c->cntrltype, 1);
	assert_int_equal(c->mdts, 8);
	assert_int_equal(c->sqes, 0x66);
	assert_int_equal(c->cqes, 0x44);
	assert_int_equal(le32toh(c->nn), 1);
	assert_int_equal(c->aerl, 3);
	assert_int_equal(c->elpe, 63);
	assert_int_equal(c->lpa, 6);
	assert_int_equal(c->vwc, 6);
	assert_int_equal(le16toh(c->oncs), 0x9d);
	assert_int_equal(le16toh(c->oacs), 0x102);
	assert_int_equal(c->fna, 0);
	assert_int_equal(le32toh(c->oaes), 0);
	assert_int_equal(le32toh(c->sgls), 1);
	assert_int_equal(le16toh(c->fuses), 0);
	assert_int_equal(c->npss, 0);
	assert_string_equal(c->subnqn, NQN);
}

static void identify_namespace_and_lists_5_15(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);
	const struct nvme_id_ns *ns = rig_at(r, data);
	const struct nvme_ns_id_desc *d = rig_at(r, data);
	const __le32 *list = rig_at(r, data);

	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_NS, 1, data), 0);
	assert_int_equal(le64toh(ns->nsze), RIG_BLOCKS);
	assert_int_equal(le64toh(ns->ncap), RIG_BLOCKS);
	assert_int_equal(ns->nlbaf, 1);
	assert_int_equal(ns->flbas, 0);
	assert_int_equal(ns->lbaf[0].ds, 9);
	assert_int_equal(ns->lbaf[1].ds, 12);
	assert_int_equal(ns->dlfeat, 9);
	assert_int_equal(ns->dps, 0);

	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_NS_ACTIVE_LIST, 0, data), 0);
	assert_int_equal(le32toh(list[0]), 1);
	assert_int_equal(list[1], 0);
	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_NS_ACTIVE_LIST, 1, data), 0);
	assert_int_equal(list[0], 0);

	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_NS_DESC_LIST, 1, data), 0);
	assert_int_equal(d->nidt, NVME_NIDT_UUID);
	assert_int_equal(d->nidl, 16);
	assert_int_equal(d->nid[6] >> 4, 8);
	assert_int_equal(d->nid[8] >> 6, 2);
	assert_int_equal(d->nid[16], 0); /* the list ends */
}

static void identify_refuses_5_15(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 8192);

	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_NS, 0, data), RIG_SC(INVALID_NS));
	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_NS, 2, data), RIG_SC(INVALID_NS));
	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_NS, 0xffffffff, data), RIG_SC(INVALID_NS));
	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_NS_DESC_LIST, 2, data), RIG_SC(INVALID_NS));
	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_NS_ACTIVE_LIST, 0xfffffffe, data),
			 RIG_SC(INVALID_NS));
	assert_int_equal(identify(r, NVME_IDENTIFY_CNS_NS_ACTIVE_LIST, 0xffffffff, data),
			 RIG_SC(INVALID_NS));
	for (uint32_t cns = 4; cns < 256; cns++)
		assert_int_equal(identify(r, cns, 1, data), RIG_SC(INVALID_FIELD));
	assert_int_equal(identify(r, 1, 0, data + 1), RIG_SC(PRP_INVALID_OFFSET));
}

static unsigned feature(struct rig *r, uint8_t opcode, uint32_t cdw10, uint32_t cdw11,
			uint32_t nsid, uint32_t *result)
{
	return rig_do(r, 0,
		      (struct emu_nvme_sqe){.opcode = opcode,
					    .nsid = htole32(nsid),
					    .cdw10 = htole32(cdw10),
					    .cdw11 = htole32(cdw11)},
		      result);
}

#define GET nvme_admin_get_features
#define SET nvme_admin_set_features
#define QUEUES ((RIG_PAIRS - 1) << 16 | (RIG_PAIRS - 1))

static const struct {
	unsigned id;
	uint32_t nsid, dflt, set, get; /* written; what is read then */
	uint32_t bad;		       /* refused; 0: every value is taken */
} features[] = {
	{NVME_FEAT_FID_ARBITRATION, 0, 5, 0x01020307, 0x01020307, 0},
	{NVME_FEAT_FID_POWER_MGMT, 0, 0, 0x20, 0x20, 1},
	{NVME_FEAT_FID_TEMP_THRESH, 0, 343, 350, 350, 0x00010000},
	{NVME_FEAT_FID_ERR_RECOVERY, 1, 0, 77, 77, 1 << 16},
	{NVME_FEAT_FID_NUM_QUEUES, 0, QUEUES, 0x00010002, QUEUES, 0xffff},
	{NVME_FEAT_FID_IRQ_COALESCE, 0, 0, 0x1234, 0x1234, 0},
	{NVME_FEAT_FID_IRQ_CONFIG, 0, 0, 1 << 16, 1 << 16, RIG_VECTORS},
	{NVME_FEAT_FID_WRITE_ATOMIC, 0, 0, 1, 1, 0},
	{NVME_FEAT_FID_ASYNC_EVENT, 0, 0, 0x1f, 0x1f, 1 << 8},
};

#define N_FEATURES (sizeof(features) / sizeof(features[0]))

static void features_can_be_set_and_read_5_13_5_21(void **state)
{
	struct rig *r = *state;
	uint32_t value;

	for (unsigned i = 0; i < N_FEATURES; i++) {
		unsigned id = features[i].id;
		uint32_t nsid = features[i].nsid;

		assert_int_equal(feature(r, GET, id, 0, nsid, &value), 0);
		assert_int_equal(value, features[i].dflt);
		assert_int_equal(feature(r, SET, id, features[i].set, nsid, NULL), 0);
		assert_int_equal(feature(r, GET, id, 0, nsid, &value), 0);
		assert_int_equal(value, features[i].get);
		if (features[i].bad)
			assert_int_equal(feature(r, SET, id, features[i].bad, nsid, NULL),
					 RIG_SC(INVALID_FIELD));
		/* default, saved, supported capabilities */
		assert_int_equal(feature(r, GET, 1 << 8 | id, 0, nsid, &value), 0);
		assert_int_equal(value, features[i].dflt);
		assert_int_equal(feature(r, GET, 2 << 8 | id, 0, nsid, &value), 0);
		assert_int_equal(value, features[i].dflt);
		assert_int_equal(feature(r, GET, 3 << 8 | id, 0, nsid, &value), 0);
		assert_int_equal(value, nsid ? 6 : 4);
		assert_int_equal(feature(r, GET, 4 << 8 | id, 0, nsid, &value),
				 RIG_SC(INVALID_FIELD));
		assert_int_equal(feature(r, SET, 1u << 31 | id, features[i].set, nsid, NULL),
				 RIG_SC1(FEATURE_NOT_SAVEABLE));
		assert_int_equal(feature(r, SET, id, features[i].set, 2, NULL), RIG_SC(INVALID_NS));
		assert_int_equal(feature(r, SET, id, features[i].set, !nsid, NULL),
				 nsid ? RIG_SC(INVALID_NS) : RIG_SC1(FEATURE_NOT_PER_NS));
	}
	rig_disable(r);
	rig_enable(r, 32, 32);
	for (unsigned i = 0; i < N_FEATURES; i++) {
		assert_int_equal(feature(r, GET, features[i].id, 0, features[i].nsid, &value), 0);
		assert_int_equal(value, features[i].dflt);
	}
}

static void unknown_features_are_refused_5_21(void **state)
{
	struct rig *r = *state;

	for (unsigned id = 0; id < 256; id++) {
		bool is_known = id >= 1 && id <= 11 && id != 3 && id != 6;

		if (is_known)
			continue;
		assert_int_equal(feature(r, GET, id, 0, 0, NULL), RIG_SC(INVALID_FIELD));
		assert_int_equal(feature(r, SET, id, 0, 0, NULL), RIG_SC(INVALID_FIELD));
	}
}

static void feature_details_5_21_1(void **state)
{
	struct rig *r = *state;
	uint32_t value;

	/* Queues were made: their number is settled until the next reset. */
	assert_int_equal(feature(r, SET, NVME_FEAT_FID_NUM_QUEUES, 0, 0, &value), 0);
	assert_int_equal(value, QUEUES);
	assert_int_equal(feature(r, SET, NVME_FEAT_FID_NUM_QUEUES, 0xffff0000, 0, NULL),
			 RIG_SC(INVALID_FIELD));
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, 8), NULL), 0);
	assert_int_equal(feature(r, SET, NVME_FEAT_FID_NUM_QUEUES, 0, 0, NULL),
			 RIG_SC(CMD_SEQ_ERROR));
	/* Under-temperature, all sensors, sensors that are not there. */
	assert_int_equal(feature(r, GET, NVME_FEAT_FID_TEMP_THRESH, 1 << 20, 0, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(feature(r, SET, NVME_FEAT_FID_TEMP_THRESH, 0x1f0000 | 100, 0, NULL), 0);
	assert_int_equal(feature(r, GET, NVME_FEAT_FID_TEMP_THRESH, 1 << 20, 0, &value), 0);
	assert_int_equal(value, 100);
	assert_int_equal(feature(r, GET, NVME_FEAT_FID_TEMP_THRESH, 0x0f0000, 0, NULL),
			 RIG_SC(INVALID_FIELD));
	assert_int_equal(feature(r, GET, NVME_FEAT_FID_TEMP_THRESH, 2 << 20, 0, NULL),
			 RIG_SC(INVALID_FIELD));
	assert_int_equal(feature(r, GET, NVME_FEAT_FID_IRQ_CONFIG, RIG_VECTORS, 0, NULL),
			 RIG_SC(INVALID_FIELD));
	assert_int_equal(feature(r, GET, NVME_FEAT_FID_ERR_RECOVERY, 0, 0xffffffff, NULL),
			 RIG_SC(INVALID_NS));
	assert_int_equal(feature(r, SET, NVME_FEAT_FID_ERR_RECOVERY, 5, 0xffffffff, NULL), 0);
}

static unsigned get_log(struct rig *r, unsigned id, uint32_t dwords, uint64_t offset, uint32_t nsid,
			uint64_t data)
{
	return rig_do(r, 0,
		      (struct emu_nvme_sqe){.opcode = nvme_admin_get_log_page,
					    .nsid = htole32(nsid),
					    .prp1 = htole64(data),
					    .prp2 = htole64((data & ~4095ull) + 4096),
					    .cdw10 = htole32((dwords - 1) << 16 | id),
					    .cdw11 = htole32((dwords - 1) >> 16),
					    .cdw12 = htole32((uint32_t)offset),
					    .cdw13 = htole32((uint32_t)(offset >> 32))},
		      NULL);
}

static void error_log_tells_the_newest_first_5_14_1_1(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 8192);
	const struct nvme_error_log_page *e = rig_at(r, data);

	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 0, (struct emu_nvme_sqe){.opcode = 0xff}, NULL),
			 RIG_SC(INVALID_OPCODE));
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 1ull << 40, 8, data, 0), NULL),
			 RIG_SC(LBA_RANGE));
	assert_int_equal(get_log(r, NVME_LOG_LID_ERROR, 1024, 0, 0, data), 0);
	assert_int_equal(le64toh(e[0].error_count), 2);
	assert_int_equal(le16toh(e[0].sqid), 1);
	assert_int_equal(le16toh(e[0].status_field), (RIG_SC(LBA_RANGE) | NVME_SC_DNR) << 1);
	assert_true(le64toh(e[0].lba) == 1ull << 40);
	assert_int_equal(le32toh(e[0].nsid), 1);
	assert_int_equal(le64toh(e[1].error_count), 1);
	assert_int_equal(le16toh(e[1].sqid), 0);
	assert_int_equal(le64toh(e[2].error_count), 0);
	/* The ring keeps the last 64. */
	for (unsigned i = 0; i < 100; i++)
		rig_do(r, 0, (struct emu_nvme_sqe){.opcode = 0xff}, NULL);
	assert_int_equal(get_log(r, NVME_LOG_LID_ERROR, 1024, 0, 0xffffffff, data), 0);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(le64toh(e[i].error_count), 102 - i);
	/* From an offset on, and not past the end. */
	memset(rig_at(r, data), 0xee, 8192);
	assert_int_equal(get_log(r, NVME_LOG_LID_ERROR, 1024, 4032, 0, data), 0);
	assert_int_equal(le64toh(e[0].error_count), 102 - 63);
	assert_int_equal(*(uint8_t *)rig_at(r, data + 64), 0xee);
}

static void smart_log_counts_5_14_1_2(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096), log = rig_alloc(r, 4096);
	const struct nvme_smart_log *s = rig_at(r, log);

	rig_pair(r, 1, 8);
	for (unsigned i = 0; i < 130; i++) /* 1040 blocks: two units */
		assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 0, 1, data, 0), NULL), 0);
	r->now += 2 * 3600000000000ull;
	assert_int_equal(get_log(r, NVME_LOG_LID_SMART, 128, 0, 0, log), 0);
	assert_int_equal(s->critical_warning, 0);
	assert_int_equal(s->temperature[0] | s->temperature[1] << 8, 313);
	assert_int_equal(s->data_units_read[0], 2);
	assert_int_equal(s->data_units_written[0], 1);
	assert_int_equal(s->host_reads[0], 130);
	assert_int_equal(s->host_writes[0], 1);
	assert_int_equal(s->power_on_hours[0], 2);
	assert_int_equal(s->num_err_log_entries[0], 0);
	assert_int_equal(s->avail_spare, 100);
}

static void log_pages_refuse_5_14(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 8192);

	for (unsigned id = 0; id < 256; id++)
		if (id < 1 || (id > 3 && id != 5))
			assert_int_equal(get_log(r, id, 1, 0, 0, data), RIG_SC1(INVALID_LOG_PAGE));
	assert_int_equal(get_log(r, NVME_LOG_LID_SMART, 128, 0, 1, data), RIG_SC(INVALID_FIELD));
	assert_int_equal(get_log(r, NVME_LOG_LID_SMART, 128, 2, 0, data), RIG_SC(INVALID_FIELD));
	assert_int_equal(get_log(r, NVME_LOG_LID_SMART, 128, 516, 0, data), RIG_SC(INVALID_FIELD));
	assert_int_equal(get_log(r, NVME_LOG_LID_SMART, 128, 1ull << 32, 0, data),
			 RIG_SC(INVALID_FIELD));
	assert_int_equal(get_log(r, NVME_LOG_LID_SMART, (1 << 18) + 1, 0, 0, data),
			 RIG_SC(INVALID_FIELD));
	assert_int_equal(get_log(r, NVME_LOG_LID_SMART, 128, 512, 0, data), 0);
}

static void firmware_log_and_unaligned_data_5_14_1_3(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 8192) + 4096 - 12;
	const struct nvme_firmware_slot *f = rig_at(r, data);

	assert_int_equal(get_log(r, NVME_LOG_LID_FW_SLOT, 128, 0, 0, data), 0);
	assert_int_equal(f->afi, 1);
	assert_memory_equal(f->frs[0], "0.1.0   ", 8);
}

static void temperature_events_5_21_1_4(void **state)
{
	struct rig *r = *state;
	uint64_t log = rig_alloc(r, 4096);
	const struct nvme_smart_log *s = rig_at(r, log);
	struct emu_nvme_cqe cqe;

	rig_put(r, 0,
		(struct emu_nvme_sqe){.opcode = nvme_admin_async_event, .cid = htole16(0x99)});
	assert_int_equal(feature(r, SET, NVME_FEAT_FID_ASYNC_EVENT, 2, 0, NULL), 0);
	rig_put(r, 0,
		(struct emu_nvme_sqe){.opcode = SET,
				      .cdw10 = htole32(NVME_FEAT_FID_TEMP_THRESH),
				      .cdw11 = htole32(300)});
	rig_ring(r, 0);
	rig_run(r);
	assert_true(rig_take(r, 0, &cqe, true)); /* of Set Features */
	assert_true(rig_take(r, 0, &cqe, true));
	assert_int_equal(le16toh(cqe.cid), 0x99);
	assert_int_equal(le32toh(cqe.result), 0x020101);
	assert_int_equal(get_log(r, NVME_LOG_LID_SMART, 128, 0, 0, log), 0);
	assert_int_equal(s->critical_warning, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(identify_controller_advertises_what_there_is_5_15),
		rig_test(identify_namespace_and_lists_5_15),
		rig_test(identify_refuses_5_15),
		rig_test(features_can_be_set_and_read_5_13_5_21),
		rig_test(unknown_features_are_refused_5_21),
		rig_test(feature_details_5_21_1),
		rig_test(error_log_tells_the_newest_first_5_14_1_1),
		rig_test(smart_log_counts_5_14_1_2),
		rig_test(log_pages_refuse_5_14),
		rig_test(firmware_log_and_unaligned_data_5_14_1_3),
		rig_test(temperature_events_5_21_1_4),
	};

	return cmocka_run_group_tests_name("nvme model: queries", tests, NULL, NULL);
}
