/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartiod <-> smartiod of another host. Numbers, never descriptors. A request SIO_PEER_x is struct
 * sio_peer_x with an id; its reply has the type SIO_PEER_x | SIO_PEER_REPLY, the same id, and is
 * struct sio_prep_x, or struct sio_msg where none is declared, or struct sio_msg_error. A
 * notification (id 0) has no reply. Replies that bring something to release have all fields that
 * the release needs, because the operation that asked may have stopped waiting.
 *
 * First message in both directions: HELLO. When the connection ends, each side takes the other's
 * host for down: nothing that was requested, granted or borrowed before is known afterwards, except
 * memory that the other may still reach (GRANT_QUERY). Between real hosts, whose ports keep what
 * was shared, it is known afterwards as well: behind HELLO each side sends what it has of the other
 * (RESUME_*), and behind RESUME_SENT the rest ends.
 */
#ifndef WIRE_PEER_H
#define WIRE_PEER_H

#include "wire/client.h"
#include "wire/wire.h"

#define SIO_PEER_VERSION 24
#define SIO_PEER_REPLY 0x8000u
#define SIO_TOKEN_BYTES 32

/* The reply to a notification: there is none, not even the header. */
struct sio_no_reply {
	struct sio_msg h[0];
};

/*
 * All messages, as the requests of wire/client.h: X(NAME, name, number, message, zero, reply,
 * reply_zero). RESUME_*: what the sender has of the receiver, from before this connection.
 */
/* clang-format off */
#define SIO_PEER_DAEMON(X) \
	X(HELLO, peer_hello, 512, sio_peer_hello, h, sio_no_reply, h) \
	X(PING, peer_ping, 513, sio_peer_ping, h, sio_msg, size) \
	X(STATS, peer_stats, 560, sio_peer_stats, h, sio_rep_stats, reserved) \
	X(ADAPTER, peer_adapter, 562, sio_peer_adapter, reserved, sio_rep_adapter, h) \
	X(LIST, peer_list, 563, sio_peer_list, reserved, sio_rep_list, h) \
	X(FILE, peer_file, 561, sio_msg_file, h, sio_rep_file, h) \
	X(RESUME_SENT, peer_resume_sent, 617, sio_peer_resume_end, h, sio_no_reply, h) \
	X(RESUME_DONE, peer_resume_done, 618, sio_peer_resume_end, h, sio_no_reply, h)
#define SIO_PEER_SEGMENT(X) \
	X(SEG_LOOKUP, peer_seg_lookup, 528, sio_peer_seg_lookup, reserved, \
	  sio_prep_seg_lookup, reserved) \
	X(SEG_RELEASE, peer_seg_release, 529, sio_peer_seg_release, reserved, sio_no_reply, h) \
	X(SEG_GRANT, peer_seg_grant, 530, sio_peer_seg_grant, reserved, sio_prep_seg_grant, h) \
	X(GRANT_RELEASE, peer_grant_release, 531, sio_peer_grant_release, h, sio_no_reply, h) \
	X(SEG_EVENT, peer_seg_event, 532, sio_peer_seg_event, h, sio_no_reply, h) \
	X(GRANT_QUERY, peer_grant_query, 533, sio_peer_grant_query, h, sio_no_reply, h) \
	X(RESUME_GRANT, peer_resume_grant, 608, sio_peer_resume_grant, h, sio_no_reply, h) \
	X(RESUME_HELD, peer_resume_held, 609, sio_peer_resume_held, h, sio_no_reply, h) \
	X(RESUME_SEG, peer_resume_seg, 610, sio_peer_resume_seg, reserved, sio_no_reply, h)
#define SIO_PEER_INTERRUPT(X) \
	X(DINT_LOOKUP, peer_dint_lookup, 544, sio_peer_dint_lookup, reserved, \
	  sio_prep_dint_lookup, h) \
	X(DINT_RELEASE, peer_dint_release, 545, sio_peer_dint_release, h, sio_no_reply, h) \
	X(DINT_EVENT, peer_dint_event, 546, sio_peer_dint_event, h, sio_no_reply, h) \
	X(RESUME_RING, peer_resume_ring, 619, sio_peer_resume_ring, h, sio_no_reply, h)
