// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA mappings, through the kernel's DMA API, with or without an IOMMU. A mapping is one range for
 * the device, or it is refused: the kernel's bounce buffers, which would have to be copied by hand,
 * are detected by comparing addresses.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/version.h>

#include "adapter.h"

#define ATTRS DMA_ATTR_SKIP_CPU_SYNC /* also: one page may be mapped more than once */

static u32 mode_of(const struct iommu_domain *domain)
{
	if (!domain || !(domain->type & __IOMMU_DOMAIN_PAGING))
		return SIO_IOMMU_OFF;
	return domain->type == IOMMU_DOMAIN_DMA_FQ ? SIO_IOMMU_LAZY : SIO_IOMMU_STRICT;
}

u32 sio_iommu_of(struct device *dev)
{
	return mode_of(iommu_get_domain_for_dev(dev));
}

u32 sio_dev_iommu(const struct sio_dev *d)
{
	return d->domain ? mode_of(d->kernels) : sio_iommu_of(&d->pdev->dev);
}

static u32 iommu_of(const struct sio_dma *m)
{
	return mode_of(sio_domain_of(m));
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

static void unmap(struct sio_dma *m)
{
	if (m->attached) {
		sio_dmabuf_unmap(m);
	} else if (m->sgt.sgl) {
		dma_unmap_sgtable(m->dev, &m->sgt, m->dir, ATTRS);
		sg_free_table(&m->sgt);
	} else if (m->resource) {
		dma_unmap_resource(m->dev, m->address, m->length, m->dir, ATTRS);
	} else {
		dma_unmap_page_attrs(m->dev, m->address, m->length, m->dir, ATTRS);
	}
	m->mapped = false;
}

/*
 * It leads nowhere any more. Its address nobody else is given, for the device may still send there;
 * without an IOMMU nothing stops that.
 */
static void cut(struct sio_dma *m)
{
	if (!m->mapped || m->cut)
		return;
	sio_domain_cut(m);
	if (!m->chosen && iommu_of(m) != SIO_IOMMU_OFF)
		iommu_unmap(sio_domain_of(m), m->address, m->length);
	m->cut = true;
}

static int put_page_at(struct sio_dma *m, u64 at, struct page *page)
{
	struct iommu_domain *domain = sio_domain_of(m);

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	return iommu_map(domain, m->address + at, page_to_phys(page), PAGE_SIZE, IOMMU_READ);
#else
	return iommu_map(domain, m->address + at, page_to_phys(page), PAGE_SIZE, IOMMU_READ,
			 GFP_KERNEL);
#endif
}

/*
 * The kernel takes an address back only of what is mapped, so for a moment an empty page is there.
 * Without memory for it the address is lost.
 */
static void unmap_cut(struct sio_dma *m)
{
	struct iommu_domain *domain = sio_domain_of(m);
	struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	u64 done = 0;

	while (page && done < m->length && !put_page_at(m, done, page))
		done += PAGE_SIZE;
	if (done == m->length) {
		unmap(m);
		iommu_flush_iotlb_all(domain);
	} else if (done) {
		iommu_unmap(domain, m->address, done);
	}
	m->mapped = false;
	if (page)
		__free_page(page);
}

/* The kernel's DMA API does not say why. */
static int no_room(struct sio_request *rq, const struct sio_dma *m)
{
	bool off = iommu_of(m) == SIO_IOMMU_OFF;

	return sio_fail_exhausted(rq, -ENOSPC, off ? SIO_OUT_OF_REACH : SIO_OUT_OF_IOVA,
				  "the kernel finds no address of %s for %#llx bytes",
				  dev_name(m->dev), m->length);
}

static int scattered(struct sio_request *rq, const struct sio_dma *m)
{
	return sio_fail(
		rq, -EOPNOTSUPP,
		"it lies in pieces that no IOMMU makes one range of %s: memory of kind %d (contiguous) is right",
		dev_name(m->dev), SIO_ALLOC_CONTIGUOUS);
}

/* A range that is contiguous as it is: of a pool, of a BAR, or of a window. */
static int map_single(struct sio_request *rq, struct sio_dma *m)
{
	m->resource = !pfn_valid(PHYS_PFN(m->phys));
	if (m->resource)
		m->address = dma_map_resource(m->dev, m->phys, m->length, m->dir, ATTRS);
	else
		m->address = dma_map_page_attrs(m->dev, pfn_to_page(PHYS_PFN(m->phys)), 0,
						m->length, m->dir, ATTRS);
	if (dma_mapping_error(m->dev, m->address))
		return no_room(rq, m);
	m->mapped = true;
	return 0;
}

static int map_pages(struct sio_request *rq, struct sio_dma *m, const struct sio_mem *mem,
		     u64 offset)
{
	u64 first = mem->first + PHYS_PFN(offset);
	int error;

	error = sg_alloc_table_from_pages(&m->sgt, mem->pages->page + first, PHYS_PFN(m->length), 0,
					  m->length, GFP_KERNEL);
	if (error)
		return error;
	if (m->sgt.orig_nents > 1 && iommu_of(m) == SIO_IOMMU_OFF)
		error = scattered(rq, m);
	else if (dma_map_sgtable(m->dev, &m->sgt, m->dir, ATTRS))
		error = no_room(rq, m);
	if (error) {
		sg_free_table(&m->sgt);
		return error;
	}
	m->mapped = true;
	return one_range(&m->sgt, 0, m->length, &m->address) ? 0 : scattered(rq, m);
}

static int map_dmabuf(struct sio_request *rq, struct sio_dma *m, const struct sio_mem *mem,
		      u64 offset)
{
	int error = sio_dmabuf_map(rq, m, mem);

	if (error)
		return error;
	m->mapped = true;
	if (one_range(m->attached, PFN_PHYS(mem->first) + offset, m->length, &m->address))
		return 0;
	return sio_fail(
		rq, -EOPNOTSUPP,
		"the dma-buf lies in %u pieces, which no IOMMU makes one range of %s: a range that is in one of them is right",
		m->attached->nents, dev_name(m->dev));
}

/* What the kernel gave must lead to the memory itself. */
static int check_place(struct sio_request *rq, const struct sio_dma *m)
{
	u64 leads_to = m->address;

	if (iommu_of(m) != SIO_IOMMU_OFF)
		leads_to = iommu_iova_to_phys(sio_domain_of(m), m->address);
	if (m->attached || leads_to == m->phys)
		return 0;
	return sio_fail_exhausted(rq, -ENOSPC, SIO_OUT_OF_REACH,
				  "%#llx bytes at %#llx: the kernel would have to copy them",
				  m->length, m->phys);
}

int sio_map_zeros(struct iommu_domain *domain, u64 iova)
{
	phys_addr_t zeros = page_to_phys(ZERO_PAGE(0));
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	return iommu_map(domain, iova, zeros, PAGE_SIZE, IOMMU_READ);
#else
	return iommu_map(domain, iova, zeros, PAGE_SIZE, IOMMU_READ, GFP_KERNEL);
#endif
}

/* What drivers map there is no affair of ours. */
static int map_aperture(struct sio_request *rq, struct sio_dma *m, struct device *dev,
			const struct sio_mem *mem, u64 offset, u64 length)
{
	if (iommu_get_domain_for_dev(dev) != sio_aperture_domain(mem))
		return sio_fail(rq, -EINVAL, "aperture %#llx is behind another function than %s",
				mem->o.id, dev_name(dev));
	m->dev = dev;
	m->length = length;
	m->address = mem->o.address + offset;
	return 0;
}

static void describe(struct sio_dma *m, struct device *dev, u64 length, u32 access)
{
	m->dev = dev;
	m->length = length;
	/* Reading is 1 for the DMA API, too, and writing 2. */
	m->dir = access == SIO_BOTH ? DMA_BIDIRECTIONAL : access;
}

int sio_dma_map(struct sio_request *rq, struct sio_dma *m, struct device *dev,
		const struct sio_obj *target, u64 offset, u64 length, u32 access)
{
	const struct sio_mem *mem = target->kind == SIO_KIND_MEM ? (const void *)target : NULL;
	int error;

	if (mem && mem->aperture)
		return map_aperture(rq, m, dev, mem, offset, length);
	describe(m, dev, length, access);
	if (m->of && m->of->domain && !(mem && mem->dmabuf))
		return sio_domain_place(rq, m, target, offset);
	m->phys = mem ? PFN_PHYS(sio_mem_pfn(mem, PHYS_PFN(offset))) : target->address + offset;
	if (mem && mem->dmabuf)
		error = map_dmabuf(rq, m, mem, offset);
	else if (mem && mem->pages)
		error = map_pages(rq, m, mem, offset);
	else
		error = map_single(rq, m);
	if (!error)
		error = check_place(rq, m);
	return error ? error : sio_domain_join(rq, m);
}

/* After this the device cannot reach the memory: the IOMMU's lazy flush is not waited for. */
void sio_dma_unmap(struct sio_dma *m)
{
	if (!m->mapped)
		return;
	sio_domain_leave(m);
	if (m->chosen) {
		m->chosen = m->mapped = false;
		return;
	}
	if (m->cut && iommu_of(m) != SIO_IOMMU_OFF) {
		unmap_cut(m);
		return;
	}
	unmap(m);
	if (iommu_of(m) == SIO_IOMMU_LAZY)
		iommu_flush_iotlb_all(sio_domain_of(m));
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
	if (t->kind == SIO_KIND_BAR && ((struct sio_bar *)t)->v.revoked)
		return ERR_PTR(
			sio_fail(rq, -EOPNOTSUPP, "the device of %s %#llx has gone", name, t->id));
	if (t->kind == SIO_KIND_MEM && ((struct sio_mem *)t)->aperture)
		return ERR_PTR(sio_fail(rq, -EOPNOTSUPP,
					"%s %#llx is an aperture, for peers' devices alone", name,
					t->id));
	if (t->kind == SIO_KIND_MAP && ((struct sio_map *)t)->dead)
		return ERR_PTR(
			sio_fail(rq, -ENETDOWN, "%s %#llx leads nowhere any more", name, t->id));
	if (t->kind == SIO_KIND_MAP && ((struct sio_map *)t)->trigger)
		return ERR_PTR(sio_fail(rq, -EINVAL, "%s %#llx is of an interrupt", name, t->id));
	error = t->kind == SIO_KIND_MEM && ((struct sio_mem *)t)->group
			? sio_group_check(rq, t, m->access)
			: 0;
	if (error)
		return ERR_PTR(error);
	if (m->access & ~t->access)
		return ERR_PTR(sio_fail(rq, -EACCES, "%s %#llx is read-only", name, t->id));
	error = sio_check_range(rq, name, m->offset, m->length, t->length);
	return error ? ERR_PTR(error) : t;
}

static int check_highest(struct sio_request *rq, const struct sio_req_dmamap *q, u64 address)
{
	if (address + q->length - 1 <= q->highest)
		return 0;
	return sio_fail_exhausted(rq, -ENOSPC, SIO_OUT_OF_REACH,
				  "%#llx bytes at %#llx, wanted up to %#llx", q->length, address,
				  q->highest);
}

/* What was given must be what was wanted. */
static int check_wanted(struct sio_request *rq, const struct sio_dma *m,
			const struct sio_req_dmamap *q)
{
	int error = check_highest(rq, q, m->address);

	if (error)
		return error;
	if (q->iova != SIO_PORT_ANY && q->iova != m->address)
		return sio_fail(
			rq, -EINVAL,
			"address %#llx wanted, but the target lies elsewhere and no IOMMU translates: ask for any",
			q->iova);
	return 0;
}

/* At the address that is wanted, where an IOMMU translates; else where the kernel will have it. */
static int map(struct sio_request *rq, const struct sio_req_dmamap *q, struct sio_dma *m,
	       const struct sio_obj *target)
{
	struct device *dev = &rq->dev->pdev->dev;
	int error;

	m->of = rq->dev;
	if (q->iova == SIO_PORT_ANY || sio_dev_iommu(rq->dev) == SIO_IOMMU_OFF)
		return sio_dma_map(rq, m, dev, target, q->offset, q->length, q->access);
	error = check_highest(rq, q, q->iova);
	if (error)
		return error;
	describe(m, dev, q->length, q->access);
	return sio_domain_map(rq, m, target, q->offset, q->iova);
}

int sio_op_dmamap(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_dmamap *q = msg;
	struct sio_evt_dmamap *evt = answer;
	struct sio_dmamap *m = (struct sio_dmamap *)rq->obj;
	struct sio_obj *target, *entry = NULL;
	int error = check(rq, q);

	if (error)
		return error;
	target = find_target(rq, q);
	if (IS_ERR(target))
		return PTR_ERR(target);
	if (target->kind == SIO_KIND_MAP || sio_group_sends(target))
		error = sio_requester_need(rq, target->adapter, rq->dev, q->access, &entry);
	if (error)
		return error;
	sio_obj_tie(&m->o, rq->dev, target);
	sio_obj_through(&m->o, entry);
	m->o.length = q->length;
	m->wanted = q->iova != SIO_PORT_ANY;
	error = map(rq, q, &m->dma, target);
	m->o.address = m->dma.address;
	evt->iova = m->o.address;
	evt->length = m->o.length;
	return error ? error : check_wanted(rq, &m->dma, q);
}

/* ---- ending ---- */

/* What it had sent through a window has arrived, or never will; that to a group is waited for. */
static void push(const struct sio_dmamap *m)
{
	if (!m->dma.mapped || !m->o.target)
		return;
	if (m->o.target->kind == SIO_KIND_MAP)
		sio_map_push(m->o.target);
	else if (sio_group_sends(m->o.target))
		sio_group_settle(m->o.target);
}

/* It leads nowhere, and what it led to may go: the device, which may be at work, sends no more. */
static void leave_target(struct sio_dmamap *m)
{
	struct sio_obj *o = &m->o;

	cut(&m->dma);
	push(m);
	sio_obj_unref(o->target);
	o->target = NULL;
	if (o->through)
		sio_obj_unref(o->through);
	o->through = NULL;
}

static int keep_address(struct sio_request *rq, u64 id)
{
	struct sio_obj *o = sio_obj_find(rq, SIO_KIND_DMAMAP, id, false);
	int error = IS_ERR(o) ? PTR_ERR(o) : sio_check_owner(rq, o);

	if (error || !o->target)
		return error;
	if (o->target->kind == SIO_KIND_MEM)
		return sio_fail(
			rq, -EOPNOTSUPP,
			"DMA mapping %#llx is of memory: addresses are kept of BARs and of maps",
			id);
	leave_target((struct sio_dmamap *)o);
	return 0;
}

int sio_op_dmaunmap(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_dmaunmap *m = msg;

	if (m->h.flags & SIO_DMAUNMAP_KEEP_ADDRESS)
		return keep_address(rq, m->id);
	return sio_op_end(rq, msg, answer);
}

int sio_op_hold(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_hold *m = msg;
	struct sio_obj *o = sio_obj_find(rq, SIO_KIND_DMAMAP, m->id, false);
	int error = IS_ERR(o) ? PTR_ERR(o) : sio_check_owner(rq, o);

	if (error)
		return error;
	if (!o->target || o->target->kind != SIO_KIND_BAR)
		return sio_fail(
			rq, -EINVAL,
			"DMA mapping %#llx is of no BAR view, or has been cut: only such are held",
			o->id);
	((struct sio_dmamap *)o)->held = true;
	return 0;
}

u32 sio_dmamap_listed(const struct sio_dmamap *m)
{
	return (m->wanted ? SIO_LIST_CHOSEN : 0) | (m->held ? SIO_LIST_HELD : 0);
}

static void dmamap_end(struct sio_obj *o)
{
	struct sio_dmamap *m = (struct sio_dmamap *)o;

	push(m);
	sio_dma_unmap(&m->dma);
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

/* Of a dma-buf the driver alone can give the address back; functions that had it are silent. */
void sio_dmamaps_cut(const struct sio_obj *target)
{
	struct sio_dev *d;
	struct sio_obj *o;

	list_for_each_entry(d, &sio.devices, node)
		list_for_each_entry(o, &d->objects, of_dev) {
			struct sio_dmamap *m = (struct sio_dmamap *)o;

			if (o->kind != SIO_KIND_DMAMAP || o->target != target)
				continue;
			if (m->dma.attached)
				sio_dma_unmap(&m->dma);
			else
				cut(&m->dma);
		}
}

/* Return: some that are held are left. */
static bool all_leave(const struct sio_obj *target, bool held)
{
	bool left = false;
	struct sio_dev *d;
	struct sio_obj *o;

	list_for_each_entry(d, &sio.devices, node)
		list_for_each_entry(o, &d->objects, of_dev) {
			struct sio_dmamap *m = (struct sio_dmamap *)o;

			if (o->kind != SIO_KIND_DMAMAP || o->target != target)
				continue;
			if (m->held && !held)
				left = true;
			else
				leave_target(m);
		}
	return left;
}

bool sio_dmamaps_leave(const struct sio_obj *target)
{
	return all_leave(target, false);
}

void sio_dmamaps_push(struct sio_dev *d)
{
	struct sio_obj *o;

	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_DMAMAP)
			push((struct sio_dmamap *)o);
}

/* Also others' mappings of its BARs: something else may come to lie there. */
void sio_dmamaps_lose(struct sio_dev *d)
{
	struct sio_obj *o;

	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_DMAMAP) {
			sio_dma_unmap(&((struct sio_dmamap *)o)->dma);
		} else if (o->kind == SIO_KIND_BAR) {
			all_leave(o, true);
			sio_grants_cut(o);
			sio_groups_cut(o);
		}
	sio_dmamaps_settle(d, U64_MAX);
}

const struct sio_kind sio_kind_dmamap = {
	.name = "DMA mapping",
	.size = sizeof(struct sio_dmamap),
	.end = dmamap_end,
};
