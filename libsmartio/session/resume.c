/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session whose smartiod is gone, and that waits for the next one. What the program has mapped
 * goes on meanwhile; calls wait. One thread at a time connects, shows the owner's descriptor, and
 * says what the session has (journal.c); then calls that had no answer are asked again. Whoever
 * waits for an answer does it, or the event thread: neither may be free.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/internal.h"
#include "smartio/uapi.h"

#define MS 1000000ull
#define ANSWER_NS (60000 * MS) /* for each reply of a smartiod that is there */
#define FIRST_RETRY_NS (2 * MS)
#define LAST_RETRY_NS (200 * MS)
#define OTHER_VERSION_NS (1000 * MS) /* between tries at one that speaks another version */

/* The talk with a new smartiod; nobody else knows its connection yet. */
struct talk {
	struct sio_session *s;
	int fd;
	uint32_t id;
	bool reset_seen; /* events may still be behind that */
	_Alignas(8) uint8_t packet[SIO_WIRE_MAX];
};

int sio_session_keep(struct sio_session *s, int owner_fd, struct sio_err *err)
{
	struct sio_journal *j = sio_journal_new();
	bool dead;

	if (!j)
		return sio_fail(err, -ENOMEM, "no memory");
	sio_session_lock(s);
	dead = s->state == SIO_SESSION_DEAD; /* it went before it could be outlived */
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

/* ---- the talk; without the lock but where it says so ---- */

/* dead_fd says so; where nothing can be waited for it may seem to. */
static bool is_over(struct sio_session *s)
{
	bool dead;

	sio_session_lock(s);
	dead = s->state == SIO_SESSION_DEAD;
	sio_session_unlock(s);
	return dead;
}

/* Wait for a packet; dead_fd tells that the session is being closed. -ETIMEDOUT, -ESHUTDOWN. */
static int wait_packet(struct talk *t, uint64_t deadline)
{
	struct sio_world *w = t->s->world;
	struct sio_poll p[2] = {{.fd = t->fd}, {.fd = t->s->dead_fd}};

	if (w->poll(w, p, 2, deadline) == 0)
		return -ETIMEDOUT;
	return p[1].readable && is_over(t->s) ? -ESHUTDOWN : 0;
}

/*
 * Who breaks off the talk is taken for one that ended, so what cannot be sent is sent when there is
 * memory for it. -ETIMEDOUT, -ESHUTDOWN: nothing was sent.
 */
static int say(struct talk *t, const struct sio_msg *req, size_t len, const int *fd,
	       uint64_t deadline)
{
	struct sio_world *w = t->s->world;
	uint64_t pause = FIRST_RETRY_NS, now;

	for (;;) {
		struct sio_poll p = {.fd = t->s->dead_fd};
		ssize_t sent = sio_session_send(t->s, t->fd, req, len, fd, fd ? 1 : 0);

		/* If it is gone its last words are to be taken. */
		if (sent >= 0 || sent == -EPIPE || sent == -ECONNRESET)
			return 0;
		now = w->now(w);
		if (sent != -ENOMEM || now >= deadline)
			return -ETIMEDOUT;
		if (w->poll(w, &p, 1, now + pause < deadline ? now + pause : deadline) &&
		    is_over(t->s))
			return -ESHUTDOWN;
		pause = pause * 2 < LAST_RETRY_NS ? pause * 2 : LAST_RETRY_NS;
	}
}

/*
 * One packet: an event is acted upon. Return: 1 it was one; 0: the reply, of *ret_len bytes, is in
 * the buffer; -errno.
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

/* Return: 0; -errno: of smartiod; -ECONNRESET, -ETIMEDOUT, -ESHUTDOWN: there will be no answer. */
static int ask(struct talk *t, uint32_t type, struct sio_msg *req, size_t len, size_t rep_len,
	       const int *fd)
{
	struct sio_world *w = t->s->world;
	uint64_t deadline = w->now(w) + ANSWER_NS;
	const struct sio_msg *rep = (const void *)t->packet;
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
	if (rep->error && sio_from_le32(rep->error) < 4096)
		return -(int)sio_from_le32(rep->error);
	return got == rep_len && sio_from_le32(rep->type) == type ? 0 : -EPROTO;
}

static int say_hello(struct talk *t)
{
	struct sio_msg_hello req = {
		.version = sio_to_le32(SIO_CLIENT_VERSION),
		.pid = sio_to_le32(t->s->world->pid(t->s->world)),
		.kind = sio_to_le32(SIO_CLIENT_LIBRARY),
	};

	return ask(t, SIO_MSG_HELLO, &req.h, sizeof(req), sizeof(struct sio_rep_hello),
		   &t->s->owner_fd);
}

/*
 * Under the lock: the smartiod that is there now speaks another version of the protocol, and says
 * which side is older. It keeps what the program has as long as the program lives, so maps, I/O and
 * interrupts go on; calls fail until one comes that speaks ours.
 */
static void note_other_version(struct sio_session *s, const struct talk *t)
{
	const struct sio_msg_error *rep = (const void *)t->packet;

	snprintf(s->refusal, sizeof(s->refusal), "%.*s", (int)sizeof(rep->text), rep->text);
}

/*
 * Under the lock: is what @m describes just being given back, so that its exporter may know
 * already?
 */
static bool is_leaving(const struct sio_session *s, const struct sio_msg_restore *m)
{
	for (const struct sio_call *c = s->calls; c; c = c->next)
		if (sio_journal_leaves(m, c->req))
			return true;
	return false;
}

/* What is to be restored before @step. What smartiod does not have any more is forgotten. */
static int say_step(struct talk *t, unsigned step)
{
	struct sio_msg_restore_step end = {.step = sio_to_le32(step)};
	struct sio_session *s = t->s;
	struct sio_msg_restore m;
	uint64_t at = 0;
	bool more;
	int rc;

	sio_session_lock(s);
	end.last_handle = sio_to_le32(sio_journal_last_handle(s->journal));
	sio_session_unlock(s);
	for (;;) {
		sio_session_lock(s);
		more = sio_journal_next(s->journal, step, &at, &m);
		if (more && is_leaving(s, &m))
			m.flags |= sio_to_le32(SIO_RESTORE_LEAVING);
		sio_session_unlock(s);
		if (!more)
			break;
		rc = ask(t, SIO_MSG_RESTORE, &m.h, sizeof(m), sizeof(struct sio_msg), NULL);
		if (rc == -ECONNRESET || rc == -ETIMEDOUT || rc == -ESHUTDOWN || rc == -EPROTO)
			return rc;
		if (rc == 0)
			continue;
		sio_session_lock(s);
		sio_journal_gone(s->journal, at);
		sio_session_unlock(s);
	}
	return ask(t, SIO_MSG_RESTORE_STEP, &end.h, sizeof(end), sizeof(struct sio_msg), NULL);
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
	/* It does not know us: no later one will do better. */
	if (rc == -ENOENT || rc == -EBADF || rc == -EPROTO || rc == -EOPNOTSUPP)
		rc = -EPERM;
	for (unsigned step = 1; rc == 0 && step <= SIO_RESTORE_STEPS; step++)
		rc = say_step(t, step);
	free(t);
	return rc;
}

/* ---- what comes of it; under the lock ---- */

/*
 * What @call was to take away is not there any more: it was done, and the answer got lost. What was
 * never ours is somebody else's, as a pin (DEV_HOLD) that any owner of the registers may end.
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

/* Nobody waits any longer; we go on trying. */
static void give_up_calls(struct sio_session *s)
{
	sio_session_step(s, SIO_SESSION_GIVES_UP);
	while (s->calls) {
		struct sio_call *c = s->calls;

		/* Of what was to be taken away nothing is left: that is no error. */
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
	s->users++; /* whoever closes the session waits: the talk needs journal and descriptors */
	while (s->on_socket) /* they leave at once: the connection is over */
		w->wait(w, s->lock, SIO_FOREVER);
	if (s->fd >= 0)
		w->close(w, s->fd);
	s->fd = -1;
	/* What they say is gone is not restored with the next smartiod. */
	sio_session_drop_posts(s);
	sio_journal_begin(s->journal);
	sio_session_unlock(s);
	fd = w->connect(w);
	rc = fd < 0 ? fd : talk(s, fd);
	sio_session_lock(s);
	s->resuming = false;
	s->users--;
	if (rc == 0 && sio_session_step(s, SIO_SESSION_RESUMES)) {
		s->fd = fd;
		s->reset_seen = false;
		s->resumed = true;
		s->refusal[0] = '\0';
		ask_again(s);
	} else {
		if (fd >= 0)
			w->close(w, fd);
		if (rc == -ECONNRESET) /* it was there, and is gone: the next one is near */
			s->retry_ns = FIRST_RETRY_NS;
		if (rc == -EPERM)
			sio_session_die(s);
		else
			not_yet(s);
	}
	sio_session_kick(s);
	sio_session_wake(s);
}
