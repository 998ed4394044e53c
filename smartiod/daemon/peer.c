/* SPDX-License-Identifier: BSD-2-Clause */
/* The other hosts: links, connections between daemons, and what comes over them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/device/device.h"
#include "smartiod/interrupt/dint.h"
#include "smartiod/base/internal.h"
#include "wire/check.h"

static smartiod_peer_fn hello, ping;

static const struct {
	uint32_t type;
	smartiod_peer_fn *fn;
} handlers[] = {
	{SIO_PEER_HELLO, hello},
	{SIO_PEER_PING, ping},
	{SIO_PEER_SEG_LOOKUP, smartiod_peer_seg_lookup},
	{SIO_PEER_SEG_RELEASE, smartiod_peer_seg_release},
	{SIO_PEER_SEG_GRANT, smartiod_peer_seg_grant},
	{SIO_PEER_GRANT_RELEASE, smartiod_peer_grant_release},
	{SIO_PEER_GRANT_QUERY, smartiod_peer_grant_query},
	{SIO_PEER_SEG_EVENT, smartiod_peer_seg_event},
	{SIO_PEER_DINT_LOOKUP, smartiod_peer_dint_lookup},
	{SIO_PEER_DINT_RELEASE, smartiod_peer_dint_release},
	{SIO_PEER_DINT_EVENT, smartiod_peer_dint_event},
	{SIO_PEER_STATS, smartiod_peer_stats},
	/* Devices. */
	{SIO_PEER_DEVICES, smartiod_peer_devices},
	{SIO_PEER_BORROW, smartiod_peer_borrow},
	{SIO_PEER_RETURN, smartiod_peer_return},
	{SIO_PEER_RELEASE_EXCLUSIVE, smartiod_peer_release_exclusive},
	{SIO_PEER_BORROW_END, smartiod_peer_borrow_end},
	{SIO_PEER_DEV_SEG_CREATE, smartiod_peer_dev_seg_create},
	{SIO_PEER_DEV_SEG_LOOKUP, smartiod_peer_dev_seg_lookup},
	{SIO_PEER_DEV_SEG_END, smartiod_peer_dev_seg_end},
	{SIO_PEER_BAR_GRANT, smartiod_peer_bar_grant},
	{SIO_PEER_BAR_RELEASE, smartiod_peer_bar_release},
	{SIO_PEER_DMA_MAP, smartiod_peer_dma_map},
	{SIO_PEER_DMA_UNMAP, smartiod_peer_dma_unmap},
	{SIO_PEER_SETTLED, smartiod_peer_settled},
	{SIO_PEER_RESET, smartiod_peer_reset},
	{SIO_PEER_DEVICE_EVENT, smartiod_peer_device_event},
	{SIO_PEER_BORROW_LOST, smartiod_peer_borrow_lost},
	{SIO_PEER_HOLD, smartiod_peer_hold},
	{SIO_PEER_UNHOLD, smartiod_peer_unhold},
	{SIO_PEER_HOLD_RELEASE, smartiod_peer_hold_release},
	{SIO_PEER_VECTOR, smartiod_peer_vector},
	{SIO_PEER_UNVECTOR, smartiod_peer_unvector},
};

/* ---- paths ---- */

struct smartiod_peer *smartiod_peer_find(struct smartiod *d, uint32_t node)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		if (d->peer[i].node == node)
			return &d->peer[i];
	return NULL;
}

bool smartiod_peer_link_up(const struct smartiod_peer *p)
{
	for (unsigned i = 0; i < p->n_paths; i++)
		if (p->path[i].up)
			return true;
	return false;
}

bool smartiod_path_up(struct smartiod *d, uint32_t node, uint32_t adapter, uint32_t peer_adapter)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);

	for (unsigned i = 0; p && i < p->n_paths; i++)
		if (p->path[i].adapter == adapter && p->path[i].peer_adapter == peer_adapter)
			return p->path[i].up;
	return false;
}

uint64_t smartiod_path_start(struct smartiod *d, uint32_t node, uint32_t adapter,
			     uint32_t peer_adapter)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);

	for (unsigned i = 0; p && i < p->n_paths; i++)
		if (p->path[i].adapter == adapter && p->path[i].peer_adapter == peer_adapter)
			return SIO_LINK_START(p->generation, p->path[i].turn);
	return 0;
}

int smartiod_path(struct smartiod *d, uint32_t node, uint32_t adapter, struct sio_path *ret,
		  struct sio_err *reterr)
{
	struct sio_path path[SMARTIOD_MAX_PATHS];
	const struct smartiod_peer *p = smartiod_peer_find(d, node);
	bool joined = false;
	unsigned n;

