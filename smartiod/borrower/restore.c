/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restart: what programs of this host have of other hosts' devices, as their libraries restore it
 * after smartiod was started again. Nothing here asks the lender: its daemon goes on, and hears
 * what this host has when the two meet (resume.c). What of it the lender does not know ends then,
 * and what the lender has beyond it ends there. Until then the program's calls wait.
 *
 * Seals keep a program from claiming what the lender could only tell to be this host's: views and
 * grants of another program.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/segment/restore.h"

/* ---- borrows ---- */

uint64_t smartiod_borrow_seal(const struct smartiod_session *s, uint32_t handle, uint64_t id,
			      uint32_t fdid, const struct sio_rep_dev_list *info)
{
	const uint64_t words[] = {handle, id, fdid, sio_from_le32(info->bdf),
				  sio_from_le32(info->class_code)};

	return smartiod_seal_words(s, SIO_MSG_DEV_BORROW, words, sizeof(words) / sizeof(words[0]));
}

static struct smartiod_device *device_of(struct smartiod *d, struct smartiod_session *s,
					 const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_borrow *r = (const void *)m->request;
	const struct sio_rep_dev_list info = {.bdf = m->bdf, .class_code = m->class_code};
	uint32_t fdid = sio_from_le32(r->fdid);
	uint64_t id = sio_from_le64(m->key);
	uint64_t seal = smartiod_borrow_seal(s, sio_from_le32(m->handle), id, fdid, &info);
	struct smartiod_device *dev;
	struct sio_policy_thing thing;

	if (smartiod_restore_peer(d, sio_topology_fdid_node(fdid), reterr) < 0 ||
	    smartiod_seal_compare(s, m, seal, reterr) < 0)
		return NULL;
	dev = smartiod_device_again(d, fdid, sio_from_le32(m->bdf), sio_from_le32(m->class_code),
				    reterr);
	if (!dev)
		return NULL;
	thing = smartiod_thing_device(d, dev->node, dev->topo->name);
	return smartiod_allow_program(d, s, &thing, reterr) < 0 ? NULL : dev;
}

int smartiod_borrow_again(struct smartiod *d, struct smartiod_session *s,
			  const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dev_borrow *r = (const void *)m->request;
	struct smartiod_device *dev = device_of(d, s, m, reterr);
	struct smartiod_borrow *b = dev ? smartiod_borrow_new(d, s, dev, reterr) : NULL;

	if (!b)
		return reterr->code;
	smartiod_borrow_lent(d, b, sio_from_le64(m->key));
	b->adapter = sio_from_le32(r->over) - 1; /* 0 becomes SIO_ADAPTER_ANY */
	b->generation = sio_from_le32(m->number);
	b->ticket = d->ops->random(d->ctx) | 1; /* the one of before is forgotten */
	b->released = sio_from_le32(m->flags) & SIO_RESTORE_RELEASED;
	smartiod_borrow_unpin(d, b);
	return 0;
}

bool smartiod_borrows_wait(struct smartiod *d, const struct smartiod_session *s)
{
	for (const struct smartiod_borrow *b = d->borrows; b; b = b->next)
		if (b->o.session == s && b->node != d->node && !smartiod_borrow_lost(b) &&
		    smartiod_peer_find(d, b->node)->unmet)
			return true;
	return false;
}

/* ---- device segments ---- */

/* What lies in the lender's memory the lender knows; it hears that its program does, too. */
int smartiod_dev_seg_placed_again(struct smartiod *d, struct smartiod_session *s,
				  struct smartiod_borrow *b, const struct sio_msg_restore *m,
				  struct sio_err *reterr)
{
	const struct sio_msg_dev_seg_create *r = (const void *)m->request;
	struct smartiod_unclaimed *l;
	struct smartiod_placed *p;

	if (sio_from_le64(m->key) & SMARTIOD_UID_MEM) {
		smartiod_made_note(b, sio_from_le64(m->key));
		return 0;
	}
	l = smartiod_unclaimed_get(d, SIO_KIND_MEM, s->owner, sio_from_le64(m->key), reterr);
	if (!l)
		return reterr->code;
	if (smartiod_unclaimed_check(l, reterr) < 0)
		return reterr->code;
	p = smartiod_placed_new(d, s, b, sio_from_le32(r->segment_id), sio_from_le32(r->memtype),
				l->length, reterr);
	if (!p)
		return reterr->code;
	smartiod_segment_take_unclaimed(d, p->segment, l);
	p->segment->device = b->device->fdid;
	p->known = true;
	return 0;
}

