/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartiod <-> smartiod of another host. Numbers, never descriptors. A request SIO_PEER_x is struct
 * sio_peer_x with an id; its reply has the type | SIO_PEER_REPLY, the same id, and is struct
 * sio_prep_x, or struct sio_msg where none is declared, or struct sio_msg_error. News (id 0) has no
 * reply. Replies that bring something to release say all that the release needs, for who asked may
 * have stopped waiting.
 *
 * First message in both directions: HELLO. When the connection ends, each side takes the other's
 * host for down: nothing that was asked, granted or borrowed before is known afterwards, but for
 * memory that the other may still reach (GRANT_QUERY).
 */
#ifndef WIRE_PEER_H
#define WIRE_PEER_H

#include "wire/client.h"
#include "wire/wire.h"

#define SIO_PEER_VERSION 8
#define SIO_PEER_REPLY 0x8000u
#define SIO_TOKEN_BYTES 32

enum {
	SIO_PEER_HELLO = 512,
	SIO_PEER_PING,
	SIO_PEER_SEG_LOOKUP = 528,
	SIO_PEER_SEG_RELEASE, /* news */
	SIO_PEER_SEG_GRANT,
	SIO_PEER_GRANT_RELEASE, /* news */
	SIO_PEER_SEG_EVENT,	/* news */
	SIO_PEER_GRANT_QUERY,	/* news */
	SIO_PEER_DINT_LOOKUP = 544,
	SIO_PEER_DINT_RELEASE, /* news */
	SIO_PEER_DINT_EVENT,   /* news */
	SIO_PEER_STATS = 560,
	/* Devices. */
	SIO_PEER_DEVICES = 576, /* news: one device of ours, as it is now */
	SIO_PEER_BORROW,
	SIO_PEER_RETURN,
	SIO_PEER_RELEASE_EXCLUSIVE,
	SIO_PEER_BORROW_END, /* news */
	SIO_PEER_DEV_SEG_CREATE,
	SIO_PEER_DEV_SEG_LOOKUP,
	SIO_PEER_BAR_GRANT,
	SIO_PEER_BAR_RELEASE, /* news */
	SIO_PEER_DMA_MAP,
	SIO_PEER_DMA_UNMAP,
	SIO_PEER_SETTLED,
	SIO_PEER_RESET,
	SIO_PEER_DEVICE_EVENT, /* news */
	SIO_PEER_DEV_SEG_END,  /* news */
	SIO_PEER_HOLD,
	SIO_PEER_UNHOLD,
	SIO_PEER_VECTOR,
	SIO_PEER_UNVECTOR,
	SIO_PEER_BORROW_LOST,  /* news */
	SIO_PEER_HOLD_RELEASE, /* news */
	SIO_PEER_BAR_CUT,      /* news */
};

/* News. Version and boot of the sender; who cannot agree closes the connection. */
struct sio_peer_hello {
	struct sio_msg h;
	sio_le32 version_min, version_max, node, reserved;
	sio_le64 boot_generation;
	uint8_t boot_id[16];
};
SIO_WIRE_SIZE(struct sio_peer_hello, 56);

/* "Do you answer?" Reply: bare. */
struct sio_peer_ping {
	struct sio_msg h;
};

/*
 * Connect to a segment that is available at @adapter (the receiver's, where the path arrives), or
 * to a device segment by its uid. @connection: the asker's number. The reply holds a reference
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

/* News: the connection is gone. @reason: SCI_CB_DISCONNECT or SCI_CB_LOST. */
struct sio_peer_seg_release {
	struct sio_msg h;
	sio_le64 uid, connection;
	sio_le32 reason, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_seg_release, 40);

/*
 * Let the asker's host reach [offset, offset + bytes) of a segment. Who asks imports, and owns the
 * grant until its GRANT_RELEASE. The right to ask is a connection: @ref_node is the host whose
 * program has it, and @ref_connection its number; a lender maps its borrower's memory with
 * ref_node = borrower, and ref_connection 0 where the segment is the borrower's own.
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
/* What the importer's MAP needs. */
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

/* News: the importer no longer maps it. Any grant of the sender's node, a BAR's or ring's too. */
struct sio_peer_grant_release {
	struct sio_msg h;
	sio_le64 grant;
};
SIO_WIRE_SIZE(struct sio_peer_grant_release, 24);

/*
 * News to an importer, at the start of a connection: this host has granted that before, and will
 * not take it back by itself. GRANT_RELEASE tells when nothing of the importer's can reach it any
 * more, at once if it knows nothing of it.
 */
struct sio_peer_grant_query {
	struct sio_msg h;
	sio_le64 grant;
};
SIO_WIRE_SIZE(struct sio_peer_grant_query, 24);

/* News to an importer. SIO_LOSS_LOST: the exporter has already dropped the reference. */
struct sio_peer_seg_event {
	struct sio_msg h;
	sio_le64 connection;
	sio_le32 reason, loss; /* SCI_CB_*; enum sio_segment_loss */
};
SIO_WIRE_SIZE(struct sio_peer_seg_event, 32);

/*
 * Connect to data interrupt @number at @adapter (the receiver's). The reply's ring is for the
 * asker's link alone, until DINT_RELEASE.
 */
