/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt vectors of borrowed devices: requests of a borrower to the lender (lender/vector.c). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

#define MOST_VECTORS 2048 /* of a function: PCI Express base specification, 7.7.2 */

static void late_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	(void)a; /* if it failed, the vector ends with the borrow */
	smartiod_op_free(d, op);
}

void smartiod_vector_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_vector *rep = reply;
	struct sio_peer_vector ask = {.h.type = sio_to_le32(SIO_PEER_UNVECTOR),
				      .borrower = rep->borrower,
				      .fdid = rep->fdid,
				      .vector = rep->vector};
	struct sio_err err;
	struct smartiod_op *op = smartiod_op_new(d, NULL, NULL, sizeof(*op), late_step, &err);

	if (op)
		smartiod_ask(d, op, node, &ask, sizeof(ask));
}

/* ---- those that are set: the lender's daemon forgets them when it is started again ---- */

/* By its request, or (@asked 0) by its number. */
static struct smartiod_set_vector **find(struct smartiod_borrow *b, uint64_t asked, uint32_t number)
{
	struct smartiod_set_vector **at = &b->vectors;

	while (*at && ((*at)->asked != asked || (!asked && (*at)->number != number)))
		at = &(*at)->next;
	return at;
}

static struct smartiod_set_vector *add(struct smartiod_borrow *b)
{
	struct smartiod_set_vector *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->next = b->vectors;
	return b->vectors = v;
}

static void forget(struct smartiod_set_vector **at)
{
	struct smartiod_set_vector *v = *at;

	if (!v)
		return;
	*at = v->next;
	free(v);
}

int smartiod_vector_known(struct smartiod_borrow *b, uint32_t number, bool leaving,
			  struct sio_err *reterr)
{
	struct smartiod_set_vector *v;

	if (number >= MOST_VECTORS || *find(b, 0, number))
		return sio_fail(reterr, -EINVAL, "vector %" PRIu32 " cannot be restored", number);
	v = add(b);
	if (!v)
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	v->number = number;
	v->leaving = leaving;
	return 0;
}

int smartiod_peer_vector_gone(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_resume_vector *m = msg;
	uint64_t id = sio_from_le64(m->borrower);

	(void)reterr;
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->node == from->node && b->id == id)
			forget(find(b, 0, sio_from_le32(m->vector)));
	return 0;
}

void smartiod_vectors_forget(struct smartiod_borrow *b)
{
	while (b->vectors)
		forget(&b->vectors);
}

/* ---- requests ---- */

static void set_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_borrow *b = ((struct smartiod_borrow_op *)op)->borrow;
	struct smartiod_set_vector **at = find(b, ((struct smartiod_borrow_op *)op)->number, 0);
	struct sio_rep_dev_vector rep = {.vector = sio_to_le32(0)};

	if (a->error) {
		forget(at);
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else {
		rep.vector = ((const struct sio_prep_vector *)a->msg)->vector;
		forget(find(b, 0, sio_from_le32(rep.vector))); /* one that is gone */
		at = find(b, ((struct smartiod_borrow_op *)op)->number, 0);
		(*at)->asked = 0;
		(*at)->number = sio_from_le32(rep.vector);
		smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
	}
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

static uint32_t meetings(struct smartiod *d, const struct smartiod_borrow *b)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, b->node);

	return p ? p->meeting : 0;
}

