/* SPDX-License-Identifier: BSD-2-Clause */
/* The registers: BAR 0 as include/smartio/vntb.h lays it out. */
#include <string.h>

#include "emu/ntb/inside.h"

#define LUT_BITS (SIO_VNTB_LUT_VALID | SIO_VNTB_LUT_RANGE | SIO_VNTB_LUT_GROUP | 0xffff00u)
#define RANGE_BITS                                                                                 \
	(SIO_VNTB_RANGE_VALID | SIO_VNTB_RANGE_READ | SIO_VNTB_RANGE_WRITE |                       \
	 SIO_VNTB_RANGE_MESSAGE | 0xffff00u)
#define MESSAGE_BITS 0xf000fu

/* ---- each block: what a register of a row is, and what a store does ---- */

static uint64_t load_global(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	const struct emu_ntb_tables *t = &a->tables;
	const struct emu_ntb_fault *f = &t->fault[0];
	unsigned k = at / 4 % 4;

	(void)row;
	if (at < sizeof(a->fixed))
		return a->fixed[at / 4];
	if (at >= SIO_VNTB_MSG_IN(0) && at < SIO_VNTB_MSG_IN(SIO_VNTB_MESSAGES))
		return t->message[k];
	if (at >= SIO_VNTB_MSG_SOURCE(0) && at < SIO_VNTB_MSG_SOURCE(SIO_VNTB_MESSAGES))
		return t->source[k];
	switch (at) {
	case SIO_VNTB_START:
		return a->start;
	case SIO_VNTB_ENABLE:
		return t->enable;
	case SIO_VNTB_STALE_READS:
		return a->stale_reads;
	case SIO_VNTB_POOL_KEY:
		return a->ntb->pool_key;
	case SIO_VNTB_DB_STATUS:
		return t->bell_status;
	case SIO_VNTB_DB_MASK:
		return t->bell_mask;
	case SIO_VNTB_MSG_STATUS:
		return t->message_status;
	case SIO_VNTB_MSG_MASK:
		return t->message_mask & MESSAGE_BITS;
	case SIO_VNTB_FAULT_COUNT:
		return t->n_faults;
	case SIO_VNTB_FAULT_LOST:
		return t->faults_lost;
	case SIO_VNTB_FAULT_KIND:
		return f->kind;
	case SIO_VNTB_FAULT_PEER:
		return f->row;
	case SIO_VNTB_FAULT_ADDRESS:
		return f->address;
	case SIO_VNTB_FAULT_LENGTH:
		return f->length;
	case SIO_VNTB_FAULT_REASON:
		return f->reason;
	default:
		return 0;
	}
}

static void store_global(struct emu_ntb_adapter *a, unsigned row, unsigned at, uint64_t value)
{
	struct emu_ntb_tables *t = &a->tables;
	uint32_t word = (uint32_t)value;

	(void)row;
	switch (at) {
	case SIO_VNTB_ENABLE:
		t->enable = word & 1;
		emu_ntb_refresh(a);
		break;
	case SIO_VNTB_RESET:
		if (!(word & 1))
			break;
		emu_ntb_restart(a);
		break;
	case SIO_VNTB_DB_STATUS:
		t->bell_status &= ~word;
		break;
	case SIO_VNTB_DB_MASK:
		emu_ntb_mask_bells(a, word);
		break;
	case SIO_VNTB_DB_ALL:
		for (unsigned i = 0; i < a->n_rows; i++)
			if (a->row[i].state & SIO_VNTB_PEER_UP)
				emu_ntb_ring(a->row[i].peer, word);
		break;
	case SIO_VNTB_MSG_STATUS:
		t->message_status &= ~word;
		break;
	case SIO_VNTB_MSG_MASK:
		emu_ntb_mask_messages(a, word);
		break;
	case SIO_VNTB_FAULT_COUNT:
		if (word & 1)
			emu_ntb_next_fault(a);
		break;
	default:
		break;
	}
}

static uint64_t load_spad(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	(void)at;
	return a->tables.spad[row];
}

static void store_spad(struct emu_ntb_adapter *a, unsigned row, unsigned at, uint64_t value)
{
	(void)at;
	a->tables.spad[row] = (uint32_t)value;
}

