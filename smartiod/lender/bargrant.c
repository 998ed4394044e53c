/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BAR mappings, the lender's side. Each run of pages that the borrower may have, by the table of
 * the device's class, is a view at the port (barview.c) and, for another host, a grant of that
 * view. Pages are also granted for a device that the same program has borrowed from another lender.
 * Then that lender asks; it shows the ticket of the borrow, and gets exactly the range that it asks
 * for.
 *
 * While a reset takes the doorbells of the device away none of them is opened, and any that has
 * just been opened is closed again. A request waits until the borrower has been notified of the
 * reset.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/lender/barview.h"
#include "smartiod/lender/requests.h"

#define BOTH (SIO_ACCESS_READ | SIO_ACCESS_WRITE)
#define TABLE SIO_PEER_BAR_TABLE

struct part {
	struct smartiod_bar_run run;
	uint64_t offset,
		length; /* what is granted; all of the run, but of memory, which may be large, and
			   which an engine alone has all of */
	uint32_t access, given; /* of the view, and what is reported of it */
	struct smartiod_view *view;
	uint64_t grant;
};

struct bar_op {
	struct smartiod_lend lend;
	uint32_t bar, node, adapter, peer_adapter; /* node: the asker's */
	bool device;				   /* for one of that node's */
	unsigned n_parts, at;
	bool whole;  /* for a kernel's driver */
	bool memory; /* alone, for a DMA engine */
	bool granting;
	bool waiting; /* for the end of a reset */
	bool fresh;   /* the registers are newly owned: report the quarantines */
	struct part part[SMARTIOD_BAR_RUNS];
	struct sio_prep_bar_grant rep;
};

_Static_assert(SMARTIOD_BAR_RUNS <= SIO_MAP_PIECES, "a map holds all runs");

static void bar_go(struct smartiod *d, struct bar_op *b);

/* The parts from @first on, of which the asker was not told. */
static void put_parts(struct smartiod *d, struct bar_op *b, unsigned first)
{
	struct smartiod_loan *l = b->lend.loan;

	for (unsigned i = first; i < b->at; i++) {
		smartiod_grant_end(d, b->part[i].grant);
		if (!smartiod_loan_ended(l))
			smartiod_view_grant_put(d, l, b->node, b->part[i].view->id,
						b->part[i].grant);
	}
	b->at = first;
}

