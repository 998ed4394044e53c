/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Library <-> its host's smartiod. A request SIO_MSG_x is struct sio_msg_x; its reply has the same
 * type and id and is struct sio_rep_x, or struct sio_msg (bare success) where none is declared, or
 * struct sio_msg_error. Flags and constants inside are the API's (sisci_api.h values).
 *
 * Errors (errno, one meaning each; libsmartio/sisci/base/error.c turns them into SCI_ERR_*):
 *   EINVAL parameter  EBUSY in use  ENOENT no such segment or interrupt number  EEXIST id taken
 *   ENXIO no such adapter  EHOSTUNREACH no such node  ENETDOWN link down  ETIMEDOUT peer silent
 *   ENODEV no such device id  EACCES exclusively held / not allowed  EPERM wrong state
 *   ENOSPC hardware resources (window, table, device memory)  ENOMEM memory of the host
 *   ERANGE offset or size outside  EOPNOTSUPP not supported  EPROTO version or malformed message
 *   ECONNREFUSED refused by the peer  ENOTCONN not connected  ECONNRESET object lost
 *   EMFILE descriptors or a per-client limit exhausted  EBADF no such handle
 *
 * Handles are the daemon's numbers for one client's objects: never 0, never used again on one
 * connection.
 */
#ifndef WIRE_CLIENT_H
#define WIRE_CLIENT_H

#include "wire/wire.h"

/*
 * Of a program and its smartiod. Whatever alters a message, or adds one, raises it: ends with one
 * number go on with each other in any order of restarts, others say which is older.
 */
#define SIO_CLIENT_VERSION 11

enum {
	SIO_MSG_HELLO = 1,
	SIO_MSG_ADAPTER,
	SIO_MSG_NODE_PROBE,
	SIO_MSG_RESTORE,
	SIO_MSG_RESTORE_STEP,
	SIO_MSG_BYE,
	SIO_MSG_LINK,
	SIO_MSG_SEG_CREATE = 16,
	SIO_MSG_SEG_PREPARE,
	SIO_MSG_SEG_AVAILABLE,
	SIO_MSG_SEG_UNAVAILABLE,
	SIO_MSG_SEG_REMOVE,
	SIO_MSG_SEG_CONNECT,
	SIO_MSG_SEG_DISCONNECT,
	SIO_MSG_SEG_MAP,
	SIO_MSG_SEG_UNMAP,
	SIO_MSG_SEG_WATCH,
	SIO_MSG_SEG_FILL,
	SIO_MSG_SEG_SHARE,
	SIO_MSG_SEG_ATTACH,
	SIO_MSG_DINT_CREATE = 32,
	SIO_MSG_DINT_REMOVE,
	SIO_MSG_DINT_CONNECT,
	SIO_MSG_DINT_DISCONNECT,
	SIO_MSG_DINT_RING_FREE,
	SIO_MSG_DEV_LIST = 48,
	SIO_MSG_DEV_BORROW,
	SIO_MSG_DEV_RETURN,
	SIO_MSG_DEV_RELEASE_EXCLUSIVE,
	SIO_MSG_DEV_SEG_CREATE,
	SIO_MSG_DEV_SEG_CONNECT,
	SIO_MSG_DMA_MAP,
	SIO_MSG_DMA_UNMAP,
	SIO_MSG_DEV_SETTLED,
	SIO_MSG_DEV_RESET,
	SIO_MSG_DEV_HOLD,
	SIO_MSG_DEV_UNHOLD,
	SIO_MSG_DEV_VECTOR,
	SIO_MSG_DEV_UNVECTOR,
	SIO_MSG_DEV_ADMIN_RESET, /* the tool's */
	SIO_MSG_QUEUE_CREATE = 80,
	SIO_MSG_QUEUE_REMOVE,
	SIO_MSG_QUEUE_ATTACH,
	SIO_MSG_QUEUE_DETACH,
	SIO_MSG_SHADOW = 96,
	SIO_MSG_SHADOW_DEL,
	SIO_MSG_LIST = 64, /* the tool's: rows of one kind */
	SIO_MSG_STATS,
};

