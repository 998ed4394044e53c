// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of objects. Each object that has files has an inode of its own, so that its mappings can be
 * taken away without touching others'. The private file system is there while a file is, and keeps
 * the module loaded until the last bit of it is gone.
 */
#include <linux/file.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "smartio.h"

#define SMARTIO_FS_MAGIC 0x736d696f

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

/* First file of @o: it gets its inode. */
static int inode_get(struct sio_obj *o, u64 size)
{
	struct inode *inode;
	int error;

	if (o->n_files)
		goto one_more;
	error = simple_pin_fs(&fs_type, &fs_mount, &fs_count);
	if (error)
		return error;
	inode = alloc_anon_inode(fs_mount->mnt_sb);
	if (IS_ERR(inode)) {
		simple_release_fs(&fs_mount, &fs_count);
		return PTR_ERR(inode);
	}
	i_size_write(inode, size);
	inode->i_ino = o->id;
	o->inode = inode;
one_more:
	o->n_files++;
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

struct file *sio_file_new(struct sio_obj *o, const char *name, const struct file_operations *fops,
			  int flags, u64 size)
{
	struct file *f;
	int error = inode_get(o, size);

	if (error)
		return ERR_PTR(error);
	f = ERR_PTR(-ENOENT);
	if (!try_module_get(THIS_MODULE))
		goto put_inode;
	ihold(o->inode);
	f = alloc_file_pseudo(o->inode, fs_mount, name, flags, fops);
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
	inode_put(o);
	mutex_unlock(&sio.lock);
	sio_obj_put(o);
	return 0;
}

struct sio_obj *sio_file_obj(struct file *f)
{
	const struct file_operations *op = f->f_op;

	if (op != &sio_owner_fops && op != &sio_mem_fops && op != &sio_bar_fops &&
	    op != &sio_irq_fops)
		return NULL;
	return f->private_data;
}

int sio_op_identify(struct sio_request *rq, const void *msg)
{
	struct sio_obj *o = rq->file ? sio_file_obj(rq->file) : NULL;
	struct sio_evt_identify *evt;

	if (!o)
		return sio_fail(rq, -EBADF, "no descriptor of a resource came along");
	evt = sio_answer(rq, sizeof(*evt));
	evt->id = o->id;
	evt->kind = o->kind;
	evt->state = o->gone ? 0 : o->state;
	evt->owner = o->owner ? o->owner->o.id : 0;
	if (o->kind == SIO_KIND_OWNER)
		evt->user_cookie = ((struct sio_owner *)o)->user_cookie;
	return 0;
}

int sio_op_reopen(struct sio_request *rq, const void *msg)
{
	const struct sio_req_reopen *m = msg;
	struct sio_evt_reopen *evt;
	struct sio_obj *o;

	if (m->kind != SIO_KIND_MEM && m->kind != SIO_KIND_BAR && m->kind != SIO_KIND_IRQ)
		return sio_fail(rq, -EINVAL,
				"kind %u, %d (memory), %d (BAR view) or %d (interrupt) is right",
				m->kind, SIO_KIND_MEM, SIO_KIND_BAR, SIO_KIND_IRQ);
	o = sio_obj_find_live(rq, m->kind, m->id);
	if (!o)
		return rq->error;
	evt = sio_answer(rq, sizeof(*evt));
	switch (o->kind) {
	case SIO_KIND_MEM:
		evt->length = ((struct sio_mem *)o)->size;
		return sio_answer_file(rq, sio_mem_file((struct sio_mem *)o));
	case SIO_KIND_BAR:
		evt->length = ((struct sio_bar *)o)->length;
		return sio_answer_file(rq, sio_bar_file((struct sio_bar *)o));
	default:
		return sio_irq_files(rq, (struct sio_irq *)o);
	}
}