/* Give back what the parts before the failure have; @error goes to the asker. */
static void bar_fail(struct smartiod *d, struct bar_op *b, int error, const char *text)
{
	struct smartiod_loan *l = b->lend.loan;

	put_parts(d, b, 0);
	if (b->fresh && !smartiod_loan_ended(l))
		smartiod_view_drop_registers(l);
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

/* What is cut, and still comes through the adapter, reaches nothing. */
static bool holds_off(const struct smartiod *d, const struct bar_op *b)
{
	return b->device && b->node != d->node && d->adapter[b->adapter].iommu;
}

/* Part b->at is complete. */
static void part_done(struct smartiod *d, struct bar_op *b, const struct sio_wire_grant *g)
{
	struct part *p = &b->part[b->at];
	struct sio_wire_bar_piece *piece = &b->rep.piece[b->at];

	piece->offset = sio_to_le64(p->offset);
	piece->bytes = sio_to_le64(p->length);
	piece->view = sio_to_le64(p->view->id);
	piece->fd_offset = sio_to_le64(p->view->fd_offset + (p->offset - p->run.offset));
	piece->view_offset = sio_to_le64(p->offset - p->run.offset);
	piece->access = sio_to_le32(p->given);
	piece->flags = sio_to_le32(p->view->flags | (holds_off(d, b) ? SIO_PEER_BAR_HELD : 0));
	if (g)
		piece->g = *g;
	b->at++;
	b->granting = false;
	bar_go(d, b);
}

static int record_view(const struct bar_op *b, uint64_t grant)
{
	const struct smartiod_view_grant what = {
		.view = b->part[b->at].view->id,
		.grant = grant,
		.node = b->node,
		.adapter = b->adapter,
		.peer_adapter = b->peer_adapter,
		.device = b->device,
	};

	return smartiod_view_grant_add(b->lend.loan, &what);
}

/* The view is there: grant it to the asker's host, or be done with the part. */
static void part_view(struct smartiod *d, struct bar_op *b)
{
	struct smartiod_loan *l = b->lend.loan;
	struct part *p = &b->part[b->at];
	struct sio_req_grant req = {
		.h = {.op = SIO_OP_GRANT, .owner = l->owner},
		.source_kind = b->bar == TABLE ? SIO_KIND_MEM : SIO_KIND_BAR,
		.access = p->given,
		.source = p->view->id,
		.offset = p->offset - p->run.offset,
		.length = p->length,
		.adapter = b->adapter,
		.peer_node = b->node,
		.peer_adapter = b->peer_adapter,
	};

	p->view->users++;
	if (b->node != d->node) {
		b->granting = true;
		smartiod_port_ask(d, &b->lend.op, &req, sizeof(req));
		return;
	}
	if (record_view(b, 0) < 0) {
		smartiod_view_put(d, l, p->view);
		bar_fail(d, b, -ENOMEM, "the lender's daemon is out of memory: " SIO_MORE_MEMORY);
		return;
	}
	part_done(d, b, NULL);
}

static struct smartiod_view *find_view(const struct bar_op *b, const struct part *p)
{
	return smartiod_view_find(b->lend.loan, b->bar, p->access, p->run.offset, p->run.length);
}

/* Doorbells are being taken away: nobody gets any before that is over. */
static bool wait_for_reset(struct bar_op *b)
{
	if (b->part[b->at].run.use != SMARTIOD_BAR_DOORBELLS ||
	    !b->lend.loan->device->lent->clearing)
		return false;
	b->granting = false;
	b->waiting = true;
	smartiod_op_park(&b->lend.op);
	return true;
}

/* Parts that a reset took away meanwhile are had again. */
static void forget_closed(struct smartiod *d, struct bar_op *b)
{
	for (unsigned i = 0; i < b->at; i++)
		if (b->part[i].view->closed)
			put_parts(d, b, i);
}

static void bar_go(struct smartiod *d, struct bar_op *b)
{
	struct smartiod_loan *l = b->lend.loan;
	struct sio_req_bar req = {
		.h = {.op = SIO_OP_BAR, .owner = l->owner},
		.device = l->device->port.id,
		.bar = b->bar,
	};
	struct sio_req_alloc page = {
		.h = {.op = SIO_OP_ALLOC, .owner = l->owner},
		.size = SIO_PAGE_SIZE,
		.highest = SIO_PORT_ANY,
		.access = BOTH,
	};
	struct part *p;

	forget_closed(d, b);
	if (b->at == b->n_parts) {
		bar_done(d, b);
		return;
	}
	if (wait_for_reset(b))
		return;
	p = &b->part[b->at];
	p->view = find_view(b, p);
	if (p->view) {
		part_view(d, b);
		return;
	}
	if (b->bar == TABLE) {
		smartiod_port_ask(d, &b->lend.op, &page, sizeof(page));
		return;
	}
	req.access = p->access;
	req.offset = p->run.offset;
	req.length = p->run.length;
	smartiod_port_ask(d, &b->lend.op, &req, sizeof(req));
}

static void granted(struct smartiod *d, struct bar_op *b, const struct smartiod_answer *a)
{
	const struct sio_evt_grant *evt = a->msg;
	struct smartiod_loan *l = b->lend.loan;
	struct part *p = &b->part[b->at];
	const struct smartiod_grant what = {.node = b->node,
					    .adapter = b->adapter,
					    .peer_adapter = b->peer_adapter,
					    .purpose = b->device ? SIO_GRANT_DEVICE : SIO_GRANT_CPU,
					    .bus_addr = evt->bus_addr};
	struct sio_wire_grant g;
	struct sio_err err;
	int rc;

	if (smartiod_op_orphan(&b->lend.op) ||
	    !smartiod_path_up(d, b->node, b->adapter, b->peer_adapter)) {
		smartiod_port_ungrant(d, evt->id);
		smartiod_view_put(d, l, p->view);
		bar_fail(d, b, -ENETDOWN, "the link to the borrower's host went down");
		return;
	}
	if (l->device->lent->clearing && p->run.use == SMARTIOD_BAR_DOORBELLS) {
		smartiod_port_ungrant(d, evt->id);
		smartiod_view_put(d, l, p->view);
		wait_for_reset(b);
		return;
	}
	rc = smartiod_grant_keep(d, evt->id, &what, &err);
	if (rc < 0) {
		smartiod_port_ungrant(d, evt->id);
		smartiod_view_put(d, l, p->view);
		smartiod_op_note(&b->lend.op, rc, err.reason);
		bar_fail(d, b, rc, err.text);
		return;
	}
	if (record_view(b, evt->id) < 0) {
		smartiod_grant_end(d, evt->id);
		smartiod_view_put(d, l, p->view);
		bar_fail(d, b, -ENOMEM, "the lender's daemon is out of memory: " SIO_MORE_MEMORY);
		return;
	}
	p->grant = evt->id;
	smartiod_wire_grant(evt, &g);
	part_done(d, b, &g);
}

/* What stands for the interrupt table stays until the borrow ends; its memory is the owner's. */
static void have_table(struct smartiod *d, struct bar_op *b, const struct smartiod_answer *a)
{
	const struct sio_evt_alloc *evt = a->msg;
	struct sio_req_free req = {.h.op = SIO_OP_FREE, .id = evt->id};
	struct sio_evt_bar memory = {.id = evt->id, .length = evt->size};
	const struct smartiod_answer as_bar = {.msg = &memory};
	struct part *p = &b->part[b->at];

	p->view = smartiod_view_new(b->lend.loan, TABLE, p->access, &p->run, &as_bar);
	if (!p->view) {
		smartiod_port_send(d, &req, sizeof(req));
		bar_fail(d, b, -ENOMEM, "the lender's daemon is out of memory: " SIO_MORE_MEMORY);
		return;
	}
	p->view->users++;
	part_view(d, b);
}

/* While the port was asked it may have become another's, of whom we saw no view. */
static bool is_still_assigned(const struct bar_op *b, const struct part *p)
{
	struct smartiod_bar_run run;

	return p->run.use != SMARTIOD_BAR_ASSIGNED ||
	       smartiod_assigned_find(b->lend.loan, b->bar, p->run.offset,
				      p->run.offset + p->run.length, &run);
}

/* Of pages that a queue of another device lies in nobody may write, whose borrow has ended. */
static int take_registers(struct bar_op *b)
{
	struct smartiod_loan *l = b->lend.loan;
	bool fresh;

	if (smartiod_kept_registers(l->device) ||
	    sio_ledger_take_registers(&l->device->ledger, l->id, &fresh, NULL) < 0)
		return -EACCES;
	b->fresh |= fresh;
	return 0;
}

/* While the port was asked the borrow may have released the registers, which go with this view. */
static bool still_holds(struct bar_op *b, const struct smartiod_view *v)
{
	return !v->holds || !(v->access & SIO_ACCESS_WRITE) || take_registers(b) == 0;
}

/* The port has a view for us. */
static void opened(struct smartiod *d, struct bar_op *b, const struct smartiod_answer *a)
{
	struct sio_req_bar_close req = {.h.op = SIO_OP_BAR_CLOSE,
					.id = ((const struct sio_evt_bar *)a->msg)->id};
	struct smartiod_loan *l = b->lend.loan;
	struct part *p = &b->part[b->at];

	if (wait_for_reset(b)) {
		smartiod_port_send(d, &req, sizeof(req));
		return;
	}
	if (!is_still_assigned(b, p)) {
		smartiod_port_send(d, &req, sizeof(req));
		bar_fail(d, b, -EACCES,
			 "these pages are another borrow's by now: they can be had when it has "
			 "ended");
		return;
	}
	p->view = smartiod_view_new(l, b->bar, p->access, &p->run, a);
	if (!p->view) {
		smartiod_port_send(d, &req, sizeof(req));
		bar_fail(d, b, -ENOMEM, "the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	} else if (!still_holds(b, p->view)) {
		p->view->users = 1;
		smartiod_view_put(d, l, p->view);
		bar_fail(d, b, -EACCES,
			 "the registers are another borrow's by now: they can be had when it has "
			 "ended");
	} else if (b->node == d->node && !b->device && p->view->fd < 0) {
		p->view->users = 1;
		smartiod_view_put(d, l, p->view);
		bar_fail(d, b, -EMFILE, smartiod_no_descriptor(d));
	} else {
		part_view(d, b);
	}
}

static void refused(struct smartiod *d, struct bar_op *b, const struct smartiod_answer *a)
{
	struct part *p = &b->part[b->at];

	if (b->granting)
		smartiod_view_put(d, b->lend.loan, p->view);
	if (wait_for_reset(b)) /* which took the view away, perhaps */
		return;
	/* Another request of this borrow has just got the only writable view there is. */
	p->view = b->granting ? NULL : find_view(b, p);
	if (p->view)
		part_view(d, b);
	else
		bar_fail(d, b, a->error, a->text);
}

static void bar_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct bar_op *b = (struct bar_op *)op;
	bool waited = b->waiting;

	b->waiting = false;
	if (smartiod_loan_ended(b->lend.loan)) {
		/* Views went with the owner; a grant made just before is still the port's. */
		if (b->granting && !a->error)
			smartiod_port_ungrant(d, ((const struct sio_evt_grant *)a->msg)->id);
		bar_fail(d, b, -ECONNRESET, "the borrow ended");
	} else if (waited && a->error) {
		bar_fail(d, b, a->error, a->text);
	} else if (waited) {
		bar_go(d, b);
	} else if (a->error) {
		refused(d, b, a);
	} else if (b->granting) {
		granted(d, b, a);
	} else if (b->bar == TABLE) {
		have_table(d, b, a);
	} else {
		opened(d, b, a);
	}
}

void smartiod_bars_go_on(struct smartiod *d, const struct smartiod_device *dev)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->ops_all, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_id);

		key = n->key;
		if (op->wait == SMARTIOD_PARKED && op->step == bar_step &&
		    ((struct bar_op *)op)->lend.loan->device == dev)
			smartiod_op_resume(d, op);
	}
}

