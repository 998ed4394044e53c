// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exporter's half of a window: a range of this host's memory gets an address on the bus behind
 * an adapter. Where an IOMMU translates the accesses through it, that is an I/O virtual address of
 * the bridge's function; otherwise it is the physical one. The bridge may let nothing through but
 * what was granted; where it does not, and there is no IOMMU, peers reach all of this host's
 * memory.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/random.h>

#include "adapter.h"

static int check_interrupt(struct sio_request *rq, const struct sio_req_grant *m,
			   const struct smartio_adapter *a)
{
	if (m->offset || (m->length && m->length != SIO_MSI_BYTES))
		return sio_fail(rq, -EINVAL, "range %#llx + %#llx of an interrupt, 0 + %d is right",
				m->offset, m->length, SIO_MSI_BYTES);
	if (!a->ops->vector_get && !a->ops->bell_get)
		return sio_fail(rq, -EOPNOTSUPP, "adapter %u delivers no interrupts of peers",
				a->index);
	return 0;
}

/* What is granted, or an error. */
static struct sio_obj *find_source(struct sio_request *rq, const struct sio_req_grant *m,
				   const struct smartio_adapter *a)
{
	const char *name = sio_kind_name(m->source_kind);
	struct sio_obj *o;
	int error;

	if (m->source_kind == SIO_KIND_APERTURE || m->source_kind == SIO_KIND_ALL_RAM ||
	    m->source_kind == SIO_KIND_SHADOW)
		return ERR_PTR(
			sio_fail(rq, -EOPNOTSUPP,
				 "apertures, all RAM and shadows are not served by smartio.ko"));
	if (m->source_kind != SIO_KIND_MEM && m->source_kind != SIO_KIND_BAR &&
	    m->source_kind != SIO_KIND_IRQ)
		return ERR_PTR(sio_fail(
			rq, -EINVAL,
			"source kind %u, %d (memory), %d (BAR view) or %d (interrupt) is right",
			m->source_kind, SIO_KIND_MEM, SIO_KIND_BAR, SIO_KIND_IRQ));
	if (m->access == 0 || m->access & ~SIO_BOTH)
		return ERR_PTR(sio_fail(rq, -EINVAL, "access %#x, 1 to 3 are right", m->access));
	o = sio_obj_find(rq, m->source_kind, m->source, true);
	if (IS_ERR(o))
		return o;
	if (o->kind == SIO_KIND_IRQ)
		error = check_interrupt(rq, m, a);
	else if (o->kind == SIO_KIND_BAR && ((struct sio_bar *)o)->v.revoked)
		error = sio_fail(rq, -ENODEV, "the device of %s %#llx has gone", name, o->id);
	else if (o->kind == SIO_KIND_MEM && !sio_group_has_memory(o))
		error = sio_fail(
			rq, -EINVAL,
			"%s %#llx is the way to a multicast group, or a member in a BAR, whose view is right",
			name, o->id);
	else if (m->access & ~o->access)
		error = sio_fail(rq, -EACCES, "%s %#llx is read-only", name, o->id);
	else
		error = sio_check_range(rq, name, m->offset, m->length, o->length);
	return error ? ERR_PTR(error) : o;
}

/* ---- making ---- */

static bool is_dmabuf(const struct sio_grant *g)
{
	return g->o.target->kind == SIO_KIND_MEM && ((struct sio_mem *)g->o.target)->dmabuf;
}

static int bridge_refused(struct sio_request *rq, const struct sio_grant *g, int error)
{
	const struct smartio_adapter *a = g->o.adapter;

	if (error == -ERANGE && is_dmabuf(g))
		return sio_fail(
			rq, -EOPNOTSUPP,
			"a dma-buf at %#llx lies outside of what peers reach through adapter %u, and no IOMMU brings it there: memory of ALLOC is right",
			g->o.address, a->index);
	if (error == -ENOSPC)
		return sio_fail_exhausted(rq, error, SIO_OUT_OF_GRANTS,
					  "adapter %u has no row left for what is granted",
					  a->index);
	if (error == -ERANGE)
		return sio_fail(
			rq, error,
			"it lies outside of what peers reach through adapter %u: memory of ALLOC is right, as long as that adapter's lasts",
			a->index);
	return sio_fail(rq, error, "the bridge of adapter %u says %pe", a->index, ERR_PTR(error));
}

/* What is no word of the bridge's must not be taken for one. */
static int kernel_refused(struct sio_request *rq, int error)
{
	if (rq->text[0])
		return error;
	if (error == -ENOMEM)
		return sio_fail_exhausted(rq, error, SIO_OUT_OF_MEMORY,
					  "the kernel has no memory left");
	return sio_fail(rq, error, "the kernel says %pe", ERR_PTR(error));
}

