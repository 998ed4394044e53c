/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data interrupts, the receiver's side: a ring per sender and one descriptor for all. Taking a
 * message costs neither a call to smartiod nor a lock of the session.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/types.h"
#include "sisci/interrupt/dataint.h"
#include "smartio/ext.h"

_Static_assert(SMARTIO_ALL_ADAPTERS == SIO_DINT_ALL_ADAPTERS, "the wire's");

#define MESSAGES_AT_ONCE 64 /* per interrupt, before the event thread looks at others */

static void sender_free(struct sio_library *lib, struct sio_sender *sender)
{
	lib->world->unmap(lib->world, sender->base, sender->bytes);
	free(sender->post);
	free(sender);
}

static void local_dint_free(struct sio_object *o)
{
	struct sio_local_dint *d = (void *)o;

	while (d->senders) {
		struct sio_sender *sender = d->senders;

		d->senders = sender->next;
		sender_free(o->lib, sender);
	}
	sio_receiver_done(&d->r);
	free(d);
}

/* Wakes the threads that wait, which find why they must not wait any more. */
static void local_dint_lost(struct sio_object *o)
{
	struct sio_local_dint *d = (void *)o;
	struct sio_world *w = o->lib->world;

	if (d->r.fd >= 0)
		w->event_write(w, d->r.fd);
	w->lock(w, d->r.lock);
	w->wake_all(w, d->r.lock);
	w->unlock(w, d->r.lock);
}

/* The session's lock is held. */
static struct sio_sender *sender_new(struct sio_library *lib, const struct sio_evm_dint_ring *e,
				     int fd)
{
	uint64_t bytes = sio_from_le64(e->bytes), offset = sio_from_le64(e->fd_offset);
	struct sio_world *w = lib->world;
	struct sio_sender *sender;

	if (bytes < SIO_RING_TOTAL || bytes % SIO_PAGE_SIZE || offset % SIO_PAGE_SIZE)
		return NULL;
	sender = calloc(1, sizeof(*sender));
	if (!sender)
		return NULL;
	sender->bytes = bytes;
	if (w->reserve(w, NULL, false, bytes, &sender->base) < 0) {
		free(sender);
		return NULL;
	}
	if (w->map(w, sender->base, bytes, SIO_PROT_READ | SIO_PROT_WRITE, fd, offset) < 0) {
		sender_free(lib, sender);
		return NULL;
	}
	sender->id = sio_from_le32(e->ring);
	sender->node = sio_from_le32(e->node);
	sio_ring_init(&sender->ring, sender->base);
	return sender;
}

/*
 * Under the session's lock; without waiting for the answer. The ring is in no list any more.
 * Without @p, and without memory to say it now, its sender would send for ever what nobody reads:
 * then the interrupt is lost.
 */
static void give_ring_back(struct sio_local_dint *d, uint32_t ring, struct sio_post *p)
{
	struct sio_msg_dint_ring_free req = {.handle = sio_to_le32(d->r.o.id),
					     .ring = sio_to_le32(ring)};
	struct sio_session *s = d->r.o.lib->session;

	if (p) {
		p->msg.ring = req;
		sio_session_post(s, SIO_MSG_DINT_RING_FREE, p, sizeof(req));
	} else if (sio_session_notify(s, SIO_MSG_DINT_RING_FREE, &req.h, sizeof(req)) < 0) {
		sio_object_lose(&d->r.o);
	}
}

/* The same for one that was mapped, which ends. */
static void give_back(struct sio_local_dint *d, struct sio_sender *sender)
{
	struct sio_post *p = sender->post;
	uint32_t ring = sender->id;

	sender->post = NULL;
	sender_free(d->r.o.lib, sender);
	give_ring_back(d, ring, p);
}

/* A sender connected. */
static void sender_begins(struct sio_local_dint *d, const struct sio_evm_dint_ring *e, int fd)
{
	struct sio_world *w = d->r.o.lib->world;
	struct sio_post *post = malloc(sizeof(*post));
	struct sio_sender *sender = post && fd >= 0 ? sender_new(d->r.o.lib, e, fd) : NULL, **p;

	if (!sender) {
		w->log(w, "a sender's ring cannot be mapped: the sender is cut off");
		give_ring_back(d, sio_from_le32(e->ring), post);
		return;
	}
	sender->post = post;
	w->lock(w, d->r.lock);
	for (p = &d->senders; *p; p = &(*p)->next)
		;
	*p = sender;
	w->wake_all(w, d->r.lock);
	w->unlock(w, d->r.lock);
	/* Messages may have come before we knew the ring. */
	w->event_write(w, d->r.fd);
}

