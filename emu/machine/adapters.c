/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adapters of hosts that stay come and go by another file, or are other ones. Programs, daemons and
 * hosts know an adapter by its number, its place in the list: so they come behind those that are
 * there, and go from the end. One that goes is cut off like one whose cable is pulled out; what
 * hosts have of it stays, in its tables, as objects that lead nowhere, until their owners end them.
 * Only when nothing is left of it, nor of others' windows onto it, can another one have its number.
 */
#include <stdio.h>
#include <stdlib.h>

#include "emu/engine/engine.h"
#include "emu/machine/requests.h"

/* One that comes by the next file. */
struct emu_fresh {
	struct emu_fresh *next;
	struct emu_adapter a;
};

/* ---- what uses an adapter ---- */

enum use { USE_MAP, USE_GRANT, USE_REQUESTER, USE_CHANNEL, USE_MEMBER, USE_PEER, USES };

#define USE_NONE USES

struct uses {
	unsigned n[USES];
};

static enum use use_of(const struct emu_object *o, unsigned *ret_adapter)
{
	const struct emu_ram *ram = (const struct emu_ram *)o;

	switch (o->kind) {
	case SIO_KIND_MAP:
		*ret_adapter = ((const struct emu_map *)o)->adapter;
		return USE_MAP;
	case SIO_KIND_GRANT:
		*ret_adapter = ((const struct emu_grant *)o)->adapter;
		return USE_GRANT;
	case SIO_KIND_REQUESTER:
		*ret_adapter = ((const struct emu_requester *)o)->adapter;
		return USE_REQUESTER;
	case SIO_KIND_DMA:
		*ret_adapter = ((const struct emu_channel *)o)->engine->adapter->index;
		return USE_CHANNEL;
	case SIO_KIND_MEM:
		*ret_adapter = ram->adapter;
		return ram->group && (ram->member || ram->sender) ? USE_MEMBER : USE_NONE;
	default:
		return USE_NONE;
	}
}

/* By objects of its own host. */
static unsigned count_uses(const struct emu_host *h, unsigned index, struct uses *ret)
{
	struct emu_object *o, *tmp;
	unsigned all = 0, adapter = 0;

	*ret = (struct uses){{0}};
	HASH_ITER (hh, h->objects, o, tmp) {
		enum use use = use_of(o, &adapter);

		if (use == USE_NONE || adapter != index)
			continue;
		ret->n[use]++;
		all++;
	}
	return all;
}

static unsigned count_peers(const struct emu_host *h, unsigned index)
{
	const struct emu_room *r = h->room;
	unsigned n = 0;

	for (unsigned i = 0; i < r->n_hosts; i++) {
		struct emu_object *o, *tmp;

		HASH_ITER (hh, r->host[i].objects, o, tmp) {
			const struct emu_map *m = (const struct emu_map *)o;

			n += o->kind == SIO_KIND_MAP && m->peer_host == h->index &&
			     m->peer_adapter == index;
		}
	}
	return n;
}

static bool is_used(const struct emu_host *h, unsigned index)
{
	struct uses uses;

	return count_uses(h, index, &uses) != 0;
}

static int in_use(const struct emu_host *h, unsigned index, const struct uses *uses,
		  struct sio_err *reterr)
{
	static const char *const word[USES] = {"maps",
					       "grants",
					       "requester entries",
					       "DMA channels",
					       "members of groups",
					       "maps of other hosts"};
	char text[128] = "";
	size_t len = 0;

	for (unsigned i = 0; i < USES && len < sizeof(text); i++)
		if (uses->n[i])
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s: %u",
						len ? ", " : "", word[i], uses->n[i]);
	if (index >= h->topo->n_adapters)
		return sio_fail(reterr, -EBUSY,
				"host '%s', adapter %u is new, and of the one of before something "
				"is left (%s); when its programs have ended that is right",
				h->topo->name, index, text);
	return sio_fail(reterr, -EBUSY,
			"host '%s', adapter %u is another one, and this one is in use (%s); when "
			"its programs have ended that is right",
			h->topo->name, index, text);
}

/* ---- which come ---- */

static const char *chassis_of(const struct sio_topo_host *h, unsigned in)
{
	return in ? h->chassis[in - 1].name : "";
}

/* What an adapter is, in contrast to where its cable leads. */
static bool is_other(const struct sio_topo_host *was, const struct sio_topo_host *h, unsigned index)
{
	const struct sio_topo_adapter *a = &was->adapter[index], *b = &h->adapter[index];

	return a->window_base != b->window_base || a->window_size != b->window_size ||
	       a->lut_entries != b->lut_entries || a->requesters != b->requesters ||
	       a->bdf != b->bdf || strcmp(chassis_of(was, a->in), chassis_of(h, b->in)) != 0;
}

static bool comes(const struct emu_host *h, const struct sio_topo_host *next, unsigned index)
{
	return index >= h->topo->n_adapters || is_other(h->topo, next, index);
}

