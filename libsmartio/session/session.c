/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests, replies, and which thread reads the socket. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "session/internal.h"
#include "wire/check.h"

#define PACKETS_AT_ONCE 64
#define LOOK_NS 20000000ull

static void close_fds(struct sio_session *s, int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (fds[i] >= 0)
			s->world->close(s->world, fds[i]);
		fds[i] = -1;
	}
}

static void unlist(struct sio_session *s, struct sio_call *call)
{
	struct sio_call **p = &s->calls;

	while (*p != call)
		p = &(*p)->next;
	*p = call->next;
	sio_journal_drop(call->entry);
	call->entry = NULL;
}

static void end(struct sio_call *call, int result)
{
	call->result = result;
	call->finished = true;
	if (call->ended)
		call->ended(call);
}

void sio_session_finish(struct sio_session *s, struct sio_call *call, int result)
{
	unlist(s, call);
	end(call, result);
}

bool sio_session_step(struct sio_session *s, enum sio_session_event event)
{
	enum sio_session_state next;

	if (!sio_session_next((enum sio_session_state)s->state, event, &next))
		return false;
	__atomic_store_n(&s->state, next, __ATOMIC_RELAXED);
	return true;
}

void sio_session_die(struct sio_session *s)
{
	if (!sio_session_step(s, SIO_SESSION_DIES))
		return;
	while (s->calls)
		sio_session_finish(s, s->calls,
				   sio_fail(s->calls->err, -ESHUTDOWN,
					    "the connection to this host's smartiod is gone"));
	s->ops->dead(s->ctx);
	if (s->dead_fd >= 0)
		s->world->event_write(s->world, s->dead_fd);
	sio_session_kick(s);
	sio_session_wake(s);
}

static int reply_error(struct sio_session *s, struct sio_call *call, const struct sio_msg_error *e)
{
	uint32_t code = sio_from_le32(e->h.error);

	/* A handle that an earlier smartiod reported as lost is unknown to this one. */
	if (code == EBADF && s->resumes) {
		code = ECONNRESET;
		sio_session_taken(s, call->req);
	}
	return sio_fail_exhausted(call->err, -(int)code, sio_from_le32(e->reason), "%s", e->text);
}

static void take_reply(struct sio_session *s, const struct sio_msg *msg, size_t len, int *fds,
		       unsigned n_fds)
{
	uint32_t id = sio_from_le32(msg->id);
	struct sio_call *call = s->calls;
	struct sio_wire_header h;
	int rc;

	while (call && call->id != id)
		call = call->next;
	if (!call)
		return;
	rc = sio_client_check_reply(call->type, msg, len, &h, call->err);
	if (rc < 0) {
		sio_session_finish(s, call, rc);
	} else if (h.error) {
		sio_session_finish(s, call, reply_error(s, call, (const void *)msg));
	} else {
		assert(len == call->rep_len);
		if (s->journal)
			sio_journal_done(s->journal, call->entry, call->req, msg);
		call->entry = NULL;
		memcpy(call->rep, msg, len);
		for (unsigned i = 0; i < n_fds && call->n_fds < call->max_fds; i++) {
			if (fds[i] < 0)
				call->missing = fds[i];
			else
				call->fds[call->n_fds++] = fds[i];
			fds[i] = -1;
		}
		/*
		 * done() may find that the other end has gone, and then ends all calls that wait.
		 */
		unlist(s, call);
		if (call->done)
			call->done(call);
		end(call, 0);
	}
}

/*
 * All events before it have been handled: packets are, one after the other, as they come. Without
 * any memory smartiod is not answered, and takes this program for one that has not handled them.
 */
static void answer_fence(struct sio_session *s, const struct sio_evm_fence *fence)
{
	struct sio_msg_events_taken taken = {.number = fence->number};
	struct sio_post *p;

	if (sio_session_notify(s, SIO_MSG_EVENTS_TAKEN, &taken.h, sizeof(taken)) == 0)
		return;
	p = malloc(sizeof(*p));
	if (!p)
		return;
	p->msg.taken = (struct sio_msg_events_taken){.number = fence->number};
	sio_session_post(s, SIO_MSG_EVENTS_TAKEN, p, sizeof(p->msg.taken));
}

