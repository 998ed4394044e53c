/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of a device's BARs are revoked: the device is pulled out of its slot, or a reset takes its
 * doorbells away. What hosts have of them stays as objects that refer to nothing any more, until
 * their owners end them. Mapped pages read as ones, and stores to them go nowhere else.
 */
#include "emu/device/device.h"
#include "smartio/io.h"

#define ONES UINT64_MAX

void emu_fill_ones(const struct emu_room *r, const struct emu_mem *m)
{
	if (!m->data)
		return;
	if (r->ops->mem_ones) {
		r->ops->mem_ones(r->ctx, m);
		return;
	}
	for (uint64_t at = 0; at < m->size; at += sizeof(uint64_t))
		sio_write64((uint8_t *)m->data + at, ONES);
}

/* @o refers to the view: it refers to nothing from now on, or ends. */
static void cut(struct emu_object *o, const struct emu_bar *b)
{
	struct emu_dmamap *m = (struct emu_dmamap *)o;
	struct emu_grant *g = (struct emu_grant *)o;
	struct emu_ram *member = (struct emu_ram *)o;

	if (o->kind == SIO_KIND_DMAMAP && m->target == &b->o)
		emu_dmamap_cut(m);
	else if (o->kind == SIO_KIND_GRANT && g->source == &b->o)
		emu_grant_cut(g);
	else if (o->kind == SIO_KIND_MEM && member->overlay == b)
		emu_overlay_cut(member);
	else if (o->kind == SIO_KIND_DMA_RANGE && m->target == &b->o)
		emu_object_free(o); /* a channel's: its slot is empty from now on */
}

/* Hosts may have very many objects, and most views have none that refer to them. */
static void cut_references(const struct emu_bar *b)
{
	struct emu_object *o, *tmp;

	if (!b->o.refs && !b->o.attached)
		return;
	HASH_ITER (hh, b->o.host->objects, o, tmp)
		cut(o, b);
}

void emu_view_cut(const struct emu_bar *b)
{
	cut_references(b);
	emu_invalidate(b->o.host->room);
}

/* Windows of all hosts to these pages lead nowhere. */
static void cut_windows(struct emu_run *run)
{
	struct emu_map *m, *tmp;

	DL_FOREACH_SAFE2(run->windows, m, tmp, polled_next)
	{
		DL_DELETE2(run->windows, m, polled_prev, polled_next);
		m->polled = NULL;
		m->cut = true;
	}
}

static void cut_run(struct emu_run *run)
{
	struct emu_bar *b, *tmp;

	DL_FOREACH (run->views, b)
		cut_references(b);
	DL_FOREACH_SAFE (run->views, b, tmp)
		emu_bar_cut(b);
	cut_windows(run);
}

/* Objects that refer to a view end first. */
void emu_pages_cut(struct emu_device *d, struct emu_run *run)
{
	for (unsigned i = 0; i < d->config.n_pages; i++)
		if (!run || run == &d->run[i])
			cut_run(&d->run[i]);
	d->room->watch_dirty = true;
	emu_invalidate(d->room);
}

/* ---- doorbells ---- */

/* What was rung and not looked at yet has been rung: the device finds it in the new pages. */
static void copy(const struct emu_mem *from, const struct emu_mem *to)
{
	for (uint64_t at = 0; at < from->size; at += sizeof(uint64_t))
		sio_write64((uint8_t *)to->data + at, sio_read64((uint8_t *)from->data + at));
}

static void renew(struct emu_device *d, struct emu_run *run, const struct emu_mem *fresh)
{
	struct emu_mem old = run->mem;

	emu_pages_cut(d, run);
	copy(&old, fresh);
	run->mem = *fresh;
	emu_check_moved(d->host, emu_run_key(run), fresh->data);
	d->model->view_changed(d->state, (unsigned)(run - d->run));
	emu_fill_ones(d->room, &old);
	d->room->ops->mem_free(d->room->ctx, &old);
}

int emu_doorbells_renew(struct emu_device *d)
{
	struct emu_mem fresh[EMU_DEV_PAGES];
	struct emu_room *r = d->room;
	unsigned n = 0;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < d->config.n_pages; i++)
		if (d->run[i].pages->kind == EMU_PAGE_DOORBELLS) {
			fresh[n].in = d->topo->in;
			rc = r->ops->mem_new(r->ctx, "bar", d->run[i].pages->length, &fresh[n++]);
		}
	if (rc < 0) {
		n--; /* the one that could not be had */
		while (n-- > 0)
			r->ops->mem_free(r->ctx, &fresh[n]);
		return rc;
	}
	for (unsigned i = d->config.n_pages; i-- > 0;)
		if (d->run[i].pages->kind == EMU_PAGE_DOORBELLS)
			renew(d, &d->run[i], &fresh[--n]);
	return 0;
}
