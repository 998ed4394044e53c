/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks the tables of the rooms, and delivers messages of this host to itself (loopback). */
#include <errno.h>
#include <stdio.h>

#include "smartiod/base/room.h"
#include "wire/check.h"

/* ---- one entry ---- */

const struct smartiod_request *smartiod_room_request(const struct smartiod *d, uint32_t type)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		for (const struct smartiod_request *e = d->rooms[i]->requests; e && e->fn; e++)
			if (e->type == type)
				return e;
	return NULL;
}

int smartiod_room_message(struct smartiod *d, uint32_t type, const struct smartiod_from *from,
			  const void *msg, struct sio_err *reterr)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		for (const struct smartiod_message *m = d->rooms[i]->messages; m && m->fn; m++)
			if (m->type == type)
				return m->fn(d, from, msg, reterr);
	return sio_fail(reterr, -EPROTO, "message %u is not known", type);
}

void smartiod_peer_late(struct smartiod *d, uint32_t node, const struct sio_msg *msg)
{
	uint32_t type = SIO_PEER_TYPE(sio_from_le32(msg->type));

	for (unsigned i = 0; d->rooms[i]; i++)
		for (const struct smartiod_late *l = d->rooms[i]->late; l && l->fn; l++)
			if (l->type == type)
				l->fn(d, node, msg);
}

const struct smartiod_kind_ops *smartiod_room_kind(const struct smartiod *d,
						   enum smartiod_kind kind)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		for (const struct smartiod_kind_ops *e = d->rooms[i]->kinds; e && e->drop; e++)
			if (e->kind == kind)
				return e;
	return NULL;
}

const struct smartiod_rows *smartiod_room_rows(const struct smartiod *d, uint32_t kind)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		for (const struct smartiod_rows *e = d->rooms[i]->rows; e && e->row; e++)
			if (e->kind == kind)
				return e;
	return NULL;
}

const struct smartiod_restorable *smartiod_room_restorable(const struct smartiod *d, uint32_t type)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		for (const struct smartiod_restorable *e = d->rooms[i]->restores; e && e->fn; e++)
			if (e->type == type)
				return e;
	return NULL;
}

/* ---- start ---- */

static unsigned count(const struct smartiod *d)
{
	unsigned n = 0;

	while (d->rooms[n])
		n++;
	return n;
}

void smartiod_start_rooms(struct smartiod *d)
{
	d->starting = count(d);
	smartiod_started(d);
}

void smartiod_started(struct smartiod *d)
{
	while (d->starting > 0)
		if (d->rooms[--d->starting]->start) {
			d->rooms[d->starting]->start(d);
			return;
		}
}

void smartiod_rooms_ready(struct smartiod *d)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->ready)
			d->rooms[i]->ready(d);
}

/* ---- all rooms ---- */

void smartiod_imports_lost(struct smartiod *d, uint32_t node, enum smartiod_loss why)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->imports_lost)
			d->rooms[i]->imports_lost(d, node, why);
}

void smartiod_exports_end(struct smartiod *d, uint32_t node, enum smartiod_loss why)
{
	for (unsigned i = count(d); i-- > 0;)
		if (d->rooms[i]->exports_end)
			d->rooms[i]->exports_end(d, node, why);
}

bool smartiod_borrows(struct smartiod *d, uint32_t node)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->borrows && d->rooms[i]->borrows(d, node))
			return true;
	return false;
}

int smartiod_allow_device(struct smartiod *d, uint32_t fdid, uint32_t node, struct sio_err *reterr)
{
	int rc = 0;

	for (unsigned i = 0; d->rooms[i] && rc == 0; i++)
		if (d->rooms[i]->allow_device)
			rc = d->rooms[i]->allow_device(d, fdid, node, reterr);
	return rc;
}

bool smartiod_lends(struct smartiod *d, uint32_t node)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->lends && d->rooms[i]->lends(d, node))
			return true;
	return false;
}

bool smartiod_maps_for(struct smartiod *d, uint32_t node, uint64_t uid, uint64_t offset,
		       uint64_t bytes)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->maps_for && d->rooms[i]->maps_for(d, node, uid, offset, bytes))
			return true;
	return false;
}

void smartiod_owner_gone(struct smartiod *d, uint64_t owner)
{
	for (unsigned i = count(d); i-- > 0;)
		if (d->rooms[i]->owner_gone)
			d->rooms[i]->owner_gone(d, owner);
}

void smartiod_device_opened(struct smartiod *d, struct smartiod_device *dev, bool fresh)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->device_opened)
			d->rooms[i]->device_opened(d, dev, fresh);
}

void smartiod_device_gone(struct smartiod *d, struct smartiod_device *dev)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->device_gone)
			d->rooms[i]->device_gone(d, dev);
}

void smartiod_doorbells_gone(struct smartiod *d, struct smartiod_device *dev, uint64_t borrow)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->doorbells_gone)
			d->rooms[i]->doorbells_gone(d, dev, borrow);
}

bool smartiod_segment_idle(struct smartiod *d, struct smartiod_segment *seg)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->segment_idle && d->rooms[i]->segment_idle(d, seg))
			return true;
	return false;
}

void smartiod_segment_mapped(struct smartiod *d, struct smartiod_segment *seg)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->segment_mapped)
			d->rooms[i]->segment_mapped(d, seg);
}

unsigned smartiod_own_mappings(struct smartiod *d, const struct smartiod_segment *seg)
{
	unsigned n = 0;

	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->own_mappings)
			n += d->rooms[i]->own_mappings(d, seg);
	return n;
}

bool smartiod_has_grant(struct smartiod *d, uint32_t node, uint64_t grant)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->has_grant && d->rooms[i]->has_grant(d, node, grant))
			return true;
	return false;
}

void smartiod_irq_ends(struct smartiod *d, uint64_t irq)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->irq_ends)
			d->rooms[i]->irq_ends(d, irq);
}

/* ---- this host as a peer of its own ---- */

static int ask_ourselves(struct smartiod *d, struct smartiod_op *op, const void *msg,
			 struct sio_err *reterr)
{
	const struct smartiod_from from = {.node = d->node, .back = op};
	const struct sio_msg *h = msg;

	return smartiod_room_message(d, sio_from_le32(h->type), &from, msg, reterr);
}

void smartiod_ask(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg, size_t len)
{
	struct sio_err err = {.text = "the lender cannot be reached"};
	struct smartiod_answer a = {.text = err.text};

	if (node == d->node)
		a.error = ask_ourselves(d, op, msg, &err);
	else
		a.error = smartiod_peer_ask(d, op, node, msg, len);
	if (a.error == 0)
		return;
	a.reason = sio_err_reason(&err, a.error);
	smartiod_op_step(d, op, &a);
}

void smartiod_notify(struct smartiod *d, uint32_t node, void *msg, size_t len)
{
	struct sio_err err;

	if (node == d->node)
		ask_ourselves(d, NULL, msg, &err);
	else
		smartiod_peer_send(d, node, msg, len);
}

void smartiod_from_reply(struct smartiod *d, const struct smartiod_from *from, const void *request,
			 void *msg, size_t len)
{
	const struct sio_msg *h = request;
	struct smartiod_answer a = {.text = "", .msg = msg, .len = len};

	if (from->back)
		smartiod_op_step(d, from->back, &a);
	else
		smartiod_peer_reply(d, from->node, sio_from_le32(h->type), sio_from_le32(h->id),
				    msg, len);
}
