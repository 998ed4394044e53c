/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry follows the cluster's file: all devices of the file at the start, later those that
 * come and go by another one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/base/hops.h"
#include "smartiod/device/device.h"

static int add_device(struct smartiod *d, const struct sio_topo_host *host, unsigned index)
{
	struct smartiod_device *dev =
		smartiod_device_new(d, host->device[index].fdid, &host->device[index]);

	if (!dev)
		return -ENOMEM;
	dev->node = host->node;
	dev->hops = smartiod_hops_of(host, dev->topo->in);
	sio_ledger_init(&dev->ledger, dev->topo->name);
	smartiod_tree_add(&d->devices, &dev->by_fdid, dev->fdid);
	return 0;
}

/* Those of @t that are not known yet. */
static int add_devices(struct smartiod *d, const struct sio_topology *t)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < t->n_hosts; i++)
		for (unsigned k = 0; rc == 0 && k < t->host[i].n_devices; k++)
			if (!smartiod_device_known(d, t->host[i].device[k].fdid))
				rc = add_device(d, &t->host[i], k);
	return rc;
}

static int no_devices(struct sio_err *reterr)
{
	return sio_fail(reterr, -ENOMEM,
			"no memory for the devices of the cluster: " SIO_MORE_MEMORY);
}

/* Is it described in the memory of @t? */
static bool is_of(const struct smartiod_device *dev, const struct sio_topology *t)
{
	return dev->topo != &dev->found && sio_topology_device(t, dev->fdid, NULL) == dev->topo;
}

int smartiod_devices_add(struct smartiod *d, const struct sio_topology *t, struct sio_err *reterr)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	if (add_devices(d, t) == 0)
		return 0;
	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		if (is_of(dev, t))
			smartiod_device_free(d, dev);
	}
	return no_devices(reterr);
}

/* What its files name, and which function of which device it is, goes with the topology. */
static void drop(struct smartiod_device *dev)
{
	dev->found = (struct sio_topo_device){.bdf = dev->topo->bdf,
					      .slot = dev->topo->slot,
					      .fdid = dev->fdid,
					      .dma_bits = dev->topo->dma_bits};
	memcpy(dev->found.name, dev->topo->name, sizeof(dev->found.name));
	memcpy(dev->found.type, dev->topo->type, sizeof(dev->found.type));
	dev->topo = &dev->found;
	dev->dropped = true;
}

static void follow(struct smartiod *d, struct smartiod_device *dev)
{
	const struct sio_topo_host *host = NULL;
	const struct sio_topo_device *topo = sio_topology_device(d->topology, dev->fdid, &host);

	if (topo) {
		dev->topo = topo;
		dev->hops = smartiod_hops_of(host, topo->in);
		dev->dropped = false;
	} else if (!dev->dropped) {
		drop(dev);
	}
	/* It may have been there all the time, without being in our file. */
	if (topo && dev->node == d->node && !dev->present)
		smartiod_device_look(d, dev->fdid);
}

void smartiod_devices_follow(struct smartiod *d)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		if (!smartiod_device_is_found(dev))
			follow(d, dev);
		/* The file may have a way there, along links that the port has reported before. */
		smartiod_device_changed(d, dev);
	}
}
