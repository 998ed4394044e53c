// SPDX-License-Identifier: GPL-2.0-only
/*
 * RESET takes from 100 ms to seconds, so a worker does it. Meanwhile CPU mappings of the device's
 * pages are out of place and who touches them waits; requests that name the device wait in a list.
 */
#include <linux/delay.h>

#include "smartio.h"

#define TRIES 250
#define TRY_MS 20

int sio_op_reset(struct sio_request *rq, const void *msg)
{
	const struct sio_req_reset *m = msg;
	struct sio_dev *d;
	int error = sio_dev_get(rq, m->device, &d);

	if (error)
		return error;
	if (m->kind == SIO_RESET_BUS ||
	    (m->kind == SIO_RESET_FUNCTION && !d->pdev->reset_methods[0]))
		return sio_fail(rq, -EOPNOTSUPP, "the kernel has no %s reset for %s",
				m->kind == SIO_RESET_BUS ? "bus" : "function", pci_name(d->pdev));
	if (m->kind != SIO_RESET_FUNCTION)
		return sio_fail(rq, -EINVAL, "kind %u, %d (function) is right", m->kind,
				SIO_RESET_FUNCTION);
	d->reset = rq;
	queue_work(sio.work, &d->reset_work);
	return SIO_LATER;
}

/*
 * Whoever unbinds the driver has the device's lock and waits for us: so we only try for it, and
 * give up when the device is going. Also the administrator's own reset through sysfs holds it for a
 * while.
 */
static int try_reset(struct sio_dev *d, struct pci_dev *pdev)
{
	int error = -EAGAIN;

	for (unsigned int i = 0; i < TRIES && error == -EAGAIN && !READ_ONCE(d->going); i++) {
		if (i)
			msleep(TRY_MS);
		error = pci_try_reset_function(pdev);
	}
	return error;
}

static void finish(struct sio_dev *d, struct sio_request *rq, u64 epoch, int error)
{
	struct sio_evt_reset *evt;

	if (d->going) {
		error = sio_fail(rq, -ENODEV, "the device went away");
	} else if (error) {
		sio_fail(rq, error, "%s cannot be reset now (%d)", pci_name(d->pdev), error);
	} else {
		d->generation++;
		evt = sio_answer(rq, sizeof(*evt));
		evt->generation = d->generation;
		evt->freed = sio_dmamaps_settle(d, 0, epoch);
	}
	sio_finish(rq, error);
}

void sio_reset_work(struct work_struct *work)
{
	struct sio_dev *d = container_of(work, struct sio_dev, reset_work);
	struct sio_request *rq, *tmp;
	struct pci_dev *pdev;
	LIST_HEAD(behind);
	int error;
	u64 epoch;

	mutex_lock(&sio.lock);
	rq = d->reset;
	pdev = pci_dev_get(d->pdev);
	/* Who ends from now on may have had queues that the reset did not find. */
	epoch = sio.epoch++;
	sio_bars_hold(d);
	mutex_unlock(&sio.lock);

	error = try_reset(d, pdev);
	sio_bars_let(d);

	mutex_lock(&sio.lock);
	d->reset = NULL;
	finish(d, rq, epoch, error);
	list_splice_init(&d->behind, &behind);
	list_for_each_entry_safe(rq, tmp, &behind, node) {
		list_del(&rq->node);
		if (d->reset)
			list_add_tail(&rq->node, &d->behind);
		else
			sio_run(rq);
	}
	mutex_unlock(&sio.lock);
	pci_dev_put(pdev);
}
