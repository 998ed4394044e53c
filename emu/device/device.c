/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices in their slots: power, identity, opening, resets. */
#include <stdio.h>

#include "emu/device/device.h"

#define FIRST_IOVA 0x10000000ull

static const struct emu_dev_model *find_model(const struct emu_dev_model *const *m,
					      const char *type)
{
	while (*m && strcmp((*m)->type, type) != 0)
		m++;
	return *m;
}

static uint64_t dev_now(struct emu_dev *dev)
{
	struct emu_room *r = ((struct emu_device *)dev->room)->room;

	return r->ops->now(r->ctx);
}

static void dev_log(struct emu_dev *dev, const char *text)
{
	struct emu_device *d = dev->room;

	emu_log(d->room, "%s: %s", d->topo->name, text);
}

static void *dev_bulk_new(struct emu_dev *dev, uint64_t size)
{
	struct emu_room *r = ((struct emu_device *)dev->room)->room;

	return r->ops->bulk_new(r->ctx, size);
}

static void dev_bulk_free(struct emu_dev *dev, void *data, uint64_t size)
{
	struct emu_room *r = ((struct emu_device *)dev->room)->room;

	r->ops->bulk_free(r->ctx, data, size);
}

static void dev_bulk_zero(struct emu_dev *dev, void *data, uint64_t size)
{
	struct emu_room *r = ((struct emu_device *)dev->room)->room;

	r->ops->bulk_zero(r->ctx, data, size);
}

static unsigned dev_functions(struct emu_dev *dev)
{
	return emu_config_functions(dev->room);
}

static void dev_zero(struct emu_dev *dev, unsigned index)
{
	struct emu_device *d = dev->room;

	d->room->ops->mem_zero(d->room->ctx, &d->run[index].mem);
}

static int bars_too_high(const struct emu_device *d, struct sio_err *reterr)
{
	return sio_fail(reterr, -EINVAL,
			"device %s: bar_base %#" PRIx64 " is too high for its BARs", d->topo->name,
			d->topo->bar_base);
}

/*
 * BARs one behind the other, each aligned to its size, as firmware would place them. Those of
 * virtual functions: where a BAR of the first one is, the same of the others follow it (PCI Express
 * Base 6.0, section 9.3.3.14).
 */
static int place_bars(struct emu_device *d, struct sio_err *reterr)
{
	struct emu_device *pf = d->physical;
	unsigned number = pf ? d->topo->bdf - pf->topo->bdf : 1;
	unsigned n = pf ? pf->topo->virtual_functions : 1;
	uint64_t at = (pf ? emu_slot_function(pf, 1) : d)->topo->bar_base;

	for (unsigned i = 0; i < SIO_DEVICE_BARS; i++) {
		uint64_t size = d->config.bar_size[i];

		if (size == 0)
			continue;
		if (size & (size - 1) || size % EMU_PAGE)
			return sio_fail(reterr, -EINVAL,
					"device %s: BAR %u has %#" PRIx64
					" bytes, a power of 2 of whole pages is right",
					d->topo->name, i, size);
		if (__builtin_add_overflow(at, size - 1, &at))
			return bars_too_high(d, reterr);
		at &= ~(size - 1);
		d->bar_addr[i] = at + (number - 1) * size;
		if (__builtin_add_overflow(at, n * size, &at))
			return bars_too_high(d, reterr);
	}
	return 0;
}

static int check_pages(struct emu_device *d, struct sio_err *reterr)
{
	for (unsigned i = 0; i < d->config.n_pages; i++) {
		const struct emu_dev_pages *p = &d->config.pages[i];

		if (i >= EMU_DEV_PAGES || p->bar >= SIO_DEVICE_BARS || p->length == 0 ||
		    p->offset % EMU_PAGE || p->length % EMU_PAGE ||
		    p->length > d->config.bar_size[p->bar] ||
		    p->offset > d->config.bar_size[p->bar] - p->length)
			return sio_fail(reterr, -EINVAL,
					"device %s: its model describes pages %u "
					"that do not fit into BAR %u",
					d->topo->name, i, p->bar);
		d->run[i].device = d;
		d->run[i].pages = p;
	}
	return 0;
}

