/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device Lending: a borrowed device gets a shadow, a function in this host's PCI tree. Everything
 * that its driver will need is acquired in advance, so that no daemon takes part while the driver
 * works. The lender maps a range of I/O addresses for the device; this host's IOMMU maps there what
 * the driver maps for DMA. Without an IOMMU the lender maps all of this host's RAM. The lender
 * grants its BARs, each in one piece, and a page of memory that stands for the interrupt table, in
 * place of a BAR that is not in use. The program has created interrupts and connected them to the
 * device before.
 *
 * Everything that is made on the way is owned by the session, as is the shadow. When the program
 * ends, the driver is unbound first, and the rest is released in the usual order. What was made for
 * a shadow that failed, or that its program has unplugged, is released at once (shadow_end.c).
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/room.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"
#include "smartiod/segment/segment.h"

#define TABLE SIO_PEER_BAR_TABLE
#define CONFIG_MS 5000 /* that its driver waits for configuration space, as daemons do for others */

struct shadow_op {
	struct smartiod_op op;
	struct smartiod_borrow *borrow; /* pinned */
	struct smartiod_segment *ram;	/* all that this host has, or an aperture; pinned */
	struct smartiod_bar_map *at;	/* of the BAR that is being mapped */
	enum { RAM, WINDOW, BAR_GRANT, BAR_MAP, SHADOW, PEER_MAP, PEER_TELL, UNDO } state;
	struct sio_path path;
	bool window;		   /* an aperture, not all RAM */
	uint32_t bar;		   /* SIO_DEVICE_BARS: the table */
	struct sio_req_shadow req; /* filled as the parts come */
	struct smartiod_peering peering;
	uint32_t bdf;
	struct sio_err error; /* of UNDO: what its program is sent */
};

static void end(struct smartiod *d, struct shadow_op *s)
{
	struct smartiod_borrow *b = s->borrow;

	if (s->op.session)
		s->op.session->plugging = false;
	if (s->ram)
		smartiod_segment_unpin(d, s->ram);
	smartiod_op_free(d, &s->op);
	smartiod_borrow_unpin(d, b);
}

/* Of a session that has ended all goes with it. */
static bool is_undone(const struct shadow_op *s)
{
	return s->op.session && !s->op.session->shadow;
}

static void failed(struct smartiod *d, struct shadow_op *s)
{
	if (is_undone(s))
		smartiod_shadow_undone(d, s->borrow, s->ram);
	smartiod_op_fail(d, &s->op, &s->error);
	end(d, s);
}

static void fail(struct smartiod *d, struct shadow_op *s, int error, const char *text)
{
	uint32_t reason = smartiod_op_reason(&s->op, error);

	sio_fail(&s->error, error, "%s: %s", s->borrow->device->topo->name, text);
	s->error.reason = reason;
	s->state = UNDO;
	if (!is_undone(s) || !smartiod_shadow_undo(d, &s->op, s->borrow))
		failed(d, s);
}

/* ---- what is asked for ---- */

static void ask_window(struct smartiod *d, struct shadow_op *s)
{
	const struct smartiod_borrow *b = s->borrow;
	struct sio_peer_dma_map ask = {
		.h.type = sio_to_le32(SIO_PEER_DMA_MAP),
		.borrower = sio_to_le64(b->id),
		.uid = sio_to_le64(s->ram->uid),
		.bytes = sio_to_le64(s->ram->bytes),
		.fdid = sio_to_le32(b->device->fdid),
		.exporter = sio_to_le32(d->node),
		.adapter = sio_to_le32(s->path.adapter),
	};

	s->borrow->shadow_ram =
		(struct smartiod_dma_range){.uid = s->ram->uid, .bytes = s->ram->bytes};
	s->state = WINDOW;
	smartiod_ask(d, &s->op, b->node, &ask, sizeof(ask));
}

static void ask_shadow(struct smartiod *d, struct shadow_op *s)
{
	s->state = SHADOW;
	smartiod_port_ask(d, &s->op, &s->req, sizeof(s->req));
}

/* The upper half of a BAR of 64 bits is nobody else's. */
static bool is_free(const struct sio_req_shadow *req, uint32_t bar)
{
	return !req->bar_map[bar] && (bar == 0 || !(req->bar_type[bar - 1] & SIO_BAR_64));
}

/* Where the device has it if that is free, else where there is room; SIO_DEVICE_BARS: nowhere. */
static uint32_t table_bar(const struct shadow_op *s)
{
	uint32_t own = sio_from_le32(s->borrow->device->info.msix_bar);
	uint32_t bar = SIO_DEVICE_BARS;

	if (own < SIO_DEVICE_BARS && is_free(&s->req, own))
		return own;
	while (bar > 0 && !is_free(&s->req, bar - 1))
		bar--;
	return bar > 0 ? bar - 1 : SIO_DEVICE_BARS;
}

