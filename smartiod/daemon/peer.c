/* SPDX-License-Identifier: BSD-2-Clause */
/* The other hosts: links to them, connections of their daemons, and the messages on these. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/hops.h"
#include "core/probe.h"
#include "smartiod/base/hops.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/daemon/bond.h"
#include "smartiod/daemon/dispatch.h"
#include "wire/check.h"

#define RECONNECT_NS 20000000ULL

/* ---- up and down ---- */

/*
 * Before our programs of before are back, or too late, we know too little of what we share to
 * answer anything: the peers wait.
 */
static bool is_serving(const struct smartiod *d)
{
	return d->ready && !smartiod_recovering(d);
}

static void enter(struct smartiod *d, struct smartiod_peer *p, enum smartiod_bond_event event)
{
	enum smartiod_bond before = p->bond;

	if (!smartiod_bond_next(before, event, &p->bond))
		smartiod_fatal(d, "%s: event %u of bond %u", p->host->name, event, before);
	p->until = UINT64_MAX;
	if (p->bond != SMARTIOD_BOND_EXPECTED)
		return;
	p->until = d->ops->now(d->ctx) + SMARTIOD_EXPECT_NS;
	smartiod_arm(d, p->until);
}

static void connect_now(struct smartiod *d, struct smartiod_peer *p)
{
	p->retry_at = UINT64_MAX;
	/* The higher node id connects. */
	if (!is_serving(d) || p->state != SMARTIOD_PEER_IDLE || p->node > d->node ||
	    !smartiod_peer_link_up(p))
		return;
	p->state = SMARTIOD_PEER_CONNECTING;
	d->ops->peer_connect(d->ctx, p->node);
}

static void connect_later(struct smartiod *d, struct smartiod_peer *p)
{
	if (p->node > d->node || !smartiod_peer_link_up(p))
		return;
	p->retry_at = d->ops->now(d->ctx) + RECONNECT_NS;
	smartiod_arm(d, p->retry_at);
}

static void too_late(struct smartiod *d, struct smartiod_peer *p);

/* What it has to send after HELLO has come, or has to come in time. */
static void owes(struct smartiod *d, struct smartiod_peer *p, bool sent, bool done)
{
	p->owes_sent = sent;
	p->owes_done = done;
	p->until = sent || done ? p->until : UINT64_MAX;
	if (!sent || !done)
		return;
	p->until = d->ops->now(d->ctx) + SMARTIOD_EXPECT_NS;
	smartiod_arm(d, p->until);
}

uint64_t smartiod_peer_retry(struct smartiod *d, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < d->n_peers; i++) {
		struct smartiod_peer *p = &d->peer[i];

		if (p->until <= now)
			too_late(d, p);
		if (p->until < next)
			next = p->until;
		if (p->retry_at <= now)
			connect_now(d, p);
		else if (p->retry_at < next)
			next = p->retry_at;
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
	smartiod_hops_encode(&d->hops, msg.hops);
	d->count.peer_sent++;
	d->ops->peer_send(d->ctx, p->node, &msg, sizeof(msg));
}

/* What we have of it, so that it ends what we have not, and says what we have no more. */
static void resume(struct smartiod *d, struct smartiod_peer *p)
{
	struct sio_peer_resume_end told = {.h.type = sio_to_le32(SIO_PEER_RESUME_SENT)};

	p->meeting++;
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->resume)
			d->rooms[i]->resume(d, p->node);
	smartiod_peer_send(d, p->node, &told, sizeof(told));
}

/* Both have said HELLO, and we know our own devices. */
static void peer_ready(struct smartiod *d, struct smartiod_peer *p)
{
	p->state = SMARTIOD_PEER_READY;
	enter(d, p, SMARTIOD_BOND_MEET);
	SIO_PROBE(smartiod, node_up, p->node);
	smartiod_log(d, SMARTIOD_INFO, "%s is up", p->host->name);
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->peer_ready)
			d->rooms[i]->peer_ready(d, p->node);
	if (smartiod_outlives(d, p)) {
		owes(d, p, true, true);
		resume(d, p);
	}
	smartiod_op_peer_ready(d, p->node);
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->announce)
			d->rooms[i]->announce(d, p->node);
}

void smartiod_peer_start(struct smartiod *d)
{
	for (unsigned i = 0; i < d->n_peers; i++) {
		struct smartiod_peer *p = &d->peer[i];

		if (!p->removed && smartiod_outlives(d, p) && p->bond == SMARTIOD_BOND_APART) {
			enter(d, p, SMARTIOD_BOND_EXPECT);
			p->expected = p->unmet = true;
		}
		if (!is_serving(d))
			continue;
		if (p->state == SMARTIOD_PEER_HELLO) {
			say_hello(d, p);
			if (p->greeted)
				peer_ready(d, p); /* its HELLO came before we were ready */
		}
		connect_now(d, p);
	}
}

