/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BORROW, and the messages by which a borrower ends or changes its borrow: RETURN,
 * RELEASE_EXCLUSIVE, BORROW_END.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/base/allow.h"
#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

static void borrow_reply(struct smartiod *d, struct smartiod_lend *lend)
{
	struct smartiod_loan *l = lend->loan;
	struct sio_prep_borrow rep = {
		.borrower = sio_to_le64(l->id),
		.fdid = sio_to_le32(l->device->fdid),
		.generation = sio_to_le32(l->device->generation),
		.ticket = sio_to_le64(l->ticket),
	};

	smartiod_device_info(d, l->device, &rep.info);
	smartiod_device_announce_later(d, l->device);
	smartiod_device_tell(d, l->device, l->node);
	smartiod_lend_done(d, lend, &rep, sizeof(rep), NULL, 0);
}

struct borrow_op {
	struct smartiod_lend lend;
	struct smartiod_waiter reset;
	bool exclusive;
	enum { RESET, OWNER, PAY } state; /* what it waits for */
};

/*
 * A smartiod that starts again begins behind the port's ids (adopt.c): so no borrower is given a
 * number that is greater than the last of them. It would be if owners could not be made for others
 * before it.
 */
static void pay_or_reply(struct smartiod *d, struct borrow_op *b, uint64_t id)
{
	struct sio_req_owner_new req = {.h.op = SIO_OP_OWNER_NEW};
	struct smartiod_loan *l = b->lend.loan;

	if (smartiod_is_real(d) && (uint32_t)id < (uint32_t)l->id) {
		b->state = PAY;
		smartiod_port_ask(d, &b->lend.op, &req, sizeof(req));
		return;
	}
	if (smartiod_lend_orphan(&b->lend)) { /* its daemon may be back, and asks again */
		smartiod_loan_end(d, l);
		smartiod_lend_fail(d, &b->lend, -ECONNRESET, "nobody waits for it");
		return;
	}
	smartiod_loan_enter(d, l, SMARTIOD_LOAN_LEND);
	SIO_PROBE(smartiod, lend, l->device->fdid, l->id, l->node, l->pid);
	borrow_reply(d, &b->lend);
}

/* Why a borrow in the making has ended. */
static const char *why_ended(const struct smartiod_loan *l)
{
	return l->lost	      ? "the device is gone"
	       : l->forbidden ? "the cluster's file, which was read anew, does not allow it"
			      : "the borrower is gone";
}

static int ended_error(const struct smartiod_loan *l)
{
	return l->forbidden && !l->lost ? -EPERM : -ECONNRESET;
}

/* An id more was used up. */
static void paid(struct smartiod *d, struct borrow_op *b, const struct smartiod_answer *a)
{
	struct smartiod_loan *l = b->lend.loan;
	uint64_t id;

	if (a->error) {
		smartiod_loan_end(d, l);
		smartiod_lend_fail(d, &b->lend, a->error, "%s: %s", l->device->topo->name, a->text);
		return;
	}
	id = ((const struct sio_evt_owner_new *)a->msg)->id;
	smartiod_port_owner_close(d, id);
	if (smartiod_loan_ended(l))
		smartiod_lend_fail(d, &b->lend, ended_error(l), "%s: %s", l->device->topo->name,
				   why_ended(l));
	else
		pay_or_reply(d, b, id);
}

/* Nothing of it is at the port. */
static void borrow_failed(struct smartiod *d, struct borrow_op *b, int error, const char *text)
{
	struct smartiod_loan *l = b->lend.loan;

	smartiod_loan_end(d, l);
	smartiod_loan_closed(d, l);
	smartiod_lend_fail(d, &b->lend, error, "%s: %s", l->device->topo->name, text);
}

/* Nobody is to find the registers of the borrower before it. */
static void not_reset(struct smartiod *d, struct borrow_op *b, const struct smartiod_answer *a)
{
	char text[SIO_WIRE_TEXT];
	bool itself = a->error == -ENODEV || a->error == -ECANCELED || a->error == -ENOMEM;

	snprintf(text, sizeof(text), "it is not lent, for it cannot be reset: %s", a->text);
	borrow_failed(d, b, itself ? a->error : -EACCES, text);
}