enum {
	SIO_EVM_SEGMENT_LOCAL = 256, /* something happened to a segment of ours */
	SIO_EVM_SEGMENT_REMOTE,	     /* ... to a segment that we are connected to */
	SIO_EVM_DINT_RING,	     /* a sender connected: descriptor 0 is its ring */
	SIO_EVM_DINT_RING_END,	     /* a sender is gone: drain its ring, then DINT_RING_FREE */
	SIO_EVM_DEVICE,		     /* something happened to a borrowed device */
	SIO_EVM_DINT_LOST,	     /* an interrupt of ours, or one connected to, is gone */
};

/*
 * First message. Reply: descriptor 0 the owner (keep it open), 1 the status page.
 *
 * With the owner's descriptor beside it: a library whose smartiod was started again. The reply
 * brings no descriptor; RESTORE follows. Others are answered when all that were here before are
 * back (or too late). EPROTO: another version; the text says which side is older, and what the
 * owner has stays. ENOENT: that owner has ended, or is not this host's; EBUSY: another connection
 * has it.
 */
enum { SIO_CLIENT_LIBRARY = 1, SIO_CLIENT_TOOL, SIO_CLIENT_KEEPER };
struct sio_msg_hello {
	struct sio_msg h;
	sio_le32 version, reserved;
	sio_le32 pid, kind; /* tools and keepers own nothing and get no descriptors */
};
SIO_WIRE_SIZE(struct sio_msg_hello, 32);
struct sio_rep_hello {
	struct sio_msg h;
	sio_le32 version; /* the same */
	sio_le32 node, n_adapters, world;
	sio_le64 client, owner, boot_generation;
	uint8_t boot_id[16];
	char host[32], cluster[32];
};
SIO_WIRE_SIZE(struct sio_rep_hello, 136);

/*
 * Only after a HELLO with an owner: one thing that the library had from the smartiod before.
 * @request is how it was asked for, without descriptors; @type the type of that, or
 * SIO_EVM_DINT_RING, the event that brought it. First whatever needs nobody else (a segment, an
 * interrupt, its rings, a borrow, a device segment), each after what it was made from; then
 * RESTORE_STEP 1; then what it attached to, which may be all that tells of a segment whose maker
 * let go of it, and RESTORE_STEP 2; then the rest, and RESTORE_STEP 3: its reply begins the normal
 * life. Success: smartiod has it again, by the handle it had. ENOENT: it is gone, and an event that
 * says so, if there is one for its kind, came before the reply.
 *
 * What @key is, as told when it was made: the port's number of memory (segment, connection, ring,
 * link to one), interrupt (and link to a plain one), or DMA map; of a borrow @borrower; of a hold
 * its number. @extra: of a shared interrupt the number of the one that its owners share; of a
 * segment its bytes. No key gives access: nothing is handed out for it. @seal, as told with the
 * key: by it smartiod knows that it was this program to which it said that, where the port cannot
 * tell; 0 where it can.
 */
#define SIO_RESTORE_STEPS 3
#define SIO_RESTORE_REQUEST 64
#define SIO_RESTORE_SHARED 1   /* flags: SEG_SHARE */
#define SIO_RESTORE_FILLED 2   /* SEG_FILL */
#define SIO_RESTORE_RELEASED 4 /* a borrow that was opened to others */
#define SIO_RESTORE_ENDED 8    /* a ring whose sender is gone */
#define SIO_RESTORE_LEAVING 16 /* a connection that is being given back, and no answer came */
#define SIO_RESTORE_VIEWS 16
struct sio_msg_restore {
	struct sio_msg h;
	sio_le32 type, handle;
	sio_le64 key, extra, seal;
	sio_le32 prepared, available, exported; /* segment: a bit per adapter; exported: ever */
	sio_le32 told;	 /* segment: connections that its library has heard of */
	sio_le32 number; /* segment id; interrupt; ring; vector; of a borrow the generation */
	sio_le32 flags;
	sio_le32 view[SIO_RESTORE_VIEWS]; /* map of a BAR: of its pieces */
	uint8_t request[SIO_RESTORE_REQUEST];
};
SIO_WIRE_SIZE(struct sio_msg_restore, 200);
struct sio_msg_restore_step {
	struct sio_msg h;
	sio_le32 step;
	sio_le32 last_handle; /* that it was ever told: of what it lost it may still have some.
				 EINVAL: smartiod has told nobody of that */
};
SIO_WIRE_SIZE(struct sio_msg_restore_step, 24);

