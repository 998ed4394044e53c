/* SPDX-License-Identifier: BSD-2-Clause */
/* Pools: the part of an emulated host's RAM that machines with mapped windows map. */
#include <inttypes.h>
#include <stdio.h>

#include "topofile/draft.h"

/* What a pool leaves of the host's RAM is for memory that cannot lie there. */
static uint64_t default_size(const struct sio_topo_host *h)
{
	return h->ram_size / 2 / SIO_PAGE_SIZE * SIO_PAGE_SIZE;
}

static bool is_mapped_by_machines(const struct sio_topology *t, const struct sio_topo_host *h)
{
	struct sio_path way;

	for (unsigned i = 0; i < t->n_hosts; i++)
		if (t->host[i].mapped && sio_topology_paths(t, h->node, t->host[i].node, &way, 1))
			return true;
	return false;
}

/* The file has one. */
static int check(struct sio_draft *d, const struct sio_topo_host *h, struct sio_spot at,
		 bool mapped)
{
	char path[SIO_DRAFT_PATH];

	snprintf(path, sizeof(path), "hosts.%s.pool", h->name);
	if (!mapped)
		return sio_source_fail_at(
			d->source, at, path,
			"for machines with 'window: mapped', and none is joined to "
			"host '%s'; no such key is right",
			h->name);
	if (h->iommu)
		return sio_source_fail_at(
			d->source, at, path,
			"host '%s' has an IOMMU, which mapped windows would pass; "
			"'iommu: off', or no such key, is right",
			h->name);
	if (h->pool_size > h->ram_size)
		return sio_source_fail_at(d->source, at, path,
					  "a part of the host's RAM, which has %" PRIu64
					  " bytes; at most as many are right",
					  h->ram_size);
	return 0;
}

int sio_draft_give_pools(struct sio_draft *d)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < d->t->n_hosts; i++) {
		struct sio_topo_host *h = &d->t->host[i];
		bool mapped = is_mapped_by_machines(d->t, h);

		if (h->machine || h->real)
			continue;
		if (d->host[i].pool_at.value)
			rc = check(d, h, d->host[i].pool_at, mapped);
		else if (mapped && !h->iommu)
			h->pool_size = default_size(h);
	}
	return rc;
}