static uint64_t load_peer(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	const struct emu_ntb_row *r = &a->row[row];

	switch (at) {
	case SIO_VNTB_PEER_NODE:
		return r->peer->host->node;
	case SIO_VNTB_PEER_ADAPTER:
		return r->peer->index;
	case SIO_VNTB_PEER_STATE:
		return r->state;
	case SIO_VNTB_PEER_CHANGES:
		return r->changes;
	case SIO_VNTB_PEER_START:
		return r->start;
	case SIO_VNTB_PEER_HOPS:
		return r->hops;
	case SIO_VNTB_PEER_SELF:
		return r->self;
	case SIO_VNTB_PEER_ERRORS:
		return r->errors;
	default:
		return 0;
	}
}

static void store_peer(struct emu_ntb_adapter *a, unsigned row, unsigned at, uint64_t value)
{
	struct emu_ntb_row *r = &a->row[row];

	if (at == SIO_VNTB_PEER_DOORBELL && r->state & SIO_VNTB_PEER_UP)
		emu_ntb_ring(r->peer, (uint32_t)value);
	else if (at >= SIO_VNTB_PEER_MESSAGE(0) && at < SIO_VNTB_PEER_MESSAGE(SIO_VNTB_MESSAGES))
		emu_ntb_message(a, r, (at - SIO_VNTB_PEER_MESSAGE(0)) / 4, (uint32_t)value);
}

static uint64_t load_peer_spad(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	const struct emu_ntb_row *r = &a->row[row];

	return r->state & SIO_VNTB_PEER_UP && !r->peer->emulated ? r->peer->tables.spad[at / 4]
								 : ~0u;
}

static void store_peer_spad(struct emu_ntb_adapter *a, unsigned row, unsigned at, uint64_t value)
{
	const struct emu_ntb_row *r = &a->row[row];

	if (r->state & SIO_VNTB_PEER_UP && !r->peer->emulated)
		r->peer->tables.spad[at / 4] = (uint32_t)value;
}

static uint64_t load_entry(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	const struct emu_ntb_entry *e = &a->tables.entry[row];

	switch (at) {
	case SIO_VNTB_LUT_CONTROL:
		return e->control;
	case SIO_VNTB_LUT_ADDRESS:
		return e->address;
	case SIO_VNTB_LUT_START:
		return e->start;
	default:
		return 0;
	}
}

static void store_entry(struct emu_ntb_adapter *a, unsigned row, unsigned at, uint64_t value)
{
	struct emu_ntb_entry *e = &a->tables.entry[row];

	if (at == SIO_VNTB_LUT_CONTROL)
		e->control = (uint32_t)value & LUT_BITS;
	else if (at == SIO_VNTB_LUT_ADDRESS)
		e->address = value;
	else if (at == SIO_VNTB_LUT_START)
		e->start = value;
}

static uint64_t load_range(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	const struct emu_ntb_range *r = &a->tables.range[row];

	switch (at) {
	case SIO_VNTB_RANGE_CONTROL:
		return r->control | (emu_ntb_range_busy(a, row) ? SIO_VNTB_RANGE_BUSY : 0);
	case SIO_VNTB_RANGE_BASE:
		return r->base;
	case SIO_VNTB_RANGE_SIZE:
		return r->size;
	default:
		return 0;
	}
}

static void store_range(struct emu_ntb_adapter *a, unsigned row, unsigned at, uint64_t value)
{
	struct emu_ntb_tables *t = &a->tables;
	struct emu_ntb_range *r = &t->range[row];

	if (at == SIO_VNTB_RANGE_BASE)
		r->base = value;
	else if (at == SIO_VNTB_RANGE_SIZE)
		r->size = value;
	if (at != SIO_VNTB_RANGE_CONTROL)
		return;
	r->control = (uint32_t)value & RANGE_BITS;
	emu_ntb_range_changed(a, row);
	if (r->control & SIO_VNTB_RANGE_VALID && row >= t->n_ranges)
		t->n_ranges = row + 1;
	while (t->n_ranges > 0 && !(t->range[t->n_ranges - 1].control & SIO_VNTB_RANGE_VALID))
		t->n_ranges--;
}

static uint64_t load_requester(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	(void)at;
	return a->tables.requester[row];
}

static void store_requester(struct emu_ntb_adapter *a, unsigned row, unsigned at, uint64_t value)
{
	(void)at;
	a->tables.requester[row] =
		(uint32_t)value & (SIO_VNTB_REQUESTER_VALID | 0xffffu << 8 | 0xffu);
}

static uint64_t load_member(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	const struct emu_ntb_member *m = &a->tables.member[row];

	switch (at) {
	case SIO_VNTB_MEMBER_CONTROL:
		return m->control |
		       (emu_ntb_range_busy(a, EMU_NTB_MEMBER + row) ? SIO_VNTB_MEMBER_BUSY : 0);
	case SIO_VNTB_MEMBER_BASE:
		return m->base;
	case SIO_VNTB_MEMBER_SIZE:
		return m->size;
	default:
		return 0;
	}
}

