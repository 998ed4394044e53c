// SPDX-License-Identifier: GPL-2.0-only
/* What there is: versions, objects, counters, and the page that tells the state of paths. */
#include "smartio.h"

static struct page *status_page;
static struct sio_obj status; /* only for its files */

int sio_op_info(struct sio_request *rq, const void *msg)
{
	const struct sio_req_info *m = msg;
	struct sio_evt_info *evt;
	u64 total, left;

	if (m->version_min > SIO_PORT_VERSION || m->version_max < SIO_PORT_VERSION)
		return sio_fail(rq, -EPROTO, "versions %u to %u, smartio.ko speaks %d",
				m->version_min, m->version_max, SIO_PORT_VERSION);
	sio_pool_sizes(&total, &left);
	evt = sio_answer(rq, sizeof(*evt));
	evt->version = SIO_PORT_VERSION;
	evt->world = SIO_WORLD_SHIM;
	evt->page_size = PAGE_SIZE;
	evt->boot_generation = sio.boot_generation;
	memcpy(evt->boot_id, sio.boot_id, sizeof(evt->boot_id));
	evt->served = sio_served();
	evt->ram_total = total + sio_mem_limit();
	evt->ram_free = left + sio_mem_limit() - min(sio_mem_limit(), sio_mem_used());
	return 0;
}

/* ---- LIST ---- */

static void fill(struct sio_list_entry *e, const struct sio_obj *o)
{
	e->id = o->id;
	e->owner = o->owner->o.id;
	e->kind = o->kind;
	e->state = o->state;
	e->refs = o->refs;
	switch (o->kind) {
	case SIO_KIND_OWNER:
		e->owner = ((const struct sio_owner *)o)->parent;
		e->cookie = ((const struct sio_owner *)o)->user_cookie;
		break;
	case SIO_KIND_MEM:
		e->address = ((const struct sio_mem *)o)->phys;
		e->length = ((const struct sio_mem *)o)->size;
		break;
	case SIO_KIND_DEVICE:
		e->device = ((const struct sio_opened *)o)->dev->id;
		break;
	case SIO_KIND_BAR:
		e->device = ((const struct sio_bar *)o)->dev->id;
		e->address = ((const struct sio_bar *)o)->phys;
		e->length = ((const struct sio_bar *)o)->length;
		break;
	case SIO_KIND_VECTOR:
		e->cookie = ((const struct sio_vector *)o)->irq->o.id;
		e->device = ((const struct sio_vector *)o)->dev->id;
		e->length = ((const struct sio_vector *)o)->number;
		break;
	case SIO_KIND_DMAMAP:
		e->cookie = ((const struct sio_dmamap *)o)->target->id;
		e->device = ((const struct sio_dmamap *)o)->dev->id;
		e->address = ((const struct sio_dmamap *)o)->iova;
		e->length = ((const struct sio_dmamap *)o)->length;
		break;
	}
}

int sio_op_list(struct sio_request *rq, const void *msg)
{
	const struct sio_req_list *m = msg;
	struct sio_evt_list *evt;
	struct sio_obj *o;
	unsigned long id = m->after;

	if (m->kind < SIO_KIND_OWNER || m->kind > SIO_KIND_VECTOR ||
	    (m->kind > SIO_KIND_IRQ && m->kind < SIO_KIND_WATCH))
		return sio_fail(rq, -EINVAL, "kind %u, %d to %d and %d to %d are right", m->kind,
				SIO_KIND_OWNER, SIO_KIND_IRQ, SIO_KIND_WATCH, SIO_KIND_VECTOR);
	evt = sio_answer(rq, sizeof(*evt));
	for (o = xa_find_after(&sio.objects, &id, ULONG_MAX, XA_PRESENT); o;
	     o = xa_find_after(&sio.objects, &id, ULONG_MAX, XA_PRESENT)) {
		if (o->kind != m->kind)
			continue;
		if (evt->count == SIO_LIST_MAX) {
			evt->more = 1;
			break;
		}
		fill(&evt->entry[evt->count++], o);
	}
	return 0;
}

/* ---- STATS ---- */

static void count(struct sio_evt_stats *evt, const char *name, u64 value)
{
	struct sio_counter *c = &evt->counter[evt->count++];

	strscpy(c->name, name, sizeof(c->name));
	c->value = value;
}

