/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of a daemon on a host where resources of the port have outlived the previous daemon.
 * Programs go on with the devices that they have borrowed, and what ended in the meantime waits in
 * quarantine. The port lists it all, kind by kind; from that the daemon makes loans again before it
 * serves any request. So a device in use is not lent as if it were free, and the next owner of the
 * registers is notified of borrowers that died.
 *
 * No program has a handle of such a loan until it connects again and restores it (recovery.c). If
 * the program does not connect, the loan ends with the program, which the port reports.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/restart/restore.h"
#include "smartiod/segment/grant.h"

static uint64_t cookie_device(uint64_t cookie)
{
	return cookie & SMARTIOD_COOKIE_SESSION ? 0 : cookie >> 32 & SMARTIOD_COOKIE_DEVICES;
}

static uint32_t cookie_node(uint64_t cookie)
{
	return (cookie & ~SMARTIOD_COOKIE_EXCLUSIVE) >> SMARTIOD_COOKIE_NODE_SHIFT;
}

/*
 * The cookie has the low bits of the port's id, by which the devices of one host are distinguished.
 */
static struct smartiod_device *device_of(struct smartiod *d, uint64_t cookie)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->devices, key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		key = n->key;
		if (dev->node == d->node &&
		    (dev->port.id & SMARTIOD_COOKIE_DEVICES) == cookie_device(cookie))
			return dev;
	}
	return NULL;
}

/* ---- one thing that there is ---- */

static void end_owner(struct smartiod *d, const struct sio_list_entry *e, const char *why)
{
	smartiod_log(d, SMARTIOD_WARNING,
		     "owner %" PRIu64 ", a borrow of before we were started, is ended: %s",
		     (uint64_t)e->id, why);
	if (e->state != SIO_STATE_QUARANTINED)
		smartiod_port_owner_close(d, e->id);
}

static int adopt_owner(struct smartiod *d, const struct sio_list_entry *e)
{
	uint32_t number = (uint32_t)e->cookie;
	struct smartiod_device *dev;
	struct smartiod_loan *l;
	struct sio_err err;
	int rc;

	if (cookie_device(e->cookie) == 0) /* a session's: its program holds it */
		return e->state == SIO_STATE_LIVE ? smartiod_recovery_expect(d, e->id, e->cookie)
						  : 0;
	if (number > d->last_loan)
		d->last_loan = number;
	dev = device_of(d, e->cookie);
	if (!dev || !dev->present || dev->fresh) {
		end_owner(d, e, "its device is gone");
		return 0;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->id = (d->boot_generation & 0xffffffffu) << 32 | number;
	/* Of who is of another host that host's daemon tells, when it has met us. */
	l->state = e->state == SIO_STATE_QUARANTINED ? SMARTIOD_LOAN_ORPHANED
		   : e->owner == 0		     ? SMARTIOD_LOAN_DISTANT
						     : SMARTIOD_LOAN_OLD;
	l->node = cookie_node(e->cookie);
	rc = sio_ledger_adopt(&dev->ledger, l->id, l->node, e->cookie & SMARTIOD_COOKIE_EXCLUSIVE,
			      &err);
	if (rc < 0) {
		free(l);
		if (rc == -EINVAL)
			end_owner(d, e, err.text);
		return rc == -EINVAL ? 0 : rc;
	}
	l->device = dev;
	l->owner = e->id;
	l->parent = e->owner;
	l->owner_fd = -1;
	/* Its kernel's driver may have stopped the device (lender/config.c). */
	dev->lent->stopped |= (e->cookie & SMARTIOD_COOKIE_EXCLUSIVE) != 0;
	smartiod_tree_add(&d->loans, &l->by_id, l->id);
	smartiod_charge_node(d, l->node, &l->charge, SIO_QUOTA_BORROWS, 1);
	return 0;
}

static int adopt_dmamap(struct smartiod *d, const struct sio_list_entry *e)
{
	struct smartiod_loan *l = smartiod_loan_by_owner(d, e->owner);

	if (l)
		return smartiod_dma_adopt(d, l, e);
	smartiod_log(d, SMARTIOD_WARNING,
		     "a mapping of %" PRIu64 " bytes for owner %" PRIu64 " is no borrow's",
		     (uint64_t)e->length, (uint64_t)e->owner);
	return 0;
}

static int adopt_vector(struct smartiod *d, const struct sio_list_entry *e)
{
	struct smartiod_loan *l = smartiod_loan_by_owner(d, e->owner);
	struct smartiod_old_vector *v;

	if (!l)
		return 0;
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->loan = l;
	v->number = (uint32_t)e->length;
	v->irq = e->cookie;
	v->next = l->device->lent->old_vectors;
	l->device->lent->old_vectors = v;
	return 0;
}

/*
 * Of programs, and of their borrows; devices may reach it. One whose owner ended meanwhile is there
 * because other hosts have it, whose devices may reach it, too: nobody claims it; or because a
 * queue of a device lies there: its borrow's end keeps it (lender/kept.c).
 */
static int adopt_bar(struct smartiod *d, const struct sio_list_entry *e)
{
	struct sio_list_entry ended = *e;

	bool outlives = smartiod_dma_adopt_view(d, e);

	if (e->state != SIO_STATE_LIVE) {
		ended.state = SIO_STATE_LIVE;
		ended.owner = outlives ? e->owner : 0;
		return smartiod_unclaimed_add(d, &ended);
	}
	return e->owner ? smartiod_unclaimed_add(d, e) : 0;
}

/*
 * Owner 0's are shared interrupts', which only a daemon passes on, and memory of segments whose
 * makers released them (GIVE). A pool would be owner 0's memory, too, but nothing here imports one;
 * that would have to be distinguished by its number.
 */
static int adopt_held(struct smartiod *d, const struct sio_list_entry *e)
{
	if (smartiod_dma_adopt_group(d, e))
		return 0;
	return smartiod_unclaimed_add(d, e);
}

static bool may_come_back(struct smartiod *d, uint32_t node)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);

	return p && smartiod_outlives(d, p);
}

