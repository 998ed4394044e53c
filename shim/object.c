// SPDX-License-Identifier: GPL-2.0-only
/*
 * Things that have ids: made, found, listed, shown, ended. Each that has files has an inode of its
 * own, so that its mappings can be taken away without touching others'. The private file system of
 * these is there while a file is, and keeps the module loaded until the last bit of it is gone.
 */
#include <linux/file.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "smartio.h"

#define SMARTIO_FS_MAGIC 0x736d696f

static const struct sio_kind elsewhere = {.name = "object"}; /* of hosts with adapters */

static const struct sio_kind *kind_of(u32 kind)
{
	static const struct sio_kind *const kinds[] = {
		[SIO_KIND_OWNER] = &sio_kind_owner,   [SIO_KIND_MEM] = &sio_kind_mem,
		[SIO_KIND_DEVICE] = &sio_kind_opened, [SIO_KIND_BAR] = &sio_kind_bar,
		[SIO_KIND_DMAMAP] = &sio_kind_dmamap, [SIO_KIND_IRQ] = &sio_kind_irq,
		[SIO_KIND_VECTOR] = &sio_kind_vector,
	};

	return kind < ARRAY_SIZE(kinds) && kinds[kind] ? kinds[kind] : &elsewhere;
}

/* ---- files ---- */

