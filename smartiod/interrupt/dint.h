/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts: dint.c, dint_hub.c and ring.c of their receivers, dint_link.c of senders. */
#ifndef SMARTIOD_DINT_H
#define SMARTIOD_DINT_H

#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"
#include "smartiod/interrupt/ring_life.h"
#include "smartiod/segment/grant.h"

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
	enum smartiod_ring_state state;
};

/* Its sender is gone. */
static inline bool smartiod_ring_ended(const struct smartiod_ring *ring)
{
	return ring->state == SMARTIOD_RING_BUILDING_ENDED ||
	       ring->state == SMARTIOD_RING_DRAINED || ring->state == SMARTIOD_RING_GONE;
}

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
	/*
	 * The sender is a device of this host (lender/): it is lost, and is freed, perhaps later.
	 * NULL: a program.
	 */
	void (*of_device)(struct smartiod *d, struct smartiod_dint_link *link);
	unsigned pins;
};

/* Of an interrupt: what numbers are numbers of, in seals. */
static inline uint64_t smartiod_dint_seal_number(bool plain, uint32_t adapter, uint32_t number)
{
	return (uint64_t)plain << 63 | (uint64_t)adapter << 32 | number;
}

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
/* "adapter 1", or "all adapters". */
const char *smartiod_dint_adapter(const struct smartiod_dint *dint, char *text, size_t size);
/* May an interrupt be of @adapter? SIO_DINT_ALL_ADAPTERS, of all of them: one with data may. */
int smartiod_dint_check_adapter(const struct smartiod *d, bool plain, uint32_t adapter,
				struct sio_err *reterr);
/* Whatever has the number at @adapter, or at any; a hub, too. NULL: nothing has. */
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
/*
 * A ring of before, which its library knows and whose sender is not back yet; @ended: is gone.
 * NULL with *reterr.
 */
struct smartiod_ring *smartiod_ring_again(struct smartiod *d, struct smartiod_dint *dint,
					  uint64_t mem, uint32_t number, bool ended,
					  struct sio_err *reterr);
/* The sender is gone or let go of it. */
void smartiod_ring_end(struct smartiod *d, struct smartiod_ring *ring);
/* The library lets go of it. */
void smartiod_ring_free(struct smartiod *d, struct smartiod_ring *ring);
/* Its memory, as the port calls it: what a library tells it by after a restart. */
uint64_t smartiod_ring_key(struct smartiod *d, uint64_t uid);
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
/*
 * Is a window to this grant of @node, a ring's memory, being made or unmapped, although it is lost?
 */
bool smartiod_dint_link_has(struct smartiod *d, uint32_t node, uint64_t grant);

/* ---- what clients and peers ask: for the room alone ---- */

smartiod_client_fn smartiod_dint_create, smartiod_dint_remove, smartiod_dint_connect,
	smartiod_dint_disconnect, smartiod_dint_ring_free;
smartiod_peer_fn smartiod_peer_dint_lookup, smartiod_peer_dint_release, smartiod_peer_dint_event;
smartiod_restore_fn smartiod_restore_dint, smartiod_restore_ring, smartiod_restore_dint_link;
void smartiod_dint_restored(struct smartiod *d, struct smartiod_object *o);

#endif
