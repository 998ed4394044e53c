/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths to the other hosts, and replies to their daemons. */
#include <errno.h>
#include <stdio.h>

#include "smartiod/base/peer.h"

struct smartiod_peer *smartiod_peer_find(struct smartiod *d, uint32_t node)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		if (d->peer[i].node == node)
			return &d->peer[i];
	return NULL;
}

bool smartiod_peer_link_up(const struct smartiod_peer *p)
{
	for (unsigned i = 0; i < p->n_paths; i++)
		if (p->path[i].up)
			return true;
	return false;
}

bool smartiod_path_up(struct smartiod *d, uint32_t node, uint32_t adapter, uint32_t peer_adapter)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);

	for (unsigned i = 0; p && i < p->n_paths; i++)
		if (p->path[i].adapter == adapter && p->path[i].peer_adapter == peer_adapter)
			return p->path[i].up;
	return false;
}

uint64_t smartiod_path_start(struct smartiod *d, uint32_t node, uint32_t adapter,
			     uint32_t peer_adapter)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);

	for (unsigned i = 0; p && i < p->n_paths; i++)
		if (p->path[i].adapter == adapter && p->path[i].peer_adapter == peer_adapter)
			return SIO_LINK_START(p->generation, p->path[i].turn);
	return 0;
}

int smartiod_path(struct smartiod *d, uint32_t node, uint32_t adapter, struct sio_path *ret,
		  struct sio_err *reterr)
{
	struct sio_path path[SMARTIOD_MAX_PATHS];
	const struct smartiod_peer *p = smartiod_peer_find(d, node);
	bool joined = false;
	unsigned n;

	if (adapter != SIO_ADAPTER_ANY && adapter >= d->host->n_adapters)
		return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on",
				d->host->name, adapter, d->host->n_adapters);
	if (!p)
		return sio_fail(reterr, -EHOSTUNREACH, "no other host of cluster %s has node id %u",
				d->topology->name, node);
	n = sio_topology_paths(d->topology, d->node, node, path, SMARTIOD_MAX_PATHS);
	for (unsigned i = 0; i < n && i < SMARTIOD_MAX_PATHS; i++) {
		if (adapter != SIO_ADAPTER_ANY && path[i].adapter != adapter)
			continue;
		joined = true;
		if (smartiod_path_up(d, node, path[i].adapter, path[i].peer_adapter)) {
			*ret = path[i];
			return 0;
		}
	}
	if (!joined)
		return sio_fail(reterr, -EHOSTUNREACH, "no path from %s to %s through that adapter",
				d->host->name, p->host->name);
	return sio_fail(reterr, -ENETDOWN, "the link from %s to %s is down", d->host->name,
			p->host->name);
}

void smartiod_peer_reply(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id, void *msg,
			 size_t len)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);
	struct sio_msg *h = msg;

	if (!p || p->state != SMARTIOD_PEER_READY)
		return;
	h->size = sio_to_le32((uint32_t)len);
	h->type = sio_to_le32(type | SIO_PEER_REPLY);
	h->id = sio_to_le32(id);
	d->count.peer_sent++;
	d->ops->peer_send(d->ctx, node, msg, len);
}

void smartiod_peer_reply_error(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id,
			       int error, const struct sio_err *err)
{
	struct sio_msg_error msg = {.h.error = sio_to_le32((uint32_t)-error),
				    .reason = sio_to_le32(sio_err_reason(err, error))};

	snprintf(msg.text, sizeof(msg.text), "%.*s", (int)sizeof(msg.text) - 1, err->text);
	smartiod_peer_reply(d, node, type, id, &msg, sizeof(msg));
}
