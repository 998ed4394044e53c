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
 * The protocol number of a program and its smartiod. A change that alters or adds a message raises
 * it: ends with the same number go on with each other in any order of restarts, others say which is
 * older.
 */
#define SIO_CLIENT_VERSION 29

/*
 * All requests, in one list for each room of smartiod that serves some, from which tables are made:
 * X(NAME, name, number, request, zero, reply, reply_zero). SIO_MSG_NAME is a struct @request,
 * served by smartiod_name(), and a successful reply a struct @reply. Field @zero is 0 in a request,
 * and @reply_zero in a reply. The first field (h, size): there is no such field, or it is HELLO,
 * where a program of another version must get the answer that its version is another one.
 */
/* clang-format off */
#define SIO_CLIENT_DAEMON(X) \
	X(HELLO, hello, 1, sio_msg_hello, h, sio_rep_hello, h) \
	X(ADAPTER, adapter_query, 2, sio_msg_adapter, h, sio_rep_adapter, h) \
	X(NODE_PROBE, node_probe, 3, sio_msg_node_probe, h, sio_msg, size) \
	X(BYE, bye, 6, sio_msg_bye, h, sio_msg, size) \
	X(LINK, link_query, 7, sio_msg_link, reserved, sio_rep_link, reserved) \
	X(EVENTS_TAKEN, events_taken, 8, sio_msg_events_taken, h, sio_msg, size) \
	X(LIST, list, 64, sio_msg_list, h, sio_rep_list, h) \
	X(STATS, stats, 65, sio_msg_stats, h, sio_rep_stats, reserved) \
	X(RELOAD, reload, 66, sio_msg_reload, reserved, sio_rep_reload, h) \
	X(RELOAD_LINE, reload_line, 67, sio_msg_reload_line, reserved, \
	  sio_rep_reload_line, reserved) \
	X(FILE, file, 68, sio_msg_file, h, sio_rep_file, h) \
	X(EVENTS_AWAIT, events_await, 69, sio_msg_events_await, h, \
	  sio_rep_events_await, reserved)
#define SIO_CLIENT_RESTART(X) \
	X(RESTORE, restore, 4, sio_msg_restore, h, sio_msg, size) \
	X(RESTORE_STEP, restore_step, 5, sio_msg_restore_step, h, sio_msg, size)
#define SIO_CLIENT_SEGMENT(X) \
	X(SEG_CREATE, seg_create, 16, sio_msg_seg_create, h, sio_rep_seg_create, h) \
	X(SEG_PREPARE, seg_prepare, 17, sio_msg_seg_adapter, reserved, sio_msg, size) \
	X(SEG_AVAILABLE, seg_available, 18, sio_msg_seg_adapter, reserved, sio_msg, size) \
	X(SEG_UNAVAILABLE, seg_unavailable, 19, sio_msg_seg_adapter, reserved, sio_msg, size) \
	X(SEG_REMOVE, seg_remove, 20, sio_msg_handle, h, sio_msg, size) \
	X(SEG_CONNECT, seg_connect, 21, sio_msg_seg_connect, h, sio_rep_seg_connect, h) \
	X(SEG_DISCONNECT, seg_disconnect, 22, sio_msg_handle, h, sio_msg, size) \
	X(SEG_MAP, seg_map, 23, sio_msg_seg_map, h, sio_rep_seg_map, h) \
	X(SEG_UNMAP, seg_unmap, 24, sio_msg_handle, h, sio_msg, size) \
	X(SEG_FILL, seg_fill, 26, sio_msg_handle, h, sio_rep_seg_create, h) \
	X(SEG_SHARE, seg_share, 27, sio_msg_handle, h, sio_msg, size) \
	X(SEG_ATTACH, seg_attach, 28, sio_msg_seg_attach, h, sio_rep_seg_attach, h) \
	X(SEG_TAKE, seg_take, 29, sio_msg_seg_take, h, sio_rep_seg_create, h)
#define SIO_CLIENT_INTERRUPT(X) \
	X(DINT_CREATE, dint_create, 32, sio_msg_dint_create, reserved, sio_rep_dint_create, h) \
	X(DINT_REMOVE, dint_remove, 33, sio_msg_handle, h, sio_msg, size) \
	X(DINT_CONNECT, dint_connect, 34, sio_msg_dint_connect, h, sio_rep_dint_connect, h) \
	X(DINT_DISCONNECT, dint_disconnect, 35, sio_msg_handle, h, sio_msg, size) \
	X(DINT_RING_FREE, dint_ring_free, 36, sio_msg_dint_ring_free, h, sio_msg, size)
#define SIO_CLIENT_DMA(X) \
	X(QUEUE_CREATE, queue_create, 80, sio_msg_queue_create, h, \
	  sio_rep_queue_create, reserved) \
	X(QUEUE_REMOVE, queue_remove, 81, sio_msg_handle, h, sio_msg, size) \
	X(QUEUE_ATTACH, queue_attach, 82, sio_msg_queue_attach, reserved, \
	  sio_rep_queue_attach, h) \
	X(QUEUE_DETACH, queue_detach, 83, sio_msg_queue_detach, reserved, sio_msg, size)
#define SIO_CLIENT_DEVICE(X) \
	X(DEV_LIST, dev_list, 48, sio_msg_dev_list, reserved, sio_rep_dev_list, h) \
	X(DEV_AWAIT, dev_await, 99, sio_msg_dev_await, reserved, sio_rep_dev_await, reserved) \
	X(HOPS, hops_query, 63, sio_msg_hops, h, sio_rep_hops, reserved)