/*
 * The access a borrower gets to a run; 0: none. Registers asked for writing are taken here, so that
 * nobody else gets them while the port works.
 */
static uint32_t run_access(struct bar_op *b, const struct smartiod_bar_run *run, uint32_t access)
{
	if (run->use == SMARTIOD_BAR_MEMORY || run->use == SMARTIOD_BAR_ASSIGNED)
		return BOTH; /* one view for all */
	if (run->use == SMARTIOD_BAR_DOORBELLS)
		return access & SIO_ACCESS_WRITE ? BOTH : 0; /* nothing can be read there */
	if (!(access & SIO_ACCESS_WRITE) || take_registers(b) < 0)
		return run->use == SMARTIOD_BAR_HOLDER ? 0 : SIO_ACCESS_READ;
	return BOTH;
}

/* Memory that everybody has, or that who is asking has as the owner of the registers. */
static bool is_memory(const struct bar_op *b, enum smartiod_bar_use use)
{
	const struct smartiod_loan *l = b->lend.loan;

	return use == SMARTIOD_BAR_MEMORY || use == SMARTIOD_BAR_ASSIGNED ||
	       (use == SMARTIOD_BAR_HOLDER && l->device->ledger.holder == l->id);
}

static void clip(struct part *p, uint64_t offset, uint64_t end)
{
	if (p->offset < offset) {
		p->length -= offset - p->offset;
		p->offset = offset;
	}
	if (p->offset + p->length > end)
		p->length = end - p->offset;
}

