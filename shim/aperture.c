// SPDX-License-Identifier: GPL-2.0-only
/*
 * Apertures: ranges of I/O addresses of an adapter's function in which no memory is mapped yet.
 * They are granted like memory; later pages are mapped there and unmapped as a shadow's driver does
 * I/O. The first page is no driver's: zeros are there, for reading, as long as the aperture is. The
 * lender reads its first word, because the answer comes back behind all that was sent before
 * (sio_map_push()): when the driver stops the device, and when the borrow ends, by which time there
 * is no shadow any more, or never was one. A read that the IOMMU stops would be answered as well,
 * but reported, too, as an error of the adapter's.
 * The kernel's DMA API allocates no addresses without memory. So the function's DMA mask says that
 * it reaches only half of what the IOMMU translates; the other half is this module's.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>

#include "adapter.h"

#define MAX_BITS 48 /* of I/O addresses that every IOMMU has tables for */

struct sio_aperture {
	struct list_head node; /* in the order of addresses, whatever domain they are of */
	struct sio_mem *mem;
	struct iommu_domain *domain;
	struct iommu_group *group; /* keeps @domain, whatever becomes of the function */
};

static LIST_HEAD(apertures); /* guarded by sio.lock; adapters may share a domain */

/* Functions that it shares its I/O addresses with get theirs without asking us. */
static int is_other(struct device *dev, void *adapter)
{
	return dev != adapter && dev_is_pci(dev) &&
	       to_pci_dev(dev)->hdr_type == PCI_HEADER_TYPE_NORMAL;
}

static bool is_alone(struct device *dev)
{
	struct iommu_group *group = iommu_group_get(dev);
	bool alone = group && !iommu_group_for_each_dev(group, dev, is_other);

	iommu_group_put(group);
	return alone;
}

/* Addresses at which this host's processors or devices find something else are no I/O addresses. */
static u64 behind_windows(struct pci_dev *pdev, u64 first)
{
	struct list_head *windows = &pci_find_host_bridge(pdev->bus)->windows;
	struct resource_entry *e;

	list_for_each_entry(e, windows, node)
		if (resource_type(e->res) == IORESOURCE_MEM && e->res->end - e->offset >= first)
			first = e->res->end - e->offset + 1;
	return first;
}

void sio_apertures_init(struct smartio_adapter *a, u32 dma_bits)
{
	struct device *dev = &a->pdev->dev;
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);
	u32 bits;

	a->aperture_first = a->aperture_end = 0;
	if (sio_iommu_of(dev) == SIO_IOMMU_OFF)
		return;
	bits = min3((u32)fls64(domain->geometry.aperture_end), dma_bits, (u32)MAX_BITS);
	if (bits < 34 || !is_alone(dev) || dma_set_mask_and_coherent(dev, DMA_BIT_MASK(bits - 1)))
		return;
	a->aperture_first = behind_windows(a->pdev, 1ULL << (bits - 1));
	a->aperture_end = 1ULL << bits;
}

struct iommu_domain *sio_aperture_domain(const struct sio_mem *m)
{
	return m->aperture->domain;
}

void sio_aperture_free(struct sio_mem *m)
{
	if (!m->aperture)
		return;
	list_del(&m->aperture->node);
	iommu_unmap(m->aperture->domain, m->o.address, PAGE_SIZE);
	iommu_group_put(m->aperture->group);
	kfree(m->aperture);
}

/* The lowest gap, with a page to each side, at a multiple of the length's power of 2. */
static u64 find_gap(const struct smartio_adapter *a, const struct iommu_domain *domain, u64 length,
		    struct list_head **ret_before)
{
	u64 align = roundup_pow_of_two(length), at = ALIGN(a->aperture_first, align);
	struct sio_aperture *p;

	list_for_each_entry(p, &apertures, node) {
		if (p->domain != domain)
			continue;
		if (at + length < p->mem->o.address)
			break;
		at = ALIGN(p->mem->o.address + p->mem->o.length + 1, align);
	}
	*ret_before = &p->node;
	return at;
}

static int place(struct sio_request *rq, struct sio_mem *m, struct smartio_adapter *a, u64 highest)
{
	struct sio_aperture *p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	struct iommu_domain *domain = iommu_get_domain_for_dev(&a->pdev->dev);
	struct list_head *before;
	int error;

	if (!p)
		return -ENOMEM;
	m->o.address = find_gap(a, domain, m->o.length, &before);
	if (m->o.address + m->o.length > a->aperture_end ||
	    m->o.address + m->o.length - 1 > highest) {
		kfree(p);
		return sio_fail_exhausted(
			rq, -ENOSPC, SIO_OUT_OF_IOVA,
			"%#llx bytes of I/O addresses of adapter %u, no gap of %#llx to %#llx is so long below %#llx",
			m->o.length, a->index, a->aperture_first, a->aperture_end, highest);
	}
	error = sio_map_zeros(domain, m->o.address);
	if (error) {
		kfree(p);
		return error;
	}
	p->mem = m;
	p->domain = domain;
	p->group = iommu_group_get(&a->pdev->dev);
	list_add_tail(&p->node, before);
	m->aperture = p;
	return 0;
}

int sio_op_aperture(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_aperture *q = msg;
	struct smartio_adapter *a = sio_adapter_find(rq, q->adapter);
	struct sio_mem *m = (struct sio_mem *)rq->obj;
	struct sio_evt_aperture *evt = answer;
	int error;

	if (!a)
		return -ENODEV;
	if (!a->aperture_end)
		return sio_fail(
			rq, -EOPNOTSUPP,
			sio_iommu_of(&a->pdev->dev) == SIO_IOMMU_OFF
				? "no IOMMU translates what comes through adapter %u: all RAM is what can be granted"
				: "adapter %u: other functions are in its IOMMU group, or it has too few I/O addresses to keep some for windows",
			a->index);
	if (!q->length || !PAGE_ALIGNED(q->length) || q->length > a->aperture_end / 2)
		return sio_fail(rq, -EINVAL, "%#llx bytes, whole pages up to %#llx are right",
				q->length, a->aperture_end / 2);
	m->o.length = q->length;
	m->o.access = SIO_BOTH;
	m->pieces = 1;
	rq->unseen = true;
	error = place(rq, m, a, q->highest);
	evt->length = m->o.length;
	evt->bus_addr = m->o.address;
	return error;
}
