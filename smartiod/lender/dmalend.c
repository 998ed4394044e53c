/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lender's side of DMA maps: from a segment anywhere to an address that the device can use.
 * Memory of this host is mapped as it is. That of another host is granted by its exporter, then
 * mapped through a window, which the device may pass by an entry in the adapter's requester table.
 * BAR pages of another device: dmabar.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/base/room.h"
#include "smartiod/lender/barview.h"
#include "smartiod/lender/requests.h"

#define CUT_MEANWHILE "the pages were taken away meanwhile, by a reset or the end of their borrow"

enum dma_state { DMA_GRANT, DMA_BAR, DMA_WINDOW, DMA_GROUP, DMA_REQUESTER, DMA_MAP };

struct smartiod_dma_lend {
	struct smartiod_lend lend;
	enum dma_state state;
	struct smartiod_dma *dma;
	struct smartiod_requester_user user;
	struct sio_wire_grant grant;
	uint64_t connection, offset;
	uint64_t view_offset; /* of what is mapped, in a view of BAR pages */
	bool write_only;      /* to an exact multicast group */
};

/*
 * Objects that only an operation knows, before they are in the loan's list or after: kept here so
 * that the daemon's end finds them.
 */
static void keep_loose(struct smartiod *d, struct smartiod_dma *dma)
{
	dma->next = d->loose;
	d->loose = dma;
}

static void take_loose(struct smartiod *d, struct smartiod_dma *dma)
{
	struct smartiod_dma **at = &d->loose;

	while (*at != dma)
		at = &(*at)->next;
	*at = dma->next;
}

static void forget(struct smartiod *d, struct smartiod_dma *dma)
{
	take_loose(d, dma);
	smartiod_holds_drop(dma);
	free(dma);
}

/* What the exporter and the port gave for @dma, in reverse order; not the DMA map itself. */
static void give_back(struct smartiod *d, struct smartiod_dma *dma)
{
	/* The port frees an ended owner's windows by itself. */
	if (dma->map && !smartiod_loan_ended(dma->loan))
		smartiod_port_unmap(d, dma->map);
	if (dma->group && !smartiod_loan_ended(dma->loan))
		smartiod_port_free(d, dma->group);
	if (dma->window)
		smartiod_requester_put(d, &dma->loan->device->lent->requester[dma->adapter]);
	smartiod_dma_bar_release(d, dma);
	smartiod_grant_release(d, dma->exporter, dma->grant);
	if (dma->segment)
		smartiod_segment_dma_put(d, dma->segment);
	dma->map = 0;
	dma->group = 0;
	dma->window = false;
	dma->grant = 0;
	dma->segment = NULL;
}

static void unlink_dma(struct smartiod *d, struct smartiod_dma *dma)
{
	struct smartiod_dma **at = &dma->loan->dmas;

	while (*at != dma)
		at = &(*at)->next;
	*at = dma->next;
	smartiod_tree_remove(&d->dmas, &dma->by_id);
}

void smartiod_dma_release(struct smartiod *d, struct smartiod_dma *dma)
{
	SIO_PROBE(smartiod, dma_unmap, dma->loan->device->fdid, dma->loan->id, dma->iova,
		  dma->bytes);
	unlink_dma(d, dma);
	give_back(d, dma);
	if (!dma->unmapping) {
		smartiod_holds_drop(dma);
		free(dma);
		return;
	}
	dma->loan = NULL; /* the operation that waits for DMAUNMAP frees it */
	keep_loose(d, dma);
}

void smartiod_dma_cut(struct smartiod *d, struct smartiod_dma *dma)
{
	struct sio_req_dmaunmap req = {
		.h = {.op = SIO_OP_DMAUNMAP, .flags = SIO_DMAUNMAP_KEEP_ADDRESS},
		.id = dma->by_id.key,
	};

	dma->cut = dma->lost = true;
	if (!req.id) /* its operation sees to the rest */
		return;
	smartiod_port_tell(d, &req, sizeof(req));
	if (dma->loan)
		give_back(d, dma);
}