static void store_member(struct emu_ntb_adapter *a, unsigned row, unsigned at, uint64_t value)
{
	struct emu_ntb_member *m = &a->tables.member[row];

	if (at == SIO_VNTB_MEMBER_CONTROL)
		emu_ntb_member_control(a, row, (uint32_t)value);
	else if (m->control & SIO_VNTB_MEMBER_VALID)
		return;
	else if (at == SIO_VNTB_MEMBER_BASE)
		m->base = value;
	else if (at == SIO_VNTB_MEMBER_SIZE)
		m->size = value;
}

static uint64_t load_group(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	const struct emu_ntb_group *g = &a->ntb->group[row];

	switch (at) {
	case SIO_VNTB_GROUP_SIZE:
		return g->size;
	case SIO_VNTB_GROUP_MEMBERS:
		return g->members;
	case SIO_VNTB_GROUP_OPEN:
		return g->open;
	case SIO_VNTB_GROUP_MISSED:
		return a->missed[row];
	case SIO_VNTB_GROUP_PENDING:
		return emu_ntb_pending(a, row);
	default:
		return 0;
	}
}

static uint64_t load_counter(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	(void)at;
	return emu_ntb_counter(a, row);
}

static uint64_t load_piece(struct emu_ntb_adapter *a, unsigned row, unsigned at)
{
	const struct emu_ntb_piece *p = &a->piece[row];

	switch (at) {
	case SIO_VNTB_PIECE_ROW:
		return p->row;
	case SIO_VNTB_PIECE_FILE:
		return p->file;
	case SIO_VNTB_PIECE_BUS:
		return p->bus;
	case SIO_VNTB_PIECE_SIZE:
		return p->size;
	case SIO_VNTB_PIECE_OFFSET:
		return p->offset;
	default:
		return 0;
	}
}

/* ---- which register an access means ---- */

enum {
	GLOBAL,
	SPADS,
	COUNTERS,
	GROUPS,
	PEERS,
	PEER_SPADS,
	ENTRIES,
	RANGES,
	REQUESTERS,
	PIECES,
	MEMBERS,
	BLOCKS
};

static const struct block {
	uint32_t base, end, stride;
	uint64_t wide; /* bit i: the register at 8 * i has 8 bytes */
	uint64_t (*load)(struct emu_ntb_adapter *a, unsigned row, unsigned at);
	void (*store)(struct emu_ntb_adapter *a, unsigned row, unsigned at, uint64_t value);
} block[BLOCKS] = {
	[GLOBAL] = {0, SIO_VNTB_SPAD(0), SIO_VNTB_SPAD(0),
		    1ull << SIO_VNTB_START / 8 | 1ull << SIO_VNTB_POOL_KEY / 8 |
			    1ull << SIO_VNTB_FAULT_ADDRESS / 8,
		    load_global, store_global},
	[SPADS] = {SIO_VNTB_SPAD(0), SIO_VNTB_SPAD(SIO_VNTB_SPADS), 4, 0, load_spad, store_spad},
	[COUNTERS] = {SIO_VNTB_COUNTER(0), SIO_VNTB_COUNTER(SIO_VNTB_COUNTERS), 8, 1, load_counter,
		      NULL},
	[GROUPS] = {SIO_VNTB_GROUP(0), SIO_VNTB_GROUP(SIO_VNTB_MAX_GROUPS), 0x20,
		    1u << SIO_VNTB_GROUP_SIZE / 8, load_group, NULL},
	[PEERS] = {SIO_VNTB_PEER(0), SIO_VNTB_PEER(SIO_VNTB_MAX_PEERS),
		   SIO_VNTB_PEER(1) - SIO_VNTB_PEER(0), 1ull << SIO_VNTB_PEER_START / 8, load_peer,
		   store_peer},
	[PEER_SPADS] = {SIO_VNTB_PEER_SPAD(0, 0), SIO_VNTB_PEER_SPAD(SIO_VNTB_MAX_PEERS, 0),
			4 * SIO_VNTB_SPADS, 0, load_peer_spad, store_peer_spad},
	[ENTRIES] = {SIO_VNTB_LUT(0), SIO_VNTB_LUT(SIO_VNTB_MAX_ENTRIES), 0x20,
		     1u << SIO_VNTB_LUT_ADDRESS / 8 | 1u << SIO_VNTB_LUT_START / 8, load_entry,
		     store_entry},
	[RANGES] = {SIO_VNTB_RANGE(0), SIO_VNTB_RANGE(SIO_VNTB_MAX_RANGES), 0x20,
		    1u << SIO_VNTB_RANGE_BASE / 8 | 1u << SIO_VNTB_RANGE_SIZE / 8, load_range,
		    store_range},
	[REQUESTERS] = {SIO_VNTB_REQUESTER(0), SIO_VNTB_REQUESTER(SIO_VNTB_MAX_REQUESTERS), 4, 0,
			load_requester, store_requester},
	[PIECES] = {SIO_VNTB_PIECE(0), SIO_VNTB_PIECE(SIO_VNTB_MAX_PIECES), 0x20,
		    1u << SIO_VNTB_PIECE_BUS / 8 | 1u << SIO_VNTB_PIECE_SIZE / 8 |
			    1u << SIO_VNTB_PIECE_OFFSET / 8,
		    load_piece, NULL},
	[MEMBERS] = {SIO_VNTB_MEMBER(0), SIO_VNTB_MEMBER(SIO_VNTB_MAX_MEMBERS), 0x20,
		     1u << SIO_VNTB_MEMBER_BASE / 8 | 1u << SIO_VNTB_MEMBER_SIZE / 8, load_member,
		     store_member},
};

