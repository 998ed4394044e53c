// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for segments. Memory of the kernel is made of single pages, each with its own reference,
 * so that a page that another driver has pinned (RDMA, io_uring) survives its segment. Pools and
 * imported pages are mapped by number; nobody can pin those. Pools are memory in long runs that the
 * kernel's allocator cannot give: reserved at boot (pool=SIZE@ADDRESS), or hugetlb pages that the
 * daemon imported.
 */
#include <linux/bitmap.h>
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>

#include "adapter.h"

#define HUGE_PAGE (2ULL << 20)
#define MAX_RUN (4ULL << 20) /* the kernel's longest, in every one that we know */

static unsigned long memory_limit;
module_param(memory_limit, ulong, 0644);
MODULE_PARM_DESC(memory_limit, "bytes that ALLOC may take from the kernel (0: half of the RAM)");

static u64 memory_used; /* guarded by sio.lock */

/* ---- pages ---- */

struct sio_pages *sio_pages_new(u64 n)
{
	struct sio_pages *p;

	if (n > INT_MAX / sizeof(*p->page)) /* more than the kernel gives a list room for */
		return NULL;
	return kvzalloc(struct_size(p, page, n), GFP_KERNEL_ACCOUNT);
}

void sio_pages_free(struct sio_pages *p)
{
	if (p->pinned)
		unpin_user_pages_dirty_lock(p->page, p->n, true);
	for (u64 i = 0; i < p->n && !p->pinned; i++)
		__free_page(p->page[i]);
	if (p->mm) {
		atomic64_sub(p->charged, &p->mm->pinned_vm);
		mmdrop(p->mm);
	}
	kvfree(p);
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

/* @n pages in huge runs, as many as can be had, and single ones. */
static bool add_pieces(struct sio_pages *p, u64 n, gfp_t gfp)
{
	u64 most = PHYS_PFN(HUGE_PAGE);

	while (p->n < n && !fatal_signal_pending(current)) {
		u64 run = min(n - p->n, most);
		gfp_t hard = run == 1 ? __GFP_RETRY_MAYFAIL : __GFP_NORETRY;

		if (add_run(p, order_base_2(run), run, gfp | hard))
			continue;
		if (run == 1)
			break;
		most = 1;
	}
	return p->n == n;
}

/* @order: of the one run that it is to be; 0: in pieces. */
static struct sio_pages *alloc_below(u64 n, unsigned int order, u64 highest)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	struct sio_pages *p = sio_pages_new(n);

	if (!p)
		return NULL;
	if (highest != SIO_PORT_ANY)
		gfp |= GFP_DMA32;
	if (order ? add_run(p, order, n, gfp | __GFP_RETRY_MAYFAIL) : add_pieces(p, n, gfp))
		return p;
	sio_pages_free(p);
	return NULL;
}

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

/* ---- pools: first fit, by pages ---- */

#define MAX_POOLS 8

struct sio_pool {
	struct list_head node;
	u64 phys, n, used; /* n, used: pages */
	unsigned long *taken;
	struct resource *held; /* reserved at boot */
	struct page *page;     /* the kernel's, until we go */
	bool window;	       /* what peers reach: it is taken from first */
	bool led_to;	       /* a bridge has it now */
	struct sio_mem *from;  /* imported; it stays while something is used, or as long as we */
};

static char *pool[MAX_POOLS];
static int n_pool;
module_param_array(pool, charp, &n_pool, 0444);
MODULE_PARM_DESC(pool, "SIZE@ADDRESS, memory kept from the kernel (memmap=SIZE$ADDRESS)");

static LIST_HEAD(pools); /* guarded by sio.lock */

static void free_all(struct list_head *list)
{
	struct sio_pool *p, *tmp;

	list_for_each_entry_safe(p, tmp, list, node) {
		if (p->held)
			release_mem_region(p->phys, p->n << PAGE_SHIFT);
		if (p->page)
			__free_pages(p->page, ilog2(p->n));
		bitmap_free(p->taken);
		kfree(p);
	}
}

static struct sio_pool *new_pool(struct list_head *list, u64 phys, u64 n)
{
	struct sio_pool *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return NULL;
	p->phys = phys;
	p->n = n;
	p->taken = bitmap_zalloc(n, GFP_KERNEL);
	if (!p->taken) {
		kfree(p);
		return NULL;
	}
	list_add_tail(&p->node, list);
	return p;
}

