// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owners, and what happens when one ends. At once fall memory, BAR views, interrupts and open
 * devices that nothing refers to. DMA mappings stay, and what they refer to, until the word that
 * the device let go of them (SETTLE, RESET), or the device itself is gone.
 */
#include "smartio.h"

void sio_owner_init(struct sio_owner *w)
{
	INIT_LIST_HEAD(&w->objects);
	INIT_LIST_HEAD(&w->children);
	INIT_LIST_HEAD(&w->sibling);
	INIT_LIST_HEAD(&w->ended_node);
	init_waitqueue_head(&w->wait);
	w->o.kind = SIO_KIND_OWNER;
	w->o.state = SIO_STATE_LIVE;
}

void sio_owner_free(struct sio_owner *w)
{
	sio_event_free(w->gone);
	sio_event_free(w->end);
	kfree(w);
}

struct sio_owner *sio_owner_find(u64 id)
{
	struct sio_obj *o;

	if (id == 0)
		return &sio.daemon;
	o = xa_load(&sio.objects, id);
	return o && o->kind == SIO_KIND_OWNER ? (struct sio_owner *)o : NULL;
}

static int check_new(struct sio_request *rq, const struct sio_req_owner_new *m)
{
	if (m->h.owner && !(m->h.flags & SIO_OWNER_CHILD))
		return sio_fail(rq, -EINVAL, "h.owner is %#llx, 0 is right for all but a child",
				m->h.owner);
	if (!rq->owner)
		return sio_fail(rq, -ENOENT, "no owner %#llx", m->h.owner);
	if (rq->owner->ended)
		return sio_fail(rq, -EPERM, "owner %#llx has ended", m->h.owner);
	return 0;
}

int sio_op_owner_new(struct sio_request *rq, const void *msg)
{
	const struct sio_req_owner_new *m = msg;
	struct sio_evt_owner_new *evt;
	struct sio_owner *w;
	int error = check_new(rq, m);

	if (error)
		return error;
	w = sio_obj_new(rq, SIO_KIND_OWNER, sizeof(*w));
	if (!w)
		return rq->error;
	sio_owner_init(w);
	w->user_cookie = m->user_cookie;
	w->pid = m->pid;
	w->gone = sio_event_new(sizeof(struct sio_evt_owner_gone));
	w->end = sio_event_new(sizeof(struct sio_evt_owner_end));
	error = -ENOMEM;
	if (!w->gone || !w->end)
		goto drop;
	evt = sio_answer(rq, sizeof(*evt));
	evt->id = w->o.id;
	if (m->h.flags & SIO_OWNER_CHILD) {
		w->parent = rq->owner->o.id;
		list_add_tail(&w->sibling, &rq->owner->children);
		return 0;
	}
	error = sio_answer_file(
		rq, sio_file_new(&w->o, "[smartio owner]", &sio_owner_fops, O_RDONLY, 0));
	if (!error)
		return 0;
drop:
	sio_obj_drop(&w->o);
	return error;
}

void sio_owners_bury(void)
{
	struct sio_owner *w, *tmp;

	list_for_each_entry_safe(w, tmp, &sio.ended, ended_node) {
		if (w->n_objects)
			continue;
		list_del_init(&w->ended_node);
		w->end->u.h.owner = w->o.id;
		sio_send_news(w->end, SIO_EV_OWNER_END, sizeof(struct sio_evt_owner_end));
		w->end = NULL;
		sio_obj_drop(&w->o);
	}
}

static void tell_gone(struct sio_owner *w)
{
	struct sio_evt_owner_gone *evt = (void *)&w->gone->u;
	struct sio_obj *o;

	evt->h.owner = w->o.id;
	list_for_each_entry(o, &w->objects, of_owner) {
		evt->dmamaps += o->kind == SIO_KIND_DMAMAP;
		if (o->kind == SIO_KIND_MEM) {
			evt->mems++;
			evt->bytes += ((struct sio_mem *)o)->size;
		}
	}
	sio_send_news(w->gone, SIO_EV_OWNER_GONE, sizeof(*evt));
	w->gone = NULL;
}

/* The daemon is an owner, too: it ends with the module. */
void sio_owner_end(struct sio_owner *w)
{
	struct sio_owner *child;
	struct sio_obj *o;

	while ((child = list_first_entry_or_null(&w->children, struct sio_owner, sibling)))
		sio_owner_end(child);
	list_del_init(&w->sibling);
	sio.epoch++;
	w->ended = true;
	w->o.state = SIO_STATE_QUARANTINED;
	w->o.owner = &sio.daemon;
	list_for_each_entry(o, &w->objects, of_owner)
		sio_obj_quarantine(o);
	sio_fall();
	wake_up_interruptible(&w->wait);
	if (w == &sio.daemon)
		return;
	tell_gone(w);
	list_add_tail(&w->ended_node, &sio.ended);
}

int sio_op_owner_close(struct sio_request *rq, const void *msg)
{
	const struct sio_req_owner_close *m = msg;

	if (m->h.owner == 0)
		return sio_fail(rq, -EINVAL, "owner 0 is the daemon itself");
	if (!rq->owner)
		return sio_fail(rq, -ENOENT, "no owner %#llx", m->h.owner);
	if (rq->owner->ended)
		return sio_fail(rq, -EPERM, "owner %#llx has ended", m->h.owner);
	sio_answer_send(rq);
	sio_owner_end(rq->owner);
	return 0;
}

int sio_op_settle(struct sio_request *rq, const void *msg)
{
	const struct sio_req_settle *m = msg;
	bool all = m->h.flags & SIO_SETTLE_ALL;
	struct sio_evt_settle *evt;
	struct sio_dev *d;
	int error;

	if (all != (m->h.owner == 0))
		return sio_fail(rq, -EINVAL, "name an owner, or owner 0 with SIO_SETTLE_ALL");
	error = sio_dev_get(rq, m->device, &d);
	if (error)
		return error;
	if (!all && !rq->owner)
		return sio_fail(rq, -ENOENT, "no owner %#llx", m->h.owner);
	if (!all && !rq->owner->ended)
		return sio_fail(rq, -EPERM, "owner %#llx is alive: its mappings end by DMAUNMAP",
				m->h.owner);
	evt = sio_answer(rq, sizeof(*evt));
	memset(&sio.freed, 0, sizeof(sio.freed));
	sio_dmamaps_settle(d, m->h.owner, U64_MAX);
	sio_fall();
	evt->dmamaps = sio.freed.dmamaps;
	evt->mems = sio.freed.mems;
	evt->bytes = sio.freed.bytes;
	return 0;
}

static int owner_release(struct inode *inode, struct file *f)
{
	struct sio_owner *w = f->private_data;

	mutex_lock(&sio.lock);
	if (!w->ended) {
		sio_owner_end(w);
		sio_owners_bury();
	}
	mutex_unlock(&sio.lock);
	return sio_file_release(inode, f);
}

static long owner_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	struct sio_ioc_pin pin;

	if (cmd != SIO_IOC_PIN)
		return -ENOTTY;
	if (copy_from_user(&pin, (const void __user *)arg, sizeof(pin)))
		return -EFAULT;
	return sio_pin(f->private_data, &pin);
}

static __poll_t owner_poll(struct file *f, poll_table *wait)
{
	struct sio_owner *w = f->private_data;

	poll_wait(f, &w->wait, wait);
	return READ_ONCE(w->ended) ? EPOLLHUP : 0;
}

const struct file_operations sio_owner_fops = {
	.owner = THIS_MODULE,
	.release = owner_release,
	.unlocked_ioctl = owner_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = owner_poll,
	.llseek = noop_llseek,
};
