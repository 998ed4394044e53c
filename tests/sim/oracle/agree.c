/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Daemons agree: what one believes to have given another, or itself, is what that one believes to
 * have received, number by number, in both directions: links and boots, connections to segments and
 * interrupts, grants, borrows with what was mapped for and of their devices, and the state of
 * devices. Checked whenever both are idle, no message is in flight between them or to their ports,
 * and something happened since; and in the end all hosts that a path joins have connected.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle/pairs.h"
#include "run/run.h"

static const char *const name[PAIR_KINDS] = {
	[PAIR_START] = "start",
	[PAIR_LINK] = "link that is up",
	[PAIR_REF] = "connection to a segment",
	[PAIR_GRANT] = "grant",
	[PAIR_RING] = "connection to an interrupt",
	[PAIR_DEVICE] = "description of a device",
	[PAIR_BORROW] = "borrow",
	[PAIR_DMA] = "mapping for a device",
	[PAIR_VIEW] = "view of a BAR",
	[PAIR_PLACED] = "device segment",
	[PAIR_REQUESTER] = "requester entry",
	[PAIR_MEMBER] = "member of a group",
};

static struct side {
	struct pair_list gives, has;
	uint64_t as_of; /* pairs_quiet() when they were read; 0: not quiet */
} side[SIM_HOSTS];
/* The states of the lower and of the other host of two when both were compared last. */
static uint64_t looked[SIM_HOSTS][SIM_HOSTS];

static int by_fact(const void *x, const void *y)
{
	const struct pair_fact *a = x, *b = y;

	if (a->other != b->other)
		return a->other < b->other ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	for (unsigned i = 0; i < 3; i++)
		if (a->number[i] != b->number[i])
			return a->number[i] < b->number[i] ? -1 : 1;
	return 0;
}

static void sort(struct pair_list *l)
{
	if (l->n > 0)
		qsort(l->fact, l->n, sizeof(*l->fact), by_fact);
}

/* The facts about @other, followed by one about another host, or the list's end. */
static const struct pair_fact *about(const struct pair_list *l, unsigned other, unsigned *ret_n)
{
	unsigned first = 0, end = l->n, last;

	while (first < end) {
		unsigned middle = (first + end) / 2;

		if (l->fact[middle].other < other)
			first = middle + 1;
		else
			end = middle;
	}
	for (last = first; last < l->n && l->fact[last].other == other;)
		last++;
	*ret_n = last - first;
	return l->n ? l->fact + first : NULL;
}

static void alone(const struct pair_fact *f, unsigned giver, unsigned taker, bool given)
{
	uint32_t knows = sim_node(given ? giver : taker);

	sim_fail("agree",
		 "node %u gave node %u a %s (%" PRIu64 ", %" PRIu64 ", %#" PRIx64
		 "), says the daemon of %u; that of %u knows of none",
		 sim_node(giver), sim_node(taker), name[f->kind], f->number[0], f->number[1],
		 f->number[2], knows, sim_node(given ? taker : giver));
}

/*
 * A mapping for a device whose end was answered when nobody waited any more: the program was
 * notified that it failed, has it still, and will try again.
 */
static bool may_be_ended(const struct pair_fact *f)
{
	return f->kind == PAIR_DMA && sim_has_fault("delay");
}

static void compare(unsigned giver, unsigned taker)
{
	unsigned n_given, n_taken;
	const struct pair_fact *given, *taken;

	if (side[giver].gives.sum[taker] == side[taker].has.sum[giver])
		return;
	sort(&side[giver].gives);
	sort(&side[taker].has);
	given = about(&side[giver].gives, taker, &n_given);
	taken = about(&side[taker].has, giver, &n_taken);
	while (n_given > 0 || n_taken > 0) {
		struct pair_fact mine, theirs;
		int order;

		if (n_given > 0)
			mine = *given;
		if (n_taken > 0)
			theirs = *taken;
		mine.other = theirs.other = 0;
		order = n_given == 0 ? 1 : n_taken == 0 ? -1 : by_fact(&mine, &theirs);
		if (order < 0 || (order > 0 && !may_be_ended(taken)))
			alone(order < 0 ? given : taken, giver, taker, order < 0);
		if (order == 0) {
			given++;
			n_given--;
		}
		taken++;
		n_taken--;
	}
}

/* A host that lies may have any records. */
static bool may_judge(unsigned a, unsigned b)
{
	return a != sim_liar() && b != sim_liar() && side[a].as_of && side[b].as_of &&
	       (a == b || sim_peer_settled(a, b));
}

/* Nothing has happened to either host since they were compared. */
static bool known(unsigned a, unsigned b)
{
	return looked[a][b] == side[a].as_of && looked[b][a] == side[b].as_of;
}

static void look(unsigned a, unsigned b)
{
	if (known(a, b) || !may_judge(a, b))
		return;
	looked[a][b] = side[a].as_of;
	looked[b][a] = side[b].as_of;
	compare(a, b);
	if (a != b)
		compare(b, a);
	sim_result.pairs++;
}

/* A host that is not quiet is not judged. False: nothing is new. */
static bool read_side(unsigned host)
{
	struct side *s = &side[host];
	uint64_t was = s->as_of;

	s->as_of = pairs_quiet(host);
	if (!s->as_of || s->as_of == was)
		return false;
	pairs_read(host, &s->gives, &s->has);
	return true;
}

static void check(void)
{
	bool fresh[SIM_HOSTS];

	for (unsigned h = 0; h < sim_hosts(); h++)
		fresh[h] = read_side(h);
	for (unsigned a = 0; a < sim_hosts(); a++)
		for (unsigned b = 0; fresh[a] && b < sim_hosts(); b++)
			look(a < b ? a : b, a < b ? b : a);
}

static bool joined(unsigned a, unsigned b)
{
	struct sio_path path;

	return sio_topology_paths(sim_cluster->topology, sim_node(a), sim_node(b), &path, 1) > 0;
}

/* The first pair of hosts that have not connected, or are still busy. */
static bool apart(unsigned *ret_a, unsigned *ret_b)
{
	for (unsigned a = 0; a < sim_hosts(); a++)
		for (unsigned b = a; b < sim_hosts(); b++) {
			if ((a != b && !joined(a, b)) || a == sim_liar() || b == sim_liar() ||
			    (side[a].as_of && side[b].as_of && known(a, b)))
				continue;
			*ret_a = a;
			*ret_b = b;
			return true;
		}
	return false;
}

static bool back(void)
{
	unsigned a, b;

	check();
	return !apart(&a, &b);
}

static void explain(char *text, size_t size)
{
	unsigned a, b;

	if (apart(&a, &b))
		snprintf(text, size, "the daemons of nodes %u and %u have not found each other",
			 sim_node(a), sim_node(b));
}

static void start(void)
{
	for (unsigned h = 0; h < SIM_HOSTS; h++)
		side[h].as_of = 0;
	memset(looked, 0, sizeof(looked));
}

const struct sim_oracle sim_oracle_agree = {
	.name = "agree",
	.every = 5 * SIM_MS,
	.start = start,
	.check = check,
	.back = back,
	.explain = explain,
};
