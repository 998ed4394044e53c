/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The quarantine and its end: who is notified of a borrower's death, and the two messages that end
 * a quarantine. These are SETTLED, of the owner of the registers, and RESET by the lender, for a
 * borrower or by its own decision (reset.c). When the device has no queue any more its doorbells
 * are taken from everyone who has them. First the port resets the device (RESET) or records that it
 * was reset (SETTLED), which may fail, and then closes the views of doorbells. Only then are the
 * borrowers notified, and whoever sent the message is answered.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/room.h"
#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

#define CLOSE_AGAIN_NS 10000000ull

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

	if (l->state != SMARTIOD_LOAN_LIVE)
		return;
	smartiod_device_tell(d, l->device, l->node);
	smartiod_notify(d, l->node, &msg, sizeof(msg));
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

static void notify_reset(struct smartiod *d, const struct smartiod_word *w)
{
	uint32_t event = w->keep ? SIO_DEVICE_EV_RESTARTED : SIO_DEVICE_EV_RESET;
	struct smartiod_device *dev = w->device;
	struct smartiod_loan *l;
	uint64_t after = 0;

	if (smartiod_generation(w->generation) < dev->generation)
		return; /* it was pulled out meanwhile, and is another one */
	dev->generation = smartiod_generation(w->generation);
	smartiod_device_announce_later(d, dev);
	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->device == dev)
			smartiod_loan_notify(d, l, event, 0);
	}
}

/* ---- the end of a quarantine ---- */

void smartiod_loan_settled(struct smartiod *d, struct smartiod_loan *l)
{
	l->pins++;
	while (l->dmas)
		smartiod_dma_release(d, l->dmas);
	smartiod_dev_segs_over(d, l);
	sio_ledger_settle(&l->device->ledger, l->id);
	smartiod_loan_unpin(d, l);
}

/* What had ended when the port was asked is settled by its answer; who ends later is not. */
static void mark(struct smartiod *d, struct smartiod_device *dev, uint64_t settled)
{
	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		if (l->device == dev && smartiod_loan_ended(l) &&
		    (settled == SIO_LEDGER_ALL || settled == l->id))
			l->settling = true;
}

static void settle_marked(struct smartiod *d, struct smartiod_device *dev, uint64_t settled)
{
	struct smartiod_loan *l;
	uint64_t after = 0;

	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->device == dev && l->settling && l->state == SMARTIOD_LOAN_CLOSED &&
		    (settled == SIO_LEDGER_ALL || settled == l->id))
			smartiod_loan_settled(d, l);
	}
}

static void word_ok(struct smartiod *d, struct smartiod_word *w)
{
	if (w->own) {
		smartiod_reset_over(d, w->device, 0, "");
		return;
	}
	smartiod_device_tell(d, w->device, w->lend.from.node);
	smartiod_lend_ok(d, &w->lend);
}

static void close_view(struct smartiod *d, struct smartiod_word *w)
{
	struct sio_req_bar_close req = {.h.op = SIO_OP_BAR_CLOSE, .id = w->view};

	w->dozing = false;
	smartiod_grants_cut(d, w->view);
	smartiod_port_ask(d, &w->lend.op, &req, sizeof(req));
}

/* One view after the other. */
static void take_doorbells(struct smartiod *d, struct smartiod_word *w)
{
	struct smartiod_device *dev = w->device;

	w->closing = true;
	w->view = w->keep ? 0 : smartiod_doorbells_take(d, dev);
	if (w->view) {
		close_view(d, w);
		return;
	}
	dev->lent->clearing--;
	notify_reset(d, w);
	if (!w->own) /* reset.c announces the end of the lender's own */
		smartiod_device_announce_later(d, dev);
	word_ok(d, w);
	smartiod_bars_go_on(d, dev);
}

/* A port that lacks memory has done nothing; whatever else it says, it has the view no more. */
static void view_closed(struct smartiod *d, struct smartiod_word *w, int error)
{
	if (w->dozing) {
		close_view(d, w);
	} else if (error == -ENOMEM) {
		w->dozing = true;
		smartiod_op_doze(d, &w->lend.op, CLOSE_AGAIN_NS);
	} else {
		take_doorbells(d, w);
	}
}

