/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts with and without data, the sender's side. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/interrupt/dint.h"
#include "wire/ring.h"

struct link_op {
	struct smartiod_op op;		 /* fd[0]: the ring, fd[1]: the trigger */
	struct smartiod_dint_link *link; /* it is connecting */
	enum { LOOKUP, MAP_RING, MAP_TRIGGER } state;
	struct sio_prep_dint_lookup found;
	uint64_t fd_offset;
};

struct leave_op {
	struct smartiod_op op;
	struct smartiod_dint_link *link; /* it outlives the wait: it is being unmapped */
};

/* ---- life ---- */

/* An event that cannot come is an error of ours: it ends the daemon. */
void smartiod_dint_link_enter(struct smartiod *d, struct smartiod_dint_link *l,
			      enum smartiod_sender_event event)
{
	enum smartiod_sender_state before = l->state;

	if (!smartiod_sender_next(before, event, &l->state))
		smartiod_fatal(d, "connection %" PRIu64 " to an interrupt: event %u in state %u",
			       l->id, event, before);
	SIO_PROBE(smartiod, sender_state, l->id, before, l->state, event);
}

static bool is_connecting(const struct smartiod_dint_link *l)
{
	return l->state == SMARTIOD_SENDER_CONNECTING ||
	       l->state == SMARTIOD_SENDER_CONNECTING_LOST ||
	       l->state == SMARTIOD_SENDER_CONNECTING_CLOSED;
}

static bool is_unmapping(const struct smartiod_dint_link *l)
{
	return l->state == SMARTIOD_SENDER_LOST_UNMAPPING ||
	       l->state == SMARTIOD_SENDER_CLOSED_UNMAPPING;
}

struct smartiod_dint_link *smartiod_dint_link_new(struct smartiod *d, struct smartiod_session *s,
						  uint32_t node, bool plain, struct sio_err *reterr)
{
	struct smartiod_dint_link *l = calloc(1, sizeof(*l));

	if (!l) {
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return NULL;
	}
	if (smartiod_object_add(s, &l->o, SMARTIOD_DINT_LINK, reterr) < 0) {
		free(l);
		return NULL;
	}
	l->node = node;
	l->plain = plain;
	l->pid = s->pid;
	l->id = smartiod_uid(d);
	smartiod_tree_add(&d->dint_links, &l->by_id, l->id);
	return l;
}

static void link_free(struct smartiod *d, struct smartiod_dint_link *l)
{
	smartiod_tree_remove(&d->dint_links, &l->by_id);
	free(l);
}

/* It ends when it is closed and all is given back. */
static void link_check(struct smartiod *d, struct smartiod_dint_link *l)
{
	if (l->state == SMARTIOD_SENDER_CLOSED)
		link_free(d, l);
}

void smartiod_dint_release(struct smartiod *d, uint32_t node, uint64_t ring, uint64_t link)
{
	struct sio_peer_dint_release msg = {.h.type = sio_to_le32(SIO_PEER_DINT_RELEASE),
					    .ring = sio_to_le64(ring),
					    .link = sio_to_le64(link)};

	smartiod_notify(d, node, &msg, sizeof(msg));
}

/*
 * Nothing of ours reaches the ring any more. A receiver that was lost meanwhile, whether this link
 * was notified of it or had been closed before, knows it no more, but perhaps the grant of its
 * memory, which it has ended with the ring if not; one that has started again knows neither.
 */
static void ring_release(struct smartiod *d, struct smartiod_dint_link *l)
{
	uint64_t ring = l->ring_uid, grant = l->memory_grant;

	l->ring_uid = 0;
	l->memory_grant = 0;
	l->trigger_grant = 0;
	if (!ring || (l->node != d->node && smartiod_peer_find(d, l->node)->generation != l->start))
		return;
	smartiod_dint_release(d, l->node, ring, l->id);
	if (l->node != d->node)
		smartiod_grant_release(d, l->node, grant);
}

/* The program gets the answer that it left, or has gone itself. */
static void left(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct leave_op *o = (struct leave_op *)op;

	o->link->leaving = NULL;
	if (!a->error)
		smartiod_op_ok(d, op);
	smartiod_op_free(d, op);
}

