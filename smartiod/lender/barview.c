/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Views of BAR pages. There is one for each borrow, run of pages and kind of access, shared by all
 * mappings of that borrow; for another host there is also a grant of the view for each mapping.
 *
 * A reset closes the views of doorbells, whoever has them: after it a doorbell belongs to another
 * borrower's queue, and a program that was stopped before it learnt of the reset would ring that
 * one. Such a view is closed at the port. It stays in the tables, as do its grants, until its
 * borrower releases it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/lender/barview.h"

/* ---- views ---- */

struct smartiod_view *smartiod_view_find(struct smartiod_loan *l, uint32_t bar, uint32_t access,
					 uint64_t offset, uint64_t length)
{
	struct smartiod_view *v = l->views;

	while (v && (v->closed || v->bar != bar || v->access != access || v->offset != offset ||
		     v->length != length))
		v = v->next;
	return v;
}

bool smartiod_view_starts(struct smartiod *d, uint64_t borrow, uint64_t id, uint64_t *ret)
{
	const struct smartiod_loan *l = smartiod_loan_find(d, borrow);
	const struct smartiod_view *v = l ? l->views : NULL;

	while (v && v->id != id)
		v = v->next;
	if (v)
		*ret = v->offset;
	return v && !v->closed;
}

static bool writes_registers(const struct smartiod_view *v)
{
	return v->holds && v->access & SIO_ACCESS_WRITE;
}

void smartiod_view_drop_registers(struct smartiod_loan *l)
{
	for (const struct smartiod_view *v = l->views; v; v = v->next)
		if (writes_registers(v))
			return;
	sio_ledger_drop_registers(&l->device->ledger, l->id);
}

void smartiod_view_put(struct smartiod *d, struct smartiod_loan *l, struct smartiod_view *v)
{
	struct sio_req_bar_close req = {.h.op = SIO_OP_BAR_CLOSE, .id = v->id};
	struct smartiod_view **at = &l->views;
	bool registers = writes_registers(v);

	if (--v->users)
		return;
	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	if (!smartiod_loan_ended(l) && !v->closed) {
		smartiod_grants_cut(d, v->id);
		smartiod_port_send(d, &req, sizeof(req));
	}
	smartiod_close_fd(d, &v->fd);
	free(v);
	if (registers)
		smartiod_view_drop_registers(l);
}

/* Not every port knows what a page is for; the class does. */
static void know_use(struct smartiod_view *v, enum smartiod_bar_use use)
{
	v->doorbells = use == SMARTIOD_BAR_DOORBELLS;
	v->open = use == SMARTIOD_BAR_MEMORY;
	if (use == SMARTIOD_BAR_REGISTERS && v->access & SIO_ACCESS_WRITE)
		v->flags |= SIO_BAR_REGISTERS;
	if (use >= SMARTIOD_BAR_MEMORY)
		v->flags |= SIO_BAR_MEMORY;
	v->holds = v->flags & SIO_BAR_REGISTERS || use == SMARTIOD_BAR_HOLDER;
}

struct smartiod_view *smartiod_view_new(struct smartiod_loan *l, uint32_t bar, uint32_t access,
					const struct smartiod_bar_run *run,
					const struct smartiod_answer *a)
{
	const struct sio_evt_bar *evt = a->msg;
	struct smartiod_view *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	*v = (struct smartiod_view){.id = evt->id,
				    .bar = bar,
				    .access = access,
				    .flags = evt->bar_flags,
				    .offset = run->offset,
				    .length = run->length,
				    .fd_offset = evt->offset,
				    .fd = smartiod_take_fd(a, 0)};
	know_use(v, run->use);
	v->next = l->views;
	l->views = v;
	return v;
}

/* ---- grants of views ---- */

bool smartiod_view_grant_take(struct smartiod_loan *l, uint32_t node, uint64_t view, uint64_t grant,
			      struct smartiod_view_grant *ret_grant, struct smartiod_view **ret)
{
	struct smartiod_view_grant **at = &l->grants, *g;
	struct smartiod_view *v = l->views;

	while (*at && ((*at)->node != node || (*at)->view != view || (*at)->grant != grant))
		at = &(*at)->next;
	g = *at;
	if (!g)
		return false;
	*at = g->next;
	*ret_grant = *g;
	free(g);
	while (v && v->id != view)
		v = v->next;
	*ret = v;
	return true;
}

void smartiod_view_grant_put(struct smartiod *d, struct smartiod_loan *l, uint32_t node,
			     uint64_t view, uint64_t grant)
{
	struct smartiod_view_grant g;
	struct smartiod_view *v;

	if (!smartiod_view_grant_take(l, node, view, grant, &g, &v))
		return;
	if (g.member)
		smartiod_port_free(d, grant);
	else
		smartiod_grant_cut(d, grant); /* its importer may be unmapping it still */
	if (v)
		smartiod_view_put(d, l, v);
}

int smartiod_view_grant_add(struct smartiod_loan *l, const struct smartiod_view_grant *what)
{
	struct smartiod_view_grant *g = malloc(sizeof(*g));

	if (!g)
		return -ENOMEM;
	*g = *what;
	g->next = l->grants;
	l->grants = g;
	return 0;
}