/* Everything that the two hosts had with each other ends. */
static void node_lost(struct smartiod *d, struct smartiod_peer *p)
{
	enter(d, p, SMARTIOD_BOND_END);
	p->expected = p->unmet = false;
	p->generation = 0;
	for (unsigned i = 0; i < p->n_paths; i++)
		p->path[i].anew |= !p->path[i].up;
	smartiod_op_peer_down(d, p->node, -ENETDOWN);
	smartiod_imports_lost(d, p->node, SMARTIOD_NODE_DOWN);
	smartiod_exports_end(d, p->node, SMARTIOD_NODE_DOWN);
}

/* The connection is closed. */
static void disconnected(struct smartiod *d, struct smartiod_peer *p)
{
	if (p->state == SMARTIOD_PEER_READY)
		smartiod_log(d, SMARTIOD_NOTICE, "%s is down", p->host->name);
	SIO_PROBE(smartiod, node_down, p->node, p->state);
	p->state = SMARTIOD_PEER_IDLE;
	p->owes_sent = p->owes_done = false;
	p->silent_since = 0;
}

/* The same, and all that depends on it. */
static void node_down(struct smartiod *d, struct smartiod_peer *p)
{
	disconnected(d, p);
	node_lost(d, p);
}

static void cut(struct smartiod *d, struct smartiod_peer *p)
{
	if (p->state != SMARTIOD_PEER_IDLE)
		d->ops->peer_close(d->ctx, p->node);
	node_down(d, p);
}

/*
 * The connection ended by itself: the daemon was killed, or the network between the hosts is down.
 * Windows and devices go on, where ports hold them: the peer's daemon has time to come back.
 */
static void connection_lost(struct smartiod *d, struct smartiod_peer *p)
{
	if (!smartiod_outlives(d, p)) {
		node_down(d, p);
		return;
	}
	disconnected(d, p);
	if (p->bond != SMARTIOD_BOND_JOINED)
		return; /* it came no further than HELLO: its time, if it has any, goes on */
	enter(d, p, SMARTIOD_BOND_PART);
	smartiod_op_peer_away(d, p->node);
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->away)
			d->rooms[i]->away(d, p->node);
}

/*
 * It was expected. A connection that says nothing does not prolong that; nor does one over which
 * nothing but HELLO comes: what of it is expected would stay for ever.
 */
static void too_late(struct smartiod *d, struct smartiod_peer *p)
{
	smartiod_log(d, SMARTIOD_WARNING, "%s has not %s: all that it shared with us ends",
		     p->host->name,
		     p->owes_sent || p->owes_done ? "reported what it has of us" : "come back");
	cut(d, p);
	connect_later(d, p);
}

static void path_changed(struct smartiod *d, const struct smartiod_peer *p, uint32_t adapter,
			 uint32_t peer_adapter, bool up)
{
	const struct smartiod_path_change change = {.node = p->node,
						    .adapter = adapter,
						    .peer_adapter = peer_adapter,
						    .up = up,
						    .last = !smartiod_peer_link_up(p)};

	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->path)
			d->rooms[i]->path(d, &change);
}

/*
 * Segments stay connected: the daemons still talk to each other, and the link may come back. What
 * one host lends to the other does not outlive a path that it uses, nor the last one: a device
 * whose writes vanished cannot be gone on with. Over what is left it is borrowed again.
 */
static void path_down(struct smartiod *d, struct smartiod_peer *p, uint32_t adapter,
		      uint32_t peer_adapter)
{
	bool last = !smartiod_peer_link_up(p);
	bool lent = last && (smartiod_lends(d, p->node) || smartiod_borrows(d, p->node));

	if (last && p->state != SMARTIOD_PEER_READY) {
		cut(d, p);
		return;
	}
	if (lent) {
		/* What it is still asked for them comes too late, and is given back then. */
		smartiod_op_peer_fail(d, p->node, -ENETDOWN, "the link to the other host is down");
		smartiod_imports_lost(d, p->node, SMARTIOD_LINK_DOWN);
	}
	path_changed(d, p, adapter, peer_adapter, false);
	if (lent)
		smartiod_exports_end(d, p->node, SMARTIOD_LINK_DOWN);
}