static void owner_made(struct smartiod *d, struct borrow_op *b, const struct smartiod_answer *a)
{
	struct smartiod_lend *lend = &b->lend;
	struct smartiod_loan *l = lend->loan;

	if (a->error) {
		borrow_failed(d, b, a->error, a->text);
		return;
	}
	l->owner = ((const struct sio_evt_owner_new *)a->msg)->id;
	l->owner_fd = smartiod_take_fd(a, 0);
	/* A child has none: it ends with the borrower's session, or when we say so. */
	if (smartiod_loan_ended(
		    l)) { /* the borrower's host went down meanwhile; OWNER_GONE follows */
		smartiod_port_owner_close(d, l->owner);
		smartiod_close_fd(d, &l->owner_fd);
		smartiod_lend_fail(d, lend, ended_error(l), "%s: %s", l->device->topo->name,
				   why_ended(l));
		return;
	}
	if (l->owner_fd < 0 && !smartiod_is_real(d)) {
		smartiod_loan_end(d, l);
		smartiod_lend_fail(d, lend, -EMFILE, "%s: %s", l->device->topo->name,
				   smartiod_no_descriptor(d));
		return;
	}
	pay_or_reply(d, b, l->owner);
}

/*
 * On a real host we may be killed and started again without any harm to the borrow, so it must not
 * depend on a descriptor of ours: it is a child of the borrower's session, or of nobody if that is
 * elsewhere. On the emulated cluster our death is the host's.
 */
static void choose_owner(struct smartiod *d, const struct smartiod_loan *l, bool exclusive,
			 struct sio_req_owner_new *ret)
{
	const struct smartiod_session *s =
		l->node == d->node ? smartiod_session_find(d, l->session) : NULL;

	ret->user_cookie = l->id;
	if (!smartiod_is_real(d))
		return;
	ret->user_cookie = smartiod_loan_cookie(l, exclusive);
	ret->h.flags = SIO_OWNER_CHILD;
	ret->h.owner = s ? s->owner : 0;
}

/* The device is as it is to be. */
static void make_owner(struct smartiod *d, struct borrow_op *b)
{
	struct sio_req_owner_new req = {.h.op = SIO_OP_OWNER_NEW};
	struct smartiod_loan *l = b->lend.loan;

	smartiod_reset_lend(d, l);
	smartiod_config_restart(d, l->device);
	b->state = OWNER;
	choose_owner(d, l, b->exclusive, &req);
	req.pid = l->node == d->node ? l->pid : 0;
	smartiod_port_ask(d, &b->lend.op, &req, sizeof(req));
}

static void borrow_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct borrow_op *b = (struct borrow_op *)op;
	struct smartiod_loan *l = b->lend.loan;

	switch (b->state) {
	case RESET:
		smartiod_reset_leave(&b->reset);
		if (smartiod_loan_ended(l))
			borrow_failed(d, b, ended_error(l), why_ended(l));
		else if (a->error)
			not_reset(d, b, a);
		else
			make_owner(d, b);
		break;
	case OWNER:
		owner_made(d, b, a);
		break;
	case PAY:
		paid(d, b, a);
		break;
	}
}

/* Numbers go on from boot to boot of this host: none is ever used again. */
static uint64_t next_id(struct smartiod *d)
{
	return (d->boot_generation & 0xffffffffu) << 32 | ++d->last_loan;
}

