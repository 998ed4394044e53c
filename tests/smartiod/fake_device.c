/* SPDX-License-Identifier: BSD-2-Clause */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "fake_device.h"
#include "port.h"
#include "smartio/memdev.h"
#include "smartiod/device/device.h"

static struct fake_device *fake;
static struct fake_device *second; /* NULL: there is none */
static unsigned second_host;
static struct sio_topo_device both[2]; /* in the topology, where there are two */

/* By its id at the port; NULL: none has it. */
static struct fake_device *device_of(uint64_t id)
{
	if (fake && fake->id == id)
		return fake;
	return second && second->id == id ? second : NULL;
}

static uint64_t bar_address(const struct fake_device *f)
{
	return FAKE_BAR_ADDRESS + (f->id - FAKE_PORT_ID) * FAKE_APART;
}

static uint64_t cmb_address(const struct fake_device *f)
{
	return bar_address(f) + (FAKE_CMB_ADDRESS - FAKE_BAR_ADDRESS);
}

static void device(struct world *w, unsigned host, const struct sio_req *req,
		   const struct fake_device *f)
{
	struct sio_evt_device evt = {
		.id = f->id,
		.generation = f->generation,
		.bar_size = {0x4000, 0, f->cmb},
		.bar_addr = {bar_address(f), 0, cmb_address(f)},
		.bdf = f->topo.bdf,
		.class_code = f->strange  ? 0xff0000
			      : f->memory ? SIO_MEMDEV_CLASS
					  : 0x010802,
		.vendor = f->memory ? SIO_MEMDEV_VENDOR : 0,
		.device = f->memory ? SIO_MEMDEV_DEVICE : 0,
		.msix_count = FAKE_VECTORS,
		.msix_offset = 0x2000,
		.iommu_mode = f->iommu,
		.resets = f->no_reset ? 0 : 1u << SIO_RESET_FUNCTION,
		.present = 1,
	};

	world_answer(w, host, req, &evt, sizeof(evt), NULL, 0);
}

