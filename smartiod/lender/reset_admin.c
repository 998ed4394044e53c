/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio device reset: a client that has not borrowed a device of this host asks for its reset. */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/allow.h"
#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

struct admin_op {
	struct smartiod_op op;
	struct smartiod_waiter reset;
	struct smartiod_device *device;
	unsigned borrows; /* live when it was asked for */
};

static void admin_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct admin_op *o = (struct admin_op *)op;
	const struct smartiod_reset *r = &o->device->lent->reset;
	struct sio_rep_dev_admin_reset rep = {
		.kind = sio_to_le32(smartiod_reset_kind(o->device)),
		.generation = sio_to_le32(o->device->generation),
		.borrows = sio_to_le32(o->borrows),
		.settled = sio_to_le32(r->settled),
		.mappings = sio_to_le64(r->word.freed),
		.ns = sio_to_le64(r->took),
	};

	smartiod_reset_leave(&o->reset);
	if (a->error)
		smartiod_op_error(d, op, a->error, "%s: %s", o->device->topo->name, a->text);
	else if (!smartiod_reset_kind(o->device)) /* it turned out so */
		smartiod_op_error(d, op, -EOPNOTSUPP, "%s has no function reset",
				  o->device->topo->name);
	else
		smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
	smartiod_op_free(d, op);
}

/* Live borrows of it and of its virtual functions, which it takes with it; *ret_first: one. */
static unsigned count_live(struct smartiod *d, const struct smartiod_device *dev,
			   const struct smartiod_loan **ret_first)
{
	unsigned n = 0;

	for (const struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		if ((l->device == dev || smartiod_device_is_function(d, l->device, dev)) &&
		    !smartiod_loan_ended(l) && n++ == 0)
			*ret_first = l;
	return n;
}

int smartiod_dev_admin_reset(struct smartiod *d, struct smartiod_session *s, const void *msg,
			     struct sio_err *reterr)
{
	const struct sio_msg_dev_admin_reset *m = msg;
	struct smartiod_device *dev = smartiod_device_ours(d, sio_from_le32(m->fdid), reterr);
	bool force = sio_from_le32(m->force) == 1;
	const struct smartiod_loan *first = NULL;
	struct sio_policy_thing thing;
	struct admin_op *o;
	unsigned n;

	if (!dev)
		return reterr->code;
	thing = smartiod_thing_device(d, d->node, dev->topo->name);
	if (smartiod_allow_program(d, s, &thing, reterr) < 0)
		return reterr->code;
	if (sio_from_le32(m->force) > 1)
		return sio_fail(reterr, -EINVAL, "force is %" PRIu32 "; 0 or 1 is right",
				sio_from_le32(m->force));
	if (!smartiod_reset_kind(dev))
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s has no function reset, and is not alone on its bus",
				dev->topo->name);
	n = count_live(d, dev, &first);
	if (n && !force)
		return sio_fail(reterr, -EBUSY,
				"%s is in use: %u borrow%s, the first of %s by process %" PRIu32
				" of node %" PRIu32,
				dev->topo->name, n, n == 1 ? " lives" : "s live",
				first->device->topo->name, first->pid, first->node);
	o = smartiod_op_new(d, s, msg, sizeof(*o), admin_step, reterr);
	if (!o)
		return reterr->code;
	o->device = dev;
	o->borrows = n;
	smartiod_reset_now(d, dev, force, &o->reset, &o->op);
	return 0;
}
