// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of the Linux NTB API, whatever hardware is below: which hosts are at the other ends of
 * an NTB, and whether they can be reached. A host writes what peers must know into a header, which
 * is the first page behind its first window: its node, its start, and where its windows lead. A
 * peer that reads a valid header there knows that the host is up. Only memory is needed for this;
 * not all NTBs have scratchpads, nor messages.
 */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "client.h"

#define WAIT_MS 50 /* for a header, at first; doubled each time */
#define MAX_WAIT_MS 4000

unsigned int ntb_bridge_node;
module_param_named(node, ntb_bridge_node, uint, 0444);
MODULE_PARM_DESC(node, "id of this host in the cluster's file");

static unsigned int first_adapter;
module_param_named(adapter, first_adapter, uint, 0444);
MODULE_PARM_DESC(adapter, "index of the first NTB as an adapter (0)");

static unsigned long memory = 4 << 20;
module_param(memory, ulong, 0444);
MODULE_PARM_DESC(memory, "bytes that peers reach where there is no IOMMU (4M); more is a pool's");

bool ntb_bridge_device_reads;
module_param_named(device_reads, ntb_bridge_device_reads, bool, 0444);
MODULE_PARM_DESC(device_reads, "this hardware lets devices read through its windows (0: no)");

static DEFINE_MUTEX(indices_lock);
static DECLARE_BITMAP(indices, 16);

/* ---- headers ---- */

static bool read_once(struct ntb_bridge_peer *p)
{
	const size_t rows = offsetof(struct sio_ntb_header, row);
	struct sio_ntb_header *h = &p->seen;

	memcpy_fromio(h, p->header, rows);
	if (!sio_ntb_header_good(h))
		return false;
	/* The rows are as new as that it does not change: pairs with ntb_bridge_write_row(). */
	rmb();
	memcpy_fromio(h->row, p->header + rows, h->peers * sizeof(h->row[0]));
	rmb(); /* and it does not change when they are read; pairs with the same */
	return readl(p->header + offsetof(struct sio_ntb_header, changes)) == h->changes;
}

/* Now and then it is just being changed. */
bool ntb_bridge_read_header(struct ntb_bridge_peer *p)
{
	return read_once(p) || read_once(p) || read_once(p);
}

void ntb_bridge_write_row(struct ntb_bridge *b, const struct ntb_bridge_peer *p)
{
	struct sio_ntb_row *row = &b->header->row[p - b->peer];

	WRITE_ONCE(b->header->changes, b->header->changes + 1);
	smp_wmb(); /* readers see that it changes before they see what: pairs with read_once() */
	row->port = p->port;
	row->windows = p->ws.n;
	for (u32 i = 0; i < p->ws.n; i++)
		row->window[i] = p->ws.window[i].at;
	smp_wmb(); /* and what, before it does not change any more */
	WRITE_ONCE(b->header->changes, b->header->changes + 1);
}

static void write_header(struct ntb_bridge *b)
{
	*b->header = (struct sio_ntb_header){
		.version = SIO_NTB_VERSION,
		.node = ntb_bridge_node,
		.adapter = b->index,
		.peers = b->n_peers,
		.boot = b->boot,
	};
	for (u32 i = 0; i < b->n_peers; i++)
		ntb_bridge_write_row(b, &b->peer[i]);
	smp_wmb(); /* it is a header when all of it is there: pairs with read_once() */
	WRITE_ONCE(b->header->magic, SIO_NTB_MAGIC);
}

/* ---- links ---- */

int ntb_bridge_set_window(struct ntb_bridge *b, struct ntb_bridge_peer *p, u32 w)
{
	struct sio_ntb_window *win = &p->ws.window[w];
	int error = ntb_mw_set_trans(b->ntb, p->pidx, w, win->at.base, win->at.size);

	win->set = !error;
	return error;
}

/*
 * What the hardware wants of a window it says only while the link is up. A window that has been set
 * is not set again when the link is back: drivers cut it for a moment then, and a peer that sees
 * the link first would lose what it stores meanwhile. (ntb_transport begins anew with each link,
 * and has nothing to lose.) It is when the peer has started anew: look_at().
 */
