/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the lender's room: what programs and hosts have of devices of this host. */
#include <stdio.h>

#include "smartiod/base/room.h"
#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

static const struct smartiod_request requests[] = {
	SIO_CLIENT_LENDER(SMARTIOD_ANYBODYS){0, false, NULL},
};

static const struct smartiod_message messages[] = {
	SIO_PEER_LENDER(SMARTIOD_PEERS){0, NULL},
};

/* ---- listings ---- */

static void loan_row(const struct smartiod_loan *l, struct sio_wire_row *ret)
{
	const struct sio_borrow *b = sio_ledger_find(&l->device->ledger, l->id);
	uint64_t bytes = 0;
	uint32_t refs = 0, flags = smartiod_loan_ended(l) ? SIO_ROW_QUARANTINED : SIO_ROW_LIVE;

	for (const struct smartiod_dma *dma = l->dmas; dma; dma = dma->next) {
		bytes += dma->bytes;
		refs++;
	}
	if (b && b->exclusive)
		flags |= SIO_ROW_EXCLUSIVE;
	if (l->device->ledger.holder == l->id)
		flags |= SIO_ROW_REGISTERS;
	*ret = (struct sio_wire_row){
		.key = sio_to_le64(l->id),
		.owner = sio_to_le64(l->owner),
		.bytes = sio_to_le64(bytes),
		.id = sio_to_le32(l->device->fdid),
		.node = sio_to_le32(l->node),
		.refs = sio_to_le32(refs),
		.flags = sio_to_le32(flags),
		.pid = sio_to_le32(l->pid),
	};
	snprintf(ret->name, sizeof(ret->name), "%s", l->device->topo->name);
}

static void dma_row(const struct smartiod_dma *dma, struct sio_wire_row *ret)
{
	*ret = (struct sio_wire_row){
		.key = sio_to_le64(dma->by_id.key),
		.owner = sio_to_le64(dma->loan->id),
		.bytes = sio_to_le64(dma->bytes),
		.address = sio_to_le64(dma->iova.addr),
		.id = sio_to_le32(dma->loan->device->fdid),
		.node = sio_to_le32(dma->exporter),
		.refs = sio_to_le32(smartiod_hold_count(dma)),
		.flags = sio_to_le32(smartiod_loan_ended(dma->loan) ? SIO_ROW_QUARANTINED
								    : SIO_ROW_LIVE),
		.pid = sio_to_le32(dma->loan->pid),
	};
	snprintf(ret->name, sizeof(ret->name), "%s", dma->loan->device->topo->name);
}

static bool next_loan(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	const struct smartiod_loan *l = smartiod_loan_after(d, after);

	if (l)
		loan_row(l, ret);
	return l;
}

static bool next_dma(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	struct smartiod_tree_node *n = smartiod_tree_after(&d->dmas, after);

	if (n)
		dma_row(SMARTIOD_OF(n, struct smartiod_dma, by_id), ret);
	return n;
}

static const struct smartiod_rows rows[] = {
	{SIO_LIST_BORROWS, next_loan},
	{SIO_LIST_DMA_MAPS, next_dma},
	{0, NULL},
};

/* ---- losses ---- */

/*
 * When the last path is down both daemons end what they lent each other when their port tells them,
 * one of them perhaps before a device was lent, or after the link was up again and it was lent
 * again: so each also says what it has ended.
 */
static void exports_end(struct smartiod *d, uint32_t node, enum smartiod_loss why)
{
	smartiod_dma_bars_lost(d, node, NULL);
	smartiod_view_grants_lost(d, node, NULL);
	if (why == SMARTIOD_LINK_DOWN) {
		smartiod_loan_link_lost(d, node);
		return;
	}
	smartiod_loan_node_down(d, node);
	smartiod_dma_node_down(d, node);
}

static void path(struct smartiod *d, const struct smartiod_path_change *p)
{
	if (p->up)
		return;
	smartiod_loan_path_down(d, p->node, p->adapter, p->peer_adapter);
	smartiod_dma_bars_lost(d, p->node, p);
	smartiod_view_grants_lost(d, p->node, p);
}

static bool lends(struct smartiod *d, uint32_t node)
{
	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		if (l->node == node && !smartiod_loan_ended(l))
			return true;
	return false;
}

static uint64_t next_owner(struct smartiod *d, uint64_t after)
{
	uint64_t least = UINT64_MAX;

	for (struct smartiod_loan *l = smartiod_loan_after(d, 0); l;
	     l = smartiod_loan_after(d, l->id))
		if (l->state != SMARTIOD_LOAN_CLOSED && l->owner > after && l->owner < least)
			least = l->owner;
	return least;
}

static void device_gone(struct smartiod *d, struct smartiod_device *dev)
{
	if (dev->node != d->node)
		return;
	smartiod_loans_device_gone(d, dev);
	smartiod_dma_bars_gone(d, dev);
	smartiod_reset_device_gone(d, dev);
}

static void free_all(struct smartiod *d)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	smartiod_loan_free_all(d);
	while ((n = smartiod_tree_after(&d->devices, key))) {
		key = n->key;
		smartiod_dev_segs_free(SMARTIOD_OF(n, struct smartiod_device, by_fdid));
		smartiod_assigned_end(SMARTIOD_OF(n, struct smartiod_device, by_fdid), 0);
		smartiod_kept_free(SMARTIOD_OF(n, struct smartiod_device, by_fdid));
	}
}

static void parting(struct smartiod *d, uint32_t node, bool gone)
{
	(void)gone; /* a path is enough */
	smartiod_loans_parting(d, node);
}

const struct smartiod_room smartiod_room_lender = {
	.name = "lender",
	.requests = requests,
	.messages = messages,
	.rows = rows,
	.ready = smartiod_resets_ready,
	.free_all = free_all,
	.away = smartiod_loan_away,
	.resumed = smartiod_loans_resumed,
	.grant_again = smartiod_dma_grant_again,
	.answered = smartiod_views_answered,
	.fill_grant = smartiod_view_fill_grant,
	.held_again = smartiod_view_held,
	.view_again = smartiod_view_again_of,
	.fill_held = smartiod_dma_fill_held,
	.new_start = smartiod_dma_new_start,
	.exports_end = exports_end,
	.path = path,
	.lends = lends,
	.forbidden = smartiod_loans_forbidden,
	.parting = parting,
	.owner_gone = smartiod_lender_owner_gone,
	.next_owner = next_owner,
	.device_opened = smartiod_reset_opened,
	.device_gone = device_gone,
	.segment_idle = smartiod_dev_seg_idle,
	.segment_mapped = smartiod_dma_claim,
	.own_mappings = smartiod_dma_own_mappings,
	.has_grant = smartiod_dma_has_grant,
	.irq_ends = smartiod_old_vectors_irq_ends,
	.lent_size = sizeof(struct smartiod_lent),
};