#define SIO_CLIENT_BORROWER(X) \
	X(SEG_WATCH, seg_watch, 25, sio_msg_seg_watch, h, sio_rep_seg_watch, reserved) \
	X(GROUP_JOIN, group_join, 30, sio_msg_group_join, h, sio_rep_group_join, reserved) \
	X(GROUP_LEAVE, group_leave, 31, sio_msg_handle, h, sio_msg, size) \
	X(DEV_BORROW, dev_borrow, 49, sio_msg_dev_borrow, reserved, sio_rep_dev_borrow, h) \
	X(DEV_RETURN, dev_return, 50, sio_msg_handle, h, sio_msg, size) \
	X(DEV_RELEASE_EXCLUSIVE, dev_release_exclusive, 51, sio_msg_handle, h, sio_msg, size) \
	X(DEV_SEG_CREATE, dev_seg_create, 52, sio_msg_dev_seg_create, reserved, \
	  sio_rep_dev_seg_create, h) \
	X(DEV_SEG_CONNECT, dev_seg_connect, 53, sio_msg_dev_seg_connect, h, \
	  sio_rep_seg_connect, h) \
	X(DMA_MAP, dma_map, 54, sio_msg_dma_map, reserved, sio_rep_dma_map, reserved) \
	X(DMA_UNMAP, dma_unmap, 55, sio_msg_handle, h, sio_msg, size) \
	X(DEV_SETTLED, dev_settled, 56, sio_msg_dev_settled, h, sio_msg, size) \
	X(DEV_RESET, dev_reset, 57, sio_msg_handle, h, sio_msg, size) \
	X(DEV_HOLD, dev_hold, 58, sio_msg_dev_hold, reserved, sio_rep_dev_hold, h) \
	X(DEV_UNHOLD, dev_unhold, 59, sio_msg_dev_unhold, reserved, sio_msg, size) \
	X(DEV_VECTOR, dev_vector, 60, sio_msg_dev_vector, reserved, \
	  sio_rep_dev_vector, reserved) \
	X(DEV_UNVECTOR, dev_unvector, 61, sio_msg_dev_vector, reserved, sio_msg, size) \
	X(SHADOW, shadow, 96, sio_msg_shadow, reserved, sio_rep_shadow, reserved) \
	X(SHADOW_DEL, shadow_del, 97, sio_msg_handle, h, sio_msg, size) \
	X(DEV_ASSIGN, dev_assign, 98, sio_msg_dev_assign, h, sio_msg, size) \
	X(DEV_NOTIFY, dev_notify, 100, sio_msg_handle, h, sio_msg, size)
#define SIO_CLIENT_LENDER(X) \
	X(DEV_ADMIN_RESET, dev_admin_reset, 62, sio_msg_dev_admin_reset, h, \
	  sio_rep_dev_admin_reset, h)
#define SIO_CLIENT_REQUESTS(X) \
	SIO_CLIENT_DAEMON(X)    \
	SIO_CLIENT_RESTART(X)   \
	SIO_CLIENT_SEGMENT(X)   \
	SIO_CLIENT_INTERRUPT(X) \
	SIO_CLIENT_DMA(X)       \
	SIO_CLIENT_DEVICE(X)    \
	SIO_CLIENT_BORROWER(X)  \
	SIO_CLIENT_LENDER(X)
/* clang-format on */

#define SIO_CLIENT_NUMBER(NAME, name, number, ...) SIO_MSG_##NAME = number,
enum { SIO_CLIENT_REQUESTS(SIO_CLIENT_NUMBER) };

/*
 * All events, as X(NAME, number, event, zero):
 *   SEGMENT_LOCAL   something happened to a segment of ours
 *   SEGMENT_REMOTE  ... to a segment that we are connected to
 *   DINT_RING       a sender connected: descriptor 0 is its ring
 *   DINT_RING_END   a sender is gone: drain its ring, then DINT_RING_FREE
 *   DEVICE          something happened to a borrowed device
 *   DINT_LOST       an interrupt of ours, or one connected to, is gone
 *   FENCE           EVENTS_TAKEN is to be sent when all events before it have been handled
 */
/* clang-format off */
#define SIO_CLIENT_EVENTS(X) \
	X(SEGMENT_LOCAL, 256, sio_evm_segment, h) \
	X(SEGMENT_REMOTE, 257, sio_evm_segment, h) \
	X(DINT_RING, 258, sio_evm_dint_ring, reserved) \
	X(DINT_RING_END, 259, sio_evm_dint_ring, reserved) \
	X(DEVICE, 260, sio_evm_device, reserved) \
	X(DINT_LOST, 261, sio_evm_dint_ring, reserved) \
	X(FENCE, 262, sio_evm_fence, h)
/* clang-format on */

#define SIO_EVENT_NUMBER(NAME, number, ...) SIO_EVM_##NAME = number,
enum { SIO_CLIENT_EVENTS(SIO_EVENT_NUMBER) };