/*
 * Its importer may be unmapping it still. One that has it for a device is told to. A member goes
 * with its borrow's owner: memory is not taken away while that lives.
 */
static void cut_grant(struct smartiod *d, const struct smartiod_view_grant *g)
{
	struct sio_peer_bar_cut msg = {
		.h.type = sio_to_le32(SIO_PEER_BAR_CUT),
		.grant = sio_to_le64(g->grant),
		.held = sio_to_le32(d->adapter[g->adapter].iommu != 0),
	};

	if (g->member)
		return;
	smartiod_grant_cut(d, g->grant);
	if (g->device && g->node != d->node)
		smartiod_notify(d, g->node, &msg, sizeof(msg));
}

/* Of before our start: the port closes them with the owner, and devices of others have some. */
static void unclaimed_end(struct smartiod *d, const struct smartiod_loan *l)
{
	struct smartiod_unclaimed *left = smartiod_unclaimed_after(d, 0);

	for (; left; left = smartiod_unclaimed_after(d, left->by_id.key))
		if (left->kind == SIO_KIND_BAR && left->owner == l->owner)
			smartiod_grants_cut(d, left->by_id.key);
}

void smartiod_views_end(struct smartiod *d, struct smartiod_loan *l)
{
	unclaimed_end(d, l);
	smartiod_views_keep(d, l);
	smartiod_dma_bars_cut(d, l->id, 0);
	while (l->grants) {
		struct smartiod_view_grant *g = l->grants;

		l->grants = g->next;
		cut_grant(d, g);
		free(g);
	}
	while (l->views) {
		struct smartiod_view *v = l->views;

		l->views = v->next;
		smartiod_grants_cut(d, v->id); /* of before our start, for devices of others */
		smartiod_close_fd(d, &v->fd);
		free(v);
	}
}

static bool goes_over(const struct smartiod_view_grant *g, uint32_t node,
		      const struct smartiod_path_change *path)
{
	return g->device && g->node == node &&
	       (!path || (g->adapter == path->adapter && g->peer_adapter == path->peer_adapter));
}

/* What a program has over it ends with its borrow: loan_end.c. */
void smartiod_view_grants_lost(struct smartiod *d, uint32_t node,
			       const struct smartiod_path_change *path)
{
	struct smartiod_view_grant *g;

	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id)) {
		for (g = l->grants; g;)
			if (goes_over(g, node, path)) {
				smartiod_grant_resume(d, g->grant, g->node, g->view);
				smartiod_view_grant_put(d, l, g->node, g->view, g->grant);
				g = l->grants; /* the list is another one */
			} else {
				g = g->next;
			}
	}
}

static bool is_run(const struct smartiod_device *dev, uint32_t bar,
		   const struct smartiod_unclaimed *left, const struct smartiod_bar_run *run)
{
	return run->length == left->length &&
	       run->offset == left->address - dev->port.bar_addr[bar];
}

/* What the port has there, by the class of the device; NULL: nothing that is known. */
static const struct smartiod_bar_run *find_run(const struct smartiod_device *dev, uint32_t bar,
					       const struct smartiod_unclaimed *left,
					       struct smartiod_bar_run run[SMARTIOD_BAR_RUNS])
{
	unsigned n = smartiod_devclass_runs(&dev->port, bar, run);

	for (unsigned i = 0; i < n; i++)
		if (is_run(dev, bar, left, &run[i]))
			return &run[i];
	return NULL;
}

/* The same for a view of a whole BAR, which a kernel's driver has. */
static const struct smartiod_bar_run *find_whole(const struct smartiod_device *dev, uint32_t bar,
						 const struct smartiod_unclaimed *left,
						 struct smartiod_bar_run *ret)
{
	return smartiod_devclass_whole(&dev->port, bar, ret) && is_run(dev, bar, left, ret) ? ret
											    : NULL;
}

/* ---- a reset ---- */

/* Return: its number. @v may be gone: it was in use by devices alone, and these have it no more. */
static uint64_t close_view(struct smartiod *d, struct smartiod_loan *l, struct smartiod_view *v)
{
	uint64_t id = v->id;

	v->closed = true;
	smartiod_close_fd(d, &v->fd);
	for (const struct smartiod_view_grant *g = l->grants; g; g = g->next)
		if (g->view == id)
			cut_grant(d, g);
	/* Another host's daemon does so when it hears of the reset. */
	if (l->node == d->node)
		smartiod_doorbells_gone(d, l->device, l->id);
	smartiod_dma_bars_cut(d, l->id, id);
	return id;
}

/* Of before we were started, whose program has not claimed them yet, and perhaps never does. */
static struct smartiod_unclaimed *doorbells_left(struct smartiod *d,
						 const struct smartiod_device *dev)
{
	struct smartiod_bar_run runs[SMARTIOD_BAR_RUNS];
	const struct smartiod_bar_run *run;
	struct smartiod_unclaimed *left;

	for (left = smartiod_unclaimed_after(d, 0); left;
	     left = smartiod_unclaimed_after(d, left->by_id.key))
		for (uint32_t bar = 0; bar < SIO_DEVICE_BARS; bar++) {
			if (left->kind != SIO_KIND_BAR || left->device != dev->port.id ||
			    !dev->port.bar_size[bar])
				continue;
			run = find_run(dev, bar, left, runs);
			if (run && run->use == SMARTIOD_BAR_DOORBELLS)
				return left;
		}
	return NULL;
}

