/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What reaches a room of the daemon from outside: one table for each room, which daemon/ walks. A
 * room calls rooms below it by their headers, and those above it by these tables alone.
 *
 * The order of the tables (daemon/rooms.c) is an order of effects. "Forward" is from the top of the
 * house down: the borrower first. "Backward" is from the bottom up.
 */
#ifndef SMARTIOD_ROOM_H
#define SMARTIOD_ROOM_H

#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"

struct smartiod_device;

/* A request of a client. */
struct smartiod_request {
	uint32_t type;
	bool owns; /* makes or has objects: not for tools */
	smartiod_client_fn *fn;
};

/* A message of a peer, or of this host itself. */
struct smartiod_message {
	uint32_t type;
	smartiod_peer_fn *fn;
};

/* A reply that came after its time-out: give back what it brought. Its size is checked. */
struct smartiod_late {
	uint32_t type; /* of the message that it answers */
	void (*fn)(struct smartiod *d, uint32_t node, const void *reply);
};

/* What becomes of a client's objects of one kind when it ends. */
struct smartiod_kind_ops {
	enum smartiod_kind kind;
	void (*drop)(struct smartiod *d, struct smartiod_object *o);
	bool only_here; /* only the session knows it: it is freed with it when the daemon ends */
	/* Its library came back, and has said all. NULL: nothing is to be done. */
	void (*restored)(struct smartiod *d, struct smartiod_object *o);
};

/* The steps in which a library that came back says what it had. */
enum smartiod_restore_step {
	SMARTIOD_RESTORE_OWN = 1,
	SMARTIOD_RESTORE_ATTACHED,
	SMARTIOD_RESTORE_ALL,
};

/* What a request had made, which is told of before @step is. */
struct smartiod_restorable {
	uint32_t type; /* SIO_MSG_*, SIO_EVM_* */
	enum smartiod_restore_step step;
	smartiod_restore_fn *fn;
	/* It is gone: the event that its library would have got. NULL: none. */
	void (*lost)(struct smartiod *d, struct smartiod_session *s,
		     const struct sio_msg_restore *m);
};

/* Rows of one list: the one with the smallest key greater than @after; false: none. */
struct smartiod_rows {
	uint32_t kind; /* SIO_LIST_* */
	bool (*row)(struct smartiod *d, uint64_t after, struct sio_wire_row *ret);
};

/* Every member may be NULL. The arrays end with an entry without function. */
struct smartiod_room {
	const char *name;
	const struct smartiod_request *requests;
	const struct smartiod_message *messages;
	const struct smartiod_late *late;
	const struct smartiod_kind_ops *kinds;
	const struct smartiod_restorable *restores;
	const struct smartiod_rows *rows;

	/* Forward, before anything else. -errno: the daemon is not made. */
	int (*init)(struct smartiod *d, struct sio_err *reterr);
	/* Backward, one after the other: asks the port; ends by smartiod_started(). */
	void (*start)(struct smartiod *d);
	/* Forward: normal life begins, as does that of programs from before our start. */
	void (*ready)(struct smartiod *d);
	/* Forward, at the daemon's end; operations and sessions are gone. */
	void (*free_all)(struct smartiod *d);

	/* Forward: the daemons of both hosts have said HELLO. */
	void (*peer_ready)(struct smartiod *d, uint32_t node);
	/* Forward, behind what waited for the peer: tell it what we have. */
	void (*announce)(struct smartiod *d, uint32_t node);
	/* Forward: the host has started anew; nothing that was before is left of its windows. */
	void (*new_start)(struct smartiod *d, uint32_t node);
	/*
	 * Forward: what programs of this host have of @node is lost. They hear of devices before
	 * they hear of other memory of that host: who finds ones where a device wrote must know
	 * already that the device is lost.
	 */
	void (*imports_lost)(struct smartiod *d, uint32_t node, enum smartiod_loss why);
	/* Backward, behind that: what @node has of this host ends. */
	void (*exports_end)(struct smartiod *d, uint32_t node, enum smartiod_loss why);
	/* Forward: one of the paths to a peer. */
	void (*path)(struct smartiod *d, const struct smartiod_path_change *p);
	/* Does a program of this host borrow a device of @node? Does one of @node of ours? */
	bool (*borrows)(struct smartiod *d, uint32_t node);
	bool (*lends)(struct smartiod *d, uint32_t node);

