// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of programs in the kernel's own address space, for other modules. A use keeps the file
 * open that was mapped, and so the memory behind it; it counts in no object's refs, so that
 * everything ends as if the program alone had it.
 */
#include <linux/file.h>
#include <linux/io.h>
#include <linux/vmalloc.h>

#include "adapter.h"
#include "use.h"

struct sio_use {
	struct smartio_use u;
	struct list_head node;
	struct file *file;
	const struct sio_obj *of;
	void *mapped; /* by vmap() or memremap() */
	bool pages;   /* by the former */
	void (*lost)(void *arg);
	void *arg;
};

static LIST_HEAD(uses); /* of views */
static DEFINE_SPINLOCK(uses_lock);

void sio_uses_lose(const struct sio_obj *o)
{
	struct sio_use *s;

	spin_lock(&uses_lock);
	list_for_each_entry(s, &uses, node)
		if (s->of == o)
			s->lost(s->arg);
	spin_unlock(&uses_lock);
}

/* ---- mapping ---- */

static int map_ram(struct sio_use *s, u64 phys, u64 bytes)
{
	s->mapped = memremap(phys, bytes, MEMREMAP_WB);
	s->u.ram = s->mapped;
	return s->mapped ? 0 : -ENOMEM;
}

static int map_memory(struct sio_use *s, const struct sio_mem *m, u64 offset, u64 bytes)
{
	u64 first = PHYS_PFN(offset), n = PFN_UP(offset + bytes) - first;

	if (m->dmabuf)
		return -EINVAL;
	if (!m->pages)
		return map_ram(s, m->o.address + offset, bytes);
	s->mapped = vmap(&m->pages->page[m->first + first], n, VM_MAP, PAGE_KERNEL);
	s->pages = true;
	if (!s->mapped)
		return -ENOMEM;
	s->u.ram = s->mapped + offset_in_page(offset);
	return 0;
}

static int map_view(struct sio_use *s, const struct sio_view *v, u64 offset, u64 bytes)
{
	if (v->revoked || (v->o.dev && v->o.dev->resetting))
		return -ENODEV;
	if (v->ram)
		return map_ram(s, v->phys + offset, bytes);
	s->u.io = v->combined ? ioremap_wc(v->phys + offset, bytes)
			      : ioremap(v->phys + offset, bytes);
	return s->u.io ? 0 : -ENOMEM;
}

/* With sio.lock, so that nothing is taken away meanwhile. */
static int use(struct sio_use *s, struct sio_obj *o, u64 offset, u64 bytes)
{
	int error;

	if (o->state != SIO_STATE_LIVE)
		return -ENODEV;
	if (!bytes || offset > o->length || bytes > o->length - offset)
		return -EINVAL;
	if (o->kind == SIO_KIND_MEM)
		return map_memory(s, (struct sio_mem *)o, offset, bytes);
	if (o->kind != SIO_KIND_BAR && o->kind != SIO_KIND_MAP)
		return -EINVAL; /* the ring of a DMA channel */
	error = map_view(s, (struct sio_view *)o, offset, bytes);
	if (error)
		return error;
	s->of = o;
	spin_lock(&uses_lock);
	list_add(&s->node, &uses);
	spin_unlock(&uses_lock);
	return 0;
}

/* ---- what the program has ---- */

/* The file that is mapped at @address for all of @bytes, with a reference, and where in it. */
static struct file *find_file(unsigned long address, u64 bytes, u64 *ret_offset)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	struct file *f = ERR_PTR(-EFAULT);

	mmap_read_lock(mm);
	vma = find_vma(mm, address);
	if (vma && vma->vm_start <= address) {
		f = ERR_PTR(-EINVAL);
		/* What smartio.ko gives out is shared: who may write there has it mapped so. */
		if (vma->vm_file && vma->vm_file->f_op->mmap == sio_mmap &&
		    vma->vm_flags & VM_WRITE && bytes <= vma->vm_end - address)
			f = get_file(vma->vm_file);
		*ret_offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
		*ret_offset += address - vma->vm_start;
	}
	mmap_read_unlock(mm);
	return f;
}

struct smartio_use *smartio_use_get(unsigned long address, u64 bytes, void (*lost)(void *arg),
				    void *arg)
{
	struct sio_use *s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);
	u64 offset = 0;
	int error;

	if (!s)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&s->node);
	s->lost = lost;
	s->arg = arg;
	s->file = find_file(address, bytes, &offset);
	if (IS_ERR(s->file)) {
		error = PTR_ERR(s->file);
		kfree(s);
		return ERR_PTR(error);
	}
	mutex_lock(&sio.lock);
	error = use(s, s->file->private_data, offset, bytes);
	mutex_unlock(&sio.lock);
	if (!error)
		return &s->u;
	smartio_use_put(&s->u);
	return ERR_PTR(error);
}
EXPORT_SYMBOL_GPL(smartio_use_get);

void smartio_use_put(struct smartio_use *u)
{
	struct sio_use *s = container_of(u, struct sio_use, u);

	if (!u)
		return;
	spin_lock(&uses_lock);
	list_del(&s->node);
	spin_unlock(&uses_lock);
	if (u->io)
		iounmap(u->io);
	if (s->mapped && s->pages)
		vunmap(s->mapped);
	else if (s->mapped)
		memunmap(s->mapped);
	fput(s->file);
	kfree(s);
}
EXPORT_SYMBOL_GPL(smartio_use_put);
