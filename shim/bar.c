// SPDX-License-Identifier: GPL-2.0-only
/*
 * Views of BAR pages. Pages come into a mapping by faults, so that they can be taken out of it
 * again: for the time of a reset, and for good when the view is closed or the device gone. Then the
 * view reads as ones, as the bus does, and a store goes to a page that the view has instead.
 */
#include "smartio.h"

#define ONES ULONG_MAX /* index of the page that is read where nothing was stored */

/* ---- taking pages away ---- */

static void zap(struct sio_obj *o)
{
	if (o->inode)
		unmap_mapping_range(o->inode->i_mapping, 0, 0, 1);
}

/* Other drivers may have these pages next, uncached. */
static void revoke(struct sio_obj *o)
{
	struct sio_bar *b = (struct sio_bar *)o;
	bool held = b->combined && !b->revoked;

	down_write(&o->dev->views);
	b->revoked = true;
	up_write(&o->dev->views);
	zap(o);
	if (held)
		arch_io_free_memtype_wc(o->address, o->length);
}

void sio_bars_revoke(struct sio_dev *d)
{
	struct sio_obj *o;

	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_BAR)
			revoke(o);
}

/* A fault that has not seen it is over before the pages go. */
void sio_bars_hold(struct sio_dev *d)
{
	struct sio_obj *o;

	down_write(&d->views);
	WRITE_ONCE(d->resetting, true);
	up_write(&d->views);
	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_BAR)
			zap(o);
}

void sio_bars_resume(struct sio_dev *d)
{
	WRITE_ONCE(d->resetting, false);
	wake_up_all(&d->reset_over);
}

static void bar_free(struct sio_obj *o)
{
	struct sio_bar *b = (struct sio_bar *)o;
	struct page *page;
	unsigned long i;

	xa_for_each(&b->own, i, page)
		__free_page(page);
	xa_destroy(&b->own);
}

/* ---- faults ---- */

static pgprot_t cached_as(const struct sio_bar *b, pgprot_t prot)
{
	return b->combined ? pgprot_writecombine(prot) : pgprot_noncached(prot);
}

/* A page of ones for this place of the view, in which stores stay. */
static struct page *own_page(struct sio_bar *b, unsigned long index)
{
	struct page *page = xa_load(&b->own, index), *other;

	if (page)
		return page;
	page = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!page)
		return NULL;
	memset(page_address(page), 0xff, PAGE_SIZE);
	other = xa_cmpxchg(&b->own, index, NULL, page, GFP_KERNEL_ACCOUNT);
	if (!other)
		return page;
	__free_page(page);
	return xa_is_err(other) ? NULL : other;
}

static vm_fault_t insert_ones(struct sio_bar *b, struct vm_fault *vmf, bool write)
{
	bool stored = write || xa_load(&b->own, vmf->pgoff);
	struct page *page = own_page(b, stored ? vmf->pgoff : ONES);
	vm_flags_t flags = vmf->vma->vm_flags & ~(stored ? 0 : VM_WRITE);

	if (!page)
		return VM_FAULT_OOM;
	return vmf_insert_pfn_prot(vmf->vma, vmf->address, page_to_pfn(page),
				   vm_get_page_prot(flags));
}

/* With views, for reading, and no reset under way; else a fatal signal. */
static int views_get(struct sio_dev *d)
{
	for (;;) {
		if (down_read_killable(&d->views))
			return -EINTR;
		if (!READ_ONCE(d->resetting))
			return 0;
		up_read(&d->views);
		if (wait_event_killable(d->reset_over, !READ_ONCE(d->resetting)))
			return -EINTR;
	}
}

