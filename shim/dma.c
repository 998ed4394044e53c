// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a device may reach, through the kernel's DMA API, IOMMU or not. A mapping is one range for
 * the device, or it is refused: the kernel's bounce buffers, which would have to be copied by hand,
 * are found by comparing addresses.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>

#include "smartio.h"

#define ATTRS DMA_ATTR_SKIP_CPU_SYNC /* also: one page may be mapped more than once */

static struct device *device_of(struct sio_dmamap *m)
{
	return &m->o.dev->pdev->dev;
}

static struct sio_mem *mem_of(struct sio_dmamap *m)
{
	return (struct sio_mem *)m->o.target;
}

/* ---- making ---- */

/* Where @length bytes behind @skip lie for the device, if they are one range there. */
static bool one_range(struct sg_table *sgt, u64 skip, u64 length, u64 *ret)
{
	struct scatterlist *sg;
	u64 found = 0;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		u64 at = sg_dma_address(sg), len = sg_dma_len(sg);

		if (skip >= len) {
			skip -= len;
			continue;
		}
		if (!found)
			*ret = at + skip;
		else if (at != *ret + found)
			return false;
		found += len - skip;
		skip = 0;
		if (found >= length)
			return true;
	}
	return false;
}

static void unmap(struct sio_dmamap *m)
{
	struct device *dev = device_of(m);

	if (m->attached) {
		dma_buf_unmap_attachment_unlocked(m->attach, m->attached, m->dir);
		dma_buf_detach(mem_of(m)->dmabuf, m->attach);
	} else if (m->sgt.sgl) {
		dma_unmap_sgtable(dev, &m->sgt, m->dir, ATTRS);
		sg_free_table(&m->sgt);
	} else if (m->resource) {
		dma_unmap_resource(dev, m->o.address, m->o.length, m->dir, ATTRS);
	} else {
		dma_unmap_page_attrs(dev, m->o.address, m->o.length, m->dir, ATTRS);
	}
	m->mapped = false;
}

/* The kernel's DMA API does not say why. */
static int no_room(struct sio_request *rq, const struct sio_dmamap *m)
{
	bool off = sio_dev_iommu(m->o.dev) == SIO_IOMMU_OFF;

	return sio_fail_exhausted(rq, -ENOSPC, off ? SIO_OUT_OF_REACH : SIO_OUT_OF_IOVA,
				  "the kernel finds no address of %s for %#llx bytes",
				  pci_name(m->o.dev->pdev), m->o.length);
}

static int scattered(struct sio_request *rq, const struct sio_dmamap *m)
{
	return sio_fail(rq, -EOPNOTSUPP, "it lies in pieces that no IOMMU makes one range of %s",
			pci_name(m->o.dev->pdev));
}

/* A range that is contiguous as it is: of a pool, or of a BAR. */
static int map_single(struct sio_request *rq, struct sio_dmamap *m, u64 phys)
{
	struct device *dev = device_of(m);

	m->resource = !pfn_valid(PHYS_PFN(phys));
	if (m->resource)
		m->o.address = dma_map_resource(dev, phys, m->o.length, m->dir, ATTRS);
	else
		m->o.address = dma_map_page_attrs(dev, pfn_to_page(PHYS_PFN(phys)), 0, m->o.length,
						  m->dir, ATTRS);
	if (dma_mapping_error(dev, m->o.address))
		return no_room(rq, m);
	m->mapped = true;
	return 0;
}

static int map_pages(struct sio_request *rq, struct sio_dmamap *m)
{
	u64 first = mem_of(m)->first + PHYS_PFN(m->offset);
	int error;

	error = sg_alloc_table_from_pages(&m->sgt, mem_of(m)->pages->page + first,
					  PHYS_PFN(m->o.length), 0, m->o.length, GFP_KERNEL);
	if (error)
		return error;
	if (m->sgt.orig_nents > 1 && sio_dev_iommu(m->o.dev) == SIO_IOMMU_OFF)
		error = scattered(rq, m);
	else if (dma_map_sgtable(device_of(m), &m->sgt, m->dir, ATTRS))
		error = no_room(rq, m);
	if (error) {
		sg_free_table(&m->sgt);
		return error;
	}
	m->mapped = true;
	return one_range(&m->sgt, 0, m->o.length, &m->o.address) ? 0 : scattered(rq, m);
}

