/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is in force while a new file is read. Slots and addresses that no file gives depend on all
 * that is listed before; those of what stays must not move because something else comes or goes.
 */
#include <string.h>

#include "topofile/draft.h"

const struct sio_topo_host *sio_draft_host_before(const struct sio_draft *d, const char *host)
{
	const struct sio_topology *t = d->before;

	for (unsigned i = 0; t && i < t->n_hosts + t->n_machines; i++)
		if (strcmp(t->host[i].name, host) == 0)
			return &t->host[i];
	return NULL;
}

const struct sio_topo_device *sio_draft_device_before(const struct sio_draft *d, const char *host,
						      const char *name)
{
	const struct sio_topo_host *h = sio_draft_host_before(d, host);

	for (unsigned i = 0; h && i < h->n_devices; i++)
		if (strcmp(h->device[i].name, name) == 0)
			return &h->device[i];
	return NULL;
}
