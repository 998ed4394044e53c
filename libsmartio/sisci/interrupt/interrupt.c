/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupts without data, the receiver's side: one event descriptor, and the rest of its count. A
 * trigger is a write to it; a wait costs neither a call to smartiod nor a lock of the session.
 */
#include <errno.h>
#include <stdlib.h>

#include "sisci/interrupt/receiver.h"
#include "smartio/ext.h"
#include "smartio/guest.h"

#define CALLS_AT_ONCE 64 /* per interrupt, before the event thread looks at others */

/*
 * Invariant: while a trigger is pending, the descriptor is readable, for others may be polling it
 * while one thread reads it. What we write for that is no trigger, and is counted apart.
 */
struct sio_local_int {
	struct sio_receiver r; /* its lock is for what follows, and reading the descriptor */
	bool imported;	       /* it triggers an eventfd that is not ours: nothing comes here */
	bool counting;
	uint64_t pending; /* read, not taken; saturates */
	uint64_t marks;	  /* written by us since the last read */
	int over;	  /* why no wait succeeds any more: -ECANCELED, -ESHUTDOWN */
	sci_cb_interrupt_t callback;
	void *callback_arg;
};

static void local_int_free(struct sio_object *o)
{
	sio_receiver_done((void *)o);
	free(o);
}

/*
 * Whoever waits finds why it must not wait any more. Nobody reads the descriptor from now on: it
 * stays readable for all that poll it.
 */
static void end_waits(struct sio_local_int *i, int why)
{
	struct sio_world *w = i->r.o.lib->world;

	w->lock(w, i->r.lock);
	i->over = why;
	if (i->r.fd >= 0)
		w->event_write(w, i->r.fd);
	w->unlock(w, i->r.lock);
}

static void local_int_lost(struct sio_object *o)
{
	end_waits((void *)o, -ESHUTDOWN);
}

/* The lock is held: what the descriptor counted since the last time. */
static void read_triggers(struct sio_local_int *i)
{
	struct sio_world *w = i->r.o.lib->world;
	uint64_t count;

	if (w->event_read(w, i->r.fd, &count) < 0)
		return;
	count = count > i->marks ? count - i->marks : 0;
	i->marks = 0;
	if (!i->counting)
		i->pending |= count > 0;
	else if (__builtin_add_overflow(i->pending, count, &i->pending))
		i->pending = UINT64_MAX;
}

/* Take one trigger. -EAGAIN: none is there; else why there will be none. */
static int take(struct sio_local_int *i)
{
	struct sio_world *w = i->r.o.lib->world;
	int rc = -EAGAIN;

	w->lock(w, i->r.lock);
	if (i->over) {
		rc = i->over;
		w->unlock(w, i->r.lock);
		return rc;
	}
	read_triggers(i);
	if (i->pending) {
		i->pending--;
		rc = 0;
	}
	if (i->pending && i->marks == 0 && w->event_write(w, i->r.fd) == 0)
		i->marks++;
	w->unlock(w, i->r.lock);
	return rc;
}

static int wait_trigger(struct sio_local_int *i, uint64_t deadline)
{
	struct sio_world *w = i->r.o.lib->world;
	struct sio_poll p = {.fd = i->r.fd};
	bool late = deadline == 0;
	int rc;

	for (;;) {
		/* Nothing to read is the usual case: look at the descriptor before reading it. */
		if (!late && w->poll(w, &p, 1, deadline) == 0)
			late = true;
		rc = take(i);
		if (rc != -EAGAIN)
			return rc;
		if (late)
			return -ETIMEDOUT;
	}
}

static int wait_int(struct sio_library *lib, sci_local_interrupt_t interrupt, unsigned timeout,
		    unsigned flags, struct sio_err *err)
{
	struct sio_local_int *i;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	i = sio_object_get(lib, interrupt, SIO_LOCAL_INT, err);
	if (!i)
		return err->code;
	if (i->imported)
		rc = sio_fail(err, -EINVAL, "interrupt %u triggers an eventfd alone", i->r.number);
	else if (i->callback)
		rc = sio_fail(
			err, -EPERM,
			"interrupt %u has a callback, which is called: wait for one made without",
			i->r.number);
	else
		rc = wait_trigger(i, sio_session_deadline(lib->world, timeout));
	if (rc == -ETIMEDOUT)
		rc = sio_refuse(err, SCI_ERR_TIMEOUT, "no trigger in %u ms", timeout);
	else if (rc == -ECANCELED)
		sio_fail(err, rc, "the interrupt was removed");
	else if (rc == -ESHUTDOWN)
		sio_object_fail_lost(&i->r.o, err);
	sio_object_put(&i->r.o);
	return rc;
}