struct sio_peer_dint_lookup {
	struct sio_msg h;
	sio_le64 link;
	sio_le32 number, adapter, peer_adapter; /* peer_adapter: the asker's */
	sio_le32 flags;				/* SIO_DINT_PLAIN: the reply has no memory */
};
SIO_WIRE_SIZE(struct sio_peer_dint_lookup, 40);
struct sio_prep_dint_lookup {
	struct sio_msg h;
	sio_le64 link, ring; /* ring: the receiver's number */
	struct sio_wire_grant memory, trigger;
};
SIO_WIRE_SIZE(struct sio_prep_dint_lookup, 160);
/* News: the sender unmapped ring and trigger. */
struct sio_peer_dint_release {
	struct sio_msg h;
	sio_le64 ring;
};
SIO_WIRE_SIZE(struct sio_peer_dint_release, 24);
/* News to a sender: the interrupt is gone. Unmap, then DINT_RELEASE. */
struct sio_peer_dint_event {
	struct sio_msg h;
	sio_le64 link;
};
SIO_WIRE_SIZE(struct sio_peer_dint_event, 24);

/* Counters of a device that lives with the receiver. */
struct sio_peer_stats {
	struct sio_msg h;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_stats, 24);
/* Reply: as struct sio_rep_stats. */

/*
 * ---- devices ---- The lender is the receiver, but for the news DEVICES and DEVICE_EVENT.
 * @borrower: the lender's number of the borrow, which must be one of the sender's node.
 */

/* News: one device of the sender's, as it is now. */
struct sio_peer_devices {
	struct sio_msg h;
	struct sio_rep_dev_list info; /* its header and adapter mean nothing */
	sio_le32 present, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_devices, 272);

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
SIO_WIRE_SIZE(struct sio_prep_borrow, 288);

/*
 * RETURN, RELEASE_EXCLUSIVE, RESET; and BORROW_END (news: the borrower died), BORROW_LOST (news, of
 * the lender: no path was left between the two hosts, so it has ended the borrow).
 * @gone, of BORROW_END: 1: the program has ended, and what it had mapped is unmapped; else 0.
 */
struct sio_peer_borrower {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, gone;
};
SIO_WIRE_SIZE(struct sio_peer_borrower, 32);

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
/* News: a device segment in the sender's memory is gone. */
struct sio_peer_dev_seg_end {
	struct sio_msg h;
	sio_le64 uid;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_dev_seg_end, 32);

/*
 * What of [offset, offset + bytes) of a BAR the borrower may have. @access READ: nothing writable.
 * WHOLE, of who borrowed exclusively: for a kernel's driver, all up to the interrupt table, in one
 * piece, which a reset leaves in place, or none.
 * Each piece is a view and, at the lender, a grant of it, until BAR_RELEASE or the borrow's end.
 *
 * @borrower_node not 0: for a device of the asker's, which a program of that node has borrowed as
 * well as this one; @ticket is that of the borrow. Then all is wanted, in one piece, to be read and
 * written; and where BAR_CUT comes before BAR_RELEASE the piece leads nowhere any more.
 */
#define SIO_PEER_BAR_WHOLE 0x100 /* beside SIO_ACCESS_* */
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
	sio_le64 view, fd_offset; /* fd_offset: on the lender's own host */
	sio_le32 access, flags;
	struct sio_wire_grant g;
};
SIO_WIRE_SIZE(struct sio_wire_bar_piece, 104);
struct sio_prep_bar_grant {
	struct sio_msg h;
	sio_le64 borrower;
	sio_le32 fdid, n_pieces;
	struct sio_wire_bar_piece piece[SIO_MAP_PIECES];
};
SIO_WIRE_SIZE(struct sio_prep_bar_grant, 1696);
/* News: who asked for a piece has unmapped it. */
struct sio_peer_bar_release {
	struct sio_msg h;
	sio_le64 borrower, view, grant;
	sio_le32 fdid, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_bar_release, 48);
/*
 * News, of BAR pages that a device of the receiver's may reach: they are not the borrower's any
 * more. @held 1: an IOMMU of the sender's refuses what still comes, and keeps the address.
 */
struct sio_peer_bar_cut {
	struct sio_msg h;
	sio_le64 grant;
	sio_le32 held, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_bar_cut, 32);

/*
 * Map [offset, offset + bytes) of segment @uid of node @exporter for the device. The right to it:
 * @connection, the borrower's, or 0: the exporter is the borrower's host. @adapter: the exporter's,
 * or SIO_PEER_ANY_ADAPTER. Of a multicast group: @exporter SIO_PEER_GROUP, @uid the group's number,
 * @connection 0, @adapter the borrower's. Of BAR @bar of device @target: @exporter its lender, @uid
 * the borrow of it, @connection that borrow's ticket. @target 0: of no device.
 */
#define SIO_PEER_GROUP 0xffffffffu
#define SIO_PEER_ANY_ADAPTER 0xffffffffu
struct sio_peer_dma_map {
	struct sio_msg h;
	sio_le64 borrower, uid, connection, offset, bytes;
	sio_le32 fdid, exporter, adapter, target, bar, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_dma_map, 80);
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

/* Keep the mapping of borrow @of that covers [ioaddr, ioaddr + bytes): a queue is to use it. */
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
/* News: nobody waited for the reply to HOLD any more, and no queue was made. */
struct sio_peer_hold_release {
	struct sio_msg h;
	sio_le64 hold;
	sio_le32 fdid, generation;
};
SIO_WIRE_SIZE(struct sio_peer_hold_release, 32);

/*
 * Vector @vector of the device triggers plain interrupt @number at @adapter of node @node (the
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
 * News to a borrower's host. @borrower: whom to tell; @gone: who is gone; @event: SIO_DEVICE_EV_*.
 */
struct sio_peer_device_event {
	struct sio_msg h;
	sio_le64 borrower, gone;
	sio_le32 fdid, event, generation, reserved;
};
SIO_WIRE_SIZE(struct sio_peer_device_event, 48);

#endif
