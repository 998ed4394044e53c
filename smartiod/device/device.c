/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of the cluster's devices; those of other hosts as their lenders announce them.
 * device_start.c opens the devices of this host at the port.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/probe.h"
#include "smartiod/base/allow.h"
#include "smartiod/base/hops.h"
#include "smartiod/base/peer.h"
#include "smartiod/base/room.h"
#include "smartiod/device/devclass.h"
#include "smartiod/device/device.h"
#include "wire/check.h"

#define MAX_OF_HOST 254 /* devices that a real host may have: others tell us of them */

/* ---- life ---- */

struct smartiod_device *smartiod_device_new(struct smartiod *d, uint32_t fdid,
					    const struct sio_topo_device *topo)
{
	struct smartiod_device *dev;
	size_t lent = 0;

	for (unsigned i = 0; d->rooms[i]; i++)
		lent += d->rooms[i]->lent_size;
	dev = calloc(1, sizeof(*dev) + lent);
	if (!dev)
		return NULL;
	dev->lent = (struct smartiod_lent *)(dev + 1);
	dev->fdid = fdid;
	dev->topo = topo;
	return dev;
}

void smartiod_device_free(struct smartiod *d, struct smartiod_device *dev)
{
	smartiod_tree_remove(&d->devices, &dev->by_fdid);
	sio_ledger_done(&dev->ledger);
	free(dev);
}

static int init(struct smartiod *d, struct sio_err *reterr)
{
	return smartiod_devices_add(d, d->topology, reterr);
}

static unsigned devices_of(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *at = NULL;
	uint64_t key = sio_topology_fdid(node, 0);
	unsigned n = 0;

	while ((at = smartiod_tree_after(&d->devices, key)) &&
	       sio_topology_fdid_node((uint32_t)at->key) == node) {
		key = at->key;
		n++;
	}
	return n;
}

struct smartiod_device *smartiod_device_found(struct smartiod *d, const struct sio_topo_host *host,
					      uint32_t fdid)
{
	struct smartiod_device *dev;

	if (devices_of(d, host->node) >= MAX_OF_HOST) {
		smartiod_log(d, SMARTIOD_ERROR,
			     "device %#" PRIx32 " of host %s is one too many; %u are right", fdid,
			     host->name, MAX_OF_HOST);
		return NULL;
	}
	dev = smartiod_device_new(d, fdid, NULL);
	if (!dev) {
		smartiod_log(d, SMARTIOD_ERROR,
			     "a device of host %s: out of memory: " SIO_MORE_MEMORY, host->name);
		return NULL;
	}
	dev->node = host->node;
	dev->topo = &dev->found;
	smartiod_tree_add(&d->devices, &dev->by_fdid, dev->fdid);
	return dev;
}

/* As the kernel writes its place; where there are other hosts, behind its host's name. */
void smartiod_device_name(struct smartiod *d, struct smartiod_device *dev, uint32_t bdf,
			  uint32_t class_code)
{
	const struct sio_topo_host *host = sio_topology_host(d->topology, dev->node);
	char place[16];

	dev->found.bdf = bdf;
	snprintf(place, sizeof(place), "%04x:%02x:%02x.%x", bdf >> 16, bdf >> 8 & 0xff,
		 bdf >> 3 & 0x1f, bdf & 7);
	if (d->topology->n_hosts == 1)
		snprintf(dev->found.name, sizeof(dev->found.name), "%s", place);
	else if (strlen(host->name) + strlen(place) + 2 <= sizeof(dev->found.name))
		snprintf(dev->found.name, sizeof(dev->found.name), "%.26s/%.12s", host->name,
			 place);
	else /* two hosts' names may begin alike */
		snprintf(dev->found.name, sizeof(dev->found.name), "%.20s~%u/%.12s", host->name,
			 dev->node & 0xfff, place);
	snprintf(dev->found.type, sizeof(dev->found.type), "%s",
		 smartiod_devclass_name(class_code));
}

static void free_all(struct smartiod *d)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->devices, 0))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		smartiod_device_free(d, dev);
	}
}

struct smartiod_device *smartiod_device_known(struct smartiod *d, uint32_t fdid)
{
	return SMARTIOD_OF(smartiod_tree_find(&d->devices, fdid), struct smartiod_device, by_fdid);
}

struct smartiod_device *smartiod_device_find(struct smartiod *d, uint32_t fdid,
					     struct sio_err *reterr)
{
	struct smartiod_device *dev = smartiod_device_known(d, fdid);

	if (!dev) {
		sio_fail(reterr, -ENODEV, "no device of the cluster has id %#" PRIx32, fdid);
		return NULL;
	}
	if (!dev->present) {
		sio_fail(reterr, -ENODEV, "device %s of node %" PRIu32 " is not there now",
			 dev->topo->name, dev->node);
		return NULL;
	}
	return dev;
}

bool smartiod_device_is_function(struct smartiod *d, const struct smartiod_device *f,
				 const struct smartiod_device *physical)
{
	return f->topo->physical &&
	       sio_topology_host(d->topology, f->node)->device[f->topo->physical - 1].fdid ==
		       physical->fdid;
}