static unsigned rows_of(const struct emu_ntb_adapter *a, int which)
{
	switch (which) {
	case SPADS:
		return SIO_VNTB_SPADS;
	case PEERS:
	case PEER_SPADS:
		return a->n_rows;
	case ENTRIES:
		return a->topo->lut_entries;
	case RANGES:
		return SIO_VNTB_MAX_RANGES;
	case REQUESTERS:
		return a->topo->requesters;
	case PIECES:
		return a->n_pieces;
	case COUNTERS:
		return SIO_VNTB_COUNTERS;
	case GROUPS:
		return a->fixed[SIO_VNTB_GROUPS / 4];
	case MEMBERS:
		return a->fixed[SIO_VNTB_MEMBERS / 4];
	default:
		return 1;
	}
}

struct place {
	const struct block *block; /* NULL: reserved */
	unsigned row, at;	   /* of the whole register */
	bool wide, high;	   /* it has 8 bytes; its high half is meant */
};

/* Return: false: no register is accessed so. */
static bool find_place(const struct emu_ntb_adapter *a, uint64_t offset, size_t len,
		       struct place *ret)
{
	*ret = (struct place){0};
	if ((len != 4 && len != 8) || offset % len)
		return false;
	for (int i = 0; i < BLOCKS; i++) {
		const struct block *b = &block[i];
		unsigned in;

		if (offset < b->base || offset >= b->end)
			continue;
		in = (unsigned)(offset - b->base);
		ret->row = in / b->stride;
		ret->at = in % b->stride;
		ret->wide = b->wide >> ret->at / 8 & 1;
		if (ret->wide) {
			ret->high = ret->at % 8;
			ret->at &= ~7u;
		}
		if (ret->row < rows_of(a, i))
			ret->block = b;
		break;
	}
	return len == 4 || ret->wide;
}

void emu_ntb_load(struct emu_ntb_adapter *a, uint64_t offset, void *buf, size_t len)
{
	struct place p;
	uint64_t value = 0;
	uint32_t word;

	if (!find_place(a, offset, len, &p)) {
		memset(buf, 0xff, len);
		return;
	}
	if (p.block)
		value = p.block->load(a, p.row, p.at);
	if (len == 8) {
		memcpy(buf, &value, len);
		return;
	}
	word = (uint32_t)(p.high ? value >> 32 : value);
	memcpy(buf, &word, len);
}

void emu_ntb_store(struct emu_ntb_adapter *a, uint64_t offset, const void *buf, size_t len)
{
	struct emu_ntb_tables *t = &a->tables;
	struct place p;
	uint64_t value = 0;

	if (!find_place(a, offset, len, &p) || !p.block || !p.block->store)
		return;
	memcpy(&value, buf, len);
	if (p.wide && len == 4 && !p.high) {
		t->half_at = (uint32_t)offset;
		t->half = (uint32_t)value;
		return;
	}
	if (p.wide && len == 4) {
		uint32_t low = t->half_at == offset - 4 ? t->half
							: (uint32_t)p.block->load(a, p.row, p.at);

		value = value << 32 | low;
	}
	p.block->store(a, p.row, p.at, value);
}