/*
 * Its importer may have a window there: it says so when the daemons have met, or that it has none.
 * Until then the memory is kept as that of an orphaned grant. An interrupt becomes nobody else's
 * memory.
 */
static int adopt_grant(struct smartiod *d, const struct sio_list_entry *e)
{
	const struct smartiod_grant what = {.node = e->node,
					    .adapter = (uint32_t)(e->device >> 32),
					    .peer_adapter = (uint32_t)e->device,
					    .irq = e->length == SIO_MSI_BYTES,
					    .orphaned = e->length != SIO_MSI_BYTES,
					    .target = e->cookie,
					    .bytes = e->length,
					    .bus_addr = e->address};
	struct sio_err err;
	int rc;

	if (what.irq && !may_come_back(d, e->node)) {
		smartiod_port_ungrant(d, e->id);
		return 0;
	}
	rc = smartiod_grant_keep(d, e->id, &what, &err);
	if (rc == -ENOSPC && what.irq) {
		smartiod_port_ungrant(d, e->id);
		return 0;
	}
	if (rc == -ENOSPC)
		smartiod_log(d, SMARTIOD_WARNING, "grant %" PRIu64 " of before stays: %s",
			     (uint64_t)e->id, err.text);
	return rc == -ENOSPC ? 0 : rc;
}

/*
 * What a device reaches through, by a mapping or a vector, is its borrow's; what a program maps it
 * may claim again. A window of a borrow's that leads no device anywhere was opened when we died: it
 * must be closed before its grant ends, when its exporter is met.
 */
static int adopt_map(struct smartiod *d, const struct sio_list_entry *e)
{
	struct sio_req_unmap req = {.h.op = SIO_OP_UNMAP, .id = e->id};
	int vectors;

	if (smartiod_dma_adopt_map(d, e))
		return 0;
	vectors = smartiod_vectors_adopt(d, e);
	if (vectors)
		return vectors < 0 ? vectors : 0;
	if (smartiod_recovery_expects(d, e->owner))
		return smartiod_unclaimed_add(d, e);
	smartiod_port_send(d, &req, sizeof(req));
	return 0;
}