/* The runs that [offset, end) touches; views are of whole runs, so that maps can share them. */
static void choose_parts(struct bar_op *b, uint64_t offset, uint64_t end, uint32_t access)
{
	struct smartiod_bar_run run[SMARTIOD_BAR_RUNS];
	const struct sio_evt_device *port = &b->lend.loan->device->port;
	unsigned n = 1;

	if (b->bar == TABLE)
		run[0] = (struct smartiod_bar_run){.length = SIO_PAGE_SIZE,
						   .use = SMARTIOD_BAR_MEMORY};
	else if (b->whole)
		n = smartiod_devclass_whole(port, b->bar, run);
	else
		n = smartiod_devclass_runs(port, b->bar, run);
	for (unsigned i = 0; i < n; i++) {
		struct part *p = &b->part[b->n_parts];

		if (run[i].offset >= end || run[i].offset + run[i].length <= offset)
			continue;
		if (run[i].use == SMARTIOD_BAR_HOLDER)
			smartiod_assigned_find(b->lend.loan, b->bar, offset, end, &run[i]);
		if (b->memory && !is_memory(b, run[i].use))
			continue;
		p->run = run[i];
		p->access = run_access(b, &run[i], access);
		p->given = p->access & access;
		p->offset = run[i].offset;
		p->length = run[i].length;
		if (b->device || (run[i].use >= SMARTIOD_BAR_MEMORY && !b->memory))
			clip(p, offset, end);
		b->n_parts += p->access != 0;
	}
}