static int place_interrupt(struct sio_request *rq, struct sio_grant *g)
{
	struct smartio_adapter *a = g->o.adapter;
	struct sio_line *l = sio_line_get(a, (struct sio_irq *)g->o.target);

	if (IS_ERR(l))
		return PTR_ERR(l) == -ENOSPC
			       ? sio_fail_exhausted(
					 rq, -ENOSPC, SIO_OUT_OF_VECTORS,
					 "adapter %u has no interrupt vector left for peers",
					 a->index)
			       : kernel_refused(rq, PTR_ERR(l));
	g->line = l;
	g->o.address = l->address;
	memcpy(g->token + SIO_TOKEN_MESSAGE, &l->data, SIO_MSI_BYTES);
	return a->ops->grant_message(a->bridge, g->o.node, g->peer_adapter, l->address, l->data,
				     &g->handle);
}

/* Page by page it is too much for an IOMMU, and what is plugged in later would not be there. */
static bool is_too_much(const struct sio_grant *g)
{
	return g->o.target->kind == SIO_KIND_MEM && ((struct sio_mem *)g->o.target)->all_ram &&
	       sio_iommu_of(&g->o.adapter->pdev->dev) != SIO_IOMMU_OFF;
}

static int place_range(struct sio_request *rq, struct sio_grant *g, u64 offset)
{
	struct smartio_adapter *a = g->o.adapter;
	int error;

	if (is_too_much(g))
		return sio_fail(
			rq, -EOPNOTSUPP,
			"an IOMMU translates what comes through adapter %u: all RAM is granted with iommu=pt or without one",
			a->index);
	error = sio_dma_map(rq, &g->dma, &a->pdev->dev, g->o.target, offset, g->o.length,
			    g->o.access);

	g->o.address = g->dma.address;
	if (error)
		return kernel_refused(rq, error);
	return a->ops->grant(a->bridge, g->o.node, g->peer_adapter, g->o.address, g->o.length,
			     g->o.access, &g->handle);
}

static int place(struct sio_request *rq, struct sio_grant *g, u64 offset)
{
	int error = g->o.target->kind == SIO_KIND_IRQ ? place_interrupt(rq, g)
						      : place_range(rq, g, offset);

	g->let = !error;
	if (!error || error == -EOPNOTSUPP)
		return rq->text[0] ? error : 0;
	return rq->text[0] ? error : bridge_refused(rq, g, error);
}

int sio_op_grant(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_grant *m = msg;
	struct smartio_adapter *a = sio_adapter_find(rq, m->adapter);
	struct sio_grant *g = (struct sio_grant *)rq->obj;
	struct smartio_bridge_peer peer = {};
	struct smartio_bridge_info info = {};
	struct sio_evt_grant *evt = answer;
	struct sio_obj *source;
	int error = a ? sio_link_find(rq, a, m->peer_node, m->peer_adapter, &peer) : -ENODEV;

	if (error)
		return error;
	source = find_source(rq, m, a);
	if (IS_ERR(source))
		return PTR_ERR(source);
	sio_obj_tie(&g->o, NULL, source);
	sio_obj_of_adapter(&g->o, a, m->peer_node);
	g->peer_adapter = m->peer_adapter;
	a->ops->info(a->bridge, &info);
	g->start = SIO_LINK_START(info.boot, peer.turn);
	g->o.access = m->access;
	g->o.length = source->kind == SIO_KIND_IRQ ? SIO_MSI_BYTES : m->length;
	get_random_bytes(g->token, sizeof(g->token));
	error = place(rq, g, m->offset);
	evt->bus_addr = g->o.address;
	evt->length = g->o.length;
	evt->generation = g->start;
	memcpy(evt->token, g->token, sizeof(evt->token));
	return error;
}

/* ---- ending ---- */

/* False: an access may still come. */
static bool forbid(struct sio_grant *g)
{
	const struct smartio_adapter *a = g->o.adapter;

	if (g->let && a->ops->revoke(a->bridge, g->handle) && !a->going)
		return false;
	g->let = false;
	return true;
}

/* The I/O addresses that the kernel mapped for a grant: all of a dma-buf's, or its own. */
static int each_range(const struct sio_grant *g,
		      int (*what)(struct iommu_domain *domain, u64 first, u64 end))
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(g->dma.dev);
	struct scatterlist *sg;
	int error, i;

	if (!g->dma.attached)
		return what(domain, g->o.address, g->o.address + g->o.length);
	for_each_sgtable_dma_sg(g->dma.attached, sg, i) {
		u64 first = sg_dma_address(sg);

		error = what(domain, round_down(first, PAGE_SIZE),
			     round_up(first + sg_dma_len(sg), PAGE_SIZE));
		if (error)
			return error;
	}
	return 0;
}