/* Whatever the port says: its owner may have ended before, and the window with it. */
static void unmapped(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_dint_link *l = SMARTIOD_OF((void *)op, struct smartiod_dint_link, unmap);

	(void)a;
	smartiod_dint_link_enter(d, l, SMARTIOD_SENDER_UNMAPPED);
	ring_release(d, l);
	if (l->leaving)
		smartiod_op_resume(d, l->leaving);
	link_check(d, l);
}

/*
 * Give back what the link has, in this order: as long as the port has the windows, stores may be on
 * their way to the ring, and triggers to the interrupt. While it is being made, the port may have
 * mapped what we do not know yet: then its operation does this.
 */
static void link_release(struct smartiod *d, struct smartiod_dint_link *l)
{
	struct sio_req_unmap req = {.h.op = SIO_OP_UNMAP};

	if (is_connecting(l) || is_unmapping(l))
		return;
	if (l->ring_map && l->irq_map)
		smartiod_port_unmap(d, l->irq_map); /* the port does it before what follows */
	req.id = l->ring_map ? l->ring_map : l->irq_map;
	l->irq_map = 0;
	l->ring_map = 0;
	if (!req.id) {
		ring_release(d, l);
		return;
	}
	smartiod_dint_link_enter(d, l, SMARTIOD_SENDER_UNMAP);
	l->unmap.step = unmapped;
	smartiod_port_ask(d, &l->unmap, &req, sizeof(req));
}

bool smartiod_dint_link_has(struct smartiod *d, uint32_t node, uint64_t grant)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dint_links, key))) {
		const struct smartiod_dint_link *l =
			SMARTIOD_OF(n, struct smartiod_dint_link, by_id);

		key = n->key;
		if (l->node == node && grant &&
		    (l->memory_grant == grant || l->trigger_grant == grant))
			return true;
	}
	return false;
}

static void link_close(struct smartiod *d, struct smartiod_dint_link *l)
{
	smartiod_object_remove(&l->o);
	smartiod_dint_link_enter(d, l, SMARTIOD_SENDER_CLOSE);
	link_release(d, l);
}

/* It will not be made. */
static void link_fail(struct smartiod *d, struct smartiod_dint_link *l)
{
	if (l->state != SMARTIOD_SENDER_CONNECTING_CLOSED)
		smartiod_object_remove(&l->o);
	smartiod_dint_link_enter(d, l, SMARTIOD_SENDER_FAIL);
	link_release(d, l);
	link_check(d, l);
}

void smartiod_dint_link_close(struct smartiod *d, struct smartiod_dint_link *l)
{
	link_close(d, l);
	link_check(d, l);
}

static void link_lost(struct smartiod *d, struct smartiod_dint_link *l)
{
	struct sio_evm_dint_ring evm = {.handle = sio_to_le32(smartiod_handle(&l->o)),
					.node = sio_to_le32(l->node)};
	bool connected = l->state == SMARTIOD_SENDER_CONNECTED;

	if (!connected && l->state != SMARTIOD_SENDER_CONNECTING)
		return;
	smartiod_dint_link_enter(d, l, SMARTIOD_SENDER_LOSE);
	if (l->of_device) {
		l->of_device(d, l);
		return;
	}
	if (connected)
		smartiod_event(d, l->o.session, SIO_EVM_DINT_LOST, &evm, sizeof(evm), NULL, 0);
	link_release(d, l);
}

void smartiod_dint_link_lost(struct smartiod *d, uint32_t node, uint64_t link)
{
	struct smartiod_dint_link *l = SMARTIOD_OF(smartiod_tree_find(&d->dint_links, link),
						   struct smartiod_dint_link, by_id);

	if (l && l->node == node)
		link_lost(d, l);
}

int smartiod_peer_dint_event(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			     struct sio_err *reterr)
{
	(void)reterr;
	smartiod_dint_link_lost(d, from->node,
				sio_from_le64(((const struct sio_peer_dint_event *)msg)->link));
	return 0;
}

void smartiod_dint_link_node_down(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dint_links, key))) {
		struct smartiod_dint_link *l = SMARTIOD_OF(n, struct smartiod_dint_link, by_id);

		key = n->key;
		if (l->node == node)
			link_lost(d, l);
	}
}

