// SPDX-License-Identifier: GPL-2.0-only
/*
 * An IOMMU domain of a function's own. The kernel's DMA API chooses I/O addresses by itself; what
 * is to be at an address of the requester's choice, as the memory of a virtual machine is, needs a
 * domain in which the kernel chooses nothing. What the DMA API had mapped for the function before
 * is in both domains, at the same address, so vectors and other mappings go on. What is to be
 * anywhere later is placed here, in what is free: the DMA API would not know that, and offer the
 * same address again and again.
 *
 * While a function changes its domain, what it sends faults. It gets its own one for the first
 * mapping at a chosen address, of whoever has it alone, and goes back when it was stopped: after a
 * reset, and when it is closed or gone.
 */
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/sort.h>
#include <linux/version.h>

#include "adapter.h"

/* A mapping for a function, of whatever object; NULL: none is of it. */
static struct sio_dma *dma_of(struct sio_obj *o)
{
	if (o->kind == SIO_KIND_DMAMAP)
		return &((struct sio_dmamap *)o)->dma;
	return o->kind == SIO_KIND_VECTOR ? sio_vector_way(o) : NULL;
}

struct iommu_domain *sio_domain_of(const struct sio_dma *m)
{
	return m->of && m->of->domain ? m->of->kernels : iommu_get_domain_for_dev(m->dev);
}

/* ---- what is mapped ---- */

/* @target NULL: what the DMA API has mapped there. @offset may be below 0, of a window's map. */
static u64 place(const struct sio_dma *m, const struct sio_obj *target, u64 offset, u64 at)
{
	if (!target)
		return iommu_iova_to_phys(m->of->kernels, m->address + at);
	if (target->kind == SIO_KIND_MEM)
		return PFN_PHYS(sio_mem_pfn((const void *)target, PHYS_PFN(offset + at)));
	return target->address + offset + at;
}

/*
 * Tables of an IOMMU stay when what they have mapped is unmapped, and here who asks chooses how
 * many it takes: one for each 2 MiB, and one more for each GiB. Below 4 GiB, where interrupts come
 * and go, there are few in all. Those of the ranges that were counted last are there: a machine
 * that starts again maps the same ones.
 */
static int count_tables(struct sio_request *rq, const struct sio_dma *m, u64 address)
{
	struct sio_dev *d = m->of;
	u64 last = address + (m->length - 1);
	u64 most = 8192 + 2 * ((d->chosen_bytes + m->length) >> 21);
	u64 n = (last >> 21) - (address >> 21) + (last >> 30) - (address >> 30) + 2;

	if (last <= DMA_BIT_MASK(32))
		return 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(d->counted); i++)
		if (d->counted[i].length && address >= d->counted[i].first &&
		    last <= d->counted[i].first + (d->counted[i].length - 1))
			return 0;
	if (d->tables + n > most)
		return sio_fail_exhausted(
			rq, -ENOSPC, SIO_OUT_OF_IOVA,
			"%s has had memory at too many addresses: fewer, or a reset, are right",
			dev_name(m->dev));
	d->tables += n;
	d->counted[d->next_counted].first = address;
	d->counted[d->next_counted].length = m->length;
	d->next_counted = (d->next_counted + 1) % ARRAY_SIZE(d->counted);
	return 0;
}

static int map_run(const struct sio_dma *m, u64 at, u64 phys, u64 length)
{
	int prot = pfn_valid(PHYS_PFN(phys)) ? IOMMU_CACHE : IOMMU_MMIO;

	if (m->dir != DMA_FROM_DEVICE)
		prot |= IOMMU_READ;
	if (m->dir != DMA_TO_DEVICE)
		prot |= IOMMU_WRITE;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	return iommu_map(m->of->domain, m->address + at, phys, length, prot);
#else
	return iommu_map(m->of->domain, m->address + at, phys, length, prot, GFP_KERNEL_ACCOUNT);
#endif
}

/* All of it, or nothing. */
static int fill(struct sio_dma *m, const struct sio_obj *target, u64 offset)
{
	u64 done = 0, phys, run;
	int error;

	while (done < m->length) {
		phys = place(m, target, offset, done);
		/* The DMA API has no memory there, but another function's BAR, not by the IOMMU. */
		if (!target && !phys) {
			if (done)
				iommu_unmap(m->of->domain, m->address, done);
			return -EOPNOTSUPP;
		}
		for (run = PAGE_SIZE; done + run < m->length; run += PAGE_SIZE)
			if (place(m, target, offset, done + run) != phys + run)
				break;
		error = map_run(m, done, phys, run);
		if (error) {
			if (done)
				iommu_unmap(m->of->domain, m->address, done);
			/* Beyond what the IOMMU has, whatever its driver says that it has. */
			return error == -EFAULT || error == -ERANGE ? -EINVAL : error;
		}
		done += run;
		cond_resched();
	}
	m->own = true;
	return 0;
}