int smartiod_dma_adopt(struct smartiod *d, struct smartiod_loan *l, const struct sio_list_entry *e)
{
	struct smartiod_dma *dma = calloc(1, sizeof(*dma));

	if (!dma)
		return -ENOMEM;
	dma->loan = l;
	dma->exporter = d->node; /* nothing is left to give back anywhere */
	dma->iova = e->address;
	dma->bytes = e->length;
	dma->target = e->cookie;
	dma->adopted = true;
	dma->next = l->dmas;
	l->dmas = dma;
	smartiod_tree_add(&d->dmas, &dma->by_id, e->id);
	return 0;
}

/* DMAUNMAP was answered. */
static void unmapped(struct smartiod *d, struct smartiod_dma *dma, int error)
{
	dma->unmapping = false;
	if (!dma->loan) /* settled meanwhile: all but the object itself went */
		forget(d, dma);
	else if (!error)
		smartiod_dma_release(d, dma);
	/* Else it stays: SETTLE ends what is in quarantine. */
}

struct drop_op {
	struct smartiod_op op;
	struct smartiod_dma *dma;
};

static void drop_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	unmapped(d, ((struct drop_op *)op)->dma, a->error);
	smartiod_op_free(d, op);
}

void smartiod_dma_drop(struct smartiod *d, struct smartiod_dma *dma)
{
	struct sio_req_dmaunmap req = {.h = {.op = SIO_OP_DMAUNMAP, .owner = dma->loan->owner},
				       .id = dma->by_id.key};
	struct sio_err err;
	struct drop_op *o = smartiod_op_new(d, NULL, NULL, sizeof(*o), drop_step, &err);

	if (!o) /* no memory: it stays as long as its loan */
		return;
	o->dma = dma;
	dma->unmapping = true;
	smartiod_port_ask(d, &o->op, &req, sizeof(req));
}

/* ---- DMA_MAP ---- */

static void dma_fail(struct smartiod *d, struct smartiod_dma_lend *m, int error, const char *text)
{
	const char *name = m->lend.loan->device->topo->name;

	give_back(d, m->dma);
	forget(d, m->dma);
	smartiod_lend_fail(d, &m->lend, error, "%s: %s", name, text);
}

static void ask_dmamap(struct smartiod *d, struct smartiod_dma_lend *m)
{
	struct smartiod_dma *dma = m->dma;
	const struct smartiod_device *dev = m->lend.loan->device;
	uint32_t bits = dev->topo->dma_bits;
	struct sio_req_dmamap req = {
		.h = {.op = SIO_OP_DMAMAP, .owner = m->lend.loan->owner},
		.device = dev->port.id,
		.target_kind = dma->map	   ? SIO_KIND_MAP
			       : dma->view ? SIO_KIND_BAR
					   : SIO_KIND_MEM,
		.access = m->write_only ? SIO_ACCESS_WRITE : SIO_ACCESS_READ | SIO_ACCESS_WRITE,
		.target = dma->segment ? dma->segment->mem
			  : dma->group ? dma->group
			  : dma->map   ? dma->map
				       : dma->view,
		.offset = dma->map    ? 0
			  : dma->view ? m->view_offset
				      : m->offset,
		.length = dma->bytes,
		.iova = SIO_PORT_ANY,
		.highest = bits && bits < 64 ? (1ULL << bits) - 1 : SIO_PORT_ANY,
	};

	m->state = DMA_MAP;
	smartiod_port_ask(d, &m->lend.op, &req, sizeof(req));
}

static void ask_window(struct smartiod *d, struct smartiod_dma_lend *m)
{
	const struct smartiod_dma *dma = m->dma;

	m->state = DMA_WINDOW;
	smartiod_port_ask_map(d, &m->lend.op, m->lend.loan->owner, dma->exporter, dma->adapter,
			      dma->peer_adapter, &m->grant);
}

