/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accesses that a peer's machine carries out itself: to its devices, and its interrupt messages.
 * Those that it has not answered yet are kept here, from which follows which adapter waits for
 * which.
 *
 * An access that the peer's bus refuses rests for a moment and is sent again, some times: QEMU lets
 * nobody reach a device's registers while it is busy with that device (a drive that ends the
 * commands of a deleted queue, say), which no hardware does. What its adapter sends to that machine
 * meanwhile rests behind it. What was under way by then may have passed it; a store that a later
 * one to the same place has passed is over, as if it had come first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "emu/ntb/inside.h"

static struct emu_ntb_last *place_of(struct emu_ntb_adapter *a, uint64_t address)
{
	uint64_t hash = address * 0x9e3779b97f4a7c15u;

	return &a->last[hash >> 32 & (EMU_NTB_LAST - 1)];
}

static void remember(const struct emu_ntb_access *x, const void *data)
{
	struct emu_ntb_last *l = place_of(x->from, x->address);

	if (x->len > sizeof(l->value))
		return;
	*l = (struct emu_ntb_last){
		.peer = x->to, .start = x->to->start, .address = x->address, .len = x->len};
	memcpy(l->value, data, x->len);
}

void emu_ntb_recall(const struct emu_ntb_adapter *a, const struct emu_ntb_adapter *peer,
		    uint64_t address, void *buf, size_t len)
{
	const struct emu_ntb_last *l = place_of((struct emu_ntb_adapter *)(uintptr_t)a, address);

	if (l->peer == peer && l->start == peer->start && l->address == address && l->len == len)
		memcpy(buf, l->value, len);
	else
		memset(buf, 0xff, len);
}

void emu_ntb_refused(struct emu_ntb_adapter *a, struct emu_ntb_row *row, bool read, uint64_t offset,
		     uint64_t address, size_t len, uint32_t reason)
{
	/* Adapters of the own machine, any of them, have no row in the table. */
	bool has_peer = row && row != &row->peer->own;
	struct emu_ntb_fault fault = {.kind = read ? SIO_VNTB_FAULT_READ : 0,
				      .row = has_peer ? (uint32_t)(row - a->row) : EMU_NTB_NOWHERE,
				      .address = offset,
				      .length = (uint32_t)len,
				      .reason = reason};

	emu_ntb_fault(a, fault);
	if (has_peer && reason == SIO_VNTB_REASON_LINK)
		row->errors++;
	/* The peer is notified of what reached it. */
	if (reason != SIO_VNTB_REASON_RANGE && reason != SIO_VNTB_REASON_RIGHT &&
	    reason != SIO_VNTB_REASON_PEER)
		return;
	if (!has_peer || row->peer->emulated)
		return;
	fault.kind |= SIO_VNTB_FAULT_IN;
	fault.row = row->self;
	fault.address = address;
	emu_ntb_fault(row->peer, fault);
}

/* A read that is not waited for any more; what comes of it is discarded. */
static void give_up(struct emu_ntb_access *x, uint32_t reason)
{
	uint8_t *ones = malloc(x->len);
	int ticket = x->ticket;

	x->ticket = -1;
	if (ones)
		memset(ones, 0xff, x->len);
	emu_ntb_count_both(x->from, x->to, EMU_NTB_ERROR, x->address, x->len);
	if (x->start == x->from->start)
		emu_ntb_refused(x->from, x->row, true, x->offset, x->address, x->len, reason);
	sio_vfio_session_answer(x->from->session, ticket, ones ? 0 : -ENOMEM, ones);
	free(ones);
}

bool emu_ntb_join(const struct emu_ntb_access *access, const void *data)
{
	struct emu_ntb_access *x, *same = NULL;

	DL_FOREACH (access->from->ntb->accesses, x)
		if (x->from == access->from && x->to == access->to && x->range == access->range &&
		    x->start == access->start && !x->read && x->address == access->address &&
		    x->len == access->len)
			same = x;
	if (!same || access->len != sizeof(same->message))
		return false;
	same->again = true;
	memcpy(&same->message, data, sizeof(same->message));
	return true;
}

