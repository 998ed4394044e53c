/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only WITH Linux-syscall-note */
/*
 * Registers of the virtual NTB: the PCI function by which smartio-emu joins a virtual machine to
 * the fabric, one for each of its adapters. docs/virtual-ntb.md explains them.
 *
 * Registers are of 4 bytes, or (marked u64) of 8, little endian, and are accessed whole and
 * aligned; an u64 may also be accessed as two halves, the low one first: the high one's store takes
 * effect. Other accesses read ones, and store nothing. Reserved registers and bits read 0.
 */
#ifndef SMARTIO_VNTB_H
#define SMARTIO_VNTB_H

/* Of the range that QEMU's registry leaves for experiments. */
#define SIO_VNTB_VENDOR 0x1af4
#define SIO_VNTB_DEVICE 0x10f0
#define SIO_VNTB_CLASS 0x068000 /* another bridge */

/* BARs, all of 64 bits. */
#define SIO_VNTB_BAR_REGISTERS 0 /* SIO_VNTB_REGISTERS bytes, and the tables of MSI-X behind */
#define SIO_VNTB_BAR_WINDOW 2	 /* the look-up table's window; prefetchable, always trapped */
#define SIO_VNTB_REGISTERS 0x80000
#define SIO_VNTB_MSIX_TABLE 0x80000
#define SIO_VNTB_MSIX_PENDING 0x81000
#define SIO_VNTB_BAR0_SIZE 0x100000

/* What it is; they do not change. */
#define SIO_VNTB_MAGIC 0x000 /* SIO_VNTB_MAGIC_VALUE */
#define SIO_VNTB_MAGIC_VALUE 0x42544e56
#define SIO_VNTB_VERSION 0x004 /* SIO_VNTB_VERSION_VALUE */
#define SIO_VNTB_VERSION_VALUE 4
#define SIO_VNTB_NODE 0x008	    /* of this host */
#define SIO_VNTB_ADAPTER 0x00c	    /* of this host: 0, 1, ... */
#define SIO_VNTB_PEERS 0x010	    /* rows of the table of peers; SIO_VNTB_MAX_PEERS at most */
#define SIO_VNTB_ENTRIES 0x014	    /* of the look-up table */
#define SIO_VNTB_ENTRY_SHIFT 0x018  /* log2 of the bytes that one entry translates */
#define SIO_VNTB_RANGES 0x01c	    /* rows of the table of granted ranges */
#define SIO_VNTB_REQUESTERS 0x020   /* rows of the requester table */
#define SIO_VNTB_PIECES 0x024	    /* rows of the table of mapped pieces; 0 in exact mode */
#define SIO_VNTB_CAPABILITIES 0x028 /* SIO_VNTB_CAP_* */
#define SIO_VNTB_LINK_WIDTH 0x02c
#define SIO_VNTB_LINK_GENERATION 0x030
#define SIO_VNTB_GROUPS 0x034	  /* multicast groups; 0: there are none */
#define SIO_VNTB_MEMBERS 0x038	  /* rows of the table of members; 0 without groups */
#define SIO_VNTB_CAP_MAPPED 1	  /* there are mapped pieces; what is done there is not checked */
#define SIO_VNTB_CAP_REQUESTERS 2 /* who sends is checked; else the table is kept only */

/*
 * SIO_VNTB_START: u64, from 1 on: counts the starts of this host, and its resets. SIO_VNTB_ENABLE:
 * 1: this host is ready: its peers see SIO_VNTB_PEER_READY. SIO_VNTB_RESET: a store of 1 clears all
 * tables, doorbells, scratchpads, messages, faults and SIO_VNTB_ENABLE; a reset of the function
 * does the same. SIO_VNTB_STALE_READS: how many reads through the window were answered with the
 * value that was read there last, since the peer was waiting for this host (docs/virtual-ntb.md).
 */
#define SIO_VNTB_START 0x040
#define SIO_VNTB_ENABLE 0x048
#define SIO_VNTB_RESET 0x04c
#define SIO_VNTB_STALE_READS 0x050
#define SIO_VNTB_POOL_KEY 0x058 /* u64: see SIO_VNTB_PIECE; does not change */

/*
 * Doorbells: SIO_VNTB_DOORBELLS bits, set by peers. A bit that is set and not masked raises its
 * vector; all are masked after a reset. STATUS: a store of 1 clears a bit. ALL: bits to be set at
 * every peer that is up.
 */