#define SIO_PEER_DEVICE(X) \
	X(DEVICES, peer_devices, 576, sio_peer_devices, reserved, sio_no_reply, h) \
	X(HOPS, peer_hops, 598, sio_msg_hops, h, sio_rep_hops, reserved)
#define SIO_PEER_BORROWER(X) \
	X(DEVICE_EVENT, peer_device_event, 589, sio_peer_device_event, reserved, \
	  sio_no_reply, h) \
	X(BORROW_LOST, peer_borrow_lost, 595, sio_peer_borrower, reserved, sio_no_reply, h) \
	X(VECTOR_GONE, peer_vector_gone, 621, sio_peer_resume_vector, h, sio_no_reply, h) \
	X(DEV_SEG_GONE, peer_dev_seg_gone, 623, sio_peer_dev_seg_end, reserved, sio_no_reply, h) \
	X(HOLD_GONE, peer_hold_gone, 624, sio_peer_hold_release, h, sio_no_reply, h)
#define SIO_PEER_LENDER(X) \
	X(BORROW, lend_borrow, 577, sio_peer_borrow, reserved, sio_prep_borrow, h) \
	X(RETURN, lend_return, 578, sio_peer_borrower, reserved, sio_msg, size) \
	X(RELEASE_EXCLUSIVE, lend_release_exclusive, 579, sio_peer_borrower, reserved, \
	  sio_msg, size) \
	X(BORROW_END, lend_borrow_end, 580, sio_peer_borrower, reserved, sio_no_reply, h) \
	X(DEV_SEG_CREATE, lend_dev_seg_create, 581, sio_peer_dev_seg_create, h, \
	  sio_prep_dev_seg, reserved) \
	X(DEV_SEG_LOOKUP, lend_dev_seg_lookup, 582, sio_peer_dev_seg_lookup, reserved, \
	  sio_prep_dev_seg, reserved) \
	X(BAR_GRANT, lend_bar_grant, 583, sio_peer_bar_grant, h, sio_prep_bar_grant, h) \
	X(BAR_RELEASE, lend_bar_release, 584, sio_peer_bar_release, reserved, sio_no_reply, h) \
	X(DMA_MAP, lend_dma_map, 585, sio_peer_dma_map, h, sio_prep_dma_map, reserved) \
	X(DMA_UNMAP, lend_dma_unmap, 586, sio_peer_dma_unmap, reserved, sio_msg, size) \
	X(SETTLED, lend_settled, 587, sio_peer_settled, h, sio_msg, size) \
	X(RESET, lend_reset, 588, sio_peer_borrower, reserved, sio_msg, size) \
	X(DEV_SEG_END, lend_dev_seg_end, 590, sio_peer_dev_seg_end, reserved, sio_no_reply, h) \
	X(HOLD, lend_hold, 591, sio_peer_hold, reserved, sio_prep_hold, h) \
	X(UNHOLD, lend_unhold, 592, sio_peer_unhold, reserved, sio_prep_unhold, reserved) \
	X(VECTOR, lend_vector, 593, sio_peer_vector, reserved, sio_prep_vector, h) \
	X(UNVECTOR, lend_unvector, 594, sio_peer_vector, reserved, sio_msg, size) \
	X(HOLD_RELEASE, peer_hold_release, 596, sio_peer_hold_release, h, sio_no_reply, h) \
	X(BAR_CUT, peer_bar_cut, 597, sio_peer_bar_cut, reserved, sio_no_reply, h) \
	X(CONFIG, lend_config, 599, sio_peer_config, h, sio_prep_config, h) \
	X(GROUP_JOIN, lend_group_join, 600, sio_peer_group_join, reserved, \
	  sio_prep_group_join, reserved) \
	X(GROUP_LEAVE, lend_group_leave, 601, sio_peer_group_leave, reserved, sio_msg, size) \
	X(ASSIGN, lend_assign, 602, sio_peer_assign, h, sio_msg, size) \
	X(NOTIFY, lend_notify, 603, sio_peer_borrower, reserved, sio_msg, size) \
	X(RESUME_BORROW, resume_borrow, 611, sio_peer_resume_borrow, h, sio_no_reply, h) \
	X(RESUME_VIEW, resume_view, 612, sio_peer_resume_view, h, sio_no_reply, h) \
	X(RESUME_DMA, resume_dma, 613, sio_peer_resume_dma, h, sio_no_reply, h) \
	X(RESUME_HOLD, resume_hold, 614, sio_peer_resume_hold, reserved, sio_no_reply, h) \
	X(RESUME_PLACED, resume_placed, 615, sio_peer_resume_placed, reserved, sio_no_reply, h) \
	X(RESUME_DEV_SEG, resume_dev_seg, 616, sio_peer_resume_dev_seg, h, sio_no_reply, h) \
	X(RESUME_MADE, resume_made, 622, sio_peer_resume_made, h, sio_no_reply, h) \
	X(RESUME_VECTOR, resume_vector, 620, sio_peer_resume_vector, h, sio_no_reply, h)
