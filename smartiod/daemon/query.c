/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries about this host and others: adapters, nodes, counters. view.c has who is asked. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/daemon/dispatch.h"
#include "smartiod/daemon/view.h"
#include "smartiod/device/device.h"

/* ---- ADAPTER ---- */

static uint32_t adapter_flags(const struct smartiod *d, uint32_t index)
{
	uint32_t flags = d->served >> SIO_OP_DMA & 1 ? SIO_ADAPTER_DMA : 0;

	if (index < d->host->n_adapters && d->host->adapter[index].attach == SIO_ATTACH_SWITCH)
		flags |= SIO_ADAPTER_AT_SWITCH;
	return flags;
}

/* Adapters have no number of their own that smartio.ko could read: node and adapter are one. */
static uint32_t serial_number(const struct smartiod *d, uint32_t index)
{
	return d->node << 8 | index;
}

/*
 * Ports that the topology does not number are counted in its order: by hosts, then by their
 * adapters. A link without a switch leads to an adapter, which has port 0 alone.
 */
static uint32_t partner_port(const struct smartiod *d, uint32_t index)
{
	const struct sio_topo_adapter *own = &d->host->adapter[index], *a;
	uint32_t port = 0;

	if (own->attach != SIO_ATTACH_SWITCH)
		return 0;
	if (d->topology->sw[own->attach_index].ports)
		return own->port;
	for (unsigned h = 0; h < d->topology->n_hosts; h++)
		for (unsigned i = 0; i < d->topology->host[h].n_adapters; i++) {
			a = &d->topology->host[h].adapter[i];
			if (a == own)
				return port;
			port += a->attach == SIO_ATTACH_SWITCH &&
				a->attach_index == own->attach_index;
		}
	return port;
}

static void adapter_step(struct smartiod *d, struct smartiod_op *op,
			 const struct smartiod_answer *a)
{
	const struct sio_evt_adapter *evt = a->msg;

	if (a->error) {
		smartiod_view_error(d, op, a->error == -ENODEV ? -ENXIO : a->error, a->text);
	} else {
		struct sio_rep_adapter rep = {
			.node = sio_to_le32(d->node),
			.bdf = sio_to_le32(evt->bdf),
			.link_up = sio_to_le32(evt->link_up),
			.link_width = sio_to_le32(evt->link_width),
			.link_generation = sio_to_le32(evt->link_generation),
			.dma_bits = sio_to_le32(evt->dma_bits),
			.entries_total = sio_to_le32(evt->entries_total),
			.entries_free = sio_to_le32(evt->entries_free),
			.requesters_total = sio_to_le32(evt->requesters_total),
			.requesters_free = sio_to_le32(evt->requesters_free),
			.mcast_groups = sio_to_le32(evt->mcast_groups),
			.flags = sio_to_le32(adapter_flags(d, evt->index)),
			.window_size = sio_to_le64(evt->window_size),
			.entry_size = sio_to_le64(evt->entry_size),
			.serial = sio_to_le32(serial_number(d, evt->index)),
			.partner_port = sio_to_le32(partner_port(d, evt->index)),
		};

		smartiod_view_reply(d, op, &rep, sizeof(rep));
	}
}

int smartiod_peer_adapter(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_peer_adapter *m = msg;
	struct sio_req_adapter req = {.h.op = SIO_OP_ADAPTER, .index = sio_from_le32(m->adapter)};
	struct sio_rep_adapter without = {.node = sio_to_le32(d->node),
					  .serial = sio_to_le32(serial_number(d, req.index))};

	if (req.index >= d->host->n_adapters)
		return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on",
				d->host->name, req.index, d->host->n_adapters);
	if (!smartiod_has_adapter(d, req.index)) { /* this host alone can be reached through it */
		smartiod_from_reply(d, from, msg, &without, sizeof(without));
		return 0;
	}
	return smartiod_view_port(d, from, msg, &req, sizeof(req), adapter_step, reterr);
}

