/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for events of devices, alone or together with a data interrupt. */
#include <errno.h>
#include <string.h>

#include "sisci/interrupt/dataint.h"
#include "sisci/device/device.h"

/*
 * Under the lock: no event is left, so the descriptor is cleared, unless smartio_wake() wrote to
 * it. For a handle that has ended it stays readable: that is for all that wait. To be called also
 * by a thread that finds no event: smartio_wake() sets its word before it writes to the descriptor,
 * so the write may come when the word was taken long ago.
 */
static void clear_event_fd(struct sio_device *d)
{
	struct sio_world *w = d->o.lib->world;
	uint64_t count;

	if (d->o.lost || sio_object_is_leaving(&d->o))
		return;
	w->event_read(w, d->event_fd, &count);
	/* After the descriptor was cleared; pairs with the store in smartio_wake(). */
	if (__atomic_load_n(&d->words[SIO_DEVICE_WAKE], __ATOMIC_SEQ_CST))
		w->event_write(w, d->event_fd);
}

/* Under the lock. -EAGAIN: none. */
static int take_event(struct sio_device *d, struct smartio_device_event *event)
{
	if (d->n_events == 0) {
		clear_event_fd(d);
		return sio_object_is_leaving(&d->o) || d->o.lost ? -ECANCELED : -EAGAIN;
	}
	*event = d->events[0];
	d->n_events--;
	memmove(d->events, d->events + 1, d->n_events * sizeof(*d->events));
	if (d->n_events == 0)
		clear_event_fd(d);
	return 0;
}

/* Why a wait was cancelled; that smartiod is gone comes before all that follows from it. */
static int fail_cancelled(struct sio_library *lib, int dead_code, const char *why,
			  struct sio_err *err)
{
	bool dead;

	sio_session_lock(lib->session);
	dead = sio_session_is_dead(lib->session);
	sio_session_unlock(lib->session);
	if (dead)
		return sio_fail(err, dead_code, "this host's smartiod is gone");
	return sio_fail(err, -ECANCELED, "%s", why);
}

void smartio_wait_device_event(sci_smartio_device_t device, struct smartio_device_event *event,
			       unsigned int timeout_ms, sci_error_t *error)
{
	struct sio_device *d = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	bool late = false;
	uint64_t deadline;
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer(event, "event", &err);
	if (!rc) {
		d = sio_object_get(lib, device, SIO_DEVICE, &err);
		rc = err.code;
	}
	if (d) {
		deadline = sio_session_deadline(lib->world, timeout_ms);
		sio_session_lock(lib->session);
		while ((rc = take_event(d, event)) == -EAGAIN && !late)
			late = sio_session_wait(lib->session, NULL, 0, deadline) == -ETIMEDOUT ||
			       deadline == 0;
		sio_session_unlock(lib->session);
		if (rc == -EAGAIN)
			rc = sio_refuse(&err, SCI_ERR_TIMEOUT, "no event of device %#x in %u ms",
					d->fdid, timeout_ms);
		else if (rc == -ECANCELED)
			rc = fail_cancelled(lib, -ESHUTDOWN, "the device was returned or is lost",
					    &err);
		sio_object_put(&d->o);
	}
	sio_api_leave(error, rc, &err);
}

/* Under the lock: what is ready; 0: nothing; -ECANCELED. */
static int ready_now(struct sio_library *lib, struct sio_device *device,
		     const struct sio_local_dint *dint, bool dint_readable)
{
	unsigned ready = 0;

	if (device) {
		/* pairs with the store in smartio_wake() */
		if (__atomic_exchange_n(&device->words[SIO_DEVICE_WAKE], 0, __ATOMIC_SEQ_CST))
			ready |= SMARTIO_READY_WAKE;
		if (device->n_events)
			ready |= SMARTIO_READY_DEVICE;
		else
			clear_event_fd(device);
	}
	if (ready || dint_readable)
		return (int)(ready | (dint_readable ? SMARTIO_READY_INTERRUPT : 0));
	if (sio_session_is_dead(lib->session) ||
	    (device && (sio_object_is_leaving(&device->o) || device->o.lost)) ||
	    (dint && (sio_object_is_leaving(&dint->r.o) || dint->r.o.lost)))
		return -ECANCELED;
	return 0;
}

static int wait_ready(struct sio_library *lib, struct sio_device *device,
		      struct sio_local_dint *dint, uint64_t deadline)
{
	struct sio_poll p[2];
	unsigned n = 0, at = 0;
	bool late = false, readable = false;
	int rc;

	if (device)
		p[n++] = (struct sio_poll){.fd = device->event_fd};
	if (dint) {
		at = n;
		p[n++] = (struct sio_poll){.fd = dint->r.fd};
		/* A look first, so that all that is there is returned together. */
		lib->world->poll(lib->world, &p[at], 1, 0);
		readable = p[at].readable;
	}
	sio_session_lock(lib->session);
	while ((rc = ready_now(lib, device, dint, readable)) == 0 && !late) {
		late = sio_session_wait(lib->session, p, n, deadline) == -ETIMEDOUT ||
		       deadline == 0;
		readable = dint && p[at].readable;
	}
	sio_session_unlock(lib->session);
	return rc;
}

unsigned int smartio_wait_events(sci_smartio_device_t device, sci_local_data_interrupt_t interrupt,
				 unsigned int timeout_ms, sci_error_t *error)
{
	struct sio_local_dint *dint = NULL;
	struct sio_device *d = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code, ready = 0;

	if (lib && device) {
		d = sio_object_get(lib, device, SIO_DEVICE, &err);
		rc = err.code;
	}
	if (!rc && interrupt) {
		dint = sio_object_get(lib, interrupt, SIO_LOCAL_DINT, &err);
		rc = err.code;
		if (dint && dint->callback)
			rc = sio_fail(&err, -EINVAL, "data interrupt %u has a callback",
				      dint->r.number);
	}
	if (!rc)
		ready = wait_ready(lib, d, dint, sio_session_deadline(lib->world, timeout_ms));
	if (!rc && ready == 0)
		rc = sio_refuse(&err, SCI_ERR_TIMEOUT, "nothing happened in %u ms", timeout_ms);
	if (!rc && ready < 0)
		rc = fail_cancelled(lib, -ECANCELED, "what is waited for was removed or is lost",
				    &err);
	if (d)
		sio_object_put(&d->o);
	if (dint)
		sio_object_put(&dint->r.o);
	sio_api_leave(error, rc, &err);
	return rc ? 0 : (unsigned)ready;
}
