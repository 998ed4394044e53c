// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where memory must lie to be reached through one contiguous window.
 *
 * Behind an IOMMU that is the function's I/O addresses from 0 on: its DMA mask is made that narrow,
 * so that the kernel itself allocates no others. Each page is reached as long as it is mapped, and
 * no other one is. The kernel never allocates address 0; the header is there, for reading.
 *
 * Without an IOMMU it is a contiguous piece of RAM, smartio.ko's, from which ALLOC takes first:
 * peers reach all of it at any time.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/log2.h>
#include <linux/version.h>

#include "client.h"

static struct device *dev_of(const struct ntb_bridge *b)
{
	return &b->ntb->pdev->dev;
}

/* Or NULL: it does not translate. */
static struct iommu_domain *domain_of(const struct ntb_bridge *b)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev_of(b));

	return domain && domain->type & __IOMMU_DOMAIN_PAGING ? domain : NULL;
}

static int map_header(struct ntb_bridge *b)
{
	phys_addr_t phys = virt_to_phys(b->header);
	int prot = IOMMU_READ | IOMMU_CACHE;

	if (iommu_iova_to_phys(domain_of(b), 0))
		return -EBUSY;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	return iommu_map(domain_of(b), 0, phys, SIO_NTB_PAGE, prot);
#else
	return iommu_map(domain_of(b), 0, phys, SIO_NTB_PAGE, prot, GFP_KERNEL);
#endif
}

static void free_pages_of(struct ntb_bridge *b)
{
	free_page((unsigned long)b->header);
	free_page((unsigned long)b->bells);
}

static int place_behind_iommu(struct ntb_bridge *b)
{
	struct device *dev = dev_of(b);
	int error = -ENOMEM;

	b->base = 0;
	b->old_mask = dma_get_mask(dev);
	b->header = (void *)get_zeroed_page(GFP_KERNEL);
	b->bells = (void *)get_zeroed_page(GFP_KERNEL);
	if (!b->header || !b->bells)
		goto no_pages;
	error = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(ilog2(b->size)));
	if (error)
		goto no_pages;
	error = map_header(b);
	if (error)
		goto no_header;
	b->bells_bus = dma_map_single(dev, b->bells, SIO_NTB_PAGE, DMA_BIDIRECTIONAL);
	if (!dma_mapping_error(dev, b->bells_bus))
		return 0;
	error = -ENOSPC;
	iommu_unmap(domain_of(b), 0, SIO_NTB_PAGE);
no_header:
	dma_set_mask_and_coherent(dev, b->old_mask);
no_pages:
	free_pages_of(b);
	return dev_err_probe(dev, error, "no I/O addresses below %#llx for the window (%pe)\n",
			     b->size, ERR_PTR(error));
}

static int place_in_ram(struct ntb_bridge *b, u64 memory)
{
	struct smartio_bridge_memory m = {.most = min(b->size, memory), .own = 2 * SIO_NTB_PAGE};
	int error = smartio_bridge_memory_get(&m);

	if (error)
		return dev_err_probe(
			dev_of(b), error,
			"no memory of %#llx bytes at most for a window (%pe): keep some at boot (memmap=), give it to smartio.ko (pool=SIZE@ADDRESS), or use an IOMMU\n",
			m.most, ERR_PTR(error));
	b->header = memremap(m.base, m.own, MEMREMAP_WB);
	if (!b->header) {
		smartio_bridge_memory_put();
		return -ENOMEM;
	}
	b->base = m.base;
	b->size = m.size;
	b->bells = (void *)b->header + SIO_NTB_PAGE;
	b->bells_bus = m.base + SIO_NTB_PAGE;
	return 0;
}

int ntb_bridge_place(struct ntb_bridge *b, u64 memory)
{
	b->iommu = domain_of(b);
	return b->iommu ? place_behind_iommu(b) : place_in_ram(b, memory);
}

void ntb_bridge_unplace(struct ntb_bridge *b)
{
	struct device *dev = dev_of(b);

	if (!b->iommu) {
		memunmap(b->header);
		smartio_bridge_memory_put();
		return;
	}
	dma_unmap_single(dev, b->bells_bus, SIO_NTB_PAGE, DMA_BIDIRECTIONAL);
	iommu_unmap(domain_of(b), 0, SIO_NTB_PAGE);
	dma_set_mask_and_coherent(dev, b->old_mask);
	free_pages_of(b);
}
