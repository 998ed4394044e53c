// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a device may reach, through the kernel's DMA API, IOMMU or not. A mapping is one range for
 * the device, or it is refused: the kernel's bounce buffers, which would have to be copied by hand,
 * are found by comparing addresses.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>

#include "smartio.h"

#define ATTRS DMA_ATTR_SKIP_CPU_SYNC /* also: one page may be mapped more than once */

static struct device *device_of(struct sio_dmamap *m)
{
	return &m->dev->pdev->dev;
}

/* ---- making ---- */

/* A range that is contiguous as it is: of a pool, or of a BAR. */
static int map_single(struct sio_request *rq, struct sio_dmamap *m, u64 phys)
{
	struct device *dev = device_of(m);

	m->single = true;
	m->resource = m->target->kind == SIO_KIND_BAR || !pfn_valid(PHYS_PFN(phys));
	if (m->resource)
		m->iova = dma_map_resource(dev, phys, m->length, m->dir, ATTRS);
	else
		m->iova = dma_map_page_attrs(dev, pfn_to_page(PHYS_PFN(phys)), 0, m->length, m->dir,
					     ATTRS);
	if (dma_mapping_error(dev, m->iova))
		return sio_fail(rq, -ENOSPC, "the kernel cannot map %#llx bytes for %s", m->length,
				pci_name(m->dev->pdev));
	return 0;
}

static void unmap(struct sio_dmamap *m)
{
	struct device *dev = device_of(m);

	if (m->attached) {
		sio_dmabuf_unmap(m);
	} else if (!m->single) {
		dma_unmap_sgtable(dev, &m->sgt, m->dir, ATTRS);
		sg_free_table(&m->sgt);
	} else if (m->resource) {
		dma_unmap_resource(dev, m->iova, m->length, m->dir, ATTRS);
	} else {
		dma_unmap_page_attrs(dev, m->iova, m->length, m->dir, ATTRS);
	}
}

static bool one_range(struct sg_table *sgt, u64 *ret)
{
	struct scatterlist *sg;
	u64 end = 0;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (i == 0)
			*ret = sg_dma_address(sg);
		else if (sg_dma_address(sg) != end)
			return false;
		end = sg_dma_address(sg) + sg_dma_len(sg);
	}
	return true;
}

static int map_pages(struct sio_request *rq, struct sio_dmamap *m, struct sio_mem *mem)
{
	u64 first = mem->first + (m->offset >> PAGE_SHIFT);
	int error;

	error = sg_alloc_table_from_pages(&m->sgt, mem->pages->page + first,
					  m->length >> PAGE_SHIFT, 0, m->length, GFP_KERNEL);
	if (error)
		return sio_fail(rq, error, "out of memory for the list of pages");
	if (m->sgt.orig_nents > 1 && sio_dev_iommu(m->dev) == SIO_IOMMU_OFF) {
		error = sio_fail(rq, -EOPNOTSUPP,
				 "the range lies in %u pieces and %s has no IOMMU to join them",
				 m->sgt.orig_nents, pci_name(m->dev->pdev));
		goto free_table;
	}
	error = dma_map_sgtable(device_of(m), &m->sgt, m->dir, ATTRS);
	if (error) {
		sio_fail(rq, error == -EREMOTEIO ? error : -ENOSPC,
			 "the kernel cannot map %#llx bytes for %s", m->length,
			 pci_name(m->dev->pdev));
		error = rq->error;
		goto free_table;
	}
	if (one_range(&m->sgt, &m->iova))
		return 0;
	unmap(m);
	return sio_fail(rq, -EOPNOTSUPP, "the kernel made several ranges of it for %s",
			pci_name(m->dev->pdev));

free_table:
	sg_free_table(&m->sgt);
	return error;
}

static u64 physical(const struct sio_dmamap *m)
{
	const struct sio_mem *mem = (const struct sio_mem *)m->target;

	if (m->target->kind == SIO_KIND_BAR)
		return ((const struct sio_bar *)m->target)->phys + m->offset;
	return PFN_PHYS(sio_mem_pfn(mem, m->offset >> PAGE_SHIFT));
}

/* What the kernel gave must lead to the memory itself, and be what was wanted. */
static int check_place(struct sio_request *rq, struct sio_dmamap *m, const struct sio_req_dmamap *q)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(device_of(m));
	u64 leads_to = m->iova;

	if (sio_dev_iommu(m->dev) != SIO_IOMMU_OFF)
		leads_to = iommu_iova_to_phys(domain, m->iova);
	if (!m->attached && leads_to != physical(m))
		return sio_fail(rq, -ENOSPC,
				"%s cannot reach %#llx by itself: the kernel would copy",
				pci_name(m->dev->pdev), physical(m));
	if (m->iova + (m->length - 1) > q->highest)
		return sio_fail(rq, -ENOSPC,
				"the range would end at %#llx for %s, wanted is at most %#llx",
				m->iova + (m->length - 1), pci_name(m->dev->pdev), q->highest);
	if (q->iova == SIO_PORT_ANY || q->iova == m->iova)
		return 0;
	if (sio_dev_iommu(m->dev) == SIO_IOMMU_OFF)
		return sio_fail(
			rq, -EINVAL,
			"address %#llx wanted, but the IOMMU is off and the target lies at %#llx",
			q->iova, m->iova);
	return sio_fail(rq, -EOPNOTSUPP,
			"address %#llx wanted, but here the kernel chooses it: ask for any",
			q->iova);
}

