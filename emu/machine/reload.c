/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another cluster's file takes the place of the one in force: devices are added and removed while
 * the room runs. The models of new ones are made first, with their memory and files, so that what
 * can fail does so before anything changes. A removed device is pulled out of its slot; its model
 * ends, and an empty device stays for the objects that hosts have left of it.
 */
#include "core/topodiff.h"
#include "emu/machine/requests.h"
#include "emu/machine/room.h"

struct emu_change {
	unsigned n_hosts, n_devices;
	struct emu_device **all;   /* of all hosts */
	struct emu_device ***host; /* as in the new topology; NULL: not made yet */
	unsigned *n;		   /* of each host */
};

/* ---- what may differ ---- */

struct verdict {
	const struct emu_room *r;
	struct sio_err *reterr;
	int rc;
};

static void judge(void *ctx, const struct sio_topo_change *c)
{
	struct verdict *v = ctx;
	const struct sio_topo_host *h = sio_topology_host_by_name(v->r->topo, c->host);

	if (v->rc < 0 || sio_topo_is_policy(c->what) ||
	    (c->what == SIO_TOPO_DEVICE && c->how != SIO_TOPO_CHANGED && h))
		return;
	v->rc = sio_fail(v->reterr, -EOPNOTSUPP, "needs a restart: %s", c->text);
}

static int other_order(const char *what, const char *where, struct sio_err *reterr)
{
	return sio_fail(reterr, -EOPNOTSUPP,
			"needs a restart: the %s%s%s are in another order; the same order is right",
			what, *where ? " of host " : "", where);
}

/* Others name them by their numbers. Both have the same ones. */
static int check_order(const struct sio_topology *a, const struct sio_topology *b,
		       struct sio_err *reterr)
{
	for (unsigned i = 0; i < a->n_switches; i++)
		if (strcmp(a->sw[i].name, b->sw[i].name) != 0)
			return other_order("switches", "", reterr);
	for (unsigned i = 0; i < a->n_trunks; i++)
		for (unsigned k = 0; k < 2; k++)
			if (a->trunk[i].sw[k] != b->trunk[i].sw[k] ||
			    a->trunk[i].port[k] != b->trunk[i].port[k])
				return other_order("links", "", reterr);
	for (unsigned i = 0; i < a->n_hosts; i++)
		for (unsigned k = 0; k < a->host[i].n_chassis; k++)
			if (strcmp(a->host[i].chassis[k].name, b->host[i].chassis[k].name) != 0)
				return other_order("chassis", a->host[i].name, reterr);
	return 0;
}

static int check(const struct emu_room *r, const struct sio_topology *next, struct sio_err *reterr)
{
	struct verdict v = {.r = r, .reterr = reterr};

	sio_topology_diff(r->topo, next, judge, &v);
	return v.rc < 0 ? v.rc : check_order(r->topo, next, reterr);
}

/* ---- devices of both, and new ones ---- */

/* Two devices of the same id are the same: their names are. NULL: it is new. */
static struct emu_device *same(struct emu_host *h, const struct sio_topo_device *t)
{
	struct emu_device *d = emu_device_known(h, t->fdid);

	return d && strcmp(d->topo->name, t->name) == 0 ? d : NULL;
}

/* Until the commit a device that stays refers to the topology in force. */
static bool is_new(const struct emu_host *h, const struct emu_device *d)
{
	for (unsigned i = 0; i < h->n_devices; i++)
		if (h->device[i] == d)
			return false;
	return true;
}

static bool has_file(const struct sio_topo_device *t)
{
	if (t->file)
		return true;
	for (uint32_t i = 0; i < t->n_namespaces; i++)
		if (t->namespaces[i].file)
			return true;
	return false;
}

/* With @try a drive with files, and its functions, are left out. */
static int make(struct emu_host *h, const struct sio_topo_host *next, unsigned i, bool try,
		struct emu_device **device, struct sio_err *reterr)
{
	const struct sio_topo_device *t = &next->device[i];

	device[i] = same(h, t);
	if (device[i] || (try && has_file(t)))
		return 0;
	return emu_device_new(h, t->physical ? device[t->physical - 1] : NULL, t, emu_models,
			      &device[i], reterr);
}

