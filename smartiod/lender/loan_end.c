/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a borrow at the lender: by its borrower, or by the loss of a host, a path or the
 * device.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/probe.h"
#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/lender/lend.h"

/* The port ended the owner: what the device can still reach is known. The caller has it pinned. */
void smartiod_loan_closed(struct smartiod *d, struct smartiod_loan *l)
{
	bool quarantined;

	if (l->state == SMARTIOD_LOAN_CLOSED)
		return;
	while (l->lost && l->dmas)
		smartiod_dma_release(d, l->dmas);
	quarantined = l->dmas;
	smartiod_loan_enter(d, l, SMARTIOD_LOAN_CLOSE);
	smartiod_assigned_end(l->device, l->id);
	if (!quarantined)
		smartiod_dev_segs_over(d, l);
	sio_ledger_closed(&l->device->ledger, l->id, quarantined);
	smartiod_device_announce_later(d, l->device);
	if (quarantined)
		smartiod_log(d, SMARTIOD_INFO,
			     "%s: borrow %" PRIu64 " of node %" PRIu32 " is in quarantine",
			     l->device->topo->name, l->id, l->node);
	/* Whose driver may have given it more than memory: blocks, a turn. */
	smartiod_holder_notify(d, l->device, l->id);
	smartiod_reset_borrow_over(d, l->device);
}

void smartiod_loan_end(struct smartiod *d, struct smartiod_loan *l)
{
	const bool held = l->device->ledger.holder == l->id;

	if (smartiod_loan_ended(l))
		return;
	smartiod_loan_enter(d, l, SMARTIOD_LOAN_END);
	smartiod_charge_drop(&l->charge);
	l->pins++;
	SIO_PROBE(smartiod, lend_end, l->device->fdid, l->id);
	sio_ledger_end(&l->device->ledger, l->id);
	smartiod_views_end(d, l);
	smartiod_dev_segs_end(d, l, held);
	if (!l->giving)
		smartiod_loan_close_owner(d, l);
	smartiod_vectors_end(d, l);
	smartiod_old_vectors_end(l);
	smartiod_device_announce_later(d, l->device);
	smartiod_loan_unpin(d, l);
}

void smartiod_loan_owner_gone(struct smartiod *d, struct smartiod_loan *l)
{
	l->pins++;
	smartiod_loan_end(d, l);
	smartiod_loan_closed(d, l);
	smartiod_loan_unpin(d, l);
}

void smartiod_lender_owner_gone(struct smartiod *d, uint64_t owner)
{
	struct smartiod_loan *l = smartiod_loan_by_owner(d, owner);

	if (!l)
		return;
	if (d->ready)
		smartiod_loan_owner_gone(d, l);
	else
		/* It ends when all is known of it that may be in quarantine. */
		smartiod_loan_enter(d, l, SMARTIOD_LOAN_OWNER_GONE);
}

/* The way to its host is lost, or that host itself. */
static void cut_off(struct smartiod *d, struct smartiod_loan *l)
{
	l->cut_off |= !smartiod_loan_ended(l);
	smartiod_loan_end(d, l);
}

void smartiod_loan_node_down(struct smartiod *d, uint32_t node)
{
	uint64_t after = 0;
	struct smartiod_loan *l;

	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->node == node)
			cut_off(d, l);
	}
	smartiod_dev_segs_node_down(d, node);
	smartiod_dev_segs_idle(d);
}

/* Its borrower asks again, and has not heard of this one. */
static bool is_in_the_making(const struct smartiod_loan *l)
{
	return l->state == SMARTIOD_LOAN_ASKED || l->state == SMARTIOD_LOAN_WAITING;
}

void smartiod_loan_away(struct smartiod *d, uint32_t node)
{
	uint64_t after = 0;
	struct smartiod_loan *l;

	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->node == node && is_in_the_making(l))
			cut_off(d, l);
		else if (l->node == node)
			smartiod_vectors_away(l);
	}
}

/* Before what depends on it is lost: the borrower's library is to know why. */
static void notify_lost(struct smartiod *d, struct smartiod_loan *l)
{
	struct sio_peer_borrower msg = {.h.type = sio_to_le32(SIO_PEER_BORROW_LOST),
					.borrower = sio_to_le64(l->id),
					.fdid = sio_to_le32(l->device->fdid)};

	if (smartiod_loan_ended(l))
		return;
	smartiod_notify(d, l->node, &msg, sizeof(msg));
}