uint64_t smartiod_doorbells_take(struct smartiod *d, struct smartiod_device *dev)
{
	struct smartiod_unclaimed *left;
	uint64_t id = 0;

	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		for (struct smartiod_view *v = l->views; l->device == dev && v; v = v->next)
			if (v->doorbells && !v->closed)
				return close_view(d, l, v);
	left = doorbells_left(d, dev);
	if (left) {
		id = left->by_id.key;
		smartiod_grants_cut(d, id);
		smartiod_dma_view_ends(d, left->owner, id);
		smartiod_unclaimed_done(d, left);
	}
	return id;
}

/* ---- views of before we were started ---- */

/*
 * The view @left. NULL: it leads nowhere, or will not for long: its pages were being taken away, by
 * a reset that the program has not heard of (@reset).
 */
static int view_again(struct smartiod *d, struct smartiod_loan *l, uint32_t bar, bool reset,
		      struct smartiod_unclaimed *left, struct smartiod_view **ret,
		      struct sio_err *reterr)
{
	struct smartiod_bar_run runs[SMARTIOD_BAR_RUNS];
	const struct smartiod_bar_run *run = find_run(l->device, bar, left, runs);
	struct smartiod_view *v;

	if (!run)
		run = find_whole(l->device, bar, left, runs);
	if (!run)
		return sio_fail(reterr, -ENOENT, "view %" PRIu64 " is none of BAR %" PRIu32,
				left->by_id.key, bar);
	if (reset && run->use == SMARTIOD_BAR_DOORBELLS)
		return 0;
	if (smartiod_unclaimed_check(left, reterr) < 0)
		return reterr->code;
	v = calloc(1, sizeof(*v));
	if (!v)
		return sio_fail(reterr, -ENOMEM,
				"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	*v = (struct smartiod_view){.id = left->by_id.key,
				    .bar = bar,
				    .access = (uint32_t)left->cookie,
				    .offset = run->offset,
				    .length = run->length,
				    .fd_offset = left->fd_offset,
				    .fd = smartiod_unclaimed_take_fd(left, 0)};
	know_use(v, run->use);
	if (v->holds)
		sio_ledger_hold_again(&l->device->ledger, l->id);
	smartiod_unclaimed_done(d, left);
	v->next = l->views;
	l->views = v;
	*ret = v;
	return 0;
}

/* The page that stands for the interrupt table, which stays until the borrow ends (bargrant.c). */
static int table_again(struct smartiod *d, struct smartiod_loan *l, struct smartiod_unclaimed *left,
		       struct smartiod_view **ret, struct sio_err *reterr)
{
	struct smartiod_view *v = calloc(1, sizeof(*v));

	if (!v)
		return sio_fail(reterr, -ENOMEM,
				"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	*v = (struct smartiod_view){.id = left->by_id.key,
				    .bar = SIO_PEER_BAR_TABLE,
				    .access = SIO_ACCESS_READ | SIO_ACCESS_WRITE,
				    .flags = SIO_BAR_MEMORY,
				    .open = true,
				    .length = SIO_PAGE_SIZE,
				    .users = 1,
				    .fd = -1};
	smartiod_unclaimed_done(d, left);
	v->next = l->views;
	l->views = v;
	*ret = v;
	return 0;
}

int smartiod_view_again(struct smartiod *d, struct smartiod_loan *l, uint32_t bar,
			const struct smartiod_view_grant *what, bool reset,
			struct smartiod_view **ret, struct sio_err *reterr)
{
	const bool table = bar == SIO_PEER_BAR_TABLE;
	uint64_t id = what->view;
	struct smartiod_view *v = l->views;
	struct smartiod_unclaimed *left;
	struct sio_err err;
	int rc = 0;

	if (!table && bar >= SIO_DEVICE_BARS)
		return sio_fail(reterr, -ENOENT, "%s has no BAR %" PRIu32, l->device->topo->name,
				bar);
	while (v && (v->id != id || v->bar != bar))
		v = v->next;
	/* What the port does not have any more gives nobody anything: it need not be true. */
	left = v ? NULL
		 : smartiod_unclaimed_get(d, table ? SIO_KIND_MEM : SIO_KIND_BAR, l->owner, id,
					  &err);
	if (left && table)
		rc = table_again(d, l, left, &v, reterr);
	else if (left)
		rc = view_again(d, l, bar, reset, left, &v, reterr);
	if (rc < 0)
		return rc;
	*ret = v;
	if (!v)
		return 0;
	v->users++;
	if (smartiod_view_grant_add(l, what) < 0) {
		smartiod_view_put(d, l, v);
		return sio_fail(reterr, -ENOMEM,
				"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	}
	return 0;
}