int smartiod_lend_borrow(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_borrow *m = msg;
	bool exclusive = sio_from_le32(m->exclusive) != 0;
	struct borrow_op *b;
	struct smartiod_device *dev;
	struct sio_policy_thing thing;
	struct smartiod_loan *l;
	int rc;

	dev = smartiod_device_ours(d, sio_from_le32(m->fdid), reterr);
	if (!dev)
		return reterr->code;
	thing = smartiod_thing_device(d, d->node, dev->topo->name);
	if (smartiod_allow_node(d, &thing, from->node, reterr) < 0)
		return reterr->code = -EPERM; /* not as one that somebody else has: it stays so */
	if (smartiod_quota_node(d, from->node, SIO_QUOTA_BORROWS, 1, reterr) < 0 ||
	    smartiod_kept_none(d, dev, reterr) < 0)
		return reterr->code;
	l = calloc(1, sizeof(*l));
	if (!l)
		return sio_fail(reterr, -ENOMEM,
				"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	b = smartiod_lend_new(d, from, msg, sizeof(*b), NULL, borrow_step, reterr);
	if (!b) {
		free(l);
		return reterr->code;
	}
	l->device = dev;
	l->id = next_id(d);
	l->ticket = d->ops->random(d->ctx) | 1;
	l->node = from->node;
	l->session = sio_from_le64(m->session);
	l->pid = sio_from_le32(m->pid);
	l->owner_fd = -1;
	rc = sio_ledger_borrow(&dev->ledger, l->id, l->node, l->session, exclusive, reterr);
	if (rc < 0) {
		/* Who waits until it is free must not go by what it had before us. */
		smartiod_device_announce_to(d, dev, from->node);
		d->last_loan--; /* it costs the port no id: adopt.c */
		smartiod_op_free(d, &b->lend.op);
		free(l);
		return rc;
	}
	smartiod_tree_add(&d->loans, &l->by_id, l->id);
	smartiod_charge_node(d, l->node, &l->charge, SIO_QUOTA_BORROWS, 1);
	b->lend.loan = l;
	b->exclusive = exclusive;
	l->pins++;
	if (!smartiod_reset_first(d, l, exclusive, &b->reset, &b->lend.op))
		make_owner(d, b);
	return 0;
}

/* ---- RETURN, RELEASE_EXCLUSIVE, BORROW_END ---- */

int smartiod_lend_return(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_borrower *m = msg;
	struct sio_msg ok = {.size = sio_to_le32(sizeof(ok))};
	struct smartiod_loan *l = smartiod_loan_find(d, sio_from_le64(m->borrower));

	(void)reterr;
	if (l && l->node == from->node) { /* else: the device is gone, and the borrow with it */
		struct smartiod_device *dev = l->device;

		smartiod_loan_end(d, l);
		smartiod_device_tell(d, dev, from->node);
	}
	smartiod_from_reply(d, from, msg, &ok, sizeof(ok));
	return 0;
}

int smartiod_lend_borrow_end(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			     struct sio_err *reterr)
{
	const struct sio_peer_borrower *m = msg;
	struct smartiod_loan *l = smartiod_loan_find(d, sio_from_le64(m->borrower));

	(void)reterr;
	if (!l || l->node != from->node)
		return 0;
	l->cut_off |= !smartiod_loan_ended(l) && !sio_from_le32(m->gone);
	l->program_over |= sio_from_le32(m->gone) != 0;
	smartiod_loan_end(d, l);
	return 0;
}

int smartiod_lend_release_exclusive(struct smartiod *d, const struct smartiod_from *from,
				    const void *msg, struct sio_err *reterr)
{
	const struct sio_peer_borrower *m = msg;
	struct sio_msg ok = {.size = sio_to_le32(sizeof(ok))};
	const struct smartiod_dma *dma;
	struct smartiod_loan *l;
	int rc;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l)
		return reterr->code;
	dma = smartiod_dma_chosen(d, l);
	if (dma)
		return sio_fail(reterr, -EBUSY,
				"%s has %" PRIu64 " bytes at an address that was chosen for it: "
				"others, who would find that taken, or reach what is there, can "
				"have it when such memory is unmapped",
				l->device->topo->name, dma->bytes);
	rc = sio_ledger_release_exclusive(&l->device->ledger, l->id, reterr);
	if (rc < 0)
		return rc;
	smartiod_device_announce_later(d, l->device);
	smartiod_device_tell(d, l->device, l->node);
	smartiod_from_reply(d, from, msg, &ok, sizeof(ok));
	return 0;
}
