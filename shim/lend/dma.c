// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA operations. Without an IOMMU the device reaches all of this host's RAM by a window that was
 * made when it was borrowed, so mapping is an addition: no table, no message, and no daemon takes
 * part. With an IOMMU window.c maps.
 */
#include <linux/dma-map-ops.h>

#include "shadow.h"

static struct smartio_shadow *of_dev(struct device *dev)
{
	return shadow_of(to_pci_dev(dev)->bus);
}

/* What was not RAM when it was borrowed cannot be reached. */
static dma_addr_t address_of(const struct smartio_shadow *s, phys_addr_t phys, u64 size)
{
	const struct smartio_shadow_info *f = &s->info;

	if (phys > f->dma_length || size > f->dma_length - phys)
		return DMA_MAPPING_ERROR;
	return f->dma_base + phys;
}

static dma_addr_t map(struct device *dev, phys_addr_t phys, size_t size,
		      enum dma_data_direction dir)
{
	const struct smartio_shadow *s = of_dev(dev);

	return s->has_window ? shadow_window_map(dev, phys, size, dir) : address_of(s, phys, size);
}

static void unmap(struct device *dev, dma_addr_t address, size_t size)
{
	if (of_dev(dev)->has_window)
		shadow_window_unmap(dev, address, size);
}

static void *dma_alloc(struct device *dev, size_t size, dma_addr_t *ret, gfp_t gfp,
		       unsigned long attrs)
{
	gfp_t zone = __GFP_DMA | __GFP_DMA32 | __GFP_HIGHMEM;
	void *p = alloc_pages_exact(size, (gfp & ~zone) | __GFP_ZERO);

	if (!p)
		return NULL;
	*ret = map(dev, virt_to_phys(p), size, DMA_BIDIRECTIONAL);
	if (*ret != DMA_MAPPING_ERROR)
		return p;
	free_pages_exact(p, size);
	return NULL;
}

static void dma_free(struct device *dev, size_t size, void *p, dma_addr_t address,
		     unsigned long attrs)
{
	unmap(dev, address, size);
	free_pages_exact(p, size);
}

static dma_addr_t map_page(struct device *dev, struct page *page, unsigned long offset, size_t size,
			   enum dma_data_direction dir, unsigned long attrs)
{
	return map(dev, page_to_phys(page) + offset, size, dir);
}

static void unmap_page(struct device *dev, dma_addr_t address, size_t size,
		       enum dma_data_direction dir, unsigned long attrs)
{
	unmap(dev, address, size);
}

static int map_sg(struct device *dev, struct scatterlist *sgl, int n, enum dma_data_direction dir,
		  unsigned long attrs)
{
	const struct smartio_shadow *s = of_dev(dev);
	struct scatterlist *sg;
	int i;

	if (s->has_window)
		return shadow_window_map_sg(dev, sgl, n, dir);
	for_each_sg(sgl, sg, n, i) {
		sg->dma_address = address_of(s, sg_phys(sg), sg->length);
		if (sg->dma_address == DMA_MAPPING_ERROR)
			return -EIO;
		sg_dma_len(sg) = sg->length;
	}
	return n;
}

static void unmap_sg(struct device *dev, struct scatterlist *sgl, int n,
		     enum dma_data_direction dir, unsigned long attrs)
{
	if (of_dev(dev)->has_window)
		shadow_window_unmap_sg(dev, sgl, n);
}

static dma_addr_t map_resource(struct device *dev, phys_addr_t phys, size_t size,
			       enum dma_data_direction dir, unsigned long attrs)
{
	return shadow_peer_map(dev, phys, size, dir);
}

static void unmap_resource(struct device *dev, dma_addr_t address, size_t size,
			   enum dma_data_direction dir, unsigned long attrs)
{
	shadow_peer_unmap(dev, address, size);
}

static u64 required_mask(struct device *dev)
{
	const struct smartio_shadow_info *f = &of_dev(dev)->info;

	return DMA_BIT_MASK(fls64(f->dma_base + f->dma_length - 1));
}

static int dma_supported(struct device *dev, u64 mask)
{
	const struct smartio_shadow_info *f = &of_dev(dev)->info;

	return f->dma_base + f->dma_length - 1 <= mask;
}

static size_t max_mapping_size(struct device *dev)
{
	const struct smartio_shadow *s = of_dev(dev);

	return s->has_window ? shadow_window_longest(s) : SIZE_MAX;
}

const struct dma_map_ops shadow_dma_ops = {
	.alloc = dma_alloc,
	.free = dma_free,
	.map_page = map_page,
	.unmap_page = unmap_page,
	.map_sg = map_sg,
	.unmap_sg = unmap_sg,
	.map_resource = map_resource,
	.unmap_resource = unmap_resource,
	.dma_supported = dma_supported,
	.get_required_mask = required_mask,
	.max_mapping_size = max_mapping_size,
};
