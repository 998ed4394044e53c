// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/smartio-disk: each open descriptor has one disk at most, which ends with it. So when the
 * program that has the queue pair dies, its disk is removed.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "disk.h"

static LIST_HEAD(disks);
static DEFINE_MUTEX(disks_lock);

/* ---- ATTACH ---- */

static bool is_possible(const struct sio_disk_attach *is)
{
	if (is->size != sizeof(*is) || is->flags & ~SIO_DISK_FLAGS || is->index ||
	    strnlen(is->source, sizeof(is->source)) == sizeof(is->source))
		return false;
	if (!is->n_pairs || is->n_pairs > SIO_DISK_PAIRS || is->n_pairs > nr_cpu_ids)
		return false;
	if (is->entries < 2 || is->entries > 65536 || !is->depth || is->depth >= is->entries ||
	    is->depth > SIO_DISK_DEPTH)
		return false;
	/*
	 * The block layer makes commands of a page, of this kernel's, whatever limit it is given.
	 */
	if (!is_power_of_2(is->slot) || is->slot < PAGE_SIZE || is->slot > SIO_DISK_SLOT)
		return false;
	if (!is->timeout_ms || is->timeout_ms > 3600000 || !is->nsid || is->block_shift < 9 ||
	    is->block_shift > 12)
		return false;
	return is->blocks && is->blocks <= S64_MAX >> is->block_shift &&
	       is->first <= U64_MAX - is->blocks;
}

static bool is_pair(const struct sio_disk_pair *is)
{
	return is->id && is->id <= U16_MAX && is->interrupt >= -1 &&
	       !((is->memory_address | is->memory) & (SZ_4K - 1)) &&
	       !((is->sq | is->cq) & (sizeof(struct nvme_command) - 1)) &&
	       !((is->sq_doorbell | is->cq_doorbell) & 3);
}

/* Of the program, to be freed. */
static struct sio_disk_pair *copy_pairs(u64 address, u32 n)
{
	struct sio_disk_pair *p = memdup_user(u64_to_user_ptr(address), n * sizeof(*p));

	for (u32 i = 0; !IS_ERR(p) && i < n; i++) {
		if (is_pair(&p[i]))
			continue;
		kfree(p);
		return ERR_PTR(-EINVAL);
	}
	return p;
}

static void unmake(struct disk *d)
{
	disk_queues_end(d);
	disk_free(d);
	kfree(d);
}

/* Of what the program has. Nothing is left of it on failure. */
static struct disk *make(const struct sio_disk_attach *is, const struct sio_disk_pair *pairs)
{
	struct disk *d = kzalloc(sizeof(*d), GFP_KERNEL_ACCOUNT);
	int error;

	if (!d)
		return ERR_PTR(-ENOMEM);
	init_waitqueue_head(&d->events);
	d->holder = task_tgid_vnr(current);
	d->number = -1;
	d->is = *is;
	error = disk_queues_begin(d, pairs);
	if (!error)
		error = disk_add(d);
	if (!error)
		return d;
	unmake(d);
	return ERR_PTR(error);
}

/* Of two at a time one has the descriptor. */
static int keep(struct file *f, struct disk *d)
{
	int error = -EBUSY;

	mutex_lock(&disks_lock);
	if (!f->private_data) {
		list_add_tail(&d->node, &disks);
		WRITE_ONCE(f->private_data, d);
		error = 0;
	}
	mutex_unlock(&disks_lock);
	return error;
}

static struct disk *copy_and_make(struct sio_disk_attach *is)
{
	struct sio_disk_pair *pairs;
	struct disk *d;

	if (!is_possible(is))
		return ERR_PTR(-EINVAL);
	pairs = copy_pairs(is->pairs, is->n_pairs);
	if (IS_ERR(pairs))
		return ERR_CAST(pairs);
	d = make(is, pairs);
	kfree(pairs);
	return d;
}

static int attach(struct file *f, struct sio_disk_attach __user *arg)
{
	struct sio_disk_attach is;
	struct disk *d;
	int error;

	if (copy_from_user(&is, arg, sizeof(is)))
		return -EFAULT;
	if (READ_ONCE(f->private_data))
		return -EBUSY;
	d = copy_and_make(&is);
	if (IS_ERR(d))
		return PTR_ERR(d);
	error = put_user(d->number, &arg->index);
	if (!error)
		error = keep(f, d);
	if (!error)
		return 0;
	disk_del(d);
	unmake(d);
	return error;
}

