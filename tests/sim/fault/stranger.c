/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second user of the ports of all hosts, beside their daemons. It makes and ends owners with
 * children, memory, grants, windows, DMA channels and members of groups; it sends requests that
 * must be refused; it has DMA engines copy to and from wherever its windows lead. It knows what
 * each answer must be, and each byte of its memory. At the end of each event it compares the ports'
 * lists with its own. In half of the seeds that have it the emulated hardware does not compare its
 * tables with plain lists (emu/memory/check.c).
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "edge/edge.h"
#include "fault/stranger.h"
#include "run/run.h"

#define ACTS 200u
#define HOSTS 4u /* that one event acts on at most, so that they have windows to one another */

static struct {
	bool visited;
	unsigned host_now, seen;
} S;

/* ---- what ports send ---- */
static bool owns(unsigned host, uint64_t owner)
{
	return owner && stranger_find(host, owner);
}

static bool acts(void)
{
	return stranger.acting;
}

static bool hears(unsigned host, const void *evt, size_t len, const int *fds, unsigned n_fds)
{
	const struct sio_evt *h = evt;

	(void)host;
	if (!stranger.acting || h->op == SIO_EV_FAULT || h->op == SIO_EV_OVERFLOW)
		return false;
	if (h->op >= SIO_EV_LINK) /* an event of one of its owners */
		return true;
	assert(len <= sizeof(stranger.answer));
	memcpy(&stranger.answer, evt, len);
	for (unsigned i = 0; i < n_fds; i++)
		stranger.fds[stranger.n_fds++] = sim_fd_dup(fds[i]);
	return true;
}

static void compare_one(void *arg, const struct sio_list_entry *l)
{
	const struct thing *t = stranger_find(S.host_now, l->id);
	bool owner = l->kind == SIO_KIND_OWNER;

	(void)arg;
	if (!t && (owner || !owns(S.host_now, l->owner)))
		return;
	if (!t || t->kind != l->kind || t->owner != l->owner ||
	    l->state != (t->ended ? SIO_STATE_QUARANTINED : SIO_STATE_LIVE))
		sim_fail("stranger", "node %u has %s %llu of owner %llu in state %u: %s",
			 sim_node(S.host_now), emu_kinds[l->kind]->name, (unsigned long long)l->id,
			 (unsigned long long)l->owner, l->state,
			 !t ? "it was ended" : "that is not what was asked");
	S.seen++;
}

static void compare_lists(void)
{
	const struct thing *t;

	for (S.host_now = 0; S.host_now < sim_hosts(); S.host_now++) {
		unsigned n = 0;

		DL_FOREACH (stranger.things, t)
			n += t->host == S.host_now;
		if (n == 0)
			continue;
		S.seen = 0;
		sim_port_each(S.host_now, compare_one, NULL);
		if (S.seen != n)
			sim_fail("stranger", "node %u has %u things of %u", sim_node(S.host_now),
				 S.seen, n);
	}
}

/* ---- the fault ---- */
static void visit(struct sim_fault_event *e)
{
	unsigned first, hosts = sim_hosts() < HOSTS ? sim_hosts() : HOSTS;
	uint64_t acts;

	if (sim_outliving) /* the port of such a host has no adapters */
		return;
	stranger.rng = e->rng;
	S.visited = true;
	first = sim_hosts() > HOSTS ? (unsigned)(stranger_draw(3) * HOSTS % sim_hosts()) : 0;
	stranger_forget_dead();
	for (acts = 16 + stranger_draw(ACTS); acts > 0; acts--) {
		unsigned host = (first + (unsigned)stranger_draw(hosts)) % sim_hosts();

		if (sim_cluster->room->host[host].up)
			stranger_act(host);
	}
	stranger_compare_memory();
	compare_lists();
	while (stranger.n_fds > 0)
		sim_fd_close(stranger.fds[--stranger.n_fds]);
	sim_room_kick();
}

static bool lives(const struct thing *t, const void *arg)
{
	(void)arg;
	return !t->ended;
}

static void heal(void)
{
	struct thing *t;

	if (!S.visited)
		return;
	stranger_forget_dead();
	while ((t = stranger_any(SIO_KIND_OWNER, lives, NULL))) {
		struct sio_req_owner_close req = {.h.owner = t->id};

		stranger_ask(t->host, &req, sizeof(req), SIO_OP_OWNER_CLOSE, NULL);
		stranger_owner_ends(t);
	}
	compare_lists();
	while ((t = stranger_any(SIO_KIND_GRANT, NULL, NULL))) {
		stranger_end(t->host, SIO_OP_UNGRANT, t->id, 0, NULL);
		stranger_gone(t);
	}
	compare_lists();
	if (stranger.things)
		sim_fail("stranger", "something is left");
	while (stranger.n_fds > 0)
		sim_fd_close(stranger.fds[--stranger.n_fds]);
}

static void prepare(uint64_t *rng)
{
	sim_port_hears = hears;
	sim_unchecked |= sim_draw(rng) % 2;
}

const struct sim_fault sim_fault_stranger = {.name = "stranger",
					     .did = &sim_did.stranger,
					     .most = 30,
					     .begin = visit,
					     .prepare = prepare,
					     .heal = heal,
					     .owns = owns,
					     .acts = acts};
