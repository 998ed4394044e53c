/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resets of a device that its lender decides on: when it comes, after the last borrow, and before a
 * borrow that finds the device unused, but not as such a reset left it. So no borrower finds the
 * registers of the previous one, and no quarantine lasts when no program lives that could settle
 * it. A device that is in use is reset only by force, and one that has virtual functions never.
 *
 * A device is in use as long as a borrow of it lives, with or without the registers, and also while
 * the borrow's program has not come back to a smartiod that was restarted. A manager may therefore
 * leave and come back while its clients do I/O: they have borrowed the device, too.
 *
 * Borrows that arrive while the device is to be reset wait, and get nothing of it before. A borrow
 * that has ended is waited for until the port has reported what it left, so that the reset ends
 * that quarantine as well.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/lender/lend.h"

#define AGAIN_NS 10000000ull	   /* a reset that failed for want of something is tried again, */
#define AGAIN_MAX_NS 1000000000ull /* later each time */

uint32_t smartiod_reset_kind(const struct smartiod_device *dev)
{
	if (dev->port.resets & 1u << SIO_RESET_FUNCTION)
		return SIO_RESET_FUNCTION;
	return dev->port.resets & 1u << SIO_RESET_BUS ? SIO_RESET_BUS : 0;
}

/*
 * How we reset it of our own accord. A reset of a physical function takes its virtual ones away,
 * and somebody may be about to borrow one: that is done when it is asked for, and never else.
 */
static uint32_t own_kind(const struct smartiod_device *dev)
{
	return dev->topo->virtual_functions ? 0 : smartiod_reset_kind(dev);
}

static const char *kind_name(const struct smartiod_device *dev)
{
	return smartiod_reset_kind(dev) == SIO_RESET_BUS ? "bus reset" : "function reset";
}

static void step(struct smartiod *d, struct smartiod_device *dev, enum sio_dev_event event)
{
	if (!sio_dev_step(&dev->state, event))
		smartiod_log(d, SMARTIOD_ERROR, "%s: unexpected event %d of a reset while it is %s",
			     dev->topo->name, event, sio_dev_state_name(dev->state));
}

static bool is_wanted(const struct smartiod_device *dev)
{
	return dev->state == SIO_DEV_WANTED || dev->state == SIO_DEV_RUNNING;
}

