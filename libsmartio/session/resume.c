/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resumes a session whose smartiod has ended, when the next one is there. The program's mappings
 * stay in use meanwhile; its calls wait. One thread at a time connects, sends the owner's
 * descriptor, and restores what the session has (journal.c); then requests without a reply are sent
 * again. Any thread that waits for a reply may do this, or the event thread, because each of them
 * may be busy elsewhere.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/internal.h"
#include "smartio/uapi.h"
#include "wire/check.h"

#define MS 1000000ull
#define ANSWER_NS (60000 * MS) /* for each reply of a smartiod that is there */
#define FIRST_RETRY_NS (2 * MS)
#define LAST_RETRY_NS (200 * MS)
#define OTHER_VERSION_NS (1000 * MS) /* between attempts, where it speaks another version */

/* The exchange with a new smartiod, on a connection that no other thread knows yet. */
struct talk {
	struct sio_session *s;
	int fd;
	uint32_t id;
	bool reset_seen;    /* the connection was reset; events may still follow */
	struct sio_err err; /* why the last request was refused */
	_Alignas(8) uint8_t packet[SIO_WIRE_MAX];
};

int sio_session_keep(struct sio_session *s, int owner_fd, struct sio_err *err)
{
	struct sio_journal *j = sio_journal_new();
	bool dead;

	if (!j)
		return sio_no_memory(err, "the journal of what this session has");
	sio_session_lock(s);
	/* smartiod ended before this session could outlive it */
	dead = s->state == SIO_SESSION_DEAD;
	s->journal = j;
	s->owner_fd = owner_fd;
	if (!dead)
		s->retry_ns = 0;
	sio_session_unlock(s);
	return dead ? sio_fail(err, -ESHUTDOWN, "this host's smartiod is gone") : 0;
}

void sio_session_forget(struct sio_session *s)
{
	sio_session_drop_posts(s);
	sio_journal_free(s->journal);
	s->journal = NULL;
	s->owner_fd = -1;
}

void sio_session_lost(struct sio_session *s)
{
	if (!s->journal || s->closing) {
		sio_session_die(s);
		return;
	}
	if (!sio_session_step(s, SIO_SESSION_LOSES))
		return;
	s->away_since = s->next_try = s->world->now(s->world);
	s->retry_ns = FIRST_RETRY_NS;
	for (struct sio_call *c = s->calls; c; c = c->next)
		c->asked = false;
	sio_session_kick(s);
	sio_session_wake(s);
}

/* ---- the exchange; without the lock unless a comment says otherwise ---- */

/* dead_fd announces it, but may seem readable where the world cannot wait. */
static bool is_over(struct sio_session *s)
{
	bool dead;

	sio_session_lock(s);
	dead = s->state == SIO_SESSION_DEAD;
	sio_session_unlock(s);
	return dead;
}

/* Waits for a packet. dead_fd ends the wait when the session is closed. -ETIMEDOUT, -ESHUTDOWN. */
static int wait_packet(struct talk *t, uint64_t deadline)
{
	struct sio_world *w = t->s->world;
	struct sio_poll p[2] = {{.fd = t->fd}, {.fd = t->s->dead_fd}};

	if (w->poll(w, p, 2, deadline) == 0)
		return -ETIMEDOUT;
	return p[1].readable && is_over(t->s) ? -ESHUTDOWN : 0;
}

/*
 * smartiod takes a client that breaks off the exchange for one that ended, so what fails for want
 * of memory, here or there, is repeated until there is some: after pauses of which each is longer.
 * -ETIMEDOUT: it is too late for that; -ESHUTDOWN.
 */
static int pause_talk(struct talk *t, uint64_t *pause, uint64_t deadline)
{
	struct sio_world *w = t->s->world;
	struct sio_poll p = {.fd = t->s->dead_fd};
	uint64_t now = w->now(w);

	if (now >= deadline)
		return -ETIMEDOUT;
	if (w->poll(w, &p, 1, now + *pause < deadline ? now + *pause : deadline) && is_over(t->s))
		return -ESHUTDOWN;
	*pause = *pause * 2 < LAST_RETRY_NS ? *pause * 2 : LAST_RETRY_NS;
	return 0;
}