#define SIO_PEER_MESSAGES(X) \
	SIO_PEER_DAEMON(X)    \
	SIO_PEER_SEGMENT(X)   \
	SIO_PEER_INTERRUPT(X) \
	SIO_PEER_DEVICE(X)    \
	SIO_PEER_BORROWER(X)  \
	SIO_PEER_LENDER(X)
/* clang-format on */

#define SIO_PEER_NUMBER(NAME, name, number, ...) SIO_PEER_##NAME = number,
enum { SIO_PEER_MESSAGES(SIO_PEER_NUMBER) };

/*
 * Notification: version and boot of the sender; a receiver that does not support the version closes
 * the connection.
 */
struct sio_peer_hello {
	struct sio_msg h;
	sio_le32 version_min, version_max, node, reserved;
	sio_le64 boot_generation;
	uint8_t boot_id[16];
	uint8_t hops[SIO_WIRE_HOPS]; /* chips from its memory to each of its adapters; [0]: 0 */
};
SIO_WIRE_SIZE(struct sio_peer_hello, 64);

/* "Do you answer?" Reply: bare. */
struct sio_peer_ping {
	struct sio_msg h;
};

/*
 * Connects to a segment that is available at @adapter (the receiver's, where the path arrives), or
 * to a device segment by its uid. @connection: the sender's number. The reply holds a reference
 * until SEG_RELEASE with the same connection.
 */
struct sio_peer_seg_lookup {
	struct sio_msg h;
	sio_le64 connection, uid; /* uid 0: by segment_id */
	sio_le32 segment_id, adapter;
	sio_le32 fdid, reserved; /* fdid: whose segment the uid must be; 0 without one */
};
SIO_WIRE_SIZE(struct sio_peer_seg_lookup, 48);
struct sio_prep_seg_lookup {
	struct sio_msg h;
	sio_le64 connection, uid, bytes;
	sio_le32 segment_id, reserved;
};
SIO_WIRE_SIZE(struct sio_prep_seg_lookup, 48);

/* Notification: the connection is gone. @reason: SCI_CB_DISCONNECT or SCI_CB_LOST. */
struct sio_peer_seg_release {
	struct sio_msg h;
	sio_le64 uid, connection;
	sio_le32 reason, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_seg_release, 40);

/*
 * Lets the sender's host reach [offset, offset + bytes) of a segment. The sender is the importer,
 * and owns the grant until its GRANT_RELEASE. The right to ask is a connection: @ref_node is the
 * host whose program has it, and @ref_connection its number; a lender maps its borrower's memory
 * with ref_node = borrower, and ref_connection 0 where the segment is the borrower's own.
 */
enum { SIO_GRANT_CPU = 1, SIO_GRANT_DEVICE };
struct sio_peer_seg_grant {
	struct sio_msg h;
	sio_le64 uid, ref_connection;
	sio_le64 offset, bytes;
	sio_le32 ref_node, purpose;
	sio_le32 adapter, peer_adapter; /* the exporter's; the importer's */
	sio_le32 access, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_seg_grant, 72);
