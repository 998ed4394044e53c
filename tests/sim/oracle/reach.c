/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where devices, processors and DMA engines could write to, whether they do or not. Behind a window
 * lies whatever is at that address of the other host, or what its IOMMU leads to from there. So as
 * long as a device's mapping goes through a window, or a program's window is there at all, which it
 * and its engine's transfers may store into, a grant of the host that it leads to, in the same
 * start, keeps that memory, or with an IOMMU at least the address: whoever has lost whom meanwhile,
 * and whatever has ended. The room's lists are believed; no daemon is.
 */
#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#include "emu/device/device.h"
#include "run/run.h"

static uint64_t looked; /* how much had come and gone, as of the last look */

static bool covers(const struct emu_grant *g, const struct emu_map *m)
{
	return g->adapter == m->peer_adapter && g->peer_host == m->o.host->index &&
	       m->bus_addr >= g->bus_addr && m->length <= g->length &&
	       m->bus_addr - g->bus_addr <= g->length - m->length;
}

/* Does @peer keep what @m leads to? */
static bool is_granted(const struct emu_host *peer, const struct emu_map *m)
{
	const struct emu_grant *g, *next;
	const struct emu_object *o, *more;

	HASH_ITER (by_token, peer->grants, g, next)
		if (covers(g, m))
			return true;
	if (!peer->topo->iommu)
		return false;
	HASH_ITER (hh, peer->objects, o, more)
		if (o->kind == SIO_KIND_GRANT && covers((const struct emu_grant *)o, m))
			return true;
	return false;
}

/*
 * NULL: nothing has to keep what @m leads to. Of a host that lies the windows are where it likes,
 * and so is what it says that others' lead to.
 */
static const struct emu_host *keeper(const struct emu_map *m)
{
	const struct emu_host *peer = &m->o.host->room->host[m->peer_host];
	const struct emu_path *p;

	if (m->o.host->index == sim_liar() || m->peer_host == sim_liar())
		return NULL;
	p = emu_path_find(m->o.host, m->adapter, m->peer_host, m->peer_adapter);
	if (!peer->up || emu_path_start(m->o.host, p) != m->peer_generation)
		return NULL;
	return peer;
}

/* Without an IOMMU registers are where they are, for ever. */
static bool may_become_anothers(const struct emu_host *peer, const struct emu_map *m)
{
	return peer->topo->iommu || (m->bus_addr >= peer->topo->ram_base &&
				     m->bus_addr - peer->topo->ram_base < peer->topo->ram_size);
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
		peer = keeper(m);
		if (peer && may_become_anothers(peer, m) && !is_granted(peer, m))
			sim_fail("reach",
				 "%s of node %u has %" PRIu64 " bytes of %s mapped at %#" PRIx64
				 ", which %s took back",
				 d->topo->name, d->host->topo->node, dma->length, peer->topo->name,
				 dma->iova, peer->topo->name);
	}
}

/*
 * A lender's window for a device of a program of its own host has that program's process, which
 * never gets it; its end and that of the grant are told at once. So what is ungranted is looked at
 * once more, when what was on its way to the port has come.
 */
#define SUSPECTS 64u
static struct suspect {
	unsigned host;
	uint64_t map, since; /* since 0: none */
} suspects[SUSPECTS];

static bool is_confirmed(const struct emu_map *m)
{
	struct suspect *free = NULL;

	looked = 0; /* whatever happens until then */
	for (unsigned i = 0; i < SUSPECTS; i++) {
		struct suspect *s = &suspects[i];

		if (s->since && s->host == m->o.host->index && s->map == m->o.id)
			return sim_now() - s->since >= SIM_MS / 2;
		if (!s->since || sim_now() - s->since > 10 * SIM_MS)
			free = s;
	}
	if (!free)
		return true;
	*free = (struct suspect){m->o.host->index, m->o.id, sim_now()};
	return false;
}

/* A program's window: interrupts are no memory. */
static void check_window(const struct emu_map *m)
{
	const struct emu_host *peer = keeper(m);

	if (!peer || m->trigger || !m->o.owner->pid || !may_become_anothers(peer, m))
		return;
	if (!is_granted(peer, m) && is_confirmed(m))
		sim_fail("reach",
			 "process %u of node %u has a window to %" PRIu64 " bytes at %#" PRIx64
			 " of %s, which took them back",
			 m->o.owner->pid, m->o.host->topo->node, m->length, m->bus_addr,
			 peer->topo->name);
}

static void check_host(const struct emu_host *h)
{
	const struct emu_object *o, *next;

	for (unsigned k = 0; k < h->n_devices; k++)
		check_device(h->device[k]);
	HASH_ITER (hh, h->objects, o, next)
		if (o->kind == SIO_KIND_MAP)
			check_window((const struct emu_map *)o);
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
		if (r->host[i].up)
			check_host(&r->host[i]);
}

static void start(void)
{
	looked = 0;
	memset(suspects, 0, sizeof(suspects));
}

const struct sim_oracle sim_oracle_reach = {
	.name = "reach", .every = SIM_MS, .start = start, .check = check};
