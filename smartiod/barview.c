/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lender's side of BAR maps: views of page runs by the class table, one per borrow, run and
 * access, shared by all maps of that borrow; and for another host a grant of the view per map.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/devclass.h"
#include "smartiod/restore.h"

#define BOTH (SIO_ACCESS_READ | SIO_ACCESS_WRITE)

struct part {
	enum smartiod_bar_use use;
	uint32_t access;
	uint64_t offset, length; /* in the BAR */
	struct smartiod_view *view;
	uint64_t grant;
};

struct bar_op {
	struct smartiod_lend lend;
	uint32_t bar, adapter, peer_adapter;
	unsigned n_parts, at;
	bool granting;
	bool fresh; /* the registers are newly held: tell of who waits */
	struct part part[SMARTIOD_BAR_RUNS];
	struct sio_prep_bar_grant rep;
};

_Static_assert(SMARTIOD_BAR_RUNS <= SIO_MAP_PIECES, "a map holds all runs");

/* ---- views ---- */

static struct smartiod_view *find_view(struct smartiod_loan *l, uint32_t bar, const struct part *p)
{
	struct smartiod_view *v = l->views;

	while (v && (v->bar != bar || v->access != p->access || v->offset != p->offset ||
		     v->length != p->length))
		v = v->next;
	return v;
}

static bool writes_registers(const struct smartiod_view *v)
{
	return v->flags & SIO_BAR_REGISTERS && v->access & SIO_ACCESS_WRITE;
}

/* The last writable view of the registers is gone: others may have them. */
static void drop_registers(struct smartiod_loan *l)
{
	for (const struct smartiod_view *v = l->views; v; v = v->next)
		if (writes_registers(v))
			return;
	sio_ledger_drop_registers(&l->device->ledger, l->id);
}

static void view_put(struct smartiod *d, struct smartiod_loan *l, struct smartiod_view *v)
{
	struct sio_req_bar_close req = {.h.op = SIO_OP_BAR_CLOSE, .id = v->id};
	struct smartiod_view **at = &l->views;
	bool registers = writes_registers(v);

	if (--v->users)
		return;
	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	if (!l->ended)
		smartiod_port_tell(d, &req, sizeof(req));
	smartiod_close_fd(d, &v->fd);
	free(v);
	if (registers)
		drop_registers(l);
}

static struct smartiod_view *view_new(struct bar_op *b, const struct part *p,
				      const struct smartiod_answer *a)
{
	const struct sio_evt_bar *evt = a->msg;
	struct smartiod_loan *l = b->lend.loan;
	struct smartiod_view *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	*v = (struct smartiod_view){.id = evt->id,
				    .bar = b->bar,
				    .access = p->access,
				    .flags = evt->bar_flags,
				    .offset = p->offset,
				    .length = p->length,
				    .fd_offset = evt->offset,
				    .fd = smartiod_take_fd(a, 0)};
	/* Not every port knows what a page is for; the class does. */
	if (p->use == SMARTIOD_BAR_REGISTERS && p->access & SIO_ACCESS_WRITE)
		v->flags |= SIO_BAR_REGISTERS;
	v->next = l->views;
	l->views = v;
	return v;
}

/* ---- grants of views ---- */

static void grant_put(struct smartiod *d, struct smartiod_loan *l, uint64_t view, uint64_t grant)
{
	struct smartiod_view_grant **at = &l->grants, *g;
	struct smartiod_view *v = l->views;

	while (*at && ((*at)->view != view || (*at)->grant != grant))
		at = &(*at)->next;
	g = *at;
	if (!g)
		return;
	*at = g->next;
	smartiod_grant_cut(d, grant); /* its importer may be unmapping it still */
	free(g);
	while (v && v->id != view)
		v = v->next;
	if (v)
		view_put(d, l, v);
}

/* Keep books that this view (and grant) is in use by one map. */
static int grant_add(struct smartiod_loan *l, struct smartiod_view *v, uint64_t grant)
{
	struct smartiod_view_grant *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->view = v->id;
	g->grant = grant;
	g->next = l->grants;
	l->grants = g;
	return 0;
}

void smartiod_views_end(struct smartiod *d, struct smartiod_loan *l)
{
	while (l->grants) {
		struct smartiod_view_grant *g = l->grants;

		l->grants = g->next;
		smartiod_grant_cut(d, g->grant);
		free(g);
	}
	while (l->views) {
		struct smartiod_view *v = l->views;

		l->views = v->next;
		smartiod_close_fd(d, &v->fd);
		free(v);
	}
}

