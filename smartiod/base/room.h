/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of operations by which events reach a room of the daemon. There is one table for each
 * room, and daemon/ walks them. A room calls the rooms below it by their headers, and those above
 * it by these tables alone.
 *
 * The order of the tables (daemon/rooms.c) is the order in which events take effect. "Forward" is
 * from the highest room to the lowest, the borrower's room first; "backward" is from the lowest to
 * the highest.
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
/*
 * Rows of the table of requests, from a list of wire/client.h. OWNERS: requests that only libraries
 * may send; ANYBODYS: tools as well.
 */
#define SMARTIOD_OWNERS(NAME, name, ...) {SIO_MSG_##NAME, true, smartiod_##name},
#define SMARTIOD_ANYBODYS(NAME, name, ...) {SIO_MSG_##NAME, false, smartiod_##name},

/* A message of another host's daemon, or of this one (loopback). */
struct smartiod_message {
	uint32_t type;
	smartiod_peer_fn *fn;
};
/* Rows of the table of messages, from a list of wire/peer.h. */
#define SMARTIOD_PEERS(NAME, name, ...) {SIO_PEER_##NAME, smartiod_##name},

/*
 * Handler of a reply that came after its time-out: releases what the reply brought. The size is
 * checked.
 */
struct smartiod_late {
	uint32_t type; /* of the message that it answers */
	void (*fn)(struct smartiod *d, uint32_t node, const void *reply);
};

/* How a client's objects of one kind end with it. */
struct smartiod_kind_ops {
	enum smartiod_kind kind;
	void (*drop)(struct smartiod *d, struct smartiod_object *o);
	/* no table but the session's has it: at the daemon's end it is freed with the session */
	bool only_here;
	/*
	 * The object's library has connected again, and has restored everything. NULL: nothing is
	 * to be done.
	 */
	void (*restored)(struct smartiod *d, struct smartiod_object *o);
};

/* The steps in which a library that connected again restores its objects. */
enum smartiod_restore_step {
	SMARTIOD_RESTORE_OWN = 1,
	SMARTIOD_RESTORE_ATTACHED,
	SMARTIOD_RESTORE_ALL,
};

/* How an object that a request had made is restored, before step @step ends. */
struct smartiod_restorable {
	uint32_t type; /* SIO_MSG_*, SIO_EVM_* */
	enum smartiod_restore_step step;
	smartiod_restore_fn *fn;
	/*
	 * The object is gone: sends the event that its library would have got. NULL: there is none.
	 */
	void (*lost)(struct smartiod *d, struct smartiod_session *s,
		     const struct sio_msg_restore *m);
};

/*
 * Rows of one list. row() gives the one with the smallest key greater than @after; false: there is
 * none.
 */
struct smartiod_rows {
	uint32_t kind; /* SIO_LIST_* */
	bool (*row)(struct smartiod *d, uint64_t after, struct sio_wire_row *ret);
};

/* A search for what a file that was read again does not allow any more. */
struct smartiod_forbid {
	const struct sio_topology *topology; /* the file: its rules, and who is apart from whom */
	bool enforce;			     /* report that it ends, if the room can end it; */
	bool act;			     /* and end it */
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
	/*
	 * Backward, one after the other: sends requests to the port; ends with smartiod_started().
	 */
	void (*start)(struct smartiod *d);
	/* Forward: the daemon begins to serve, and programs of before the restart go on. */
	void (*ready)(struct smartiod *d);
	/* Forward, at the daemon's end; operations and sessions are gone. */
	void (*free_all)(struct smartiod *d);

