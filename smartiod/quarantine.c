/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quarantine and its end: who is told of a death, and the two words that end it, SETTLED of the
 * holder of the registers and RESET by the lender.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/lend.h"

/* ---- who is told ---- */

void smartiod_loan_notify(struct smartiod *d, struct smartiod_loan *l, uint32_t event,
			  uint64_t gone)
{
	struct sio_peer_device_event msg = {
		.h.type = sio_to_le32(SIO_PEER_DEVICE_EVENT),
		.borrower = sio_to_le64(l->id),
		.gone = sio_to_le64(gone),
		.fdid = sio_to_le32(l->device->fdid),
		.event = sio_to_le32(event),
		.generation = sio_to_le32(l->device->generation),
	};

	if (l->ended || !l->ready)
		return;
	if (l->node == d->node)
		smartiod_borrow_event(d, l->device, l->id, event, gone);
	else
		smartiod_peer_tell(d, l->node, &msg, sizeof(msg));
}

void smartiod_holder_notify(struct smartiod *d, struct smartiod_device *dev, uint64_t gone)
{
	struct smartiod_loan *holder = smartiod_loan_find(d, dev->ledger.holder);

	if (holder)
		smartiod_loan_notify(d, holder, SIO_DEVICE_EV_BORROWER_GONE, gone);
}

void smartiod_holder_welcome(struct smartiod *d, struct smartiod_loan *holder)
{
	const struct sio_borrow *b;
	uint64_t after = 0;

	while ((b = sio_ledger_after(&holder->device->ledger, after))) {
		after = b->id;
		if (b->state == SIO_BORROW_QUARANTINED)
			smartiod_loan_notify(d, holder, SIO_DEVICE_EV_BORROWER_GONE, b->id);
	}
}

static void tell_reset(struct smartiod *d, struct smartiod_device *dev, uint64_t generation)
{
	struct smartiod_loan *l;
	uint64_t after = 0;

	dev->generation = smartiod_generation(generation);
	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->device == dev)
			smartiod_loan_notify(d, l, SIO_DEVICE_EV_RESET, 0);
	}
	smartiod_device_announce(d, dev);
}

/* ---- the end of a quarantine ---- */

void smartiod_loan_settled(struct smartiod *d, struct smartiod_loan *l)
{
	l->pins++;
	while (l->dmas)
		smartiod_dma_release(d, l->dmas);
	sio_ledger_settle(&l->device->ledger, l->id);
	smartiod_loan_unpin(d, l);
}

struct word_op {
	struct smartiod_lend lend;
	struct smartiod_device *device;
	uint64_t settled; /* a borrow, or SIO_LEDGER_ALL */
	bool reset;	  /* queues of all are gone: the generation goes up */
};

/* What had ended when the port was asked is settled by its answer; who ends later is not. */
static void mark(struct smartiod *d, struct smartiod_device *dev, uint64_t settled)
{
	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		if (l->device == dev && l->ended && (settled == SIO_LEDGER_ALL || settled == l->id))
			l->settling = true;
}

static void settle_marked(struct smartiod *d, struct smartiod_device *dev, uint64_t settled)
{
	struct smartiod_loan *l;
	uint64_t after = 0;

	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->device == dev && l->settling && l->closed &&
		    (settled == SIO_LEDGER_ALL || settled == l->id))
			smartiod_loan_settled(d, l);
	}
}

static void word_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct word_op *w = (struct word_op *)op;

	if (w->reset)
		w->device->clearing--;
	/* An owner that has nothing left is not known to the port any more: that is settled, too.
	 */
	if (a->error && (w->reset || a->error != -ENOENT)) {
		smartiod_lend_fail(d, &w->lend, a->error, "%s: %s", w->device->topo->name, a->text);
		return;
	}
	settle_marked(d, w->device, w->settled);
	if (w->reset) {
		smartiod_holds_end(d, w->device);
		tell_reset(d, w->device, ((const struct sio_evt_reset *)a->msg)->generation);
	} else {
		smartiod_device_announce(d, w->device);
	}
	smartiod_lend_ok(d, &w->lend);
}

static struct word_op *word_new(struct smartiod *d, const struct smartiod_from *from,
				const void *msg, struct smartiod_loan *l, uint64_t settled,
				bool reset, struct sio_err *reterr)
{
	struct word_op *w = smartiod_lend_new(d, from, msg, sizeof(*w), l, word_step, reterr);

	if (!w)
		return NULL;
	w->device = l->device;
	w->settled = settled;
	w->reset = reset;
	l->device->clearing += reset;
	mark(d, l->device, settled);
	return w;
}

int smartiod_lend_settled(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_peer_settled *m = msg;
	uint64_t settled = sio_from_le64(m->settled);
	bool all = settled == SIO_BORROWER_ALL;
	struct sio_req_settle req = {.h.op = SIO_OP_SETTLE, .reason = sio_from_le32(m->reason)};
	struct sio_req_reset done = {.h.op = SIO_OP_RESET, .kind = SIO_RESET_DONE};
	struct sio_msg ok = {.size = sio_to_le32(sizeof(ok))};
	struct smartiod_loan *l, *gone = NULL;
	struct word_op *w;

	l = smartiod_loan_get_holder(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower),
				     reterr);
	if (!l)
		return reterr->code;
	if (!all) {
		gone = smartiod_loan_find(d, settled);
		if (settled == 0 || settled > l->device->ledger.last_id ||
		    (gone && (!gone->ended || gone->device != l->device)))
			return sio_fail(reterr, -EINVAL,
					"%s: borrow %" PRIu64 " has not ended: nothing to settle",
					l->device->topo->name, settled);
		if (!gone || !gone->owner) { /* by a reset, or it never had anything */
			smartiod_from_reply(d, from, msg, &ok, sizeof(ok));
			return 0;
		}
	}
	w = word_new(d, from, msg, l, settled, all, reterr);
	if (!w)
		return reterr->code;
	done.device = req.device = l->device->port.id;
	req.h.owner = all ? 0 : gone->owner;
	if (all)
		smartiod_port_ask(d, &w->lend.op, &done, sizeof(done));
	else
		smartiod_port_ask(d, &w->lend.op, &req, sizeof(req));
	return 0;
}

int smartiod_lend_reset(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_peer_borrower *m = msg;
	struct sio_req_reset req = {.h.op = SIO_OP_RESET, .kind = SIO_RESET_FUNCTION};
	struct smartiod_loan *l;
	struct word_op *w;
	int rc;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l)
		return reterr->code;
	rc = sio_ledger_may_reset(&l->device->ledger, l->id, reterr);
	if (rc < 0)
		return rc;
	if (!(l->device->port.resets & 1u << SIO_RESET_FUNCTION))
		return sio_fail(reterr, -EOPNOTSUPP, "%s has no function reset",
				l->device->topo->name);
	w = word_new(d, from, msg, l, SIO_LEDGER_ALL, true, reterr);
	if (!w)
		return reterr->code;
	req.device = l->device->port.id;
	smartiod_port_ask(d, &w->lend.op, &req, sizeof(req));
	return 0;
}
