// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapped windows: the memory of all machines lies in one file, which another function of this
 * machine shows in a BAR. There a peer's memory is plain memory, for processors and for devices.
 */
#include <linux/iommu.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "vntb.h"

#define NONCE 16 /* bytes that are nowhere else */

struct piece {
	u32 row;
	u64 bus, size, offset;
};

struct vntb_mapped {
	struct pci_dev *shows; /* the function, enabled */
	u32 n;
	struct piece piece[];
};

/* The one that is this machine's own; NULL. */
static const struct piece *own_piece(const struct vntb_mapped *m)
{
	for (u32 i = 0; i < m->n; i++)
		if (m->piece[i].row == SIO_VNTB_PIECE_OWN)
			return &m->piece[i];
	return NULL;
}

static void learn(const struct vntb *v, struct vntb_mapped *m)
{
	for (u32 i = 0; i < m->n; i++)
		m->piece[i] = (struct piece){
			.row = vntb_read(v, SIO_VNTB_PIECE(i) + SIO_VNTB_PIECE_ROW),
			.bus = vntb_read64(v, SIO_VNTB_PIECE(i) + SIO_VNTB_PIECE_BUS),
			.size = vntb_read64(v, SIO_VNTB_PIECE(i) + SIO_VNTB_PIECE_SIZE),
			.offset = vntb_read64(v, SIO_VNTB_PIECE(i) + SIO_VNTB_PIECE_OFFSET)};
}

/* Does the function's BAR have those bytes of the file? *ret: the first of them. */
static bool has_bytes(struct pci_dev *dev, u64 offset, u64 length, phys_addr_t *ret)
{
	u64 size = pci_resource_len(dev, SIO_VNTB_SHARED_BAR);

	if (length > size || offset > size - length)
		return false;
	*ret = pci_resource_start(dev, SIO_VNTB_SHARED_BAR) + offset;
	return true;
}

/* Is what is there this page of ours? Twice: it is no copy, either. */
static bool is_page(void __iomem *there, u8 *page)
{
	u8 seen[NONCE];

	for (int i = 0; i < 2; i++) {
		get_random_bytes(page, NONCE);
		mb(); /* the store is there: pairs with the load, which goes another way */
		memcpy_fromio(seen, there, NONCE);
		if (memcmp(seen, page, NONCE) != 0)
			return false;
	}
	return true;
}

/* Does the function show the file? It is enabled then. */
static bool shows(struct pci_dev *dev, const struct piece *own, u8 *page)
{
	u64 in = virt_to_phys(page) - own->bus;
	void __iomem *there;
	phys_addr_t at;
	bool same;

	if (own->size < PAGE_SIZE || in > own->size - PAGE_SIZE ||
	    !has_bytes(dev, own->offset + in, PAGE_SIZE, &at) || pci_enable_device_mem(dev))
		return false;
	there = ioremap_wc(at, PAGE_SIZE);
	same = there && is_page(there, page);
	if (there)
		iounmap(there);
	if (!same)
		pci_disable_device(dev);
	return same;
}

/* The function that shows the file; NULL. The caller puts it. */
static struct pci_dev *find_function(const struct piece *own, u8 *page)
{
	struct pci_dev *dev = NULL;

	do
		dev = pci_get_device(SIO_VNTB_SHARED_VENDOR, SIO_VNTB_SHARED_DEVICE, dev);
	while (dev && !shows(dev, own, page));
	return dev;
}

/* Peers take a bus address for one of the memory's: behind an IOMMU it is another one's. */
static void warn_of_iommu(const struct vntb *v)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&v->pdev->dev);

	if (domain && domain->type & __IOMMU_DOMAIN_PAGING)
		dev_warn(&v->pdev->dev,
			 "an IOMMU translates what peers send here, but their windows are mapped: "
			 "boot with iommu=pt, or use exact windows\n");
}

static void warn_of_exact(const struct vntb *v)
{
	dev_warn(&v->pdev->dev,
		 "no function shows the memory of all machines, so windows are exact, and slow: "
		 "give QEMU an ivshmem-plain with the file 'memory' of the cluster\n");
}

int vntb_mapped_open(struct vntb *v, struct vntb_mapped **ret)
{
	u32 n = min_t(u32, vntb_read(v, SIO_VNTB_PIECES), SIO_VNTB_MAX_PIECES);
	const struct piece *own;
	struct vntb_mapped *m;
	u8 *page;

	*ret = NULL;
	if (!(vntb_read(v, SIO_VNTB_CAPABILITIES) & SIO_VNTB_CAP_MAPPED))
		return 0;
	warn_of_iommu(v);
	m = kzalloc(struct_size(m, piece, n), GFP_KERNEL);
	page = (u8 *)__get_free_page(GFP_KERNEL);
	if (!m || !page) {
		kfree(m);
		free_page((unsigned long)page);
		return -ENOMEM;
	}
	m->n = n;
	learn(v, m);
	own = own_piece(m);
	if (own)
		m->shows = find_function(own, page);
	free_page((unsigned long)page);
	if (!m->shows) {
		warn_of_exact(v);
		kfree(m);
		return 0;
	}
	dev_info(&v->pdev->dev, "%s shows the memory of all machines\n", pci_name(m->shows));
	*ret = m;
	return 0;
}

void vntb_mapped_close(struct vntb_mapped *m)
{
	if (!m)
		return;
	pci_disable_device(m->shows);
	pci_dev_put(m->shows);
	kfree(m);
}

bool vntb_mapped_find(const struct vntb_mapped *m, u32 row, u64 bus, u64 length, phys_addr_t *ret)
{
	for (u32 i = 0; m && i < m->n; i++) {
		const struct piece *p = &m->piece[i];

		if (p->row == row && bus >= p->bus && length <= p->size &&
		    bus - p->bus <= p->size - length)
			return has_bytes(m->shows, p->offset + (bus - p->bus), length, ret);
	}
	return false;
}
