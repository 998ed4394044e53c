// SPDX-License-Identifier: GPL-2.0-only
/*
 * The Linux NTB API on the virtual NTB: ports, link, memory windows, doorbells, scratchpads,
 * messages. Peers that are no machines have none of these, and are no ports.
 *
 * Windows are made by who owns the memory. Their look-up entries never change: window w to a peer
 * leads to that peer's granted range VNTB_API_WINDOWS * (row of this host there) + w, and reaches
 * what the peer has put into that row; nothing, until it has. A client numbers its outbound windows
 * through all peers: window w to peer p is VNTB_API_WINDOWS * p + w.
 */
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/sizes.h>

#include "vntb.h"

#define OUT_SHIFT 16 /* in SIO_VNTB_MSG_STATUS */
#define MESSAGES (BIT(SIO_VNTB_MESSAGES) - 1)

/* Wanted; whole entries. As it is: what a kernel has contiguous, ten times over. */
static unsigned long window = SZ_1M;
module_param(window, ulong, 0444);
MODULE_PARM_DESC(window, "bytes of each memory window of the NTB API (1M), the same on all hosts");

static struct vntb *to_vntb(struct ntb_dev *ntb)
{
	return container_of(ntb, struct vntb, ntb);
}

static bool is_peer(const struct vntb *v, int pidx)
{
	return pidx >= 0 && pidx < (int)v->api.peers;
}

static bool is_window(const struct vntb *v, int pidx, int widx)
{
	return is_peer(v, pidx) && widx >= 0 && widx < VNTB_API_WINDOWS;
}

/* ---- ports and the link ---- */

static int port_number(struct ntb_dev *ntb)
{
	return to_vntb(ntb)->api.port;
}

static int peer_port_count(struct ntb_dev *ntb)
{
	return to_vntb(ntb)->api.peers;
}

static int peer_port_number(struct ntb_dev *ntb, int pidx)
{
	struct vntb *v = to_vntb(ntb);

	return is_peer(v, pidx) ? v->api.ports[pidx] : -EINVAL;
}

static int peer_port_idx(struct ntb_dev *ntb, int port)
{
	struct vntb *v = to_vntb(ntb);

	for (u32 i = 0; i < v->api.peers; i++)
		if (v->api.ports[i] == port)
			return i;
	return -EINVAL;
}

static u64 link_is_up(struct ntb_dev *ntb, enum ntb_speed *speed, enum ntb_width *width)
{
	const u32 wanted = SIO_VNTB_PEER_UP | SIO_VNTB_PEER_READY;
	struct vntb *v = to_vntb(ntb);
	u64 up = 0;

	if (vntb_read(v, SIO_VNTB_ENABLE) == 1)
		for (u32 i = 0; i < v->api.peers; i++)
			if ((vntb_peer_state(v, v->api.rows[i]) & wanted) == wanted)
				up |= BIT_ULL(i);
	if (speed)
		*speed = up ? vntb_read(v, SIO_VNTB_LINK_GENERATION) : NTB_SPEED_NONE;
	if (width)
		*width = up ? vntb_read(v, SIO_VNTB_LINK_WIDTH) : NTB_WIDTH_NONE;
	return up;
}

static int link_enable(struct ntb_dev *ntb, enum ntb_speed speed, enum ntb_width width)
{
	vntb_write(to_vntb(ntb), SIO_VNTB_ENABLE, 1);
	return 0;
}

static int link_disable(struct ntb_dev *ntb)
{
	vntb_write(to_vntb(ntb), SIO_VNTB_ENABLE, 0);
	return 0;
}

/* ---- memory windows ---- */

static u64 window_size(const struct vntb *v)
{
	return (u64)v->api.window_entries << v->entry_shift;
}

static u32 range_of(const struct vntb *v, int pidx, int widx)
{
	return VNTB_API_WINDOWS * v->api.rows[pidx] + widx;
}

static int mw_count(struct ntb_dev *ntb, int pidx)
{
	return is_peer(to_vntb(ntb), pidx) ? VNTB_API_WINDOWS : 0;
}

static int mw_get_align(struct ntb_dev *ntb, int pidx, int widx, resource_size_t *addr_align,
			resource_size_t *size_align, resource_size_t *size_max)
{
	struct vntb *v = to_vntb(ntb);

	if (!is_window(v, pidx, widx))
		return -EINVAL;
	if (addr_align)
		*addr_align = PAGE_SIZE;
	if (size_align)
		*size_align = PAGE_SIZE;
	/* The peer's window may be larger than this host's, and it is the peer's that counts. */
	if (size_max)
		*size_max = max_t(u64, window, 1ULL << v->entry_shift);
	return 0;
}

