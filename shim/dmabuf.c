// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of other drivers for a function, as dma-bufs: attached, and pinned, so that its driver
 * leaves it where it is. A driver may take it back all the same, because its card is removed. Then
 * the functions that had it stop sending, since their addresses may soon be another's, and what was
 * granted of it is cut.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>

#include "adapter.h"

#define MOVE_SECONDS 10 /* for what a card copies when its memory is pinned elsewhere */

/* In the place of the grants whose attachments could not be ended: their drivers notify it. */
static struct sio_dma lost;

static void look(struct work_struct *work);
static DECLARE_WORK(moving, look);

/* With the buffer's lock held, which is taken with ours held: so no more can be done here. */
static void move_notify(struct dma_buf_attachment *attach)
{
	struct sio_dma *m = attach->importer_priv;

	WRITE_ONCE(m->moved, true);
	schedule_work(&moving);
}

/* Memory of a card has no struct pages, and needs none here. */
static const struct dma_buf_attach_ops attach_ops = {
	.allow_peer2peer = true,
	.move_notify = move_notify,
};

/* With the buffer's lock. What its driver still copies there is waited for, as nobody else does. */
static int map(struct sio_dma *m)
{
	int error = dma_buf_pin(m->attach);
	long left;

	if (error)
		return error;
	m->attached = dma_buf_map_attachment(m->attach, m->dir);
	error = PTR_ERR_OR_ZERO(m->attached);
	if (error)
		goto unpin;
	/*
	 * To be pinned it may have been moved, of which we were notified: this is where it is now.
	 */
	WRITE_ONCE(m->moved, false);
	left = dma_resv_wait_timeout(m->attach->dmabuf->resv, DMA_RESV_USAGE_KERNEL, false,
				     MOVE_SECONDS * HZ);
	if (left > 0)
		return 0;
	error = left ? left : -ETIMEDOUT;
	dma_buf_unmap_attachment(m->attach, m->attached, m->dir);
unpin:
	m->attached = NULL;
	dma_buf_unpin(m->attach);
	return error;
}

int sio_dmabuf_map(struct sio_request *rq, struct sio_dma *m, const struct sio_mem *mem)
{
	struct dma_buf *buf = mem->dmabuf;
	int error;

	if (mem->moved)
		return sio_fail(rq, -ENODEV, "the driver of memory %#llx has taken it back",
				mem->o.id);
	m->attach = dma_buf_dynamic_attach(buf, m->dev, &attach_ops, m);
	error = PTR_ERR_OR_ZERO(m->attach);
	if (!error) {
		dma_resv_lock(buf->resv, NULL);
		error = map(m);
		dma_resv_unlock(buf->resv);
		if (error)
			dma_buf_detach(buf, m->attach);
	}
	if (error)
		return sio_fail(rq, error,
				"the driver of memory %#llx (%s) lets %s not reach it: %pe",
				mem->o.id, buf->exp_name, dev_name(m->dev), ERR_PTR(error));
	get_dma_buf(buf);
	return 0;
}

void sio_dmabuf_unmap(struct sio_dma *m)
{
	struct dma_buf *buf = m->attach->dmabuf;

	dma_resv_lock(buf->resv, NULL);
	dma_buf_unmap_attachment(m->attach, m->attached, m->dir);
	if (!m->unpinned)
		dma_buf_unpin(m->attach);
	dma_resv_unlock(buf->resv);
	dma_buf_detach(buf, m->attach);
	m->attached = NULL;
	dma_buf_put(buf);
}

void sio_dmabuf_unpin(struct sio_dma *m)
{
	struct dma_buf *buf = m->attach->dmabuf;

	if (m->unpinned)
		return;
	dma_resv_lock(buf->resv, NULL);
	dma_buf_unpin(m->attach);
	dma_resv_unlock(buf->resv);
	m->unpinned = true;
}

void sio_dmabuf_lose(struct sio_dma *m)
{
	struct dma_buf *buf = m->attach->dmabuf;

	__module_get(THIS_MODULE); /* for move_notify() */
	dma_resv_lock(buf->resv, NULL);
	m->attach->importer_priv = &lost;
	dma_resv_unlock(buf->resv);
	m->attached = NULL;
}

/* ---- taken back ---- */

static struct sio_dma *dma_of(struct sio_obj *o)
{
	if (o->kind == SIO_KIND_DMAMAP)
		return &((struct sio_dmamap *)o)->dma;
	return o->kind == SIO_KIND_GRANT ? &((struct sio_grant *)o)->dma : NULL;
}

static void take_back(struct sio_obj *o)
{
	struct sio_mem *mem = (struct sio_mem *)o->target;

	if (!mem) /* a grant of which the address alone is left */
		return;
	if (o->kind == SIO_KIND_DMAMAP) {
		o->dev->silenced = true;
		pci_clear_master(o->dev->pdev);
	}
	if (mem->moved)
		return;
	mem->moved = true;
	pr_warn("smartio: the driver of memory %#llx (%s) has taken it back: nobody reaches it, and functions that did send nothing until their next reset\n",
		mem->o.id, mem->dmabuf->exp_name);
}

static void look(struct work_struct *work)
{
	struct sio_obj *o;
	unsigned long id;

	mutex_lock(&sio.lock);
	xa_for_each(&sio.objects, id, o) {
		struct sio_dma *m = dma_of(o);

		if (m && m->attached && READ_ONCE(m->moved))
			take_back(o);
	}
	xa_for_each(&sio.objects, id, o)
		if (o->kind == SIO_KIND_MEM && ((struct sio_mem *)o)->moved) {
			sio_dmamaps_cut(o);
			sio_grants_cut(o);
		}
	mutex_unlock(&sio.lock);
}

void sio_dmabufs_exit(void)
{
	cancel_work_sync(&moving);
}
