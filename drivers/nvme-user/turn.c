/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a queue pair while all are taken. The manager triggers a data interrupt of this wait
 * when one comes free. Another client may be quicker; then the manager is asked again, and waited
 * for. The wait does not hold the client's lock: other threads go on, and may close what this one
 * waits for. A manager that serves again is an event of the device. The death of a manager has no
 * event, so once a second the client checks for it, which costs the manager nothing.
 */
#include <errno.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "smartio/ext.h"

#define LOOK_MS 1000u

int sio_nvme_turn_open(struct smartio_nvme *n, uint32_t timeout_ms, struct sio_nvme_turn *t)
{
	sci_error_t err;

	t->notice = NULL;
	if (timeout_ms == 0)
		return 0;
	t->deadline = timeout_ms == UINT32_MAX ? UINT64_MAX : sio_nvme_deadline(timeout_ms);
	/* The manager may reach us by another adapter than that to the lender. */
	SCICreateDataInterrupt(n->d.sd, &t->notice, SMARTIO_ALL_ADAPTERS, &t->number, NULL, NULL, 0,
			       &err);
	if (err == SCI_ERR_OK)
		return 0;
	t->notice = NULL;
	return sio_nvme_fail_sci(err, "no data interrupt to wait for a queue pair");
}

void sio_nvme_turn_close(struct sio_nvme_turn *t)
{
	sci_error_t err;

	if (t->notice)
		SCIRemoveDataInterrupt(t->notice, 0, &err);
	t->notice = NULL;
}

static void take_notices(const struct smartio_nvme *n, sci_smartio_device_t handle,
			 const struct sio_nvme_turn *t)
{
	uint8_t message[sizeof(n->message)];
	sci_error_t err;

	/* Whatever it is, it means that the manager is asked again. */
	do {
		unsigned len = sizeof(message);

		SCIWaitForDataInterrupt(t->notice, message, &len, 0, 0, &err);
	} while (err == SCI_ERR_OK);
	sio_nvme_take_events(handle);
}

/* Under the lock: is the manager that knows of our wait still there? */
static int look_for_manager(struct smartio_nvme *n, uint64_t instance)
{
	int rc = sio_nvme_find_serving(n);

	if (rc == 0 && n->meta.instance != instance)
		return 1;
	return rc;
}

int sio_nvme_turn_wait(struct smartio_nvme_queue *q, const struct sio_nvme_turn *t)
{
	const uint64_t instance = q->leg->meta.instance;
	struct smartio_nvme *n = q->n;

	for (;;) {
		const sci_smartio_device_t handle = q->leg->d.handle;
		uint64_t now = smartio_now_ns(), ms = LOOK_MS;
		sci_error_t err;
		int rc;

		if (now >= t->deadline)
			return 0;
		if ((t->deadline - now) / 1000000 < ms)
			ms = (t->deadline - now + 999999) / 1000000;
		/* The borrow stays, for the queue has memory of it, but another leg may have it. */
		sio_nvme_unlock(n);
		smartio_wait_events(handle, t->notice, (unsigned)ms, &err);
		if (err == SCI_ERR_OK)
			take_notices(n, handle, t);
		sio_nvme_lock(n);
		if (smartio_device_lost(handle))
			return sio_nvme_fail(-ENODEV, "%s or its host is gone", n->d.name);
		if (err == SCI_ERR_OK)
			return 1;
		if (err != SCI_ERR_TIMEOUT)
			return sio_nvme_fail_sci(err, "%s: cannot wait for a queue pair",
						 n->d.name);
		rc = look_for_manager(q->leg, instance);
		if (rc)
			return rc;
	}
}
