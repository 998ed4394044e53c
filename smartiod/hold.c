/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds: memory that queues of a device lie in. The lender knows who mapped what, and no queue; the
 * holder of the registers makes the queues, and only hears from others whose memory they are to lie
 * in. So it asks: a hold is the lender's word that the range is mapped by that borrower, and that
 * it stays so until the holder of the registers lets go of it, or the device has no queue any more
 * (SETTLED, RESET). It outlives who took it, as the queues do.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/lend.h"

/* ---- the lender's side ---- */

static bool covers(const struct smartiod_dma *dma, uint64_t ioaddr, uint64_t bytes)
{
	/* What lies with a host or behind a link that went down is no memory any more. */
	bool reachable = !dma->window || dma->grant;

	return reachable && !dma->unmapping && ioaddr >= dma->iova &&
	       ioaddr - dma->iova <= dma->bytes && bytes <= dma->bytes - (ioaddr - dma->iova);
}

static struct smartiod_dma *find(struct smartiod *d, struct smartiod_device *dev, uint64_t of,
				 uint64_t ioaddr, uint64_t bytes, struct sio_err *reterr)
{
	struct smartiod_loan *l = smartiod_loan_find(d, of);

	if (!l || l->device != dev || !l->ready || l->ended) {
		sio_fail(reterr, -EINVAL, "%s: no live borrow has number %" PRIu64, dev->topo->name,
			 of);
		return NULL;
	}
	for (struct smartiod_dma *dma = l->dmas; dma; dma = dma->next)
		if (covers(dma, ioaddr, bytes))
			return dma;
	sio_fail(reterr, -ERANGE,
		 "%s: borrow %" PRIu64 " has no mapping that covers %" PRIu64 " bytes at %#" PRIx64,
		 dev->topo->name, of, bytes, ioaddr);
	return NULL;
}

int smartiod_lend_hold(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_peer_hold *m = msg;
	struct sio_prep_hold rep = {.borrower = m->borrower, .fdid = m->fdid};
	struct smartiod_dma *dma;
	struct smartiod_loan *l;

	l = smartiod_loan_get_holder(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower),
				     reterr);
	if (!l)
		return reterr->code;
	if (m->bytes == 0)
		return sio_fail(reterr, -EINVAL, "%s: a queue has at least 1 byte",
				l->device->topo->name);
	if (l->device->clearing)
		return sio_fail(reterr, -EBUSY, "%s is being reset", l->device->topo->name);
	dma = find(d, l->device, sio_from_le64(m->of), sio_from_le64(m->ioaddr),
		   sio_from_le64(m->bytes), reterr);
	if (!dma)
		return reterr->code;
	if (dma->holds == UINT32_MAX)
		return sio_fail(reterr, -ENOSPC, "%s: %" PRIu32 " queues lie in one mapping",
				l->device->topo->name, dma->holds);
	dma->holds++;
	rep.hold = sio_to_le64(dma->by_id.key);
	rep.h.size = sio_to_le32(sizeof(rep));
	smartiod_from_reply(d, from, msg, &rep, sizeof(rep));
	return 0;
}

int smartiod_lend_unhold(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_unhold *m = msg;
	struct sio_msg ok = {.size = sio_to_le32(sizeof(ok))};
	uint64_t hold = sio_from_le64(m->hold);
	struct smartiod_dma *dma;
	struct smartiod_loan *l;

	l = smartiod_loan_get_holder(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower),
				     reterr);
	if (!l)
		return reterr->code;
	dma = SMARTIOD_OF(smartiod_tree_find(&smartiod_devices(d)->dmas, hold), struct smartiod_dma,
			  by_id);
	if (!dma || dma->loan->device != l->device || dma->holds == 0)
		return sio_fail(reterr, -EINVAL, "%s: no memory is held by number %" PRIu64,
				l->device->topo->name, hold);
	dma->holds--;
	smartiod_from_reply(d, from, msg, &ok, sizeof(ok));
	return 0;
}

void smartiod_holds_end(struct smartiod *d, struct smartiod_device *dev)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&smartiod_devices(d)->dmas, key))) {
		struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		if (dma->loan->device == dev)
			dma->holds = 0;
	}
}

/* ---- the borrower's side ---- */

static void late_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	(void)a; /* if it failed, the hold ends with the device's queues */
	smartiod_op_free(d, op);
}

void smartiod_hold_late(struct smartiod *d, uint32_t node, const struct sio_prep_hold *rep)
{
	struct sio_peer_unhold ask = {.h.type = sio_to_le32(SIO_PEER_UNHOLD),
				      .borrower = rep->borrower,
				      .hold = rep->hold,
				      .fdid = rep->fdid};
	struct sio_err err;
	struct smartiod_op *op = smartiod_op_new(d, NULL, NULL, sizeof(*op), late_step, &err);

	if (op)
		smartiod_lender_ask(d, op, node, &ask, sizeof(ask));
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
