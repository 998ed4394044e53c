/* SPDX-License-Identifier: BSD-2-Clause */
/* What this host has granted to others (grant.c, orphan.c), and both halves of a window (map.c). */
#ifndef SMARTIOD_GRANT_H
#define SMARTIOD_GRANT_H

#include "smartiod/base/peer.h"

#define SMARTIOD_MAX_GRANTS 65536 /* that one host has of this one */

struct smartiod_ring;
struct smartiod_segment;

/* Called for the ring (interrupt/) of a grant that ends; @id: the grant. */
struct smartiod_grant_ops {
	void (*gone)(struct smartiod *d, struct smartiod_ring *ring, uint64_t id);
	/*
	 * The importer is lost and may still write to the ring. False: the grant is none of memory.
	 */
	bool (*orphaned)(struct smartiod *d, struct smartiod_ring *ring, uint64_t id);
};

/* A grant to a peer, which requested it and releases it, or is lost. */
struct smartiod_grant {
	struct smartiod_tree_node by_id; /* in d->grants; key: the port's id */
	uint32_t node, adapter, peer_adapter;
	uint32_t purpose; /* SIO_GRANT_CPU or _DEVICE */
	bool own_borrow;  /* DEVICE: for a device that a program of this host borrows of @node */
	bool orphaned;	  /* @node was lost, and may still write to it: orphan.c */
	/* One of these two; neither: of a BAR, or orphaned and without @mem: the address alone. */
	struct smartiod_segment *segment;
	struct smartiod_ring *ring;
	const struct smartiod_grant_ops *ops; /* with a ring */
	bool ring_memory;		      /* not its trigger */
	bool irq;     /* of an interrupt: nothing of it becomes another's memory */
	uint64_t mem; /* of a ring that is no more: it goes with the grant; 0: none */
	/* Of a segment's, or of before this daemon: for the quota of the node that has it. */
	uint64_t bytes;
	struct smartiod_charge window, exported;
	uint64_t target; /* of before this daemon: what it is of */
	uint64_t bus_addr;
};
/*
 * Records a grant that the port made for a node. It is ungranted at GRANT_RELEASE, or when the node
 * is down, unless it is orphaned then. @what: node, adapters and purpose; the segment or ring that
 * is notified when it ends (both NULL: none). -ENOMEM, -ENOSPC: nothing is recorded; the caller
 * ungrants.
 */
int smartiod_grant_keep(struct smartiod *d, uint64_t id, const struct smartiod_grant *what,
			struct sio_err *reterr);
/* The answer of the port to a GRANT, as a message between daemons has it. */
void smartiod_wire_grant(const struct sio_evt_grant *evt, struct sio_wire_grant *ret);
/* The importer's half of a window: MAP of what the exporter granted, owned by @owner. */
void smartiod_port_ask_map(struct smartiod *d, struct smartiod_op *op, uint64_t owner,
			   uint32_t node, uint32_t adapter, uint32_t peer_adapter,
			   const struct sio_wire_grant *g);
/* The same for a device, of pages of a BAR: a daemon that is started again sees that they are. */
void smartiod_port_ask_map_bar(struct smartiod *d, struct smartiod_op *op, uint64_t owner,
			       uint32_t node, uint32_t adapter, uint32_t peer_adapter,
			       const struct sio_wire_grant *g);
/* The same for doorbells, which are stored to alone. */
void smartiod_port_ask_doorbells(struct smartiod *d, struct smartiod_op *op, uint64_t owner,
				 uint32_t node, uint32_t adapter, uint32_t peer_adapter,
				 const struct sio_wire_grant *g);
/*
 * What the answer to MAP says about the grant. An exporter that lies names another grant that it
 * has made for this node, of an interrupt, or of memory that may only be read.
 */
bool smartiod_map_triggers(const struct smartiod_answer *a);
bool smartiod_map_is_memory(const struct smartiod_answer *a, uint32_t access);
/* Does the peer's answer have a grant, of at least @bytes? */
bool smartiod_grant_holds(const struct sio_wire_grant *g, uint64_t bytes);
/* Notification of the exporter that a grant of it is no longer mapped. */
void smartiod_grant_release(struct smartiod *d, uint32_t node, uint64_t grant);
/* Ungrants and forgets the grant; 0 or an unknown one: nothing happens. */
void smartiod_grant_end(struct smartiod *d, uint64_t id);
/*
 * The ring of grant @id has ended: its memory, @mem, is freed with the grant. False: there is no
 * such grant.
 */
