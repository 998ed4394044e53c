/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device is pulled out of its slot, without a word before, and put back. What hosts have of it is
 * cut off at once: it stays as objects, which refer to nothing any more, until who has them ends
 * them.
 */
#include "emu/device/device.h"

/* Whoever has its pages mapped reads ones from now on; what he stores stays with them. */
static void fill_pages(const struct emu_device *d)
{
	for (unsigned i = 0; i < d->config.n_pages; i++) {
		emu_fill_ones(&d->run[i].mem);
		emu_fill_ones(&d->run[i].mirror);
		emu_fill_ones(&d->run[i].view);
	}
}

/* An object of the device's own host. */
static void cut(struct emu_device *d, struct emu_object *o)
{
	struct emu_dmamap *m = (struct emu_dmamap *)o;

	switch (o->kind) {
	case SIO_KIND_VECTOR:
		if (((struct emu_vector *)o)->device == d)
			emu_object_free(o);
		break;
	case SIO_KIND_REQUESTER:
		if (((struct emu_requester *)o)->device == d)
			emu_requester_cut((struct emu_requester *)o);
		break;
	case SIO_KIND_DMAMAP:
		if (m->placed && m->device == d)
			emu_dmamap_cut(m);
		break;
	default:
		break;
	}
}

/* Who refers to the open device goes first. */
static void cut_all(struct emu_device *d)
{
	struct emu_object *o, *tmp;

	HASH_ITER (hh, d->host->objects, o, tmp)
		cut(d, o);
	emu_pages_cut(d, NULL);
	if (d->opened && !d->opened->falling)
		emu_object_free(d->opened);
}

static void tell(struct emu_device *d, uint32_t op)
{
	struct sio_evt_device_state evt;

	memset(&evt, 0, sizeof(evt));
	evt.device = d->topo->fdid;
	evt.generation = d->generation;
	emu_event(d->host, &evt, sizeof(evt), op);
}

/* First it stops, then nobody reaches it; then what it could write to is let go. */
static void pull(struct emu_device *d)
{
	struct emu_host *h = d->host;

	emu_vectors_reset(d);
	d->model->reset(d->state, false);
	fill_pages(d);
	d->gone = true;
	d->generation++;
	cut_all(d);
	emu_device_unplug(d);
	tell(d, SIO_EV_DEVICE_GONE);
	emu_objects_fall(h);
	emu_owners_bury(h);
}

/* Its media are as they were, unless its host has lost its power since: see docs/emulation.md. */
static int put(struct emu_device *d, struct sio_err *err)
{
	int rc = emu_device_plug(d, d->unpowered, err);

	if (rc < 0) {
		emu_device_unplug(d);
		return rc;
	}
	d->gone = d->unpowered = false;
	tell(d, SIO_EV_DEVICE_BACK);
	return 0;
}

int emu_slot_set(struct emu_device *d, bool in, struct sio_err *reterr)
{
	if (d->gone != in)
		return -EALREADY;
	if (!d->host->up) {
		d->gone = !in;
		d->unpowered = !in;
		return 0;
	}
	if (in)
		return put(d, reterr);
	pull(d);
	return 0;
}
