// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owners, and what happens when one ends. At once fall memory, BAR views, interrupts and open
 * devices that nothing refers to. DMA mappings stay, and what they refer to, until the word that
 * the device let go of them (SETTLE, RESET), or the device itself is gone.
 */
#include <linux/module.h>

#include "smartio.h"

void sio_owner_init(struct sio_owner *w)
{
	INIT_LIST_HEAD(&w->objects);
	INIT_LIST_HEAD(&w->children);
	INIT_LIST_HEAD(&w->sibling);
	INIT_LIST_HEAD(&w->ended);
	init_waitqueue_head(&w->wait);
	w->o.state = SIO_STATE_LIVE;
}

struct sio_owner *sio_owner_find(u64 id)
{
	struct sio_obj *o;

	if (id == 0)
		return &sio.daemon;
	o = xa_load(&sio.objects, id);
	return o && o->kind == SIO_KIND_OWNER ? (struct sio_owner *)o : NULL;
}

/* The subject of the request must live. */
static int check_subject(struct sio_request *rq)
{
	if (!rq->owner)
		return sio_fail(rq, -ENOENT, "no owner %#llx", rq->u.h.owner);
	if (rq->owner->o.state != SIO_STATE_LIVE)
		return sio_fail(rq, -EPERM, "owner %#llx has ended", rq->u.h.owner);
	return 0;
}

int sio_op_owner_new(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_owner_new *m = msg;
	struct sio_evt_owner_new *evt = answer;
	bool child = m->h.flags & SIO_OWNER_CHILD;
	struct sio_owner *w;
	int error;

	if (m->h.owner && !child)
		return sio_fail(rq, -EINVAL, "h.owner is %#llx, 0 is right for all but a child",
				m->h.owner);
	error = check_subject(rq);
	if (error)
		return error;
	w = sio_obj_new(rq, SIO_KIND_OWNER, 0);
	if (IS_ERR(w))
		return PTR_ERR(w);
	sio_owner_init(w);
	w->user_cookie = m->user_cookie;
	evt->id = w->o.id;
	if (!child)
		return sio_obj_made(rq, &w->o, 0);
	w->parent = rq->owner->o.id;
	list_add_tail(&w->sibling, &rq->owner->children);
	return 0;
}

void sio_owners_bury(void)
{
	struct sio_owner *w, *tmp;

	list_for_each_entry_safe(w, tmp, &sio.ended, ended) {
		union sio_news n = {.h.owner = w->o.id};

		if (!list_empty(&w->objects))
			continue;
		list_del(&w->ended);
		sio_tell(&n, SIO_EV_OWNER_END, sizeof(struct sio_evt_owner_end));
		sio_obj_end(&w->o);
	}
}

static void tell_gone(struct sio_owner *w)
{
	union sio_news n = {.h.owner = w->o.id};
	struct sio_obj *o;

	list_for_each_entry(o, &w->objects, of_owner) {
		n.gone.dmamaps += o->kind == SIO_KIND_DMAMAP;
		n.gone.mems += o->kind == SIO_KIND_MEM;
		n.gone.bytes += o->kind == SIO_KIND_MEM ? o->length : 0;
	}
	sio_tell(&n, SIO_EV_OWNER_GONE, sizeof(n.gone));
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
	w->o.state = SIO_STATE_QUARANTINED;
	w->o.owner = &sio.daemon;
	list_for_each_entry(o, &w->objects, of_owner)
		sio_obj_quarantine(o);
	sio_fall();
	wake_up_interruptible(&w->wait);
	if (w == &sio.daemon)
		return;
	tell_gone(w);
	list_add_tail(&w->ended, &sio.ended);
}

int sio_op_owner_close(struct sio_request *rq, const void *msg, void *answer)
{
	int error = check_subject(rq);

	if (rq->owner == &sio.daemon)
		return sio_fail(rq, -EINVAL, "owner 0 is the daemon itself");
	if (!error)
		sio_owner_end(rq->owner);
	return error;
}

int sio_op_settle(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_settle *m = msg;
	bool all = m->h.flags & SIO_SETTLE_ALL;
	struct sio_evt_settle *evt = answer;
	struct sio_dev *d;
	int error;

	if (all != (m->h.owner == 0))
		return sio_fail(rq, -EINVAL, "name an owner, or owner 0 with SIO_SETTLE_ALL");
	error = sio_dev_get(rq, m->device, &d);
	if (error)
		return error;
	if (!rq->owner)
		return sio_fail(rq, -ENOENT, "no owner %#llx", m->h.owner);
	if (!all && rq->owner->o.state == SIO_STATE_LIVE)
		return sio_fail(rq, -EPERM, "owner %#llx is alive: its mappings end by DMAUNMAP",
				m->h.owner);
	memset(&sio.freed, 0, sizeof(sio.freed));
	sio_dmamaps_settle(d, m->h.owner, U64_MAX);
	sio_fall();
	*evt = sio.freed;
	return 0;
}

static long owner_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	return cmd == SIO_IOC_PIN ? sio_pin(f->private_data, (const void __user *)arg) : -ENOTTY;
}

static __poll_t owner_poll(struct file *f, poll_table *wait)
{
	struct sio_owner *w = f->private_data;

	poll_wait(f, &w->wait, wait);
	return READ_ONCE(w->o.state) == SIO_STATE_LIVE ? 0 : EPOLLHUP;
}

static const struct file_operations owner_fops = {
	.owner = THIS_MODULE,
	.release = sio_file_release, /* the last one ends it */
	.unlocked_ioctl = owner_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = owner_poll,
	.llseek = noop_llseek,
};

const struct sio_kind sio_kind_owner = {
	.name = "owner",
	.size = sizeof(struct sio_owner),
	.fops = &owner_fops,
};
