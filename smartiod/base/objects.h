/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside smartiod: its objects. Who may do what with them: internal.h. */
#ifndef SMARTIOD_OBJECTS_H
#define SMARTIOD_OBJECTS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/hash.h"
#include "core/topology.h"
#include "core/types.h"
#include "sisci_api.h"
#include "smartio/uapi.h"
#include "smartiod/base/daemon.h"
#include "smartiod/segment/segment_life.h"
#include "smartiod/base/tree.h"
#include "wire/client.h"
#include "wire/peer.h"
#include "wire/wire.h"

#define SMARTIOD_MAX_OBJECTS 65536	       /* objects of one session */
#define SMARTIOD_END_ONE 16		       /* work to end one of them, against passing it by, */
#define SMARTIOD_END_WORK 4096		       /* and how much is done at a time */
#define SMARTIOD_MAX_PENDING 1024	       /* requests of one session that wait for answers */
#define SMARTIOD_OP_FDS 4		       /* descriptors that an operation can hold */
#define SMARTIOD_GROUPS 8		       /* multicast groups: 0 to 7 */
#define SMARTIOD_MAX_GRANTS 65536	       /* that one host has of this one */
#define SMARTIOD_MAX_PATHS 16		       /* between two hosts */
#define SMARTIOD_CONNECT_WAIT_NS 2000000000ULL /* for a peer whose link is up */
#define SMARTIOD_PEER_TIMEOUT_NS 5000000000ULL
#define SMARTIOD_RECONNECT_NS 20000000ULL

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
	unsigned step;	  /* RESTORING: the RESTORE_STEP it has said */
	struct smartiod_op *step_op; /* and which it waits in; NULL: none */
	int request_fd; /* came with the request that is served; -1: none. Who keeps it sets -1 */
	struct smartiod_op end; /* its end; embedded, so that ending needs no memory */
	unsigned end_kind;	/* ending: the kind of objects that is being ended, */
	uint64_t end_key;	/* and the handle that this has come to */
};

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
	struct smartiod_ref *next, **prev;
	struct sio_hash_node by_connection; /* in the segment's refs_by_connection */
	uint32_t node, adapter;		    /* adapter: ours, where its path arrives */
	uint64_t connection;		    /* the importer's number */
	bool down;			    /* no path of it through the adapter is up */
	/* RESTORE: about to go; and the exporter knows that it came and went. */
	bool leaving, known_gone;
};

/* What we granted to a peer: it asked, it releases (or its host is lost). */
struct smartiod_grant {
	struct smartiod_tree_node by_id; /* in d->grants; key: the port's id */
	uint32_t node, adapter, peer_adapter;
	uint32_t purpose; /* SIO_GRANT_CPU or _DEVICE */
	bool own_borrow;  /* DEVICE: for a device that a program of this host borrows of @node */
	bool adrift;	  /* @node was lost, and may still write to it: adrift.c */
	/* One of these two; neither: of a BAR, or adrift and without @mem: the address alone. */
	struct smartiod_segment *segment;
	struct smartiod_ring *ring;
	bool ring_memory; /* not its trigger */
	uint64_t mem;	  /* of a ring that is no more: it goes with the grant; 0: none */
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
	bool named;	 /* SEG_CONNECT finds it by id */
	uint32_t device; /* whose segment it is: SEG_LOOKUP by uid; 0: of none */
	bool is_private; /* SCI_FLAG_PRIVATE */
	bool broadcast;	 /* a member of group @id */
	bool ready;	 /* memory is there */
	bool empty;	 /* SCI_FLAG_EMPTY, and not filled yet */
	bool filled;	 /* it was, and is no more */
	bool filling;	 /* its memory is being allocated */
	bool shared;	 /* others of this host may attach to it */
	bool let_go;	 /* the handle of who made it is gone */
	enum smartiod_segment_state state;
	bool owner_gone;	      /* the port frees the memory by itself */
	uint32_t prepared, available; /* bit per adapter */
	/*
	 * Of one that was here before us: adapters it was ever available on, connections told of.
	 */
	uint32_t exported, told;
	/* Of a group: available as the port confirmed it, and by which request of which number. */
	uint32_t published, publish_turn, published_turn[SIO_MAX_ADAPTERS];
	unsigned publishing; /* requests to the port on their way */
	uint32_t pid;
	uint64_t owner, mem, bytes, phys; /* owner, mem: the port's */
	int fd;				  /* of the memory; -1 */
	struct smartiod_attachment *attachments;
	struct smartiod_ref *refs; /* the newest first */
	struct sio_hash refs_by_connection;
	unsigned n_refs, n_grants;
	unsigned n_own_grants; /* of n_grants: for devices that this host's programs borrow, */
	unsigned n_adrift;     /* and those that are adrift, which are not among them */
	unsigned dma;	       /* DMA maps of local devices that reach it */
	unsigned pins;	       /* operations in progress */
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
	uint64_t start;				/* of the exporter that gave it */
	int map_fd;				/* -1 */
	/*
	 * The window before: its grant goes back when the port has unmapped it. 0: there is none.
	 */
	uint64_t old_grant, old_start;
	struct smartiod_connection *next_unmapping; /* of d->unmapping, while old_grant is set */
	struct smartiod_connection **prev_unmapping;
	struct smartiod_op unmap;      /* embedded, so that giving back needs no memory */
	unsigned n_maps;	       /* live SMARTIOD_MAP objects */
	unsigned dma;		       /* DMA maps through it: SEG_DISCONNECT is EBUSY */
	struct smartiod_range *ranges; /* of DMA queues; they keep the window */
	bool exact; /* GROUP: of members with memory of their own; map is the way to them */
	unsigned pins;
	void *device;	 /* BAR: barmap.c's */
	uint64_t borrow; /* whose private device segment it is, by the lender's number; else 0 */
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
	uint64_t adrift;		  /* was memory_grant, before that host was lost */
	bool building;			  /* an operation uses it */
	bool told;			  /* the library knows of it */
	bool ended;			  /* the sender is gone */
	bool freed;			  /* the library let go of it, or is gone */
};

