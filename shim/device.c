// SPDX-License-Identifier: GPL-2.0-only
/* Functions bound to us by driver_override: their coming and going, opening, faults. */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/rcupdate.h>

#include "smartio.h"

static void fault_work(struct work_struct *work);

/* ---- finding ---- */

struct sio_dev *sio_dev_find(u64 id)
{
	struct sio_dev *d;

	list_for_each_entry(d, &sio.devices, node)
		if (d->id == id)
			return d->pdev && !d->going ? d : NULL;
	return NULL;
}

int sio_dev_get(struct sio_request *rq, u64 id, struct sio_dev **ret)
{
	struct sio_dev *d = sio_dev_find(id);

	if (!d)
		return sio_fail(rq, -ENODEV, "no device %#llx is here", id);
	if (!d->opened || d->opened->stale)
		return sio_fail(rq, -EPERM, "device %s is not open; DEVICE_OPEN first",
				pci_name(d->pdev));
	*ret = d;
	return 0;
}

u32 sio_dev_iommu(struct sio_dev *d)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&d->pdev->dev);

	if (!domain || !(domain->type & __IOMMU_DOMAIN_PAGING))
		return SIO_IOMMU_OFF;
	return domain->type == IOMMU_DOMAIN_DMA_FQ ? SIO_IOMMU_LAZY : SIO_IOMMU_STRICT;
}

static u32 place(const struct pci_dev *pdev)
{
	return (u32)pci_domain_nr(pdev->bus) << 16 | pci_dev_id((struct pci_dev *)pdev);
}

/* The place, known from before or new. */
static struct sio_dev *dev_of(struct pci_dev *pdev)
{
	struct sio_dev *d;

	list_for_each_entry(d, &sio.devices, node)
		if (d->bdf == place(pdev))
			return d;
	d = kzalloc(sizeof(*d), GFP_KERNEL);
	if (!d)
		return NULL;
	d->bdf = place(pdev);
	d->id = ++sio.last_device;
	INIT_LIST_HEAD(&d->bars);
	INIT_LIST_HEAD(&d->dmamaps);
	INIT_LIST_HEAD(&d->behind);
	init_rwsem(&d->views);
	init_waitqueue_head(&d->wait);
	INIT_WORK(&d->reset_work, sio_reset_work);
	INIT_WORK(&d->fault_work, fault_work);
	spin_lock_init(&d->fault_lock);
	list_add_tail(&d->node, &sio.devices);
	return d;
}

void sio_devices_free(void)
{
	struct sio_dev *d, *tmp;

	if (!list_empty(&sio.devices))
		synchronize_rcu_tasks(); /* the IOMMU driver's thread may be in on_fault() */
	list_for_each_entry_safe(d, tmp, &sio.devices, node) {
		cancel_work_sync(&d->fault_work);
		list_del(&d->node);
		kfree(d);
	}
}

/* ---- faults, where the IOMMU's driver tells (AMD) ---- */

static int on_fault(struct iommu_domain *domain, struct device *dev, unsigned long iova, int flags,
		    void *arg)
{
	struct sio_dev *d = arg;
	unsigned long irq;

	atomic64_inc(&d->faults);
	spin_lock_irqsave(&d->fault_lock, irq);
	if (d->n_faults < ARRAY_SIZE(d->fault)) {
		d->fault[d->n_faults].address = iova;
		d->fault[d->n_faults++].write = flags & IOMMU_FAULT_WRITE;
	}
	spin_unlock_irqrestore(&d->fault_lock, irq);
	queue_work(sio.work, &d->fault_work);
	return -ENOSYS; /* the kernel logs it, too */
}

static void tell_fault(struct sio_dev *d, u64 address, bool write)
{
	struct sio_event *e = sio_event_new(sizeof(struct sio_evt_fault));
	struct sio_evt_fault *evt;
	struct sio_dmamap *m;
	u64 best = U64_MAX;

	if (!e)
		return;
	evt = (void *)&e->u;
	evt->device = d->id;
	evt->address = address;
	evt->access = write ? SIO_FAULT_WRITE : SIO_FAULT_READ;
	evt->nearest = SIO_PORT_ANY;
	list_for_each_entry(m, &d->dmamaps, of_dev) {
		u64 far = address > m->iova ? address - m->iova : m->iova - address;

		if (far < best) {
			best = far;
			evt->nearest = m->iova;
		}
	}
	strscpy(evt->reason, "the IOMMU has no such mapping", sizeof(evt->reason));
	sio_send_news(e, SIO_EV_FAULT, sizeof(*evt));
}

