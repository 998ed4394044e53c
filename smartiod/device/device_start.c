/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the devices of this host at the port: all of them at the start, later each that is added.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/device/device.h"

#define AGAIN_NS 10000000ull
#define AGAIN_MAX 100

struct start_op {
	struct smartiod_op op;
	uint64_t after;
	uint64_t only;	     /* this one; 0: all */
	uint64_t generation; /* of @after, when it was listed */
	bool opening, force, dozing;
	unsigned again; /* how often it was opened once more */
};

static void ask_next(struct smartiod *d, struct start_op *s)
{
	struct sio_req_device_list req = {.h.op = SIO_OP_DEVICE_LIST, .after = s->after};

	s->opening = false;
	s->again = 0;
	smartiod_port_ask(d, &s->op, &req, sizeof(req));
}

/*
 * The port's devices are those of the topology's host. Their numbers there are those of the file in
 * the emulated hardware, where slots may be others than ours: who was there before a reload keeps
 * its slot, and we may have started since. Another port has the same function at the same place.
 */
static struct smartiod_device *match(struct smartiod *d, const struct sio_evt_device *evt)
{
	if (sio_topology_fdid_node((uint32_t)evt->id) == d->node && evt->id <= UINT32_MAX)
		return sio_topology_device(d->topology, (uint32_t)evt->id, NULL)
			       ? smartiod_device_known(d, (uint32_t)evt->id)
			       : NULL;
	for (unsigned i = 0; i < d->host->n_devices; i++)
		if (d->host->device[i].bdf == evt->bdf)
			return smartiod_device_known(d, d->host->device[i].fdid);
	return NULL;
}

/* One that was at this place before, and of which nothing is left. */
static bool is_free(const struct smartiod_device *dev, uint32_t bdf)
{
	struct sio_ledger_count c = sio_ledger_count(&dev->ledger);

	return !dev->present && dev->topo->bdf == bdf && c.live == 0 && c.quarantined == 0;
}

/*
 * On a real host what is bound to the port's driver is what there is; name and id are its place's.
 * While something of the one before it is left there, it has the next id that is free.
 */
static struct smartiod_device *found(struct smartiod *d, const struct sio_evt_device *evt)
{
	uint32_t number = sio_topology_place_number(evt->bdf);
	struct smartiod_device *dev;
	uint32_t fdid;

	for (;;) {
		fdid = sio_topology_fdid(d->node, number);
		dev = smartiod_device_known(d, fdid);
		if (!dev || is_free(dev, evt->bdf))
			break;
		number = number % SIO_TOPO_NUMBERS + 1;
	}
	if (!dev) {
		dev = smartiod_device_found(d, d->host, fdid);
		if (!dev)
			return NULL;
		dev->found =
			(struct sio_topo_device){.bdf = evt->bdf, .slot = evt->slot, .fdid = fdid};
		smartiod_device_name(d, dev, evt->bdf, evt->class_code);
		sio_ledger_init(&dev->ledger, dev->topo->name);
	}
	dev->found.slot = evt->slot;
	dev->found.dma_bits = evt->dma_bits;
	smartiod_device_name(d, dev, evt->bdf, evt->class_code);
	return dev;
}

/* @fresh: it was open for nobody, also not for a daemon before us since it came. */
static void opened(struct smartiod *d, const struct sio_evt_device *evt, bool fresh)
{
	struct smartiod_device *dev = smartiod_device_by_port(d, evt->id);

	if (!dev)
		dev = match(d, evt);
	if (!dev && smartiod_is_real(d))
		dev = found(d, evt);
	if (!dev)
		return;
	dev->port = *evt;
	dev->generation = smartiod_generation(evt->generation);
	dev->present = true;
	dev->fresh |= fresh;
	smartiod_device_opened(d, dev, fresh);
	smartiod_device_describe(d, dev);
	smartiod_device_announce(d, dev);
}

/*
 * Emulated hardware may have what our file lacks while a reload goes on, or if it was not ended:
 * that is left alone until a file has it.
 */