void smartiod_dint_link_free_all(struct smartiod *d)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->dint_links, 0)))
		link_free(d, SMARTIOD_OF(n, struct smartiod_dint_link, by_id));
}

/* ---- connect ---- */

uint64_t smartiod_dint_link_seal(const struct smartiod_session *s,
				 const struct smartiod_dint_link *l)
{
	const uint64_t words[] = {
		smartiod_handle(&l->o),
		smartiod_dint_seal_number(l->plain, l->adapter, l->number),
		(uint64_t)l->node << 32 | l->adapter << 16 | l->peer_adapter,
		l->peer_boot,
		l->start,
		l->ring_uid,
		l->trigger_grant,
		l->irq_map,
		l->memory_grant,
		l->ring_map,
	};

	return smartiod_seal_words(s, SIO_MSG_DINT_CONNECT, words,
				   sizeof(words) / sizeof(words[0]));
}

/* For the program's RESTORE. */
static void fill_claim(struct smartiod *d, const struct smartiod_session *s,
		       const struct smartiod_dint_link *l, struct sio_rep_dint_connect *rep)
{
	uint64_t key;

	if (l->node != d->node) {
		rep->seal = sio_to_le64(smartiod_dint_link_seal(s, l));
		rep->peer_boot = sio_to_le64(l->peer_boot);
		rep->claim[0] = (struct sio_wire_claim){sio_to_le64(l->ring_uid),
							sio_to_le64(l->trigger_grant),
							sio_to_le64(l->irq_map)};
		rep->claim[1] =
			(struct sio_wire_claim){sio_to_le64(l->start), sio_to_le64(l->memory_grant),
						sio_to_le64(l->ring_map)};
		return;
	}
	key = smartiod_ring_key(d, l->ring_uid);
	rep->key = sio_to_le64(key);
	rep->seal = sio_to_le64(
		smartiod_seal(s, SIO_MSG_DINT_CONNECT, smartiod_handle(&l->o), key,
			      smartiod_dint_seal_number(l->plain, l->adapter, l->number), 0));
}

static void connect_reply(struct smartiod *d, struct smartiod_op *op, struct smartiod_dint_link *l,
			  uint64_t fd_offset, int ring_fd, int trigger_fd)
{
	int fds[2] = {ring_fd, trigger_fd};
	struct sio_rep_dint_connect rep = {
		.handle = sio_to_le32(smartiod_handle(&l->o)),
		.path = sio_to_le32(l->node == d->node ? SIO_PATH_NONE
						       : l->adapter << 16 | l->peer_adapter),
		.fd_offset = sio_to_le64(fd_offset),
		.bytes = sio_to_le64(l->plain ? 0 : SIO_RING_TOTAL),
	};

	fill_claim(d, op->session, l, &rep);
	smartiod_dint_link_enter(d, l, SMARTIOD_SENDER_MADE);
	smartiod_op_reply(d, op, &rep, sizeof(rep), l->plain ? &fds[1] : fds, l->plain ? 1 : 2);
}

static void connect_failed(struct smartiod *d, struct smartiod_op *op, struct smartiod_dint_link *l,
			   int error, const char *text)
{
	smartiod_op_error(d, op, error, "%s %u of node %u: %s", smartiod_dint_word(l->plain),
			  l->number, l->node, text);
	link_fail(d, l);
	smartiod_op_free(d, op);
}

/* Keep what the answer brought, so that one way gives all back. */
static void take_answer(struct smartiod *d, struct link_op *o, const struct smartiod_answer *a)
{
	const struct sio_evt_map *map = a->msg;

	switch (o->state) {
	case LOOKUP:
		o->found = *(const struct sio_prep_dint_lookup *)a->msg;
		o->link->ring_uid = sio_from_le64(o->found.ring);
		o->link->start = smartiod_peer_find(d, o->link->node)->generation;
		o->link->peer_boot = smartiod_path_start(d, o->link->node, o->link->adapter,
							 o->link->peer_adapter);
		o->link->trigger_grant = sio_from_le64(o->found.trigger.grant);
		if (!o->link->plain)
			o->link->memory_grant = sio_from_le64(o->found.memory.grant);
		return;
	case MAP_RING:
		o->link->ring_map = map->id;
		o->fd_offset = map->offset;
		o->op.fd[0] = smartiod_take_fd(a, 0);
		return;
	case MAP_TRIGGER:
		o->link->irq_map = map->id;
		o->op.fd[1] = smartiod_take_fd(a, 0);
		return;
	}
}