static void have_requester(struct smartiod *d, struct smartiod_requester_user *user,
			   const struct smartiod_answer *a)
{
	struct smartiod_dma_lend *m =
		(struct smartiod_dma_lend *)((char *)user -
					     offsetof(struct smartiod_dma_lend, user));

	if (a->error) {
		smartiod_op_note(&m->lend.op, a->error, a->reason);
		dma_fail(d, m, a->error, a->text);
	} else if (smartiod_loan_ended(m->lend.loan)) {
		dma_fail(d, m, -ECONNRESET, "the borrow ended");
	} else if (m->dma->cut) {
		dma_fail(d, m, -ECONNRESET, CUT_MEANWHILE);
	} else {
		ask_dmamap(d, m);
	}
}

static void get_requester(struct smartiod *d, struct smartiod_dma_lend *m)
{
	m->state = DMA_REQUESTER;
	m->dma->window = true;
	m->user.have = have_requester;
	smartiod_requester_get(d, m->lend.loan->device, m->dma->adapter, &m->lend.op, &m->user);
}

/* Our way to a group: what of an exact one leaves the host passes the requester table. */
static void have_group(struct smartiod *d, struct smartiod_dma_lend *m,
		       const struct sio_evt_mcast *evt)
{
	uint64_t end;

	m->dma->group = evt->id;
	m->write_only = evt->mode == SIO_MCAST_EXACT;
	if (smartiod_loan_ended(m->lend.loan))
		dma_fail(d, m, -ECONNRESET, "the borrow ended");
	else if (__builtin_add_overflow(m->offset, m->dma->bytes, &end) || end > evt->size)
		dma_fail(d, m, -ERANGE, "the group is smaller than the range");
	else if (m->write_only)
		get_requester(d, m);
	else
		ask_dmamap(d, m);
}

static void dma_done(struct smartiod *d, struct smartiod_dma_lend *m,
		     const struct sio_evt_dmamap *evt)
{
	struct smartiod_dma *dma = m->dma;
	struct smartiod_loan *l = m->lend.loan;
	struct sio_prep_dma_map rep = {
		.borrower = sio_to_le64(l->id),
		.map = sio_to_le64(evt->id),
		.ioaddr = sio_to_le64(evt->iova),
		.bytes = sio_to_le64(dma->bytes),
		.fdid = sio_to_le32(l->device->fdid),
	};

	dma->iova = evt->iova;
	take_loose(d, dma);
	dma->next = l->dmas;
	l->dmas = dma;
	smartiod_tree_add(&d->dmas, &dma->by_id, evt->id);
	SIO_PROBE(smartiod, dma_map, l->device->fdid, l->id, dma->iova, dma->bytes);
	if (!smartiod_loan_ended(l) && dma->cut) {
		smartiod_dma_drop(d, dma);
		smartiod_lend_fail(d, &m->lend, -ECONNRESET, "%s: " CUT_MEANWHILE,
				   l->device->topo->name);
		return;
	}
	if (!smartiod_loan_ended(l)) {
		smartiod_lend_done(d, &m->lend, &rep, sizeof(rep), NULL, 0);
		return;
	}
	/* Made just before its owner was closed: it is in quarantine with the rest. */
	if (dma->cut)
		smartiod_dma_cut(d, dma);
	smartiod_lend_fail(d, &m->lend, -ECONNRESET, "%s: the borrow ended", l->device->topo->name);
}

static void map_view(struct smartiod *d, struct smartiod_dma_lend *m)
{
	uint64_t start;

	if (!smartiod_view_starts(d, m->dma->bar_borrow, m->dma->view, &start)) {
		dma_fail(d, m, -ECONNRESET, CUT_MEANWHILE);
		return;
	}
	m->view_offset = m->offset - start;
	ask_dmamap(d, m);
}