static void path_up(struct smartiod *d, struct smartiod_peer *p, uint32_t adapter,
		    uint32_t peer_adapter)
{
	path_changed(d, p, adapter, peer_adapter, true);
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

/* n_strangers: nothing is remembered of that path. */
static unsigned find_stranger(const struct smartiod *d, const struct sio_evt_link *evt)
{
	unsigned i = 0;

	while (i < d->n_strangers && (d->stranger[i].peer_node != evt->peer_node ||
				      d->stranger[i].adapter != evt->adapter ||
				      d->stranger[i].peer_adapter != evt->peer_adapter))
		i++;
	return i;
}

/* The cluster's file may have that host later, or the port say what that adapter is. */
static void remember(struct smartiod *d, const struct sio_evt_link *evt)
{
	unsigned i = find_stranger(d, evt);

	if (i == SMARTIOD_STRANGERS)
		return;
	d->stranger[i] = *evt;
	d->n_strangers += i == d->n_strangers;
}

/* What was remembered of that path is no longer true. */
static void forget_stranger(struct smartiod *d, const struct sio_evt_link *evt)
{
	unsigned i = find_stranger(d, evt);

	if (i < d->n_strangers)
		d->stranger[i] = d->stranger[--d->n_strangers];
}

/* The path that the port reported, as it would again. */
static struct sio_evt_link as_event(const struct smartiod_peer *p,
				    const struct smartiod_path_state *s)
{
	return (struct sio_evt_link){.h = {.size = sizeof(struct sio_evt_link), .op = SIO_EV_LINK},
				     .adapter = s->adapter,
				     .peer_adapter = s->peer_adapter,
				     .peer_node = p->node,
				     .state = s->up ? SIO_LINK_UP : SIO_LINK_DOWN,
				     .turn = s->turn,
				     .hops = s->hops,
				     .generation = p->generation};
}

/* What the node may still have written to is free: nothing of its earlier starts is left. */
static void new_start(struct smartiod *d, uint32_t node)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->new_start)
			d->rooms[i]->new_start(d, node);
}

void smartiod_peer_remove(struct smartiod *d, struct smartiod_peer *p)
{
	static const struct sio_topo_host nobody = {.name = "a host that was removed"};

	smartiod_log(d, SMARTIOD_NOTICE, "%s is no longer in the cluster's file", p->host->name);
	for (unsigned i = 0; i < p->n_paths; i++) {
		const struct sio_evt_link evt = as_event(p, &p->path[i]);

		remember(d, &evt);
	}
	if (p->state != SMARTIOD_PEER_IDLE || p->bond != SMARTIOD_BOND_APART)
		cut(d, p);
	/* An emulated one is off before its file is read by others, and does not come back. */
	if (!p->host->real)
		new_start(d, p->node);
	p->removed = true;
	p->n_paths = 0;
	p->until = p->retry_at = UINT64_MAX;
	p->host = &nobody; /* the topology goes */
}

void smartiod_peer_add(struct smartiod *d, const struct sio_topo_host *host)
{
	struct smartiod_peer *p = smartiod_peer_find(d, host->node);

	if (!p && d->n_peers == SIO_MAX_HOSTS)
		return; /* there are no more node ids than that */
	if (!p) {
		p = &d->peer[d->n_peers++];
		*p = (struct smartiod_peer){
			.node = host->node, .until = UINT64_MAX, .retry_at = UINT64_MAX};
	}
	smartiod_log(d, SMARTIOD_NOTICE, "%s is new in the cluster's file", host->name);
	p->removed = false;
	p->host = host;
	p->hops = smartiod_hops_of(host, SIO_HOPS_MEMORY);
	smartiod_peer_links_again(d);
}

void smartiod_peer_links_again(struct smartiod *d)
{
	for (unsigned i = 0; i < d->n_strangers;) {
		const struct sio_evt_link evt = d->stranger[i];
		const struct smartiod_peer *p = smartiod_peer_find(d, evt.peer_node);

		if (!p || p->removed || !smartiod_has_adapter(d, evt.adapter)) {
			i++;
			continue;
		}
		d->stranger[i] = d->stranger[--d->n_strangers];
		smartiod_peer_link_event(d, &evt);
	}
}

