/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device Lending: a borrowed device gets a shadow in this host's PCI tree. All that its driver will
 * need is had before, so that nobody is asked while it works: the lender maps all of this host's
 * RAM for the device, and grants its BARs, each in one piece. Interrupts the program has made and
 * tied to the device before.
 *
 * Whatever is made on the way hangs on the session, as does the shadow; when the program ends, its
 * driver goes first, and then the rest as ever.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"
#include "smartiod/segment/segment.h"

struct shadow_op {
	struct smartiod_op op;
	struct smartiod_borrow *borrow; /* pinned */
	struct smartiod_segment *ram;	/* all that this host has; pinned */
	struct smartiod_bar_map *at;	/* of the BAR that is being mapped */
	enum { RAM, WINDOW, BAR_GRANT, BAR_MAP, SHADOW } state;
	struct sio_path path;
	uint32_t bar;
	struct sio_req_shadow req; /* filled as the parts come */
};

static void end(struct smartiod *d, struct shadow_op *s)
{
	struct smartiod_borrow *b = s->borrow;

	if (s->ram)
		smartiod_segment_unpin(d, s->ram);
	smartiod_op_free(d, &s->op);
	smartiod_borrow_unpin(d, b);
}

static void fail(struct smartiod *d, struct shadow_op *s, int error, const char *text)
{
	smartiod_op_error(d, &s->op, error, "%s: %s", s->borrow->device->topo->name, text);
	end(d, s);
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

	s->state = WINDOW;
	smartiod_ask(d, &s->op, b->node, &ask, sizeof(ask));
}

static void ask_shadow(struct smartiod *d, struct shadow_op *s)
{
	s->state = SHADOW;
	smartiod_port_ask(d, &s->op, &s->req, sizeof(s->req));
}

/* The next BAR that there is, or the shadow. */
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
	if (s->bar == SIO_DEVICE_BARS) {
		ask_shadow(d, s);
		return;
	}
	ask.bar = sio_to_le32(s->bar);
	ask.bytes = info->bar_size[s->bar];
	s->state = BAR_GRANT;
	smartiod_ask(d, &s->op, b->node, &ask, sizeof(ask));
}

/* ---- what comes ---- */

static void have_window(struct smartiod *d, struct shadow_op *s, const struct sio_prep_dma_map *rep)
{
	if (sio_from_le64(rep->bytes) < s->ram->bytes) {
		fail(d, s, -EPROTO, "the lender mapped less than this host's memory");
		return;
	}
	s->req.dma_base = sio_from_le64(rep->ioaddr);
	s->req.dma_length = s->ram->bytes;
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
		fail(d, s, -EPROTO, "the lender granted a BAR in pieces");
		return;
	}
	s->at = smartiod_bar_map_new(d, s->borrow, NULL, &s->path);
	if (!s->at) {
		fail(d, s, -ENOMEM, "the daemon is out of memory");
		return;
	}
	s->at->n = 1;
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
	uint32_t i = s->bar++;

	s->at->piece[0].map = ((const struct sio_evt_map *)a->msg)->id;
	if (!smartiod_map_is_memory(a, SIO_ACCESS_READ | SIO_ACCESS_WRITE)) {
		fail(d, s, -EPROTO, "the lender granted something else than the BAR");
		return;
	}
	s->req.bar_map[i] = s->at->piece[0].map;
	s->req.bar_size[i] = sio_from_le64(info->bar_size[i]);
	/* Where it lies in this host it was not made for: by what is behind it it is of 64 bits. */
	if (i + 1 < SIO_DEVICE_BARS && !sio_from_le64(info->bar_size[i + 1]))
		s->req.bar_type[i] = SIO_BAR_64;
	ask_bar(d, s);
}

static void have_shadow(struct smartiod *d, struct shadow_op *s, const struct sio_evt_shadow *evt)
{
	struct sio_rep_shadow rep = {.bdf = sio_to_le32(evt->bdf),
				     .memory = sio_to_le64(s->ram->bytes)};

	s->op.session->shadow = evt->id;
	smartiod_op_reply(d, &s->op, &rep, sizeof(rep), NULL, 0);
	end(d, s);
}

static void shadow_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct shadow_op *s = (struct shadow_op *)op;

	s->ram->filling = false;
	if (!a->error && s->state == RAM)
		smartiod_segment_ready(s->ram, a);
	if (a->error) {
		fail(d, s, a->error, a->text);
		return;
	}
	/* What was made ends with the session. */
	if (!op->session || smartiod_borrow_ended(s->borrow) || smartiod_borrow_lost(s->borrow)) {
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
		have_shadow(d, s, a->msg);
		break;
	}
}

/* ---- the request ---- */