	/*
	 * A client is gone; what is its own has ended, and its owner is about to: BORROW and
	 * DMA_MAP objects go.
	 */
	void (*session_end)(struct smartiod *d, struct smartiod_session *s);
	/* Backward: an owner has ended at the port: a session's, or one that a room made. */
	void (*owner_gone)(struct smartiod *d, uint64_t owner);
	/*
	 * The port dropped events. The lowest owner above @after whose end this room has not heard
	 * of; UINT64_MAX: none.
	 */
	uint64_t (*next_owner)(struct smartiod *d, uint64_t after);
	/*
	 * The same: behind device @after the port lists @evt (NULL: none). What that says of the
	 * devices that we know takes effect as the events would have. False: it cannot be said yet
	 * of all; list again.
	 */
	bool (*device_listed)(struct smartiod *d, uint64_t after, const struct sio_evt_device *evt);
	/* An event of the port that is not of links or owners. */
	void (*port_event)(struct smartiod *d, const struct sio_evt *evt);

	/* A device was opened at the port. @fresh: nobody had it since it came. */
	void (*device_opened)(struct smartiod *d, struct smartiod_device *dev, bool fresh);
	/* A device, ours or another host's, is not there any more. */
	void (*device_gone)(struct smartiod *d, struct smartiod_device *dev);
	/* A reset took the doorbells of @dev from @borrow, of this host. */
	void (*doorbells_gone)(struct smartiod *d, struct smartiod_device *dev, uint64_t borrow);
	/* The last connection to a segment of a device is gone. True: it is ended. */
	bool (*segment_idle)(struct smartiod *d, struct smartiod_segment *seg);
	/* @seg has memory of before, or ends: mappings that nobody has claimed keep it. */
	void (*segment_mapped)(struct smartiod *d, struct smartiod_segment *seg);
	/* Mappings of @seg for devices of this host by living programs of this host. */
	unsigned (*own_mappings)(struct smartiod *d, const struct smartiod_segment *seg);
	/* Is grant @grant of @node mapped here, or about to be? */
	bool (*has_grant)(struct smartiod *d, uint32_t node, uint64_t grant);
	/* An interrupt of ours is about to go. */
	void (*irq_ends)(struct smartiod *d, uint64_t irq);

	size_t lent_size; /* what it keeps with each device */
};

const struct smartiod_request *smartiod_room_request(const struct smartiod *d, uint32_t type);
/* Return: as smartiod_peer_fn. */
int smartiod_room_message(struct smartiod *d, uint32_t type, const struct smartiod_from *from,
			  const void *msg, struct sio_err *reterr);
const struct smartiod_kind_ops *smartiod_room_kind(const struct smartiod *d,
						   enum smartiod_kind kind);
const struct smartiod_restorable *smartiod_room_restorable(const struct smartiod *d, uint32_t type);
const struct smartiod_rows *smartiod_room_rows(const struct smartiod *d, uint32_t kind);

/* The first room starts; and when one has, the next. */
void smartiod_start_rooms(struct smartiod *d);
void smartiod_started(struct smartiod *d);
void smartiod_rooms_ready(struct smartiod *d);

/* Each calls all rooms, as their members above say. */
void smartiod_imports_lost(struct smartiod *d, uint32_t node, enum smartiod_loss why);
void smartiod_exports_end(struct smartiod *d, uint32_t node, enum smartiod_loss why);
bool smartiod_borrows(struct smartiod *d, uint32_t node);
bool smartiod_lends(struct smartiod *d, uint32_t node);
void smartiod_owner_gone(struct smartiod *d, uint64_t owner);
void smartiod_device_opened(struct smartiod *d, struct smartiod_device *dev, bool fresh);
void smartiod_device_gone(struct smartiod *d, struct smartiod_device *dev);
void smartiod_doorbells_gone(struct smartiod *d, struct smartiod_device *dev, uint64_t borrow);
bool smartiod_segment_idle(struct smartiod *d, struct smartiod_segment *seg);
void smartiod_segment_mapped(struct smartiod *d, struct smartiod_segment *seg);
unsigned smartiod_own_mappings(struct smartiod *d, const struct smartiod_segment *seg);
bool smartiod_has_grant(struct smartiod *d, uint32_t node, uint64_t grant);
void smartiod_irq_ends(struct smartiod *d, uint64_t irq);

/*
 * Send request @msg to the daemon of @node, which may be this one; op->step gets the answer, or why
 * there is none, perhaps before this returns: the caller touches nothing afterwards. An answer of
 * this host may have descriptors, which are for looking at; they stay with whoever has them.
 */
void smartiod_ask(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg, size_t len);
/* News to it, without an answer. A peer that is not there gets nothing: it forgot us, too. */
void smartiod_tell(struct smartiod *d, uint32_t node, void *msg, size_t len);

/* The rooms. */
extern const struct smartiod_room smartiod_room_restart, smartiod_room_borrower,
	smartiod_room_lender, smartiod_room_segment, smartiod_room_dma, smartiod_room_interrupt,
	smartiod_room_device;

#endif
