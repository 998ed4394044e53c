// SPDX-License-Identifier: GPL-2.0-only
/* Memory that existed before: a program's own pages, which are pinned; dma-bufs; all RAM. */
#include <linux/anon_inodes.h>
#include <linux/dma-buf.h>
#include <linux/ioport.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>

#include "smartio.h"

MODULE_IMPORT_NS(DMA_BUF);

/* ---- pinning ---- */

static int pin_release(struct inode *inode, struct file *f)
{
	sio_pages_free(f->private_data);
	return 0;
}

/* It keeps pages pinned and can do no more; IMPORT shares them. */
static const struct file_operations pin_fops = {
	.owner = THIS_MODULE,
	.release = pin_release,
};

/* What the calling process has at @address. */
static int pin(unsigned long address, u64 n, struct sio_pages *p)
{
	int got;

	while (p->n < n) {
		got = pin_user_pages_fast(address + (p->n << PAGE_SHIFT),
					  min_t(u64, n - p->n, 1 << 16), FOLL_WRITE | FOLL_LONGTERM,
					  p->page + p->n);
		if (got <= 0)
			return got ? got : -EFAULT;
		p->n += got;
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

long sio_pin(struct sio_owner *w, const void __user *arg)
{
	struct mm_struct *mm = current->mm;
	struct sio_ioc_pin req;
	struct sio_pages *p = NULL;
	u64 n, end;
	int rc;

	if (copy_from_user(&req, arg, sizeof(req)))
		return -EFAULT;
	n = req.length >> PAGE_SHIFT;
	if (req.reserved || req.access != SIO_BOTH || !n || n > INT_MAX ||
	    !PAGE_ALIGNED(req.address | req.length) ||
	    check_add_overflow(req.address, req.length, &end) || end > TASK_SIZE_MAX)
		return -EINVAL;
	if (READ_ONCE(w->o.state) != SIO_STATE_LIVE)
		return -EPERM;
	if (atomic64_add_return(n, &mm->pinned_vm) <= rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT ||
	    capable(CAP_IPC_LOCK))
		p = sio_pages_new(n);
	if (!p) {
		atomic64_sub(n, &mm->pinned_vm);
		return -ENOMEM;
	}
	p->pinned = true;
	p->charged = n;
	p->mm = mm;
	mmgrab(mm);
	rc = pin(req.address, n, p);
	if (!rc)
		rc = anon_inode_getfd("[smartio pages]", &pin_fops, p, O_RDONLY | O_CLOEXEC);
	if (rc < 0)
		sio_pages_free(p);
	return rc;
}

/* ---- IMPORT ---- */

static int import_pages(struct sio_request *rq, const struct sio_req_import *q, struct sio_mem *m)
{
	struct sio_pages *pages = rq->file->private_data;
	u64 all, length;
	int error;

	if (rq->file->f_op != &pin_fops)
		return sio_fail(rq, -EBADF, "the descriptor is none of pinned pages");
	all = pages->n << PAGE_SHIFT;
	length = q->length ? q->length : all - q->offset;
	error = sio_check_range(rq, "what is pinned", q->offset, length, all);
	if (error)
		return error;
	m->pins = get_file(rq->file);
	sio_mem_set_pages(m, pages, PHYS_PFN(q->offset), PHYS_PFN(length));
	return q->h.flags & SIO_IMPORT_POOL ? sio_pool_add(m) : 0;
}

static int import_dmabuf(struct sio_request *rq, const struct sio_req_import *q, struct sio_mem *m)
{
	struct dma_buf *buf = dma_buf_get(rq->fd);

	if (IS_ERR(buf))
		return sio_fail(rq, -EBADF, "the descriptor is none of a dma-buf");
	m->dmabuf = buf;
	if (!(buf->file->f_mode & FMODE_WRITE)) /* who maps us could write */
		return sio_fail(rq, -EACCES, "the dma-buf's descriptor is for reading alone");
	m->first = PHYS_PFN(q->offset);
	m->o.length = q->length ? q->length : buf->size - q->offset;
	return sio_check_range(rq, "the dma-buf", q->offset, m->o.length, buf->size);
}

static int check_import(struct sio_request *rq, const struct sio_req_import *q)
{
	/* Of memfds smartiod makes pinned pages. */
	if (q->kind != SIO_IMPORT_DMABUF && q->kind != SIO_IMPORT_USER_PAGES)
		return sio_fail(rq, -EINVAL, "kind %u, %d (dma-buf) or %d (pinned pages) is right",
				q->kind, SIO_IMPORT_DMABUF, SIO_IMPORT_USER_PAGES);
	if (!rq->file)
		return sio_fail(rq, -EINVAL, "no descriptor came along, 1 is right");
	if (q->access != SIO_BOTH || q->address)
		return sio_fail(rq, -EINVAL, "access %#x and address %#llx, 3 and 0 are right",
				q->access, q->address);
	if (q->h.flags & SIO_IMPORT_POOL && (q->kind == SIO_IMPORT_DMABUF || q->h.owner))
		return sio_fail(rq, -EINVAL, "a pool is made of memfds, and for owner 0 alone");
	return 0;
}

/* ---- all RAM ---- */

static int find_end(struct resource *ram, void *ret)
{
	*(u64 *)ret = max_t(u64, *(u64 *)ret, ram->end + 1);
	return 0;
}

/* For a device whose driver is a stock one of this host: what it will map, nobody knows before. */
static int import_ram(struct sio_request *rq, const struct sio_req_import *q, struct sio_mem *m)
{
	u64 end = 0;

	if (q->h.flags & SIO_IMPORT_POOL || q->kind || q->offset || q->length || q->address ||
	    q->access != SIO_BOTH || rq->file)
		return sio_fail(rq, -EINVAL,
				"all RAM: access 3 is right, and nothing else but the flag");
	walk_iomem_res_desc(IORES_DESC_NONE, IORESOURCE_SYSTEM_RAM | IORESOURCE_BUSY, 0, U64_MAX,
			    &end, find_end);
	m->all_ram = true;
	m->pieces = 1;
	m->o.length = PAGE_ALIGN(end);
	return 0;
}

static int import_given(struct sio_request *rq, const struct sio_req_import *q, struct sio_mem *m)
{
	int error = check_import(rq, q);

	if (error)
		return error;
	return q->kind == SIO_IMPORT_USER_PAGES ? import_pages(rq, q, m) : import_dmabuf(rq, q, m);
}

int sio_op_import(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_import *q = msg;
	bool ram = q->h.flags & SIO_IMPORT_ALL_RAM;
	struct sio_mem *m = (struct sio_mem *)rq->obj;
	struct sio_evt_import *evt = answer;
	int error = ram ? import_ram(rq, q, m) : import_given(rq, q, m);

	m->o.access = SIO_BOTH;
	evt->size = m->o.length;
	evt->address = m->o.address;
	evt->pieces = m->pieces;
	rq->unseen = q->h.flags & (SIO_IMPORT_POOL | SIO_IMPORT_ALL_RAM);
	return error;
}