/*
 * The first message. Reply: descriptor 0 the owner (keep it open), 1 the status page.
 *
 * With the owner's descriptor beside it: a library whose smartiod was restarted. The reply brings
 * no descriptor; RESTORE follows. New programs are answered when all that were here before are back
 * (or too late). EPROTO: another version; the text says which side is older, and the owner's
 * resources stay. ENOENT: that owner has ended, or is not this host's; EBUSY: another connection
 * uses it.
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
 * Only after a HELLO with an owner: one object that the library had from the previous smartiod.
 * @request is the request that made it, without descriptors; @type its type, or SIO_EVM_DINT_RING,
 * the event that brought it. First come objects that need no other program (a segment, an
 * interrupt, its rings, a borrow, a device segment), each after the object that it was made from;
 * then RESTORE_STEP 1; then attached handles, which may be all that reports a segment whose maker
 * released it, and RESTORE_STEP 2; then the rest, and RESTORE_STEP 3: its reply begins normal
 * operation. Success: smartiod has the object again, by the same handle. ENOENT: it is lost, and an
 * event that says so, if there is one for its kind, was sent before the reply. ENOMEM: it is not
 * lost, and the message is to be sent again; not an answer to one with SIO_RESTORE_LAST.
 *
 * @key, which the library got when the object was made: the port's number of memory (segment,
 * connection, ring, link to one), interrupt (and link to a plain one), DMA map, or window (map); of
 * a connection to another host the segment's number there; of a borrow @borrower; of a pin its
 * number; of a shadow the port's. @extra: of a shared interrupt the number of the one that its
 * owners share; of a segment its bytes; of a connection to another host its own number; of a shadow
 * the memory that its device reaches. No key gives access: nothing is handed
 * out for it. @seal, which came with the key, proves to smartiod that it gave the key to this
 * program, where the port cannot tell; 0 where it can.
 */
#define SIO_RESTORE_STEPS 3
#define SIO_RESTORE_REQUEST 64
#define SIO_RESTORE_SHARED 1   /* flags: SEG_SHARE */
#define SIO_RESTORE_FILLED 2   /* SEG_FILL, SEG_TAKE */
#define SIO_RESTORE_RELEASED 4 /* a borrow that was opened to others */
#define SIO_RESTORE_ENDED 8    /* a ring whose sender is gone */
#define SIO_RESTORE_LEAVING 16 /* a connection, a vector, being given back: no answer came */
#define SIO_RESTORE_DOWN 32    /* one of which its library has heard SCI_CB_NOT_OPERATIONAL last */
#define SIO_RESTORE_PEERS 64   /* a shadow with SIO_SHADOW_WITH_PEERS */
#define SIO_RESTORE_LAST 128   /* without memory for it, it is lost: it was sent for long enough */
/*
 * What a piece of a BAR's map, or what a DMA queue reaches of a BAR, has: @view, the lender's
 * number, and where the lender is another host its @grant and @map, this host's port's. A BAR's
 * member of a group has @view, and as its @grant the lender's number of the member. A
 * connection to another host's interrupt has two: @view, the receiver's number of it, with grant
 * and map of the interrupt; and its start, with those of its ring, if it has data. A shadow has
 * one for each BAR, the next one for the page that stands for the interrupt table, and behind
 * them, as a @view, the lender's number of its DMA mapping. Its @request is left out.
 */
#define SIO_MAP_PIECES 16
struct sio_wire_claim {
	sio_le64 view, grant, map;
};
struct sio_msg_restore {
	struct sio_msg h;
	sio_le32 type, handle;
	sio_le64 key, extra, seal;
	sio_le32 prepared, available, exported; /* segment: a bit per adapter; exported: ever */
	sio_le32 told;	 /* segment: connections that its library has heard of */
	sio_le32 number; /* segment id; interrupt; ring; vector; of a borrow the generation */
	sio_le32 flags;
	/* To another host, as the replies had it: of connections, maps of BARs, */
	sio_le32 path, doorbells;
	sio_le64 bytes, peer_boot;
	sio_le32 node;		  /* its own, where the request has it not, */
	sio_le32 memory;	  /* segment that was filled: SIO_MEMORY_*, as it was said then */
	sio_le32 bdf, class_code; /* borrows: by these the device has its name */
	uint8_t request[SIO_RESTORE_REQUEST];
	struct sio_wire_claim
		claim[SIO_MAP_PIECES]; /* map of a BAR: of its pieces, in order; link; shadow */
};
SIO_WIRE_SIZE(struct sio_msg_restore, 560);
struct sio_msg_restore_step {
	struct sio_msg h;
	sio_le32 step;
	sio_le32 last_handle; /* that it was ever told: of what it lost it may still have some.
				 EINVAL: smartiod has told nobody of that */
};
SIO_WIRE_SIZE(struct sio_msg_restore_step, 24);

/*
 * The program is about to exit normally: exporters of segments that it is still connected to then
 * get SCI_CB_DISCONNECT, not SCI_CB_LOST.
 */
struct sio_msg_bye {
	struct sio_msg h;
};
SIO_WIRE_SIZE(struct sio_msg_bye, 16);

/*
 * ADAPTER, LIST, STATS: @node: the host that is asked about, whose daemon answers; 0: this one.
 * EHOSTUNREACH, ENETDOWN, ETIMEDOUT: that daemon cannot be asked.
 */

