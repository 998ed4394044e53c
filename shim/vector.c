// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupt vectors of devices. They add to an interrupt of this host, or send a peer's message
 * through a window. Once one is requested, smartio.ko takes all interrupt lines that the function
 * has and the kernel can spare: what arrives by a line that belongs to no vector is dropped, not
 * kept for the next.
 */
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/msi.h>

#include "adapter.h"

/* o.target: its interrupt, or the map that leads to a peer's; o.length: its number. */
struct sio_vector {
	struct sio_obj o;
	bool mask;
	bool cut;	    /* the function sends no more of it */
	struct sio_dma way; /* to the map */
	struct msi_msg own; /* the kernel's message meanwhile */
};

static int line_of(const struct sio_vector *v)
{
	return pci_irq_vector(v->o.dev->pdev, v->o.length);
}

static irqreturn_t on_interrupt(int line, void *arg)
{
	struct sio_irq *q = READ_ONCE(*(struct sio_irq **)arg);

	if (q)
		sio_irq_add(q, 1);
	return IRQ_HANDLED;
}

/* ---- where it goes ---- */

/* What is masked here is kept by the function, and sent when it is unmasked. */
static void send_to_peer(struct sio_vector *v, const struct sio_map *t, bool mask)
{
	u64 address = v->way.address + offset_in_page(t->v.o.address);
	struct irq_data *line = irq_get_irq_data(line_of(v));
	struct msi_msg msg = {.address_lo = lower_32_bits(address),
			      .address_hi = upper_32_bits(address),
			      .data = t->data};

	irq_set_status_flags(line_of(v), IRQ_NO_BALANCING); /* that would write another one */
	get_cached_msi_msg(line_of(v), &v->own);
	pci_msi_mask_irq(line);
	pci_write_msi_msg(line_of(v), &msg);
	if (!mask)
		pci_msi_unmask_irq(line);
	v->mask = mask;
}

static void take_from_peer(struct sio_vector *v)
{
	struct irq_data *line = irq_get_irq_data(line_of(v));

	pci_msi_mask_irq(line);
	pci_write_msi_msg(line_of(v), &v->own);
	irq_clear_status_flags(line_of(v), IRQ_NO_BALANCING);
	pci_msi_unmask_irq(line);
	sio_dma_unmap(&v->way);
}

/* With @mask what comes is kept, and told when it is unmasked. */
static void send_here(struct sio_vector *v, struct sio_obj *irq, bool mask)
{
	v->o.dev->line[v->o.length] = (struct sio_irq *)irq;
	if (!mask)
		enable_irq(line_of(v));
	v->mask = mask;
}

/* It is nobody's; its line is enabled, as that of one that never was somebody's. */
static void take(struct sio_vector *v)
{
	struct sio_obj *t = v->o.target;

	if (!t)
		return;
	if (t->kind == SIO_KIND_MAP) {
		take_from_peer(v);
	} else {
		if (!v->mask)
			disable_irq(line_of(v));
		send_here(v, NULL, false);
	}
	sio_obj_unref(t);
	if (v->o.through)
		sio_obj_unref(v->o.through);
	v->o.target = v->o.through = NULL;
	v->mask = false;
}

/* From one interrupt of this host to another: nothing is swallowed between. */
static void change(struct sio_vector *v, struct sio_obj *irq, bool mask)
{
	if (!v->mask)
		disable_irq(line_of(v));
	irq->refs++;
	if (v->o.target)
		sio_obj_unref(v->o.target);
	v->o.target = irq;
	send_here(v, irq, mask);
}

static int set(struct sio_request *rq, struct sio_vector *v, struct sio_obj *t,
	       struct sio_obj *entry, bool mask)
{
	struct sio_dma way = {.of = v->o.dev};
	int error;

	if (t->kind == SIO_KIND_IRQ) {
		if (v->o.target && v->o.target->kind == SIO_KIND_MAP)
			take(v);
		change(v, t, mask);
		return 0;
	}
	if (v->o.target == t) { /* what the function keeps must not come out here */
		if (mask && !v->mask)
			pci_msi_mask_irq(irq_get_irq_data(line_of(v)));
		if (!mask && v->mask)
			pci_msi_unmask_irq(irq_get_irq_data(line_of(v)));
		v->mask = mask;
		return 0;
	}
	error = sio_dma_map(rq, &way, &v->o.dev->pdev->dev, t, -(u64)offset_in_page(t->address),
			    PAGE_SIZE, SIO_ACCESS_WRITE);
	if (error) {
		sio_dma_unmap(&way);
		return error;
	}
	take(v);
	v->way = way;
	t->refs++;
	v->o.target = t;
	sio_obj_through(&v->o, entry);
	send_to_peer(v, (struct sio_map *)t, mask);
	return 0;
}

struct sio_dma *sio_vector_way(struct sio_obj *o)
{
	return &((struct sio_vector *)o)->way;
}

static void vector_end(struct sio_obj *o)
{
	struct sio_vector *v = (struct sio_vector *)o;

	if (!v->cut)
		take(v);
}

const struct sio_kind sio_kind_vector = {
	.name = "interrupt vector",
	.size = sizeof(struct sio_vector),
	.end = vector_end,
};

static struct sio_vector *find_vector(struct sio_dev *d, u64 number)
{
	struct sio_obj *o;

	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_VECTOR && o->length == number &&
		    !((struct sio_vector *)o)->cut)
			return (struct sio_vector *)o;
	return NULL;
}

