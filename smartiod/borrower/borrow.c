/* SPDX-License-Identifier: BSD-2-Clause */
/* Borrows, the borrower's side: handles of devices, device segments, events. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/probe.h"
#include "core/placement.h"
#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

/* ---- life ---- */

/* An event that cannot come is an error of ours: it ends the daemon. */
static void enter(struct smartiod *d, struct smartiod_borrow *b, enum smartiod_borrow_event event)
{
	if (!smartiod_borrow_next(b->state, event, &b->state))
		smartiod_fatal(d, "borrow %" PRIu64 ": event %u in state %u", b->id, event,
			       b->state);
	if (event == SMARTIOD_BORROW_END)
		smartiod_charge_drop(&b->charge);
}

void smartiod_borrow_lent(struct smartiod *d, struct smartiod_borrow *b, uint64_t id)
{
	b->id = id;
	enter(d, b, SMARTIOD_BORROW_LENT);
}

static void forget_peers(struct smartiod_borrow *b)
{
	struct smartiod_peer_map *m;

	while ((m = b->peer_maps)) {
		b->peer_maps = m->next;
		free(m);
	}
}

static void borrow_check(struct smartiod *d, struct smartiod_borrow *b)
{
	struct smartiod_borrow **at = &d->borrows;

	if (!smartiod_borrow_ended(b) || b->users || b->pins || b->maps)
		return;
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	smartiod_vectors_forget(b);
	smartiod_made_forget(b);
	forget_peers(b);
	free(b);
}

void smartiod_borrow_unpin(struct smartiod *d, struct smartiod_borrow *b)
{
	b->pins--;
	borrow_check(d, b);
}

void smartiod_borrow_unuse(struct smartiod *d, struct smartiod_borrow *b)
{
	b->users--;
	borrow_check(d, b);
}

/* Segments of it in our memory go; @owner_gone: their program is gone, the port frees them. */
static void end_placed(struct smartiod *d, struct smartiod_borrow *b, bool owner_gone)
{
	while (b->placed) {
		struct smartiod_placed *p = b->placed;

		b->placed = p->next;
		smartiod_segment_end(d, p->segment, owner_gone ? SCI_CB_LOST : SCI_CB_DISCONNECT,
				     owner_gone);
		free(p);
	}
}

/* The client released it, or is gone. */
static void borrow_end(struct smartiod *d, struct smartiod_borrow *b, bool owner_gone)
{
	smartiod_object_remove(&b->o);
	enter(d, b, SMARTIOD_BORROW_END);
	b->pins++;
	smartiod_shadow_bars_close(d, b);
	end_placed(d, b, owner_gone);
	smartiod_borrow_unpin(d, b);
}

/* @gone: the program has ended, its maps with it; else it is alive, or may be. */
static void notify_end(struct smartiod *d, const struct smartiod_borrow *b, bool gone)
{
	struct sio_peer_borrower msg = {
		.h.type = sio_to_le32(SIO_PEER_BORROW_END),
		.borrower = sio_to_le64(b->id),
		.fdid = sio_to_le32(b->device->fdid),
		.gone = sio_to_le32(gone),
	};

	if (b->id && !smartiod_borrow_lost(b))
		smartiod_notify(d, b->node, &msg, sizeof(msg));
}

void smartiod_borrow_session_end(struct smartiod *d, struct smartiod_session *s)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	smartiod_dma_handles_end(d, s);
	while ((n = smartiod_tree_after(&s->objects, key))) {
		struct smartiod_object *o = SMARTIOD_OF(n, struct smartiod_object, by_handle);

		key = n->key;
		if (o->kind != SMARTIOD_BORROW)
			continue;
		notify_end(d, (struct smartiod_borrow *)o, true);
		borrow_end(d, (struct smartiod_borrow *)o, true);
	}
}

