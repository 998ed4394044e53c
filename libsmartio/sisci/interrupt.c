/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupts without data, the receiver's side: one event descriptor, and what is left of its
 * count. A trigger is a write to it; a wait costs neither a call to smartiod nor a lock of the
 * session.
 */
#include <errno.h>
#include <stdlib.h>

#include "sisci/library.h"

#define CALLS_AT_ONCE 64 /* per interrupt, before the event thread looks at others */

/*
 * Invariant: while a trigger is pending, the descriptor is readable, for others may be polling it
 * while one thread reads it. What we write for that is no trigger, and is counted apart.
 */
struct sio_local_int {
	struct sio_object o;
	uint32_t number;
	int fd;
	bool counting;
	struct sio_world_lock *lock; /* for what follows, and reading the descriptor */
	uint64_t pending;	     /* read, not taken; saturates */
	uint64_t marks;		     /* written by us since the last read */
	int over;		     /* why no wait succeeds any more: -ECANCELED, -ESHUTDOWN */
	sci_cb_interrupt_t callback;
	void *callback_arg;
};

static void local_int_free(struct sio_object *o)
{
	struct sio_local_int *i = (void *)o;
	struct sio_world *w = o->lib->world;

	if (i->fd >= 0)
		w->close(w, i->fd);
	if (i->lock)
		w->lock_free(w, i->lock);
	free(i);
}

/*
 * Who waits finds why it must not wait any more. Nobody reads the descriptor from now on: it stays
 * readable for all that poll it.
 */
static void end_waits(struct sio_local_int *i, int why)
{
	struct sio_world *w = i->o.lib->world;

	w->lock(w, i->lock);
	i->over = why;
	if (i->fd >= 0)
		w->event_write(w, i->fd);
	w->unlock(w, i->lock);
}

static void local_int_lost(struct sio_object *o)
{
	end_waits((void *)o, -ESHUTDOWN);
}

/* The lock is held: what the descriptor counted since the last time. */
static void read_triggers(struct sio_local_int *i)
{
	struct sio_world *w = i->o.lib->world;
	uint64_t count;

	if (w->event_read(w, i->fd, &count) < 0)
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
	struct sio_world *w = i->o.lib->world;
	int rc = -EAGAIN;

	w->lock(w, i->lock);
	if (i->over) {
		rc = i->over;
		w->unlock(w, i->lock);
		return rc;
	}
	read_triggers(i);
	if (i->pending) {
		i->pending--;
		rc = 0;
	}
	if (i->pending && i->marks == 0 && w->event_write(w, i->fd) == 0)
		i->marks++;
	w->unlock(w, i->lock);
	return rc;
}

static int wait_trigger(struct sio_local_int *i, uint64_t deadline)
{
	struct sio_world *w = i->o.lib->world;
	struct sio_poll p = {.fd = i->fd};
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
	if (i->callback)
		rc = sio_fail(err, -EPERM, "interrupt %u has a callback", i->number);
	else
		rc = wait_trigger(i, sio_session_deadline(lib->world, timeout));
	if (rc == -ETIMEDOUT)
		rc = sio_refuse(err, SCI_ERR_TIMEOUT, "no trigger in %u ms", timeout);
	else if (rc == -ECANCELED)
		sio_fail(err, rc, "the interrupt was removed");
	else if (rc == -ESHUTDOWN)
		sio_fail(err, rc, "this host's smartiod is gone");
	sio_object_put(&i->o);
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

	(void)arg;
	return i->callback(i->callback_arg, sio_object_handle(o), SCI_ERR_OK);
}

static bool is_muted(struct sio_object *o)
{
	bool muted;

	sio_session_lock(o->lib->session);
	muted = o->muted || o->lost;
	if (muted)
		sio_session_unwatch(o->lib->session, o->handle);
	sio_session_unlock(o->lib->session);
	return muted;
}

void sio_int_ready(struct sio_library *lib, uintptr_t handle)
{
	struct sio_local_int *i = sio_handle_get(lib->handles, handle, SIO_LOCAL_INT);

	if (!i)
		return;
	for (unsigned n = 0; n < CALLS_AT_ONCE && !is_muted(&i->o) && take(i) == 0; n++)
		sio_object_callback(&i->o, run_callback, NULL);
	sio_object_put(&i->o);
}

