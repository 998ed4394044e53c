/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds: memory that queues of a device lie in. The lender knows who mapped what, and no queue; the
 * owner of the registers makes the queues, and only hears from others whose memory they are to lie
 * in. So it asks: a hold is the lender's word that the range is mapped by that borrower, and that
 * it stays so until the owner of the registers releases it, or the device has no queue any more
 * (SETTLED, RESET). It outlives who took it, as the queues do. Pages of another device's BAR are
 * cut as soon as their borrow ends (dmabar.c), and a drive that finds no command where its queue
 * was stops for everybody. So they are refused, but for memory of a device of this host, which can
 * be kept (kept.c); on a real host the port is asked first to leave it in place.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

static struct smartiod_hold *hold_of(const struct smartiod_dma *dma, uint32_t node, uint64_t borrow)
{
	struct smartiod_hold *h = dma->holds;

	while (h && (h->node != node || h->borrow != borrow))
		h = h->next;
	return h;
}

/* A host that borrows, pins and returns for ever cannot fill the lender's memory with entries. */
static int add(struct smartiod_dma *dma, uint32_t node, uint64_t borrow, struct sio_err *reterr)
{
	struct smartiod_hold *h;
	unsigned n = 0;

	for (h = dma->holds; h; h = h->next)
		n++;
	if (n >= SMARTIOD_MAX_HOLDERS)
		return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_HOLDS,
					  "%s: queues of %u borrows lie in one mapping",
					  dma->loan->device->topo->name, n);
	h = calloc(1, sizeof(*h));
	if (!h)
		return sio_fail(reterr, -ENOMEM,
				"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	h->node = node;
	h->borrow = borrow;
	h->next = dma->holds;
	dma->holds = h;
	return 0;
}

int smartiod_hold_add(struct smartiod_dma *dma, uint32_t node, uint64_t borrow,
		      struct sio_err *reterr)
{
	if (smartiod_hold_count(dma) == UINT32_MAX)
		return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_HOLDS,
					  "%s: %" PRIu32 " queues lie in one mapping",
					  dma->loan->device->topo->name, UINT32_MAX);
	if (!hold_of(dma, node, borrow) && add(dma, node, borrow, reterr) < 0)
		return reterr->code;
	hold_of(dma, node, borrow)->count++;
	return 0;
}