static void fault_work(struct work_struct *work)
{
	struct sio_dev *d = container_of(work, struct sio_dev, fault_work);
	typeof(d->fault[0]) fault[ARRAY_SIZE(d->fault)];
	unsigned int n;

	mutex_lock(&sio.lock);
	spin_lock_irq(&d->fault_lock);
	n = d->n_faults;
	memcpy(fault, d->fault, sizeof(fault));
	d->n_faults = 0;
	spin_unlock_irq(&d->fault_lock);
	for (unsigned int i = 0; i < n; i++)
		tell_fault(d, fault[i].address, fault[i].write);
	mutex_unlock(&sio.lock);
}

static void watch_faults(struct sio_dev *d, bool on)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&d->pdev->dev);

	if (!domain || !(domain->type & __IOMMU_DOMAIN_PAGING))
		return;
	iommu_set_fault_handler(domain, on ? on_fault : NULL, on ? d : NULL);
}

/* ---- coming and going ---- */

static void tell_state(struct sio_dev *d, struct sio_event *e, u32 op)
{
	struct sio_evt_device_state *evt = (void *)&e->u;

	evt->device = d->id;
	evt->generation = d->generation;
	sio_send_news(e, op, sizeof(*evt));
}

static void read_msix(struct sio_dev *d)
{
	int count = pci_msix_vec_count(d->pdev);
	u32 table = 0;

	d->msix_count = count > 0 ? count : 0;
	if (!d->msix_count)
		return;
	pci_read_config_dword(d->pdev, d->pdev->msix_cap + PCI_MSIX_TABLE, &table);
	d->msix_bar = table & PCI_MSIX_TABLE_BIR;
	d->msix_offset = table & PCI_MSIX_TABLE_OFFSET;
}

static int enable(struct pci_dev *pdev)
{
	int error = pci_enable_device_mem(pdev);

	if (error)
		return error;
	error = pci_request_mem_regions(pdev, "smartio");
	if (error)
		goto disable;
	error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (error)
		error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(32));
	if (error)
		goto release;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	dma_set_seg_boundary(&pdev->dev, ULONG_MAX);
	return 0;

release:
	pci_release_mem_regions(pdev);
disable:
	pci_disable_device(pdev);
	return error;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct sio_event *e;
	struct sio_dev *d;
	int error;

	if (pdev->hdr_type != PCI_HEADER_TYPE_NORMAL) {
		pci_err(pdev, "a bridge cannot be shared\n");
		return -ENODEV;
	}
	e = sio_event_new(sizeof(struct sio_evt_device_state));
	if (!e)
		return -ENOMEM;
	error = enable(pdev);
	if (error)
		goto free_event;
	pci_reset_function_locked(pdev); /* if it can: firmware may have left it at work */
	mutex_lock(&sio.lock);
	d = dev_of(pdev);
	if (d) {
		d->pdev = pdev;
		d->going = false;
		d->generation++;
		read_msix(d);
		pci_set_drvdata(pdev, d);
		watch_faults(d, true);
		tell_state(d, e, SIO_EV_DEVICE_BACK);
	}
	mutex_unlock(&sio.lock);
	if (d)
		return 0;
	error = -ENOMEM;
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
free_event:
	sio_event_free(e);
	return error;
}

/*
 * Unbound, unplugged, or the module goes. First nobody reaches the function any more, then it stops
 * sending, and only then is what it could write to let go.
 */
static void remove(struct pci_dev *pdev)
{
	struct sio_event *e = sio_event_new(sizeof(struct sio_evt_device_state));
	struct sio_dev *d = pci_get_drvdata(pdev);

	mutex_lock(&sio.lock);
	d->going = true;
	sio_bars_revoke(d);
	mutex_unlock(&sio.lock);
	flush_work(&d->reset_work); /* it does not wait for the device's lock, which we have */
	pci_clear_master(pdev);
	if (pci_device_is_present(pdev) && pci_reset_function_locked(pdev) &&
	    !pci_wait_for_pending_transaction(pdev))
		pci_warn(pdev, "cannot be reset, and does not finish what it had begun\n");
	pci_clear_master(pdev); /* which a reset restores */
	watch_faults(d, false);
	mutex_lock(&sio.lock);
	sio_vectors_free(d);
	sio_dmamaps_lose(d);
	if (d->opened)
		d->opened->stale = true;
	d->pdev = NULL;
	d->generation++;
	sio_fall();
	sio_owners_bury();
	if (e)
		tell_state(d, e, SIO_EV_DEVICE_GONE);
	mutex_unlock(&sio.lock);
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
}

struct pci_driver sio_pci_driver = {
	.name = "smartio",
	.probe = probe,
	.remove = remove,
};

