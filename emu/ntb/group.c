/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of machines: each member has memory of its own, in RAM or in a BAR. A write to a
 * group is one posted write of its sender, of which the switch between the adapters makes one for
 * each member: counted once where it leaves the machine, however many members there are, and once
 * at each adapter where it comes in. Members of the sender's own machine are reached without a
 * link.
 */
#include "emu/ntb/inside.h"

#define MEMBER_BITS (SIO_VNTB_MEMBER_VALID | SIO_VNTB_MEMBER_OPEN | 0xffff00u)

static bool is_valid(uint32_t control)
{
	return control & SIO_VNTB_MEMBER_VALID;
}

static bool is_open(uint32_t control)
{
	return is_valid(control) && control & SIO_VNTB_MEMBER_OPEN;
}

static struct emu_ntb_group *group_of(struct emu_ntb *n, uint32_t control)
{
	return &n->group[control >> 8];
}

/* May it be a member? The first one says how large the group is. */
static bool can_join(const struct emu_ntb_adapter *a, const struct emu_ntb_member *m,
		     uint32_t control)
{
	const struct emu_ntb_group *g;
	uint64_t end;

	if (control >> 8 >= a->fixed[SIO_VNTB_GROUPS / 4] || m->size == 0 ||
	    __builtin_add_overflow(m->base, m->size - 1, &end))
		return false;
	g = group_of(a->ntb, control);
	return g->members == 0 || m->size <= g->size;
}

void emu_ntb_member_control(struct emu_ntb_adapter *a, unsigned member, uint32_t control)
{
	struct emu_ntb_tables *t = &a->tables;
	struct emu_ntb_member *m = &t->member[member];
	bool same = is_valid(m->control) && m->control >> 8 == (control & MEMBER_BITS) >> 8;
	uint32_t before = m->control;
	struct emu_ntb_group *g;

	control &= MEMBER_BITS;
	if (is_valid(control) && !same && !can_join(a, m, control))
		control = 0;
	if (!is_valid(control))
		control = 0;
	m->control = control;
	if (is_valid(control)) {
		g = group_of(a->ntb, control);
		if (g->members++ == 0)
			g->size = m->size;
		g->open += is_open(control);
	}
	/* Behind that, so that the group of one who only opens itself keeps its size. */
	if (is_valid(before)) {
		g = group_of(a->ntb, before);
		g->open -= is_open(before);
		if (--g->members == 0)
			g->size = 0;
	}
	if (!same || !is_open(control))
		emu_ntb_range_changed(a, EMU_NTB_MEMBER + member);
	if (is_valid(control) && member >= t->n_members)
		t->n_members = member + 1;
	while (t->n_members > 0 && !is_valid(t->member[t->n_members - 1].control))
		t->n_members--;
}

void emu_ntb_members_leave(struct emu_ntb_adapter *a)
{
	while (a->tables.n_members > 0)
		emu_ntb_member_control(a, a->tables.n_members - 1, 0);
}

/* ---- writes ---- */

/* One write under way. */
struct fanout {
	struct emu_ntb_adapter *from;
	unsigned group;
	uint64_t at;	 /* in the group */
	uint64_t offset; /* in the window */
	const void *data;
	size_t len;
	bool out, missed;
};

static void miss(struct fanout *f, struct emu_ntb_row *row, uint64_t address, uint32_t reason)
{
	f->missed = true;
	emu_ntb_refused(f->from, row, false, f->offset, address, f->len, reason);
}

/* By the machine of the member itself. */
static uint32_t ask(const struct fanout *f, struct emu_ntb_row *row, unsigned member,
		    uint64_t address, size_t len)
{
	const struct emu_ntb_access access = {.from = f->from,
					      .to = row->peer,
					      .row = row,
					      .start = f->from->start,
					      .range = EMU_NTB_MEMBER + member,
					      .group = f->group,
					      .ticket = -1,
					      .offset = f->offset,
					      .address = address,
					      .len = len};

	if (row->writes >= EMU_NTB_WRITES)
		return SIO_VNTB_REASON_LIMIT;
	if (emu_ntb_is_silent(f->from->ntb, row->peer) ||
	    len > sio_vfio_session_dma_max(row->peer->session) ||
	    emu_ntb_send(&access, f->data) < 0)
		return SIO_VNTB_REASON_PEER;
	return 0;
}

/* Members may be smaller than the group: what lies beyond their end is not theirs. */
static void deliver(struct fanout *f, struct emu_ntb_row *row, unsigned member)
{
	struct emu_ntb_adapter *to = row->peer;
	const struct emu_ntb_member *m = &to->tables.member[member];
	uint64_t room = m->size > f->at ? m->size - f->at : 0, address = m->base + f->at;
	size_t len = f->len < room ? f->len : (size_t)room;
	uint32_t reason = 0;

	if (len == 0)
		return;
	switch (emu_ntb_look_at(to, address, len, true)) {
	case EMU_NTB_MEMORY:
		emu_ntb_copy(to, address, NULL, f->data, len);
		break;
	case EMU_NTB_DEVICE:
		reason = ask(f, row, member, address, len);
		break;
	default:
		reason = SIO_VNTB_REASON_PEER;
	}
	to->counts.group_in++;
	if (reason)
		miss(f, row, address, reason);
}

/* It comes in at the other end of the row once, for all members there. */
static bool pass_link(struct fanout *f, struct emu_ntb_row *row)
{
	if (row == &row->peer->own)
		return true;
	if (!(row->state & SIO_VNTB_PEER_UP)) {
		miss(f, row, f->at, SIO_VNTB_REASON_LINK);
		return false;
	}
	if (!f->out) {
		emu_ntb_count(f->from, EMU_NTB_WRITE, f->at, f->len);
		f->from->counts.group_out++;
	}
	f->out = true;
	emu_ntb_count(row->peer, EMU_NTB_WRITE, f->at, f->len);
	return true;
}

/* The members at one adapter. */
static void reach(struct fanout *f, struct emu_ntb_row *row)
{
	const struct emu_ntb_tables *t = &row->peer->tables;
	bool is_in = false;

	if (row->peer->emulated) /* groups of such hosts are the machine room's */
		return;
	for (unsigned i = 0; i < t->n_members; i++) {
		uint32_t control = t->member[i].control;

		if (!is_open(control) || control >> 8 != f->group)
			continue;
		if (!is_in && !pass_link(f, row))
			return;
		is_in = true;
		deliver(f, row, i);
	}
}

uint32_t emu_ntb_group_write(struct emu_ntb_adapter *a, unsigned group, uint64_t at,
			     uint64_t offset, const void *data, size_t len)
{
	struct fanout f = {
		.from = a, .group = group, .at = at, .offset = offset, .data = data, .len = len};
	struct emu_ntb *n = a->ntb;

	if (group >= a->fixed[SIO_VNTB_GROUPS / 4])
		return SIO_VNTB_REASON_ENTRY;
	if (n->group[group].open == 0)
		return 0; /* nobody listens */
	for (unsigned i = 0; i < n->n_own; i++)
		if (n->adapter[i]->host == a->host)
			reach(&f, &n->adapter[i]->own);
	for (unsigned i = 0; i < a->n_rows; i++)
		reach(&f, &a->row[i]);
	a->missed[group] += f.missed;
	return 0;
}
