// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for segments. What the kernel gives is made of single pages, each with its own reference,
 * so that a page that somebody has pinned (RDMA, io_uring) survives its segment. Pools and imported
 * pages are mapped by number; nobody can pin those.
 */
#include <linux/dma-buf.h>
#include <linux/module.h>
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
		atomic64_sub(p->charged, &p->mm->pinned_vm);
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
	while (p->n < n && !fatal_signal_pending(current)) {
		unsigned int fits = max_t(unsigned int, order_base_2(n - p->n), least);
		bool last = one || min(order, fits) == least;

		order = min(order, fits);
		if (add_run(p, order, min(n - p->n, 1ULL << order),
			    gfp | (last ? __GFP_RETRY_MAYFAIL : __GFP_NORETRY)))
			continue;
		if (last)
			break;
		order--;
	}
	if (p->n == n)
		return p;
	sio_pages_put(p);
	return NULL;
}

/* ---- memory objects ---- */

u64 sio_mem_pfn(const struct sio_mem *m, u64 index)
{
	return m->pages ? page_to_pfn(m->pages->page[m->first + index])
			: PHYS_PFN(m->o.address) + index;
}

void sio_mem_set_pages(struct sio_mem *m, struct sio_pages *pages, u64 first, u64 n)
{
	m->pages = pages;
	m->first = first;
	m->o.length = n << PAGE_SHIFT;
	m->o.address = PFN_PHYS(sio_mem_pfn(m, 0));
	m->pieces = 1;
	for (u64 i = 1; i < n; i++)
		m->pieces += sio_mem_pfn(m, i) != sio_mem_pfn(m, i - 1) + 1;
}

static void mem_free(struct sio_obj *o)
{
	struct sio_mem *m = (struct sio_mem *)o;

	if (m->dmabuf)
		dma_buf_put(m->dmabuf);
	if (m->pool)
		sio_pool_free(m->pool, o->address, o->length);
	if (m->pages)
		sio_pages_put(m->pages);
	atomic64_sub(m->charged, &memory_used);
}

static bool from_pool(struct sio_mem *m, u64 size, u64 align, u64 highest)
{
	m->pool = sio_pool_alloc(size, align, highest, &m->o.address);
	m->o.length = size;
	return m->pool;
}

static bool too_high(const struct sio_pages *p, u64 highest)
{
	for (u64 i = 0; i < p->n && highest != SIO_PORT_ANY; i++)
		if (page_to_phys(p->page[i]) + PAGE_SIZE - 1 > highest)
			return true;
	return false;
}

static bool from_kernel(struct sio_mem *m, u64 size, u64 align, u64 highest, bool one)
{
	unsigned int least = ilog2(align) - PAGE_SHIFT;
	struct sio_pages *p;

	if (least > MAX_ORDER_SIZE || (one && size > PAGE_SIZE << MAX_ORDER_SIZE))
		return false;
	if (atomic64_add_return(size, &memory_used) > sio_mem_limit())
		goto uncharge;
	p = alloc_runs(size >> PAGE_SHIFT, least, one, highest);
	if (!p)
		goto uncharge;
	if (too_high(p, highest)) {
		sio_pages_put(p);
		goto uncharge;
	}
	sio_mem_set_pages(m, p, 0, p->n);
	m->charged = size;
	return true;

uncharge:
	atomic64_sub(size, &memory_used);
	return false;
}

/* ---- ALLOC ---- */

/* Memory in several pieces is one range for every device that is bound. */
static bool pieces_will_do(void)
{
	struct sio_dev *d;

	list_for_each_entry(d, &sio.devices, node)
		if (sio_dev_find(d->id) && sio_dev_iommu(d) == SIO_IOMMU_OFF)
			return false;
	return true;
}

static int check(struct sio_request *rq, const struct sio_req_alloc *m, u64 *ret_size)
{
	u64 unit = m->kind == SIO_ALLOC_HUGE ? HUGE_PAGE : PAGE_SIZE, all, left;
	int error = sio_check(rq, "kind", m->kind, 0, SIO_ALLOC_CONTIGUOUS);

	if (!error)
		error = sio_check(rq, "access", m->access, 0, SIO_BOTH);
	if (error)
		return error;
	if (m->align & (m->align - 1))
		return sio_fail(rq, -EINVAL, "align %#llx, 0 or a power of 2 is right", m->align);
	if (m->size == 0)
		return sio_fail(rq, -EINVAL, "size 0");
	if (m->near_device && !sio_dev_find(m->near_device))
		return sio_fail(rq, -ENODEV, "no device %#llx is here", m->near_device);
	sio_pool_sizes(&all, &left);
	all += (u64)totalram_pages() << PAGE_SHIFT;
	if (m->size > all)
		return sio_fail(rq, -ENOSPC, "%llu bytes wanted, this host has %llu in all",
				m->size, all);
	*ret_size = round_up(m->size, unit);
	return 0;
}

static bool find_room(struct sio_mem *m, const struct sio_req_alloc *q, u64 size)
{
	u64 align = max(q->align, q->kind == SIO_ALLOC_HUGE ? HUGE_PAGE : PAGE_SIZE);

	m->pieces = 1;
	m->o.access = SIO_BOTH;
	if (q->kind == SIO_ALLOC_HUGE && from_pool(m, size, align, q->highest))
		return true;
	if (q->kind != SIO_ALLOC_POOL && from_kernel(m, size, align, q->highest, true))
		return true;
	if (q->kind == 0 && pieces_will_do() && from_kernel(m, size, align, q->highest, false))
		return true;
	return q->kind <= SIO_ALLOC_POOL && from_pool(m, size, align, q->highest);
}

int sio_op_alloc(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_alloc *q = msg;
	struct sio_evt_alloc *evt = answer;
	u64 size, total, left;
	struct sio_mem *m;
	int error = check(rq, q, &size);

	if (error)
		return error;
	m = sio_obj_new(rq, SIO_KIND_MEM, 0);
	if (IS_ERR(m))
		return PTR_ERR(m);
	if (!find_room(m, q, size)) {
		sio_pool_sizes(&total, &left);
		error = sio_fail(
			rq, -ENOSPC,
			"%llu bytes wanted; the pool has %llu, %llu free; the kernel gives %llu in one piece, of %llu %llu are free",
			size, total, left, (u64)PAGE_SIZE << MAX_ORDER_SIZE, sio_mem_limit(),
			sio_mem_limit() - min(sio_mem_limit(), sio_mem_used()));
	}
	evt->id = m->o.id;
	evt->size = m->o.length;
	evt->address = m->o.address;
	return sio_obj_made(rq, &m->o, error);
}

/* ---- files ---- */

static vm_fault_t mem_fault(struct vm_fault *vmf)
{
	struct sio_mem *m = vmf->vma->vm_private_data;

	if (vmf->pgoff >= m->o.length >> PAGE_SHIFT)
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

	if (!sio_mmap_fits(vma, m->o.length))
		return -EINVAL;
	if (m->dmabuf)
		return dma_buf_mmap(m->dmabuf, vma, vma->vm_pgoff + m->first);
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	if (!m->pages || m->pages->pinned)
		vm_flags_set(vma, VM_PFNMAP);
	vma->vm_private_data = m;
	vma->vm_ops = &mem_vm_ops;
	return 0;
}

static const struct file_operations mem_fops = {
	.owner = THIS_MODULE,
	.mmap = mem_mmap,
	.release = sio_file_release,
	.llseek = noop_llseek,
};

const struct sio_kind sio_kind_mem = {
	.name = "memory",
	.size = sizeof(struct sio_mem),
	.free = mem_free,
	.fops = &mem_fops,
};
