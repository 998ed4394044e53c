/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts. Receivers: dint.c, dint_hub.c, ring.c. Senders: dint_link.c. */
#ifndef SMARTIOD_DINT_H
#define SMARTIOD_DINT_H

#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"
#include "smartiod/interrupt/ring_life.h"
#include "smartiod/interrupt/sender_life.h"
#include "smartiod/segment/grant.h"

struct smartiod_forbid;

/* One sender's ring, at the receiver. Freed when the sender and the library have released it. */
struct smartiod_ring {
	struct smartiod_tree_node by_uid; /* in d->rings */
	struct smartiod_ring *next;	  /* in dint->rings */
	struct smartiod_dint *dint;
	uint64_t uid, mem; /* mem: the port's */
	uint64_t old_uid;  /* what its sender calls it, of before our start; 0: uid */
	uint32_t number;   /* its number for the library: DINT_RING, DINT_RING_FREE */
	uint32_t node;
	uint64_t link;			  /* the sender's number */
	uint64_t memory_grant, irq_grant; /* to the sender's host; 0: none */
	uint64_t orphaned; /* the orphaned grant of the memory, since that host was lost */
	uint32_t meeting;  /* of the daemons, at which the sender's named it last */
	enum smartiod_ring_state state;
};

/* Has its sender ended? */
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
	bool own; /* it triggers an eventfd: for its program, and for devices that that has send */
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
	struct smartiod_dint *members, *next_member; /* hub: its members */
	bool is_hub;
	/* Nodes whose devices a program of this host has connected to it: a bit for each fourth. */
	uint64_t devices_of[SIO_MAX_NODE / 4 / 64 + 1];
	int failed;	/* hub: why it will never be ready */
	int watched_fd; /* hub: the descriptor that senders add to; -1 */
};

/* A sender's connection to an interrupt. */
struct smartiod_dint_link {
	struct smartiod_object o;
	struct smartiod_tree_node by_id; /* in d->dint_links */
	uint64_t id, ring_uid;		 /* ring_uid: the receiver's; 0: none yet */
	uint32_t node, adapter, peer_adapter, number, pid;
	enum smartiod_sender_state state;
	bool plain;		    /* no ring */
	uint64_t ring_map, irq_map; /* the port's; 0: none */
	uint64_t memory_grant;	    /* the receiver's, of the ring; 0: none */
	uint64_t trigger_grant;	    /* the receiver's, of the interrupt */
	uint64_t start;		    /* the start of the receiver that granted it */
	uint64_t peer_boot;	    /* smartiod_path_start() when it was made */
	/* A device's, of before our start: where its window leads, and the receiver's grant. */
	uint64_t there, there_grant;
	struct smartiod_op unmap; /* of the ring; embedded, so that giving back needs no memory */
	struct smartiod_op *leaving; /* the request that waits for the unmapping; NULL: none */
	/*
	 * The sender is a device of this host (lender/): called when the connection is lost, and
	 * frees it, perhaps later. NULL: the sender is a program.
	 */
	void (*of_device)(struct smartiod *d, struct smartiod_dint_link *link);
};

/* A program of this host lets a device of node @node trigger @dint. */
static inline void smartiod_dint_let_devices(struct smartiod_dint *dint, uint32_t node)
{
	dint->devices_of[node / 4 / 64] |= 1ULL << node / 4 % 64;
}

static inline bool smartiod_dint_lets_devices(const struct smartiod_dint *dint, uint32_t node)
{
	return dint->devices_of[node / 4 / 64] >> node / 4 % 64 & 1;
}

/* The kind of number of an interrupt, for seals. */
static inline uint64_t smartiod_dint_seal_number(bool plain, uint32_t adapter, uint32_t number)
{
	return (uint64_t)plain << 63 | (uint64_t)adapter << 32 | number;
}

/* The receiver has released the interrupt, or has ended: its senders are notified. */
void smartiod_dint_end(struct smartiod *d, struct smartiod_dint *dint, bool owner_gone);
/*
 * The receiver takes no more messages: notifies the ring's sender; for a local one the ring ends at
 * once.
 */
void smartiod_ring_notify_sender(struct smartiod *d, struct smartiod_ring *ring);
/* @flags: SIO_DINT_PLAIN, SCI_FLAG_BROADCAST: one that messages to all are for. */
struct smartiod_dint *smartiod_dint_find(struct smartiod *d, uint32_t flags, uint32_t adapter,
					 uint32_t number);
