/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restart: the shadow of a program, which its kernel has kept. Its driver goes on meanwhile. The
 * port lists the shadow and what it consists of; which of that is which part, and what the lender
 * calls it, the library says, and a seal proves. Nothing is asked of the lender: it hears of the
 * parts when the daemons meet (resume.c). What the driver asked for meanwhile of configuration
 * space the port repeats then.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/base/room.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"
#include "smartiod/segment/segment.h"

#define TABLE SIO_PEER_BAR_TABLE

_Static_assert(TABLE == SIO_SHADOW_CLAIM_TABLE && SIO_SHADOW_CLAIM_TABLE >= SIO_DEVICE_BARS,
	       "claims are numbered as BARs are");

/* What both messages have of it. */
struct parts {
	sio_le64 key, extra;
	sio_le32 path, flags;
	const struct sio_wire_claim *claim;
};

static uint64_t seal_of(const struct smartiod_session *s, const struct smartiod_borrow *b,
			const struct parts *p)
{
	uint64_t words[6 + 3 * SIO_SHADOW_CLAIMS] = {
		smartiod_handle(&b->o), b->id,
		sio_from_le64(p->key),	sio_from_le64(p->extra),
		sio_from_le32(p->path), sio_from_le32(p->flags)};
	unsigned n = 6;

	for (unsigned i = 0; i < SIO_SHADOW_CLAIMS; i++) {
		words[n++] = sio_from_le64(p->claim[i].view);
		words[n++] = sio_from_le64(p->claim[i].grant);
		words[n++] = sio_from_le64(p->claim[i].map);
	}
	return smartiod_seal_words(s, SIO_MSG_SHADOW, words, n);
}

void smartiod_shadow_fill_claims(const struct smartiod_session *s, const struct smartiod_borrow *b,
				 uint64_t mem, struct sio_rep_shadow *ret)
{
	struct parts p = {.claim = ret->claim};

	for (const struct smartiod_bar_map *m = b->maps; m; m = m->next) {
		struct sio_wire_claim *c = &ret->claim[m->bar];

		if (m->connection || m->closed || m->n != 1)
			continue;
		c->view = sio_to_le64(m->piece[0].view);
		c->grant = sio_to_le64(m->piece[0].grant);
		c->map = sio_to_le64(m->piece[0].map);
		ret->path = sio_to_le32(m->adapter << 16 | m->peer_adapter);
	}
	ret->claim[SIO_SHADOW_CLAIM_DMA].view = sio_to_le64(b->shadow_dma);
	ret->key = sio_to_le64(s->shadow);
	ret->extra = sio_to_le64(mem);
	ret->flags = sio_to_le32(s->peers ? SIO_RESTORE_PEERS : 0);
	p.key = ret->key;
	p.extra = ret->extra;
	p.path = ret->path;
	p.flags = ret->flags;
	ret->seal = sio_to_le64(seal_of(s, b, &p));
}

/* ---- as the library says ---- */

/*
 * Was an interrupt of the program not restored, as its descriptors could not be opened again? It
 * may be the shadow's, whose driver would wait for it for ever.
 */
static bool lacks_interrupt(struct smartiod *d, const struct smartiod_session *s,
			    struct sio_err *reterr)
{
	struct smartiod_unclaimed *l;

	for (l = smartiod_unclaimed_after(d, 0); l; l = smartiod_unclaimed_after(d, l->by_id.key))
		if (l->kind == SIO_KIND_IRQ && l->owner == s->owner &&
		    smartiod_unclaimed_check(l, reterr) < 0)
			return true;
	return false;
}

static int check(struct smartiod *d, struct smartiod_session *s, const struct smartiod_borrow *b,
		 const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct parts p = {.key = m->key,
				.extra = m->extra,
				.path = m->path,
				.flags = sio_to_le32(sio_from_le32(m->flags) & SIO_RESTORE_PEERS),
				.claim = m->claim};
	const struct smartiod_unclaimed *l;

	if (smartiod_seal_compare(s, m, seal_of(s, b, &p), reterr) < 0)
		return reterr->code;
	l = smartiod_unclaimed_get(d, SIO_KIND_SHADOW, s->owner, sio_from_le64(m->key), reterr);
	if (!l ||
	    !smartiod_unclaimed_get(d, SIO_KIND_MEM, s->owner, sio_from_le64(m->extra), reterr))
		return reterr->code;
	if (l->ending)
		return sio_fail(reterr, -ENOENT, "shadow %" PRIu64 " is being ended",
				sio_from_le64(m->key));
	if (lacks_interrupt(d, s, reterr))
		return reterr->code;
	for (unsigned i = 0; i <= TABLE; i++)
		if (m->claim[i].map &&
		    !smartiod_unclaimed_get(d, SIO_KIND_MAP, s->owner,
					    sio_from_le64(m->claim[i].map), reterr))
			return reterr->code;
	return 0;
}