static int make_all(struct emu_room *r, const struct sio_topology *next, bool try,
		    struct emu_change *c, struct sio_err *reterr)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < c->n_hosts; i++) {
		c->n[i] = next->host[i].n_devices;
		c->host[i] = calloc(c->n[i] + 1u, sizeof(struct emu_device *));
		if (!c->host[i])
			return sio_no_memory(reterr, "the devices of the new file");
		for (unsigned k = 0; rc == 0 && k < c->n[i]; k++)
			rc = make(&r->host[i], &next->host[i], k, try, c->host[i], reterr);
		c->n_devices += c->n[i];
	}
	return rc;
}

static void free_change(struct emu_change *c)
{
	for (unsigned i = 0; c->host && i < c->n_hosts; i++)
		free(c->host[i]);
	free(c->host);
	free(c->all);
	free(c->n);
	free(c);
}

int emu_room_prepare(struct emu_room *r, const struct sio_topology *next, bool try,
		     struct emu_change **ret, struct sio_err *reterr)
{
	int rc = check(r, next, reterr);
	struct emu_change *c;

	if (rc < 0)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c)
		return sio_no_memory(reterr, "the new file");
	c->n_hosts = r->n_hosts;
	c->host = calloc(r->n_hosts, sizeof(*c->host));
	c->n = calloc(r->n_hosts, sizeof(*c->n));
	rc = c->host && c->n ? make_all(r, next, try, c, reterr)
			     : sio_no_memory(reterr, "the new file");
	if (rc == 0) {
		c->all = calloc(c->n_devices + 1u, sizeof(struct emu_device *));
		if (!c->all)
			rc = sio_no_memory(reterr, "the new file");
	}
	if (rc == 0)
		*ret = c;
	else
		emu_room_drop(r, c);
	return rc;
}

void emu_room_drop(struct emu_room *r, struct emu_change *c)
{
	if (!c)
		return;
	/* The virtual functions of a drive are behind it. */
	for (unsigned i = 0; c->host && i < c->n_hosts; i++)
		for (unsigned k = c->host[i] ? c->n[i] : 0; k-- > 0;)
			if (c->host[i][k] && is_new(&r->host[i], c->host[i][k]))
				emu_device_free(c->host[i][k]);
	free_change(c);
}

/* ---- the change ---- */

static bool stays(const struct emu_device *d, struct emu_device *const *device, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (device[i] == d)
			return true;
	return false;
}

/* Its description goes, and with it what the names of files lie in. */
static void keep_description(struct emu_device *d)
{
	d->was = *d->topo;
	d->was.file = NULL;
	d->was.n_namespaces = 0;
	d->was.physical = 0;
	d->was.virtual_functions = 0;
	d->topo = &d->was;
}

static void take_away(struct emu_room *r, struct emu_device *d)
{
	emu_slot_remove(d);
	emu_log(r, "%s: %s is removed", d->host->topo->name, d->topo->name);
	if (d->generation > r->removed_generation)
		r->removed_generation = d->generation;
	emu_device_done(d);
	keep_description(d);
	LL_PREPEND2(r->removed, d, next_removed);
}

static void swap_devices(struct sio_topo_host *a, struct sio_topo_host *b)
{
	struct sio_topo_device *device = a->device;
	unsigned n = a->n_devices;

	a->device = b->device;
	a->n_devices = b->n_devices;
	b->device = device;
	b->n_devices = n;
}

/* Those of a host as the new file has them; new ones are not in their slots yet. */
static void replace(struct emu_host *h, struct sio_topo_host *own, struct sio_topo_host *next,
		    struct emu_device **device, unsigned n)
{
	struct emu_room *r = h->room;

	/* The virtual functions of a drive are behind it. */
	for (unsigned i = h->n_devices; i-- > 0;)
		if (!stays(h->device[i], device, n))
			take_away(r, h->device[i]);
	for (unsigned i = 0; i < n; i++)
		if (is_new(h, device[i])) {
			device[i]->generation = r->removed_generation;
			emu_slot_new(device[i]);
		}
	free(h->device);
	h->device = device;
	h->n_devices = n;
	swap_devices(own, next);
	for (unsigned i = 0; i < n; i++)
		device[i]->topo = &own->device[i];
}