/* Another mapping of the function that has some of it, or has had it and keeps the address. */
static const struct sio_dma *find_other(const struct sio_dma *m, u64 address, u64 length)
{
	u64 last = address + (length - 1);
	const struct sio_dma *other;
	struct sio_obj *o;

	list_for_each_entry(o, &m->of->objects, of_dev) {
		other = dma_of(o);
		if (other && other != m && other->mapped && other->address <= last &&
		    address <= other->address + (other->length - 1))
			return other;
	}
	return NULL;
}

static int taken(struct sio_request *rq, const struct sio_dma *other)
{
	return sio_fail_exhausted(rq, -ENOSPC, SIO_OUT_OF_IOVA,
				  "%#llx bytes at %#llx are mapped for %s already", other->length,
				  other->address, dev_name(other->dev));
}

int sio_domain_join(struct sio_request *rq, struct sio_dma *m)
{
	const struct sio_dma *other;
	int error;

	if (!m->of || !m->of->domain)
		return 0;
	/* The kernel does not know which addresses were chosen. */
	other = find_other(m, m->address, m->length);
	if (other)
		return taken(rq, other);
	error = fill(m, NULL, 0);
	if (error != -EOPNOTSUPP)
		return error;
	return sio_fail(
		rq, error,
		"%s has memory at chosen addresses, and this is another function's, past the IOMMU",
		dev_name(m->dev));
}

/* ---- the domain ---- */

static bool remaps_interrupts(struct device *dev)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	return device_iommu_capable(dev, IOMMU_CAP_INTR_REMAP);
#else
	struct iommu_group *group = iommu_group_get(dev);
	bool yes = group && iommu_group_has_isolated_msi(group);

	iommu_group_put(group);
	return yes;
#endif
}

static struct iommu_domain *domain_new(struct device *dev)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	return iommu_domain_alloc(dev->bus);
#else
	struct iommu_domain *domain = iommu_paging_domain_alloc(dev);

	return IS_ERR(domain) ? NULL : domain;
#endif
}

/*
 * The mappings of the DMA API. What an ended borrower left is not for who has the function alone
 * now: what it still sends there faults.
 */
static int carry_over(struct sio_request *rq, struct sio_dev *d)
{
	struct sio_obj *o;
	int error;

	list_for_each_entry(o, &d->objects, of_dev) {
		struct sio_dma *m = dma_of(o);

		if (!m || !m->mapped || m->cut || o->state == SIO_STATE_QUARANTINED)
			continue;
		error = fill(m, NULL, 0);
		if (error == -EOPNOTSUPP)
			return sio_fail(
				rq, error,
				"%s has another function's memory mapped, past the IOMMU: chosen addresses without that are right",
				dev_name(m->dev));
		if (error)
			return error;
	}
	return 0;
}

static void forget(struct sio_dev *d)
{
	struct iommu_domain *domain = d->domain;
	struct sio_obj *o;

	list_for_each_entry(o, &d->objects, of_dev)
		if (dma_of(o))
			dma_of(o)->own = false;
	d->domain = NULL;
	iommu_domain_free(domain);
}

/*
 * What the function wrote past this host's caches, its driver, which is a stranger, would have the
 * processor read in two ways. The driver does not reach this bit; a reset by the kernel keeps it.
 */
static void forbid_no_snoop(struct sio_dev *d)
{
	u16 control;

	d->had_no_snoop = !pcie_capability_read_word(d->pdev, PCI_EXP_DEVCTL, &control) &&
			  control & PCI_EXP_DEVCTL_NOSNOOP_EN;
	if (d->had_no_snoop)
		pcie_capability_clear_word(d->pdev, PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_NOSNOOP_EN);
}

static void allow_no_snoop(struct sio_dev *d)
{
	if (d->had_no_snoop)
		pcie_capability_set_word(d->pdev, PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_NOSNOOP_EN);
	d->had_no_snoop = false;
}

/* What has a domain of its own must not be able to interrupt this host in others' names either. */
static int make(struct sio_request *rq, struct sio_dev *d)
{
	struct device *dev = &d->pdev->dev;

	if (!remaps_interrupts(dev))
		return sio_fail(
			rq, -EOPNOTSUPP,
			"%s chooses no addresses, for by some it would send any interrupt: interrupt remapping that is on is right",
			dev_name(dev));
	d->kernels = iommu_get_domain_for_dev(dev);
	d->domain = domain_new(dev);
	d->tables = 0;
	memset(d->counted, 0, sizeof(d->counted));
	return d->domain ? 0 : -ENOMEM;
}