/* The next BAR that there is, the table, or the shadow. */
static void ask_bar(struct smartiod *d, struct shadow_op *s)
{
	const struct smartiod_borrow *b = s->borrow;
	const struct sio_rep_dev_list *info = &b->device->info;
	struct sio_peer_bar_grant ask = {
		.h.type = sio_to_le32(SIO_PEER_BAR_GRANT),
		.borrower = sio_to_le64(b->id),
		.fdid = sio_to_le32(b->device->fdid),
		.access = sio_to_le32(SIO_ACCESS_READ | SIO_ACCESS_WRITE | SIO_PEER_BAR_WHOLE),
		.adapter = sio_to_le32(s->path.peer_adapter),
		.peer_adapter = sio_to_le32(s->path.adapter),
	};

	while (s->bar < SIO_DEVICE_BARS && !sio_from_le64(info->bar_size[s->bar]))
		s->bar++;
	if (s->bar > SIO_DEVICE_BARS || (s->bar == SIO_DEVICE_BARS && !s->req.vectors)) {
		ask_shadow(d, s);
		return;
	}
	if (s->bar == SIO_DEVICE_BARS) {
		s->req.table_bar = table_bar(s);
		if (s->req.table_bar == SIO_DEVICE_BARS) {
			fail(d, s, -EOPNOTSUPP, "no BAR is free in which its driver finds vectors");
			return;
		}
	}
	ask.bar = sio_to_le32(s->bar);
	ask.bytes = s->bar == TABLE ? sio_to_le64(SIO_PAGE_SIZE) : info->bar_size[s->bar];
	s->state = BAR_GRANT;
	smartiod_ask(d, &s->op, b->node, &ask, sizeof(ask));
}

/* ---- what comes ---- */

static void have_window(struct smartiod *d, struct shadow_op *s, const struct sio_prep_dma_map *rep)
{
	s->borrow->shadow_dma = sio_from_le64(rep->map);
	if (sio_from_le64(rep->bytes) < s->ram->bytes) {
		fail(d, s, -EPROTO, "the lender mapped less than this host's memory");
		return;
	}
	s->req.dma_base = sio_from_le64(rep->ioaddr);
	s->req.dma_length = s->ram->bytes;
	s->req.aperture = s->window ? s->ram->mem : 0;
	ask_bar(d, s);
}

