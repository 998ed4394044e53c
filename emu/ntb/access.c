/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accesses that a peer's machine carries out itself: to its devices, and its interrupt messages.
 * Those that it has not answered yet are kept here, from which follows which adapter waits for
 * which.
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
	struct emu_ntb_fault fault = {.kind = read ? SIO_VNTB_FAULT_READ : 0,
				      .row = row ? (uint32_t)(row - a->row) : EMU_NTB_NOWHERE,
				      .address = offset,
				      .length = (uint32_t)len,
				      .reason = reason};

	emu_ntb_fault(a, fault);
	if (row && reason == SIO_VNTB_REASON_LINK)
		row->errors++;
	/* The peer is notified of what reached it. */
	if (reason != SIO_VNTB_REASON_RANGE && reason != SIO_VNTB_REASON_RIGHT &&
	    reason != SIO_VNTB_REASON_PEER)
		return;
	if (row->peer->emulated)
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

/* Sends it again if the range is still granted, to the same start of the sender. */
static void send_again(const struct emu_ntb_access *done)
{
	const struct emu_ntb_range *r = &done->to->tables.range[done->range];
	struct emu_ntb_access x = *done;

	x.again = false;
	if (x.start == x.from->start && r->control & SIO_VNTB_RANGE_VALID &&
	    r->control & SIO_VNTB_RANGE_MESSAGE && r->base == x.address)
		emu_ntb_send(&x, &x.message);
}

static void done(void *arg, int rc, const void *data, size_t len)
{
	struct emu_ntb_access *x = arg;
	uint32_t reason = rc == -EPIPE ? SIO_VNTB_REASON_LINK : SIO_VNTB_REASON_PEER;

	DL_DELETE(x->from->ntb->accesses, x);
	*(x->read ? &x->row->reads : &x->row->writes) -= 1;
	if (x->read && x->ticket >= 0 && rc == 0 && len == x->len) {
		remember(x, data);
		emu_ntb_count_both(x->from, x->to, EMU_NTB_ANSWER, x->address, x->len);
		sio_vfio_session_answer(x->from->session, x->ticket, 0, data);
	} else if (x->read && x->ticket >= 0) {
		give_up(x, reason);
	} else if (!x->read && rc < 0 && x->start == x->from->start) {
		emu_ntb_refused(x->from, x->row, false, x->offset, x->address, x->len, reason);
	}
	if (x->again && rc == 0)
		send_again(x);
	free(x);
}

int emu_ntb_send(const struct emu_ntb_access *access, const void *data)
{
	struct emu_ntb *n = access->from->ntb;
	struct emu_ntb_access *x = malloc(sizeof(*x));
	int rc;

	if (!x)
		return -ENOMEM;
	*x = *access;
	if (x->read)
		rc = sio_vfio_session_dma_read(x->to->session, x->address, x->len, done, x);
	else
		rc = sio_vfio_session_dma_write(x->to->session, x->address, data, x->len, done, x);
	if (rc < 0) {
		free(x);
		return rc;
	}
	*(x->read ? &x->row->reads : &x->row->writes) += 1;
	DL_APPEND(n->accesses, x);
	if (x->read) {
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
		if (x->read && x->deadline <= now && x->to->machine == to->machine)
			return true;
	return false;
}

void emu_ntb_abandon(struct emu_ntb_adapter *a)
{
	struct emu_ntb_access *x;

	DL_FOREACH (a->ntb->accesses, x) {
		if (x->ticket >= 0 && x->from == a)
			x->ticket = -1;
		else if (x->ticket >= 0 && x->to == a)
			give_up(x, SIO_VNTB_REASON_LINK);
	}
}

void emu_ntb_abandon_cut(struct emu_ntb *n)
{
	struct emu_ntb_access *x;

	DL_FOREACH (n->accesses, x) {
		if (x->ticket >= 0 && !emu_ntb_joined(x->from, x->to))
			give_up(x, SIO_VNTB_REASON_LINK);
	}
}

bool emu_ntb_range_busy(const struct emu_ntb_adapter *a, unsigned range)
{
	const struct emu_ntb_access *x;

	DL_FOREACH (a->ntb->accesses, x) {
		if (x->to == a && x->range == range)
			return true;
	}
	return false;
}

void emu_ntb_expire_reads(struct emu_ntb *n)
{
	uint64_t now = n->ops->now(n->ctx);
	struct emu_ntb_access *x;

	DL_FOREACH (n->accesses, x) {
		if (x->ticket < 0)
			continue;
		if (x->deadline > now) {
			/* All wait equally long: the others came later. */
			n->ops->alarm(n->ctx, x->deadline);
			return;
		}
		give_up(x, SIO_VNTB_REASON_PEER);
	}
}
