// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects that have ids: creation, look-up, listing, end. Each object that has files has an inode
 * of its own, so that its mappings can be removed without affecting others'. The private file
 * system of these inodes is mounted while a file exists, and keeps the module loaded until the last
 * one is gone.
 */
#include <linux/file.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "adapter.h"

static const struct sio_kind elsewhere = {.name = "object"}; /* not served */

static const struct sio_kind *kind_of(u32 kind)
{
	static const struct sio_kind *const kinds[] = {
		[SIO_KIND_OWNER] = &sio_kind_owner,
		[SIO_KIND_MEM] = &sio_kind_mem,
		[SIO_KIND_BAR] = &sio_kind_bar,
		[SIO_KIND_DMAMAP] = &sio_kind_dmamap,
		[SIO_KIND_IRQ] = &sio_kind_irq,
		[SIO_KIND_VECTOR] = &sio_kind_vector,
		[SIO_KIND_GRANT] = &sio_kind_grant,
		[SIO_KIND_MAP] = &sio_kind_map,
		[SIO_KIND_REQUESTER] = &sio_kind_requester,
		[SIO_KIND_SHADOW] = &sio_kind_shadow,
		[SIO_KIND_DMA] = &sio_kind_channel,
		[SIO_KIND_DMA_RANGE] = &sio_kind_range,
	};

	return kind < ARRAY_SIZE(kinds) && kinds[kind] ? kinds[kind] : &elsewhere;
}

const char *sio_kind_name(u32 kind)
{
	return kind_of(kind)->name;
}

static void destroy(struct kref *kref)
{
	struct sio_obj *o = container_of(kref, struct sio_obj, kref);

	if (kind_of(o->kind)->free)
		kind_of(o->kind)->free(o);
	kfree(o);
}

/* ---- files ---- */

static int init_fs_context(struct fs_context *fc)
{
	return init_pseudo(fc, SIO_FS_MAGIC) ? 0 : -ENOMEM;
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
	int error = o->n_files ? 0 : simple_pin_fs(&fs_type, &fs_mount, &fs_count);
	struct inode *inode;

	if (error || o->n_files++)
		return error;
	inode = alloc_anon_inode(fs_mount->mnt_sb);
	if (IS_ERR(inode)) {
		o->n_files--;
		simple_release_fs(&fs_mount, &fs_count);
		return PTR_ERR(inode);
	}
	i_size_write(inode, o->length);
	inode->i_ino = o->id;
	o->inode = inode;
	return 0;
}

static void inode_put(struct sio_obj *o)
{
	if (--o->n_files)
		return;
	iput(o->inode);
	o->inode = NULL;
	simple_release_fs(&fs_mount, &fs_count);
}

int sio_answer_file(struct sio_request *rq, struct sio_obj *o, const struct file_operations *fops,
		    int flags)
{
	int fd = get_unused_fd_flags(O_CLOEXEC), error;
	struct file *f;
	char name[32];

	if (fd < 0)
		return fd;
	error = inode_get(o);
	if (error)
		goto put_fd;
	error = -ENOENT;
	if (!try_module_get(THIS_MODULE))
		goto put_inode;
	ihold(o->inode);
	snprintf(name, sizeof(name), "[smartio %s]", sio_kind_name(o->kind));
	f = alloc_file_pseudo(o->inode, fs_mount, name, flags, fops);
	if (IS_ERR(f))
		goto drop_inode;
	f->private_data = o;
	f->f_mode |= fops->read_iter ? FMODE_NOWAIT : 0;
	kref_get(&o->kref);
	rq->out_fd[rq->n_out] = fd;
	rq->out[rq->n_out++] = f;
	return 0;

drop_inode:
	error = PTR_ERR(f);
	iput(o->inode);
	module_put(THIS_MODULE);
put_inode:
	inode_put(o);
put_fd:
	put_unused_fd(fd);
	return error;
}

/* An interrupt's descriptors are one to wait for it, and one to trigger it. */
static int answer_files(struct sio_request *rq, struct sio_obj *o)
{
	const struct file_operations *fops = kind_of(o->kind)->fops;
	int error;

	if (o->kind == SIO_KIND_DMA)
		return sio_channel_files(rq, o);
	if (o->kind != SIO_KIND_IRQ)
		return sio_answer_file(rq, o, fops,
				       o->access & SIO_ACCESS_WRITE ? O_RDWR : O_RDONLY);
	error = sio_answer_file(rq, o, fops, O_RDWR); /* who takes several may put some back */
	return error ? error : sio_answer_file(rq, o, fops, O_WRONLY);
}

