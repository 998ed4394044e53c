// SPDX-License-Identifier: GPL-2.0-only
/*
 * The importer's half of a window: a range of an adapter's window that leads to what a peer
 * granted. Processors reach it by a mapping, from which the pages are removed while the path is
 * down. The peer's bridge and IOMMU check whether the peer granted it: a token proves nothing to
 * this host.
 */
#include <linux/io.h>
#include <linux/uaccess.h>

#include "adapter.h"

static struct rw_semaphore *views_of(struct sio_map *m)
{
	return &m->v.o.adapter->views;
}

/* ---- files ---- */

static vm_fault_t insert(struct vm_fault *vmf, bool there)
{
	struct sio_map *m = vmf->vma->vm_private_data;
	vm_fault_t rc;

	if (vmf->pgoff >= m->v.o.length >> PAGE_SHIFT || down_read_killable(views_of(m)))
		return VM_FAULT_SIGBUS;
	rc = sio_view_insert(&m->v, vmf, there);
	up_read(views_of(m));
	return rc;
}

static vm_fault_t map_fault(struct vm_fault *vmf)
{
	return insert(vmf, false);
}

static vm_fault_t map_mkwrite(struct vm_fault *vmf)
{
	return insert(vmf, true);
}

static const struct vm_operations_struct map_vm_ops = {
	.fault = map_fault,
	.pfn_mkwrite = map_mkwrite,
};

static int map_mmap(struct sio_obj *o, struct vm_area_struct *vma)
{
	return sio_view_mmap(&((struct sio_map *)o)->v, vma, &map_vm_ops);
}

static void send(const struct sio_map *m)
{
	const struct smartio_adapter *a = m->v.o.adapter;

	writel(m->data, m->word);
	if (!a->ops->ring)
		return;
	readl(m->word); /* it, and what was sent before, has arrived */
	a->ops->ring(a->bridge, m->v.o.node, m->peer_adapter);
}

/* One message for each write; while the path is down it is lost, as it would be on the way. */
static ssize_t map_write(struct file *f, const char __user *from, size_t size, loff_t *pos)
{
	struct sio_map *m = f->private_data;
	u64 n;

	if (!m->trigger || size < sizeof(n))
		return -EINVAL;
	if (copy_from_user(&n, from, sizeof(n)))
		return -EFAULT;
	if (down_read_killable(views_of(m)))
		return -EINTR;
	if (!m->v.revoked)
		send(m);
	up_read(views_of(m));
	return sizeof(n);
}

static const struct file_operations map_fops = {
	.owner = THIS_MODULE,
	.mmap = sio_mmap,
	.write = map_write,
	.release = sio_file_release,
};

/* ---- coming, going, links ---- */

/* The word that messages are written to, or that pushes what was sent before. */
static int word_get(struct sio_map *m)
{
	u64 at = m->trigger ? m->v.phys : m->v.o.address;

	m->word_ram = page_is_ram(PHYS_PFN(at));
	if (m->word_ram)
		m->word = (void __iomem *)memremap(at, sizeof(u32), MEMREMAP_WB);
	else
		m->word = ioremap(at, sizeof(u32));
	return m->word ? 0 : -ENOMEM;
}

static void word_put(struct sio_map *m)
{
	if (!m->word)
		return;
	if (m->word_ram)
		memunmap((void __force *)m->word);
	else
		iounmap(m->word);
	m->word = NULL;
}

void sio_map_push(struct sio_obj *o)
{
	struct sio_map *m = (struct sio_map *)o;

	if (m->word && !m->trigger && !m->v.revoked)
		readl(m->word);
}

void sio_map_down(struct sio_map *m)
{
	sio_shadows_lose(&m->v.o);
	if (!m->v.revoked)
		sio_view_revoke(&m->v, views_of(m));
}

void sio_map_up(struct sio_map *m, u64 start)
{
	const struct smartio_adapter *a = m->v.o.adapter;

	if (m->dead)
		return;
	if (m->start == start) {
		sio_view_revive(&m->v, views_of(m));
		return;
	}
	m->dead = true;
	sio_map_down(m);
	if (a->ops->cut)
		a->ops->cut(a->bridge, m->where.handle);
	if (a->ops->cut && !m->where.uncut)
		return;
	sio_dmamaps_cut(&m->v.o);
	sio_vectors_cut(&m->v.o);
}

void sio_map_lose(struct sio_map *m)
{
	const struct smartio_adapter *a = m->v.o.adapter;

	sio_shadows_lose(&m->v.o);
	sio_view_end(&m->v, views_of(m));
	sio_dmamaps_cut(&m->v.o);
	sio_vectors_cut(&m->v.o);
	word_put(m);
	m->dead = true;
	if (m->held)
		a->ops->unmap(a->bridge, m->where.handle);
	m->held = false;
}

static void map_end(struct sio_obj *o)
{
	if (o->adapter)
		sio_map_lose((struct sio_map *)o);
}

const struct sio_kind sio_kind_map = {
	.name = "map",
	.size = sizeof(struct sio_map),
	.end = map_end,
	.free = sio_view_free,
	.mmap = map_mmap,
	.fops = &map_fops,
};

/* ---- MAP ---- */

static int check(struct sio_request *rq, const struct sio_req_map *m)
{
	if (m->caching > SIO_CACHE_WRITE_COMBINED)
		return sio_fail(rq, -EINVAL, "caching %u, 0 to %d are right", m->caching,
				SIO_CACHE_WRITE_COMBINED);
	if (m->length == 0)
		return sio_fail(rq, -EINVAL, "length 0");
	if (m->bus_addr + (m->length - 1) < m->bus_addr ||
	    (m->length != SIO_MSI_BYTES && !PAGE_ALIGNED(m->bus_addr | m->length)))
		return sio_fail(rq, -EINVAL, "range %#llx + %#llx is not of whole pages",
				m->bus_addr, m->length);
	return 0;
}