static void word_failed(struct smartiod *d, struct smartiod_word *w,
			const struct smartiod_answer *a)
{
	struct smartiod_device *dev = w->device;

	if (w->reset)
		dev->lent->clearing--;
	if (w->own)
		smartiod_reset_over(d, dev, a->error, a->text);
	else
		smartiod_lend_fail(d, &w->lend, a->error, "%s: %s", dev->topo->name, a->text);
	smartiod_bars_go_on(d, dev);
}

static void word_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_word *w = (struct smartiod_word *)op;

	if (w->closing) {
		view_closed(d, w, a->error);
		return;
	}
	/* An owner that has nothing left is not known to the port any more: that is settled, too.
	 */
	if (a->error && (w->reset || a->error != -ENOENT)) {
		word_failed(d, w, a);
		return;
	}
	settle_marked(d, w->device, w->settled);
	if (w->reset) {
		smartiod_holds_end(d, w->device);
		w->generation = ((const struct sio_evt_reset *)a->msg)->generation;
		/* The port may list it so before the reset is reported. */
		if (w->generation > w->device->port.generation)
			w->device->port.generation = w->generation;
		w->freed = ((const struct sio_evt_reset *)a->msg)->freed;
		take_doorbells(d, w);
		return;
	}
	smartiod_device_announce_later(d, w->device);
	smartiod_device_tell(d, w->device, w->lend.from.node);
	smartiod_lend_ok(d, &w->lend);
}

static struct smartiod_word *word_new(struct smartiod *d, const struct smartiod_from *from,
				      const void *msg, struct smartiod_loan *l, uint64_t settled,
				      bool reset, struct sio_err *reterr)
{
	struct smartiod_word *w = smartiod_lend_new(d, from, msg, sizeof(*w), l, word_step, reterr);

	if (!w)
		return NULL;
	w->device = l->device;
	w->settled = settled;
	w->reset = reset;
	l->device->lent->clearing += reset;
	mark(d, l->device, settled);
	return w;
}

void smartiod_word_reset(struct smartiod *d, struct smartiod_device *dev, uint32_t kind)
{
	struct sio_req_reset req = {.h.op = SIO_OP_RESET, .device = dev->port.id, .kind = kind};
	struct smartiod_word *w = &dev->lent->reset.word;

	*w = (struct smartiod_word){.lend.op.step = word_step,
				    .device = dev,
				    .own = true,
				    .reset = true,
				    .settled = SIO_LEDGER_ALL};
	dev->lent->clearing++;
	mark(d, dev, SIO_LEDGER_ALL);
	smartiod_port_ask(d, &w->lend.op, &req, sizeof(req));
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
	struct smartiod_word *w;

	l = smartiod_loan_get_holder(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower),
				     reterr);
	if (!l)
		return reterr->code;
	if (!all) {
		gone = smartiod_loan_find(d, settled);
		if (!smartiod_loan_was_given(d, settled) ||
		    (gone && (!smartiod_loan_ended(gone) || gone->device != l->device)))
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
	struct sio_req_reset req = {.h.op = SIO_OP_RESET};
	const struct sio_borrow *b;
	struct smartiod_loan *l;
	struct smartiod_word *w;
	bool keep;
	int rc;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l)
		return reterr->code;
	rc = sio_ledger_may_reset(&l->device->ledger, l->id, reterr);
	if (rc < 0)
		return rc;
	keep = sio_from_le32(m->keep) == 1;
	b = sio_ledger_find(&l->device->ledger, l->id);
	if (sio_from_le32(m->keep) > 1 || (keep && (!b || !b->exclusive)))
		return sio_fail(reterr, -EACCES,
				"%s is not borrowed exclusively: a reset takes its doorbells away",
				l->device->topo->name);
	req.kind = smartiod_reset_kind(l->device);
	if (!req.kind)
		return sio_fail(reterr, -EOPNOTSUPP, "%s has no function reset",
				l->device->topo->name);
	w = word_new(d, from, msg, l, SIO_LEDGER_ALL, true, reterr);
	if (!w)
		return reterr->code;
	w->keep = keep;
	req.h.flags = keep ? SIO_RESET_KEEP_DOORBELLS : 0;
	req.device = l->device->port.id;
	smartiod_port_ask(d, &w->lend.op, &req, sizeof(req));
	return 0;
}
