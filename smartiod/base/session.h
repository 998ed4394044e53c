/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions: the programs that are connected to this daemon, their handles, and the messages that
 * they are sent.
 */
#ifndef SMARTIOD_SESSION_H
#define SMARTIOD_SESSION_H

#include "smartiod/base/fence.h"
#include "smartiod/base/op.h"
#include "smartiod/base/program.h"

#define SMARTIOD_MAX_OBJECTS 65536 /* objects of one session */

/* One program's connection. */
struct smartiod_session {
	struct smartiod_tree_node by_client; /* in d->sessions */
	uint64_t client;
	uint32_t pid, kind, version;
	struct sio_policy_person_of who;  /* its groups are its own */
	struct smartiod_fence fence;	  /* which events it has handled */
	struct smartiod_program *program; /* the process, whose account is charged */
	struct smartiod_session *prev_of_program, *next_of_program;
	enum { SMARTIOD_GREETING, SMARTIOD_GREETED, SMARTIOD_RESTORING, SMARTIOD_OPEN } state;
	bool ending; /* its connection has ended */
	/* the port has reported its owner's end; what is still read are its last messages */
	bool owner_gone;
	bool bye;	 /* it has sent BYE */
	uint64_t owner;	 /* the port's; 0: none */
	uint64_t secret; /* the secret of its seals, in that owner's cookie; 0: it has none */
	struct smartiod_tree objects; /* by handle */
	uint32_t next_handle;
	unsigned n_ops;
	unsigned n_rings; /* with memory, of its data interrupts */
	uint32_t forced;  /* the next object gets this handle, which it had before; 0: a new one */
	/* the port's id of its shadow, a function in this host's PCI tree; 0: none */
	uint64_t shadow;
	bool plugging;		     /* a shadow is being made */
	bool peers;		     /* its shadow and others with this flag reach each other */
	unsigned step;		     /* RESTORING: the last RESTORE_STEP that it has sent */
	struct smartiod_op *step_op; /* the operation of the step that it waits in; NULL: none */
	uint64_t lenders_by;	     /* it has restored all, and waits for its lenders until then */
	/* came with the request that is being served; -1: none. A handler that keeps it sets -1 */
	int request_fd;
	/* the operation that ends the session; embedded, so that ending needs no memory */
	struct smartiod_op end;
	unsigned end_kind; /* ending: the kind of objects that is being ended; 0: none yet */
	uint64_t end_key;  /* ending: the last handle of that kind */
};

/*
 * Kinds of objects that clients have handles of, in the order in which they end with the session:
 * first those that it owns; then, when the port has ended its owner, those that belong to others.
 */
enum smartiod_kind {
	SMARTIOD_ATTACHMENT = 1, /* another handle of a segment */
	SMARTIOD_SEGMENT,
	SMARTIOD_DINT,
	SMARTIOD_OWN_END, /* the last kind of objects that a session owns, plus 1 */
	SMARTIOD_MAP = SMARTIOD_OWN_END,
	SMARTIOD_QUEUE,
	SMARTIOD_CONNECTION,
	SMARTIOD_DINT_LINK,
	SMARTIOD_KINDS_END,
	/* These end between the two groups, all at once: session_end() of the rooms. */
	SMARTIOD_BORROW = SMARTIOD_KINDS_END,
	SMARTIOD_DMA_MAP,
};

/* The first member of every object that clients have handles of. */
struct smartiod_object {
	struct smartiod_tree_node by_handle; /* in session->objects, while session is set */
	enum smartiod_kind kind;
	struct smartiod_session *session; /* NULL: the client released it */
};

/*
 * Handlers of client requests. Size and reserved fields are checked, HELLO was answered. Return: 0:
 * replied, or an operation will; -errno: the caller replies with it and @reterr's text.
 */
typedef int smartiod_client_fn(struct smartiod *d, struct smartiod_session *s, const void *msg,
			       struct sio_err *reterr);
/* Declares the handlers of a list of wire/client.h. */
#define SMARTIOD_CLIENT_FN(NAME, name, ...) smartiod_client_fn smartiod_##name;

