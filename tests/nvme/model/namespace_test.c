/* SPDX-License-Identifier: BSD-2-Clause */
/* A drive of several namespaces (NVMe 1.4, section 6.1): each has its own size, blocks and data. */
#include "rig.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define NAMESPACES 3
static const struct sio_topo_namespace all[NAMESPACES] = {{.size = 1 << 20, .block_size = 512},
							  {.size = 64 << 10, .block_size = 4096},
							  {.size = 4096, .block_size = 512}};

static int setup(void **state)
{
	struct sio_topo_device topo;
	struct rig *r;

	rig_topo(&topo);
	topo.n_namespaces = NAMESPACES;
	memcpy(topo.namespaces, all, sizeof(all));
	r = rig_new(&topo);
	rig_enable(r, 32, 32);
	rig_pair(r, 1, 64);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static const void *identify(struct rig *r, uint32_t cns, uint32_t nsid, unsigned want)
{
	uint64_t page = rig_alloc(r, 4096);
	struct emu_nvme_sqe c = {.opcode = nvme_admin_identify,
				 .nsid = htole32(nsid),
				 .cdw10 = htole32(cns),
				 .prp1 = htole64(page)};

	assert_int_equal(rig_do(r, 0, c, NULL), want);
	return rig_at(r, page);
}

static struct emu_nvme_sqe command(struct rig *r, uint8_t opcode, uint32_t nsid, uint64_t lba)
{
	struct emu_nvme_sqe c = rig_rw(opcode, lba, 1, rig_alloc(r, 4096), 0);

	c.nsid = htole32(nsid);
	return c;
}

static unsigned write_byte(struct rig *r, uint32_t nsid, uint64_t lba, int byte)
{
	struct emu_nvme_sqe c = command(r, nvme_cmd_write, nsid, lba);

	memset(rig_at(r, le64toh(c.prp1)), byte, 4096);
	return rig_do(r, 1, c, NULL);
}

static uint8_t read_byte(struct rig *r, uint32_t nsid, uint64_t lba)
{
	struct emu_nvme_sqe c = command(r, nvme_cmd_read, nsid, lba);

	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	return *(uint8_t *)rig_at(r, le64toh(c.prp1));
}

static void identify_tells_of_each_5_15(void **state)
{
	const struct nvme_id_ctrl *c = identify(*state, NVME_IDENTIFY_CNS_CTRL, 0, 0);
	uint8_t uuid[NAMESPACES][16];

	assert_int_equal(le32toh(c->nn), NAMESPACES);
	for (uint32_t i = 0; i < NAMESPACES; i++) {
		const struct nvme_id_ns *ns = identify(*state, NVME_IDENTIFY_CNS_NS, i + 1, 0);
		const struct nvme_ns_id_desc *d;

		assert_int_equal(le64toh(ns->nsze), all[i].size / all[i].block_size);
		assert_int_equal(1u << ns->lbaf[ns->flbas].ds, all[i].block_size);
		d = identify(*state, NVME_IDENTIFY_CNS_NS_DESC_LIST, i + 1, 0);
		memcpy(uuid[i], d->nid, 16);
		for (uint32_t k = 0; k < i; k++)
			assert_memory_not_equal(uuid[i], uuid[k], 16);
	}
	for (uint32_t after = 0; after <= NAMESPACES; after++) {
		const __le32 *list = identify(*state, NVME_IDENTIFY_CNS_NS_ACTIVE_LIST, after, 0);

		for (uint32_t i = 0; after + i < NAMESPACES; i++)
			assert_int_equal(le32toh(list[i]), after + i + 1);
		assert_int_equal(list[NAMESPACES - after], 0);
	}
	identify(*state, NVME_IDENTIFY_CNS_NS, NAMESPACES + 1, RIG_SC(INVALID_NS));
	identify(*state, NVME_IDENTIFY_CNS_NS, 0, RIG_SC(INVALID_NS));
	identify(*state, NVME_IDENTIFY_CNS_NS_DESC_LIST, NAMESPACES + 1, RIG_SC(INVALID_NS));
}

static void data_are_each_ones_own_6_1(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < NAMESPACES; i++) {
		uint64_t last = all[i].size / all[i].block_size - 1;

		assert_int_equal(write_byte(r, i + 1, 0, 0x10 + (int)i), 0);
		assert_int_equal(write_byte(r, i + 1, last, 0x20 + (int)i), 0);
		assert_int_equal(write_byte(r, i + 1, last + 1, 1), RIG_SC(LBA_RANGE));
	}
	for (uint32_t i = 0; i < NAMESPACES; i++) {
		assert_int_equal(read_byte(r, i + 1, 0), 0x10 + i);
		assert_int_equal(read_byte(r, i + 1, all[i].size / all[i].block_size - 1),
				 0x20 + i);
	}
	assert_int_equal(write_byte(r, NAMESPACES + 1, 0, 1), RIG_SC(INVALID_NS));
	assert_int_equal(write_byte(r, 0, 0, 1), RIG_SC(INVALID_NS));
	assert_int_equal(write_byte(r, NVME_NSID_ALL, 0, 1), RIG_SC(INVALID_FIELD));
}

