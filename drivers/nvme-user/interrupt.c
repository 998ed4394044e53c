/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interrupt of a queue: a vector of the drive triggers an interrupt of this host. The vector of
 * a pair that programs share is its maker's, and triggers an interrupt that each of them owns
 * (SCI_FLAG_SHARED_INT): every completion wakes all that sleep, whichever of them takes it from the
 * common queue. When the maker ends its vector does, and with it the pair.
 */
#include <errno.h>

#include "client.h"
#include "error.h"
#include "smartio/ext.h"

static int tie(struct smartio_nvme_queue *q, unsigned number)
{
	struct sio_nvme_device *d = &q->leg->d;
	unsigned vector = SMARTIO_ANY_VECTOR;
	sci_remote_interrupt_t to;
	sci_error_t err, ignored;

	SCIConnectInterrupt(d->sd, &to, d->node, d->adapter, number, SCI_INFINITE_TIMEOUT, 0, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "cannot reach interrupt %u of this host", number);
	smartio_connect_device_interrupt(d->handle, &vector, to, &err);
	SCIDisconnectInterrupt(to, 0, &ignored);
	if (err == SCI_ERR_HW_NOSPC)
		return sio_nvme_fail(-EBUSY, "all interrupt vectors of %s are taken", d->name);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: no interrupt vector", d->name);
	q->vector = vector;
	return 0;
}

static sci_error_t create(struct smartio_nvme_queue *q, unsigned *number, unsigned flags)
{
	sci_error_t err;

	SCICreateInterrupt(q->leg->d.sd, &q->interrupt, q->leg->d.adapter, number, NULL, NULL,
			   flags, &err);
	if (err != SCI_ERR_OK)
		q->interrupt = NULL;
	return err;
}

int sio_nvme_interrupt_open(struct smartio_nvme_queue *q, unsigned *ret_shared)
{
	unsigned number = 0;
	sci_error_t err = create(q, &number, ret_shared ? SCI_FLAG_SHARED_INT : 0);

	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "no interrupt for completions");
	if (ret_shared)
		*ret_shared = number;
	return tie(q, number);
}

int sio_nvme_interrupt_join(struct smartio_nvme_queue *q, uint32_t shared)
{
	unsigned number = shared ? shared - 1 : 0;
	sci_error_t err =
		create(q, &number, shared ? SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO : 0);

	if (err == SCI_ERR_OK)
		return 0;
	if (err == SCI_ERR_INTNO_USED)
		return sio_nvme_fail(-EAGAIN, "a shared queue pair of %s has ended", q->n->d.name);
	return sio_nvme_fail_sci(err, "%s: no part in the interrupt of a shared queue pair",
				 q->n->d.name);
}

void sio_nvme_interrupt_close(struct smartio_nvme_queue *q)
{
	sci_error_t err;

	if (q->vector)
		SIO_NVME_UNTIL_FREE(err, smartio_disconnect_device_interrupt(q->leg->d.handle,
									     q->vector, &err));
	if (q->interrupt)
		SIO_NVME_UNTIL_FREE(err, SCIRemoveInterrupt(q->interrupt, 0, &err));
	q->vector = 0;
	q->interrupt = NULL;
}
