// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages by which processors reach devices and peers. They are mapped by page faults, so that they
 * can be removed again: for the time of a reset or while a link is down, and for good when the view
 * is closed, or when what it leads to is gone. Then the view reads as ones, as the bus does, and a
 * store goes to a page that the view has instead.
 */
#include <linux/io.h>
#include <linux/ioport.h>

#include "smartio.h"

#define ONES ULONG_MAX /* index of the page that is read where nothing was stored */

/* ---- what is stored in place of it ---- */

static void free_own(struct sio_view *v)
{
	struct page *page;
	unsigned long i;

	xa_for_each(&v->own, i, page)
		__free_page(page);
	xa_destroy(&v->own);
}

/* A page of ones for this place of the view, in which stores stay. */
static struct page *own_page(struct sio_view *v, unsigned long index)
{
	struct page *page = xa_load(&v->own, index), *other;

	if (page)
		return page;
	page = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!page)
		return NULL;
	memset(page_address(page), 0xff, PAGE_SIZE);
	other = xa_cmpxchg(&v->own, index, NULL, page, GFP_KERNEL_ACCOUNT);
	if (!other)
		return page;
	__free_page(page);
	return xa_is_err(other) ? NULL : other;
}

static vm_fault_t insert_ones(struct sio_view *v, struct vm_fault *vmf, bool write)
{
	bool stored = write || xa_load(&v->own, vmf->pgoff);
	struct page *page = own_page(v, stored ? vmf->pgoff : ONES);
	vm_flags_t flags = vmf->vma->vm_flags & ~(stored ? 0 : VM_WRITE);

	if (!page)
		return VM_FAULT_OOM;
	return vmf_insert_pfn_prot(vmf->vma, vmf->address, page_to_pfn(page),
				   vm_get_page_prot(flags));
}

/* ---- faults ---- */

static pgprot_t cached_as(const struct sio_view *v, pgprot_t prot)
{
	if (v->ram)
		return prot;
	return v->combined ? pgprot_writecombine(prot) : pgprot_noncached(prot);
}

vm_fault_t sio_view_insert(struct sio_view *v, struct vm_fault *vmf, bool there)
{
	if (there)
		zap_vma_ptes(vmf->vma, vmf->address & PAGE_MASK, PAGE_SIZE);
	if (v->revoked)
		return insert_ones(v, vmf, vmf->flags & FAULT_FLAG_WRITE);
	return vmf_insert_pfn_prot(vmf->vma, vmf->address, PHYS_PFN(v->phys) + vmf->pgoff,
				   cached_as(v, vm_get_page_prot(vmf->vma->vm_flags)));
}

int sio_view_mmap(struct sio_view *v, struct vm_area_struct *vma,
		  const struct vm_operations_struct *ops)
{
	vm_flags_set(vma, VM_IO | VM_PFNMAP);
	vma->vm_page_prot = cached_as(v, vma->vm_page_prot);
	vma->vm_ops = ops;
	return 0;
}

/* ---- life ---- */

/* RAM is cached, whoever maps it, on all processors that we know. */
int sio_view_make(struct sio_view *v, u64 phys, bool combined)
{
	int error = 0;

	v->phys = phys;
	v->ram = page_is_ram(PHYS_PFN(phys));
	if (combined && !v->ram)
		error = arch_io_reserve_memtype_wc(phys, v->o.length);
	v->combined = combined && !v->ram && !error; /* else there is nothing to give back */
	return error;
}

void sio_view_zap(struct sio_view *v)
{
	sio_uses_lose(&v->o);
	sio_ranges_settle(&v->o);
	if (v->o.inode)
		unmap_mapping_range(v->o.inode->i_mapping, 0, 0, 1);
}

/* A fault that has not seen it is over before the pages go. */
void sio_view_revoke(struct sio_view *v, struct rw_semaphore *lock)
{
	down_write(lock);
	v->revoked = true;
	up_write(lock);
	sio_view_zap(v);
}

void sio_view_revive(struct sio_view *v, struct rw_semaphore *lock)
{
	down_write(lock);
	v->revoked = false;
	up_write(lock);
	sio_view_zap(v);
	free_own(v);
}

/* Other drivers may have these pages next, uncached. */
void sio_view_end(struct sio_view *v, struct rw_semaphore *lock)
{
	sio_view_revoke(v, lock);
	v->ended = true;
	sio_ranges_lose(&v->o);
	if (v->combined)
		arch_io_free_memtype_wc(v->phys, v->o.length);
	v->combined = false;
}

void sio_view_free(struct sio_obj *o)
{
	free_own((struct sio_view *)o);
}
