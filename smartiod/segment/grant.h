/* SPDX-License-Identifier: BSD-2-Clause */
/* What this host has granted to others: grant.c, adrift.c; and both halves of a window: map.c. */
#ifndef SMARTIOD_GRANT_H
#define SMARTIOD_GRANT_H

#include "smartiod/base/peer.h"

#define SMARTIOD_MAX_GRANTS 65536 /* that one host has of this one */

struct smartiod_ring;
struct smartiod_segment;

/* What becomes of a ring (interrupt/) when a grant of it does; @id: the grant. */
struct smartiod_grant_ops {
	void (*gone)(struct smartiod *d, struct smartiod_ring *ring, uint64_t id);
	/* Its importer is lost and may still write to it. False: it is none of memory. */
	bool (*adrift)(struct smartiod *d, struct smartiod_ring *ring, uint64_t id);
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
	const struct smartiod_grant_ops *ops; /* with a ring */
	bool ring_memory;		      /* not its trigger */
	uint64_t mem;	 /* of a ring that is no more: it goes with the grant; 0: none */
	uint64_t target; /* of before this daemon: what it is of */
};
/*
 * Keep books of a grant that the port gave to a node: it is ungranted at GRANT_RELEASE, or when the
 * node is down, unless it goes adrift. @what: node, adapters and purpose; segment or ring: told
 * when it ends; both NULL: nobody is. -ENOMEM, -ENOSPC: nothing kept; the caller ungrants.
 */
int smartiod_grant_keep(struct smartiod *d, uint64_t id, const struct smartiod_grant *what,
			struct sio_err *reterr);
/* The answer to a GRANT, as peers tell it. */
void smartiod_wire_grant(const struct sio_evt_grant *evt, struct sio_wire_grant *ret);
/* The importer's half of a window: MAP of what the exporter granted, hanging on @owner. */
void smartiod_port_ask_map(struct smartiod *d, struct smartiod_op *op, uint64_t owner,
			   uint32_t node, uint32_t adapter, uint32_t peer_adapter,
			   const struct sio_wire_grant *g);
/*
 * What its answer says that it is. An exporter that lies names another grant that it gave us, of an
 * interrupt, or of memory to be read.
 */
bool smartiod_map_triggers(const struct smartiod_answer *a);
bool smartiod_map_is_memory(const struct smartiod_answer *a, uint32_t access);
/* Is there a grant in the peer's answer, and of at least @bytes? */
bool smartiod_grant_holds(const struct sio_wire_grant *g, uint64_t bytes);
/* News to the exporter that a grant of it is no longer mapped. */
void smartiod_grant_release(struct smartiod *d, uint32_t node, uint64_t grant);
/* UNGRANT and forget; 0 or unknown: nothing. */
void smartiod_grant_end(struct smartiod *d, uint64_t id);
/*
 * The ring that grant @id is of is no more: @mem, its memory, goes with the grant. False: there is
 * none.
 */
bool smartiod_grant_take(struct smartiod *d, uint64_t id, uint64_t mem);
/* The same, of all grants of before this daemon that are of memory @mem. */
bool smartiod_grants_take(struct smartiod *d, uint64_t mem);
/* Is it one to @node, for that path? */
bool smartiod_grant_through(struct smartiod *d, uint64_t id, uint32_t node, uint32_t adapter,
			    uint32_t peer_adapter);
/* Grants of BARs end; those of segments and rings stay, for their importers stay, too. */
void smartiod_grant_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter);

/* ---- adrift.c: grants that outlast the connection to their importer ---- */

/* All of @node end, or go adrift. */
void smartiod_grant_node_down(struct smartiod *d, uint32_t node);
/* The last path to it is down: those for devices of it that this host borrows. */
void smartiod_grant_link_lost(struct smartiod *d, uint32_t node);
/* A path to it is, and others are up: those of them that are for this path. */
void smartiod_grant_path_lost(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter);
bool smartiod_grant_adrift(struct smartiod *d, uint64_t id);
/*
 * End it without its importer's word: with an IOMMU its address goes adrift. Not what is memory.
 */
void smartiod_grant_cut(struct smartiod *d, uint64_t id);
/* The daemons are connected again: which of them has it still? */
void smartiod_adrift_ask(struct smartiod *d, uint32_t node);
/* The host has started anew: nothing that was before is left of windows, devices and grants. */
void smartiod_adrift_new_start(struct smartiod *d, uint32_t node);
void smartiod_grant_free_all(struct smartiod *d);

#endif