	/* Forward: the daemons of both hosts have said HELLO. */
	void (*peer_ready)(struct smartiod *d, uint32_t node);
	/*
	 * Forward, after the operations that waited for the peer have continued: announce this
	 * host's objects to it.
	 */
	void (*announce)(struct smartiod *d, uint32_t node);
	/* Forward: smartiod_ask_later() was called since the last time. */
	void (*later)(struct smartiod *d);
	/*
	 * Forward. The connection to the peer has ended, what is shared outlives it
	 * (smartiod_outlives()), and the peer is expected to connect again: what does not outlive
	 * it ends.
	 */
	void (*away)(struct smartiod *d, uint32_t node);
	/*
	 * Forward. The daemons have connected again: send the peer what this host has of it,
	 * because one of them may have been restarted, and messages were lost.
	 */
	void (*resume)(struct smartiod *d, uint32_t node);
	/* Forward. The peer has sent all that it has of this host. What it did not send ends. */
	void (*resumed)(struct smartiod *d, uint32_t node);
	/* Forward, after that. The peer has also answered all that this host has sent. */
	void (*answered)(struct smartiod *d, uint32_t node);
	/*
	 * @node has granted this host what @q describes, and does not know whether this host has
	 * it. True: an object of before the restart has mapped it, and now knows the grant.
	 */
	bool (*grant_again)(struct smartiod *d, uint32_t node,
			    const struct sio_peer_resume_grant *q);
	/*
	 * @q, about a grant to @node of no segment (@target: what it is of, if it is of before this
	 * daemon was started), is about to be sent: fills in the part about BARs.
	 */
	void (*fill_grant)(struct smartiod *d, uint64_t target, struct sio_peer_resume_grant *q);
	/* @node still has @grant, of before this daemon was started, for a device of its own. */
	void (*held_again)(struct smartiod *d, uint32_t node, uint64_t grant);
	/*
	 * Restart: something of a program of this host uses view @view of BAR @bar again, by borrow
	 * @borrower of a device of this host, of which its program knows @generation.
	 */
	int (*view_again)(struct smartiod *d, uint64_t borrower, uint32_t generation, uint32_t bar,
			  uint64_t view, struct sio_err *reterr);
	/* The grant is for a device of this host: fills in the part of @held about that. */
	void (*fill_held)(struct smartiod *d, uint32_t node, struct sio_peer_resume_held *held);
	/* Forward. The host has started again; nothing is left of the windows that it had. */
	void (*new_start)(struct smartiod *d, uint32_t node);
	/*
	 * Forward. What programs of this host have of @node is lost. They are notified of devices
	 * before other memory of that host: a program that finds ones where a device wrote must
	 * know already that the device is lost.
	 */
	void (*imports_lost)(struct smartiod *d, uint32_t node, enum smartiod_loss why);
	/* Backward, after that. What @node has of this host ends. */
	void (*exports_end)(struct smartiod *d, uint32_t node, enum smartiod_loss why);
	/* Forward. This host has that adapter no more: the next one of its number is another. */
	void (*adapter_gone)(struct smartiod *d, uint32_t adapter);
	/* Forward. One of the paths to a peer has changed. */
	void (*path)(struct smartiod *d, const struct smartiod_path_change *p);
	/*
	 * Does a program of this host borrow a device of @node? Does a program of @node borrow a
	 * device of this host?
	 */
	bool (*borrows)(struct smartiod *d, uint32_t node);
	bool (*lends)(struct smartiod *d, uint32_t node);
	/*
	 * Does a program of this host map these bytes of segment @uid for a device of @node, or
	 * request that?
	 */
	bool (*maps_for)(struct smartiod *d, uint32_t node, uint64_t uid, uint64_t offset,
			 uint64_t bytes);
	/*
	 * Does the cluster's file allow @node to borrow device @fdid? -EACCES: no, or no device of
	 * that id is known. NULL: the room has no devices.
	 */
	int (*allow_device)(struct smartiod *d, uint32_t fdid, uint32_t node,
			    struct sio_err *reterr);
	/*
	 * Report what programs of this host, and other hosts of this one, have and are not allowed
	 * any more.
	 */
	void (*forbidden)(struct smartiod *d, const struct smartiod_forbid *f);
	/*
	 * Report what programs of this host have of @node, and that host of this one, and what ends
	 * as the two have no path any more; @gone: or that host is none of the cluster.
	 */
	void (*parting)(struct smartiod *d, uint32_t node, bool gone);