/* All that a device is to reach lies in one run, and its borrower may write there itself. */
static int check_device(const struct bar_op *b, uint64_t offset, uint64_t end,
			struct sio_err *reterr)
{
	const struct smartiod_loan *l = b->lend.loan;
	const struct part *p = b->part;

	if (b->n_parts == 1 && p->given == BOTH && p->offset == offset && p->length == end - offset)
		return 0;
	return sio_fail(reterr, -EACCES,
			"BAR %" PRIu32 " of %s: not all of %#" PRIx64 " to %#" PRIx64
			" are pages of one kind that borrow %" PRIu64
			" may write: registers that it holds, doorbells, or memory; another device "
			"reaches these alone",
			b->bar, l->device->topo->name, offset, end, l->id);
}

/*
 * Registers that another borrow holds are given as a mirror, to be read. Where nothing else is
 * asked for, a program that means to write would be killed by its first store: it gets an error
 * that says who holds them.
 */
static int check_writable(struct smartiod *d, const struct bar_op *b, uint32_t access,
			  struct sio_err *reterr)
{
	const struct smartiod_loan *l = b->lend.loan, *holder;
	const struct smartiod_peer *p;

	holder = smartiod_loan_find(d, l->device->ledger.holder);
	if (!(access & SIO_ACCESS_WRITE) || b->n_parts == 0 || holder == l)
		return 0;
	for (unsigned i = 0; i < b->n_parts; i++)
		if (b->part[i].access & SIO_ACCESS_WRITE)
			return 0;
	if (!holder)
		return smartiod_kept_registers(l->device) ? smartiod_kept_none(d, l->device, reterr)
							  : 0;
	p = smartiod_peer_find(d, holder->node);
	return sio_fail(reterr, -EACCES,
			"the registers of %s are held by pid %" PRIu32 " of %s: they can be mapped "
			"to be read (SCI_FLAG_READONLY_MAP)",
			l->device->topo->name, holder->pid, p ? p->host->name : d->host->name);
}

/* For a program of the asker's, or, with the borrow's ticket, for a device of it. */
static struct smartiod_loan *asker_loan(struct smartiod *d, const struct smartiod_from *from,
					const struct sio_peer_bar_grant *m, struct sio_err *reterr)
{
	struct smartiod_from of = *from;
	uint64_t ticket = sio_from_le64(m->ticket), mask = SIO_PAGE_SIZE - 1;
	struct sio_policy_thing thing;
	struct smartiod_loan *l;

	if (m->borrower_node)
		of.node = sio_from_le32(m->borrower_node);
	l = smartiod_loan_get(d, &of, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l || !m->borrower_node)
		return l;
	if (!ticket || ticket != l->ticket) {
		sio_fail(reterr, -EACCES,
			 "%s: node %" PRIu32 " has not shown the ticket of borrow %" PRIu64,
			 l->device->topo->name, from->node, l->id);
		return NULL;
	}
	thing = smartiod_thing_device(d, d->node, l->device->topo->name);
	if (smartiod_allow_node(d, &thing, from->node, reterr) < 0)
		return NULL;
	if ((sio_from_le64(m->offset) | sio_from_le64(m->bytes)) & mask) {
		sio_fail(reterr, -EINVAL, "%s: a device reaches whole pages only",
			 l->device->topo->name);
		return NULL;
	}
	return l;
}