/*
 * The first adapter that the next file does not have, and whose window was where these addresses
 * are to be another part's; h->n_adapters: there is none.
 */
static unsigned in_place_of(const struct emu_host *h, const struct sio_topo_host *next,
			    uint64_t base, uint64_t size)
{
	unsigned i = next->n_adapters;

	for (; i < h->n_adapters; i++) {
		const struct sio_topo_adapter *left = h->adapter[i].topo;

		if (base < left->window_base + left->window_size && left->window_base < base + size)
			break;
	}
	return i;
}

/* The first of @place and those behind it, which end before it does, of which anything is left. */
static unsigned first_left(const struct emu_host *h, unsigned place)
{
	while (place < h->n_adapters && !is_used(h, place))
		place++;
	return place;
}

static int check_window(const struct emu_host *h, const struct sio_topo_host *next, unsigned index,
			struct sio_err *reterr)
{
	const struct sio_topo_adapter *t = &next->adapter[index];
	unsigned place = in_place_of(h, next, t->window_base, t->window_size);
	unsigned left = first_left(h, place);

	if (left >= h->n_adapters)
		return 0;
	return sio_fail(reterr, -EBUSY,
			"host '%s', adapter %u: its window would lie where that of adapter %u was, "
			"and of adapter %u something is left; another 'window_base', or when its "
			"programs have ended that, is right",
			next->name, index, place, left);
}

/* New devices are put in when the file is in force already. */
static int check_bars(const struct emu_host *h, const struct sio_topo_host *next,
		      struct sio_err *reterr)
{
	for (unsigned i = 0; i < next->n_devices; i++) {
		const struct sio_topo_device *t = &next->device[i];
		unsigned place = in_place_of(h, next, t->bar_base, sio_topology_bar_space(t));
		unsigned left = first_left(h, place);

		if (left < h->n_adapters)
			return sio_fail(reterr, -EBUSY,
					"device %s/%s: its BARs would lie where the window of "
					"adapter %u was, and of adapter %u something is left; "
					"another 'bar_base', or when its programs have ended that, "
					"is right",
					next->name, t->name, place, left);
	}
	return 0;
}

static void reserve_place(struct emu_host *h, const struct sio_topo_host *next, uint64_t base,
			  uint64_t size)
{
	for (unsigned i = in_place_of(h, next, base, size); i < h->n_adapters; i++)
		h->adapter[i].changing = true;
}

/* Until the change nobody begins to use @f's number, nor those in whose place its window is. */
static void reserve(const struct emu_fresh *f, const struct sio_topo_host *next)
{
	const struct sio_topo_adapter *t = &next->adapter[f->a.index];

	f->a.host->adapter[f->a.index].changing = true;
	reserve_place(f->a.host, next, t->window_base, t->window_size);
}

static void free_tables(struct emu_adapter *a)
{
	emu_engine_power_off(a);
	emu_adapter_power_off(a);
	emu_adapter_done(a);
}

static int make(struct emu_host *h, const struct sio_topo_host *next, unsigned index,
		struct emu_fresh **list, struct sio_err *reterr)
{
	struct emu_fresh *f;
	struct uses uses;
	unsigned used = count_uses(h, index, &uses);
	int rc;

	uses.n[USE_PEER] = count_peers(h, index);
	if (used + uses.n[USE_PEER])
		return in_use(h, index, &uses, reterr);
	rc = check_window(h, next, index, reterr);
	if (rc < 0)
		return rc;
	f = calloc(1, sizeof(*f));
	if (!f)
		return sio_no_memory(reterr, "a new adapter");
	LL_APPEND(*list, f); /* so they are reported in their order */
	rc = emu_adapter_init(&f->a, h, index, &next->adapter[index], reterr);
	if (rc == 0)
		rc = emu_adapter_power_on(&f->a, reterr);
	return rc;
}

static bool stays(const struct emu_room *r, const struct sio_topology *next, unsigned host)
{
	return host < r->n_hosts && host < next->n_hosts &&
	       !sio_topology_is_vacant(&r->topo->host[host]) &&
	       !sio_topology_is_vacant(&next->host[host]);
}

int emu_adapters_prepare(struct emu_room *r, const struct sio_topology *next,
			 struct emu_fresh **ret, struct sio_err *reterr)
{
	struct emu_fresh *list = NULL, *f;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < r->n_hosts; i++) {
		struct emu_host *h = &r->host[i];

		emu_adapters_bury(h);
		for (unsigned k = 0; rc == 0 && stays(r, next, i) && k < next->host[i].n_adapters;
		     k++)
			if (comes(h, &next->host[i], k))
				rc = make(h, &next->host[i], k, &list, reterr);
		if (rc == 0 && stays(r, next, i))
			rc = check_bars(h, &next->host[i], reterr);
	}
	if (rc < 0) {
		emu_adapters_drop(r, list);
		return rc;
	}
	LL_FOREACH (list, f)
		reserve(f, &next->host[f->a.host->index]);
	for (unsigned i = 0; i < r->n_hosts; i++)
		for (unsigned k = 0; stays(r, next, i) && k < next->host[i].n_devices; k++)
			reserve_place(&r->host[i], &next->host[i], next->host[i].device[k].bar_base,
				      sio_topology_bar_space(&next->host[i].device[k]));
	*ret = list;
	return 0;
}

