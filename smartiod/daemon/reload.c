/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RELOAD: the cluster's file is read again. Its access rules and quotas are in force at once, for
 * each request from then on, and so are the list of the other hosts, what leads where, and an
 * emulated cluster's devices and chassis. Everything else needs a restart of the daemon; a file
 * that differs in anything else is refused, so that the daemon always follows exactly one file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/hash.h"
#include "core/hops.h"
#include "core/topodiff.h"
#include "smartiod/base/hops.h"
#include "smartiod/daemon/dispatch.h"
#include "smartiod/device/device.h"

struct reload {
	struct smartiod *d;
	const struct sio_topology *new;
};

/*
 * Other real hosts come and go. Not if there is no other one before or after: devices of a cluster
 * of several hosts have their hosts' names before their own.
 */
static bool host_may_change(const struct reload *r, const struct sio_topo_change *c)
{
	const struct sio_topology *t = c->how == SIO_TOPO_ADDED ? r->new : r->d->topology;
	const struct sio_topo_host *h = sio_topology_host_by_name(t, c->host);

	if (c->how == SIO_TOPO_CHANGED)
		return strcmp(c->key, "address") == 0;
	return h && h->real && r->d->topology->n_hosts > 1 && r->new->n_hosts > 1;
}

/* Has a device of the new file the id of another one, which goes? Ids are made of names. */
static bool ids_clash(const struct reload *r, const struct sio_topo_host *h)
{
	for (unsigned i = 0; i < h->n_devices; i++) {
		const struct smartiod_device *dev = smartiod_device_known(r->d, h->device[i].fdid);

		if (dev && strcmp(dev->topo->name, h->device[i].name) != 0)
			return true;
	}
	return false;
}

/* The machine room adds and removes whole hosts, but none of which this one is not sure. */
static bool emulated_may_change(const struct reload *r, const struct sio_topo_change *c)
{
	const struct sio_topology *t = c->how == SIO_TOPO_ADDED ? r->new : r->d->topology;
	const struct sio_topo_host *h = sio_topology_host_by_name(t, c->host);

	return c->how != SIO_TOPO_CHANGED && h && !h->real && !h->machine && h != r->d->host &&
	       (c->how == SIO_TOPO_REMOVED || !ids_clash(r, h));
}

/* The machine room adds and removes whole devices of its own hosts. */
static bool device_may_change(const struct reload *r, const struct sio_topo_change *c)
{
	const struct sio_topo_host *h = sio_topology_host_by_name(r->new, c->host);

	return h && !h->real && !h->machine && c->how != SIO_TOPO_CHANGED && !ids_clash(r, h);
}

/*
 * Without a restart of what stays? An emulated cluster has from its start what its machine room
 * emulates, but for hosts, devices, chassis, and the switches and cables between hosts. On real
 * hosts the file alone says which hosts there are, and what leads where; what works the port says.
 */
static bool is_possible(const struct reload *r, const struct sio_topo_change *c)
{
	bool own = strcmp(c->host, r->d->host->name) == 0;

	if (sio_topo_is_policy(c->what))
		return true;
	if (!smartiod_is_real(r->d) && c->what == SIO_TOPO_HOST)
		return emulated_may_change(r, c);
	if (!smartiod_is_real(r->d) && c->what == SIO_TOPO_DEVICE)
		return device_may_change(r, c);
	if (!smartiod_is_real(r->d))
		return sio_topology_is_cable(c) || sio_topology_is_chassis(c) ||
		       sio_topology_is_adapter(c);
	switch (c->what) {
	case SIO_TOPO_SWITCH:
	case SIO_TOPO_TRUNK:
		return true;
	case SIO_TOPO_HOST:
		return !own && host_may_change(r, c);
	case SIO_TOPO_ADAPTER:
		return !own || (c->how == SIO_TOPO_CHANGED && strcmp(c->key, "pci") != 0);
	default:
		return false;
	}
}

/* Ids that the file does not give follow from places in it, which shift when a host goes. */
static bool is_node_id(const struct sio_topo_change *c)
{
	return c->what == SIO_TOPO_HOST && c->how == SIO_TOPO_CHANGED &&
	       strcmp(c->key, "node") == 0;
}

static void report_change(void *ctx, const struct sio_topo_change *c)
{
	const struct reload *r = ctx;
	bool possible = is_possible(r, c);
	char instead[80] = "";

	/* A device, a host, or a chassis, that is another one now can go and come. */
	if (is_node_id(c))
		snprintf(instead, sizeof(instead), "; with 'node: %u' in the file it keeps it",
			 sio_topology_host_by_name(r->d->topology, c->host)->node);
	else if (!possible && !smartiod_is_real(r->d) && c->how == SIO_TOPO_CHANGED &&
		 (c->what == SIO_TOPO_DEVICE || c->what == SIO_TOPO_HOST ||
		  c->what == SIO_TOPO_CHASSIS))
		snprintf(instead, sizeof(instead),
			 "; or one reload removes it, and the next adds it");
	smartiod_report(r->d, possible ? SIO_RELOAD_NOW : SIO_RELOAD_RESTART, "%s%s", c->text,
			instead);
}

