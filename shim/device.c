// SPDX-License-Identifier: GPL-2.0-only
/* Functions bound to us by driver_override: their coming and going, opening, resets. */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>

#include "smartio.h"

#define RESET_TRIES 250
#define RESET_TRY_MS 20

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
	if (!d->opened || d->stale)
		return sio_fail(rq, -EPERM, "%s is not open; DEVICE_OPEN first", pci_name(d->pdev));
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

/* The place, known from before or new. */
static struct sio_dev *dev_of(struct pci_dev *pdev)
{
	u32 bdf = (u32)pci_domain_nr(pdev->bus) << 16 | pci_dev_id(pdev);
	struct sio_dev *d;

	list_for_each_entry(d, &sio.devices, node)
		if (d->bdf == bdf)
			return d;
	d = kzalloc(sizeof(*d), GFP_KERNEL);
	if (!d)
		return NULL;
	d->bdf = bdf;
	d->id = ++sio.last_device;
	INIT_LIST_HEAD(&d->objects);
	init_rwsem(&d->views);
	init_waitqueue_head(&d->wait);
	list_add_tail(&d->node, &sio.devices); /* in the order of ids */
	return d;
}

void sio_devices_free(void)
{
	struct sio_dev *d, *tmp;

	list_for_each_entry_safe(d, tmp, &sio.devices, node)
		kfree(d);
}

/* ---- coming and going ---- */

static void tell_state(struct sio_dev *d, u32 op)
{
	union sio_news n = {.device.device = d->id, .device.generation = d->generation};

	sio_tell(&n, op, sizeof(n.device));
}

static void read_msix(struct sio_dev *d)
{
	u32 table = 0;

	d->msix_count = max(pci_msix_vec_count(d->pdev), 0);
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
	struct sio_dev *d;
	int error;

	if (pdev->hdr_type != PCI_HEADER_TYPE_NORMAL) {
		pci_err(pdev, "a bridge cannot be shared\n");
		return -ENODEV;
	}
	error = enable(pdev);
	if (error)
		return error;
	pci_reset_function_locked(pdev); /* if it can: firmware may have left it at work */
	mutex_lock(&sio.lock);
	d = dev_of(pdev);
	if (d) {
		d->pdev = pdev;
		d->going = false;
		d->generation++;
		read_msix(d);
		pci_set_drvdata(pdev, d);
		tell_state(d, SIO_EV_DEVICE_BACK);
	}
	mutex_unlock(&sio.lock);
	if (d)
		return 0;
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
	return -ENOMEM;
}

/*
 * Unbound, unplugged, or the module goes. First nobody reaches the function any more, then it stops
 * sending, and only then is what it could write to let go.
 */
static void remove(struct pci_dev *pdev)
{
	struct sio_dev *d = pci_get_drvdata(pdev);

	mutex_lock(&sio.lock);
	d->going = true;
	sio_bars_revoke(d);
	mutex_unlock(&sio.lock);
	wait_event(d->wait, !READ_ONCE(d->resetting)); /* it gives up: we have the device's lock */
	pci_clear_master(pdev);
	if (pci_device_is_present(pdev) && pci_reset_function_locked(pdev) &&
	    !pci_wait_for_pending_transaction(pdev))
		pci_warn(pdev, "cannot be reset, and does not finish what it had begun\n");
	pci_clear_master(pdev); /* which a reset restores */
	mutex_lock(&sio.lock);
	sio_vectors_free(d);
	sio_dmamaps_lose(d);
	d->stale = true;
	d->pdev = NULL;
	d->generation++;
	sio_fall();
	sio_owners_bury();
	tell_state(d, SIO_EV_DEVICE_GONE);
	mutex_unlock(&sio.lock);
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
}

static ssize_t interrupts_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct sio_dev *d = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%lld\n", atomic64_read(&d->interrupts));
}
static DEVICE_ATTR_RO(interrupts);

static struct attribute *device_attrs[] = {&dev_attr_interrupts.attr, NULL};
ATTRIBUTE_GROUPS(device);

struct pci_driver sio_pci_driver = {
	.name = "smartio",
	.probe = probe,
	.remove = remove,
	.dev_groups = device_groups,
};

/* ---- DEVICE_LIST, DEVICE_OPEN, DEVICE_CLOSE ---- */