/* ---- views of before we were started ---- */

/* What the port has there, by the class of the device; NULL with *reterr. */
static struct smartiod_view *view_again(struct smartiod *d, struct smartiod_loan *l, uint32_t bar,
					struct smartiod_leftover *left, struct sio_err *reterr)
{
	uint64_t offset = left->address - l->device->port.bar_addr[bar];
	struct smartiod_bar_run run[SMARTIOD_BAR_RUNS];
	unsigned n = smartiod_devclass_runs(&l->device->port, bar, run), i = 0;
	struct smartiod_view *v;

	while (i < n && (run[i].offset != offset || run[i].length != left->length))
		i++;
	if (i == n || left->fd[0] < 0) {
		sio_fail(reterr, -ENOENT, "view %" PRIu64 " is none of BAR %" PRIu32,
			 left->by_id.key, bar);
		return NULL;
	}
	v = calloc(1, sizeof(*v));
	if (!v) {
		sio_fail(reterr, -ENOMEM, "the lender's daemon is out of memory");
		return NULL;
	}
	*v = (struct smartiod_view){.id = left->by_id.key,
				    .bar = bar,
				    .access = (uint32_t)left->cookie,
				    .offset = offset,
				    .length = left->length,
				    .fd = smartiod_leftover_take_fd(left, 0)};
	if (run[i].use == SMARTIOD_BAR_REGISTERS && v->access & SIO_ACCESS_WRITE) {
		v->flags = SIO_BAR_REGISTERS;
		sio_ledger_hold_again(&l->device->ledger, l->id);
	}
	smartiod_leftover_done(d, left);
	v->next = l->views;
	l->views = v;
	return v;
}

int smartiod_view_again(struct smartiod *d, struct smartiod_loan *l, uint32_t bar, uint64_t id,
			struct smartiod_view **ret, struct sio_err *reterr)
{
	struct smartiod_view *v = l->views;
	struct smartiod_leftover *left;

	while (v && (v->id != id || v->bar != bar))
		v = v->next;
	if (!v) {
		left = smartiod_leftover_get(d, SIO_KIND_BAR, l->owner, id, reterr);
		v = left ? view_again(d, l, bar, left, reterr) : NULL;
	}
	if (!v)
		return reterr->code;
	v->users++;
	if (grant_add(l, v, 0) < 0) {
		view_put(d, l, v);
		return sio_fail(reterr, -ENOMEM, "the lender's daemon is out of memory");
	}
	*ret = v;
	return 0;
}

/* ---- BAR_GRANT ---- */

static void bar_go(struct smartiod *d, struct bar_op *b);

/* Give back what the parts before the failure have; @error goes to the asker. */
static void bar_fail(struct smartiod *d, struct bar_op *b, int error, const char *text)
{
	struct smartiod_loan *l = b->lend.loan;

	for (unsigned i = 0; i < b->at; i++) {
		smartiod_grant_end(d, b->part[i].grant); /* the asker was told of none */
		if (!l->ended)
			grant_put(d, l, b->part[i].view->id, b->part[i].grant);
	}
	if (b->fresh && !l->ended)
		drop_registers(l);
	smartiod_lend_fail(d, &b->lend, error, "BAR %" PRIu32 " of %s: %s", b->bar,
			   l->device->topo->name, text);
}

static void bar_done(struct smartiod *d, struct bar_op *b)
{
	struct smartiod_loan *l = b->lend.loan;
	struct sio_prep_bar_grant rep = b->rep; /* the operation goes before its asker looks */
	int fds[SMARTIOD_BAR_RUNS];
	bool fresh = b->fresh;
	unsigned n = b->n_parts;

	rep.borrower = sio_to_le64(l->id);
	rep.fdid = sio_to_le32(l->device->fdid);
	rep.n_pieces = sio_to_le32(b->n_parts);
	for (unsigned i = 0; i < b->n_parts; i++)
		fds[i] = b->part[i].view->fd;
	l->pins++;
	smartiod_lend_done(d, &b->lend, &rep, sizeof(rep), fds, n);
	if (fresh)
		smartiod_holder_welcome(d, l);
	smartiod_loan_unpin(d, l);
}