	if (adapter != SIO_ADAPTER_ANY && adapter >= d->host->n_adapters)
		return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on",
				d->host->name, adapter, d->host->n_adapters);
	if (!p)
		return sio_fail(reterr, -EHOSTUNREACH, "no other host of cluster %s has node id %u",
				d->topology->name, node);
	n = sio_topology_paths(d->topology, d->node, node, path, SMARTIOD_MAX_PATHS);
	for (unsigned i = 0; i < n && i < SMARTIOD_MAX_PATHS; i++) {
		if (adapter != SIO_ADAPTER_ANY && path[i].adapter != adapter)
			continue;
		joined = true;
		if (smartiod_path_up(d, node, path[i].adapter, path[i].peer_adapter)) {
			*ret = path[i];
			return 0;
		}
	}
	if (!joined)
		return sio_fail(reterr, -EHOSTUNREACH, "no path from %s to %s through that adapter",
				d->host->name, p->host->name);
	return sio_fail(reterr, -ENETDOWN, "the link from %s to %s is down", d->host->name,
			p->host->name);
}

/* ---- up and down ---- */

static void connect_now(struct smartiod *d, struct smartiod_peer *p)
{
	p->retry_at = UINT64_MAX;
	/* The higher node id connects. */
	if (!d->ready || p->state != SMARTIOD_PEER_IDLE || p->node > d->node ||
	    !smartiod_peer_link_up(p))
		return;
	p->state = SMARTIOD_PEER_CONNECTING;
	d->ops->peer_connect(d->ctx, p->node);
}

static void connect_later(struct smartiod *d, struct smartiod_peer *p)
{
	if (p->node > d->node || !smartiod_peer_link_up(p))
		return;
	p->retry_at = d->ops->now(d->ctx) + SMARTIOD_RECONNECT_NS;
	smartiod_arm(d, p->retry_at);
}

uint64_t smartiod_peer_retry(struct smartiod *d, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < d->n_peers; i++) {
		if (d->peer[i].retry_at <= now)
			connect_now(d, &d->peer[i]);
		else if (d->peer[i].retry_at < next)
			next = d->peer[i].retry_at;
	}
	return next;
}

static void say_hello(struct smartiod *d, struct smartiod_peer *p)
{
	struct sio_peer_hello msg = {
		.h = {.size = sio_to_le32(sizeof(msg)), .type = sio_to_le32(SIO_PEER_HELLO)},
		.version_min = sio_to_le32(SIO_PEER_VERSION),
		.version_max = sio_to_le32(SIO_PEER_VERSION),
		.node = sio_to_le32(d->node),
		.boot_generation = sio_to_le64(d->boot_generation),
	};

	memcpy(msg.boot_id, d->boot_id, sizeof(msg.boot_id));
	d->count.peer_sent++;
	d->ops->peer_send(d->ctx, p->node, &msg, sizeof(msg));
}

/* Both have said HELLO, and we know our own devices. */
static void peer_ready(struct smartiod *d, struct smartiod_peer *p)
{
	p->state = SMARTIOD_PEER_READY;
	smartiod_log(d, SMARTIOD_INFO, "%s is up", p->host->name);
	smartiod_adrift_ask(d, p->node);
	smartiod_op_peer_ready(d, p->node);
	smartiod_device_peer_ready(d, p);
}

void smartiod_peer_start(struct smartiod *d)
{
	for (unsigned i = 0; i < d->n_peers; i++) {
		struct smartiod_peer *p = &d->peer[i];

		if (p->state == SMARTIOD_PEER_HELLO) {
			say_hello(d, p);
			if (p->generation)
				peer_ready(d, p); /* its HELLO came before we were ready */
		}
		connect_now(d, p);
	}
}

/* Everything that the two hosts had with each other ends. Its connection is closed already. */
static void node_down(struct smartiod *d, struct smartiod_peer *p)
{
	if (p->state == SMARTIOD_PEER_READY)
		smartiod_log(d, SMARTIOD_NOTICE, "%s is down", p->host->name);
	p->state = SMARTIOD_PEER_IDLE;
	p->generation = 0;
	for (unsigned i = 0; i < p->n_paths; i++)
		p->path[i].anew |= !p->path[i].up;
	smartiod_op_peer_down(d, p->node, -ENETDOWN);
	smartiod_device_borrows_lost(d, p->node, false);
	smartiod_connection_node_down(d, p->node);
	smartiod_dint_link_node_down(d, p->node);
	smartiod_segment_node_down(d, p->node);
	smartiod_grant_node_down(d, p->node);
	smartiod_device_node_down(d, p->node);
}

static void cut(struct smartiod *d, struct smartiod_peer *p)
{
	if (p->state != SMARTIOD_PEER_IDLE)
		d->ops->peer_close(d->ctx, p->node);
	node_down(d, p);
}

/*
 * Segments stay connected: the daemons still talk to each other, and the link may come back. What
 * one host lends to the other does not outlive a path that it uses, nor the last one: a device
 * whose writes vanished cannot be gone on with. Over what is left it is borrowed anew.
 */
