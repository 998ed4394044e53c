/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations: work that waits for answers of the port or of other daemons.
 *
 * Rules that everything here keeps
 *  - One event at a time. An operation of the edge never calls back into the daemon.
 *  - Objects refer to each other by pointer only while one pins the other; across a wait an
 *    operation holds a pin on each object that it uses, and looks at the object's state again when
 *    the answer comes: the session may be gone, the connection lost, the segment removed.
 *  - Giving back (UNMAP, UNGRANT, FREE, releases to peers) needs no memory and no answer: the port
 *    carries out requests in the order they were sent. It therefore can never fail half way.
 *  - A request whose session or asking peer is gone runs on to its next answer and then gives back
 *    what that brought.
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

/* What came back for an operation. */
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
 * One request in the making: who asked, what it waits for, and the step that goes on. Flows embed
 * it as their first member and keep their own state behind it. At most one wait at a time.
 */
struct smartiod_op {
	struct smartiod_tree_node by_cookie; /* in d->waiting while it waits for port or peer */
	struct smartiod_tree_node by_id;     /* in d->ops, always */
	smartiod_step *step;
	enum smartiod_wait wait;
	/* Who asked. session NULL and asker 0: nobody (any more); then undo what comes. */
	struct smartiod_session *session;
	uint32_t asker;	   /* node of the peer that asked */
	uint32_t type, id; /* of the request, for the reply */
	int failed;	   /* the last error that it was answered; 0: none */
	uint32_t reason;   /* of that one */
	/* Waiting for a peer. */
	uint32_t peer, peer_type;
	uint64_t deadline;
	void *queued; /* not sent yet: the peer is not connected */
	size_t queued_len;
	uint32_t port_op;	 /* waiting for the port: SIO_OP_* */
	uint32_t port_flags;	 /* of that request */
	int fd[SMARTIOD_OP_FDS]; /* held across waits: -1, or closed when the operation ends */
};

/*
 * A new operation of @size bytes (zeroed, struct smartiod_op first) for a client's request @type,
 * @id (@session NULL: nobody's). NULL: no memory, or too many pending (then *reterr says so).
 */
void *smartiod_op_new(struct smartiod *d, struct smartiod_session *session, const void *request,
		      size_t size, smartiod_step *step, struct sio_err *reterr);
/* The same for a request of peer @node. */
void *smartiod_op_new_peer(struct smartiod *d, uint32_t node, const void *request, size_t size,
			   smartiod_step *step, struct sio_err *reterr);
/* The operation ends; it must not be waiting. What it holds must have been given away. */
void smartiod_op_free(struct smartiod *d, struct smartiod_op *op);
/* Nobody waits for this any more. */
static inline bool smartiod_op_orphan(const struct smartiod_op *op)
{
	return !op->session && !op->asker;
}
/* Reply to who asked (nobody: nothing). @msg is a whole reply; its header is filled here. */
void smartiod_op_reply(struct smartiod *d, struct smartiod_op *op, void *msg, size_t len,
		       const int *fds, unsigned n_fds);
/* A reply that is success alone. */
void smartiod_op_ok(struct smartiod *d, struct smartiod_op *op);
/*
 * A refusal. What ran out is what @op was told last by an answer, or by smartiod_op_note(), if that
 * was @error; else what @error says by itself.
 */
void smartiod_op_error(struct smartiod *d, struct smartiod_op *op, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same with error, reason and text of @err. */
void smartiod_op_fail(struct smartiod *d, struct smartiod_op *op, const struct sio_err *err);
/* Something else failed that @op needs: a refusal with @error that follows is for @reason. */
void smartiod_op_note(struct smartiod_op *op, int error, uint32_t reason);
/* What ran out, in a refusal of @op with @error. */
uint32_t smartiod_op_reason(const struct smartiod_op *op, int error);
/* @op goes on with an answer that it does not wait for. */
void smartiod_op_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a);

/*
 * Send a request to the port; its answer goes to op->step. @req: h.op, h.owner and h.flags are set
 * by the caller, h.size and h.cookie here.
 */
void smartiod_port_ask(struct smartiod *d, struct smartiod_op *op, void *req, size_t len);
/*
 * What somebody is told who wanted a thing of another program: the port says -EPERM when that
 * program has ended, of which it knows before we do.
 */
static inline int smartiod_gone(int error)
{
	return error == -EPERM ? -ENOENT : error;
}
/* With a descriptor, which stays the caller's; -1: without. */
void smartiod_port_ask_fd(struct smartiod *d, struct smartiod_op *op, void *req, size_t len,
			  int fd);
/* The same without waiting: for giving back. A failure is logged. */
void smartiod_port_tell(struct smartiod *d, void *req, size_t len);
/* Shorthands for giving back; id 0 does nothing. */
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
/* The same without a reply. A peer that is not there gets nothing: it forgot us, too. */
void smartiod_peer_tell(struct smartiod *d, uint32_t node, void *msg, size_t len);

/* Wait until smartiod_op_resume() (which calls the step with error 0 and msg NULL). */
void smartiod_op_park(struct smartiod_op *op);
/* Not longer than @ns: then the step gets -ETIMEDOUT. */
void smartiod_op_doze(struct smartiod *d, struct smartiod_op *op, uint64_t ns);
void smartiod_op_resume(struct smartiod *d, struct smartiod_op *op);
/* A descriptor out of an answer: now the caller's; -1: there is none. */
int smartiod_take_fd(const struct smartiod_answer *a, unsigned index);

/* For op_port.c: @op waits for an answer; and has it. */
void smartiod_op_wait(struct smartiod *d, struct smartiod_op *op, enum smartiod_wait wait);
void smartiod_op_wake(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a);

/* For the daemon. */
void smartiod_op_port_answer(struct smartiod *d, const struct sio_evt *evt, size_t len, int *fds,
			     unsigned n_fds);
void smartiod_op_peer_reply(struct smartiod *d, uint32_t node, const struct sio_msg *msg,
			    size_t len);
void smartiod_op_orphan_session(struct smartiod *d, struct smartiod_session *s);
/* Requests of @node are nobody's; those that wait for it fail with @error. */
void smartiod_op_peer_down(struct smartiod *d, uint32_t node, int error);
/* What waits for it, alone: the connection stays, and late replies are given back. */
void smartiod_op_peer_fail(struct smartiod *d, uint32_t node, int error, const char *text);
void smartiod_op_peer_ready(struct smartiod *d, uint32_t node);
/* Fail what is overdue. Return: when to look again. */
uint64_t smartiod_op_expire(struct smartiod *d, uint64_t now);

#endif