void smartiod_loans_device_gone(struct smartiod *d, struct smartiod_device *dev)
{
	struct smartiod_loan *l;
	uint64_t after = 0;

	/* All of them first: one may use memory that is another one's. */
	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->device != dev)
			continue;
		l->lost = true;
		notify_lost(d, l);
	}
	after = 0;
	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->device != dev)
			continue;
		l->pins++;
		smartiod_loan_end(d, l);
		if (l->state == SMARTIOD_LOAN_CLOSED)
			smartiod_loan_settled(d, l);
		smartiod_loan_unpin(d, l);
	}
}

void smartiod_loan_give_up(struct smartiod *d, struct smartiod_loan *l)
{
	l->pins++;
	notify_lost(d, l);
	cut_off(d, l);
	smartiod_loan_unpin(d, l);
}

void smartiod_loan_link_lost(struct smartiod *d, uint32_t node)
{
	struct smartiod_loan *l;
	uint64_t after = 0;

	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->node != node)
			continue;
		notify_lost(d, l);
		cut_off(d, l);
	}
}

static bool over(const struct smartiod_dma *dma, uint32_t node, uint32_t adapter,
		 uint32_t peer_adapter)
{
	return dma->exporter == node && dma->adapter == adapter &&
	       dma->peer_adapter == peer_adapter;
}

/* Does the borrower reach the device over this path, or the device its memory? */
static bool uses_path(struct smartiod *d, const struct smartiod_loan *l, uint32_t adapter,
		      uint32_t peer_adapter)
{
	for (const struct smartiod_view_grant *g = l->grants; g; g = g->next)
		if (smartiod_grant_through(d, g->grant, l->node, adapter, peer_adapter))
			return true;
	for (const struct smartiod_dma *dma = l->dmas; dma; dma = dma->next)
		if (over(dma, l->node, adapter, peer_adapter))
			return true;
	for (const struct smartiod_dma *dma = d->loose; dma; dma = dma->next)
		if (dma->loan == l && over(dma, l->node, adapter, peer_adapter))
			return true;
	for (const struct smartiod_vector *v = l->device->lent->vectors; v; v = v->next)
		if (v->loan == l && v->link.node == l->node && v->link.adapter == adapter &&
		    v->link.peer_adapter == peer_adapter)
			return true;
	return false;
}

void smartiod_loan_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			     uint32_t peer_adapter)
{
	struct smartiod_loan *l;
	uint64_t after = 0;

	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->node != node || smartiod_loan_ended(l) ||
		    !uses_path(d, l, adapter, peer_adapter))
			continue;
		notify_lost(d, l);
		cut_off(d, l);
	}
}

void smartiod_loans_forbidden(struct smartiod *d, const struct smartiod_forbid *f)
{
	struct smartiod_loan *l;
	uint64_t after = 0;
	struct sio_err why;

	while ((l = smartiod_loan_after(d, after))) {
		const struct sio_policy_thing thing =
			smartiod_thing_device(d, d->node, l->device->topo->name);

		after = l->id;
		if (smartiod_loan_ended(l) || l->state == SMARTIOD_LOAN_DISTANT ||
		    !smartiod_forbids_node(d, f->topology, &thing, l->node, &why))
			continue;
		smartiod_report(d, f->enforce ? SIO_RELOAD_ENDS : SIO_RELOAD_STAYS,
				"borrow of process %" PRIu32 ": %s", l->pid, why.text);
		if (!f->act)
			continue;
		l->forbidden = true;
		notify_lost(d, l);
		cut_off(d, l); /* its program lives */
	}
}

void smartiod_loans_parting(struct smartiod *d, uint32_t node)
{
	struct smartiod_loan *l;
	uint64_t after = 0;

	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->node == node && !smartiod_loan_ended(l))
			smartiod_report(d, SIO_RELOAD_ENDS,
					"borrow of process %" PRIu32 " of node %" PRIu32 ": %s",
					l->pid, node, l->device->topo->name);
	}
}

void smartiod_loan_free_all(struct smartiod *d)
{
	struct smartiod_loan *l;

	while ((l = smartiod_loan_after(d, 0))) {
		while (l->views) {
			struct smartiod_view *v = l->views;

			l->views = v->next;
			smartiod_close_fd(d, &v->fd);
			free(v);
		}
		while (l->grants) {
			struct smartiod_view_grant *g = l->grants;

			l->grants = g->next;
			free(g);
		}
		while (l->dmas) {
			struct smartiod_dma *dma = l->dmas;

			l->dmas = dma->next;
			smartiod_tree_remove(&d->dmas, &dma->by_id);
			smartiod_holds_drop(dma);
			smartiod_charge_drop(&dma->charge);
			free(dma);
		}
		smartiod_loan_free(d, l);
	}
	smartiod_dma_free_all(d);
}