/* What the port says to requests for a device that is not there, or not open; else 0. */
static int absent(const struct world *w, unsigned host, const struct fake_device *f)
{
	if (!f || f->gone)
		return -ENODEV;
	return f->opened == w->host[host].boot_generation ? 0 : -EPERM;
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
	const bool whole = req->offset == 0 && req->length == 0x2000; /* for a kernel's driver */
	const struct fake_device *f = device_of(req->device);
	struct sio_evt_bar evt = {.length = req->length};
	struct world_res *r;
	int fd;

	if (req->offset + req->length > (memory ? f->cmb : 0x2000) ||
	    (registers && req->length > 0x1000 && !whole))
		fake->bad++;
	if (!live_owner(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such owner");
		return;
	}
	for (r = w->res; r; r = r->next)
		if (r->kind == SIO_KIND_BAR && r->device == f->id && r->size && !is_cut(r) &&
		    registers && write) {
			world_answer_error(w, host, &req->h, -EBUSY, "one writable view");
			return;
		}
	r = world_res_new(w, host, SIO_KIND_BAR, req->h.owner);
	r->size = registers && write; /* marks the writable view */
	r->device = req->device;
	r->address = (memory ? cmb_address(f) : bar_address(f)) + req->offset;
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
		if (r->kind == SIO_KIND_REQUESTER && r->device == req->device &&
		    r->adapter == req->adapter && !is_cut(r))
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
	if (!target || target->quarantined || !live_owner(w, host, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such target or owner");
		return;
	}
	if (target->kind == SIO_KIND_BAR &&
	    (target->device == req->device || req->offset + req->length > target->length))
		fake->bad++;
	if (target->kind == SIO_KIND_BAR && target->cut) {
		world_answer_error(w, host, &req->h, -ENODEV, "the pages are gone");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_DMAMAP, req->h.owner);
	r->target = req->target;
	r->target_kind = req->target_kind;
	r->size = req->length;
	r->device = req->device;
	evt.id = r->id;
	r->address = 0x10000000 + r->id * 0x100000;
	if (req->iova != SIO_PORT_ANY) {
		r->address = req->iova;
		r->node = SIO_LIST_CHOSEN; /* as it is listed */
	}
	evt.iova = r->address;
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static void cut_map(struct world_res *r)
{
	r->cut = true;
	r->target = r->target_kind = 0;
}

/* It leads nowhere, and its address stays taken. */
static void keep_address(struct world *w, unsigned host, const struct sio_req_dmaunmap *req)
{
	struct world_res *r = world_res_find(w, host, SIO_KIND_DMAMAP, req->id);

	if (!r) {
		world_answer_error(w, host, &req->h, -ENOENT, "gone");
		return;
	}
	fake->bad += r->target_kind == SIO_KIND_MEM;
	cut_map(r);
	world_settle_memory(w, host);
	world_answer_ok(w, host, &req->h);
}

/* It outlives the owner of its view. */
static void hold(struct world *w, unsigned host, const struct sio_req_hold *req)
{
	struct world_res *r = world_res_find(w, host, SIO_KIND_DMAMAP, req->id);

	if (!r || r->target_kind != SIO_KIND_BAR || !w->real) {
		world_answer_error(w, host, &req->h, r ? -EINVAL : -ENOENT, "of no BAR");
		return;
	}
	r->node |= SIO_LIST_HELD; /* as it is listed */
	world_answer_ok(w, host, &req->h);
}

/* No device reaches the pages of an owner that has ended. */
static void owner_ends(struct world *w, unsigned host, uint64_t owner)
{
	for (struct world_res *r = w->res; r; r = r->next) {
		const struct world_res *view = NULL;

		if (r->host == host && r->kind == SIO_KIND_DMAMAP && r->target_kind == SIO_KIND_BAR)
			view = world_res_find(w, host, SIO_KIND_BAR, r->target);
		if (view && view->owner == owner && !device_of(view->device)->follows_none &&
		    !(r->node & SIO_LIST_HELD))
			cut_map(r);
	}
}

/* Of device @id. */
static uint64_t settle_owner(struct world *w, unsigned host, uint64_t id, uint64_t owner)
{
	uint64_t n = 0;

	for (struct world_res *r = w->res, *next; r; r = next) {
		next = r->next;
		if (r->host != host || r->kind != SIO_KIND_DMAMAP || !r->quarantined ||
		    r->device != id || (owner && r->owner != owner)) /* 0: all */
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

	if (req->h.owner == 0 || !device_of(req->device)) {
		fake->bad++;
		world_answer_error(w, host, &req->h, -EINVAL, "no owner");
		return;
	}
	if (live_owner(w, host, req->h.owner)) {
		fake->bad++;
		world_answer_error(w, host, &req->h, -EPERM, "the owner lives");
		return;
	}
	evt.dmamaps = settle_owner(w, host, req->device, req->h.owner);
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

/* Views of them lead nowhere any more, and are there until they are closed. */
static void take_doorbells(struct world *w, unsigned host, const struct fake_device *f)
{
	for (struct world_res *r = w->res; r; r = r->next)
		if (r->host == host && r->kind == SIO_KIND_BAR && r->device == f->id &&
		    r->address >= bar_address(f) + 0x1000 && r->address < cmb_address(f))
			r->cut = true;
}

/* A living owner has views of its BARs, memory mapped for it, or a vector. */
static bool in_reach(const struct world *w, unsigned host, uint64_t id)
{
	for (const struct world_res *r = w->res; r; r = r->next)
		if (r->host == host && r->device == id && !r->quarantined && !r->cut &&
		    (r->kind == SIO_KIND_BAR || r->kind == SIO_KIND_DMAMAP ||
		     r->kind == SIO_KIND_VECTOR))
			return true;
	return false;
}

static void reset(struct world *w, unsigned host, const struct sio_req_reset *req)
{
	struct fake_device *f = device_of(req->device);
	struct sio_evt_reset evt;

	if (f->reset_error) {
		world_answer_error(w, host, &req->h, f->reset_error, "no reset");
		return;
	}
	if (req->kind == SIO_RESET_FUNCTION) {
		f->bad += f->no_reset;
		f->resets++;
		f->disturbed += in_reach(w, host, f->id);
	}
	memset(&evt, 0, sizeof(evt));
	evt.generation = ++f->generation;
	if (!f->ignorant && !(req->h.flags & SIO_RESET_KEEP_DOORBELLS))
		take_doorbells(w, host, f);
	evt.freed = settle_owner(w, host, f->id, 0);
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

/* That device. */
static struct fake_device *device_in(const struct sio_req *req)
{
	const void *msg = req;

	switch (req->op) {
	case SIO_OP_BAR:
		return device_of(((const struct sio_req_bar *)msg)->device);
	case SIO_OP_REQUESTER_ADD:
		return device_of(((const struct sio_req_requester_add *)msg)->device);
	case SIO_OP_DMAMAP:
		return device_of(((const struct sio_req_dmamap *)msg)->device);
	case SIO_OP_VECTOR:
		return device_of(((const struct sio_req_vector *)msg)->device);
	case SIO_OP_SETTLE:
		return device_of(((const struct sio_req_settle *)msg)->device);
	case SIO_OP_RESET:
		return device_of(((const struct sio_req_reset *)msg)->device);
	case SIO_OP_CONFIG:
		return device_of(((const struct sio_req_config *)msg)->device);
	default:
		return NULL;
	}
}

/* The next one that is there; NULL: none is left. */
static const struct fake_device *device_after(unsigned host, uint64_t after)
{
	if (host == 0 && !fake->gone && after < fake->id)
		return fake;
	return second && host == second_host && !second->gone && after < second->id ? second : NULL;
}

static bool list_device(struct world *w, unsigned host, const struct sio_req_device_list *req)
{
	const struct fake_device *f = device_after(host, req->after);

	if (f)
		device(w, host, &req->h, f);
	return f;
}

static void open_device(struct world *w, unsigned host, const struct sio_req_device_open *req)
{
	struct fake_device *f = device_of(req->device);

	if (!f || f->gone) {
		world_answer_error(w, host, &req->h, -ENODEV, "gone");
		return;
	}
	if (f->opened == w->host[host].boot_generation && !(req->h.flags & SIO_DEVICE_FORCE)) {
		world_answer_error(w, host, &req->h, -EBUSY, "open");
		return;
	}
	f->opened = w->host[host].boot_generation;
	device(w, host, &req->h, f);
}

static bool port_other(struct world *w, unsigned host, const struct sio_req *req, size_t len)
{
	const void *msg = req;

	(void)len;
	if (needs_device(req->op) && absent(w, host, device_in(req))) {
		world_answer_error(w, host, req, absent(w, host, device_in(req)),
				   "not there, or not open");
		return true;
	}
	switch (req->op) {
	case SIO_OP_DEVICE_LIST:
		return list_device(w, host, msg);
	case SIO_OP_DEVICE_OPEN:
		open_device(w, host, msg);
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
	case SIO_OP_HOLD:
		hold(w, host, msg);
		return true;
	case SIO_OP_DMAUNMAP:
		if (req->flags & SIO_DMAUNMAP_KEEP_ADDRESS) {
			keep_address(w, host, msg);
			return true;
		}
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

static void make(struct world *w, struct fake_device *f, unsigned host, unsigned slot)
{
	*f = (struct fake_device){.generation = 1, .id = FAKE_PORT_ID + slot - 1};
	snprintf(f->topo.name, sizeof(f->topo.name), "drive%u", slot - 1);
	strcpy(f->topo.type, "nvme");
	f->topo.bdf = 0x100 * slot;
	f->topo.fdid = sio_topology_fdid(w->topology->host[host].node, slot);
	f->topo.dma_bits = 64;
}

void fake_device_add(struct world *w, struct fake_device *f)
{
	make(w, f, 0, 1);
	fake = f;
	second = NULL;
	w->topology->host[0].device = &f->topo;
	w->topology->host[0].n_devices = 1;
	w->port_other = port_other;
	w->owner_other = owner_ends;
}

void fake_device_add_second(struct world *w, struct fake_device *f)
{
	make(w, f, 0, 2);
	second = f;
	second_host = 0;
	both[0] = fake->topo;
	both[1] = f->topo;
	w->topology->host[0].device = both;
	w->topology->host[0].n_devices = 2;
}

void fake_device_add_far(struct world *w, struct fake_device *f, unsigned host)
{
	make(w, f, host, 2);
	second = f;
	second_host = host;
	w->topology->host[host].device = &f->topo;
	w->topology->host[host].n_devices = 1;
}

void fake_device_resets(struct world *w, bool can)
{
	struct smartiod *d = w->host[0].daemon;
	struct smartiod_device *dev = d ? smartiod_device_by_port(d, fake->id) : NULL;

	fake->no_reset = !can;
	if (dev)
		dev->port.resets = can ? 1u << SIO_RESET_FUNCTION : 0;
}

static unsigned host_of(const struct fake_device *f)
{
	return f == second ? second_host : 0;
}

/* What the living have of it stays, cut off; so does what other devices have of its pages. */
static void cut(struct world *w, const struct fake_device *f)
{
	for (struct world_res *r = w->res, *next; r; r = next) {
		const struct world_res *view = NULL;

		next = r->next;
		if (r->kind == SIO_KIND_DMAMAP && r->target_kind == SIO_KIND_BAR)
			view = world_res_find(w, r->host, SIO_KIND_BAR, r->target);
		if (view && view->device == f->id)
			cut_map(r);
		/* Of its vectors and of memory the world does not say whose device they are for. */
		if (r->host != host_of(f) || is_cut(r) || (second && r->device != f->id))
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
	world_settle_memory(w, host_of(f));
}

bool fake_device_move_one(struct world *w, struct fake_device *f, bool in)
{
	struct sio_evt_device_state evt = {.device = f->id};

	if (f->gone != in)
		return false;
	f->gone = !in;
	f->opened = 0;
	evt.generation = ++f->generation;
	world_port_event(w, host_of(f), in ? SIO_EV_DEVICE_BACK : SIO_EV_DEVICE_GONE, 0, &evt,
			 sizeof(evt));
	if (!in)
		cut(w, f);
	return true;
}

bool fake_device_move(struct world *w, bool in)
{
	return fake_device_move_one(w, fake, in);
}

unsigned fake_count(const struct world *w, uint32_t kind, bool quarantined)
{
	unsigned n = 0;

	for (const struct world_res *r = w->res; r; r = r->next)
		n += r->kind == kind && r->quarantined == quarantined;
	return n;
}
