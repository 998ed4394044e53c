/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of a device's BARs. Each run of pages with one purpose is a memory object of its own,
 * because whoever has a descriptor can map all of it. A register page is made afresh for each
 * writer, so that the mapping of the previous one is cut off from the device; all others see a
 * sealed read-only mirror. Doorbells are made afresh at each reset (cut.c). So is a part of
 * controller memory, which also zeroes it, for a borrower that may use that part alone.
 */
#include "emu/device/device.h"

volatile void *emu_bar_view(struct emu_dev *dev, unsigned index)
{
	struct emu_run *run = &((struct emu_device *)dev->room)->run[index];

	return run->pages->kind == EMU_PAGE_REGISTERS ? run->view.data : run->mem.data;
}

volatile void *emu_bar_mirror(struct emu_dev *dev, unsigned index)
{
	return ((struct emu_device *)dev->room)->run[index].mirror.data;
}

uint64_t emu_run_key(const struct emu_run *run)
{
	return 1 + (uint64_t)run->device->number * EMU_DEV_PAGES +
	       (uint64_t)(run - run->device->run);
}

static const char *purpose(enum emu_page_kind kind)
{
	switch (kind) {
	case EMU_PAGE_REGISTERS:
		return "registers";
	case EMU_PAGE_DOORBELLS:
		return "doorbells";
	case EMU_PAGE_MSIX:
		return "interrupt table";
	case EMU_PAGE_MEMORY:
		return "controller memory";
	}
	return "unknown pages";
}

/* The run that the asked range lies in. */
static int find_run(struct emu_request *rq, struct emu_device *d, const struct sio_req_bar *m,
		    struct emu_run **ret)
{
	uint64_t end;

	if (m->bar >= SIO_DEVICE_BARS || d->config.bar_size[m->bar] == 0)
		return sio_fail(&rq->err, -EINVAL, "BAR: %s has no BAR %u", d->topo->name, m->bar);
	if (m->offset % EMU_PAGE || m->length % EMU_PAGE || m->length == 0 ||
	    __builtin_add_overflow(m->offset, m->length, &end))
		return sio_fail(&rq->err, -EINVAL,
				"BAR: range %#" PRIx64 " + %#" PRIx64 " is not of whole pages",
				(uint64_t)m->offset, (uint64_t)m->length);
	if (end > d->config.bar_size[m->bar])
		return sio_fail(&rq->err, -EINVAL,
				"BAR: range %#" PRIx64 " + %#" PRIx64
				" ends behind BAR %u of %#" PRIx64 " bytes",
				(uint64_t)m->offset, (uint64_t)m->length, m->bar,
				d->config.bar_size[m->bar]);
	for (unsigned i = 0; i < d->config.n_pages; i++) {
		const struct emu_dev_pages *p = &d->config.pages[i];

		if (p->bar != m->bar || m->offset < p->offset || m->offset >= p->offset + p->length)
			continue;
		if (end > p->offset + p->length)
			return sio_fail(&rq->err, -EINVAL,
					"BAR: range %#" PRIx64 " + %#" PRIx64
					" crosses the end of the %s at %#" PRIx64,
					(uint64_t)m->offset, (uint64_t)m->length, purpose(p->kind),
					p->offset + p->length);
		*ret = &d->run[i];
		return 0;
	}
	return sio_fail(&rq->err, -EINVAL, "BAR: nothing is behind offset %#" PRIx64 " of BAR %u",
			(uint64_t)m->offset, m->bar);
}

static int check_access(struct emu_request *rq, const struct sio_req_bar *m,
			const struct emu_run *run)
{
	const uint32_t both = SIO_ACCESS_READ | SIO_ACCESS_WRITE;

	if (m->access != SIO_ACCESS_READ && m->access != both)
		return sio_fail(&rq->err, -EINVAL,
				"BAR: access %#x, %d (read) or %u (read and "
				"write) is right",
				m->access, SIO_ACCESS_READ, both);
	if (m->caching > SIO_CACHE_WRITE_COMBINED)
		return sio_fail(&rq->err, -EINVAL, "BAR: caching %u, 0 to %d are right", m->caching,
				SIO_CACHE_WRITE_COMBINED);
	if (run->pages->kind == EMU_PAGE_MSIX)
		return sio_fail(&rq->err, -EACCES,
				"BAR: the interrupt table is not given out: pages beside it are");
	if (run->pages->kind == EMU_PAGE_REGISTERS && m->access == both && run->writer)
		return sio_fail(&rq->err, -EBUSY,
				"BAR: view %#" PRIx64 " of owner %#" PRIx64
				" may write the registers already",
				run->writer->o.id, run->writer->o.owner->o.id);
	return 0;
}

