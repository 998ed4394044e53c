/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of one device that queues of another one of this host lie in (hold.c). The end of its
 * borrow would take it away, and a drive that finds no command where its queue was stops for
 * everybody. So the queue goes first, whoever has died: before the borrow's owner is closed the
 * port gives the view to the daemon, with which it outlives that borrow; meanwhile its device is
 * lent to nobody, who would find a queue in its memory, and its lender does not reset it, by which
 * lists of data pages would lead to address 0. It ends with the last hold: when the manager of the
 * queues has deleted them (hold.c, quarantine.c), or they ended with a reset of their device.
 *
 * Of a real host the port leaves such a mapping in place by itself, because it ends the owner of a
 * program that has died, be there a daemon or not: it is asked to (HOLD) before there is a queue,
 * and a daemon that is started again finds there which mappings those are.
 *
 * That is for memory that all borrowers have. What the owner of a device's registers gives out (a
 * drive's controller memory buffer) it gives to the next one as soon as the borrow has ended. Of a
 * class that nobody knows, which most real devices are of, all BARs count as registers: there it is
 * for a borrow that is exclusive, and until the end nobody else gets these registers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/lender/barview.h"

static struct smartiod_view *find_view(const struct smartiod_loan *l, uint64_t id)
{
	struct smartiod_view *v = l ? l->views : NULL;

	while (v && v->id != id)
		v = v->next;
	return v;
}

/* The emulated port by GIVE when the borrow ends, smartio.ko by HOLD. */
static bool port_can_keep(const struct smartiod *d)
{
	return d->served & 1ULL << (smartiod_is_real(d) ? SIO_OP_HOLD : SIO_OP_GIVE);
}

static bool can_be_kept(const struct smartiod_loan *l, const struct smartiod_view *v)
{
	const struct sio_borrow *b = sio_ledger_find(&l->device->ledger, l->id);

	return v->open ||
	       (v->holds && !smartiod_devclass_known(&l->device->port) && b && b->exclusive);
}

int smartiod_kept_can(struct smartiod *d, const struct smartiod_dma *dma, struct sio_err *reterr)
{
	const struct smartiod_loan *l = smartiod_loan_find(d, dma->bar_borrow);
	const char *name = dma->loan->device->topo->name;
	const struct smartiod_view *v = find_view(l, dma->view);

	if (dma->exporter != d->node)
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s: its queues cannot lie in a BAR of a device of another host "
				"(%#" PRIx64 "), only in memory of hosts and of devices beside it",
				name, dma->iova.addr);
	if (!port_can_keep(d))
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s: by VFIO the end of the other device's borrow takes its BAR "
				"away, and so its queues cannot lie there (%#" PRIx64
				"), only in memory of the host; with smartio.ko they can",
				name, dma->iova.addr);
	if (!v || smartiod_loan_ended(l))
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s: its queues cannot lie where the borrow of the other device "
				"has ended (%#" PRIx64 ")",
				name, dma->iova.addr);
	if (!can_be_kept(l, v))
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s: its queues cannot lie in registers of another device, or in "
				"memory that the owner of these gives out (%#" PRIx64
				"), only in memory that all its borrowers have, or of a device of "
				"another class in a BAR of an exclusive borrow",
				name, dma->iova.addr);
	return 0;
}

/* Of before our start, who holds it has perhaps not said so yet; the port says that it is held. */
static bool must_stay(const struct smartiod *d, const struct smartiod_dma *dma)
{
	if (!smartiod_is_real(d))
		return smartiod_held(dma);
	return dma->outlives && (smartiod_held(dma) || (dma->before && !dma->holds));
}

/* Marks what is mapped of view @id of @borrow and held. Return: mappings. */
static unsigned mark(struct smartiod *d, uint64_t borrow, uint64_t id, bool kept)
{
	struct smartiod_tree_node *n;
	unsigned found = 0;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		if (dma->exporter != d->node || dma->bar_borrow != borrow || dma->view != id ||
		    dma->cut || (kept && !must_stay(d, dma)))
			continue;
		dma->kept = kept;
		found++;
	}
	return found;
}

struct give_op {
	struct smartiod_op op;
	struct smartiod_loan *loan;
};

/* The borrow's owner may be closed when none of its views is on its way to another one. */
static void given(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_loan *l = ((struct give_op *)op)->loan;

	(void)a; /* refused: the port has ended the owner itself, and all is cut */
	if (--l->giving == 0)
		smartiod_loan_close_owner(d, l);
	smartiod_op_free(d, op);
	smartiod_loan_unpin(d, l);
}

/* The owner's descriptor is no message: if it were closed now its end might come first. */
static void give(struct smartiod *d, struct smartiod_loan *l, struct smartiod_view *v)
{
	struct sio_req_give req = {.h = {.op = SIO_OP_GIVE, .owner = l->owner}, .id = v->id};
	struct sio_err err;
	struct give_op *o = smartiod_op_new(d, NULL, NULL, sizeof(*o), given, &err);

	if (o) {
		o->loan = l;
		l->pins++;
		l->giving++;
		smartiod_port_ask(d, &o->op, &req, sizeof(req));
	} else {
		smartiod_port_send(d, &req, sizeof(req)); /* most likely it is in time */
	}
}

