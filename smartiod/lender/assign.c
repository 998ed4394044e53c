/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Assignment of pages of a device's own memory. The owner of the registers places queues of all
 * borrowers there, and says which borrower each page belongs to; nobody else may. This file makes
 * sure that no page is mapped by two borrowers: a page is assigned to another borrower only when
 * the previous one has no view of it left, or when the previous one's owner at the port has ended,
 * which closed its views. Nor is a page assigned to the same borrower once more, as part of other
 * pages than before, while that borrower has a view of it: the tables would no longer say which
 * pages the view covers.
 *
 * Whoever placed a queue in a page must delete it before the page is assigned again. The device
 * reads its own memory whatever became of a program, so unlike pages of another device's BAR
 * (hold.c) these pages need no pin. Where the port outlives its daemon, a restarted daemon would
 * have to recover the assignments. That is not implemented, so a real host refuses.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

static bool meets(uint64_t offset, uint64_t length, uint64_t other, uint64_t other_length)
{
	return offset < other + other_length && other < offset + length;
}

bool smartiod_assigned_find(const struct smartiod_loan *l, uint32_t bar, uint64_t offset,
			    uint64_t end, struct smartiod_bar_run *ret)
{
	for (const struct smartiod_assigned *a = l->device->lent->assigned; a; a = a->next) {
		if (a->borrow != l->id || a->bar != bar || a->offset > offset ||
		    a->offset + a->length < end)
			continue;
		*ret = (struct smartiod_bar_run){
			.offset = a->offset, .length = a->length, .use = SMARTIOD_BAR_ASSIGNED};
		return true;
	}
	return false;
}

void smartiod_assigned_end(struct smartiod_device *dev, uint64_t of)
{
	struct smartiod_assigned **at = &dev->lent->assigned, *a;

	while ((a = *at)) {
		if (of && a->borrow != of) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		free(a);
	}
}

/* One that has ended may reach them until the port has ended its owner: then its record goes. */
static bool is_used(struct smartiod *d, const struct smartiod_assigned *a)
{
	const struct smartiod_loan *l = smartiod_loan_find(d, a->borrow);

	if (!l)
		return false;
	if (smartiod_loan_ended(l))
		return true;
	for (const struct smartiod_view *v = l->views; v; v = v->next)
		if (v->bar == a->bar && meets(v->offset, v->length, a->offset, a->length))
			return true;
	return false;
}

/* Whole pages, all of them of one run that the holder has. */
static bool are_pages(const struct smartiod_device *dev, uint32_t bar, uint64_t offset,
		      uint64_t bytes)
{
	struct smartiod_bar_run run[SMARTIOD_BAR_RUNS];
	unsigned n = smartiod_devclass_runs(&dev->port, bar, run);
	uint64_t end;

	if (bytes == 0 || (offset | bytes) % SIO_PAGE_SIZE ||
	    __builtin_add_overflow(offset, bytes, &end))
		return false;
	for (unsigned i = 0; i < n; i++)
		if (run[i].use == SMARTIOD_BAR_HOLDER && offset >= run[i].offset &&
		    end <= run[i].offset + run[i].length)
			return true;
	return false;
}

/* Just what it has already. */
static bool is_same(const struct smartiod_assigned *a, const struct smartiod_assigned *want)
{
	return a->borrow == want->borrow && a->offset == want->offset && a->length == want->length;
}

static int take(struct smartiod *d, struct smartiod_device *dev,
		const struct smartiod_assigned *want, struct sio_err *reterr)
{
	struct smartiod_assigned **at = &dev->lent->assigned, *a, *made;

	for (a = *at; a; a = a->next)
		if (a->bar == want->bar && !is_same(a, want) &&
		    meets(a->offset, a->length, want->offset, want->length) && is_used(d, a))
			return sio_fail(reterr, -EBUSY,
					"BAR %" PRIu32 " of %s: borrow %" PRIu64
					" has some of %#" PRIx64 " to %#" PRIx64 " mapped",
					want->bar, dev->topo->name, a->borrow, want->offset,
					want->offset + want->length);
	made = malloc(sizeof(*made));
	if (!made)
		return sio_fail(reterr, -ENOMEM,
				"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	while ((a = *at)) {
		if (a->bar != want->bar ||
		    !meets(a->offset, a->length, want->offset, want->length)) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		free(a);
	}
	*made = *want;
	made->next = dev->lent->assigned;
	dev->lent->assigned = made;
	return 0;
}

int smartiod_lend_assign(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_assign *m = msg;
	const struct smartiod_assigned want = {.borrow = sio_from_le64(m->of),
					       .offset = sio_from_le64(m->offset),
					       .length = sio_from_le64(m->bytes),
					       .bar = sio_from_le32(m->bar)};
	struct sio_msg ok = {.size = sio_to_le32(sizeof(ok))};
	const struct smartiod_loan *of;
	struct smartiod_device *dev;
	struct smartiod_loan *l;
	int rc;

	l = smartiod_loan_get_holder(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower),
				     reterr);
	if (!l)
		return reterr->code;
	dev = l->device;
	if (smartiod_is_real(d))
		return sio_fail(reterr, -EOPNOTSUPP, "%s: pages of real devices are not assigned",
				dev->topo->name);
	of = smartiod_loan_find(d, want.borrow);
	if (!of || of->device != dev || of->state != SMARTIOD_LOAN_LIVE || of == l)
		return sio_fail(reterr, -EINVAL,
				"%s: no live borrow but the holder's has number %" PRIu64,
				dev->topo->name, want.borrow);
	if (!are_pages(dev, want.bar, want.offset, want.length))
		return sio_fail(reterr, -ERANGE,
				"BAR %" PRIu32 " of %s: %" PRIu64 " bytes at %#" PRIx64
				" are not whole pages of memory that the holder of its registers "
				"has",
				want.bar, dev->topo->name, want.length, want.offset);
	rc = take(d, dev, &want, reterr);
	if (rc < 0)
		return rc;
	smartiod_from_reply(d, from, msg, &ok, sizeof(ok));
	return 0;
}
