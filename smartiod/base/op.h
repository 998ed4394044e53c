/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations: requests that wait for answers of the port or of other daemons. All code that uses
 * them keeps these rules:
 *
 * - One event at a time. An operation of the edge never calls back into the daemon.
 * - Objects refer to each other by pointer only while one pins the other. Across a wait an
 *   operation holds a pin on each object that it uses, and checks the object's state again when the
 *   answer comes: the session may have ended, the connection may be lost, the segment may have been
 *   removed.
 * - A release (UNMAP, UNGRANT, FREE, releases to peers) needs no memory and no answer, because the
 *   port carries out requests in the order in which they were sent. It can therefore never fail
 *   half way.
 * - A request whose session or requesting peer is gone runs on to its next answer, and then
 *   releases what that answer brought.
 */
#ifndef SMARTIOD_OP_H
#define SMARTIOD_OP_H

#include <errno.h>

#include "smartiod/base/state.h"

#define SMARTIOD_MAX_PENDING 1024	       /* requests of one session that wait for answers */
#define SMARTIOD_OP_FDS 4		       /* descriptors that an operation can hold */
#define SMARTIOD_CONNECT_WAIT_NS 2000000000ULL /* for a peer whose link is up */
#define SMARTIOD_PEER_TIMEOUT_NS 5000000000ULL

struct smartiod_op;
struct smartiod_session;

/* The answer to a request of an operation. */
struct smartiod_answer {
	int error;	  /* 0 or -errno */
	uint32_t reason;  /* of the error: what ran out, SIO_OUT_OF_* */
	const char *text; /* of the error; never NULL */
	const void *msg;  /* success: struct sio_evt_* or struct sio_prep_*, its size checked */
	size_t len;
	int *fds; /* take one with smartiod_take_fd(); what is left is closed */
	unsigned n_fds;
};

typedef void smartiod_step(struct smartiod *d, struct smartiod_op *op,
			   const struct smartiod_answer *a);

enum smartiod_wait {
	SMARTIOD_RUNNING,   /* in a step, or about to */
	SMARTIOD_WAIT_PORT, /* the port always answers */
	SMARTIOD_WAIT_PEER, /* until a deadline, or the peer is down */
	SMARTIOD_PARKED,    /* until smartiod_op_resume(); also at the end of its session */
	SMARTIOD_DOZING,    /* the same, and until a deadline */
};

/*
 * One request that is being carried out: who sent it, what it waits for, and the step that
 * continues it. Flows embed it as their first member and have their own state behind it. It waits
 * for one thing at a time.
 */
struct smartiod_op {
	struct smartiod_tree_node by_cookie; /* in d->waiting while it waits for port or peer */
	struct smartiod_tree_node by_id;     /* in d->ops, always */
	smartiod_step *step;
	enum smartiod_wait wait;
	/*
	 * Who sent the request. session NULL and asker 0: nobody, or nobody any more; then what
	 * arrives is undone.
	 */
	struct smartiod_session *session;
	uint32_t asker;	   /* node of the peer that asked */
	uint32_t type, id; /* of the request, for the reply */
	int failed;	   /* the last error that it got as an answer; 0: none */
	uint32_t reason;   /* of that one */
	/* Waiting for a peer. */
	uint32_t peer, peer_type;
	uint64_t deadline;
	void *queued; /* the request, to be sent (again); NULL: it was, for good */
	size_t queued_len;
	bool unsent;		 /* the peer is not connected */
	bool query;		 /* ends as the connection does, and is not sent again */
	uint64_t heard;		 /* how many messages had come from the peer when it was sent */
	uint32_t port_op;	 /* waiting for the port: SIO_OP_* */
	uint32_t port_flags;	 /* of that request */
	int fd[SMARTIOD_OP_FDS]; /* held across waits: -1, or closed when the operation ends */
};

/*
 * A new operation of @size bytes (zeroed, struct smartiod_op first) for a client's request @type,
 * @id (@session NULL: unowned). NULL: no memory, or too many pending (then *reterr says so).
 */
void *smartiod_op_new(struct smartiod *d, struct smartiod_session *session, const void *request,
		      size_t size, smartiod_step *step, struct sio_err *reterr);
/* The same for a request of peer @node. */
void *smartiod_op_new_peer(struct smartiod *d, uint32_t node, const void *request, size_t size,
			   smartiod_step *step, struct sio_err *reterr);
/*
 * Frees the operation, which must not be waiting. Resources that it holds must have been given
 * away.
 */
void smartiod_op_free(struct smartiod *d, struct smartiod_op *op);
/* Has the session or peer that sent the request ended? */
static inline bool smartiod_op_orphan(const struct smartiod_op *op)
{
	return !op->session && !op->asker;
}
/*
 * Replies to whoever sent the request, if anyone. @msg is a whole reply; its header is filled here.
 */
void smartiod_op_reply(struct smartiod *d, struct smartiod_op *op, void *msg, size_t len,
		       const int *fds, unsigned n_fds);
/* A reply that is success alone. */
void smartiod_op_ok(struct smartiod *d, struct smartiod_op *op);
/*
 * Refuses the request with @error. The exhausted resource in the reply is that of the last answer
 * to @op, or of smartiod_op_note(), if that had the same error; otherwise it follows from @error
 * alone.
 */