/* What the importer needs for its MAP. */
struct sio_wire_grant {
	sio_le64 grant, bus_addr, length, generation;
	uint8_t token[SIO_TOKEN_BYTES];
};
SIO_WIRE_SIZE(struct sio_wire_grant, 64);
struct sio_prep_seg_grant {
	struct sio_msg h;
	struct sio_wire_grant g;
};
SIO_WIRE_SIZE(struct sio_prep_seg_grant, 80);

/*
 * Notification: the importer no longer maps the grant. Any grant to the sender's node, of a BAR or
 * a ring, too.
 */
struct sio_peer_grant_release {
	struct sio_msg h;
	sio_le64 grant;
};
SIO_WIRE_SIZE(struct sio_peer_grant_release, 24);

/*
 * Notification to an importer, at the start of a connection: this host made the grant before, and
 * will not end it by itself. The importer sends GRANT_RELEASE when nothing of its own can reach the
 * range any more, at once if it does not know the grant.
 */
struct sio_peer_grant_query {
	struct sio_msg h;
	sio_le64 grant;
};
SIO_WIRE_SIZE(struct sio_peer_grant_query, 24);

/* Notification to an importer. SIO_LOSS_LOST: the exporter has already dropped the reference. */
struct sio_peer_seg_event {
	struct sio_msg h;
	sio_le64 connection;
	sio_le32 reason, loss; /* SCI_CB_*; enum sio_segment_loss */
};
SIO_WIRE_SIZE(struct sio_peer_seg_event, 32);

/*
 * Connects to data interrupt @number at @adapter (the receiver's). The reply's ring is for the
 * sender's link alone, until DINT_RELEASE.
 */
struct sio_peer_dint_lookup {
	struct sio_msg h;
	sio_le64 link;
	sio_le32 number, adapter, peer_adapter; /* peer_adapter: the asker's */
	/* SIO_DINT_PLAIN: the reply has no memory; besides, SIO_PEER_DINT_DEVICE: a device sends */
	sio_le32 flags;
	sio_le32 borrower, reserved; /* DEVICE: the node of the program that has it so; else 0 */
};
#define SIO_PEER_DINT_DEVICE 0x10000000u
SIO_WIRE_SIZE(struct sio_peer_dint_lookup, 48);
struct sio_prep_dint_lookup {
	struct sio_msg h;
	sio_le64 link, ring; /* ring: the receiver's number */
	struct sio_wire_grant memory, trigger;
};
SIO_WIRE_SIZE(struct sio_prep_dint_lookup, 160);
/*
 * Notification: the sender unmapped ring and trigger. @ring 0: a device's, whose daemon was started
 * again, and knows its own number, @link, alone.
 */
struct sio_peer_dint_release {
	struct sio_msg h;
	sio_le64 ring, link;
};
SIO_WIRE_SIZE(struct sio_peer_dint_release, 32);
/* Notification to a sender: the interrupt is gone. Unmap, then DINT_RELEASE. */
struct sio_peer_dint_event {
	struct sio_msg h;
	sio_le64 link;
};
SIO_WIRE_SIZE(struct sio_peer_dint_event, 24);

/*
 * What a program of the sender's host asks about the receiver, in its own words: client.h has
 * what they mean, and the replies.
 */
struct sio_peer_stats {
	struct sio_msg h;
	sio_le32 kind, id;
};
SIO_WIRE_SIZE(struct sio_peer_stats, 24);
struct sio_peer_adapter {
	struct sio_msg h;
	sio_le32 adapter, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_adapter, 24);
struct sio_peer_list {
	struct sio_msg h;
	sio_le32 kind, reserved;
	sio_le64 after;
};
SIO_WIRE_SIZE(struct sio_peer_list, 32);

/*
 * ---- devices ---- The lender is the receiver, except for the notifications DEVICES and
 * DEVICE_EVENT.
 * @borrower: the lender's number of the borrow, which must be one of the sender's node.
 */

