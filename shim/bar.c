// SPDX-License-Identifier: GPL-2.0-only
/*
 * Views of BAR pages. Pages come into a mapping by faults, so that they can be taken out of it
 * again: for the time of a reset, and for good when the view is closed or the device gone. Then the
 * view reads as ones, as the bus does, and a store goes to a page that the view has instead.
 */
#include "smartio.h"

#define MSIX_ENTRY 16

static struct page *ones; /* what revoked views read */

int sio_ones_init(void)
{
	ones = alloc_page(GFP_KERNEL);
	if (!ones)
		return -ENOMEM;
	memset(page_address(ones), 0xff, PAGE_SIZE);
	return 0;
}

void sio_ones_exit(void)
{
	__free_page(ones);
}

/* ---- taking pages away ---- */

static void zap(struct sio_bar *b)
{
	if (b->o.inode)
		unmap_mapping_range(b->o.inode->i_mapping, 0, 0, 1);
}

static void revoke(struct sio_bar *b)
{
	down_write(&b->dev->views);
	b->revoked = true;
	up_write(&b->dev->views);
	zap(b);
	wake_up_all(&b->dev->wait);
}

void sio_bars_revoke(struct sio_dev *d)
{
	struct sio_bar *b;

	list_for_each_entry(b, &d->bars, of_dev)
		revoke(b);
}

void sio_bars_hold(struct sio_dev *d)
{
	struct sio_bar *b;

	down_write(&d->views);
	d->resetting = true;
	up_write(&d->views);
	list_for_each_entry(b, &d->bars, of_dev)
		zap(b);
}

void sio_bars_let(struct sio_dev *d)
{
	down_write(&d->views);
	d->resetting = false;
	up_write(&d->views);
	wake_up_all(&d->wait);
}

void sio_bar_end(struct sio_bar *b)
{
	revoke(b);
	list_del(&b->of_dev);
	if (b->caching == SIO_CACHE_WRITE_COMBINED)
		arch_io_free_memtype_wc(b->phys, b->length);
	sio_obj_unref(&b->dev->opened->o);
}

void sio_bar_free(struct sio_bar *b)
{
	struct page *page;
	unsigned long i;

	xa_for_each(&b->own, i, page)
		__free_page(page);
	xa_destroy(&b->own);
	kfree(b);
}

/* ---- faults ---- */

static pgprot_t cached_as(const struct sio_bar *b, pgprot_t prot)
{
	return b->caching == SIO_CACHE_WRITE_COMBINED ? pgprot_writecombine(prot)
						      : pgprot_noncached(prot);
}

static vm_fault_t insert_device(struct sio_bar *b, struct vm_fault *vmf)
{
	return vmf_insert_pfn_prot(vmf->vma, vmf->address, PHYS_PFN(b->phys) + vmf->pgoff,
				   cached_as(b, vm_get_page_prot(vmf->vma->vm_flags)));
}

/* A page for this place of the view, in which stores stay. */
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
	vm_flags_t flags = vmf->vma->vm_flags;
	struct page *page = write ? own_page(b, vmf->pgoff) : xa_load(&b->own, vmf->pgoff);

	if (write && !page)
		return VM_FAULT_OOM;
	if (!page) {
		page = ones;
		flags &= ~VM_WRITE;
	}
	return vmf_insert_pfn_prot(vmf->vma, vmf->address, page_to_pfn(page),
				   vm_get_page_prot(flags));
}

