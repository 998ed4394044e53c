/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where devices could write to, whether they do or not. Behind a window to a host without an IOMMU lies
 * whatever is at that address there. So as long as a device's mapping goes through a window, a grant of
 * the host that it leads to, in the same start, keeps that memory: whoever has lost whom meanwhile, and
 * whatever has ended. The room's lists are believed; no daemon is.
 */
#include <inttypes.h>
#include <utlist.h>

#include "emu/internal.h"
#include "run.h"
#include "tables.h"

static uint64_t looked; /* how much had come and gone, as of the last look */

/* Does @peer keep what @m leads to? */
static bool is_granted(const struct emu_host *peer, const struct emu_map *m)
{
	const struct emu_grant *g, *next;

	HASH_ITER (by_token, peer->grants, g, next)
		if (g->adapter == m->peer_adapter && g->peer_host == m->o.host->index &&
		    m->bus_addr >= g->bus_addr && m->length <= g->length &&
		    m->bus_addr - g->bus_addr <= g->length - m->length)
			return true;
	return false;
}

static void check_device(const struct emu_device *d)
{
	const struct emu_dmamap *dma;

	DL_FOREACH2(d->dmamaps, dma, dev_next)
	{
		const struct emu_map *m = (const struct emu_map *)dma->target;
		const struct emu_host *peer;

		if (!dma->target || dma->target->kind != SIO_KIND_MAP)
			continue;
		peer = &d->room->host[m->peer_host];
		if (!peer->up || peer->topo->iommu || peer->boot_generation != m->peer_generation)
			continue;
		if (!is_granted(peer, m))
			sim_fail("reach",
				 "%s of node %u has %" PRIu64 " bytes of %s mapped at %#" PRIx64
				 ", which %s took back",
				 d->topo->name, d->host->topo->node, dma->length, peer->topo->name,
				 dma->iova, peer->topo->name);
	}
}

static void check(void)
{
	const struct emu_room *r = sim_cluster->room;
	uint64_t changes = r->gen;

	for (unsigned i = 0; i < r->n_hosts; i++)
		changes += r->host[i].last_id;
	if (changes == looked)
		return;
	looked = changes;
	for (unsigned i = 0; i < r->n_hosts; i++)
		for (unsigned k = 0; r->host[i].up && k < r->host[i].n_devices; k++)
			check_device(&r->host[i].device[k]);
}

static void start(void)
{
	looked = 0;
}

const struct sim_oracle sim_oracle_reach = {
	.name = "reach", .every = SIM_MS, .start = start, .check = check};