void smartiod_op_error(struct smartiod *d, struct smartiod_op *op, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Refuses the request with error, reason and text of @err. */
void smartiod_op_fail(struct smartiod *d, struct smartiod_op *op, const struct sio_err *err);
/* Notes why something else failed that @op needs: a later refusal with @error has @reason. */
void smartiod_op_note(struct smartiod_op *op, int error, uint32_t reason);
/* The exhausted resource that a refusal of @op with @error reports. */
uint32_t smartiod_op_reason(const struct smartiod_op *op, int error);
/* Continues @op with an answer that it does not wait for. */
void smartiod_op_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a);

/*
 * Send a request to the port; its answer goes to op->step. @req: h.op, h.owner and h.flags are set
 * by the caller, h.size and h.cookie here.
 */
void smartiod_port_ask(struct smartiod *d, struct smartiod_op *op, void *req, size_t len);
/*
 * The error for a request about an object of another program: the port answers -EPERM when that
 * program has ended, of which it knows before we do.
 */
static inline int smartiod_gone(int error)
{
	return error == -EPERM ? -ENOENT : error;
}
/* With a descriptor, which stays the caller's; -1: without. */
void smartiod_port_ask_fd(struct smartiod *d, struct smartiod_op *op, void *req, size_t len,
			  int fd);
/* Sends a request to the port without waiting for the answer: for releases. A failure is logged. */
void smartiod_port_send(struct smartiod *d, void *req, size_t len);
/* Shorthands for releases; id 0 does nothing. */
void smartiod_port_free(struct smartiod *d, uint64_t mem);
void smartiod_port_ungrant(struct smartiod *d, uint64_t grant);
void smartiod_port_unmap(struct smartiod *d, uint64_t map);
void smartiod_port_owner_close(struct smartiod *d, uint64_t owner);

/*
 * Send a request (SIO_PEER_*) to the daemon of @node; its reply goes to op->step. @msg is a whole
 * message; type is set by the caller, the rest of the header here. A peer whose link is up is
 * waited for. On a failure to send nothing waits and the caller goes on.
 * Return: 0; -EHOSTUNREACH: no such node; -ENETDOWN: no link; -ENOMEM.
 */
int smartiod_peer_ask(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg,
		      size_t len);
/*
 * The same for what needs the other's daemon alone, and is of no use later: a peer that is
 * connected needs no link, and the request ends with the connection (-ENOTCONN). Also -ENOTCONN:
 * the daemon was connected and is not; -ETIMEDOUT: it has not answered a query in time, and nothing
 * has come from it since that was sent.
 */
int smartiod_peer_query(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg,
			size_t len);
/*
 * Sends a message without a reply. It is dropped if the peer is not connected: then the peer has
 * forgotten this host, too.
 */
void smartiod_peer_send(struct smartiod *d, uint32_t node, void *msg, size_t len);
/* Answer request @type with number @id of @node. */
void smartiod_peer_reply(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id, void *msg,
			 size_t len);
void smartiod_peer_reply_error(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id,
			       int error, const struct sio_err *err);

/* Wait until smartiod_op_resume() (which calls the step with error 0 and msg NULL). */
void smartiod_op_park(struct smartiod_op *op);
/* The same, for at most @ns: then the step gets -ETIMEDOUT. */
void smartiod_op_doze(struct smartiod *d, struct smartiod_op *op, uint64_t ns);
void smartiod_op_resume(struct smartiod *d, struct smartiod_op *op);
/* Takes a descriptor out of an answer: it is the caller's from now on. -1: there is none. */
int smartiod_take_fd(const struct smartiod_answer *a, unsigned index);

/* For op_port.c: @op begins to wait for an answer; its answer has arrived. */
void smartiod_op_wait(struct smartiod *d, struct smartiod_op *op, enum smartiod_wait wait);
void smartiod_op_wake(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a);

/* For the daemon. */
void smartiod_op_port_answer(struct smartiod *d, const struct sio_evt *evt, size_t len, int *fds,
			     unsigned n_fds);
void smartiod_op_peer_reply(struct smartiod *d, uint32_t node, const struct sio_msg *msg,
			    size_t len);
void smartiod_op_orphan_session(struct smartiod *d, struct smartiod_session *s);
/*
 * @node is lost: its requests have no sender any more; operations that wait for it fail with
 * @error.
 */
void smartiod_op_peer_down(struct smartiod *d, uint32_t node, int error);
/*
 * The connection to @node has ended, and it may connect again: its requests have no sender any
 * more, and requests to it are sent again then. What those have made without a reply it ends before
 * it receives them again.
 */
void smartiod_op_peer_away(struct smartiod *d, uint32_t node);
/* Fails the operations that wait for @node; the connection stays, and late replies are undone. */
void smartiod_op_peer_fail(struct smartiod *d, uint32_t node, int error, const char *text);
void smartiod_op_peer_ready(struct smartiod *d, uint32_t node);
/* Fails the operations that are overdue. Return: the time of the next deadline. */
uint64_t smartiod_op_expire(struct smartiod *d, uint64_t now);

#endif