/* -ETIMEDOUT, -ESHUTDOWN: nothing was sent. */
static int say(struct talk *t, const struct sio_msg *req, size_t len, const int *fd,
	       uint64_t deadline)
{
	uint64_t pause = FIRST_RETRY_NS;
	int rc;

	do {
		ssize_t sent = sio_session_send(t->s, t->fd, req, len, fd, fd ? 1 : 0);

		/* If smartiod has gone, its last packets are still to be received. */
		if (sent >= 0 || sent == -EPIPE || sent == -ECONNRESET)
			return 0;
		rc = sent == -ENOMEM ? pause_talk(t, &pause, deadline) : -ETIMEDOUT;
	} while (rc == 0);
	return rc;
}

/*
 * Receives one packet, and processes it if it is an event. Return: 1: it was an event; 0: it is the
 * reply, of *ret_len bytes, in the buffer; -errno.
 */
static int take_packet(struct talk *t, size_t *ret_len)
{
	struct sio_session *s = t->s;
	struct sio_world *w = s->world;
	const struct sio_msg *msg = (const void *)t->packet;
	int fds[SIO_WIRE_MAX_FDS];
	unsigned n_fds = 0;
	ssize_t len =
		w->recv(w, t->fd, t->packet, sizeof(t->packet), fds, SIO_WIRE_MAX_FDS, &n_fds, 0);
	int rc = 1;

	if (len == -ETIMEDOUT || len == -EINTR)
		return 1;
	if (len == -ECONNRESET && !t->reset_seen) {
		t->reset_seen = true;
		return 1;
	}
	if (len < (ssize_t)sizeof(*msg) || sio_from_le32(msg->size) != (size_t)len) {
		rc = -ECONNRESET;
	} else if (sio_from_le32(msg->id) == 0) {
		sio_session_lock(s);
		if (s->state != SIO_SESSION_DEAD)
			sio_session_event(s, msg, (size_t)len, fds, n_fds);
		sio_session_unlock(s);
	} else if (sio_from_le32(msg->id) == t->id) {
		*ret_len = (size_t)len;
		rc = 0;
	}
	for (unsigned i = 0; i < n_fds; i++)
		if (fds[i] >= 0)
			w->close(w, fds[i]);
	return rc;
}

/* Return: 0; -errno of smartiod; -ECONNRESET, -ETIMEDOUT, -ESHUTDOWN: there will be no reply. */
static int ask(struct talk *t, uint32_t type, struct sio_msg *req, size_t len, const int *fd)
{
	struct sio_world *w = t->s->world;
	uint64_t deadline = w->now(w) + ANSWER_NS;
	struct sio_wire_header h;
	size_t got = 0;
	int rc;

	sio_session_fill_header(req, len, type, ++t->id);
	rc = say(t, req, len, fd, deadline);
	if (rc)
		return rc;
	do {
		rc = wait_packet(t, deadline);
		if (rc == 0)
			rc = take_packet(t, &got);
	} while (rc == 1);
	if (rc)
		return rc;
	rc = sio_client_check_reply(type, t->packet, got, &h, &t->err);
	if (rc == 0 && h.error)
		rc = sio_fail(&t->err, -(int)h.error, "%s",
			      ((const struct sio_msg_error *)(const void *)t->packet)->text);
	return rc;
}

static int say_hello(struct talk *t)
{
	struct sio_msg_hello req = {
		.version = sio_to_le32(SIO_CLIENT_VERSION),
		.pid = sio_to_le32(t->s->world->pid(t->s->world)),
		.kind = sio_to_le32(SIO_CLIENT_LIBRARY),
	};

	return ask(t, SIO_MSG_HELLO, &req.h, sizeof(req), &t->s->owner_fd);
}

/*
 * Under the lock: the present smartiod speaks another version of the protocol; its text says which
 * side is older. It keeps what the program has as long as the program lives, so maps, I/O and
 * interrupts go on. Calls fail until a smartiod comes that speaks our version.
 */
