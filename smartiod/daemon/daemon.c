/* SPDX-License-Identifier: BSD-2-Clause */
/* The start and the end of smartiod, and the events of the port. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/probe.h"
#include "core/hops.h"
#include "smartiod/base/hops.h"
#include "smartiod/daemon/dispatch.h"

struct start_op {
	struct smartiod_op op;
	enum { ASK_INFO, ASK_ADAPTER, ASK_STATUS } state;
	unsigned adapter;
};

static void close_fds(struct smartiod *d, int *fds, unsigned n_fds)
{
	for (unsigned i = 0; i < n_fds; i++)
		smartiod_close_fd(d, &fds[i]);
}

/* ---- start ---- */

static void start_ask(struct smartiod *d, struct start_op *s)
{
	struct sio_req_info info = {.h.op = SIO_OP_INFO,
				    .version_min = SIO_PORT_VERSION,
				    .version_max = SIO_PORT_VERSION};
	struct sio_req_adapter adapter = {.h.op = SIO_OP_ADAPTER, .index = s->adapter};
	struct sio_req_status status = {.h.op = SIO_OP_STATUS};

	switch (s->state) {
	case ASK_INFO:
		smartiod_port_ask(d, &s->op, &info, sizeof(info));
		return;
	case ASK_ADAPTER:
		smartiod_port_ask(d, &s->op, &adapter, sizeof(adapter));
		return;
	case ASK_STATUS:
		smartiod_port_ask(d, &s->op, &status, sizeof(status));
		return;
	}
}

static int take_info(struct smartiod *d, const struct sio_evt_info *evt)
{
	uint32_t most = SIO_WORLD_IS_REAL(evt->world) ? d->host->n_adapters : SIO_MAX_ADAPTERS;

	if (evt->version != SIO_PORT_VERSION || evt->page_size != SIO_PAGE_SIZE ||
	    evt->adapters > most) {
		smartiod_fatal(d,
			       "the port has version %u, pages of %u bytes and %u adapters; "
			       "wanted are version %u, %u bytes, and %u at most",
			       evt->version, evt->page_size, evt->adapters, SIO_PORT_VERSION,
			       SIO_PAGE_SIZE, most);
		return -EPROTO;
	}
	d->world = evt->world;
	d->port_adapters = smartiod_first_adapters(evt->adapters) & smartiod_file_adapters(d);
	if (evt->adapters != d->host->n_adapters && !SIO_WORLD_IS_REAL(evt->world))
		d->anew = smartiod_file_adapters(d); /* a reload has come to the file alone yet */
	d->served = evt->served;
	d->boot_generation = evt->boot_generation;
	memcpy(d->boot_id, evt->boot_id, sizeof(d->boot_id));
	smartiod_peer_links_again(d); /* they may be reported before this answer */
	return 0;
}

/* A reload that had not come to the port when that said how many there are took this one away. */
static bool has_gone(const struct smartiod *d, const struct start_op *s,
		     const struct smartiod_answer *a)
{
	return s->state == ASK_ADAPTER && a->error == -ENODEV && !smartiod_is_real(d);
}

static void start_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct start_op *s = (struct start_op *)op;

	if (has_gone(d, s, a)) {
		d->port_adapters &= smartiod_first_adapters(s->adapter);
		d->anew = smartiod_file_adapters(d);
		s->state = ASK_STATUS;
		start_ask(d, s);
		return;
	}
	if (a->error) {
		smartiod_fatal(d, "the port does not start: %s", a->text);
		smartiod_op_free(d, op);
		return;
	}
	switch (s->state) {
	case ASK_INFO:
		if (take_info(d, a->msg) < 0) {
			smartiod_op_free(d, op);
			return;
		}
		break;
	case ASK_ADAPTER:
		d->adapter[s->adapter] = *(const struct sio_evt_adapter *)a->msg;
		d->link[s->adapter].up = d->adapter[s->adapter].link_up;
		s->adapter++;
		break;
	case ASK_STATUS:
		d->status_fd = smartiod_take_fd(a, 0);
		d->hops = smartiod_is_real(d) ? smartiod_hops_above(d, NULL, false)
					      : smartiod_hops_of(d->host, SIO_HOPS_MEMORY);
		smartiod_op_free(d, op);
		smartiod_start_rooms(d);
		return;
	}
	s->state = smartiod_has_adapter(d, s->adapter) ? ASK_ADAPTER : ASK_STATUS;
	start_ask(d, s);
}

void smartiod_start(struct smartiod *d)
{
	struct sio_err err;
	struct start_op *s = smartiod_op_new(d, NULL, NULL, sizeof(*s), start_step, &err);

	if (!s) {
		smartiod_fatal(d, "%s", err.text);
		return;
	}
	smartiod_link_start(d);
	start_ask(d, s);
}

void smartiod_start_done(struct smartiod *d)
{
	d->ready = true;
	d->ops->ready(d->ctx);
	smartiod_rooms_ready(d);
	smartiod_overflow_ready(d);
}

/* ---- events ---- */

void smartiod_port_owner_gone(struct smartiod *d, uint64_t owner)
{
	struct smartiod_session *s = smartiod_session_by_owner(d, owner);

	SIO_PROBE(smartiod, owner_gone, owner, s ? s->pid : 0);
	if (s)
		smartiod_session_owner_gone(d, s);
	smartiod_owner_gone(d, owner);
}

/* Of devices, their shadows: the rooms'. */
static void notify_rooms(struct smartiod *d, const struct sio_evt *evt)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->port_event)
			d->rooms[i]->port_event(d, evt);
}