/* Adapter @adapter: for SCIGetLocalNodeId and SCI_Q_ADAPTER. ENXIO. */
struct sio_msg_adapter {
	struct sio_msg h;
	sio_le32 adapter, node;
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
 * LINK: the state of the own link of an adapter of this host, whoever is behind it, and for how
 * long it has been in that state, as far as smartiod knows: at most since its start. ENXIO.
 */
struct sio_msg_link {
	struct sio_msg h;
	sio_le32 adapter, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_link, 24);
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

/*
 * Local segments. Reply descriptor 0: the memory (none for an EMPTY segment).
 * With SIO_SEG_IMPORT the memory is @bytes at @offset of descriptor 0 of the request, a memfd of
 * the program or of another one that gave it; whole pages. Such a segment is PRIVATE and stays so:
 * a program that got its file, to map it, would have all of it. Reply descriptor 0: that file.
 */
#define SIO_SEG_IMPORT 0x80000000u
struct sio_msg_seg_create {
	struct sio_msg h;
	sio_le32 segment_id, flags; /* AUTO_ID: first free id from segment_id on */
	sio_le64 bytes, offset;	    /* offset: 0 without SIO_SEG_IMPORT */
};
SIO_WIRE_SIZE(struct sio_msg_seg_create, 40);
struct sio_rep_seg_create {
	struct sio_msg h;
	sio_le32 handle, segment_id;
	sio_le64 bytes, phys_addr; /* bytes: rounded up to pages */
	sio_le64 key, seal;	   /* for RESTORE */
	sio_le64 fd_offset;	   /* where the memory begins in its descriptor */
};
SIO_WIRE_SIZE(struct sio_rep_seg_create, 64);
/*
 * What the memory of a segment is, for listings: numbers of enum smartio_memory (smartio/gpu.h).
 * What a program has put there, its library says: smartiod sees no difference.
 */
enum {
	SIO_MEMORY_NONE, /* made EMPTY, and not filled yet */
	SIO_MEMORY_HOST,
	SIO_MEMORY_PAGES,   /* SEG_FILL */
	SIO_MEMORY_PINNED,  /* SEG_FILL */
	SIO_MEMORY_GPU,	    /* SEG_TAKE */
	SIO_MEMORY_DMABUF,  /* SEG_TAKE */
	SIO_MEMORY_FILE,    /* SIO_SEG_IMPORT */
	SIO_MEMORY_UNKNOWN, /* smartiod was started again, and nobody has said it since */
};
/*
 * SEG_FILL: struct sio_msg_handle; the memory of a segment that was made EMPTY. @flags:
 * SIO_MEMORY_PAGES or _PINNED. Reply: as SEG_CREATE. A repeated request gets the same memory, of
 * the kind that it says. EPERM: the segment was not made EMPTY, is being filled, has memory of
 * SEG_TAKE, or the handle is not its maker's.
 * SEG_SHARE: struct sio_msg_handle; lets other programs of this host attach.
 */
/*
 * SEG_TAKE: as SEG_FILL, but the memory is that of descriptor 0, a dma-buf of any driver, from
 * @offset on for all of the segment's bytes. EOPNOTSUPP: not on this port. EBADF: not a dma-buf;
 * EINVAL: the range is not in it.
 */
struct sio_msg_seg_take {
	struct sio_msg h;
	sio_le32 handle, memory; /* memory: SIO_MEMORY_DMABUF or _GPU */
	sio_le64 offset;	 /* whole pages */
};
SIO_WIRE_SIZE(struct sio_msg_seg_take, 32);
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
	sio_le64 fd_offset; /* as of SEG_CREATE */
};
SIO_WIRE_SIZE(struct sio_rep_seg_attach, 72);
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
	sio_le64 peer_boot;  /* of a path: SIO_LINK_START of the host that it leads to */
	sio_le64 key, seal;  /* for RESTORE */
	sio_le64 bar_addr;   /* of a BAR: in the physical map of its host */
	sio_le64 connection; /* for RESTORE; 0: not to another host */
};
SIO_WIRE_SIZE(struct sio_rep_seg_connect, 80);

/*
 * Maps a connected segment (or BAR). The pieces cover what may be reached, ascending; what lies
 * between them, and pieces without access, read as all ones. Piece i uses descriptor fd_index. Of
 * an exact multicast group nothing can be reached, and SCI_FLAG_READONLY_MAP must be given.
 */
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
	/*
	 * For RESTORE. Of another host's segment @key, its window, and @seal. Of a BAR the claims
	 * of its pieces; of another host's also @path, @seal, and as bits those of @doorbells.
	 */
	sio_le64 key, seal;
	sio_le32 path, doorbells;
	struct sio_wire_piece piece[SIO_MAP_PIECES];
	struct sio_wire_claim claim[SIO_MAP_PIECES];
};
SIO_WIRE_SIZE(struct sio_rep_seg_map, 1080);
/*
 * How stores through [@offset, @offset + @bytes) of a map wake a sleeping device: sent for each
 * piece that is SIO_BAR_POLLED and writable, before the program gets the map; and again, to choose
 * another method. It is the port's WATCH: FAULT comes with a descriptor; the reply to EVENT brings
 * the page (the word at @flag_offset) and the event descriptor.
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
 * GROUP_JOIN: makes [offset, offset + bytes), whole pages, of a connected BAR a member of multicast
 * group @group: what is written to the group is written there. Reply: a map through which nothing
 * can be accessed. GROUP_LEAVE, struct sio_msg_handle with that map, ends it: after the reply
 * nothing is written there any more. EACCES: not memory, or the borrower may not write it; EEXIST:
 * this borrow has a member of the group; EOPNOTSUPP: groups here are not exact.
 */
struct sio_msg_group_join {
	struct sio_msg h;
	sio_le32 handle, group;
	sio_le64 offset, bytes;
};
SIO_WIRE_SIZE(struct sio_msg_group_join, 40);
struct sio_rep_group_join {
	struct sio_msg h;
	sio_le32 map, reserved;
	/* For RESTORE: view and member, which is its @grant; of another host's device sealed. */
	sio_le64 seal;
	struct sio_wire_claim claim;
};
SIO_WIRE_SIZE(struct sio_rep_group_join, 56);

