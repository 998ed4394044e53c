// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for segments. What the kernel gives is made of single pages, each with its own reference,
 * so that a page that somebody has pinned (RDMA, io_uring) survives its segment. Pools and imported
 * pages are mapped by number; nobody can pin those.
 */
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>

#include "smartio.h"

#define HUGE_PAGE (2ULL << 20)
#define MAX_ORDER_SIZE 10 /* of 4 MiB, in every kernel that we know */

static unsigned long memory_limit;
module_param(memory_limit, ulong, 0644);
MODULE_PARM_DESC(memory_limit, "bytes that ALLOC may take from the kernel (0: half of the RAM)");

static atomic64_t memory_used;

u64 sio_mem_limit(void)
{
	u64 limit = READ_ONCE(memory_limit);

	return limit ? limit : (u64)totalram_pages() << (PAGE_SHIFT - 1);
}

u64 sio_mem_used(void)
{
	return atomic64_read(&memory_used);
}

/* ---- pages ---- */

struct sio_pages *sio_pages_new(u64 n)
{
	struct sio_pages *p;

	if (n > INT_MAX / sizeof(*p->page)) /* more than the kernel gives a list room for */
		return NULL;
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return NULL;
	p->page = kvcalloc(n, sizeof(*p->page), GFP_KERNEL_ACCOUNT);
	if (!p->page) {
		kfree(p);
		return NULL;
	}
	kref_init(&p->kref);
	return p;
}

static void pages_free(struct kref *kref)
{
	struct sio_pages *p = container_of(kref, struct sio_pages, kref);

	if (p->pinned)
		unpin_user_pages_dirty_lock(p->page, p->n, true);
	for (u64 i = 0; i < p->n && !p->pinned; i++)
		__free_page(p->page[i]);
	if (p->mm) {
		atomic64_sub(p->n, &p->mm->pinned_vm);
		mmdrop(p->mm);
	}
	kvfree(p->page);
	kfree(p);
}

void sio_pages_put(struct sio_pages *p)
{
	kref_put(&p->kref, pages_free);
}

/* One contiguous run, aligned to its size. */
static bool add_run(struct sio_pages *p, unsigned int order, u64 want, gfp_t gfp)
{
	struct page *page = alloc_pages(gfp, order);
	u64 i;

	if (!page)
		return false;
	if (order)
		split_page(page, order);
	for (i = 0; i < want; i++)
		p->page[p->n++] = page + i;
	for (; i < 1ULL << order; i++)
		__free_page(page + i);
	return true;
}

/*
 * @n pages in runs as long as can be had, not shorter than 2 to the power of @least. With @one a
 * single run.
 */
static struct sio_pages *alloc_runs(u64 n, unsigned int least, bool one, u64 highest)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	struct sio_pages *p = sio_pages_new(n);
	unsigned int order = MAX_ORDER_SIZE;

	if (!p)
		return NULL;
	if (highest <= DMA_BIT_MASK(32))
		gfp |= GFP_DMA32;
	while (p->n < n) {
		unsigned int fits = max_t(unsigned int, order_base_2(n - p->n), least);

		order = min(order, fits);
		if (fatal_signal_pending(current) || (one && order < fits))
			goto fail;
		if (add_run(p, order, min(n - p->n, 1ULL << order),
			    one ? gfp | __GFP_RETRY_MAYFAIL : gfp | __GFP_NORETRY))
			continue;
		if (order == least && add_run(p, order, min(n - p->n, 1ULL << order), gfp))
			continue;
		if (order == least)
			goto fail;
		order--;
	}
	return p;

fail:
	sio_pages_put(p);
	return NULL;
}

/* ---- memory objects ---- */

u64 sio_mem_pfn(const struct sio_mem *m, u64 index)
{
	return m->pages ? page_to_pfn(m->pages->page[m->first + index]) : PHYS_PFN(m->phys) + index;
}