static const struct {
	uint32_t op;
	size_t size;
} event_size[] = {
	{SIO_EV_LINK, sizeof(struct sio_evt_link)},
	{SIO_EV_FAULT, sizeof(struct sio_evt_fault)},
	{SIO_EV_DEVICE_GONE, sizeof(struct sio_evt_device_state)},
	{SIO_EV_DEVICE_BACK, sizeof(struct sio_evt_device_state)},
	{SIO_EV_OWNER_GONE, sizeof(struct sio_evt_owner_gone)},
	{SIO_EV_OWNER_END, sizeof(struct sio_evt_owner_end)},
	{SIO_EV_OVERFLOW, sizeof(struct sio_evt_overflow)},
	{SIO_EV_SHADOW_CONFIG, sizeof(struct sio_evt_shadow_config)},
};

static void port_event(struct smartiod *d, const struct sio_evt *evt)
{
	const struct sio_evt_link *link = (const struct sio_evt_link *)evt;

	switch (evt->op) {
	case SIO_EV_LINK:
		if (link->peer_node == d->node)
			smartiod_link_event(d, link);
		else
			smartiod_peer_link_event(d, link);
		return;
	case SIO_EV_FAULT:
		d->count.faults++;
		notify_rooms(d, evt);
		return;
	case SIO_EV_DEVICE_GONE:
	case SIO_EV_DEVICE_BACK:
	case SIO_EV_SHADOW_CONFIG:
		notify_rooms(d, evt);
		return;
	case SIO_EV_OWNER_GONE:
		smartiod_port_owner_gone(d, evt->owner);
		return;
	case SIO_EV_OWNER_END:
		return; /* OWNER_GONE said all; what was left has been settled */
	case SIO_EV_OVERFLOW:
		smartiod_overflow(d, (const struct sio_evt_overflow *)evt);
		return;
	}
}

void smartiod_port_event(struct smartiod *d, const void *evt, size_t len, int *fds, unsigned n_fds)
{
	const struct sio_evt *h = evt;

	if (d->failed) {
		close_fds(d, fds, n_fds);
		return;
	}
	d->count.port_events++;
	if (len < sizeof(*h) || h->size != len) {
		smartiod_fatal(d, "the port sent %zu bytes that are no event", len);
	} else if (h->op < SIO_OP_COUNT) {
		smartiod_op_port_answer(d, h, len, fds, n_fds);
	} else {
		unsigned i = 0;

		while (i < sizeof(event_size) / sizeof(event_size[0]) &&
		       (event_size[i].op != h->op || event_size[i].size != len))
			i++;
		if (i < sizeof(event_size) / sizeof(event_size[0]))
			port_event(d, h);
		else
			smartiod_fatal(d,
				       "the port sent event %#x of %zu bytes, which is not known",
				       h->op, len);
	}
	close_fds(d, fds, n_fds);
}

void smartiod_timer(struct smartiod *d)
{
	uint64_t now = d->ops->now(d->ctx), when, retry;

	if (d->failed)
		return;
	d->timer_at = UINT64_MAX;
	when = smartiod_op_expire(d, now);
	retry = smartiod_peer_retry(d, now);
	if (retry < when)
		when = retry;
	if (when != UINT64_MAX)
		smartiod_arm(d, when);
}

void smartiod_later(struct smartiod *d)
{
	if (d->failed)
		return;
	d->later = false;
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->later)
			d->rooms[i]->later(d);
}

/* ---- life ---- */

void smartiod_descriptors(struct smartiod *d, uint64_t n)
{
	d->descriptors = n;
}

int smartiod_new(const struct sio_topology *t, uint32_t node, const struct smartiod_ops *ops,
		 void *ctx, struct smartiod **ret, struct sio_err *reterr)
{
	const struct sio_topo_host *host = sio_topology_host(t, node);
	struct smartiod *d;
	int rc;

	if (!host)
		return sio_fail(reterr, -EHOSTUNREACH, "no host of cluster %s has node id %u",
				t->name, node);
	d = calloc(1, sizeof(*d));
	if (!d)
		return sio_no_memory(reterr, "the daemon");
	d->topology = t;
	d->policy = &t->policy;
	d->host = host;
	d->node = node;
	d->ops = ops;
	d->ctx = ctx;
	d->status_fd = -1;
	d->timer_at = UINT64_MAX;
	for (unsigned i = 0; i < t->n_hosts && d->n_peers < SIO_MAX_HOSTS; i++) {
		if (t->host[i].node == node)
			continue;
		d->peer[d->n_peers++] = (struct smartiod_peer){
			.node = t->host[i].node,
			.host = &t->host[i],
			.hops = smartiod_hops_of(&t->host[i], SIO_HOPS_MEMORY),
			.until = UINT64_MAX,
			.retry_at = UINT64_MAX};
	}
	d->rooms = smartiod_rooms;
	for (unsigned i = 0; d->rooms[i]; i++) {
		rc = d->rooms[i]->init ? d->rooms[i]->init(d, reterr) : 0;
		if (rc < 0) {
			smartiod_free(d);
			return rc;
		}
	}
	*ret = d;
	return 0;
}

static void free_ops(struct smartiod *d)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->ops_all, 0)))
		smartiod_op_free(d, SMARTIOD_OF(n, struct smartiod_op, by_id));
}

void smartiod_free(struct smartiod *d)
{
	if (!d)
		return;
	free_ops(d);
	smartiod_session_free_all(d);
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->free_all)
			d->rooms[i]->free_all(d);
	smartiod_close_fd(d, &d->status_fd);
	free(d);
}