/* Part b->at is complete. */
static void part_done(struct smartiod *d, struct bar_op *b, const struct sio_wire_grant *g)
{
	struct part *p = &b->part[b->at];
	struct sio_wire_bar_piece *piece = &b->rep.piece[b->at];

	piece->offset = sio_to_le64(p->offset);
	piece->bytes = sio_to_le64(p->length);
	piece->view = sio_to_le64(p->view->id);
	piece->fd_offset = sio_to_le64(p->view->fd_offset);
	piece->access = sio_to_le32(p->access);
	piece->flags = sio_to_le32(p->view->flags);
	if (g)
		piece->g = *g;
	b->at++;
	b->granting = false;
	bar_go(d, b);
}

/* The view is there: grant it to the asker's host, or be done with the part. */
static void part_view(struct smartiod *d, struct bar_op *b)
{
	struct smartiod_loan *l = b->lend.loan;
	struct part *p = &b->part[b->at];
	struct sio_req_grant req = {
		.h = {.op = SIO_OP_GRANT, .owner = l->owner},
		.source_kind = SIO_KIND_BAR,
		.access = p->access,
		.source = p->view->id,
		.length = p->length,
		.adapter = b->adapter,
		.peer_node = l->node,
		.peer_adapter = b->peer_adapter,
	};

	p->view->users++;
	if (l->node != d->node) {
		b->granting = true;
		smartiod_port_ask(d, &b->lend.op, &req, sizeof(req));
		return;
	}
	if (grant_add(l, p->view, 0) < 0) {
		view_put(d, l, p->view);
		bar_fail(d, b, -ENOMEM, "the lender's daemon is out of memory");
		return;
	}
	part_done(d, b, NULL);
}

static void bar_go(struct smartiod *d, struct bar_op *b)
{
	struct smartiod_loan *l = b->lend.loan;
	struct part *p = &b->part[b->at];
	struct sio_req_bar req = {
		.h = {.op = SIO_OP_BAR, .owner = l->owner},
		.device = l->device->port.id,
		.bar = b->bar,
	};

	if (b->at == b->n_parts) {
		bar_done(d, b);
		return;
	}
	p->view = find_view(l, b->bar, p);
	if (p->view) {
		part_view(d, b);
		return;
	}
	req.access = p->access;
	req.offset = p->offset;
	req.length = p->length;
	smartiod_port_ask(d, &b->lend.op, &req, sizeof(req));
}

static void granted(struct smartiod *d, struct bar_op *b, const struct smartiod_answer *a)
{
	const struct sio_evt_grant *evt = a->msg;
	struct smartiod_loan *l = b->lend.loan;
	struct part *p = &b->part[b->at];
	const struct smartiod_grant what = {.node = l->node,
					    .adapter = b->adapter,
					    .peer_adapter = b->peer_adapter,
					    .purpose = SIO_GRANT_CPU};
	struct sio_wire_grant g;
	struct sio_err err;
	int rc;

	if (smartiod_op_orphan(&b->lend.op) ||
	    !smartiod_path_up(d, l->node, b->adapter, b->peer_adapter)) {
		smartiod_port_ungrant(d, evt->id);
		view_put(d, l, p->view);
		bar_fail(d, b, -ENETDOWN, "the link to the borrower went down");
		return;
	}
	rc = smartiod_grant_keep(d, evt->id, &what, &err);
	if (rc < 0) {
		smartiod_port_ungrant(d, evt->id);
		view_put(d, l, p->view);
		bar_fail(d, b, rc, err.text);
		return;
	}
	if (grant_add(l, p->view, evt->id) < 0) {
		smartiod_grant_end(d, evt->id);
		view_put(d, l, p->view);
		bar_fail(d, b, -ENOMEM, "the lender's daemon is out of memory");
		return;
	}
	p->grant = evt->id;
	smartiod_wire_grant(evt, &g);
	part_done(d, b, &g);
}

static void bar_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct bar_op *b = (struct bar_op *)op;
	struct smartiod_loan *l = b->lend.loan;
	struct part *p = &b->part[b->at];

	if (l->ended) {
		/* Views went with the owner; a grant made just before is still the port's. */
		if (b->granting && !a->error)
			smartiod_port_ungrant(d, ((const struct sio_evt_grant *)a->msg)->id);
		bar_fail(d, b, -ECONNRESET, "the borrow ended");
		return;
	}
	if (a->error) {
		if (b->granting)
			view_put(d, l, p->view);
		/* Another request of this borrow has just got the only writable view there is. */
		p->view = b->granting ? NULL : find_view(l, b->bar, p);
		if (p->view)
			part_view(d, b);
		else
			bar_fail(d, b, a->error, a->text);
	} else if (b->granting) {
		granted(d, b, a);
	} else {
		struct sio_req_bar_close req = {.h.op = SIO_OP_BAR_CLOSE};

		p->view = view_new(b, p, a);
		if (p->view && (l->node != d->node || p->view->fd >= 0)) {
			part_view(d, b);
			return;
		}
		req.id = ((const struct sio_evt_bar *)a->msg)->id;
		if (p->view) {
			p->view->users = 1;
			view_put(d, l, p->view);
			bar_fail(d, b, -EMFILE, "the lender's daemon has no descriptor left");
			return;
		}
		smartiod_port_tell(d, &req, sizeof(req));
		bar_fail(d, b, -ENOMEM, "the lender's daemon is out of memory");
	}
}