void SCIWaitForInterrupt(sci_local_interrupt_t interrupt, unsigned int timeout, unsigned int flags,
			 sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? wait_int(lib, interrupt, timeout, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

static sci_callback_action_t run_callback(struct sio_object *o, void *arg)
{
	struct sio_local_int *i = (void *)o;

	return i->callback(i->callback_arg, sio_object_handle(o), *(const sci_error_t *)arg);
}

static void ready(struct sio_object *o)
{
	struct sio_local_int *i = (void *)o;
	sci_error_t ok = SCI_ERR_OK, lost = SCI_ERR_NO_LINK_ACCESS;

	for (unsigned n = 0;
	     n < CALLS_AT_ONCE && !sio_receiver_is_muted(&i->r, true) && take(i) == 0; n++)
		sio_object_callback(&i->r.o, run_callback, &ok);
	/* The last time, then: it is not watched any more. */
	if (sio_receiver_is_muted(&i->r, true))
		sio_object_callback(&i->r.o, run_callback, &lost);
}

static bool take_event(struct sio_library *lib, const struct sio_msg *msg, int *fds, unsigned n_fds)
{
	(void)fds;
	(void)n_fds;
	return sio_interrupt_lost(lib, SIO_LOCAL_INT, msg);
}

const struct sio_kind_ops sio_local_int_kind = {
	.kind = SIO_LOCAL_INT,
	.name = "local interrupt",
	.leaves = true,
	.free = local_int_free,
	.lost = local_int_lost,
	.is_own = sio_receiver_is_own,
	.event = take_event,
	.ready = ready,
};

static int create(struct sio_library *lib, sci_desc_t sd, sci_local_interrupt_t *ret,
		  unsigned adapter, unsigned *number, sci_cb_interrupt_t callback, void *arg,
		  unsigned flags, struct sio_err *err)
{
	const unsigned sent = SCI_FLAG_FIXED_INTNO | SCI_FLAG_COUNTING_INT | SCI_FLAG_SHARED_INT;
	struct sio_local_int *i;
	int rc = sio_receiver_check(lib, ret, number, adapter, callback != NULL, flags,
				    sent | SCI_FLAG_USE_CALLBACK, err);

	if (rc)
		return rc;
	i = calloc(1, sizeof(*i));
	if (i) {
		i->r.o.kind = SIO_LOCAL_INT;
		i->r.calls = flags & SCI_FLAG_USE_CALLBACK;
		i->counting = flags & SCI_FLAG_COUNTING_INT;
		i->callback = i->r.calls ? callback : NULL;
		i->callback_arg = arg;
	}
	rc = sio_receiver_begin(lib, sd, i ? &i->r : NULL, adapter, number,
				(flags & sent) | SIO_DINT_PLAIN, -1, err);
	if (rc)
		return rc;
	*ret = sio_object_handle(&i->r.o);
	sio_object_put(&i->r.o);
	return 0;
}

static int import(struct sio_library *lib, sci_desc_t sd, sci_local_interrupt_t *ret,
		  unsigned adapter, unsigned *number, int eventfd, unsigned flags,
		  struct sio_err *err)
{
	struct sio_local_int *i;
	int rc = sio_receiver_check(lib, ret, number, adapter, false, flags, SCI_FLAG_FIXED_INTNO,
				    err);

	if (!rc && eventfd < 0)
		rc = sio_fail(err, -EINVAL, "%d is no descriptor", eventfd);
	if (rc)
		return rc;
	i = calloc(1, sizeof(*i));
	if (i) {
		i->r.o.kind = SIO_LOCAL_INT;
		i->imported = true;
	}
	rc = sio_receiver_begin(lib, sd, i ? &i->r : NULL, adapter, number,
				flags | SIO_DINT_PLAIN | SIO_DINT_EVENTFD, eventfd, err);
	if (rc)
		return rc;
	*ret = sio_object_handle(&i->r.o);
	sio_object_put(&i->r.o);
	return 0;
}

void smartio_import_interrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt,
			      unsigned int localAdapterNo, unsigned int *interruptNo, int eventfd,
			      unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? import(lib, sd, interrupt, localAdapterNo, interruptNo, eventfd, flags, &err)
		     : err.code;

	sio_api_leave(error, rc, &err);
}

void SCICreateInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt,
			unsigned int localAdapterNo, unsigned int *interruptNo,
			sci_cb_interrupt_t callback, void *callbackArg, unsigned int flags,
			sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? create(lib, sd, interrupt, localAdapterNo, interruptNo, callback,
			      callbackArg, flags, &err)
		     : err.code;

	sio_api_leave(error, rc, &err);
}

int smartio_interrupt_fd(sci_local_interrupt_t interrupt)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_local_int *i = lib ? sio_object_get(lib, interrupt, SIO_LOCAL_INT, &err) : NULL;
	int fd = i && !i->callback && !i->imported ? i->r.fd : -1;

	if (i)
		sio_object_put(&i->r.o);
	return fd;
}

static int remove_int(struct sio_library *lib, sci_local_interrupt_t interrupt, unsigned flags,
		      struct sio_err *err)
{
	struct sio_receiver *r;
	int rc = sio_receiver_remove(lib, interrupt, SIO_LOCAL_INT, flags, &r, err);

	if (rc)
		return rc;
	end_waits((void *)r, -ECANCELED);
	sio_object_end(&r->o);
	return 0;
}

void SCIRemoveInterrupt(sci_local_interrupt_t interrupt, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? remove_int(lib, interrupt, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}