int sio_file_release(struct inode *inode, struct file *f)
{
	struct sio_obj *o = f->private_data;

	mutex_lock(&sio.lock);
	if (o->kind == SIO_KIND_OWNER && o->state == SIO_STATE_LIVE)
		sio_owner_end((struct sio_owner *)o);
	inode_put(o);
	kref_put(&o->kref, destroy);
	mutex_unlock(&sio.lock);
	return 0;
}

int sio_mmap(struct file *f, struct vm_area_struct *vma)
{
	struct sio_obj *o = f->private_data;
	u64 n = PHYS_PFN(o->length);

	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff > n ||
	    vma_pages(vma) > n - vma->vm_pgoff)
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = o;
	return kind_of(o->kind)->mmap(o, vma);
}

/* Of what can do nothing but be mapped. */
const struct file_operations sio_mmap_fops = {
	.owner = THIS_MODULE,
	.mmap = sio_mmap,
	.release = sio_file_release,
};

/* ---- lives ---- */

static void hangs_on(struct sio_obj *o, struct sio_owner *w)
{
	o->owner = w;
	w->o.refs++;
	list_move_tail(&o->of_owner, &w->objects);
}

void *sio_obj_new(struct sio_request *rq, u32 kind)
{
	struct sio_obj *o = kzalloc(kind_of(kind)->size, GFP_KERNEL_ACCOUNT);
	int error;

	if (!o)
		return ERR_PTR(-ENOMEM);
	kref_init(&o->kref);
	INIT_LIST_HEAD(&o->of_owner);
	INIT_LIST_HEAD(&o->of_dev);
	INIT_LIST_HEAD(&o->of_adapter);
	INIT_LIST_HEAD(&o->falling);
	o->kind = kind;
	o->state = SIO_STATE_LIVE;
	o->id = ++sio.last_id;
	error = xa_err(xa_store(&sio.objects, o->id, o, GFP_KERNEL));
	if (error) {
		kfree(o);
		return ERR_PTR(error);
	}
	if (kind != SIO_KIND_OWNER)
		hangs_on(o, rq->owner);
	return o;
}

int sio_obj_made(struct sio_request *rq, int error)
{
	struct sio_obj *o = rq->obj;

	if (!error && kind_of(o->kind)->fops && !rq->unseen)
		error = answer_files(rq, o);
	rq->a.words[sizeof(rq->a.h) / 8] = o->id; /* the first field of all that tell one */
	if (error)
		sio_obj_end(o);
	return error;
}

void sio_obj_tie(struct sio_obj *o, struct sio_dev *d, struct sio_obj *target)
{
	o->dev = d;
	if (d)
		list_add_tail(&o->of_dev, &d->objects);
	o->target = target;
	if (target)
		target->refs++;
}

void sio_obj_through(struct sio_obj *o, struct sio_obj *entry)
{
	o->through = entry;
	if (entry)
		entry->refs++;
}

/* A device, a peer or a driver may still use it. */
static bool in_use(const struct sio_obj *o)
{
	if (o->kept)
		return true;
	if (o->kind == SIO_KIND_GRANT)
		return !((struct sio_grant *)o)->cut;
	if (o->kind == SIO_KIND_SHADOW)
		return sio_shadow_in_use(o);
	return o->kind == SIO_KIND_DMAMAP && ((struct sio_dmamap *)o)->dma.mapped;
}

/*
 * What ended and nothing refers to falls; a DMA mapping waits for the word that its device released
 * it, unless it has been cut because the device is gone, and a grant for the peer's.
 */
void sio_obj_falls(struct sio_obj *o)
{
	if (!o->refs && o->state == SIO_STATE_QUARANTINED && list_empty(&o->falling) && !in_use(o))
		list_add_tail(&o->falling, &sio.falling);
}

void sio_obj_unref(struct sio_obj *o)
{
	o->refs--;
	sio_obj_falls(o);
}

void sio_obj_quarantine(struct sio_obj *o)
{
	o->state = SIO_STATE_QUARANTINED;
	sio_ranges_cut(o);
	o->ended_at = sio.epoch;
	if (kind_of(o->kind)->leave)
		kind_of(o->kind)->leave(o);
	sio_obj_falls(o);
}