void sio_vectors_cut(const struct sio_obj *map)
{
	struct sio_dev *d;
	struct sio_obj *o;

	list_for_each_entry(d, &sio.devices, node)
		list_for_each_entry(o, &d->objects, of_dev)
			if (o->kind == SIO_KIND_VECTOR && o->target == map)
				take((struct sio_vector *)o);
}

/* ---- lines ---- */

void sio_vectors_free(struct sio_dev *d)
{
	struct sio_obj *o;

	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_VECTOR && o->target && o->target->kind == SIO_KIND_MAP)
			take((struct sio_vector *)o);
	for (unsigned int i = 0; i < d->n_lines; i++)
		free_irq(pci_irq_vector(d->pdev, i), &d->line[i]);
	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_VECTOR)
			((struct sio_vector *)o)->cut = true;
	pci_free_irq_vectors(d->pdev);
	kfree(d->line);
	d->line = NULL;
	d->n_lines = 0;
}

static void make_lines(struct sio_dev *d)
{
	int n = pci_alloc_irq_vectors(d->pdev, 1, d->msix_count, PCI_IRQ_MSIX);

	d->line = n > 0 ? kcalloc(n, sizeof(*d->line), GFP_KERNEL) : NULL;
	for (int i = 0; d->line && i < n; i++) {
		if (request_irq(pci_irq_vector(d->pdev, i), on_interrupt, 0, "smartio",
				&d->line[i]))
			break;
		d->n_lines++;
	}
	if (!d->n_lines)
		sio_vectors_free(d);
}

/* ---- VECTOR ---- */

static int check_vector(struct sio_request *rq, const struct sio_req_vector *m,
			const struct sio_vector *old)
{
	if (m->vector >= rq->dev->msix_count)
		return sio_fail(rq, -EINVAL, "%s has %u vectors, %u is none of them",
				pci_name(rq->dev->pdev), rq->dev->msix_count, m->vector);
	if (m->mask > 1)
		return sio_fail(rq, -EINVAL, "mask %u, 0 or 1 is right", m->mask);
	if (m->irq && (m->address || m->data))
		return sio_fail(rq, -EINVAL, "name an interrupt, or address and data, not both");
	if (m->address)
		return sio_fail(rq, -EOPNOTSUPP,
				"messages to %#llx; they go to interrupts of this host",
				m->address);
	if (!m->irq && (m->data || m->mask))
		return sio_fail(rq, -EINVAL,
				"data %#x and mask %u without an interrupt, 0 is right", m->data,
				m->mask);
	if (old && m->h.owner && old->o.owner != rq->owner)
		return sio_fail(rq, -EBUSY, "vector %u belongs to owner %#llx", m->vector,
				old->o.owner->o.id);
	return 0;
}

/* Where it is to go, with the requester entry that this needs; NULL: nowhere; or an error. */
static struct sio_obj *find_target(struct sio_request *rq, const struct sio_req_vector *m,
				   struct sio_obj **ret_entry)
{
	struct sio_obj *t = m->irq ? xa_load(&sio.objects, m->irq) : NULL;
	bool map = t && t->kind == SIO_KIND_MAP && ((struct sio_map *)t)->trigger;
	int error;

	*ret_entry = NULL;
	if (!m->irq)
		return NULL;
	t = sio_obj_find(rq, map ? SIO_KIND_MAP : SIO_KIND_IRQ, m->irq, true);
	if (IS_ERR(t) || !map)
		return t;
	if (((struct sio_map *)t)->dead)
		return ERR_PTR(sio_fail(rq, -ENETDOWN, "map %#llx leads nowhere any more", t->id));
	if (t->adapter->ops->ring)
		return ERR_PTR(sio_fail(rq, -EOPNOTSUPP,
					"behind adapter %u processors interrupt, devices cannot",
					t->adapter->index));
	error = sio_requester_need(rq, t->adapter, rq->dev, SIO_ACCESS_WRITE, ret_entry);
	return error ? ERR_PTR(error) : t;
}

int sio_op_vector(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_vector *m = msg;
	struct sio_vector *v = find_vector(rq->dev, m->vector);
	int error = check_vector(rq, m, v);
	struct sio_obj *target, *entry;
	bool fresh = !v;

	if (error)
		return error;
	target = find_target(rq, m, &entry);
	if (IS_ERR(target))
		return PTR_ERR(target);
	if (!target) {
		if (v)
			sio_obj_end(&v->o);
		return 0;
	}
	if (!rq->dev->line)
		make_lines(rq->dev);
	if (m->vector >= rq->dev->n_lines)
		return sio_fail_exhausted(
			rq, -ENOSPC, SIO_OUT_OF_VECTORS,
			"the kernel has interrupts for %u vectors of %s, this is %u",
			rq->dev->n_lines, pci_name(rq->dev->pdev), m->vector);
	if (fresh) {
		v = sio_obj_new(rq, SIO_KIND_VECTOR);
		if (IS_ERR(v))
			return PTR_ERR(v);
		sio_obj_tie(&v->o, rq->dev, NULL);
		v->o.length = m->vector;
	}
	error = set(rq, v, target, entry, m->mask);
	if (error && fresh)
		sio_obj_end(&v->o);
	return error;
}