static bool is_listed(const struct sio_topo_host *h, const char *name)
{
	for (unsigned i = 0; i < h->n_devices; i++)
		if (strcmp(h->device[i].name, name) == 0)
			return true;
	return false;
}

/* What @before, with the devices that there were, lacks. Others are in their slots, or pulled. */
static int put_in(struct emu_host *h, const struct sio_topo_host *before, struct sio_err *reterr)
{
	int rc = 0;

	for (unsigned i = 0; i < h->n_devices; i++) {
		struct emu_device *d = h->device[i];
		struct sio_err err;
		int r;

		if (d->physical || is_listed(before, d->topo->name))
			continue;
		emu_log(h->room, "%s: %s is new", h->topo->name, d->topo->name);
		r = h->up ? emu_slot_set(d, true, &err) : 0;
		if (r < 0 && rc == 0)
			rc = sio_fail(reterr, r, "%s is out of its slot: %s", d->topo->name,
				      err.text);
	}
	return rc;
}

/* Of devices of machines, which stand beside the room and do not change; or of the others. */
static void keep_files(struct sio_topology *t, bool of_machines)
{
	struct sio_topo_file **at = &t->files, *f;

	while ((f = *at)) {
		bool machine = false;

		for (unsigned i = 0; i < t->n_machines && !machine; i++)
			machine = is_listed(&t->machine[i], f->device);
		if (machine == of_machines) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		free(f);
	}
}

/* The names of files go with the devices that they are of. */
static void take_files(struct sio_topology *own, struct sio_topology *next)
{
	keep_files(own, true);
	keep_files(next, false);
	LL_CONCAT(own->files, next->files);
	next->files = NULL;
}

static void collect(struct emu_room *r, struct emu_device **all)
{
	free(r->device);
	r->device = all;
	r->n_devices = 0;
	for (unsigned i = 0; i < r->n_hosts; i++)
		for (unsigned k = 0; k < r->host[i].n_devices; k++)
			all[r->n_devices++] = r->host[i].device[k];
}

int emu_change_apply(struct emu_room *r, struct sio_topology *own, struct sio_topology *next,
		     struct emu_change *c, struct sio_err *reterr)
{
	int rc = 0;

	for (unsigned i = 0; i < r->n_hosts; i++) {
		replace(&r->host[i], &own->host[i], &next->host[i], c->host[i], c->n[i]);
		c->host[i] = NULL;
	}
	collect(r, c->all);
	c->all = NULL;
	for (unsigned i = 0; i < r->n_hosts; i++) {
		struct sio_err err;
		int host_rc = put_in(&r->host[i], &next->host[i], &err);

		if (host_rc < 0 && rc == 0) {
			*reterr = err;
			rc = host_rc;
		}
	}
	take_files(own, next);
	free_change(c);
	r->watch_dirty = true;
	emu_invalidate(r);
	emu_removed_bury(r);
	return rc;
}

/* ---- what is left of removed devices ---- */

static bool refers(const struct emu_object *o, const struct emu_device *d)
{
	switch (o->kind) {
	case SIO_KIND_BAR:
		return ((const struct emu_bar *)o)->device == d;
	case SIO_KIND_WATCH:
		return ((const struct emu_watch *)o)->run->device == d;
	case SIO_KIND_DMAMAP:
		return ((const struct emu_dmamap *)o)->device == d;
	default:
		return false;
	}
}

/* Watches are of whoever stores to the device, the others of its own host. */
static bool is_referred_to(const struct emu_room *r, const struct emu_device *d)
{
	struct emu_object *o, *tmp;

	for (unsigned i = 0; i < r->n_hosts; i++)
		HASH_ITER (hh, r->host[i].objects, o, tmp)
			if (refers(o, d))
				return true;
	return false;
}

void emu_removed_bury(struct emu_room *r)
{
	struct emu_device *d, *tmp;

	LL_FOREACH_SAFE2(r->removed, d, tmp, next_removed)
	{
		if (is_referred_to(r, d))
			continue;
		LL_DELETE2(r->removed, d, next_removed);
		if (d->doze.data)
			r->ops->mem_free(r->ctx, &d->doze);
		free(d);
	}
}
