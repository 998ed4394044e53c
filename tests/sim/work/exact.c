/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs in exact multicast groups: each member has memory of its own, and a copy writes to all
 * members. Each sender has a slot of its own in a group, and copies ascending numbers to it. So in
 * each slot a member sees numbers that ascend and that were sent; where nothing breaks, also every
 * number whose copy was reported as done. The word behind the bytes that are copied is the
 * member's, and never changes.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <string.h>

#include "work/groups.h"
#include "work/life.h"
#include "../../lib/topology_path.h"
#include "run/run.h"
#include "smartio/io.h"

#define GROUPS 3u
#define SLOTS 64u
#define SLOT_BYTES 64u
#define MOST 32u /* bytes of a copy; the member's own word follows them */
#define BYTES (SLOTS * SLOT_BYTES)
#define OWN (MOST / 4)

/* What all programs know of a slot. */
static struct slot {
	uint32_t user;	/* pid; a slot that its program did not release is not used again */
	uint32_t sent;	/* the last number that was tried */
	uint32_t there; /* the last one that was reported as copied; */
	uint64_t begun; /* when that copy was started, */
	unsigned host;	/* and where */
} slots[GROUPS][SLOTS];

struct member {
	sci_local_segment_t segment;
	sci_map_t map;
	volatile uint32_t *at;
	bool available;
	uint64_t since; /* since when it is available */
	uint32_t own, seen[SLOTS];
};

struct sender {
	sci_remote_segment_t all;
	sci_map_t map;
	unsigned slot; /* SLOTS: none was free */
};

struct state {
	sci_desc_t sd;
	struct member member[GROUPS];
	struct sender sender[GROUPS];
};

bool sim_exact_groups(unsigned host)
{
	return sim_adapters(host) && sim_cluster->topology->exact_multicast;
}

/* ---- members ---- */
static uint32_t word(unsigned g, uint32_t number)
{
	return 0xe0000000u | g << 24 | number;
}

static void join(struct state *s, unsigned g)
{
	struct member *m = &s->member[g];

	if (m->segment)
		return;
	memset(m, 0, sizeof(*m));
	m->segment = sim_join(s->sd, g, BYTES);
	if (!m->segment)
		return;
	m->at = sim_map_member(m->segment, BYTES, &m->map);
	if (!m->map)
		return;
	m->own = 0xf0000000u | (uint32_t)sim_pick(1u << 28);
	for (unsigned i = 0; i < SLOTS; i++)
		sio_write32(m->at + i * SLOT_BYTES / 4 + OWN, m->own);
	m->available = sim_show_member(m->segment);
	m->since = sim_now();
}

static void leave(struct state *s, unsigned g)
{
	struct member *m = &s->member[g];

	if (!m->segment)
		return;
	sim_leave(m->segment, m->map);
	memset(m, 0, sizeof(*m));
}

static void hide(struct state *s, unsigned g)
{
	struct member *m = &s->member[g];
	sci_error_t e;

	if (!m->available)
		return;
	m->available = false;
	SIM_END(SCISetSegmentUnavailable, (m->segment, 0, 0, &e), &e);
}

/* Does a copy from @host reach this host's members, which joined on adapter 0? */
static bool reached_by(unsigned host)
{
	struct sio_path path;

	return host == sim_self()->host || (topology_path(sim_cluster->topology, sim_node(host), 0,
							  sim_node(sim_self()->host), &path) == 0 &&
					    path.peer_adapter == 0);
}

/* Must the last number that was reported as copied be here by now? */
static bool must_be_here(const struct member *m, const struct slot *slot)
{
	return slot->there && m->available && slot->begun > m->since && reached_by(slot->host) &&
	       !sim_has_pullers() && !sim_has_fault("link") && !sim_has_fault("between") &&
	       !sim_has_fault("anew") && !sim_has_fault("crash");
}

