/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A standby: a manager that waits for the end of the one that serves. It has borrowed the drive,
 * and is connected to that manager's segment: the library reports the segment's end, so nothing is
 * polled. Then it requests the registers. The lender grants them when the dead manager's mappings
 * of them are gone, and to one of several standbys.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "manager.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "wait.h"

#define LENT_MS 5000u  /* that a manager which starts may have the drive exclusively */
#define RETURN_MS 500u /* that a manager which lost its path to the drive may take to return */
#define LONGEST_PAUSE_MS 64u /* between two looks while nobody serves, and registers are taken */

/* ---- be found ---- */
static void publish_standby(struct smartio_nvme_manager *m)
{
	struct sio_nvme_wire_standby us = {.version = SIO_NVME_VERSION, .node = m->d.node};
	volatile uint8_t *at = m->watch.self.at;

	strncpy(us.program, program_invocation_short_name, sizeof(us.program) - 1);
	sio_nvme_standby_encode(&us, &us);
	sio_copy_to(at + 4, (char *)&us + 4, sizeof(us) - 4);
	/* A reader that sees the magic number sees the rest. Pairs with sio_nvme_standby_at(). */
	sio_to_fabric_barrier();
	sio_write32(at, us.magic);
}

static int be_found(struct smartio_nvme_manager *m)
{
	int rc = -EEXIST;

	for (unsigned i = 0; rc == -EEXIST && i < SIO_NVME_STANDBYS; i++)
		rc = sio_nvme_shared_make(&m->d, SIO_NVME_STANDBY_SEGMENT + i, SIO_NVME_PAGE,
					  SCI_FLAG_LOCAL_ONLY, &m->watch.self);
	if (rc == -EEXIST)
		return sio_nvme_fail(-EBUSY, "%s has %u standby managers; no more are possible",
				     m->d.name, SIO_NVME_STANDBYS);
	if (rc == 0)
		publish_standby(m);
	return rc;
}

/* A manager that starts has it exclusively for a moment. */
int sio_nvme_stand(struct smartio_nvme_manager *m)
{
	struct sio_nvme_wait w;
	int rc;

	sio_nvme_wait_start(&w, LENT_MS);
	rc = sio_nvme_wait_borrow(&w, &m->d);
	if (rc == 0)
		rc = be_found(m);
	if (rc == 0)
		m->role = SIO_NVME_STANDBY;
	return rc;
}

/* ---- the manager that serves ---- */
/* On the library's thread. What else may be reported of the segment is no end. */
static sci_callback_action_t on_other(void *arg, sci_remote_segment_t segment,
				      sci_segment_cb_reason_t reason, sci_error_t status)
{
	struct smartio_nvme_manager *m = arg;

	(void)segment;
	(void)status;
	if (reason == SCI_CB_DISCONNECT || reason == SCI_CB_LOST) {
		/* pairs with sio_nvme_stand_by() */
		__atomic_store_n(&m->watch.ended, 1, __ATOMIC_RELEASE);
		smartio_wake(m->d.handle);
	}
	return SCI_CALLBACK_CONTINUE;
}

static void forget(struct smartio_nvme_manager *m)
{
	sci_error_t err;

	if (m->watch.other)
		SIO_NVME_UNTIL_FREE(err, SCIDisconnectSegment(m->watch.other, 0, &err));
	m->watch.other = NULL;
}

/*
 * Return: 1: a manager serves, and its end will be reported; 0: nobody does; -errno.
 */
static int watch(struct smartio_nvme_manager *m)
{
	sci_error_t err;

	/* There is no callback before the next call. */
	__atomic_store_n(&m->watch.ended, 0, __ATOMIC_RELAXED);
	SCIConnectDeviceSegment(m->d.handle, &m->watch.other, SIO_NVME_SEGMENT, SCI_MEMTYPE_SHARED,
				on_other, m, SCI_FLAG_USE_CALLBACK, &err);
	if (err == SCI_ERR_OK) {
		m->watch.node = sio_nvme_manager_node(m);
		m->watch.refused_ns = 0;
		return 1;
	}
	m->watch.other = NULL;
	/* It went since it was looked up, or cannot be reached: the registers tell. */
	if (err == SCI_ERR_CANCELLED || err == SCI_ERR_NOT_INITIALIZED)
		return sio_nvme_fail_sci(err, "%s: cannot look for its manager", m->d.name);
	return smartio_device_lost(m->d.handle)
		       ? sio_nvme_fail(-ENODEV, "%s or its host is gone", m->d.name)
		       : 0;
}

void sio_nvme_stand_down(struct smartio_nvme_manager *m)
{
	forget(m);
	sio_nvme_shared_close(&m->watch.self);
}