/*
 * Data interrupts. The receiver's reply: descriptor 0 to poll and read (eventfd semantics). Each
 * sender has a ring in the receiver's memory (libsmartio/wire/ring.h).
 *
 * Interrupts without data use the same messages with SIO_DINT_PLAIN among the flags: numbers of
 * their own, no rings, no DINT_RING; DINT_REMOVE is EBUSY while a sender is connected. With
 * SCI_FLAG_SHARED_INT several of them have one number.
 *
 * @adapter SIO_DINT_ALL_ADAPTERS, with data only: the interrupt has its number at each adapter of
 * the host.
 *
 * SIO_DINT_EVENTFD, without data only: descriptor 0 of the request is the eventfd that is
 * triggered, and the reply returns it. Its program alone may connect to it, and has devices send
 * it.
 */
#define SIO_DINT_PLAIN 0x80000000u
#define SIO_DINT_EVENTFD 0x40000000u
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
	sio_le64 key, seal, peer_boot; /* for RESTORE */
	struct sio_wire_claim claim[2];
};
SIO_WIRE_SIZE(struct sio_rep_dint_connect, 112);
struct sio_msg_dint_ring_free {
	struct sio_msg h;
	sio_le32 handle, ring;
};
SIO_WIRE_SIZE(struct sio_msg_dint_ring_free, 24);

/* Devices: the first one with fdid > after; ENODEV: no more. */
struct sio_msg_dev_list {
	struct sio_msg h;
	sio_le32 after, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_dev_list, 24);
#define SIO_WIRE_HOPS 8u
struct sio_rep_dev_list {
	struct sio_msg h;
	sio_le32 fdid, node, adapter, slot; /* adapter: of this host, the way there */
	sio_le32 class_code, vendor, device, subsys_vendor, subsys_device, bdf;
	sio_le32 borrowers, exclusive, quarantined, generation;
	sio_le32 resets,
		state; /* resets: bit SIO_RESET_* of smartio/uapi.h; state: enum sio_dev_state */
	sio_le32 msix_count, msix_bar, msix_offset, iommu; /* iommu: SIO_IOMMU_* */
	sio_le64 serial, bar_size[6], bar_addr[6]; /* addresses: in the physical map of its host */
	char name[64];
	uint8_t hops[SIO_WIRE_HOPS]; /* chips to its host's memory, then to each adapter there */
};
SIO_WIRE_SIZE(struct sio_rep_dev_list, 272);

/*
 * Answered as soon as a device is what @want says: the one called @name, which no host may have
 * announced yet, or the one with id @fdid; "" and 0: none. ETIMEDOUT: it is not in @timeout_ms (~0:
 * there is no such time), and the text says why.
 */
enum {
	SIO_AWAIT_THERE,     /* its lender has announced it */
	SIO_AWAIT_SHARED,    /* and a path leads there, and nobody has it exclusively */
	SIO_AWAIT_EXCLUSIVE, /* and nobody has it at all */
	SIO_AWAITS
};
#define SIO_AWAIT_NAME 64
struct sio_msg_dev_await {
	struct sio_msg h;
	sio_le32 fdid, want, timeout_ms, reserved;
	char name[SIO_AWAIT_NAME];
};
SIO_WIRE_SIZE(struct sio_msg_dev_await, 96);
struct sio_rep_dev_await {
	struct sio_msg h;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_rep_dev_await, 24);

/*
 * Chips between two ends, on the shortest path that is up: a device (fdid), or with fdid 0 the
 * memory of a host. The host of the first end answers. Reply: the adapters passed at both ends;
 * SIO_WIRE_NO_ADAPTER: the path stays in one host. -EHOSTUNREACH, -ENETDOWN: there is none.
 */
#define SIO_WIRE_NO_ADAPTER 0xffffffffu
struct sio_msg_hops {
	struct sio_msg h;
	sio_le32 from_node, from_fdid, to_node, to_fdid; /* nodes: of memory; else 0 */
};
SIO_WIRE_SIZE(struct sio_msg_hops, 32);
struct sio_rep_hops {
	struct sio_msg h;
	sio_le32 hops, adapter, peer_adapter, reserved;
};
SIO_WIRE_SIZE(struct sio_rep_hops, 32);

/* DEV_RESET: struct sio_msg_handle; flags: the exclusive borrower keeps its doorbells. */
#define SIO_RESET_KEEP 1u

/* @over: the adapter of this host by which all traffic goes, from 1 on; 0: any, for each path. */
struct sio_msg_dev_borrow {
	struct sio_msg h;
	sio_le32 fdid, flags, over, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_dev_borrow, 32);
struct sio_rep_dev_borrow {
	struct sio_msg h;
	sio_le32 handle, generation;
	sio_le64 borrower; /* the lender's number for this borrow; never used again */
	sio_le64 seal;	   /* for RESTORE; 0: of this host's device */
	struct sio_rep_dev_list info;
};
SIO_WIRE_SIZE(struct sio_rep_dev_borrow, 312);

struct sio_msg_dev_seg_create {
	struct sio_msg h;
	sio_le32 device, segment_id;
	sio_le64 bytes;
	sio_le32 memtype, hints, flags, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_dev_seg_create, 48);
struct sio_rep_dev_seg_create {
	struct sio_msg h;
	/* For RESTORE: the memory's number; in a real lender's memory the lender's uid of it. */
	sio_le64 key;
};
SIO_WIRE_SIZE(struct sio_rep_dev_seg_create, 24);
struct sio_msg_dev_seg_connect {
	struct sio_msg h;
	sio_le32 device, segment_id, memtype, flags;
};
SIO_WIRE_SIZE(struct sio_msg_dev_seg_connect, 32);