static int new_table(struct emu_device *d, struct sio_err *reterr)
{
	uint32_t n = d->config.msix_count;

	if (n > EMU_VECTORS)
		return sio_fail(reterr, -EINVAL,
				"device %s: %u interrupt vectors, at most %u are right",
				d->topo->name, n, EMU_VECTORS);
	if (n == 0)
		return 0;
	d->vector = calloc(n, sizeof(d->vector[0]));
	d->pending = calloc(n, sizeof(d->pending[0]));
	if (!d->vector || !d->pending)
		return sio_fail(reterr, -ENOMEM,
				"device %s: no memory for %u interrupt vectors: " SIO_MORE_MEMORY,
				d->topo->name, n);
	return 0;
}

static void join(struct emu_device *d, struct emu_device *physical)
{
	struct emu_device **end = &physical->next_function;

	while (*end)
		end = &(*end)->next_function;
	*end = d;
	d->physical = physical;
}

static void leave(struct emu_device *d)
{
	struct emu_device **at = &d->physical->next_function;

	while (*at != d)
		at = &(*at)->next_function;
	*at = d->next_function;
	d->next_function = NULL;
	d->physical = NULL;
}

static int init(struct emu_device *d, struct emu_host *h, struct emu_device *physical,
		const struct sio_topo_device *topo, const struct emu_dev_model *const *models,
		struct sio_err *reterr)
{
	int rc;

	d->room = h->room;
	d->host = h;
	d->topo = topo;
	d->number = h->last_number++;
	if (physical)
		join(d, physical);
	d->dev = (struct emu_dev){
		.room = d,
		.read = emu_dma_read,
		.write = emu_dma_write,
		.interrupt = emu_vector_raise,
		.now = dev_now,
		.functions = dev_functions,
		.log = dev_log,
		.view = emu_bar_view,
		.mirror = emu_bar_mirror,
		.zero = h->room->ops->mem_zero ? dev_zero : NULL,
		.bulk_new = h->room->ops->bulk_new ? dev_bulk_new : NULL,
		.bulk_free = h->room->ops->bulk_free ? dev_bulk_free : NULL,
		.bulk_zero = h->room->ops->bulk_zero ? dev_bulk_zero : NULL,
		.store = h->room->ops->store ? h->room->ops->store(h->room->ctx) : NULL,
	};
	if (physical)
		d->dev.physical = physical->state;
	d->model = find_model(models, topo->type);
	if (!d->model)
		return sio_fail(reterr, -EINVAL, "device %s: no model of type '%s'", topo->name,
				topo->type);
	rc = d->model->create(&d->dev, topo, &d->config, &d->state, reterr);
	if (rc < 0) {
		d->state = NULL;
		return sio_fail_prefix(reterr, "device %s", topo->name);
	}
	rc = place_bars(d, reterr);
	if (rc == 0)
		rc = check_pages(d, reterr);
	if (rc == 0)
		rc = new_table(d, reterr);
	if (rc == 0 && emu_config_new(d) < 0)
		rc = sio_fail(reterr, -ENOMEM, "device %s: no memory for its configuration space",
			      topo->name);
	return rc;
}

void emu_device_done(struct emu_device *d)
{
	if (d->physical)
		leave(d);
	if (d->state)
		d->model->destroy(d->state);
	d->state = NULL;
	free(d->vector);
	free(d->pending);
	d->vector = NULL;
	d->pending = NULL;
	emu_config_free(d);
}

int emu_device_new(struct emu_host *h, struct emu_device *physical,
		   const struct sio_topo_device *topo, const struct emu_dev_model *const *models,
		   struct emu_device **ret, struct sio_err *reterr)
{
	struct emu_device *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return sio_fail(reterr, -ENOMEM, "device %s: no memory for it: " SIO_MORE_MEMORY,
				topo->name);
	rc = init(d, h, physical, topo, models, reterr);
	if (rc < 0)
		emu_device_free(d);
	else
		*ret = d;
	return rc;
}

void emu_device_free(struct emu_device *d)
{
	emu_device_done(d);
	free(d);
}

