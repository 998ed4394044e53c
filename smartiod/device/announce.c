/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Announcements of devices: what this host tells the others of its own, and what it knows of theirs
 * by what they tell.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/base/hops.h"
#include "smartiod/base/peer.h"
#include "smartiod/base/room.h"
#include "smartiod/device/device.h"

/* ---- to other hosts ---- */

/* To the peer at place @i of @d->peer. */
static bool is_untold(const struct smartiod_device *dev, unsigned i)
{
	return dev->untold[i / 64] >> i % 64 & 1;
}

static void set_untold(struct smartiod_device *dev, unsigned i, bool untold)
{
	if (untold)
		dev->untold[i / 64] |= 1ull << i % 64;
	else
		dev->untold[i / 64] &= ~(1ull << i % 64);
}

static void announce_to(struct smartiod *d, struct smartiod_device *dev, unsigned i)
{
	struct sio_peer_devices msg = {.h.type = sio_to_le32(SIO_PEER_DEVICES),
				       .present = sio_to_le32(dev->present)};

	smartiod_device_info(d, dev, &msg.info);
	smartiod_peer_send(d, d->peer[i].node, &msg, sizeof(msg));
	set_untold(dev, i, false);
}

void smartiod_device_announce(struct smartiod *d, struct smartiod_device *dev)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		announce_to(d, dev, i);
	smartiod_device_changed(d, dev);
}

void smartiod_device_announce_later(struct smartiod *d, struct smartiod_device *dev)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		set_untold(dev, i, true);
	if (d->n_peers)
		smartiod_ask_later(d);
	smartiod_device_changed(d, dev);
}

void smartiod_device_announce_to(struct smartiod *d, struct smartiod_device *dev, uint32_t node)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		if (d->peer[i].node == node)
			announce_to(d, dev, i);
}

void smartiod_device_tell(struct smartiod *d, struct smartiod_device *dev, uint32_t node)
{
	for (unsigned i = 0; i < d->n_peers; i++)
		if (d->peer[i].node == node && is_untold(dev, i))
			announce_to(d, dev, i);
}

static struct smartiod_device *next_own(struct smartiod *d, uint64_t *key)
{
	struct smartiod_tree_node *n = smartiod_tree_after(&d->devices, *key);

	if (!n || sio_topology_fdid_node((uint32_t)n->key) != d->node)
		return NULL;
	*key = n->key;
	return SMARTIOD_OF(n, struct smartiod_device, by_fdid);
}

/* What has changed of a device since the last time is one message to each host. */
void smartiod_devices_announce_changed(struct smartiod *d)
{
	uint64_t key = sio_topology_fdid(d->node, 0);
	struct smartiod_device *dev;

	while ((dev = next_own(d, &key)))
		for (unsigned i = 0; i < d->n_peers; i++)
			if (is_untold(dev, i))
				announce_to(d, dev, i);
}

void smartiod_devices_announce(struct smartiod *d, uint32_t node)
{
	uint64_t key = sio_topology_fdid(d->node, 0);
	struct smartiod_device *dev;
	unsigned i = 0;

	while (d->peer[i].node != node)
		i++;
	while ((dev = next_own(d, &key)))
		if (dev->present)
			announce_to(d, dev, i);
}

/* ---- of other hosts ---- */

/* A real host's devices are those that its kernel finds: the cluster's file has none of them. */
static struct smartiod_device *learn(struct smartiod *d, uint32_t node, uint32_t fdid)
{
	const struct sio_topo_host *host = sio_topology_host(d->topology, node);
	struct smartiod_device *dev;

	if (!host || !host->real || sio_topology_fdid_node(fdid) != node ||
	    fdid == sio_topology_fdid(node, 0))
		return NULL;
	dev = smartiod_device_found(d, host, fdid);
	if (dev)
		sio_ledger_init(&dev->ledger, host->name);
	return dev;
}

struct smartiod_device *smartiod_device_again(struct smartiod *d, uint32_t fdid, uint32_t bdf,
					      uint32_t class_code, struct sio_err *reterr)
{
	struct smartiod_device *dev = smartiod_device_known(d, fdid);

	if (!dev)
		dev = learn(d, sio_topology_fdid_node(fdid), fdid);
	if (!dev) {
		sio_fail(reterr, -ENODEV, "no device of the cluster has id %#" PRIx32, fdid);
		return NULL;
	}
	if (smartiod_device_is_found(dev) && !dev->found.name[0])
		smartiod_device_name(d, dev, bdf, class_code);
	return dev;
}

