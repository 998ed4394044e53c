/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual machines beside hosts: which were killed, do not run, are open, or cut off. */
#include <stdio.h>

#include "doctor/doctor_facts.h"
#include "base/room.h"
#include "base/output.h"

/* Machines of the clusters that run. */
#define EACH_MACHINE(c, h)                                                                         \
	for (const struct sio_topo_host *(h) = is_running(c) ? (c)->topology->machine : NULL;      \
	     (h) && (h) < (c)->topology->machine + (c)->topology->n_machines; (h)++)

static bool is_running(const struct doctor_cluster *c)
{
	return !c->local && c->topology && c->state == TOOL_STATE_RUNNING;
}

void doctor_find_machine_killed(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c) {
		EACH_MACHINE(c, h)
		{
			const struct doctor_words w = {.cluster = c, .one = h->name};

			if (tool_state_machine(c->dir, h->node, NULL) == TOOL_MACHINE_KILLED)
				doctor_found(
					d, s, &w,
					"machine '%s' was killed; what its console said last is in "
					"%s/machine.%u.log",
					h->name, c->dir, h->node);
		}
	}
}

/* What the room says of its adapters and devices. *ret_attached: some initiator has one of them. */
static bool ask(const struct doctor_cluster *c, const struct sio_topo_host *h,
		struct tool_room_part adapter[SIO_MAX_ADAPTERS], bool *ret_attached)
{
	struct tool_room_part device;

	*ret_attached = false;
	if (c->room != DOCTOR_LIVES ||
	    tool_room_machine(c->dir, h->node, adapter, h->n_adapters, NULL) < 0)
		return false;
	for (unsigned i = 0; i < h->n_adapters; i++)
		*ret_attached |= adapter[i].attached;
	for (unsigned i = 0; i < h->n_devices; i++) {
		if (tool_room_served(c->dir, h->device[i].fdid, &device, NULL) < 0)
			return false;
		*ret_attached |= device.attached;
	}
	return true;
}

/* That a machine does not run is nobody's fault: whoever wants it starts it. */
void doctor_find_machine_off(struct doctor *d, const struct doctor_state *s)
{
	struct tool_room_part adapter[SIO_MAX_ADAPTERS];
	bool attached;

	DOCTOR_EACH_CLUSTER (d, c) {
		EACH_MACHINE(c, h)
		{
			const struct doctor_words w = {.cluster = c, .one = h->name};

			if (h->n_adapters + h->n_devices == 0 || !ask(c, h, adapter, &attached) ||
			    attached ||
			    tool_state_machine(c->dir, h->node, NULL) == TOOL_MACHINE_KILLED)
				continue;
			doctor_found(d, s, &w,
				     "machine '%s' (node %u) is not running: no virtual machine "
				     "has its %s, %s/vfio.%s%s",
				     h->name, h->node, h->n_adapters ? "adapter" : "device", c->dir,
				     h->n_adapters ? h->name : h->device[0].name,
				     h->n_adapters ? ".0" : "");
		}
	}
}

void doctor_find_machine_mapped(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c) {
		EACH_MACHINE(c, h)
		{
			const struct doctor_words w = {.cluster = c, .one = h->name};

			if (h->mapped)
				doctor_found(d, s, &w,
					     "machine '%s' has 'window: mapped': its memory is in "
					     "%s/memory, which all machines that have it reach",
					     h->name, c->dir);
		}
	}
}

void doctor_find_host_pooled(struct doctor *d, const struct doctor_state *s)
{
	char size[TOOL_SIZE_TEXT];

	DOCTOR_EACH_CLUSTER (d, c) {
		for (unsigned i = 0; is_running(c) && i < c->topology->n_hosts; i++) {
			const struct sio_topo_host *h = &c->topology->host[i];
			const struct doctor_words w = {.cluster = c, .one = h->name};

			if (h->pool_size)
				doctor_found(
					d, s, &w,
					"host '%s' has a pool of %s, %s/memory.%s: all its "
					"programs, and machines with 'window: mapped', reach all "
					"segments in it",
					h->name, tool_size(h->pool_size, size), c->dir, h->name);
		}
	}
}

/* At a cable it may be the other end that is off; a switch without power is a state of its own. */
static bool should_be_linked(const struct doctor_cluster *c, const struct sio_topo_adapter *a)
{
	return a->attach == SIO_ATTACH_SWITCH && c->outage && sio_outage_port_in(c->outage, a);
}

void doctor_find_machine_unlinked(struct doctor *d, const struct doctor_state *s)
{
	struct tool_room_part adapter[SIO_MAX_ADAPTERS];
	char name[SIO_NAME_LEN + 16];
	bool attached;

	DOCTOR_EACH_CLUSTER (d, c) {
		EACH_MACHINE(c, h)
		{
			const struct doctor_words w = {.cluster = c, .one = name};

			if (!ask(c, h, adapter, &attached))
				continue;
			for (unsigned i = 0; i < h->n_adapters; i++) {
				if (!adapter[i].attached || adapter[i].linked ||
				    !should_be_linked(c, &h->adapter[i]))
					continue;
				snprintf(name, sizeof(name), "%s.%u", h->name, i);
				doctor_found(d, s, &w, "%s: adapter %u of machine %s has no link",
					     name, i, h->name);
			}
		}
	}
}
