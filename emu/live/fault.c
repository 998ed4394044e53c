/* SPDX-License-Identifier: BSD-2-Clause */
/* What fails on demand: cables, switches, hosts, devices (control.c says by which words). */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "emu/devices/model.h"
#include "emu/live/fault.h"
#include "emu/live/live.h"

const struct sio_topo_host *live_machine(const struct sio_topology *t, unsigned node)
{
	for (unsigned i = 0; i < t->n_machines; i++)
		if (t->machine[i].node == node)
			return &t->machine[i];
	return NULL;
}

/* A host or a machine, which must have the adapter. */
static int find_adapter(const struct live *l, unsigned node, unsigned adapter,
			const struct sio_topo_host **ret, struct sio_err *err)
{
	const struct sio_topo_host *host = sio_topology_host(l->topo, node);

	if (!host)
		host = live_machine(l->topo, node);
	if (!host)
		return sio_fail(err, -EHOSTUNREACH, "no host of cluster %s has node id %u",
				l->topo->name, node);
	if (adapter >= host->n_adapters)
		return sio_fail(err, -ENXIO, "host %s has no adapter %u; it has %u from 0 on",
				host->name, adapter, host->n_adapters);
	*ret = host;
	return 0;
}

/* Each side has the cable in its own tables. */
static int set_cable(struct live *l, const struct sio_topo_host *host, unsigned adapter, bool up)
{
	live_ntb_link(l, host->node, adapter, up);
	return emu_room_link(l->room, (unsigned)(host - l->topo->host), adapter, up);
}

int live_fault_link(struct live *l, unsigned node, unsigned adapter, const char *state,
		    struct sio_err *err)
{
	bool again = strcmp(state, "again") == 0, up = again || strcmp(state, "up") == 0;
	const struct sio_topo_host *host;
	int rc;

	if (!up && strcmp(state, "down") != 0)
		return sio_fail(err, -EINVAL, "a link is 'down', 'up' or up 'again', not '%s'",
				state);
	rc = find_adapter(l, node, adapter, &host, err);
	if (rc < 0)
		return rc;
	if (again && host->machine)
		return sio_fail(err, -EOPNOTSUPP,
				"%s is a machine, which chooses its addresses itself: an adapter "
				"of a host is right",
				host->name);
	live_log("%s: link of adapter %u %s", host->name, adapter, state);
	if (again)
		set_cable(l, host, adapter, false);
	if (again)
		emu_room_link_turn(l->room, (unsigned)(host - l->topo->host), adapter);
	return set_cable(l, host, adapter, up);
}

int live_fault_errors(struct live *l, unsigned node, unsigned adapter, unsigned n,
		      struct sio_err *err)
{
	const struct sio_topo_host *host;
	int rc = find_adapter(l, node, adapter, &host, err);

	if (rc < 0)
		return rc;
	if (host->machine)
		return sio_fail(err, -EOPNOTSUPP,
				"%s is a machine, whose adapters count for themselves: an adapter "
				"of a host is right",
				host->name);
	live_log("%s: %u errors on the link of adapter %u", host->name, n, adapter);
	return emu_room_link_errors(l->room, (unsigned)(host - l->topo->host), adapter, n);
}

int live_fault_delay(struct live *l, unsigned node, unsigned adapter, uint64_t ns,
		     struct sio_err *err)
{
	const struct sio_topo_host *host;
	int rc = find_adapter(l, node, adapter, &host, err);

	if (rc < 0)
		return rc;
	if (host->machine)
		return sio_fail(err, -EOPNOTSUPP,
				"%s is a machine, whose memory its own processors copy: an adapter "
				"of a host is right",
				host->name);
	live_log("%s: link of adapter %u: %" PRIu64 " ns of delay", host->name, adapter, ns);
	return emu_room_link_delay(l->room, (unsigned)(host - l->topo->host), adapter, ns);
}