static int arm_window(struct ntb_bridge *b, struct ntb_bridge_peer *p, u32 w)
{
	struct sio_ntb_window *win = &p->ws.window[w];
	resource_size_t align = 0, unit = 0, most = 0;
	int error;

	if (win->set)
		return 0;
	error = ntb_mw_get_align(b->ntb, p->pidx, w, &align, &unit, &most);
	if (error)
		return error;
	if (!win->users) {
		win->align = max_t(u64, align, PAGE_SIZE);
		win->most = min_t(u64, win->most, rounddown_pow_of_two(most));
		/* An earlier client of the NTB may have left it leading somewhere. */
		ntb_mw_clear_trans(b->ntb, p->pidx, w);
		return 0;
	}
	if (win->at.size > most || win->at.base & (align - 1) || win->at.size & (unit - 1)) {
		dev_err(&b->ntb->dev,
			"window %u cannot lead to %#llx + %#llx: aligned to %pa, units of %pa, at most %pa\n",
			w, win->at.base, win->at.size, &align, &unit, &most);
		return -EINVAL;
	}
	return ntb_bridge_set_window(b, p, w);
}

static void arm(struct ntb_bridge *b, struct ntb_bridge_peer *p)
{
	int error = 0;

	for (u32 w = 0; w < p->ws.n && !error; w++)
		error = arm_window(b, p, w);
	p->armed = !error;
	p->refused = error;
	if (error)
		dev_err(&b->ntb->dev, "peer %d: its windows cannot be set (%pe)\n", p->pidx,
			ERR_PTR(error));
	else
		ntb_peer_db_set(b->ntb, b->doorbell); /* who waits for our header need not */
}

/* It says who it is; one that was another before is left alone. */
static bool meet(struct ntb_bridge *b, struct ntb_bridge_peer *p)
{
	if (!p->known) {
		p->node = p->seen.node;
		p->adapter = p->seen.adapter;
		p->row = b->n_known++;
		p->known = true;
	}
	if (p->node == p->seen.node && p->adapter == p->seen.adapter)
		return true;
	dev_err_ratelimited(
		&b->ntb->dev,
		"peer %d was adapter %u of node %u and is adapter %u of node %u: reload\n", p->pidx,
		p->adapter, p->node, p->seen.adapter, p->seen.node);
	return false;
}

/* Whether something has changed. */
static bool look_at(struct ntb_bridge *b, struct ntb_bridge_peer *p, bool link)
{
	bool up, was = p->up;
	u64 boot = p->boot;

	if (!link)
		p->armed = p->refused = false;
	else if (!p->armed && !p->refused)
		arm(b, p);
	up = link && p->armed && ntb_bridge_read_header(p) && meet(b, p);
	/* Hardware may have forgotten what it had; nothing is stored yet by this start. */
	if (up && p->boot && p->boot != p->seen.boot) {
		for (u32 w = 0; w < p->ws.n; w++)
			p->ws.window[w].set = false;
		arm(b, p);
		up = p->armed;
	}
	if (up)
		p->boot = p->seen.boot;
	p->up = up;
	if (up == was && p->boot == boot)
		return false;
	p->changes++;
	dev_info(&b->ntb->dev, "adapter %u of node %u is %s\n", p->adapter, p->node,
		 up ? "up" : "down");
	return true;
}

static void look(struct work_struct *work)
{
	struct ntb_bridge *b = container_of(to_delayed_work(work), struct ntb_bridge, work);
	bool changed = false, wait = false;
	u64 links = ntb_link_is_up(b->ntb, NULL, NULL);

	mutex_lock(&b->lock);
	for (u32 i = 0; i < b->n_peers; i++) {
		bool link = links & BIT_ULL(b->peer[i].pidx);

		changed |= look_at(b, &b->peer[i], link);
		wait |= link && !b->peer[i].up && !b->peer[i].refused;
	}
	mutex_unlock(&b->lock);
	if (changed)
		smartio_bridge_changed(b->a);
	b->wait_ms = wait && !changed ? min_t(unsigned int, 2 * b->wait_ms, MAX_WAIT_MS) : WAIT_MS;
	if (wait)
		schedule_delayed_work(&b->work, msecs_to_jiffies(b->wait_ms));
}