/*
 * Maps [offset, offset+bytes) of a local or connected segment for a device; with SIO_DMA_AT among
 * the flags at address @ioaddr of the device, which a virtual machine's driver knows.
 */
#define SIO_DMA_AT 1u
struct sio_msg_dma_map {
	struct sio_msg h;
	sio_le32 device, segment, remote, adapter; /* remote: 1: segment is of SEG_CONNECT */
	sio_le64 offset, bytes, ioaddr;		   /* ioaddr: 0 without SIO_DMA_AT */
	sio_le32 flags, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_dma_map, 64);
struct sio_rep_dma_map {
	struct sio_msg h;
	sio_le32 map, reserved;
	sio_le64 ioaddr, bytes;
	sio_le64 key; /* for RESTORE */
};
SIO_WIRE_SIZE(struct sio_rep_dma_map, 48);

/*
 * The owner of a device's registers states that the device no longer uses what @borrower had
 * mapped.
 */
#define SIO_BORROWER_ALL (~0ULL)
struct sio_msg_dev_settled {
	struct sio_msg h;
	sio_le32 device, reason;
	sio_le64 borrower;
};
SIO_WIRE_SIZE(struct sio_msg_dev_settled, 32);

/*
 * The owner of a device's registers pins [ioaddr, ioaddr + bytes), because a queue of the device is
 * to use it. One mapping of @borrower's must cover it; until UNHOLD that mapping is not undone.
 * ERANGE: none covers it; EINVAL: no live borrow of the device has number @borrower; EACCES: not
 * the owner of the registers; EBUSY: the device is being reset; EOPNOTSUPP: the mapping is of
 * another device's BAR, whose pages cannot be kept (smartio_device_hold()).
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
	sio_le64 seal; /* for RESTORE */
};
SIO_WIRE_SIZE(struct sio_rep_dev_hold, 32);
/* Ends a pin. EINVAL: no such pin (any more: a reset ends all). */
struct sio_msg_dev_unhold {
	struct sio_msg h;
	sio_le32 device, reserved;
	sio_le64 hold;
};
SIO_WIRE_SIZE(struct sio_msg_dev_unhold, 32);

/*
 * The owner of a device's registers lets borrow @borrower map pages [offset, offset + bytes) of BAR
 * @bar, which only the owner may map, in place of their previous borrow. EINVAL: no live borrow has
 * that number, or it is the owner's own; ERANGE: not whole pages of one run of that kind; EBUSY:
 * another borrow has some of them mapped, or @borrower as part of others; EACCES: not the owner;
 * EOPNOTSUPP: a real host's device.
 */
struct sio_msg_dev_assign {
	struct sio_msg h;
	sio_le32 device, bar;
	sio_le64 borrower, offset, bytes;
};
SIO_WIRE_SIZE(struct sio_msg_dev_assign, 48);

/*
 * DEV_NOTIFY: struct sio_msg_handle with the device; flags: 0. The owner of the device's registers
 * has every other borrower get SIO_DEVICE_EV_NOTICE, once or more. EACCES: not the owner.
 */
/*
 * Makes interrupt vector @vector of a borrowed device trigger the plain interrupt that @link (of
 * DINT_CONNECT) is connected to, until UNVECTOR, the end of the borrow or of the interrupt. EBUSY:
 * the vector is taken; ENOSPC: (ANY) all are; EINVAL: there is no such vector; EOPNOTSUPP: the
 * device has none.
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
 * Device Lending: inserts a device of another host that was borrowed exclusively into this host's
 * PCI tree, where its stock driver binds. @interrupt: handles of plain interrupts to which vectors
 * 0, 1, ... of the device are tied: they belong to its driver from now on. The shadow ends with the
 * session, before everything else that the session has, and outlives smartiod and the connection of
 * the two smartiods as the session's other things do. EACCES: @flags do not allow what it takes;
 * EOPNOTSUPP: the port does not support it, or the device is of this host; EBUSY: the session has a
 * shadow. After a failure nothing that was made for it stays.
 * SHADOW_DEL: struct sio_msg_handle with the device; its driver is unbound. EBADF: it has no
 * shadow.
 */
#define SIO_SHADOW_WINDOW_UNIT (1u << 20)
#define SIO_SHADOW_ALL_MEMORY 1 /* the lender's host may reach all memory of this one */
#define SIO_SHADOW_WITH_PEERS 2 /* it and other shadows with this flag reach each other's BARs */
struct sio_msg_shadow {
	struct sio_msg h;
	sio_le32 device, flags;
	sio_le32 n_interrupts, reserved;
	sio_le32 interrupt[16];
	sio_le64 window; /* bytes that its driver can have mapped at once; 0: ALL_MEMORY */
};
SIO_WIRE_SIZE(struct sio_msg_shadow, 104);
#define SIO_SHADOW_CLAIM_TABLE 6 /* behind those of the BARs, */
#define SIO_SHADOW_CLAIM_DMA 7
#define SIO_SHADOW_CLAIMS 8
struct sio_rep_shadow {
	struct sio_msg h;
	sio_le32 bdf, reserved;	   /* as of the port's ADAPTER */
	sio_le64 memory;	   /* bytes of this host that the device may reach at once */
	sio_le64 key, extra, seal; /* for RESTORE */
	sio_le32 path, flags;	   /* SIO_RESTORE_PEERS */
	struct sio_wire_claim claim[SIO_SHADOW_CLAIMS];
};
SIO_WIRE_SIZE(struct sio_rep_shadow, 256);

