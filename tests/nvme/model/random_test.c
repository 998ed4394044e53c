/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random commands, doorbells, registers, deletions and failing DMA. Nothing but sanity is asked of
 * the model (no crash, no endless work, media untouched outside of their size: the sanitizers
 * watch), and that a reset always brings back a drive that works.
 */
#include "rig.h"

#include <endian.h>
#include <string.h>

#include "../../lib/random.h"

#define ROUNDS 60u
#define EVENTS 400u

static uint64_t random_address(struct rig *r, uint64_t *seed)
{
	switch (random_below(seed, 4)) {
	case 0:
		return random_next(seed);
	case 1:
		return RIG_BASE + random_below(seed, RIG_SIZE);
	default:
		/* Behind the queues, which should live for a while. */
		return RIG_BASE + r->next_page + random_below(seed, 64) * 4096u;
	}
}

static struct emu_nvme_sqe random_command(struct rig *r, uint64_t *seed, unsigned qid)
{
	static const uint8_t admin[] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12};
	struct emu_nvme_sqe c = {
		.opcode = qid ? (uint8_t)random_below(seed, 4) : admin[random_below(seed, 10)],
		.flags = random_below(seed, 8) ? 0 : (uint8_t)random_next(seed),
		.cid = htole16((uint16_t)random_next(seed)),
		.nsid = htole32(random_below(seed, 8) ? qid != 0 : (uint32_t)random_next(seed)),
		.prp1 = htole64(random_address(r, seed)),
		.prp2 = htole64(random_address(r, seed)),
		.cdw10 = htole32(random_below(seed, RIG_BLOCKS)),
		.cdw12 = htole32(random_below(seed, 128)),
	};

	if (qid == 0) {
		c.cdw10 = htole32(random_below(seed, 64) << 16 | random_below(seed, 8));
		c.cdw11 = htole32(random_below(seed, 4) << 16 | 1);
		c.cdw12 = htole32(random_below(seed, 64));
		c.prp1 = htole64(le64toh(c.prp1) & ~4095ull);
	}
	if (random_below(seed, 16) == 0) {
		uint64_t noise[8];

		for (unsigned i = 0; i < 8; i++)
			noise[i] = random_next(seed);
		memcpy(&c, noise, sizeof(c));
	}
	return c;
}

static void random_event(struct rig *r, uint64_t *seed)
{
	unsigned qid = random_below(seed, 4);
	struct emu_nvme_cqe cqe;

	switch (random_below(seed, 16)) {
	case 0:
		r->doorbells[random_below(seed, 1024)] = (uint32_t)random_next(seed);
		break;
	case 1:
		r->doorbells[random_below(seed, 10)] = random_below(seed, 10);
		break;
	case 2:
		rig_set_reg(r, random_below(seed, 32) * 4, (uint32_t)random_next(seed));
		break;
	case 3:
		r->fail_read = r->n_reads + 1 + random_below(seed, 64);
		break;
	case 4:
		r->fail_write = r->n_writes + 1 + random_below(seed, 64);
		break;
	case 5:
		emu_nvme_model.view_changed(r->model, 0);
		break;
	default:
		for (unsigned n = random_below(seed, 6); n > 0 && r->q[qid].sq_size; n--)
			rig_put(r, qid, random_command(r, seed, qid));
		if (r->q[qid].sq_size)
			rig_ring(r, qid);
	}
	for (unsigned i = 0; i < 4; i++)
		emu_nvme_model.step(r->model, 1 + random_below(seed, 40));
	while (r->q[qid].cq_size && rig_take(r, qid, &cqe, true))
		;
}

static void works(struct rig *r)
{
	uint64_t data;

	emu_nvme_model.reset(r->model, false);
	r->fail_read = r->fail_write = 0;
	r->next_page = 0;
	memset(r->q, 0, sizeof(r->q));
	rig_enable(r, 16, 16);
	for (unsigned qid = 1; qid <= 3; qid++)
		rig_pair(r, qid, 8);
	data = rig_alloc(r, 4096);
	memset(rig_at(r, data), 0x3c, 4096);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 0, 8, data, 0), NULL), 0);
	memset(rig_at(r, data), 0, 4096);
	assert_int_equal(rig_do(r, 2, rig_rw(nvme_cmd_read, 0, 8, data, 0), NULL), 0);
	assert_int_equal(*(uint8_t *)rig_at(r, data + 4095), 0x3c);
}

static void random_hosts(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		uint64_t seed = round * 0x9e3779b97f4a7c15u;

		works(r);
		for (unsigned i = 0; i < EVENTS; i++)
			random_event(r, &seed);
	}
	works(r);
	/* The noise did reach the model. */
	assert_true(rig_counter(r, "commands_failed") > 1000);
	assert_true(rig_counter(r, "commands_admin") > 1000);
	assert_true(rig_counter(r, "commands_write") > 100);
	assert_true(rig_counter(r, "invalid_doorbells") > 100);
	assert_true(rig_counter(r, "fatal") > 10);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_hosts),
	};

	return cmocka_run_group_tests_name("nvme model: random hosts", tests, NULL, NULL);
}