static void on_link(void *ctx)
{
	struct ntb_bridge *b = ctx;

	mod_delayed_work(system_wq, &b->work, 0);
	smartio_bridge_changed(b->a); /* the adapter's own link */
}

static void on_doorbell(void *ctx, int vector)
{
	struct ntb_bridge *b = ctx;
	bool silent = false;

	if (!(ntb_db_vector_mask(b->ntb, vector) & b->doorbell) ||
	    !(ntb_db_read(b->ntb) & b->doorbell))
		return;
	ntb_db_clear(b->ntb, b->doorbell);
	ntb_db_read(b->ntb); /* it is: a bell from now on rings again */
	ntb_bridge_rung(b);
	for (u32 i = 0; i < b->n_peers; i++)
		silent |= !READ_ONCE(b->peer[i].up);
	if (silent)
		mod_delayed_work(system_wq, &b->work, 0);
}

static const struct ntb_ctx_ops ctx_ops = {
	.link_event = on_link,
	.db_event = on_doorbell,
};

/* ---- beginning and end ---- */

/* What leads to a peer, and what of ours may lead from it. */
static int find_windows(struct ntb_bridge *b, struct ntb_bridge_peer *p)
{
	u32 each = ntb_peer_mw_count(b->ntb) / b->n_peers;

	for (u32 w = 0; w < each && w < SIO_NTB_WINDOWS; w++) {
		resource_size_t size = 0;
		phys_addr_t base = 0;
		int error = ntb_peer_mw_get_addr(b->ntb, p->pidx * each + w, &base, &size);

		if (error)
			return error;
		if (size < 2 * SIO_NTB_PAGE)
			break;
		p->out[w].base = base;
		p->out[w].size = size;
		p->n_out++;
		p->ws.window[w].most = rounddown_pow_of_two(size);
		p->ws.window[w].align = p->ws.window[w].most;
		p->ws.n++;
	}
	if (!p->n_out)
		return dev_err_probe(&b->ntb->dev, -ENOSPC, "no memory window to peer %d\n",
				     p->pidx);
	p->header = ioremap(p->out[0].base, SIO_NTB_PAGE);
	return p->header ? 0 : -ENOMEM;
}

static int find_peers(struct ntb_bridge *b)
{
	int n = ntb_peer_port_count(b->ntb), error = 0;

	if (n < 1 || n > SIO_NTB_PEERS)
		return dev_err_probe(&b->ntb->dev, -EINVAL, "%d peers, 1 to %d are right\n", n,
				     SIO_NTB_PEERS);
	b->peer = kcalloc(n, sizeof(*b->peer), GFP_KERNEL);
	if (!b->peer)
		return -ENOMEM;
	b->n_peers = n;
	for (int i = 0; i < n && !error; i++) {
		b->peer[i].pidx = i;
		b->peer[i].port = ntb_peer_port_number(b->ntb, i);
		error = find_windows(b, &b->peer[i]);
	}
	return error;
}

/* The first window of each leads to what was made for it; the others wait for what is granted. */
static int place(struct ntb_bridge *b)
{
	int error;

	b->size = b->peer[0].ws.window[0].most;
	for (u32 i = 1; i < b->n_peers; i++)
		b->size = min(b->size, b->peer[i].ws.window[0].most);
	error = ntb_bridge_place(b, memory);
	if (error)
		return error;
	for (u32 i = 0; i < b->n_peers; i++) {
		struct sio_ntb_windows *ws = &b->peer[i].ws;

		ws->window[0].at = (struct sio_ntb_range){.base = b->base, .size = b->size};
		ws->window[0].users = 1;
		if (b->iommu) /* all addresses are there */
			ws->n = 1;
	}
	return 0;
}

static void free_peers(struct ntb_bridge *b)
{
	for (u32 i = 0; i < b->n_peers; i++)
		if (b->peer[i].header)
			iounmap(b->peer[i].header);
	kfree(b->peer);
}