static void keep(struct smartiod_loan *l, struct smartiod_view *v, unsigned users)
{
	v->users = users;
	v->kept_of = l->id;
	v->next = l->device->lent->kept;
	l->device->lent->kept = v;
}

/* Of before our start, and its program has not claimed it. Without memory for it it is cut. */
static void keep_unclaimed(struct smartiod *d, struct smartiod_loan *l)
{
	struct smartiod_unclaimed *left, *next;

	for (left = smartiod_unclaimed_after(d, 0); left; left = next) {
		uint64_t id = left->by_id.key;
		struct smartiod_view *v = NULL;
		unsigned users = 0;

		next = smartiod_unclaimed_after(d, id);
		if (left->kind == SIO_KIND_BAR && left->owner == l->owner)
			users = mark(d, l->id, id, true);
		if (users)
			v = calloc(1, sizeof(*v));
		if (users && !v)
			mark(d, l->id, id, false);
		if (!v)
			continue;
		*v = (struct smartiod_view){
			.id = id, .fd = -1, .holds = !smartiod_devclass_known(&l->device->port)};
		keep(l, v, users);
		smartiod_unclaimed_done(d, left);
	}
}

void smartiod_views_keep(struct smartiod *d, struct smartiod_loan *l)
{
	struct smartiod_view **at = &l->views, *v;
	const bool real = smartiod_is_real(d);

	while (!l->lost && (v = *at)) {
		unsigned users = real || v->open ? mark(d, l->id, v->id, true) : 0;

		if (!users) {
			at = &v->next;
			continue;
		}
		*at = v->next;
		if (!real)
			give(d, l, v);
		smartiod_close_fd(d, &v->fd);
		keep(l, v, users);
	}
	if (!l->lost)
		keep_unclaimed(d, l);
}

bool smartiod_kept_registers(const struct smartiod_device *dev)
{
	const struct smartiod_view *v = dev->lent->kept;

	while (v && !v->holds)
		v = v->next;
	return v;
}

/* On a real host it ends with the last mapping. */
static void close_kept(struct smartiod *d, struct smartiod_view *v)
{
	struct sio_req_bar_close req = {.h.op = SIO_OP_BAR_CLOSE, .id = v->id};

	if (!smartiod_is_real(d))
		smartiod_port_send(d, &req, sizeof(req));
	free(v);
}

struct smartiod_device *smartiod_kept_release(struct smartiod *d, struct smartiod_dma *dma)
{
	struct smartiod_device *dev = smartiod_device_known(d, dma->target_fdid);
	struct smartiod_view **at = &dev->lent->kept, *v;

	while ((v = *at) && (v->kept_of != dma->bar_borrow || v->id != dma->view))
		at = &v->next;
	dma->kept = false;
	dma->view = 0;
	if (!v || --v->users)
		return NULL;
	*at = v->next;
	close_kept(d, v);
	return dev;
}

bool smartiod_kept_take(struct smartiod *d, struct smartiod_device *dev, uint64_t *ret_borrow,
			uint64_t *ret_view)
{
	struct smartiod_view *v = dev->lent->kept;

	if (!v)
		return false;
	dev->lent->kept = v->next;
	mark(d, v->kept_of, v->id, false);
	*ret_borrow = v->kept_of;
	*ret_view = v->id;
	free(v);
	return true;
}

/*
 * A queue that lay in @dev's memory when that was pulled out, and is not deleted yet. Its device
 * has its address still, where memory of the next borrower would be if no IOMMU is between them.
 */
static const struct smartiod_dma *left_behind(struct smartiod *d, const struct smartiod_device *dev)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->dmas, key))) {
		const struct smartiod_dma *dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		key = n->key;
		if (dma->cut && dma->bar_borrow && dma->exporter == d->node &&
		    dma->target_fdid == dev->fdid && smartiod_held(dma) &&
		    dma->loan->device->port.iommu_mode == SIO_IOMMU_OFF)
			return dma;
	}
	return NULL;
}

int smartiod_kept_none(struct smartiod *d, struct smartiod_device *dev, struct sio_err *reterr)
{
	const struct smartiod_view *v = dev->lent->kept;
	const struct smartiod_dma *left = NULL;

	if (!v && dev->lent->was_gone)
		left = left_behind(d, dev);
	if (!v && !left) {
		dev->lent->was_gone = false;
		return 0;
	}
	return sio_fail(reterr, -EBUSY,
			"%s: queues of another device lie in its memory, of borrow %" PRIu64
			" that has ended; it is lent again when the manager of these has deleted "
			"them, or their device is reset",
			dev->topo->name, v ? v->kept_of : left->bar_borrow);
}

void smartiod_kept_free(struct smartiod_device *dev)
{
	struct smartiod_view *v;

	while ((v = dev->lent->kept)) {
		dev->lent->kept = v->next;
		free(v);
	}
}