static int new_pages(struct emu_device *d, struct emu_run *run)
{
	struct emu_room *r = d->room;
	int rc;

	run->mem.in = run->mirror.in = d->topo->in;
	switch (run->pages->kind) {
	case EMU_PAGE_REGISTERS:
		rc = r->ops->mem_new(r->ctx, "mirror", run->pages->length, &run->mirror);
		if (rc < 0) {
			memset(&run->mirror, 0, sizeof(run->mirror));
			return rc;
		}
		return r->ops->mem_seal(r->ctx, &run->mirror);
	case EMU_PAGE_DOORBELLS:
	case EMU_PAGE_MEMORY:
		rc = r->ops->mem_new(r->ctx,
				     run->pages->kind == EMU_PAGE_MEMORY ? "bar memory" : "bar",
				     run->pages->length, &run->mem);
		if (rc < 0)
			memset(&run->mem, 0, sizeof(run->mem));
		return rc;
	case EMU_PAGE_MSIX:
		return 0;
	}
	return -EINVAL;
}

static void free_pages(struct emu_device *d, struct emu_run *run)
{
	struct emu_room *r = d->room;

	if (run->mem.data)
		r->ops->mem_free(r->ctx, &run->mem);
	if (run->mirror.data)
		r->ops->mem_free(r->ctx, &run->mirror);
	memset(&run->mem, 0, sizeof(run->mem));
	memset(&run->mirror, 0, sizeof(run->mirror));
}

static int add_regions(struct emu_device *d, struct emu_run *run, struct sio_err *reterr)
{
	struct sio_region region = {.base = emu_run_physical(run),
				    .size = run->pages->length,
				    .kind = SIO_KIND_BAR,
				    .object = run};
	int rc = sio_addrmap_add(&d->host->map, &region, reterr);

	if (rc == 0 && run->mem.data)
		rc = emu_check_mem(d->host, emu_run_key(run), region.base, region.size,
				   run->mem.data);
	return rc;
}

static void remove_regions(struct emu_device *d, struct emu_run *run)
{
	emu_check_forget(d->host, SIO_KIND_MEM, emu_run_key(run));
	sio_addrmap_remove(&d->host->map, emu_run_physical(run));
}

/* The device's own address space; each host's begins elsewhere, so that mixing them up faults. */
static int new_domain(struct emu_device *d, struct sio_err *reterr)
{
	unsigned bits = d->topo->dma_bits > 48 ? 48 : d->topo->dma_bits;
	uint64_t end = 1ull << bits;
	uint64_t first = FIRST_IOVA + d->host->topo->node * 0x100000ull;
	int rc;

	if (first >= end)
		first = end / 2;
	sio_iommu_init(&d->iommu, d->topo->name);
	rc = sio_range_init(&d->iova, d->topo->name, first, end - first, reterr);
	if (rc == 0 && end > EMU_MSI_BASE + EMU_MSI_SIZE)
		rc = sio_range_reserve(&d->iova, EMU_MSI_BASE, EMU_MSI_SIZE, reterr);
	return rc;
}

int emu_device_plug(struct emu_device *d, bool power, struct sio_err *reterr)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < d->config.n_pages; i++) {
		rc = new_pages(d, &d->run[i]);
		if (rc < 0)
			return sio_fail(reterr, rc,
					"device %s: no memory for its BARs: " SIO_MORE_MEMORY,
					d->topo->name);
		rc = add_regions(d, &d->run[i], reterr);
	}
	if (rc == 0 && d->host->topo->iommu)
		rc = new_domain(d, reterr);
	if (rc < 0)
		return sio_fail_prefix(reterr, "device %s", d->topo->name);
	d->generation++;
	emu_vectors_reset(d);
	d->model->reset(d->state, power);
	return 0;
}

void emu_device_unplug(struct emu_device *d)
{
	for (unsigned i = 0; i < d->config.n_pages; i++) {
		remove_regions(d, &d->run[i]);
		free_pages(d, &d->run[i]);
	}
	if (d->host->topo->iommu) {
		sio_iommu_done(&d->iommu);
		sio_range_done(&d->iova);
		memset(&d->iommu, 0, sizeof(d->iommu));
		memset(&d->iova, 0, sizeof(d->iova));
	}
	memset(d->xlat, 0, sizeof(d->xlat));
	emu_invalidate(d->room);
}