/* What devices pass; the others are nobody's. */
static int adopt_requester(struct smartiod *d, const struct sio_list_entry *e)
{
	struct sio_req_requester_del req = {.h.op = SIO_OP_REQUESTER_DEL, .id = e->id};

	if (!smartiod_requester_adopt(d, e))
		smartiod_port_send(d, &req, sizeof(req));
	return 0;
}

/*
 * A driver of this host's kernel has a device of another host. Its program may claim it; if that
 * has ended, nobody can say what its parts are.
 */
static int adopt_shadow(struct smartiod *d, const struct sio_list_entry *e)
{
	struct sio_req_shadow_del req = {.h = {.op = SIO_OP_SHADOW_DEL, .flags = SIO_SHADOW_LOST},
					 .id = e->id};

	if (smartiod_recovery_expects(d, e->owner))
		return smartiod_unclaimed_add(d, e);
	smartiod_port_send(d, &req, sizeof(req));
	return 0;
}

/* ---- all there is ---- */

static const struct {
	uint32_t kind;
	int (*adopt)(struct smartiod *d, const struct sio_list_entry *e);
} kinds[] = {
	{SIO_KIND_OWNER, adopt_owner}, /* first: the others are theirs */
	{SIO_KIND_DMAMAP, adopt_dmamap},  {SIO_KIND_VECTOR, adopt_vector},
	{SIO_KIND_IRQ, adopt_held},	  {SIO_KIND_MEM, adopt_held},
	{SIO_KIND_BAR, adopt_bar},	  {SIO_KIND_GRANT, adopt_grant},
	{SIO_KIND_MAP, adopt_map},	  {SIO_KIND_REQUESTER, adopt_requester},
	{SIO_KIND_SHADOW, adopt_shadow},  {SIO_KIND_DMA, adopt_held},
	{SIO_KIND_DMA_RANGE, adopt_held},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct adopt_op {
	struct smartiod_op op;
	enum { LIST, COUNT, CLOSE, REOPEN } state;
	unsigned kind; /* LIST: of kinds[] */
	uint64_t after;
};

static void ask(struct smartiod *d, struct adopt_op *o)
{
	struct sio_req_list req = {
		.h.op = SIO_OP_LIST, .kind = kinds[o->kind].kind, .after = o->after};

	smartiod_port_ask(d, &o->op, &req, sizeof(req));
}

static void adopted(struct smartiod *d)
{
	struct smartiod_loan *l;
	uint64_t after = 0;
	unsigned n = 0;

	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		n++;
		if (l->state == SMARTIOD_LOAN_ORPHANED || l->state == SMARTIOD_LOAN_ENDED_ORPHANED)
			smartiod_loan_owner_gone(d, l);
		else if (l->state == SMARTIOD_LOAN_DISTANT && !may_come_back(d, l->node))
			smartiod_loan_end(d, l); /* OWNER_GONE follows */
	}
	smartiod_dev_segs_adopt(d);
	if (n)
		smartiod_log(d, SMARTIOD_INFO, "borrows of before we were started: %u", n);
	smartiod_recovery_start(d);
	smartiod_started(d);
}

/* A program has its own of a DMA channel; shadows and ranges have none. */
static bool needs_descriptor(const struct smartiod_unclaimed *l)
{
	return l->kind != SIO_KIND_SHADOW && l->kind != SIO_KIND_DMA &&
	       l->kind != SIO_KIND_DMA_RANGE;
}

