// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapped windows: the memory of all machines lies in one file, and that of each emulated host's
 * pool in one more. Other functions of this machine show them in a BAR each. There a peer's memory
 * is plain memory, for processors and for devices.
 */
#include <linux/iommu.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "vntb.h"

#define NONCE 16 /* bytes that are nowhere else */

struct piece {
	u32 row, file;
	u64 bus, size, offset;
	struct pci_dev *shows; /* the file: the function, enabled; NULL: none does */
};

/* How a file begins that is the pool of an emulated host. */
struct pool_header {
	__le64 key, file;
};

struct vntb_mapped {
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
			.file = vntb_read(v, SIO_VNTB_PIECE(i) + SIO_VNTB_PIECE_FILE),
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

/* What to look for in a function's BAR. */
struct wanted {
	u64 offset; /* a page there */
	u8 *page;   /* it is this page of our memory; NULL: it begins with the header */
	struct pool_header header;
};

static bool is_wanted(void __iomem *there, const struct wanted *w)
{
	struct pool_header seen;

	if (w->page)
		return is_page(there, w->page);
	memcpy_fromio(&seen, there, sizeof(seen));
	return memcmp(&seen, &w->header, sizeof(seen)) == 0;
}

/* Does the function show the file? It is enabled then. */
static bool shows(struct pci_dev *dev, const struct wanted *w)
{
	void __iomem *there;
	phys_addr_t at;
	bool same;

	if (!has_bytes(dev, w->offset, PAGE_SIZE, &at) || pci_enable_device_mem(dev))
		return false;
	there = ioremap_wc(at, PAGE_SIZE);
	same = there && is_wanted(there, w);
	if (there)
		iounmap(there);
	if (!same)
		pci_disable_device(dev);
	return same;
}

/* The function that shows the file; NULL. The caller puts it. */
static struct pci_dev *find_function(const struct wanted *w)
{
	struct pci_dev *dev = NULL;

	do
		dev = pci_get_device(SIO_VNTB_SHARED_VENDOR, SIO_VNTB_SHARED_DEVICE, dev);
	while (dev && !shows(dev, w));
	return dev;
}

/* Of the file with all machines' memory, by a page of ours. */
static struct pci_dev *find_memory(const struct vntb_mapped *m, u8 *page)
{
	const struct piece *own = own_piece(m);
	struct wanted w = {.page = page};
	u64 in = own ? virt_to_phys(page) - own->bus : 0;

	if (!own || own->size < PAGE_SIZE || in > own->size - PAGE_SIZE)
		return NULL;
	w.offset = own->offset + in;
	return find_function(&w);
}

static struct pci_dev *find_pool(const struct vntb *v, u32 file)
{
	const struct wanted w = {.header = {.key = cpu_to_le64(vntb_read64(v, SIO_VNTB_POOL_KEY)),
					    .file = cpu_to_le64(file)}};

	return find_function(&w);
}

/* A function for each file, which all pieces of the file share. */
static void find_functions(const struct vntb *v, struct vntb_mapped *m, u8 *page)
{
	for (u32 i = 0; i < m->n; i++) {
		struct piece *p = &m->piece[i];
		u32 k = 0;

		while (m->piece[k].file != p->file)
			k++;
		if (k < i)
			p->shows = pci_dev_get(m->piece[k].shows);
		else
			p->shows = p->file ? find_pool(v, p->file) : find_memory(m, page);
		if (k < i && p->shows && pci_enable_device_mem(p->shows)) {
			pci_dev_put(p->shows);
			p->shows = NULL;
		}
	}
}

/* Peers take a bus address for one of the memory's: behind an IOMMU it is another one's. */
static void warn_of_iommu(const struct vntb *v)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&v->pdev->dev);

	if (domain && domain->type & __IOMMU_DOMAIN_PAGING)
		dev_warn(
			&v->pdev->dev,
			"an IOMMU translates what peers send here, but their windows are mapped: boot with iommu=pt, or use exact windows\n");
}

/* Return: whether there is any. */
static bool tell_of_functions(const struct vntb *v, const struct vntb_mapped *m)
{
	struct device *dev = &v->pdev->dev;
	bool any = false;

	for (u32 i = 0; i < m->n; i++) {
		const struct piece *p = &m->piece[i];

		any |= p->shows != NULL;
		if (p->row == SIO_VNTB_PIECE_OWN && p->shows)
			dev_info(dev, "%s shows the memory of all machines\n", pci_name(p->shows));
		else if (p->row == SIO_VNTB_PIECE_OWN)
			dev_warn(
				dev,
				"no function shows the memory of all machines, so windows to it are exact, and slow: give QEMU an ivshmem-plain with the file 'memory' of the cluster\n");
		else if (p->file && p->shows)
			dev_info(dev, "%s shows the pool of node %u\n", pci_name(p->shows),
				 p->file);
		else if (p->file)
			dev_warn(
				dev,
				"no function shows the pool of node %u, so windows to it are exact, and slow: give QEMU an ivshmem-plain with the file 'memory.HOST' of the cluster\n",
				p->file);
	}
	return any;
}

int vntb_mapped_open(struct vntb *v, struct vntb_mapped **ret)
{
	u32 n = min_t(u32, vntb_read(v, SIO_VNTB_PIECES), SIO_VNTB_MAX_PIECES);
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
	find_functions(v, m, page);
	free_page((unsigned long)page);
	if (tell_of_functions(v, m))
		*ret = m;
	else
		kfree(m);
	return 0;
}

void vntb_mapped_close(struct vntb_mapped *m)
{
	if (!m)
		return;
	for (u32 i = 0; i < m->n; i++) {
		if (!m->piece[i].shows)
			continue;
		pci_disable_device(m->piece[i].shows);
		pci_dev_put(m->piece[i].shows);
	}
	kfree(m);
}

bool vntb_mapped_find(const struct vntb_mapped *m, u32 row, u64 bus, u64 length, phys_addr_t *ret)
{
	for (u32 i = 0; m && i < m->n; i++) {
		const struct piece *p = &m->piece[i];

		if (p->shows && p->row == row && bus >= p->bus && length <= p->size &&
		    bus - p->bus <= p->size - length)
			return has_bytes(p->shows, p->offset + (bus - p->bus), length, ret);
	}
	return false;
}
