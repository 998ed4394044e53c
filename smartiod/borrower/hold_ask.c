/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of a borrower to the lender about holds, which pin the memory that queues lie in, and
 * about the assignment of pages of the device's own memory. The lender's side: lender/hold.c,
 * lender/assign.c.
 */

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

void smartiod_hold_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_hold *rep = reply;
	struct sio_peer_hold_release msg = {.h.type = sio_to_le32(SIO_PEER_HOLD_RELEASE),
					    .hold = rep->hold,
					    .borrower = rep->borrower,
					    .fdid = rep->fdid,
					    .generation = rep->generation};

	smartiod_notify(d, node, &msg, sizeof(msg));
}

static void hold_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_borrow *b = ((struct smartiod_borrow_op *)op)->borrow;
	const struct sio_prep_hold *m = a->msg;
	struct sio_rep_dev_hold rep = {.hold = 0};

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else if (smartiod_held_add(d, b, sio_from_le64(m->hold), sio_from_le32(m->generation)) <
		   0) {
		smartiod_hold_late(d, b->node, a->msg);
		smartiod_op_error(d, op, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	} else {
		rep.hold = m->hold;
		rep.seal = sio_to_le64(smartiod_seal(op->session, SIO_MSG_DEV_HOLD,
						     smartiod_handle(&b->o), sio_from_le64(m->hold),
						     0, 0));
		smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
	}
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

int smartiod_dev_hold(struct smartiod *d, struct smartiod_session *s, const void *msg,
		      struct sio_err *reterr)
{
	const struct sio_msg_dev_hold *m = msg;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct sio_peer_hold request = {.h.type = sio_to_le32(SIO_PEER_HOLD),
					.of = m->borrower,
					.ioaddr = m->ioaddr,
					.bytes = m->bytes};

	if (!b)
		return reterr->code;
	request.borrower = sio_to_le64(b->id);
	request.fdid = sio_to_le32(b->device->fdid);
	return smartiod_borrow_ask(d, s, msg, b, hold_step, 0, &request, sizeof(request), reterr);
}

static void unhold_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	const struct smartiod_borrow_op *o = (const struct smartiod_borrow_op *)op;
	const struct sio_prep_unhold *m = a->msg;
	struct smartiod_borrow *b = o->borrow;

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else {
		if (sio_from_le32(m->node) == d->node)
			smartiod_held_drop(d, b->device->fdid, o->number, sio_from_le64(m->of));
		smartiod_op_ok(d, op);
	}
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

int smartiod_dev_unhold(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_dev_unhold *m = msg;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct sio_peer_unhold request = {.h.type = sio_to_le32(SIO_PEER_UNHOLD), .hold = m->hold};

	if (!b)
		return reterr->code;
	request.borrower = sio_to_le64(b->id);
	request.fdid = sio_to_le32(b->device->fdid);
	return smartiod_borrow_ask(d, s, msg, b, unhold_step, sio_from_le64(m->hold), &request,
				   sizeof(request), reterr);
}

int smartiod_dev_assign(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_dev_assign *m = msg;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct sio_peer_assign request = {.h.type = sio_to_le32(SIO_PEER_ASSIGN),
					  .of = m->borrower,
					  .offset = m->offset,
					  .bytes = m->bytes,
					  .bar = m->bar};

	if (!b)
		return reterr->code;
	request.borrower = sio_to_le64(b->id);
	request.fdid = sio_to_le32(b->device->fdid);
	return smartiod_borrow_ask(d, s, msg, b, NULL, 0, &request, sizeof(request), reterr);
}