uint32_t smartiod_hold_count(const struct smartiod_dma *dma)
{
	uint64_t count = 0;

	for (const struct smartiod_hold *h = dma->holds; h; h = h->next)
		count += h->count;
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

bool smartiod_held(const struct smartiod_dma *dma)
{
	return smartiod_hold_count(dma);
}

void smartiod_holds_drop(struct smartiod_dma *dma)
{
	struct smartiod_hold *h;

	while ((h = dma->holds)) {
		dma->holds = h->next;
		free(h);
	}
}

/* Of a borrow that has ended: nothing else keeps its pages. */
static void cut_kept(struct smartiod *d, struct smartiod_dma *dma)
{
	if (dma->kept && !smartiod_held(dma) && !dma->cut)
		smartiod_dma_cut(d, dma);
}

/* One of @borrow's, else of another of @node's, else of anybody's; NULL: there is none. */
static struct smartiod_hold *some_hold(const struct smartiod_dma *dma, uint32_t node,
				       uint64_t borrow)
{
	struct smartiod_hold *best = NULL;

	for (struct smartiod_hold *h = dma->holds; h; h = h->next) {
		if (h->count == 0)
			continue;
		if (h->node == node && h->borrow == borrow)
			return h;
		if (!best || (h->node == node && best->node != node))
			best = h;
	}
	return best;
}

static bool covers(const struct smartiod_dma *dma, struct sio_dev_addr at, uint64_t bytes)
{
	return !dma->unmapping && at.addr >= dma->iova.addr &&
	       at.addr - dma->iova.addr <= dma->bytes &&
	       bytes <= dma->bytes - (at.addr - dma->iova.addr);
}

/* What lies with a host or behind a link that went down is no memory any more. */
static bool is_memory(const struct smartiod_dma *dma)
{
	return !dma->cut && (!dma->window || (dma->grant && !dma->lost));
}

static struct smartiod_dma *find(struct smartiod *d, struct smartiod_device *dev, uint64_t of,
				 struct sio_dev_addr at, uint64_t bytes, struct sio_err *reterr)
{
	struct smartiod_loan *l = smartiod_loan_find(d, of);
	bool cut = false;

	if (!l || l->device != dev || l->state != SMARTIOD_LOAN_LIVE) {
		sio_fail(reterr, -EINVAL, "%s: no live borrow has number %" PRIu64, dev->topo->name,
			 of);
		return NULL;
	}
	for (struct smartiod_dma *dma = l->dmas; dma; dma = dma->next) {
		if (!covers(dma, at, bytes))
			continue;
		if (is_memory(dma))
			return !dma->bar_borrow || smartiod_kept_can(d, dma, reterr) == 0 ? dma
											  : NULL;
		cut |= dma->cut;
	}
	if (cut) {
		sio_fail(reterr, -ENOENT,
			 "%s: what borrow %" PRIu64 " mapped at %#" PRIx64
			 " was taken away: pages of a device that was pulled out or reset, or that "
			 "its borrower or the path to it has lost",
			 dev->topo->name, of, at.addr);
		return NULL;
	}
	sio_fail(reterr, -ERANGE,
		 "%s: borrow %" PRIu64 " has no mapping that covers %" PRIu64 " bytes at %#" PRIx64,
		 dev->topo->name, of, bytes, at.addr);
	return NULL;
}

/* What ended borrows have released is not asked about any more. */
static void prune(struct smartiod *d, struct smartiod_dma *dma)
{
	struct smartiod_hold **at = &dma->holds, *h;

	while ((h = *at)) {
		const struct smartiod_loan *l = smartiod_loan_find(d, h->borrow);

		if (h->count || (l && !smartiod_loan_ended(l))) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		free(h);
	}
}

/* The mapping for @dev that hold @number is of; NULL. */
static struct smartiod_dma *held(struct smartiod *d, const struct smartiod_device *dev,
				 uint64_t number)
{
	struct smartiod_tree_node *n = smartiod_tree_find(&d->dmas, number);
	struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

	return dma && dma->loan->device == dev ? dma : NULL;
}

static int take(struct smartiod *d, const struct smartiod_from *from, const struct smartiod_loan *l,
		struct smartiod_dma *dma, struct sio_prep_hold *ret, struct sio_err *reterr)
{
	int rc;

	prune(d, dma);
	rc = smartiod_hold_add(dma, from->node, l->id, reterr);
	if (rc < 0)
		return rc;
	*ret = (struct sio_prep_hold){
		.h.size = sio_to_le32(sizeof(*ret)),
		.borrower = sio_to_le64(l->id),
		.hold = sio_to_le64(dma->by_id.key),
		.fdid = sio_to_le32(l->device->fdid),
		.generation = sio_to_le32(l->device->generation),
	};
	return 0;
}

struct hold_op {
	struct smartiod_lend lend;
	uint64_t number;
	uint32_t generation; /* of the device, when it was asked for */
};

/* While the port was asked all may have changed. */
static int check_again(struct smartiod *d, const struct hold_op *o, const struct smartiod_dma *dma,
		       struct sio_err *reterr)
{
	const struct smartiod_loan *l = o->lend.loan;

	if (smartiod_lend_orphan(&o->lend) || smartiod_loan_ended(l) ||
	    l->device->ledger.holder != l->id || l->device->lent->clearing ||
	    l->device->generation != o->generation)
		return sio_fail(reterr, -ECONNRESET,
				"%s: its registers were released meanwhile, or it was reset",
				l->device->topo->name);
	if (!dma || dma->cut || dma->unmapping || dma->loan->state != SMARTIOD_LOAN_LIVE)
		return sio_fail(reterr, -ENOENT, "%s: the mapping was taken away meanwhile",
				l->device->topo->name);
	return smartiod_kept_can(d, dma, reterr);
}

static void port_holds(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct hold_op *o = (struct hold_op *)op;
	struct smartiod_dma *dma = held(d, o->lend.loan->device, o->number);
	struct sio_prep_hold rep;
	struct sio_err err;

	if (a->error) {
		smartiod_lend_fail(d, &o->lend, a->error, "%s", a->text);
		return;
	}
	if (dma)
		dma->outlives = true;
	if (check_again(d, o, dma, &err) < 0 ||
	    take(d, &o->lend.from, o->lend.loan, dma, &rep, &err) < 0)
		smartiod_lend_fail(d, &o->lend, err.code, "%s", err.text);
	else
		smartiod_lend_done(d, &o->lend, &rep, sizeof(rep), NULL, 0);
}

static int ask_port(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		    struct smartiod_loan *l, const struct smartiod_dma *dma, struct sio_err *reterr)
{
	struct sio_req_hold req = {.h.op = SIO_OP_HOLD, .id = dma->by_id.key};
	struct hold_op *o = smartiod_lend_new(d, from, msg, sizeof(*o), l, port_holds, reterr);

	if (!o)
		return reterr->code;
	o->number = dma->by_id.key;
	o->generation = l->device->generation;
	smartiod_port_ask(d, &o->lend.op, &req, sizeof(req));
	return 0;
}

int smartiod_lend_hold(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_peer_hold *m = msg;
	struct sio_prep_hold rep;
	struct smartiod_dma *dma;
	struct smartiod_loan *l;
	int rc;

	l = smartiod_loan_get_holder(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower),
				     reterr);
	if (!l)
		return reterr->code;
	if (m->bytes == 0)
		return sio_fail(reterr, -EINVAL, "%s: a queue has at least 1 byte",
				l->device->topo->name);
	if (l->device->lent->clearing)
		return sio_fail(reterr, -EBUSY, "%s is being reset", l->device->topo->name);
	dma = find(d, l->device, sio_from_le64(m->of),
		   (struct sio_dev_addr){sio_from_le64(m->ioaddr)}, sio_from_le64(m->bytes),
		   reterr);
	if (!dma)
		return reterr->code;
	if (dma->bar_borrow && !dma->outlives && smartiod_is_real(d))
		return ask_port(d, from, msg, l, dma, reterr);
	rc = take(d, from, l, dma, &rep, reterr);
	if (rc == 0)
		smartiod_from_reply(d, from, msg, &rep, sizeof(rep));
	return rc;
}