static int add_reserved(const char *text)
{
	struct sio_pool *p;
	u64 size, phys = 0;
	char *end;

	size = memparse(text, &end);
	if (*end == '@')
		phys = memparse(end + 1, &end);
	if (*end || !size || !phys || !PAGE_ALIGNED(size | phys) || phys + size < phys) {
		pr_err("smartio: pool=%s: SIZE@ADDRESS in whole pages is right\n", text);
		return -EINVAL;
	}
	p = new_pool(&pools, phys, PHYS_PFN(size));
	if (!p)
		return -ENOMEM;
	p->held = request_mem_region(phys, size, "smartio pool");
	if (p->held)
		return 0;
	pr_err("smartio: pool=%s is in use: boot with memmap=%lluK$%#llx\n", text, size >> 10,
	       phys);
	return -EBUSY;
}

int sio_pool_init(void)
{
	int error = 0;

	for (int i = 0; i < n_pool && !error; i++)
		error = add_reserved(pool[i]);
	return error;
}

void sio_pool_exit(void)
{
	free_all(&pools);
}

/* Each contiguous run of @m becomes a pool. */
int sio_pool_add(struct sio_mem *m)
{
	u64 n = PHYS_PFN(m->o.length), start = 0;
	struct sio_pool *p;
	LIST_HEAD(fresh);

	for (u64 i = 1; i <= n; i++) {
		if (i < n && sio_mem_pfn(m, i) == sio_mem_pfn(m, i - 1) + 1)
			continue;
		p = new_pool(&fresh, PFN_PHYS(sio_mem_pfn(m, start)), i - start);
		if (!p) {
			free_all(&fresh);
			return -ENOMEM;
		}
		p->from = m;
		start = i;
	}
	list_splice_tail(&fresh, &pools);
	return 0;
}

int sio_pool_remove(struct sio_request *rq, struct sio_mem *m)
{
	struct sio_pool *p, *tmp;
	LIST_HEAD(gone);
	u64 used = 0;

	list_for_each_entry(p, &pools, node)
		used += p->from == m ? p->used : 0;
	if (used)
		return sio_fail(rq, -EBUSY, "%llu bytes that ALLOC took from the pool are in use",
				used << PAGE_SHIFT);
	list_for_each_entry_safe(p, tmp, &pools, node)
		if (p->from == m)
			list_move(&p->node, &gone);
	free_all(&gone);
	return 0;
}

/* The first fit; *ret: pages from its start. */
static bool take(struct sio_pool *p, u64 n, u64 align, u64 highest, u64 *ret)
{
	u64 base = PHYS_PFN(p->phys), end = p->n, at;

	if (highest != SIO_PORT_ANY)
		end = clamp_t(s64, PHYS_PFN(highest + 1) - base, 0, end);
	if (n > end)
		return false;
	at = bitmap_find_next_zero_area_off(p->taken, end, 0, n, PHYS_PFN(align) - 1, base);
	if (at >= end)
		return false;
	bitmap_set(p->taken, at, n);
	p->used += n;
	*ret = at;
	return true;
}

static void pool_free(struct sio_mem *m)
{
	struct sio_pool *p = m->pool;

	bitmap_clear(p->taken, PHYS_PFN(m->o.address - p->phys), PHYS_PFN(m->o.length));
	p->used -= PHYS_PFN(m->o.length);
}

static bool set_zero(u64 phys, u64 size)
{
	void *zero = memremap(phys, size, MEMREMAP_WB);

	if (!zero)
		return false;
	memset(zero, 0, size);
	memunmap(zero);
	return true;
}

/* @window: of what peers reach alone. */
static bool pool_alloc(struct sio_mem *m, u64 size, u64 align, u64 highest, bool window)
{
	struct sio_pool *p;
	u64 at = 0;

	list_for_each_entry(p, &pools, node)
		if ((!window || p->window) && take(p, PHYS_PFN(size), align, highest, &at)) {
			m->pool = p;
			break;
		}
	if (!m->pool)
		return false;
	m->o.address = m->pool->phys + (at << PAGE_SHIFT);
	m->o.length = size;
	m->pieces = 1;
	if (set_zero(m->o.address, size))
		return true;
	pool_free(m);
	m->pool = NULL;
	return false;
}

/* ---- what peers reach through one window ---- */

/* A power of 2 of the kernel's, aligned to itself. */
static struct sio_pool *kernel_pool(u64 most)
{
	unsigned int order = ilog2(PHYS_PFN(min(most, MAX_RUN)));
	struct page *page =
		alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL, order);
	struct sio_pool *p = page ? new_pool(&pools, page_to_phys(page), 1ULL << order) : NULL;

	if (p)
		p->page = page;
	else if (page)
		__free_pages(page, order);
	return p;
}