/* ---- DEVICE_LIST, DEVICE_OPEN, DEVICE_CLOSE ---- */

static u32 count_functions(struct pci_dev *pdev)
{
	u32 n = 0;

	for (unsigned int i = 0; i < 8; i++) {
		struct pci_dev *other =
			pci_get_domain_bus_and_slot(pci_domain_nr(pdev->bus), pdev->bus->number,
						    PCI_DEVFN(PCI_SLOT(pdev->devfn), i));

		n += !!other;
		pci_dev_put(other);
	}
	return n;
}

static void answer_device(struct sio_request *rq, struct sio_dev *d)
{
	struct sio_evt_device *evt = sio_answer(rq, sizeof(*evt));
	struct pci_dev *pdev = d->pdev;
	struct iommu_group *group = iommu_group_get(&pdev->dev);

	evt->id = d->id;
	evt->generation = d->generation;
	evt->serial = pci_get_dsn(pdev);
	for (unsigned int i = 0; i < SIO_DEVICE_BARS; i++) {
		if (!(pci_resource_flags(pdev, i) & IORESOURCE_MEM))
			continue;
		evt->bar_size[i] = pci_resource_len(pdev, i);
		evt->bar_addr[i] = pci_resource_start(pdev, i);
	}
	evt->bdf = d->bdf;
	evt->slot = PCI_SLOT(pdev->devfn);
	evt->class_code = pdev->class;
	evt->vendor = pdev->vendor;
	evt->device = pdev->device;
	evt->subsys_vendor = pdev->subsystem_vendor;
	evt->subsys_device = pdev->subsystem_device;
	evt->functions = count_functions(pdev);
	evt->msix_count = d->msix_count;
	evt->msix_bar = d->msix_bar;
	evt->msix_offset = d->msix_offset;
	evt->dma_bits = fls64(dma_get_mask(&pdev->dev));
	evt->iommu_group = group ? iommu_group_id(group) : 0;
	evt->iommu_mode = sio_dev_iommu(d);
	evt->resets = pdev->reset_methods[0] ? 1u << SIO_RESET_FUNCTION : 0;
	evt->present = 1;
	strscpy(evt->name, pci_name(pdev), sizeof(evt->name));
	iommu_group_put(group);
}

int sio_op_device_list(struct sio_request *rq, const void *msg)
{
	const struct sio_req_device_list *m = msg;
	struct sio_dev *d, *best = NULL;

	list_for_each_entry(d, &sio.devices, node)
		if (d->pdev && !d->going && d->id > m->after && (!best || d->id < best->id))
			best = d;
	if (!best)
		return sio_fail(rq, -ENOENT, "no device is bound behind %#llx", m->after);
	answer_device(rq, best);
	return 0;
}

/* An open device changes hands; what is mapped for it stays. So is one opened that came back. */
static void take_over(struct sio_request *rq, struct sio_opened *o)
{
	o->o.owner->n_objects--;
	list_move_tail(&o->o.of_owner, &rq->owner->objects);
	list_del_init(&o->o.falling);
	o->o.owner = rq->owner;
	o->o.owner->n_objects++;
	o->o.state = SIO_STATE_LIVE;
	o->stale = false;
}

int sio_op_device_open(struct sio_request *rq, const void *msg)
{
	const struct sio_req_device_open *m = msg;
	struct sio_dev *d = sio_dev_find(m->device);
	struct sio_opened *o;
	int error;

	if (!d)
		return sio_fail(rq, -ENODEV, "no device %#llx is here", m->device);
	if (d->opened && !d->opened->stale && !(m->h.flags & SIO_DEVICE_FORCE))
		return sio_fail(rq, -EBUSY, "%s is open for owner %#llx", pci_name(d->pdev),
				d->opened->o.owner->o.id);
	if (d->opened) {
		take_over(rq, d->opened);
		pci_set_master(d->pdev);
		answer_device(rq, d);
		return 0;
	}
	o = kzalloc(sizeof(*o), GFP_KERNEL);
	if (!o)
		return -ENOMEM;
	error = sio_obj_init(rq, &o->o, SIO_KIND_DEVICE, d->id);
	if (error) {
		kfree(o);
		return error;
	}
	o->dev = d;
	d->opened = o;
	pci_set_master(d->pdev);
	answer_device(rq, d);
	return 0;
}

void sio_opened_end(struct sio_opened *o)
{
	struct sio_dev *d = o->dev;

	d->opened = NULL;
	if (!d->pdev)
		return;
	sio_vectors_free(d);
	pci_clear_master(d->pdev);
}
