/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The manager: has the drive's registers and its admin queue, gives queue pairs to clients, and
 * takes back those of clients that ended. It is not on the path of I/O: when it dies, clients go
 * on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "manager.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

#define CHECK_MS 1000u	/* how often a manager that has nothing to do looks at CSTS */
#define NOTIFY_MS 1000u /* until the library reports the loss of a drive that does not answer */
#define BATCH 4096u	/* requests taken before somebody else's turn */

/* Take what waits, at most BATCH. Return: how many were served. */
static int take_requests(struct smartio_nvme_manager *m)
{
	int n = 0;

	for (unsigned i = 0; i < BATCH; i++) {
		unsigned len = sizeof(m->message);
		sci_error_t err;
		int rc;

		SCIWaitForDataInterrupt(m->interrupt, m->message, &len, 0, 0, &err);
		if (err == SCI_ERR_TIMEOUT)
			return n;
		if (err != SCI_ERR_OK)
			return sio_nvme_fail_sci(err, "%s: cannot take requests", m->d.name);
		rc = sio_nvme_manager_request(m, len);
		if (rc)
			return rc;
		n++;
	}
	return n;
}

/*
 * Nothing of the drive points to what @borrower had mapped. Return: 0; -EAGAIN: the lender could
 * not take the word (it has no memory, or does not answer): it is to be notified again; -errno.
 */
static int settle(struct smartio_nvme_manager *m, uint64_t borrower)
{
	sci_error_t err;

	smartio_device_settled(m->d.handle, borrower, &err);
	if (err == SCI_ERR_OK || err == SCI_ERR_ILLEGAL_PARAMETER) /* nothing was left of it */
		return 0;
	if (err == SCI_ERR_ACCESS || err == SCI_ERR_NOT_CONNECTED)
		return sio_nvme_fail_sci(err, "%s: cannot settle borrower %" PRIu64, m->d.name,
					 borrower);
	m->settle_at = smartio_now_ns() + CHECK_MS * 1000000ull;
	return -EAGAIN;
}

/* Without memory for a longer list what it had mapped stays until the drive is next reset. */
static void settle_later(struct smartio_nvme_manager *m, uint64_t borrower)
{
	for (unsigned i = 0; i < m->n_unsettled; i++)
		if (m->unsettled[i] == borrower)
			return;
	if (m->n_unsettled == m->max_unsettled) {
		unsigned n = m->max_unsettled ? 2 * m->max_unsettled : 16;
		uint64_t *list = realloc(m->unsettled, n * sizeof(*list));

		if (!list)
			return;
		m->unsettled = list;
		m->max_unsettled = n;
	}
	m->unsettled[m->n_unsettled++] = borrower;
}

/* Up to the first that the lender cannot take: one that does not answer takes seconds each time. */
static int settle_again(struct smartio_nvme_manager *m)
{
	int rc = 0;

	if (m->n_unsettled == 0 || smartio_now_ns() < m->settle_at)
		return 0;
	while (m->n_unsettled > 0 && rc == 0) {
		uint64_t last = m->unsettled[m->n_unsettled - 1];

		rc = settle(m, last);
		if (rc != -EAGAIN) {
			m->n_unsettled--;
			continue;
		}
		m->unsettled[m->n_unsettled - 1] = m->unsettled[0]; /* another's turn */
		m->unsettled[0] = last;
	}
	return rc == -EAGAIN ? 0 : rc;
}

/*
 * A borrower ended. What it still asks for in the ring is refused from now on; its queues go, all
 * submission queues first; then its windows and memory may.
 */