/*
 * The access a borrower gets to a run; 0: none. Registers asked for writing are taken here, so that
 * nobody else gets them while the port works.
 */
static uint32_t run_access(struct bar_op *b, const struct smartiod_bar_run *run, uint32_t access)
{
	struct smartiod_loan *l = b->lend.loan;
	bool fresh;

	if (run->use == SMARTIOD_BAR_DOORBELLS)
		return access & SIO_ACCESS_WRITE ? BOTH : 0; /* nothing can be read there */
	if (!(access & SIO_ACCESS_WRITE) ||
	    sio_ledger_take_registers(&l->device->ledger, l->id, &fresh, NULL) < 0)
		return SIO_ACCESS_READ;
	b->fresh |= fresh;
	return BOTH;
}

/* The runs that [offset, end) touches; views are of whole runs, so that maps can share them. */
static void choose_parts(struct bar_op *b, uint64_t offset, uint64_t end, uint32_t access)
{
	struct smartiod_bar_run run[SMARTIOD_BAR_RUNS];
	unsigned n = smartiod_devclass_runs(&b->lend.loan->device->port, b->bar, run);

	for (unsigned i = 0; i < n; i++) {
		struct part *p = &b->part[b->n_parts];

		if (run[i].offset >= end || run[i].offset + run[i].length <= offset)
			continue;
		p->use = run[i].use;
		p->access = run_access(b, &run[i], access);
		if (!p->access)
			continue;
		p->offset = run[i].offset;
		p->length = run[i].length;
		b->n_parts++;
	}
}

int smartiod_lend_bar_grant(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			    struct sio_err *reterr)
{
	const struct sio_peer_bar_grant *m = msg;
	uint64_t offset = sio_from_le64(m->offset), end;
	uint32_t bar = sio_from_le32(m->bar), access = sio_from_le32(m->access);
	struct smartiod_loan *l;
	struct bar_op *b;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l)
		return reterr->code;
	if (bar >= SIO_DEVICE_BARS || !l->device->port.bar_size[bar])
		return sio_fail(reterr, -EINVAL, "%s has no BAR %" PRIu32, l->device->topo->name,
				bar);
	if (__builtin_add_overflow(offset, sio_from_le64(m->bytes), &end) || end == offset ||
	    end > l->device->port.bar_size[bar])
		return sio_fail(
			reterr, -ERANGE, "%" PRIu64 " bytes at %#" PRIx64 " of a BAR of %#" PRIx64,
			sio_from_le64(m->bytes), offset, (uint64_t)l->device->port.bar_size[bar]);
	if (!(access & SIO_ACCESS_READ) || access & ~BOTH)
		return sio_fail(reterr, -EINVAL, "access %#" PRIx32, access);
	if (from->node != d->node && !smartiod_path_up(d, from->node, sio_from_le32(m->adapter),
						       sio_from_le32(m->peer_adapter)))
		return sio_fail(reterr, -ENETDOWN, "the link of adapter %" PRIu32 " is down",
				sio_from_le32(m->adapter));
	b = smartiod_lend_new(d, from, msg, sizeof(*b), l, bar_step, reterr);
	if (!b)
		return reterr->code;
	b->bar = bar;
	b->adapter = sio_from_le32(m->adapter);
	b->peer_adapter = sio_from_le32(m->peer_adapter);
	choose_parts(b, offset, end, access);
	bar_go(d, b);
	return 0;
}

int smartiod_lend_bar_release(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_bar_release *m = msg;
	struct smartiod_loan *l = smartiod_loan_find(d, sio_from_le64(m->borrower));

	(void)reterr;
	if (l && l->node == from->node && !l->ended)
		grant_put(d, l, sio_from_le64(m->view), sio_from_le64(m->grant));
	return 0;
}
