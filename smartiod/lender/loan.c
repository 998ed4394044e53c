/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loans, the lender's objects for borrows: found by number, pinned by operations, freed when
 * nothing refers to them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/lender/lend.h"

void smartiod_loan_enter(struct smartiod *d, struct smartiod_loan *l,
			 enum smartiod_loan_event event)
{
	enum smartiod_loan_state before = l->state;

	if (!smartiod_loan_next(before, event, &l->state))
		smartiod_fatal(d, "loan %" PRIu64 ": event %u in state %u", l->id, event, before);
	SIO_PROBE(smartiod, loan_state, l->id, before, l->state, event);
}

struct smartiod_loan *smartiod_loan_find(struct smartiod *d, uint64_t id)
{
	return SMARTIOD_OF(smartiod_tree_find(&d->loans, id), struct smartiod_loan, by_id);
}

struct smartiod_loan *smartiod_loan_after(struct smartiod *d, uint64_t after)
{
	return SMARTIOD_OF(smartiod_tree_after(&d->loans, after), struct smartiod_loan, by_id);
}

bool smartiod_loan_was_given(const struct smartiod *d, uint64_t id)
{
	return id && id <= ((d->boot_generation & 0xffffffffu) << 32 | d->last_loan);
}

/* It was a borrow of this host, which may not have heard yet that it has ended. */
static bool known_once(struct smartiod *d, uint32_t fdid, uint64_t id)
{
	return smartiod_device_known(d, fdid) && smartiod_loan_was_given(d, id);
}

struct smartiod_loan *smartiod_loan_get(struct smartiod *d, const struct smartiod_from *from,
					uint32_t fdid, uint64_t id, struct sio_err *reterr)
{
	struct smartiod_loan *l = smartiod_loan_find(d, id);

	if (known_once(d, fdid, id) && (!l || smartiod_loan_ended(l))) {
		sio_fail(reterr, -ENOTCONN, "borrow %" PRIu64 " of node %" PRIu32 " has ended", id,
			 from->node);
		return NULL;
	}
	if (!l || l->state != SMARTIOD_LOAN_LIVE || l->node != from->node ||
	    l->device->fdid != fdid) {
		sio_fail(reterr, -EBADF,
			 "%s knows no borrow %" PRIu64 " of device %#" PRIx32 " by node %" PRIu32,
			 d->host->name, id, fdid, from->node);
		return NULL;
	}
	return l;
}

struct smartiod_loan *smartiod_loan_get_holder(struct smartiod *d, const struct smartiod_from *from,
					       uint32_t fdid, uint64_t id, struct sio_err *reterr)
{
	struct smartiod_loan *l = smartiod_loan_get(d, from, fdid, id, reterr);

	return l && sio_ledger_may_settle(&l->device->ledger, l->id, reterr) == 0 ? l : NULL;
}

void smartiod_loan_close_owner(struct smartiod *d, struct smartiod_loan *l)
{
	/* Without an owner yet, its OWNER_NEW is under way: that answer goes on. */
	if (!l->owner)
		return;
	smartiod_port_owner_close(d, l->owner);
	smartiod_close_fd(d, &l->owner_fd);
}

void smartiod_loan_free(struct smartiod *d, struct smartiod_loan *l)
{
	smartiod_charge_drop(&l->charge);
	smartiod_close_fd(d, &l->owner_fd);
	smartiod_old_vectors_end(l);
	smartiod_tree_remove(&d->loans, &l->by_id);
	free(l);
}

void smartiod_loan_check(struct smartiod *d, struct smartiod_loan *l)
{
	if (l->state == SMARTIOD_LOAN_CLOSED && l->pins == 0 && !l->dmas &&
	    !sio_ledger_find(&l->device->ledger, l->id))
		smartiod_loan_free(d, l);
}

void smartiod_loan_unpin(struct smartiod *d, struct smartiod_loan *l)
{
	l->pins--;
	smartiod_loan_check(d, l);
}

struct smartiod_loan *smartiod_loan_by_owner(struct smartiod *d, uint64_t owner)
{
	struct smartiod_loan *l = smartiod_loan_after(d, 0);

	while (l && l->owner != owner)
		l = smartiod_loan_after(d, l->id);
	return l;
}

uint64_t smartiod_loan_cookie(const struct smartiod_loan *l, bool exclusive)
{
	return (exclusive ? SMARTIOD_COOKIE_EXCLUSIVE : 0) |
	       (uint64_t)l->node << SMARTIOD_COOKIE_NODE_SHIFT |
	       (l->device->port.id & SMARTIOD_COOKIE_DEVICES) << 32 | (l->id & 0xffffffffu);
}

struct smartiod_loan *smartiod_loan_of(struct smartiod *d, const struct smartiod_from *from,
				       uint64_t borrower, uint32_t fdid)
{
	struct smartiod_loan *l = smartiod_loan_find(d, borrower);

	if (!l || l->node != from->node || l->device->fdid != fdid ||
	    l->state != SMARTIOD_LOAN_LIVE ||
	    l->meeting != smartiod_peer_find(d, from->node)->meeting)
		return NULL;
	return l;
}
