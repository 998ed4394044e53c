/* SPDX-License-Identifier: BSD-2-Clause */
/* Holds of memory that queues lie in: what a borrower's daemon asks the lender (lender/hold.c). */

#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

void smartiod_hold_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_hold *rep = reply;
	struct sio_peer_hold_release msg = {.h.type = sio_to_le32(SIO_PEER_HOLD_RELEASE),
					    .hold = rep->hold,
					    .fdid = rep->fdid,
					    .generation = rep->generation};

	smartiod_peer_tell(d, node, &msg, sizeof(msg));
}

static void hold_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_borrow *b = ((struct smartiod_borrow_op *)op)->borrow;
	struct sio_rep_dev_hold rep = {.hold = 0};

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else {
		rep.hold = ((const struct sio_prep_hold *)a->msg)->hold;
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
	return smartiod_borrow_ask(d, s, msg, b, hold_step, &request, sizeof(request), reterr);
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
	return smartiod_borrow_ask(d, s, msg, b, NULL, &request, sizeof(request), reterr);
}