/* CONTROL of what the access is let in by. A member lets no interrupt messages in. */
static uint32_t control_of(const struct emu_ntb_access *x)
{
	const struct emu_ntb_tables *t = &x->to->tables;

	if (x->range < EMU_NTB_MEMBER)
		return t->range[x->range].control;
	return t->member[x->range - EMU_NTB_MEMBER].control & SIO_VNTB_RANGE_VALID;
}

static bool is_copy(const struct emu_ntb_access *x)
{
	return x->range >= EMU_NTB_MEMBER;
}

static void end(struct emu_ntb_access *x)
{
	DL_DELETE(x->from->ntb->accesses, x);
	x->from->ntb->n_refused -= x->refusals > 0;
	*(x->read ? &x->row->reads : &x->row->writes) -= 1;
	free(x);
}

/* A write comes to nothing, which is reported if its sender is still the same. */
static void lose(struct emu_ntb_access *x, uint32_t reason)
{
	if (x->late) /* it was reported */
		return;
	if (is_copy(x))
		x->from->missed[x->group]++;
	if (x->start == x->from->start)
		emu_ntb_refused(x->from, x->row, false, x->offset, x->address, x->len, reason);
}

static void drop(struct emu_ntb_access *x, uint32_t reason)
{
	if (!x->read)
		lose(x, reason);
	else if (x->ticket >= 0)
		give_up(x, reason);
	end(x);
}

/* Is there somebody who waits for its end? */
static bool has_waiter(const struct emu_ntb_access *x)
{
	return x->read ? x->ticket >= 0 : is_copy(x) && !x->late;
}

/* Its machine has not answered in time: nobody waits any more. Where it rests it goes no more. */
static void expire(struct emu_ntb_access *x)
{
	if (x->read)
		give_up(x, SIO_VNTB_REASON_PEER);
	else
		lose(x, SIO_VNTB_REASON_PEER);
	x->late = true;
	if (x->rests)
		end(x);
}

/* ---- what rests ---- */

#define REST_NS 1000000ull /* the first time, then twice as long each time */
#define REFUSALS 10u	   /* the last one counts: half a second, with all rests */

static bool same_pair(const struct emu_ntb_access *x, const struct emu_ntb_access *y)
{
	return x->from == y->from && x->to->machine == y->to->machine;
}

/* Has another one been refused that was sent before? @x may not be in the list yet. */
static bool is_behind(const struct emu_ntb *n, const struct emu_ntb_access *x)
{
	const struct emu_ntb_access *y;

	if (!n->n_refused)
		return false;
	DL_FOREACH (n->accesses, y) {
		if (y == x)
			break;
		if (y->refusals && same_pair(x, y))
			return true;
	}
	return false;
}

/* A later store goes to the same place; each interrupt message is one of its own. */
static bool is_passed(const struct emu_ntb_access *x)
{
	const struct emu_ntb_access *y;

	if (x->read || control_of(x) & SIO_VNTB_RANGE_MESSAGE)
		return false;
	for (y = x->next; y; y = y->next)
		if (!y->read && same_pair(x, y) && y->address == x->address && y->len == x->len)
			return true;
	return false;
}

/* Does somebody still want it, and may it still go there? */
static bool is_wanted(const struct emu_ntb_access *x)
{
	return x->start == x->from->start && !x->late && (!x->read || x->ticket >= 0) &&
	       control_of(x) & SIO_VNTB_RANGE_VALID && x->to->session &&
	       emu_ntb_reaches(x->from, x->to);
}

static void rest(struct emu_ntb_access *x)
{
	struct emu_ntb *n = x->from->ntb;
	bool first = x->refusals++ == 0;

	n->n_refused += first;
	x->rests = EMU_NTB_BEHIND;
	if (first && is_behind(n, x))
		return;
	x->rests = n->ops->now(n->ctx) + (REST_NS << (x->refusals - 1));
	n->ops->alarm(n->ctx, x->rests);
}

