/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside smartiod: its objects, and the framework for work that waits for answers.
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
#ifndef SMARTIOD_INTERNAL_H
#define SMARTIOD_INTERNAL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/topology.h"
#include "core/types.h"
#include "sisci_api.h"
#include "smartio/uapi.h"
#include "smartiod/daemon.h"
#include "smartiod/tree.h"
#include "wire/client.h"
#include "wire/peer.h"
#include "wire/wire.h"

#define SMARTIOD_MAX_OBJECTS 4096	       /* objects of one session */
#define SMARTIOD_MAX_PENDING 1024	       /* requests of one session that wait for answers */
#define SMARTIOD_OP_FDS 4		       /* descriptors that an operation can hold */
#define SMARTIOD_GROUPS 8		       /* multicast groups: 0 to 7 */
#define SMARTIOD_MAX_PATHS 16		       /* between two hosts */
#define SMARTIOD_CONNECT_WAIT_NS 2000000000ULL /* for a peer whose link is up */
#define SMARTIOD_PEER_TIMEOUT_NS 5000000000ULL
#define SMARTIOD_RECONNECT_NS 20000000ULL
#define SMARTIOD_REMOVE_WAIT_NS 50000000ULL /* for peers that are just leaving */

/* syslog's levels, by name. */
enum {
	SMARTIOD_ERROR = 3,
	SMARTIOD_WARNING = 4,
	SMARTIOD_NOTICE = 5,
	SMARTIOD_INFO = 6,
	SMARTIOD_DEBUG = 7,
};

struct smartiod_op;
struct smartiod_range;
struct smartiod_session;

/* What came back for an operation. */
struct smartiod_answer {
	int error;	  /* 0 or -errno */
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
	/* Waiting for a peer. */
	uint32_t peer, peer_type;
	uint64_t deadline;
	void *queued; /* not sent yet: the peer is not connected */
	size_t queued_len;
	uint32_t port_op;	 /* waiting for the port: SIO_OP_* */
	uint32_t port_flags;	 /* of that request */
	int fd[SMARTIOD_OP_FDS]; /* held across waits: -1, or closed when the operation ends */
};

/* One program's connection. */
struct smartiod_session {
	struct smartiod_tree_node by_client; /* in d->sessions */
	uint64_t client;
	uint32_t pid, kind;
	enum { SMARTIOD_GREETING, SMARTIOD_GREETED, SMARTIOD_RESTORING, SMARTIOD_OPEN } state;
	bool ending;		      /* its client is gone */
	uint64_t owner;		      /* the port's; 0: none */
	uint64_t secret;	      /* in that owner's cookie: of its seals; 0: it has none */
	struct smartiod_tree objects; /* by handle */
	uint32_t next_handle;
	unsigned n_ops;
	unsigned n_rings; /* with memory, of its data interrupts */
	uint32_t forced;  /* the next object gets this handle, which it had before; 0: a new one */
	unsigned step;	  /* RESTORING: the RESTORE_STEP it has said */
	struct smartiod_op *step_op; /* and which it waits in; NULL: none */
	int request_fd; /* came with the request that is served; -1: none. Who keeps it sets -1 */
	struct smartiod_op end; /* closes the owner; embedded, so that ending needs no memory */
};

/*
 * What a program has of others, or by a number of its own choice, the port cannot prove. So the replies
 * that bring it have a seal, a MAC under a secret of the session that the port keeps with its owner and no
 * program hears: the next smartiod believes what has the right one. seal.c.
 */
#define SMARTIOD_COOKIE_SESSION (1ULL << 62) /* of an owner's cookie: the rest is the secret */
uint64_t smartiod_new_secret(struct smartiod *d);
uint64_t smartiod_seal(const struct smartiod_session *s, uint32_t type, uint32_t handle,
		       uint64_t key, uint64_t number, uint64_t more);
uint64_t smartiod_siphash(const uint64_t key[2], const uint64_t *words, unsigned n);

/* Of an interrupt: what numbers are numbers of. */
static inline uint64_t smartiod_dint_seal_number(bool plain, uint32_t adapter, uint32_t number)
{
	return (uint64_t)plain << 63 | (uint64_t)adapter << 32 | number;
}

enum smartiod_kind {
	SMARTIOD_SEGMENT = 1,
	SMARTIOD_CONNECTION,
	SMARTIOD_MAP,
	SMARTIOD_DINT,
	SMARTIOD_DINT_LINK,
	SMARTIOD_BORROW,
	SMARTIOD_DMA_MAP,
	SMARTIOD_ATTACHMENT, /* another handle of a segment */
	SMARTIOD_QUEUE,
};

