// SPDX-License-Identifier: GPL-2.0-only
/* Views of BAR pages. They are not mapped while their device is being reset. */
#include "smartio.h"

/* ---- taking pages away ---- */

static struct sio_view *view_of(struct sio_obj *o)
{
	return &((struct sio_bar *)o)->v;
}

static void revoke(struct sio_obj *o)
{
	sio_view_end(view_of(o), &o->dev->views);
}

/*
 * Its owner has ended: no device reaches it any more but by mappings that are held, which is no
 * matter of programs.
 */
static void leave(struct sio_obj *o)
{
	if (sio_dmamaps_leave(o))
		sio_view_revoke(view_of(o), &o->dev->views);
}

void sio_bars_revoke(struct sio_dev *d)
{
	struct sio_obj *o;

	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_BAR)
			revoke(o);
}

/* A fault that has not seen it is over before the pages go. */
void sio_bars_hold(struct sio_dev *d)
{
	struct sio_obj *o;

	down_write(&d->views);
	WRITE_ONCE(d->resetting, true);
	up_write(&d->views);
	list_for_each_entry(o, &d->objects, of_dev)
		if (o->kind == SIO_KIND_BAR)
			sio_view_zap(view_of(o));
}

void sio_bars_resume(struct sio_dev *d)
{
	WRITE_ONCE(d->resetting, false);
	wake_up_all(&d->reset_over);
}

/* ---- faults ---- */

/* With views, for reading, and no reset under way; else a fatal signal. */
static int views_get(struct sio_dev *d)
{
	for (;;) {
		if (down_read_killable(&d->views))
			return -EINTR;
		if (!READ_ONCE(d->resetting))
			return 0;
		up_read(&d->views);
		if (wait_event_killable(d->reset_over, !READ_ONCE(d->resetting)))
			return -EINTR;
	}
}

static vm_fault_t insert(struct vm_fault *vmf, bool there)
{
	struct sio_bar *b = vmf->vma->vm_private_data;
	struct sio_dev *d = b->v.o.dev;
	vm_fault_t rc;

	if (vmf->pgoff >= b->v.o.length >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	if (views_get(d))
		return VM_FAULT_SIGBUS;
	rc = sio_view_insert(&b->v, vmf, there);
	up_read(&d->views);
	return rc;
}

static vm_fault_t bar_fault(struct vm_fault *vmf)
{
	return insert(vmf, false);
}

/* A store to a page that is there for reading: the ones, or after mprotect(). */
static vm_fault_t bar_mkwrite(struct vm_fault *vmf)
{
	return insert(vmf, true);
}

static const struct vm_operations_struct bar_vm_ops = {
	.fault = bar_fault,
	.pfn_mkwrite = bar_mkwrite,
};

static int bar_mmap(struct sio_obj *o, struct vm_area_struct *vma)
{
	return sio_view_mmap(view_of(o), vma, &bar_vm_ops);
}

bool sio_bar_is_memory(const struct sio_obj *o)
{
	struct pci_dev *pdev = o->dev->pdev;

	for (int i = 0; i < PCI_STD_NUM_BARS; i++)
		if (o->address >= pci_resource_start(pdev, i) &&
		    o->address <= pci_resource_end(pdev, i))
			return pci_resource_flags(pdev, i) & IORESOURCE_PREFETCH;
	return false;
}

const struct sio_kind sio_kind_bar = {
	.name = "BAR view",
	.size = sizeof(struct sio_bar),
	.end = revoke,
	.leave = leave,
	.free = sio_view_free,
	.mmap = bar_mmap,
	.fops = &sio_mmap_fops,
};

/* ---- BAR ---- */

/* Whole pages of a BAR, and none of the interrupt table. */
static int check(struct sio_request *rq, const struct sio_req_bar *m)
{
	const struct sio_dev *d = rq->dev;
	u64 table = PAGE_ALIGN_DOWN(d->msix_offset);
	u64 table_end = d->msix_offset + (u64)d->msix_count * PCI_MSIX_ENTRY_SIZE;
	char of[16];
	int error;

	if (m->access != SIO_ACCESS_READ && m->access != SIO_BOTH)
		return sio_fail(rq, -EINVAL, "access %#x, 1 or 3 is right", m->access);
	if (m->caching > SIO_CACHE_WRITE_COMBINED)
		return sio_fail(rq, -EINVAL, "caching %u, 0 to %d are right", m->caching,
				SIO_CACHE_WRITE_COMBINED);
	if (m->bar >= SIO_DEVICE_BARS || !(pci_resource_flags(d->pdev, m->bar) & IORESOURCE_MEM) ||
	    !PAGE_ALIGNED(pci_resource_start(d->pdev, m->bar)))
		return sio_fail(rq, -EINVAL, "%s has no BAR %u of whole pages", pci_name(d->pdev),
				m->bar);
	snprintf(of, sizeof(of), "BAR %u", m->bar);
	error = sio_check_range(rq, of, m->offset, m->length, pci_resource_len(d->pdev, m->bar));
	if (error)
		return error;
	if (d->msix_count && m->bar == d->msix_bar && m->offset < table_end &&
	    m->offset + m->length > table)
		return sio_fail(rq, -EACCES,
				"the interrupt table, %#llx to %#llx of BAR %u, is not given out",
				table, table_end, m->bar);
	return 0;
}

/* A page has one memory type: the kernel gives all its mappings the one that was reserved. */
static int check_type(struct sio_request *rq, const struct sio_bar *b, bool combined)
{
	const struct sio_obj *o = &b->v.o, *other;

	list_for_each_entry(other, &o->dev->objects, of_dev)
		if (other->kind == SIO_KIND_BAR && other != o &&
		    !((struct sio_bar *)other)->v.revoked &&
		    ((struct sio_bar *)other)->v.combined != combined &&
		    other->address < o->address + o->length &&
		    o->address < other->address + other->length)
			return sio_fail(rq, -EBUSY, "BAR view %#llx has these pages %s", other->id,
					combined ? "uncached" : "write-combined");
	return 0;
}

int sio_op_bar(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_bar *m = msg;
	struct sio_evt_bar *evt = answer;
	struct sio_bar *b = (struct sio_bar *)rq->obj;
	bool combined = m->caching == SIO_CACHE_WRITE_COMBINED;
	struct sio_obj *o = rq->obj;
	int error = check(rq, m);

	sio_obj_tie(o, rq->dev, NULL);
	xa_init(&b->v.own);
	if (error)
		return error;
	o->address = pci_resource_start(rq->dev->pdev, m->bar) + m->offset;
	o->access = m->access;
	evt->length = o->length = m->length;
	error = check_type(rq, b, combined);
	return error ? error : sio_view_make(&b->v, o->address, combined);
}