struct smartiod_device *smartiod_device_ours(struct smartiod *d, uint32_t fdid,
					     struct sio_err *reterr)
{
	struct smartiod_device *dev = smartiod_device_find(d, fdid, reterr);

	if (dev && dev->node != d->node) {
		sio_fail(reterr, -ENODEV, "device %#" PRIx32 " is not of host %s", fdid,
			 d->host->name);
		return NULL;
	}
	return dev;
}

struct smartiod_device *smartiod_device_by_port(struct smartiod *d, uint64_t id)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		if (dev->node == d->node && dev->port.id && dev->port.id == id)
			return dev;
	}
	return NULL;
}

/* ---- what a device looks like ---- */

void smartiod_device_describe(struct smartiod *d, struct smartiod_device *dev)
{
	const struct sio_evt_device *e = &dev->port;
	struct sio_rep_dev_list *i = &dev->info;

	*i = (struct sio_rep_dev_list){
		.fdid = sio_to_le32(dev->fdid),
		.node = sio_to_le32(dev->node),
		.slot = sio_to_le32(e->slot),
		.class_code = sio_to_le32(e->class_code),
		.vendor = sio_to_le32(e->vendor),
		.device = sio_to_le32(e->device),
		.subsys_vendor = sio_to_le32(e->subsys_vendor),
		.subsys_device = sio_to_le32(e->subsys_device),
		.bdf = sio_to_le32(e->bdf),
		.msix_count = sio_to_le32(e->msix_count),
		.msix_bar = sio_to_le32(e->msix_bar),
		.msix_offset = sio_to_le32(e->msix_offset),
		.iommu = sio_to_le32(e->iommu_mode),
		.serial = sio_to_le64(e->serial),
	};
	for (unsigned bar = 0; bar < SIO_DEVICE_BARS; bar++) {
		i->bar_size[bar] = sio_to_le64(e->bar_size[bar]);
		i->bar_addr[bar] = sio_to_le64(e->bar_addr[bar]);
	}
	snprintf(i->name, sizeof(i->name), "%s", dev->topo->name);
	if (smartiod_is_real(d))
		dev->hops = smartiod_hops_above(d, e->above, e->iommu_mode != SIO_IOMMU_OFF);
	smartiod_hops_encode(&dev->hops, i->hops);
}

/* The adapter that leads there; 0 for our own. */
static uint32_t way_to(struct smartiod *d, const struct smartiod_device *dev)
{
	struct sio_path path;
	struct sio_err err;

	if (dev->node == d->node ||
	    smartiod_path_between(d, dev->node, SIO_ADAPTER_ANY, SIO_ADAPTER_ANY, &d->hops,
				  &dev->hops, &path, &err) < 0)
		return 0;
	return path.adapter;
}

void smartiod_device_info(struct smartiod *d, struct smartiod_device *dev,
			  struct sio_rep_dev_list *ret)
{
	if (dev->node == d->node) {
		struct sio_ledger_count c = sio_ledger_count(&dev->ledger);

		dev->info.borrowers = sio_to_le32(c.live);
		dev->info.exclusive = sio_to_le32(c.exclusive);
		dev->info.quarantined = sio_to_le32(c.quarantined);
		dev->info.generation = sio_to_le32(dev->generation);
		dev->info.resets = sio_to_le32(dev->port.resets);
		dev->info.state = sio_to_le32(dev->state);
	}
	*ret = dev->info;
	ret->adapter = sio_to_le32(way_to(d, dev));
}

/* ---- comings and goings ---- */

static void exports_end(struct smartiod *d, uint32_t node, enum smartiod_loss why)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	if (why != SMARTIOD_NODE_DOWN)
		return;
	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		if (dev->node == node)
			dev->present = false;
	}
}

/*
 * The port answers in order: all that is left of the borrows is given back, entries in requester
 * tables among it, before the device can be open again.
 */
static void release_device(struct smartiod *d, struct smartiod_device *dev)
{
	dev->present = false;
	smartiod_device_gone(d, dev);
	smartiod_device_announce(d, dev);
}

static void state_event(struct smartiod *d, const struct sio_evt_device_state *evt)
{
	struct smartiod_device *dev = smartiod_device_by_port(d, evt->device);

	if (evt->h.op == SIO_EV_DEVICE_BACK) {
		/* New here, or another one in its place: it is opened before it can be used. */
		if (!dev || !dev->present)
			smartiod_device_look(d, evt->device);
		return;
	}
	if (!dev)
		return;
	/* Of before it was opened: the answer overtook the event. */
	if (d->ready && dev->present && evt->generation <= dev->port.generation)
		return;
	smartiod_log(d, SMARTIOD_WARNING, "device %s is gone", dev->topo->name);
	dev->generation = smartiod_generation(evt->generation);
	release_device(d, dev);
}

/* A reset moves a device's generation, and its answer may come behind that of a list. */
static bool resets(const struct smartiod *d)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->waiting, key))) {
		const struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_cookie);

		key = n->key;
		if (op->wait == SMARTIOD_WAIT_PORT && op->port_op == SIO_OP_RESET)
			return true;
	}
	return false;
}