static void count_pieces(struct sio_mem *m)
{
	u64 n = m->size >> PAGE_SHIFT;

	m->phys = PFN_PHYS(sio_mem_pfn(m, 0));
	m->pieces = 1;
	for (u64 i = 1; i < n && m->pages; i++)
		m->pieces += sio_mem_pfn(m, i) != sio_mem_pfn(m, i - 1) + 1;
}

struct sio_mem *sio_mem_of_pages(struct sio_pages *pages, u64 first, u64 n)
{
	struct sio_mem *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (!m)
		return NULL;
	m->o.kind = SIO_KIND_MEM;
	m->pages = pages;
	m->first = first;
	m->size = n << PAGE_SHIFT;
	m->access = SIO_BOTH;
	count_pieces(m);
	return m;
}

void sio_mem_free(struct sio_mem *m)
{
	if (!m)
		return;
	if (m->dmabuf)
		sio_dmabuf_put(m);
	if (m->pool)
		sio_pool_free(m->pool, m->phys, m->size);
	if (m->pages)
		sio_pages_put(m->pages);
	atomic64_sub(m->charged, &memory_used);
	kfree(m);
}

static struct sio_mem *from_pool(u64 size, u64 align, u64 highest)
{
	struct sio_mem *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (!m)
		return NULL;
	m->o.kind = SIO_KIND_MEM;
	m->pool = sio_pool_alloc(size, align, highest, &m->phys);
	if (!m->pool) {
		kfree(m);
		return NULL;
	}
	m->size = size;
	m->access = SIO_BOTH;
	m->pieces = 1;
	return m;
}

static bool too_high(const struct sio_mem *m, u64 highest)
{
	u64 n = m->size >> PAGE_SHIFT;

	for (u64 i = 0; i < n && highest != SIO_PORT_ANY; i++)
		if (PFN_PHYS(sio_mem_pfn(m, i)) + PAGE_SIZE - 1 > highest)
			return true;
	return false;
}

static struct sio_mem *from_kernel(u64 size, u64 align, u64 highest, bool one)
{
	unsigned int least = ilog2(align) - PAGE_SHIFT;
	struct sio_pages *p;
	struct sio_mem *m;

	if (least > MAX_ORDER_SIZE || (one && size > PAGE_SIZE << MAX_ORDER_SIZE))
		return NULL;
	if (atomic64_add_return(size, &memory_used) > sio_mem_limit())
		goto uncharge;
	p = alloc_runs(size >> PAGE_SHIFT, least, one, highest);
	if (!p)
		goto uncharge;
	m = sio_mem_of_pages(p, 0, p->n);
	if (!m) {
		sio_pages_put(p);
		goto uncharge;
	}
	m->charged = size;
	if (!too_high(m, highest))
		return m;
	sio_mem_free(m);
	return NULL;

uncharge:
	atomic64_sub(size, &memory_used);
	return NULL;
}

/* ---- ALLOC and FREE ---- */

static int check(struct sio_request *rq, const struct sio_req_alloc *m, u64 *ret_size,
		 u64 *ret_align)
{
	u64 unit = m->kind == SIO_ALLOC_HUGE ? HUGE_PAGE : PAGE_SIZE, size, all, left;

	if (m->kind > SIO_ALLOC_CONTIGUOUS)
		return sio_fail(rq, -EINVAL, "kind %u, 0 to %d are right", m->kind,
				SIO_ALLOC_CONTIGUOUS);
	if (m->access & ~SIO_BOTH)
		return sio_fail(rq, -EINVAL, "access %#x, 0 to 3 are right", m->access);
	if (m->align & (m->align - 1))
		return sio_fail(rq, -EINVAL, "align %#llx, 0 or a power of 2 is right", m->align);
	if (m->size == 0)
		return sio_fail(rq, -EINVAL, "size 0");
	sio_pool_sizes(&all, &left);
	all += (u64)totalram_pages() << PAGE_SHIFT;
	if (check_add_overflow(m->size, unit - 1, &size) || size > all)
		return sio_fail(rq, -ENOSPC, "%llu bytes wanted, this host has %llu in all",
				m->size, all);
	*ret_size = size & ~(unit - 1);
	*ret_align = max(m->align, unit);
	return 0;
}

