/* SPDX-License-Identifier: BSD-2-Clause */
/* NTB adapters of a host, and their tables, which are made at power-on. */
#include <stdio.h>

#include "emu/memory/memory.h"

#define FIRST_IOVA 0x40000000ull
#define LAST_IOVA ((1ull << 48) - 1)

int emu_op_adapter(struct emu_request *rq, const void *msg)
{
	const struct sio_req_adapter *m = msg;
	struct sio_evt_adapter evt;
	struct emu_adapter *a = NULL;
	int rc = emu_adapter_get(rq, m->index, &a);

	if (rc < 0)
		return rc;
	memset(&evt, 0, sizeof(evt));
	evt.index = a->index;
	evt.node = a->host->topo->node;
	evt.bdf = a->topo->bdf;
	evt.link_up = emu_adapter_linked(a);
	evt.link_width = a->topo->link_width;
	evt.link_generation = a->topo->link_generation;
	evt.programmed_by = SIO_PROGRAMMED_BY_IMPORTER;
	evt.iommu = a->host->topo->iommu;
	evt.window_base = a->topo->window_base;
	evt.window_size = a->topo->window_size;
	evt.entry_size = a->lut.entry_size;
	evt.alignment = EMU_PAGE;
	evt.entries_total = a->lut.n_entries;
	evt.entries_free = a->lut.n_entries - a->lut.n_used;
	evt.requesters_total = a->topo->requesters;
	evt.requesters_free = a->topo->requesters - a->requesters_used;
	evt.dma_bits = 64; /* the window's entries, and its engine */
	evt.mcast_groups = EMU_GROUPS;
	evt.capabilities = SIO_ADAPTER_PROCESSORS | SIO_ADAPTER_WRITE | SIO_ADAPTER_READ |
			   SIO_ADAPTER_TRIGGER | SIO_ADAPTER_ENTRIES;
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}

int emu_adapter_init(struct emu_adapter *a, struct emu_host *h, unsigned index,
		     const struct sio_topo_adapter *t, struct sio_err *reterr)
{
	a->host = h;
	a->topo = t;
	a->index = index;
	a->cable = true;
	if (t->lut_entries == 0 || t->window_size / t->lut_entries < EMU_PAGE)
		return sio_fail(reterr, -EINVAL,
				"host %s: adapter %u: window of %" PRIu64 " bytes with "
				"%u entries: an entry of at least %u bytes is right",
				h->topo->name, index, t->window_size, t->lut_entries,
				SIO_PAGE_SIZE);
	a->requester = calloc(t->requesters ? t->requesters : 1, sizeof(*a->requester));
	if (!a->requester)
		return sio_fail(reterr, -ENOMEM,
				"host %s: no memory for its requester entries: " SIO_MORE_MEMORY,
				h->topo->name);
	return 0;
}

void emu_adapter_done(struct emu_adapter *a)
{
	free(a->requester);
	a->requester = NULL;
}

int emu_adapter_power_on(struct emu_adapter *a, struct sio_err *reterr)
{
	/* Apart for each node, so that an address of one domain means nothing in another. */
	uint64_t first = FIRST_IOVA + a->host->topo->node * 0x100000ull;
	const struct sio_topo_adapter *t = a->topo;
	char name[SIO_NAME_LEN], lut_name[SIO_NAME_LEN];
	int rc;

	snprintf(name, sizeof(name), "%.24s/%u", a->host->topo->name, a->index);
	emu_requesters_power_on(a);
	snprintf(lut_name, sizeof(lut_name), "look-ups of adapter %u, node %u", a->index,
		 a->host->topo->node);
	rc = sio_lut_init(&a->lut, lut_name, t->window_size, t->lut_entries, reterr);
	if (rc < 0 || !a->host->topo->iommu)
		return rc;
	sio_iommu_init(&a->iommu, name);
	rc = sio_range_init(&a->iova, name, first, LAST_IOVA - first + 1, reterr);
	if (rc == 0)
		rc = sio_range_reserve(&a->iova, EMU_MSI_BASE, EMU_MSI_SIZE, reterr);
	return rc;
}

int emu_adapter_place(struct emu_adapter *a, struct sio_err *reterr)
{
	struct sio_region window = {.base = a->topo->window_base,
				    .size = a->topo->window_size,
				    .kind = SIO_KIND_ADAPTER,
				    .object = a};

	return sio_addrmap_add(&a->host->map, &window, reterr);
}

void emu_adapter_power_off(struct emu_adapter *a)
{
	sio_lut_done(&a->lut);
	memset(&a->lut, 0, sizeof(a->lut));
	if (!a->host->topo->iommu)
		return;
	sio_iommu_done(&a->iommu);
	sio_range_done(&a->iova);
	memset(&a->iova, 0, sizeof(a->iova));
}
