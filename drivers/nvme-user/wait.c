/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a manager that does not serve yet. A client that has borrowed the drive sleeps until
 * an event: the manager's reset is one. Two things have no event, so they are checked again after a
 * pause: the end of an exclusive borrow (a manager's, until it serves), for a client that has no
 * borrow yet, and the time between a manager's reset and its serving.
 */
#include "client.h"
#include "smartio/ext.h"

#define FIRST_PAUSE_MS 1u
#define LAST_PAUSE_MS 64u

void sio_nvme_wait_start(struct sio_nvme_wait *w, uint32_t timeout_ms)
{
	w->deadline = timeout_ms == UINT32_MAX ? UINT64_MAX : sio_nvme_deadline(timeout_ms);
	w->pause_ms = FIRST_PAUSE_MS;
}

void sio_nvme_take_events(sci_smartio_device_t device)
{
	struct smartio_device_event e;
	sci_error_t err;

	do
		smartio_wait_device_event(device, &e, 0, &err);
	while (err == SCI_ERR_OK);
}

bool sio_nvme_wait_more(struct sio_nvme_wait *w, sci_smartio_device_t device)
{
	uint64_t now = smartio_now_ns(), left_ms;
	unsigned ms = w->pause_ms;
	sci_error_t err;

	if (now >= w->deadline)
		return false;
	left_ms = (w->deadline - now + 999999) / 1000000;
	if (left_ms < ms)
		ms = (unsigned)left_ms;
	if (w->pause_ms < LAST_PAUSE_MS)
		w->pause_ms *= 2;
	smartio_wait_events(device, NULL, ms, &err);
	if (err == SCI_ERR_OK && device) {
		sio_nvme_take_events(device);
		w->pause_ms = FIRST_PAUSE_MS;
	} else if (err != SCI_ERR_TIMEOUT) {
		/* The device is lost: the next look says so, if not at once. */
		smartio_wait_events(NULL, NULL, ms, &err);
	}
	return true;
}
