/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts: dint.c, dint_hub.c and ring.c of their receivers, dint_link.c of senders. */
#ifndef SMARTIOD_DINT_H
#define SMARTIOD_DINT_H

#include "smartiod/base/internal.h"

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
/*
 * Its sender is lost, and may still write to it if @grant is the memory's. Else false: nothing was
 * done.
 */
bool smartiod_ring_adrift(struct smartiod *d, struct smartiod_ring *ring, uint64_t grant);
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
/*
 * Is a window to this grant of @node, a ring's memory, being made or unmapped, although it is lost?
 */
bool smartiod_dint_link_has(struct smartiod *d, uint32_t node, uint64_t grant);

#endif