/* First member of whatever a client has a handle of. */
struct smartiod_object {
	struct smartiod_tree_node by_handle; /* in session->objects, while session is set */
	enum smartiod_kind kind;
	struct smartiod_session *session; /* NULL: the client let go of it */
};

/* ---- exporter ---- */

/* A connection to a segment of ours, from any node, our own included. */
struct smartiod_ref {
	struct smartiod_ref *next;
	uint32_t node, adapter; /* adapter: ours, where its path arrives */
	uint64_t connection;	/* the importer's number */
	bool down;		/* no path of it through the adapter is up */
	/* RESTORE: about to go; and the exporter knows that it came and went. */
	bool leaving, known_gone;
};

/* What we granted to a peer: it asked, it releases (or its host is down). */
struct smartiod_grant {
	struct smartiod_tree_node by_id; /* in d->grants; key: the port's id */
	uint32_t node, adapter, peer_adapter;
	uint32_t purpose; /* SIO_GRANT_CPU or _DEVICE */
	bool own_borrow;  /* DEVICE: for a device that a program of this host borrows of @node */
	struct smartiod_segment *segment; /* one of these two; neither: a grant of a BAR */
	struct smartiod_ring *ring;
};

/*
 * Memory of this host that can be reached by others. Lives until its session (or borrow) lets go
 * of it and nothing refers to it: refs, grants, pins, dma.
 */
struct smartiod_segment {
	struct smartiod_object o;
	struct smartiod_tree_node by_uid; /* in d->segments */
	struct smartiod_tree_node by_id;  /* in d->segment_ids, while it is named */
	uint64_t uid;			  /* never used again */
	uint32_t id;
	bool named;		      /* SEG_CONNECT finds it by id */
	bool by_uid_ok;		      /* SEG_LOOKUP by uid is allowed (device segments) */
	bool is_private;	      /* SCI_FLAG_PRIVATE */
	bool broadcast;		      /* a member of group @id */
	bool ready;		      /* memory is there */
	bool empty;		      /* SCI_FLAG_EMPTY, and not filled yet */
	bool filled;		      /* it was, and is no more */
	bool filling;		      /* its memory is being allocated */
	bool shared;		      /* others of this host may attach to it */
	bool let_go;		      /* the handle of who made it is gone, others are not */
	bool removed;		      /* no new users; freed when the last one is gone */
	bool owner_gone;	      /* the port frees the memory by itself */
	uint32_t prepared, available; /* bit per adapter */
	/* Of one that was here before us: adapters it was ever available on, connections told of. */
	uint32_t exported, told;
	/* Of a group: available as the port confirmed it, and by which request of which number. */
	uint32_t published, publish_turn, published_turn[SIO_MAX_ADAPTERS];
	unsigned publishing; /* requests to the port on their way */
	uint32_t pid;
	uint64_t owner, mem, bytes, phys; /* owner, mem: the port's */
	int fd;				  /* of the memory; -1 */
	struct smartiod_attachment *attachments;
	struct smartiod_ref *refs;
	unsigned n_refs, n_grants;
	unsigned n_device_grants;    /* of n_grants: for devices */
	unsigned dma;		     /* DMA maps of local devices that reach it */
	unsigned pins;		     /* operations in progress */
	struct smartiod_op *removal; /* SEG_REMOVE that waits for its last user; NULL: none */
};

/* Another program's handle of a segment. */
struct smartiod_attachment {
	struct smartiod_object o;
	struct smartiod_attachment *next;
	struct smartiod_segment *segment; /* NULL: it has ended */
};

/* ---- importer ---- */

enum smartiod_route {
	SMARTIOD_LOCAL,	 /* the segment is on this host */
	SMARTIOD_REMOTE, /* through an adapter */
	SMARTIOD_BAR,	 /* a BAR of a borrowed device: barmap.c */
	SMARTIOD_GROUP,	 /* a multicast group: map is the port's memory for it */
};

