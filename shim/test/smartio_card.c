// SPDX-License-Identifier: GPL-2.0-only
/*
 * A card for tests: a driver that exports 64 KiB of memory as a dma-buf, as drivers of graphics
 * cards do: only to importers that need no struct pages and can be told to release it. No card is
 * there, its memory is a piece of the host's. The ioctls of /dev/smartio_card: GIVE makes a
 * descriptor, TAKE_BACK takes the memory back from all that have it attached, PINS tells how often
 * it is pinned.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

enum { GIVE = 0x5300, TAKE_BACK, PINS };

#define ORDER 4
#define ATTRS DMA_ATTR_SKIP_CPU_SYNC /* a function may have it mapped twice */
#define BYTES (PAGE_SIZE << ORDER)

MODULE_IMPORT_NS(DMA_BUF);

static struct page *memory;
static struct dma_buf *newest; /* until its end; guarded by @lock */
static DEFINE_MUTEX(lock);
static atomic_t pins;

static int card_attach(struct dma_buf *buf, struct dma_buf_attachment *a)
{
	return a->peer2peer && dma_buf_attachment_is_dynamic(a) ? 0 : -EOPNOTSUPP;
}

static int card_pin(struct dma_buf_attachment *a)
{
	dma_resv_assert_held(a->dmabuf->resv);
	if (atomic_inc_return(&pins) == 1) /* as cards do that pin into the host's memory */
		dma_buf_move_notify(a->dmabuf);
	return 0;
}

static void card_unpin(struct dma_buf_attachment *a)
{
	dma_resv_assert_held(a->dmabuf->resv);
	atomic_dec(&pins);
}

static struct sg_table *card_map(struct dma_buf_attachment *a, enum dma_data_direction dir)
{
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	int error = sgt ? sg_alloc_table(sgt, 1, GFP_KERNEL) : -ENOMEM;

	if (error)
		goto free;
	sg_set_page(sgt->sgl, memory, BYTES, 0);
	error = dma_map_sgtable(a->dev, sgt, dir, ATTRS);
	if (!error)
		return sgt;
	sg_free_table(sgt);
free:
	kfree(sgt);
	return ERR_PTR(error);
}

static void card_unmap(struct dma_buf_attachment *a, struct sg_table *sgt,
		       enum dma_data_direction dir)
{
	dma_unmap_sgtable(a->dev, sgt, dir, ATTRS);
	sg_free_table(sgt);
	kfree(sgt);
}

static int card_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff + vma_pages(vma) > 1 << ORDER)
		return -EINVAL;
	return remap_pfn_range(vma, vma->vm_start, page_to_pfn(memory) + vma->vm_pgoff,
			       vma->vm_end - vma->vm_start, vma->vm_page_prot);
}

static void card_release(struct dma_buf *buf)
{
	mutex_lock(&lock);
	if (newest == buf)
		newest = NULL;
	mutex_unlock(&lock);
}

static const struct dma_buf_ops card_ops = {
	.attach = card_attach,
	.pin = card_pin,
	.unpin = card_unpin,
	.map_dma_buf = card_map,
	.unmap_dma_buf = card_unmap,
	.mmap = card_mmap,
	.release = card_release,
};

static long give(void)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;
	int fd;

	info.ops = &card_ops;
	info.size = BYTES;
	info.flags = O_RDWR;
	info.priv = memory;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	newest = buf;
	fd = dma_buf_fd(buf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(buf);
	return fd;
}

static long take(void)
{
	if (!newest)
		return -ENOENT;
	dma_resv_lock(newest->resv, NULL);
	dma_buf_move_notify(newest);
	dma_resv_unlock(newest->resv);
	return 0;
}

static long card_ioctl(struct file *f, unsigned int what, unsigned long arg)
{
	long rc = -EINVAL;

	mutex_lock(&lock);
	if (what == GIVE)
		rc = give();
	else if (what == TAKE_BACK)
		rc = take();
	else if (what == PINS)
		rc = atomic_read(&pins);
	mutex_unlock(&lock);
	return rc;
}

static const struct file_operations card_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = card_ioctl,
};

static struct miscdevice card = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "smartio_card",
	.fops = &card_fops,
	.mode = 0600,
};

static int __init card_init(void)
{
	int error;

	memory = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP, ORDER);
	if (!memory)
		return -ENOMEM;
	error = misc_register(&card);
	if (error)
		__free_pages(memory, ORDER);
	return error;
}

static void __exit card_exit(void)
{
	misc_deregister(&card);
	__free_pages(memory, ORDER);
}

module_init(card_init);
module_exit(card_exit);
MODULE_DESCRIPTION("SmartIO's tests: a driver that exports memory as cards do");
MODULE_LICENSE("GPL");
