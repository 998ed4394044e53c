/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "smartiod/base/room.h"
#include "smartiod/daemon/view.h"

/* ---- for a program of this host ---- */

/* With room for the greatest answer. */
union answer {
	struct sio_rep_adapter adapter;
	struct sio_rep_stats stats;
	struct sio_rep_list list;
};

static void answer_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	union answer rep;

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else {
		memcpy(&rep, a->msg, a->len < sizeof(rep) ? a->len : sizeof(rep));
		smartiod_op_reply(d, op, &rep, a->len, NULL, 0);
	}
	smartiod_op_free(d, op);
}

int smartiod_view(struct smartiod *d, struct smartiod_session *s, const void *msg, uint64_t node,
		  void *ask, size_t len, struct sio_err *reterr)
{
	const struct smartiod_peer *p = NULL;
	struct smartiod_op *op;
	int rc;

	if (node && node != d->node) {
		p = node <= UINT32_MAX ? smartiod_peer_find(d, (uint32_t)node) : NULL;
		if (!p || p->removed)
			return sio_fail(reterr, -EHOSTUNREACH,
					"no host of cluster %s has node id %" PRIu64,
					d->topology->name, node);
	}
	op = smartiod_op_new(d, s, msg, sizeof(*op), answer_step, reterr);
	if (!op)
		return reterr->code;
	if (!p) {
		smartiod_ask(d, op, d->node, ask, len);
		return 0;
	}
	rc = smartiod_peer_query(d, op, (uint32_t)node, ask, len);
	if (rc == 0)
		return 0;
	smartiod_op_free(d, op);
	return smartiod_unasked(d, p, rc, reterr);
}

/* ---- for whoever asks about this host ---- */

struct view {
	struct smartiod_op op;
	struct smartiod_from from;
};

int smartiod_view_port(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		       void *req, size_t len, smartiod_step *step, struct sio_err *reterr)
{
	struct view *v;

	if (from->back)
		v = smartiod_op_new(d, NULL, msg, sizeof(*v), step, reterr);
	else
		v = smartiod_op_new_peer(d, from->node, msg, sizeof(*v), step, reterr);
	if (!v)
		return reterr->code;
	v->from = *from;
	smartiod_port_ask(d, &v->op, req, len);
	return 0;
}

void smartiod_view_reply(struct smartiod *d, struct smartiod_op *op, void *rep, size_t len)
{
	struct view *v = (struct view *)op;
	struct smartiod_answer a = {.text = "", .msg = rep, .len = len};
	struct smartiod_op *back = v->from.back;

	if (!back)
		smartiod_op_reply(d, op, rep, len, NULL, 0);
	smartiod_op_free(d, op);
	if (back)
		smartiod_op_step(d, back, &a);
}

void smartiod_view_error(struct smartiod *d, struct smartiod_op *op, int error, const char *text)
{
	struct view *v = (struct view *)op;
	struct smartiod_answer a = {
		.error = error, .reason = smartiod_op_reason(op, error), .text = text};
	struct smartiod_op *back = v->from.back;

	if (!back)
		smartiod_op_error(d, op, error, "%s", text);
	smartiod_op_free(d, op);
	if (back)
		smartiod_op_step(d, back, &a);
}