void smartiod_borrow_free_all(struct smartiod *d)
{
	while (d->borrows) {
		struct smartiod_borrow *b = d->borrows;

		d->borrows = b->next;
		while (b->placed) {
			struct smartiod_placed *p = b->placed;

			b->placed = p->next;
			free(p);
		}
		while (b->maps) {
			struct smartiod_bar_map *m = b->maps;

			b->maps = m->next;
			for (unsigned i = 0; i < m->n; i++)
				smartiod_close_fd(d, &m->piece[i].fd);
			free(m);
		}
		while (b->dma) {
			struct smartiod_dma_handle *h = b->dma;

			b->dma = h->next;
			smartiod_object_remove(&h->o);
			free(h);
		}
		smartiod_object_remove(&b->o);
		smartiod_vectors_forget(b);
		smartiod_made_forget(b);
		forget_peers(b);
		free(b);
	}
}

/* Of a borrow over one adapter: the lender's that it has already; SIO_ADAPTER_ANY: none. */
static uint32_t far_adapter(const struct smartiod_borrow *b)
{
	for (const struct smartiod_bar_map *m = b->maps; m; m = m->next)
		if (!m->closed && m->adapter == b->adapter)
			return m->peer_adapter;
	return SIO_ADAPTER_ANY;
}

int smartiod_borrow_path(struct smartiod *d, const struct smartiod_borrow *b, struct sio_path *ret,
			 struct sio_err *reterr)
{
	return smartiod_path_between(d, b->node, b->adapter, far_adapter(b), &d->hops,
				     &b->device->hops, ret, reterr);
}

struct smartiod_borrow *smartiod_borrow_get(struct smartiod_session *s, uint32_t handle,
					    struct sio_err *reterr)
{
	struct smartiod_borrow *b = smartiod_object_get(s, handle, SMARTIOD_BORROW, reterr);

	if (b && !b->id) {
		sio_fail(reterr, -EBADF, "this borrow " SMARTIOD_NOT_YET);
		return NULL;
	}
	if (b && smartiod_borrow_lost(b)) {
		sio_fail(reterr, -ECONNRESET,
			 "device %s is lost: it is gone, or its host or the link to it went down",
			 b->device->topo->name);
		return NULL;
	}
	return b;
}

/* ---- events ---- */

static void notify_client(struct smartiod *d, struct smartiod_borrow *b, uint32_t event,
			  uint64_t gone)
{
	struct sio_evm_device evm = {
		.handle = sio_to_le32(smartiod_handle(&b->o)),
		.event = sio_to_le32(event),
		.generation = sio_to_le32(b->device->generation),
		.borrower = sio_to_le64(gone),
	};

	smartiod_event(d, b->o.session, SIO_EVM_DEVICE, &evm, sizeof(evm), NULL, 0);
}

/* BAR connections of a lost borrow: their pages are nobody's any more. */
static void lose_bars(struct smartiod *d, struct smartiod_borrow *b)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->connections, key))) {
		struct smartiod_connection *c = SMARTIOD_OF(n, struct smartiod_connection, by_id);

		key = n->key;
		if (c->route == SMARTIOD_BAR && c->device == b)
			smartiod_connection_lost(d, c, SCI_CB_LOST);
	}
}

static void lose(struct smartiod *d, struct smartiod_borrow *b)
{
	if (smartiod_borrow_lost(b) || !b->id)
		return;
	enter(d, b, SMARTIOD_BORROW_LOSE);
	SIO_PROBE(smartiod, borrow_lost, b->device->fdid, b->id, b->node);
	notify_client(d, b, SIO_DEVICE_EV_LOST, 0);
	for (struct smartiod_bar_map *m = b->maps; m; m = m->next)
		smartiod_bar_map_lost(d, m);
	lose_bars(d, b);
}

bool smartiod_borrows_of(struct smartiod *d, uint32_t node)
{
	for (const struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->node == node && !smartiod_borrow_ended(b))
			return true;
	return false;
}

void smartiod_borrow_node_down(struct smartiod *d, uint32_t node)
{
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->node == node)
			lose(d, b);
}