static int map_dmabuf(struct sio_request *rq, struct sio_dmamap *m)
{
	u64 skip = PFN_PHYS(mem_of(m)->first) + m->offset;

	m->attach = dma_buf_attach(mem_of(m)->dmabuf, device_of(m));
	if (IS_ERR(m->attach))
		return PTR_ERR(m->attach);
	m->attached = dma_buf_map_attachment_unlocked(m->attach, m->dir);
	if (IS_ERR(m->attached)) {
		dma_buf_detach(mem_of(m)->dmabuf, m->attach);
		return PTR_ERR(m->attached);
	}
	m->mapped = true;
	return one_range(m->attached, skip, m->o.length, &m->o.address) ? 0 : scattered(rq, m);
}

static u64 physical(struct sio_dmamap *m)
{
	if (m->o.target->kind == SIO_KIND_BAR)
		return m->o.target->address + m->offset;
	return PFN_PHYS(sio_mem_pfn(mem_of(m), PHYS_PFN(m->offset)));
}

/* What the kernel gave must lead to the memory itself, and be what was wanted. */
static int check_place(struct sio_request *rq, struct sio_dmamap *m, const struct sio_req_dmamap *q)
{
	bool off = sio_dev_iommu(m->o.dev) == SIO_IOMMU_OFF;
	u64 iova = m->o.address, leads_to = iova;

	if (!off)
		leads_to = iommu_iova_to_phys(iommu_get_domain_for_dev(device_of(m)), iova);
	if (!m->attached && leads_to != physical(m))
		return sio_fail_exhausted(
			rq, -ENOSPC, SIO_OUT_OF_REACH,
			"%#llx bytes at %#llx: the kernel would have to copy them", m->o.length,
			physical(m));
	if (iova + m->o.length - 1 > q->highest)
		return sio_fail_exhausted(rq, -ENOSPC, SIO_OUT_OF_REACH,
					  "%#llx bytes at %#llx, wanted up to %#llx", m->o.length,
					  iova, q->highest);
	if (q->iova != SIO_PORT_ANY && q->iova != iova)
		return sio_fail(rq, off ? -EINVAL : -EOPNOTSUPP,
				"address %#llx wanted, but %s: ask for any", q->iova,
				off ? "the target lies elsewhere and no IOMMU translates"
				    : "here the kernel chooses it");
	return 0;
}

static int map(struct sio_request *rq, struct sio_dmamap *m, const struct sio_req_dmamap *q)
{
	bool mem = m->o.target->kind == SIO_KIND_MEM;
	int error;

	if (mem && mem_of(m)->dmabuf)
		error = map_dmabuf(rq, m);
	else if (mem && mem_of(m)->pages)
		error = map_pages(rq, m);
	else
		error = map_single(rq, m, physical(m));
	return error ? error : check_place(rq, m, q);
}

/* ---- DMAMAP ---- */

static int check(struct sio_request *rq, const struct sio_req_dmamap *m)
{
	if (m->target_kind == SIO_KIND_APERTURE)
		return sio_fail(rq, -EOPNOTSUPP, "apertures are not served by smartio.ko");
	if (m->access == 0 || m->access & ~SIO_BOTH)
		return sio_fail(rq, -EINVAL, "access %#x, 1 to 3 are right", m->access);
	if (m->iova != SIO_PORT_ANY && !PAGE_ALIGNED(m->iova))
		return sio_fail(rq, -EINVAL, "address %#llx is not of a whole page", m->iova);
	if (m->target_kind != SIO_KIND_MEM && m->target_kind != SIO_KIND_MAP &&
	    m->target_kind != SIO_KIND_BAR)
		return sio_fail(rq, -EINVAL,
				"target kind %u, %d (memory), %d (map) or %d (BAR view) is right",
				m->target_kind, SIO_KIND_MEM, SIO_KIND_MAP, SIO_KIND_BAR);
	return 0;
}