static int empty_range(struct iommu_domain *domain, u64 first, u64 end)
{
	iommu_unmap(domain, first, end - first);
	return 0;
}

static int zero_range(struct iommu_domain *domain, u64 first, u64 end)
{
	int error = 0;

	for (; first < end && !error; first += PAGE_SIZE)
		if (!iommu_iova_to_phys(domain, first)) /* none by a try before */
			error = sio_map_zeros(domain, first);
	return error;
}

/*
 * The kernel's DMA API gives an address back by what is mapped there, so zeros, for reading, are
 * put where the address was kept. Without memory for all of them the first ones stay for the next
 * try: an IOMMU's driver may not be told to unmap what is not mapped.
 */
static int refill(struct sio_grant *g)
{
	int error = g->unmapped ? each_range(g, zero_range) : 0;

	g->unmapped = error;
	return error;
}

void sio_grant_cut(struct sio_grant *g)
{
	if (g->cut)
		return;
	if (!forbid(g)) {
		sio_keep(&g->o);
		return;
	}
	if (refill(g)) {
		pr_warn("smartio: no memory: %#llx bytes of I/O addresses are lost\n", g->o.length);
		if (g->dma.attached)
			sio_dmabuf_lose(&g->dma);
		g->dma.mapped = false;
	} else {
		sio_dma_unmap(&g->dma);
	}
	if (g->line)
		sio_line_put(g->o.adapter, g->line);
	g->line = NULL;
	g->cut = true;
}

/*
 * Its address is an IOMMU's, and can lead nowhere without being somebody else's. A dma-buf of a
 * card may have one of the PCI bus instead, which the kernel gives to no I/O address.
 */
static bool can_vacate(const struct sio_grant *g)
{
	if (!g->dma.mapped || sio_iommu_of(g->dma.dev) == SIO_IOMMU_OFF)
		return false;
	return g->unmapped || !g->dma.attached ||
	       iommu_iova_to_phys(iommu_get_domain_for_dev(g->dma.dev), g->o.address);
}

/*
 * A dma-buf is held as long as the address is, which its driver made; the memory may move. An
 * access that still comes finds nothing there.
 */
static void vacate(struct sio_grant *g)
{
	forbid(g);
	if (g->unmapped)
		return;
	each_range(g, empty_range);
	if (g->dma.attached)
		sio_dmabuf_unpin(&g->dma);
	g->unmapped = true;
}

/* The peer has said no word yet, and may have look-up entries of their addresses. */
void sio_grants_cut(const struct sio_obj *target)
{
	struct sio_obj *o;
	unsigned long id;

	xa_for_each(&sio.objects, id, o) {
		if (o->kind != SIO_KIND_GRANT || o->target != target)
			continue;
		if (can_vacate((struct sio_grant *)o))
			vacate((struct sio_grant *)o);
		else
			sio_grant_cut((struct sio_grant *)o);
	}
}

static void grant_end(struct sio_obj *o)
{
	if (o->adapter)
		sio_grant_cut((struct sio_grant *)o);
}

const struct sio_kind sio_kind_grant = {
	.name = "grant",
	.size = sizeof(struct sio_grant),
	.end = grant_end,
};

/* ---- UNGRANT ---- */

/* The address alone stays, and is the daemon's, whoever's what it led to was. */
static int keep(struct sio_request *rq, struct sio_grant *g)
{
	struct sio_obj *o = &g->o;

	if (!can_vacate(g))
		return sio_fail(
			rq, -EOPNOTSUPP,
			"the address of grant %#llx is that of the %s itself: it cannot be kept without it",
			o->id, o->target ? sio_kind_name(o->target->kind) : "memory");
	vacate(g);
	if (o->target)
		sio_obj_unref(o->target);
	o->target = NULL;
	sio_obj_give(o);
	sio_obj_quarantine(o);
	return 0;
}

int sio_op_ungrant(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_ungrant *m = msg;
	struct sio_grant *g = sio_obj_find(rq, SIO_KIND_GRANT, m->id, false);
	int error;

	if (IS_ERR(g))
		return PTR_ERR(g);
	error = sio_check_owner(rq, &g->o);
	if (error)
		return error;
	if (m->h.flags & SIO_UNGRANT_KEEP_ADDRESS)
		return keep(rq, g);
	error = refill(g);
	if (error)
		return error;
	sio_obj_end(&g->o);
	return 0;
}
