// SPDX-License-Identifier: GPL-2.0-only
/* Functions that are bound to smartio.ko by driver_override: probe and removal, opening, resets. */
#include <linux/delay.h>
#include <linux/dma-mapping.h>

#include "adapter.h"

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
	init_waitqueue_head(&d->reset_over);
	list_add_tail(&d->node, &sio.devices); /* in the order of ids */
	return d;
}

/* ---- coming and going ---- */

static void tell(const struct sio_dev *d, u32 op)
{
	struct sio_evt_device_state evt = {.device = d->id, .generation = d->generation};

	sio_event(op, &evt, sizeof(evt));
}

static int enable(struct pci_dev *pdev)
{
	int error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));

	if (error)
		return error;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	dma_set_seg_boundary(&pdev->dev, ULONG_MAX);
	error = pci_enable_device_mem(pdev);
	if (error)
		return error;
	error = pci_request_mem_regions(pdev, "smartio");
	if (error)
		pci_disable_device(pdev);
	return error;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct sio_dev *d;
	u32 table;
	int error;

	mutex_lock(&sio.lock);
	d = dev_of(pdev);
	mutex_unlock(&sio.lock);
	error = d ? enable(pdev) : -ENOMEM;
	if (error)
		return error;
	pci_reset_function_locked(pdev); /* if it can: firmware may have left it at work */
	mutex_lock(&sio.lock);
	d->pdev = pdev;
	d->going = false;
	d->generation++;
	d->msix_count = max(pci_msix_vec_count(pdev), 0);
	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_TABLE, &table);
	d->msix_bar = table & PCI_MSIX_TABLE_BIR;
	d->msix_offset = table & PCI_MSIX_TABLE_OFFSET;
	pci_set_drvdata(pdev, d);
	tell(d, SIO_EV_DEVICE_BACK);
	mutex_unlock(&sio.lock);
	return 0;
}

/*
 * The answer of a read comes behind what the function had sent; that of one that is not there any
 * more has passed the bridge above it, which answers.
 */
static void drain(struct pci_dev *pdev)
{
	struct pci_dev *at = pci_device_is_present(pdev) ? pdev : pci_upstream_bridge(pdev);
	u16 command;

	if (at)
		pci_read_config_word(at, PCI_COMMAND, &command);
}

/*
 * Unbound, unplugged, or the module goes. First nobody reaches the function any more, then it stops
 * sending, and only then is what it could write to released.
 */
static void remove(struct pci_dev *pdev)
{
	struct sio_dev *d = pci_get_drvdata(pdev);

	mutex_lock(&sio.lock);
	d->going = true;
	sio_bars_revoke(d);
	mutex_unlock(&sio.lock);
	wait_event(d->reset_over, !READ_ONCE(d->resetting)); /* it gives up: we have the device */
	pci_clear_master(pdev);
	if (pci_device_is_present(pdev) && pci_reset_function_locked(pdev) &&
	    !pci_wait_for_pending_transaction(pdev))
		pci_warn(pdev, "cannot be reset, and does not finish what it had begun\n");
	pci_clear_master(pdev); /* which a reset restores */
	drain(pdev);
	mutex_lock(&sio.lock);
	sio_dmamaps_push(d);
	mutex_unlock(&sio.lock);
	sio_settle();
	mutex_lock(&sio.lock);
	sio_vectors_free(d);
	sio_dmamaps_lose(d);
	sio_domain_rest(d);
	d->open = false;
	d->pdev = NULL;
	d->generation++;
	tell(d, SIO_EV_DEVICE_GONE);
	sio_fall();
	mutex_unlock(&sio.lock);
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
}

struct pci_driver sio_pci_driver = {
	.name = "smartio",
	.probe = probe,
	.remove = remove,
};

static size_t list_count(const struct list_head *list)
{
	const struct list_head *at;
	size_t n = 0;

	list_for_each(at, list) n++;
	return n;
}

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
	evt->present = 1 + d->open;
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

/* Devices are the daemon's, which looks whether it has it open. What is made of it stays. */
int sio_op_device_open(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_device_open *m = msg;

	if (m->h.owner)
		return sio_fail(rq, -EINVAL, "devices are the daemon's: h.owner %#llx, 0 is right",
				m->h.owner);
	rq->dev->open = true;
	if (!rq->dev->silenced)
		pci_set_master(rq->dev->pdev);
	return answer_device(rq->dev, answer);
}