/* What SEG_CONNECT and DEV_SEG_CONNECT make. */
struct smartiod_connection {
	struct smartiod_object o;
	struct smartiod_tree_node by_id; /* in d->connections */
	uint64_t id;			 /* ours; never used again */
	enum smartiod_route route;
	bool lost;	 /* the exporter took it back, or is gone: operations give ECONNRESET */
	bool down;	 /* REMOTE: its path is down, and may come back */
	bool closed;	 /* nobody has a handle of it; freed when pins are gone */
	bool connecting; /* the exporter has not answered */
	uint32_t node, segment_id, pid;
	uint64_t uid, bytes;		  /* uid: the segment's at its exporter */
	unsigned adapter, peer_adapter;	  /* REMOTE */
	struct smartiod_segment *segment; /* LOCAL: one of ours, pinned by its ref */
	/* REMOTE: one window, shared by all maps. */
	enum { SMARTIOD_UNMAPPED, SMARTIOD_MAPPING, SMARTIOD_MAPPED } window;
	uint64_t map, map_offset, map_bus_addr; /* the port's */
	uint64_t grant;				/* the exporter's */
	int map_fd;				/* -1 */
	unsigned n_maps;			/* live SMARTIOD_MAP objects */
	unsigned dma;				/* DMA maps through it: SEG_DISCONNECT is EBUSY */
	struct smartiod_range *ranges;		/* of DMA queues; they keep the window */
	bool exact; /* GROUP: of members with memory of their own; map is the way to them */
	unsigned pins;
	void *device; /* BAR: barmap.c's */
};

struct smartiod_map {
	struct smartiod_object o;
	struct smartiod_connection *connection;
	void *bar; /* of a BAR: barmap.c's */
};

/* ---- data interrupts ---- */

/* One sender's ring, at the receiver. Freed when the sender and the library have let go of it. */
struct smartiod_ring {
	struct smartiod_tree_node by_uid; /* in d->rings */
	struct smartiod_ring *next;	  /* in dint->rings */
	struct smartiod_dint *dint;
	uint64_t uid, mem; /* mem: the port's */
	uint32_t number;   /* the library's: DINT_RING, DINT_RING_FREE */
	uint32_t node;
	uint64_t link;			  /* the sender's number */
	uint64_t memory_grant, irq_grant; /* to the sender's host; 0: none */
	bool building;			  /* an operation uses it */
	bool told;			  /* the library knows of it */
	bool ended;			  /* the sender is gone */
	bool freed;			  /* the library let go of it, or is gone */
};

struct smartiod_dint {
	struct smartiod_object o;
	struct smartiod_tree_node by_uid;    /* in d->dints */
	struct smartiod_tree_node by_number; /* in d->dint_numbers, while it is published */
	uint64_t uid, owner, irq;	     /* owner, irq: the port's */
	uint32_t adapter, number, pid;
	bool published; /* in d->dint_numbers */
	bool ready, removed, owner_gone;
	bool plain; /* an interrupt without data: its rings have no memory, the library has none */
	bool broadcast; /* for messages to all nodes, too */
	int trigger_fd; /* for senders on this host */
	struct smartiod_ring *rings;
	unsigned n_rings, pins;
	uint32_t next_ring;
	/*
	 * SCI_FLAG_SHARED_INT: the number, its connections and an interrupt of the daemon's own are
	 * a hub's, which no client has; each owner's interrupt is a member.
	 */
	struct smartiod_dint *hub;		     /* member: NULL when it has left */
	struct smartiod_op *parked;		     /* member: its creation waits for the hub */
	struct smartiod_dint *members, *next_member; /* hub: those that are in */
	bool is_hub;
	int failed;	/* hub: why it will never be ready */
	int watched_fd; /* hub: what senders count up; -1 */
};

/* A sender's end. */
struct smartiod_dint_link {
	struct smartiod_object o;
	struct smartiod_tree_node by_id; /* in d->dint_links */
	uint64_t id, ring_uid;		 /* ring_uid: the receiver's; 0: none yet */
	uint32_t node, adapter, peer_adapter, number, pid;
	bool connecting, lost, closed;
	bool plain;		    /* no ring */
	uint64_t ring_map, irq_map; /* the port's; 0: none */
	bool of_device;		    /* the first member of a struct smartiod_vector: vector.c */
	unsigned pins;
};

/* ---- peers ---- */

struct smartiod_path_state {
	uint32_t adapter, peer_adapter;
	bool up;
};

enum smartiod_peer_state {
	SMARTIOD_PEER_IDLE,
	SMARTIOD_PEER_CONNECTING, /* peer_connect was called */
	SMARTIOD_PEER_HELLO,	  /* connected; its HELLO has not come */
	SMARTIOD_PEER_READY,
};