/* The kind of interrupt, for texts. */
static inline const char *smartiod_dint_word(bool plain)
{
	return plain ? "interrupt" : "data interrupt";
}
void smartiod_dint_unpin(struct smartiod *d, struct smartiod_dint *dint);
/* "adapter 1", or "all adapters". */
const char *smartiod_dint_adapter(const struct smartiod_dint *dint, char *text, size_t size);
/*
 * Can an interrupt be at @adapter? At all of them (SIO_DINT_ALL_ADAPTERS) only one with data can.
 */
int smartiod_dint_check_adapter(const struct smartiod *d, bool plain, uint32_t adapter,
				struct sio_err *reterr);
/* The interrupt that has the number at @adapter, or at any, or a hub; NULL: none. */
struct smartiod_dint *smartiod_dint_at(struct smartiod *d, bool plain, uint32_t adapter,
				       uint32_t number);
/* A new interrupt, which only d->dints has; NULL with *reterr. */
struct smartiod_dint *smartiod_dint_alloc(struct smartiod *d, bool plain, uint32_t adapter,
					  uint32_t number, struct sio_err *reterr);
/*
 * A new interrupt with a handle of @s, which cannot be found by its number yet. NULL with *reterr.
 */
struct smartiod_dint *smartiod_dint_new(struct smartiod *d, struct smartiod_session *s,
					const struct sio_msg_dint_create *m, uint32_t number,
					struct sio_err *reterr);
/* The interrupt is found by its number from now on, when it is ready. */
void smartiod_dint_publish(struct smartiod *d, struct smartiod_dint *dint);
/* dint_hub.c: a shared interrupt without members; ends with its last one. NULL with *reterr. */
struct smartiod_dint *smartiod_hub_new(struct smartiod *d, uint32_t adapter, uint32_t number,
				       struct sio_err *reterr);
/* Restores a hub of before the restart: takes both descriptors, unless it is NULL, with *reterr. */
struct smartiod_dint *smartiod_hub_again(struct smartiod *d, uint32_t adapter, uint32_t number,
					 uint64_t irq, int watched_fd, int trigger_fd,
					 struct sio_err *reterr);
void smartiod_hub_join(struct smartiod_dint *hub, struct smartiod_dint *member);
/* Takes @member out of its hub, if it is in one. */
void smartiod_hub_leave(struct smartiod *d, struct smartiod_dint *member);
void smartiod_hub_unwatch(struct smartiod *d, struct smartiod_dint *hub);
void smartiod_dint_free_all(struct smartiod *d); /* rings and links, too */
/*
 * A ring for a sender: ALLOC, for one on another host also GRANT of ring and interrupt; then the
 * receiver's library is notified, then the sender's daemon (or smartiod_dint_link_local()).
 */
struct smartiod_ring_op {
	struct smartiod_op op; /* fd[0]: the memory */
	struct smartiod_ring *ring;
	unsigned state;
	uint32_t adapter, peer_adapter;
	struct sio_wire_grant memory, trigger;
	struct smartiod_dint_link *link; /* LOCAL: it is connecting */
};
/*
 * A ring for a sender of this host to a plain interrupt: there is nothing to wait for. NULL with
 * *reterr. It ends by smartiod_dint_release().
 */
struct smartiod_ring *smartiod_ring_plain(struct smartiod *d, struct smartiod_dint *dint,
					  uint64_t link, struct sio_err *reterr);
int smartiod_ring_start(struct smartiod *d, struct smartiod_ring_op *r, struct smartiod_dint *dint,
			uint32_t node, uint64_t link, struct sio_err *reterr);
smartiod_step smartiod_ring_step;
/*
 * Restores a ring that its library knows and whose sender has not connected again yet, on this
 * host or on the one that has a grant of its memory; @ended: has ended. NULL with *reterr.
 */
struct smartiod_ring *smartiod_ring_again(struct smartiod *d, struct smartiod_dint *dint,
					  uint64_t mem, uint32_t number, bool ended,
					  struct sio_err *reterr);
/*
 * The ring of a sender of @node that has named itself by @m: @ring, of before our start; or a
 * new one of a plain interrupt, which the port's grant alone is left of. NULL: it cannot be.
 */
struct smartiod_ring *smartiod_ring_resume(struct smartiod *d, struct smartiod_dint *dint,
					   uint32_t node, const struct sio_peer_resume_ring *m,
					   struct smartiod_ring *ring);