/* What the other host granted is what the program is to have: memory, or an interrupt. */
static const char *wrong_kind(const struct link_op *o, const struct smartiod_answer *a)
{
	if (o->state == MAP_RING && !smartiod_map_is_memory(a, SIO_ACCESS_READ | SIO_ACCESS_WRITE))
		return "its host granted something else than a ring";
	if (o->state == MAP_TRIGGER && !smartiod_map_triggers(a))
		return "its host granted memory, not an interrupt";
	return NULL;
}

static void link_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct link_op *o = (struct link_op *)op;
	struct smartiod_dint_link *l = o->link;
	const char *wrong = a->error ? NULL : wrong_kind(o, a);

	if (!a->error)
		take_answer(d, o, a);
	if (a->error || l->state != SMARTIOD_SENDER_CONNECTING || !op->session) {
		connect_failed(d, op, l, a->error ? a->error : -ECONNRESET,
			       a->error ? a->text : "the connection is lost");
		return;
	}
	if (wrong) {
		connect_failed(d, op, l, -EPROTO, wrong);
		return;
	}
	switch (o->state) {
	case LOOKUP:
		if (l->plain)
			break;
		if (!smartiod_grant_holds(&o->found.memory, SIO_RING_TOTAL)) {
			connect_failed(d, op, l, -EPROTO, "its host granted less than a ring");
			return;
		}
		o->state = MAP_RING;
		smartiod_port_ask_map(d, op, op->session->owner, l->node, l->adapter,
				      l->peer_adapter, &o->found.memory);
		return;
	case MAP_RING:
		break;
	case MAP_TRIGGER:
		connect_reply(d, op, l, o->fd_offset, op->fd[0], op->fd[1]);
		smartiod_op_free(d, op);
		return;
	}
	o->state = MAP_TRIGGER;
	smartiod_port_ask_map(d, op, op->session->owner, l->node, l->adapter, l->peer_adapter,
			      &o->found.trigger);
}

void smartiod_dint_link_local(struct smartiod *d, struct smartiod_ring_op *r, int error,
			      const char *text)
{
	struct smartiod_dint_link *l = r->link;

	if (error || l->state != SMARTIOD_SENDER_CONNECTING || !r->op.session) {
		if (!error)
			l->ring_uid = r->ring->uid; /* given back */
		connect_failed(d, &r->op, l, error ? error : -ECONNRESET,
			       error ? text : "the connection is lost");
		return;
	}
	l->ring_uid = r->ring->uid;
	connect_reply(d, &r->op, l, 0, r->op.fd[0], r->ring->dint->trigger_fd);
	smartiod_op_free(d, &r->op);
}

static int connect_local(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 uint32_t flags, uint32_t adapter, uint32_t number, struct sio_err *reterr)
{
	struct smartiod_dint *dint = smartiod_dint_find(d, flags, adapter, number);
	bool plain = flags & SIO_DINT_PLAIN;
	struct smartiod_ring_op *r;
	int rc;

	if (!dint)
		return sio_fail(reterr, -ENOENT, "%s has no %s %u on adapter %u", d->host->name,
				smartiod_dint_word(plain), number, adapter);
	if (dint->own && dint->o.session != s)
		return smartiod_dint_not_own(d, dint, reterr);
	r = smartiod_op_new(d, s, msg, sizeof(*r), smartiod_ring_step, reterr);
	if (!r)
		return reterr->code;
	r->link = smartiod_dint_link_new(d, s, d->node, plain, reterr);
	if (!r->link) {
		smartiod_op_free(d, &r->op);
		return reterr->code;
	}
	r->link->number = number;
	r->link->adapter = adapter;
	rc = smartiod_ring_start(d, r, dint, d->node, r->link->id, reterr);
	if (rc < 0) {
		link_fail(d, r->link);
		smartiod_op_free(d, &r->op);
	}
	return rc;
}