static int borrower_gone(struct smartio_nvme_manager *m, uint64_t borrower)
{
	int rc;

	/* The drive uses the admin queue of the manager before us, until it is reset. */
	if (borrower == m->record.maker)
		return 0;
	sio_nvme_ledger_end(&m->ledger, borrower);
	sio_nvme_waiters_end(&m->waiters, borrower);
	rc = take_requests(m);
	if (rc < 0)
		return rc;
	rc = sio_nvme_manager_delete_pairs(m, borrower);
	if (rc)
		return rc;
	/* Nothing of it can write any more. */
	sio_nvme_leases_end(&m->leases, borrower);
	sio_nvme_record_leases(&m->record, &m->leases);
	rc = m->n_unsettled ? -EAGAIN : settle(m, borrower);
	if (rc != -EAGAIN)
		return rc;
	settle_later(m, borrower);
	return 0;
}

static int device_event(struct smartio_nvme_manager *m, const struct smartio_device_event *e)
{
	switch (e->kind) {
	case SMARTIO_DEVICE_BORROWER_GONE:
		return borrower_gone(m, e->borrower);
	case SMARTIO_DEVICE_RESET:
		if (e->generation == m->meta.generation)
			return 0; /* our own */
		return sio_nvme_fail(-EIO, "%s was reset by its lender", m->d.name);
	case SMARTIO_DEVICE_LOST:
		return sio_nvme_fail(-ENODEV, "%s or its host is gone", m->d.name);
	default:
		return 0;
	}
}

static int take_events(struct smartio_nvme_manager *m)
{
	int n = 0;

	for (;;) {
		struct smartio_device_event e;
		sci_error_t err;
		int rc;

		smartio_wait_device_event(m->d.handle, &e, 0, &err);
		if (err == SCI_ERR_TIMEOUT)
			return n;
		if (err != SCI_ERR_OK)
			return sio_nvme_fail_sci(err, "%s: cannot take its events", m->d.name);
		rc = device_event(m, &e);
		if (rc)
			return rc;
		n++;
	}
}

/* Deaths first: what the dead asked for is then refused. */
static int serve_once(struct smartio_nvme_manager *m)
{
	int events, requests, ended, rc;

	events = take_events(m);
	if (events < 0)
		return events;
	requests = take_requests(m);
	if (requests < 0)
		return requests;
	ended = sio_nvme_manager_look(m);
	if (ended < 0)
		return ended;
	sio_nvme_manager_notify_ended(m);
	sio_nvme_manager_notify(m);
	sio_nvme_hold_look(&m->hold, &m->d);
	rc = settle_again(m);
	if (rc == 0)
		rc = sio_nvme_ctrl_check(&m->ctrl);
	return rc ? rc : events + requests + ended;
}

/* Sleep until there may be something to serve. Return: 0; 1: the deadline is over; -errno. */
static int wait_for_work(struct smartio_nvme_manager *m, uint64_t deadline)
{
	uint64_t now = smartio_now_ns(), ms = CHECK_MS;
	uint32_t pause;
	sci_error_t err;

	if (deadline <= now)
		return 1;
	if ((deadline - now) / 1000000 < ms)
		ms = (deadline - now + 999999) / 1000000;
	pause = sio_nvme_manager_pause(m);
	if (pause < ms)
		ms = pause;
	smartio_wait_events(m->d.handle, m->interrupt, (unsigned)ms, &err);
	if (err != SCI_ERR_OK && err != SCI_ERR_TIMEOUT)
		return sio_nvme_fail_sci(err, "%s: cannot wait for requests", m->d.name);
	/*
	 * m->stop says whether the manager was to end: a wake of on_other() may arrive while it
	 * serves.
	 */
	return 0;
}

/* Registers that read as ones report a loss before the library does: then it is waited for. */
static bool is_lost(struct smartio_nvme_manager *m, int rc)
{
	uint64_t deadline = sio_nvme_deadline(NOTIFY_MS);
	struct smartio_device_event e;
	sci_error_t err = SCI_ERR_OK;

	if (!m->d.handle)
		return false;
	while (rc == -ENODEV && !smartio_device_lost(m->d.handle) && err == SCI_ERR_OK &&
	       smartio_now_ns() < deadline)
		smartio_wait_device_event(m->d.handle, &e, NOTIFY_MS, &err);
	return smartio_device_lost(m->d.handle);
}