void smartiod_borrow_give_up(struct smartiod *d, struct smartiod_borrow *b)
{
	notify_end(d, b, false);
	lose(d, b);
}

/* The lender may have made it when it knew of the link's end already: it is notified. */
void smartiod_borrow_link_lost(struct smartiod *d, uint32_t node)
{
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->node == node && !smartiod_borrow_ended(b)) {
			smartiod_borrow_give_up(d, b);
		}
}

void smartiod_borrows_late(struct smartiod *d, const struct smartiod_session *s)
{
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->o.session == s && b->node != d->node)
			smartiod_borrow_give_up(d, b);
}

/* Does its program reach BARs or device segments over this path? Of DMA the lender knows. */
static bool uses_path(struct smartiod *d, const struct smartiod_borrow *b, uint32_t adapter,
		      uint32_t peer_adapter)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	for (const struct smartiod_bar_map *m = b->maps; m; m = m->next)
		if (m->adapter == adapter && m->peer_adapter == peer_adapter)
			return true;
	while ((n = smartiod_tree_after(&d->connections, key))) {
		const struct smartiod_connection *c =
			SMARTIOD_OF(n, struct smartiod_connection, by_id);

		key = n->key;
		if (c->borrow == b->id && c->node == b->node && c->route == SMARTIOD_REMOTE &&
		    c->adapter == adapter && c->peer_adapter == peer_adapter)
			return true;
	}
	return false;
}

/*
 * Its host is up, but not on this way. A borrow that goes over it has lost stores to the device: it
 * ends, and the program borrows again over what is left.
 */
void smartiod_borrow_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			       uint32_t peer_adapter)
{
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->node == node && b->id && !smartiod_borrow_ended(b) &&
		    !smartiod_borrow_lost(b) && uses_path(d, b, adapter, peer_adapter)) {
			smartiod_borrow_give_up(d, b);
		}
}

void smartiod_borrows_forbidden(struct smartiod *d, const struct smartiod_forbid *f)
{
	struct sio_err why;

	for (struct smartiod_borrow *b = d->borrows; b; b = b->next) {
		const struct sio_policy_thing thing =
			smartiod_thing_device(d, b->node, b->device->topo->name);
		const struct smartiod_session *s = b->o.session;

		if (!s || !b->id || smartiod_borrow_ended(b) || smartiod_borrow_lost(b) ||
		    !smartiod_forbids_program(&f->topology->policy, s, &thing, &why))
			continue;
		smartiod_report(d, f->enforce ? SIO_RELOAD_ENDS : SIO_RELOAD_STAYS,
				"borrow of process %" PRIu32 ": %s", s->pid, why.text);
		if (!f->act)
			continue;
		smartiod_borrow_give_up(d, b);
	}
}

void smartiod_borrows_parting(struct smartiod *d, uint32_t node)
{
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->node == node && b->o.session && b->id && !smartiod_borrow_ended(b) &&
		    !smartiod_borrow_lost(b))
			smartiod_report(d, SIO_RELOAD_ENDS, "borrow of process %" PRIu32 ": %s",
					b->o.session->pid, b->device->topo->name);
}

void smartiod_borrow_device_gone(struct smartiod *d, struct smartiod_device *dev)
{
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->device == dev)
			lose(d, b);
}

static void borrow_lost(struct smartiod *d, uint32_t node, uint64_t id)
{
	for (struct smartiod_borrow *b = d->borrows; id && b; b = b->next)
		if (b->node == node && b->id == id)
			lose(d, b);
}

void smartiod_borrow_doorbells_gone(struct smartiod *d, struct smartiod_device *dev, uint64_t id)
{
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next)
		for (struct smartiod_bar_map *m = b->maps; m; m = m->next)
			if (b->device == dev && b->id == id)
				smartiod_bar_map_doorbells_gone(d, m);
}