/* The lender of the target has a view for us, and of another host a grant of it. */
static void have_bar(struct smartiod *d, struct smartiod_dma_lend *m,
		     const struct sio_prep_bar_grant *rep)
{
	const struct sio_wire_bar_piece *p = &rep->piece[0];
	struct smartiod_dma *dma = m->dma;
	bool here = dma->exporter == d->node;

	/* Of more pieces the others end with the borrow. */
	dma->view = sio_from_le64(p->view);
	dma->grant = sio_from_le64(p->g.grant);
	m->grant = p->g;
	if (smartiod_loan_ended(m->lend.loan))
		dma_fail(d, m, -ECONNRESET, "the borrow ended");
	else if (dma->cut)
		dma_fail(d, m, -ECONNRESET, CUT_MEANWHILE);
	else if (sio_from_le32(rep->n_pieces) != 1 || !dma->view ||
		 sio_from_le64(p->offset) != m->offset || sio_from_le64(p->bytes) != dma->bytes ||
		 (!here && !smartiod_grant_holds(&m->grant, dma->bytes)))
		dma_fail(d, m, -EPROTO, "the other device's lender granted something else");
	else if (here)
		map_view(d, m);
	else
		ask_window(d, m);
}

static void dma_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_dma_lend *m = (struct smartiod_dma_lend *)op;
	struct smartiod_dma *dma = m->dma;

	if (m->state == DMA_REQUESTER) {
		smartiod_requester_answer(d, &m->lend.loan->device->lent->requester[dma->adapter],
					  a, &m->user);
		return;
	}
	if (a->error) {
		dma_fail(d, m, smartiod_gone(a->error), a->text);
		return;
	}
	switch (m->state) {
	case DMA_GRANT:
		m->grant = ((const struct sio_prep_seg_grant *)a->msg)->g;
		dma->grant = sio_from_le64(m->grant.grant);
		if (smartiod_loan_ended(m->lend.loan)) {
			dma_fail(d, m, -ECONNRESET, "the borrow ended");
			return;
		}
		ask_window(d, m);
		return;
	case DMA_BAR:
		have_bar(d, m, a->msg);
		return;
	case DMA_GROUP:
		have_group(d, m, a->msg);
		return;
	case DMA_WINDOW:
		dma->map = ((const struct sio_evt_map *)a->msg)->id;
		if (smartiod_loan_ended(m->lend.loan))
			dma_fail(d, m, -ECONNRESET, "the borrow ended");
		else if (dma->cut)
			dma_fail(d, m, -ECONNRESET, CUT_MEANWHILE);
		else if (!smartiod_map_is_memory(a, SIO_ACCESS_READ | SIO_ACCESS_WRITE))
			dma_fail(d, m, -EPROTO, "its host granted something else than its memory");
		else
			get_requester(d, m);
		return;
	case DMA_MAP:
		dma_done(d, m, a->msg);
		return;
	case DMA_REQUESTER:
		return;
	}
}

int smartiod_lend_path(struct smartiod *d, uint32_t exporter, uint32_t adapter,
		       struct sio_path *ret, struct sio_err *reterr)
{
	struct sio_path path;
	int rc = smartiod_path(d, exporter, SIO_ADAPTER_ANY, ret, reterr);

	if (rc < 0 || adapter == SIO_PEER_ANY_ADAPTER || ret->peer_adapter == adapter)
		return rc;
	for (unsigned own = 0; own < d->host->n_adapters; own++)
		if (smartiod_path_up(d, exporter, own, adapter) &&
		    smartiod_path(d, exporter, own, &path, reterr) == 0) {
			*ret = path;
			ret->adapter = own;
			ret->peer_adapter = adapter;
			return 0;
		}
	return sio_fail(reterr, -ENETDOWN,
			"no link that is up leads to adapter %" PRIu32 " of node %" PRIu32, adapter,
			exporter);
}

