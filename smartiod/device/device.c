/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry: devices of the cluster; of others what their lenders tell. device_start.c opens
 * ours at the port.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/lender/lend.h"
#include "wire/check.h"

/* ---- life ---- */

static int add_device(struct smartiod *d, const struct sio_topo_host *host, unsigned index)
{
	struct smartiod_device *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return -ENOMEM;
	dev->topo = &host->device[index];
	dev->fdid = sio_topology_fdid(host->node, index);
	dev->node = host->node;
	sio_ledger_init(&dev->ledger, dev->topo->name);
	smartiod_tree_add(&smartiod_devices(d)->all, &dev->by_fdid, dev->fdid);
	return 0;
}

int smartiod_device_init(struct smartiod *d, struct sio_err *reterr)
{
	int rc = 0;

	d->devices = calloc(1, sizeof(struct smartiod_devices));
	if (!d->devices)
		return sio_fail(reterr, -ENOMEM, "out of memory");
	for (unsigned i = 0; rc == 0 && i < d->topology->n_hosts; i++)
		for (unsigned k = 0; rc == 0 && k < d->topology->host[i].n_devices; k++)
			rc = add_device(d, &d->topology->host[i], k);
	if (rc < 0) {
		smartiod_device_free(d);
		return sio_fail(reterr, rc, "out of memory");
	}
	return 0;
}

void smartiod_device_free(struct smartiod *d)
{
	struct smartiod_tree_node *n;

	if (!d->devices)
		return;
	smartiod_borrow_free_all(d);
	smartiod_loan_free_all(d);
	while ((n = smartiod_tree_after(&smartiod_devices(d)->all, 0))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		smartiod_tree_remove(&smartiod_devices(d)->all, n);
		smartiod_dev_segs_free(dev);
		sio_ledger_done(&dev->ledger);
		free(dev);
	}
	free(d->devices);
	d->devices = NULL;
}

struct smartiod_device *smartiod_device_known(struct smartiod *d, uint32_t fdid)
{
	return SMARTIOD_OF(smartiod_tree_find(&smartiod_devices(d)->all, fdid),
			   struct smartiod_device, by_fdid);
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

	while ((n = smartiod_tree_after(&smartiod_devices(d)->all, key))) {
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

	(void)d;
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
		.serial = sio_to_le64(e->serial),
	};
	for (unsigned bar = 0; bar < SIO_DEVICE_BARS; bar++) {
		i->bar_size[bar] = sio_to_le64(e->bar_size[bar]);
		i->bar_addr[bar] = sio_to_le64(e->bar_addr[bar]);
	}
	snprintf(i->name, sizeof(i->name), "%s", dev->topo->name);
}

/* The adapter that leads there; 0 for our own. */
static uint32_t way_to(struct smartiod *d, uint32_t node)
{
	struct sio_path path;
	struct sio_err err;

	if (node == d->node || smartiod_path(d, node, SIO_ADAPTER_ANY, &path, &err) < 0)
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
		dev->info.state = sio_to_le32(dev->reset.state);
	}
	*ret = dev->info;
	ret->adapter = sio_to_le32(way_to(d, dev->node));
}

/* ---- announcements ---- */

static void announce_to(struct smartiod *d, struct smartiod_device *dev, uint32_t node)
{
	struct sio_peer_devices msg = {.h.type = sio_to_le32(SIO_PEER_DEVICES),
				       .present = sio_to_le32(dev->present)};

	smartiod_device_info(d, dev, &msg.info);
	smartiod_peer_tell(d, node, &msg, sizeof(msg));
}

void smartiod_device_announce(struct smartiod *d, struct smartiod_device *dev)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		announce_to(d, dev, d->peer[i].node);
}

void smartiod_device_peer_ready(struct smartiod *d, struct smartiod_peer *p)
{
	for (unsigned i = 0; i < d->host->n_devices; i++) {
		struct smartiod_device *dev =
			smartiod_device_known(d, sio_topology_fdid(d->node, i));

		if (dev && dev->present)
			announce_to(d, dev, p->node);
	}
}