static int mw_set_trans(struct ntb_dev *ntb, int pidx, int widx, dma_addr_t addr,
			resource_size_t size)
{
	struct vntb *v = to_vntb(ntb);

	if (!is_window(v, pidx, widx) || !PAGE_ALIGNED(addr))
		return -EINVAL;
	if (!size)
		return vntb_range_clear(v, range_of(v, pidx, widx), VNTB_BUSY_LIMIT_US);
	return vntb_range_set(v, range_of(v, pidx, widx), v->api.rows[pidx], addr, size,
			      SIO_VNTB_RANGE_READ | SIO_VNTB_RANGE_WRITE);
}

static int mw_clear_trans(struct ntb_dev *ntb, int pidx, int widx)
{
	return mw_set_trans(ntb, pidx, widx, 0, 0);
}

static int peer_mw_count(struct ntb_dev *ntb)
{
	return VNTB_API_WINDOWS * to_vntb(ntb)->api.peers;
}

static int peer_mw_get_addr(struct ntb_dev *ntb, int widx, phys_addr_t *base, resource_size_t *size)
{
	struct vntb *v = to_vntb(ntb);

	if (widx < 0 || widx >= peer_mw_count(ntb))
		return -EINVAL;
	if (base)
		*base = v->window + widx * window_size(v);
	if (size)
		*size = window_size(v);
	return 0;
}

/* ---- doorbells ---- */

static u64 db_valid_mask(struct ntb_dev *ntb)
{
	return GENMASK_ULL(SIO_VNTB_DOORBELLS - 1, 0);
}

static int db_vector_count(struct ntb_dev *ntb)
{
	return SIO_VNTB_DOORBELLS;
}

static u64 db_vector_mask(struct ntb_dev *ntb, int vector)
{
	return vector >= 0 && vector < SIO_VNTB_DOORBELLS ? BIT_ULL(vector) : 0;
}

static u64 db_read(struct ntb_dev *ntb)
{
	return vntb_read(to_vntb(ntb), SIO_VNTB_DB_STATUS);
}

static int db_clear(struct ntb_dev *ntb, u64 bits)
{
	vntb_write(to_vntb(ntb), SIO_VNTB_DB_STATUS, bits);
	return 0;
}

static u64 db_read_mask(struct ntb_dev *ntb)
{
	return to_vntb(ntb)->api.db_mask;
}

/* Set and clear bits of a mask register. Clients call this from any context. */
static int change_mask(struct vntb *v, u32 reg, u32 *mask, u32 set, u32 clear)
{
	unsigned long flags;

	spin_lock_irqsave(&v->api.mask_lock, flags);
	*mask = (*mask | set) & ~clear;
	vntb_write(v, reg, *mask);
	spin_unlock_irqrestore(&v->api.mask_lock, flags);
	return 0;
}

static int db_set_mask(struct ntb_dev *ntb, u64 bits)
{
	struct vntb *v = to_vntb(ntb);

	if (bits & ~db_valid_mask(ntb))
		return -EINVAL;
	return change_mask(v, SIO_VNTB_DB_MASK, &v->api.db_mask, bits, 0);
}

static int db_clear_mask(struct ntb_dev *ntb, u64 bits)
{
	struct vntb *v = to_vntb(ntb);

	if (bits & ~db_valid_mask(ntb))
		return -EINVAL;
	return change_mask(v, SIO_VNTB_DB_MASK, &v->api.db_mask, 0, bits);
}

/* The API names no peer: all of them. */
static int peer_db_set(struct ntb_dev *ntb, u64 bits)
{
	if (bits & ~db_valid_mask(ntb))
		return -EINVAL;
	vntb_write(to_vntb(ntb), SIO_VNTB_DB_ALL, bits);
	return 0;
}

/* ---- scratchpads ---- */

static int spad_count(struct ntb_dev *ntb)
{
	return SIO_VNTB_SPADS;
}

static bool is_spad(int sidx)
{
	return sidx >= 0 && sidx < SIO_VNTB_SPADS;
}

static u32 spad_read(struct ntb_dev *ntb, int sidx)
{
	return is_spad(sidx) ? vntb_read(to_vntb(ntb), SIO_VNTB_SPAD(sidx)) : 0;
}

static int spad_write(struct ntb_dev *ntb, int sidx, u32 value)
{
	if (!is_spad(sidx))
		return -EINVAL;
	vntb_write(to_vntb(ntb), SIO_VNTB_SPAD(sidx), value);
	return 0;
}

