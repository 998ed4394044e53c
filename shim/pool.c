// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pools: memory in long runs that the kernel cannot give, reserved at boot (pool=SIZE@ADDRESS), or
 * hugetlb pages that the daemon imported. First fit, by pages.
 */
#include <linux/bitmap.h>
#include <linux/highmem.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/moduleparam.h>
#include <linux/vmalloc.h>

#include "smartio.h"

#define MAX_POOLS 8

struct sio_pool {
	struct list_head node;
	u64 phys, n, used; /* n, used: pages */
	unsigned long *taken;
	void *data;	       /* reserved at boot; NULL: struct pages */
	struct resource *held; /* with that */
	struct sio_mem *from;  /* imported; what is in use refers to it */
};

static char *pool[MAX_POOLS];
static int n_pool;
module_param_array(pool, charp, &n_pool, 0444);
MODULE_PARM_DESC(pool, "SIZE@ADDRESS, memory kept from the kernel (memmap=SIZE$ADDRESS)");

static LIST_HEAD(pools);
static DEFINE_MUTEX(pool_lock);

static void free_pool(struct sio_pool *p)
{
	if (p->data)
		memunmap(p->data);
	if (p->held)
		release_mem_region(p->phys, p->n << PAGE_SHIFT);
	bitmap_free(p->taken);
	kfree(p);
}

static struct sio_pool *new_pool(u64 phys, u64 n)
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
	if (region_intersects(phys, size, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) !=
	    REGION_DISJOINT) {
		pr_err("smartio: pool=%s is memory that the kernel uses: boot with memmap=%lluK$%#llx\n",
		       text, size >> 10, phys);
		return -EBUSY;
	}
	p = new_pool(phys, size >> PAGE_SHIFT);
	if (!p)
		return -ENOMEM;
	p->held = request_mem_region(phys, size, "smartio pool");
	if (p->held)
		p->data = memremap(phys, size, MEMREMAP_WB);
	if (!p->data) {
		pr_err("smartio: pool=%s is not free\n", text);
		free_pool(p);
		return -EBUSY;
	}
	list_add_tail(&p->node, &pools);
	return 0;
}

static void free_all(struct list_head *list)
{
	struct sio_pool *p, *tmp;

	list_for_each_entry_safe(p, tmp, list, node)
		free_pool(p);
}

int sio_pool_init(void)
{
	int error = 0;

	for (int i = 0; i < n_pool && !error; i++)
		error = add_reserved(pool[i]);
	if (error)
		free_all(&pools);
	return error;
}

void sio_pool_exit(void)
{
	free_all(&pools);
}

/* Each contiguous run of @m becomes a pool. */
int sio_pool_add(struct sio_mem *m)
{
	u64 n = m->o.length >> PAGE_SHIFT, start = 0;
	struct sio_pool *p;
	LIST_HEAD(fresh);

	for (u64 i = 1; i <= n; i++) {
		if (i < n && sio_mem_pfn(m, i) == sio_mem_pfn(m, i - 1) + 1)
			continue;
		p = new_pool(PFN_PHYS(sio_mem_pfn(m, start)), i - start);
		if (!p) {
			free_all(&fresh);
			return -ENOMEM;
		}
		p->from = m;
		list_add_tail(&p->node, &fresh);
		start = i;
	}
	mutex_lock(&pool_lock);
	list_splice_tail(&fresh, &pools);
	mutex_unlock(&pool_lock);
	return 0;
}

int sio_pool_remove(struct sio_mem *m)
{
	struct sio_pool *p, *tmp;
	LIST_HEAD(gone);
	bool busy = false;

	mutex_lock(&pool_lock);
	list_for_each_entry(p, &pools, node)
		busy |= p->from == m && p->used;
	list_for_each_entry_safe(p, tmp, &pools, node)
		if (!busy && p->from == m)
			list_move(&p->node, &gone);
	mutex_unlock(&pool_lock);
	free_all(&gone);
	return busy ? -EBUSY : 0;
}

/* The first fit; *ret: pages from its start. */
static bool take(struct sio_pool *p, u64 n, u64 align, u64 highest, u64 *ret)
{
	u64 base = PHYS_PFN(p->phys), end = p->n, at;

	if (highest != SIO_PORT_ANY)
		end = clamp_t(s64, ((highest + 1) >> PAGE_SHIFT) - base, 0, end);
	if (n > end)
		return false;
	at = bitmap_find_next_zero_area_off(p->taken, end, 0, n, (align >> PAGE_SHIFT) - 1, base);
	if (at >= end)
		return false;
	bitmap_set(p->taken, at, n);
	p->used += n;
	if (p->from)
		sio_obj_get(&p->from->o);
	*ret = at;
	return true;
}

static void clear(struct sio_pool *p, u64 at, u64 n)
{
	if (p->data) {
		memset(p->data + (at << PAGE_SHIFT), 0, n << PAGE_SHIFT);
		return;
	}
	for (u64 i = at; i < at + n; i++) {
		clear_highpage(pfn_to_page(PHYS_PFN(p->phys) + i));
		cond_resched();
	}
}

struct sio_pool *sio_pool_alloc(u64 size, u64 align, u64 highest, u64 *ret_phys)
{
	struct sio_pool *p, *found = NULL;
	u64 at = 0;

	mutex_lock(&pool_lock);
	list_for_each_entry(p, &pools, node)
		if (!found && take(p, size >> PAGE_SHIFT, align, highest, &at))
			found = p;
	mutex_unlock(&pool_lock);
	if (!found)
		return NULL;
	clear(found, at, size >> PAGE_SHIFT); /* it is ours: no lock */
	*ret_phys = found->phys + (at << PAGE_SHIFT);
	return found;
}

void sio_pool_free(struct sio_pool *p, u64 phys, u64 size)
{
	struct sio_mem *from;

	mutex_lock(&pool_lock);
	bitmap_clear(p->taken, (phys - p->phys) >> PAGE_SHIFT, size >> PAGE_SHIFT);
	p->used -= size >> PAGE_SHIFT;
	from = p->from;
	mutex_unlock(&pool_lock);
	if (from)
		sio_obj_put(&from->o);
}

void sio_pool_sizes(u64 *ret_total, u64 *ret_free)
{
	struct sio_pool *p;

	*ret_total = 0;
	*ret_free = 0;
	mutex_lock(&pool_lock);
	list_for_each_entry(p, &pools, node) {
		*ret_total += p->n << PAGE_SHIFT;
		*ret_free += (p->n - p->used) << PAGE_SHIFT;
	}
	mutex_unlock(&pool_lock);
}