/*
 * A sender is gone. What it left is drained before its ring is given back; a ring with nothing in
 * it goes at once, for nobody may be waiting.
 */
static void sender_ends(struct sio_local_dint *d, uint32_t id)
{
	struct sio_world *w = d->r.o.lib->world;
	struct sio_sender **p, *empty = NULL;

	w->lock(w, d->r.lock);
	p = &d->senders;
	while (*p && (*p)->id != id)
		p = &(*p)->next;
	if (*p && sio_ring_is_empty(&(*p)->ring)) {
		empty = *p;
		*p = empty->next;
	} else if (*p) {
		(*p)->ended = true;
		w->event_write(w, d->r.fd);
		w->wake_all(w, d->r.lock);
	}
	w->unlock(w, d->r.lock);
	if (!empty)
		return;
	give_back(d, empty);
}

/* Under the session's lock. */
static bool take_event(struct sio_library *lib, const struct sio_msg *msg, int *fds, unsigned n_fds)
{
	const struct sio_evm_dint_ring *e = (const void *)msg;
	uint32_t type = sio_from_le32(msg->type);
	struct sio_object *o;

	if (type != SIO_EVM_DINT_RING && type != SIO_EVM_DINT_RING_END)
		return sio_interrupt_lost(lib, SIO_LOCAL_DINT, msg);
	o = sio_object_by_id(lib, SIO_LOCAL_DINT, sio_from_le32(e->handle));
	if (o && type == SIO_EVM_DINT_RING)
		sender_begins((void *)o, e, n_fds > 0 ? fds[0] : -1);
	else if (o)
		sender_ends((void *)o, sio_from_le32(e->ring));
	return true;
}

/* The interrupt's lock is held: take @p out, for retire(). */
static void unlink_sender(struct sio_sender **p, struct sio_sender **retired)
{
	struct sio_sender *sender = *p;

	*p = sender->next;
	sender->next = *retired;
	*retired = sender;
}

/* The interrupt's lock is held: one round through senders that are gone, or are not. */
static int pop_round(struct sio_local_dint *d, bool ended, void *data, uint32_t max,
		     uint32_t *ret_len, struct sio_sender **retired)
{
	struct sio_sender **p = &d->senders, **tail;

	while (*p) {
		struct sio_sender *sender = *p;
		int rc = sender->ended == ended ? sio_ring_pop(&sender->ring, data, max, ret_len)
						: -ENODATA;

		if (rc == -EMSGSIZE)
			return rc;
		if (rc >= 0) {
			for (tail = p; *tail; tail = &(*tail)->next)
				;
			/* The others first, next time; but one that is gone goes on being first. */
			if (!ended && sender->next) {
				*p = sender->next;
				*tail = sender;
				sender->next = NULL;
			}
			return rc;
		}
		if (rc == -EPROTO || (rc == -EAGAIN && ended))
			unlink_sender(p, retired);
		else
			p = &sender->next;
	}
	return -EAGAIN;
}

/* Give rings back to smartiod, without waiting for its answer. */
static void retire(struct sio_local_dint *d, struct sio_sender *retired)
{
	struct sio_library *lib = d->r.o.lib;

	while (retired) {
		struct sio_sender *sender = retired;

		retired = sender->next;
		if (!sender->ended)
			lib->world->log(lib->world,
					"a sender wrote invalid data into its ring: it is cut off");
		sio_session_lock(lib->session);
		give_back(d, sender);
		sio_session_unlock(lib->session);
	}
}

/*
 * The next message. What a sender left that is gone comes first: if it connected again, that is
 * older. Return: its length; -EAGAIN; -EMSGSIZE.
 */
static int pop(struct sio_local_dint *d, void *data, uint32_t max, uint32_t *ret_len)
{
	struct sio_world *w = d->r.o.lib->world;
	struct sio_sender *retired = NULL;
	int rc;

	w->lock(w, d->r.lock);
	rc = pop_round(d, true, data, max, ret_len, &retired);
	if (rc == -EAGAIN)
		rc = pop_round(d, false, data, max, ret_len, &retired);
	w->unlock(w, d->r.lock);
	if (retired)
		retire(d, retired);
	return rc;
}