/* A lender that was asked again, because its answer was lost, has it no more. */
static void take_back_step(struct smartiod *d, struct smartiod_op *op,
			   const struct smartiod_answer *a)
{
	struct smartiod_borrow *b = ((struct smartiod_borrow_op *)op)->borrow;
	struct smartiod_set_vector **at =
		find(b, 0, (uint32_t)((struct smartiod_borrow_op *)op)->number);

	if (!a->error || (*at && a->error == -EBADF && (*at)->meeting != meetings(d, b))) {
		forget(at);
		smartiod_op_ok(d, op);
	} else if (a->error == -EBADF) {
		forget(at);
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else {
		if (*at)
			(*at)->leaving = false;
		smartiod_op_error(d, op, a->error, "%s", a->text);
	}
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

static int ask_lender(struct smartiod *d, struct smartiod_session *s, const void *request,
		      struct smartiod_borrow *b, smartiod_step *step, uint64_t number,
		      struct sio_peer_vector *msg, struct sio_err *reterr)
{
	msg->borrower = sio_to_le64(b->id);
	msg->fdid = sio_to_le32(b->device->fdid);
	return smartiod_borrow_ask(d, s, request, b, step, number, msg, sizeof(*msg), reterr);
}

static void let_devices(struct smartiod *d, const struct smartiod_dint_link *l, uint32_t node)
{
	struct smartiod_dint *dint = NULL;

	if (l->node == d->node)
		dint = smartiod_dint_find(d, SIO_DINT_PLAIN, l->adapter, l->number);
	if (dint)
		smartiod_dint_let_devices(dint, node);
}

void smartiod_vector_sender(struct smartiod *d, struct smartiod_session *s, uint32_t link,
			    uint32_t node)
{
	struct sio_err err;
	const struct smartiod_dint_link *l = smartiod_object_get(s, link, SMARTIOD_DINT_LINK, &err);

	if (l && l->plain)
		let_devices(d, l, node);
}

static int ask_to_set(struct smartiod *d, struct smartiod_session *s, const void *request,
		      struct smartiod_borrow *b, struct sio_peer_vector *msg,
		      struct sio_err *reterr)
{
	struct smartiod_set_vector *v = add(b);
	int rc;

	if (!v)
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	v->asked = smartiod_uid(d);
	rc = ask_lender(d, s, request, b, set_step, v->asked, msg, reterr);
	if (rc < 0)
		forget(find(b, v->asked, 0));
	return rc;
}

int smartiod_dev_vector(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_dev_vector *m = msg;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct sio_peer_vector ask = {.h.type = sio_to_le32(SIO_PEER_VECTOR), .vector = m->vector};
	struct smartiod_dint_link *l;

	if (!b)
		return reterr->code;
	l = smartiod_object_get(s, sio_from_le32(m->link), SMARTIOD_DINT_LINK, reterr);
	if (!l)
		return reterr->code;
	if (l->state == SMARTIOD_SENDER_CONNECTING || l->state == SMARTIOD_SENDER_CONNECTING_LOST)
		return sio_fail(reterr, -EBADF, "this connection " SMARTIOD_NOT_YET);
	if (!l->plain)
		return sio_fail(reterr, -EINVAL,
				"a device cannot send data: an interrupt without data is right");
	if (l->state != SMARTIOD_SENDER_CONNECTED)
		return sio_fail(reterr, -ECONNRESET,
				"the connection to interrupt %" PRIu32 " of node %" PRIu32
				" is lost",
				l->number, l->node);
	ask.node = sio_to_le32(l->node);
	ask.number = sio_to_le32(l->number);
	ask.adapter = sio_to_le32(l->node == d->node ? l->adapter : l->peer_adapter);
	let_devices(d, l, b->node);
	return ask_to_set(d, s, msg, b, &ask, reterr);
}

int smartiod_dev_unvector(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_msg_dev_vector *m = msg;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct sio_peer_vector ask = {.h.type = sio_to_le32(SIO_PEER_UNVECTOR),
				      .vector = m->vector};
	struct smartiod_set_vector *v;
	int rc;

	if (!b)
		return reterr->code;
	if (m->link)
		return sio_fail(reterr, -EINVAL, "link %" PRIu32 ", 0 is right",
				sio_from_le32(m->link));
	v = *find(b, 0, sio_from_le32(m->vector));
	if (v && !v->leaving) {
		v->leaving = true;
		v->meeting = meetings(d, b);
	}
	rc = ask_lender(d, s, msg, b, take_back_step, sio_from_le32(m->vector), &ask, reterr);
	if (rc < 0 && v)
		v->leaving = false;
	return rc;
}