struct smartiod_peer {
	uint32_t node;
	const struct sio_topo_host *host;
	enum smartiod_peer_state state;
	uint64_t generation; /* its boot, as it says; 0: not connected */
	uint64_t retry_at;   /* UINT64_MAX: not */
	unsigned n_paths;
	struct smartiod_path_state path[SMARTIOD_MAX_PATHS];
};

struct smartiod_counters {
	uint64_t client_messages, client_events, peer_received, peer_sent, port_requests,
		port_events, faults;
};

/* restore.h: what was here before this daemon was started. */
struct smartiod_recovery {
	struct smartiod_tree leftovers;	  /* by the port's id */
	struct smartiod_awaited *awaited; /* programs that are not back */
	struct smartiod_op *grace;	  /* nobody else is served; NULL: that is over */
};

struct smartiod {
	const struct sio_topology *topology;
	const struct sio_topo_host *host;
	uint32_t node;
	const struct smartiod_ops *ops;
	void *ctx;

	bool ready, failed;
	uint32_t world;
	uint32_t n_port_adapters; /* those of the topology that the port has; others have no link */
	uint64_t boot_generation;
	uint8_t boot_id[16];
	uint64_t served;
	int status_fd;
	struct sio_evt_adapter adapter[SIO_MAX_ADAPTERS];

	uint64_t next_uid; /* segments, connections, dints, rings, links: one space */
	uint32_t next_cookie;
	uint64_t timer_at;

	struct smartiod_tree sessions;	   /* by client */
	struct smartiod_tree ops_all;	   /* by id */
	struct smartiod_tree waiting;	   /* by cookie */
	struct smartiod_tree segments;	   /* by uid */
	struct smartiod_tree segment_ids;  /* by id + 1 */
	struct smartiod_tree grants;	   /* by id */
	struct smartiod_tree connections;  /* by id */
	struct smartiod_tree dints;	   /* by uid */
	struct smartiod_tree dint_numbers; /* by adapter and number */
	struct smartiod_tree rings;	   /* by uid */
	struct smartiod_tree dint_links;   /* by id */
	struct smartiod_tree queues;	   /* by uid */
	struct smartiod_segment *member[SMARTIOD_GROUPS];
	unsigned n_peers;
	struct smartiod_peer peer[SIO_MAX_HOSTS];
	struct smartiod_counters count;
	struct smartiod_recovery recovery;
	void *devices; /* the device half's: struct smartiod_devices */
};

/* ---- daemon.c ---- */