/* So that the daemon whose borrow took it does not name it any more. */
static void notify_gone(struct smartiod *d, const struct smartiod_dma *dma,
			const struct smartiod_hold *h)
{
	struct sio_peer_hold_release msg = {
		.h.type = sio_to_le32(SIO_PEER_HOLD_GONE),
		.hold = sio_to_le64(dma->by_id.key),
		.borrower = sio_to_le64(h->borrow),
		.fdid = sio_to_le32(dma->loan->device->fdid),
		.generation = sio_to_le32(dma->loan->device->generation),
	};

	smartiod_notify(d, h->node, &msg, sizeof(msg));
}

int smartiod_lend_unhold(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_unhold *m = msg;
	struct sio_prep_unhold rep = {.h.size = sio_to_le32(sizeof(rep))};
	uint64_t hold = sio_from_le64(m->hold);
	struct smartiod_hold *h;
	struct smartiod_dma *dma;
	struct smartiod_loan *l;

	l = smartiod_loan_get_holder(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower),
				     reterr);
	if (!l)
		return reterr->code;
	dma = held(d, l->device, hold);
	h = dma ? some_hold(dma, from->node, l->id) : NULL;
	if (!h)
		return sio_fail(reterr, -EINVAL, "%s: no memory is held by number %" PRIu64,
				l->device->topo->name, hold);
	h->count--;
	if (h->node != from->node && h->node != d->node)
		notify_gone(d, dma, h);
	rep.of = sio_to_le64(h->borrow);
	rep.node = sio_to_le32(h->node);
	cut_kept(d, dma);
	smartiod_from_reply(d, from, msg, &rep, sizeof(rep));
	return 0;
}

/*
 * A hold that no program heard of. Whoever asked for it may have ended, or released the registers;
 * what counts is that its node has one, and that the device's queues have not been ended since.
 */
