/* SPDX-License-Identifier: BSD-2-Clause */
/* The controller memory buffer (NVMe 1.4, sections 3.1.11 to 3.1.15): registers, queues, data. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "rig.h"

#define BYTES (1u << 20)
#define BASE 0x600000000000u /* where the host says that it lies */
#define CRE 1u
#define CMSE 2u
#define UNIT_1M 2u

static struct rig *with_cmb(uint64_t bytes)
{
	struct sio_topo_device topo;

	rig_topo(&topo);
	topo.cmb = bytes;
	return rig_new(&topo);
}

static void control(struct rig *r, uint64_t base, uint32_t bits)
{
	rig_set_reg(r, NVME_REG_CMBMSC + 4, (uint32_t)(base >> 32));
	rig_set_reg(r, NVME_REG_CMBMSC, (uint32_t)base | bits);
	rig_settle(r);
}

static void registers_3_1(void **state)
{
	struct rig *r = with_cmb(BYTES);

	(void)state;
	assert_int_equal(r->config.bar_size[2], BYTES);
	assert_int_equal(r->config.n_pages, 4);
	assert_int_equal(r->config.pages[3].kind, EMU_PAGE_MEMORY);
	assert_int_equal(rig_reg(r, NVME_REG_CAP + 4) >> (NVME_CAP_CMBS_SHIFT - 32) & 1, 1);
	/* Where and how large it is is told who asked for that. */
	assert_int_equal(rig_reg(r, NVME_REG_CMBLOC), 0);
	assert_int_equal(rig_reg(r, NVME_REG_CMBSZ), 0);
	control(r, 0, CRE);
	assert_int_equal(NVME_CMBLOC_BIR(rig_reg(r, NVME_REG_CMBLOC)), 2);
	assert_int_equal(NVME_CMBLOC_OFST(rig_reg(r, NVME_REG_CMBLOC)), 0);
	assert_int_equal(NVME_CMBSZ_SZU(rig_reg(r, NVME_REG_CMBSZ)), UNIT_1M);
	assert_int_equal(NVME_CMBSZ_SZ(rig_reg(r, NVME_REG_CMBSZ)), 1);
	assert_int_equal(rig_reg(r, NVME_REG_CMBSZ) & 0x1f, 0x1d); /* all but CQS */
	control(r, 0, 0);
	assert_int_equal(rig_reg(r, NVME_REG_CMBLOC), 0);
	/* It does not fit in behind that address. */
	control(r, UINT64_MAX - 0xfff, CRE | CMSE);
	assert_int_equal(rig_reg(r, NVME_REG_CMBSTS), 1);
	control(r, BASE, CRE | CMSE);
	assert_int_equal(rig_reg(r, NVME_REG_CMBSTS), 0);
	/* A reset of the controller leaves it, one of the function does not. */
	rig_enable(r, 32, 32);
	rig_disable(r);
	rig_settle(r);
	assert_int_equal(rig_reg(r, NVME_REG_CMBMSC), (uint32_t)BASE | CRE | CMSE);
	assert_int_equal(rig_reg(r, NVME_REG_CMBMSC + 4), (uint32_t)((uint64_t)BASE >> 32));
	memset(r->cmb, 7, BYTES);
	emu_nvme_model.reset(r->model, false);
	assert_int_equal(rig_reg(r, NVME_REG_CMBMSC), 0);
	assert_int_equal(rig_reg(r, NVME_REG_CMBLOC), 0);
	assert_int_equal(r->cmb[0], 0);
	assert_int_equal(r->cmb[BYTES - 1], 0);
	rig_free(r);
}

static void sizes_3_1_12(void **state)
{
	static const uint64_t bad[] = {4095, 12288, 16u << 20};
	struct rig *r = with_cmb(64 << 10);
	struct emu_dev_config config;
	struct sio_topo_device topo;
	struct sio_err err;
	void *model;

	(void)state;
	control(r, 0, CRE);
	assert_int_equal(NVME_CMBSZ_SZU(rig_reg(r, NVME_REG_CMBSZ)), 0);
	assert_int_equal(NVME_CMBSZ_SZ(rig_reg(r, NVME_REG_CMBSZ)), 16);
	rig_topo(&topo);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		topo.cmb = bad[i];
		assert_int_equal(emu_nvme_model.create(&r->dev, &topo, &config, &model, &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, "cmb"));
	}
	rig_free(r);
	/* Without one there is no such register. */
	r = rig_new(NULL);
	control(r, BASE, CRE | CMSE);
	assert_int_equal(rig_reg(r, NVME_REG_CMBMSC), 0);
	assert_int_equal(rig_reg(r, NVME_REG_CMBLOC), 0);
	assert_int_equal(rig_reg(r, NVME_REG_CAP + 4) >> (NVME_CAP_CMBS_SHIFT - 32) & 1, 0);
	assert_int_equal(r->config.n_pages, 3);
	rig_free(r);
}

