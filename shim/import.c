// SPDX-License-Identifier: GPL-2.0-only
/* Memory that was there before: a program's own pages, which it pins, and dma-bufs. */
#include <linux/anon_inodes.h>
#include <linux/dma-buf.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>

#include "smartio.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS(DMA_BUF);
#else
MODULE_IMPORT_NS("DMA_BUF");
#endif

/* ---- pinning ---- */

static int pin_release(struct inode *inode, struct file *f)
{
	sio_pages_put(f->private_data);
	return 0;
}

/* It keeps pages pinned and can do no more; IMPORT shares them. */
static const struct file_operations pin_fops = {
	.owner = THIS_MODULE,
	.release = pin_release,
	.llseek = noop_llseek,
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
	struct sio_pages *p;
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
	if (atomic64_add_return(n, &mm->pinned_vm) > rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT &&
	    !capable(CAP_IPC_LOCK)) {
		atomic64_sub(n, &mm->pinned_vm);
		return -ENOMEM;
	}
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
		sio_pages_put(p);
	return rc;
}

/* ---- IMPORT ---- */

/* The part of @size bytes that is wanted, in pages. */
static int range(struct sio_request *rq, const struct sio_req_import *q, u64 size, u64 *ret_n)
{
	u64 length = q->length;

	if (!length && q->offset < size)
		length = size - q->offset;
	*ret_n = length >> PAGE_SHIFT;
	return sio_check_range(rq, "what came along", q->offset, length, size);
}

static int import_pages(struct sio_request *rq, const struct sio_req_import *q, struct sio_mem *m)
{
	struct sio_pages *pages = rq->file->private_data;
	u64 n;
	int error;

	if (rq->file->f_op != &pin_fops)
		return sio_fail(rq, -EBADF, "the descriptor is none of SIO_IOC_PIN");
	error = range(rq, q, pages->n << PAGE_SHIFT, &n);
	if (error)
		return error;
	kref_get(&pages->kref);
	sio_mem_set_pages(m, pages, q->offset >> PAGE_SHIFT, n);
	return q->h.flags & SIO_IMPORT_POOL ? sio_pool_add(m) : 0;
}

static int import_dmabuf(struct sio_request *rq, const struct sio_req_import *q, struct sio_mem *m)
{
	struct dma_buf *buf = dma_buf_get(rq->fd);
	int error;
	u64 n;

	if (IS_ERR(buf))
		return sio_fail(rq, -EBADF, "the descriptor is no dma-buf");
	m->dmabuf = buf;
	m->first = q->offset >> PAGE_SHIFT;
	error = range(rq, q, buf->size, &n);
	m->o.length = n << PAGE_SHIFT;
	return error;
}

int sio_op_import(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_import *q = msg;
	bool pool = q->h.flags & SIO_IMPORT_POOL;
	struct sio_evt_import *evt = answer;
	struct sio_mem *m;
	int error = sio_check(rq, "kind", q->kind, SIO_IMPORT_DMABUF, SIO_IMPORT_USER_PAGES);

	if (!error)
		error = sio_check(rq, "access", q->access, SIO_BOTH, SIO_BOTH);
	if (error)
		return error;
	if (!rq->file || q->address || (pool && (q->kind == SIO_IMPORT_DMABUF || q->h.owner)))
		return sio_fail(rq, -EINVAL,
				"1 descriptor, address 0, and owner 0 of a pool are right");
	m = sio_obj_new(rq, SIO_KIND_MEM, 0);
	if (IS_ERR(m))
		return PTR_ERR(m);
	m->o.access = SIO_BOTH;
	error = q->kind == SIO_IMPORT_DMABUF ? import_dmabuf(rq, q, m) : import_pages(rq, q, m);
	evt->id = m->o.id;
	evt->size = m->o.length;
	evt->address = m->o.address;
	evt->pieces = m->pieces;
	return error || !pool ? sio_obj_made(rq, &m->o, error) : 0;
}
