// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is still under way in the fabric when something has ended here: writes that a device sent to
 * a multicast group before its mapping ended, and accesses of peers to what they were granted. A
 * machine that does not answer may make them take long. So the module's lock is held for a moment
 * only; the daemon waits longer without it (SIO_IOC_SETTLE), and what a late access may still reach
 * is kept until that has come, or the bridge goes: listed, in quarantine, nobody's, with its row of
 * the bridge's table, so that there are not more of them than rows.
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>

#include "adapter.h"

#define LIMIT_MS 4000	 /* what an access may take: twice what it is given */
#define LONGEST_NAP 8000 /* us */
#define AGAIN HZ

/* ---- with sio.lock ---- */

void sio_settle_group(struct smartio_adapter *a, u32 group)
{
	u32 missed;

	if (a->ops->group_missed(a->bridge, group, true, &missed) != -EAGAIN)
		return;
	a->unsettled |= BIT_ULL(group);
	sio.unsettled++;
}

void sio_keep(struct sio_obj *o)
{
	if (!o->kept)
		o->kept = get_jiffies_64() | 1;
	sio.unsettled++;
	schedule_delayed_work(&o->adapter->again, AGAIN);
}

void sio_keep_over(struct sio_obj *o)
{
	o->kept = 0;
	if (o->lingers)
		sio_obj_end(o);
	else
		sio_obj_falls(o);
}

/* Return: it is kept on. */
static bool is_kept_on(struct sio_obj *o)
{
	u64 since = o->kept;

	o->kept = 0;
	if (o->kind == SIO_KIND_GRANT)
		sio_grant_cut((struct sio_grant *)o);
	else
		sio_group_leave(o);
	if (o->kept) {
		o->kept = since;
		return true;
	}
	sio_keep_over(o);
	return false;
}

/* Return: something is under way that is not late yet. */
static bool look(struct smartio_adapter *a)
{
	u64 late = get_jiffies_64() - msecs_to_jiffies(LIMIT_MS);
	struct sio_obj *o, *next;
	u32 missed;
	bool some;

	for (u32 i = 0; i < BITS_PER_TYPE(a->unsettled); i++)
		if (a->unsettled & BIT_ULL(i) &&
		    a->ops->group_missed(a->bridge, i, true, &missed) != -EAGAIN)
			a->unsettled &= ~BIT_ULL(i);
	some = a->unsettled;
	list_for_each_entry_safe(o, next, &a->objects, of_adapter)
		if (o->kept && is_kept_on(o))
			some |= time_after64(o->kept, late);
	return some;
}

void sio_settle_again(struct work_struct *work)
{
	struct smartio_adapter *a = container_of(work, struct smartio_adapter, again.work);

	mutex_lock(&sio.lock);
	if (a->ops)
		look(a); /* what it keeps on has it called again */
	sio_fall();
	mutex_unlock(&sio.lock);
}

/* ---- without it ---- */

static bool look_at_all(bool last)
{
	struct smartio_adapter *a;
	bool some = false;

	mutex_lock(&sio.lock);
	for (u32 i = 0; i < SIO_MAX_ADAPTERS; i++) {
		a = sio_adapter_at(i);
		if (!a)
			continue;
		some |= look(a);
		if (last)
			a->unsettled = 0;
	}
	sio_fall();
	mutex_unlock(&sio.lock);
	return some;
}

int sio_settle(void)
{
	u64 until = get_jiffies_64() + msecs_to_jiffies(LIMIT_MS);
	unsigned int nap = 100;
	bool last;

	do {
		last = time_after64(get_jiffies_64(), until);
		if (!look_at_all(last) || last)
			return 0;
		usleep_range(nap, 2 * nap);
		nap = min(2 * nap, LONGEST_NAP);
	} while (!fatal_signal_pending(current));
	return -EINTR;
}