static void note_other_version(struct sio_session *s, const struct talk *t)
{
	snprintf(s->refusal, sizeof(s->refusal), "%s", t->err.text);
}

/*
 * Under the lock: is a request in flight that gives back the object of @m? Then its exporter may
 * have forgotten it already.
 */
static bool is_leaving(const struct sio_session *s, const struct sio_msg_restore *m)
{
	for (const struct sio_call *c = s->calls; c; c = c->next)
		if (sio_journal_leaves(m, c->req))
			return true;
	return false;
}

/* Restores one object, over again while smartiod has no memory for it. */
static int say_object(struct talk *t, struct sio_msg_restore *m, uint64_t deadline)
{
	uint64_t pause = FIRST_RETRY_NS;
	int rc;

	while ((rc = ask(t, SIO_MSG_RESTORE, &m->h, sizeof(*m), NULL)) == -ENOMEM &&
	       !(m->flags & sio_to_le32(SIO_RESTORE_LAST))) {
		rc = pause_talk(t, &pause, deadline);
		if (rc == -ETIMEDOUT)
			m->flags |= sio_to_le32(SIO_RESTORE_LAST);
		else if (rc)
			return rc;
	}
	return rc;
}

/* Restores what belongs before the end of @step. Objects that smartiod refuses are lost. */
static int say_objects(struct talk *t, unsigned step)
{
	struct sio_session *s = t->s;
	const uint64_t deadline = s->world->now(s->world) + ANSWER_NS;
	struct sio_msg_restore m;
	uint64_t at = 0;
	bool more;
	int rc;

	for (;;) {
		sio_session_lock(s);
		more = sio_journal_next(s->journal, step, &at, &m);
		if (more && is_leaving(s, &m))
			m.flags |= sio_to_le32(SIO_RESTORE_LEAVING);
		sio_session_unlock(s);
		if (!more)
			return 0;
		rc = say_object(t, &m, deadline);
		if (rc == -ECONNRESET || rc == -ETIMEDOUT || rc == -ESHUTDOWN || rc == -EPROTO)
			return rc;
		if (rc == 0)
			continue;
		sio_session_lock(s);
		sio_journal_gone(s->journal, at);
		sio_session_unlock(s);
	}
}

/* Restores them, and ends the step, which is repeated while smartiod has no memory to note it. */
static int say_step(struct talk *t, unsigned step)
{
	struct sio_msg_restore_step end = {.step = sio_to_le32(step)};
	struct sio_session *s = t->s;
	uint64_t pause = FIRST_RETRY_NS, deadline;
	int rc;

	sio_session_lock(s);
	end.last_handle = sio_to_le32(sio_journal_last_handle(s->journal));
	sio_session_unlock(s);
	rc = say_objects(t, step);
	if (rc)
		return rc;
	deadline = s->world->now(s->world) + ANSWER_NS;
	while ((rc = ask(t, SIO_MSG_RESTORE_STEP, &end.h, sizeof(end), NULL)) == -ENOMEM) {
		rc = pause_talk(t, &pause, deadline);
		if (rc)
			break;
	}
	return rc;
}

static int talk(struct sio_session *s, int fd)
{
	struct talk *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	t->s = s;
	t->fd = fd;
	rc = say_hello(t);
	if (rc == -EPROTO && ((const struct sio_msg *)t->packet)->error) {
		sio_session_lock(s);
		note_other_version(s, t);
		sio_session_unlock(s);
		rc = -EPROTONOSUPPORT;
	}
	/* This smartiod does not know the session, and no later one will. */
	if (rc == -ENOENT || rc == -EBADF || rc == -EPROTO || rc == -EOPNOTSUPP)
		rc = -EPERM;
	for (unsigned step = 1; rc == 0 && step <= SIO_RESTORE_STEPS; step++)
		rc = say_step(t, step);
	free(t);
	return rc;
}

/* ---- after the exchange; under the lock ---- */

/*
 * The object that @call was to remove does not exist any more, so the removal was done and its
 * reply was lost. This holds only for objects of this program: a pin (DEV_HOLD), say, may be ended
 * by any owner of the registers.
 */
