/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of an access's path that are not adapters: chassis of the hosts at both ends, and links
 * between cluster switches. Each counts what passes its link: a chassis the link towards its host,
 * in both directions. Most clusters have neither, so an access has a list of adapters, and this
 * beside it.
 */
#include "core/hops.h"
#include "emu/memory/memory.h"

bool emu_way_is(const struct emu_way *w)
{
	for (unsigned i = 0; i < 2; i++)
		if (w->host[i] && (w->from[i] || w->to[i]))
			return true;
	return w->sw[0] != w->sw[1];
}

/* Called for each link of a way. */
typedef void on_link(void *arg, struct emu_room *r, struct sio_pcie_count *link);

/* Upwards from @in to @top, which it is in. */
static void climb(struct emu_host *h, unsigned in, unsigned top, on_link *on, void *arg)
{
	for (; in != top; in = h->topo->chassis[in - 1].in)
		on(arg, h->room, &h->chassis[in - 1]);
}

static void walk(const struct emu_way *w, struct emu_room *r, on_link *on, void *arg)
{
	unsigned at = w->sw[0];

	for (unsigned i = 0; i < 2; i++) {
		struct emu_host *h = w->host[i];
		unsigned top;

		if (!h || h->topo->n_chassis == 0)
			continue;
		top = sio_hops_meeting(h->topo, w->from[i], w->to[i]);
		climb(h, w->from[i], top, on, arg);
		climb(h, w->to[i], top, on, arg);
	}
	while (at != w->sw[1]) {
		unsigned trunk = sio_outage_next(r->outage, at, w->sw[1]);
		const unsigned *sw;

		if (trunk == SIO_OUTAGE_NONE) /* taken out since */
			break;
		sw = r->topo->trunk[trunk].sw;
		on(arg, r, &r->trunk[trunk]);
		at = sw[sw[0] == at];
	}
}

static void count_link(void *arg, struct emu_room *r, struct sio_pcie_count *link)
{
	(void)r;
	emu_count_add(link, arg);
}

void emu_way_count(const struct emu_way *w, struct emu_room *r, const struct sio_pcie_count *c)
{
	struct sio_pcie_count copy = *c;

	walk(w, r, count_link, &copy);
}

/* ---- multicast: each link once, however many members are behind it ---- */

struct once {
	struct emu_spread *spread;
	const struct sio_pcie_count *count;
};

static void count_once(void *arg, struct emu_room *r, struct sio_pcie_count *link)
{
	struct once *o = arg;
	/* All are in one array: first chassis host by host, then trunks. */
	size_t n = (size_t)(link - r->links.link);

	if (o->spread->passed[n / 64] >> n % 64 & 1)
		return;
	o->spread->passed[n / 64] |= 1ull << n % 64;
	emu_count_add(link, o->count);
}

void emu_way_spread(const struct emu_way *w, struct emu_room *r, struct emu_spread *spread,
		    const struct sio_pcie_count *c)
{
	struct once o = {.spread = spread, .count = c};

	walk(w, r, count_once, &o);
}