/*
 * It has ended, but an access that the bridge has under way may still come: nobody's, it stays
 * until then, and with it what backs its target, whose end it does not hold up.
 */
static void linger(struct sio_obj *o)
{
	list_del_init(&o->falling);
	if (o->lingers)
		return;
	o->lingers = true;
	o->state = SIO_STATE_QUARANTINED;
	o->backing = o->target;
	if (o->backing) {
		kref_get(&o->backing->kref);
		sio_obj_unref(o->backing);
	}
	o->target = NULL;
	sio_obj_give(o);
}

void sio_obj_end(struct sio_obj *o)
{
	sio_ranges_end(o);
	if (kind_of(o->kind)->end)
		kind_of(o->kind)->end(o);
	if (o->kept) {
		linger(o);
		return;
	}
	if (o->target)
		sio_obj_unref(o->target);
	if (o->backing)
		kref_put(&o->backing->kref, destroy);
	if (o->through)
		sio_obj_unref(o->through);
	if (o->owner)
		sio_obj_unref(&o->owner->o);
	xa_erase(&sio.objects, o->id);
	list_del_init(&o->falling);
	list_del_init(&o->of_dev);
	list_del_init(&o->of_adapter);
	list_del_init(&o->of_owner);
	kref_put(&o->kref, destroy);
}

void sio_fall(void)
{
	struct sio_obj *o;

	while ((o = list_first_entry_or_null(&sio.falling, struct sio_obj, falling))) {
		struct sio_evt_owner_end evt = {.h.owner = o->id};

		if (o->kind == SIO_KIND_OWNER)
			sio_event(SIO_EV_OWNER_END, &evt, sizeof(evt));
		sio_obj_end(o);
	}
}

/* ---- finding ---- */

void *sio_obj_find(struct sio_request *rq, u32 kind, u64 id, bool live)
{
	struct sio_obj *o = xa_load(&sio.objects, id);
	const char *name = sio_kind_name(kind);

	if (!o || o->kind != kind)
		return ERR_PTR(sio_fail(rq, -ENOENT, "no %s %#llx", name, id));
	if (live && o->state != SIO_STATE_LIVE)
		return ERR_PTR(sio_fail(rq, -EPERM, "owner %#llx of %s %#llx has ended",
					o->owner->o.id, name, id));
	return o;
}

/* Whoever asks for it may: its owner, or the daemon. */
int sio_check_owner(struct sio_request *rq, const struct sio_obj *o)
{
	if (!rq->u.h.owner || o->owner == rq->owner)
		return 0;
	return sio_fail(rq, -EPERM, "%s %#llx belongs to owner %#llx, not to %#llx",
			sio_kind_name(o->kind), o->id, o->owner->o.id, rq->owner->o.id);
}

/* ---- operations on all kinds ---- */

/* All that end something have its id as their only field. */
int sio_op_end(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_free *m = msg;
	struct sio_obj *o = sio_obj_find(rq, rq->ends, m->id, false);
	int error;

	if (IS_ERR(o))
		return PTR_ERR(o);
	error = sio_check_owner(rq, o);
	if (error)
		return error;
	if (o->kind == SIO_KIND_DMAMAP && o->state != SIO_STATE_LIVE &&
	    !(m->h.flags & SIO_DMAUNMAP_SETTLED))
		return sio_fail(rq, -EPERM, "DMA mapping %#llx is in quarantine: SETTLE or RESET",
				o->id);
	if (o->refs && (o->kind == SIO_KIND_MAP || o->kind == SIO_KIND_REQUESTER))
		return sio_fail(rq, -EBUSY,
				"%u DMA mappings, vectors and shadows go through %s %#llx", o->refs,
				sio_kind_name(o->kind), o->id);
	if (o->refs)
		return sio_fail(rq, -EBUSY, "%u grants, mappings or vectors of it are left",
				o->refs);
	if (o->kind == SIO_KIND_MEM) {
		error = sio_pool_remove(rq, (struct sio_mem *)o);
		if (error)
			return error;
	}
	sio_obj_end(o);
	return 0;
}

void sio_obj_give(struct sio_obj *o)
{
	sio_obj_unref(&o->owner->o);
	hangs_on(o, &sio.daemon);
}