static void zeroes_and_deallocated_blocks_are_of_one_6_7_6_16(void **state)
{
	struct nvme_dsm_range range = {.nlb = htole32(1), .slba = 0};
	struct rig *r = *state;
	struct emu_nvme_sqe c;

	for (uint32_t i = 0; i < NAMESPACES; i++)
		assert_int_equal(write_byte(r, i + 1, 0, 0x10 + (int)i), 0);
	c = command(r, nvme_cmd_write_zeroes, 2, 0);
	c.prp1 = 0;
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	c = command(r, nvme_cmd_dsm, 3, 0);
	c.cdw10 = 0;
	c.cdw11 = htole32(1 << 2);
	c.cdw12 = 0;
	memcpy(rig_at(r, le64toh(c.prp1)), &range, sizeof(range));
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	assert_int_equal(read_byte(r, 1, 0), 0x10);
	assert_int_equal(read_byte(r, 2, 0), 0);
	assert_int_equal(read_byte(r, 3, 0), 0);
	c = command(r, nvme_cmd_compare, 1, 0);
	memset(rig_at(r, le64toh(c.prp1)), 0x10, 512);
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	c = command(r, nvme_cmd_flush, NVME_NSID_ALL, 0);
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	c = command(r, nvme_cmd_flush, NAMESPACES + 1, 0);
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_NS));
}

static unsigned format(struct rig *r, uint32_t nsid, uint32_t lbaf)
{
	struct emu_nvme_sqe c = {
		.opcode = nvme_admin_format_nvm, .nsid = htole32(nsid), .cdw10 = htole32(lbaf)};

	return rig_do(r, 0, c, NULL);
}

static uint64_t blocks(struct rig *r, uint32_t nsid)
{
	const struct nvme_id_ns *ns = identify(r, NVME_IDENTIFY_CNS_NS, nsid, 0);

	return le64toh(ns->nsze);
}

static void one_is_formatted_or_all_5_23(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < NAMESPACES; i++)
		assert_int_equal(write_byte(r, i + 1, 0, 0x10 + (int)i), 0);
	assert_int_equal(format(r, 1, 1), 0);
	assert_int_equal(blocks(r, 1), all[0].size / 4096);
	assert_int_equal(blocks(r, 2), all[1].size / 4096);
	assert_int_equal(read_byte(r, 1, 0), 0);
	assert_int_equal(read_byte(r, 2, 0), 0x11);
	assert_int_equal(read_byte(r, 3, 0), 0x12);
	assert_int_equal(format(r, NVME_NSID_ALL, 0), 0);
	for (uint32_t i = 0; i < NAMESPACES; i++) {
		assert_int_equal(blocks(r, i + 1), all[i].size / 512);
		assert_int_equal(read_byte(r, i + 1, 0), 0);
	}
	assert_int_equal(format(r, NAMESPACES + 1, 0), RIG_SC(INVALID_NS));
}

/* The largest transfer is the drive's; in blocks it is each one's own. */
static void limits_are_each_ones_own_5_15(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe c = command(r, nvme_cmd_read, 2, 0);

	c.cdw12 = htole32(256); /* 257 blocks of 4 KiB are more than 1 MiB */
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_FIELD));
	c.cdw12 = htole32(16); /* more than it has, and less than the first would have */
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(LBA_RANGE));
}

static void error_recovery_is_each_ones_own_5_21_1_5(void **state)
{
	struct rig *r = *state;
	struct emu_nvme_sqe set = {.opcode = nvme_admin_set_features,
				   .nsid = htole32(2),
				   .cdw10 = htole32(NVME_FEAT_FID_ERR_RECOVERY),
				   .cdw11 = htole32(7)};
	struct emu_nvme_sqe get = {.opcode = nvme_admin_get_features,
				   .cdw10 = htole32(NVME_FEAT_FID_ERR_RECOVERY)};
	uint32_t result;

	assert_int_equal(rig_do(r, 0, set, NULL), 0);
	for (uint32_t i = 0; i < NAMESPACES; i++) {
		get.nsid = htole32(i + 1);
		assert_int_equal(rig_do(r, 0, get, &result), 0);
		assert_int_equal(result, i == 1 ? 7 : 0);
	}
	set.nsid = htole32(NVME_NSID_ALL);
	assert_int_equal(rig_do(r, 0, set, NULL), 0);
	assert_int_equal(rig_do(r, 0, get, &result), 0);
	assert_int_equal(result, 7);
	set.nsid = htole32(NAMESPACES + 1);
	assert_int_equal(rig_do(r, 0, set, NULL), RIG_SC(INVALID_NS));
}

static void functions_share_them_1_5(void **state)
{
	struct rig *r = *state, *other = rig_new_function(r);

	rig_enable(other, 32, 32);
	rig_pair(other, 1, 16);
	assert_int_equal(write_byte(r, 2, 5, 0x33), 0);
	assert_int_equal(read_byte(other, 2, 5), 0x33);
	assert_int_equal(blocks(other, 3), 8);
	rig_free(other);
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct sio_topo_namespace bad[] = {{.size = 4096, .block_size = 1024},
							{.size = 0, .block_size = 512},
							{.size = 4608, .block_size = 512}};
	struct emu_dev_config config;
	struct sio_topo_device topo;
	struct sio_err err;
	struct rig *r = *state;
	void *model;

	rig_topo(&topo);
	topo.n_namespaces = 2;
	topo.namespaces[0] = all[0];
	for (unsigned i = 0; i < 3; i++) {
		topo.namespaces[1] = bad[i];
		assert_int_equal(emu_nvme_model.create(&r->dev, &topo, &config, &model, &err),
				 -EINVAL);
	}
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(identify_tells_of_each_5_15),
		test(data_are_each_ones_own_6_1),
		test(zeroes_and_deallocated_blocks_are_of_one_6_7_6_16),
		test(one_is_formatted_or_all_5_23),
		test(limits_are_each_ones_own_5_15),
		test(error_recovery_is_each_ones_own_5_21_1_5),
		test(functions_share_them_1_5),
		test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