/* Notification: the present state of one device of the sender. */
struct sio_peer_devices {
	struct sio_msg h;
	struct sio_rep_dev_list info; /* its header and adapter mean nothing */
	sio_le32 present, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_devices, 296);

/* @session: the borrower's client, for listings. */
struct sio_peer_borrow {
	struct sio_msg h;
	sio_le64 session;
	sio_le32 fdid, exclusive, pid, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_borrow, 40);
struct sio_prep_borrow {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, generation;
	struct sio_rep_dev_list info;
	sio_le64 ticket; /* who shows it may ask for BAR pages for the borrower's other devices */
};
SIO_WIRE_SIZE(struct sio_prep_borrow, 312);

/*
 * RETURN, RELEASE_EXCLUSIVE, RESET, NOTIFY; and BORROW_END (notification: the borrower died),
 * BORROW_LOST (notification, of the lender: no path was left between the two hosts, so it has ended
 * the borrow).
 * @gone, of BORROW_END: 1: the program has ended, and what it had mapped is unmapped; else 0.
 * @keep, of RESET: 1: doorbell mappings stay, for a borrow that is exclusive; else 0.
 */
struct sio_peer_borrower {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, gone, keep, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_borrower, 40);

/*
 * A device segment of @memtype: private to the borrow, or shared by all borrowers of the device.
 * @uid 0: the lender's host has the memory; else the sender's, as this segment.
 */
struct sio_peer_dev_seg_create {
	struct sio_msg h;
	sio_le64 borrower, bytes, uid;
	sio_le32 fdid, segment_id, memtype, flags; /* flags: SIO_PEER_LASTING or 0 */
};
SIO_WIRE_SIZE(struct sio_peer_dev_seg_create, 56);
#define SIO_PEER_LASTING 1u /* it outlives its maker, while the device may reach what that mapped */
struct sio_peer_dev_seg_lookup {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, segment_id, memtype, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_dev_seg_lookup, 40);
struct sio_prep_dev_seg { /* of CREATE and LOOKUP: where it is */
	struct sio_msg h;
	sio_le64 borrower, uid, bytes;
	sio_le32 fdid, node, segment_id, reserved;
};
SIO_WIRE_SIZE(struct sio_prep_dev_seg, 56);
/*
 * Notification to the lender: a device segment in the sender's memory is gone. DEV_SEG_GONE, of the
 * lender to whose borrow made it: the same of one in the lender's memory.
 */
struct sio_peer_dev_seg_end {
	struct sio_msg h;
	sio_le64 uid;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_dev_seg_end, 32);

/*
 * The parts of [offset, offset + bytes) of a BAR that the borrower may access. @access READ:
 * nothing writable.
 * WHOLE, of an exclusive borrower: for a kernel's driver, all up to the interrupt table, in one
 * piece, which a reset leaves in place, or none. Then also @bar SIO_PEER_BAR_TABLE: a page of
 * zeroed memory, which stands for the interrupt table that no borrower gets.
 * MEMORY: memory alone, for a DMA engine, all that is in one run with some of what was asked for;
 * registers and doorbells are in no piece, and are not taken.
 * Each piece is a view and, at the lender, a grant of it, until BAR_RELEASE or the borrow's end.
 *
 * @borrower_node not 0: for a device of the sender, which a program of that node has borrowed as
 * well as this one; @ticket is that of the borrow. Then everything is requested, in one piece, for
 * reading and writing; and where BAR_CUT arrives before BAR_RELEASE the piece leads nowhere any
 * more.
 */