int smartiod_adapter_query(struct smartiod *d, struct smartiod_session *s, const void *msg,
			   struct sio_err *reterr)
{
	const struct sio_msg_adapter *m = msg;
	struct sio_peer_adapter ask = {.h.type = sio_to_le32(SIO_PEER_ADAPTER),
				       .adapter = m->adapter};

	return smartiod_view(d, s, msg, sio_from_le32(m->node), &ask, sizeof(ask), reterr);
}

/* ---- NODE_PROBE ---- */

static void probe_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	if (a->error)
		smartiod_op_error(d, op, a->error, "%s", a->text);
	else
		smartiod_op_ok(d, op);
	smartiod_op_free(d, op);
}

int smartiod_node_probe(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_node_probe *m = msg;
	uint32_t node = sio_from_le32(m->node), adapter = sio_from_le32(m->adapter);
	struct sio_peer_ping ping = {.h.type = sio_to_le32(SIO_PEER_PING)};
	struct smartiod_op *op;
	struct sio_path path;
	int rc;

	if (adapter >= d->host->n_adapters)
		return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on",
				d->host->name, adapter, d->host->n_adapters);
	if (node == d->node) {
		smartiod_reply_ok(d, s, msg);
		return 0;
	}
	rc = smartiod_path(d, node, adapter, &path, reterr);
	if (rc < 0)
		return rc;
	op = smartiod_op_new(d, s, msg, sizeof(*op), probe_step, reterr);
	if (!op)
		return reterr->code;
	rc = smartiod_peer_ask(d, op, node, &ping, sizeof(ping));
	if (rc < 0) {
		smartiod_op_free(d, op);
		return sio_fail(reterr, rc, "node %u cannot be reached", node);
	}
	return 0;
}

/* ---- STATS ---- */

enum {
	STATS_DAEMON,
	STATS_HOST,
	STATS_ADAPTER,
	STATS_DEVICE,
	STATS_ENGINE,
	STATS_CHASSIS,
	STATS_TRUNK
};

static void fill_counters(const struct sio_evt_stats *evt, struct sio_rep_stats *rep)
{
	uint32_t n = evt->count < SIO_COUNTER_MAX ? evt->count : SIO_COUNTER_MAX;

	_Static_assert(sizeof(rep->counter[0].name) == sizeof(evt->counter[0].name), "name");
	rep->count = sio_to_le32(n);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(rep->counter[i].name, evt->counter[i].name, SIO_COUNTER_NAME - 1);
		rep->counter[i].value = sio_to_le64(evt->counter[i].value);
	}
}

static void port_stats_step(struct smartiod *d, struct smartiod_op *op,
			    const struct smartiod_answer *a)
{
	struct sio_rep_stats rep = {.count = sio_to_le32(0)};

	if (a->error) {
		smartiod_view_error(d, op, a->error, a->text);
	} else {
		fill_counters(a->msg, &rep);
		smartiod_view_reply(d, op, &rep, sizeof(rep));
	}
}

static void daemon_stats(struct smartiod *d, const struct smartiod_from *from, const void *msg)
{
	bool refused = smartiod_refused_lately(d), own = from->back != NULL; /* what asks */
	const struct {
		const char *name;
		uint64_t value;
	} counter[] = {
		{"client_version", SIO_CLIENT_VERSION},
		{"refused_versions", refused},
		{"refused_version", refused ? d->refused.version : 0},
		{"refused_pid", refused ? d->refused.pid : 0},
		{"heap_bytes", d->ops->heap ? d->ops->heap(d->ctx) : 0},
		{"client_messages", d->count.client_messages},
		{"client_events", d->count.client_events},
		{"peer_messages_received", d->count.peer_received},
		{"peer_messages_sent", d->count.peer_sent},
		{"port_requests", d->count.port_requests},
		{"port_events", d->count.port_events},
		{"faults", d->count.faults},
		{"refusals", d->count.refusals},
		{"clients", d->sessions.count},
		{"operations", d->ops_all.count - own},
		{"segments", d->segments.count},
		{"grants", d->grants.count},
		{"connections", d->connections.count},
		{"data_interrupts", d->dints.count},
		{"rings", d->rings.count},
		{"data_interrupt_links", d->dint_links.count},
	};
	struct sio_rep_stats rep = {.count = sio_to_le32(sizeof(counter) / sizeof(counter[0]))};

	for (size_t i = 0; i < sizeof(counter) / sizeof(counter[0]); i++) {
		snprintf(rep.counter[i].name, sizeof(rep.counter[i].name), "%s", counter[i].name);
		rep.counter[i].value = sio_to_le64(counter[i].value);
	}
	smartiod_from_reply(d, from, msg, &rep, sizeof(rep));
}

