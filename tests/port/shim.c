/* SPDX-License-Identifier: BSD-2-Clause */
/* What smartio.ko answers otherwise than the machine room. */
#include <errno.h>
#include <string.h>

#include "shim.h"

static const struct port_other others[] = {
	{"DMAMAP.iova = 0x700000000ULL", -EINVAL, 0}, /* without an IOMMU, and with one */
	{"DMAMAP.iova = 0", -EINVAL, 0},
	{"DMAMAP.iova = 1ULL << 52", -EINVAL, 0}, /* AMD's translates that, too */
	/* Whether it was granted the bridge knows, if anybody here does; a token proves nothing. */
	{"MAP.token[0]", 0, 0},
	{"MAP.token[24]", 0, 0},
	{"MAP.length = ~0ULL", -EINVAL, -EINVAL},
	{"UNGRANT.h.flags = SIO_UNGRANT_KEEP_ADDRESS", 0, -EOPNOTSUPP},	  /* without an IOMMU */
	{"DMAUNMAP.h.flags = SIO_DMAUNMAP_KEEP_ADDRESS", 0, -EOPNOTSUPP}, /* of memory */
	{"STATS.kind = SIO_KIND_ADAPTER", -ENODEV, 0},
	/* Groups are exact there. */
	{"MCAST.mode = SIO_MCAST_FUSED", -EOPNOTSUPP, -EOPNOTSUPP},
	{"MCAST.mode = SIO_MCAST_EXACT", 0, 0},
	{"MCAST.source_kind = SIO_KIND_BAR", -ENOENT, -ENOENT},
	{"MCAST.adapter = 1", 0, 0},		 /* the loop has two */
	{"MCAST.length = 17 << 20", -ENOSPC, 0}, /* with an IOMMU it need not be in one piece */
	{"STATS.kind = SIO_KIND_DMA", -ENODEV, 0},
	/* Served, and asked about things that are not there. */
	{"IMPORT.kind = SIO_IMPORT_DMABUF", -EINVAL, -EINVAL},
	{"IDENTIFY", -EBADF, -EBADF},
	{"REOPEN", -EINVAL, -EINVAL},
	{"HOLD", -ENOENT, -ENOENT},
};

const struct port_other *port_otherwise(const struct port_row *row)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i].what, row->what) == 0)
			return &others[i];
	return NULL;
}

void port_shim(struct port_world *w)
{
	shim_memory(w);
	shim_owners(w);
	shim_nvme(w);
	shim_domain(w);
	shim_dmabuf(w);
	shim_pair(w);
	shim_devices(w);
}