struct smartiod_session *smartiod_session_find(struct smartiod *d, uint64_t client);
/* The session whose owner at the port is @owner; NULL. */
struct smartiod_session *smartiod_session_by_owner(struct smartiod *d, uint64_t owner);
/* Answers a HELLO; the session is OPEN from now on. */
void smartiod_hello_reply(struct smartiod *d, struct smartiod_session *s, const void *request,
			  const int *fds, unsigned n_fds);
/* Serves a HELLO of a new program (without an owner's descriptor), whose kind was checked. */
int smartiod_hello_now(struct smartiod *d, struct smartiod_session *s, const void *request,
		       struct sio_err *reterr);
/* Sends @msg, a whole reply to @request; the header is filled here. */
void smartiod_reply(struct smartiod *d, struct smartiod_session *s, const void *request, void *msg,
		    size_t len, const int *fds, unsigned n_fds);
void smartiod_reply_error(struct smartiod *d, struct smartiod_session *s, const void *request,
			  int error, const struct sio_err *err);
void smartiod_reply_ok(struct smartiod *d, struct smartiod_session *s, const void *request);
/*
 * Sends an event (SIO_EVM_*) to a client; @s NULL or ending: nothing is sent. The header is filled
 * here.
 */
void smartiod_event(struct smartiod *d, struct smartiod_session *s, uint32_t type, void *msg,
		    size_t len, const int *fds, unsigned n_fds);
/*
 * Handles from here on belong to segments whose maker has released them; they are made of the
 * numbers of their memory. A session's own handles stay below this.
 */
#define SMARTIOD_RELEASED_HANDLES 0xff000000u
/* Gives @o a handle. -EMFILE: there are too many, with a text. */
int smartiod_object_add(struct smartiod_session *s, struct smartiod_object *o,
			enum smartiod_kind kind, struct sio_err *reterr);
/* Takes its handle away; does nothing if it has none. */
void smartiod_object_remove(struct smartiod_object *o);
/* The object of this kind with this handle; NULL: none, with *reterr EBADF. */
void *smartiod_object_get(struct smartiod_session *s, uint32_t handle, enum smartiod_kind kind,
			  struct sio_err *reterr);
/* The handle of @o, an object of a client; 0 for none. */
static inline uint32_t smartiod_handle(const struct smartiod_object *o)
{
	return o->session ? (uint32_t)o->by_handle.key : 0;
}

/*
 * Seals. The port cannot prove what a program has of other hosts, or by a number of its own choice.
 * So the replies that bring such a thing have a seal: a message authentication code under a secret
 * of the session, which the port keeps with the session's owner and no program learns. The next
 * smartiod accepts a claim with the right seal. seal.c.
 */
/*
 * Restores an object: a library that connected again claims in @m that it had an object of some
 * kind before smartiod was restarted. The claim is checked against what the port has; nothing new
 * is handed out for it.
 */
typedef int smartiod_restore_fn(struct smartiod *d, struct smartiod_session *s,
				const struct sio_msg_restore *m, struct sio_err *reterr);

#define SMARTIOD_COOKIE_SESSION (1ULL << 62) /* bit of an owner's cookie: the rest is the secret */
uint64_t smartiod_new_secret(struct smartiod *d);
uint64_t smartiod_seal(const struct smartiod_session *s, uint32_t type, uint32_t handle,
		       uint64_t key, uint64_t number, uint64_t more);
/* The same of @n words: of another number of them it is another seal. */
uint64_t smartiod_seal_words(const struct smartiod_session *s, uint32_t type, const uint64_t *words,
			     unsigned n);
/* Checks the seal of @m: was this program sent such a reply, of type @type? -EACCES: it was not. */
int smartiod_seal_check(const struct smartiod_session *s, const struct sio_msg_restore *m,
			uint32_t type, uint64_t number, uint64_t more, struct sio_err *reterr);
/* The same, where @seal is what it must be. */
int smartiod_seal_compare(const struct smartiod_session *s, const struct sio_msg_restore *m,
			  uint64_t seal, struct sio_err *reterr);
uint64_t smartiod_siphash(const uint64_t key[2], const uint64_t *words, unsigned n);

/* Behind the name of an object whose request is not answered yet. */
#define SMARTIOD_NOT_YET "is not made yet: wait for the reply that brings its handle"

#endif
