// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requester tables: a bridge lets out only what comes from a function that stands in its table. A
 * function takes one entry, which is reference-counted; the entry is free again when its last
 * reference is gone. What goes through a window refers to the entry that it found, so that the
 * entry cannot end before it.
 */
#include "adapter.h"

/* The holder of @bdf's entry that is not @but. */
static struct sio_requester *find(const struct smartio_adapter *a, u32 bdf,
				  const struct sio_requester *but)
{
	struct sio_obj *o;

	list_for_each_entry(o, &a->objects, of_adapter) {
		struct sio_requester *r = (struct sio_requester *)o;

		if (o->kind == SIO_KIND_REQUESTER && o->address == bdf && r != but && r->held)
			return r;
	}
	return NULL;
}

int sio_requester_need(struct sio_request *rq, struct smartio_adapter *a, struct sio_dev *d,
		       u32 access, struct sio_obj **ret)
{
	struct smartio_bridge_info info = {};
	struct sio_requester *r;

	*ret = NULL;
	if (!a->ops)
		return sio_fail(rq, -ENETDOWN, "the bridge of adapter %u has gone", a->index);
	a->ops->info(a->bridge, &info);
	if ((access & SIO_ACCESS_READ && !(info.capabilities & SIO_ADAPTER_READ)) ||
	    (access & SIO_ACCESS_WRITE && !(info.capabilities & SIO_ADAPTER_WRITE)))
		return sio_fail(rq, -EOPNOTSUPP, "devices' %s do not go through adapter %u",
				info.capabilities & SIO_ADAPTER_WRITE ? "reads" : "accesses",
				a->index);
	if (!(info.capabilities & SIO_ADAPTER_READ))
		return 0;
	r = find(a, d->bdf & 0xffff, NULL);
	if (!r)
		return sio_fail(
			rq, -ENOENT,
			"%s is not in the requester table of adapter %u; REQUESTER_ADD first",
			pci_name(d->pdev), a->index);
	*ret = &r->o;
	return 0;
}

/* ---- REQUESTER_ADD ---- */

/* The device that it names, if it does: one of ours, and open. */
static int find_device(struct sio_request *rq, const struct sio_req_requester_add *m,
		       struct sio_dev **ret)
{
	struct sio_dev *d;

	*ret = NULL;
	if (m->device && m->bdf)
		return sio_fail(rq, -EINVAL, "name a device or a bdf, not both");
	if (m->device == 0) {
		if (m->bdf > U16_MAX)
			return sio_fail(rq, -EINVAL, "bdf %#x, 16 bits are right", m->bdf);
		list_for_each_entry(d, &sio.devices, node)
			if (d->bdf == m->bdf && sio_dev_find(d->id) && d->open)
				*ret = d;
		return 0;
	}
	d = sio_dev_find(m->device);
	if (!d)
		return sio_fail(rq, -ENODEV, "no device %#llx is here", m->device);
	if (!d->open)
		return sio_fail(rq, -EPERM, "%s is not open; DEVICE_OPEN first", pci_name(d->pdev));
	*ret = d;
	return 0;
}

/* The entry that the function has, or one more. */
static int hold(struct sio_request *rq, struct smartio_adapter *a, struct sio_requester *r)
{
	struct sio_requester *other = find(a, r->o.address, r);
	struct smartio_bridge_info info = {};
	int error = 0;

	if (other)
		r->entry = other->entry;
	else
		error = a->ops->requester_add(a->bridge, r->o.address, &r->entry);
	r->held = !error;
	if (error != -ENOSPC)
		return error;
	a->ops->info(a->bridge, &info);
	return sio_fail_exhausted(rq, error, SIO_OUT_OF_REQUESTERS,
				  "requesters of adapter %u, node %u: %u of %u entries in use",
				  a->index, a->node, info.requesters_total - info.requesters_free,
				  info.requesters_total);
}

int sio_op_requester_add(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_requester_add *m = msg;
	struct sio_requester *r = (struct sio_requester *)rq->obj;
	struct smartio_adapter *a = sio_adapter_find(rq, m->adapter);
	struct sio_evt_requester_add *evt = answer;
	struct sio_dev *d;
	int error;

	if (!a)
		return -ENODEV;
	if (!a->ops->requester_add || m->direction == SIO_REQUESTER_IN)
		return sio_fail(rq, -EOPNOTSUPP, "adapter %u checks %s", a->index,
				a->ops->requester_add ? "requests that go out only"
						      : "no requesters");
	if (m->direction != SIO_REQUESTER_OUT)
		return sio_fail(rq, -EINVAL, "direction %u, %d (out) is right", m->direction,
				SIO_REQUESTER_OUT);
	error = find_device(rq, m, &d);
	if (error)
		return error;
	if (d)
		sio_obj_tie(&r->o, d, NULL);
	r->o.address = d ? d->bdf & 0xffff : m->bdf;
	sio_obj_of_adapter(&r->o, a, 0);
	error = hold(rq, a, r);
	evt->entry = r->entry;
	return error;
}

void sio_requester_cut(struct sio_requester *r)
{
	struct smartio_adapter *a = r->o.adapter;

	if (r->held && !find(a, r->o.address, r))
		a->ops->requester_del(a->bridge, r->entry);
	r->held = false;
}

static void requester_end(struct sio_obj *o)
{
	if (o->adapter)
		sio_requester_cut((struct sio_requester *)o);
}

const struct sio_kind sio_kind_requester = {
	.name = "requester entry",
	.size = sizeof(struct sio_requester),
	.end = requester_end,
};