static bool was_done(struct sio_session *s, struct sio_call *call)
{
	return call->takes_own && !sio_journal_has(s->journal, call->req);
}

static void ask_again(struct sio_session *s)
{
	struct sio_call *c, *next;

	sio_session_send_posts(s);
	for (c = s->calls; c && sio_session_connected(s); c = next) {
		next = c->next;
		if (c->asked)
			continue;
		if (was_done(s, c)) {
			sio_session_taken(s, c->req);
			memset(c->rep, 0, c->rep_len);
			sio_session_finish(s, c, 0);
			continue;
		}
		if (sio_session_send_call(s, c) < 0)
			sio_session_finish(s, c, -ENOMEM);
	}
}

int sio_session_fail_late(struct sio_session *s, struct sio_err *err)
{
	if (s->refusal[0])
		return sio_fail(err, -EPROTONOSUPPORT, "%s", s->refusal);
	return sio_fail(err, -ESHUTDOWN,
			"this host's smartiod is gone, and no other has come in %llu s",
			SIO_SESSION_AWAY_NS / (1000 * MS));
}

/* Calls no longer wait for a smartiod; the attempts to connect go on. */
static void give_up_calls(struct sio_session *s)
{
	sio_session_step(s, SIO_SESSION_GIVES_UP);
	while (s->calls) {
		struct sio_call *c = s->calls;

		/* A call that was to remove something succeeds: nothing is left of it. */
		sio_session_taken(s, c->req);
		sio_session_finish(s, c, sio_session_fail_late(s, c->err));
	}
}

static void set_next_try(struct sio_session *s, uint64_t now)
{
	s->next_try = now + s->retry_ns;
	if (s->retry_ns < LAST_RETRY_NS)
		s->retry_ns = s->retry_ns * 2 < LAST_RETRY_NS ? s->retry_ns * 2 : LAST_RETRY_NS;
}

bool sio_session_try_later(struct sio_session *s, uint64_t until)
{
	struct sio_world *w = s->world;
	uint64_t now = w->now(w);

	if (!w->comes_again || !w->comes_again(w) || now >= until)
		return false;
	if (s->retry_ns < FIRST_RETRY_NS)
		s->retry_ns = FIRST_RETRY_NS;
	set_next_try(s, now);
	w->poll(w, NULL, 0, s->next_try < until ? s->next_try : until);
	return true;
}

static void not_yet(struct sio_session *s)
{
	uint64_t now = s->world->now(s->world);

	if (s->refusal[0])
		s->retry_ns = OTHER_VERSION_NS;
	set_next_try(s, now);
	if (s->refusal[0] || now - s->away_since >= SIO_SESSION_AWAY_NS)
		give_up_calls(s);
}

void sio_session_resume(struct sio_session *s)
{
	struct sio_world *w = s->world;
	int fd, rc;

	s->resuming = true;
	s->users++;	     /* who closes waits: this thread needs journal and descriptors */
	while (s->on_socket) /* they return at once, because the connection is over */
		w->wait(w, s->lock, SIO_FOREVER);
	sio_session_detach(s);
	/* These messages report ends, and what has ended is not restored with the next smartiod. */
	sio_session_drop_posts(s);
	sio_journal_begin(s->journal);
	sio_session_unlock(s);
	fd = w->connect(w);
	rc = fd < 0 ? fd : talk(s, fd);
	sio_session_lock(s);
	s->resuming = false;
	s->users--;
	if (rc == 0 && sio_session_step(s, SIO_SESSION_RESUMES)) {
		sio_session_attach(s, fd);
		s->reset_seen = false;
		s->resumes++;
		s->refusal[0] = '\0';
		ask_again(s);
	} else {
		if (fd >= 0)
			w->close(w, fd);
		if (rc == -ECONNRESET) /* it ended during the exchange: the next one is near */
			s->retry_ns = FIRST_RETRY_NS;
		if (rc == -EPERM)
			sio_session_die(s);
		else
			not_yet(s);
	}
	sio_session_kick(s);
	sio_session_wake(s);
}