/*
 * The program is about to end by itself: exporters of what it is still connected to then are told
 * SCI_CB_DISCONNECT, not SCI_CB_LOST.
 */
struct sio_msg_bye {
	struct sio_msg h;
};
SIO_WIRE_SIZE(struct sio_msg_bye, 16);

/* Adapter @adapter of this host: for SCIGetLocalNodeId and SCI_Q_ADAPTER. ENXIO. */
struct sio_msg_adapter {
	struct sio_msg h;
	sio_le32 adapter, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_adapter, 24);
#define SIO_ADAPTER_AT_SWITCH 1 /* its link leads to a switch */
#define SIO_ADAPTER_DMA 2	/* it has an engine */
struct sio_rep_adapter {
	struct sio_msg h;
	sio_le32 node, bdf, link_up, link_width, link_generation, dma_bits;
	sio_le32 entries_total, entries_free, requesters_total, requesters_free;
	sio_le32 mcast_groups, flags; /* SIO_ADAPTER_* */
	sio_le64 window_size, entry_size;
	sio_le32 serial;       /* unique in the cluster */
	sio_le32 partner_port; /* of the switch or adapter that it is plugged into */
};
SIO_WIRE_SIZE(struct sio_rep_adapter, 88);

/*
 * LINK: struct sio_msg_adapter; its link, the adapter's own whoever is behind it, and for how long
 * it has been so, as smartiod heard: since its start, of what it found. ENXIO.
 */
struct sio_rep_link {
	struct sio_msg h;
	sio_le32 up, reserved;
	sio_le64 seconds;
};
SIO_WIRE_SIZE(struct sio_rep_link, 32);

/* Success: the node answers. EHOSTUNREACH, ENETDOWN, ETIMEDOUT. */
struct sio_msg_node_probe {
	struct sio_msg h;
	sio_le32 adapter, node;
};
SIO_WIRE_SIZE(struct sio_msg_node_probe, 24);

/* Local segments. Reply descriptor 0: the memory (none for an EMPTY segment). */
struct sio_msg_seg_create {
	struct sio_msg h;
	sio_le32 segment_id, flags; /* AUTO_ID: first free id from segment_id on */
	sio_le64 bytes;
};
SIO_WIRE_SIZE(struct sio_msg_seg_create, 32);
struct sio_rep_seg_create {
	struct sio_msg h;
	sio_le32 handle, segment_id;
	sio_le64 bytes, phys_addr; /* bytes: rounded up to pages */
	sio_le64 key, seal;	   /* for RESTORE */
};
SIO_WIRE_SIZE(struct sio_rep_seg_create, 56);
/*
 * SEG_FILL: struct sio_msg_handle; the memory of a segment that was made EMPTY. Reply: as
 * SEG_CREATE. Asked again, it gives the same memory. EPERM: it was not made EMPTY, is being filled,
 * or the handle is not that of who made it.
 * SEG_SHARE: struct sio_msg_handle; let others of this host attach.
 */
/* Another handle of a shared segment of this host. ENOENT; EACCES: not shared. */
struct sio_msg_seg_attach {
	struct sio_msg h;
	sio_le32 segment_id, flags; /* flags: 0 */
};
SIO_WIRE_SIZE(struct sio_msg_seg_attach, 24);
struct sio_rep_seg_attach {
	struct sio_msg h;
	sio_le32 handle, is_private;
	sio_le32 prepared, available; /* a bit per adapter */
	sio_le64 bytes, phys_addr;
	sio_le64 key, seal; /* for RESTORE */
};
SIO_WIRE_SIZE(struct sio_rep_seg_attach, 64);
/* PREPARE, AVAILABLE, UNAVAILABLE. */
struct sio_msg_seg_adapter {
	struct sio_msg h;
	sio_le32 handle, adapter, flags, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_seg_adapter, 32);
