/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Surprise removal: a device is pulled out of its slot, and put back. What hosts have of it is cut
 * off at once: it stays as objects that refer to nothing any more, until their owners end them.
 */
#include "emu/device/device.h"

/* Mappings of its pages read as ones from now on; stores to them have no effect on the device. */
static void fill_pages(const struct emu_device *d)
{
	for (unsigned i = 0; i < d->config.n_pages; i++) {
		emu_fill_ones(d->room, &d->run[i].mem);
		emu_fill_ones(d->room, &d->run[i].mirror);
		emu_fill_ones(d->room, &d->run[i].view);
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

/* Objects that refer to the open device end first. */
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

/* First it stops, then nobody reaches it; then what it could write to is released. */
static void pull(struct emu_device *d)
{
	struct emu_host *h = d->host;

	emu_vectors_reset(d);
	d->model->reset(d->state, false);
	fill_pages(d);
	emu_slot_enter(d, EMU_SLOT_PULL);
	d->generation++;
	cut_all(d);
	emu_device_unplug(d);
	tell(d, SIO_EV_DEVICE_GONE);
	emu_objects_fall(h);
	emu_owners_bury(h);
}

/*
 * Its media keep their contents, unless its host has lost its power since: see docs/emulation.md.
 */
static int put(struct emu_device *d, struct sio_err *err)
{
	int rc = emu_device_plug(d, d->slot == EMU_SLOT_OUT_UNPOWERED, err);

	if (rc < 0) {
		emu_device_unplug(d);
		return rc;
	}
	emu_slot_enter(d, EMU_SLOT_PUT);
	tell(d, SIO_EV_DEVICE_BACK);
	return 0;
}

static int set(struct emu_device *d, bool in, struct sio_err *reterr)
{
	if (emu_device_is_out(d) != in)
		return -EALREADY;
	if (!d->host->up) {
		emu_slot_enter(d, in ? EMU_SLOT_SET : EMU_SLOT_TAKE);
		return 0;
	}
	if (in)
		return put(d, reterr);
	pull(d);
	return 0;
}

void emu_slot_new(struct emu_device *d)
{
	if (d->host->up)
		d->slot = EMU_SLOT_OUT_UNPOWERED;
}

void emu_slot_remove(struct emu_device *d)
{
	struct sio_err err;

	if (!emu_device_is_out(d))
		set(d, false, &err);
}

struct emu_device *emu_slot_function(struct emu_device *d, unsigned number)
{
	struct emu_device *f = d->physical ? NULL : d->next_function;

	while (f && --number)
		f = f->next_function;
	return f;
}

int emu_slot_functions_set(struct emu_device *d, unsigned n, struct sio_err *reterr)
{
	struct emu_device *f;
	int rc = 0;

	for (unsigned i = 1; (f = emu_slot_function(d, i)); i++) {
		int r = set(f, i <= n, reterr);

		if (r < 0 && r != -EALREADY)
			rc = r;
	}
	return rc;
}

/* Those that come back with the drive are all of them, as at the start of its host. */
int emu_slot_set(struct emu_device *d, bool in, struct sio_err *reterr)
{
	int rc;

	if (d->physical)
		return sio_fail(reterr, -EINVAL,
				"%s is a virtual function, which comes and goes with %s; name "
				"that one",
				d->topo->name, d->physical->topo->name);
	if (emu_device_is_out(d) != in)
		return -EALREADY;
	if (!in)
		emu_slot_functions_set(d, 0, reterr);
	rc = set(d, in, reterr);
	if (rc < 0 || !in)
		return rc;
	emu_config_reset(d, d->topo->virtual_functions);
	return emu_slot_functions_set(d, d->topo->virtual_functions, reterr);
}

void emu_slot_functions_renew(struct emu_device *d)
{
	unsigned n = emu_config_functions(d);
	struct sio_err err = {0};

	emu_slot_functions_set(d, 0, &err);
	emu_config_reset(d, n);
	if (emu_slot_functions_set(d, n, &err) < 0)
		emu_log(d->room, "%s", err.text);
}