/* As pop(), for the one thread whose turn it is: reads the descriptor if there is nothing. */
static int look(struct sio_local_dint *d, void *data, uint32_t max, uint32_t *ret_len)
{
	struct sio_world *w = d->r.o.lib->world;
	uint64_t count;
	int rc = pop(d, data, max, ret_len);

	if (rc != -EAGAIN || w->event_read(w, d->r.fd, &count) < 0)
		return rc;
	rc = pop(d, data, max, ret_len);
	if (rc == -EAGAIN) {
		/* A trigger, but no message: its ring is announced in a packet not taken yet. */
		sio_session_pump(d->r.o.lib->session);
		rc = pop(d, data, max, ret_len);
	}
	if (rc != -EAGAIN)
		w->event_write(w, d->r.fd);
	return rc;
}

static int why_not_wait(struct sio_local_dint *d)
{
	if (__atomic_load_n(&d->gone, __ATOMIC_ACQUIRE)) /* pairs with cancel() */
		return -ECANCELED;
	if (sio_object_is_lost(&d->r.o))
		return -ESHUTDOWN;
	return 0;
}

/* With the turn: look, and wait at the descriptor. -EAGAIN: look again. */
static int wait_with_turn(struct sio_local_dint *d, void *data, uint32_t max, uint32_t *ret_len,
			  uint64_t deadline)
{
	struct sio_world *w = d->r.o.lib->world;
	struct sio_poll p = {.fd = d->r.fd};
	int rc = look(d, data, max, ret_len);

	if (rc != -EAGAIN)
		return rc;
	rc = why_not_wait(d);
	if (rc == 0)
		rc = w->poll(w, &p, 1, deadline) == 0 ? -ETIMEDOUT : -EAGAIN;
	return rc;
}

static int wait_message(struct sio_local_dint *d, void *data, uint32_t max, uint32_t *ret_len,
			uint64_t deadline)
{
	struct sio_world *w = d->r.o.lib->world;
	bool mine;
	int rc;

	for (;;) {
		rc = why_not_wait(d) == -ECANCELED ? -ECANCELED : pop(d, data, max, ret_len);
		if (rc != -EAGAIN)
			return rc;
		rc = 0;
		w->lock(w, d->r.lock);
		mine = !d->turn;
		if (mine)
			d->turn = true;
		else if (!why_not_wait(d))
			rc = w->wait(w, d->r.lock, deadline);
		w->unlock(w, d->r.lock);
		if (!mine) {
			if (rc == -ETIMEDOUT)
				return rc;
			rc = why_not_wait(d);
			if (rc)
				return rc;
			continue;
		}
		rc = wait_with_turn(d, data, max, ret_len, deadline);
		w->lock(w, d->r.lock);
		d->turn = false;
		w->wake_all(w, d->r.lock);
		w->unlock(w, d->r.lock);
		if (rc != -EAGAIN)
			return rc;
	}
}

static int wait_dint(struct sio_library *lib, sci_local_data_interrupt_t interrupt, void *data,
		     unsigned *length, unsigned timeout, unsigned flags, struct sio_err *err)
{
	struct sio_local_dint *d;
	uint32_t len = 0;
	int rc = sio_check_pointer(length, "length", err);

	if (!rc && *length)
		rc = sio_check_pointer(data, "data", err);
	if (!rc)
		rc = sio_check_flags(flags, 0, 0, err);
	if (rc)
		return rc;
	d = sio_object_get(lib, interrupt, SIO_LOCAL_DINT, err);
	if (!d)
		return err->code;
	if (d->callback)
		rc = sio_fail(
			err, -EPERM,
			"data interrupt %u has a callback, which is called: wait for one made "
			"without",
			d->r.number);
	else
		rc = wait_message(d, data, *length, &len,
				  sio_session_deadline(lib->world, timeout));
	if (rc >= 0) {
		*length = len;
		rc = 0;
	} else if (rc == -EMSGSIZE) {
		rc = sio_fail(err, -ERANGE, "the message has %u bytes, there is room for %u", len,
			      *length);
		*length = len;
	} else if (rc == -ETIMEDOUT) {
		rc = sio_refuse(err, SCI_ERR_TIMEOUT, "no message in %u ms", timeout);
	} else if (rc == -ECANCELED) {
		sio_fail(err, rc, "the data interrupt was removed");
	} else if (rc == -ESHUTDOWN) {
		sio_object_fail_lost(&d->r.o, err);
	}
	sio_object_put(&d->r.o);
	return rc;
}

