/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may differ in a cluster's file that takes the place of the one in force while the room runs.
 * A file that differs in anything else is refused as a whole, by the first such difference.
 */
#include "core/topodiff.h"
#include "emu/machine/requests.h"
#include "emu/machine/room.h"

struct verdict {
	const struct emu_room *r;
	const struct sio_topology *next;
	struct sio_err *reterr;
	int rc;
};

static bool host_may(const struct verdict *v, const struct sio_topo_change *c)
{
	const struct sio_topology *t = c->how == SIO_TOPO_ADDED ? v->next : v->r->topo;
	const struct sio_topo_host *h = sio_topology_host_by_name(t, c->host);

	return c->how != SIO_TOPO_CHANGED && h && !h->real && emu_grows(v->r) &&
	       v->next->n_machines == 0;
}

static bool device_may(const struct verdict *v, const struct sio_topo_change *c)
{
	return c->how != SIO_TOPO_CHANGED && sio_topology_host_by_name(v->r->topo, c->host);
}

/*
 * Where no machine stands behind the hosts, cables lead elsewhere, switches and adapters come and
 * go, and adapters are other ones.
 */
static bool cables_may(const struct verdict *v)
{
	return emu_grows(v->r) && v->next->n_machines == 0;
}

static bool may(const struct verdict *v, const struct sio_topo_change *c)
{
	if (sio_topo_is_policy(c->what))
		return true;
	if (c->what == SIO_TOPO_DEVICE)
		return device_may(v, c);
	if (c->what == SIO_TOPO_HOST)
		return host_may(v, c);
	return sio_topology_is_chassis(c) ||
	       ((sio_topology_is_cable(c) || sio_topology_is_adapter(c)) && cables_may(v));
}

static void judge(void *ctx, const struct sio_topo_change *c)
{
	struct verdict *v = ctx;
	const char *where = "";

	if (v->rc < 0 || may(v, c))
		return;
	if (c->what == SIO_TOPO_HOST && c->how != SIO_TOPO_CHANGED)
		where = "; hosts come and go in clusters without machines";
	else if (sio_topology_is_cable(c))
		where = "; switches and cables change in clusters without machines";
	else if (sio_topology_is_adapter(c))
		where = "; adapters change in clusters without machines";
	v->rc = sio_fail(v->reterr, -EOPNOTSUPP, "needs a restart: %s%s", c->text, where);
}

static int other_order(const char *what, struct sio_err *reterr)
{
	return sio_fail(reterr, -EOPNOTSUPP,
			"needs a restart: the %s are in another order; the same order is right",
			what);
}

/* Two in one place have one name, but for one that was renamed. */
static int check_place(const struct sio_topo_host *a, const struct sio_topo_host *b,
		       struct sio_err *reterr)
{
	if (sio_topology_is_vacant(a) || sio_topology_is_vacant(b) || strcmp(a->name, b->name) == 0)
		return 0;
	return sio_fail(reterr, -EOPNOTSUPP,
			"needs a restart: host '%s' has node id %u, which is that of host '%s'; "
			"another one is right, or one reload removes this, and the next adds that",
			b->name, b->node, a->name);
}

/* Machines name them by their numbers. Both have the same ones. */
static int check_cables(const struct sio_topology *a, const struct sio_topology *b,
			struct sio_err *reterr)
{
	for (unsigned i = 0; i < a->n_switches; i++)
		if (strcmp(a->sw[i].name, b->sw[i].name) != 0)
			return other_order("switches", reterr);
	for (unsigned i = 0; i < a->n_trunks; i++)
		for (unsigned k = 0; k < 2; k++)
			if (a->trunk[i].sw[k] != b->trunk[i].sw[k] ||
			    a->trunk[i].port[k] != b->trunk[i].port[k])
				return other_order("links", reterr);
	return 0;
}

/* Hosts are aligned. */
static int check_places(const struct sio_topology *a, const struct sio_topology *b,
			struct sio_err *reterr)
{
	for (unsigned i = 0; i < a->n_hosts; i++) {
		int rc = check_place(&a->host[i], &b->host[i], reterr);

		if (rc < 0)
			return rc;
	}
	return 0;
}

int emu_change_check(const struct emu_room *r, const struct sio_topology *next,
		     struct sio_err *reterr)
{
	struct verdict v = {.r = r, .next = next, .reterr = reterr};

	sio_topology_diff(r->topo, next, judge, &v);
	if (v.rc == 0)
		v.rc = check_places(r->topo, next, reterr);
	if (v.rc == 0 && !cables_may(&v))
		v.rc = check_cables(r->topo, next, reterr);
	return v.rc;
}
