/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds: memory that queues of a device lie in. The lender knows who mapped what, and no queue; the
 * owner of the registers makes the queues, and only hears from others whose memory they are to lie
 * in. So it asks: a hold is the lender's word that the range is mapped by that borrower, and that
 * it stays so until the owner of the registers releases it, or the device has no queue any more
 * (SETTLED, RESET). It outlives who took it, as the queues do. Pages of another device's BAR are
 * cut as soon as their borrow ends (dmabar.c), and a drive that finds no command where its queue
 * was stops for everybody. So they are refused, but for memory of a device of this host, which can
 * be kept (kept.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

static struct smartiod_hold *hold_of(const struct smartiod_dma *dma, uint32_t node)
{
	struct smartiod_hold *h = dma->holds;

	while (h && h->node != node)
		h = h->next;
	return h;
}

int smartiod_hold_add(struct smartiod_dma *dma, uint32_t node, struct sio_err *reterr)
{
	struct smartiod_hold *h = hold_of(dma, node);

	if (smartiod_hold_count(dma) == UINT32_MAX)
		return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_HOLDS,
					  "%s: %" PRIu32 " queues lie in one mapping",
					  dma->loan->device->topo->name, UINT32_MAX);
	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return sio_fail(reterr, -ENOMEM,
					"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
		h->node = node;
		h->next = dma->holds;
		dma->holds = h;
	}
	h->count++;
	return 0;
}

int smartiod_hold_at_least(struct smartiod_dma *dma, uint32_t node, uint32_t count,
			   struct sio_err *reterr)
{
	int rc = hold_of(dma, node) ? 0 : smartiod_hold_add(dma, node, reterr);
	struct smartiod_hold *h = hold_of(dma, node);

	if (rc == 0 && h->count < count)
		h->count = count;
	return rc;
}

uint32_t smartiod_hold_count(const struct smartiod_dma *dma)
{
	uint32_t count = 0;

	for (const struct smartiod_hold *h = dma->holds; h; h = h->next)
		count += h->count;
	return count;
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
	if (dma->kept && !dma->holds && !dma->cut)
		smartiod_dma_cut(d, dma);
}

/* One of @node's; @any: else of another's. False: there is none. */
static bool release_hold(struct smartiod_dma *dma, uint32_t node, bool any)
{
	struct smartiod_hold **at = &dma->holds, *h;

	while (*at && (*at)->node != node)
		at = &(*at)->next;
	if (!*at && any)
		at = &dma->holds;
	h = *at;
	if (!h)
		return false;
	if (--h->count == 0) {
		*at = h->next;
		free(h);
	}
	return true;
}

static bool covers(const struct smartiod_dma *dma, struct sio_dev_addr at, uint64_t bytes)
{
	/* What lies with a host or behind a link that went down is no memory any more. */
	bool reachable = !dma->cut && (!dma->window || (dma->grant && !dma->lost));

	return reachable && !dma->unmapping && at.addr >= dma->iova.addr &&
	       at.addr - dma->iova.addr <= dma->bytes &&
	       bytes <= dma->bytes - (at.addr - dma->iova.addr);
}

static struct smartiod_dma *find(struct smartiod *d, struct smartiod_device *dev, uint64_t of,
				 struct sio_dev_addr at, uint64_t bytes, struct sio_err *reterr)
{
	struct smartiod_loan *l = smartiod_loan_find(d, of);

	if (!l || l->device != dev || l->state != SMARTIOD_LOAN_LIVE) {
		sio_fail(reterr, -EINVAL, "%s: no live borrow has number %" PRIu64, dev->topo->name,
			 of);
		return NULL;
	}
	for (struct smartiod_dma *dma = l->dmas; dma; dma = dma->next) {
		if (!covers(dma, at, bytes))
			continue;
		return !dma->bar_borrow || smartiod_kept_can(d, dma, reterr) == 0 ? dma : NULL;
	}
	sio_fail(reterr, -ERANGE,
		 "%s: borrow %" PRIu64 " has no mapping that covers %" PRIu64 " bytes at %#" PRIx64,
		 dev->topo->name, of, bytes, at.addr);
	return NULL;
}

int smartiod_lend_hold(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_peer_hold *m = msg;
	struct sio_prep_hold rep = {.borrower = m->borrower, .fdid = m->fdid};
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
	rc = smartiod_hold_add(dma, from->node, reterr);
	if (rc < 0)
		return rc;
	rep.hold = sio_to_le64(dma->by_id.key);
	rep.generation = sio_to_le32(l->device->generation);
	rep.h.size = sio_to_le32(sizeof(rep));
	smartiod_from_reply(d, from, msg, &rep, sizeof(rep));
	return 0;
}

/* The mapping for @dev that hold @number is of; NULL. */
static struct smartiod_dma *held(struct smartiod *d, const struct smartiod_device *dev,
				 uint64_t number)
{
	struct smartiod_tree_node *n = smartiod_tree_find(&d->dmas, number);
	struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

	return dma && dma->loan->device == dev ? dma : NULL;
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
	dma = held(d, l->device, hold);
	if (!dma || !release_hold(dma, from->node, true))
		return sio_fail(reterr, -EINVAL, "%s: no memory is held by number %" PRIu64,
				l->device->topo->name, hold);
	cut_kept(d, dma);
	smartiod_from_reply(d, from, msg, &ok, sizeof(ok));
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

	(void)reterr;
	if (!dma || dev->generation != sio_from_le32(m->generation))
		return 0;
	release_hold(dma, from->node, false);
	cut_kept(d, dma);
	return 0;
}

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