/* In this host's memory, by which borrow ever. */
static int connect_here(struct smartiod *d, struct smartiod_session *s, struct smartiod_borrow *b,
			const struct sio_msg_restore *m, struct sio_err *reterr)
{
	struct smartiod_segment *seg;

	if (smartiod_seal_check(s, m, SIO_MSG_SEG_CONNECT, 0, 0, reterr) < 0)
		return reterr->code;
	seg = smartiod_segment_by_mem(d, sio_from_le64(m->key), reterr);
	if (!seg)
		return reterr->code;
	if (seg->device != b->device->fdid)
		return sio_fail(reterr, -EACCES, "it is no segment of %s", b->device->topo->name);
	return smartiod_restore_connect(d, s, seg, 0, m, reterr);
}

int smartiod_dev_connection_again(struct smartiod *d, struct smartiod_session *s,
				  struct smartiod_borrow *b, const struct sio_msg_restore *m,
				  struct sio_err *reterr)
{
	const struct sio_msg_dev_seg_connect *r = (const void *)m->request;
	uint32_t memtype = sio_from_le32(r->memtype);
	const struct smartiod_wanted wanted = {
		.device = b->device->fdid,
		.borrow = memtype == SCI_MEMTYPE_PRIVATE ? b->id : 0,
		.via = b->id,
		.lender = b->node,
		.memtype = memtype,
	};
	struct smartiod_connection *c;

	if (memtype == SCI_MEMTYPE_BAR)
		c = smartiod_bar_connection(d, s, b, sio_from_le32(r->segment_id),
					    sio_from_le64(m->bytes), reterr);
	else if (!sio_from_le64(m->extra))
		return connect_here(d, s, b, m, reterr);
	else
		c = smartiod_restore_far(d, s, sio_from_le32(m->node), &wanted, m, reterr);
	if (c && memtype != SCI_MEMTYPE_BAR)
		smartiod_made_connected(d, b->node, c->uid);
	/* Its path went down meanwhile, and what a device wrote over it is lost. */
	if (c && c->borrow && c->state == SMARTIOD_CONNECTION_DOWN)
		smartiod_borrow_give_up(d, b);
	return c ? 0 : reterr->code;
}

/* ---- maps of BARs ---- */

static struct smartiod_unclaimed *window_of(struct smartiod *d, const struct smartiod_session *s,
					    const struct smartiod_bar_map *bar, uint64_t map,
					    struct sio_err *reterr)
{
	struct smartiod_unclaimed *l =
		smartiod_unclaimed_get(d, SIO_KIND_MAP, s->owner, map, reterr);

	if (!l || (l->node == bar->borrow->node &&
		   l->device == SIO_LIST_PATH(bar->adapter, bar->peer_adapter)))
		return l;
	sio_fail(reterr, -EINVAL, "map %" PRIu64 " is no window to a BAR of node %u", map,
		 bar->borrow->node);
	return NULL;
}

/* The pieces as they were; not yet their windows. */
static void fill_pieces(struct smartiod_bar_map *bar, const struct sio_msg_restore *m)
{
	while (bar->n < SIO_MAP_PIECES && m->claim[bar->n].view) {
		const struct sio_wire_claim *c = &m->claim[bar->n];

		bar->piece[bar->n] = (struct smartiod_bar_piece){
			.view = sio_from_le64(c->view),
			.grant = sio_from_le64(c->grant),
			.map = sio_from_le64(c->map),
			.doorbells = sio_from_le32(m->doorbells) >> bar->n & 1,
			.fd = -1,
		};
		bar->n++;
	}
}

/* A window that is gone was taken by a reset, of which the lender tells. */
static void take_windows(struct smartiod *d, const struct smartiod_session *s,
			 struct smartiod_bar_map *bar)
{
	struct sio_err err;

	for (unsigned i = 0; i < bar->n; i++) {
		struct smartiod_bar_piece *p = &bar->piece[i];
		struct smartiod_unclaimed *l = p->map ? window_of(d, s, bar, p->map, &err) : NULL;

		if (!l) {
			p->map = 0;
			p->gone = true;
			continue;
		}
		p->fd_offset = l->fd_offset;
		p->bytes = l->length;
		p->fd = smartiod_unclaimed_take_fd(l, 0);
		smartiod_unclaimed_done(d, l);
	}
}

int smartiod_bar_map_again(struct smartiod *d, struct smartiod_session *s,
			   struct smartiod_connection *c, const struct sio_msg_restore *m,
			   struct sio_err *reterr)
{
	const struct sio_path path = {.adapter = sio_from_le32(m->path) >> 16,
				      .peer_adapter = sio_from_le32(m->path) & 0xffff};
	struct smartiod_map *map = smartiod_map_new(d, s, c, reterr);
	struct smartiod_bar_map *bar;