/* Memory in several pieces is one range for every device that is bound. */
static bool pieces_will_do(void)
{
	struct sio_dev *d;
	bool all = true;

	mutex_lock(&sio.lock);
	list_for_each_entry(d, &sio.devices, node)
		if (d->pdev && !d->going)
			all &= sio_dev_iommu(d) != SIO_IOMMU_OFF;
	mutex_unlock(&sio.lock);
	return all;
}

int sio_prepare_alloc(struct sio_request *rq, const void *msg)
{
	const struct sio_req_alloc *m = msg;
	u64 size, align, total, left;
	int error = check(rq, m, &size, &align);

	if (error)
		return error;
	if (m->kind == SIO_ALLOC_HUGE)
		rq->mem = from_pool(size, align, m->highest);
	if (!rq->mem && m->kind != SIO_ALLOC_POOL)
		rq->mem = from_kernel(size, align, m->highest, true);
	if (!rq->mem && m->kind == 0 && pieces_will_do())
		rq->mem = from_kernel(size, align, m->highest, false);
	if (!rq->mem && (m->kind == 0 || m->kind == SIO_ALLOC_POOL))
		rq->mem = from_pool(size, align, m->highest);
	if (rq->mem)
		return 0;
	sio_pool_sizes(&total, &left);
	return sio_fail(
		rq, -ENOSPC,
		"%llu bytes wanted; the pool has %llu, %llu free; the kernel gives %llu in one piece, of %llu %llu are free",
		size, total, left, (u64)PAGE_SIZE << MAX_ORDER_SIZE, sio_mem_limit(),
		sio_mem_limit() - min(sio_mem_limit(), sio_mem_used()));
}

int sio_op_alloc(struct sio_request *rq, const void *msg)
{
	const struct sio_req_alloc *m = msg;
	struct sio_mem *mem = rq->mem;
	struct sio_evt_alloc *evt;
	int error;

	if (m->near_device && !sio_dev_find(m->near_device))
		return sio_fail(rq, -ENODEV, "no device %#llx is here", m->near_device);
	error = sio_obj_init(rq, &mem->o, SIO_KIND_MEM, 0);
	if (error)
		return error;
	rq->mem = NULL;
	evt = sio_answer(rq, sizeof(*evt));
	evt->id = mem->o.id;
	evt->size = mem->size;
	evt->address = mem->phys;
	error = sio_answer_file(rq, sio_mem_file(mem));
	if (error)
		sio_obj_drop(&mem->o);
	return error;
}

/* ---- files ---- */

static vm_fault_t mem_fault(struct vm_fault *vmf)
{
	struct sio_mem *m = vmf->vma->vm_private_data;

	if (vmf->pgoff >= m->size >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	if (vmf->vma->vm_flags & VM_PFNMAP)
		return vmf_insert_pfn(vmf->vma, vmf->address, sio_mem_pfn(m, vmf->pgoff));
	vmf->page = m->pages->page[m->first + vmf->pgoff];
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct mem_vm_ops = {
	.fault = mem_fault,
};

static int mem_mmap(struct file *f, struct vm_area_struct *vma)
{
	struct sio_mem *m = f->private_data;
	u64 n = m->size >> PAGE_SHIFT;

	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff > n ||
	    vma_pages(vma) > n - vma->vm_pgoff)
		return -EINVAL;
	if (m->dmabuf)
		return sio_dmabuf_mmap(m, vma);
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	if (!m->pages || m->pages->pinned)
		vm_flags_set(vma, VM_PFNMAP);
	vma->vm_private_data = m;
	vma->vm_ops = &mem_vm_ops;
	return 0;
}

const struct file_operations sio_mem_fops = {
	.owner = THIS_MODULE,
	.mmap = mem_mmap,
	.release = sio_file_release,
	.llseek = noop_llseek,
};

struct file *sio_mem_file(struct sio_mem *m)
{
	int flags = m->access & SIO_ACCESS_WRITE ? O_RDWR : O_RDONLY;

	return sio_file_new(&m->o, "[smartio memory]", &sio_mem_fops, flags, m->size);
}