void smartiod_log(struct smartiod *d, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t smartiod_uid(struct smartiod *d);
/* Close *fd if it is one, and set it to -1. */
void smartiod_close_fd(struct smartiod *d, int *fd);
/* smartiod_device_start() calls one of these when it has opened the devices, or cannot. */
void smartiod_start_done(struct smartiod *d);
void smartiod_fatal(struct smartiod *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- op.c ---- */

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
void smartiod_op_error(struct smartiod *d, struct smartiod_op *op, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

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

/* For session.c, peer.c, daemon.c. */
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
void smartiod_arm(struct smartiod *d, uint64_t when);

/* ---- session.c ---- */

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
void smartiod_reply_ok(struct smartiod *d, struct smartiod_session *s, const void *request);
/* An event (SIO_EVM_*) to a client; @s NULL or ending: nothing. The header is filled here. */
void smartiod_event(struct smartiod *d, struct smartiod_session *s, uint32_t type, void *msg,
		    size_t len, const int *fds, unsigned n_fds);
/* Give @o a handle. -EMFILE: too many, with a text. */
int smartiod_object_add(struct smartiod_session *s, struct smartiod_object *o,
			enum smartiod_kind kind, struct sio_err *reterr);
/* Take its handle away; nothing if it has none. */
void smartiod_object_remove(struct smartiod_object *o);
/* The object of this kind with this handle; NULL: none, with *reterr EBADF. */
void *smartiod_object_get(struct smartiod_session *s, uint32_t handle, enum smartiod_kind kind,
			  struct sio_err *reterr);
/* Cut a client off for what it sent, and end its session. */
void smartiod_session_cut(struct smartiod *d, struct smartiod_session *s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void smartiod_session_owner_gone(struct smartiod *d, struct smartiod_session *s);
void smartiod_session_free_all(struct smartiod *d);
/* Of @handle in the objects of a client: 0 for none. */
static inline uint32_t smartiod_handle(const struct smartiod_object *o)
{
	return o->session ? (uint32_t)o->by_handle.key : 0;
}

/* ---- segment.c ---- */

smartiod_client_fn smartiod_seg_create, smartiod_seg_prepare, smartiod_seg_available,
	smartiod_seg_unavailable, smartiod_seg_fill;
/* removal.c */
smartiod_client_fn smartiod_seg_remove;
/* segment_share.c */
smartiod_client_fn smartiod_seg_share, smartiod_seg_attach;
/* What a handle of either kind stands for; NULL with *reterr. _ready: with its memory. */
struct smartiod_segment *smartiod_segment_get(struct smartiod_session *s, uint32_t handle,
					      struct sio_err *reterr);
struct smartiod_segment *smartiod_segment_get_ready(struct smartiod_session *s, uint32_t handle,
						    struct sio_err *reterr);
/* A handle that was found goes, if others of its segment stay. Return: whether. */
bool smartiod_segment_let_go(struct smartiod_session *s, uint32_t handle);
/* Has it more than one handle? */
bool smartiod_segment_has_others(const struct smartiod_segment *seg);
/*
 * Is @handle that of the maker, while others have some, and can the port give us the memory? Then that
 * comes first, and answers SEG_REMOVE. -ENOMEM, -EMFILE: nothing is changed.
 */
bool smartiod_segment_can_give(const struct smartiod *d, const struct smartiod_session *s,
			       uint32_t handle, const struct smartiod_segment *seg);
int smartiod_segment_give(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct smartiod_segment *seg, struct sio_err *reterr);
/* A handle that was found is not told of the end that follows. */
void smartiod_segment_forget_handle(struct smartiod_session *s, uint32_t handle);
/* The segment ends: its other handles stand for nothing. */
void smartiod_segment_detach_all(struct smartiod *d, struct smartiod_segment *seg);
/* The program of an attachment is gone. */
void smartiod_attachment_drop(struct smartiod *d, struct smartiod_object *o);
struct smartiod_segment *smartiod_segment_by_id(struct smartiod *d, uint32_t id);

/*
 * A segment without memory yet. @s NULL: no client's (device segments: by uid only). @named: gets
 * @id in the host's space of ids, -EEXIST if taken.
 */
int smartiod_segment_new(struct smartiod *d, struct smartiod_session *s, uint64_t owner, bool named,
			 uint32_t id, uint64_t bytes, struct smartiod_segment **ret,
			 struct sio_err *reterr);
/* Its memory came: the answer to an ALLOC. Takes the descriptor. */
void smartiod_segment_ready(struct smartiod_segment *seg, const struct smartiod_answer *a);
/*
 * No new users from now on; those there are, are told (@reason SCI_CB_*) and lose it. Memory
 * and object go when the last one has let go. @owner_gone: the port frees the memory by itself.
 */
void smartiod_segment_end(struct smartiod *d, struct smartiod_segment *seg, uint32_t reason,
			  bool owner_gone);
struct smartiod_segment *smartiod_segment_by_uid(struct smartiod *d, uint64_t uid);
/* Users. The put may free the segment. */
static inline void smartiod_segment_pin(struct smartiod_segment *seg)
{
	seg->pins++;
}
void smartiod_segment_unpin(struct smartiod *d, struct smartiod_segment *seg);
/* Users may have gone: a removal that waits for that goes on, a removed segment ends. */
void smartiod_segment_check(struct smartiod *d, struct smartiod_segment *seg);
/* Somebody could still reach it, or is about to. */
static inline bool smartiod_segment_used(const struct smartiod_segment *seg)
{
	return seg->n_refs || seg->n_grants || seg->dma || seg->pins;
}
static inline void smartiod_segment_dma_get(struct smartiod_segment *seg)
{
	seg->dma++;
}
void smartiod_segment_dma_put(struct smartiod *d, struct smartiod_segment *seg);
void smartiod_segment_grant_put(struct smartiod *d, struct smartiod_segment *seg, uint32_t purpose);
/*
 * A connection comes; the exporter's library is told of it after the importer has its answer. If we are
 * killed between the two it hears of it from the next smartiod; the other way round it would have heard
 * of one that nobody has, which is asked for again.
 */
int smartiod_segment_ref(struct smartiod_segment *seg, uint32_t node, uint32_t adapter,
			 uint64_t connection, struct sio_err *reterr);
void smartiod_segment_connected(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
				uint32_t adapter);
/* @reason 0: nobody is told. */
void smartiod_segment_unref(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
			    uint64_t connection, uint32_t reason);
void smartiod_segment_free_all(struct smartiod *d); /* and grants */
bool smartiod_segment_has_ref(const struct smartiod_segment *seg, uint32_t node,
			      uint64_t connection);
/*
 * May @node connect? By @uid (if not 0), else by @id, arriving at @adapter (SIO_ADAPTER_ANY: from
 * this host itself: available anywhere). NULL with *reterr.
 */
struct smartiod_segment *smartiod_segment_lookup(struct smartiod *d, uint32_t id, uint64_t uid,
						 uint32_t adapter, struct sio_err *reterr);
/* Drop the references of a node; the exporter's library gets SCI_CB_LOST. */
void smartiod_segment_node_down(struct smartiod *d, uint32_t node);
/* A path of a node to @adapter changed: SCI_CB_NOT_OPERATIONAL or _OPERATIONAL. */
void smartiod_segment_path(struct smartiod *d, uint32_t node, uint32_t adapter);
/* Take the reference of each importer on @adapter (or SIO_ADAPTER_ANY) away and tell it why. */
void smartiod_segment_cut(struct smartiod *d, struct smartiod_segment *seg, uint32_t adapter,
			  uint32_t reason);
/* Tell the importers on @adapter that they are to leave. */
void smartiod_segment_ask_to_leave(struct smartiod *d, struct smartiod_segment *seg,
				   uint32_t adapter);

/* ---- export.c: what peers ask an exporter ---- */

/* Handlers of peers' requests and news, as those of clients. */
typedef int smartiod_peer_fn(struct smartiod *d, struct smartiod_peer *p, const void *msg,
			     struct sio_err *reterr);
smartiod_peer_fn smartiod_peer_seg_lookup, smartiod_peer_seg_release, smartiod_peer_seg_grant,
	smartiod_peer_grant_release;
/*
 * Keep books of a grant that the port gave to @node: it is ungranted at GRANT_RELEASE, or when the
 * node is down. @segment or @ring: told when it ends; both NULL: nobody is. -ENOMEM: nothing kept;
 * the caller ungrants.
 */
int smartiod_grant_keep(struct smartiod *d, uint64_t id, uint32_t node, uint32_t adapter,
			uint32_t peer_adapter, uint32_t purpose, struct smartiod_segment *segment,
			struct smartiod_ring *ring);
/* The answer to a GRANT, as peers tell it. */
void smartiod_wire_grant(const struct sio_evt_grant *evt, struct sio_wire_grant *ret);
/* The importer's half of a window: MAP of what the exporter granted, hanging on @owner. */
void smartiod_port_ask_map(struct smartiod *d, struct smartiod_op *op, uint64_t owner,
			   uint32_t node, uint32_t adapter, uint32_t peer_adapter,
			   const struct sio_wire_grant *g);
/* Is there a grant in the peer's answer, and of at least @bytes? */
bool smartiod_grant_holds(const struct sio_wire_grant *g, uint64_t bytes);
/* News to the exporter that a grant of it is no longer mapped. */
void smartiod_grant_release(struct smartiod *d, uint32_t node, uint64_t grant);
/* UNGRANT and forget; 0 or unknown: nothing. */
void smartiod_grant_end(struct smartiod *d, uint64_t id);
void smartiod_grant_node_down(struct smartiod *d, uint32_t node);
/* The last path to it is down: those for devices of it that this host borrows. */
void smartiod_grant_link_lost(struct smartiod *d, uint32_t node);
/* Grants of BARs end; those of segments and rings stay, for their importers stay, too. */
void smartiod_grant_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter);

/* ---- connect.c, window.c ---- */

smartiod_client_fn smartiod_seg_connect, smartiod_seg_disconnect, smartiod_seg_map,
	smartiod_seg_unmap;
smartiod_peer_fn smartiod_peer_seg_event;
/*
 * Connect for @request of a client: replies struct sio_rep_seg_connect. @uid not 0: a device
 * segment. @adapter SIO_ADAPTER_ANY: whatever path is up.
 */
int smartiod_connect_open(struct smartiod *d, struct smartiod_session *s, const void *request,
			  uint32_t node, uint32_t segment_id, uint64_t uid, uint32_t adapter,
			  struct sio_err *reterr);
/* A new connection object with a handle. */
struct smartiod_connection *smartiod_connection_new(struct smartiod *d, struct smartiod_session *s,
						    enum smartiod_route route,
						    struct sio_err *reterr);
/*
 * The client let go of it, or is gone (@reason to the exporter: SCI_CB_DISCONNECT or _LOST).
 * Gives back all; the object stays while pinned.
 */
void smartiod_connection_close(struct smartiod *d, struct smartiod_connection *c, uint32_t reason);
/* Give its window back, if it has one. */
void smartiod_window_release(struct smartiod *d, struct smartiod_connection *c);
void smartiod_connection_unpin(struct smartiod *d, struct smartiod_connection *c);
/* It was taken away: tell the library (lost = 1), give back window and grant. */
void smartiod_connection_lost(struct smartiod *d, struct smartiod_connection *c, uint32_t reason);
/* The exporter (@node) says something of the connection with this number. */
void smartiod_connection_event(struct smartiod *d, uint32_t node, uint64_t connection,
			       uint32_t reason, bool lost);
void smartiod_connection_free_all(struct smartiod *d);
/* A map with a handle, counted in c->n_maps. */
struct smartiod_map *smartiod_map_new(struct smartiod_session *s, struct smartiod_connection *c,
				      struct sio_err *reterr);
void smartiod_map_drop(struct smartiod *d, struct smartiod_map *m);
void smartiod_connection_node_down(struct smartiod *d, uint32_t node);
/* Its path went down, or is up again: SCI_CB_NOT_OPERATIONAL or _OPERATIONAL. Nothing is lost. */
void smartiod_connection_path(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter, bool up);

/* ---- dint.c, dint_hub.c, ring.c (receiver), dint_link.c (sender) ---- */

smartiod_client_fn smartiod_dint_create, smartiod_dint_remove, smartiod_dint_connect,
	smartiod_dint_disconnect, smartiod_dint_ring_free;
smartiod_peer_fn smartiod_peer_dint_lookup, smartiod_peer_dint_release, smartiod_peer_dint_event;
/* The receiver lets go of it, or is gone: its senders are told. */
void smartiod_dint_end(struct smartiod *d, struct smartiod_dint *dint, bool owner_gone);
/* Its receiver takes no more: lets the sender go, a local one at once (then the ring is gone). */
void smartiod_ring_tell_sender(struct smartiod *d, struct smartiod_ring *ring);
/* @flags: SIO_DINT_PLAIN, SCI_FLAG_BROADCAST: one that messages to all are for. */
struct smartiod_dint *smartiod_dint_find(struct smartiod *d, uint32_t flags, uint32_t adapter,
					 uint32_t number);
/* For texts: what it is. */
static inline const char *smartiod_dint_word(bool plain)
{
	return plain ? "interrupt" : "data interrupt";
}
void smartiod_dint_unpin(struct smartiod *d, struct smartiod_dint *dint);
/* Whatever has the number, a hub, too; NULL: nothing has. */
struct smartiod_dint *smartiod_dint_at(struct smartiod *d, bool plain, uint32_t adapter,
				       uint32_t number);
/* One that only d->dints has yet; NULL with *reterr. */
struct smartiod_dint *smartiod_dint_alloc(struct smartiod *d, bool plain, uint32_t adapter,
					  uint32_t number, struct sio_err *reterr);
/* One with a handle of @s, that nobody finds yet. NULL with *reterr. */
struct smartiod_dint *smartiod_dint_new(struct smartiod *d, struct smartiod_session *s,
					const struct sio_msg_dint_create *m, uint32_t number,
					struct sio_err *reterr);
/* It is found by its number from now on, when it is ready. */
void smartiod_dint_publish(struct smartiod *d, struct smartiod_dint *dint);
/* dint_hub.c: a shared interrupt without members; ends with its last one. NULL with *reterr. */
struct smartiod_dint *smartiod_hub_new(struct smartiod *d, uint32_t adapter, uint32_t number,
				       struct sio_err *reterr);
/* One that was before: takes both descriptors. NULL with *reterr. */
struct smartiod_dint *smartiod_hub_again(struct smartiod *d, uint32_t adapter, uint32_t number,
					 uint64_t irq, int watched_fd, int trigger_fd,
					 struct sio_err *reterr);
void smartiod_hub_join(struct smartiod_dint *hub, struct smartiod_dint *member);
/* @member may be in none. */
void smartiod_hub_leave(struct smartiod *d, struct smartiod_dint *member);
void smartiod_hub_unwatch(struct smartiod *d, struct smartiod_dint *hub);
void smartiod_dint_free_all(struct smartiod *d); /* rings and links, too */
/*
 * A ring for a sender: ALLOC, for one on another host also GRANT of ring and interrupt; then the
 * receiver's library is told, then the sender's daemon (or smartiod_dint_link_local()).
 */
struct smartiod_ring_op {
	struct smartiod_op op; /* fd[0]: the memory */
	struct smartiod_ring *ring;
	unsigned state;
	uint32_t adapter, peer_adapter;
	struct sio_wire_grant memory, trigger;
	struct smartiod_dint_link *link; /* LOCAL: pinned */
};
/*
 * The same for a sender of this host to a plain interrupt: there is nothing to wait for. NULL with
 * *reterr. It ends by smartiod_dint_release().
 */
struct smartiod_ring *smartiod_ring_plain(struct smartiod *d, struct smartiod_dint *dint,
					  uint64_t link, struct sio_err *reterr);
int smartiod_ring_start(struct smartiod *d, struct smartiod_ring_op *r, struct smartiod_dint *dint,
			uint32_t node, uint64_t link, struct sio_err *reterr);
smartiod_step smartiod_ring_step;
/* A ring of before, which its library knows and whose sender is not back yet. NULL with *reterr. */
struct smartiod_ring *smartiod_ring_again(struct smartiod *d, struct smartiod_dint *dint,
					  uint64_t mem, uint32_t number, struct sio_err *reterr);
/* The sender is gone or let go of it. */
void smartiod_ring_end(struct smartiod *d, struct smartiod_ring *ring);
/* The library lets go of it. */
void smartiod_ring_free(struct smartiod *d, struct smartiod_ring *ring);
void smartiod_ring_release(struct smartiod *d, uint32_t node, uint64_t uid);
/* Its memory, as the port calls it: what a library tells it by after a restart. */
uint64_t smartiod_ring_key(struct smartiod *d, uint64_t uid);
/* A grant of it is gone. */
void smartiod_ring_grant_gone(struct smartiod *d, struct smartiod_ring *ring, uint64_t grant);
/* A ring on this host for a sender on this host is there (or not): ends @r. */
void smartiod_dint_link_local(struct smartiod *d, struct smartiod_ring_op *r, int error,
			      const char *text);
struct smartiod_dint_link *smartiod_dint_link_new(struct smartiod *d, struct smartiod_session *s,
						  uint32_t node, bool plain,
						  struct sio_err *reterr);
void smartiod_dint_link_close(struct smartiod *d, struct smartiod_dint_link *l);
/* The receiver (@node) is gone, or says so. */
void smartiod_dint_link_lost(struct smartiod *d, uint32_t node, uint64_t link);
void smartiod_dint_link_node_down(struct smartiod *d, uint32_t node);
void smartiod_dint_link_free_all(struct smartiod *d);
void smartiod_dint_release(struct smartiod *d, uint32_t node, uint64_t ring);

/* ---- peer.c ---- */

#define SIO_ADAPTER_ANY 0xffffffffu

struct smartiod_peer *smartiod_peer_find(struct smartiod *d, uint32_t node);
bool smartiod_peer_link_up(const struct smartiod_peer *p);
/*
 * A path to @node that is up, through @adapter or (SIO_ADAPTER_ANY) the shortest. -ENXIO no such
 * adapter, -EHOSTUNREACH no such node or not joined, -ENETDOWN.
 */
int smartiod_path(struct smartiod *d, uint32_t node, uint32_t adapter, struct sio_path *ret,
		  struct sio_err *reterr);
/* Is this very pair of adapters up? */
bool smartiod_path_up(struct smartiod *d, uint32_t node, uint32_t adapter, uint32_t peer_adapter);
void smartiod_peer_reply(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id, void *msg,
			 size_t len);
void smartiod_peer_reply_error(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id,
			       int error, const char *text);
void smartiod_peer_link_event(struct smartiod *d, const struct sio_evt_link *evt);
void smartiod_peer_start(struct smartiod *d);
uint64_t smartiod_peer_retry(struct smartiod *d, uint64_t now);
/* A peer's reply that nobody waits for any more (time-out): give back what it brought. */
void smartiod_peer_late(struct smartiod *d, uint32_t node, const struct sio_msg *msg);

/* ---- query.c, list.c ---- */

smartiod_client_fn smartiod_adapter_query, smartiod_node_probe, smartiod_list, smartiod_stats;
smartiod_peer_fn smartiod_peer_stats;

#endif
