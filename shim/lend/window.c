// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA addresses where this host has an IOMMU (dma.c calls this). The device reaches a range of I/O
 * addresses, which was granted to the lender in one piece when it was borrowed. The IOMMU maps
 * there what the driver maps, scattered pages one after the other, and unmaps it with the driver:
 * so the lender's host reaches exactly what is mapped at that moment, and no message is sent.
 *
 * Addresses are allocated by the kernel's own allocator, in which a page's number is that of its
 * I/O address: the range begins at a multiple of its size, so what is aligned to its own size, as
 * coherent memory has to be, is so for the device, too.
 *
 * The first page is no driver's (aperture.c).
 */
#include <linux/iommu.h>
#include <linux/version.h>

#include "shadow.h"

#define SHARE 4 /* of the range that one mapping may take, so that there is room for others */

static struct smartio_shadow *of_dev(struct device *dev)
{
	return shadow_of(to_pci_dev(dev)->bus);
}

static unsigned long pages_of(u64 address, size_t size)
{
	return PHYS_PFN(PAGE_ALIGN(offset_in_page(address) + size));
}

static unsigned long first_number(const struct smartio_shadow *s)
{
	return PHYS_PFN(s->info.io_base);
}

/* The first page that a driver may have. */
static unsigned long first_free(const struct smartio_shadow *s)
{
	return first_number(s) + 1;
}

static unsigned long last_number(const struct smartio_shadow *s)
{
	return PHYS_PFN(s->info.io_base + s->info.dma_length - 1);
}

static unsigned long number_of(const struct smartio_shadow *s, dma_addr_t address)
{
	return PHYS_PFN(s->info.io_base + (address - s->info.dma_base));
}

static dma_addr_t dma_address(const struct smartio_shadow *s, unsigned long number, u64 phys)
{
	return s->info.dma_base + (PFN_PHYS(number) - s->info.io_base) + offset_in_page(phys);
}

/* @kind: IOMMU_CACHE, IOMMU_MMIO */
static int put(struct smartio_shadow *s, unsigned long number, u64 phys, unsigned long pages,
	       enum dma_data_direction dir, int kind)
{
	int prot = kind | (dir == DMA_FROM_DEVICE ? 0 : IOMMU_READ) |
		   (dir == DMA_TO_DEVICE ? 0 : IOMMU_WRITE);
	u64 at = PFN_PHYS(number);

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	return iommu_map_atomic(s->info.domain, at, phys & PAGE_MASK, PFN_PHYS(pages), prot);
#else
	return iommu_map(s->info.domain, at, phys & PAGE_MASK, PFN_PHYS(pages), prot, GFP_ATOMIC);
#endif
}

/* Of @taken pages the first @there are mapped; when it returns the device does not reach them. */
static void take(struct smartio_shadow *s, unsigned long number, unsigned long there,
		 unsigned long taken)
{
	if (there)
		iommu_unmap(s->info.domain, PFN_PHYS(number), PFN_PHYS(there));
	atomic_long_sub(there, &s->mapped);
	free_iova_fast(&s->numbers_of_pages, number, taken);
}

static dma_addr_t map(struct device *dev, u64 phys, size_t size, enum dma_data_direction dir,
		      int kind)
{
	struct smartio_shadow *s = of_dev(dev);
	unsigned long n = pages_of(phys, size), number;

	number = alloc_iova_fast(&s->numbers_of_pages, n, last_number(s), true);
	if (!number)
		return DMA_MAPPING_ERROR;
	if (put(s, number, phys, n, dir, kind)) {
		take(s, number, 0, n);
		return DMA_MAPPING_ERROR;
	}
	atomic_long_add(n, &s->mapped);
	return dma_address(s, number, phys);
}

dma_addr_t shadow_window_map(struct device *dev, u64 phys, size_t size, enum dma_data_direction dir)
{
	return map(dev, phys, size, dir, IOMMU_CACHE);
}

dma_addr_t shadow_window_map_bar(struct device *dev, u64 phys, size_t size,
				 enum dma_data_direction dir)
{
	return map(dev, phys, size, dir, IOMMU_MMIO);
}

void shadow_window_unmap(struct device *dev, dma_addr_t address, size_t size)
{
	struct smartio_shadow *s = of_dev(dev);
	unsigned long n = pages_of(address, size);

	take(s, number_of(s, address), n, n);
}

static unsigned long pages_of_list(struct scatterlist *sgl, int n)
{
	unsigned long pages = 0;
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, n, i)
		pages += pages_of(sg->offset, sg->length);
	return pages;
}

/* One range for all, and its pieces one behind the other. */
int shadow_window_map_sg(struct device *dev, struct scatterlist *sgl, int n,
			 enum dma_data_direction dir)
{
	struct smartio_shadow *s = of_dev(dev);
	unsigned long pages = pages_of_list(sgl, n), done = 0, number, more;
	struct scatterlist *sg;
	int i;

	number = alloc_iova_fast(&s->numbers_of_pages, pages, last_number(s), true);
	if (!number)
		return -ENOMEM;
	for_each_sg(sgl, sg, n, i) {
		more = pages_of(sg->offset, sg->length);
		if (put(s, number + done, sg_phys(sg), more, dir, IOMMU_CACHE)) {
			atomic_long_add(done, &s->mapped);
			take(s, number, done, pages);
			return -ENOMEM;
		}
		sg->dma_address = dma_address(s, number + done, sg_phys(sg));
		sg_dma_len(sg) = sg->length;
		done += more;
	}
	atomic_long_add(done, &s->mapped);
	return n;
}

void shadow_window_unmap_sg(struct device *dev, struct scatterlist *sgl, int n)
{
	struct smartio_shadow *s = of_dev(dev);
	unsigned long pages = pages_of_list(sgl, n);

	take(s, number_of(s, sgl->dma_address), pages, pages);
}

size_t shadow_window_longest(const struct smartio_shadow *s)
{
	return rounddown_pow_of_two(s->info.dma_length / SHARE);
}

/* ---- life ---- */

int shadow_window_make(struct smartio_shadow *s)
{
	int error;

	if (!s->info.domain)
		return 0;
	error = iova_cache_get();
	if (error)
		return error;
	init_iova_domain(&s->numbers_of_pages, PAGE_SIZE, first_free(s));
	error = iova_domain_init_rcaches(&s->numbers_of_pages);
	if (error) {
		put_iova_domain(&s->numbers_of_pages);
		iova_cache_put();
	}
	s->has_window = !error;
	return error;
}

/* What a driver forgot to unmap. */
static void take_all(struct smartio_shadow *s)
{
	for (unsigned long i = first_free(s); i <= last_number(s); i++)
		if (iommu_iova_to_phys(s->info.domain, PFN_PHYS(i)))
			iommu_unmap(s->info.domain, PFN_PHYS(i), PAGE_SIZE);
}

void shadow_window_free(struct smartio_shadow *s)
{
	if (!s->has_window)
		return;
	s->has_window = false;
	if (atomic_long_read(&s->mapped)) {
		pr_warn("smartio_lend: a driver left %ld pages mapped\n",
			atomic_long_read(&s->mapped));
		take_all(s);
	}
	put_iova_domain(&s->numbers_of_pages);
	iova_cache_put();
}
