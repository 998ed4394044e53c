/* SPDX-License-Identifier: BSD-2-Clause */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "fake_device.h"
#include "port.h"
#include "smartiod/device/device.h"

static struct fake_device *fake;

static void device(struct world *w, unsigned host, const struct sio_req *req)
{
	struct sio_evt_device evt = {
		.id = FAKE_PORT_ID,
		.generation = fake->generation,
		.bar_size = {0x4000, 0, fake->cmb},
		.bar_addr = {FAKE_BAR_ADDRESS, 0, FAKE_CMB_ADDRESS},
		.bdf = fake->topo.bdf,
		.class_code = 0x010802,
		.msix_count = FAKE_VECTORS,
		.msix_offset = 0x2000,
		.resets = fake->no_reset ? 0 : 1u << SIO_RESET_FUNCTION,
		.present = 1,
	};

	world_answer(w, host, req, &evt, sizeof(evt), NULL, 0);
}

/* What the port says to requests for a device that is not there, or not open; else 0. */
static int absent(const struct world *w, unsigned host)
{
	if (fake->gone)
		return -ENODEV;
	return fake->opened == w->host[host].boot_generation ? 0 : -EPERM;
}

/* An object of one that has been pulled out. */
static bool is_cut(const struct world_res *r)
{
	return r->cut;
}

static bool live_owner(struct world *w, unsigned host, uint64_t owner)
{
	return owner && world_res_find(w, host, SIO_KIND_OWNER, owner);
}

