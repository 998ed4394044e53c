/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another cluster's file takes the place of the one in force: devices, hosts, chassis, switches and
 * cables are added and removed while the room runs. The models of new devices are made first, with
 * their memory and files, and so are new hosts, so that what can fail does so before anything
 * changes. A removed device is pulled out of its slot; its model ends, and an empty device stays
 * for the objects that hosts have left of it. A removed host leaves its place vacant, because
 * others know hosts by their numbers; the next one of its node id is in no start that the one
 * before was in. Adapters come and go at the end of a host's list (adapters.c). Chassis have no
 * state but their counts, which are found by their names. Paths have no place of their own: those
 * that still join the same two adapters stay up, and with them all that goes over them, however
 * long they are now; others go down and come up as if somebody pulled cables.
 */
#include "emu/engine/engine.h"
#include "emu/machine/requests.h"
#include "emu/machine/room.h"

/* What a host of the room does. */
enum part { PART_VACANT, PART_STAYS, PART_COMES, PART_GOES };

struct emu_change {
	unsigned n_hosts, n_devices; /* hosts: after it */
	enum part *part;	     /* of each host */
	struct emu_links links;
	struct sio_outage *outage;
	struct emu_fresh *fresh;   /* adapters */
	struct emu_device **all;   /* of all hosts */
	struct emu_device ***host; /* each one's as in the new topology; NULL: not made yet */
	unsigned *n;		   /* of each host */
};

/* ---- hosts of both, and new ones ---- */

static enum part part_of(const struct emu_room *r, const struct sio_topology *next, unsigned host)
{
	bool was = host < r->n_hosts && !sio_topology_is_vacant(&r->topo->host[host]);
	bool is = !sio_topology_is_vacant(&next->host[host]);

	if (was)
		return is ? PART_STAYS : PART_GOES;
	return is ? PART_COMES : PART_VACANT;
}

bool emu_change_removes(const struct emu_change *c, unsigned host)
{
	return c->part[host] == PART_GOES;
}

/* One that comes is in its place from now on, off, where nobody looks. */
static int make_hosts(struct emu_room *r, const struct sio_topology *next, struct emu_change *c,
		      struct sio_err *reterr)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < c->n_hosts; i++) {
		c->part[i] = part_of(r, next, i);
		if (c->part[i] == PART_COMES)
			rc = emu_host_init(&r->host[i], r, i, &next->host[i], reterr);
	}
	return rc;
}

static void drop_hosts(struct emu_room *r, const struct emu_change *c)
{
	for (unsigned i = 0; c->part && i < c->n_hosts; i++) {
		if (c->part[i] != PART_COMES)
			continue;
		emu_host_done(&r->host[i]);
		if (i < r->n_hosts)
			r->host[i].topo = &r->topo->host[i];
	}
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

static void free_change(struct emu_room *r, struct emu_change *c)
{
	for (unsigned i = 0; c->host && i < c->n_hosts; i++)
		free(c->host[i]);
	free(c->host);
	free(c->all);
	free(c->n);
	free(c->part);
	free(c->links.link);
	emu_adapters_drop(r, c->fresh);
	sio_outage_free(c->outage);
	free(c);
}

static int fill(struct emu_room *r, const struct sio_topology *next, bool try, struct emu_change *c,
		struct sio_err *reterr)
{
	int rc;

	c->part = calloc(c->n_hosts + 1u, sizeof(*c->part));
	c->host = calloc(c->n_hosts + 1u, sizeof(*c->host));
	c->n = calloc(c->n_hosts + 1u, sizeof(*c->n));
	if (!c->part || !c->host || !c->n || emu_links_new(next, &c->links) < 0 ||
	    sio_outage_new(next, &c->outage) < 0)
		return sio_no_memory(reterr, "the new file");
	rc = make_hosts(r, next, c, reterr);
	if (rc == 0)
		rc = emu_adapters_prepare(r, next, &c->fresh, reterr);
	if (rc == 0)
		rc = make_all(r, next, try, c, reterr);
	if (rc < 0)
		return rc;
	c->all = calloc(c->n_devices + 1u, sizeof(struct emu_device *));
	return c->all ? 0 : sio_no_memory(reterr, "the new file");
}

int emu_change_new(struct emu_room *r, const struct sio_topology *next, bool try,
		   struct emu_change **ret, struct sio_err *reterr)
{
	int rc = emu_change_check(r, next, reterr);
	struct emu_change *c;

	if (rc < 0)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c)
		return sio_no_memory(reterr, "the new file");
	c->n_hosts = next->n_hosts;
	rc = fill(r, next, try, c, reterr);
	if (rc == 0)
		*ret = c;
	else
		emu_change_drop(r, c);
	return rc;
}