/*
 * Firmware places the BARs of a slot's device again at each start, also of one that comes later;
 * all virtual functions of a drive that is there are enabled.
 */
int emu_device_power_on(struct emu_device *d, struct sio_err *reterr)
{
	const struct emu_device *pf = d->physical;
	int rc = 0;

	if (!pf) /* and those of its virtual functions */
		for (unsigned i = 0; rc == 0 && i <= d->topo->virtual_functions; i++)
			rc = place_bars(i ? emu_slot_function(d, i) : d, reterr);
	if (rc == 0)
		emu_config_reset(d, d->topo->virtual_functions);
	if (pf && emu_device_is_out(d) && !emu_device_is_out(pf))
		emu_slot_enter(d, EMU_SLOT_SET);
	return rc < 0 || emu_device_is_out(d) ? rc : emu_device_plug(d, true, reterr);
}

void emu_device_power_off(struct emu_device *d)
{
	struct emu_room *r = d->room;

	if (d->doze.data)
		r->ops->mem_free(r->ctx, &d->doze);
	memset(&d->doze, 0, sizeof(d->doze));
	d->n_dozing = 0;
	if (!emu_device_is_out(d))
		emu_device_unplug(d);
	emu_slot_enter(d, EMU_SLOT_POWER_OFF);
}

/* Each is alone on its bus, where its file says that it has a bus reset. */
static uint32_t resets(const struct emu_device *d)
{
	return d->topo->reset == SIO_TOPO_RESET_NONE ? 0 : 1u << d->topo->reset;
}
_Static_assert((int)SIO_TOPO_RESET_FUNCTION == SIO_RESET_FUNCTION &&
		       (int)SIO_TOPO_RESET_BUS == SIO_RESET_BUS,
	       "one numbering");

/* In its slot. */
static uint32_t functions(const struct emu_device *d)
{
	return 1 + (d->physical ? d->physical : d)->topo->virtual_functions;
}

static void answer_device(struct emu_request *rq, struct emu_device *d)
{
	struct sio_evt_device evt;

	memset(&evt, 0, sizeof(evt));
	evt.id = d->topo->fdid;
	evt.generation = d->generation;
	evt.serial = d->config.serial;
	for (unsigned i = 0; i < SIO_DEVICE_BARS; i++) {
		evt.bar_size[i] = d->config.bar_size[i];
		evt.bar_addr[i] = d->bar_addr[i];
	}
	evt.bdf = d->topo->bdf;
	evt.slot = d->topo->slot;
	evt.class_code = d->config.class_code;
	evt.vendor = d->config.vendor;
	evt.device = d->config.device;
	evt.subsys_vendor = d->config.subsys_vendor;
	evt.subsys_device = d->config.subsys_device;
	evt.functions = functions(d);
	evt.msix_count = d->config.msix_count;
	for (unsigned i = 0; i < d->config.n_pages; i++)
		if (d->config.pages[i].kind == EMU_PAGE_MSIX) {
			evt.msix_bar = d->config.pages[i].bar;
			evt.msix_offset = (uint32_t)d->config.pages[i].offset;
		}
	evt.dma_bits = d->topo->dma_bits;
	evt.iommu_group = d->number + 1;
	evt.iommu_mode = d->host->topo->iommu;
	evt.resets = resets(d);
	evt.present = 1;
	snprintf(evt.name, sizeof(evt.name), "%s", d->topo->name);
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
}

int emu_op_device_list(struct emu_request *rq, const void *msg)
{
	const struct sio_req_device_list *m = msg;
	struct emu_device *best = NULL;

	for (unsigned i = 0; i < rq->host->n_devices; i++) {
		struct emu_device *d = rq->host->device[i];

		if (!emu_device_is_out(d) && d->topo->fdid > m->after &&
		    (!best || d->topo->fdid < best->topo->fdid))
			best = d;
	}
	if (!best)
		return sio_fail(&rq->err, -ENOENT, "%s has no device behind %#" PRIx64,
				rq->host->topo->name, (uint64_t)m->after);
	answer_device(rq, best);
	return 0;
}