static u32 peer_spad_read(struct ntb_dev *ntb, int pidx, int sidx)
{
	struct vntb *v = to_vntb(ntb);

	if (!is_peer(v, pidx) || !is_spad(sidx))
		return 0;
	return vntb_read(v, SIO_VNTB_PEER_SPAD(v->api.rows[pidx], sidx));
}

static int peer_spad_write(struct ntb_dev *ntb, int pidx, int sidx, u32 value)
{
	struct vntb *v = to_vntb(ntb);

	if (!is_peer(v, pidx) || !is_spad(sidx))
		return -EINVAL;
	vntb_write(v, SIO_VNTB_PEER_SPAD(v->api.rows[pidx], sidx), value);
	return 0;
}

/* ---- messages ---- */

static int msg_count(struct ntb_dev *ntb)
{
	return SIO_VNTB_MESSAGES;
}

static u64 msg_inbits(struct ntb_dev *ntb)
{
	return MESSAGES;
}

static u64 msg_outbits(struct ntb_dev *ntb)
{
	return MESSAGES << OUT_SHIFT;
}

static u64 msg_read_sts(struct ntb_dev *ntb)
{
	return vntb_read(to_vntb(ntb), SIO_VNTB_MSG_STATUS);
}

/* Clients also say "all bits". */
static int msg_clear_sts(struct ntb_dev *ntb, u64 bits)
{
	vntb_write(to_vntb(ntb), SIO_VNTB_MSG_STATUS, bits & (msg_inbits(ntb) | msg_outbits(ntb)));
	return 0;
}

static int msg_set_mask(struct ntb_dev *ntb, u64 bits)
{
	struct vntb *v = to_vntb(ntb);

	if (bits & ~(msg_inbits(ntb) | msg_outbits(ntb)))
		return -EINVAL;
	return change_mask(v, SIO_VNTB_MSG_MASK, &v->api.msg_mask, bits, 0);
}

static int msg_clear_mask(struct ntb_dev *ntb, u64 bits)
{
	struct vntb *v = to_vntb(ntb);

	if (bits & ~(msg_inbits(ntb) | msg_outbits(ntb)))
		return -EINVAL;
	return change_mask(v, SIO_VNTB_MSG_MASK, &v->api.msg_mask, 0, bits);
}

static u32 msg_read(struct ntb_dev *ntb, int *pidx, int midx)
{
	struct vntb *v = to_vntb(ntb);
	u32 row;

	if (midx < 0 || midx >= SIO_VNTB_MESSAGES)
		return 0;
	row = vntb_read(v, SIO_VNTB_MSG_SOURCE(midx));
	/* Clients use it as an index, unasked, before the first message, too. */
	for (u32 i = 0; pidx && i < v->api.peers; i++)
		if (i == 0 || v->api.rows[i] == row)
			*pidx = i;
	return vntb_read(v, SIO_VNTB_MSG_IN(midx));
}

static int peer_msg_write(struct ntb_dev *ntb, int pidx, int midx, u32 msg)
{
	struct vntb *v = to_vntb(ntb);

	if (!is_peer(v, pidx) || midx < 0 || midx >= SIO_VNTB_MESSAGES)
		return -EINVAL;
	vntb_write(v, SIO_VNTB_PEER(v->api.rows[pidx]) + SIO_VNTB_PEER_MESSAGE(midx), msg);
	return 0;
}

static const struct ntb_dev_ops ops = {
	.port_number = port_number,
	.peer_port_count = peer_port_count,
	.peer_port_number = peer_port_number,
	.peer_port_idx = peer_port_idx,
	.link_is_up = link_is_up,
	.link_enable = link_enable,
	.link_disable = link_disable,
	.mw_count = mw_count,
	.mw_get_align = mw_get_align,
	.mw_set_trans = mw_set_trans,
	.mw_clear_trans = mw_clear_trans,
	.peer_mw_count = peer_mw_count,
	.peer_mw_get_addr = peer_mw_get_addr,
	.db_valid_mask = db_valid_mask,
	.db_vector_count = db_vector_count,
	.db_vector_mask = db_vector_mask,
	.db_read = db_read,
	.db_clear = db_clear,
	.db_read_mask = db_read_mask,
	.db_set_mask = db_set_mask,
	.db_clear_mask = db_clear_mask,
	.peer_db_set = peer_db_set,
	.spad_count = spad_count,
	.spad_read = spad_read,
	.spad_write = spad_write,
	.peer_spad_read = peer_spad_read,
	.peer_spad_write = peer_spad_write,
	.msg_count = msg_count,
	.msg_inbits = msg_inbits,
	.msg_outbits = msg_outbits,
	.msg_read_sts = msg_read_sts,
	.msg_clear_sts = msg_clear_sts,
	.msg_set_mask = msg_set_mask,
	.msg_clear_mask = msg_clear_mask,
	.msg_read = msg_read,
	.peer_msg_write = peer_msg_write,
};