void smartiod_peer_link_event(struct smartiod *d, const struct sio_evt_link *evt)
{
	struct smartiod_peer *p = smartiod_peer_find(d, evt->peer_node);
	bool up = evt->state == SIO_LINK_UP, ours = evt->adapter < d->host->n_adapters;
	struct smartiod_path_state *s = p && !p->removed ? path_state(p, evt) : NULL;
	bool early = up && !smartiod_has_adapter(d, evt->adapter);

	forget_stranger(d, evt);
	if (early || !p || p->removed)
		remember(d, evt);
	if (early && s && ours)
		return; /* until the port has said what that adapter is */
	/* What goes over an adapter that the file has no more ends with its path. */
	if (!s || early) {
		smartiod_log(d, SMARTIOD_WARNING,
			     "the port reports a link to node %u, which the cluster's "
			     "file does not have",
			     evt->peer_node);
		return;
	}
	SIO_PROBE(smartiod, path, evt->peer_node, evt->adapter, evt->peer_adapter, evt->state);
	if (up) {
		/*
		 * It has started again, and we see the old one's connection; or the link has other
		 * addresses now, and no window of before leads anywhere. The connection of the
		 * daemons is well then, but its end is what all that depends on windows ends by.
		 * Once: if the other host heard of it first, and ended all, what we have had since
		 * then is of the new addresses.
		 */
		if (p->generation &&
		    (p->generation != evt->generation || (s->turn != evt->turn && !s->anew)))
			cut(d, p);
		s->turn = evt->turn;
		s->generation = evt->generation;
		s->hops = evt->hops;
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

	if (!p || p->removed || d->failed) {
		d->ops->peer_close(d->ctx, node);
		return;
	}
	if (p->state == SMARTIOD_PEER_HELLO || p->state == SMARTIOD_PEER_READY)
		connection_lost(d, p); /* a new connection takes the place of the old one */
	p->state = SMARTIOD_PEER_HELLO;
	p->greeted = false;
	p->retry_at = UINT64_MAX;
	if (is_serving(d))
		say_hello(d, p);
}

void smartiod_peer_down(struct smartiod *d, uint32_t node)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);

	if (!p || p->removed || d->failed)
		return;
	/* Not reached (yet): what waits for it goes on waiting. */
	if (p->state == SMARTIOD_PEER_CONNECTING)
		p->state = SMARTIOD_PEER_IDLE;
	else if (p->state != SMARTIOD_PEER_IDLE)
		connection_lost(d, p);
	connect_later(d, p);
}

void smartiod_peer_expelled(struct smartiod *d, uint32_t node)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);

	if (!p || p->removed || d->failed)
		return;
	smartiod_log(d, SMARTIOD_WARNING, "%s was revoked: all that it shared with us ends",
		     p->host->name);
	node_down(d, p);
	connect_later(d, p);
}

/* ---- messages ---- */

int smartiod_peer_hello(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			struct sio_err *reterr)
{
	struct smartiod_peer *p = smartiod_peer_find(d, from->node);
	const struct sio_peer_hello *m = msg;
	uint64_t start;

	if (sio_from_le32(m->node) != p->node)
		return sio_fail(reterr, -EPROTO, "it says that it is node %u",
				sio_from_le32(m->node));
	if (sio_from_le32(m->version_min) > SIO_PEER_VERSION ||
	    sio_from_le32(m->version_max) < SIO_PEER_VERSION)
		return sio_fail(reterr, -EPROTO, "it speaks versions %u to %u, we version %u",
				sio_from_le32(m->version_min), sio_from_le32(m->version_max),
				SIO_PEER_VERSION);
	if (m->reserved)
		return sio_fail(reterr, -EPROTO, "message HELLO: reserved is %#x, 0 is right",
				sio_from_le32(m->reserved));
	start = sio_from_le64(m->boot_generation);
	if (p->last_start && p->last_start != start) {
		if (p->bond == SMARTIOD_BOND_EXPECTED)
			node_lost(d, p);
		new_start(d, p->node);
	}
	p->generation = p->last_start = start;
	p->greeted = true;
	if (p->host->real)
		p->hops = smartiod_hops_decode(m->hops);
	if (is_serving(d))
		peer_ready(d, p);
	return 0;
}

int smartiod_peer_resume_sent(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	struct sio_peer_resume_end done = {.h.type = sio_to_le32(SIO_PEER_RESUME_DONE)};
	struct smartiod_peer *p = smartiod_peer_find(d, from->node);

	(void)msg;
	(void)reterr;
	p->expected = false;
	owes(d, p, false, p->owes_done);
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->resumed)
			d->rooms[i]->resumed(d, from->node);
	smartiod_peer_send(d, from->node, &done, sizeof(done));
	return 0;
}

int smartiod_peer_resume_done(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	struct smartiod_peer *p = smartiod_peer_find(d, from->node);

	(void)msg;
	(void)reterr;
	p->unmet = false;
	owes(d, p, p->owes_sent, false);
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->answered)
			d->rooms[i]->answered(d, from->node);
	return 0;
}

int smartiod_peer_ping(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_msg *h = msg;
	struct sio_msg rep = {0};

	(void)reterr;
	smartiod_peer_reply(d, from->node, SIO_PEER_PING, sio_from_le32(h->id), &rep, sizeof(rep));
	return 0;
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
	const struct smartiod_from from = {.node = p->node};
	struct sio_err err = {.text = ""};
	int rc = smartiod_room_message(d, h->type, &from, msg, &err);

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
	p->heard++;
	p->silent_since = 0;
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