#define SIO_VNTB_DOORBELLS 32
#define SIO_VNTB_DB_STATUS 0x080
#define SIO_VNTB_DB_MASK 0x084
#define SIO_VNTB_DB_ALL 0x088

/*
 * Messages: SIO_VNTB_MESSAGES registers, each with room for one. STATUS: bit k: register k holds a
 * message of the peer whose row is in SOURCE; bit 16 + k: what was stored last in a row's
 * MESSAGE(k) was not taken, since the peer's register was full or the peer is away: so the bit
 * tells it as soon as the store has been done. A store of 1 clears a bit. MASK: bits that raise no
 * interrupt; all after a reset.
 */
#define SIO_VNTB_MESSAGES 4
#define SIO_VNTB_MSG_STATUS 0x0c0
#define SIO_VNTB_MSG_MASK 0x0c4
#define SIO_VNTB_MSG_IN(k) (0x0d0 + 4 * (k))
#define SIO_VNTB_MSG_SOURCE(k) (0x0e0 + 4 * (k))

/*
 * Faults of accesses that went out by this adapter or came in: a queue of SIO_VNTB_FAULTS. COUNT:
 * how many are in it; a store of 1 takes the first one away, and the rest of the registers show
 * the next. LOST: how many found it full. The vector is raised when the first one goes into an
 * empty queue.
 */
#define SIO_VNTB_FAULTS 16
#define SIO_VNTB_FAULT_COUNT 0x100
#define SIO_VNTB_FAULT_LOST 0x104
#define SIO_VNTB_FAULT_KIND 0x108    /* SIO_VNTB_FAULT_* */
#define SIO_VNTB_FAULT_PEER 0x10c    /* row; ~0: none: the window led nowhere */
#define SIO_VNTB_FAULT_ADDRESS 0x110 /* u64; out: offset in the window; in: bus address */
#define SIO_VNTB_FAULT_LENGTH 0x118
#define SIO_VNTB_FAULT_REASON 0x11c /* SIO_VNTB_REASON_* */
#define SIO_VNTB_FAULT_READ 1	    /* else a write */
#define SIO_VNTB_FAULT_IN 2	    /* a peer's, at an address of this host; else out */
#define SIO_VNTB_REASON_ENTRY 1	    /* the look-up entry is not valid, or names no such peer */
#define SIO_VNTB_REASON_LINK 2	    /* the link, or the peer, is down */
#define SIO_VNTB_REASON_START 3	    /* the entry is of another start of the peer */
#define SIO_VNTB_REASON_RANGE 4	    /* the peer granted no such range */
#define SIO_VNTB_REASON_RIGHT 5	    /* the range is not for reading, or writing */
#define SIO_VNTB_REASON_PEER 6	    /* the peer's bus refused it, or did not answer in time */
#define SIO_VNTB_REASON_LIMIT 7	    /* too many accesses of this host to the peer are under way */

/*
 * The vectors of MSI-X: three, one for each doorbell bit, and those that the function never sends
 * itself: their messages are for peers, which send them through granted ranges
 * (SIO_VNTB_RANGE_MESSAGE).
 */
#define SIO_VNTB_VECTOR_LINK 0 /* a row of the table of peers changed */
#define SIO_VNTB_VECTOR_MESSAGE 1
#define SIO_VNTB_VECTOR_FAULT 2
#define SIO_VNTB_VECTOR_DOORBELL 3
#define SIO_VNTB_VECTOR_PEERS (SIO_VNTB_VECTOR_DOORBELL + SIO_VNTB_DOORBELLS)
#define SIO_VNTB_VECTORS 128

/*
 * What the adapter counts, each an u64, from when it was made on; a reset of it changes none:
 * requests, completions and bytes of reads through the window, out and in; packets and bytes of
 * writes; those of them that were interrupt messages; accesses that were refused, out or in;
 * doorbells that peers rang, messages that came by registers, interrupts that the function sent to
 * this host; changes of rows of the table of peers; writes to groups that went out, and copies of
 * such that came in. What is done in mapped pieces nobody counts.
 */
#define SIO_VNTB_COUNTERS 13
#define SIO_VNTB_COUNTER(i) (0x300 + 8 * (i))
#define SIO_VNTB_COUNT_READ_REQUESTS 0
#define SIO_VNTB_COUNT_COMPLETIONS 1
#define SIO_VNTB_COUNT_READ_BYTES 2
#define SIO_VNTB_COUNT_WRITES 3
#define SIO_VNTB_COUNT_WRITE_BYTES 4
#define SIO_VNTB_COUNT_MESSAGES 5
#define SIO_VNTB_COUNT_FAULTS 6
#define SIO_VNTB_COUNT_DOORBELLS 7
#define SIO_VNTB_COUNT_MAILS 8
#define SIO_VNTB_COUNT_INTERRUPTS 9
#define SIO_VNTB_COUNT_CHANGES 10
#define SIO_VNTB_COUNT_GROUP_OUT 11
#define SIO_VNTB_COUNT_GROUP_IN 12