static void host_stats(struct sio_evt_stats *evt)
{
	u64 total, left;

	sio_pool_sizes(&total, &left);
	count(evt, "requests", sio.requests);
	count(evt, "requests_refused", sio.refused);
	count(evt, "events_lost", sio.events_lost);
	count(evt, "memory_limit", sio_mem_limit());
	count(evt, "memory_used", sio_mem_used());
	count(evt, "pool_size", total);
	count(evt, "pool_free", left);
	count(evt, "owners", sio.n_of_kind[SIO_KIND_OWNER]);
	count(evt, "mems", sio.n_of_kind[SIO_KIND_MEM]);
	count(evt, "bars", sio.n_of_kind[SIO_KIND_BAR]);
	count(evt, "dmamaps", sio.n_of_kind[SIO_KIND_DMAMAP]);
	count(evt, "irqs", sio.n_of_kind[SIO_KIND_IRQ]);
}

static void device_stats(struct sio_evt_stats *evt, struct sio_dev *d)
{
	struct sio_dmamap *m;
	u64 n = 0, bytes = 0;

	list_for_each_entry(m, &d->dmamaps, of_dev) {
		n++;
		bytes += m->length;
	}
	count(evt, "generation", d->generation);
	count(evt, "dmamaps", n);
	count(evt, "dmamap_bytes", bytes);
	count(evt, "interrupts", atomic64_read(&d->interrupts));
	count(evt, "faults", atomic64_read(&d->faults));
}

int sio_op_stats(struct sio_request *rq, const void *msg)
{
	const struct sio_req_stats *m = msg;
	struct sio_dev *d;

	if (m->kind != 0 && m->kind != SIO_KIND_DEVICE && m->kind != SIO_KIND_ADAPTER)
		return sio_fail(rq, -EINVAL,
				"kind %u, 0 (host), %d (adapter) or %d (device) is right", m->kind,
				SIO_KIND_ADAPTER, SIO_KIND_DEVICE);
	if (m->kind == 0 && m->id)
		return sio_fail(rq, -EINVAL, "id %#llx of the host, 0 is right", m->id);
	d = sio_dev_find(m->id);
	if (m->kind && (m->kind == SIO_KIND_ADAPTER || !d))
		return sio_fail(rq, -ENODEV, "no %s %#llx is here",
				m->kind == SIO_KIND_ADAPTER ? "adapter" : "device", m->id);
	if (m->kind)
		device_stats(sio_answer(rq, sizeof(struct sio_evt_stats)), d);
	else
		host_stats(sio_answer(rq, sizeof(struct sio_evt_stats)));
	return 0;
}

/* ---- STATUS ---- */

static vm_fault_t status_fault(struct vm_fault *vmf)
{
	if (vmf->pgoff)
		return VM_FAULT_SIGBUS;
	get_page(status_page);
	vmf->page = status_page;
	return 0;
}

static const struct vm_operations_struct status_vm_ops = {
	.fault = status_fault,
};

static int status_mmap(struct file *f, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_flags & VM_WRITE || vma->vm_pgoff ||
	    vma_pages(vma) != 1)
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &status_vm_ops;
	return 0;
}

static const struct file_operations status_fops = {
	.owner = THIS_MODULE,
	.mmap = status_mmap,
	.release = sio_file_release,
	.llseek = noop_llseek,
};

int sio_op_status(struct sio_request *rq, const void *msg)
{
	struct sio_evt_status *evt = sio_answer(rq, sizeof(*evt));

	evt->size = sizeof(struct sio_status_page);
	return sio_answer_file(rq, sio_file_new(&status, "[smartio status]", &status_fops, O_RDONLY,
						sizeof(struct sio_status_page)));
}

int sio_status_init(void)
{
	struct sio_status_page *page;

	BUILD_BUG_ON(sizeof(*page) > PAGE_SIZE);
	status_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!status_page)
		return -ENOMEM;
	page = page_address(status_page);
	page->magic = SIO_STATUS_MAGIC;
	page->version = SIO_PORT_VERSION;
	kref_init(&status.kref); /* never put: it ends with the module */
	return 0;
}

void sio_status_exit(void)
{
	__free_page(status_page);
}