/* The target, or an error. */
static struct sio_obj *find_target(struct sio_request *rq, const struct sio_req_dmamap *m)
{
	struct sio_obj *t = sio_obj_find(rq, m->target_kind, m->target, true);
	const char *name = sio_kind_name(m->target_kind);
	int error;

	if (IS_ERR(t))
		return t;
	if (t->kind == SIO_KIND_BAR && t->dev == rq->dev)
		return ERR_PTR(sio_fail(rq, -EOPNOTSUPP,
					"%s %#llx is of the same device; only others' are mapped",
					name, t->id));
	if (t->kind == SIO_KIND_BAR && ((struct sio_bar *)t)->revoked)
		return ERR_PTR(
			sio_fail(rq, -EOPNOTSUPP, "the device of %s %#llx has gone", name, t->id));
	if (m->access & ~t->access)
		return ERR_PTR(sio_fail(rq, -EACCES, "%s %#llx is read-only", name, t->id));
	error = sio_check_range(rq, name, m->offset, m->length, t->length);
	return error ? ERR_PTR(error) : t;
}

int sio_op_dmamap(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_dmamap *q = msg;
	struct sio_evt_dmamap *evt = answer;
	struct sio_dmamap *m = (struct sio_dmamap *)rq->obj;
	int error = check(rq, q);
	struct sio_obj *target;

	if (error)
		return error;
	target = find_target(rq, q);
	if (IS_ERR(target))
		return PTR_ERR(target);
	sio_obj_tie(&m->o, rq->dev, target);
	m->offset = q->offset;
	m->o.length = q->length;
	/* Reading is 1 for the DMA API, too, and writing 2. */
	m->dir = q->access == SIO_BOTH ? DMA_BIDIRECTIONAL : q->access;
	error = map(rq, m, q);
	evt->iova = m->o.address;
	evt->length = m->o.length;
	return error;
}

/* ---- ending ---- */

/* After this the device cannot reach the memory: the IOMMU's lazy flush is not waited for. */
static void cut(struct sio_dmamap *m)
{
	if (!m->mapped)
		return;
	unmap(m);
	if (sio_dev_iommu(m->o.dev) == SIO_IOMMU_LAZY)
		iommu_flush_iotlb_all(iommu_get_domain_for_dev(device_of(m)));
}

static void dmamap_end(struct sio_obj *o)
{
	cut((struct sio_dmamap *)o);
}

u64 sio_dmamaps_settle(struct sio_dev *d, u64 epoch)
{
	struct sio_obj *o, *tmp;
	u64 n = 0;

	list_for_each_entry_safe(o, tmp, &d->objects, of_dev) {
		if (o->kind != SIO_KIND_DMAMAP || o->state != SIO_STATE_QUARANTINED ||
		    o->ended_at > epoch)
			continue;
		sio_obj_end(o);
		n++;
	}
	return n;
}

/* Also others' mappings of its BARs: something else may come to lie there. */
void sio_dmamaps_lose(struct sio_dev *d)
{
	struct sio_dev *other;
	struct sio_obj *o;

	list_for_each_entry(other, &sio.devices, node)
		list_for_each_entry(o, &other->objects, of_dev)
			if (o->kind == SIO_KIND_DMAMAP &&
			    (other == d ||
			     (o->target->kind == SIO_KIND_BAR && o->target->dev == d)))
				cut((struct sio_dmamap *)o);
	sio_dmamaps_settle(d, U64_MAX);
}

const struct sio_kind sio_kind_dmamap = {
	.name = "DMA mapping",
	.size = sizeof(struct sio_dmamap),
	.end = dmamap_end,
};