static void bar(struct world *w, unsigned host, const struct sio_req_bar *req)
{
	const bool memory = req->bar == 2, write = req->access & SIO_ACCESS_WRITE;
	const bool registers = !memory && req->offset < 0x1000;
	struct sio_evt_bar evt = {.length = req->length};
	struct world_res *r;
	int fd;

	if (req->offset + req->length > (memory ? fake->cmb : 0x2000) ||
	    (registers && req->length > 0x1000))
		fake->bad++;
	if (!live_owner(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such owner");
		return;
	}
	for (r = w->res; r; r = r->next)
		if (r->kind == SIO_KIND_BAR && r->size && !is_cut(r) && registers && write) {
			world_answer_error(w, host, &req->h, -EBUSY, "one writable view");
			return;
		}
	r = world_res_new(w, host, SIO_KIND_BAR, req->h.owner);
	r->size = registers && write; /* marks the writable view */
	r->device = req->device;
	r->address = (memory ? FAKE_CMB_ADDRESS : FAKE_BAR_ADDRESS) + req->offset;
	r->length = req->length;
	r->access = req->access;
	evt.id = r->id;
	evt.bar_flags = memory	     ? SIO_BAR_MEMORY
			: !registers ? SIO_BAR_POLLED
			: write	     ? SIO_BAR_REGISTERS
				     : SIO_BAR_MIRROR;
	fd = world_fd(w);
	world_answer(w, host, &req->h, &evt, sizeof(evt), &fd, 1);
}

static bool in_use(const struct world *w, unsigned host, uint32_t kind, uint64_t id)
{
	for (const struct world_res *u = w->res; u; u = u->next)
		if (u->host == host && u->target_kind == kind && u->target == id)
			return true;
	return false;
}

static void end(struct world *w, unsigned host, const struct sio_req *req, uint32_t kind,
		uint64_t id)
{
	struct world_res *r = world_res_find(w, host, kind, id);

	if (!r || (kind == SIO_KIND_DMAMAP && r->quarantined)) {
		world_answer_error(w, host, req, r ? -EPERM : -ENOENT, "gone or in quarantine");
		return;
	}
	if (in_use(w, host, kind, id)) {
		fake->bad++;
		world_answer_error(w, host, req, -EBUSY, "in use");
		return;
	}
	world_res_free(w, r);
	world_settle_memory(w, host);
	world_answer_ok(w, host, req);
}

static void requester_add(struct world *w, unsigned host, const struct sio_req_requester_add *req)
{
	struct sio_evt_requester_add evt = {.entry = 2};
	struct world_res *r;

	for (r = w->res; r; r = r->next)
		if (r->kind == SIO_KIND_REQUESTER && r->adapter == req->adapter && !is_cut(r))
			fake->bad++; /* one per device and adapter */
	r = world_res_new(w, host, SIO_KIND_REQUESTER, req->h.owner);
	r->device = req->device;
	r->adapter = req->adapter;
	r->size = req->adapter; /* as it is listed */
	evt.id = r->id;
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static void config(struct world *w, unsigned host, const struct sio_req_config *req)
{
	struct sio_evt_config evt = {.value = 0};
	bool write = req->h.flags & SIO_CONFIG_WRITE;

	if (req->offset + req->width > sizeof(fake->config)) {
		world_answer_error(w, host, &req->h, -EINVAL, "behind its end");
		return;
	}
	memcpy(&evt.value, fake->config + req->offset, req->width);
	if (write)
		evt.value = (evt.value & ~req->mask) | (req->value & req->mask);
	memcpy(fake->config + req->offset, &evt.value, req->width);
	fake->config_writes += write;
	fake->config_reads += !write;
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static void dmamap(struct world *w, unsigned host, const struct sio_req_dmamap *req)
{
	struct world_res *target = world_res_find(w, host, req->target_kind, req->target), *r;
	struct sio_evt_dmamap evt = {.length = req->length};
	bool requester = false;

	for (r = w->res; r; r = r->next)
		requester |= r->host == host && r->kind == SIO_KIND_REQUESTER && !is_cut(r);
	if (req->target_kind == SIO_KIND_MAP && !requester)
		fake->bad++;
	if (!target || !live_owner(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such target or owner");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_DMAMAP, req->h.owner);
	r->target = req->target;
	r->target_kind = req->target_kind;
	r->size = req->length;
	r->device = req->device;
	evt.id = r->id;
	evt.iova = r->address = 0x10000000 + r->id * 0x100000;
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static uint64_t settle_owner(struct world *w, unsigned host, uint64_t owner)
{
	uint64_t n = 0;

	for (struct world_res *r = w->res, *next; r; r = next) {
		next = r->next;
		if (r->host != host || r->kind != SIO_KIND_DMAMAP || !r->quarantined ||
		    (owner && r->owner != owner)) /* 0: all */
			continue;
		world_res_free(w, r);
		n++;
	}
	world_settle_memory(w, host);
	return n;
}

static void settle(struct world *w, unsigned host, const struct sio_req_settle *req)
{
	struct sio_evt_settle evt = {.dmamaps = 0};

	if (req->h.owner == 0 || req->device != FAKE_PORT_ID) {
		fake->bad++;
		world_answer_error(w, host, &req->h, -EINVAL, "no owner");
		return;
	}
	if (live_owner(w, host, req->h.owner)) {
		fake->bad++;
		world_answer_error(w, host, &req->h, -EPERM, "the owner lives");
		return;
	}
	evt.dmamaps = settle_owner(w, host, req->h.owner);
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

/* Views of them lead nowhere any more, and are there until they are closed. */
static void take_doorbells(struct world *w, unsigned host)
{
	for (struct world_res *r = w->res; r; r = r->next)
		if (r->host == host && r->kind == SIO_KIND_BAR &&
		    r->address >= FAKE_BAR_ADDRESS + 0x1000)
			r->cut = true;
}

/* A living owner has views of its BARs, memory mapped for it, or a vector. */
static bool in_reach(const struct world *w, unsigned host)
{
	for (const struct world_res *r = w->res; r; r = r->next)
		if (r->host == host && r->device == FAKE_PORT_ID && !r->quarantined && !r->cut &&
		    (r->kind == SIO_KIND_BAR || r->kind == SIO_KIND_DMAMAP ||
		     r->kind == SIO_KIND_VECTOR))
			return true;
	return false;
}

static void reset(struct world *w, unsigned host, const struct sio_req_reset *req)
{
	struct sio_evt_reset evt;

	if (fake->reset_error) {
		world_answer_error(w, host, &req->h, fake->reset_error, "no reset");
		return;
	}
	if (req->kind == SIO_RESET_FUNCTION) {
		fake->bad += fake->no_reset;
		fake->resets++;
		fake->disturbed += in_reach(w, host);
	}
	memset(&evt, 0, sizeof(evt));
	evt.generation = ++fake->generation;
	if (!fake->ignorant)
		take_doorbells(w, host);
	evt.freed = settle_owner(w, host, 0);
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static void watch(struct world *w, unsigned host, const struct sio_req_watch *req)
{
	struct sio_evt_watch evt = {.id = 0};
	struct world_res *r;
	int fds[2];

	if (req->length == 0 || req->offset + req->length > 0x1000 ||
	    w->port_fds != (req->kind == SIO_WATCH_FAULT))
		fake->bad++;
	if (!live_owner(w, host, req->h.owner) ||
	    !world_res_find(w, host, req->target_kind, req->target)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such target or owner");
		return;
	}
	if (world_leads_nowhere(w, world_res_find(w, host, req->target_kind, req->target))) {
		world_answer_error(w, host, &req->h, -ENODEV, "the pages are gone");
		return;
	}
	if (req->kind == SIO_WATCH_FAULT && req->address == FAKE_BAD_ADDRESS) {
		world_answer_error(w, host, &req->h, -EBADF, "no userfaultfd");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_WATCH, req->h.owner);
	r->watched = req->target;
	r->size = req->kind;
	evt.id = r->id;
	evt.flag_offset = 64;
	if (req->kind == SIO_WATCH_EVENT) {
		fds[0] = world_fd(w);
		fds[1] = world_fd(w);
	}
	world_answer(w, host, &req->h, &evt, sizeof(evt), fds,
		     req->kind == SIO_WATCH_EVENT ? 2 : 0);
}

static struct world_res *find_vector(const struct world *w, uint32_t number)
{
	struct world_res *r = w->res;

	while (r && (r->kind != SIO_KIND_VECTOR || r->size != number))
		r = r->next;
	return r;
}

uint64_t fake_vector(const struct world *w, uint32_t number)
{
	const struct world_res *r = find_vector(w, number);

	return r ? r->target : 0;
}

static void vector(struct world *w, unsigned host, const struct sio_req_vector *req)
{
	struct world_res *r = find_vector(w, req->vector), *target;
	bool requester = false;

	target = world_res_find(w, host, SIO_KIND_IRQ, req->irq);
	if (!target)
		target = world_res_find(w, host, SIO_KIND_MAP, req->irq);
	for (const struct world_res *q = w->res; q; q = q->next)
		requester |= q->host == host && q->kind == SIO_KIND_REQUESTER && !is_cut(q);
	if (req->vector >= FAKE_VECTORS || req->device != FAKE_PORT_ID || req->address ||
	    req->data || req->mask || (req->irq && r) || (req->irq == 0 && req->h.owner) ||
	    (target && target->kind == SIO_KIND_MAP && !requester))
		fake->bad++;
	if (req->irq && (!target || target->quarantined || !live_owner(w, host, req->h.owner))) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such interrupt or owner");
		return;
	}
	if (req->irq == 0) {
		if (r)
			world_res_free(w, r);
		world_settle_memory(w, host);
	} else {
		r = world_res_new(w, host, SIO_KIND_VECTOR, req->h.owner);
		r->target = target->id;
		r->target_kind = target->kind;
		r->size = req->vector;
	}
	world_answer_ok(w, host, &req->h);
}

/* It names the device, which must be there and open for that. */
static bool needs_device(uint32_t op)
{
	return op == SIO_OP_BAR || op == SIO_OP_REQUESTER_ADD || op == SIO_OP_DMAMAP ||
	       op == SIO_OP_VECTOR || op == SIO_OP_SETTLE || op == SIO_OP_RESET ||
	       op == SIO_OP_CONFIG;
}

static bool port_other(struct world *w, unsigned host, const struct sio_req *req, size_t len)
{
	const void *msg = req;

	(void)len;
	if (needs_device(req->op) && absent(w, host)) {
		world_answer_error(w, host, req, absent(w, host), "not there, or not open");
		return true;
	}
	switch (req->op) {
	case SIO_OP_DEVICE_LIST:
		if (host != 0 || fake->gone ||
		    ((const struct sio_req_device_list *)msg)->after >= FAKE_PORT_ID)
			return false;
		device(w, host, req);
		return true;
	case SIO_OP_DEVICE_OPEN:
		if (fake->gone) {
			world_answer_error(w, host, req, -ENODEV, "gone");
			return true;
		}
		if (fake->opened == w->host[host].boot_generation &&
		    !(req->flags & SIO_DEVICE_FORCE)) {
			world_answer_error(w, host, req, -EBUSY, "open");
			return true;
		}
		fake->opened = w->host[host].boot_generation;
		device(w, host, req);
		return true;
	case SIO_OP_BAR:
		bar(w, host, msg);
		return true;
	case SIO_OP_BAR_CLOSE:
		if (fake->no_memory && fake->no_memory--) {
			world_answer_error(w, host, req, -ENOMEM, "the test says so");
			return true;
		}
		end(w, host, req, SIO_KIND_BAR, ((const struct sio_req_bar_close *)msg)->id);
		return true;
	case SIO_OP_REQUESTER_ADD:
		requester_add(w, host, msg);
		return true;
	case SIO_OP_REQUESTER_DEL:
		end(w, host, req, SIO_KIND_REQUESTER,
		    ((const struct sio_req_requester_del *)msg)->id);
		return true;
	case SIO_OP_CONFIG:
		config(w, host, msg);
		return true;
	case SIO_OP_DMAMAP:
		dmamap(w, host, msg);
		return true;
	case SIO_OP_DMAUNMAP:
		end(w, host, req, SIO_KIND_DMAMAP, ((const struct sio_req_dmaunmap *)msg)->id);
		return true;
	case SIO_OP_WATCH:
		watch(w, host, msg);
		return true;
	case SIO_OP_UNWATCH:
		end(w, host, req, SIO_KIND_WATCH, ((const struct sio_req_unwatch *)msg)->id);
		return true;
	case SIO_OP_VECTOR:
		vector(w, host, msg);
		return true;
	case SIO_OP_SETTLE:
		settle(w, host, msg);
		return true;
	case SIO_OP_RESET:
		reset(w, host, msg);
		return true;
	default:
		return false;
	}
}

void fake_device_add(struct world *w, struct fake_device *f)
{
	*f = (struct fake_device){.generation = 1};
	strcpy(f->topo.name, "drive0");
	strcpy(f->topo.type, "nvme");
	f->topo.bdf = 0x100;
	f->topo.fdid = sio_topology_fdid(w->topology->host[0].node, 1);
	f->topo.dma_bits = 64;
	fake = f;
	w->topology->host[0].device = &f->topo;
	w->topology->host[0].n_devices = 1;
	w->port_other = port_other;
}

void fake_device_resets(struct world *w, bool can)
{
	struct smartiod *d = w->host[0].daemon;
	struct smartiod_device *dev =
		d ? smartiod_device_known(d, sio_topology_fdid(w->host[0].node, 1)) : NULL;

	fake->no_reset = !can;
	if (dev)
		dev->port.resets = can ? 1u << SIO_RESET_FUNCTION : 0;
}

/* What the living have of it stays, cut off. */
static void cut(struct world *w)
{
	for (struct world_res *r = w->res, *next; r; r = next) {
		next = r->next;
		if (r->host != 0 || is_cut(r))
			continue;
		if (r->kind == SIO_KIND_VECTOR || (r->kind == SIO_KIND_DMAMAP && r->quarantined)) {
			world_res_free(w, r);
			continue;
		}
		r->cut = r->kind == SIO_KIND_BAR || r->kind == SIO_KIND_REQUESTER ||
			 r->kind == SIO_KIND_DMAMAP;
		if (r->kind == SIO_KIND_DMAMAP || r->kind == SIO_KIND_MEM)
			r->target = r->target_kind = 0;
	}
	world_settle_memory(w, 0);
}

bool fake_device_move(struct world *w, bool in)
{
	struct sio_evt_device_state evt = {.device = FAKE_PORT_ID};

	if (fake->gone != in)
		return false;
	fake->gone = !in;
	fake->opened = 0;
	evt.generation = ++fake->generation;
	world_port_event(w, 0, in ? SIO_EV_DEVICE_BACK : SIO_EV_DEVICE_GONE, 0, &evt, sizeof(evt));
	if (!in)
		cut(w);
	return true;
}

unsigned fake_count(const struct world *w, uint32_t kind, bool quarantined)
{
	unsigned n = 0;

	for (const struct world_res *r = w->res; r; r = r->next)
		n += r->kind == kind && r->quarantined == quarantined;
	return n;
}