static int map(struct sio_request *rq, struct sio_dmamap *m, const struct sio_req_dmamap *q)
{
	struct sio_mem *mem = (struct sio_mem *)m->target;
	int error;

	if (m->target->kind == SIO_KIND_BAR)
		error = map_single(rq, m, physical(m));
	else if (mem->dmabuf)
		error = sio_dmabuf_map(rq, m, mem);
	else if (mem->pages)
		error = map_pages(rq, m, mem);
	else
		error = map_single(rq, m, physical(m));
	if (error)
		return error;
	error = check_place(rq, m, q);
	if (error)
		unmap(m);
	return error;
}

/* ---- DMAMAP ---- */

static int check_target(struct sio_request *rq, const struct sio_req_dmamap *m, struct sio_dev *d,
			struct sio_obj **ret)
{
	const struct sio_bar *b;

	if (m->target_kind == SIO_KIND_APERTURE)
		return sio_fail(rq, -EOPNOTSUPP, "apertures are not served by smartio.ko");
	if (m->target_kind != SIO_KIND_MEM && m->target_kind != SIO_KIND_MAP &&
	    m->target_kind != SIO_KIND_BAR)
		return sio_fail(rq, -EINVAL,
				"target kind %u, %d (memory) or %d (BAR view) is right",
				m->target_kind, SIO_KIND_MEM, SIO_KIND_BAR);
	*ret = sio_obj_find_live(rq, m->target_kind, m->target);
	if (!*ret)
		return rq->error;
	b = (const struct sio_bar *)*ret;
	if (b->o.kind == SIO_KIND_MEM)
		return sio_check_range(rq, "memory", m->offset, m->length,
				       ((const struct sio_mem *)b)->size);
	if (b->dev == d || b->revoked)
		return sio_fail(rq, -EOPNOTSUPP,
				"of BARs only those of other devices can be mapped");
	if (m->access & ~b->access)
		return sio_fail(rq, -EACCES, "BAR view %#llx is read-only", m->target);
	return sio_check_range(rq, "BAR view", m->offset, m->length, b->length);
}

static int check(struct sio_request *rq, const struct sio_req_dmamap *m, struct sio_dev **ret_d,
		 struct sio_obj **ret_target)
{
	int error;

	if (m->access == 0 || m->access & ~SIO_BOTH)
		return sio_fail(rq, -EINVAL, "access %#x, 1 to %u are right", m->access, SIO_BOTH);
	if (m->iova != SIO_PORT_ANY && !PAGE_ALIGNED(m->iova))
		return sio_fail(rq, -EINVAL, "address %#llx is not of a whole page", m->iova);
	error = sio_dev_get(rq, m->device, ret_d);
	return error ? error : check_target(rq, m, *ret_d, ret_target);
}

int sio_op_dmamap(struct sio_request *rq, const void *msg)
{
	const struct sio_req_dmamap *q = msg;
	struct sio_evt_dmamap *evt;
	struct sio_obj *target;
	struct sio_dmamap *m;
	struct sio_dev *d;
	int error = check(rq, q, &d, &target);

	if (error)
		return error;
	m = sio_obj_new(rq, SIO_KIND_DMAMAP, sizeof(*m));
	if (!m)
		return rq->error;
	m->dev = d;
	m->target = target;
	m->offset = q->offset;
	m->length = q->length;
	m->dir = q->access == SIO_BOTH		? DMA_BIDIRECTIONAL
		 : q->access == SIO_ACCESS_READ ? DMA_TO_DEVICE
						: DMA_FROM_DEVICE;
	error = map(rq, m, q);
	if (error) {
		sio_obj_drop(&m->o);
		return error;
	}
	m->mapped = true;
	list_add_tail(&m->of_dev, &d->dmamaps);
	sio_obj_ref(target);
	sio_obj_ref(&d->opened->o);
	evt = sio_answer(rq, sizeof(*evt));
	evt->id = m->o.id;
	evt->iova = m->iova;
	evt->length = m->length;
	return 0;
}

/* ---- ending ---- */

/* After this the device cannot reach the memory: the IOMMU's lazy flush is not waited for. */
static void cut(struct sio_dmamap *m)
{
	if (!m->mapped)
		return;
	unmap(m);
	if (sio_dev_iommu(m->dev) == SIO_IOMMU_LAZY)
		iommu_flush_iotlb_all(iommu_get_domain_for_dev(device_of(m)));
	m->mapped = false;
}

void sio_dmamap_end(struct sio_dmamap *m)
{
	cut(m);
	list_del(&m->of_dev);
	sio_obj_unref(m->target);
	sio_obj_unref(&m->dev->opened->o);
}

u64 sio_dmamaps_settle(struct sio_dev *d, u64 owner, u64 epoch)
{
	struct sio_dmamap *m, *tmp;
	u64 n = 0;

	list_for_each_entry_safe(m, tmp, &d->dmamaps, of_dev) {
		if (m->o.state != SIO_STATE_QUARANTINED || m->ended_at > epoch ||
		    (owner && m->o.owner->o.id != owner))
			continue;
		sio_obj_end(&m->o);
		n++;
	}
	return n;
}

/* Also others' mappings of its BARs: something else may come to lie there. */
void sio_dmamaps_lose(struct sio_dev *d)
{
	struct sio_dev *other;
	struct sio_dmamap *m;

	list_for_each_entry(other, &sio.devices, node)
		list_for_each_entry(m, &other->dmamaps, of_dev)
			if (other == d || (m->target->kind == SIO_KIND_BAR &&
					   ((struct sio_bar *)m->target)->dev == d))
				cut(m);
	sio_dmamaps_settle(d, 0, U64_MAX);
}