/*
 * Multicast groups. SIZE: bytes, the first member's, as long as there are members. MEMBERS: of all
 * machines; OPEN: those of them that writes reach. MISSED: writes by this adapter that some open
 * member has not got, or may not have. PENDING: writes by this adapter that devices of members have
 * not taken yet, and may still take in time; when it is 0, all others have arrived, or are in
 * MISSED. In time is within two seconds; of a machine that has let them pass every further write
 * counts as missed at once, until it has answered.
 */
#define SIO_VNTB_MAX_GROUPS 8
#define SIO_VNTB_GROUP(g) (0x400 + 0x20 * (g))
#define SIO_VNTB_GROUP_SIZE 0x00 /* u64 */
#define SIO_VNTB_GROUP_MEMBERS 0x08
#define SIO_VNTB_GROUP_OPEN 0x0c
#define SIO_VNTB_GROUP_MISSED 0x10
#define SIO_VNTB_GROUP_PENDING 0x14

/* Scratchpads: words that this host and all its peers read and write. */
#define SIO_VNTB_SPADS 64
#define SIO_VNTB_SPAD(i) (0x200 + 4 * (i))

/*
 * The table of peers: one row for each (peer, adapter of it) that this adapter is joined to, in
 * the order of the topology. A peer that is no machine has no doorbells, messages and scratchpads
 * (SIO_VNTB_PEER_MACHINE is 0). CHANGES counts those of UP and START. START: of the peer; what
 * was granted in another one is gone. SELF: the row of this host in that peer's table.
 */
#define SIO_VNTB_MAX_PEERS 128
#define SIO_VNTB_PEER(row) (0x1000 + 0x80 * (row))
#define SIO_VNTB_PEER_NODE 0x00
#define SIO_VNTB_PEER_ADAPTER 0x04
#define SIO_VNTB_PEER_STATE 0x08 /* SIO_VNTB_PEER_UP and so on */
#define SIO_VNTB_PEER_CHANGES 0x0c
#define SIO_VNTB_PEER_START 0x10 /* u64 */
#define SIO_VNTB_PEER_HOPS 0x18
#define SIO_VNTB_PEER_SELF 0x1c
#define SIO_VNTB_PEER_DOORBELL 0x20 /* store: bits to be set there */
#define SIO_VNTB_PEER_ERRORS 0x24   /* transfers lost on the way */
#define SIO_VNTB_PEER_MESSAGE(k) (0x40 + 4 * (k))
#define SIO_VNTB_PEER_UP 1	/* the way there is whole, and the peer is on */
#define SIO_VNTB_PEER_READY 2	/* its SIO_VNTB_ENABLE is 1 */
#define SIO_VNTB_PEER_MACHINE 4 /* it has a virtual NTB of its own */
#define SIO_VNTB_PEER_SPAD(row, i) (0x8000 + 0x100 * (row) + 4 * (i))

/*
 * The look-up table: where the window leads. ADDRESS: a bus address of the peer, or with
 * SIO_VNTB_LUT_RANGE an offset in the peer's granted range whose row is in bits 48 to 63 (so that
 * the exporter may point a window elsewhere). It is checked against the peer's granted ranges at
 * each access. With SIO_VNTB_LUT_GROUP it leads to a multicast group: the row is the group's
 * number, ADDRESS an offset in it, and START does not matter; reads are refused. An access that
 * crosses the end of an entry is refused. CONTROL is to be stored last.
 */
#define SIO_VNTB_MAX_ENTRIES 4096
#define SIO_VNTB_LUT(entry) (0x10000 + 0x20 * (entry))
#define SIO_VNTB_LUT_CONTROL 0x00 /* SIO_VNTB_LUT_VALID | ... | row << 8 */
#define SIO_VNTB_LUT_ADDRESS 0x08 /* u64 */
#define SIO_VNTB_LUT_START 0x10	  /* u64; the peer's; 0: whatever it is */
#define SIO_VNTB_LUT_VALID 1
#define SIO_VNTB_LUT_RANGE 2
#define SIO_VNTB_LUT_GROUP 4
#define SIO_VNTB_LUT_ROW(row) ((row) << 8)

