// SPDX-License-Identifier: GPL-2.0-only
/*
 * An NTB with a Linux driver as a bridge of smartio.ko. The NTB API does not say what hardware it
 * is, so only what every NTB has is offered: no look-up tables, no table of requesters, no messages
 * of devices.
 */
#include <smartio/uapi.h>

#include <linux/ioport.h>

#include "client.h"

#define MAPS 65536 /* they cost nothing */

static void bridge_info(void *bridge, struct smartio_bridge_info *ret)
{
	struct ntb_bridge *b = bridge;
	enum ntb_speed speed = NTB_SPEED_NONE;
	enum ntb_width width = NTB_WIDTH_NONE;
	bool up = ntb_link_is_up(b->ntb, &speed, &width);

	*ret = (struct smartio_bridge_info){
		.node = ntb_bridge_node,
		.index = b->index,
		.boot = b->boot,
		.pdev = b->ntb->pdev,
		.link_up = up,
		.link_width = up ? width : 0,
		.link_generation = up ? speed : 0,
		.programmed_by = SIO_PROGRAMMED_BY_EXPORTER,
		.capabilities = SIO_ADAPTER_PROCESSORS | SIO_ADAPTER_WRITE | SIO_ADAPTER_TRIGGER |
				(ntb_bridge_device_reads ? SIO_ADAPTER_READ : 0),
		.windows = MAPS,
		.window_base = b->peer[0].out[0].base,
		.window_size = b->peer[0].out[0].size,
		.entry_size = b->size,
		.alignment = PAGE_SIZE,
		.entries_total = b->peer[0].ws.n,
		.requesters_total = ntb_bridge_device_reads ? MAPS : 0,
		.requesters_free = ntb_bridge_device_reads ? MAPS : 0,
		.dma_bits = 64,
	};
	mutex_lock(&b->lock);
	for (u32 i = 0; i < b->peer[0].ws.n; i++)
		ret->entries_free += !b->peer[0].ws.window[i].users;
	mutex_unlock(&b->lock);
}

static int bridge_peer(void *bridge, u32 i, struct smartio_bridge_peer *ret)
{
	struct ntb_bridge *b = bridge;
	int error = -ENOENT;

	mutex_lock(&b->lock);
	for (u32 k = 0; k < b->n_peers; k++) {
		const struct ntb_bridge_peer *p = &b->peer[k];

		if (!p->known || p->row != i)
			continue;
		*ret = (struct smartio_bridge_peer){.node = p->node,
						    .adapter = p->adapter,
						    .up = p->up,
						    .changes = p->changes,
						    .boot = p->boot};
		error = 0;
	}
	mutex_unlock(&b->lock);
	return error;
}

/* smartio.ko names only peers that it was notified of. */
static struct ntb_bridge_peer *peer_of(struct ntb_bridge *b, u32 node, u32 adapter)
{
	u32 i = 0;

	while (i + 1 < b->n_peers &&
	       !(b->peer[i].known && b->peer[i].node == node && b->peer[i].adapter == adapter))
		i++;
	return &b->peer[i];
}

/* ---- grants: a handle is the peer, and the window that leads there ---- */

/* A window is open as a whole: beside what it was made for none leads to this host's memory. */
static bool is_memory(const struct ntb_bridge *b, const struct sio_ntb_range *at)
{
	return !b->iommu && region_intersects(at->base, at->size, IORESOURCE_SYSTEM_RAM,
					      IORES_DESC_NONE) != REGION_DISJOINT;
}

static int let(struct ntb_bridge *b, struct ntb_bridge_peer *p, u64 bus, u64 length, u64 *ret)
{
	bool fresh;
	u32 w = 0;
	int error = sio_ntb_windows_take(&p->ws, bus, length, &w, &fresh);

	if (error)
		return error;
	if (fresh && is_memory(b, &p->ws.window[w].at))
		error = -ERANGE;
	/* Before the link is up there is nothing to set, and then all of them are. */
	if (fresh && !error && p->armed)
		error = ntb_bridge_set_window(b, p, w);
	if (error) {
		sio_ntb_windows_drop(&p->ws, w);
		return error;
	}
	if (fresh)
		ntb_bridge_write_row(b, p);
	*ret = (u64)(p - b->peer) << 32 | w;
	return 0;
}

static int bridge_grant(void *bridge, u32 node, u32 adapter, dma_addr_t bus, u64 length, u32 access,
			u64 *ret_handle)
{
	struct ntb_bridge *b = bridge;
	int error;

	mutex_lock(&b->lock);
	error = let(b, peer_of(b, node, adapter), bus, length, ret_handle);
	mutex_unlock(&b->lock);
	return error;
}