static void done(void *arg, int rc, const void *data, size_t len);

static int dispatch(struct emu_ntb_access *x)
{
	struct sio_vfio_session *s = x->to->session;

	x->rests = 0;
	if (x->read)
		return sio_vfio_session_dma_read(s, x->address, x->len, done, x);
	return sio_vfio_session_dma_write(s, x->address, x->data, x->len, done, x);
}

/* What rests between the two goes on: up to the first one that was refused, which goes alone. */
static void go_on(struct emu_ntb *n, const struct emu_ntb_adapter *from,
		  const struct emu_ntb_adapter *to)
{
	const uint64_t now = n->ops->now(n->ctx);
	struct emu_ntb_access *x, *next;
	bool alone = false;

	DL_FOREACH_SAFE (n->accesses, x, next) {
		if (x->from != from || x->to->machine != to->machine)
			continue;
		if (alone || (x->refusals && !x->rests) ||
		    (x->rests != EMU_NTB_BEHIND && x->rests > now))
			return;
		if (!x->rests)
			continue;
		alone = x->refusals > 0;
		if (!is_wanted(x) || dispatch(x) < 0) {
			alone = false;
			drop(x, SIO_VNTB_REASON_PEER);
		}
	}
}

/* Sends what rests behind others that are not there any more. */
static void wake(struct emu_ntb *n)
{
	struct emu_ntb_access *x = n->accesses;

	while (x) {
		if (x->rests == EMU_NTB_BEHIND && !is_behind(n, x)) {
			go_on(n, x->from, x->to);
			x = n->accesses; /* some may have ended */
		} else {
			x = x->next;
		}
	}
}

/* ---- what is under way ---- */

/* Sends it again if the range is still granted, to the same start of the sender. */
static void send_again(const struct emu_ntb_access *done)
{
	const struct emu_ntb_range *r = &done->to->tables.range[done->range];
	struct emu_ntb_access x = *done;

	x.again = false;
	x.refusals = 0;
	if (x.start == x.from->start && r->control & SIO_VNTB_RANGE_VALID &&
	    r->control & SIO_VNTB_RANGE_MESSAGE && r->base == x.address)
		emu_ntb_send(&x, &x.message);
}

static void done(void *arg, int rc, const void *data, size_t len)
{
	struct emu_ntb_access *x = arg;
	struct emu_ntb *n = x->from->ntb;
	bool refused = rc < 0 && rc != -EPIPE && is_wanted(x), was_refused = x->refusals > 0;

	if (refused && is_passed(x)) {
		rc = 0;
	} else if (refused && x->refusals + 1 < REFUSALS) {
		rest(x);
		return;
	}
	if (x->read && x->ticket >= 0 && rc == 0 && len == x->len) {
		remember(x, data);
		emu_ntb_count_both(x->from, x->to, EMU_NTB_ANSWER, x->address, x->len);
		sio_vfio_session_answer(x->from->session, x->ticket, 0, data);
		x->ticket = -1;
	}
	if (x->again && rc == 0)
		send_again(x);
	if (rc < 0 || x->ticket >= 0)
		drop(x, rc == -EPIPE ? SIO_VNTB_REASON_LINK : SIO_VNTB_REASON_PEER);
	else
		end(x);
	if (was_refused)
		wake(n);
}

int emu_ntb_send(const struct emu_ntb_access *access, const void *data)
{
	struct emu_ntb *n = access->from->ntb;
	struct emu_ntb_access *x = malloc(sizeof(*x) + (access->read ? 0 : access->len));
	int rc = 0;

	if (!x)
		return -ENOMEM;
	*x = *access;
	if (!x->read)
		memcpy(x->data, data, x->len);
	if (is_behind(n, x))
		x->rests = EMU_NTB_BEHIND;
	else
		rc = dispatch(x);
	if (rc < 0) {
		free(x);
		return rc;
	}
	*(x->read ? &x->row->reads : &x->row->writes) += 1;
	DL_APPEND(n->accesses, x);
	if (has_waiter(x)) {
		x->deadline = n->ops->now(n->ctx) + EMU_NTB_PATIENCE_NS;
		n->ops->alarm(n->ctx, x->deadline);
	}
	return 0;
}