static void look(struct state *s, unsigned g)
{
	struct member *m = &s->member[g];
	unsigned i = (unsigned)sim_pick(SLOTS);
	struct slot *slot = &slots[g][i];
	bool must = must_be_here(m, slot);
	uint32_t there = slot->there, at_first, v;

	if (!m->map)
		return;
	sio_from_fabric_barrier();
	v = sio_read32(m->at + i * SLOT_BYTES / 4);
	at_first = sio_read32(m->at + i * SLOT_BYTES / 4 + OWN);
	if (v == 0xffffffffu && at_first == v) /* its own smartiod has ended */
		return;
	if (at_first != m->own)
		sim_fail("groups", "%s: %#x where it keeps %#x in group %u", sim_self()->name,
			 at_first, m->own, g);
	if (v && v >> 24 != word(g, 0) >> 24)
		sim_fail("groups", "%s: %#x in group %u", sim_self()->name, v, g);
	v &= 0xffffffu;
	if (v > slot->sent)
		sim_fail("groups", "%s: number %u in slot %u of group %u, %u were sent",
			 sim_self()->name, v, i, g, slot->sent);
	if (v < m->seen[i])
		sim_fail("groups", "%s: number %u in slot %u of group %u after number %u",
			 sim_self()->name, v, i, g, m->seen[i]);
	if (must && v < there)
		sim_fail("groups", "%s: number %u in slot %u of group %u, %u was copied",
			 sim_self()->name, v, i, g, there);
	m->seen[i] = v;
}

/* ---- senders ---- */
static unsigned take_slot(unsigned g)
{
	unsigned i = 0;

	while (i < SLOTS && slots[g][i].user)
		i++;
	if (i < SLOTS)
		slots[g][i].user = sim_self()->pid;
	return i;
}

static void reach(struct state *s, unsigned g)
{
	struct sender *o = &s->sender[g];
	volatile uint32_t *at;

	if (o->all)
		return;
	o->all = sim_reach(s->sd, g, BYTES, SCI_FLAG_READONLY_MAP, &o->map, &at);
	if (o->all)
		o->slot = take_slot(g);
}

static void drop(struct state *s, unsigned g)
{
	struct sender *o = &s->sender[g];

	if (!o->all)
		return;
	sim_drop_group(o->all, o->map);
	if (o->slot < SLOTS)
		slots[g][o->slot].user = 0;
	memset(o, 0, sizeof(*o));
}

static void send(struct state *s, unsigned g)
{
	struct sender *o = &s->sender[g];
	uint32_t data[MOST / 4];
	size_t bytes = 4 + 4 * sim_pick(MOST / 4);
	struct slot *slot;
	uint64_t begun = sim_now();
	uint32_t number;
	sci_error_t e;

	if (!o->map || o->slot == SLOTS)
		return;
	slot = &slots[g][o->slot];
	number = ++slot->sent;
	assert(number < 1u << 24);
	for (unsigned i = 0; i < MOST / 4; i++)
		data[i] = word(g, number);
	SIM_CALL(SCIMemCpy,
		 (NULL, data, o->map, o->slot * SLOT_BYTES, bytes, SCI_FLAG_ERROR_CHECK, &e), &e,
		 SCI_ERR_TRANSFER_FAILED, SCI_ERR_NOT_CONNECTED, SCI_ERR_NO_SUCH_SEGMENT);
	if (e != SCI_ERR_OK)
		return;
	slot->there = number;
	slot->begun = begun;
	slot->host = sim_self()->host;
}

/* ---- the program ---- */
static void perhaps_leave(struct state *s, unsigned g)
{
	if (sim_pick(3) == 0)
		leave(s, g);
	else if (sim_pick(4) == 0)
		hide(s, g);
}

static void perhaps_drop(struct state *s, unsigned g)
{
	if (sim_pick(3) == 0)
		drop(s, g);
}

static void act(void *state)
{
	static void (*const acts[])(struct state * s, unsigned g) = {
		join, join, perhaps_leave, reach, reach, perhaps_drop,
		send, send, send,	   look,  look,	 look,
	};
	unsigned g = (unsigned)sim_pick(GROUPS);

	acts[sim_pick(sizeof(acts) / sizeof(acts[0]))](state, g);
}

static void tear_down(void *state)
{
	for (unsigned g = 0; g < GROUPS; g++) {
		drop(state, g);
		leave(state, g);
	}
}

static void exact_main(struct sim_proc *p)
{
	struct state s = {0};
	static const struct sim_life life = {.acts = 200, .act = act, .tear_down = tear_down};

	sim_live_and_exit(p, &life, &s, &s.sd);
}

const struct sim_workload sim_work_exact = {
	.name = "exact", .weight = 3, .fits = sim_exact_groups, .main = exact_main};