static bool is_unknown(struct smartiod *d, const struct sio_evt_device *evt)
{
	if (smartiod_is_real(d) || smartiod_device_by_port(d, evt->id) || match(d, evt))
		return false;
	smartiod_log(d, SMARTIOD_WARNING, "device %.*s at %#x is not in the topology",
		     (int)sizeof(evt->name), evt->name, evt->bdf);
	return true;
}

/* Another look has opened it before this one. */
static bool is_open(struct smartiod *d, const struct start_op *s, int error)
{
	const struct smartiod_device *dev = smartiod_device_by_port(d, s->after);

	return error == -EBUSY && dev && dev->present;
}

/* Nobody had it open, or it is another one than the one that somebody had. */
static bool is_fresh(const struct start_op *s, const struct sio_evt_device *evt)
{
	return !s->force || evt->generation != s->generation;
}

/* @force: a daemon before us left it open. On a real host it is ours by right. */
static void ask_open(struct smartiod *d, struct start_op *s, bool force)
{
	struct sio_req_device_open req = {.h.op = SIO_OP_DEVICE_OPEN, .device = s->after};

	if (force)
		req.h.flags = SIO_DEVICE_FORCE;
	s->opening = true;
	s->force = force;
	smartiod_port_ask(d, &s->op, &req, sizeof(req));
}

/*
 * At the start a port that lacks something for a moment is asked again: who has borrowed the device
 * and goes on with it would lose it.
 */
static bool is_asked_again(struct smartiod *d, struct start_op *s, int error)
{
	if (s->only || (error != -ENOMEM && error != -ENOSPC) || s->again++ == AGAIN_MAX)
		return false;
	s->dozing = true;
	smartiod_op_doze(d, &s->op, AGAIN_NS);
	return true;
}

static void opening_step(struct smartiod *d, struct start_op *s, const struct smartiod_answer *a)
{
	if (a->error == -EBUSY && !s->force && smartiod_is_real(d)) {
		ask_open(d, s, true);
		return;
	}
	if (is_asked_again(d, s, a->error))
		return;
	if (!a->error)
		opened(d, a->msg, is_fresh(s, a->msg));
	else if (!is_open(d, s, a->error))
		smartiod_log(d, SMARTIOD_ERROR, "device %#" PRIx64 " cannot be lent: %s", s->after,
			     a->text);
	if (s->only)
		smartiod_op_free(d, &s->op);
	else
		ask_next(d, s);
}

static void start_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct start_op *s = (struct start_op *)op;

	if (a->error == -ENOENT && !s->opening) {
		bool all = !s->only;

		smartiod_op_free(d, op);
		if (all)
			smartiod_started(d);
		return;
	}
	if (a->error && !s->opening) {
		smartiod_fatal(d, "the port's devices cannot be listed: %s", a->text);
		smartiod_op_free(d, op);
		return;
	}
	if (s->dozing) {
		s->dozing = false;
		ask_open(d, s, s->force);
		return;
	}
	if (s->opening) {
		opening_step(d, s, a);
		return;
	}
	s->after = ((const struct sio_evt_device *)a->msg)->id;
	s->generation = ((const struct sio_evt_device *)a->msg)->generation;
	if (s->only && s->only != s->after) { /* it has gone again */
		smartiod_op_free(d, op);
		return;
	}
	if (!is_unknown(d, a->msg))
		ask_open(d, s, false);
	else if (s->only)
		smartiod_op_free(d, op);
	else
		ask_next(d, s);
}

void smartiod_devices_start(struct smartiod *d)
{
	struct sio_err err;
	struct start_op *s = smartiod_op_new(d, NULL, NULL, sizeof(*s), start_step, &err);

	if (!s) {
		smartiod_fatal(d, "%s", err.text);
		return;
	}
	ask_next(d, s);
}

void smartiod_device_look(struct smartiod *d, uint64_t id)
{
	struct sio_err err;
	struct start_op *s = smartiod_op_new(d, NULL, NULL, sizeof(*s), start_step, &err);

	if (!s) {
		smartiod_log(d, SMARTIOD_ERROR, "device %#" PRIx64 ": %s", id, err.text);
		return;
	}
	s->only = id;
	s->after = id - 1;
	ask_next(d, s);
}