static int take_registers(struct emu_request *rq, struct emu_bar *b)
{
	struct emu_room *r = rq->host->room;
	struct emu_device *d = b->device;
	int rc;

	b->run->view.in = d->topo->in;
	rc = r->ops->mem_new(r->ctx, "registers", b->run->pages->length, &b->run->view);

	if (rc < 0) {
		memset(&b->run->view, 0, sizeof(b->run->view));
		return sio_fail(&rq->err, rc,
				"BAR: no memory for a register view: " SIO_MORE_MEMORY);
	}
	/* Whom the device's holder lets, another device or a peer, reaches the same page. */
	if (emu_check_mem(d->host, emu_run_key(b->run), emu_run_physical(b->run),
			  b->run->pages->length, b->run->view.data) < 0) {
		r->ops->mem_free(r->ctx, &b->run->view);
		memset(&b->run->view, 0, sizeof(b->run->view));
		return sio_fail(&rq->err, -ENOMEM,
				"BAR: no memory for a register view: " SIO_MORE_MEMORY);
	}
	emu_invalidate(r);
	b->run->writer = b;
	d->model->view_changed(d->state, (unsigned)(b->run - d->run));
	return 0;
}

/* Pages of controller memory for one who is not to reach its other pages. */
static int take_part(struct emu_request *rq, struct emu_bar *b)
{
	struct emu_room *r = rq->host->room;
	int rc;

	b->own.in = b->device->topo->in;
	rc = r->ops->mem_new(r->ctx, "part", b->length, &b->own);
	if (rc == 0) {
		rc = r->ops->mem_place(r->ctx, &b->run->mem, b->offset, &b->own);
		if (rc < 0)
			r->ops->mem_free(r->ctx, &b->own);
	}
	if (rc == 0)
		return 0;
	memset(&b->own, 0, sizeof(b->own));
	return sio_fail(&rq->err, rc,
			"BAR: no memory for a part of the controller's: " SIO_MORE_MEMORY);
}

static bool is_part(const struct emu_bar *b)
{
	return b->run->pages->kind == EMU_PAGE_MEMORY && b->access & SIO_ACCESS_WRITE &&
	       b->length < b->run->pages->length && b->o.host->room->ops->mem_place;
}

static int view_file(const struct emu_bar *b, uint64_t *ret_offset)
{
	*ret_offset = b->own.data ? 0 : b->offset;
	return b->own.data ? b->own.fd : emu_bar_mem(b)->fd;
}

int emu_op_bar(struct emu_request *rq, const void *msg)
{
	const struct sio_req_bar *m = msg;
	struct sio_evt_bar evt;
	struct emu_device *d = NULL;
	struct emu_run *run = NULL;
	struct emu_bar *b = NULL;
	bool write, registers;
	uint64_t offset;
	int rc, fd;

	rc = emu_device_get(rq, m->device, &d);
	if (rc == 0)
		rc = find_run(rq, d, m, &run);
	if (rc == 0)
		rc = check_access(rq, m, run);
	if (rc < 0)
		return rc;
	b = emu_object_new(rq, SIO_KIND_BAR, sizeof(*b), 0);
	if (!b)
		return rq->err.code;
	write = m->access & SIO_ACCESS_WRITE;
	registers = run->pages->kind == EMU_PAGE_REGISTERS;
	b->device = d;
	b->run = run;
	b->offset = m->offset - run->pages->offset;
	b->length = m->length;
	b->access = m->access;
	b->mirror = registers && !write;
	if (registers && write)
		rc = take_registers(rq, b);
	else if (is_part(b))
		rc = take_part(rq, b);
	if (rc < 0) {
		emu_object_drop(&b->o);
		return rc;
	}
	DL_APPEND(run->views, b);
	emu_object_ref(d->opened);
	d->writable_views += write;
	d->room->writable_views += write;
	memset(&evt, 0, sizeof(evt));
	evt.id = b->o.id;
	fd = view_file(b, &offset);
	evt.offset = offset;
	evt.length = b->length;
	if (b->mirror)
		evt.bar_flags = SIO_BAR_MIRROR;
	else if (registers)
		evt.bar_flags = SIO_BAR_REGISTERS | SIO_BAR_POLLED;
	else if (run->pages->kind == EMU_PAGE_DOORBELLS)
		evt.bar_flags = SIO_BAR_POLLED;
	else if (run->pages->kind == EMU_PAGE_MEMORY)
		evt.bar_flags = SIO_BAR_MEMORY;
	emu_answer(rq, &evt, sizeof(evt), &fd, 1);
	return 0;
}

