/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt vectors of borrowed devices: requests of a borrower to the lender (lender/vector.c). */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

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

static void ask_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_borrow *b = ((struct smartiod_borrow_op *)op)->borrow;
	struct sio_rep_dev_vector rep = {.vector = sio_to_le32(0)};

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else if (op->type == SIO_MSG_DEV_VECTOR) {
		b->vectors++;
		rep.vector = ((const struct sio_prep_vector *)a->msg)->vector;
		smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
	} else {
		b->vectors -= b->vectors > 0;
		smartiod_op_ok(d, op);
	}
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

static int ask_lender(struct smartiod *d, struct smartiod_session *s, const void *request,
		      struct smartiod_borrow *b, struct sio_peer_vector *msg,
		      struct sio_err *reterr)
{
	msg->borrower = sio_to_le64(b->id);
	msg->fdid = sio_to_le32(b->device->fdid);
	return smartiod_borrow_ask(d, s, request, b, ask_step, 0, msg, sizeof(*msg), reterr);
}

int smartiod_dev_vector(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_dev_vector *m = msg;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct sio_peer_vector ask = {.h.type = sio_to_le32(SIO_PEER_VECTOR), .vector = m->vector};
	struct smartiod_dint_link *l;
	struct smartiod_dint *dint;

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
	if (l->node == d->node) {
		dint = smartiod_dint_find(d, SIO_DINT_PLAIN, l->adapter, l->number);
		if (dint)
			smartiod_dint_let_devices(dint, b->node);
	}
	return ask_lender(d, s, msg, b, &ask, reterr);
}

int smartiod_dev_unvector(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_msg_dev_vector *m = msg;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct sio_peer_vector ask = {.h.type = sio_to_le32(SIO_PEER_UNVECTOR),
				      .vector = m->vector};

	if (!b)
		return reterr->code;
	if (m->link)
		return sio_fail(reterr, -EINVAL, "link %" PRIu32 ", 0 is right",
				sio_from_le32(m->link));
	return ask_lender(d, s, msg, b, &ask, reterr);
}