/* One piece or, of a BAR that begins with the interrupt table, none. */
static void have_grant(struct smartiod *d, struct shadow_op *s,
		       const struct sio_prep_bar_grant *rep)
{
	const struct sio_wire_bar_piece *p = &rep->piece[0];
	uint64_t bytes = sio_from_le64(p->bytes);

	if (!rep->n_pieces) {
		s->bar++;
		ask_bar(d, s);
		return;
	}
	if (sio_from_le32(rep->n_pieces) != 1 || sio_from_le64(p->offset) != 0 ||
	    !smartiod_grant_holds(&p->g, bytes)) {
		smartiod_bar_late(d, s->borrow->node, rep);
		fail(d, s, -EPROTO, "the lender granted a BAR in pieces");
		return;
	}
	s->at = smartiod_bar_map_new(d, s->borrow, NULL, &s->path);
	if (!s->at) {
		smartiod_bar_late(d, s->borrow->node, rep);
		fail(d, s, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
		return;
	}
	s->at->n = 1;
	s->at->bar = s->bar;
	s->at->piece[0] = (struct smartiod_bar_piece){.view = sio_from_le64(p->view),
						      .grant = sio_from_le64(p->g.grant),
						      .bytes = bytes,
						      .fd = -1};
	s->state = BAR_MAP;
	smartiod_port_ask_map(d, &s->op, s->op.session->owner, s->borrow->node, s->path.adapter,
			      s->path.peer_adapter, &p->g);
}

static void have_map(struct smartiod *d, struct shadow_op *s, const struct smartiod_answer *a)
{
	const struct sio_rep_dev_list *info = &s->borrow->device->info;
	uint32_t bar = s->bar++, i = bar == TABLE ? s->req.table_bar : bar;
	uint64_t bytes = bar == TABLE ? SIO_PAGE_SIZE : sio_from_le64(info->bar_size[bar]);

	if (!smartiod_map_is_memory(a, SIO_ACCESS_READ | SIO_ACCESS_WRITE)) {
		fail(d, s, -EPROTO, "the lender granted something else than the BAR");
		return;
	}
	s->req.bar_map[i] = s->at->piece[0].map;
	s->req.bar_size[i] = bytes;
	/* Where it lies in this host it was not made for: by what is behind it it is of 64 bits. */
	if (i + 1 < SIO_DEVICE_BARS && !s->req.bar_map[i + 1] &&
	    (bar == TABLE || !sio_from_le64(info->bar_size[i + 1])))
		s->req.bar_type[i] = SIO_BAR_64;
	ask_bar(d, s);
}

static void ask_peer(struct smartiod *d, struct shadow_op *s)
{
	struct sio_rep_shadow rep = {.bdf = sio_to_le32(s->bdf),
				     .memory = sio_to_le64(s->ram->bytes)};

	s->state = PEER_MAP;
	if (s->op.session->peers && smartiod_peering_ask(d, &s->op, &s->peering))
		return;
	smartiod_shadow_fill_claims(s->op.session, s->borrow, s->ram->mem, &rep);
	smartiod_op_reply(d, &s->op, &rep, sizeof(rep), NULL, 0);
	end(d, s);
}

/* What the port has made: whatever comes next, it has to be given back. */
static void note_made(struct shadow_op *s, const void *msg)
{
	const struct sio_evt_shadow *evt = msg;

	if (s->state == BAR_MAP)
		s->at->piece[0].map = ((const struct sio_evt_map *)msg)->id;
	if (s->state != SHADOW)
		return;
	s->op.session->shadow = evt->id;
	s->op.session->peers = s->req.h.flags & SIO_SHADOW_PEERS;
	s->bdf = evt->bdf;
}

static void peer_step(struct smartiod *d, struct shadow_op *s, const struct smartiod_answer *a)
{
	bool mapped = s->state == PEER_MAP;

	s->state = PEER_TELL;
	if (mapped && smartiod_peering_mapped(d, &s->op, &s->peering, a))
		return;
	if (!mapped)
		smartiod_peering_answered(d, &s->op, &s->peering, a);
	s->peering.place++;
	ask_peer(d, s);
}

static void shadow_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct shadow_op *s = (struct shadow_op *)op;

	s->ram->filling = false;
	if (s->state == UNDO) {
		failed(d, s);
		return;
	}
	if (!a->error && s->state == RAM)
		smartiod_segment_ready(d, s->ram, a);
	if (!a->error && op->session)
		note_made(s, a->msg);
	if (a->error && s->state < PEER_MAP) {
		fail(d, s, a->error, a->text);
		return;
	}
	/* What was made ends with the session. */
	if (!op->session || smartiod_borrow_ended(s->borrow) || smartiod_borrow_lost(s->borrow)) {
		if (!a->error && s->state == BAR_GRANT)
			smartiod_bar_late(d, s->borrow->node, a->msg);
		fail(d, s, -ECONNRESET, "the device is lost");
		return;
	}
	switch (s->state) {
	case RAM:
		ask_window(d, s);
		break;
	case WINDOW:
		have_window(d, s, a->msg);
		break;
	case BAR_GRANT:
		have_grant(d, s, a->msg);
		break;
	case BAR_MAP:
		have_map(d, s, a);
		break;
	case SHADOW:
		ask_peer(d, s);
		break;
	case PEER_MAP:
	case PEER_TELL:
		peer_step(d, s, a);
		break;
	case UNDO:
		break;
	}
}

/* ---- the request ---- */

static int check(struct smartiod *d, const struct smartiod_session *s,
		 const struct sio_msg_shadow *m, const struct smartiod_borrow *b,
		 struct sio_err *reterr)
{
	uint32_t flags = sio_from_le32(m->flags), n = sio_from_le32(m->n_interrupts);
	uint64_t window = sio_from_le64(m->window);
	const char *name = b->device->topo->name;

	if (!(d->served & 1ULL << SIO_OP_SHADOW))
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s: devices are lent to drivers of kernels of real hosts, by "
				"smartio_lend.ko and an adapter",
				name);
	if (b->node == d->node)
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s is a device of this host: smartio device remove gives it to "
				"its driver",
				name);
	if (s->shadow || s->plugging)
		return sio_fail(reterr, -EBUSY, "this program has a shadow already");
	if (flags & ~(SIO_SHADOW_ALL_MEMORY | SIO_SHADOW_WITH_PEERS) ||
	    (flags & SIO_SHADOW_ALL_MEMORY && window))
		return sio_fail(reterr, -EINVAL,
				"flags %#" PRIx32 " do not belong to a shadow with a window of "
				"%#" PRIx64 " bytes",
				flags, window);
	if (window & (SIO_SHADOW_WINDOW_UNIT - 1))
		return sio_fail(reterr, -EINVAL,
				"%s: a window of %#" PRIx64 " bytes, whole MiB are right", name,
				window);
	if (!(flags & SIO_SHADOW_ALL_MEMORY) && !window)
		return sio_fail(reterr, -EACCES,
				"%s: its driver maps whatever memory it likes; what of it is "
				"reached at a time has to be said (--window SIZE), or that its "
				"host gets access to all memory of %s (--all-memory)",
				name, d->host->name);
	if (n > SIO_SHADOW_VECTORS)
		return sio_fail(reterr, -EINVAL, "%" PRIu32 " interrupts, %d at most are right", n,
				SIO_SHADOW_VECTORS);
	return 0;
}