static int port_stats(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		      uint32_t kind, uint64_t id, struct sio_err *reterr)
{
	struct sio_req_stats req = {.h.op = SIO_OP_STATS, .kind = kind, .id = id};

	return smartiod_view_port(d, from, msg, &req, sizeof(req), port_stats_step, reterr);
}

static int device_stats(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			uint32_t fdid, struct sio_err *reterr)
{
	uint64_t id = smartiod_device_port_id(d, fdid);

	if (!id)
		return sio_fail(reterr, -ENODEV, "%s has no device with id %#x", d->host->name,
				fdid);
	return port_stats(d, from, msg, SIO_KIND_DEVICE, id, reterr);
}

int smartiod_peer_stats(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_peer_stats *m = msg;
	struct sio_rep_stats none = {.count = sio_to_le32(0)};
	uint32_t kind = sio_from_le32(m->kind), id = sio_from_le32(m->id);

	switch (kind) {
	case STATS_DAEMON:
		daemon_stats(d, from, msg);
		return 0;
	case STATS_HOST:
		return port_stats(d, from, msg, 0, 0, reterr);
	case STATS_ADAPTER:
		if (id >= d->host->n_adapters)
			return sio_fail(reterr, -ENXIO, "%s has no adapter %u", d->host->name, id);
		if (!smartiod_has_adapter(d, id)) { /* which counts nothing: this host is alone */
			smartiod_from_reply(d, from, msg, &none, sizeof(none));
			return 0;
		}
		return port_stats(d, from, msg, SIO_KIND_ADAPTER, id, reterr);
	case STATS_DEVICE:
		return device_stats(d, from, msg, id, reterr);
	case STATS_ENGINE:
		return port_stats(d, from, msg, SIO_KIND_DMA, id, reterr);
	case STATS_CHASSIS:
		return port_stats(d, from, msg, SIO_STATS_CHASSIS, id, reterr);
	case STATS_TRUNK:
		return port_stats(d, from, msg, SIO_STATS_TRUNK, id, reterr);
	}
	return sio_fail(reterr, -EINVAL, "counters of kind %u: there are 0 to 6", kind);
}

/* Of a device its lender is asked, whoever that is. */
static uint32_t answering(struct smartiod *d, const struct sio_msg_stats *m)
{
	uint32_t fdid = sio_from_le32(m->id);
	const struct sio_topo_host *host;

	if (sio_from_le32(m->kind) != STATS_DEVICE || smartiod_device_port_id(d, fdid) ||
	    !sio_topology_device(d->topology, fdid, &host))
		return 0;
	return host->node;
}

int smartiod_stats(struct smartiod *d, struct smartiod_session *s, const void *msg,
		   struct sio_err *reterr)
{
	const struct sio_msg_stats *m = msg;
	struct sio_peer_stats ask = {
		.h.type = sio_to_le32(SIO_PEER_STATS), .kind = m->kind, .id = m->id};
	uint64_t node = sio_from_le64(m->node);

	return smartiod_view(d, s, msg, node ? node : answering(d, m), &ask, sizeof(ask), reterr);
}