/* SEG_REMOVE, and every other message that has a handle and flags alone. */
struct sio_msg_handle {
	struct sio_msg h;
	sio_le32 handle, flags;
};
SIO_WIRE_SIZE(struct sio_msg_handle, 24);

struct sio_msg_seg_connect {
	struct sio_msg h;
	sio_le32 node, segment_id, adapter, flags;
};
SIO_WIRE_SIZE(struct sio_msg_seg_connect, 32);
#define SIO_PATH_NONE 0xffffffffu
#define SIO_PATH_EXACT 0xfffffffeu /* none either: an exact multicast group, see SEG_MAP */
struct sio_rep_seg_connect {	   /* also DEV_SEG_CONNECT */
	struct sio_msg h;
	sio_le32 handle, node, segment_id;
	sio_le32 path; /* adapter << 16 | the other's adapter; SIO_PATH_NONE: of this host, a BAR */
	sio_le64 bytes;
	sio_le64 peer_boot; /* of a path: SIO_LINK_START of the host that it leads to */
	sio_le64 key, seal; /* for RESTORE */
	sio_le64 bar_addr;  /* of a BAR: in the physical map of its host */
};
SIO_WIRE_SIZE(struct sio_rep_seg_connect, 72);

/*
 * Map a connected segment (or BAR). The pieces cover what may be reached, ascending; what lies
 * between them, and pieces without access, read as all ones. Piece i uses descriptor fd_index. Of
 * an exact multicast group nothing can be reached, and SCI_FLAG_READONLY_MAP must be given.
 */
#define SIO_MAP_PIECES 16
struct sio_msg_seg_map {
	struct sio_msg h;
	sio_le32 handle, flags; /* SCI_FLAG_READONLY_MAP, _IO_MAP_IOSPACE */
	sio_le64 offset, bytes;
};
SIO_WIRE_SIZE(struct sio_msg_seg_map, 40);
struct sio_wire_piece {
	sio_le64 offset, bytes; /* in the segment */
	sio_le64 fd_offset;
	sio_le32 fd_index, access; /* SIO_ACCESS_* */
	sio_le32 bar_id_lo, flags; /* flags: SIO_BAR_* where the piece is of a BAR */
};
SIO_WIRE_SIZE(struct sio_wire_piece, 40);
struct sio_rep_seg_map {
	struct sio_msg h;
	sio_le32 map, n_pieces;
	sio_le64 address; /* of @offset in this host's physical map, while mapped; 0: of a BAR */
	struct sio_wire_piece piece[SIO_MAP_PIECES];
};
SIO_WIRE_SIZE(struct sio_rep_seg_map, 672);
/*
 * How stores through [@offset, @offset + @bytes) of a map wake a sleeping device: for each piece
 * that is SIO_BAR_POLLED and writable, before the program gets the map; again, to choose another
 * way. It is the port's WATCH: FAULT comes with a descriptor; the reply to EVENT brings the page
 * (the word at @flag_offset) and the event descriptor.
 */
struct sio_msg_seg_watch {
	struct sio_msg h;
	sio_le32 map, kind;	/* SIO_WATCH_* */
	sio_le64 offset, bytes; /* in the segment */
	sio_le64 address;	/* FAULT: of @offset in the program's address space */
};
SIO_WIRE_SIZE(struct sio_msg_seg_watch, 48);
struct sio_rep_seg_watch {
	struct sio_msg h;
	sio_le32 flag_offset, reserved;
};
SIO_WIRE_SIZE(struct sio_rep_seg_watch, 24);
/* SEG_UNMAP: struct sio_msg_handle with the map. SEG_DISCONNECT: with the segment. */