	/*
	 * A client is gone. What it owns has ended, and its owner at the port is about to end:
	 * BORROW and DMA_MAP objects end here.
	 */
	void (*session_end)(struct smartiod *d, struct smartiod_session *s);
	/* Backward: an owner has ended at the port: a session's, or one that a room made. */
	void (*owner_gone)(struct smartiod *d, uint64_t owner);
	/*
	 * The port has dropped events. Return: the lowest owner above @after that this room
	 * believes to live; UINT64_MAX: none.
	 */
	uint64_t (*next_owner)(struct smartiod *d, uint64_t after);
	/*
	 * The port has dropped events, and lists @evt as the device after @after (NULL: none). The
	 * room acts on the difference to the devices that it knows, as it would have on the events.
	 * False: it cannot do that for all of them yet; list again.
	 */
	bool (*device_listed)(struct smartiod *d, uint64_t after, const struct sio_evt_device *evt);
	/* An event of the port that is about neither links nor owners. */
	void (*port_event)(struct smartiod *d, const struct sio_evt *evt);

	/* A device was opened at the port. @fresh: nobody has had it since it was added. */
	void (*device_opened)(struct smartiod *d, struct smartiod_device *dev, bool fresh);
	/* A device, of this host or another, has been removed. */
	void (*device_gone)(struct smartiod *d, struct smartiod_device *dev);
	/* A reset took the doorbells of @dev from @borrow, of this host. */
	void (*doorbells_gone)(struct smartiod *d, struct smartiod_device *dev, uint64_t borrow);
	/* The last connection to a device segment has ended. True: the segment was ended. */
	bool (*segment_idle)(struct smartiod *d, struct smartiod_segment *seg);
	/*
	 * @seg has got its memory of before the restart, or ends: mappings that nobody has claimed
	 * keep the memory.
	 */
	void (*segment_mapped)(struct smartiod *d, struct smartiod_segment *seg);
	/* Mappings of @seg for devices of this host by living programs of this host. */
	unsigned (*own_mappings)(struct smartiod *d, const struct smartiod_segment *seg);
	/* Is grant @grant of @node mapped here, or about to be? */
	bool (*has_grant)(struct smartiod *d, uint32_t node, uint64_t grant);
	/* An interrupt of this host is about to end. */
	void (*irq_ends)(struct smartiod *d, uint64_t irq);

	size_t lent_size; /* bytes of the room's data with each device */
};

const struct smartiod_request *smartiod_room_request(const struct smartiod *d, uint32_t type);
/* Finds the handler in the rooms' tables and calls it. Return: as smartiod_peer_fn. */
int smartiod_room_message(struct smartiod *d, uint32_t type, const struct smartiod_from *from,
			  const void *msg, struct sio_err *reterr);
const struct smartiod_kind_ops *smartiod_room_kind(const struct smartiod *d,
						   enum smartiod_kind kind);
const struct smartiod_restorable *smartiod_room_restorable(const struct smartiod *d, uint32_t type);
const struct smartiod_rows *smartiod_room_rows(const struct smartiod *d, uint32_t kind);

/* Starts the rooms, one after the other: each calls smartiod_started() when it has started. */
void smartiod_start_rooms(struct smartiod *d);
void smartiod_started(struct smartiod *d);
void smartiod_rooms_ready(struct smartiod *d);

/* Each calls all rooms, as their members above say. */
void smartiod_imports_lost(struct smartiod *d, uint32_t node, enum smartiod_loss why);
void smartiod_exports_end(struct smartiod *d, uint32_t node, enum smartiod_loss why);
bool smartiod_borrows(struct smartiod *d, uint32_t node);
bool smartiod_lends(struct smartiod *d, uint32_t node);
bool smartiod_maps_for(struct smartiod *d, uint32_t node, uint64_t uid, uint64_t offset,
		       uint64_t bytes);
int smartiod_allow_device(struct smartiod *d, uint32_t fdid, uint32_t node, struct sio_err *reterr);
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
 * Sends request @msg to the daemon of @node, which may be this one. op->step gets the answer, or
 * the error, perhaps before this returns: the caller must not touch the operation afterwards. An
 * answer of this host may have descriptors, which may be looked at and stay with their owner.
 */
void smartiod_ask(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg, size_t len);
/*
 * Sends a notification, which has no answer. It is dropped if the peer is not connected: then the
 * peer has forgotten this host, too.
 */
void smartiod_notify(struct smartiod *d, uint32_t node, void *msg, size_t len);

/* The rooms. */
extern const struct smartiod_room smartiod_room_restart, smartiod_room_borrower,
	smartiod_room_lender, smartiod_room_segment, smartiod_room_dma, smartiod_room_interrupt,
	smartiod_room_device;

#endif
