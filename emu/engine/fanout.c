/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A write to an exact multicast group: one posted write of its sender, of which the switch between
 * the adapters makes one for each member. So it is counted once where it is sent, once where it
 * leaves the host, however many members there are, and once at each adapter where it arrives. A
 * member on the sender's own host is reached without a link; one in the BAR of a device, by way of
 * that device's chassis. Nothing goes back to the device that sends, nor to another function of it.
 */
#include <stdio.h>

#include "emu/engine/engine.h"
#include "smartio/io.h"

/* One write under way. */
struct fanout {
	struct emu_device *d;
	const struct emu_ram *sender;
	uint64_t offset;
	const void *from;
	size_t len;
	const struct sio_pcie_count *count;
	emu_passed *passed;
	struct emu_target *t;
	bool out;		   /* it has left the host */
	uint8_t in[SIO_MAX_HOSTS]; /* bit per adapter: it has come in */
	struct emu_spread *spread; /* NULL: there are adapters alone */
	int rc;
};

/* Members may be smaller than the group: what lies beyond their end is not theirs. */
static void deliver(const struct fanout *f, const struct emu_ram *member)
{
	uint64_t room = member->mem.size > f->offset ? member->mem.size - f->offset : 0;

	sio_copy_to((uint8_t *)emu_member_data(member) + f->offset, f->from,
		    f->len < room ? f->len : (size_t)room);
}

/* On its way to @member, out of the sender's host through @a if that is another. */
static void pass_links(struct fanout *f, const struct emu_ram *member, const struct emu_adapter *a)
{
	struct emu_host *h = f->sender->o.host, *peer = member->o.host;
	struct emu_way w = {.host = {h}, .from = {(uint8_t)f->d->topo->in}};
	unsigned in = member->overlay ? member->overlay->device->topo->in : 0;

	if (!f->spread)
		return;
	if (peer != h) {
		w.to[0] = (uint8_t)a->topo->in;
		w.host[1] = peer;
		w.from[1] = (uint8_t)peer->adapter[member->adapter].topo->in;
		emu_way_cross(&w, a->topo, peer->adapter[member->adapter].topo);
	}
	w.to[peer != h] = (uint8_t)in;
	emu_way_spread(&w, h->room, f->spread, f->count);
}

static void missed(struct fanout *f, const struct emu_host *h, const char *why)
{
	f->rc = -EFAULT;
	f->t->node = h->topo->node;
	snprintf(f->t->reason, sizeof(f->t->reason), "multicast: %s: %s", h->topo->name, why);
}

/* False: the adapter lets nothing of this device out. */
static bool leave(struct fanout *f, struct emu_adapter *a)
{
	if (f->out)
		return true;
	if (f->d->engine_of != a && !emu_requester_lookup(a, f->d->topo->bdf)) {
		missed(f, a->host, "the device is not in its adapter's requester table");
		return false;
	}
	f->passed(a, f->count);
	f->out = true;
	return true;
}

static void reach(struct fanout *f, const struct emu_ram *member)
{
	struct emu_host *h = f->sender->o.host, *peer = member->o.host;
	struct emu_adapter *a = &h->adapter[f->sender->adapter];
	struct emu_path *p;

	if (peer == h) {
		pass_links(f, member, NULL);
		deliver(f, member);
		return;
	}
	p = emu_path_find(h, a->index, peer->index, member->adapter);
	if (!p || !leave(f, a)) /* behind another switch: no member for us */
		return;
	if (p->state != SIO_LINK_UP) {
		emu_path_lost(h, p);
		missed(f, peer, "the path is down");
		return;
	}
	if (!(f->in[peer->index] >> member->adapter & 1))
		f->passed(&peer->adapter[member->adapter], f->count);
	f->in[peer->index] |= 1u << member->adapter;
	pass_links(f, member, a);
	deliver(f, member);
}

/* Functions of one device share its port, which a switch sends nothing back through. */
static bool is_behind_port_of(const struct emu_ram *member, const struct emu_device *d)
{
	const struct emu_device *to = member->overlay ? member->overlay->device : NULL;

	return to && !d->engine_of && to->host == d->host && to->topo->slot == d->topo->slot;
}

int emu_group_write(struct emu_device *d, const struct emu_ram *sender, uint64_t offset,
		    const void *from, size_t len, const struct sio_pcie_count *c,
		    emu_passed *passed, struct emu_target *t)
{
	struct fanout f = {.d = d,
			   .sender = sender,
			   .offset = offset,
			   .from = from,
			   .len = len,
			   .count = c,
			   .passed = passed,
			   .t = t};
	const struct emu_ram *member;
	struct emu_spread spread;

	if (d->room->links.n) {
		memset(&spread, 0, sizeof(spread));
		f.spread = &spread;
	}
	t->far = false;
	memset(t->hop, 0, sizeof(t->hop));
	t->n_hops = 0;
	t->counted = true;
	DL_FOREACH2(sender->group->member, member, group_next)
	if (member->published && !is_behind_port_of(member, d))
		reach(&f, member);
	return f.rc;
}

uint64_t emu_group_delay(const struct emu_ram *sender)
{
	const struct emu_adapter *a = &sender->o.host->adapter[sender->adapter];
	const struct emu_ram *member;
	uint64_t ns, most = 0;

	DL_FOREACH2(sender->group->member, member, group_next)
	{
		const struct emu_host *peer = member->o.host;

		if (!member->published || peer == a->host ||
		    !emu_path_find(a->host, a->index, peer->index, member->adapter))
			continue;
		ns = a->delay_ns + peer->adapter[member->adapter].delay_ns;
		if (ns > most)
			most = ns;
	}
	return most;
}