static int map_here(struct smartiod *d, struct smartiod_dma_lend *m,
		    const struct smartiod_from *from, struct sio_err *reterr)
{
	struct smartiod_segment *seg = smartiod_segment_by_uid(d, m->dma->uid);
	uint64_t end;

	if (!seg || !smartiod_segment_usable(seg, !m->connection) ||
	    (m->connection ? !smartiod_segment_has_ref(seg, from->node, m->connection)
			   : from->node != d->node))
		return sio_fail(reterr, -ENOENT,
				"%s has no segment that node %" PRIu32
				" is connected to by this number",
				d->host->name, from->node);
	if (__builtin_add_overflow(m->offset, m->dma->bytes, &end) || end > seg->bytes)
		return sio_fail(reterr, -ERANGE,
				"%" PRIu64 " bytes at %" PRIu64 " of a segment of %" PRIu64,
				m->dma->bytes, m->offset, seg->bytes);
	m->dma->segment = seg;
	smartiod_segment_dma_get(seg);
	ask_dmamap(d, m);
	return 0;
}

static int map_there(struct smartiod *d, struct smartiod_dma_lend *m,
		     const struct smartiod_from *from, uint32_t adapter, struct sio_err *reterr)
{
	struct sio_peer_seg_grant msg = {
		.h.type = sio_to_le32(SIO_PEER_SEG_GRANT),
		.uid = sio_to_le64(m->dma->uid),
		.ref_connection = sio_to_le64(m->connection),
		.offset = sio_to_le64(m->offset),
		.bytes = sio_to_le64(m->dma->bytes),
		.ref_node = sio_to_le32(from->node),
		.purpose = sio_to_le32(SIO_GRANT_DEVICE),
		.access = sio_to_le32(SIO_ACCESS_READ | SIO_ACCESS_WRITE),
	};
	struct sio_path path;
	int rc = smartiod_lend_path(d, m->dma->exporter, adapter, &path, reterr);

	if (rc < 0)
		return rc;
	m->state = DMA_GRANT;
	m->dma->adapter = path.adapter;
	m->dma->peer_adapter = path.peer_adapter;
	msg.adapter = sio_to_le32(path.peer_adapter);
	msg.peer_adapter = sio_to_le32(path.adapter);
	rc = smartiod_peer_ask(d, &m->lend.op, m->dma->exporter, &msg, sizeof(msg));
	if (rc < 0)
		return sio_fail(reterr, rc, "node %" PRIu32 " cannot be reached", m->dma->exporter);
	return 0;
}

/* Its borrower is the program for which this one is borrowed, as the ticket proves. */
static int map_bar(struct smartiod *d, struct smartiod_dma_lend *m,
		   const struct smartiod_from *from, const struct sio_peer_dma_map *r,
		   struct sio_err *reterr)
{
	struct sio_peer_bar_grant msg = {
		.h.type = sio_to_le32(SIO_PEER_BAR_GRANT),
		.borrower = r->uid,
		.offset = r->offset,
		.bytes = r->bytes,
		.fdid = r->target,
		.bar = r->bar,
		.access = sio_to_le32(SIO_ACCESS_READ | SIO_ACCESS_WRITE),
		.borrower_node = sio_to_le32(from->node),
		.ticket = r->connection,
	};
	struct smartiod_dma *dma = m->dma;
	struct sio_path path = {.adapter = 0};
	int rc = 0;

	/* What it cannot take away again it is not asked for. */
	if (d->world == SIO_WORLD_SHIM)
		return sio_fail(reterr, -EOPNOTSUPP,
				"smartio.ko takes no pages away from a device while it is mapped: "
				"BARs are no targets of devices on real hosts");
	if (sio_from_le32(r->target) == m->lend.loan->device->fdid)
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s does not reach its own BARs: another device's can be mapped",
				m->lend.loan->device->topo->name);
	if (dma->exporter != d->node)
		rc = smartiod_lend_path(d, dma->exporter, SIO_PEER_ANY_ADAPTER, &path, reterr);
	if (rc < 0)
		return rc;
	dma->adapter = path.adapter;
	dma->peer_adapter = path.peer_adapter;
	dma->bar_borrow = sio_from_le64(r->uid);
	dma->target_fdid = sio_from_le32(r->target);
	msg.adapter = sio_to_le32(path.peer_adapter);
	msg.peer_adapter = sio_to_le32(path.adapter);
	m->state = DMA_BAR;
	smartiod_ask(d, &m->lend.op, dma->exporter, &msg, sizeof(msg));
	return 0;
}