/* ---- beginning and end ---- */

/* Ports are numbered by node and adapter, so that all hosts number them in the same way. */
static u64 rank(u32 node, u32 adapter)
{
	return (u64)node << 32 | adapter;
}

static void find_ports(struct vntb *v)
{
	u64 own = rank(v->node, v->adapter), ranks[VNTB_API_PEERS];

	for (u32 row = 0; row < v->peers; row++) {
		u32 at = SIO_VNTB_PEER(row), n = v->api.peers;

		if (!(vntb_peer_state(v, row) & SIO_VNTB_PEER_MACHINE))
			continue;
		if (n == VNTB_API_PEERS) {
			dev_warn(&v->pdev->dev, "the NTB API has room for %u peers\n", n);
			break;
		}
		ranks[n] = rank(vntb_read(v, at + SIO_VNTB_PEER_NODE),
				vntb_read(v, at + SIO_VNTB_PEER_ADAPTER));
		v->api.rows[n] = row;
		v->api.peers++;
		v->api.port += ranks[n] < own;
	}
	for (u32 i = 0; i < v->api.peers; i++) {
		v->api.ports[i] = own < ranks[i];
		for (u32 k = 0; k < v->api.peers; k++)
			v->api.ports[i] += ranks[k] < ranks[i];
	}
}

/* Windows are smaller where there are many, so that half of the look-up table stays for others. */
static int make_layout(struct vntb *v)
{
	u32 n = VNTB_API_WINDOWS * v->api.peers, each = max(window >> v->entry_shift, 1UL);

	if (!is_power_of_2(window))
		return dev_err_probe(&v->pdev->dev, -EINVAL, "window=%lu, a power of 2 is right\n",
				     window);
	while (each > 1 && n * each > v->entries / 2)
		each /= 2;
	if (n * each > v->entries / 2 || VNTB_API_WINDOWS * v->peers > v->ranges)
		return dev_err_probe(&v->pdev->dev, -ENOSPC,
				     "%u windows: no room in %u look-up entries and %u ranges\n", n,
				     v->entries, v->ranges);
	v->api.window_entries = each;
	v->api.entries = n * each;
	v->api.ranges = VNTB_API_WINDOWS * v->peers;
	return 0;
}

static void set_window(struct vntb *v, u32 pidx, u32 widx)
{
	u32 row = v->api.rows[pidx], n = v->api.window_entries;
	u32 first = (VNTB_API_WINDOWS * pidx + widx) * n;
	u64 range = VNTB_API_WINDOWS * vntb_read(v, SIO_VNTB_PEER(row) + SIO_VNTB_PEER_SELF) + widx;

	for (u32 i = 0; i < n; i++)
		vntb_entry_set(v, first + i, row, range << 48 | (u64)i << v->entry_shift, 0,
			       SIO_VNTB_LUT_RANGE);
}

int vntb_api_start(struct vntb *v)
{
	int error;

	spin_lock_init(&v->api.mask_lock);
	v->api.db_mask = db_valid_mask(&v->ntb);
	v->api.msg_mask = msg_inbits(&v->ntb) | msg_outbits(&v->ntb);
	find_ports(v);
	error = make_layout(v);
	if (error || !v->api.peers)
		return error;
	for (u32 i = 0; i < v->api.peers; i++)
		for (u32 k = 0; k < VNTB_API_WINDOWS; k++)
			set_window(v, i, k);
	v->ntb.pdev = v->pdev;
	v->ntb.ops = &ops;
	v->ntb.topo = NTB_TOPO_SWITCH;
	if (v->api.peers == 1)
		v->ntb.topo = v->api.port == 0 ? NTB_TOPO_B2B_USD : NTB_TOPO_B2B_DSD;
	/* What comes from now on is for a client, which is found in there. */
	v->api.registered = true;
	error = ntb_register_device(&v->ntb);
	if (error)
		v->api.registered = false;
	return error;
}

void vntb_api_stop(struct vntb *v)
{
	if (v->api.registered)
		ntb_unregister_device(&v->ntb);
	v->api.registered = false;
	for (u32 i = 0; i < v->api.entries; i++)
		vntb_entry_clear(v, i);
}

void vntb_api_link(struct vntb *v)
{
	if (v->api.registered)
		ntb_link_event(&v->ntb);
}

void vntb_api_message(struct vntb *v)
{
	if (v->api.registered)
		ntb_msg_event(&v->ntb);
}

void vntb_api_doorbell(struct vntb *v, int bit)
{
	if (v->api.registered)
		ntb_db_event(&v->ntb, bit);
}