/* Live borrows; @but: not this one. */
static bool is_used(struct smartiod *d, const struct smartiod_device *dev,
		    const struct smartiod_loan *but)
{
	for (const struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		if (l->device == dev && l != but && !smartiod_loan_ended(l) &&
		    l->state != SMARTIOD_LOAN_WAITING)
			return true;
	return false;
}

/* One has ended, and the port has not said yet what stays of it. */
static bool is_ending(struct smartiod *d, const struct smartiod_device *dev)
{
	for (const struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		if (l->device == dev &&
		    (l->state == SMARTIOD_LOAN_ENDED || l->state == SMARTIOD_LOAN_ENDED_ORPHANED))
			return true;
	return false;
}

/* ---- who waits ---- */

static void wait_for_it(struct smartiod_device *dev, struct smartiod_waiter *w,
			struct smartiod_op *op)
{
	struct smartiod_waiter **at = &dev->lent->reset.waiting;

	while (*at)
		at = &(*at)->next;
	*w = (struct smartiod_waiter){.op = op, .device = dev};
	*at = w;
	smartiod_op_park(op);
}

void smartiod_reset_leave(struct smartiod_waiter *w)
{
	struct smartiod_waiter **at;

	if (!w->device)
		return;
	at = &w->device->lent->reset.waiting;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	w->device = NULL;
}

static void wake_all(struct smartiod *d, struct smartiod_device *dev,
		     const struct smartiod_answer *a)
{
	struct smartiod_waiter *w;

	while ((w = dev->lent->reset.waiting)) {
		smartiod_reset_leave(w);
		smartiod_op_wake(d, w->op, a);
	}
}

/* ---- a reset ---- */

static unsigned quarantined(const struct smartiod_device *dev)
{
	return sio_ledger_count(&dev->ledger).quarantined;
}

/* A shared borrow takes it as it came, too: its port has reset it then, if that was possible. */
static bool is_good_for(const struct smartiod_device *dev, bool exclusive)
{
	return dev->state == SIO_DEV_CLEAN || (dev->state == SIO_DEV_FOUND && !exclusive);
}

void smartiod_reset_check(struct smartiod *d, struct smartiod_device *dev)
{
	struct smartiod_reset *r = &dev->lent->reset;

	if (dev->state != SIO_DEV_WANTED || !d->ready || smartiod_recovering(d) ||
	    is_ending(d, dev) || (!r->forced && (is_used(d, dev, NULL) || dev->lent->kept)))
		return;
	if (r->waits) { /* its step comes back here */
		smartiod_op_resume(d, &r->word.lend.op);
		return;
	}
	step(d, dev, SIO_DEV_START);
	r->since = d->ops->now(d->ctx);
	r->settled = quarantined(dev);
	smartiod_word_reset(d, dev, smartiod_reset_kind(dev));
}

static void again(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_device *dev = ((struct smartiod_word *)op)->device;

	(void)a;
	dev->lent->reset.waits = false;
	if (dev->state == SIO_DEV_FAILED)
		step(d, dev, SIO_DEV_WANT);
	smartiod_reset_check(d, dev);
}

/* What fails for want of memory, or because another resets it just now, may go well later. */
static void try_again(struct smartiod *d, struct smartiod_device *dev, int error)
{
	struct smartiod_reset *r = &dev->lent->reset;
	unsigned shift = r->failed < 8 ? r->failed : 8;
	uint64_t ns = AGAIN_NS << shift;

	r->failed++;
	if (error != -ENOMEM && error != -EBUSY && error != -EAGAIN && error != -EINTR)
		return;
	if (dev->state != SIO_DEV_FAILED) /* somebody uses it */
		return;
	r->word.lend.op.step = again;
	r->waits = true;
	smartiod_op_doze(d, &r->word.lend.op, ns < AGAIN_MAX_NS ? ns : AGAIN_MAX_NS);
}

static void say_that_none(struct smartiod *d, struct smartiod_device *dev)
{
	if (dev->lent->reset.said)
		return;
	dev->lent->reset.said = true;
	smartiod_log(d, SMARTIOD_WARNING,
		     "%s %s: a borrower finds the registers that the one before him left",
		     dev->topo->name,
		     smartiod_reset_kind(dev)
			     ? "is reset when that is asked for alone, for its virtual functions"
			     : "has no function reset, and is not alone on its bus");
}

static void succeeded(struct smartiod *d, struct smartiod_device *dev)
{
	struct smartiod_reset *r = &dev->lent->reset;

	step(d, dev, SIO_DEV_DONE);
	r->failed = 0;
	r->settled -= quarantined(dev);
	smartiod_log(d, SMARTIOD_INFO,
		     "%s: %s in %" PRIu64 " us; borrows whose quarantine it ended: %" PRIu32,
		     dev->topo->name, kind_name(dev), r->took / 1000, r->settled);
}

/* @ret: the result for those who wait. */
static void failed(struct smartiod *d, struct smartiod_device *dev, struct smartiod_answer *ret)
{
	struct smartiod_reset *r = &dev->lent->reset;

	step(d, dev, SIO_DEV_FAIL);
	r->settled = 0;
	if (ret->error == -ENODEV) {
		step(d, dev, SIO_DEV_NEW);
		return;
	}
	if (ret->error == -EOPNOTSUPP) { /* it seemed to have one */
		dev->port.resets &= ~(1u << smartiod_reset_kind(dev));
		if (smartiod_reset_kind(dev)) {
			step(d, dev, SIO_DEV_WANT);
			return;
		}
		say_that_none(d, dev);
		step(d, dev, SIO_DEV_LEND);
		ret->error = 0;
		return;
	}
	smartiod_log(d, SMARTIOD_WARNING, "%s: %s failed (%u in a row): %s", dev->topo->name,
		     kind_name(dev), r->failed + 1, ret->text);
}

void smartiod_reset_over(struct smartiod *d, struct smartiod_device *dev, int error,
			 const char *text)
{
	struct smartiod_reset *r = &dev->lent->reset;
	struct smartiod_answer a = {.error = error, .text = text};

	r->took = d->ops->now(d->ctx) - r->since;
	if (error)
		failed(d, dev, &a);
	else
		succeeded(d, dev);
	if (is_wanted(dev)) { /* in the other way */
		smartiod_device_announce_later(d, dev);
		smartiod_reset_check(d, dev);
		return;
	}
	r->forced = false;
	if (is_used(d, dev, NULL))
		step(d, dev, SIO_DEV_LEND);
	if (a.error)
		try_again(d, dev, a.error);
	smartiod_device_announce_later(d, dev);
	wake_all(d, dev, &a);
}

/* ---- when ---- */

static void want(struct smartiod *d, struct smartiod_device *dev)
{
	step(d, dev, SIO_DEV_WANT);
	smartiod_device_announce_later(d, dev);
}

bool smartiod_reset_first(struct smartiod *d, struct smartiod_loan *l, bool exclusive,
			  struct smartiod_waiter *w, struct smartiod_op *op)
{
	struct smartiod_device *dev = l->device;
	bool unused = !is_used(d, dev, l);

	if (!own_kind(dev))
		say_that_none(d, dev);
	else if (unused && !is_wanted(dev) && !is_good_for(dev, exclusive))
		want(d, dev);
	if (!is_wanted(dev))
		return false;
	smartiod_loan_enter(d, l, SMARTIOD_LOAN_WAIT);
	wait_for_it(dev, w, op);
	smartiod_reset_check(d, dev);
	return true;
}

void smartiod_reset_lend(struct smartiod *d, struct smartiod_loan *l)
{
	smartiod_loan_enter(d, l, SMARTIOD_LOAN_GO);
	step(d, l->device, SIO_DEV_LEND);
}

void smartiod_reset_borrow_over(struct smartiod *d, struct smartiod_device *dev)
{
	bool told = false;

	if (dev->present && dev->state == SIO_DEV_USED && !is_used(d, dev, NULL) &&
	    !dev->lent->kept && !is_ending(d, dev)) {
		told = own_kind(dev);
		if (told)
			want(d, dev);
		else if (quarantined(dev))
			smartiod_log(
				d, SMARTIOD_WARNING,
				"%s %s: what %u dead borrowers had mapped for it stays until a "
				"program that has its registers settles them",
				dev->topo->name,
				smartiod_reset_kind(dev) ? "is reset when that is asked for alone"
							 : "has no function reset",
				quarantined(dev));
	}
	if (!told)
		smartiod_device_announce_later(d, dev);
	smartiod_reset_check(d, dev);
}

/*
 * Nobody has had it since it came: it is reset now, so that the first exclusive borrow does not
 * have to wait for that. In emulated hardware a reset takes no time.
 */
static void want_as_found(struct smartiod *d, struct smartiod_device *dev)
{
	if (dev->present && dev->state == SIO_DEV_FOUND && smartiod_is_real(d) && own_kind(dev) &&
	    !is_used(d, dev, NULL))
		want(d, dev);
}

void smartiod_resets_ready(struct smartiod *d)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		if (dev->node != d->node)
			continue;
		want_as_found(d, dev);
		smartiod_reset_check(d, dev);
	}
}