/* As a cluster's file has it (topofile/value.c): it goes to logs, and to users' terminals. */
static bool is_name(const char *text)
{
	const char *other = text;

	while ((*other >= 'a' && *other <= 'z') || (*other >= 'A' && *other <= 'Z') ||
	       (other > text &&
		((*other >= '0' && *other <= '9') || *other == '-' || *other == '_')))
		other++;
	return other > text && !*other;
}

/*
 * The file in force here lacks it, its host does not: a reload whose command died has not removed
 * it yet. It is known as one that our file has dropped while it was there: until it is gone, or
 * another file lists it.
 */
static struct smartiod_device *unlisted(struct smartiod *d, uint32_t node,
					const struct sio_rep_dev_list *info, bool present)
{
	const struct sio_topo_host *host = sio_topology_host(d->topology, node);
	uint32_t fdid = sio_from_le32(info->fdid);
	struct smartiod_device *dev;

	if (!host || host->real || !present || strlen(info->name) >= sizeof(dev->found.name) ||
	    !is_name(info->name) ||
	    sio_topology_fdid(node, sio_topology_number(info->name)) != fdid)
		return NULL;
	dev = smartiod_device_found(d, host, fdid);
	if (!dev)
		return NULL;
	dev->dropped = true;
	dev->found.fdid = fdid;
	dev->found.bdf = sio_from_le32(info->bdf);
	memcpy(dev->found.name, info->name, strlen(info->name) + 1);
	dev->hops = smartiod_hops_decode(info->hops);
	sio_ledger_init(&dev->ledger, dev->found.name);
	smartiod_log(d, SMARTIOD_NOTICE,
		     "%s has %s, which our file of the cluster does not list: smartio cluster "
		     "reload takes it away, or lists it",
		     host->name, dev->found.name);
	return dev;
}

int smartiod_peer_devices(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_peer_devices *m = msg;
	uint32_t fdid = sio_from_le32(m->info.fdid);
	struct smartiod_device *dev = smartiod_device_known(d, fdid);

	if (!memchr(m->info.name, 0, sizeof(m->info.name)))
		return sio_fail(reterr, -EPROTO, "device %#" PRIx32 " has a name without end",
				fdid);
	if (!dev)
		dev = learn(d, from->node, fdid);
	if (!dev)
		dev = unlisted(d, from->node, &m->info, sio_from_le32(m->present));
	if (!dev && !m->present && sio_topology_fdid_node(fdid) == from->node)
		return 0;
	if (!dev || dev->node != from->node)
		return sio_fail(reterr, -EPROTO,
				"node %" PRIu32 " announces device %#" PRIx32
				", which is none of its own",
				from->node, fdid);
	if (smartiod_device_is_found(dev))
		smartiod_device_name(d, dev, sio_from_le32(m->info.bdf),
				     sio_from_le32(m->info.class_code));
	dev->info = m->info;
	if (smartiod_device_is_found(dev))
		dev->hops = smartiod_hops_decode(m->info.hops);
	smartiod_hops_encode(&dev->hops, dev->info.hops);
	/* Whose it is, and its name, all hosts know: by no word of its own can it be another's. */
	dev->info.node = sio_to_le32(dev->node);
	snprintf(dev->info.name, sizeof(dev->info.name), "%s", dev->topo->name);
	dev->generation = sio_from_le32(m->info.generation);
	dev->present = sio_from_le32(m->present) != 0;
	dev->unheard = false;
	if (!dev->present)
		smartiod_device_gone(d, dev);
	smartiod_device_changed(d, dev);
	return 0;
}

/* The next device of @node that is present; NULL. *key is 0 at first. */
static struct smartiod_device *next_present(struct smartiod *d, uint32_t node, uint64_t *key)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->devices, *key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		*key = n->key;
		if (dev->node == node && dev->present)
			return dev;
	}
	return NULL;
}

/*
 * What outlived the end of the connection is still there as far as anybody knows. A lender
 * announces what it offers, and has no word for what left while it could not tell us, or before it
 * was started again.
 */
void smartiod_devices_expect(struct smartiod *d, uint32_t node)
{
	struct smartiod_device *dev;
	uint64_t key = 0;

	while ((dev = next_present(d, node, &key)))
		dev->unheard = true;
}

/* The announcements are before the answer. */
void smartiod_devices_heard(struct smartiod *d, uint32_t node)
{
	struct smartiod_device *dev;
	uint64_t key = 0;

	while ((dev = next_present(d, node, &key))) {
		if (!dev->unheard)
			continue;
		dev->present = dev->unheard = false;
		smartiod_device_gone(d, dev);
	}
}