static void compare_event(struct smartiod *d, uint32_t op, uint64_t device, uint64_t generation)
{
	struct sio_evt_device_state evt = {
		.h = {.size = sizeof(evt), .op = op}, .device = device, .generation = generation};

	state_event(d, &evt);
}

static bool listed_at_port(struct smartiod *d, uint64_t after, const struct sio_evt_device *evt)
{
	uint64_t key = 0, end = evt ? evt->id : UINT64_MAX;
	struct smartiod_tree_node *n;
	struct smartiod_device *dev;

	while ((n = smartiod_tree_after(&d->devices, key))) {
		dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);
		key = n->key;
		if (dev->node == d->node && dev->present && dev->port.id > after &&
		    dev->port.id < end)
			compare_event(d, SIO_EV_DEVICE_GONE, dev->port.id,
				      dev->port.generation + 1);
	}
	if (!evt)
		return true;
	dev = smartiod_device_by_port(d, evt->id);
	if (dev && dev->present && evt->generation > dev->port.generation) {
		if (resets(d))
			return false;
		compare_event(d, SIO_EV_DEVICE_GONE, evt->id, evt->generation);
	}
	compare_event(d, SIO_EV_DEVICE_BACK, evt->id, evt->generation);
	return true;
}

static void path(struct smartiod *d, const struct smartiod_path_change *p)
{
	if (p->up)
		smartiod_devices_changed(d, p->node);
}

static void fault_event(struct smartiod *d, const struct sio_evt_fault *evt)
{
	struct smartiod_device *dev = smartiod_device_by_port(d, evt->device);
	char bytes[40] = ""; /* a real IOMMU does not tell */

	SIO_PROBE(smartiod, fault, dev ? dev->fdid : 0, evt->address, evt->length, evt->access);
	if (evt->length)
		snprintf(bytes, sizeof(bytes), " of %" PRIu64 " bytes", (uint64_t)evt->length);
	smartiod_log(d, SMARTIOD_WARNING, "%s: %s%s at %#" PRIx64 " failed: %.*s",
		     dev ? dev->topo->name : "a device",
		     evt->access == SIO_FAULT_READ    ? "read"
		     : evt->access == SIO_FAULT_WRITE ? "write"
						      : "interrupt",
		     bytes, (uint64_t)evt->address, (int)sizeof(evt->reason), evt->reason);
}

static void port_event(struct smartiod *d, const struct sio_evt *evt)
{
	if (evt->op == SIO_EV_FAULT)
		fault_event(d, (const struct sio_evt_fault *)evt);
	else
		state_event(d, (const struct sio_evt_device_state *)evt);
}

static void later(struct smartiod *d)
{
	smartiod_devices_announce_changed(d);
	smartiod_devices_look_missed(d);
}

/* ---- requests ---- */

int smartiod_dev_list(struct smartiod *d, struct smartiod_session *s, const void *msg,
		      struct sio_err *reterr)
{
	const struct sio_msg_dev_list *m = msg;
	uint64_t key = sio_from_le32(m->after);
	struct smartiod_tree_node *n;
	struct sio_rep_dev_list rep;

	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		if (!dev->present)
			continue;
		smartiod_device_info(d, dev, &rep);
		memset(&rep.h, 0, sizeof(rep.h));
		smartiod_reply(d, s, msg, &rep, sizeof(rep), NULL, 0);
		return 0;
	}
	return sio_fail(reterr, -ENODEV, "no device has an id greater than %#" PRIx32,
			sio_from_le32(m->after));
}

uint64_t smartiod_device_port_id(struct smartiod *d, uint32_t fdid)
{
	struct smartiod_device *dev = smartiod_device_known(d, fdid);

	return dev && dev->node == d->node ? dev->port.id : 0;
}

static const struct smartiod_request requests[] = {
	SIO_CLIENT_DEVICE(SMARTIOD_ANYBODYS){0, false, NULL},
};

static const struct smartiod_message messages[] = {
	SIO_PEER_DEVICE(SMARTIOD_PEERS){0, NULL},
};

static int allow_device(struct smartiod *d, uint32_t fdid, uint32_t node, struct sio_err *reterr)
{
	const struct smartiod_device *dev = smartiod_device_known(d, fdid);
	struct sio_policy_thing thing;

	if (!dev)
		return sio_fail(reterr, -EACCES,
				"%s knows no device %#" PRIx32
				"; smartio device list names those that there are",
				d->host->name, fdid);
	thing = smartiod_thing_device(d, dev->node, dev->topo->name);
	return smartiod_allow_node(d, &thing, node, reterr);
}

const struct smartiod_room smartiod_room_device = {
	.name = "device",
	.requests = requests,
	.messages = messages,
	.init = init,
	.start = smartiod_devices_start,
	.free_all = free_all,
	.peer_ready = smartiod_devices_expect,
	.announce = smartiod_devices_announce,
	.later = later,
	.answered = smartiod_devices_heard,
	.exports_end = exports_end,
	.path = path,
	.port_event = port_event,
	.device_listed = listed_at_port,
	.allow_device = allow_device,
};
