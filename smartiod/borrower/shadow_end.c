/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of shadows, and of what was made for them. The program may live on and plug in this
 * device again, or another one, so nothing may remain. What the device reached of others is
 * unmapped as well; what others reach of it ends with its borrow, for their drivers have it mapped.
 */
#include <errno.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"
#include "smartiod/segment/segment.h"

struct smartiod_borrow *smartiod_shadow_borrow(struct smartiod_session *s)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&s->objects, key))) {
		struct smartiod_object *o = SMARTIOD_OF(n, struct smartiod_object, by_handle);
		struct smartiod_borrow *b = (struct smartiod_borrow *)o;

		key = n->key;
		if (o->kind == SMARTIOD_BORROW && smartiod_shadow_is_of(b))
			return b;
	}
	return NULL;
}

/* Does its borrow live, so that the driver can still reach the device? */
static bool is_reached(struct smartiod_session *s)
{
	const struct smartiod_borrow *b = smartiod_shadow_borrow(s);

	return b && !smartiod_borrow_lost(b);
}

void smartiod_shadow_fill_del(struct smartiod_session *s, struct sio_req_shadow_del *ret)
{
	*ret = (struct sio_req_shadow_del){
		.h = {.op = SIO_OP_SHADOW_DEL, .flags = is_reached(s) ? 0 : SIO_SHADOW_LOST},
		.id = s->shadow,
	};
}

/* ---- what was made for it ---- */

bool smartiod_shadow_undo(struct smartiod *d, struct smartiod_op *op, struct smartiod_borrow *b)
{
	uint64_t map = b->shadow_dma;

	smartiod_shadow_bars_close(d, b);
	b->shadow_dma = 0;
	if (!map || smartiod_borrow_lost(b) || smartiod_borrow_ended(b))
		return false;
	smartiod_dma_ask_unmap(d, op, b, map);
	return true;
}

/*
 * Whatever the lender says: what it has been granted of the memory it keeps until it releases it.
 */
void smartiod_shadow_undone(struct smartiod *d, struct smartiod_borrow *b,
			    struct smartiod_segment *ram)
{
	b->shadow_ram = (struct smartiod_dma_range){.uid = 0};
	if (ram && ram->o.session)
		smartiod_segment_end(d, ram, SCI_CB_DISCONNECT, false);
}

/* By this what a target's end has cut already gives its address back, too. */
static void leave_peers(struct smartiod *d, struct smartiod_borrow *b)
{
	bool tell = !smartiod_borrow_lost(b) && !smartiod_borrow_ended(b);
	struct smartiod_peer_map *m;

	while ((m = b->peer_maps)) {
		b->peer_maps = m->next;
		if (tell)
			smartiod_dma_late(d, b->node, &m->mapped);
		free(m);
	}
}

/* ---- the request ---- */

struct del_op {
	struct smartiod_op op;
	struct smartiod_borrow *borrow; /* pinned */
	bool gone;			/* the driver has; the lender is asked */
};

static void finish(struct smartiod *d, struct del_op *o)
{
	struct smartiod_borrow *b = o->borrow;

	smartiod_op_free(d, &o->op);
	smartiod_borrow_unpin(d, b);
}

static void del_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct del_op *o = (struct del_op *)op;
	struct smartiod_borrow *b = o->borrow;

	/* It may have gone by itself, and then with the owner: as wanted. */
	if (!o->gone && a->error && a->error != -ENOENT) {
		smartiod_op_error(d, op, a->error, "%s: %s", b->device->topo->name, a->text);
		finish(d, o);
		return;
	}
	if (!o->gone && op->session) {
		o->gone = true;
		op->session->shadow = 0;
		leave_peers(d, b);
		if (smartiod_shadow_undo(d, op, b))
			return;
	}
	if (op->session) /* else its end has ended all that */
		smartiod_shadow_undone(d, b, smartiod_segment_by_uid(d, b->shadow_ram.uid));
	smartiod_op_ok(d, op);
	finish(d, o);
}

int smartiod_shadow_del(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	const struct sio_msg_handle *m = msg;
	struct sio_req_shadow_del req;
	struct smartiod_borrow *b;
	struct del_op *op;

	/* Also of one that is lost: its driver is to go. */
	b = smartiod_object_get(s, sio_from_le32(m->handle), SMARTIOD_BORROW, reterr);
	if (!b)
		return reterr->code;
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "the end of a shadow takes no flags");
	if (!s->shadow || !smartiod_shadow_is_of(b))
		return sio_fail(reterr, -EBADF, "%s is not plugged in: SHADOW comes first",
				b->device->topo->name);
	op = smartiod_op_new(d, s, msg, sizeof(*op), del_step, reterr);
	if (!op)
		return reterr->code;
	op->borrow = b;
	b->pins++;
	smartiod_shadow_fill_del(s, &req);
	smartiod_port_ask(d, &op->op, &req, sizeof(req));
	return 0;
}
