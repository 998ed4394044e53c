/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a manager that does not serve yet, without polling. A client that has no borrow yet
 * is told by its host's smartiod when nobody has the drive exclusively any more. One that has
 * borrowed the drive sleeps until an event: a manager that has published itself sends all borrowers
 * a notice.
 */
#include <errno.h>
#include <stdio.h>

#include "smartio/ext.h"
#include "wait.h"

#define FIRST_PAUSE_MS 1u
#define LAST_PAUSE_MS 64u

void sio_nvme_wait_start(struct sio_nvme_wait *w, uint32_t timeout_ms)
{
	w->deadline = timeout_ms == UINT32_MAX ? UINT64_MAX : sio_nvme_deadline(timeout_ms);
	w->pause_ms = FIRST_PAUSE_MS;
	w->refused = false;
}

/* Milliseconds until the deadline, rounded up; SCI_INFINITE_TIMEOUT: there is none; 0: over. */
static unsigned left_ms(const struct sio_nvme_wait *w)
{
	uint64_t now = smartio_now_ns(), ms;

	if (w->deadline == UINT64_MAX)
		return SCI_INFINITE_TIMEOUT;
	if (now >= w->deadline)
		return 0;
	ms = (w->deadline - now + 999999) / 1000000;
	return ms < SCI_INFINITE_TIMEOUT ? (unsigned)ms : SCI_INFINITE_TIMEOUT - 1;
}

/* The next pause, which is longer than the one before, as far as there is time for it. */
static unsigned pause_ms(struct sio_nvme_wait *w, unsigned left)
{
	unsigned ms = w->pause_ms < left ? w->pause_ms : left;

	if (w->pause_ms < LAST_PAUSE_MS)
		w->pause_ms *= 2;
	return ms;
}

void sio_nvme_take_events(sci_smartio_device_t device)
{
	struct smartio_device_event e;
	sci_error_t err;

	do
		smartio_wait_device_event(device, &e, 0, &err);
	while (err == SCI_ERR_OK);
}

/* Sleeps until nobody has it exclusively. Return: false: the deadline has passed. */
static bool wait_free(struct sio_nvme_wait *w, unsigned fdid)
{
	unsigned left = left_ms(w);
	sci_error_t err = SCI_ERR_OK;
	char number[16];

	if (left == 0)
		return false;
	/*
	 * It was free, and was refused all the same: others were faster, or the lender has another
	 * reason, whose end nobody reports.
	 */
	if (w->refused)
		smartio_wait_events(NULL, NULL, pause_ms(w, left), &err);
	snprintf(number, sizeof(number), "%#x", fdid);
	smartio_await_device(number, SMARTIO_AWAIT_SHARED, left_ms(w), &fdid, &err);
	w->refused = err != SCI_ERR_TIMEOUT;
	return true;
}

int sio_nvme_wait_borrow(struct sio_nvme_wait *w, struct sio_nvme_device *d)
{
	int rc;

	do
		rc = sio_nvme_device_borrow(d, 0);
	while (rc == -EBUSY && wait_free(w, d->fdid));
	return rc;
}

/* @ms: 0: until the next event. */
static bool wait_event(struct sio_nvme_wait *w, sci_smartio_device_t device, unsigned ms)
{
	unsigned left = left_ms(w);
	sci_error_t err;

	if (left == 0)
		return false;
	smartio_wait_events(device, NULL, ms && ms < left ? ms : left, &err);
	if (err == SCI_ERR_OK) {
		sio_nvme_take_events(device);
	} else if (err != SCI_ERR_TIMEOUT) {
		/* The device is lost: the next look says so, if not at once. */
		smartio_wait_events(NULL, NULL, pause_ms(w, left), &err);
	}
	return true;
}

bool sio_nvme_wait_event(struct sio_nvme_wait *w, sci_smartio_device_t device)
{
	return wait_event(w, device, 0);
}

bool sio_nvme_wait_slice(struct sio_nvme_wait *w, sci_smartio_device_t device)
{
	return wait_event(w, device, pause_ms(w, LAST_PAUSE_MS));
}