void SCIWaitForDataInterrupt(sci_local_data_interrupt_t interrupt, void *data, unsigned int *length,
			     unsigned int timeout, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? wait_dint(lib, interrupt, data, length, timeout, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

struct message {
	void *data;
	uint32_t len;
	sci_error_t status;
};

static sci_callback_action_t run_callback(struct sio_object *o, void *arg)
{
	struct sio_local_dint *d = (void *)o;
	const struct message *m = arg;

	return d->callback(d->callback_arg, sio_object_handle(o), m->data, m->len, m->status);
}

/* If it is lost, for the last time: it is not watched any more. */
static void report_loss(struct sio_local_dint *d)
{
	struct message none = {.status = SCI_ERR_NO_LINK_ACCESS};

	if (sio_receiver_is_muted(&d->r, true))
		sio_object_callback(&d->r.o, run_callback, &none);
}

static void ready(struct sio_object *o)
{
	struct sio_local_dint *d = (void *)o;
	_Alignas(16) uint8_t data[SIO_RING_MESSAGE];

	for (unsigned i = 0; i < MESSAGES_AT_ONCE && !sio_receiver_is_muted(&d->r, false); i++) {
		struct message m = {.data = data, .status = SCI_ERR_OK};

		if (look(d, data, sizeof(data), &m.len) < 0) {
			report_loss(d); /* all that came before it was passed on */
			break;
		}
		sio_object_callback(&d->r.o, run_callback, &m);
	}
}

const struct sio_kind_ops sio_local_dint_kind = {
	.kind = SIO_LOCAL_DINT,
	.name = "local data interrupt",
	.leaves = true,
	.never_refused = true,
	.free = local_dint_free,
	.lost = local_dint_lost,
	.is_own = sio_receiver_is_own,
	.event = take_event,
	.ready = ready,
};

static int create(struct sio_library *lib, sci_desc_t sd, sci_local_data_interrupt_t *ret,
		  unsigned adapter, unsigned *number, sci_cb_data_interrupt_t callback, void *arg,
		  unsigned flags, struct sio_err *err)
{
	const unsigned sent = SCI_FLAG_FIXED_INTNO | SCI_FLAG_BROADCAST;
	struct sio_local_dint *d;
	unsigned checked = adapter == SMARTIO_ALL_ADAPTERS ? 0 : adapter;
	int rc = sio_receiver_check(lib, ret, number, checked, callback != NULL, flags,
				    sent | SCI_FLAG_USE_CALLBACK, err);

	if (rc)
		return rc;
	d = calloc(1, sizeof(*d));
	if (d) {
		d->r.o.kind = SIO_LOCAL_DINT;
		d->r.calls = flags & SCI_FLAG_USE_CALLBACK;
		d->callback = d->r.calls ? callback : NULL;
		d->callback_arg = arg;
	}
	rc = sio_receiver_begin(lib, sd, d ? &d->r : NULL, adapter, number, flags & sent, -1, err);
	if (rc)
		return rc;
	*ret = sio_object_handle(&d->r.o);
	sio_object_put(&d->r.o);
	return 0;
}

void SCICreateDataInterrupt(sci_desc_t sd, sci_local_data_interrupt_t *interrupt,
			    unsigned int localAdapterNo, unsigned int *interruptNo,
			    sci_cb_data_interrupt_t callback, void *callbackArg, unsigned int flags,
			    sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? create(lib, sd, interrupt, localAdapterNo, interruptNo, callback,
			      callbackArg, flags, &err)
		     : err.code;

	sio_api_leave(error, rc, &err);
}

/* Ends the waits; the descriptor stays readable until the last user is gone. */
static void cancel(struct sio_local_dint *d)
{
	struct sio_world *w = d->r.o.lib->world;

	__atomic_store_n(&d->gone, true, __ATOMIC_RELEASE); /* pairs with why_not_wait() */
	w->event_write(w, d->r.fd);
	w->lock(w, d->r.lock);
	w->wake_all(w, d->r.lock);
	w->unlock(w, d->r.lock);
}

static int remove_dint(struct sio_library *lib, sci_local_data_interrupt_t interrupt,
		       unsigned flags, struct sio_err *err)
{
	struct sio_receiver *r;
	int rc = sio_receiver_remove(lib, interrupt, SIO_LOCAL_DINT, flags, &r, err);

	if (rc)
		return rc;
	cancel((void *)r);
	sio_object_end(&r->o);
	return 0;
}

void SCIRemoveDataInterrupt(sci_local_data_interrupt_t interrupt, unsigned int flags,
			    sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? remove_dint(lib, interrupt, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}