/*
 * The lender resets a device of its own that the sender has not borrowed. @force: although programs
 * have borrowed it; their queues are lost then. EBUSY: it is borrowed; EOPNOTSUPP: it has no reset;
 * ENODEV: it is not of this host, or missing.
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
 * 1 the doorbell, 2 the completion event. A program moves the ring's tail without a request; what
 * its transfers may reach has to be attached before, as a whole, until the connection or the
 * segment ends.
 * QUEUE_REMOVE: struct sio_msg_handle; a transfer under way ends with the queue.
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
	sio_le64 channel; /* for RESTORE */
};
SIO_WIRE_SIZE(struct sio_rep_queue_create, 40);
/*
 * The queue is to reach [@offset, @offset + @bytes) of a segment, or of a BAR that the program is
 * connected to; it reaches [@first, @first + @length): all of a segment, of a BAR the memory in one
 * piece around what was asked for. @first is offset 0 of the slot.
 * EPERM: not prepared on the queue's adapter; ENOTCONN: connected through another one; EACCES: no
 * memory of the BAR that this borrow may write; ENOSPC.
 */
struct sio_msg_queue_attach {
	struct sio_msg h;
	sio_le32 queue, segment, remote, reserved; /* remote: 1: segment is of SEG_CONNECT */
	sio_le64 offset, bytes;			   /* of a BAR; else not looked at */
};
SIO_WIRE_SIZE(struct sio_msg_queue_attach, 48);
struct sio_rep_queue_attach {
	struct sio_msg h;
	sio_le32 slot;
	sio_le32 path;	/* of a BAR, as SEG_MAP's; else 0 */
	sio_le64 range; /* for QUEUE_DETACH */
	sio_le64 first, length;
	/* For RESTORE: of another host's segment its window, of a BAR what its piece has. */
	sio_le64 window, seal;
	struct sio_wire_claim claim;
};
SIO_WIRE_SIZE(struct sio_rep_queue_attach, 88);
struct sio_msg_queue_detach {
	struct sio_msg h;
	sio_le32 queue, reserved; /* queue: the one that has it */
	sio_le64 range;
};
SIO_WIRE_SIZE(struct sio_msg_queue_detach, 32);

/* Events. */
/* What happens to a segment's handle at an event. */
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
	SIO_DEVICE_EV_NOTICE,	 /* who holds the registers has something to say: DEV_NOTIFY */
	SIO_DEVICE_EV_RESTARTED, /* between daemons: RESET, and its doorbells lead where they led */
	SIO_DEVICE_EVENTS
};
struct sio_evm_device {
	struct sio_msg h;
	sio_le32 handle, event, generation, reserved;
	sio_le64 borrower;
};
SIO_WIRE_SIZE(struct sio_evm_device, 40);

/* A library answers with EVENTS_TAKEN of the same number, whose reply it does not wait for. */
struct sio_evm_fence {
	struct sio_msg h;
	sio_le64 number;
};
SIO_WIRE_SIZE(struct sio_evm_fence, 24);
/* EINVAL: no such FENCE was sent. */
struct sio_msg_events_taken {
	struct sio_msg h;
	sio_le64 number;
};
SIO_WIRE_SIZE(struct sio_msg_events_taken, 24);

/*
 * EVENTS_AWAIT: which programs of this host have not handled all events that they were sent? First
 * the daemon handles all that its port reported before this request, and, if @node is another
 * host, what that host's daemon has sent it. Then it sends a FENCE to each program that was sent an
 * event after number @since, and replies when all programs have answered theirs, those of earlier
 * requests included, or after @limit_ms. Reply: the number of the last event that was sent to any
 * program, for the next @since; how many programs have not answered; the process ids of the first
 * ones. EINVAL: @limit_ms is too large.
 */
