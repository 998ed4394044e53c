/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault log: accesses of devices that were refused. Each is counted and kept in a ring; the
 * daemon of the device's host gets an event. A faulty device can make millions: the number of
 * events in a span of time is limited, and one SIO_EV_OVERFLOW says that some were left out.
 */
#include <stdio.h>

#include "core/probe.h"
#include "emu/memory/memory.h"

_Static_assert(SIO_FAULT_READ == SIO_ACCESS_READ && SIO_FAULT_WRITE == SIO_ACCESS_WRITE,
	       "an access is its kind of fault");

#define SPAN_NS 100000000ull
#define EVENTS_PER_SPAN 32

/* The mapping of @d that is nearest to @addr; NULL: it has none. */
static const struct emu_dmamap *nearest(const struct emu_device *d, uint64_t addr)
{
	const struct emu_dmamap *m, *best = NULL;
	uint64_t best_distance = UINT64_MAX;

	DL_FOREACH2(d->dmamaps, m, dev_next)
	{
		uint64_t last = m->iova + (m->length - 1), distance;

		if (addr < m->iova)
			distance = m->iova - addr;
		else
			distance = addr > last ? addr - last : 0;
		if (distance < best_distance) {
			best = m;
			best_distance = distance;
		}
	}
	return best;
}

/* May another event go out now? */
static bool within_limit(struct emu_host *h)
{
	struct emu_fault_log *l = &h->faults;
	struct emu_room *r = h->room;
	uint64_t now = r->ops->now(r->ctx);
	struct sio_evt_overflow evt;

	if (now - l->window_start >= SPAN_NS || l->count == 1) {
		l->window_start = now;
		l->sent = 0;
		l->overflow = false;
	}
	if (l->sent < EVENTS_PER_SPAN) {
		l->sent++;
		return true;
	}
	if (!l->overflow) {
		l->overflow = true;
		memset(&evt, 0, sizeof(evt));
		evt.faults = 1;
		emu_event(h, &evt, sizeof(evt), SIO_EV_OVERFLOW);
		emu_log(h->room, "%s: many faults; not each is reported", h->topo->name);
	}
	return false;
}

void emu_fault_record(struct emu_device *d, struct sio_dev_addr addr, size_t len, uint32_t access,
		      const struct emu_target *t)
{
	static const char *const kind[] = {
		[SIO_FAULT_READ] = "read",
		[SIO_FAULT_WRITE] = "write",
		[SIO_FAULT_MSI] = "interrupt message",
	};
	struct emu_host *h = d->host;
	struct emu_fault *f = &h->faults.ring[h->faults.count++ % EMU_FAULTS];
	const struct emu_dmamap *m = nearest(d, addr.addr);
	struct sio_evt_fault evt;

	d->count.faults++;
	SIO_PROBE(smartio_emu, fault, d->topo->fdid, addr.addr, len, access);
	for (unsigned i = 0; i < t->n_hops; i++)
		t->hop[i]->faults++;
	f->device = d->topo->fdid;
	f->address = addr.addr;
	f->length = len;
	f->nearest = m ? m->iova : SIO_PORT_ANY;
	f->access = access;
	f->node = t->node;
	memcpy(f->reason, t->reason, sizeof(f->reason));
	if (!within_limit(h))
		return;
	emu_log(h->room, "%s: %s of %zu bytes at %#" PRIx64 " by %s failed: %s", h->topo->name,
		kind[access], len, addr.addr, d->topo->name, f->reason);
	memset(&evt, 0, sizeof(evt));
	evt.device = f->device;
	evt.address = f->address;
	evt.length = f->length;
	evt.nearest = f->nearest;
	if (m) {
		evt.mapping = m->o.id;
		evt.h.owner = m->o.owner ? m->o.owner->o.id : 0;
	}
	evt.access = f->access;
	evt.node = f->node;
	memcpy(evt.reason, f->reason, sizeof(evt.reason));
	emu_event(h, &evt, sizeof(evt), SIO_EV_FAULT);
}