/*
 * Borrows the drive over another path, if the path to it was lost; that one may be lost meanwhile,
 * too. The daemons of the two hosts learn of a link one after the other: until both have, the path
 * that is down is chosen once more, and refused.
 */
static int reconnect(struct smartio_nvme_manager *m, int rc)
{
	uint64_t deadline = sio_nvme_deadline(NOTIFY_MS);
	unsigned n = 1000; /* sleep from the first time on */

	if (!is_lost(m, rc))
		return rc;
	for (;;) {
		rc = sio_nvme_manager_again(m);
		if (rc == 0)
			return 0;
		if (!is_lost(m, rc) && (rc != -ENETDOWN || smartio_now_ns() >= deadline))
			return sio_nvme_fail(-ENODEV, "%s or its host is gone: %s", m->d.name,
					     smartio_nvme_error());
		sio_nvme_pause(&n);
	}
}

/* The drive is lost to us; the text stays for whoever asks again. */
static int lost(struct smartio_nvme_manager *m, int rc)
{
	m->failed = rc == -ENODEV ? -ENODEV : -EIO;
	strncpy(m->why, smartio_nvme_error(), sizeof(m->why) - 1);
	/* Nobody serves it any more: its lender may reset it. */
	sio_nvme_hold_end(&m->hold);
	return m->failed;
}

int smartio_nvme_manager_serve(struct smartio_nvme_manager *m, uint32_t timeout_ms)
{
	uint64_t deadline = timeout_ms == UINT32_MAX ? UINT64_MAX : sio_nvme_deadline(timeout_ms);
	int rc;

	if (m->failed)
		return sio_nvme_fail(m->failed, "%s", m->why);
	for (;;) {
		const bool standby = m->role == SIO_NVME_STANDBY;

		rc = standby ? sio_nvme_stand_by(m, deadline) : serve_once(m);
		if (rc < 0) {
			rc = reconnect(m, rc);
			if (rc)
				return lost(m, rc);
			m->returns++;
			if (m->role == SIO_NVME_SERVING)
				return 1;
			continue;
		}
		if (standby)
			return rc;
		if (rc > 0)
			return rc;
		/* pairs with smartio_nvme_manager_stop() */
		if (__atomic_exchange_n(&m->stop, 0, __ATOMIC_ACQUIRE))
			return 0;
		rc = wait_for_work(m, deadline);
		if (rc < 0)
			return lost(m, rc);
		if (rc > 0) {
			__atomic_store_n(&m->stop, 0, __ATOMIC_RELAXED);
			return 0;
		}
	}
}

void smartio_nvme_manager_stop(struct smartio_nvme_manager *m)
{
	/* pairs with the exchange in smartio_nvme_manager_serve() and asked_to_stop() */
	__atomic_store_n(&m->stop, 1, __ATOMIC_RELEASE);
	smartio_wake(m->d.handle);
}

uint32_t smartio_nvme_manager_queue_pairs(const struct smartio_nvme_manager *m, uint32_t *ret_all)
{
	if (ret_all)
		*ret_all = m->ledger.pairs;
	return m->ledger.used;
}

void smartio_nvme_manager_get_status(const struct smartio_nvme_manager *m,
				     struct smartio_nvme_manager_status *status)
{
	memset(status, 0, sizeof(*status));
	status->serves = m->role == SIO_NVME_SERVING;
	status->other_node = m->watch.node;
	status->takeovers = m->takeovers;
	status->kept = m->kept;
	status->took_us = m->took_ns / 1000;
	status->returns = m->returns;
	status->returns_kept = m->returns_kept;
	status->second_path = sio_nvme_hold_is_made(&m->hold, &m->d);
}

uint64_t smartio_nvme_manager_given(const struct smartio_nvme_manager *m)
{
	return m->ledger.given;
}
