/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery from dropped events (SIO_EV_OVERFLOW). The daemon lists all owners and devices of the
 * port, in the order of their ids. An object that the daemon knows whose id lies between two
 * successive entries of the list has ended. The port answers requests in order, so what the daemon
 * knows when the last entry arrives is either in the list or has ended. The port reports the states
 * of links again by itself.
 */
#include <errno.h>

#include "smartiod/daemon/dispatch.h"

#define AGAIN_NS 100000000ull /* after a list that the port could not make */

struct look_op {
	struct smartiod_op op;
	enum { LIST_OWNERS, LIST_DEVICES, FAILED } state;
	uint64_t after; /* ids up to this one have been looked at */
	bool again;	/* more was dropped meanwhile */
	bool unsure;	/* what a device's generation says is not known yet */
};

static struct look_op *look_of(struct smartiod *d)
{
	return (struct look_op *)d->look;
}

static void ask(struct smartiod *d, struct look_op *l)
{
	struct sio_req_list owners = {
		.h.op = SIO_OP_LIST, .kind = SIO_KIND_OWNER, .after = l->after};
	struct sio_req_device_list devices = {.h.op = SIO_OP_DEVICE_LIST, .after = l->after};

	if (l->state == LIST_OWNERS)
		smartiod_port_ask(d, &l->op, &owners, sizeof(owners));
	else
		smartiod_port_ask(d, &l->op, &devices, sizeof(devices));
}

static void begin(struct smartiod *d, struct look_op *l)
{
	l->again = l->unsure = false;
	l->state = LIST_OWNERS;
	l->after = 0;
	ask(d, l);
}

static void over(struct smartiod *d, struct look_op *l)
{
	if (l->again) {
		begin(d, l);
		return;
	}
	d->look = NULL;
	smartiod_op_free(d, &l->op);
}

/* ---- owners ---- */

/* The lowest above @after of owners whose end we have not heard of; UINT64_MAX: none. */
static uint64_t next_owner(struct smartiod *d, uint64_t after)
{
	uint64_t least = UINT64_MAX, key = 0;
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->sessions, key))) {
		const struct smartiod_session *s =
			SMARTIOD_OF(n, struct smartiod_session, by_client);

		key = n->key;
		if (!s->owner_gone && !s->ending && s->owner > after && s->owner < least)
			least = s->owner;
	}
	for (unsigned i = 0; d->rooms[i]; i++) {
		uint64_t owner = UINT64_MAX;

		if (d->rooms[i]->next_owner)
			owner = d->rooms[i]->next_owner(d, after);
		if (owner < least)
			least = owner;
	}
	return least;
}

static bool lives(const struct sio_evt_list *evt, uint64_t owner)
{
	for (uint32_t i = 0; i < evt->count && i < SIO_LIST_MAX; i++)
		if (evt->entry[i].id == owner)
			return evt->entry[i].state == SIO_STATE_LIVE;
	return false;
}

/* The owners behind @l->after, up to the last of the list. */
static void compare_owners(struct smartiod *d, struct look_op *l, const struct sio_evt_list *evt)
{
	bool more = evt->more && evt->count && evt->count <= SIO_LIST_MAX;
	uint64_t last = more ? evt->entry[evt->count - 1].id : UINT64_MAX - 1, owner = l->after;

	while ((owner = next_owner(d, owner)) <= last)
		if (!lives(evt, owner))
			smartiod_port_owner_gone(d, owner);
	l->after = more ? last : 0;
	l->state = more ? LIST_OWNERS : LIST_DEVICES;
}

/* ---- devices ---- */

static void compare_devices(struct smartiod *d, struct look_op *l, const struct sio_evt_device *evt)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->device_listed && !d->rooms[i]->device_listed(d, l->after, evt))
			l->unsure = true;
	if (evt)
		l->after = evt->id;
}

static void look_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct look_op *l = (struct look_op *)op;

	if (l->state == FAILED) {
		begin(d, l);
	} else if (l->state == LIST_DEVICES && a->error == -ENOENT) {
		compare_devices(d, l, NULL);
		if (l->unsure)
			goto again;
		over(d, l);
	} else if (a->error) {
		smartiod_log(d, SMARTIOD_WARNING, "what the port has cannot be listed: %s",
			     a->text);
		goto again;
	} else {
		if (l->state == LIST_OWNERS)
			compare_owners(d, l, a->msg);
		else
			compare_devices(d, l, a->msg);
		ask(d, l);
	}
	return;

again:
	l->state = FAILED;
	smartiod_op_doze(d, op, AGAIN_NS);
}

void smartiod_overflow(struct smartiod *d, const struct sio_evt_overflow *evt)
{
	struct sio_err err;
	struct look_op *l;

	if (evt->faults) {
		smartiod_log(d, SMARTIOD_WARNING, "many faults; the port does not report each");
		return;
	}
	d->overflow = !d->ready; /* what is there then is being listed: we look when we know it */
	smartiod_log(d, SMARTIOD_WARNING,
		     "the port dropped events, because this daemon read too slowly: its "
		     "objects are listed again");
	if (d->overflow)
		return;
	if (d->look) {
		look_of(d)->again = true;
		return;
	}
	l = smartiod_op_new(d, NULL, NULL, sizeof(*l), look_step, &err);
	if (!l) {
		smartiod_fatal(d, "%s", err.text);
		return;
	}
	d->look = &l->op;
	begin(d, l);
}

void smartiod_overflow_ready(struct smartiod *d)
{
	const struct sio_evt_overflow evt = {.h.op = SIO_EV_OVERFLOW};

	if (d->overflow)
		smartiod_overflow(d, &evt);
}
