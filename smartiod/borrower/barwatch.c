/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches, the borrower's side: how a program's stores to pages of a borrowed device wake that
 * device. The request is passed on to the port of this host. It names this host's mapping of the
 * lender's pages or, if this host is the lender, the view itself. The mapping may end while the
 * port works, so the operation refers to it by its handle alone.
 */
#include <errno.h>
#include <inttypes.h>

#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"

struct watch_op {
	struct smartiod_op op; /* fd[0]: the program's */
	uint32_t map, kind;
	unsigned piece;
	bool doorbells;
};

static void unwatch(struct smartiod *d, uint64_t watch)
{
	struct sio_req_unwatch req = {.h.op = SIO_OP_UNWATCH, .id = watch};

	if (watch)
		smartiod_port_send(d, &req, sizeof(req));
}

void smartiod_bar_unwatch(struct smartiod *d, struct smartiod_bar_piece *p)
{
	unwatch(d, p->watch);
	p->watch = 0;
}

/* The BAR map with this handle, if it still leads to the device. */
static struct smartiod_bar_map *find(struct smartiod_session *s, uint32_t handle,
				     struct sio_err *reterr)
{
	struct smartiod_map *m = smartiod_object_get(s, handle, SMARTIOD_MAP, reterr);
	struct smartiod_bar_map *bar = m ? m->bar : NULL;

	if (m && !bar)
		sio_fail(reterr, -EINVAL, "map %u is of memory, not of a device", handle);
	else if (bar && (smartiod_borrow_ended(bar->borrow) || smartiod_borrow_lost(bar->borrow) ||
			 smartiod_connection_is_lost(bar->connection)))
		sio_fail(reterr, -ECONNRESET, "the device is lost");
	else
		return bar;
	return NULL;
}

static int find_piece(const struct smartiod_bar_map *bar, const struct sio_msg_seg_watch *m,
		      unsigned *ret, struct sio_err *reterr)
{
	uint64_t offset = sio_from_le64(m->offset), bytes = sio_from_le64(m->bytes), end;

	if (bytes && !__builtin_add_overflow(offset, bytes, &end))
		for (unsigned i = 0; i < bar->n; i++) {
			const struct smartiod_bar_piece *p = &bar->piece[i];

			if (offset < p->offset || end > p->offset + p->bytes)
				continue;
			*ret = i;
			return 0;
		}
	return sio_fail(reterr, -ERANGE,
			"%#" PRIx64 " + %#" PRIx64
			" lies in no piece of the map that can be reached",
			offset, bytes);
}

/* Of what a reset has taken away there is nothing to see, and nobody sleeps behind it. */
static bool sees_nothing(uint32_t kind)
{
	return kind != SIO_WATCH_EVENT; /* which would need a word */
}

static void watch_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct watch_op *w = (struct watch_op *)op;
	const struct sio_evt_watch *evt = a->msg;
	struct sio_rep_seg_watch rep = {.flag_offset = sio_to_le32(0)};
	struct sio_err err = {.text = "the program is gone", .code = -ECONNRESET};
	struct smartiod_bar_map *bar = NULL;

	if (a->error == -ENODEV && w->doorbells && sees_nothing(w->kind)) {
		smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
		smartiod_op_free(d, op);
		return;
	}
	if (a->error) {
		smartiod_op_error(d, op, a->error == -ENODEV ? -ENOTCONN : a->error, "%s", a->text);
		smartiod_op_free(d, op);
		return;
	}
	if (op->session)
		bar = find(op->session, w->map, &err);
	if (!bar) {
		unwatch(d, evt->id);
		smartiod_op_fail(d, op, &err);
		smartiod_op_free(d, op);
		return;
	}
	smartiod_bar_unwatch(d, &bar->piece[w->piece]);
	bar->piece[w->piece].watch = evt->id;
	rep.flag_offset = sio_to_le32(evt->flag_offset);
	smartiod_op_reply(d, op, &rep, sizeof(rep), a->fds,
			  w->kind == SIO_WATCH_EVENT ? a->n_fds : 0);
	smartiod_op_free(d, op);
}

int smartiod_seg_watch(struct smartiod *d, struct smartiod_session *s, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_msg_seg_watch *m = msg;
	struct smartiod_bar_map *bar = find(s, sio_from_le32(m->map), reterr);
	struct sio_req_watch req = {.h = {.op = SIO_OP_WATCH, .owner = s->owner}};
	struct sio_rep_seg_watch rep = {.flag_offset = sio_to_le32(0)};
	const struct smartiod_bar_piece *p;
	struct watch_op *w;
	unsigned piece = 0;

	if (!bar || find_piece(bar, m, &piece, reterr) < 0)
		return reterr->code;
	p = &bar->piece[piece];
	req.kind = sio_from_le32(m->kind);
	if (p->gone && sees_nothing(req.kind)) {
		smartiod_reply(d, s, msg, &rep, sizeof(rep), NULL, 0);
		return 0;
	}
	if (p->gone)
		return sio_fail(reterr, -ERANGE, "a reset took these doorbells away");
	if (req.kind == SIO_WATCH_FAULT && s->request_fd < 0)
		return sio_fail(reterr, -EMFILE, "no descriptor came with the request");
	w = smartiod_op_new(d, s, msg, sizeof(*w), watch_step, reterr);
	if (!w)
		return reterr->code;
	w->map = sio_from_le32(m->map);
	w->kind = req.kind;
	w->piece = piece;
	w->doorbells = p->doorbells;
	w->op.fd[0] = s->request_fd;
	s->request_fd = -1;
	req.target_kind = p->map ? SIO_KIND_MAP : SIO_KIND_BAR;
	req.target = p->map ? p->map : p->view;
	req.offset = sio_from_le64(m->offset) - p->offset;
	req.length = sio_from_le64(m->bytes);
	req.address = sio_from_le64(m->address);
	smartiod_port_ask_fd(d, &w->op, &req, sizeof(req), w->op.fd[0]);
	return 0;
}