void sio_session_event(struct sio_session *s, const struct sio_msg *msg, size_t len, int *fds,
		       unsigned n_fds)
{
	struct sio_wire_header h;
	struct sio_err err;

	if (sio_client_event_size(sio_from_le32(msg->type)) == 0) /* an event of an unknown type */
		return;
	if (sio_client_check_event(msg, len, &h, &err) < 0) {
		s->world->log(s->world, err.text);
		sio_session_die(s);
		return;
	}
	if (h.type == SIO_EVM_FENCE) {
		answer_fence(s, (const struct sio_evm_fence *)msg);
		return;
	}
	if (s->journal)
		sio_journal_event(s->journal, msg);
	s->ops->event(s->ctx, msg, fds, n_fds);
}

void sio_session_taken(struct sio_session *s, const struct sio_msg *req)
{
	if (s->journal && sio_journal_takes_own(s->journal, req))
		sio_journal_done(s->journal, NULL, req, req);
}

static bool take_packet(struct sio_session *s)
{
	const struct sio_msg *msg = (const void *)s->packet;
	int fds[SIO_WIRE_MAX_FDS];
	unsigned n_fds = 0;
	ssize_t len = s->world->recv(s->world, s->fd, s->packet, sizeof(s->packet), fds,
				     SIO_WIRE_MAX_FDS, &n_fds, 0);

	if (len == -ETIMEDOUT || len == -EINTR)
		return false;
	/*
	 * The other end died with messages of ours unread; its own last packets come after that
	 * error.
	 */
	if (len == -ECONNRESET && !s->reset_seen) {
		s->reset_seen = true;
		return true;
	}
	if (len < (ssize_t)sizeof(*msg) || sio_from_le32(msg->size) != (size_t)len) {
		close_fds(s, fds, n_fds);
		/*
		 * A peer that sends nonsense still runs: no thread at the socket would notice an
		 * end, and no other smartiod will come.
		 */
		if (len > 0 || len == -EMSGSIZE)
			sio_session_die(s);
		else
			sio_session_lost(s);
		return false;
	}
	if (sio_from_le32(msg->id) != 0)
		take_reply(s, msg, (size_t)len, fds, n_fds);
	else
		sio_session_event(s, msg, (size_t)len, fds, n_fds);
	close_fds(s, fds, n_fds);
	return true;
}

void sio_session_cannot_send(struct sio_session *s)
{
	while (sio_session_connected(s) && take_packet(s)) /* packets sent before the end */
		;
	if (sio_session_connected(s))
		sio_session_lost(s);
}

void sio_session_receive(struct sio_session *s)
{
	bool any = false;

	for (unsigned i = 0; i < PACKETS_AT_ONCE && sio_session_connected(s) && take_packet(s); i++)
		any = true;
	if (any)
		sio_session_wake(s);
}

void sio_session_wake(struct sio_session *s)
{
	s->world->wake_all(s->world, s->lock);
	if (s->poller)
		s->world->event_write(s->world, s->poke_fd);
}

void sio_session_kick(struct sio_session *s)
{
	if (s->wake_fd >= 0)
		s->world->event_write(s->world, s->wake_fd);
}

void sio_session_pump(struct sio_session *s)
{
	sio_session_lock(s);
	if (sio_session_connected(s))
		sio_session_receive(s);
	sio_session_unlock(s);
}

/* ---- the socket, and who reads it ---- */

static void set_gate(struct sio_session *s, bool open)
{
	if (s->gate_fd >= 0)
		s->world->gate_set(s->world, s->gate_fd, s->fd, open);
}

void sio_session_attach(struct sio_session *s, int fd)
{
	struct sio_world *w = s->world;
	int gate = w->gate_new ? w->gate_new(w, fd) : -1;

	s->fd = fd;
	s->gate_fd = gate < 0 ? -1 : gate; /* without one the event thread wakes too often */
	if (s->takers)
		set_gate(s, false);
}

void sio_session_detach(struct sio_session *s)
{
	int *fd[] = {&s->gate_fd, &s->fd};

	for (unsigned i = 0; i < sizeof(fd) / sizeof(fd[0]); i++) {
		if (*fd[i] >= 0)
			s->world->close(s->world, *fd[i]);
		*fd[i] = -1;
	}
}

