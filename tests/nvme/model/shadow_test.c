/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell Buffer Config (NVMe 1.4, sections 5.7 and 7.13): a host that stores tails and heads to
 * its own memory, and to the register only where the controller asked for it.
 */
#include "rig.h"

#include <endian.h>
#include <string.h>

#include "../../lib/random.h"

struct shadow {
	uint64_t values, events;
	uint32_t *value;
	const uint32_t *event;
	unsigned rings; /* stores to registers */
};

static unsigned configure(struct rig *r, uint64_t values, uint64_t events)
{
	struct emu_nvme_sqe c = {
		.opcode = nvme_admin_dbbuf, .prp1 = htole64(values), .prp2 = htole64(events)};

	return rig_do(r, 0, c, NULL);
}

static struct shadow shadow_of(struct rig *r)
{
	struct shadow s = {.values = rig_alloc(r, 4096), .events = rig_alloc(r, 4096)};

	s.value = rig_at(r, s.values);
	s.event = rig_at(r, s.events);
	assert_int_equal(configure(r, s.values, s.events), 0);
	return s;
}

/* Section 7.13: ring if the event index lies in what is passed now. */
static void store(struct rig *r, struct shadow *s, unsigned word, uint32_t value)
{
	uint16_t old = (uint16_t)le32toh(s->value[word]), event = (uint16_t)le32toh(s->event[word]);

	s->value[word] = htole32(value);
	if ((uint16_t)((uint16_t)value - event - 1) < (uint16_t)((uint16_t)value - old)) {
		r->doorbells[word] = value;
		s->rings++;
	}
}

static void refuses_what_is_not_at_a_page_5_7(void **state)
{
	struct rig *r = *state;
	uint64_t a = rig_alloc(r, 4096), b = rig_alloc(r, 4096);
	struct emu_nvme_sqe c = {.opcode = nvme_admin_dbbuf,
				 .nsid = htole32(1),
				 .prp1 = htole64(a),
				 .prp2 = htole64(b)};

	assert_int_equal(configure(r, a + 4, b), RIG_SC(INVALID_FIELD));
	assert_int_equal(configure(r, a, b + 512), RIG_SC(INVALID_FIELD));
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC(INVALID_FIELD));
	assert_int_equal(configure(r, a, b), 0);
	assert_int_equal(configure(r, b, a), 0); /* others from now on */
}

/* A tail that is in the buffer alone is seen when the model looks; the admin queue has none. */
static void tails_in_the_buffer_are_served_7_13(void **state)
{
	struct rig *r = *state;
	struct shadow s = shadow_of(r);
	uint64_t data = rig_alloc(r, 4096);
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 8);
	rig_pair(r, 3, 8);
	for (unsigned i = 0; i < 20; i++) {
		unsigned qid = i % 2 ? 1 : 3;
		uint16_t cid = rig_put(r, qid, rig_rw(nvme_cmd_read, i, 1, data, 0));

		s.value[2 * qid] = htole32(r->q[qid].tail);
		rig_run(r);
		assert_true(rig_take(r, qid, &cqe, false));
		assert_int_equal(le16toh(cqe.cid), cid);
		s.value[2 * qid + 1] = htole32(r->q[qid].head);
		assert_int_equal(s.value[0], 0);
		assert_int_equal(s.event[0], 0);
	}
}

#define COMMANDS 3000u

/*
 * The model steps only when a register was stored to, and until it finds nothing: it must have
 * asked for a ring before that, in every order of things. Queues of few entries fill up, so that
 * heads are waited for, too.
 */
static void asks_to_be_woken_7_13(void **state)
{
	struct rig *r = *state;
	struct shadow s = shadow_of(r);
	uint64_t data = rig_alloc(r, 4096), seed = 7;
	unsigned sent = 0, done = 0, rings = 0;
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 8);
	rig_pair(r, 2, 3);
	for (unsigned turn = 0; done < COMMANDS; turn++) {
		unsigned qid = 1 + random_below(&seed, 2), n = random_below(&seed, 4);
		struct rig_queue *q = &r->q[qid];

		assert_true(turn < 20 * COMMANDS);
		for (; n > 0 && sent < COMMANDS && (q->tail + 1) % q->sq_size != q->sq_head; n--)
			rig_put(r, qid, rig_rw(nvme_cmd_read, sent++ % 100, 1, data, 0));
		store(r, &s, 2 * qid, q->tail);
		if (s.rings != rings)
			rig_run(r);
		rings = s.rings;
		for (n = random_below(&seed, 4); n > 0 && rig_take(r, qid, &cqe, false);
		     n--, done++)
			assert_int_equal(le16toh(cqe.status) >> 1, 0);
		store(r, &s, 2 * qid + 1, q->head);
		if (s.rings != rings)
			rig_run(r);
		rings = s.rings;
	}
	assert_int_equal(rig_counter(r, "commands_read"), COMMANDS);
	assert_int_equal(rig_counter(r, "invalid_doorbells"), 0);
}

static struct shadow *late; /* stores its tail when the event index is on its way */
static uint32_t late_tail;
static int (*write_on)(struct emu_dev *d, uint64_t addr, const void *buf, size_t len);

static int write_late(struct emu_dev *d, uint64_t addr, const void *buf, size_t len)
{
	if (late && addr == late->events + 2 * 4) {
		store((struct rig *)d, late, 2, late_tail);
		late = NULL;
	}
	return write_on(d, addr, buf, len);
}

