// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owners: every object belongs to one. When an owner ends, memory, views, interrupts, vectors, maps
 * and requester entries that nothing refers to are freed at once. DMA mappings stay, with what they
 * refer to, until SETTLED, RESET, or the end of the device itself; grants until UNGRANT.
 */
#include <linux/module.h>

#include "smartio.h"

struct sio_owner *sio_owner_find(u64 id)
{
	struct sio_obj *o;

	if (id == 0)
		return &sio.daemon;
	o = xa_load(&sio.objects, id);
	return o && o->kind == SIO_KIND_OWNER ? (struct sio_owner *)o : NULL;
}

int sio_op_owner_new(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_owner_new *m = msg;
	struct sio_owner *w = (struct sio_owner *)rq->obj;

	INIT_LIST_HEAD(&w->objects);
	w->parent = m->h.owner;
	w->user_cookie = m->user_cookie;
	rq->unseen = m->h.flags & SIO_OWNER_CHILD;
	if (m->h.owner && !rq->unseen)
		return sio_fail(rq, -EINVAL, "h.owner is %#llx, 0 is right for all but a child",
				m->h.owner);
	return 0;
}

/* What stays of an owner that has ended. */
static void report_rest(const struct sio_owner *w)
{
	struct sio_evt_owner_gone evt = {.h.owner = w->o.id};
	const struct sio_obj *o;

	list_for_each_entry(o, &w->objects, of_owner) {
		evt.dmamaps += o->kind == SIO_KIND_DMAMAP;
		evt.grants += o->kind == SIO_KIND_GRANT;
		evt.maps += o->kind == SIO_KIND_MAP;
		evt.mems += o->kind == SIO_KIND_MEM;
		evt.bytes += o->kind == SIO_KIND_MEM ? o->length : 0;
	}
	sio_event(SIO_EV_OWNER_GONE, &evt, sizeof(evt));
}

/* The daemon is an owner, too: it ends with the module. */
void sio_owner_end(struct sio_owner *w)
{
	struct sio_obj *o;
	unsigned long id;

	xa_for_each(&sio.objects, id, o)
		if (o->kind == SIO_KIND_OWNER && o->state == SIO_STATE_LIVE && o != &w->o &&
		    ((struct sio_owner *)o)->parent == w->o.id)
			sio_owner_end((struct sio_owner *)o);
	sio.epoch++;
	list_for_each_entry(o, &w->objects, of_owner)
		sio_obj_quarantine(o);
	sio_fall();
	report_rest(w);
	sio_obj_quarantine(&w->o);
	sio_fall();
}

int sio_op_owner_close(struct sio_request *rq, const void *msg, void *answer)
{
	if (rq->owner == &sio.daemon)
		return sio_fail(rq, -EINVAL, "owner 0 is the daemon itself");
	sio_owner_end(rq->owner);
	return 0;
}

static long owner_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	return cmd == SIO_IOC_PIN ? sio_pin(f->private_data, (const void __user *)arg) : -ENOTTY;
}

static const struct file_operations owner_fops = {
	.owner = THIS_MODULE,
	.release = sio_file_release, /* the last one ends it */
	.unlocked_ioctl = owner_ioctl,
};

const struct sio_kind sio_kind_owner = {
	.name = "owner",
	.size = sizeof(struct sio_owner),
	.fops = &owner_fops,
};