static int ask_create(struct sio_local_int *i, unsigned adapter, unsigned number, unsigned flags,
		      struct sio_err *err)
{
	bool fixed = flags & SCI_FLAG_FIXED_INTNO;
	unsigned told =
		flags & (SCI_FLAG_FIXED_INTNO | SCI_FLAG_COUNTING_INT | SCI_FLAG_SHARED_INT);
	struct sio_msg_dint_create req = {.adapter = sio_to_le32(adapter),
					  .number = sio_to_le32(fixed ? number : 0),
					  .flags = sio_to_le32(told | SIO_DINT_PLAIN)};
	struct sio_session *s = i->o.lib->session;
	struct sio_rep_dint_create rep;
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_DINT_CREATE,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.fds = &i->fd,
				.max_fds = 1,
				.done = sio_object_adopt,
				.arg = &i->o};
	int rc = sio_session_call(s, &call, err);

	if (rc < 0)
		return sio_error_as(rc, -EEXIST, SCI_ERR_INTNO_USED);
	i->number = sio_from_le32(rep.number);
	rc = sio_session_check_fds(&call, 1, err);
	if (!rc && i->callback) {
		sio_session_lock(s);
		rc = sio_session_watch(s, i->fd, i->o.handle);
		sio_session_unlock(s);
		if (rc < 0)
			sio_fail(err, rc, "no memory");
	}
	if (rc < 0)
		sio_object_dismiss(&i->o, SIO_MSG_DINT_REMOVE, 0, NULL);
	return rc;
}

/* What can be said before smartiod is asked. */
static int check_create(struct sio_library *lib, const void *ret, const unsigned *number,
			unsigned adapter, sci_cb_interrupt_t callback, unsigned flags,
			struct sio_err *err)
{
	int rc = sio_check_pointer(ret, "interrupt", err);

	if (!rc)
		rc = sio_check_pointer(number, "interruptNo", err);
	if (!rc)
		rc = sio_check_flags(flags,
				     SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO |
					     SCI_FLAG_COUNTING_INT | SCI_FLAG_SHARED_INT,
				     0, err);
	if (!rc && flags & SCI_FLAG_USE_CALLBACK)
		rc = sio_check_pointer((const void *)(uintptr_t)callback, "callback", err);
	return rc ? rc : sio_check_adapter(lib, adapter, err);
}

static int create(struct sio_library *lib, sci_desc_t sd, sci_local_interrupt_t *ret,
		  unsigned adapter, unsigned *number, sci_cb_interrupt_t callback, void *arg,
		  unsigned flags, struct sio_err *err)
{
	struct sio_local_int *i;
	struct sio_object *desc;
	int rc = check_create(lib, ret, number, adapter, callback, flags, err);

	if (rc)
		return rc;
	desc = sio_object_get(lib, sd, SIO_DESC, err);
	if (!desc)
		return err->code;
	i = calloc(1, sizeof(*i));
	if (!i || lib->world->lock_new(lib->world, &i->lock) < 0) {
		free(i);
		sio_object_put(desc);
		return sio_fail(err, -ENOMEM, "no memory");
	}
	i->o.kind = SIO_LOCAL_INT;
	i->o.free = local_int_free;
	i->o.on_lost = local_int_lost;
	i->fd = -1;
	i->counting = flags & SCI_FLAG_COUNTING_INT;
	i->callback = flags & SCI_FLAG_USE_CALLBACK ? callback : NULL;
	i->callback_arg = arg;
	rc = sio_object_add(lib, &i->o, desc, err);
	sio_object_put(desc);
	if (rc)
		return rc;
	rc = ask_create(i, adapter, *number, flags, err);
	if (rc) {
		sio_object_end(&i->o);
		return rc;
	}
	*number = i->number;
	*ret = sio_object_handle(&i->o);
	sio_object_put(&i->o);
	return 0;
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

static void cancel(struct sio_local_int *i)
{
	struct sio_library *lib = i->o.lib;

	sio_session_lock(lib->session);
	if (i->callback)
		sio_session_unwatch(lib->session, i->o.handle);
	sio_session_unlock(lib->session);
	end_waits(i, -ECANCELED);
}

static int remove_int(struct sio_library *lib, sci_local_interrupt_t interrupt, unsigned flags,
		      struct sio_err *err)
{
	struct sio_local_int *i;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	i = sio_object_get(lib, interrupt, SIO_LOCAL_INT, err);
	if (!i)
		return err->code;
	rc = sio_object_claim(&i->o, false, err);
	if (!rc) {
		rc = sio_object_dismiss(&i->o, SIO_MSG_DINT_REMOVE, 0, err);
		if (rc)
			sio_object_unclaim(&i->o);
	}
	if (rc) {
		sio_object_put(&i->o);
		return rc;
	}
	cancel(i);
	sio_object_end(&i->o);
	return 0;
}

void SCIRemoveInterrupt(sci_local_interrupt_t interrupt, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? remove_int(lib, interrupt, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}
