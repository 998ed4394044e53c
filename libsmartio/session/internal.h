/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by session.c, send.c, loop.c and resume.c. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include "session/journal.h"
#include "session/session.h"
#include "session/state.h"

struct sio_session_watch {
	int fd;
	uintptr_t cookie;
};

struct sio_session {
	struct sio_world *world;
	const struct sio_session_ops *ops;
	void *ctx;
	struct sio_world_lock *lock;

	int fd;		 /* -1: not open */
	int gate_fd;	 /* the event thread's way to see @fd; -1: it looks itself */
	int wake_fd;	 /* the event thread's */
	int poke_fd;	 /* the poller's: somebody else took what it waits for */
	int dead_fd;	 /* readable once the session is dead */
	uint32_t state;	 /* enum sio_session_state; written under the lock, read without */
	bool closing;	 /* the event thread is to end */
	bool close_late; /* and to close the descriptors, as it closed the session itself */
	bool poller;	 /* a thread waits at the socket for all that wait in the condition */
	unsigned users;	 /* threads that use the descriptors */
	unsigned takers; /* threads that take what comes, so that the event thread need not */
	uint32_t next_id;
	struct sio_call *calls; /* waiting for replies */

	/* resume.c. */
	struct sio_journal *journal; /* what the session has; NULL: it ends with its smartiod */
	int owner_fd;		     /* the caller's */
	bool resuming;		     /* a thread is at it */
	unsigned resumes;	     /* smartiods that came after the first */
	/*
	 * The text with which the last smartiod, which speaks another version, refused the
	 * connection; "": none.
	 */
	char refusal[SIO_ERR_TEXT];
	bool reset_seen;    /* of the connection: packets may still be behind that */
	unsigned on_socket; /* threads in a system call at fd */
	uint64_t away_since, next_try, retry_ns;

	/* send.c. */
	struct sio_post *posts; /* could not be said yet; during a talk they wait for its end */
	uint64_t post_at;	/* when that is tried again, with a connection */

	struct sio_world_thread *thread;

	struct sio_session_watch *watches;
	unsigned n_watches;
	unsigned max_watches;
	/* The event thread's poll list, with room for max_watches and two more. */
	struct sio_poll *polls;
	uintptr_t *cookies;
	/* The list to change to; NULL: the present one is large enough. */
	struct sio_poll *bigger_polls;
	uintptr_t *bigger_cookies;

	_Alignas(8) uint8_t packet[SIO_WIRE_MAX];
};

static inline bool sio_session_connected(const struct sio_session *s)
{
	return s->state == SIO_SESSION_CONNECTED;
}
static inline bool sio_session_away(const struct sio_session *s)
{
	return s->state == SIO_SESSION_AWAY || s->state == SIO_SESSION_LATE;
}
/* Under the lock: a transition. False: the event changes nothing. */
bool sio_session_step(struct sio_session *s, enum sio_session_event event);
/* Makes @fd the connection. */
void sio_session_attach(struct sio_session *s, int fd);
/* Closes the connection's descriptors. */
void sio_session_detach(struct sio_session *s);
/* Under the lock: takes the packets that have arrived. */
void sio_session_receive(struct sio_session *s);
/* Under the lock: handles an event; a malformed one ends the session. */
void sio_session_event(struct sio_session *s, const struct sio_msg *msg, size_t len, int *fds,
		       unsigned n_fds);
/* Under the lock: ends @call. */
void sio_session_finish(struct sio_session *s, struct sio_call *call, int result);
/* Under the lock: @req succeeded, with an empty reply. */
void sio_session_taken(struct sio_session *s, const struct sio_msg *req);

/* Sends, with a few retries. -ENOMEM: nothing was sent, and @fd is as good as before. */
ssize_t sio_session_send(struct sio_session *s, int fd, const struct sio_msg *msg, size_t len,
			 const int *fds, unsigned n_fds);
void sio_session_fill_header(struct sio_msg *req, size_t len, uint32_t type, uint32_t id);
/* Under the lock: a number that no waiting call has; 0 is for events. */
uint32_t sio_session_fresh_id(struct sio_session *s);
/*
 * Under the lock: sends the posts that wait, in order; -ENOMEM: not all. May lose the connection.
 */
int sio_session_send_posts(struct sio_session *s);
void sio_session_drop_posts(struct sio_session *s);
/*
 * Under the lock, with a connection: sends @call, which is in the list. Return: 0: it ends, now or
 * later; -ENOMEM: it cannot be sent, which the caller reports.
 */
int sio_session_send_call(struct sio_session *s, struct sio_call *call);
/*
 * The same, with the lock released meanwhile: a system call does not need it. Also on failure @call
 * ends.
 */
void sio_session_send_unlocked(struct sio_session *s, struct sio_call *call);

/* Under the lock: the connection is over; the session, too, if it cannot continue. */
void sio_session_lost(struct sio_session *s);
/* Under the lock: the other end accepts nothing any more. What it sent before is taken first. */
void sio_session_cannot_send(struct sio_session *s);
/*
 * Under the lock, which is released meanwhile: tries to connect again. For one thread: !resuming.
 */
void sio_session_resume(struct sio_session *s);
/* Under the lock: may this thread try that now? */
static inline bool sio_session_may_resume(const struct sio_session *s)
{
	return sio_session_away(s) && !s->resuming && s->world->now(s->world) >= s->next_try;
}
int sio_session_fail_late(struct sio_session *s, struct sio_err *err);
/*
 * Ends a session's ability to resume, as nobody uses it any more: the opposite of
 * sio_session_keep().
 */
void sio_session_forget(struct sio_session *s);

/* Under the lock: no further packet will come. */
void sio_session_die(struct sio_session *s);
/* Thread body. */
void sio_session_loop(void *arg);

#endif