static int find_interrupts(struct smartiod_session *s, const struct sio_msg_shadow *m,
			   struct sio_req_shadow *ret, struct sio_err *reterr)
{
	ret->vectors = sio_from_le32(m->n_interrupts);
	for (uint32_t i = 0; i < ret->vectors; i++) {
		const struct smartiod_dint *dint = smartiod_object_get(
			s, sio_from_le32(m->interrupt[i]), SMARTIOD_DINT, reterr);

		if (!dint)
			return reterr->code;
		if (!dint->plain || !dint->ready)
			return sio_fail(reterr, -EINVAL,
					"interrupt %" PRIu32 " is not one "
					"without data",
					dint->number);
		ret->irq[i] = dint->irq;
	}
	return 0;
}

static void describe(const struct smartiod_device *dev, uint64_t owner, struct sio_req_shadow *ret)
{
	const struct sio_rep_dev_list *info = &dev->info;

	ret->h.op = SIO_OP_SHADOW;
	ret->h.owner = owner;
	ret->timeout_ms = CONFIG_MS;
	ret->class_revision = sio_from_le32(info->class_code) << 8;
	ret->vendor = sio_from_le32(info->vendor);
	ret->device = sio_from_le32(info->device);
	ret->subsys_vendor = sio_from_le32(info->subsys_vendor);
	ret->subsys_device = sio_from_le32(info->subsys_device);
}

/* Where an IOMMU is in the way there is a window, and nowhere else. */
static int find_path(struct smartiod *d, const struct smartiod_borrow *b, bool window,
		     struct sio_path *ret, struct sio_err *reterr)
{
	int rc = smartiod_borrow_path(d, b, ret, reterr);

	if (rc < 0 || d->adapter[ret->adapter].iommu == window)
		return rc;
	return sio_fail(reterr, -EOPNOTSUPP,
			window ? "no IOMMU of %s translates what comes through adapter %" PRIu32
				 ": there is no window, only all memory (--all-memory)"
			       : "the IOMMU of %s translates what comes through adapter %" PRIu32
				 ": not all memory can be had there, but a window (--window SIZE)",
			d->host->name, ret->adapter);
}

/* What the device reaches of this host. */
static void ask_memory(struct smartiod *d, struct shadow_op *s, uint64_t window)
{
	struct sio_req_import ram = {
		.h = {.op = SIO_OP_IMPORT,
		      .flags = SIO_IMPORT_ALL_RAM,
		      .owner = s->op.session->owner},
		.access = SIO_ACCESS_READ | SIO_ACCESS_WRITE,
	};
	struct sio_req_aperture aperture = {
		.h = {.op = SIO_OP_APERTURE, .owner = s->op.session->owner},
		.adapter = s->path.adapter,
		.length = window,
		.highest = SIO_PORT_ANY,
	};

	s->ram->filling = true;
	if (window)
		smartiod_port_ask(d, &s->op, &aperture, sizeof(aperture));
	else
		smartiod_port_ask(d, &s->op, &ram, sizeof(ram));
}

int smartiod_shadow(struct smartiod *d, struct smartiod_session *s, const void *msg,
		    struct sio_err *reterr)
{
	const struct sio_msg_shadow *m = msg;
	uint64_t window = sio_from_le64(m->window);
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct shadow_op *o;
	int rc;

	if (!b || check(d, s, m, b, reterr) < 0)
		return reterr->code;
	if (smartiod_unclaimed_shadow(d, s->owner))
		return smartiod_shadow_later(d, s, m, reterr);
	o = smartiod_op_new(d, s, msg, sizeof(*o), shadow_step, reterr);
	if (!o)
		return reterr->code;
	describe(b->device, s->owner, &o->req);
	if (sio_from_le32(m->flags) & SIO_SHADOW_WITH_PEERS)
		o->req.h.flags = SIO_SHADOW_PEERS;
	rc = find_interrupts(s, m, &o->req, reterr);
	if (rc == 0)
		rc = find_path(d, b, window, &o->path, reterr);
	if (rc == 0)
		rc = smartiod_segment_new(d, s, s->owner, false, 0, 0, &o->ram, reterr);
	if (rc < 0) {
		smartiod_op_free(d, &o->op);
		return rc;
	}
	o->borrow = b;
	b->pins++;
	smartiod_segment_pin(o->ram);
	o->window = window;
	s->plugging = true;
	ask_memory(d, o, window);
	return 0;
}
