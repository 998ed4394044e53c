/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue entries of any kind, good and bad, and the rings that they go through. */
#include <endian.h>
#include <string.h>

#include "bench.h"
#include "ring.h"
#include "smartio/io.h"

#define DOORBELLS 0x1000u

static const struct {
	const char *name;
	uint8_t opcode;
} opcodes[] = {
	{"delete-sq", 0x00},	{"create-sq", 0x01},   {"get-log", 0x02}, {"delete-cq", 0x04},
	{"create-cq", 0x05},	{"identify", 0x06},    {"abort", 0x08},	  {"set-features", 0x09},
	{"get-features", 0x0a}, {"async-event", 0x0c}, {"flush", 0x00},	  {"write", 0x01},
	{"read", 0x02},
};

/* ---- entries ---- */

static bool opcode(const char *word, uint8_t *ret)
{
	uint64_t value;

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		if (!strcmp(opcodes[i].name, word)) {
			*ret = opcodes[i].opcode;
			return true;
		}
	if (!step_value(word, &value) || value > 0xff)
		return false;
	*ret = (uint8_t)value;
	return true;
}

static void put64(uint32_t *at, uint64_t value)
{
	at[0] = (uint32_t)value;
	at[1] = (uint32_t)(value >> 32);
}

/* All fields by name; @nsid: if none is given. lba and n: those of read and write. */
bool ring_entry(const struct step *s, unsigned op_word, uint32_t nsid, uint32_t sqe[16])
{
	static const struct {
		const char *key;
		unsigned word;
		bool wide;
	} field[] = {{"nsid", 1, false},   {"cdw2", 2, false},	 {"cdw3", 3, false},
		     {"mptr", 4, true},	   {"prp1", 6, true},	 {"prp2", 8, true},
		     {"cdw10", 10, false}, {"cdw11", 11, false}, {"cdw12", 12, false},
		     {"cdw13", 13, false}, {"cdw14", 14, false}, {"cdw15", 15, false},
		     {"lba", 10, true}};
	uint64_t value, flags, cid, n;
	uint8_t op;

	memset(sqe, 0, 64);
	if (s->n <= op_word || !opcode(s->word[op_word], &op) || !step_key(s, "flags", 0, &flags) ||
	    !step_key(s, "cid", ++bench.cid, &cid) || !step_key(s, "n", 1, &n))
		return false;
	sqe[0] = op | (uint32_t)flags << 8 | (uint32_t)cid << 16;
	sqe[1] = nsid;
	sqe[12] = (uint32_t)n - 1;
	for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
		uint64_t old = sqe[field[i].word];

		if (field[i].wide)
			old |= (uint64_t)sqe[field[i].word + 1] << 32;
		if (!step_key(s, field[i].key, old, &value))
			return false;
		if (field[i].wide)
			put64(&sqe[field[i].word], value);
		else
			sqe[field[i].word] = (uint32_t)value;
	}
	for (unsigned i = 0; i < 16; i++)
		sqe[i] = htole32(sqe[i]);
	return true;
}

/* ---- queues: the driver's admin queue, and I/O queues by id ---- */

bool ring_of(unsigned id, struct ring *ret)
{
	struct bench_queue *q = &bench.queue[id];
	struct sio_nvme_ctrl *c = &bench.ctrl;

	if (id == 0)
		*ret = (struct ring){.sq = (uint8_t *)(uintptr_t)c->sq.at,
				     .cq = (uint8_t *)(uintptr_t)c->cq.at,
				     .sq_entries = c->entries,
				     .cq_entries = c->entries,
				     .tail = &c->tail,
				     .head = &c->head,
				     .phase = &c->phase};
	else if (id <= DRIVE_PAIRS + 1 && q->sq && q->cq)
		*ret = (struct ring){.sq = bench_at(q->sq),
				     .cq = bench_at(q->cq),
				     .sq_entries = q->sq_entries,
				     .cq_entries = q->cq_entries,
				     .tail = &q->tail,
				     .head = &q->head,
				     .phase = &q->phase,
				     .id = id};
	else
		return false;
	return true;
}

void ring_doorbell(uint32_t word, uint32_t value)
{
	bench.drive->write(bench.drive, DOORBELLS + word * 4, value);
}

void ring_put(const struct ring *r, const uint32_t sqe[16])
{
	memcpy(r->sq + (size_t)*r->tail * 64, sqe, 64);
	*r->tail = (*r->tail + 1) % r->sq_entries;
}

void ring_bell(const struct ring *r)
{
	sio_to_fabric_barrier();
	ring_doorbell(2 * r->id, *r->tail);
}

/* Within @turns; false: none came. */
bool ring_take(const struct ring *r, unsigned turns, uint32_t cqe[4])
{
	const volatile uint32_t *at = (const volatile uint32_t *)(r->cq + (size_t)*r->head * 16);

	for (unsigned i = 0; (le32toh(at[3]) >> 16 & 1) != *r->phase; i++) {
		if (i == turns)
			return false;
		bench.drive->turn(bench.drive);
	}
	sio_from_fabric_barrier();
	for (unsigned i = 0; i < 4; i++)
		cqe[i] = le32toh(at[i]);
	if (++*r->head == r->cq_entries) {
		*r->head = 0;
		*r->phase ^= 1;
	}
	ring_doorbell(2 * r->id + 1, *r->head);
	return true;
}