	if (!map)
		return reterr->code;
	bar = smartiod_bar_map_new(d, c->device, c, &path);
	if (!bar) {
		smartiod_map_drop(d, map);
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	}
	bar->start = 0; /* not known before the lender is met */
	map->bar = bar;
	fill_pieces(bar, m);
	if (smartiod_seal_compare(s, m, smartiod_bar_seal(s, smartiod_handle(&map->o), bar),
				  reterr) < 0) {
		bar->n = 0;
		smartiod_map_drop(d, map);
		return reterr->code;
	}
	take_windows(d, s, bar);
	return 0;
}

/* Of another host's device, as a map is: its one piece has a window. */
static int reach_window(struct smartiod *d, struct smartiod_session *s,
			struct smartiod_bar_map *bar, const struct sio_msg_restore *m,
			struct sio_err *reterr)
{
	uint64_t seal;

	bar->start = 0; /* not known before the lender is met */
	fill_pieces(bar, m);
	seal = smartiod_bar_seal(s, sio_from_le32(m->handle), bar);
	if (smartiod_seal_compare(s, m, seal, reterr) < 0) {
		bar->n = 0;
		return reterr->code;
	}
	take_windows(d, s, bar);
	smartiod_close_fd(d, &bar->piece[0].fd); /* no program maps it */
	return bar->piece[0].gone ? sio_fail(reterr, -ENOENT, "its window is gone") : 0;
}

/* Of one of this host, whose lender knows the view. */
static int reach_view(struct smartiod *d, struct smartiod_bar_map *bar,
		      const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct smartiod_borrow *b = bar->borrow;
	uint64_t view = sio_from_le64(m->claim[0].view);
	int rc = -ENOENT;

	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->view_again)
			rc = d->rooms[i]->view_again(d, b->id, b->generation, bar->bar, view,
						     reterr);
	if (rc < 0)
		return rc;
	bar->piece[0] = (struct smartiod_bar_piece){.view = view, .fd = -1};
	bar->n = 1;
	return 0;
}

int smartiod_bar_reach_again(struct smartiod *d, struct smartiod_session *s,
			     struct smartiod_connection *c, const struct sio_msg_restore *m,
			     void **ret, uint64_t *ret_target, struct sio_err *reterr)
{
	const struct sio_path path = {.adapter = sio_from_le32(m->path) >> 16,
				      .peer_adapter = sio_from_le32(m->path) & 0xffff};
	struct smartiod_borrow *b = c->device;
	struct smartiod_bar_map *bar;
	int rc;

	if (!b)
		return sio_fail(reterr, -ECONNRESET, "the device of this BAR is lost");
	if (!m->claim[0].view || m->claim[1].view)
		return sio_fail(reterr, -EINVAL, "a DMA queue reaches one piece of a BAR");
	bar = smartiod_bar_map_new(d, b, c, &path);
	if (!bar)
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	rc = b->node == d->node ? reach_view(d, bar, m, reterr)
				: reach_window(d, s, bar, m, reterr);
	if (rc < 0) {
		smartiod_bar_map_close(d, bar);
		return rc;
	}
	*ret = bar;
	*ret_target = bar->piece[0].map ? bar->piece[0].map : bar->piece[0].view;
	return 0;
}

/* ---- DMA mappings ---- */

/* Whose the mapping is the lender knows, who is asked whenever it is used. */
int smartiod_dma_again(struct smartiod_session *s, struct smartiod_borrow *b,
		       const struct sio_msg_restore *m, struct sio_err *reterr)
{
	const struct sio_msg_dma_map *r = (const void *)m->request;
	const uint64_t mask = SIO_PAGE_SIZE - 1;
	struct smartiod_connection *c = NULL;
	struct smartiod_dma_handle *h;

	if (sio_from_le32(r->remote)) {
		c = smartiod_object_get(s, sio_from_le32(r->segment), SMARTIOD_CONNECTION, reterr);
		if (!c)
			return reterr->code;
	}
	h = smartiod_dma_handle_new(s, b, c, reterr);
	if (!h)
		return reterr->code;
	/* Charged, not asked for: a device uses it. */
	smartiod_account_add(&s->program->account, &h->charge, SIO_QUOTA_DMA,
			     (sio_from_le64(r->bytes) + mask) & ~mask);
	h->busy = false;
	h->map = sio_from_le64(m->key);
	return 0;
}