/* Whoever is just coming back hears of it when it has said what it knows (restore_device.c). */
static void heard_of_reset(struct smartiod_borrow *b)
{
	if (b->o.session && b->o.session->state != SMARTIOD_RESTORING)
		b->generation = b->device->generation;
}

static void borrow_event(struct smartiod *d, struct smartiod_device *dev, uint64_t id,
			 uint32_t event, uint64_t gone)
{
	if (event == SIO_DEVICE_EV_RESET)
		smartiod_borrow_doorbells_gone(d, dev, id);
	if (event == SIO_DEVICE_EV_RESTARTED)
		event = SIO_DEVICE_EV_RESET;
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next) {
		if (b->device != dev || b->id != id || smartiod_borrow_lost(b))
			continue;
		if (event == SIO_DEVICE_EV_RESET)
			heard_of_reset(b);
		notify_client(d, b, event, gone);
	}
}

int smartiod_peer_device_event(struct smartiod *d, const struct smartiod_from *from,
			       const void *msg, struct sio_err *reterr)
{
	const struct sio_peer_device_event *m = msg;
	uint32_t event = sio_from_le32(m->event);
	struct smartiod_device *dev = smartiod_device_find(d, sio_from_le32(m->fdid), reterr);

	if (!dev || dev->node != from->node || event < SIO_DEVICE_EV_BORROWER_GONE ||
	    event >= SIO_DEVICE_EVENTS)
		return sio_fail(reterr, -EPROTO,
				"event %" PRIu32 " of device %#" PRIx32
				", which is not node %" PRIu32 "'s",
				event, sio_from_le32(m->fdid), from->node);
	dev->generation = sio_from_le32(m->generation);
	if (event == SIO_DEVICE_EV_RESET || event == SIO_DEVICE_EV_RESTARTED)
		smartiod_held_reset(d, dev);
	borrow_event(d, dev, sio_from_le64(m->borrower), event, sio_from_le64(m->gone));
	return 0;
}

int smartiod_peer_borrow_lost(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_borrower *m = msg;

	(void)reterr;
	borrow_lost(d, from->node, sio_from_le64(m->borrower));
	return 0;
}

/* ---- BORROW ---- */

static void borrow_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_borrow *b = ((struct smartiod_borrow_op *)op)->borrow;
	const struct sio_prep_borrow *rep = a->msg;
	struct sio_rep_dev_borrow reply;

	if (a->error || !sio_from_le64(rep->borrower)) {
		if (a->error)
			smartiod_op_error(d, op, a->error, "%s", a->text);
		else /* none is called so: it would seem to be without an answer */
			smartiod_op_error(d, op, -EPROTO, "the lender gives the borrow no number");
		enter(d, b, SMARTIOD_BORROW_END);
		smartiod_object_remove(&b->o);
	} else if (!op->session) {
		smartiod_borrow_lent(d, b, sio_from_le64(rep->borrower));
		notify_end(d, b, false);
		enter(d, b, SMARTIOD_BORROW_END);
		smartiod_object_remove(&b->o); /* its session may not have come so far yet */
	} else {
		smartiod_borrow_lent(d, b, sio_from_le64(rep->borrower));
		b->ticket = sio_from_le64(rep->ticket);
		b->generation = b->device->generation = sio_from_le32(rep->generation);
		SIO_PROBE(smartiod, borrow, b->device->fdid, b->id, b->node);
		reply = (struct sio_rep_dev_borrow){
			.handle = sio_to_le32(smartiod_handle(&b->o)),
			.generation = rep->generation,
			.borrower = rep->borrower,
		};
		smartiod_device_info(d, b->device, &reply.info);
		if (b->node != d->node)
			reply.seal = sio_to_le64(
				smartiod_borrow_seal(op->session, smartiod_handle(&b->o), b->id,
						     b->device->fdid, &reply.info));
		smartiod_op_reply(d, op, &reply, sizeof(reply), NULL, 0);
	}
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

