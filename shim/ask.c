// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accesses of a shadow's driver to configuration space. The daemon receives each as an event, and
 * returns the answer of the lender's daemon. The thread that asks sleeps, without a lock, and no
 * longer than the limit that was set when the shadow was made. It gets an error at once when there
 * is no daemon, when the daemon ends, or when the device is lost.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/spinlock.h>

#include "adapter.h"
#include "lend.h"

struct ask {
	struct list_head node;
	const struct sio_shadow *shadow;
	u64 turn;
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

/* Those of @s; NULL: all. */
static void end_all(const struct sio_shadow *s, int error)
{
	struct ask *a, *next;

	spin_lock(&lock);
	list_for_each_entry_safe(a, next, &asks, node)
		if (!s || a->shadow == s)
			end(a, ~0, error);
	spin_unlock(&lock);
}

void sio_asks_lose(const struct sio_shadow *s)
{
	end_all(s, -ENODEV);
}

void sio_asks_hear(bool yes)
{
	spin_lock(&lock);
	heard = yes;
	spin_unlock(&lock);
	if (!yes)
		end_all(NULL, -ENOTCONN);
}

static int start(struct ask *a, struct sio_evt_shadow_config *evt)
{
	spin_lock(&lock);
	if (heard) {
		a->turn = evt->turn = ++last_turn;
		list_add_tail(&a->node, &asks);
	}
	spin_unlock(&lock);
	if (!a->turn)
		return -ENOTCONN;
	return sio_event(SIO_EV_SHADOW_CONFIG, evt, sizeof(*evt)) ? 0 : -EAGAIN;
}

int smartio_shadow_ask(struct sio_shadow *s, u32 reg, u32 value, u32 mask, u32 *ret)
{
	struct sio_evt_shadow_config evt = {
		.reg = reg, .write = mask != 0, .value = value, .mask = mask};
	struct ask a = {.shadow = s, .error = -ETIMEDOUT};
	unsigned long limit = msecs_to_jiffies(sio_shadow_name(s, &evt.id, &evt.h.owner));
	int error;

	init_completion(&a.done);
	INIT_LIST_HEAD(&a.node);
	error = start(&a, &evt);
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