#define SIO_PEER_BAR_WHOLE 0x100 /* beside SIO_ACCESS_* */
#define SIO_PEER_BAR_MEMORY 0x200
#define SIO_PEER_BAR_TABLE 6u /* behind those that a device has */
/* In a piece's flags, beside SIO_BAR_*: behind BAR_CUT an IOMMU refuses what still comes. */
#define SIO_PEER_BAR_HELD 0x10000
struct sio_peer_bar_grant {
	struct sio_msg h;
	sio_le64 borrower, offset, bytes;
	sio_le32 fdid, bar, access, adapter, peer_adapter; /* peer_adapter: the asker's */
	sio_le32 borrower_node;
	sio_le64 ticket;
};
SIO_WIRE_SIZE(struct sio_peer_bar_grant, 72);
struct sio_wire_bar_piece {
	sio_le64 offset, bytes;	  /* in the BAR */
	sio_le64 view, fd_offset; /* fd_offset: on the lender's own host; */
	sio_le64 view_offset;	  /* so, of the piece in its view */
	sio_le32 access, flags;
	struct sio_wire_grant g;
};
SIO_WIRE_SIZE(struct sio_wire_bar_piece, 112);
struct sio_prep_bar_grant {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, n_pieces;
	struct sio_wire_bar_piece piece[SIO_MAP_PIECES];
};
SIO_WIRE_SIZE(struct sio_prep_bar_grant, 1824);
/*
 * Makes [offset, offset + bytes) of BAR @bar, memory that this borrow may write, a member of
 * multicast group @group, until GROUP_LEAVE, BAR_RELEASE with @view and (as its grant) @member, or
 * the borrow's end.
 */
struct sio_peer_group_join {
	struct sio_msg h;
	sio_le64 borrower, offset, bytes;
	sio_le32 fdid, bar, group, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_group_join, 56);
struct sio_prep_group_join {
	struct sio_msg h;
	sio_le64 borrower, view, member;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_prep_group_join, 48);
/* Reply: bare, when nothing is written there any more. */
struct sio_peer_group_leave {
	struct sio_msg h;
	sio_le64 borrower, view, member;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_group_leave, 48);
/* Notification: the node that requested a piece, or a member, has unmapped it. */
struct sio_peer_bar_release {
	struct sio_msg h;
	sio_le64 borrower, view, grant;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_bar_release, 48);
/*
 * Notification about BAR pages that a device of the receiver may reach: they do not belong to the
 * borrower any more. @held 1: an IOMMU of the sender refuses later accesses, and keeps the address.
 */
struct sio_peer_bar_cut {
	struct sio_msg h;
	sio_le64 grant;
	sio_le32 held, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_bar_cut, 32);

/*
 * Maps [offset, offset + bytes) of segment @uid of node @exporter for the device. The right to it:
 * @connection, the borrower's, or 0: the exporter is the borrower's host. @adapter: the exporter's,
 * or SIO_PEER_ANY_ADAPTER. Of a multicast group: @exporter SIO_PEER_GROUP, @uid the group's number,
 * @connection 0, @adapter the borrower's. Of BAR @bar of device @target: @exporter its lender, @uid
 * the borrow of it, @connection that borrow's ticket. @target 0: not a BAR.
 * With SIO_PEER_BAR_WHOLE in @bar both are shadows of the borrower's: as in BAR_GRANT.
 * @at 1: at @ioaddr as the device sees it, for a borrow that is exclusive; 0: anywhere.
 */
#define SIO_PEER_GROUP 0xffffffffu
#define SIO_PEER_ANY_ADAPTER 0xffffffffu
struct sio_peer_dma_map {
	struct sio_msg h;
	sio_le64 borrower, uid, connection, offset, bytes, ioaddr;
	sio_le32 fdid, exporter, adapter, target, bar, at;
};
SIO_WIRE_SIZE(struct sio_peer_dma_map, 88);
struct sio_prep_dma_map {
	struct sio_msg h;
	sio_le64 borrower, map, ioaddr, bytes;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_prep_dma_map, 56);
struct sio_peer_dma_unmap {
	struct sio_msg h;
	sio_le64 borrower, map;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_dma_unmap, 40);

/* @settled: a borrow, or SIO_BORROWER_ALL. */
struct sio_peer_settled {
	struct sio_msg h;
	sio_le64 borrower, settled;
	sio_le32 fdid, reason;
};
SIO_WIRE_SIZE(struct sio_peer_settled, 40);

/*
 * Pins the mapping of borrow @of that covers [ioaddr, ioaddr + bytes), because a queue is to use
 * it.
 */