struct smartiod_borrow *smartiod_borrow_new(struct smartiod *d, struct smartiod_session *s,
					    struct smartiod_device *dev, struct sio_err *reterr)
{
	struct smartiod_borrow *b = calloc(1, sizeof(*b));

	if (!b) {
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return NULL;
	}
	if (smartiod_object_add(s, &b->o, SMARTIOD_BORROW, reterr) < 0) {
		free(b);
		return NULL;
	}
	smartiod_account_add(&s->program->account, &b->charge, SIO_QUOTA_BORROWS, 1);
	b->device = dev;
	b->node = dev->node;
	b->adapter = SIO_ADAPTER_ANY;
	b->pins = 1;
	b->next = d->borrows;
	d->borrows = b;
	return b;
}

int smartiod_dev_borrow(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_dev_borrow *m = msg;
	uint32_t flags = sio_from_le32(m->flags);
	/* 0 becomes SIO_ADAPTER_ANY. */
	const uint32_t over = sio_from_le32(m->over) - 1;
	struct sio_peer_borrow ask = {
		.h.type = sio_to_le32(SIO_PEER_BORROW),
		.session = sio_to_le64(s->client),
		.fdid = m->fdid,
		.exclusive = sio_to_le32((flags & SCI_FLAG_EXCLUSIVE) != 0),
		.pid = sio_to_le32(s->pid),
	};
	struct sio_policy_thing thing;
	struct smartiod_device *dev;
	struct smartiod_borrow_op *op;
	struct sio_path path;

	if (flags & ~SCI_FLAG_EXCLUSIVE)
		return sio_fail(reterr, -EINVAL,
				"flags %#" PRIx32 " do not belong to "
				"SCIBorrowDevice",
				flags & ~SCI_FLAG_EXCLUSIVE);
	dev = smartiod_device_find(d, sio_from_le32(m->fdid), reterr);
	if (!dev)
		return reterr->code;
	thing = smartiod_thing_device(d, dev->node, dev->topo->name);
	if (smartiod_allow_program(d, s, &thing, reterr) < 0)
		return reterr->code = -EPERM;
	if (smartiod_quota_program(d, s, SIO_QUOTA_BORROWS, 1, reterr) < 0)
		return reterr->code;
	if (over != SIO_ADAPTER_ANY && dev->node != d->node &&
	    smartiod_path(d, dev->node, over, &path, reterr) < 0)
		return reterr->code;
	op = smartiod_op_new(d, s, msg, sizeof(*op), borrow_step, reterr);
	if (!op)
		return reterr->code;
	op->borrow = smartiod_borrow_new(d, s, dev, reterr);
	if (!op->borrow) {
		smartiod_op_free(d, &op->op);
		return reterr->code;
	}
	op->borrow->adapter = over;
	smartiod_ask(d, &op->op, dev->node, &ask, sizeof(ask));
	return 0;
}

/* ---- requests that only the lender answers: a borrow, and yes or no ---- */

static void bare_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_borrow *b = ((struct smartiod_borrow_op *)op)->borrow;

	if (a->error)
		smartiod_op_error(d, op, a->error, "%s", a->text);
	else
		smartiod_op_ok(d, op);
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

int smartiod_borrow_ask(struct smartiod *d, struct smartiod_session *s, const void *request,
			struct smartiod_borrow *b, smartiod_step *step, uint64_t number, void *msg,
			size_t len, struct sio_err *reterr)
{
	struct smartiod_borrow_op *op =
		smartiod_op_new(d, s, request, sizeof(*op), step ? step : bare_step, reterr);

	if (!op)
		return reterr->code;
	op->borrow = b;
	op->number = number;
	b->pins++;
	smartiod_ask(d, &op->op, b->node, msg, len);
	return 0;
}