/*
 * Data interrupts. The receiver's reply: descriptor 0 to poll and read (eventfd semantics). Each
 * sender has a ring in the receiver's memory (libsmartio/wire/ring.h).
 *
 * Interrupts without data use the same messages with SIO_DINT_PLAIN among the flags: numbers of
 * their own, no rings, no DINT_RING; DINT_REMOVE is EBUSY while somebody is connected. With
 * SCI_FLAG_SHARED_INT several of them have one number.
 *
 * @adapter SIO_DINT_ALL_ADAPTERS, one with data: it has its number at each adapter of the host.
 */
#define SIO_DINT_PLAIN 0x80000000u
#define SIO_DINT_ALL_ADAPTERS 0xffffffffu
struct sio_msg_dint_create {
	struct sio_msg h;
	sio_le32 adapter, number, flags, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_dint_create, 32);
struct sio_rep_dint_create {
	struct sio_msg h;
	sio_le32 handle, number;
	sio_le64 key, extra, seal; /* for RESTORE */
};
SIO_WIRE_SIZE(struct sio_rep_dint_create, 48);
struct sio_msg_dint_connect {
	struct sio_msg h;
	sio_le32 node, adapter, number, flags;
};
SIO_WIRE_SIZE(struct sio_msg_dint_connect, 32);
/*
 * Reply: descriptor 0 the ring at fd_offset, 1 the trigger (write 8 bytes). Plain: 0 the trigger.
 */
struct sio_rep_dint_connect {
	struct sio_msg h;
	sio_le32 handle, path; /* path: as of SEG_CONNECT */
	sio_le64 fd_offset, bytes;
	sio_le64 key, seal; /* for RESTORE */
};
SIO_WIRE_SIZE(struct sio_rep_dint_connect, 56);
struct sio_msg_dint_ring_free {
	struct sio_msg h;
	sio_le32 handle, ring;
};
SIO_WIRE_SIZE(struct sio_msg_dint_ring_free, 24);

/* Devices: the first one with fdid > after; ENODEV: none left. */
struct sio_msg_dev_list {
	struct sio_msg h;
	sio_le32 after, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_dev_list, 24);
struct sio_rep_dev_list {
	struct sio_msg h;
	sio_le32 fdid, node, adapter, slot; /* adapter: of this host, the way there */
	sio_le32 class_code, vendor, device, subsys_vendor, subsys_device, bdf;
	sio_le32 borrowers, exclusive, quarantined, generation;
	sio_le32 resets,
		state; /* resets: bit SIO_RESET_* of smartio/uapi.h; state: enum sio_dev_state */
	sio_le64 serial, bar_size[6], bar_addr[6]; /* addresses: in the physical map of its host */
	char name[64];
};
SIO_WIRE_SIZE(struct sio_rep_dev_list, 248);

struct sio_msg_dev_borrow {
	struct sio_msg h;
	sio_le32 fdid, flags;
};
SIO_WIRE_SIZE(struct sio_msg_dev_borrow, 24);
struct sio_rep_dev_borrow {
	struct sio_msg h;
	sio_le32 handle, generation;
	sio_le64 borrower; /* the lender's number for this borrow; never used again */
	struct sio_rep_dev_list info;
};
SIO_WIRE_SIZE(struct sio_rep_dev_borrow, 280);

struct sio_msg_dev_seg_create {
	struct sio_msg h;
	sio_le32 device, segment_id;
	sio_le64 bytes;
	sio_le32 memtype, hints, flags, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_dev_seg_create, 48);
struct sio_rep_dev_seg_create {
	struct sio_msg h;
	sio_le64 key; /* for RESTORE; 0: of another host */
};
SIO_WIRE_SIZE(struct sio_rep_dev_seg_create, 24);
struct sio_msg_dev_seg_connect {
	struct sio_msg h;
	sio_le32 device, segment_id, memtype, flags;
};
SIO_WIRE_SIZE(struct sio_msg_dev_seg_connect, 32);

/* Map [offset, offset+bytes) of a local or connected segment for a device. */
struct sio_msg_dma_map {
	struct sio_msg h;
	sio_le32 device, segment, remote, adapter; /* remote: 1: segment is of SEG_CONNECT */
	sio_le64 offset, bytes;
	sio_le32 flags, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_dma_map, 56);