/* A tail that is stored between our last look and our asking for a ring, which does not ring. */
static void looks_once_more_before_it_sleeps_7_13(void **state)
{
	struct rig *r = *state;
	struct shadow s = shadow_of(r);
	uint64_t data = rig_alloc(r, 4096);
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 32);
	write_on = r->dev.write;
	r->dev.write = write_late;
	for (unsigned i = 0; i < 20; i++) {
		unsigned rings;

		rig_put(r, 1, rig_rw(nvme_cmd_read, i, 1, data, 0));
		store(r, &s, 2, r->q[1].tail);
		rings = s.rings;
		rig_put(r, 1, rig_rw(nvme_cmd_read, i, 1, data, 0));
		late_tail = r->q[1].tail;
		late = &s;
		rig_run(r);
		assert_null(late);
		assert_int_equal(s.rings, rings);
		assert_true(rig_take(r, 1, &cqe, false));
		assert_true(rig_take(r, 1, &cqe, false));
		store(r, &s, 3, r->q[1].head);
	}
}

/* Asleep: only a ring wakes it, and each command is done. */
static void sleeps_and_is_woken_7_13(void **state)
{
	struct rig *r = *state;
	struct shadow s = shadow_of(r);
	uint64_t data = rig_alloc(r, 4096);
	struct emu_nvme_cqe cqe;

	rig_pair(r, 1, 4);
	rig_run(r);
	for (unsigned i = 0; i < 100; i++) {
		unsigned rings = s.rings;

		rig_put(r, 1, rig_rw(nvme_cmd_read, i, 1, data, 0));
		store(r, &s, 2, r->q[1].tail);
		assert_int_equal(s.rings, rings + 1);
		rig_run(r);
		assert_true(rig_take(r, 1, &cqe, false));
		store(r, &s, 3, r->q[1].head);
	}
	/* Heads were in nobody's way: hardly any of them was rung for. */
	assert_true(s.rings <= 100 + 100 / 4 + 1);
}

/* A queue that is made again, while something else stands where events are told. */
static void a_new_queue_is_asked_for_anew_7_13(void **state)
{
	struct rig *r = *state;
	struct shadow s = shadow_of(r);
	uint64_t data = rig_alloc(r, 4096);
	struct emu_nvme_cqe cqe;

	for (unsigned turn = 0; turn < 4; turn++) {
		struct emu_nvme_sqe c = {.opcode = nvme_admin_delete_sq, .cdw10 = htole32(1)};
		unsigned rings = s.rings;

		memset(rig_at(r, s.events), 0x77, 4096);
		memset(rig_at(r, s.values), 0, 4096);
		rig_pair(r, 1, 8);
		if (turn % 2) {
			rig_put(r, 1, rig_rw(nvme_cmd_read, turn, 1, data, 0));
			store(r, &s, 2, r->q[1].tail);
			assert_int_equal(s.rings, rings + 1);
			rig_run(r);
			assert_true(rig_take(r, 1, &cqe, false));
		}
		assert_int_equal(rig_do(r, 0, c, NULL), 0);
		c.opcode = nvme_admin_delete_cq;
		assert_int_equal(rig_do(r, 0, c, NULL), 0);
	}
}

static void a_reset_ends_it_7_13(void **state)
{
	struct rig *r = *state;
	struct shadow s = shadow_of(r);
	uint64_t data = rig_alloc(r, 4096);

	rig_disable(r);
	rig_enable(r, 32, 32);
	rig_pair(r, 1, 8);
	s.value[2] = htole32(5);
	rig_run(r);
	assert_int_equal(rig_counter(r, "commands_read"), 0);
	assert_int_equal(rig_counter(r, "invalid_doorbells"), 0);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 1, data, 0), NULL), 0);
}

/* What the host's memory says is as hostile as a register. */
static void wrong_values_are_told_7_13(void **state)
{
	struct rig *r = *state;
	struct shadow s = shadow_of(r);

	rig_pair(r, 1, 8);
	s.value[2] = htole32(8);
	rig_run(r);
	assert_int_equal(rig_counter(r, "invalid_doorbells"), 1);
	assert_int_equal(rig_counter(r, "commands_read"), 0);
	/* Words of queues that do not exist are not looked at. */
	s.value[4] = s.value[5] = htole32(77);
	rig_settle(r);
	assert_int_equal(rig_counter(r, "invalid_doorbells"), 1);
}

/* A buffer that cannot be read: the registers serve. */
static void a_lost_buffer_costs_nothing_else_7_13(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);

	assert_int_equal(configure(r, RIG_BASE - 8192, RIG_BASE - 4096), 0);
	rig_pair(r, 1, 8);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 1, data, 0), NULL), 0);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 1, 1, data, 0), NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(refuses_what_is_not_at_a_page_5_7),
		rig_test(tails_in_the_buffer_are_served_7_13),
		rig_test(asks_to_be_woken_7_13),
		rig_test(looks_once_more_before_it_sleeps_7_13),
		rig_test(sleeps_and_is_woken_7_13),
		rig_test(a_new_queue_is_asked_for_anew_7_13),
		rig_test(a_reset_ends_it_7_13),
		rig_test(wrong_values_are_told_7_13),
		rig_test(a_lost_buffer_costs_nothing_else_7_13),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
