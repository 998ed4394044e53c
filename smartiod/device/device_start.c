/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the devices of this host at the port: all of them at the start, later each that is added.
 * For one that could not be looked at for want of memory all are listed when there is some: nothing
 * else reports it once more.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/device/device.h"

#define AGAIN_NS 10000000ull
#define AGAIN_MAX 100

enum look {
	LOOK_START, /* at all; the daemon is ready when they are open */
	LOOK_ONE,
	LOOK_MISSED, /* at all that are not open */
};

struct start_op {
	struct smartiod_op op;
	enum look look;
	uint64_t after;
	uint64_t only;	     /* LOOK_ONE */
	uint64_t generation; /* of @after, when it was listed */
	bool opening, force;
	bool dozing;	/* until it is opened, or listed, once more */
	unsigned again; /* how often it was opened once more */
};

static void ask_next(struct smartiod *d, struct start_op *s)
{
	struct sio_req_device_list req = {.h.op = SIO_OP_DEVICE_LIST, .after = s->after};

	s->opening = false;
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
 * A port that lacks something for a moment is asked again: at the start who has borrowed the device
 * and goes on with it would lose it, and one that has come back is reported once.
 */
static bool is_asked_again(struct smartiod *d, struct start_op *s, int error)
{
	if ((error != -ENOMEM && error != -ENOSPC) || s->again++ == AGAIN_MAX)
		return false;
	s->dozing = true;
	smartiod_op_doze(d, &s->op, AGAIN_NS);
	return true;
}

static void over(struct smartiod *d, struct start_op *s)
{
	bool start = s->look == LOOK_START;

	smartiod_op_free(d, &s->op);
	if (start)
		smartiod_started(d);
}

/* The device that was looked at is done with. */
static void go_on(struct smartiod *d, struct start_op *s)
{
	s->again = 0;
	if (s->look == LOOK_ONE)
		over(d, s);
	else
		ask_next(d, s);
}

static void opening_step(struct smartiod *d, struct start_op *s, const struct smartiod_answer *a)
{
	bool open = is_open(d, s, a->error);

	if (a->error == -EBUSY && !open && !s->force && smartiod_is_real(d)) {
		ask_open(d, s, true);
		return;
	}
	if (is_asked_again(d, s, a->error))
		return;
	if (!a->error)
		opened(d, a->msg, is_fresh(s, a->msg));
	else if (!open)
		smartiod_log(d, SMARTIOD_ERROR, "device %#" PRIx64 " cannot be lent: %s", s->after,
			     a->text);
	go_on(d, s);
}

static void listed(struct smartiod *d, struct start_op *s, const struct sio_evt_device *evt)
{
	const struct smartiod_device *dev = smartiod_device_by_port(d, evt->id);

	s->after = evt->id;
	s->generation = evt->generation;
	if (s->look == LOOK_ONE && s->only != s->after) /* it has gone again */
		over(d, s);
	else if ((s->look != LOOK_START && dev && dev->present) || is_unknown(d, evt))
		go_on(d, s);
	else
		ask_open(d, s, false);
}

static void start_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct start_op *s = (struct start_op *)op;

	if (s->dozing) {
		s->dozing = false;
		if (s->opening)
			ask_open(d, s, s->force);
		else
			ask_next(d, s);
	} else if (s->opening) {
		opening_step(d, s, a);
	} else if (a->error == -ENOENT) {
		over(d, s);
	} else if (!a->error) {
		listed(d, s, a->msg);
	} else if (!is_asked_again(d, s, a->error)) {
		smartiod_fatal(d, "the port's devices cannot be listed: %s", a->text);
		smartiod_op_free(d, op);
	}
}

static struct start_op *new_look(struct smartiod *d, enum look look, struct sio_err *reterr)
{
	struct start_op *s = smartiod_op_new(d, NULL, NULL, sizeof(*s), start_step, reterr);

	if (s)
		s->look = look;
	return s;
}

void smartiod_devices_start(struct smartiod *d)
{
	struct sio_err err;
	struct start_op *s = new_look(d, LOOK_START, &err);

	if (!s) {
		smartiod_fatal(d, "%s", err.text);
		return;
	}
	ask_next(d, s);
}

void smartiod_device_look(struct smartiod *d, uint64_t id)
{
	struct sio_err err;
	struct start_op *s = new_look(d, LOOK_ONE, &err);

	if (!s) {
		smartiod_log(d, SMARTIOD_ERROR,
			     "device %#" PRIx64 " waits until it can be looked at: %s", id,
			     err.text);
		d->device_missed = true;
		smartiod_ask_later(d);
		return;
	}
	s->only = id;
	s->after = id - 1;
	ask_next(d, s);
}

void smartiod_devices_look_missed(struct smartiod *d)
{
	struct start_op *s;
	struct sio_err err;

	if (!d->device_missed)
		return;
	s = new_look(d, LOOK_MISSED, &err);
	d->device_missed = !s;
	if (s)
		ask_next(d, s);
	else
		smartiod_ask_later(d);
}