void smartiod_reset_opened(struct smartiod *d, struct smartiod_device *dev, bool fresh)
{
	step(d, dev, SIO_DEV_NEW);
	dev->lent->reset.said = false;
	dev->lent->reset.failed = 0;
	if (!own_kind(dev))
		say_that_none(d, dev);
	/* A borrow of before, of which nothing is left, may have had it. */
	if (!fresh && !is_wanted(dev))
		step(d, dev, SIO_DEV_LEND);
	/* At the start it is not known yet who has what. */
	if (d->ready && !smartiod_recovering(d)) {
		want_as_found(d, dev);
		smartiod_reset_check(d, dev);
	}
}

void smartiod_reset_device_gone(struct smartiod *d, struct smartiod_device *dev)
{
	struct smartiod_answer a = {.error = -ENODEV, .text = "the device is gone"};

	step(d, dev, SIO_DEV_NEW);
	wake_all(d, dev, &a);
}

void smartiod_reset_now(struct smartiod *d, struct smartiod_device *dev, bool force,
			struct smartiod_waiter *w, struct smartiod_op *op)
{
	if (!is_wanted(dev))
		want(d, dev);
	dev->lent->reset.forced |= force;
	wait_for_it(dev, w, op);
	smartiod_reset_check(d, dev);
}
