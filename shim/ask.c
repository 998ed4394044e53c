// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accesses of a shadow's driver to configuration space. The daemon receives each as an event, and
 * returns the answer of the lender's daemon. The thread that asks sleeps, without a lock, and no
 * longer than the limit that was set when the shadow was made. While there is no daemon it waits
 * for the next one, which has the event repeated when it knows the shadow again; unless the shadow
 * is about to go, when no daemon may ever come. It gets an error at once when the device is lost.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/spinlock.h>

#include "adapter.h"
#include "lend.h"

struct ask {
	struct list_head node;
	const struct sio_shadow *shadow;
	struct sio_evt_shadow_config *evt;
	u64 turn; /* 0: not asked */
	struct completion done;
	u32 value;
	int error;
};

static LIST_HEAD(asks); /* that are not answered */
static DEFINE_SPINLOCK(lock);
static u64 last_turn;
static bool heard; /* there is a daemon */

/* With @lock. */
static void end(struct ask *a, u32 value, int error)
{
	list_del_init(&a->node);
	a->value = value;
	a->error = error;
	complete(&a->done);
}

void sio_asks_lose(const struct sio_shadow *s)
{
	struct ask *a, *next;

	spin_lock(&lock);
	list_for_each_entry_safe(a, next, &asks, node)
		if (a->shadow == s)
			end(a, ~0, -ENODEV);
	spin_unlock(&lock);
}

/* With @lock: those that nobody may ever answer. */
static void end_unheard(void)
{
	struct ask *a, *next;

	list_for_each_entry_safe(a, next, &asks, node)
		if (!heard && sio_shadow_leaves(a->shadow))
			end(a, ~0, -ENOTCONN);
}

void sio_asks_hear(bool yes)
{
	spin_lock(&lock);
	heard = yes;
	end_unheard();
	spin_unlock(&lock);
}

void sio_asks_leave(void)
{
	spin_lock(&lock);
	end_unheard();
	spin_unlock(&lock);
}

void sio_asks_repeat(const struct sio_shadow *s)
{
	struct ask *a;

	spin_lock(&lock);
	list_for_each_entry(a, &asks, node)
		if (a->shadow == s)
			sio_event(SIO_EV_SHADOW_CONFIG, a->evt, sizeof(*a->evt));
	spin_unlock(&lock);
}

static int start(struct ask *a)
{
	int error = 0;

	spin_lock(&lock);
	if (heard || !sio_shadow_leaves(a->shadow)) {
		a->turn = a->evt->turn = ++last_turn;
		list_add_tail(&a->node, &asks);
	} else {
		error = -ENOTCONN;
	}
	if (heard && !sio_event(SIO_EV_SHADOW_CONFIG, a->evt, sizeof(*a->evt)))
		error = -EAGAIN;
	spin_unlock(&lock);
	return error;
}

int smartio_shadow_ask(struct sio_shadow *s, u32 reg, u32 value, u32 mask, u32 *ret)
{
	struct sio_evt_shadow_config evt = {
		.reg = reg, .write = mask != 0, .value = value, .mask = mask};
	struct ask a = {.shadow = s, .evt = &evt, .error = -ETIMEDOUT};
	unsigned long limit = msecs_to_jiffies(sio_shadow_name(s, &evt.id, &evt.h.owner));
	int error;

	init_completion(&a.done);
	INIT_LIST_HEAD(&a.node);
	error = start(&a);
	if (!error)
		wait_for_completion_killable_timeout(&a.done, limit);
	spin_lock(&lock);
	list_del_init(&a.node);
	spin_unlock(&lock);
	*ret = a.error || error ? ~0 : a.value;
	return error ? error : a.error;
}
EXPORT_SYMBOL_GPL(smartio_shadow_ask);

int sio_op_shadow_answer(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_shadow_answer *m = msg;
	struct ask *a;
	int error = -ESTALE;

	if (m->error > 0)
		return sio_fail(rq, -EINVAL, "error %d, 0 or a negative one is right", m->error);
	spin_lock(&lock);
	list_for_each_entry(a, &asks, node)
		if (a->turn == m->turn && ((const struct sio_obj *)a->shadow)->id == m->id) {
			end(a, m->value, m->error);
			error = 0;
			break;
		}
	spin_unlock(&lock);
	return error ? sio_fail(rq, error, "nobody waits for question %llu of shadow %#llx",
				m->turn, m->id)
		     : 0;
}