void emu_change_drop(struct emu_room *r, struct emu_change *c)
{
	/* The virtual functions of a drive are behind it. */
	for (unsigned i = 0; c->host && i < c->n_hosts; i++)
		for (unsigned k = c->host[i] ? c->n[i] : 0; k-- > 0;)
			if (c->host[i][k] && is_new(&r->host[i], c->host[i][k]))
				emu_device_free(c->host[i][k]);
	drop_hosts(r, c);
	free_change(r, c);
}

/* ---- the change ---- */

static bool stays(const struct emu_device *d, struct emu_device *const *device, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (device[i] == d)
			return true;
	return false;
}

/* The chassis that it was in may be another one's place now, or nobody's. */
static void keep_description(struct emu_device *d)
{
	d->was = *d->topo;
	d->was.in = 0;
	d->topo = &d->was;
}

/* Its description goes, and with it what the names of files lie in. */
static void forget_files(struct emu_device *d)
{
	d->was.file = NULL;
	d->was.n_namespaces = 0;
	d->was.physical = 0;
	d->was.virtual_functions = 0;
}

static void take_away(struct emu_room *r, struct emu_device *d)
{
	keep_description(d);
	emu_slot_remove(d);
	if (!sio_topology_is_vacant(d->host->topo))
		emu_log(r, "%s: %s is removed", d->host->topo->name, d->topo->name);
	if (d->generation > r->removed_generation)
		r->removed_generation = d->generation;
	emu_device_done(d);
	forget_files(d);
	LL_PREPEND2(r->removed, d, next_removed);
}

static void swap_slots(struct sio_topo_host *a, struct sio_topo_host *b)
{
	const struct sio_topo_host was = *a;

	a->device = b->device;
	a->n_devices = b->n_devices;
	a->chassis = b->chassis;
	a->n_chassis = b->n_chassis;
	for (unsigned i = 0; i < a->n_adapters; i++) {
		a->adapter[i].in = b->adapter[i].in;
		b->adapter[i].in = was.adapter[i].in;
	}
	b->device = was.device;
	b->n_devices = was.n_devices;
	b->chassis = was.chassis;
	b->n_chassis = was.n_chassis;
}

/*
 * From now on @own is as the new file, and @next as the one of before. Machines, which stand beside
 * the room, refer to hosts and adapters of the topology.
 */
static void swap_cluster(struct sio_topology *own, struct sio_topology *next)
{
	struct sio_topology was = *own;

	if (own->n_machines) {
		for (unsigned i = 0; i < own->n_hosts; i++)
			swap_slots(&own->host[i], &next->host[i]);
		return;
	}
	own->host = next->host;
	own->machine = next->machine;
	own->n_hosts = next->n_hosts;
	own->n_links = next->n_links;
	own->sw = next->sw;
	own->n_switches = next->n_switches;
	own->trunk = next->trunk;
	own->n_trunks = next->n_trunks;
	own->distance = next->distance;
	next->host = was.host;
	next->machine = was.machine;
	next->n_hosts = was.n_hosts;
	next->n_links = was.n_links;
	next->sw = was.sw;
	next->n_switches = was.n_switches;
	next->trunk = was.trunk;
	next->n_trunks = was.n_trunks;
	next->distance = was.distance;
}

/* What refers to a host of the topology; @device: those that it has from now on. */
static void rebind(struct emu_host *h, const struct sio_topo_host *topo,
		   struct emu_device *const *device)
{
	h->topo = topo;
	for (unsigned i = 0; i < topo->n_devices; i++)
		device[i]->topo = &topo->device[i];
	for (unsigned i = 0; i < topo->n_adapters; i++) {
		h->adapter[i].topo = &topo->adapter[i];
		if (h->adapter[i].engine) /* its chassis may stand elsewhere in the file */
			h->adapter[i].engine->topo.in = topo->adapter[i].in;
	}
}

/* Those of a host as the new file has them; new ones are not in their slots yet. */
static void replace(struct emu_host *h, struct emu_device **device, unsigned n)
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
}

/* What chassis of @h have counted that @before has, too, wherever in the file they are. */
static void keep_chassis(const struct emu_host *h, const struct sio_topo_host *before,
			 struct sio_pcie_count *next)
{
	for (unsigned i = 0; i < h->topo->n_chassis; i++)
		for (unsigned k = 0; k < before->n_chassis; k++)
			if (strcmp(h->topo->chassis[i].name, before->chassis[k].name) == 0)
				next[i] = h->chassis[k];
}