/* What sysfs does not tell, or not of a place that keeps its number. */
static int answer_device(struct sio_dev *d, struct sio_evt_device *evt)
{
	evt->id = d->id;
	evt->generation = d->generation;
	evt->bdf = d->bdf;
	evt->msix_count = d->msix_count;
	evt->msix_bar = d->msix_bar;
	evt->msix_offset = d->msix_offset;
	evt->iommu_mode = sio_dev_iommu(d);
	evt->present = 1;
	strscpy(evt->name, pci_name(d->pdev), sizeof(evt->name));
	return 0;
}

int sio_op_device_list(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_device_list *m = msg;
	struct sio_dev *d;

	list_for_each_entry(d, &sio.devices, node)
		if (d->id > m->after && sio_dev_find(d->id))
			return answer_device(d, answer);
	return sio_fail(rq, -ENOENT, "no device is bound behind %#llx", m->after);
}

/* With force an open device changes hands; what is mapped for it stays. Also if it came back. */
int sio_op_device_open(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_device_open *m = msg;
	struct sio_dev *d = sio_dev_find(m->device);
	struct sio_obj *o;

	if (!d)
		return sio_fail(rq, -ENODEV, "no device %#llx is here", m->device);
	if (d->opened && !d->stale && !(m->h.flags & SIO_DEVICE_FORCE))
		return sio_fail(rq, -EBUSY, "%s is open for owner %#llx", pci_name(d->pdev),
				d->opened->owner->o.id);
	if (d->opened) {
		sio_obj_move(d->opened, rq->owner);
	} else {
		o = sio_obj_new(rq, SIO_KIND_DEVICE, d->id);
		if (IS_ERR(o))
			return PTR_ERR(o);
		o->dev = d;
		d->opened = o;
	}
	d->stale = false;
	pci_set_master(d->pdev);
	return answer_device(d, answer);
}

static void opened_end(struct sio_obj *o)
{
	struct sio_dev *d = o->dev;

	d->opened = NULL;
	if (!d->pdev)
		return;
	sio_vectors_free(d);
	pci_clear_master(d->pdev);
}

const struct sio_kind sio_kind_opened = {
	.name = "open device",
	.size = sizeof(struct sio_obj),
	.end = opened_end,
};

/* ---- RESET ---- */

/*
 * Whoever unbinds the driver has the device's lock and waits for us: so we only try for it, and
 * give up when the device is going. Also the administrator's own reset through sysfs holds it for a
 * while.
 */
static int try_reset(struct sio_dev *d)
{
	int error = -EAGAIN;

	for (unsigned int i = 0; i < RESET_TRIES && error == -EAGAIN && !READ_ONCE(d->going); i++) {
		if (i)
			msleep(RESET_TRY_MS);
		error = pci_try_reset_function(d->pdev);
	}
	if (error == -ENOTTY)
		return -EOPNOTSUPP;
	return error == -EAGAIN ? -EBUSY : error;
}

/*
 * It takes from 100 ms to seconds, so others have sio.lock meanwhile. CPU mappings of the device's
 * pages are out of place and who touches them waits; requests about the device are refused.
 */
int sio_op_reset(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_reset *m = msg;
	struct sio_evt_reset *evt = answer;
	struct sio_dev *d;
	u64 epoch;
	int error = sio_dev_get(rq, m->device, &d);

	if (error)
		return error;
	if (m->kind == SIO_RESET_BUS)
		return sio_fail(rq, -EOPNOTSUPP, "a bus is not reset");
	error = sio_check(rq, "kind", m->kind, SIO_RESET_FUNCTION, SIO_RESET_FUNCTION);
	if (error)
		return error;
	/* Who ends from now on may have had queues that the reset did not find. */
	epoch = sio.epoch++;
	sio_obj_ref(d->opened); /* it stays open */
	sio_bars_hold(d, true);
	mutex_unlock(&sio.lock);
	error = try_reset(d);
	mutex_lock(&sio.lock);
	sio_obj_unref(d->opened);
	if (d->going) {
		error = sio_fail(rq, -ENODEV, "the device went away");
	} else if (error) {
		sio_fail(rq, error, "%s cannot be reset now (%d)", pci_name(d->pdev), error);
	} else {
		evt->generation = ++d->generation;
		evt->freed = sio_dmamaps_settle(d, 0, epoch);
	}
	sio_bars_hold(d, false);
	return error;
}