static vm_fault_t insert(struct sio_bar *b, struct vm_fault *vmf, bool write, bool there)
{
	struct sio_dev *d = b->dev;
	vm_fault_t rc;

	if (vmf->pgoff >= b->length >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	for (;;) {
		down_read(&d->views);
		if (b->revoked || !d->resetting)
			break;
		up_read(&d->views);
		if (wait_event_killable(d->wait, READ_ONCE(b->revoked) || !READ_ONCE(d->resetting)))
			return VM_FAULT_SIGBUS;
	}
	if (there)
		zap_vma_ptes(vmf->vma, vmf->address & PAGE_MASK, PAGE_SIZE);
	rc = b->revoked ? insert_ones(b, vmf, write) : insert_device(b, vmf);
	up_read(&d->views);
	return rc;
}

static vm_fault_t bar_fault(struct vm_fault *vmf)
{
	return insert(vmf->vma->vm_private_data, vmf, vmf->flags & FAULT_FLAG_WRITE, false);
}

/* A store to a page that is there for reading: the ones, or after mprotect(). */
static vm_fault_t bar_mkwrite(struct vm_fault *vmf)
{
	return insert(vmf->vma->vm_private_data, vmf, true, true);
}

static const struct vm_operations_struct bar_vm_ops = {
	.fault = bar_fault,
	.pfn_mkwrite = bar_mkwrite,
};

static int bar_mmap(struct file *f, struct vm_area_struct *vma)
{
	struct sio_bar *b = f->private_data;
	u64 n = b->length >> PAGE_SHIFT;

	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff > n ||
	    vma_pages(vma) > n - vma->vm_pgoff)
		return -EINVAL;
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_page_prot = cached_as(b, vma->vm_page_prot);
	vma->vm_private_data = b;
	vma->vm_ops = &bar_vm_ops;
	return 0;
}

const struct file_operations sio_bar_fops = {
	.owner = THIS_MODULE,
	.mmap = bar_mmap,
	.release = sio_file_release,
	.llseek = noop_llseek,
};

struct file *sio_bar_file(struct sio_bar *b)
{
	int flags = b->access & SIO_ACCESS_WRITE ? O_RDWR : O_RDONLY;

	return sio_file_new(&b->o, "[smartio BAR]", &sio_bar_fops, flags, b->length);
}

/* ---- BAR and BAR_CLOSE ---- */

static int check(struct sio_request *rq, const struct sio_req_bar *m, struct sio_dev **ret)
{
	u64 table, table_end;
	struct sio_dev *d;
	char of[16];
	int error = sio_dev_get(rq, m->device, ret);

	if (error)
		return error;
	d = *ret;
	if (m->access != SIO_ACCESS_READ && m->access != SIO_BOTH)
		return sio_fail(rq, -EINVAL, "access %#x, %d or %u is right", m->access,
				SIO_ACCESS_READ, SIO_BOTH);
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
	table = PAGE_ALIGN_DOWN(d->msix_offset);
	table_end = d->msix_offset + (u64)d->msix_count * MSIX_ENTRY;
	if (d->msix_count && m->bar == d->msix_bar && m->offset < table_end &&
	    m->offset + m->length > table)
		return sio_fail(rq, -EACCES, "the interrupt table is not given out");
	return 0;
}

int sio_op_bar(struct sio_request *rq, const void *msg)
{
	const struct sio_req_bar *m = msg;
	struct sio_evt_bar *evt;
	struct sio_dev *d;
	struct sio_bar *b;
	int error = check(rq, m, &d);

	if (error)
		return error;
	b = sio_obj_new(rq, SIO_KIND_BAR, sizeof(*b));
	if (!b)
		return rq->error;
	xa_init(&b->own);
	b->dev = d;
	b->phys = pci_resource_start(d->pdev, m->bar) + m->offset;
	b->length = m->length;
	b->access = m->access;
	b->caching = m->caching;
	error = sio_answer_file(rq, sio_bar_file(b));
	if (error)
		goto drop;
	if (m->caching == SIO_CACHE_WRITE_COMBINED) {
		error = arch_io_reserve_memtype_wc(b->phys, b->length);
		if (error) {
			sio_fail(rq, error, "these pages cannot be write-combined");
			goto drop;
		}
	}
	list_add_tail(&b->of_dev, &d->bars);
	sio_obj_ref(&d->opened->o);
	evt = sio_answer(rq, sizeof(*evt));
	evt->id = b->o.id;
	evt->length = b->length;
	return 0;

drop:
	sio_obj_drop(&b->o);
	return error;
}