static struct sio_pool *window_pool(u64 most)
{
	struct sio_pool *p;

	list_for_each_entry(p, &pools, node)
		if (p->window)
			return p;
	list_for_each_entry(p, &pools, node)
		if (p->held && p->n <= PHYS_PFN(most))
			return p;
	return kernel_pool(most);
}

static int lead_to(struct sio_pool *p, struct smartio_bridge_memory *m)
{
	u64 own = PHYS_PFN(m->own);

	if (p->led_to)
		return -EBUSY;
	if (p->n > PHYS_PFN(m->most))
		return -EINVAL;
	/*
	 * Its beginning is the bridge's. The rest may be in use already; if not, what is left there
	 * of another use of the RAM is not for peers to read.
	 */
	if (!p->window && find_next_bit(p->taken, own, 0) < own)
		return -EBUSY;
	if (!set_zero(p->phys, bitmap_empty(p->taken, p->n) ? p->n << PAGE_SHIFT : m->own))
		return -ENOMEM;
	bitmap_set(p->taken, 0, own);
	p->window = p->led_to = true;
	m->base = p->phys;
	m->size = p->n << PAGE_SHIFT;
	return 0;
}

int smartio_bridge_memory_get(struct smartio_bridge_memory *m)
{
	struct sio_pool *p;
	int error = -ENOMEM;

	if (m->most <= m->own)
		return -EINVAL;
	mutex_lock(&sio.lock);
	p = window_pool(m->most);
	if (p)
		error = lead_to(p, m);
	mutex_unlock(&sio.lock);
	return error;
}
EXPORT_SYMBOL_GPL(smartio_bridge_memory_get);

void smartio_bridge_memory_put(void)
{
	struct sio_pool *p;

	mutex_lock(&sio.lock);
	list_for_each_entry(p, &pools, node)
		p->led_to = false;
	mutex_unlock(&sio.lock);
}
EXPORT_SYMBOL_GPL(smartio_bridge_memory_put);

/* ---- memory objects ---- */

static void mem_free(struct sio_obj *o)
{
	struct sio_mem *m = (struct sio_mem *)o;

	if (m->dmabuf)
		dma_buf_put(m->dmabuf);
	sio_aperture_free(m);
	if (m->pool)
		pool_free(m);
	if (m->pins)
		fput(m->pins);
	else if (m->pages)
		sio_pages_free(m->pages);
	memory_used -= m->charged;
	kfree(m->group);
}

/* Bytes that ALLOC may still take from the kernel. */
static u64 kernel_free(void)
{
	u64 limit = READ_ONCE(memory_limit);

	if (!limit)
		limit = (u64)totalram_pages() << (PAGE_SHIFT - 1);
	return limit > memory_used ? limit - memory_used : 0;
}

/* In one run, which is aligned to its size; or, if that needs no alignment, in pieces. */
static bool from_kernel(struct sio_mem *m, u64 size, u64 align, u64 highest, bool one)
{
	u64 run = max(size, align);
	struct sio_pages *p;

	/* Below 4 GiB is the only bound that the kernel can keep. */
	if ((one ? run > MAX_RUN : align > PAGE_SIZE) || highest < DMA_BIT_MASK(32) ||
	    size > kernel_free())
		return false;
	p = alloc_below(PHYS_PFN(size), one ? order_base_2(PHYS_PFN(run)) : 0, highest);
	if (!p)
		return false;
	m->charged = size;
	memory_used += size;
	sio_mem_set_pages(m, p, 0, p->n);
	return true;
}

/* ---- ALLOC ---- */

/* Memory in several pieces is one range for every device that is bound. */
static bool pieces_will_do(void)
{
	struct sio_dev *d;

	list_for_each_entry(d, &sio.devices, node)
		if (sio_dev_find(d->id) && sio_iommu_of(&d->pdev->dev) == SIO_IOMMU_OFF)
			return false;
	return true;
}

static bool find_room(struct sio_mem *m, const struct sio_req_alloc *q)
{
	u64 unit = q->kind == SIO_ALLOC_HUGE ? HUGE_PAGE : PAGE_SIZE;
	u64 size = round_up(q->size, unit), align = max(q->align, unit);

	if (q->kind != SIO_ALLOC_HUGE && pool_alloc(m, size, align, q->highest, true))
		return true;
	if (q->kind == SIO_ALLOC_HUGE && pool_alloc(m, size, align, q->highest, false))
		return true;
	if (q->kind != SIO_ALLOC_POOL && from_kernel(m, size, align, q->highest, true))
		return true;
	if (q->kind == 0 && pieces_will_do() && from_kernel(m, size, align, q->highest, false))
		return true;
	return q->kind <= SIO_ALLOC_POOL && pool_alloc(m, size, align, q->highest, false);
}