static int check(struct smartiod *d, const struct smartiod_session *s,
		 const struct sio_msg_shadow *m, const struct smartiod_borrow *b,
		 struct sio_err *reterr)
{
	uint32_t flags = sio_from_le32(m->flags), n = sio_from_le32(m->n_interrupts);
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
	if (s->shadow)
		return sio_fail(reterr, -EBUSY, "this program has a shadow already");
	if (flags & ~SIO_SHADOW_ALL_MEMORY)
		return sio_fail(reterr, -EINVAL, "flags %#" PRIx32 " do not belong to a shadow",
				flags);
	if (!(flags & SIO_SHADOW_ALL_MEMORY))
		return sio_fail(reterr, -EACCES,
				"%s: its driver maps whatever memory it likes, so its host gets "
				"access to all memory of %s; that has to be allowed (--all-memory)",
				name, d->host->name);
	if (n > SIO_SHADOW_VECTORS || (n & (n - 1)))
		return sio_fail(reterr, -EINVAL,
				"%" PRIu32 " interrupts, a power of 2, %d at most, is right", n,
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
	ret->class_revision = sio_from_le32(info->class_code) << 8;
	ret->vendor = sio_from_le32(info->vendor);
	ret->device = sio_from_le32(info->device);
	ret->subsys_vendor = sio_from_le32(info->subsys_vendor);
	ret->subsys_device = sio_from_le32(info->subsys_device);
}

/* Where an IOMMU is in the way, what a driver maps would have to be mapped there, too. */
static int find_path(struct smartiod *d, const struct smartiod_borrow *b, struct sio_path *ret,
		     struct sio_err *reterr)
{
	int rc = smartiod_path(d, b->node, SIO_ADAPTER_ANY, ret, reterr);

	if (rc == 0 && d->adapter[ret->adapter].iommu)
		rc = sio_fail(reterr, -EOPNOTSUPP,
			      "the IOMMU of %s translates what comes through adapter %" PRIu32
			      ", which devices lent to its kernel cannot pass yet: boot it with "
			      "iommu=pt",
			      d->host->name, ret->adapter);
	return rc;
}

int smartiod_shadow(struct smartiod *d, struct smartiod_session *s, const void *msg,
		    struct sio_err *reterr)
{
	struct sio_req_import ram = {
		.h = {.op = SIO_OP_IMPORT, .flags = SIO_IMPORT_ALL_RAM, .owner = s->owner},
		.access = SIO_ACCESS_READ | SIO_ACCESS_WRITE,
	};
	const struct sio_msg_shadow *m = msg;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->device), reterr);
	struct shadow_op *o;
	int rc;

	if (!b || check(d, s, m, b, reterr) < 0)
		return reterr->code;
	o = smartiod_op_new(d, s, msg, sizeof(*o), shadow_step, reterr);
	if (!o)
		return reterr->code;
	describe(b->device, s->owner, &o->req);
	rc = find_interrupts(s, m, &o->req, reterr);
	if (rc == 0)
		rc = find_path(d, b, &o->path, reterr);
	if (rc == 0)
		rc = smartiod_segment_new(d, s, s->owner, false, 0, 0, &o->ram, reterr);
	if (rc < 0) {
		smartiod_op_free(d, &o->op);
		return rc;
	}
	o->borrow = b;
	b->pins++;
	smartiod_segment_pin(o->ram);
	o->ram->filling = true;
	smartiod_port_ask(d, &o->op, &ram, sizeof(ram));
	return 0;
}

/* ---- its end ---- */

/* Does its borrow live, so that the driver can still reach the device? */
static bool is_reached(struct smartiod_session *s)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&s->objects, key))) {
		struct smartiod_object *o = SMARTIOD_OF(n, struct smartiod_object, by_handle);
		const struct smartiod_borrow *b = (const struct smartiod_borrow *)o;

		key = n->key;
		if (o->kind == SMARTIOD_BORROW && smartiod_shadow_is_of(b))
			return !smartiod_borrow_lost(b);
	}
	return false;
}

void smartiod_shadow_fill_del(struct smartiod_session *s, struct sio_req_shadow_del *ret)
{
	*ret = (struct sio_req_shadow_del){
		.h = {.op = SIO_OP_SHADOW_DEL, .flags = is_reached(s) ? 0 : SIO_SHADOW_LOST},
		.id = s->shadow,
	};
}

static void del_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_borrow *b = ((struct smartiod_borrow_op *)op)->borrow;

	/* It may have gone by itself, and then with the owner: as wanted. */
	if (a->error && a->error != -ENOENT) {
		smartiod_op_error(d, op, a->error, "%s: %s", b->device->topo->name, a->text);
	} else {
		if (op->session)
			op->session->shadow = 0;
		smartiod_shadow_bars_close(d, b);
		smartiod_op_ok(d, op);
	}
	smartiod_op_free(d, op);
	smartiod_borrow_unpin(d, b);
}

int smartiod_shadow_del(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	struct sio_req_shadow_del req;
	struct smartiod_borrow_op *op;
	struct smartiod_borrow *b;

	/* Also of one that is lost: its driver is to go. */
	b = smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_BORROW, reterr);
	if (!b)
		return reterr->code;
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "the end of a shadow takes no flags");
	if (!s->shadow || !smartiod_shadow_is_of(b))
		return sio_fail(reterr, -EBADF, "%s is not plugged in", b->device->topo->name);
	op = smartiod_op_new(d, s, msg, sizeof(*op), del_step, reterr);
	if (!op)
		return reterr->code;
	op->borrow = b;
	b->pins++;
	smartiod_shadow_fill_del(s, &req);
	smartiod_port_ask(d, &op->op, &req, sizeof(req));
	return 0;
}
