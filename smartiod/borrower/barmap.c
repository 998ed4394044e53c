/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BAR mappings, the borrower's side: what the lender granted, which is mapped through the adapter
 * of this host, until it is given back or lost (barmap_ask.c makes them).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"

/*
 * The lender takes its grants back by itself, but may keep their addresses for us (orphan.c). One
 * that has started again has perhaps another grant with that number.
 */
static void release_address(struct smartiod *d, const struct smartiod_bar_map *bar,
			    struct smartiod_bar_piece *p)
{
	const struct smartiod_peer *lender = smartiod_peer_find(d, bar->borrow->node);

	if (lender && !p->released && lender->generation == bar->start)
		smartiod_grant_release(d, lender->node, p->grant);
	p->released = true;
}

bool smartiod_bar_has_grant(struct smartiod *d, uint32_t node, uint64_t grant)
{
	uint64_t start = smartiod_peer_find(d, node)->generation;
	const struct smartiod_bar_map *m;

	for (const struct smartiod_borrow *b = d->borrows; b; b = b->next)
		for (m = b->maps; b->node == node && m; m = m->next)
			for (unsigned i = 0; m->start == start && i < m->n; i++)
				if (m->piece[i].grant == grant && !m->piece[i].released)
					return true;
	return false;
}

/* When it is closed and the port has answered all that it was asked for it. */
static void bar_map_check(struct smartiod *d, struct smartiod_bar_map *bar)
{
	struct smartiod_borrow *b = bar->borrow;
	struct smartiod_bar_map **at = &b->maps;

	if (!bar->closed || bar->unmapping)
		return;
	while (*at != bar)
		at = &(*at)->next;
	b->pins++;
	*at = bar->next;
	free(bar);
	smartiod_borrow_unpin(d, b);
}

/* Whatever the port says: its owner may have ended before, and the window with it. */
static void unmapped(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_bar_piece *p = SMARTIOD_OF((void *)op, struct smartiod_bar_piece, unmap);
	struct smartiod_bar_map *bar = p->of;

	(void)a;
	release_address(d, bar, p);
	bar->unmapping--;
	bar_map_check(d, bar);
}

static void unmap_piece(struct smartiod *d, struct smartiod_bar_map *bar,
			struct smartiod_bar_piece *p)
{
	struct sio_req_unmap req = {.h.op = SIO_OP_UNMAP, .id = p->map};

	smartiod_bar_unwatch(d, p);
	smartiod_close_fd(d, &p->fd);
	if (!p->map)
		return;
	p->map = 0;
	p->of = bar;
	p->unmap.step = unmapped;
	bar->unmapping++;
	smartiod_port_ask(d, &p->unmap, &req, sizeof(req));
}

void smartiod_bar_piece_release(struct smartiod *d, struct smartiod_bar_map *bar,
				struct smartiod_bar_piece *p)
{
	const struct smartiod_borrow *b = bar->borrow;
	struct sio_peer_bar_release msg = {
		.h.type = sio_to_le32(SIO_PEER_BAR_RELEASE),
		.borrower = sio_to_le64(b->id),
		.view = sio_to_le64(p->view),
		.grant = sio_to_le64(p->grant),
		.fdid = sio_to_le32(b->device->fdid),
	};

	unmap_piece(d, bar, p);
	if (!smartiod_borrow_lost(b))
		smartiod_notify(d, b->node, &msg, sizeof(msg));
	if (!p->of) /* it never was mapped */
		release_address(d, bar, p);
}

/*
 * The lender has closed the views, so what programs have mapped leads nowhere; we take our windows
 * away, too.
 */
void smartiod_bar_map_doorbells_gone(struct smartiod *d, struct smartiod_bar_map *bar)
{
	for (unsigned i = 0; i < bar->n; i++) {
		if (!bar->piece[i].doorbells)
			continue;
		bar->piece[i].gone = true;
		unmap_piece(d, bar, &bar->piece[i]);
	}
}

/* Nobody waits for the port: the device can be returned. */
void smartiod_bar_map_close(struct smartiod *d, struct smartiod_bar_map *bar)
{
	struct smartiod_borrow *b = bar->borrow;

	for (unsigned i = 0; i < bar->n; i++)
		smartiod_bar_piece_release(d, bar, &bar->piece[i]);
	bar->connection = NULL;
	bar->closed = true;
	bar_map_check(d, bar);
	smartiod_borrow_unpin(d, b);
}

bool smartiod_shadow_is_of(const struct smartiod_borrow *b)
{
	for (const struct smartiod_bar_map *bar = b->maps; bar; bar = bar->next)
		if (!bar->connection && !bar->closed)
			return true;
	return false;
}

void smartiod_shadow_bars_close(struct smartiod *d, struct smartiod_borrow *b)
{
	struct smartiod_bar_map *bar, *next;

	for (bar = b->maps; bar; bar = next) {
		next = bar->next;
		if (!bar->connection && !bar->closed)
			smartiod_bar_map_close(d, bar);
	}
}

void smartiod_bar_map_lost(struct smartiod *d, struct smartiod_bar_map *bar)
{
	if (!bar->connection) /* the port unmaps nothing of a shadow, which has to go first */
		return;
	for (unsigned i = 0; i < bar->n; i++)
		unmap_piece(d, bar, &bar->piece[i]);
}

uint64_t smartiod_bar_seal(const struct smartiod_session *s, uint32_t handle,
			   const struct smartiod_bar_map *bar)
{
	uint64_t words[7 + 3 * SIO_MAP_PIECES] = {
		handle,
		smartiod_handle(&bar->connection->o),
		bar->borrow->id,
		bar->borrow->device->fdid,
		bar->bar,
		bar->adapter << 16 | bar->peer_adapter,
		smartiod_bar_doorbells(bar),
	};
	unsigned n = 7;

	for (unsigned i = 0; i < bar->n; i++) {
		words[n++] = bar->piece[i].view;
		words[n++] = bar->piece[i].grant;
		words[n++] = bar->piece[i].map;
	}
	return smartiod_seal_words(s, SIO_MSG_SEG_MAP, words, n);
}

uint32_t smartiod_bar_doorbells(const struct smartiod_bar_map *bar)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < bar->n; i++)
		bits |= bar->piece[i].doorbells ? 1u << i : 0;
	return bits;
}

struct smartiod_bar_map *smartiod_bar_map_new(struct smartiod *d, struct smartiod_borrow *b,
					      struct smartiod_connection *c,
					      const struct sio_path *path)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, b->node);
	struct smartiod_bar_map *bar = calloc(1, sizeof(*bar));

	if (!bar)
		return NULL;
	bar->start = p ? p->generation : 0;
	bar->borrow = b;
	bar->connection = c;
	bar->bar = c ? c->segment_id : 0;
	bar->adapter = path->adapter;
	bar->peer_adapter = path->peer_adapter;
	bar->next = b->maps;
	b->maps = bar;
	b->pins++;
	return bar;
}