int smartiod_peer_hold_release(struct smartiod *d, const struct smartiod_from *from,
			       const void *msg, struct sio_err *reterr)
{
	const struct sio_peer_hold_release *m = msg;
	struct smartiod_device *dev = smartiod_device_known(d, sio_from_le32(m->fdid));
	struct smartiod_dma *dma = dev ? held(d, dev, sio_from_le64(m->hold)) : NULL;
	struct smartiod_hold *h = dma ? hold_of(dma, from->node, sio_from_le64(m->borrower)) : NULL;

	(void)reterr;
	if (!h || h->count == 0 || dev->generation != sio_from_le32(m->generation))
		return 0;
	h->count--;
	cut_kept(d, dma);
	return 0;
}

/* ---- where two daemons meet again ---- */

/*
 * Of before our start we know no pins. Who borrowed exclusively had the registers alone since; else
 * whoever could have had them may have taken some. Its program may have ended.
 */
static bool may_have_taken(struct smartiod *d, uint32_t node, const struct smartiod_dma *dma,
			   uint64_t borrow)
{
	const struct smartiod_device *dev = dma->loan->device;
	const struct smartiod_loan *l = smartiod_loan_find(d, borrow);
	uint64_t first = sio_ledger_first(&dev->ledger);
	struct sio_err err;

	if (!dma->before || !smartiod_peer_find(d, node)->expected)
		return false;
	if (borrow >> 32 != (d->boot_generation & 0xffffffffu) || (uint32_t)borrow > d->last_loan ||
	    (first && borrow != first))
		return false; /* or it is none that this start of the host can have lent */
	if (l && (l->node != node || l->device != dev))
		return false;
	return smartiod_allow_device(d, dev->fdid, node, &err) == 0;
}

/*
 * What is asked again comes behind it, so it is as many as the borrower says: it counts those of
 * which it has the answer.
 */
int smartiod_resume_hold(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_resume_hold *m = msg;
	struct smartiod_device *dev = smartiod_device_known(d, sio_from_le32(m->fdid));
	struct smartiod_dma *dma = dev ? held(d, dev, sio_from_le64(m->hold)) : NULL;
	uint64_t borrow = sio_from_le64(m->borrower);
	uint32_t count = sio_from_le32(m->count);
	struct smartiod_hold *h = dma ? hold_of(dma, from->node, borrow) : NULL;

	if (!dma || (dma->bar_borrow && !dma->outlives && smartiod_is_real(d)) ||
	    count > SMARTIOD_MAX_OBJECTS)
		return 0;
	if (dev->generation != sio_from_le32(m->generation))
		return 0; /* the queues went with a reset, of which it hears at the end */
	if (!h && count && may_have_taken(d, from->node, dma, borrow)) {
		if (add(dma, from->node, borrow, reterr) < 0)
			smartiod_log(d, SMARTIOD_WARNING, "%s: %s", dev->topo->name, reterr->text);
		else
			h = dma->holds;
	}
	if (!h)
		return 0;
	h->count = count;
	h->meeting = smartiod_peer_find(d, from->node)->meeting;
	return 0;
}

/* Those of a borrow that has ended stay, as the queues do: its daemon may have forgotten them. */
static void hold_resumed(struct smartiod *d, struct smartiod_hold *h, uint32_t node)
{
	const struct smartiod_loan *l = smartiod_loan_find(d, h->borrow);
	uint32_t meeting = smartiod_peer_find(d, node)->meeting;

	if (h->node == node && h->meeting != meeting && l && l->node == node &&
	    l->state == SMARTIOD_LOAN_LIVE && l->meeting == meeting)
		h->count = 0;
}

void smartiod_holds_resumed(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		for (struct smartiod_hold *h = dma->holds; h; h = h->next)
			hold_resumed(d, h, node);
		if (dma->holds ||
		    !dma->before) /* of before, who has them has perhaps not said so */
			cut_kept(d, dma);
	}
}

/* ---- the device has no queue any more ---- */

void smartiod_holds_end(struct smartiod *d, struct smartiod_device *dev)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		if (dma->loan->device != dev)
			continue;
		smartiod_holds_drop(dma);
		cut_kept(d, dma);
	}
}