static void path_down(struct smartiod *d, struct smartiod_peer *p, uint32_t adapter,
		      uint32_t peer_adapter)
{
	bool last = !smartiod_peer_link_up(p), lent = last && smartiod_device_lent(d, p->node);

	if (last && p->state != SMARTIOD_PEER_READY) {
		cut(d, p);
		return;
	}
	if (lent) {
		/* What it is still asked for them comes too late, and is given back then. */
		smartiod_op_peer_fail(d, p->node, -ENETDOWN, "the link to the other host is down");
		smartiod_device_borrows_lost(d, p->node, true);
	}
	/* Its program is told that the device is lost before it is of what hangs on it. */
	smartiod_device_path_down(d, p->node, adapter, peer_adapter);
	smartiod_connection_path(d, p->node, adapter, peer_adapter, false);
	smartiod_segment_path(d, p->node, adapter);
	smartiod_grant_path_down(d, p->node, adapter, peer_adapter);
	if (!last)
		smartiod_grant_path_lost(d, p->node, adapter, peer_adapter);
	if (lent) {
		smartiod_grant_link_lost(d, p->node);
		smartiod_device_link_lost(d, p->node);
	}
}

static void path_up(struct smartiod *d, struct smartiod_peer *p, uint32_t adapter,
		    uint32_t peer_adapter)
{
	smartiod_connection_path(d, p->node, adapter, peer_adapter, true);
	smartiod_segment_path(d, p->node, adapter);
	connect_now(d, p);
}

static struct smartiod_path_state *path_state(struct smartiod_peer *p,
					      const struct sio_evt_link *evt)
{
	for (unsigned i = 0; i < p->n_paths; i++)
		if (p->path[i].adapter == evt->adapter &&
		    p->path[i].peer_adapter == evt->peer_adapter)
			return &p->path[i];
	if (p->n_paths == SMARTIOD_MAX_PATHS)
		return NULL;
	p->path[p->n_paths] = (struct smartiod_path_state){
		.adapter = evt->adapter, .peer_adapter = evt->peer_adapter, .turn = evt->turn};
	return &p->path[p->n_paths++];
}

void smartiod_peer_link_event(struct smartiod *d, const struct sio_evt_link *evt)
{
	struct smartiod_peer *p = smartiod_peer_find(d, evt->peer_node);
	struct smartiod_path_state *s = p ? path_state(p, evt) : NULL;

	if (!s || evt->adapter >= d->host->n_adapters) {
		smartiod_log(d, SMARTIOD_WARNING,
			     "the port tells of a link to node %u that the "
			     "topology does not know",
			     evt->peer_node);
		return;
	}
	if (evt->state == SIO_LINK_UP) {
		/*
		 * It has started anew, and we see the old one's connection; or the link has other
		 * addresses now, and no window of before leads anywhere. The connection of the
		 * daemons is well then, but its end is what all that hangs on windows ends by.
		 * Once: if the other host heard of it first, and ended all, what we have had since
		 * then is of the new addresses.
		 */
		if (p->generation &&
		    (p->generation != evt->generation || (s->turn != evt->turn && !s->anew)))
			cut(d, p);
		s->turn = evt->turn;
		s->anew = false;
		s->up = true;
		path_up(d, p, evt->adapter, evt->peer_adapter);
	} else if (s->up) {
		s->up = false;
		path_down(d, p, evt->adapter, evt->peer_adapter);
	}
}

void smartiod_peer_up(struct smartiod *d, uint32_t node)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);

	if (!p || d->failed) {
		d->ops->peer_close(d->ctx, node);
		return;
	}
	if (p->state == SMARTIOD_PEER_HELLO || p->state == SMARTIOD_PEER_READY)
		node_down(d, p); /* a new connection takes the place of the old one */
	p->state = SMARTIOD_PEER_HELLO;
	p->retry_at = UINT64_MAX;
	if (d->ready)
		say_hello(d, p);
}

void smartiod_peer_down(struct smartiod *d, uint32_t node)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);

	if (!p || d->failed)
		return;
	/* Not reached (yet): what waits for it goes on waiting. */
	if (p->state == SMARTIOD_PEER_CONNECTING)
		p->state = SMARTIOD_PEER_IDLE;
	else if (p->state != SMARTIOD_PEER_IDLE)
		node_down(d, p);
	connect_later(d, p);
}

/* ---- messages ---- */

static int hello(struct smartiod *d, struct smartiod_peer *p, const void *msg,
		 struct sio_err *reterr)
{
	const struct sio_peer_hello *m = msg;