/* The group's members are the port's to know: this host connects to it for the device. */
static int map_group(struct smartiod *d, struct smartiod_dma_lend *m,
		     const struct smartiod_from *from, uint32_t adapter, struct sio_err *reterr)
{
	struct sio_req_mcast req = {
		.h = {.op = SIO_OP_MCAST, .owner = m->lend.loan->owner},
		.group = (uint32_t)m->dma->uid,
		.what = SIO_MCAST_CONNECT,
	};
	struct sio_path path = {.adapter = adapter};
	int rc = 0;

	if (from->node != d->node)
		rc = smartiod_lend_path(d, from->node, adapter, &path, reterr);
	if (rc < 0)
		return rc;
	req.adapter = m->dma->adapter = path.adapter;
	m->state = DMA_GROUP;
	smartiod_port_ask(d, &m->lend.op, &req, sizeof(req));
	return 0;
}

int smartiod_lend_dma_map(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_peer_dma_map *r = msg;
	struct smartiod_dma_lend *m;
	struct smartiod_loan *l;
	int rc;

	l = smartiod_loan_get(d, from, sio_from_le32(r->fdid), sio_from_le64(r->borrower), reterr);
	if (!l)
		return reterr->code;
	m = smartiod_lend_new(d, from, msg, sizeof(*m), l, dma_step, reterr);
	if (!m)
		return reterr->code;
	m->dma = calloc(1, sizeof(*m->dma));
	if (!m->dma) {
		l->pins--;
		smartiod_op_free(d, &m->lend.op);
		return sio_fail(reterr, -ENOMEM, "the lender's daemon is out of memory");
	}
	keep_loose(d, m->dma);
	m->dma->loan = l;
	m->dma->exporter = sio_from_le32(r->exporter);
	m->dma->uid = sio_from_le64(r->uid);
	m->dma->bytes = sio_from_le64(r->bytes);
	m->connection = sio_from_le64(r->connection);
	m->offset = sio_from_le64(r->offset);
	if (r->target)
		rc = map_bar(d, m, from, r, reterr);
	else if (m->dma->exporter == SIO_PEER_GROUP)
		rc = map_group(d, m, from, sio_from_le32(r->adapter), reterr);
	else if (m->dma->exporter == d->node)
		rc = map_here(d, m, from, reterr);
	else
		rc = map_there(d, m, from, sio_from_le32(r->adapter), reterr);
	if (rc < 0) {
		forget(d, m->dma);
		l->pins--;
		smartiod_op_free(d, &m->lend.op);
	}
	return rc;
}

/* ---- DMA_UNMAP ---- */

struct unmap_op {
	struct smartiod_lend lend;
	struct smartiod_dma *dma;
};

static void unmap_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct unmap_op *u = (struct unmap_op *)op;

	unmapped(d, u->dma, a->error);
	if (a->error)
		smartiod_lend_fail(d, &u->lend, a->error, "%s", a->text);
	else
		smartiod_lend_ok(d, &u->lend);
}