/*
 * One of @node's that has not ended, by the sender's number or by the grant of its interrupt;
 * NULL.
 */
struct smartiod_ring *smartiod_ring_of(struct smartiod *d, uint32_t node, uint64_t link,
				       uint64_t trigger);
/* One of @node's, by what that calls it; NULL. */
struct smartiod_ring *smartiod_ring_called(struct smartiod *d, uint32_t node, uint64_t uid);
/* The sender of the ring has ended or has released it. */
void smartiod_ring_end(struct smartiod *d, struct smartiod_ring *ring);
/*
 * Its sender is not known any more, and has not released it: where its memory may still be
 * mapped, it is orphaned.
 */
void smartiod_ring_drop(struct smartiod *d, struct smartiod_ring *ring);
/* The receiver's library has released the ring. */
void smartiod_ring_free(struct smartiod *d, struct smartiod_ring *ring);
/* The port's id of the ring's memory, by which a library names the ring after a restart. */
uint64_t smartiod_ring_key(struct smartiod *d, uint64_t uid);
/* The ring for a sender of this host is made (or could not be): ends @r. */
void smartiod_dint_link_local(struct smartiod *d, struct smartiod_ring_op *r, int error,
			      const char *text);
struct smartiod_dint_link *smartiod_dint_link_new(struct smartiod *d, struct smartiod_session *s,
						  uint32_t node, bool plain,
						  struct sio_err *reterr);
void smartiod_dint_link_enter(struct smartiod *d, struct smartiod_dint_link *l,
			      enum smartiod_sender_event event);
void smartiod_dint_link_close(struct smartiod *d, struct smartiod_dint_link *l);
/* The seal of a connection to another host, by what it has with its handle. */
uint64_t smartiod_dint_link_seal(const struct smartiod_session *s,
				 const struct smartiod_dint_link *l);
/* The receiver of a connection, of @node, has ended, or that node reports so. */
void smartiod_dint_link_lost(struct smartiod *d, uint32_t node, uint64_t link);
void smartiod_dint_link_node_down(struct smartiod *d, uint32_t node);
void smartiod_dint_link_free_all(struct smartiod *d);
void smartiod_dint_release(struct smartiod *d, uint32_t node, uint64_t ring, uint64_t link);
/* The published interrupt of this host that the port calls @irq; NULL. */
struct smartiod_dint *smartiod_dint_by_irq(struct smartiod *d, uint64_t irq);
/*
 * Has a connection this grant of @node, of a ring's memory or of its interrupt, or is a window
 * to it being unmapped?
 */
bool smartiod_dint_link_has(struct smartiod *d, uint32_t node, uint64_t grant);

/* May @node send @dint? -errno with *reterr. */
int smartiod_dint_may_send(struct smartiod *d, uint32_t node, const struct smartiod_dint *dint,
			   struct sio_err *reterr);
/* -EACCES: the sender is none whom the program of an eventfd has chosen. */
int smartiod_dint_not_own(const struct smartiod *d, const struct smartiod_dint *dint,
			  struct sio_err *reterr);

/* ---- resume.c: the daemons of two hosts have connected again ---- */

void smartiod_interrupt_resume(struct smartiod *d, uint32_t node);
/* Parts of the room's table (base/room.h). */
bool smartiod_dint_link_grant_again(struct smartiod *d, uint32_t node,
				    const struct sio_peer_resume_grant *q);
void smartiod_dint_links_resumed(struct smartiod *d, uint32_t node);
/* The peer has named all that it has, and has answered all that we have named. */
void smartiod_interrupt_answered(struct smartiod *d, uint32_t node);

/* ---- what clients and peers ask: for the room alone ---- */

SIO_CLIENT_INTERRUPT(SMARTIOD_CLIENT_FN)
SIO_PEER_INTERRUPT(SMARTIOD_PEER_FN)
void smartiod_rings_forbidden(struct smartiod *d, const struct smartiod_forbid *f);
void smartiod_rings_parting(struct smartiod *d, uint32_t node);
void smartiod_dint_links_parting(struct smartiod *d, uint32_t node);
smartiod_restore_fn smartiod_restore_dint, smartiod_restore_ring, smartiod_restore_dint_link;
void smartiod_dint_restored(struct smartiod *d, struct smartiod_object *o);

#endif