int smartiod_peer_devices(struct smartiod *d, struct smartiod_peer *p, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_peer_devices *m = msg;
	uint32_t fdid = sio_from_le32(m->info.fdid);
	struct smartiod_device *dev = smartiod_device_known(d, fdid);

	if (!dev || dev->node != p->node)
		return sio_fail(reterr, -EPROTO,
				"node %" PRIu32 " announces device %#" PRIx32
				", which is none of its own",
				p->node, fdid);
	if (!memchr(m->info.name, 0, sizeof(m->info.name)))
		return sio_fail(reterr, -EPROTO, "device %#" PRIx32 " has a name without end",
				fdid);
	dev->info = m->info;
	/* Whose it is, and its name, all hosts know: by no word of its own can it be another's. */
	dev->info.node = sio_to_le32(dev->node);
	snprintf(dev->info.name, sizeof(dev->info.name), "%s", dev->topo->name);
	dev->generation = sio_from_le32(m->info.generation);
	dev->present = sio_from_le32(m->present) != 0;
	if (!dev->present)
		smartiod_borrow_device_gone(d, dev);
	return 0;
}

/* ---- comings and goings ---- */

void smartiod_device_borrows_lost(struct smartiod *d, uint32_t node, bool link)
{
	if (link)
		smartiod_borrow_link_lost(d, node);
	else
		smartiod_borrow_node_down(d, node);
}