bool smartiod_host_stays(const struct sio_topo_host *host, const struct sio_topology *t)
{
	const struct sio_topo_host *h = sio_topology_host(t, host->node);

	return h && strcmp(h->name, host->name) == 0;
}

/* Of memory to adapters, of which there may be others. */
static void measure(struct smartiod *d)
{
	d->hops = smartiod_hops_of(d->host, SIO_HOPS_MEMORY);
	for (unsigned i = 0; i < d->n_peers; i++)
		if (!d->peer[i].removed && !d->peer[i].host->real)
			d->peer[i].hops = smartiod_hops_of(d->peer[i].host, SIO_HOPS_MEMORY);
}

/* What points into the topology of before points into @t. Hosts that @t lacks are removed. */
static void rebind(struct smartiod *d, const struct sio_topology *t)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		if (!d->peer[i].removed && !smartiod_host_stays(d->peer[i].host, t))
			smartiod_peer_remove(d, &d->peer[i]);
	d->topology = t;
	d->host = sio_topology_host(t, d->node);
	for (unsigned i = 0; i < d->n_peers; i++)
		if (!d->peer[i].removed)
			d->peer[i].host = sio_topology_host(t, d->peer[i].node);
	if (!smartiod_is_real(d)) {
		smartiod_links_follow(d);
		measure(d);
	}
	smartiod_devices_follow(d);
}

static void add_hosts(struct smartiod *d)
{
	for (unsigned i = 0; i < d->topology->n_hosts; i++) {
		const struct sio_topo_host *h = &d->topology->host[i];
		const struct smartiod_peer *p = smartiod_peer_find(d, h->node);

		if (h->node != d->node && (!p || p->removed))
			smartiod_peer_add(d, h);
	}
}

static void find_forbidden(struct smartiod *d, const struct smartiod_forbid *f)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->forbidden)
			d->rooms[i]->forbidden(d, f);
}

/* The file in force is @t from now on. */
static void take(struct smartiod *d, struct sio_topology *t)
{
	struct sio_topology *before = d->reloaded;

	rebind(d, t);
	d->reloaded = t;
	d->policy = &t->policy;
	d->ops->file_keep(d->ctx, t);
	sio_topology_free(before);
	add_hosts(d);
}

static void log_taken(struct smartiod *d)
{
	const unsigned *count = d->report.count;

	smartiod_log(d, SMARTIOD_NOTICE,
		     "the cluster's file was read anew: changes: %u; what it no longer allows and "
		     "stays: %u, and ends: %u",
		     count[SIO_RELOAD_NOW], count[SIO_RELOAD_STAYS], count[SIO_RELOAD_ENDS]);
}

static void reply(struct smartiod *d, struct smartiod_session *s, const void *msg, bool applied)
{
	const struct smartiod_report *r = &d->report;
	struct sio_rep_reload rep = {.lines = sio_to_le32(r->n), .applied = sio_to_le32(applied)};

	for (unsigned i = 0; i < SIO_RELOAD_KINDS; i++)
		rep.count[i] = sio_to_le32(r->count[i]);
	smartiod_reply(d, s, msg, &rep, sizeof(rep), NULL, 0);
}

int smartiod_reload(struct smartiod *d, struct smartiod_session *s, const void *msg,
		    struct sio_err *reterr)
{
	const struct sio_msg_reload *m = msg;
	uint32_t flags = sio_from_le32(m->flags);
	struct smartiod_forbid forbid = {.enforce = flags & SIO_RELOAD_ENFORCE};
	struct reload r = {.d = d};
	struct sio_topology *t;
	bool taken;
	int rc;