/* One adapter's number. */
struct smartiod_dint_number {
	struct smartiod_tree_node node; /* in d->dint_numbers, while the interrupt is published */
	struct smartiod_dint *dint;
};

struct smartiod_dint {
	struct smartiod_object o;
	struct smartiod_tree_node by_uid; /* in d->dints */
	struct smartiod_dint_number at[SIO_MAX_ADAPTERS];
	uint64_t uid, owner, irq; /* owner, irq: the port's */
	uint32_t adapter;	  /* SIO_DINT_ALL_ADAPTERS: it has its number at all of them */
	uint32_t number, pid;
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
	bool plain;		     /* no ring */
	uint64_t ring_map, irq_map;  /* the port's; 0: none */
	uint64_t memory_grant;	     /* the receiver's, of the ring; 0: none */
	uint64_t start;		     /* of the receiver that gave it */
	bool unmapping;		     /* the ring: then @unmap gives back the rest */
	struct smartiod_op unmap;    /* embedded, so that giving back needs no memory */
	struct smartiod_op *leaving; /* the request that waits for that; NULL: none */
	bool of_device;		     /* the first member of a struct smartiod_vector: vector.c */
	unsigned pins;
};

/* ---- peers ---- */

/* An adapter's own, whoever is behind it. */
struct smartiod_link {
	bool up;
	uint64_t since; /* when we heard so */
};

struct smartiod_path_state {
	uint32_t adapter, peer_adapter;
	bool up;
	bool anew;     /* all that we had with the host has ended while it was down */
	uint64_t turn; /* how often it came back with other addresses; as of when it was up last */
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
	uint64_t last_start; /* the same, when it said HELLO last; 0: never */
	uint64_t retry_at;   /* UINT64_MAX: not */
	unsigned n_grants;   /* that it has of us, adrift ones among them */
	unsigned n_rings;    /* of these: memory of rings */
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
	uint64_t latest;		  /* when it is over, whoever comes further */
};

/* The last program that was refused for the version it speaks. */
struct smartiod_refused {
	uint64_t at; /* 0: none */
	uint32_t pid, version;
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
	uint64_t descriptors; /* that this process may have; 0: unknown */
	char no_descriptor[160];
	int status_fd;
	struct sio_evt_adapter adapter[SIO_MAX_ADAPTERS];
	struct smartiod_link link[SIO_MAX_ADAPTERS]; /* down: those that the port has not */

	uint64_t next_uid; /* segments, connections, dints, rings, links: one space */
	uint32_t next_cookie;
	uint64_t timer_at;

	struct smartiod_tree sessions;	  /* by client */
	struct smartiod_tree ops_all;	  /* by id */
	struct smartiod_tree waiting;	  /* by cookie */
	struct smartiod_tree segments;	  /* by uid */
	struct smartiod_tree segment_ids; /* by id + 1 */
	struct smartiod_tree grants;	  /* by id */
	struct smartiod_tree connections; /* by id */
	struct smartiod_connection *unmapping;
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
	struct smartiod_refused refused;
	void *devices; /* the device half's: struct smartiod_devices */
};

#endif