static int enter(struct sio_request *rq, struct sio_dev *d)
{
	struct device *dev = &d->pdev->dev;
	int error = carry_over(rq, d);

	if (error)
		return error;
	forbid_no_snoop(d);
	error = iommu_attach_device(d->domain, dev);
	if (!error)
		return 0;
	allow_no_snoop(d);
	return sio_fail(
		rq, -EOPNOTSUPP,
		"%s gets no IOMMU domain of its own (%pe): a function that is alone in its IOMMU group is right",
		dev_name(dev), ERR_PTR(error));
}

void sio_domain_rest(struct sio_dev *d)
{
	struct device *dev = d->pdev ? &d->pdev->dev : NULL;

	if (!dev || !d->domain || d->n_chosen)
		return;
	iommu_detach_device(d->domain, dev);
	if (iommu_get_domain_for_dev(dev) == d->domain) {
		/* Its group has got another function. Freed tables would lead it anywhere. */
		pci_clear_master(d->pdev);
		dev_warn(dev,
			 "keeps its IOMMU domain, and sends no more: its group is not its own\n");
		return;
	}
	/* What was unmapped lazily meanwhile. */
	iommu_flush_iotlb_all(d->kernels);
	allow_no_snoop(d);
	forget(d);
}

/* ---- mappings at chosen addresses ---- */

/*
 * Messages and firmware's memory are there, whatever is mapped. Return: 1 if so, with the lowest of
 * these addresses in *@at; -errno.
 */
static int is_reserved(struct device *dev, u64 first, u64 last, u64 *at)
{
	struct iommu_group *group = iommu_group_get(dev);
	struct iommu_resv_region *r, *next;
	LIST_HEAD(regions);
	int found;

	if (!group)
		return -ENODEV;
	*at = U64_MAX;
	found = iommu_get_group_resv_regions(group, &regions);
	list_for_each_entry_safe(r, next, &regions, list) {
		if (found >= 0 && r->type != IOMMU_RESV_DIRECT_RELAXABLE &&
		    first <= r->start + r->length - 1 && r->start <= last) {
			found = 1;
			*at = min_t(u64, *at, r->start);
		}
		kfree(r);
	}
	iommu_group_put(group);
	return found;
}

/* Some drivers say more than their IOMMU has. */
static u64 end_of(const struct iommu_domain *domain)
{
	return min_t(u64, domain->geometry.aperture_end, DMA_BIT_MASK(48));
}

static int check_address(struct sio_request *rq, const struct sio_dma *m, u64 address)
{
	const struct iommu_domain_geometry *g = &m->of->domain->geometry;
	u64 end = end_of(m->of->domain), last = address + (m->length - 1), at;
	const struct sio_dma *other;
	int reserved;

	if (last < address || last > end || address < g->aperture_start)
		return sio_fail(
			rq, -EINVAL,
			"%#llx bytes at %#llx: %s can send %#llx to %#llx through its IOMMU",
			m->length, address, dev_name(m->dev), (u64)g->aperture_start, end);
	reserved = is_reserved(m->dev, address, last, &at);
	if (reserved < 0)
		return reserved;
	if (reserved)
		return sio_fail_exhausted(
			rq, -ENOSPC, SIO_OUT_OF_IOVA,
			"%#llx bytes at %#llx: %#llx is not memory's for %s, but interrupts' or the firmware's",
			m->length, address, max(at, address), dev_name(m->dev));
	other = find_other(m, address, m->length);
	return other ? taken(rq, other) : 0;
}

/* Addresses of a function that something is at. */
struct span {
	u64 first, last;
};

struct spans {
	struct span *span; /* the highest last one first */
	size_t n, room;
};

static int compare(const void *a, const void *b)
{
	u64 one = ((const struct span *)a)->last, other = ((const struct span *)b)->last;

	return one < other ? 1 : one > other ? -1 : 0;
}

static void note(struct spans *s, u64 first, u64 length)
{
	if (s->span && s->n < s->room)
		s->span[s->n] = (struct span){first, first + (length - 1)};
	s->n++;
}

/* What is mapped, and @regions; only counted while there is no room for them. */
static void look(const struct sio_dma *m, struct list_head *regions, struct spans *s)
{
	struct iommu_resv_region *r;
	const struct sio_dma *other;
	struct sio_obj *o;

	s->n = 0;
	list_for_each_entry(r, regions, list)
		if (r->type != IOMMU_RESV_DIRECT_RELAXABLE)
			note(s, r->start, r->length);
	list_for_each_entry(o, &m->of->objects, of_dev) {
		other = dma_of(o);
		if (other && other != m && other->mapped)
			note(s, other->address, other->length);
	}
}