/*
 * A thread that waits for a reply takes what comes, for all. The event thread would only be woken
 * with it, for each reply, to find nothing. Who waits at descriptors of its own leaves the gate
 * open: that costs two system calls, and what it waits for mostly comes from there.
 */
static void begin_taking(struct sio_session *s)
{
	if (s->takers++ == 0)
		set_gate(s, false);
}

/* What came last and was not taken wakes the event thread. */
static void end_taking(struct sio_session *s)
{
	if (--s->takers == 0)
		set_gate(s, true);
}

/* Waits at the socket, also on behalf of the threads in the condition variable. */
static int wait_as_poller(struct sio_session *s, uint64_t deadline)
{
	struct sio_poll all[2] = {{.fd = s->fd}, {.fd = s->poke_fd}};
	uint64_t count;
	int rc;

	s->poller = true;
	s->users++;
	s->on_socket++;
	begin_taking(s);
	sio_session_unlock(s);
	rc = s->world->poll(s->world, all, 2, deadline);
	sio_session_lock(s);
	end_taking(s);
	s->on_socket--;
	s->users--;
	s->poller = false;
	if (all[1].readable)
		s->world->event_read(s->world, s->poke_fd, &count);
	if (sio_session_connected(s) && all[0].readable)
		sio_session_receive(s);
	/*
	 * One of the threads in the condition variable has to wait at the socket now, or to close
	 * it.
	 */
	s->world->wake_all(s->world, s->lock);
	return rc == 0 ? -ETIMEDOUT : 0;
}

/*
 * Waits at the caller's own descriptors and at the socket: the poller may leave at any time, and
 * nothing would wake a thread that waits here. The descriptor that becomes readable when the
 * session dies may be read by another thread first; dead_fd stays readable.
 */
static int wait_at(struct sio_session *s, struct sio_poll *polls, unsigned n, uint64_t deadline)
{
	struct sio_poll all[SIO_SESSION_POLLS + 2];
	bool away = !sio_session_connected(s);
	int rc;

	for (unsigned i = 0; i < n; i++)
		all[i] = (struct sio_poll){.fd = polls[i].fd};
	all[n] = (struct sio_poll){.fd = s->dead_fd};
	all[n + 1] = (struct sio_poll){.fd = away ? s->dead_fd : s->fd};
	s->users++;
	s->on_socket += !away;
	sio_session_unlock(s);
	rc = s->world->poll(s->world, all, n + 2, deadline);
	sio_session_lock(s);
	s->on_socket -= !away;
	s->users--;
	for (unsigned i = 0; i < n; i++)
		polls[i].readable = all[i].readable;
	if (sio_session_connected(s) && all[n + 1].readable)
		sio_session_receive(s);
	if (!sio_session_connected(s))
		s->world->wake_all(s->world, s->lock);
	return rc == 0 ? -ETIMEDOUT : 0;
}

/*
 * As sio_session_wait(), without a connection. A thread that waits at its own descriptors checks
 * regularly for a new connection, because nothing would wake it, until there is a new smartiod.
 */
static int wait_away(struct sio_session *s, struct sio_poll *polls, unsigned n, uint64_t deadline)
{
	uint64_t until = SIO_FOREVER;
	int rc;

	/* A thread that waits for a reply can look for the new connection itself. */
	if (deadline == SIO_FOREVER && n == 0 && sio_session_may_resume(s)) {
		sio_session_resume(s);
		return 0;
	}
	if (n > 0) {
		until = s->world->now(s->world) + LOOK_NS;
		if (until > deadline)
			until = deadline;
		rc = wait_at(s, polls, n, until);
	} else {
		if (deadline != SIO_FOREVER)
			until = deadline;
		else if (!s->resuming)
			until = s->next_try;
		rc = s->world->wait(s->world, s->lock, until);
	}
	return until == deadline ? rc : 0;
}

int sio_session_wait(struct sio_session *s, struct sio_poll *polls, unsigned n, uint64_t deadline)
{
	for (unsigned i = 0; i < n; i++)
		polls[i].readable = false;
	if (sio_session_away(s))
		return wait_away(s, polls, n, deadline);
	if (n > 0)
		return wait_at(s, polls, n, deadline);
	if (s->state != SIO_SESSION_DEAD && !s->poller)
		return wait_as_poller(s, deadline);
	return s->world->wait(s->world, s->lock, deadline);
}