/* An opened device changes hands; what is mapped for it stays. */
static void take_over(struct emu_request *rq, struct emu_object *o)
{
	emu_object_give(o, rq->owner);
	o->state = SIO_STATE_LIVE;
}

int emu_op_device_open(struct emu_request *rq, const void *msg)
{
	const struct sio_req_device_open *m = msg;
	struct emu_device *d = emu_device_find(rq->host, m->device);
	struct emu_opened *o = NULL;

	if (!d)
		return sio_fail(&rq->err, -ENODEV, "DEVICE_OPEN: %s has no device %#" PRIx64,
				rq->host->topo->name, (uint64_t)m->device);
	if (d->opened && !(m->h.flags & SIO_DEVICE_FORCE))
		return sio_fail(&rq->err, -EBUSY, "DEVICE_OPEN: %s is open for owner %#" PRIx64,
				d->topo->name, d->opened->owner->o.id);
	if (d->opened) {
		take_over(rq, d->opened);
	} else {
		o = emu_object_new(rq, SIO_KIND_DEVICE, sizeof(*o), d->topo->fdid);
		if (!o)
			return rq->err.code;
		o->device = d;
		d->opened = &o->o;
	}
	answer_device(rq, d);
	return 0;
}

int emu_op_device_close(struct emu_request *rq, const void *msg)
{
	const struct sio_req_device_close *m = msg;
	struct emu_opened *o = emu_object_find(rq, SIO_KIND_DEVICE, m->device);

	if (!o)
		return rq->err.code;
	if (o->o.refs)
		return sio_fail(&rq->err, -EBUSY,
				"DEVICE_CLOSE: %u BAR views, DMA mappings, vectors "
				"and requester entries of %s are left",
				o->o.refs, o->device->topo->name);
	emu_object_free(&o->o);
	emu_answer_ok(rq);
	return 0;
}

static void release(struct emu_object *o)
{
	((struct emu_opened *)o)->device->opened = NULL;
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	e->device = ((const struct emu_opened *)o)->device->topo->fdid;
}

const struct emu_kind emu_kind_device = {
	.name = "open device", .rank = EMU_RANK_DEVICE, .release = release, .row = row};

int emu_op_reset(struct emu_request *rq, const void *msg)
{
	const struct sio_req_reset *m = msg;
	struct sio_evt_reset evt;
	struct emu_device *d = NULL;
	int rc = emu_device_get(rq, m->device, &d);

	if (rc < 0)
		return rc;
	if (m->kind < SIO_RESET_FUNCTION || m->kind > SIO_RESET_DONE)
		return sio_fail(&rq->err, -EINVAL,
				"RESET: kind %u, %d (function), %d (bus) or %d (done) is right",
				m->kind, SIO_RESET_FUNCTION, SIO_RESET_BUS, SIO_RESET_DONE);
	if (m->kind != SIO_RESET_DONE && !(resets(d) & 1u << m->kind))
		return sio_fail(&rq->err, -EOPNOTSUPP, "RESET: %s has no %s reset", d->topo->name,
				m->kind == SIO_RESET_BUS ? "bus" : "function");
	if (m->h.flags & SIO_RESET_KEEP_DOORBELLS && m->kind == SIO_RESET_DONE)
		return sio_fail(
			&rq->err, -EINVAL,
			"RESET: doorbells can be kept over a reset, not over the report of one");
	rc = m->h.flags & SIO_RESET_KEEP_DOORBELLS ? 0 : emu_doorbells_renew(d);
	if (rc < 0)
		return sio_fail(&rq->err, rc,
				"RESET: no memory for the doorbells of %s: " SIO_MORE_MEMORY,
				d->topo->name);
	if (m->kind != SIO_RESET_DONE) {
		emu_vectors_reset(d);
		d->model->reset(d->state, false);
	}
	d->generation++;
	memset(&evt, 0, sizeof(evt));
	evt.generation = d->generation;
	evt.freed = emu_dmamaps_settle(d, 0);
	if (m->kind != SIO_RESET_DONE)
		emu_slot_functions_renew(d);
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}