static int find_spans(const struct sio_dma *m, struct spans *ret)
{
	struct iommu_group *group = iommu_group_get(m->dev);
	struct iommu_resv_region *r, *next;
	LIST_HEAD(regions);
	int error;

	if (!group)
		return -ENODEV;
	error = iommu_get_group_resv_regions(group, &regions);
	if (error >= 0) {
		look(m, &regions, ret);
		ret->room = ret->n;
		ret->span = kvmalloc_array(ret->n + 1, sizeof(*ret->span), GFP_KERNEL_ACCOUNT);
		error = ret->span ? 0 : -ENOMEM;
	}
	if (!error) {
		look(m, &regions, ret);
		sort(ret->span, ret->n, sizeof(*ret->span), compare, NULL);
	}
	list_for_each_entry_safe(r, next, &regions, list)
		kfree(r);
	iommu_group_put(group);
	return error;
}

/* The highest range that ends at @end or below and that none of @s meets. Return: whether it is. */
static bool find_below(const struct sio_dma *m, const struct spans *s, u64 end, u64 *ret)
{
	u64 start = max_t(u64, m->of->domain->geometry.aperture_start, PAGE_SIZE);

	for (size_t i = 0;; i++) {
		if (end < start || end - start < m->length - 1)
			return false;
		*ret = (end - (m->length - 1)) & PAGE_MASK;
		if (*ret < start)
			return false;
		/* Those that begin above its end are out of the way. */
		while (i < s->n && s->span[i].first > *ret + (m->length - 1))
			i++;
		if (i == s->n || s->span[i].last < *ret)
			return true;
		if (!s->span[i].first)
			return false;
		end = s->span[i].first - 1;
	}
}

/* Below 4 GiB first, as the DMA API does, for devices that send no more. */
static int find_free(struct sio_request *rq, const struct sio_dma *m, u64 *ret)
{
	u64 end = min_t(u64, end_of(m->of->domain), dma_get_mask(m->dev));
	struct spans s = {};
	int error = find_spans(m, &s);
	bool found;

	if (error)
		return error;
	found = find_below(m, &s, min_t(u64, end, DMA_BIT_MASK(32)), ret) ||
		find_below(m, &s, end, ret);
	kvfree(s.span);
	if (found)
		return 0;
	return sio_fail_exhausted(
		rq, -ENOSPC, SIO_OUT_OF_IOVA,
		"%s has no %#llx bytes of addresses beside those that were chosen, up to %#llx",
		dev_name(m->dev), m->length, end);
}

/* The function has a domain in which @address is free. */
static int prepare(struct sio_request *rq, struct sio_dma *m, u64 address)
{
	struct sio_dev *d = m->of;
	bool had = d->domain;
	int error = had ? 0 : make(rq, d);

	if (!error)
		error = check_address(rq, m, address);
	if (!error)
		error = count_tables(rq, m, address);
	if (!error && !had)
		error = enter(rq, d);
	if (error && !had && d->domain)
		forget(d);
	return error;
}

/* From here on it ends by sio_domain_leave(). */
static int put_at(struct sio_dma *m, const struct sio_obj *target, u64 offset, u64 address)
{
	m->of->n_chosen++;
	m->of->chosen_bytes += m->length;
	m->chosen = true;
	m->mapped = true;
	m->address = address;
	return fill(m, target, offset);
}

int sio_domain_map(struct sio_request *rq, struct sio_dma *m, const struct sio_obj *target,
		   u64 offset, u64 address)
{
	int error;

	if (target->kind == SIO_KIND_MEM && ((const struct sio_mem *)target)->dmabuf)
		return sio_fail(
			rq, -EOPNOTSUPP,
			"memory %#llx is another driver's, which knows the addresses that the kernel chooses alone: ask for any",
			target->id);
	error = prepare(rq, m, address);
	return error ? error : put_at(m, target, offset, address);
}

int sio_domain_place(struct sio_request *rq, struct sio_dma *m, const struct sio_obj *target,
		     u64 offset)
{
	u64 address;
	int error = find_free(rq, m, &address);

	if (!error)
		error = count_tables(rq, m, address);
	return error ? error : put_at(m, target, offset, address);
}

void sio_domain_cut(struct sio_dma *m)
{
	if (m->own)
		iommu_unmap(m->of->domain, m->address, m->length);
	m->own = false;
}

void sio_domain_leave(struct sio_dma *m)
{
	sio_domain_cut(m);
	if (!m->chosen)
		return;
	m->of->n_chosen--;
	m->of->chosen_bytes -= m->length;
}