bool emu_ntb_waits(const struct emu_ntb *n, const struct emu_ntb_adapter *to,
		   const struct emu_ntb_adapter *from)
{
	bool *held = calloc(n->topo->n_machines, sizeof(*held)), more = true, found;
	const struct emu_ntb_access *x;

	if (!held)
		return true; /* a wrong value at worst; waiting might be for ever */
	held[to->machine] = true;
	while (more) {
		more = false;
		DL_FOREACH (n->accesses, x) {
			if (x->ticket < 0 || !held[x->from->machine] || held[x->to->machine])
				continue;
			held[x->to->machine] = more = true;
		}
	}
	found = held[from->machine];
	free(held);
	return found;
}

bool emu_ntb_is_silent(const struct emu_ntb *n, const struct emu_ntb_adapter *to)
{
	const uint64_t now = n->ops->now(n->ctx);
	const struct emu_ntb_access *x;

	DL_FOREACH (n->accesses, x)
		if (x->deadline && x->deadline <= now && x->to->machine == to->machine)
			return true;
	return false;
}

void emu_ntb_abandon(struct emu_ntb_adapter *a)
{
	struct emu_ntb_access *x, *next;

	DL_FOREACH_SAFE (a->ntb->accesses, x, next) {
		if (x->ticket >= 0 && x->from == a)
			x->ticket = -1;
		else if (x->ticket >= 0 && x->to == a)
			give_up(x, SIO_VNTB_REASON_LINK);
		if (x->rests && x->from == a)
			end(x);
		else if (x->rests && x->to == a)
			drop(x, SIO_VNTB_REASON_LINK);
	}
	wake(a->ntb);
}

void emu_ntb_abandon_cut(struct emu_ntb *n)
{
	struct emu_ntb_access *x, *next;

	DL_FOREACH_SAFE (n->accesses, x, next) {
		if (emu_ntb_reaches(x->from, x->to))
			continue;
		if (x->ticket >= 0)
			give_up(x, SIO_VNTB_REASON_LINK);
		if (x->rests)
			drop(x, SIO_VNTB_REASON_LINK);
	}
	wake(n);
}

uint32_t emu_ntb_pending(const struct emu_ntb_adapter *a, unsigned group)
{
	const struct emu_ntb_access *x;
	uint32_t n = 0;

	DL_FOREACH (a->ntb->accesses, x)
		n += x->from == a && x->start == a->start && is_copy(x) && !x->late &&
		     x->group == group;
	return n;
}

bool emu_ntb_range_busy(const struct emu_ntb_adapter *a, unsigned range)
{
	const struct emu_ntb_access *x;

	DL_FOREACH (a->ntb->accesses, x) {
		if (x->to == a && x->range == range && !x->rests)
			return true;
	}
	return false;
}

void emu_ntb_range_changed(struct emu_ntb_adapter *a, unsigned range)
{
	struct emu_ntb_access *x, *next;

	DL_FOREACH_SAFE (a->ntb->accesses, x, next)
		if (x->to == a && x->range == range && x->rests)
			drop(x, SIO_VNTB_REASON_RANGE);
	wake(a->ntb);
}

void emu_ntb_expire_accesses(struct emu_ntb *n)
{
	uint64_t now = n->ops->now(n->ctx);
	struct emu_ntb_access *x, *next;

	DL_FOREACH_SAFE (n->accesses, x, next) {
		if (x->rests && x->rests <= now)
			x->rests = EMU_NTB_BEHIND;
		if (has_waiter(x) && x->deadline <= now)
			expire(x);
	}
	wake(n);
	DL_FOREACH (n->accesses, x) {
		if (has_waiter(x))
			n->ops->alarm(n->ctx, x->deadline);
		if (x->rests && x->rests != EMU_NTB_BEHIND)
			n->ops->alarm(n->ctx, x->rests);
	}
}