/* Descriptors of what is left, one after the other. */
static void reopen_next(struct smartiod *d, struct adopt_op *o)
{
	struct smartiod_unclaimed *l = smartiod_unclaimed_after(d, o->after);
	struct sio_req_reopen req = {.h.op = SIO_OP_REOPEN};

	while (l && !needs_descriptor(l))
		l = smartiod_unclaimed_after(d, l->by_id.key);
	if (!l) {
		smartiod_op_free(d, &o->op);
		adopted(d);
		return;
	}
	o->after = req.id = l->by_id.key;
	req.kind = l->kind;
	smartiod_port_ask(d, &o->op, &req, sizeof(req));
}

/* It may have ended meanwhile. One without its descriptor cannot be restored. */
static void reopened(struct smartiod *d, struct adopt_op *o, const struct smartiod_answer *a)
{
	struct smartiod_unclaimed *l = smartiod_unclaimed_after(d, o->after - 1);

	if (l && l->by_id.key == o->after && !a->error) {
		l->fd_offset = ((const struct sio_evt_reopen *)a->msg)->offset;
		l->fd[0] = smartiod_take_fd(a, 0);
		l->fd[1] = smartiod_take_fd(a, 1);
	}
	reopen_next(d, o);
}

/*
 * Borrows of before that have ended left no trace, and their numbers must not come again. But the
 * port never gives an id twice, each borrow had one for its owner, and their numbers began as we
 * begin: a new id is as great as they can be.
 */
static void count(struct smartiod *d, struct adopt_op *o)
{
	struct sio_req_owner_new req = {.h.op = SIO_OP_OWNER_NEW};

	o->state = COUNT;
	smartiod_port_ask(d, &o->op, &req, sizeof(req));
}

static void counted(struct smartiod *d, struct adopt_op *o, const struct smartiod_answer *a)
{
	struct sio_req_owner_close end = {.h.op = SIO_OP_OWNER_CLOSE};

	if (o->state == CLOSE) { /* perhaps it had ended with its descriptor */
		o->state = REOPEN;
		reopen_next(d, o);
		return;
	}
	if (a->error) {
		smartiod_fatal(d, "the port's ids cannot be told: %s", a->text);
		smartiod_op_free(d, &o->op);
		return;
	}
	end.h.owner = ((const struct sio_evt_owner_new *)a->msg)->id;
	/* Numbers that the daemon before us gave to others are not given again. */
	d->next_uid = end.h.owner << 32;
	if ((uint32_t)end.h.owner > d->last_loan)
		d->last_loan = (uint32_t)end.h.owner;
	o->state = CLOSE;
	smartiod_port_ask(d, &o->op, &end, sizeof(end));
}

static void adopt_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct adopt_op *o = (struct adopt_op *)op;
	const struct sio_evt_list *evt = a->msg;
	int rc = 0;

	if (o->state == REOPEN) {
		reopened(d, o, a);
		return;
	}
	if (o->state != LIST) {
		counted(d, o, a);
		return;
	}
	if (a->error) {
		smartiod_fatal(d, "what a daemon before us left cannot be listed: %s", a->text);
		smartiod_op_free(d, op);
		return;
	}
	for (uint32_t i = 0; rc == 0 && i < evt->count && i < SIO_LIST_MAX; i++) {
		o->after = evt->entry[i].id;
		rc = kinds[o->kind].adopt(d, &evt->entry[i]);
	}
	if (rc < 0) {
		smartiod_fatal(d, "no memory to take over what the port has: " SIO_MORE_MEMORY);
		smartiod_op_free(d, op);
		return;
	}
	if (!evt->more || evt->count == 0) {
		o->kind++;
		o->after = 0;
	}
	if (o->kind < N_KINDS)
		ask(d, o);
	else
		count(d, o);
}

void smartiod_adopt_start(struct smartiod *d)
{
	struct sio_err err;
	struct adopt_op *o;

	if (!smartiod_is_real(d)) { /* elsewhere nothing outlives its daemon */
		smartiod_started(d);
		return;
	}
	o = smartiod_op_new(d, NULL, NULL, sizeof(*o), adopt_step, &err);
	if (!o) {
		smartiod_fatal(d, "%s", err.text);
		return;
	}
	ask(d, o);
}
