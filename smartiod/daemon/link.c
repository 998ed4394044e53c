/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The links of this host's adapters: whether each is up, and since when. The time is this daemon's
 * clock, because the port reports changes without a time. A state that was found at the start has
 * lasted since the start at least.
 */
#include <errno.h>

#include "smartiod/base/op.h"
#include "smartiod/daemon/dispatch.h"

#define SECOND 1000000000ull

void smartiod_link_start(struct smartiod *d)
{
	for (unsigned i = 0; i < SIO_MAX_ADAPTERS; i++)
		d->link[i].since = d->ops->now(d->ctx);
}

/* It may be reported once more while it stays as it was. */
static void set_link(struct smartiod *d, uint32_t adapter, bool up)
{
	if (d->link[adapter].up != up)
		d->link[adapter] = (struct smartiod_link){.up = up, .since = d->ops->now(d->ctx)};
}

/* ---- adapters that a reload adds, or makes others of ---- */

#define AGAIN_NS SECOND /* until a port that could not say is asked once more */

struct ask {
	struct smartiod_op op;
	uint32_t adapter;
	bool dozes;
};

static void ask_port(struct smartiod *d, struct ask *ask)
{
	struct sio_req_adapter req = {.h.op = SIO_OP_ADAPTER, .index = ask->adapter};

	smartiod_port_ask(d, &ask->op, &req, sizeof(req));
}

/* No link is reported for this, so nobody else would ask again. */
static void ask_later(struct smartiod *d, struct ask *ask, const char *why)
{
	smartiod_log(d, SMARTIOD_WARNING, "the port does not say what adapter %u is: %s",
		     ask->adapter, why);
	ask->dozes = true;
	smartiod_op_doze(d, &ask->op, AGAIN_NS);
}

static void take_adapter(struct smartiod *d, struct smartiod_op *op,
			 const struct smartiod_answer *a)
{
	struct ask *ask = (struct ask *)op;
	uint32_t adapter = ask->adapter;
	bool listed = adapter < d->host->n_adapters;

	if (listed && ask->dozes) {
		ask->dozes = false;
		ask_port(d, ask);
		return;
	}
	if (listed && a->error && a->error != -ENODEV) {
		ask_later(d, ask, a->text);
		return;
	}
	if (listed && a->error) { /* the port has none, and will say so when it has */
		d->anew |= 1u << adapter;
	} else if (listed) {
		d->adapter[adapter] = *(const struct sio_evt_adapter *)a->msg;
		set_link(d, adapter, d->adapter[adapter].link_up);
		d->port_adapters |= 1u << adapter;
		smartiod_peer_links_again(d);
	}
	smartiod_op_free(d, op);
}

static void ask_adapter(struct smartiod *d, uint32_t adapter)
{
	struct sio_err err;
	struct ask *ask = smartiod_op_new(d, NULL, NULL, sizeof(*ask), take_adapter, &err);

	d->port_adapters &= ~(1u << adapter); /* until it is answered its paths wait */
	if (!ask) {
		smartiod_log(d, SMARTIOD_WARNING, "what adapter %u is is not known: %s", adapter,
			     err.text);
		d->anew |= 1u << adapter;
		return;
	}
	d->anew &= ~(1u << adapter);
	ask->adapter = adapter;
	ask_port(d, ask);
}

/*
 * The port takes the file after this daemon, and then reports the links of those that it concerns.
 * One that the file has again may be there all the time: another reload had not come to the port.
 */
void smartiod_links_follow(struct smartiod *d)
{
	d->port_adapters &= smartiod_file_adapters(d);
	for (uint32_t i = 0; i < d->host->n_adapters; i++)
		if (!smartiod_has_adapter(d, i))
			ask_adapter(d, i);
	d->anew = smartiod_file_adapters(d);
}

/* ---- links ---- */

static void notify_gone(struct smartiod *d, uint32_t adapter)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->adapter_gone)
			d->rooms[i]->adapter_gone(d, adapter);
}

void smartiod_link_event(struct smartiod *d, const struct sio_evt_link *evt)
{
	bool up = evt->state == SIO_LINK_UP;

	if (evt->adapter < d->host->n_adapters && d->anew >> evt->adapter & 1) {
		ask_adapter(d, evt->adapter);
		return; /* with the answer */
	}
	/* The file may have it no more, and now the port has not. */
	if (evt->adapter < SIO_MAX_ADAPTERS && (!up || smartiod_has_adapter(d, evt->adapter))) {
		set_link(d, evt->adapter, up);
		if (evt->adapter >= d->host->n_adapters)
			notify_gone(d, evt->adapter);
		return;
	}
	smartiod_log(d, SMARTIOD_WARNING,
		     "the port reports the link of adapter %u, which the cluster's file does not "
		     "have, or the port did not say that it has",
		     evt->adapter);
}

int smartiod_link_query(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_link *m = msg;
	uint32_t adapter = sio_from_le32(m->adapter);
	struct sio_rep_link rep = {.reserved = sio_to_le32(0)};

	if (adapter >= d->host->n_adapters)
		return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on",
				d->host->name, adapter, d->host->n_adapters);
	rep.up = sio_to_le32(d->link[adapter].up);
	rep.seconds = sio_to_le64((d->ops->now(d->ctx) - d->link[adapter].since) / SECOND);
	smartiod_reply(d, s, msg, &rep, sizeof(rep), NULL, 0);
	return 0;
}