static int connect_remote(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  uint32_t node, uint32_t flags, uint32_t number,
			  const struct sio_path *path, struct sio_err *reterr)
{
	struct sio_peer_dint_lookup ask = {
		.h.type = sio_to_le32(SIO_PEER_DINT_LOOKUP),
		.number = sio_to_le32(number),
		.adapter = sio_to_le32(path->peer_adapter),
		.peer_adapter = sio_to_le32(path->adapter),
		.flags = sio_to_le32(flags),
	};
	bool plain = flags & SIO_DINT_PLAIN;
	struct link_op *o = smartiod_op_new(d, s, msg, sizeof(*o), link_step, reterr);
	struct smartiod_dint_link *l;
	int rc;

	if (!o)
		return reterr->code;
	l = smartiod_dint_link_new(d, s, node, plain, reterr);
	if (!l) {
		smartiod_op_free(d, &o->op);
		return reterr->code;
	}
	l->number = number;
	l->adapter = path->adapter;
	l->peer_adapter = path->peer_adapter;
	ask.link = sio_to_le64(l->id);
	rc = smartiod_peer_ask(d, &o->op, node, &ask, sizeof(ask));
	if (rc < 0) {
		link_fail(d, l);
		smartiod_op_free(d, &o->op);
		return sio_fail(reterr, rc, "node %u cannot be reached", node);
	}
	o->link = l;
	return 0;
}

int smartiod_dint_connect(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_msg_dint_connect *m = msg;
	uint32_t node = sio_from_le32(m->node), adapter = sio_from_le32(m->adapter);
	uint32_t number = sio_from_le32(m->number), flags = sio_from_le32(m->flags);
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_INTERRUPTS, node, number);
	bool plain = flags & SIO_DINT_PLAIN;
	struct sio_path path;
	int rc;

	if (plain && flags & SCI_FLAG_BROADCAST)
		return sio_fail(reterr, -EOPNOTSUPP, "SCI_FLAG_BROADCAST is not supported for %ss",
				smartiod_dint_word(plain));
	if (flags & ~(SIO_DINT_PLAIN | SCI_FLAG_BROADCAST))
		return sio_fail(reterr, -EINVAL, "flags %#x do not belong to a connection to %ss",
				flags, smartiod_dint_word(plain));
	if (adapter >= d->host->n_adapters)
		return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on",
				d->host->name, adapter, d->host->n_adapters);
	if (smartiod_allow_program(d, s, &thing, reterr) < 0)
		return reterr->code;
	if (node == d->node)
		return connect_local(d, s, msg, flags, adapter, number, reterr);
	rc = smartiod_path(d, node, adapter, &path, reterr);
	if (rc < 0)
		return rc;
	return connect_remote(d, s, msg, node, flags, number, &path, reterr);
}

/*
 * The answer comes when the receiver was notified, so that what the program sends by a connection
 * that it makes then is younger there, too. Short of memory it comes at once.
 */
int smartiod_dint_disconnect(struct smartiod *d, struct smartiod_session *s, const void *msg,
			     struct sio_err *reterr)
{
	struct sio_err unheard = {.text = ""};
	const struct sio_msg_handle *m = msg;
	struct smartiod_dint_link *l;
	struct leave_op *o = NULL;

	l = smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_DINT_LINK, reterr);
	if (!l)
		return reterr->code;
	if (is_connecting(l))
		return sio_fail(reterr, -EBADF, "this connection " SMARTIOD_NOT_YET);
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "the end of a connection takes no flags");
	link_close(d, l);
	if (is_unmapping(l))
		o = smartiod_op_new(d, s, msg, sizeof(*o), left, &unheard);
	if (o) {
		o->link = l;
		l->leaving = &o->op;
		smartiod_op_park(&o->op);
		return 0;
	}
	link_check(d, l);
	smartiod_reply_ok(d, s, msg);
	return 0;
}

void smartiod_dint_links_parting(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dint_links, key))) {
		const struct smartiod_dint_link *l =
			SMARTIOD_OF(n, struct smartiod_dint_link, by_id);

		key = n->key;
		if (l->node == node && l->o.session && l->state == SMARTIOD_SENDER_CONNECTED)
			smartiod_report(d, SIO_RELOAD_ENDS,
					"connection of process %" PRIu32 ": interrupt %" PRIu32
					" of node %" PRIu32,
					l->pid, l->number, node);
	}
}
