// SPDX-License-Identifier: GPL-2.0-only
/* Memory that was there before: memfds, hugetlb memfds, a program's own pages, dma-bufs. */
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/sched/mm.h>

#include "smartio.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS(DMA_BUF);
#else
MODULE_IMPORT_NS("DMA_BUF");
#endif

/* ---- pages ---- */

/* Pin what the calling process has at @address. */
static struct sio_pages *pin(unsigned long address, u64 n)
{
	struct sio_pages *p = sio_pages_new(n);
	int got = -EINTR;

	if (!p)
		return ERR_PTR(-ENOMEM);
	p->pinned = true;
	while (p->n < n && !fatal_signal_pending(current)) {
		got = pin_user_pages_fast(address + (p->n << PAGE_SHIFT),
					  min_t(u64, n - p->n, 1 << 16), FOLL_WRITE | FOLL_LONGTERM,
					  p->page + p->n);
		if (got <= 0)
			break;
		p->n += got;
	}
	if (p->n == n)
		return p;
	sio_pages_put(p);
	return ERR_PTR(got < 0 ? got : -EFAULT);
}

/* By a mapping of the caller's own that nobody sees for long: no other way holds for all kernels.
 */
static struct sio_pages *pin_file(struct file *f, u64 offset, u64 n)
{
	unsigned long at =
		vm_mmap(f, 0, n << PAGE_SHIFT, PROT_READ | PROT_WRITE, MAP_SHARED, offset);
	struct sio_pages *p;

	if (IS_ERR_VALUE(at))
		return ERR_PTR(at);
	p = pin(at, n);
	vm_munmap(at, n << PAGE_SHIFT);
	return p;
}

/* The file of pins is a memory that nobody can map or name; IMPORT shares its pages. */
static const struct file_operations pin_fops = {
	.owner = THIS_MODULE,
	.release = sio_file_release,
	.llseek = noop_llseek,
};

static int pin_fd(struct sio_pages *pages)
{
	struct sio_mem *m = sio_mem_of_pages(pages, 0, pages->n);
	struct file *f;
	int fd;

	if (!m) {
		sio_pages_put(pages);
		return -ENOMEM;
	}
	kref_init(&m->o.kref);
	m->o.gone = true;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		goto put_mem;
	mutex_lock(&sio.lock);
	f = sio_file_new(&m->o, "[smartio pages]", &pin_fops, O_RDONLY, m->size);
	mutex_unlock(&sio.lock);
	if (IS_ERR(f)) {
		put_unused_fd(fd);
		fd = PTR_ERR(f);
		goto put_mem;
	}
	fd_install(fd, f);
put_mem:
	sio_obj_put(&m->o);
	return fd;
}

long sio_pin(struct sio_owner *w, const struct sio_ioc_pin *req)
{
	u64 n = req->length >> PAGE_SHIFT, end;
	struct mm_struct *mm = current->mm;
	struct sio_pages *pages;

	if (req->reserved || req->access != SIO_BOTH || !n || n > INT_MAX ||
	    !PAGE_ALIGNED(req->address) || !PAGE_ALIGNED(req->length) ||
	    check_add_overflow(req->address, req->length, &end) || end > TASK_SIZE_MAX)
		return -EINVAL;
	if (READ_ONCE(w->ended))
		return -EPERM;
	if (atomic64_add_return(n, &mm->pinned_vm) > rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT &&
	    !capable(CAP_IPC_LOCK)) {
		atomic64_sub(n, &mm->pinned_vm);
		return -ENOMEM;
	}
	pages = pin(req->address, n);
	if (IS_ERR(pages)) {
		atomic64_sub(n, &mm->pinned_vm);
		return PTR_ERR(pages);
	}
	mmgrab(mm);
	pages->mm = mm;
	return pin_fd(pages);
}

/* ---- IMPORT ---- */

static int check(struct sio_request *rq, const struct sio_req_import *m)
{
	u32 magic;

	if (m->kind < SIO_IMPORT_MEMFD || m->kind > SIO_IMPORT_USER_PAGES)
		return sio_fail(rq, -EINVAL, "kind %u, %d to %d are right", m->kind,
				SIO_IMPORT_MEMFD, SIO_IMPORT_USER_PAGES);
	if (!rq->file)
		return sio_fail(rq, -EINVAL, "no descriptor came along, 1 is right");
	if (m->access != SIO_BOTH || m->address || !PAGE_ALIGNED(m->offset | m->length))
		return sio_fail(
			rq, -EINVAL,
			"access %#x, address %#llx, range %#llx + %#llx; access %u, address 0 and whole pages are right",
			m->access, m->address, m->offset, m->length, SIO_BOTH);
	if (m->h.flags & SIO_IMPORT_POOL && (m->kind > SIO_IMPORT_HUGETLB || m->h.owner))
		return sio_fail(rq, -EINVAL, "a pool is made of memfds, and for owner 0 alone");
	magic = file_inode(rq->file)->i_sb->s_magic;
	if (!S_ISREG(file_inode(rq->file)->i_mode))
		magic = 0;
	if ((m->kind == SIO_IMPORT_MEMFD && magic != TMPFS_MAGIC) ||
	    (m->kind == SIO_IMPORT_HUGETLB && magic != HUGETLBFS_MAGIC) ||
	    (m->kind == SIO_IMPORT_USER_PAGES && rq->file->f_op != &pin_fops))
		return sio_fail(rq, -EBADF, "the descriptor is not of kind %u", m->kind);
	return 0;
}