static vm_fault_t insert(struct vm_fault *vmf, bool there)
{
	struct sio_bar *b = vmf->vma->vm_private_data;
	struct sio_dev *d = b->o.dev;
	vm_fault_t rc;

	if (vmf->pgoff >= b->o.length >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	if (views_get(d))
		return VM_FAULT_SIGBUS;
	if (there)
		zap_vma_ptes(vmf->vma, vmf->address & PAGE_MASK, PAGE_SIZE);
	if (b->revoked)
		rc = insert_ones(b, vmf, vmf->flags & FAULT_FLAG_WRITE);
	else
		rc = vmf_insert_pfn_prot(vmf->vma, vmf->address,
					 PHYS_PFN(b->o.address) + vmf->pgoff,
					 cached_as(b, vm_get_page_prot(vmf->vma->vm_flags)));
	up_read(&d->views);
	return rc;
}

static vm_fault_t bar_fault(struct vm_fault *vmf)
{
	return insert(vmf, false);
}

/* A store to a page that is there for reading: the ones, or after mprotect(). */
static vm_fault_t bar_mkwrite(struct vm_fault *vmf)
{
	return insert(vmf, true);
}

static const struct vm_operations_struct bar_vm_ops = {
	.fault = bar_fault,
	.pfn_mkwrite = bar_mkwrite,
};

static int bar_mmap(struct sio_obj *o, struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_IO | VM_PFNMAP);
	vma->vm_page_prot = cached_as((struct sio_bar *)o, vma->vm_page_prot);
	vma->vm_ops = &bar_vm_ops;
	return 0;
}

const struct sio_kind sio_kind_bar = {
	.name = "BAR view",
	.size = sizeof(struct sio_bar),
	.end = revoke,
	.free = bar_free,
	.mmap = bar_mmap,
	.fops = &sio_mmap_fops,
};

/* ---- BAR ---- */

/* Whole pages of a BAR, and none of the interrupt table. */
static int check(struct sio_request *rq, const struct sio_req_bar *m)
{
	const struct sio_dev *d = rq->dev;
	u64 table = PAGE_ALIGN_DOWN(d->msix_offset);
	u64 table_end = d->msix_offset + (u64)d->msix_count * PCI_MSIX_ENTRY_SIZE;
	char of[16];
	int error;

	if (m->access != SIO_ACCESS_READ && m->access != SIO_BOTH)
		return sio_fail(rq, -EINVAL, "access %#x, 1 or 3 is right", m->access);
	if (m->caching > SIO_CACHE_WRITE_COMBINED)
		return sio_fail(rq, -EINVAL, "caching %u, 0 to %d are right", m->caching,
				SIO_CACHE_WRITE_COMBINED);
	if (m->bar >= SIO_DEVICE_BARS || !(pci_resource_flags(d->pdev, m->bar) & IORESOURCE_MEM) ||
	    !PAGE_ALIGNED(pci_resource_start(d->pdev, m->bar)))
		return sio_fail(rq, -EINVAL, "%s has no BAR %u of whole pages", pci_name(d->pdev),
				m->bar);
	snprintf(of, sizeof(of), "BAR %u", m->bar);
	error = sio_check_range(rq, of, m->offset, m->length, pci_resource_len(d->pdev, m->bar));
	if (error)
		return error;
	if (d->msix_count && m->bar == d->msix_bar && m->offset < table_end &&
	    m->offset + m->length > table)
		return sio_fail(rq, -EACCES,
				"the interrupt table, %#llx to %#llx of BAR %u, is not given out",
				table, table_end, m->bar);
	return 0;
}

/* A page has one memory type: the kernel gives all its mappings the one that was reserved. */
static int check_type(struct sio_request *rq, const struct sio_bar *b, bool combined)
{
	struct sio_bar *other;

	list_for_each_entry(other, &b->o.dev->objects, o.of_dev)
		if (other->o.kind == SIO_KIND_BAR && other != b && !other->revoked &&
		    other->combined != combined && other->o.address < b->o.address + b->o.length &&
		    b->o.address < other->o.address + other->o.length)
			return sio_fail(rq, -EBUSY, "BAR view %#llx has these pages %s",
					other->o.id, combined ? "uncached" : "write-combined");
	return 0;
}

int sio_op_bar(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_bar *m = msg;
	struct sio_evt_bar *evt = answer;
	struct sio_bar *b = (struct sio_bar *)rq->obj;
	bool combined = m->caching == SIO_CACHE_WRITE_COMBINED;
	int error = check(rq, m);

	sio_obj_tie(&b->o, rq->dev, NULL);
	xa_init(&b->own);
	if (error)
		return error;
	b->o.address = pci_resource_start(rq->dev->pdev, m->bar) + m->offset;
	b->o.access = m->access;
	evt->length = b->o.length = m->length;
	error = check_type(rq, b, combined);
	if (error)
		return error;
	if (combined)
		error = arch_io_reserve_memtype_wc(b->o.address, b->o.length);
	b->combined = combined && !error; /* else there is nothing to give back */
	return error;
}