struct sio_rep_dma_map {
	struct sio_msg h;
	sio_le32 map, reserved;
	sio_le64 ioaddr, bytes;
	sio_le64 key; /* for RESTORE */
};
SIO_WIRE_SIZE(struct sio_rep_dma_map, 48);

/* The holder of a device's registers says that it no longer uses what @borrower had mapped. */
#define SIO_BORROWER_ALL (~0ULL)
struct sio_msg_dev_settled {
	struct sio_msg h;
	sio_le32 device, reason;
	sio_le64 borrower;
};
SIO_WIRE_SIZE(struct sio_msg_dev_settled, 32);

/*
 * The holder of a device's registers: a queue of the device is to use [ioaddr, ioaddr + bytes),
 * which one mapping of @borrower's must cover; until UNHOLD that mapping is not undone. ERANGE:
 * none covers it; EINVAL: no live borrow of the device has number @borrower; EACCES: not the
 * holder; EBUSY: the device is being reset; EOPNOTSUPP: the mapping is of another device's BAR.
 */
struct sio_msg_dev_hold {
	struct sio_msg h;
	sio_le32 device, reserved;
	sio_le64 borrower, ioaddr, bytes;
};
SIO_WIRE_SIZE(struct sio_msg_dev_hold, 48);
struct sio_rep_dev_hold {
	struct sio_msg h;
	sio_le64 hold; /* the lender's number */
};
SIO_WIRE_SIZE(struct sio_rep_dev_hold, 24);
/* EINVAL: no such hold (any more: a reset ends all). */
struct sio_msg_dev_unhold {
	struct sio_msg h;
	sio_le32 device, reserved;
	sio_le64 hold;
};
SIO_WIRE_SIZE(struct sio_msg_dev_unhold, 32);

/*
 * Interrupt vector @vector of a borrowed device triggers the plain interrupt that @link (of
 * DINT_CONNECT) is connected to, until UNVECTOR, the borrow's end or the interrupt's. EBUSY: the
 * vector is taken; ENOSPC: (ANY) all are; EINVAL: there is no such vector; EOPNOTSUPP: the device
 * has none.
 */
#define SIO_VECTOR_ANY 0xffffffffu /* the lowest free one but 0 */
struct sio_msg_dev_vector {	   /* UNVECTOR: @link 0 */
	struct sio_msg h;
	sio_le32 device, vector, link, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_dev_vector, 32);
struct sio_rep_dev_vector {
	struct sio_msg h;
	sio_le32 vector, reserved;
};
SIO_WIRE_SIZE(struct sio_rep_dev_vector, 24);

/*
 * Device Lending: a device that was borrowed exclusively, of another host, gets into this host's
 * PCI tree, where its stock driver binds. @interrupt: handles of plain interrupts (a power of 2 of
 * them) that vectors 0, 1, ... of the device are tied to: its driver's from now on. It goes with
 * the session, before all else that that has. EACCES: @flags do not allow what it takes;
 * EOPNOTSUPP: the port does not serve it, or the device is of this host; EBUSY: the session has a
 * shadow. After a failure what was done of it stays until the session ends.
 * SHADOW_DEL: struct sio_msg_handle with the device; its driver is unbound. EBADF: it has none.
 */
#define SIO_SHADOW_ALL_MEMORY 1 /* the lender's host may reach all memory of this one */
struct sio_msg_shadow {
	struct sio_msg h;
	sio_le32 device, flags;
	sio_le32 n_interrupts, reserved;
	sio_le32 interrupt[16];
};
SIO_WIRE_SIZE(struct sio_msg_shadow, 96);
struct sio_rep_shadow {
	struct sio_msg h;
	sio_le32 bdf, reserved; /* as of the port's ADAPTER */
	sio_le64 memory;	/* bytes of this host that the device reaches */
};
SIO_WIRE_SIZE(struct sio_rep_shadow, 32);

/*
 * The lender resets a device of its own that the asker has not borrowed. @force: although programs
 * have it; their queues are gone then. EBUSY: they do; EOPNOTSUPP: it has no reset; ENODEV: it is
 * not of this host, or not there.
 */