bool smartiod_grant_take(struct smartiod *d, uint64_t id, uint64_t mem);
/* The same, for all grants of memory @mem from before this daemon was started. */
bool smartiod_grants_take(struct smartiod *d, uint64_t mem);
/* Is grant @id one to @node, over that path? */
bool smartiod_grant_through(struct smartiod *d, uint64_t id, uint32_t node, uint32_t adapter,
			    uint32_t peer_adapter);
/*
 * A path is down: grants of BARs over it end; those of segments and rings stay, as their importers
 * do.
 */
void smartiod_grant_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter);

/* ---- orphan.c: grants that outlast the connection to their importer ---- */

/* All grants to @node end, or are orphaned. */
void smartiod_grant_node_down(struct smartiod *d, uint32_t node);
/*
 * The last path to @node is down: its grants for devices that this host borrows end, or are
 * orphaned.
 */
void smartiod_grant_link_lost(struct smartiod *d, uint32_t node);
/* One path to @node is down, and others are up: the same for grants over that path. */
void smartiod_grant_path_lost(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter);
bool smartiod_grant_orphaned(struct smartiod *d, uint64_t id);
/*
 * Ends a grant without its importer's release: with an IOMMU its address is orphaned. Not for
 * memory.
 */
void smartiod_grant_cut(struct smartiod *d, uint64_t id);
/* The same for all grants of @target, from before this daemon was started. */
void smartiod_grants_cut(struct smartiod *d, uint64_t target);
/* The daemons are connected again: asks the importer which orphaned grants it still has. */
void smartiod_orphans_query(struct smartiod *d, uint32_t node);
/*
 * The host has started again: nothing is left of its windows, devices and grants, so orphaned
 * grants end.
 */
void smartiod_orphans_new_start(struct smartiod *d, uint32_t node);
/*
 * Nobody knows the sender of a ring any more, but the grant of its memory may still be mapped: it
 * is orphaned, and the ring notified. 0: nothing happens.
 */
void smartiod_grant_orphan(struct smartiod *d, uint64_t id);
void smartiod_grant_free_all(struct smartiod *d);

/* ---- resume.c: what outlives a daemon ---- */

/*
 * @seg has its memory again: grants of that memory from before this daemon was started refer to it.
 */
void smartiod_grants_attach(struct smartiod *d, struct smartiod_segment *seg);
/*
 * The importer, @node, still has grant @id of @target from before this daemon was started: from now
 * on it is like any other grant. False: there is no such grant.
 */
bool smartiod_grant_resume(struct smartiod *d, uint64_t id, uint32_t node, uint64_t target);
/*
 * @ring is there again, of which a grant from before this daemon was started is: the one of its
 * memory or interrupt @target, by its number @id, or any (0). It is like any other grant then, with
 * the operations @ops; @ended: but for its being orphaned. NULL: there is none.
 */
const struct smartiod_grant *smartiod_grant_ring_again(struct smartiod *d, uint64_t id,
						       uint64_t target, struct smartiod_ring *ring,
						       const struct smartiod_grant_ops *ops,
						       bool ended);
/* The interrupt that @id, from before this daemon was started, grants to @node; 0: none. */
uint64_t smartiod_grant_irq(struct smartiod *d, uint64_t id, uint32_t node);
/* @node has named all that it has: grants of interrupts that it did not name end. */
void smartiod_grants_of_irqs_end(struct smartiod *d, uint32_t node);
/*
 * Resynchronisation: sends @node the grants that it has of this host, and the connections of
 * programs of this host to its segments.
 */
void smartiod_segment_resume(struct smartiod *d, uint32_t node);
/* Resynchronisation: ends what @node did not report. */
void smartiod_segment_resumed(struct smartiod *d, uint32_t node);
/*
 * Resynchronisation: @node has connection @connection to @seg. @may: the connection may exist
 * though this daemon does not know it, because it was restarted. If it does not exist, @node is
 * notified.
 */
void smartiod_segment_ref_resume(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
				 uint32_t adapter, uint64_t connection, bool may);

#endif