	if (sio_from_le32(m->node) != p->node)
		return sio_fail(reterr, -EPROTO, "it says that it is node %u",
				sio_from_le32(m->node));
	if (sio_from_le32(m->version_min) > SIO_PEER_VERSION ||
	    sio_from_le32(m->version_max) < SIO_PEER_VERSION)
		return sio_fail(reterr, -EPROTO, "it speaks versions %u to %u, we version %u",
				sio_from_le32(m->version_min), sio_from_le32(m->version_max),
				SIO_PEER_VERSION);
	p->generation = sio_from_le64(m->boot_generation);
	if (p->last_start && p->last_start != p->generation)
		smartiod_adrift_new_start(d, p->node);
	p->last_start = p->generation;
	if (d->ready)
		peer_ready(d, p);
	return 0;
}

static int ping(struct smartiod *d, struct smartiod_peer *p, const void *msg,
		struct sio_err *reterr)
{
	const struct sio_msg *h = msg;
	struct sio_msg rep = {0};

	(void)reterr;
	smartiod_peer_reply(d, p->node, SIO_PEER_PING, sio_from_le32(h->id), &rep, sizeof(rep));
	return 0;
}

void smartiod_peer_reply(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id, void *msg,
			 size_t len)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);
	struct sio_msg *h = msg;

	if (!p || p->state != SMARTIOD_PEER_READY)
		return;
	h->size = sio_to_le32((uint32_t)len);
	h->type = sio_to_le32(type | SIO_PEER_REPLY);
	h->id = sio_to_le32(id);
	d->count.peer_sent++;
	d->ops->peer_send(d->ctx, node, msg, len);
}

void smartiod_peer_reply_error(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id,
			       int error, const struct sio_err *err)
{
	struct sio_msg_error msg = {.h.error = sio_to_le32((uint32_t)-error),
				    .reason = sio_to_le32(sio_err_reason(err, error))};

	snprintf(msg.text, sizeof(msg.text), "%.*s", (int)sizeof(msg.text) - 1, err->text);
	smartiod_peer_reply(d, node, type, id, &msg, sizeof(msg));
}

static void give_up(struct smartiod *d, struct smartiod_peer *p, const char *why)
{
	smartiod_log(d, SMARTIOD_WARNING, "smartiod of %s is cut off: %s", p->host->name, why);
	cut(d, p);
	connect_later(d, p);
}

static void serve(struct smartiod *d, struct smartiod_peer *p, const struct sio_wire_header *h,
		  const void *msg)
{
	struct sio_err err = {.text = ""};
	unsigned i = 0;
	int rc;

	while (handlers[i].type != h->type)
		i++; /* the check knows no other type */
	rc = handlers[i].fn(d, p, msg, &err);
	if (rc < 0 && h->id)
		smartiod_peer_reply_error(d, p->node, h->type, h->id, rc, &err);
	else if (rc == -EPROTO)
		give_up(d, p, err.text);
}

void smartiod_peer_message(struct smartiod *d, uint32_t node, const void *msg, size_t len)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);
	struct sio_wire_header h;
	struct sio_err err;

	if (!p || d->failed || (p->state != SMARTIOD_PEER_HELLO && p->state != SMARTIOD_PEER_READY))
		return;
	d->count.peer_received++;
	if (sio_peer_check(msg, len, &h, &err) < 0)
		give_up(d, p, err.text);
	else if ((p->state == SMARTIOD_PEER_HELLO) != (h.type == SIO_PEER_HELLO))
		give_up(d, p,
			p->state == SMARTIOD_PEER_HELLO ? "its first message is no HELLO"
							: "a second HELLO");
	else if (h.type & SIO_PEER_REPLY)
		smartiod_op_peer_reply(d, node, msg, len);
	else
		serve(d, p, &h, msg);
}

void smartiod_peer_late(struct smartiod *d, uint32_t node, const struct sio_msg *msg)
{
	struct sio_peer_seg_release release = {.h.type = sio_to_le32(SIO_PEER_SEG_RELEASE),
					       .reason = sio_to_le32(SCI_CB_LOST)};
	const struct sio_prep_seg_lookup *lookup = (const void *)msg;
	const struct sio_prep_seg_grant *grant = (const void *)msg;
	const struct sio_prep_dint_lookup *dint = (const void *)msg;

	switch (SIO_PEER_TYPE(sio_from_le32(msg->type))) {
	case SIO_PEER_SEG_LOOKUP:
		release.uid = lookup->uid;
		release.connection = lookup->connection;
		smartiod_peer_tell(d, node, &release, sizeof(release));
		return;
	case SIO_PEER_SEG_GRANT:
		smartiod_grant_release(d, node, sio_from_le64(grant->g.grant));
		return;
	case SIO_PEER_DINT_LOOKUP:
		smartiod_dint_release(d, node, sio_from_le64(dint->ring));
		return;
	case SIO_PEER_PING:
	case SIO_PEER_STATS:
		return;
	default:
		smartiod_device_late(d, node, msg);
		return;
	}
}