/* One piece of a BAR, and its window; both are there. */
static int take_bar(struct smartiod *d, struct smartiod_session *s, struct smartiod_borrow *b,
		    const struct sio_msg_restore *m, unsigned bar, struct sio_err *reterr)
{
	const struct sio_path path = {.adapter = sio_from_le32(m->path) >> 16,
				      .peer_adapter = sio_from_le32(m->path) & 0xffff};
	const struct sio_wire_claim *c = &m->claim[bar];
	struct smartiod_unclaimed *l;
	struct smartiod_bar_map *map;

	l = smartiod_unclaimed_get(d, SIO_KIND_MAP, s->owner, sio_from_le64(c->map), reterr);
	map = l ? smartiod_bar_map_new(d, b, NULL, &path) : NULL;
	if (!map)
		return l ? sio_fail(reterr, -ENOMEM,
				    "the daemon is out of memory: " SIO_MORE_MEMORY)
			 : reterr->code;
	map->start = 0; /* not known before the lender is met */
	map->bar = bar;
	map->n = 1;
	map->piece[0] = (struct smartiod_bar_piece){.view = sio_from_le64(c->view),
						    .grant = sio_from_le64(c->grant),
						    .map = l->by_id.key,
						    .bytes = l->length,
						    .fd = -1};
	smartiod_unclaimed_done(d, l);
	return 0;
}

static int take_memory(struct smartiod *d, struct smartiod_session *s, struct smartiod_borrow *b,
		       const struct sio_msg_restore *m, struct sio_err *reterr)
{
	struct smartiod_unclaimed *l =
		smartiod_unclaimed_get(d, SIO_KIND_MEM, s->owner, sio_from_le64(m->extra), reterr);
	struct smartiod_segment *ram;
	int rc = reterr->code;

	s->forced = 0; /* the library knows no handle of it */
	if (l)
		rc = smartiod_segment_new(d, s, s->owner, false, 0, 0, &ram, reterr);
	if (rc < 0)
		return rc;
	smartiod_segment_take_unclaimed(d, ram, l);
	b->shadow_dma = sio_from_le64(m->claim[SIO_SHADOW_CLAIM_DMA].view);
	b->shadow_ram = (struct smartiod_dma_range){.uid = ram->uid, .bytes = ram->bytes};
	return 0;
}

/* If this fails half-way, what was taken ends with the borrow. */
int smartiod_shadow_again(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_restore *m, struct sio_err *reterr)
{
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->handle), reterr);
	int rc;

	if (!b)
		return reterr->code;
	if (s->shadow)
		return sio_fail(reterr, -EBUSY, "this program has a shadow already");
	rc = check(d, s, b, m, reterr);
	for (unsigned i = 0; rc == 0 && i <= TABLE; i++)
		if (m->claim[i].map)
			rc = take_bar(d, s, b, m, i, reterr);
	if (rc == 0)
		rc = take_memory(d, s, b, m, reterr);
	if (rc < 0)
		return rc;
	smartiod_unclaimed_done(d, smartiod_unclaimed_shadow(d, s->owner));
	s->shadow = sio_from_le64(m->key);
	s->peers = sio_from_le32(m->flags) & SIO_RESTORE_PEERS;
	b->shadow_asks = true;
	return 0;
}

/* The device is of no use without it. One that was being unplugged has gone as it was to. */
void smartiod_shadow_not_again(struct smartiod *d, struct smartiod_session *s,
			       const struct sio_msg_restore *m)
{
	struct sio_err err;
	struct smartiod_borrow *b = smartiod_borrow_get(s, sio_from_le32(m->handle), &err);

	if (b && !(sio_from_le32(m->flags) & SIO_RESTORE_LEAVING))
		smartiod_borrow_give_up(d, b);
}

/* ---- one that was in the making, and outlived the daemon ---- */

struct waiting_op {
	struct smartiod_op op;
	struct sio_msg_shadow msg;
};

static void waited_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct sio_err err = {.text = ""};

	if (!a->error && smartiod_shadow(d, op->session, &((struct waiting_op *)op)->msg, &err) < 0)
		smartiod_op_fail(d, op, &err);
	smartiod_op_free(d, op);
}

int smartiod_shadow_later(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_shadow *m, struct sio_err *reterr)
{
	struct waiting_op *w = smartiod_op_new(d, s, m, sizeof(*w), waited_step, reterr);

	if (!w)
		return reterr->code;
	w->msg = *m;
	smartiod_op_park(&w->op);
	return 0;
}

void smartiod_shadow_unclaimed_gone(struct smartiod *d, uint64_t owner)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->ops_all, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_id);

		key = n->key;
		if (op->step == waited_step && op->session && op->session->owner == owner)
			smartiod_op_resume(d, op);
	}
}

void smartiod_shadows_answered(struct smartiod *d, uint32_t node)
{
	struct sio_req_reopen req = {.h.op = SIO_OP_REOPEN, .kind = SIO_KIND_SHADOW};

	for (struct smartiod_borrow *b = d->borrows; b; b = b->next) {
		if (b->node != node || !b->shadow_asks || !b->o.session)
			continue;
		b->shadow_asks = false;
		req.id = b->o.session->shadow;
		if (req.id)
			smartiod_port_send(d, &req, sizeof(req));
	}
}