int sio_op_device_close(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_device_close *m = msg;

	if (!rq->dev || !rq->dev->open)
		return sio_fail(rq, -ENOENT, "no open device %#llx", m->device);
	if (!list_empty(&rq->dev->objects))
		return sio_fail(rq, -EBUSY, "%zu mappings, views or vectors of %s are left",
				list_count(&rq->dev->objects), pci_name(rq->dev->pdev));
	rq->dev->open = false;
	sio_vectors_free(rq->dev);
	pci_clear_master(rq->dev->pdev);
	sio_domain_rest(rq->dev);
	return 0;
}

/* ---- CONFIG ---- */

/*
 * Of configuration space smartiod reads and writes all but the bus master bit. A device that was
 * told to be silent has been when this ends: the answer of a read pushes what it had sent before
 * out of it, and through the windows to peers, from where the read of a word comes back behind it.
 */
static void stop(struct sio_dev *d)
{
	pci_clear_master(d->pdev);
	drain(d->pdev);
	sio_dmamaps_push(d);
}

int sio_op_config(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_config *m = msg;
	struct sio_evt_config *evt = answer;
	u16 command;

	if (!(m->h.flags & SIO_CONFIG_WRITE) || m->offset != PCI_COMMAND || m->width != 2 ||
	    m->mask != PCI_COMMAND_MASTER)
		return sio_fail(
			rq, -EOPNOTSUPP,
			"%u bytes at %#x, mask %#x: the kernel module writes the bus master bit alone",
			m->width, m->offset, m->mask);
	if (m->value & PCI_COMMAND_MASTER && rq->dev->silenced)
		return sio_fail(rq, -EBUSY,
				"memory that %s had was taken back by its driver: a reset is next",
				pci_name(rq->dev->pdev));
	if (m->value & PCI_COMMAND_MASTER)
		pci_set_master(rq->dev->pdev);
	else
		stop(rq->dev);
	pci_read_config_word(rq->dev->pdev, PCI_COMMAND, &command);
	evt->value = command;
	return 0;
}

/* ---- RESET ---- */

/*
 * Whoever unbinds the driver has the device's lock and waits for us: so we only try for it, and
 * give up when the device is going. Also the administrator's own reset through sysfs holds it for a
 * while.
 */
static int try_reset(struct sio_request *rq, struct sio_dev *d)
{
	int error = -EAGAIN;

	for (unsigned int i = 0; i < RESET_TRIES && error == -EAGAIN && !READ_ONCE(d->going); i++) {
		if (i)
			msleep(RESET_TRY_MS);
		error = pci_try_reset_function(d->pdev);
	}
	if (error == -ENOTTY)
		return sio_fail(rq, -EOPNOTSUPP, "the kernel has no such reset for it");
	if (error == -EAGAIN)
		return sio_fail(rq, -EBUSY, "somebody else resets or unbinds it, for %u ms already",
				RESET_TRIES * RESET_TRY_MS);
	return error;
}

/*
 * It takes from 100 ms to seconds, so others have sio.lock meanwhile. CPU mappings of the device's
 * pages are out of place and who touches them waits; requests about the device are refused.
 */
int sio_op_reset(struct sio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_reset *m = msg;
	struct sio_evt_reset *evt = answer;
	struct sio_dev *d = rq->dev;
	u64 epoch, generation;
	int error;

	if (m->kind == SIO_RESET_BUS)
		return sio_fail(rq, -EOPNOTSUPP, "no bus is reset; the function is, by kind %d",
				SIO_RESET_FUNCTION);
	if (m->h.flags & SIO_RESET_KEEP_DOORBELLS && m->kind == SIO_RESET_DONE)
		return sio_fail(rq, -EINVAL,
				"doorbells can be kept over a reset, not over the report of one");
	if (m->kind != SIO_RESET_FUNCTION && m->kind != SIO_RESET_DONE)
		return sio_fail(rq, -EINVAL, "kind %u, %d (function) or %d is right", m->kind,
				SIO_RESET_FUNCTION, SIO_RESET_DONE);
	/* Whoever ends from now on may have had queues that the reset did not find. */
	epoch = sio.epoch++;
	generation = d->generation;
	sio_bars_hold(d);
	mutex_unlock(&sio.lock);
	error = m->kind == SIO_RESET_DONE ? 0 : try_reset(rq, d);
	mutex_lock(&sio.lock);
	sio_bars_resume(d);
	if (d->going || d->generation != generation)
		return sio_fail(rq, -ENODEV, "device %#llx went while it was reset", d->id);
	if (error)
		return error;
	if (d->silenced) /* what it was told before is forgotten */
		pci_set_master(d->pdev);
	d->silenced = false;
	evt->generation = ++d->generation;
	evt->freed = sio_dmamaps_settle(d, epoch);
	if (m->kind == SIO_RESET_FUNCTION)
		sio_domain_rest(d);
	return 0;
}