int sio_op_give(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_give *m = msg;
	struct sio_obj *o = sio_obj_find(rq, SIO_KIND_MEM, m->id, true), *g, *next;
	struct sio_owner *from;
	int error;

	if (IS_ERR(o))
		return PTR_ERR(o);
	error = sio_check_owner(rq, o);
	if (error)
		return error;
	from = o->owner;
	if (from == &sio.daemon)
		return 0;
	list_for_each_entry_safe(g, next, &from->objects, of_owner)
		if (g->kind == SIO_KIND_GRANT && g->target == o)
			sio_obj_give(g);
	sio_obj_give(o);
	return 0;
}

/* What goes through an adapter; a daemon that is started again knows it by that. */
static void list_path(struct sio_list_entry *e, const struct sio_obj *o)
{
	const struct sio_map *map = (const struct sio_map *)o;

	if (o->kind == SIO_KIND_REQUESTER)
		e->length = o->adapter->index;
	if (o->kind == SIO_KIND_MEM && ((const struct sio_mem *)o)->group)
		e->device = SIO_LIST_PATH(o->adapter->index, sio_group_listed(o));
	if (o->kind == SIO_KIND_GRANT)
		e->device = SIO_LIST_PATH(o->adapter->index,
					  ((const struct sio_grant *)o)->peer_adapter);
	if (o->kind != SIO_KIND_MAP)
		return;
	e->device =
		SIO_LIST_PATH(o->adapter->index, map->peer_adapter | (map->bar ? SIO_LIST_BAR : 0));
	e->cookie = map->bus_addr;
	e->grant = map->grant;
}

int sio_op_list(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_list *m = msg;
	struct sio_evt_list *evt = answer;
	unsigned long id = m->after;
	struct sio_list_entry *e;
	struct sio_obj *o;

	while (!evt->more && (o = xa_find_after(&sio.objects, &id, ULONG_MAX, XA_PRESENT))) {
		if (o->kind != m->kind)
			continue;
		evt->more = evt->count == SIO_LIST_MAX;
		if (evt->more)
			break;
		e = &evt->entry[evt->count++];
		e->id = o->id;
		e->owner = o->owner ? o->owner->o.id : ((struct sio_owner *)o)->parent;
		e->kind = o->kind;
		e->state = o->state;
		e->refs = o->refs;
		e->address = o->address;
		e->length = o->length;
		e->node = o->node;
		e->device = o->dev ? o->dev->id : 0;
		e->cookie = o->target ? o->target->id : o->kind == SIO_KIND_BAR ? o->access : 0;
		if (o->kind == SIO_KIND_OWNER)
			e->cookie = ((struct sio_owner *)o)->user_cookie;
		if (o->kind == SIO_KIND_MEM && !o->target)
			e->cookie = ((struct sio_mem *)o)->user_cookie;
		if (o->kind == SIO_KIND_DMAMAP)
			e->node = sio_dmamap_listed((const struct sio_dmamap *)o);
		if (o->adapter)
			list_path(e, o);
		if (o->kind == SIO_KIND_DMA || o->kind == SIO_KIND_DMA_RANGE)
			sio_channel_list(e, o);
	}
	return 0;
}

int sio_op_reopen(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_reopen *m = msg;
	struct sio_evt_reopen *evt = answer;
	struct sio_obj *o;

	if (m->kind == SIO_KIND_SHADOW)
		return sio_shadow_reopen(rq, m->id);
	if (m->kind == SIO_KIND_OWNER || m->kind == SIO_KIND_DMA || !kind_of(m->kind)->fops)
		return sio_fail(
			rq, -EINVAL,
			"kind %u, %d (memory), %d (BAR view), %d (interrupt), %d (map) or %d (shadow) is right",
			m->kind, SIO_KIND_MEM, SIO_KIND_BAR, SIO_KIND_IRQ, SIO_KIND_MAP,
			SIO_KIND_SHADOW);
	o = sio_obj_find(rq, m->kind, m->id, true);
	if (IS_ERR(o))
		return PTR_ERR(o);
	if (o->kind == SIO_KIND_MEM &&
	    (((struct sio_mem *)o)->all_ram || ((struct sio_mem *)o)->aperture ||
	     !sio_group_has_memory(o)))
		return sio_fail(
			rq, -EINVAL,
			"memory %#llx is all RAM, an aperture, or a group's without memory of its own: it has no descriptor",
			o->id);
	evt->length = o->length;
	return answer_files(rq, o);
}