/* Links of hosts that stay, and trunks, go on counting. @before: the topology of before. */
static void take_links(struct emu_room *r, const struct sio_topology *before, struct emu_change *c)
{
	struct sio_pcie_count *next = c->links.link;
	struct emu_links was = r->links;

	for (unsigned i = 0; i < c->n_hosts; i++) {
		if (c->part[i] == PART_STAYS)
			keep_chassis(&r->host[i], &before->host[i], next);
		next += r->host[i].topo->n_chassis;
	}
	for (unsigned i = 0; i < r->topo->n_trunks; i++) {
		unsigned k = sio_topology_trunk(before, r->topo, i);

		if (k < before->n_trunks)
			next[i] = r->trunk[k];
	}
	r->links = c->links;
	c->links = was;
	emu_links_place(r);
}

static void take_host(struct emu_room *r, unsigned host, struct emu_change *c)
{
	struct emu_host *h = &r->host[host];

	replace(h, c->host[host], c->n[host]);
	c->host[host] = NULL;
	if (c->part[host] == PART_GOES) {
		free(h->device);
		h->device = NULL;
		emu_host_done(h);
	}
	if (c->part[host] == PART_COMES)
		emu_log(r, "host %s is new", h->topo->name);
}

/* Adapters whose links are trained: those of hosts that were there before, and are up. */
struct linked {
	bool adapter[SIO_MAX_HOSTS][SIO_MAX_ADAPTERS];
};

static void find_linked(const struct emu_room *r, struct linked *ret)
{
	for (unsigned i = 0; i < r->n_hosts; i++)
		for (unsigned k = 0; k < r->host[i].topo->n_adapters; k++)
			ret->adapter[i][k] = emu_adapter_linked(&r->host[i].adapter[k]);
}

static void report_links(const struct emu_room *r, const struct linked *before)
{
	for (unsigned i = 0; i < r->n_hosts; i++) {
		struct emu_host *h = &r->host[i];

		for (unsigned k = 0; k < h->topo->n_adapters; k++) {
			struct emu_adapter *a = &h->adapter[k];
			bool other = emu_adapter_linked(a) != before->adapter[i][k];

			if (h->up && !a->changing && other)
				emu_link_report(a);
			a->changing = false;
		}
	}
}

/* Paths first: whoever hears that one is up has it in its page. */
static void take_paths(struct emu_room *r)
{
	for (unsigned i = 0; i < r->n_hosts + r->n_machines; i++)
		if (!sio_topology_is_vacant(r->host[i].topo))
			emu_paths_follow(&r->host[i]);
	emu_paths_update(r);
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

/* @was: the topology of before. The first error. */
static int put_all(struct emu_room *r, const struct sio_topology *was, const struct emu_change *c,
		   struct sio_err *reterr)
{
	int rc = 0;

	for (unsigned i = 0; i < c->n_hosts; i++) {
		struct sio_err err;
		int host_rc =
			c->part[i] == PART_STAYS ? put_in(&r->host[i], &was->host[i], &err) : 0;

		if (host_rc < 0 && rc == 0) {
			*reterr = err;
			rc = host_rc;
		}
	}
	return rc;
}

int emu_change_apply(struct emu_room *r, struct sio_topology *own, struct sio_topology *next,
		     struct emu_change *c, struct sio_err *reterr)
{
	struct sio_outage *outage = r->outage;
	struct linked linked = {{{0}}};
	struct sio_err err;
	int rc, put_rc;

	for (unsigned i = 0; i < r->n_hosts; i++)
		if (c->part[i] == PART_GOES)
			emu_log(r, "host %s is removed", r->host[i].topo->name);
	emu_engines_collect(r); /* faults that they have kept have passed links of before */
	emu_adapters_leave(r, next, c->fresh);
	find_linked(r, &linked);
	sio_outage_follow(c->outage, outage, own);
	r->outage = c->outage;
	c->outage = outage;
	swap_cluster(own, next);
	r->n_hosts = c->n_hosts;
	for (unsigned i = 0; i < c->n_hosts; i++)
		rebind(&r->host[i], &own->host[i], c->host[i]);
	take_links(r, next, c);
	for (unsigned i = 0; i < c->n_hosts; i++)
		take_host(r, i, c);
	collect(r, c->all);
	c->all = NULL;
	rc = emu_adapters_come(&c->fresh, &err);
	take_paths(r);
	report_links(r, &linked);
	put_rc = put_all(r, next, c, reterr);
	if (rc < 0)
		*reterr = err;
	else
		rc = put_rc;
	for (unsigned i = 0; i < r->n_hosts; i++)
		emu_adapters_bury(&r->host[i]);
	take_files(own, next);
	free_change(r, c);
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