struct sio_peer_hold {
	struct sio_msg h;
	sio_le64 borrower, of, ioaddr, bytes;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_hold, 56);
struct sio_prep_hold {
	struct sio_msg h;
	sio_le64 borrower, hold;
	sio_le32 fdid, generation; /* of the device when it was held */
};
SIO_WIRE_SIZE(struct sio_prep_hold, 40);
struct sio_peer_unhold {
	struct sio_msg h;
	sio_le64 borrower, hold;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_unhold, 40);
struct sio_prep_unhold { /* @of: the borrow that had taken the pin, of @node */
	struct sio_msg h;
	sio_le64 of;
	sio_le32 node, reserved;
};
SIO_WIRE_SIZE(struct sio_prep_unhold, 32);
/* DEV_ASSIGN: borrow @of may map pages of a BAR that belong to the owner of the registers. */
struct sio_peer_assign {
	struct sio_msg h;
	sio_le64 borrower, of, offset, bytes;
	sio_le32 fdid, bar;
};
SIO_WIRE_SIZE(struct sio_peer_assign, 56);
/*
 * Notification: the operation of @borrower that sent HOLD does not wait for the reply any more, and
 * no queue was made. HOLD_GONE, of the lender: another owner of the registers has released the pin.
 */
struct sio_peer_hold_release {
	struct sio_msg h;
	sio_le64 hold, borrower;
	sio_le32 fdid, generation;
};
SIO_WIRE_SIZE(struct sio_peer_hold_release, 40);

/*
 * Makes vector @vector of the device trigger plain interrupt @number at @adapter of node @node (the
 * receiver's numbers of adapters). UNVECTOR: the last three are 0.
 */
struct sio_peer_vector {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, vector;
	sio_le32 node, adapter, number, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_vector, 48);
struct sio_prep_vector {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, vector;
};
SIO_WIRE_SIZE(struct sio_prep_vector, 32);

/*
 * A register of configuration space (SIO_SHADOW_* of the port), for the driver of a shadow, sent by
 * the exclusive borrower: bits @mask become those of @value (0: none), then the register is read.
 * EACCES: the lender does not allow all of these bits to be written.
 */
struct sio_peer_config {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, reg, value, mask;
};
SIO_WIRE_SIZE(struct sio_peer_config, 40);
struct sio_prep_config {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, value;
};
SIO_WIRE_SIZE(struct sio_prep_config, 32);

/* ---- after a connection that ended ---- */

/* The receiver answers what it does not know by GRANT_RELEASE, BORROW_LOST, SEG_EVENT. */

/*
 * The sender has granted this to the receiver: [bus_addr, ...) at @adapter, the sender's, for
 * @peer_adapter. A receiver that was restarted recognises its windows by the address. It answers
 * GRANT_RELEASE at once if it has none, else HELD. @empty 1: the memory was freed when the
 * receiver was lost, and nothing lies at the address, which is kept until the release.
 * @fdid not 0: it is of @view, pages of a BAR of that device, which @borrower has; a device of the
 * receiver's, if it has the grant for one, has it until BAR_CUT or BAR_RELEASE.
 */
struct sio_peer_resume_grant {
	struct sio_msg h;
	sio_le64 grant, bus_addr, borrower, view;
	sio_le32 adapter, peer_adapter;
	sio_le32 empty, fdid;
};
SIO_WIRE_SIZE(struct sio_peer_resume_grant, 64);
/* @purpose: SIO_GRANT_*; @own 1: for a device that the receiver's program borrows of the sender. */
struct sio_peer_resume_held {
	struct sio_msg h;
	sio_le64 grant;
	sio_le32 purpose, own;
};
SIO_WIRE_SIZE(struct sio_peer_resume_held, 32);

/* A connection, as of SEG_LOOKUP. */
struct sio_peer_resume_seg {
	struct sio_msg h;
	sio_le64 connection, uid;
	sio_le32 adapter, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_resume_seg, 40);