/* What lies there moves without a transaction; what lies beside it moves as ever. */
static void data_and_lists_4_8(void **state)
{
	struct rig *r = with_cmb(BYTES);
	uint64_t host = rig_alloc(r, 4 * 4096), list;
	struct emu_nvme_sqe e;
	unsigned reads, writes;

	(void)state;
	rig_enable(r, 32, 32);
	control(r, BASE, CRE | CMSE);
	rig_pair(r, 1, 16);
	for (unsigned i = 0; i < 2 * 4096; i++)
		r->cmb[8192 + i] = (uint8_t)(i * 3 + i / 512);
	reads = r->n_reads;
	writes = r->n_writes;
	e = rig_rw(nvme_cmd_write, 8, 16, BASE + 8192, BASE + 12288);
	assert_int_equal(rig_do(r, 1, e, NULL), 0);
	assert_int_equal(r->n_reads, reads + 1);   /* the command */
	assert_int_equal(r->n_writes, writes + 1); /* its completion */
	/* One page of each. */
	e = rig_rw(nvme_cmd_read, 8, 16, host, BASE + 4096);
	assert_int_equal(rig_do(r, 1, e, NULL), 0);
	assert_memory_equal(rig_at(r, host), r->cmb + 8192, 4096);
	assert_memory_equal(r->cmb + 4096, r->cmb + 12288, 4096);
	/* A list in it, of pages in both. */
	list = BASE + 4096;
	memcpy(r->cmb + 4096, &(uint64_t[]){htole64(host + 4096), htole64(BASE + 16384)}, 16);
	e = rig_rw(nvme_cmd_read, 4, 24, host + 8192, list);
	assert_int_equal(rig_do(r, 1, e, NULL), 0);
	assert_memory_equal((uint8_t *)rig_at(r, host + 8192) + 2048, r->cmb + 8192, 2048);
	assert_memory_equal(rig_at(r, host + 4096), r->cmb + 8192 + 2048, 4096);
	assert_memory_equal(r->cmb + 16384, r->cmb + 8192 + 6144, 2048);
	/* Off, these are addresses of the bus, where nothing is. */
	control(r, BASE, CRE);
	e = rig_rw(nvme_cmd_write, 8, 8, BASE + 8192, 0);
	assert_int_not_equal(rig_do(r, 1, e, NULL), 0);
	/* Its last page, and the one behind. */
	control(r, BASE, CRE | CMSE);
	e = rig_rw(nvme_cmd_write, 8, 8, BASE + BYTES - 4096, 0);
	assert_int_equal(rig_do(r, 1, e, NULL), 0);
	e = rig_rw(nvme_cmd_write, 8, 16, BASE + BYTES - 4096, BASE + BYTES);
	assert_int_not_equal(rig_do(r, 1, e, NULL), 0);
	e = rig_rw(nvme_cmd_write, 8, 8, BASE - 4096, 0);
	assert_int_not_equal(rig_do(r, 1, e, NULL), 0);
	rig_free(r);
}

/* A submission queue in it: the entries are fetched without a transaction. */
static void queues_4_8(void **state)
{
	struct rig *r = with_cmb(BYTES);
	uint64_t host = rig_alloc(r, 4096);
	struct emu_nvme_sqe e;
	unsigned reads;

	(void)state;
	rig_enable(r, 32, 32);
	control(r, BASE, CRE | CMSE);
	assert_int_equal(rig_do(r, 0, rig_create_cq(r, 1, 16), NULL), 0);
	e = rig_create_sq(r, 1, 16, 1);
	r->cmb_base = BASE;
	r->q[1].sq = BASE + 65536;
	e.prp1 = htole64(r->q[1].sq);
	assert_int_equal(rig_do(r, 0, e, NULL), 0);
	for (unsigned i = 0; i < 40; i++) {
		reads = r->n_reads;
		e = rig_rw(nvme_cmd_read, i, 8, host, 0);
		assert_int_equal(rig_do(r, 1, e, NULL), 0);
		assert_int_equal(r->n_reads, reads);
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_3_1),
		cmocka_unit_test(sizes_3_1_12),
		cmocka_unit_test(data_and_lists_4_8),
		cmocka_unit_test(queues_4_8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
