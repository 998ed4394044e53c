/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration space, the borrower's side. An access of a shadow's driver is sent to the lender,
 * and the lender's answer goes to the kernel, which waits no longer than the limit that it gave. An
 * access that failed is answered as well, so that nothing waits for it.
 */
#include <errno.h>

#include "smartiod/base/room.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/borrower/borrow.h"

struct config_op {
	struct smartiod_op op;
	struct smartiod_borrow *borrow; /* pinned */
	uint64_t shadow, turn;
};

static void answer(struct smartiod *d, uint64_t shadow, uint64_t turn, uint32_t value, int error)
{
	struct sio_req_shadow_answer req = {
		.h.op = SIO_OP_SHADOW_ANSWER,
		.id = shadow,
		.turn = turn,
		.value = value,
		.error = error,
	};

	smartiod_port_send(d, &req, sizeof(req));
}

static void config_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct config_op *c = (struct config_op *)op;
	const struct sio_prep_config *rep = a->msg;
	struct smartiod_borrow *b = c->borrow;

	if (a->error)
		smartiod_log(d, SMARTIOD_DEBUG, "%s: configuration space: %s",
			     b->device->topo->name, a->text);
	answer(d, c->shadow, c->turn, a->error ? UINT32_MAX : sio_from_le32(rep->value), a->error);
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

/* Of before our start, and not claimed yet: then the port repeats what its driver asks. */
static bool may_be_claimed(struct smartiod *d, const struct sio_evt_shadow_config *evt)
{
	const struct smartiod_unclaimed *l = smartiod_unclaimed_shadow(d, evt->h.owner);

	return !d->ready || (l && l->by_id.key == evt->id && !l->ending);
}

void smartiod_shadow_config(struct smartiod *d, const struct sio_evt_shadow_config *evt)
{
	struct smartiod_session *s = smartiod_session_by_owner(d, evt->h.owner);
	struct smartiod_borrow *b = s ? smartiod_shadow_borrow(s) : NULL;
	struct sio_peer_config ask = {.h.type = sio_to_le32(SIO_PEER_CONFIG),
				      .reg = sio_to_le32(evt->reg),
				      .value = sio_to_le32(evt->value),
				      .mask = sio_to_le32(evt->write ? evt->mask : 0)};
	struct config_op *c = NULL;
	struct sio_err err;

	if (!b && may_be_claimed(d, evt))
		return;
	if (b && !smartiod_borrow_lost(b))
		c = smartiod_op_new(d, NULL, NULL, sizeof(*c), config_step, &err);
	if (!c) {
		answer(d, evt->id, evt->turn, UINT32_MAX, -ENODEV);
		return;
	}
	c->shadow = evt->id;
	c->turn = evt->turn;
	c->borrow = b;
	b->pins++;
	ask.borrower = sio_to_le64(b->id);
	ask.fdid = sio_to_le32(b->device->fdid);
	smartiod_ask(d, &c->op, b->node, &ask, sizeof(ask));
}
