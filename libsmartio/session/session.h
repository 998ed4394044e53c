/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection of a process to its host's smartiod: requests and their replies, events, and the
 * thread that callbacks run on.
 *
 * No particular thread reads the socket: the event thread does, and so does every thread that waits
 * for an answer, because the event thread may be inside a callback that makes calls itself. A
 * packet is taken and acted upon under the session's lock, so the lock's owner has seen all effects
 * of what was taken before. No lock is held while a callback runs or while a thread waits.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "session/world.h"
#include "wire/client.h"

struct sio_session;

struct sio_session_ops {
	/*
	 * Under the lock: an event has arrived. Descriptors left in @fds are closed afterwards.
	 * Must not fail.
	 */
	void (*event)(void *ctx, const struct sio_msg *msg, int *fds, unsigned n_fds);
	/*
	 * Under the lock: smartiod is gone, or the session is being closed. Called once per open.
	 */
	void (*dead)(void *ctx);
	/* Under the lock: is there something for work()? */
	bool (*has_work)(void *ctx);
	/* Event thread, no lock: does that work. */
	void (*work)(void *ctx);
	/* Event thread, no lock: a watched descriptor is readable. */
	void (*ready)(void *ctx, uintptr_t cookie);
};

/* One request. */
struct sio_call {
	struct sio_msg *req; /* size and id are filled in */
	size_t req_len;
	uint32_t type;
	const int *req_fds; /* go along; stay the caller's */
	unsigned n_req_fds;
	void *rep; /* takes the reply, which must have just this length */
	size_t rep_len;
	int *fds; /* takes the reply's descriptors; more than max_fds are closed */
	unsigned max_fds, n_fds;
	int missing; /* 0, or why descriptors of the reply could not be taken: -EMFILE, -ENOMEM */
	/* The request was not sent, for lack of memory (-ENOMEM). It may be sent again. */
	bool unsent;
	/*
	 * Under the lock, as soon as a successful reply has arrived and before any event behind it.
	 */
	void (*done)(struct sio_call *call);
	/*
	 * For sio_session_start(): under the lock, last, when the answer was taken or there will be
	 * none: result and *err have the outcome. May free the call.
	 */
	void (*ended)(struct sio_call *call);
	struct sio_err *err;
	int result;
	void *arg;
	/* private */
	uint32_t id;
	bool finished, asked;
	bool takes_own;			 /* what it takes away was the session's when it was made */
	struct sio_journal_entry *entry; /* for what it makes */
	struct sio_call *next;
};

/* Makes a session that is not open yet. It lives as long as the process. */
int sio_session_new(struct sio_world *w, const struct sio_session_ops *ops, void *ctx,
		    struct sio_session **ret);
/* Frees one that is not open. NULL is fine. */
void sio_session_free(struct sio_session *s);

/*
 * Lets this session continue with another smartiod, if its own ends: whoever has @owner_fd, which
 * stays the caller's, open as long as the session, can prove what it owns. To be called before any
 * request except HELLO. Then the end of a connection is no end of the session: calls wait up to 30
 * s for the next smartiod, which is sent all that the session has, and are sent again; mappings and
 * descriptors continue to work. What is lost meanwhile is reported by events. -ENOMEM; -ESHUTDOWN:
 * it has ended already.
 */
int sio_session_keep(struct sio_session *s, int owner_fd, struct sio_err *err);

/* How long calls wait for a smartiod that ended and may start again. */
#define SIO_SESSION_AWAY_NS 30000000000ull

/*
 * Connects and starts the event thread; waits until @until for a smartiod that ended and may start
 * again. -errno of connecting; -EALREADY: it is open.
 */
int sio_session_open(struct sio_session *s, uint64_t until);
/*
 * For a session that is not open, because no smartiod was there, or it ended before its HELLO was
 * answered: may another smartiod start before @until? If so, waits until the next attempt.
 */
bool sio_session_try_later(struct sio_session *s, uint64_t until);
/*
 * Ends all calls that are under way (they return -ESHUTDOWN), then the thread, then the connection.
 * If called by the event thread itself, the thread ends after the callback.
 */