#define SIO_EVENTS_PIDS 64
#define SIO_EVENTS_LIMIT_MS 3600000u
#define SIO_EVENTS_NONE (~0ULL) /* @since: no FENCE is sent */
struct sio_msg_events_await {
	struct sio_msg h;
	sio_le64 since;
	sio_le32 node, limit_ms; /* node 0: none */
};
SIO_WIRE_SIZE(struct sio_msg_events_await, 32);
struct sio_rep_events_await {
	struct sio_msg h;
	sio_le64 events;
	sio_le32 late, reserved;
	sio_le32 pid[SIO_EVENTS_PIDS];
};
SIO_WIRE_SIZE(struct sio_rep_events_await, 288);

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
	SIO_LIST_ACCOUNTS,
	SIO_LIST_PORT = 64,
};
#define SIO_ROW_LIVE 1
#define SIO_ROW_QUARANTINED 2
#define SIO_ROW_AVAILABLE 4
#define SIO_ROW_UP 8
#define SIO_ROW_EXCLUSIVE 16
#define SIO_ROW_REGISTERS 32
#define SIO_ROW_MACHINE 64
struct sio_msg_list {
	struct sio_msg h;
	sio_le32 kind, node;
	sio_le64 after; /* rows with key greater than this */
};
SIO_WIRE_SIZE(struct sio_msg_list, 32);
/*
 * What a row's fields say; what is not named is 0. Flags: LIVE, or QUARANTINED, and what applies.
 *   NODES        key, node: node; name; UP: its daemon answers (always for the asked one); MACHINE:
 *                a virtual machine; bytes: of RAM, of other real hosts 0; refs: devices in the
 *                file; memory: adapters
 *   SEGMENTS     key: uid; owner: the port's; bytes; address: physical, as the port's MEM row; id;
 *                refs: connections, grants and DMA maps; pid; memory: SIO_MEMORY_*; QUARANTINED:
 *                removed, or its program is gone, and others still reach it
 *   CLIENTS      key: the connection; owner: the port's (tools and keepers: 0); id: SIO_CLIENT_*;
 *                refs: objects; pid; bytes: the version of this protocol that it speaks
 *   CONNECTIONS  key; node, id: the segment's; bytes; address: of the window, as the port's MAP row
 *                (0: not mapped, or local); refs: maps; pid; name: "local", "remote", "bar"; LIVE:
 *                not lost
 *   BORROWS      at the lender. key: the borrower; owner: the port's; id: device; node, pid: who;
 *                refs: DMA maps; EXCLUSIVE, REGISTERS
 *   DMA_MAPS     at the lender. key, bytes, address (IOVA), id (device): as the port's DMAMAP row;
 *                owner: the borrow's; node: where the memory is; refs: holds by the device's queues
 *   DINTS        key: uid; owner: the port's; id: number; refs: senders, whose rings are memory
 *                beside the segments (of plain interrupts 0); pid; name: adapter, "plain"
 *   ACCOUNTS     of a node, or a program of the host (pid); id: enum sio_quota of core/policy.h;
 *                name: its name; owner: used; bytes: the limit; AVAILABLE: there is one
 *   PORT + kind  key, owner, bytes (length), address, id (device), refs, node: as struct
 *                sio_list_entry (a WATCH's address: SIO_WATCH_*; a VECTOR's bytes: its number)
 */
struct sio_wire_row {
	sio_le64 key, owner, bytes, address;
	sio_le32 id, node, refs, flags, pid, memory;
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
 * STATS: kind 0 the daemon's own counters, 1 the port's of host, 2 adapter id, 3 device fdid, 4 the
 * DMA engine of adapter id, 5 chassis id of the host, 6 link id between two switches.
 * Among the daemon's: client_version, the greatest version of this protocol that it speaks;
 * refused_versions, 1 if it refused a program for its version in the last SIO_REFUSED_RECENT_S
 * seconds: then refused_version is the greatest that this program speaks, and refused_pid its
 * process id.
 */
#define SIO_REFUSED_RECENT_S 600
struct sio_msg_stats {
	struct sio_msg h;
	sio_le32 kind, id;
	sio_le64 node;
};
SIO_WIRE_SIZE(struct sio_msg_stats, 32);
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

/*
 * RELOAD (root, or the user as whom the daemon runs): reads the cluster's file again. If no
 * difference from the file in force needs a restart (RELOAD_RESTART), the new one is in force from
 * now on; otherwise nothing changes. CHECK: nothing changes in any case. NEXT: the file that is to
 * replace it, whose name has ".new" appended. ENFORCE: ends what other hosts have, and what
 * programs have borrowed, that the new file does not allow any more. Reply: how many lines there
 * are of each kind (perhaps more than @lines, which can be fetched); whether the file is in force
 * now. -EPERM; -EINVAL, -ENOENT, ...: the file cannot be read, or is wrong in the line that the
 * text names; -EOPNOTSUPP: there is no file.
 */
#define SIO_RELOAD_CHECK 1
#define SIO_RELOAD_NEXT 2
#define SIO_RELOAD_ENFORCE 4
enum {
	SIO_RELOAD_NOW,	    /* a change that is in force at once */
	SIO_RELOAD_RESTART, /* one that is not possible while the cluster runs */
	SIO_RELOAD_STAYS,   /* somebody has what he may have no more */
	SIO_RELOAD_ENDS,    /* and it ends */
	SIO_RELOAD_KINDS,
};
struct sio_msg_reload {
	struct sio_msg h;
	sio_le32 flags, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_reload, 24);
struct sio_rep_reload {
	struct sio_msg h;
	sio_le32 lines, applied, count[SIO_RELOAD_KINDS];
};
SIO_WIRE_SIZE(struct sio_rep_reload, 40);
/*
 * RELOAD_LINE: line @index, from 0, of this client's last RELOAD, if no other client has sent one
 * since.
 */
#define SIO_RELOAD_TEXT 232
struct sio_msg_reload_line {
	struct sio_msg h;
	sio_le32 index, reserved;
};
SIO_WIRE_SIZE(struct sio_msg_reload_line, 24);
struct sio_rep_reload_line {
	struct sio_msg h;
	sio_le32 kind, reserved; /* kind: SIO_RELOAD_* */
	char text[SIO_RELOAD_TEXT];
};
SIO_WIRE_SIZE(struct sio_rep_reload_line, 256);

/*
 * FILE: from byte @offset on, the cluster's file that is in force at @node (0: at this daemon);
 * another daemon is asked over the daemons' connection. @sum: if it changes from one reply to the
 * next, so did the file. -ENOENT: there is none.
 */
#define SIO_FILE_BYTES 4096
struct sio_msg_file {
	struct sio_msg h;
	sio_le32 node, offset;
};
SIO_WIRE_SIZE(struct sio_msg_file, 24);
struct sio_rep_file {
	struct sio_msg h;
	sio_le32 total, count;
	sio_le64 sum;
	uint8_t bytes[SIO_FILE_BYTES];
};
SIO_WIRE_SIZE(struct sio_rep_file, 4128);

#endif