static int bridge_grant_message(void *bridge, u32 node, u32 adapter, u64 address, u32 data,
				u64 *ret_handle)
{
	return bridge_grant(bridge, node, adapter, address, sizeof(u32), SMARTIO_BRIDGE_WRITE,
			    ret_handle);
}

static int bridge_revoke(void *bridge, u64 handle)
{
	struct ntb_bridge *b = bridge;
	struct ntb_bridge_peer *p = &b->peer[handle >> 32];

	mutex_lock(&b->lock);
	/* Without a link, too: it leads there since there was one. */
	if (sio_ntb_windows_drop(&p->ws, (u32)handle)) {
		ntb_bridge_write_row(b, p);
		ntb_mw_clear_trans(b->ntb, p->pidx, (u32)handle);
	}
	mutex_unlock(&b->lock);
	return 0;
}

/* ---- bells: one doorbell, and in a word of the exporter's memory which one it is for ---- */

static int bridge_bell_get(void *bridge, void (*rung)(void *arg), void *arg, u64 *ret_address,
			   u32 *ret_data)
{
	struct ntb_bridge *b = bridge;
	int i = 0;

	spin_lock_irq(&b->bell_lock);
	while (i < SIO_NTB_BELLS && b->bell[i].rung)
		i++;
	if (i < SIO_NTB_BELLS) {
		WRITE_ONCE(b->bells[i], 0);
		b->bell[i].arg = arg;
		b->bell[i].rung = rung;
	}
	spin_unlock_irq(&b->bell_lock);
	*ret_address = b->bells_bus + i * sizeof(u32);
	*ret_data = 1;
	return i < SIO_NTB_BELLS ? i : -ENOSPC;
}

static void bell_answer(struct ntb_bridge *b, int bell)
{
	if (b->bell[bell].rung && READ_ONCE(b->bells[bell]) && xchg(&b->bells[bell], 0))
		b->bell[bell].rung(b->bell[bell].arg);
}

static void bridge_bell_put(void *bridge, int bell)
{
	struct ntb_bridge *b = bridge;

	spin_lock_irq(&b->bell_lock);
	bell_answer(b, bell); /* its word may be here before the doorbell is */
	b->bell[bell].rung = NULL;
	spin_unlock_irq(&b->bell_lock);
}

void ntb_bridge_rung(struct ntb_bridge *b)
{
	unsigned long flags;

	spin_lock_irqsave(&b->bell_lock, flags);
	for (u32 i = 0; i < SIO_NTB_BELLS; i++)
		bell_answer(b, i);
	spin_unlock_irqrestore(&b->bell_lock, flags);
}

static void bridge_ring(void *bridge, u32 node, u32 adapter)
{
	struct ntb_bridge *b = bridge;

	ntb_peer_db_set(b->ntb, b->doorbell);
}

/* ---- maps: where the exporter's windows lead they decide themselves ---- */

static int bridge_map(void *bridge, u32 node, u32 adapter, u64 bus, u64 length, u64 start,
		      struct smartio_bridge_map *ret)
{
	struct ntb_bridge *b = bridge;
	struct ntb_bridge_peer *p = peer_of(b, node, adapter);
	int error = 0, w = 0;
	u64 offset = 0;

	mutex_lock(&b->lock);
	if (!p->up || !ntb_bridge_read_header(p))
		error = -ENETDOWN;
	else if (p->seen.boot != start)
		error = -ESTALE;
	if (!error) {
		w = sio_ntb_header_find(&p->seen, ntb_port_number(b->ntb), bus, length, &offset);
		if (w < 0 || w >= (int)p->n_out || length > p->out[w].size ||
		    offset > p->out[w].size - length)
			error = -EACCES;
	}
	if (!error)
		ret->at = p->out[w].base + offset;
	ret->memory = false; /* what is there the NTB API does not tell */
	ret->uncut = false;
	mutex_unlock(&b->lock);
	return error;
}

static void bridge_unmap(void *bridge, u64 handle)
{
}

/* ---- requesters: nobody is asked ---- */

static int bridge_requester_add(void *bridge, u32 requester, u32 *ret_entry)
{
	*ret_entry = 0;
	return 0;
}

static void bridge_requester_del(void *bridge, u32 entry)
{
}

const struct smartio_bridge_ops ntb_bridge_ops = {
	.info = bridge_info,
	.peer = bridge_peer,
	.grant = bridge_grant,
	.grant_message = bridge_grant_message,
	.revoke = bridge_revoke,
	.bell_get = bridge_bell_get,
	.bell_put = bridge_bell_put,
	.ring = bridge_ring,
	.map = bridge_map,
	.unmap = bridge_unmap,
	.requester_add = bridge_requester_add,
	.requester_del = bridge_requester_del,
};