/* Under the lock: adds @call to the calls that wait for replies. */
static int enlist(struct sio_session *s, struct sio_call *call, struct sio_err *err)
{
	call->finished = call->asked = call->unsent = false;
	call->entry = NULL;
	call->n_fds = 0;
	call->missing = 0;
	if (s->state == SIO_SESSION_DEAD)
		return sio_fail(err, -ESHUTDOWN, "the connection to this host's smartiod is gone");
	/*
	 * During an exchange with a new smartiod the call waits as others do: what it removes may
	 * have been restored already.
	 */
	if (s->state == SIO_SESSION_LATE && !s->resuming) {
		call->req->type = sio_to_le32(call->type);
		sio_session_taken(s, call->req);
		return sio_session_fail_late(s, err);
	}
	if (s->journal && sio_journal_prepare(call->type, &call->entry) < 0)
		return sio_no_memory(err, "an entry in the session's journal");
	call->id = sio_session_fresh_id(s);
	sio_session_fill_header(call->req, call->req_len, call->type, call->id);
	call->takes_own = s->journal && sio_journal_takes_own(s->journal, call->req);
	call->next = s->calls;
	s->calls = call;
	return 0;
}

int sio_session_call(struct sio_session *s, struct sio_call *call, struct sio_err *err)
{
	int rc;

	call->err = err;
	sio_session_lock(s);
	rc = enlist(s, call, err);
	if (rc) {
		sio_session_unlock(s);
		return rc;
	}
	s->users++;
	begin_taking(s); /* the reply may be there before this thread is at the socket */
	if (!sio_session_away(s))
		sio_session_send_unlocked(s, call);
	while (!call->finished)
		sio_session_wait(s, NULL, 0, SIO_FOREVER);
	end_taking(s);
	s->users--;
	if (s->state == SIO_SESSION_DEAD)
		s->world->wake_all(s->world, s->lock);
	sio_session_unlock(s);
	return call->result;
}

int sio_session_start(struct sio_session *s, struct sio_call *call, struct sio_err *err)
{
	int rc;

	sio_session_lock(s);
	rc = enlist(s, call, err);
	if (rc == 0 && !sio_session_away(s)) {
		rc = sio_session_send_call(s, call);
		if (rc) {
			unlist(s, call);
			sio_fail(err, rc, "%s", call->err->text);
		}
	}
	sio_session_unlock(s);
	return rc;
}

static int no_descriptor(struct sio_world *w, struct sio_err *err)
{
	struct sio_limits l;

	w->limits(w, &l);
	return sio_fail(err, -EMFILE,
			"this process has no file descriptor left of %" PRIu64
			": close some, or raise its limit (ulimit -n, up to %" PRIu64
			"), as smartio run does",
			l.descriptors, l.most_descriptors);
}

int sio_session_check_fds(struct sio_session *s, const struct sio_call *call, unsigned want,
			  struct sio_err *err)
{
	if (call->missing == -EMFILE)
		return no_descriptor(s->world, err);
	if (call->missing)
		return sio_fail(err, call->missing,
				"no memory for a file descriptor: " SIO_MORE_MEMORY);
	if (call->n_fds < want)
		return sio_fail(err, -EPROTO, "smartiod gave %u descriptors, not %u", call->n_fds,
				want);
	return 0;
}

void sio_session_lock(struct sio_session *s)
{
	s->world->lock(s->world, s->lock);
}

void sio_session_unlock(struct sio_session *s)
{
	s->world->unlock(s->world, s->lock);
}

unsigned sio_session_resumes(struct sio_session *s)
{
	unsigned n;

	sio_session_lock(s);
	n = s->resumes;
	sio_session_unlock(s);
	return n;
}

bool sio_session_has(struct sio_session *s, const struct sio_msg *req)
{
	bool has;

	sio_session_lock(s);
	has = !s->journal || sio_journal_has(s->journal, req);
	sio_session_unlock(s);
	return has;
}

bool sio_session_is_dead(const struct sio_session *s)
{
	return s->state == SIO_SESSION_DEAD;
}

uint64_t sio_session_deadline(struct sio_world *w, uint32_t timeout_ms)
{
	if (timeout_ms == 0)
		return 0;
	if (timeout_ms == UINT32_MAX)
		return SIO_FOREVER;
	return w->now(w) + timeout_ms * 1000000ull;
}
