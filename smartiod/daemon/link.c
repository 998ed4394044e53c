/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The links of this host's adapters: whether each is up, and since when. The time is this daemon's
 * clock, because the port reports changes without a time. A state that was found at the start has
 * lasted since the start at least.
 */
#include <errno.h>

#include "smartiod/daemon/dispatch.h"

#define SECOND 1000000000ull

void smartiod_link_start(struct smartiod *d)
{
	for (unsigned i = 0; i < SIO_MAX_ADAPTERS; i++)
		d->link[i].since = d->ops->now(d->ctx);
}

void smartiod_link_event(struct smartiod *d, const struct sio_evt_link *evt)
{
	bool up = evt->state == SIO_LINK_UP;

	if (evt->adapter >= d->n_port_adapters) {
		smartiod_log(d, SMARTIOD_WARNING,
			     "the port reports the link of adapter %u, but has only %u adapters",
			     evt->adapter, d->n_port_adapters);
		return;
	}
	/* Reported once more while it stays as it was. */
	if (d->link[evt->adapter].up == up)
		return;
	d->link[evt->adapter] = (struct smartiod_link){.up = up, .since = d->ops->now(d->ctx)};
}

int smartiod_link_query(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_adapter *m = msg;
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