static int ask_borrower(struct smartiod *d, struct smartiod_session *s, const void *request,
			uint32_t type, uint32_t flags, smartiod_step *step, struct sio_err *reterr)
{
	const struct sio_msg_handle *m = request;
	struct sio_peer_borrower ask = {.h.type = sio_to_le32(type)};
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->handle), reterr);

	if (!b)
		return reterr->code;
	if (sio_from_le32(m->flags) & ~flags)
		return sio_fail(reterr, -EINVAL, "flags %#" PRIx32 ": %#" PRIx32 " are right",
				sio_from_le32(m->flags), flags);
	ask.borrower = sio_to_le64(b->id);
	ask.fdid = sio_to_le32(b->device->fdid);
	ask.keep = m->flags;
	return smartiod_borrow_ask(d, s, request, b, step, 0, &ask, sizeof(ask), reterr);
}

static void release_step(struct smartiod *d, struct smartiod_op *op,
			 const struct smartiod_answer *a)
{
	((struct smartiod_borrow_op *)op)->borrow->released |= !a->error;
	bare_step(d, op, a);
}

int smartiod_dev_release_exclusive(struct smartiod *d, struct smartiod_session *s, const void *msg,
				   struct sio_err *reterr)
{
	return ask_borrower(d, s, msg, SIO_PEER_RELEASE_EXCLUSIVE, 0, release_step, reterr);
}

int smartiod_dev_reset(struct smartiod *d, struct smartiod_session *s, const void *msg,
		       struct sio_err *reterr)
{
	return ask_borrower(d, s, msg, SIO_PEER_RESET, SIO_RESET_KEEP, NULL, reterr);
}

int smartiod_dev_notify(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	return ask_borrower(d, s, msg, SIO_PEER_NOTIFY, 0, NULL, reterr);
}

int smartiod_dev_settled(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_msg_dev_settled *m = msg;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct sio_peer_settled ask = {.h.type = sio_to_le32(SIO_PEER_SETTLED),
				       .settled = m->borrower,
				       .reason = m->reason};

	if (!b)
		return reterr->code;
	ask.borrower = sio_to_le64(b->id);
	ask.fdid = sio_to_le32(b->device->fdid);
	return smartiod_borrow_ask(d, s, msg, b, NULL, 0, &ask, sizeof(ask), reterr);
}

/* ---- RETURN ---- */

static void return_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_borrow *b = ((struct smartiod_borrow_op *)op)->borrow;

	/*
	 * Whatever the lender says: it is gone, or the borrow ended by the notification of a
	 * time-out.
	 */
	if (a->error)
		notify_end(d, b, false);
	smartiod_op_ok(d, op);
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

int smartiod_dev_return(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	struct sio_peer_borrower ask = {.h.type = sio_to_le32(SIO_PEER_RETURN)};
	struct smartiod_borrow *b;
	struct smartiod_borrow_op *op;

	b = smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_BORROW, reterr);
	if (!b)
		return reterr->code;
	if (!b->id)
		return sio_fail(reterr, -EBADF, "this borrow " SMARTIOD_NOT_YET);
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "SCIReturnDevice takes no flags");
	if (smartiod_shadow_is_of(b))
		return sio_fail(reterr, -EBUSY, "%s is plugged in: smartio_unplug() comes first",
				b->device->topo->name);
	if (b->users || b->pins)
		return sio_fail(reterr, -EBUSY,
				"%s: %u connections to its BARs and mappings for it are left",
				b->device->topo->name, b->users);
	if (smartiod_borrow_lost(b)) {
		borrow_end(d, b, false);
		smartiod_reply_ok(d, s, msg);
		return 0;
	}
	op = smartiod_op_new(d, s, msg, sizeof(*op), return_step, reterr);
	if (!op)
		return reterr->code;
	op->borrow = b;
	b->pins++;
	ask.borrower = sio_to_le64(b->id);
	ask.fdid = sio_to_le32(b->device->fdid);
	borrow_end(d, b, false);
	smartiod_ask(d, &op->op, b->node, &ask, sizeof(ask));
	return 0;
}