/*
 * Granted ranges: what peers may reach of this host, at bus addresses as this adapter's function
 * would use them itself (with an IOMMU: I/O virtual ones). An access must be within one of them.
 * CONTROL is to be stored last, and first when a range ends: from then on nothing is let through,
 * and when it is read without SIO_VNTB_RANGE_BUSY, nothing that was is under way any more (memory
 * alone is never busy). MESSAGE: the range is no memory, but one interrupt message: 4 bytes at
 * BASE, which must be those in SIZE; nothing else is let through.
 */
#define SIO_VNTB_MAX_RANGES 4096
#define SIO_VNTB_RANGE(i) (0x30000 + 0x20 * (i))
#define SIO_VNTB_RANGE_CONTROL 0x00 /* SIO_VNTB_RANGE_VALID | ... | row << 8 */
#define SIO_VNTB_RANGE_BASE 0x08    /* u64 */
#define SIO_VNTB_RANGE_SIZE 0x10    /* u64; bytes; or the message */
#define SIO_VNTB_RANGE_VALID 1
#define SIO_VNTB_RANGE_READ 2
#define SIO_VNTB_RANGE_WRITE 4
#define SIO_VNTB_RANGE_MESSAGE 8
#define SIO_VNTB_RANGE_BUSY 0x80000000u /* read only */
#define SIO_VNTB_RANGE_ROW(row) ((row) << 8)

/* The requester table: VALID | bus << 8 | device << 3 | function. */
#define SIO_VNTB_MAX_REQUESTERS 256
#define SIO_VNTB_REQUESTER(i) (0x50000 + 4 * (i))
#define SIO_VNTB_REQUESTER_VALID 0x80000000u

/*
 * Mapped pieces: which bytes of a file are which bus addresses of which peer, for plain memory
 * alone. FILE 0 has the memory of all mapped machines; one piece of it, of row SIO_VNTB_PIECE_OWN,
 * is this host's own. Any other number is the node id of an emulated host, whose pool the file is.
 * Another function of the machine shows each file: QEMU's ivshmem-plain, in its BAR 2. A driver
 * knows that of file 0 by its own memory, which is in there, too, and the others by their header:
 * u64 SIO_VNTB_POOL_KEY, u64 FILE, little-endian, from the start on.
 */
#define SIO_VNTB_SHARED_VENDOR 0x1af4
#define SIO_VNTB_SHARED_DEVICE 0x1110
#define SIO_VNTB_SHARED_BAR 2
#define SIO_VNTB_MAX_PIECES 512
#define SIO_VNTB_PIECE_OWN 0xffffffffu
#define SIO_VNTB_PIECE(i) (0x58000 + 0x20 * (i))
#define SIO_VNTB_PIECE_ROW 0x00
#define SIO_VNTB_PIECE_FILE 0x04
#define SIO_VNTB_PIECE_BUS 0x08	   /* u64 */
#define SIO_VNTB_PIECE_SIZE 0x10   /* u64 */
#define SIO_VNTB_PIECE_OFFSET 0x18 /* u64; in the file */

/*
 * Members of multicast groups: where what is written to a group arrives in this host, at bus
 * addresses as this adapter's function would use them itself. A write to a group reaches the open
 * members of the sender's own host, at all of its adapters, and those at the adapters that are in
 * the sender's table of peers; each at BASE and the write's offset in the group, and what lies
 * beyond SIZE is not its. They need no granted range. CONTROL is to be stored last, and first when
 * a member leaves; SIO_VNTB_MEMBER_BUSY as SIO_VNTB_RANGE_BUSY. It reads 0 if the member was not
 * taken: there is no such group, SIZE is 0, or greater than the group's. BASE and SIZE of a valid
 * one do not change.
 */
#define SIO_VNTB_MAX_MEMBERS 64
#define SIO_VNTB_MEMBER(i) (0x60000 + 0x20 * (i))
#define SIO_VNTB_MEMBER_CONTROL 0x00 /* SIO_VNTB_MEMBER_VALID | ... | group << 8 */
#define SIO_VNTB_MEMBER_BASE 0x08    /* u64 */
#define SIO_VNTB_MEMBER_SIZE 0x10    /* u64; bytes */
#define SIO_VNTB_MEMBER_VALID 1
#define SIO_VNTB_MEMBER_OPEN 2
#define SIO_VNTB_MEMBER_BUSY 0x80000000u /* read only */
#define SIO_VNTB_MEMBER_GROUP(g) ((g) << 8)

#endif