static int init_fs_context(struct fs_context *fc)
{
	return init_pseudo(fc, SMARTIO_FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type fs_type = {
	.name = "smartio",
	.owner = THIS_MODULE,
	.init_fs_context = init_fs_context,
	.kill_sb = kill_anon_super,
};
static struct vfsmount *fs_mount;
static int fs_count;

/* The first file of @o gives it its inode. */
static int inode_get(struct sio_obj *o)
{
	int error;

	if (o->n_files++)
		return 0;
	error = simple_pin_fs(&fs_type, &fs_mount, &fs_count);
	if (error)
		goto no_file;
	o->inode = alloc_anon_inode(fs_mount->mnt_sb);
	if (IS_ERR(o->inode)) {
		error = PTR_ERR(o->inode);
		goto release_fs;
	}
	i_size_write(o->inode, o->length);
	o->inode->i_ino = o->id;
	return 0;

release_fs:
	o->inode = NULL;
	simple_release_fs(&fs_mount, &fs_count);
no_file:
	o->n_files--;
	return error;
}

static void inode_put(struct sio_obj *o)
{
	if (--o->n_files)
		return;
	iput(o->inode);
	o->inode = NULL;
	simple_release_fs(&fs_mount, &fs_count);
}

static struct file *new_file(struct sio_obj *o, int flags)
{
	int error = inode_get(o);
	struct file *f;
	char name[32];

	if (error)
		return ERR_PTR(error);
	snprintf(name, sizeof(name), "[smartio %s]", kind_of(o->kind)->name);
	f = ERR_PTR(-ENOENT);
	if (!try_module_get(THIS_MODULE))
		goto put_inode;
	ihold(o->inode);
	f = alloc_file_pseudo(o->inode, fs_mount, name, flags, kind_of(o->kind)->fops);
	if (IS_ERR(f))
		goto drop_inode;
	f->private_data = o;
	sio_obj_get(o);
	return f;

drop_inode:
	iput(o->inode);
	module_put(THIS_MODULE);
put_inode:
	inode_put(o);
	return f;
}

int sio_file_release(struct inode *inode, struct file *f)
{
	struct sio_obj *o = f->private_data;

	mutex_lock(&sio.lock);
	if (o->kind == SIO_KIND_OWNER && o->state == SIO_STATE_LIVE) {
		sio_owner_end((struct sio_owner *)o);
		sio_owners_bury();
	}
	inode_put(o);
	mutex_unlock(&sio.lock);
	sio_obj_put(o);
	return 0;
}

bool sio_mmap_fits(struct vm_area_struct *vma, u64 length)
{
	u64 n = length >> PAGE_SHIFT;

	return vma->vm_flags & VM_MAYSHARE && vma->vm_pgoff <= n &&
	       vma_pages(vma) <= n - vma->vm_pgoff;
}

static int answer_file(struct sio_request *rq, struct sio_obj *o, int flags)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *f;

	if (fd < 0)
		return sio_fail(rq, fd, "no descriptor for the answer");
	f = new_file(o, flags);
	if (IS_ERR(f)) {
		put_unused_fd(fd);
		return sio_fail(rq, PTR_ERR(f), "no file for the answer");
	}
	rq->out_fd[rq->n_out] = fd;
	rq->out[rq->n_out++] = f;
	return 0;
}

/* An interrupt's descriptors are one to wait for it, and one to trigger it. */
static int answer_files(struct sio_request *rq, struct sio_obj *o)
{
	int error;

	if (o->kind != SIO_KIND_IRQ)
		return answer_file(rq, o, o->access & SIO_ACCESS_WRITE ? O_RDWR : O_RDONLY);
	error = answer_file(rq, o, O_RDWR); /* who takes several may put some back */
	return error ? error : answer_file(rq, o, O_WRONLY);
}

/* ---- lives ---- */

void *sio_obj_new(struct sio_request *rq, u32 kind, u64 id)
{
	struct sio_obj *o = kzalloc(kind_of(kind)->size, GFP_KERNEL_ACCOUNT);
	int error;

	if (!o)
		return ERR_PTR(-ENOMEM);
	kref_init(&o->kref);
	INIT_LIST_HEAD(&o->of_owner);
	INIT_LIST_HEAD(&o->of_dev);
	INIT_LIST_HEAD(&o->falling);
	o->kind = kind;
	o->state = SIO_STATE_LIVE;
	o->id = id ? id : ++sio.last_id;
	error = xa_err(xa_store(&sio.objects, o->id, o, GFP_KERNEL));
	if (error) {
		kfree(o);
		return ERR_PTR(error);
	}
	o->owner = rq->owner;
	if (kind != SIO_KIND_OWNER)
		list_add_tail(&o->of_owner, &o->owner->objects);
	return o;
}

int sio_obj_made(struct sio_request *rq, struct sio_obj *o, int error)
{
	if (!error && kind_of(o->kind)->fops)
		error = answer_files(rq, o);
	if (error)
		sio_obj_end(o);
	return error;
}

void sio_obj_tie(struct sio_obj *o, struct sio_dev *d, struct sio_obj *target)
{
	o->dev = d;
	list_add_tail(&o->of_dev, &d->objects);
	sio_obj_ref(d->opened);
	o->target = target;
	if (target)
		sio_obj_ref(target);
}

void sio_obj_move(struct sio_obj *o, struct sio_owner *w)
{
	list_move_tail(&o->of_owner, &w->objects);
	list_del_init(&o->falling);
	o->owner = w;
	o->state = SIO_STATE_LIVE;
}

static void destroy(struct kref *kref)
{
	struct sio_obj *o = container_of(kref, struct sio_obj, kref);

	if (kind_of(o->kind)->free)
		kind_of(o->kind)->free(o);
	kfree(o);
}

void sio_obj_get(struct sio_obj *o)
{
	kref_get(&o->kref);
}

void sio_obj_put(struct sio_obj *o)
{
	kref_put(&o->kref, destroy);
}

/*
 * What nothing refers to falls; a DMA mapping waits for the word that its device let go of it, unless
 * it has been cut because the device is gone.
 */
static void falls(struct sio_obj *o)
{
	if (o->refs || o->state != SIO_STATE_QUARANTINED || !list_empty(&o->falling))
		return;
	if (o->kind == SIO_KIND_DMAMAP && ((struct sio_dmamap *)o)->mapped)
		return;
	list_add_tail(&o->falling, &sio.falling);
}

void sio_obj_ref(struct sio_obj *o)
{
	o->refs++;
}

void sio_obj_unref(struct sio_obj *o)
{
	o->refs--;
	falls(o);
}

void sio_obj_quarantine(struct sio_obj *o)
{
	o->state = SIO_STATE_QUARANTINED;
	o->ended_at = sio.epoch;
	falls(o);
}

void sio_obj_end(struct sio_obj *o)
{
	if (o->kind == SIO_KIND_MEM)
		sio.freed.bytes += o->length;
	sio.freed.mems += o->kind == SIO_KIND_MEM;
	sio.freed.dmamaps += o->kind == SIO_KIND_DMAMAP;
	if (kind_of(o->kind)->end)
		kind_of(o->kind)->end(o);
	if (!list_empty(&o->of_dev))
		sio_obj_unref(o->dev->opened);
	if (o->target)
		sio_obj_unref(o->target);
	o->gone = true;
	xa_erase(&sio.objects, o->id);
	list_del_init(&o->falling);
	list_del_init(&o->of_dev);
	list_del_init(&o->of_owner);
	o->owner = NULL;
	o->target = NULL;
	sio_obj_put(o);
}

void sio_fall(void)
{
	struct sio_obj *o;

	while ((o = list_first_entry_or_null(&sio.falling, struct sio_obj, falling)))
		sio_obj_end(o);
}

/* ---- finding ---- */

void *sio_obj_find(struct sio_request *rq, u32 kind, u64 id)
{
	struct sio_obj *o = xa_load(&sio.objects, id);

	if (o && o->kind == kind)
		return o;
	return ERR_PTR(sio_fail(rq, -ENOENT, "no %s %#llx", kind_of(kind)->name, id));
}

void *sio_obj_find_live(struct sio_request *rq, u32 kind, u64 id)
{
	struct sio_obj *o = sio_obj_find(rq, kind, id);

	if (IS_ERR(o) || o->state == SIO_STATE_LIVE)
		return o;
	return ERR_PTR(sio_fail(rq, -EPERM, "owner %#llx of %s %#llx has ended", o->owner->o.id,
				kind_of(kind)->name, id));
}

/* ---- operations on all kinds ---- */

/* All that end something have its id as their only field. */
int sio_op_end(struct sio_request *rq, const void *msg, void *answer)
{
	static const u32 kinds[SIO_OP_COUNT] = {
		[SIO_OP_FREE] = SIO_KIND_MEM,	   [SIO_OP_DEVICE_CLOSE] = SIO_KIND_DEVICE,
		[SIO_OP_BAR_CLOSE] = SIO_KIND_BAR, [SIO_OP_DMAUNMAP] = SIO_KIND_DMAMAP,
		[SIO_OP_IRQ_FREE] = SIO_KIND_IRQ,
	};
	const struct sio_req_free *m = msg;
	struct sio_obj *o = sio_obj_find(rq, kinds[m->h.op], m->id);

	if (IS_ERR(o))
		return PTR_ERR(o);
	if (m->h.owner && o->owner != rq->owner)
		return sio_fail(rq, -EPERM, "%#llx belongs to owner %#llx, not to %#llx", m->id,
				o->owner->o.id, m->h.owner);
	if (o->kind == SIO_KIND_DMAMAP && o->state != SIO_STATE_LIVE)
		return sio_fail(rq, -EPERM, "DMA mapping %#llx is in quarantine: SETTLE or RESET",
				m->id);
	if (o->refs)
		return sio_fail(rq, -EBUSY, "%u grants, mappings, views or vectors of it are left",
				o->refs);
	if (o->kind == SIO_KIND_MEM && sio_pool_remove((struct sio_mem *)o))
		return sio_fail(rq, -EBUSY, "memory that ALLOC took from the pool is in use");
	sio_obj_end(o);
	return 0;
}

int sio_op_list(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_list *m = msg;
	struct sio_evt_list *evt = answer;
	unsigned long id = m->after;
	struct sio_list_entry *e;
	struct sio_obj *o;

	if (m->kind < SIO_KIND_OWNER || m->kind > SIO_KIND_VECTOR ||
	    (m->kind > SIO_KIND_IRQ && m->kind < SIO_KIND_WATCH))
		return sio_fail(rq, -EINVAL, "kind %u, %d to %d and %d to %d are right", m->kind,
				SIO_KIND_OWNER, SIO_KIND_IRQ, SIO_KIND_WATCH, SIO_KIND_VECTOR);
	while (!evt->more && (o = xa_find_after(&sio.objects, &id, ULONG_MAX, XA_PRESENT))) {
		if (o->kind != m->kind)
			continue;
		evt->more = evt->count == SIO_LIST_MAX;
		if (evt->more)
			break;
		e = &evt->entry[evt->count++];
		e->id = o->id;
		e->owner = o->owner->o.id;
		e->kind = o->kind;
		e->state = o->state;
		e->refs = o->refs;
		e->address = o->address;
		e->length = o->length;
		e->device = o->dev ? o->dev->id : 0;
		e->cookie = o->target ? o->target->id : o->kind == SIO_KIND_BAR ? o->access : 0;
		if (o->kind == SIO_KIND_OWNER) {
			e->owner = ((struct sio_owner *)o)->parent;
			e->cookie = ((struct sio_owner *)o)->user_cookie;
		}
	}
	return 0;
}

int sio_op_identify(struct sio_request *rq, const void *msg, void *answer)
{
	struct sio_evt_identify *evt = answer;
	struct sio_obj *o;

	if (!rq->file || rq->file->f_op->release != sio_file_release)
		return sio_fail(rq, -EBADF, "no descriptor of a resource came along");
	o = rq->file->private_data;
	evt->id = o->id;
	evt->kind = o->kind;
	evt->state = o->gone ? 0 : o->state;
	evt->owner = o->owner ? o->owner->o.id : 0;
	if (o->kind == SIO_KIND_OWNER)
		evt->user_cookie = ((struct sio_owner *)o)->user_cookie;
	return 0;
}

int sio_op_reopen(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_reopen *m = msg;
	struct sio_evt_reopen *evt = answer;
	struct sio_obj *o;

	if (m->kind == SIO_KIND_OWNER || !kind_of(m->kind)->fops)
		return sio_fail(rq, -EINVAL,
				"kind %u, %d (memory), %d (BAR view) or %d (interrupt) is right",
				m->kind, SIO_KIND_MEM, SIO_KIND_BAR, SIO_KIND_IRQ);
	o = sio_obj_find_live(rq, m->kind, m->id);
	if (IS_ERR(o))
		return PTR_ERR(o);
	evt->length = o->length;
	return answer_files(rq, o);
}