static int take_index(struct ntb_bridge *b)
{
	u32 i;

	mutex_lock(&indices_lock);
	i = find_next_zero_bit(indices, 16, first_adapter);
	if (i < 16)
		__set_bit(i, indices);
	mutex_unlock(&indices_lock);
	b->index = i;
	return i < 16 ? 0 : -ENOSPC;
}

static void put_index(const struct ntb_bridge *b)
{
	mutex_lock(&indices_lock);
	__clear_bit(b->index, indices);
	mutex_unlock(&indices_lock);
}

static int check(struct ntb_dev *ntb)
{
	if (!ntb_bridge_node)
		return dev_err_probe(&ntb->dev, -EINVAL,
				     "node=ID is wanted, this host's in the cluster's file\n");
	if (!ntb->ops->mw_set_trans)
		return dev_err_probe(&ntb->dev, -EOPNOTSUPP,
				     "its driver cannot set windows by who owns the memory\n");
	if (!ntb_db_valid_mask(ntb))
		return dev_err_probe(&ntb->dev, -EOPNOTSUPP, "it has no doorbells\n");
	return 0;
}

static int start(struct ntb_bridge *b)
{
	int error;

	write_header(b);
	b->a = smartio_bridge_register(&ntb_bridge_ops, b);
	if (IS_ERR(b->a))
		return dev_err_probe(&b->ntb->dev, PTR_ERR(b->a), "no adapter of smartio.ko\n");
	error = ntb_set_ctx(b->ntb, b, &ctx_ops);
	if (error) {
		smartio_bridge_unregister(b->a);
		return error;
	}
	ntb_db_clear(b->ntb, b->doorbell);
	ntb_db_clear_mask(b->ntb, b->doorbell);
	ntb_link_enable(b->ntb, NTB_SPEED_AUTO, NTB_WIDTH_AUTO);
	on_link(b);
	return 0;
}

static int ntb_bridge_probe(struct ntb_client *client, struct ntb_dev *ntb)
{
	struct ntb_bridge *b;
	int error = check(ntb);

	if (error)
		return error;
	b = kvzalloc(sizeof(*b), GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	b->ntb = ntb;
	b->boot = 1 + get_random_u32() % ((1 << 24) - 1);
	b->doorbell = BIT_ULL(__ffs64(ntb_db_valid_mask(ntb)));
	mutex_init(&b->lock);
	spin_lock_init(&b->bell_lock);
	INIT_DELAYED_WORK(&b->work, look);
	b->wait_ms = WAIT_MS;
	error = take_index(b);
	if (error)
		goto no_index;
	error = find_peers(b);
	if (!error)
		error = place(b);
	if (error)
		goto no_place;
	error = start(b);
	if (!error) {
		dev_info(&ntb->dev, "adapter %u of node %u: %u peers, windows of %#llx bytes%s\n",
			 b->index, ntb_bridge_node, b->n_peers, b->size,
			 b->iommu ? "" : ", open: there is no IOMMU");
		return 0;
	}
	ntb_bridge_unplace(b);
no_place:
	free_peers(b);
	put_index(b);
no_index:
	kvfree(b);
	return error;
}

static void ntb_bridge_remove(struct ntb_client *client, struct ntb_dev *ntb)
{
	struct ntb_bridge *b = ntb->ctx;

	ntb_link_disable(ntb);
	ntb_db_set_mask(ntb, b->doorbell);
	ntb_clear_ctx(ntb);
	cancel_delayed_work_sync(&b->work);
	smartio_bridge_unregister(b->a);
	/* With the link or without: the next client's peer would reach what was ours. */
	for (u32 i = 0; i < b->n_peers; i++)
		for (u32 w = 0; w < b->peer[i].ws.n; w++)
			ntb_mw_clear_trans(ntb, b->peer[i].pidx, w);
	b->header->magic = 0;
	ntb_bridge_unplace(b);
	free_peers(b);
	put_index(b);
	kvfree(b);
}

static struct ntb_client client = {
	.ops = {.probe = ntb_bridge_probe, .remove = ntb_bridge_remove},
};

module_ntb_client(client);
MODULE_DESCRIPTION("SmartIO adapters on the Linux NTB API");
MODULE_LICENSE("GPL");