/* Bytes; 0: there is no such BAR. */
static uint64_t bar_bytes(const struct smartiod_loan *l, uint32_t bar, bool whole)
{
	const struct sio_evt_device *port = &l->device->port;

	if (bar == TABLE)
		return whole && port->msix_count ? SIO_PAGE_SIZE : 0;
	return bar < SIO_DEVICE_BARS ? port->bar_size[bar] : 0;
}

static bool is_alone(const struct smartiod_loan *l)
{
	const struct sio_borrow *b = sio_ledger_find(&l->device->ledger, l->id);

	return b && b->exclusive;
}

int smartiod_lend_bar_grant(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			    struct sio_err *reterr)
{
	const struct sio_peer_bar_grant *m = msg;
	uint64_t offset = sio_from_le64(m->offset), end, size;
	uint32_t bar = sio_from_le32(m->bar), access = sio_from_le32(m->access);
	bool whole = access & SIO_PEER_BAR_WHOLE, memory = access & SIO_PEER_BAR_MEMORY;
	struct smartiod_loan *l;
	struct bar_op *b;

	access &= ~(uint32_t)(SIO_PEER_BAR_WHOLE | SIO_PEER_BAR_MEMORY);
	l = asker_loan(d, from, m, reterr);
	if (!l)
		return reterr->code;
	size = bar_bytes(l, bar, whole);
	if (!size)
		return sio_fail(reterr, -EINVAL, "%s has no BAR %" PRIu32, l->device->topo->name,
				bar);
	if (__builtin_add_overflow(offset, sio_from_le64(m->bytes), &end) || end == offset ||
	    end > size)
		return sio_fail(reterr, -ERANGE,
				"%" PRIu64 " bytes at %#" PRIx64 " of a BAR of %#" PRIx64,
				sio_from_le64(m->bytes), offset, size);
	if (whole && !is_alone(l))
		return sio_fail(reterr, -EACCES,
				"%s: BARs are granted as a whole only to an exclusive borrower",
				l->device->topo->name);
	if (!(access & SIO_ACCESS_READ) || access & ~BOTH)
		return sio_fail(reterr, -EINVAL,
				"access %#" PRIx32 "; 1 (read) or 3 (read and write) is right",
				access);
	if (from->node != d->node && !smartiod_path_up(d, from->node, sio_from_le32(m->adapter),
						       sio_from_le32(m->peer_adapter)))
		return sio_fail(reterr, -ENETDOWN, "the link of adapter %" PRIu32 " is down",
				sio_from_le32(m->adapter));
	b = smartiod_lend_new(d, from, msg, sizeof(*b), l, bar_step, reterr);
	if (!b)
		return reterr->code;
	b->bar = bar;
	b->whole = whole;
	b->memory = memory;
	b->node = from->node;
	b->device = m->borrower_node;
	b->adapter = sio_from_le32(m->adapter);
	b->peer_adapter = sio_from_le32(m->peer_adapter);
	choose_parts(b, offset, end, access);
	if (check_writable(d, b, access, reterr) < 0 ||
	    (b->device && check_device(b, offset, end, reterr) < 0)) {
		if (b->fresh)
			smartiod_view_drop_registers(l);
		smartiod_op_free(d, &b->lend.op);
		smartiod_loan_unpin(d, l);
		return reterr->code;
	}
	bar_go(d, b);
	return 0;
}

int smartiod_lend_bar_release(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_bar_release *m = msg;
	struct smartiod_loan *l = smartiod_loan_find(d, sio_from_le64(m->borrower));

	(void)reterr;
	if (l && !smartiod_loan_ended(l))
		smartiod_view_grant_put(d, l, from->node, sio_from_le64(m->view),
					sio_from_le64(m->grant));
	return 0;
}