	if (flags & ~(SIO_RELOAD_CHECK | SIO_RELOAD_NEXT | SIO_RELOAD_ENFORCE))
		return sio_fail(reterr, -EINVAL, "flags %#x do not belong to RELOAD", flags);
	if (!d->ops->file_read)
		return sio_fail(reterr, -EOPNOTSUPP, "%s has no cluster's file", d->host->name);
	rc = d->ops->file_read(d->ctx, s->who.uid, flags & SIO_RELOAD_NEXT, &t, reterr);
	if (rc < 0)
		return rc;
	r.new = t;
	smartiod_report_clear(d);
	d->report.client = s->client;
	sio_topology_diff(d->topology, t, report_change, &r);
	taken = !(flags & SIO_RELOAD_CHECK) && d->report.count[SIO_RELOAD_RESTART] == 0;
	rc = taken ? smartiod_devices_add(d, t, reterr) : 0;
	if (rc < 0) {
		sio_topology_free(t);
		return rc;
	}
	if (d->report.count[SIO_RELOAD_RESTART] == 0)
		smartiod_parting_report(d, t);
	forbid.topology = t;
	forbid.act = taken && forbid.enforce;
	if (taken)
		take(d, t);
	find_forbidden(d, &forbid);
	if (taken)
		log_taken(d);
	else
		sio_topology_free(t);
	reply(d, s, msg, taken);
	return 0;
}

int smartiod_reload_line(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_msg_reload_line *m = msg;
	const struct smartiod_report *r = &d->report;
	uint32_t index = sio_from_le32(m->index);
	struct sio_rep_reload_line rep = {.kind = sio_to_le32(0)};

	if (r->client != s->client || index >= r->n)
		return sio_fail(reterr, -ENOENT,
				"there is no line %u: the lines of a RELOAD are kept until the "
				"next one",
				index);
	rep.kind = sio_to_le32(r->line[index].kind);
	snprintf(rep.text, sizeof(rep.text), "%s", r->line[index].text);
	smartiod_reply(d, s, msg, &rep, sizeof(rep), NULL, 0);
	return 0;
}

void smartiod_reload_session_end(struct smartiod *d, struct smartiod_session *s)
{
	if (d->report.client == s->client)
		smartiod_report_clear(d);
}

void smartiod_reload_free(struct smartiod *d)
{
	smartiod_report_clear(d);
	sio_topology_free(d->reloaded);
	d->reloaded = NULL;
}

/* ---- FILE ---- */

static int fill(struct smartiod *d, const struct sio_msg_file *m, struct sio_rep_file *rep,
		struct sio_err *reterr)
{
	uint32_t offset = sio_from_le32(m->offset);
	const char *text;
	size_t len = 0, n;

	text = d->ops->file_text ? d->ops->file_text(d->ctx, &len) : NULL;
	if (!text)
		return sio_fail(reterr, -ENOENT, "%s has no cluster's file", d->host->name);
	if (offset > len)
		return sio_fail(reterr, -EINVAL, "offset %u of a file of %zu bytes", offset, len);
	n = len - offset < sizeof(rep->bytes) ? len - offset : sizeof(rep->bytes);
	rep->total = sio_to_le32((uint32_t)len);
	rep->count = sio_to_le32((uint32_t)n);
	rep->sum = sio_to_le64(sio_hash_bytes(text, len));
	memcpy(rep->bytes, text + offset, n);
	return 0;
}

static void file_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct sio_rep_file rep;

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else {
		rep = *(const struct sio_rep_file *)a->msg;
		rep.h.error = sio_to_le32(0);
		smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
	}
	smartiod_op_free(d, op);
}

int smartiod_file(struct smartiod *d, struct smartiod_session *s, const void *msg,
		  struct sio_err *reterr)
{
	const struct sio_msg_file *m = msg;
	uint32_t node = sio_from_le32(m->node);
	struct sio_msg_file ask = {.h.type = sio_to_le32(SIO_PEER_FILE), .offset = m->offset};
	struct sio_rep_file rep = {.total = sio_to_le32(0)};
	const struct smartiod_peer *p;
	struct smartiod_op *op;
	int rc;

	if (node == 0 || node == d->node) {
		rc = fill(d, m, &rep, reterr);
		if (rc == 0)
			smartiod_reply(d, s, msg, &rep, sizeof(rep), NULL, 0);
		return rc;
	}
	p = smartiod_peer_find(d, node);
	if (!p || p->removed)
		return sio_fail(reterr, -EHOSTUNREACH, "no host has node id %u", node);
	op = smartiod_op_new(d, s, msg, sizeof(*op), file_step, reterr);
	if (!op)
		return reterr->code;
	rc = smartiod_peer_query(d, op, node, &ask, sizeof(ask));
	if (rc < 0) {
		smartiod_op_free(d, op);
		return smartiod_unasked(d, p, rc, reterr);
	}
	return 0;
}

int smartiod_peer_file(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_msg *h = msg;
	struct sio_rep_file rep = {.total = sio_to_le32(0)};
	int rc = fill(d, msg, &rep, reterr);

	if (rc == 0)
		smartiod_peer_reply(d, from->node, SIO_PEER_FILE, sio_from_le32(h->id), &rep,
				    sizeof(rep));
	return rc;
}