int smartiod_lend_dma_unmap(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			    struct sio_err *reterr)
{
	const struct sio_peer_dma_unmap *m = msg;
	struct sio_req_dmaunmap req = {.h.op = SIO_OP_DMAUNMAP, .id = sio_from_le64(m->map)};
	struct smartiod_loan *l;
	struct smartiod_dma *dma;
	struct unmap_op *u;

	l = smartiod_loan_get(d, from, sio_from_le32(m->fdid), sio_from_le64(m->borrower), reterr);
	if (!l)
		return reterr->code;
	dma = SMARTIOD_OF(smartiod_tree_find(&d->dmas, req.id), struct smartiod_dma, by_id);
	if (dma && dma->loan == l && dma->unmapping)
		return sio_fail(reterr, -EBUSY, "%s: mapping %" PRIu64 " is being unmapped",
				l->device->topo->name, (uint64_t)req.id);
	if (!dma || dma->loan != l)
		return sio_fail(reterr, -EBADF, "%s: borrow %" PRIu64 " has no mapping %" PRIu64,
				l->device->topo->name, l->id, (uint64_t)req.id);
	if (dma->holds)
		return sio_fail(reterr, -EBUSY,
				"%s: a queue of the device lies in the %" PRIu64
				" bytes at %#" PRIx64 ": it must be deleted first",
				l->device->topo->name, dma->bytes, dma->iova);
	u = smartiod_lend_new(d, from, msg, sizeof(*u), l, unmap_step, reterr);
	if (!u)
		return reterr->code;
	u->dma = dma;
	dma->unmapping = true;
	req.h.owner = l->owner;
	smartiod_port_ask(d, &u->lend.op, &req, sizeof(req));
	return 0;
}

void smartiod_dma_free_all(struct smartiod *d)
{
	while (d->loose)
		forget(d, d->loose);
}

/* ---- who else has what is mapped ---- */

/* Calls @fn for all that maps memory of @node, what an operation is still making included. */
static void each_dma(struct smartiod *d, uint32_t node, void (*fn)(struct smartiod_dma *dma))
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		if (dma->exporter == node)
			fn(dma);
	}
	for (struct smartiod_dma *dma = d->loose; dma; dma = dma->next)
		if (dma->exporter == node)
			fn(dma);
}

static void set_lost(struct smartiod_dma *dma)
{
	dma->lost = true;
}

/* The grant is still ours to give back, as soon as its exporter can be talked to. */
void smartiod_dma_node_down(struct smartiod *d, uint32_t node)
{
	each_dma(d, node, set_lost);
}

static void forget_grant(struct smartiod_dma *dma)
{
	dma->grant = 0;
}

bool smartiod_dma_has_grant(struct smartiod *d, uint32_t node, uint64_t grant)
{
	for (struct smartiod_tree_node *n = smartiod_tree_after(&d->dmas, 0); n;
	     n = smartiod_tree_after(&d->dmas, n->key)) {
		const struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		if (dma->exporter == node && dma->grant == grant)
			return true;
	}
	for (const struct smartiod_dma *dma = d->loose; dma; dma = dma->next)
		if (dma->exporter == node && dma->grant == grant)
			return true;
	return false;
}

void smartiod_dma_new_start(struct smartiod *d, uint32_t node)
{
	each_dma(d, node, forget_grant);
}

static unsigned count_own(const struct smartiod_dma *dma, const struct smartiod *d,
			  const struct smartiod_segment *seg)
{
	return dma->segment == seg && dma->loan->node == d->node && !smartiod_loan_ended(dma->loan);
}

unsigned smartiod_dma_own_mappings(struct smartiod *d, const struct smartiod_segment *seg)
{
	struct smartiod_tree_node *n;
	unsigned found = 0;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		key = n->key;
		found += count_own(SMARTIOD_OF(n, struct smartiod_dma, by_id), d, seg);
	}
	for (const struct smartiod_dma *dma = d->loose; dma; dma = dma->next)
		found += count_own(dma, d, seg);
	return found;
}

void smartiod_dma_claim(struct smartiod *d, struct smartiod_segment *seg)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	if (d->world != SIO_WORLD_SHIM || !seg->mem)
		return;
	while ((n = smartiod_tree_after(&d->dmas, key))) {
		struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		if (dma->target == seg->mem && !dma->segment) {
			dma->segment = seg;
			smartiod_segment_dma_get(seg);
		}
	}
}