/* ---- RENEW ---- */

/* What is in flight has its data there. */
static bool has_same_memory(const struct disk *d, const struct sio_disk_pair *pairs)
{
	for (u32 i = 0; i < d->is.n_pairs; i++)
		if (d->queue[i].memory_at != pairs[i].memory ||
		    d->queue[i].memory_address != pairs[i].memory_address)
			return false;
	return true;
}

static int copy_and_renew(struct disk *d, const struct sio_disk_renew *m)
{
	struct sio_disk_pair *pairs = copy_pairs(m->pairs, m->n_pairs);
	int error = -EINVAL;

	if (IS_ERR(pairs))
		return PTR_ERR(pairs);
	mutex_lock(&disks_lock);
	if (has_same_memory(d, pairs))
		error = disk_queues_renew(d, pairs);
	mutex_unlock(&disks_lock);
	kfree(pairs);
	return error;
}

static int renew(struct file *f, const struct sio_disk_renew __user *arg)
{
	struct disk *d = READ_ONCE(f->private_data);
	struct sio_disk_renew m;

	if (copy_from_user(&m, arg, sizeof(m)))
		return -EFAULT;
	if (m.size != sizeof(m) || !d || !(d->is.flags & SIO_DISK_SURVIVE) ||
	    (m.n_pairs && m.n_pairs != d->is.n_pairs))
		return -EINVAL;
	if (m.n_pairs)
		return copy_and_renew(d, &m);
	disk_queues_leave(d);
	return 0;
}

/* ---- DETACH ---- */

static struct disk *find(u32 index)
{
	struct disk *d;

	list_for_each_entry(d, &disks, node)
		if (d->number == index)
			return d;
	return NULL;
}

static int detach(const struct sio_disk_detach __user *arg)
{
	struct sio_disk_detach m;
	struct disk *d;
	int error = 0;

	if (copy_from_user(&m, arg, sizeof(m)))
		return -EFAULT;
	if (m.size != sizeof(m) || m.flags & ~SIO_DISK_FORCE || m.reserved)
		return -EINVAL;
	mutex_lock(&disks_lock);
	d = find(m.index);
	if (!d)
		error = -ENOENT;
	else if (m.flags & SIO_DISK_FORCE)
		disk_kill(d, "it was detached by force", BLK_STS_IOERR);
	else if (disk_is_open(d))
		error = -EBUSY;
	if (!error) {
		WRITE_ONCE(d->wanted_back, true);
		wake_up_all(&d->events);
	}
	mutex_unlock(&disks_lock);
	return error;
}

/* ---- the node ---- */

static int control_open(struct inode *inode, struct file *f)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	f->private_data = NULL; /* the misc device, so far */
	return nonseekable_open(inode, f);
}

static int control_release(struct inode *inode, struct file *f)
{
	struct disk *d = f->private_data;

	if (!d)
		return 0;
	mutex_lock(&disks_lock);
	list_del(&d->node);
	mutex_unlock(&disks_lock);
	disk_del(d);
	unmake(d);
	return 0;
}

static long control_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case SIO_DISK_ATTACH:
		return attach(f, (void __user *)arg);
	case SIO_DISK_RENEW:
		return renew(f, (void __user *)arg);
	case SIO_DISK_DETACH:
		return detach((void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static __poll_t control_poll(struct file *f, poll_table *wait)
{
	struct disk *d = READ_ONCE(f->private_data);
	enum disk_state state;
	__poll_t ready = 0;

	if (!d)
		return EPOLLERR;
	poll_wait(f, &d->events, wait);
	state = disk_state_of(d);
	if (state == DISK_DEAD)
		ready |= EPOLLHUP;
	if (state == DISK_AWAY)
		ready |= EPOLLPRI;
	if (READ_ONCE(d->wanted_back))
		ready |= EPOLLIN | EPOLLRDNORM;
	return ready;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = control_open,
	.release = control_release,
	.unlocked_ioctl = control_ioctl,
	.poll = control_poll,
};

static struct miscdevice control_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "smartio-disk",
	.fops = &control_fops,
	.mode = 0600,
};

module_misc_device(control_device);
MODULE_DESCRIPTION("SmartIO: block devices that are queue pairs of a shared NVMe drive");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0"); /* as smartio.ko */