struct sio_msg_dev_admin_reset {
	struct sio_msg h;
	sio_le32 fdid, force;
};
SIO_WIRE_SIZE(struct sio_msg_dev_admin_reset, 24);
struct sio_rep_dev_admin_reset {
	struct sio_msg h;
	sio_le32 kind, generation; /* kind: SIO_RESET_FUNCTION or _BUS */
	sio_le32 borrows, settled; /* live ones; those whose quarantine has ended */
	sio_le64 mappings, ns;	   /* freed of these; how long the port took */
};
SIO_WIRE_SIZE(struct sio_rep_dev_admin_reset, 48);

/*
 * DMA queues. Reply: descriptor 0 the ring (struct sio_dma_ring of smartio/uapi.h, @bytes to map),
 * 1 the doorbell, 2 the completion event. A program moves the ring's tail without asking; what it
 * may reach has to be attached before, as a whole, and ends with the connection or the segment.
 * QUEUE_REMOVE: struct sio_msg_handle; a transfer under way ends with it.
 */
struct sio_msg_queue_create {
	struct sio_msg h;
	sio_le32 adapter, flags;
};
SIO_WIRE_SIZE(struct sio_msg_queue_create, 24);
struct sio_rep_queue_create {
	struct sio_msg h;
	sio_le32 handle, reserved;
	sio_le64 bytes;
};
SIO_WIRE_SIZE(struct sio_rep_queue_create, 32);
/* EPERM: not prepared on the queue's adapter; ENOTCONN: connected through another one; ENOSPC. */
struct sio_msg_queue_attach {
	struct sio_msg h;
	sio_le32 queue, segment, remote, reserved; /* remote: 1: segment is of SEG_CONNECT */
};
SIO_WIRE_SIZE(struct sio_msg_queue_attach, 32);
struct sio_rep_queue_attach {
	struct sio_msg h;
	sio_le32 slot, reserved;
	sio_le64 range; /* for QUEUE_DETACH */
};
SIO_WIRE_SIZE(struct sio_rep_queue_attach, 32);
struct sio_msg_queue_detach {
	struct sio_msg h;
	sio_le64 range;
};
SIO_WIRE_SIZE(struct sio_msg_queue_detach, 24);

/* Events. */
/* What becomes of a segment's handle with an event. */
enum sio_segment_loss {
	SIO_LOSS_NONE,
	SIO_LOSS_LOST,	  /* it is gone: its maps become pages of ones */
	SIO_LOSS_REMOVED, /* its exporter has removed it; the memory is kept for its importers */
};
#define SIO_EVM_TIMES 256u /* one word tells at most of so many; more are told in several */
struct sio_evm_segment {
	struct sio_msg h;
	sio_le32 handle, reason; /* SCI_CB_* */
	sio_le32 node, adapter;
	sio_le32 loss;	/* enum sio_segment_loss */
	sio_le32 count; /* it happened so many times, SIO_EVM_TIMES at most; 0: once */
};
SIO_WIRE_SIZE(struct sio_evm_segment, 40);
struct sio_evm_dint_ring { /* DINT_RING and DINT_RING_END; DINT_LOST: handle and node alone */
	struct sio_msg h;
	sio_le32 handle, ring, node, reserved;
	sio_le64 fd_offset, bytes;
	sio_le64 key; /* for RESTORE */
};
SIO_WIRE_SIZE(struct sio_evm_dint_ring, 56);
enum {
	SIO_DEVICE_EV_BORROWER_GONE = 1, /* to who holds the registers: settle @borrower */
	SIO_DEVICE_EV_RESET,		 /* @generation is new: queues made before are gone */
	SIO_DEVICE_EV_LOST,		 /* the device or its host is gone for good */
};
struct sio_evm_device {
	struct sio_msg h;
	sio_le32 handle, event, generation, reserved;
	sio_le64 borrower;
};
SIO_WIRE_SIZE(struct sio_evm_device, 40);

/*
 * LIST: rows for listings and the audit; kinds with SIO_LIST_PORT + SIO_KIND_* come from the port.
 */