void smartiod_device_node_down(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	smartiod_loan_node_down(d, node);
	smartiod_dma_node_down(d, node);
	while ((n = smartiod_tree_after(&smartiod_devices(d)->all, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		if (dev->node == node)
			dev->present = false;
	}
}

bool smartiod_device_borrowed(struct smartiod *d, uint32_t node)
{
	for (const struct smartiod_borrow *b = smartiod_devices(d)->borrows; b; b = b->next)
		if (b->node == node && !b->ended)
			return true;
	return false;
}

bool smartiod_device_lent(struct smartiod *d, uint32_t node)
{
	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		if (l->node == node && !l->ended)
			return true;
	return smartiod_device_borrowed(d, node);
}

/*
 * Both daemons do this when their port tells them, one of them perhaps before a device was lent, or
 * after the link was up again and it was lent anew: so each also says what it has ended.
 */
void smartiod_device_link_lost(struct smartiod *d, uint32_t node)
{
	smartiod_loan_link_lost(d, node);
}

void smartiod_device_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			       uint32_t peer_adapter)
{
	smartiod_borrow_path_down(d, node, adapter, peer_adapter);
	smartiod_loan_path_down(d, node, adapter, peer_adapter);
}

/*
 * The port answers in order: all that is left of the borrows is given back, entries in requester
 * tables among it, before the device can be open again.
 */
static void let_go(struct smartiod *d, struct smartiod_device *dev)
{
	dev->present = false;
	smartiod_loans_device_gone(d, dev);
	smartiod_reset_device_gone(d, dev);
	smartiod_device_announce(d, dev);
}

void smartiod_device_event(struct smartiod *d, const struct sio_evt_device_state *evt)
{
	struct smartiod_device *dev = smartiod_device_by_port(d, evt->device);

	if (evt->h.op == SIO_EV_DEVICE_BACK) {
		/* New here, or another one in its place: it is opened before it can be used. */
		smartiod_device_look(d, evt->device);
		return;
	}
	if (!dev)
		return;
	smartiod_log(d, SMARTIOD_WARNING, "device %s is gone", dev->topo->name);
	dev->generation = smartiod_generation(evt->generation);
	let_go(d, dev);
}

void smartiod_device_fault(struct smartiod *d, const struct sio_evt_fault *evt)
{
	struct smartiod_device *dev = smartiod_device_by_port(d, evt->device);
	char bytes[40] = ""; /* a real IOMMU does not tell */

	if (evt->length)
		snprintf(bytes, sizeof(bytes), " of %" PRIu64 " bytes", (uint64_t)evt->length);
	smartiod_log(d, SMARTIOD_WARNING, "%s: %s%s at %#" PRIx64 " failed: %.*s",
		     dev ? dev->topo->name : "a device",
		     evt->access == SIO_FAULT_READ    ? "read"
		     : evt->access == SIO_FAULT_WRITE ? "write"
						      : "interrupt",
		     bytes, (uint64_t)evt->address, (int)sizeof(evt->reason), evt->reason);
}

void smartiod_device_segment_idle(struct smartiod *d, struct smartiod_segment *seg)
{
	if (!smartiod_dev_seg_idle(d, seg))
		smartiod_borrow_segment_idle(d, seg);
}

/* ---- requests and listings ---- */

int smartiod_dev_list(struct smartiod *d, struct smartiod_session *s, const void *msg,
		      struct sio_err *reterr)
{
	const struct sio_msg_dev_list *m = msg;
	uint64_t key = sio_from_le32(m->after);
	struct smartiod_tree_node *n;
	struct sio_rep_dev_list rep;

	while ((n = smartiod_tree_after(&smartiod_devices(d)->all, key))) {
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

static void loan_row(const struct smartiod_loan *l, struct sio_wire_row *ret)
{
	const struct sio_borrow *b = sio_ledger_find(&l->device->ledger, l->id);
	uint64_t bytes = 0;
	uint32_t refs = 0, flags = l->ended ? SIO_ROW_QUARANTINED : SIO_ROW_LIVE;

	for (const struct smartiod_dma *dma = l->dmas; dma; dma = dma->next) {
		bytes += dma->bytes;
		refs++;
	}
	if (b && b->exclusive)
		flags |= SIO_ROW_EXCLUSIVE;
	if (l->device->ledger.holder == l->id)
		flags |= SIO_ROW_REGISTERS;
	*ret = (struct sio_wire_row){
		.key = sio_to_le64(l->id),
		.owner = sio_to_le64(l->owner),
		.bytes = sio_to_le64(bytes),
		.id = sio_to_le32(l->device->fdid),
		.node = sio_to_le32(l->node),
		.refs = sio_to_le32(refs),
		.flags = sio_to_le32(flags),
		.pid = sio_to_le32(l->pid),
	};
	snprintf(ret->name, sizeof(ret->name), "%s", l->device->topo->name);
}

static void dma_row(const struct smartiod_dma *dma, struct sio_wire_row *ret)
{
	*ret = (struct sio_wire_row){
		.key = sio_to_le64(dma->by_id.key),
		.owner = sio_to_le64(dma->loan->id),
		.bytes = sio_to_le64(dma->bytes),
		.address = sio_to_le64(dma->iova),
		.id = sio_to_le32(dma->loan->device->fdid),
		.node = sio_to_le32(dma->exporter),
		.refs = sio_to_le32(smartiod_hold_count(dma)),
		.flags = sio_to_le32(dma->loan->ended ? SIO_ROW_QUARANTINED : SIO_ROW_LIVE),
		.pid = sio_to_le32(dma->loan->pid),
	};
	snprintf(ret->name, sizeof(ret->name), "%s", dma->loan->device->topo->name);
}

bool smartiod_device_row(struct smartiod *d, uint32_t kind, uint64_t after,
			 struct sio_wire_row *ret)
{
	struct smartiod_tree_node *n;
	struct smartiod_loan *l;

	switch (kind) {
	case SIO_LIST_BORROWS:
		l = smartiod_loan_after(d, after);
		if (l)
			loan_row(l, ret);
		return l;
	case SIO_LIST_DMA_MAPS:
		n = smartiod_tree_after(&smartiod_devices(d)->dmas, after);
		if (n)
			dma_row(SMARTIOD_OF(n, struct smartiod_dma, by_id), ret);
		return n;
	default:
		return false;
	}
}

/* ---- replies that nobody waits for any more ---- */

void smartiod_device_late(struct smartiod *d, uint32_t node, const struct sio_msg *msg)
{
	struct sio_peer_borrower end = {.h.type = sio_to_le32(SIO_PEER_BORROW_END)};
	struct sio_peer_bar_release release = {.h.type = sio_to_le32(SIO_PEER_BAR_RELEASE)};
	const struct sio_prep_borrow *borrow = (const void *)msg;
	const struct sio_prep_bar_grant *bar = (const void *)msg;
	uint32_t n;

	switch (SIO_PEER_TYPE(sio_from_le32(msg->type))) {
	case SIO_PEER_BORROW:
		end.borrower = borrow->borrower;
		end.fdid = borrow->fdid;
		smartiod_peer_tell(d, node, &end, sizeof(end));
		return;
	case SIO_PEER_BAR_GRANT:
		n = sio_from_le32(bar->n_pieces);
		release.borrower = bar->borrower;
		release.fdid = bar->fdid;
		for (uint32_t i = 0; i < n && i < SIO_MAP_PIECES; i++) {
			release.view = bar->piece[i].view;
			release.grant = bar->piece[i].g.grant;
			smartiod_peer_tell(d, node, &release, sizeof(release));
			smartiod_grant_release(d, node, sio_from_le64(bar->piece[i].g.grant));
		}
		return;
	case SIO_PEER_DMA_MAP:
		smartiod_dma_late(d, node, (const void *)msg);
		return;
	case SIO_PEER_HOLD:
		smartiod_hold_late(d, node, (const void *)msg);
		return;
	case SIO_PEER_VECTOR:
		smartiod_vector_late(d, node, (const void *)msg);
		return;
	default:
		return; /* what it made ends with the borrow */
	}
}
