/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests for DMA mappings, at the lender: from a segment on any host to an address that the
 * device can use. Memory of this host is mapped directly. Memory of another host is granted by its
 * exporter and mapped through a window, which the device may use by an entry in the adapter's
 * requester table. BAR pages of another device are in dmabar.c; mappings that exist are in dma.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "smartiod/base/allow.h"
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
	uint64_t view_offset;	    /* of what is mapped, in a view of BAR pages */
	struct sio_dev_addr ioaddr; /* the device is to have it there, if @at */
	bool at;
	bool write_only; /* to an exact multicast group */
};

/* ---- DMA_MAP ---- */

static void dma_fail(struct smartiod *d, struct smartiod_dma_lend *m, int error, const char *text)
{
	const char *name = m->lend.loan->device->topo->name;

	smartiod_dma_abandon(d, m->dma);
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
		.iova = m->at ? m->ioaddr.addr : SIO_PORT_ANY,
		.highest = bits && bits < 64 ? (1ULL << bits) - 1 : SIO_PORT_ANY,
	};

	m->state = DMA_MAP;
	smartiod_port_ask(d, &m->lend.op, &req, sizeof(req));
}

static void ask_window(struct smartiod *d, struct smartiod_dma_lend *m)
{
	const struct smartiod_dma *dma = m->dma;

	m->state = DMA_WINDOW;
	(dma->bar_borrow ? smartiod_port_ask_map_bar : smartiod_port_ask_map)(
		d, &m->lend.op, m->lend.loan->owner, dma->exporter, dma->adapter, dma->peer_adapter,
		&m->grant);
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

	dma->iova.addr = evt->iova;
	smartiod_dma_made(d, dma, evt->id);
	if (!smartiod_loan_ended(l) && (dma->cut || smartiod_lend_orphan(&m->lend))) {
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

/*
 * Without an IOMMU here the device keeps the address of the window, which leads to the pages until
 * the other host's adapter refuses what comes (smartiod_peer_bar_cut()).
 */
static int check_window(const struct smartiod *d, const struct smartiod_dma_lend *m, uint32_t flags,
			struct sio_err *reterr)
{
	const struct smartiod_device *dev = m->lend.loan->device;

	if (!smartiod_is_real(d) || m->dma->whole || m->dma->exporter == d->node ||
	    dev->port.iommu_mode != SIO_IOMMU_OFF || flags & SIO_PEER_BAR_HELD)
		return 0;
	return sio_fail(reterr, -EOPNOTSUPP,
			"neither its host nor that of the other device has an IOMMU that "
			"translates, so nothing could take the other device's BAR away from it "
			"again: one in either host is right (intel_iommu=on, or AMD's in the "
			"firmware), or memory of a segment");
}

/* The lender of the target has a view for us, and of another host a grant of it. */
static void have_bar(struct smartiod *d, struct smartiod_dma_lend *m,
		     const struct sio_prep_bar_grant *rep)
{
	const struct sio_wire_bar_piece *p = &rep->piece[0];
	struct smartiod_dma *dma = m->dma;
	bool here = dma->exporter == d->node;
	struct sio_err err;

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
	else if (check_window(d, m, sio_from_le32(p->flags), &err) < 0)
		dma_fail(d, m, err.code, err.text);
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

/*
 * The adapter of ours by which the borrower, whose adapter was chosen, reaches the device already,
 * or the device its memory; SIO_ADAPTER_ANY: none yet.
 */
static uint32_t own_adapter(const struct smartiod_loan *l, uint32_t node, uint32_t adapter)
{
	if (adapter == SIO_PEER_ANY_ADAPTER)
		return SIO_ADAPTER_ANY;
	for (const struct smartiod_view_grant *g = l->grants; g; g = g->next)
		if (g->node == node && g->peer_adapter == adapter && g->grant && !g->device)
			return g->adapter;
	for (const struct smartiod_dma *dma = l->dmas; dma; dma = dma->next)
		if (dma->map && dma->exporter == node && dma->peer_adapter == adapter)
			return dma->adapter;
	return SIO_ADAPTER_ANY;
}

int smartiod_lend_path(struct smartiod *d, const struct smartiod_loan *l, uint32_t node,
		       const struct smartiod_device *target, uint32_t adapter, struct sio_path *ret,
		       struct sio_err *reterr)
{
	static const struct smartiod_hops none;
	const struct smartiod_peer *p = smartiod_peer_find(d, node);
	int rc = smartiod_path_between(d, node, own_adapter(l, node, adapter), adapter,
				       &l->device->hops,
				       target ? &target->hops
				       : p    ? &p->hops
					      : &none,
				       ret, reterr);

	if (rc < 0 && adapter != SIO_PEER_ANY_ADAPTER)
		return sio_fail(reterr, -ENETDOWN,
				"no link that is up leads to adapter %" PRIu32 " of node %" PRIu32,
				adapter, node);
	return rc;
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
	int rc =
		smartiod_lend_path(d, m->lend.loan, m->dma->exporter, NULL, adapter, &path, reterr);

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

/* Beside the target nothing but an IOMMU can cut what a device has. */
static int check_real(const struct smartiod *d, const struct smartiod_dma_lend *m,
		      struct sio_err *reterr)
{
	const struct smartiod_device *dev = m->lend.loan->device;

	if (m->dma->exporter == d->node && dev->port.iommu_mode == SIO_IOMMU_OFF)
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s: its host has no IOMMU that translates, so nothing could take "
				"another device's BAR away from it again: an IOMMU that is on "
				"(intel_iommu=on, or AMD's in the firmware) is right, or memory "
				"of a segment",
				dev->topo->name);
	return 0;
}

/* Its borrower is the program for which this one is borrowed, as the ticket proves. */
static int map_bar(struct smartiod *d, struct smartiod_dma_lend *m,
		   const struct smartiod_from *from, const struct sio_peer_dma_map *r,
		   struct sio_err *reterr)
{
	uint32_t whole = sio_from_le32(r->bar) & SIO_PEER_BAR_WHOLE;
	struct sio_peer_bar_grant msg = {
		.h.type = sio_to_le32(SIO_PEER_BAR_GRANT),
		.borrower = r->uid,
		.offset = r->offset,
		.bytes = r->bytes,
		.fdid = r->target,
		.bar = sio_to_le32(sio_from_le32(r->bar) & ~SIO_PEER_BAR_WHOLE),
		.access = sio_to_le32(SIO_ACCESS_READ | SIO_ACCESS_WRITE | whole),
		.borrower_node = sio_to_le32(from->node),
		.ticket = r->connection,
	};
	struct smartiod_dma *dma = m->dma;
	struct sio_path path = {.adapter = 0};
	int rc = 0;

	dma->whole = whole;
	if (smartiod_is_real(d) && !whole && check_real(d, m, reterr) < 0)
		return reterr->code;
	if (sio_from_le32(r->target) == m->lend.loan->device->fdid)
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s does not reach its own BARs: another device's can be mapped",
				m->lend.loan->device->topo->name);
	if (dma->exporter != d->node)
		rc = smartiod_lend_path(d, m->lend.loan, dma->exporter,
					smartiod_device_known(d, sio_from_le32(r->target)),
					SIO_PEER_ANY_ADAPTER, &path, reterr);
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
		rc = smartiod_lend_path(d, m->lend.loan, from->node, NULL, adapter, &path, reterr);
	if (rc == 0)
		rc = smartiod_allow_group(d, NULL, d->node, req.group, reterr);
	if (rc == 0)
		rc = smartiod_allow_group(d, NULL, from->node, req.group, reterr);
	if (rc < 0)
		return rc;
	req.adapter = m->dma->adapter = path.adapter;
	m->state = DMA_GROUP;
	smartiod_port_ask(d, &m->lend.op, &req, sizeof(req));
	return 0;
}

/*
 * An address of the borrower's choice: for nobody else's mapping can be in its way, then, nor be
 * found out by the refusal.
 */
static int check_address(const struct smartiod_loan *l, const struct sio_peer_dma_map *r,
			 struct sio_err *reterr)
{
	const struct sio_borrow *b = sio_ledger_find(&l->device->ledger, l->id);

	if (sio_from_le32(r->at) > 1)
		return sio_fail(reterr, -EINVAL, "at is %" PRIu32 "; 0 or 1 is right",
				sio_from_le32(r->at));
	if (!sio_from_le32(r->at))
		return 0;
	if (l->device->port.iommu_mode == SIO_IOMMU_OFF)
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s: its host has no IOMMU that translates: a device sends the "
				"addresses of its host's memory, and no others can be chosen",
				l->device->topo->name);
	if (!b || !b->exclusive)
		return sio_fail(reterr, -EACCES,
				"%s is not borrowed exclusively: only an exclusive borrower can "
				"choose addresses",
				l->device->topo->name);
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
	if (!l || check_address(l, r, reterr) < 0 ||
	    smartiod_quota_node(d, from->node, SIO_QUOTA_DMA, sio_from_le64(r->bytes), reterr) < 0)
		return reterr->code;
	m = smartiod_lend_new(d, from, msg, sizeof(*m), l, dma_step, reterr);
	if (!m)
		return reterr->code;
	m->dma = smartiod_dma_new(d, l);
	if (!m->dma) {
		l->pins--;
		smartiod_op_free(d, &m->lend.op);
		return sio_fail(reterr, -ENOMEM,
				"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	}
	m->dma->exporter = sio_from_le32(r->exporter);
	m->dma->uid = sio_from_le64(r->uid);
	m->dma->bytes = sio_from_le64(r->bytes);
	smartiod_charge_node(d, from->node, &m->dma->charge, SIO_QUOTA_DMA, m->dma->bytes);
	m->connection = sio_from_le64(r->connection);
	m->offset = sio_from_le64(r->offset);
	m->ioaddr.addr = sio_from_le64(r->ioaddr);
	m->at = m->dma->chosen = sio_from_le32(r->at);
	if (r->target)
		rc = map_bar(d, m, from, r, reterr);
	else if (m->dma->exporter == SIO_PEER_GROUP)
		rc = map_group(d, m, from, sio_from_le32(r->adapter), reterr);
	else if (m->dma->exporter == d->node)
		rc = map_here(d, m, from, reterr);
	else
		rc = map_there(d, m, from, sio_from_le32(r->adapter), reterr);
	if (rc < 0) {
		smartiod_dma_abandon(d, m->dma);
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

	smartiod_dma_unmapped(d, u->dma, a->error);
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
		return sio_fail(reterr, -EBADF,
				"%s: borrow %" PRIu64 " has no mapping %" PRIu64
				": what DMA_MAP returned is right, once",
				l->device->topo->name, l->id, (uint64_t)req.id);
	if (smartiod_held(dma))
		return sio_fail(reterr, -EBUSY,
				"%s: a queue of the device lies in the %" PRIu64
				" bytes at %#" PRIx64 ": it must be deleted first",
				l->device->topo->name, dma->bytes, dma->iova.addr);
	u = smartiod_lend_new(d, from, msg, sizeof(*u), l, unmap_step, reterr);
	if (!u)
		return reterr->code;
	u->dma = dma;
	dma->unmapping = true;
	req.h.owner = l->owner;
	smartiod_port_ask(d, &u->lend.op, &req, sizeof(req));
	return 0;
}