/* The part of @size bytes that is wanted, in pages. */
static int range(struct sio_request *rq, const struct sio_req_import *m, u64 size, u64 *ret_n)
{
	u64 length = m->length;

	if (!length && m->offset < size)
		length = size - m->offset;
	if (!length || !PAGE_ALIGNED(length) || m->offset > size || length > size - m->offset ||
	    length >> PAGE_SHIFT > INT_MAX)
		return sio_fail(rq, -EINVAL, "range %#llx + %#llx of %#llx bytes", m->offset,
				m->length, size);
	*ret_n = length >> PAGE_SHIFT;
	return 0;
}

static int import_pages(struct sio_request *rq, const struct sio_req_import *m)
{
	bool own = m->kind == SIO_IMPORT_USER_PAGES;
	u64 n, first = m->offset >> PAGE_SHIFT;
	struct sio_pages *pages;
	struct sio_mem *from;
	int error = range(rq, m, i_size_read(file_inode(rq->file)), &n);

	if (error)
		return error;
	if (own) {
		from = rq->file->private_data;
		pages = from->pages;
		kref_get(&pages->kref);
	} else {
		first = 0;
		pages = pin_file(rq->file, m->offset, n);
		if (IS_ERR(pages))
			return sio_fail(rq, PTR_ERR(pages),
					"the pages cannot be held in place (%ld)", PTR_ERR(pages));
	}
	rq->mem = sio_mem_of_pages(pages, first, n);
	if (!rq->mem) {
		sio_pages_put(pages);
		return -ENOMEM;
	}
	return 0;
}

static int import_dmabuf(struct sio_request *rq, const struct sio_req_import *m)
{
	struct dma_buf *buf = dma_buf_get(rq->fd);
	struct sio_mem *mem;
	u64 n;
	int error;

	if (IS_ERR(buf))
		return sio_fail(rq, -EBADF, "the descriptor is no dma-buf");
	error = range(rq, m, buf->size, &n);
	if (error)
		goto put_buf;
	error = -ENOMEM;
	mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	if (!mem)
		goto put_buf;
	mem->o.kind = SIO_KIND_MEM;
	mem->dmabuf = buf;
	mem->first = m->offset >> PAGE_SHIFT;
	mem->size = n << PAGE_SHIFT;
	mem->access = SIO_BOTH;
	rq->mem = mem;
	return 0;

put_buf:
	dma_buf_put(buf);
	return error;
}

int sio_prepare_import(struct sio_request *rq, const void *msg)
{
	const struct sio_req_import *m = msg;
	int error = check(rq, m);

	if (error)
		return error;
	return m->kind == SIO_IMPORT_DMABUF ? import_dmabuf(rq, m) : import_pages(rq, m);
}

int sio_op_import(struct sio_request *rq, const void *msg)
{
	const struct sio_req_import *m = msg;
	struct sio_mem *mem = rq->mem;
	struct sio_evt_import *evt;
	int error = sio_obj_init(rq, &mem->o, SIO_KIND_MEM, 0);

	if (error)
		return error;
	rq->mem = NULL;
	evt = sio_answer(rq, sizeof(*evt));
	evt->id = mem->o.id;
	evt->size = mem->size;
	evt->address = mem->phys;
	evt->pieces = mem->pieces;
	if (m->h.flags & SIO_IMPORT_POOL) {
		error = sio_pool_add_pages(mem);
		mem->makes_pool = !error;
	} else {
		error = sio_answer_file(rq, sio_mem_file(mem));
	}
	if (error)
		sio_obj_drop(&mem->o);
	return error;
}

/* ---- dma-bufs ---- */

void sio_dmabuf_put(struct sio_mem *m)
{
	dma_buf_put(m->dmabuf);
}

int sio_dmabuf_mmap(struct sio_mem *m, struct vm_area_struct *vma)
{
	return dma_buf_mmap(m->dmabuf, vma, vma->vm_pgoff + m->first);
}

/* Where the range lies for the device, if it is one range there. */
static bool one_range(struct sg_table *sgt, u64 skip, u64 length, u64 *ret)
{
	struct scatterlist *sg;
	u64 found = 0;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		u64 at = sg_dma_address(sg), len = sg_dma_len(sg);

		if (skip >= len) {
			skip -= len;
			continue;
		}
		at += skip;
		len -= skip;
		skip = 0;
		if (!found)
			*ret = at;
		else if (at != *ret + found)
			return false;
		found += len;
		if (found >= length)
			return true;
	}
	return false;
}

int sio_dmabuf_map(struct sio_request *rq, struct sio_dmamap *map, struct sio_mem *m)
{
	u64 skip = (m->first << PAGE_SHIFT) + map->offset;

	map->attach = dma_buf_attach(m->dmabuf, &map->dev->pdev->dev);
	if (IS_ERR(map->attach))
		return sio_fail(rq, PTR_ERR(map->attach),
				"the dma-buf's driver refuses this device");
	map->attached = dma_buf_map_attachment_unlocked(map->attach, map->dir);
	if (IS_ERR(map->attached)) {
		dma_buf_detach(m->dmabuf, map->attach);
		return sio_fail(rq, PTR_ERR(map->attached),
				"the dma-buf's driver cannot map it for this device");
	}
	if (one_range(map->attached, skip, map->length, &map->iova))
		return 0;
	sio_dmabuf_unmap(map);
	return sio_fail(rq, -EOPNOTSUPP,
			"the dma-buf is not one range for this device: no IOMMU makes it one");
}

void sio_dmabuf_unmap(struct sio_dmamap *map)
{
	struct sio_mem *m = (struct sio_mem *)map->target;

	dma_buf_unmap_attachment_unlocked(map->attach, map->attached, map->dir);
	dma_buf_detach(m->dmabuf, map->attach);
}