/*
 * A connection to an interrupt, as the reply to DINT_LOOKUP had it; @memory, @trigger: the
 * grants. A receiver that was started again has the interrupt from its program, and finds it by
 * the grant. @ring 0: as in DINT_RELEASE.
 */
struct sio_peer_resume_ring {
	struct sio_msg h;
	sio_le64 link, ring, memory, trigger;
};
SIO_WIRE_SIZE(struct sio_peer_resume_ring, 48);

/*
 * A borrow. @generation: the device generation that its program was last notified of. @ticket: the
 * one that came with it, for a lender that has started since and knows none; whoever lies about it
 * only keeps its own devices from each other. @flags: it is not exclusive any more; it has a shadow
 * with SIO_SHADOW_WITH_PEERS, for which BARs of other shadows are mapped: these are not named.
 */
#define SIO_RESUME_RELEASED 1
#define SIO_RESUME_PEERS 2
struct sio_peer_resume_borrow {
	struct sio_msg h;
	sio_le64 borrower, session, ticket;
	sio_le32 fdid, pid, generation, flags;
};
SIO_WIRE_SIZE(struct sio_peer_resume_borrow, 56);
/*
 * A piece of a BAR, as of BAR_GRANT. @member 1: it is one of multicast group @group, as of
 * GROUP_JOIN, with its number as @grant; it has no path.
 */
struct sio_peer_resume_view {
	struct sio_msg h;
	sio_le64 borrower, view, grant;
	sio_le32 fdid, bar, adapter, peer_adapter;
	sio_le32 member, group;
};
SIO_WIRE_SIZE(struct sio_peer_resume_view, 64);
/* @bar 1: what is mapped is a BAR of another device, and not memory. */
struct sio_peer_resume_dma {
	struct sio_msg h;
	sio_le64 borrower, map;
	sio_le32 fdid, bar;
};
SIO_WIRE_SIZE(struct sio_peer_resume_dma, 40);
/*
 * Pins (HOLD) of one mapping by @borrower, which may have ended; @generation: the device's, to
 * which they belong. Those of a borrow that was named, and that are not, its program has not heard
 * of.
 */
struct sio_peer_resume_hold {
	struct sio_msg h;
	sio_le64 borrower, hold;
	sio_le32 fdid, count, generation, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_resume_hold, 48);
/* A device segment in the sender's memory. */
struct sio_peer_resume_placed {
	struct sio_msg h;
	sio_le64 borrower, bytes, uid;
	sio_le32 fdid, segment_id, memtype, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_resume_placed, 56);
/* A vector of the borrow's, as of VECTOR. VECTOR_GONE: the interrupt that it triggered is gone. */
struct sio_peer_resume_vector {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, vector;
};
SIO_WIRE_SIZE(struct sio_peer_resume_vector, 32);
/*
 * A device segment in the lender's memory that the borrow has made; @connected 1: the sender's
 * programs have been connected to it, and it ends with the last connection. A lender that has none
 * answers DEV_SEG_GONE; what it has beyond these its borrower has not heard of.
 */
struct sio_peer_resume_made {
	struct sio_msg h;
	sio_le64 borrower, uid;
	sio_le32 fdid, connected;
};
SIO_WIRE_SIZE(struct sio_peer_resume_made, 40);
/*
 * A connection to a device segment in the lender's memory; @adapter: the lender's. @borrower: by
 * which it was made; that may have been returned since.
 */
struct sio_peer_resume_dev_seg {
	struct sio_msg h;
	sio_le64 borrower, uid, connection;
	sio_le32 fdid, adapter;
};
SIO_WIRE_SIZE(struct sio_peer_resume_dev_seg, 48);
/*
 * SENT: that is all. DONE, when the other side's SENT has arrived: all its requests are answered.
 */
struct sio_peer_resume_end {
	struct sio_msg h;
};

/*
 * Notification of a borrower's host. @borrower: the program to notify; @gone: the one that has
 * ended; @event: SIO_DEVICE_EV_*.
 */
struct sio_peer_device_event {
	struct sio_msg h;
	sio_le64 borrower, gone;
	sio_le32 fdid, event, generation, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_device_event, 48);

#endif