/* The peer as it is now: up, and in the same start, as the path is, as when it granted. */
static int check_peer(struct sio_request *rq, const struct sio_req_map *m,
		      struct smartio_adapter *a)
{
	struct smartio_bridge_peer peer = {};
	int error = sio_link_find(rq, a, m->peer_node, m->peer_adapter, &peer);
	u64 start = SIO_LINK_START(peer.boot, peer.turn);

	if (error)
		return error;
	if (!peer.up)
		return sio_fail(rq, -ENETDOWN,
				"the path from adapter %u to adapter %u of node %u is down",
				a->index, m->peer_adapter, m->peer_node);
	if (m->generation != start)
		return sio_fail(rq, -ESTALE,
				"granted in start %llu of node %u, it is in start %llu",
				m->generation, m->peer_node, start);
	return 0;
}

static int bridge_refused(struct sio_request *rq, const struct sio_req_map *m,
			  const struct smartio_adapter *a, u64 length, int error)
{
	struct smartio_bridge_info info = {};

	if (error == -EACCES)
		return sio_fail(rq, error, "node %u granted us nothing at %#llx + %#llx",
				m->peer_node, m->bus_addr, m->length);
	if (error != -ENOSPC)
		return sio_fail(rq, error, "the bridge of adapter %u says %pe", a->index,
				ERR_PTR(error));
	a->ops->info(a->bridge, &info);
	return sio_fail_exhausted(
		rq, error,
		info.entry_size * info.entries_free < length ? SIO_OUT_OF_LUT_ENTRIES
							     : SIO_OUT_OF_WINDOW,
		"adapter %u: %#llx bytes wanted, %u of %u entries of %#llx bytes are free",
		a->index, length, info.entries_free, info.entries_total, info.entry_size);
}

/* What the bridge maps is of whole units of its own, in which the range begins at *ret. */
static int take(struct sio_request *rq, struct sio_map *map, const struct sio_req_map *m, u64 *ret)
{
	struct smartio_adapter *a = map->v.o.adapter;
	struct smartio_bridge_info info = {};
	u64 base, length;
	int error;

	a->ops->info(a->bridge, &info);
	base = round_down(m->bus_addr, info.alignment);
	length = round_up(m->bus_addr + m->length, info.alignment) - base;
	/* It is a peer's word how much there is; rounded up it may be nothing. */
	if (m->length > info.window_size || length < m->length || length > info.window_size)
		return bridge_refused(rq, m, a, m->length, -ENOSPC);
	if (info.dma_bits < 64 && base + length - 1 > DMA_BIT_MASK(info.dma_bits))
		return sio_fail(rq, -EINVAL,
				"range %#llx + %#llx: the window leads to addresses of %u bits",
				m->bus_addr, m->length, info.dma_bits);
	error = a->ops->map(a->bridge, m->peer_node, m->peer_adapter, base, length, m->generation,
			    &map->where);
	if (error)
		return bridge_refused(rq, m, a, length, error);
	map->held = true;
	*ret = m->bus_addr - base;
	return 0;
}

static int make(struct sio_map *map, const struct sio_req_map *m, u64 skip)
{
	bool combined = m->caching == SIO_CACHE_WRITE_COMBINED ||
			(m->caching == SIO_CACHE_DEFAULT && map->where.memory);
	int error;

	map->v.o.access = SIO_BOTH;
	map->v.o.address = map->where.at + skip;
	map->v.o.length = m->length;
	map->trigger = m->length == SIO_MSI_BYTES;
	if (map->trigger)
		memcpy(&map->data, m->token + SIO_TOKEN_MESSAGE, SIO_MSI_BYTES);
	error = sio_view_make(&map->v, map->where.at + skip, combined && !map->trigger);
	return error ? error : word_get(map);
}

int sio_op_map(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_map *m = msg;
	struct sio_map *map = (struct sio_map *)rq->obj;
	struct smartio_adapter *a = sio_adapter_find(rq, m->adapter);
	struct sio_evt_map *evt = answer;
	u64 skip = 0;
	int error = a ? check_peer(rq, m, a) : -ENODEV;

	xa_init(&map->v.own);
	if (!error)
		error = check(rq, m);
	if (error)
		return error;
	sio_obj_of_adapter(&map->v.o, a, m->peer_node);
	map->peer_adapter = m->peer_adapter;
	map->bar = m->h.flags & SIO_MAP_BAR;
	map->bus_addr = m->bus_addr;
	map->grant = m->grant;
	map->start = m->generation;
	error = take(rq, map, m, &skip);
	if (!error)
		error = make(map, m, skip);
	evt->length = map->v.o.length;
	evt->bus_addr = map->v.o.address;
	evt->map_flags = map->trigger ? SIO_MAP_TRIGGER : 0;
	evt->caching = map->v.combined ? SIO_CACHE_WRITE_COMBINED
		       : map->v.ram    ? SIO_CACHE_DEFAULT
				       : SIO_CACHE_UNCACHED;
	return error;
}

/*
 * What a program has stored before it says UNMAP arrives: stores are posted, and the peer takes its
 * grant back as soon as it hears that nobody uses it. A program that is killed is owed nothing, and
 * of registers a read may do something.
 */
int sio_op_unmap(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_unmap *m = msg;
	struct sio_obj *o = sio_obj_find(rq, SIO_KIND_MAP, m->id, false);

	if (!IS_ERR(o) && !sio_check_owner(rq, o) && ((struct sio_map *)o)->where.memory)
		sio_map_push(o);
	return sio_op_end(rq, msg, answer);
}