void sio_session_close(struct sio_session *s);

void sio_session_lock(struct sio_session *s);
void sio_session_unlock(struct sio_session *s);
/* Under the lock: smartiod is gone, or the session was never open. */
bool sio_session_is_dead(const struct sio_session *s);
/* How often a smartiod that was started again has taken the session over. */
unsigned sio_session_resumes(struct sio_session *s);
/*
 * Is what @req, a request that takes something away, is about still there? Only of a session that a
 * smartiod that was started again has taken over can it be gone.
 */
bool sio_session_has(struct sio_session *s, const struct sio_msg *req);
bool sio_session_on_event_thread(struct sio_session *s);

/*
 * Sends a request to smartiod and waits for the answer. Without the lock.
 * Return: 0; -errno of smartiod with its text in @err; -ESHUTDOWN: smartiod is gone; -EPROTO;
 * -ENOMEM with @call->unsent: it could not be sent, and nothing has changed.
 */
int sio_session_call(struct sio_session *s, struct sio_call *call, struct sio_err *err);

/*
 * Sends a request without waiting: @call and what it points to stay until its ended(), whichever
 * thread takes the answer. Without the lock. Return: 0; nothing was sent: -ESHUTDOWN: smartiod is
 * gone; -ENOMEM.
 */
int sio_session_start(struct sio_session *s, struct sio_call *call, struct sio_err *err);

/*
 * Checks whether a call that succeeded brought its descriptors. Return: 0; -EMFILE or -ENOMEM: this
 * process has no room for them all; -EPROTO: smartiod sent fewer than @want.
 */
int sio_session_check_fds(struct sio_session *s, const struct sio_call *call, unsigned want,
			  struct sio_err *err);

/*
 * Notifies smartiod that the program exits normally. The lock need not be held: exit() may be
 * called in a signal handler that interrupted the lock's owner.
 */
void sio_session_bye(struct sio_session *s);

/* A one-way request to smartiod, with the memory to keep it until it can be sent: from malloc(). */
struct sio_post {
	struct sio_post *next;
	size_t len;
	union {
		struct sio_msg h;
		struct sio_msg_handle handle;
		struct sio_msg_dint_ring_free ring;
		struct sio_msg_events_taken taken;
	} msg;
};

/*
 * Under the lock: sends a request whose answer is ignored. Consumes @p. What cannot be sent now is
 * sent before any later request, as long as this smartiod lives.
 */
void sio_session_post(struct sio_session *s, uint32_t type, struct sio_post *p, size_t len);
/* The same without memory for later. -ENOMEM: it cannot be sent now. */
int sio_session_notify(struct sio_session *s, uint32_t type, struct sio_msg *req, size_t len);

/*
 * Under the lock: releases the lock, waits until something happened (a packet was taken, the lock's
 * condition was woken, one of @polls is readable) or @deadline, and takes it again. May return
 * early.
 * Return: 0; -ETIMEDOUT.
 */
#define SIO_SESSION_POLLS 3
int sio_session_wait(struct sio_session *s, struct sio_poll *polls, unsigned n, uint64_t deadline);
/* Under the lock: wakes all threads in sio_session_wait() without descriptors. */
void sio_session_wake(struct sio_session *s);
/* Takes the packets that have arrived, without waiting. Without the lock. */
void sio_session_pump(struct sio_session *s);

/* Under the lock: wakes the event thread to check has_work() and the watches. */
void sio_session_kick(struct sio_session *s);
/* Under the lock: from now on ready() is called while @fd is readable. -ENOMEM. */
int sio_session_watch(struct sio_session *s, int fd, uintptr_t cookie);
/*
 * Under the lock: ends that. A ready() for @cookie may still follow. Unknown cookies are ignored.
 */
void sio_session_unwatch(struct sio_session *s, uintptr_t cookie);

/* now() plus milliseconds; SIO_FOREVER for 0xffffffff, 0 for 0. */
uint64_t sio_session_deadline(struct sio_world *w, uint32_t timeout_ms);

#endif