void emu_adapters_drop(struct emu_room *r, struct emu_fresh *list)
{
	struct emu_fresh *f, *tmp;

	for (unsigned i = 0; i < r->n_hosts; i++)
		for (unsigned k = 0; k < SIO_MAX_ADAPTERS; k++)
			r->host[i].adapter[k].changing = false;
	LL_FOREACH_SAFE (list, f, tmp) {
		free_tables(&f->a);
		free(f);
	}
}

/* ---- the change ---- */

/* Its window goes, too; there are no objects of it. */
static void end(struct emu_adapter *a)
{
	if (a->host->up)
		sio_addrmap_remove(&a->host->map, a->topo->window_base);
	free_tables(a);
	memset(a, 0, sizeof(*a));
}

/* Those from number @first on, from the end, up to one that is used. */
static void bury(struct emu_host *h, unsigned first)
{
	while (h->n_adapters > first && !is_used(h, h->n_adapters - 1))
		end(&h->adapter[--h->n_adapters]);
}

void emu_adapters_bury(struct emu_host *h)
{
	bury(h, h->topo->n_adapters);
}

/* The topology's description of it goes. */
static void cut_off(struct emu_adapter *a)
{
	if (a->topo == &a->was)
		return;
	a->was = *a->topo;
	a->was.attach = SIO_ATTACH_NONE;
	a->was.in = 0;
	a->topo = &a->was;
	if (a->engine)
		a->engine->topo.in = 0;
}

/* It is reported also where no cable was in: by that a daemon hears that the adapter is gone. */
static void pull(struct emu_adapter *a)
{
	a->cable = false;
	if (a->host->up)
		emu_link_report(a);
}

/* The first of a host's that goes. */
static unsigned first_gone(const struct emu_room *r, const struct sio_topology *next, unsigned host)
{
	return stays(r, next, host) ? next->host[host].n_adapters : SIO_MAX_ADAPTERS;
}

/* The one whose place it takes; NULL: nobody's. */
static struct emu_adapter *former(const struct emu_fresh *f)
{
	struct emu_host *h = f->a.host;

	return f->a.index < h->n_adapters ? &h->adapter[f->a.index] : NULL;
}

void emu_adapters_leave(struct emu_room *r, const struct sio_topology *next, struct emu_fresh *list)
{
	struct emu_fresh *f;

	LL_FOREACH (list, f) {
		struct emu_adapter *a = former(f);

		if (!a)
			continue;
		/* The socket is the same one. */
		if (a->index < a->host->topo->n_adapters)
			f->a.cable = a->cable;
		pull(a);
	}
	for (unsigned i = 0; i < r->n_hosts; i++)
		for (unsigned k = first_gone(r, next, i); k < r->host[i].topo->n_adapters; k++)
			pull(&r->host[i].adapter[k]);
	emu_paths_update(r);
	LL_FOREACH (list, f)
		if (former(f))
			end(former(f));
	for (unsigned i = 0; i < r->n_hosts; i++) {
		for (unsigned k = first_gone(r, next, i); k < r->host[i].n_adapters; k++)
			cut_off(&r->host[i].adapter[k]);
		bury(&r->host[i], first_gone(r, next, i));
	}
}

static int come(struct emu_adapter *fresh, struct sio_err *reterr)
{
	struct emu_host *h = fresh->host;
	struct emu_adapter *a = &h->adapter[fresh->index];
	int rc = 0;

	*a = *fresh;
	a->changing = true; /* until its link is reported */
	if (h->n_adapters <= a->index)
		h->n_adapters = a->index + 1;
	if (!h->up) {
		emu_adapter_power_off(a);
		return 0;
	}
	rc = emu_adapter_place(a, reterr);
	emu_link_report(a); /* before those of paths: the daemon asks what it is */
	return rc < 0 ? sio_fail_prefix(reterr, "host '%s', adapter %u", h->topo->name, a->index)
		      : 0;
}

int emu_adapters_come(struct emu_fresh **list, struct sio_err *reterr)
{
	struct emu_fresh *f, *tmp;
	int rc = 0;

	LL_FOREACH_SAFE (*list, f, tmp) {
		struct sio_err err;

		if (come(&f->a, &err) < 0 && rc == 0) {
			*reterr = err;
			rc = err.code;
		}
		free(f);
	}
	*list = NULL;
	return rc;
}