int live_fault_host(struct live *l, unsigned node, const char *what, struct sio_err *err)
{
	const struct sio_topo_host *host = sio_topology_host(l->topo, node);
	unsigned index;
	int rc;

	if (!host)
		return sio_fail(err, -EHOSTUNREACH, "no host of cluster %s has node id %u",
				l->topo->name, node);
	index = (unsigned)(host - l->topo->host);
	if (strcmp(what, "down") == 0) {
		live_port_cut(l, index);
		return 0;
	}
	if (strcmp(what, "move") != 0)
		return sio_fail(err, -EINVAL, "a host goes 'down', or has to 'move', not '%s'",
				what);
	live_log("%s: finds other addresses when it starts", host->name);
	rc = emu_room_host_move(l->room, l->topo, index, err);
	if (rc == 0)
		l->moved = node;
	return rc;
}

static int find_device(const struct live *l, uint32_t id, const struct sio_topo_host **ret,
		       unsigned *ret_index, struct sio_err *err)
{
	const struct sio_topo_device *dev = sio_topology_device(l->topo, id, ret);

	*ret_index = 0;
	if (!dev)
		return sio_fail(err, -ENODEV, "no device of cluster %s has id %#" PRIx32,
				l->topo->name, id);
	*ret_index = (unsigned)(dev - (*ret)->device);
	return 0;
}

int live_fault_device(struct live *l, uint32_t id, const struct emu_dev_fault *f,
		      struct sio_err *err)
{
	const struct sio_topo_host *host;
	unsigned index;
	int rc = find_device(l, id, &host, &index, err);

	if (rc < 0)
		return rc;
	live_log("%s: %s: fault %u", host->name, host->device[index].name, f->kind);
	return emu_room_fault(l->room, (unsigned)(host - l->topo->host), index,
			      f->kind == EMU_FAULT_NONE ? NULL : f, err);
}

int live_fault_slot(struct live *l, uint32_t id, const char *state, struct sio_err *err)
{
	const struct sio_topo_host *host;
	unsigned index;
	bool in = strcmp(state, "in") == 0;
	int rc;

	if (!in && strcmp(state, "out") != 0)
		return sio_fail(err, -EINVAL, "a device is 'out' or 'in', not '%s'", state);
	rc = find_device(l, id, &host, &index, err);
	if (rc < 0)
		return rc;
	if (host->device[index].physical)
		return sio_fail(err, -EINVAL,
				"%s is a virtual function, which comes and goes with %s; name "
				"that one",
				host->device[index].name,
				host->device[host->device[index].physical - 1].name);
	live_log("%s: %s is %s", host->name, host->device[index].name,
		 in ? "put into its slot" : "pulled out of its slot");
	rc = emu_room_device(l->room, (unsigned)(host - l->topo->host), index, in);
	if (rc == 0 || rc == -EALREADY)
		return 0;
	return sio_fail(err, rc, "%s cannot be put back: %s", host->device[index].name,
			strerror(-rc));
}

int live_fault_functions(struct live *l, uint32_t id, unsigned n, struct sio_err *err)
{
	const struct sio_topo_host *host;
	unsigned index;
	int rc = find_device(l, id, &host, &index, err);

	if (rc < 0)
		return rc;
	live_log("%s: %s: %u virtual functions", host->name, host->device[index].name, n);
	return emu_room_functions(l->room, (unsigned)(host - l->topo->host), index, n, err);
}

int live_fault_between(struct live *l, const char *what, unsigned index, const char *state,
		       struct sio_err *err)
{
	bool is_switch = strcmp(what, "switch") == 0, in = strcmp(state, "up") == 0;
	unsigned n = is_switch ? l->topo->n_switches : l->topo->n_trunks;

	if (!in && strcmp(state, "down") != 0)
		return sio_fail(err, -EINVAL, "a %s is 'down' or 'up', not '%s'", what, state);
	if (index >= n)
		return sio_fail(err, -ENODEV, "cluster %s has no %s %u; it has %u from 0 on",
				l->topo->name, what, index, n);
	live_log("%s %u is %s", what, index, state);
	(is_switch ? emu_room_switch : emu_room_trunk)(l->room, index, in);
	live_ntb_outage(l, is_switch, index, in);
	return 0;
}