enum {
	SIO_LIST_NODES = 1,
	SIO_LIST_SEGMENTS,
	SIO_LIST_CLIENTS,
	SIO_LIST_CONNECTIONS,
	SIO_LIST_BORROWS,
	SIO_LIST_DMA_MAPS,
	SIO_LIST_DINTS,
	SIO_LIST_PORT = 64,
};
#define SIO_ROW_LIVE 1
#define SIO_ROW_QUARANTINED 2
#define SIO_ROW_AVAILABLE 4
#define SIO_ROW_UP 8
#define SIO_ROW_EXCLUSIVE 16
#define SIO_ROW_REGISTERS 32
struct sio_msg_list {
	struct sio_msg h;
	sio_le32 kind, reserved;
	sio_le64 after; /* rows with key greater than this */
};
SIO_WIRE_SIZE(struct sio_msg_list, 32);
/*
 * What a row's fields say; what is not named is 0. Flags: LIVE, or QUARANTINED, and what applies.
 *   NODES        key, node: node; name; UP: its daemon answers (always for the asked one)
 *   SEGMENTS key: uid; owner: the port's; bytes; address: physical, as the port's MEM row; id;
 *   refs:
 *                connections, grants and DMA maps; pid; QUARANTINED: removed, or its program is
 *                gone,
 *                and others still reach it
 *   CLIENTS key: the connection; owner: the port's (tools and keepers: 0); id: SIO_CLIENT_*; refs:
 *                objects; pid; bytes: the version of this protocol that it speaks
 *   CONNECTIONS key; node, id: the segment's; bytes; address: of the window, as the port's MAP row
 *   (0:
 *                not mapped, or local); refs: maps; pid; name: "local", "remote", "bar"; LIVE: not
 *                lost
 *   BORROWS at the lender. key: the borrower; owner: the port's; id: device; node, pid: who; refs:
 *                DMA maps; EXCLUSIVE, REGISTERS
 *   DMA_MAPS at the lender. key, bytes, address (IOVA), id (device): as the port's DMAMAP row;
 *   owner:
 *                the borrow's; node: where the memory is; refs: holds by queues of the device
 *   DINTS key: uid; owner: the port's; id: number; refs: senders, whose rings are memory beside
 *                the segments (of plain interrupts 0); pid; name: adapter, "plain"
 *   PORT + kind key, owner, bytes (length), address, id (device), refs, node: as struct
 *   sio_list_entry
 *                (a WATCH's address: SIO_WATCH_*; a VECTOR's bytes: its number)
 */
struct sio_wire_row {
	sio_le64 key, owner, bytes, address;
	sio_le32 id, node, refs, flags, pid, reserved;
	char name[40];
};
SIO_WIRE_SIZE(struct sio_wire_row, 96);
#define SIO_LIST_ROWS 64
struct sio_rep_list {
	struct sio_msg h;
	sio_le32 count, more;
	struct sio_wire_row row[SIO_LIST_ROWS];
};
SIO_WIRE_SIZE(struct sio_rep_list, 6168);

/*
 * STATS: kind 0 the daemon's own counters, 1 the port's of host, 2 adapter id, 3 device fdid.
 * Among the daemon's: client_version, the greatest version of this protocol that it speaks;
 * refused_versions, 1 if it refused a program for its version in the last SIO_REFUSED_RECENT_S
 * seconds: then refused_version is the greatest that the last one spoke, and refused_pid who it
 * was.
 */
#define SIO_REFUSED_RECENT_S 600
struct sio_msg_stats {
	struct sio_msg h;
	sio_le32 kind, id;
};
SIO_WIRE_SIZE(struct sio_msg_stats, 24);
struct sio_wire_counter {
	char name[32];
	sio_le64 value;
};
SIO_WIRE_SIZE(struct sio_wire_counter, 40);
struct sio_rep_stats {
	struct sio_msg h;
	sio_le32 count, reserved;
	struct sio_wire_counter counter[64];
};
SIO_WIRE_SIZE(struct sio_rep_stats, 2584);

#endif