int emu_op_bar_close(struct emu_request *rq, const void *msg)
{
	const struct sio_req_bar_close *m = msg;
	struct emu_bar *b = emu_object_find(rq, SIO_KIND_BAR, m->id);

	if (!b)
		return rq->err.code;
	if (b->o.refs)
		return sio_fail(&rq->err, -EBUSY,
				"BAR_CLOSE: %u grants or DMA mappings of view %#" PRIx64
				" are left",
				b->o.refs, b->o.id);
	emu_object_free(&b->o);
	emu_answer_ok(rq);
	return 0;
}

/*
 * Do the pages belong to another borrow's view, too, to which they were assigned after the end of
 * their user? References to a view outlive that user. The pages are left as they are until the
 * other borrow gets them.
 */
static bool has_successor(const struct emu_bar *b)
{
	const struct emu_bar *other;

	DL_FOREACH (b->run->views, other)
		if (other != b && other->own.data && other->offset < b->offset + b->length &&
		    b->offset < other->offset + other->length)
			return true;
	return false;
}

/* Give back what it has of its device. */
static void release_view(struct emu_bar *b)
{
	struct emu_room *r = b->o.host->room;
	struct emu_device *d = b->device;
	struct emu_run *run = b->run;

	DL_DELETE(run->views, b);
	if (b->access & SIO_ACCESS_WRITE) {
		d->writable_views--;
		r->writable_views--;
	}
	if (run->writer == b) {
		run->writer = NULL;
		emu_check_forget(d->host, SIO_KIND_MEM, emu_run_key(run));
		emu_invalidate(r);
		r->ops->mem_free(r->ctx, &run->view);
		memset(&run->view, 0, sizeof(run->view));
		if (!emu_device_is_out(d))
			d->model->view_changed(d->state, (unsigned)(run - d->run));
	}
	if (b->own.data) {
		if (run->mem.data && !has_successor(b))
			r->ops->mem_put_back(r->ctx, &run->mem, b->offset, &b->own);
		r->ops->mem_free(r->ctx, &b->own);
	}
	memset(&b->own, 0, sizeof(b->own));
	emu_object_unref(d->opened);
}

static void release(struct emu_object *o)
{
	struct emu_bar *b = (struct emu_bar *)o;

	if (!b->cut)
		release_view(b);
}

/* No program reaches the pages by this view any more, assigned or not. */
static void owner_ended(struct emu_object *o)
{
	if (o->refs)
		emu_view_cut((struct emu_bar *)o);
}

static uint64_t physical(const struct emu_object *o, uint64_t offset)
{
	const struct emu_bar *b = (const struct emu_bar *)o;

	return emu_run_physical(b->run) + b->offset + offset;
}

static uint64_t length(const struct emu_object *o)
{
	return ((const struct emu_bar *)o)->length;
}

static int file(const struct emu_object *o, uint64_t *ret_offset)
{
	const struct emu_bar *b = (const struct emu_bar *)o;

	return view_file(b, ret_offset);
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	const struct emu_bar *b = (const struct emu_bar *)o;

	e->device = b->device->topo->fdid;
	e->address = physical(o, 0);
	e->length = b->length;
	e->cookie = b->access;
}

const struct emu_kind emu_kind_bar = {.name = "BAR view",
				      .rank = EMU_RANK_BAR,
				      .release = release,
				      .owner_ended = owner_ended,
				      .row = row,
				      .physical = physical,
				      .length = length,
				      .file = file};

void emu_bar_cut(struct emu_bar *b)
{
	if (b->cut)
		return;
	release_view(b);
	b->cut = true;
}
