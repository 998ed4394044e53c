/* SPDX-License-Identifier: BSD-2-Clause */
/* The model of leases (model/leases.h). */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "model/blocks.h"
#include "model/leases.h"
#include "run/run.h"

#define NEVER UINT64_MAX

struct leases_held {
	struct leases_range range;
	uint32_t pid;
	char who[32];
	bool taken;	      /* else it is asked for, or was, and not answered */
	uint64_t asked, lost; /* lost: another program has some of the blocks since; NEVER */
	bool over;	      /* its program does nothing with it any more */
	uint64_t ended;	      /* since when that is known */
	struct leases_held *prev, *next;
};

static struct leases_held *all;

struct leases_held *leases_ask(const struct leases_range *range)
{
	struct leases_held *h = calloc(1, sizeof(*h));

	assert(h);
	h->range = *range;
	h->pid = sim_self()->pid;
	snprintf(h->who, sizeof(h->who), "%s", sim_self()->name);
	h->asked = sim_now();
	h->lost = NEVER;
	DL_APPEND(all, h);
	return h;
}

/*
 * Of the drive in one start of its host: older ones are nobody's. Those that are asked for anywhere
 * meet all.
 */
static bool meet(const struct leases_range *a, const struct leases_range *b)
{
	if (a->drive != b->drive || a->epoch != b->epoch)
		return false;
	return a->lba == NEVER || b->lba == NEVER ||
	       (a->lba < b->lba + b->blocks && b->lba < a->lba + a->blocks);
}

static bool is_later(const struct leases_range *a, const struct leases_range *b)
{
	return a->generation != b->generation ? a->generation > b->generation : a->id > b->id;
}

static void see_deaths(void)
{
	struct leases_held *h;

	DL_FOREACH (all, h) {
		if (h->over || sim_living(h->pid))
			continue;
		h->over = true;
		h->ended = sim_now();
	}
}

void leases_taken(struct leases_held *new, const struct leases_range *range)
{
	struct leases_held *h;

	new->range = *range;
	new->taken = true;
	DL_FOREACH (all, h) {
		struct leases_held *loses = is_later(range, &h->range) ? h : new;

		if (h == new || h->over || !h->taken || !meet(&h->range, range))
			continue;
		if (h->range.generation == range->generation && h->range.id == range->id)
			sim_fail("leases", "lease %" PRIu64 " was given to %s and to %s", range->id,
				 h->who, new->who);
		if (loses->lost == NEVER)
			loses->lost = sim_now();
	}
	for (uint64_t i = 0; new->lost == NEVER && range->guarded &&i < range->blocks; i++)
		blocks_fenced(range->drive, range->epoch, (uint32_t)(range->lba + i));
}

void leases_given(struct leases_held *h)
{
	h->over = true;
	h->ended = sim_now();
}

void leases_done(const struct leases_held *h, uint64_t sent)
{
	if (sent > h->lost && blocks_epoch(h->range.drive) == h->range.epoch &&
	    !blocks_distrusted(h->range.drive))
		sim_fail("leases",
			 "%s: a command was done for lease %" PRIu64 " of blocks %" PRIu64
			 " + %" PRIu64 ", some of which another program had been given before",
			 h->who, h->range.id, h->range.lba, h->range.blocks);
}

void leases_refused(struct leases_held *refused, bool busy, uint64_t grace)
{
	const struct leases_range range = refused->range;
	const uint64_t since = refused->asked;
	const struct leases_held *h;

	DL_DELETE(all, refused);
	free(refused);
	if (!busy)
		return;
	see_deaths();
	DL_FOREACH (all, h)
		if (meet(&h->range, &range) && (!h->over || h->ended + grace > since))
			return;
	sim_fail("leases",
		 "%s: blocks %" PRIu64 " + %" PRIu64
		 " are refused, which no program has had leased for %" PRIu64 " ms",
		 sim_self()->name, range.lba, range.blocks, grace / SIM_MS);
}
