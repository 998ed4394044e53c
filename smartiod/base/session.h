/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that are connected to this daemon, their handles, and what they are told. */
#ifndef SMARTIOD_SESSION_H
#define SMARTIOD_SESSION_H

#include "smartiod/base/op.h"

#define SMARTIOD_MAX_OBJECTS 65536 /* objects of one session */

/* One program's connection. */
struct smartiod_session {
	struct smartiod_tree_node by_client; /* in d->sessions */
	uint64_t client;
	uint32_t pid, kind, version;
	enum { SMARTIOD_GREETING, SMARTIOD_GREETED, SMARTIOD_RESTORING, SMARTIOD_OPEN } state;
	bool ending;		      /* its client is gone */
	bool owner_gone;	      /* it is, and what is still read of it is its last words */
	bool bye;		      /* it said that it would end */
	uint64_t owner;		      /* the port's; 0: none */
	uint64_t secret;	      /* in that owner's cookie: of its seals; 0: it has none */
	struct smartiod_tree objects; /* by handle */
	uint32_t next_handle;
	unsigned n_ops;
	unsigned n_rings; /* with memory, of its data interrupts */
	uint32_t forced;  /* the next object gets this handle, which it had before; 0: a new one */
	uint64_t shadow;  /* the port's, in this host's PCI tree; 0: none */
	unsigned step;	  /* RESTORING: the RESTORE_STEP it has said */
	struct smartiod_op *step_op; /* and which it waits in; NULL: none */
	int request_fd; /* came with the request that is served; -1: none. Who keeps it sets -1 */
	struct smartiod_op end; /* its end; embedded, so that ending needs no memory */
	unsigned end_kind;	/* ending: the kind of objects that is being ended; 0: none yet */
	uint64_t end_key;	/* and the handle that this has come to */
};

/*
 * What a client can have a handle of, in the order in which its objects go when it ends: first what
 * is its own; then, when the port has ended its owner, what it has of others.
 */
enum smartiod_kind {
	SMARTIOD_ATTACHMENT = 1, /* another handle of a segment */
	SMARTIOD_SEGMENT,
	SMARTIOD_DINT,
	SMARTIOD_OWN_END, /* the last kind that is its own, and 1 */
	SMARTIOD_MAP = SMARTIOD_OWN_END,
	SMARTIOD_QUEUE,
	SMARTIOD_CONNECTION,
	SMARTIOD_DINT_LINK,
	SMARTIOD_KINDS_END,
	/* These go between the two, all at once: the room's session_end(). */
	SMARTIOD_BORROW = SMARTIOD_KINDS_END,
	SMARTIOD_DMA_MAP,
};

/* First member of whatever a client has a handle of. */
struct smartiod_object {
	struct smartiod_tree_node by_handle; /* in session->objects, while session is set */
	enum smartiod_kind kind;
	struct smartiod_session *session; /* NULL: the client let go of it */
};

/*
 * Handlers of client requests. Size and reserved fields are checked, HELLO was answered. Return: 0:
 * replied, or an operation will; -errno: the caller replies with it and @reterr's text.
 */
typedef int smartiod_client_fn(struct smartiod *d, struct smartiod_session *s, const void *msg,
			       struct sio_err *reterr);

struct smartiod_session *smartiod_session_find(struct smartiod *d, uint64_t client);
/* The one of this owner; NULL. */
struct smartiod_session *smartiod_session_by_owner(struct smartiod *d, uint64_t owner);
/* Answer a HELLO; the session is OPEN from now on. */
void smartiod_hello_reply(struct smartiod *d, struct smartiod_session *s, const void *request,
			  const int *fds, unsigned n_fds);
/* Serve a HELLO that proves nothing, of a kind that was checked. */
int smartiod_hello_now(struct smartiod *d, struct smartiod_session *s, const void *request,
		       struct sio_err *reterr);
/* @msg: a whole reply to @request; the header is filled here. */
void smartiod_reply(struct smartiod *d, struct smartiod_session *s, const void *request, void *msg,
		    size_t len, const int *fds, unsigned n_fds);
void smartiod_reply_error(struct smartiod *d, struct smartiod_session *s, const void *request,
			  int error, const struct sio_err *err);
void smartiod_reply_ok(struct smartiod *d, struct smartiod_session *s, const void *request);
/* An event (SIO_EVM_*) to a client; @s NULL or ending: nothing. The header is filled here. */
void smartiod_event(struct smartiod *d, struct smartiod_session *s, uint32_t type, void *msg,
		    size_t len, const int *fds, unsigned n_fds);
/*
 * From here on: handles of segments whose maker has let go of them, by the numbers of their memory.
 * A session counts up to here, and has told no program of others.
 */
#define SMARTIOD_LET_GO_HANDLES 0xff000000u
/* Give @o a handle. -EMFILE: too many, with a text. */
int smartiod_object_add(struct smartiod_session *s, struct smartiod_object *o,
			enum smartiod_kind kind, struct sio_err *reterr);
/* Take its handle away; nothing if it has none. */
void smartiod_object_remove(struct smartiod_object *o);
/* The object of this kind with this handle; NULL: none, with *reterr EBADF. */
void *smartiod_object_get(struct smartiod_session *s, uint32_t handle, enum smartiod_kind kind,
			  struct sio_err *reterr);
/* Of @handle in the objects of a client: 0 for none. */
static inline uint32_t smartiod_handle(const struct smartiod_object *o)
{
	return o->session ? (uint32_t)o->by_handle.key : 0;
}

/*
 * What a program has of others, or by a number of its own choice, the port cannot prove. So the
 * replies that bring it have a seal, a MAC under a secret of the session that the port keeps with
 * its owner and no program hears: the next smartiod believes what has the right one. seal.c.
 */
/*
 * A library that came back says in @m that it had a thing of some kind before smartiod was started
 * again. What it says is checked against what the port has; nothing is handed out for it.
 */
typedef int smartiod_restore_fn(struct smartiod *d, struct smartiod_session *s,
				const struct sio_msg_restore *m, struct sio_err *reterr);

#define SMARTIOD_COOKIE_SESSION (1ULL << 62) /* of an owner's cookie: the rest is the secret */
uint64_t smartiod_new_secret(struct smartiod *d);
uint64_t smartiod_seal(const struct smartiod_session *s, uint32_t type, uint32_t handle,
		       uint64_t key, uint64_t number, uint64_t more);
/* Was this program told what @m says, as @type? -EACCES. */
int smartiod_seal_check(const struct smartiod_session *s, const struct sio_msg_restore *m,
			uint32_t type, uint64_t number, uint64_t more, struct sio_err *reterr);
uint64_t smartiod_siphash(const uint64_t key[2], const uint64_t *words, unsigned n);

#endif