/* Which bound was met, by the numbers of this moment. */
static int no_room(struct sio_request *rq, const struct sio_req_alloc *q)
{
	u64 from_kernel = kernel_free(), from_pools = 0, ended = 0;
	u32 reason = SIO_OUT_OF_RAM;
	const struct sio_pool *p;
	struct sio_obj *o;
	unsigned long id;
	const char *bound = "";

	list_for_each_entry(p, &pools, node)
		from_pools += (p->n - p->used) << PAGE_SHIFT;
	xa_for_each(&sio.objects, id, o)
		if (o->kind == SIO_KIND_MEM && o->state == SIO_STATE_QUARANTINED)
			ended += ((struct sio_mem *)o)->charged;
	if (q->size <= from_kernel && q->kind != SIO_ALLOC_POOL) {
		if (q->highest < DMA_BIT_MASK(32))
			bound = "; the kernel has no lower bound than 4 GiB";
		else if (max(q->size, q->align) > MAX_RUN)
			bound = "; the kernel's longest piece is 4 MiB";
		else
			bound = "; the kernel finds none in one piece";
	} else if (q->kind != SIO_ALLOC_POOL && q->size - from_kernel <= ended) {
		reason = SIO_OUT_OF_QUARANTINE;
		bound = "; what is in quarantine would do";
	}
	return sio_fail_exhausted(
		rq, -ENOSPC, reason,
		"%llu bytes wanted, %llu are free under memory_limit, %llu in pools%s", q->size,
		from_kernel, from_pools, bound);
}

static int check_alloc(struct sio_request *rq, const struct sio_req_alloc *q)
{
	if (q->kind > SIO_ALLOC_CONTIGUOUS)
		return sio_fail(rq, -EINVAL, "kind %u, 0 to %d are right", q->kind,
				SIO_ALLOC_CONTIGUOUS);
	if (q->access & ~SIO_BOTH)
		return sio_fail(rq, -EINVAL, "access %#x, 0 to 3 are right", q->access);
	if (q->align & (q->align - 1))
		return sio_fail(rq, -EINVAL, "align %#llx, 0 or a power of 2 is right", q->align);
	if (q->size == 0)
		return sio_fail(rq, -EINVAL, "size 0, at least 1 is right");
	if (q->near_device && !sio_dev_find(q->near_device))
		return sio_fail(rq, -ENODEV, "no device %#llx is here", q->near_device);
	return 0;
}

int sio_op_alloc(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_alloc *q = msg;
	struct sio_mem *m = (struct sio_mem *)rq->obj;
	struct sio_evt_alloc *evt = answer;
	int error = check_alloc(rq, q);

	if (error)
		return error;
	if (q->size > S64_MAX || !find_room(m, q))
		return no_room(rq, q);
	m->o.access = SIO_BOTH;
	m->user_cookie = q->user_cookie;
	evt->size = m->o.length;
	evt->address = m->o.address;
	return 0;
}

int sio_mem_make(struct sio_request *rq, struct sio_mem *m, u64 size, bool one)
{
	struct sio_req_alloc q = {.size = size, .highest = SIO_PORT_ANY};

	if (one)
		q.kind = size > MAX_RUN ? SIO_ALLOC_POOL : SIO_ALLOC_CONTIGUOUS;
	if (size > S64_MAX || !find_room(m, &q))
		return no_room(rq, &q);
	m->o.access = SIO_BOTH;
	return 0;
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

static int mem_mmap(struct sio_obj *o, struct vm_area_struct *vma)
{
	struct sio_mem *m = (struct sio_mem *)o;

	if (m->dmabuf)
		return dma_buf_mmap(m->dmabuf, vma, vma->vm_pgoff + m->first);
	if (!m->pages || m->pages->pinned)
		vm_flags_set(vma, VM_PFNMAP);
	vma->vm_ops = &mem_vm_ops;
	return 0;
}

const struct sio_kind sio_kind_mem = {
	.name = "memory",
	.size = sizeof(struct sio_mem),
	.end = sio_group_end,
	.leave = sio_group_leave,
	.free = mem_free,
	.mmap = mem_mmap,
	.fops = &sio_mmap_fops,
};