/* ---- wait for its end ---- */
static int drain_events(struct smartio_nvme_manager *m)
{
	struct smartio_device_event e;
	sci_error_t err;

	do
		smartio_wait_device_event(m->d.handle, &e, 0, &err);
	while (err == SCI_ERR_OK && e.kind != SMARTIO_DEVICE_LOST);
	if (err == SCI_ERR_TIMEOUT)
		return 0;
	if (err == SCI_ERR_OK)
		return sio_nvme_fail(-ENODEV, "%s or its host is gone", m->d.name);
	return sio_nvme_fail_sci(err, "%s: cannot take its events", m->d.name);
}

/* @ms: SCI_INFINITE_TIMEOUT: for ever. Return: 0: something happened, or not; -errno. */
static int doze(struct smartio_nvme_manager *m, unsigned ms)
{
	sci_error_t err;

	smartio_wait_events(m->d.handle, NULL, ms, &err);
	if (err != SCI_ERR_OK && err != SCI_ERR_TIMEOUT)
		return sio_nvme_fail_sci(err, "%s: cannot wait for its manager's end", m->d.name);
	return drain_events(m);
}

static unsigned ms_until(uint64_t deadline, unsigned most)
{
	uint64_t now = smartio_now_ns();

	if (deadline == UINT64_MAX)
		return most;
	if (deadline <= now)
		return 0;
	return (deadline - now) / 1000000 < most ? (unsigned)((deadline - now) / 1000000 + 1)
						 : most;
}

/*
 * The manager that served lives, but has lost its path to the drive: over another one it can go on,
 * and nobody else can. So it has the registers again, for a moment: from the first refusal on, for
 * this one may have lost the same path, and not have seen the other's end.
 */
static bool may_return(struct smartio_nvme_manager *m, int rc)
{
	const uint64_t now = smartio_now_ns();

	if (rc != -EACCES)
		return false;
	if (!m->watch.refused_ns)
		m->watch.refused_ns = now;
	return now - m->watch.refused_ns < RETURN_MS * 1000000ull;
}

/*
 * No manager is published, so none serves, or one is about to. Return: 1: we serve; 0: another
 * program owns the registers; -errno.
 */
static int take_over(struct smartio_nvme_manager *m)
{
	const uint32_t timeout_ms = m->options.enable_timeout_ms;
	int rc = sio_nvme_ctrl_open(&m->ctrl, &m->d, timeout_ms);
	bool kept = false;

	if (rc == 0) {
		int went_on = sio_nvme_manager_go_on(m);

		/* What the owner of the registers is notified of is not to end the pause. */
		if (may_return(m, went_on))
			return drain_events(m);
		kept = went_on == 0;
		if (!kept)
			rc = sio_nvme_ctrl_open(&m->ctrl, &m->d, timeout_ms);
	}
	if (rc == -EBUSY)
		return 0;
	if (rc == 0 && !kept)
		rc = sio_nvme_manager_start(m);
	if (rc)
		return rc;
	m->kept += kept;
	if (kept || m->watch.ended_ns) {
		m->takeovers++;
		m->took_ns = m->watch.ended_ns ? smartio_now_ns() - m->watch.ended_ns : 0;
		m->watch.ended_ns = 0;
	}
	m->watch.refused_ns = 0;
	sio_nvme_stand_down(m);
	return 1;
}

static bool asked_to_stop(struct smartio_nvme_manager *m)
{
	/* pairs with smartio_nvme_manager_stop() */
	return __atomic_exchange_n(&m->stop, 0, __ATOMIC_ACQUIRE);
}

int sio_nvme_stand_by(struct smartio_nvme_manager *m, uint64_t deadline)
{
	unsigned pause_ms = 1, left;
	int rc = 0;

	while (rc == 0) {
		/* pairs with on_other() */
		if (m->watch.other && __atomic_load_n(&m->watch.ended, __ATOMIC_ACQUIRE)) {
			m->watch.ended_ns = smartio_now_ns();
			forget(m);
		}
		if (!m->watch.other) {
			rc = watch(m);
			if (rc == 0)
				rc = take_over(m);
			else if (rc > 0)
				rc = 0;
		}
		if (rc)
			break;
		if (asked_to_stop(m))
			return 0;
		/* A program owns the registers and publishes nothing: no event reports its end. */
		left = ms_until(deadline, m->watch.other ? SCI_INFINITE_TIMEOUT : pause_ms);
		if (left == 0)
			return 0;
		pause_ms = m->watch.other ? 1 : 2 * pause_ms;
		if (pause_ms > LONGEST_PAUSE_MS)
			pause_ms = LONGEST_PAUSE_MS;
		rc = doze(m, left);
	}
	return rc;
}
