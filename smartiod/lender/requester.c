/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lender's entries in requester tables: one for each device and adapter, with a reference count
 * of all that leaves by that adapter, DMA mappings and interrupt vectors. One operation sends the
 * request to the port; the others wait for it.
 */
#include "smartiod/lender/lend.h"

void smartiod_requester_get(struct smartiod *d, struct smartiod_device *dev, unsigned adapter,
			    struct smartiod_op *op, struct smartiod_requester_user *user)
{
	struct smartiod_requester *r = &dev->lent->requester[adapter];
	struct sio_req_requester_add req = {
		.h.op = SIO_OP_REQUESTER_ADD,
		.adapter = adapter,
		.direction = SIO_REQUESTER_OUT,
		.device = dev->port.id,
	};

	r->users++;
	if (r->id) {
		user->have(d, user, &(struct smartiod_answer){.text = ""});
	} else if (r->adding) {
		user->next = r->waiting;
		r->waiting = user;
	} else {
		r->adding = true;
		smartiod_port_ask(d, op, &req, sizeof(req));
	}
}

void smartiod_requester_answer(struct smartiod *d, struct smartiod_requester *r,
			       const struct smartiod_answer *a,
			       struct smartiod_requester_user *user)
{
	struct smartiod_requester_user *next;

	r->adding = false;
	if (!a->error)
		r->id = ((const struct sio_evt_requester_add *)a->msg)->id;
	user->next = r->waiting;
	r->waiting = NULL;
	for (; user; user = next) {
		next = user->next;
		user->have(d, user, a);
	}
}

void smartiod_requester_put(struct smartiod *d, struct smartiod_requester *r)
{
	struct sio_req_requester_del req = {.h.op = SIO_OP_REQUESTER_DEL, .id = r->id};

	if (--r->users || !r->id)
		return;
	smartiod_port_send(d, &req, sizeof(req));
	r->id = 0;
}
