/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs: internal to this folder. */
#ifndef EMU_NTB_INSIDE_H
#define EMU_NTB_INSIDE_H

#include "core/outage.h"
#include "emu/ntb/ntb.h"
#include "vfio/config.h"
#include "smartio/vntb.h"

#define EMU_NTB_NOWHERE UINT32_MAX /* a fault's row: the window led to no peer */
#define EMU_NTB_LAST 256u	   /* values that were read last, at most; a power of 2 */

/* A row of the table of peers: one adapter of another machine. */
struct emu_ntb_row {
	struct emu_ntb_adapter *peer;
	uint32_t self; /* our row there */
	uint32_t hops;
	uint32_t state, changes; /* SIO_VNTB_PEER_* */
	uint64_t start;		 /* as the row shows it */
	uint32_t errors;
	unsigned reads, writes; /* under way */
};

struct emu_ntb_entry {
	uint32_t control;
	uint64_t address, start;
};

struct emu_ntb_range {
	uint32_t control;
	uint64_t base, size;
};

struct emu_ntb_member {
	uint32_t control;
	uint64_t base, size;
};

struct emu_ntb_piece {
	uint32_t row, file;
	uint64_t bus, size, offset;
};

struct emu_ntb_fault {
	uint32_t kind, row, length, reason;
	uint64_t address;
};

/* The last value that was read at an address: for a reader that must not wait. */
struct emu_ntb_last {
	const struct emu_ntb_adapter *peer; /* NULL: none */
	uint64_t start;			    /* of the peer */
	uint64_t address;
	size_t len;
	uint8_t value[8];
};

/* The tables that the guest programs; a reset clears them. */
struct emu_ntb_tables {
	uint32_t enable;
	uint32_t bell_status, bell_mask;
	uint32_t message_status, message_mask;
	uint32_t message[SIO_VNTB_MESSAGES], source[SIO_VNTB_MESSAGES];
	uint32_t spad[SIO_VNTB_SPADS];
	struct emu_ntb_fault fault[SIO_VNTB_FAULTS]; /* the first one is the oldest */
	uint32_t n_faults, faults_lost;
	struct emu_ntb_entry entry[SIO_VNTB_MAX_ENTRIES];
	struct emu_ntb_range range[SIO_VNTB_MAX_RANGES];
	unsigned n_ranges; /* those that are valid are below */
	uint32_t requester[SIO_VNTB_MAX_REQUESTERS];
	struct emu_ntb_member member[SIO_VNTB_MAX_MEMBERS];
	unsigned n_members; /* those that are valid are below */
	/* The low half of a register of 8 bytes, until the high half is written. */
	uint32_t half_at, half;
};

/* What emulated hosts were last notified of: whether an adapter is on. */
struct emu_ntb_power {
	uint64_t told;	  /* the start that they know; 0: it is off */
	uint64_t next_on; /* before then they hear of no other start */
	bool waits;	  /* they are to hear that it is on */
};

struct emu_ntb_adapter {
	struct emu_ntb *ntb;
	const struct sio_topo_host *host;
	const struct sio_topo_adapter *topo;
	bool emulated; /* of a host whose hardware is not here: no session, no tables that count */
	bool on;       /* such a host is */
	unsigned machine, index; /* number of the host among machines; of the adapter in it */
	char name[SIO_NAME_LEN + 12];
	struct sio_vfio_config space;
	struct sio_vfio_session *session;
	bool cable; /* in its socket */
	uint64_t start;
	struct emu_ntb_power power; /* of a machine's */
	uint32_t stale_reads;
	struct emu_ntb_counts counts;
	uint32_t fixed[16]; /* registers that do not change */
	unsigned entry_shift;
	struct emu_ntb_row *row;
	unsigned n_rows;
	struct emu_ntb_row own; /* to itself: how its host's devices are members of groups */
	uint32_t missed[SIO_VNTB_MAX_GROUPS];
	struct emu_ntb_piece *piece;
	unsigned n_pieces;
	uint8_t msix[SIO_VNTB_VECTORS * 16]; /* the table's bytes, for whoever reads them back */
	struct emu_ntb_last last[EMU_NTB_LAST];
	struct emu_ntb_tables tables;
};

/* An access that was sent to a peer's session, and is not answered yet. */
struct emu_ntb_access {
	struct emu_ntb_access *prev, *next;
	struct emu_ntb_adapter *from, *to;
	struct emu_ntb_row *row; /* of @from */
	uint64_t start;		 /* of @from: what comes after another one is stale */
	unsigned range;		 /* of @to; from EMU_NTB_MEMBER on: a member of a group */
	unsigned group;		 /* of a member */
	bool read;
	bool again; /* a message that came meanwhile, and is sent when this one has been taken */
	uint32_t message;
	int ticket; /* of a read that @from waits for; -1: not, or not any more */
	bool late; /* it was given up at its deadline, and counted: what comes of it is discarded */
	uint64_t deadline;	  /* of reads, and of copies for groups; 0: there is none */
	uint64_t offset, address; /* in the window; on the peer's bus */
	size_t len;
	unsigned refusals; /* by the peer's bus, so far */
	uint64_t rests;	   /* until then; EMU_NTB_BEHIND: another one; 0: it is under way */
	uint8_t data[];	   /* of a write */
};

#define EMU_NTB_BEHIND UINT64_MAX
#define EMU_NTB_MEMBER SIO_VNTB_MAX_RANGES

/* A multicast group of all machines. */
struct emu_ntb_group {
	uint64_t size; /* as long as there are members */
	uint32_t members, open;
};

struct emu_ntb {
	const struct sio_topology *topo;
	const struct emu_ntb_ops *ops;
	void *ctx;
	uint64_t pool_key;
	struct sio_pcie pcie;		  /* by which packets are counted */
	struct emu_ntb_adapter **adapter; /* machines' first */
	unsigned n, n_own;		  /* all; those of machines */
	struct sio_outage *outage;
	struct emu_ntb_access *accesses; /* the oldest first */
	unsigned n_refused;		 /* of them */
	struct emu_ntb_group group[SIO_VNTB_MAX_GROUPS];
};

/* ---- ntb.c ---- */
/* Do the cables, and the switches between them, connect the two? */
bool emu_ntb_joined(const struct emu_ntb_adapter *a, const struct emu_ntb_adapter *peer);
/* Clears the tables for a reset, in another start. */
void emu_ntb_clear(struct emu_ntb_adapter *a);
/* Finds the adapter of a host; NULL. */
struct emu_ntb_adapter *emu_ntb_find(const struct emu_ntb *n, const struct sio_topo_host *host,
				     unsigned index);
/*
 * The adapter is in another start, or off: clears its tables, and notifies all adapters that are
 * connected to it.
 */
void emu_ntb_restart(struct emu_ntb_adapter *a);
/* Updates what @a and its peers see of the path between them, of states and starts. */
void emu_ntb_refresh(struct emu_ntb_adapter *a);

/* Is @peer an adapter of the same host, or joined()? */
bool emu_ntb_reaches(const struct emu_ntb_adapter *a, const struct emu_ntb_adapter *peer);

/* ---- signal.c: what reaches a machine's driver ---- */
void emu_ntb_raise(struct emu_ntb_adapter *a, unsigned vector);
void emu_ntb_ring(struct emu_ntb_adapter *a, uint32_t bells);
void emu_ntb_mask_bells(struct emu_ntb_adapter *a, uint32_t mask);
/* A write to MESSAGE(@k) of @row: to the peer, or into the adapter's own status. */
void emu_ntb_message(struct emu_ntb_adapter *a, struct emu_ntb_row *row, unsigned k,
		     uint32_t value);
void emu_ntb_mask_messages(struct emu_ntb_adapter *a, uint32_t mask);
void emu_ntb_fault(struct emu_ntb_adapter *a, struct emu_ntb_fault fault);
void emu_ntb_next_fault(struct emu_ntb_adapter *a);

/* ---- access.c: what is under way ---- */
/*
 * Has the peer do an access, which is set up except for its links and deadline; @data: of a write.
 * Return: 0; -ENOMEM; as sio_vfio_session_dma_read().
 */
int emu_ntb_send(const struct emu_ntb_access *access, const void *data);
/*
 * Merges a message with the same one that is under way: it is sent once more when the peer has
 * taken that. Return: whether there is one.
 */
bool emu_ntb_join(const struct emu_ntb_access *access, const void *data);
/* Would @to wait for @from, directly or through others? */
bool emu_ntb_waits(const struct emu_ntb *n, const struct emu_ntb_adapter *to,
		   const struct emu_ntb_adapter *from);
/*
 * Has the machine of @to a read to answer, or a copy for a group to take, for which nobody waits
 * any more? Another one would be waited for as long, and all that a processor reads or sends are
 * waited for one after the other.
 */
bool emu_ntb_is_silent(const struct emu_ntb *n, const struct emu_ntb_adapter *to);
/* Returns what @a last read there, or ones. */
void emu_ntb_recall(const struct emu_ntb_adapter *a, const struct emu_ntb_adapter *peer,
		    uint64_t address, void *buf, size_t len);
/*
 * The adapter's session ends: reads that were sent to @a are answered with ones, those by it not at
 * all.
 */
void emu_ntb_abandon(struct emu_ntb_adapter *a);
/* Reads between adapters that are not connected any more are answered with ones. */
void emu_ntb_abandon_cut(struct emu_ntb *n);
/*
 * Answers reads that have waited for too long, sends again what has rested, and sets the alarm for
 * the next one.
 */
void emu_ntb_expire_accesses(struct emu_ntb *n);
/* Writes of @a that members of @group have not taken yet, and may still take in time. */
uint32_t emu_ntb_pending(const struct emu_ntb_adapter *a, unsigned group);
/* Is an access to the range under way? */
bool emu_ntb_range_busy(const struct emu_ntb_adapter *a, unsigned range);
/* The range's CONTROL was stored to: what rests goes there no more. */
void emu_ntb_range_changed(struct emu_ntb_adapter *a, unsigned range);
/* Reports at both ends that an access was refused; @row: NULL: it led nowhere. */
void emu_ntb_refused(struct emu_ntb_adapter *a, struct emu_ntb_row *row, bool read, uint64_t offset,
		     uint64_t address, size_t len, uint32_t reason);

/* ---- host.c: an emulated host at the other end ---- */
/*
 * Does an access to an emulated host. Return: 0: it is done, *ret_message: it was an interrupt;
 * SIO_VNTB_REASON_*. A read's bytes are copied to @buf.
 */
uint32_t emu_ntb_outward(const struct emu_ntb_row *row, uint64_t address, void *buf,
			 const void *data, size_t len, bool *ret_message);
/*
 * The adapter is in another start, or off: emulated hosts are notified at once that the old start
 * is over, of the new one perhaps later.
 */
void emu_ntb_report_power(struct emu_ntb_adapter *a);
/* Sends the notifications that are due now. */
void emu_ntb_power_due(struct emu_ntb *n);

/* ---- count.c ---- */
enum emu_ntb_passing {
	EMU_NTB_WRITE,
	EMU_NTB_MESSAGE, /* a write that is an interrupt */
	EMU_NTB_READ,	 /* requests, and completions with the data */
	EMU_NTB_REQUEST, /* of a read whose answer is not known yet: */
	EMU_NTB_ANSWER,	 /* it came, */
	EMU_NTB_ERROR,	 /* or the read failed */
};
/* An access of @len bytes passes the adapter's link. Nothing of emulated hosts is counted here. */
void emu_ntb_count(struct emu_ntb_adapter *a, enum emu_ntb_passing what, uint64_t address,
		   size_t len);
/* It passes the links of both. */
void emu_ntb_count_both(struct emu_ntb_adapter *a, struct emu_ntb_adapter *peer,
			enum emu_ntb_passing what, uint64_t address, size_t len);
/* One that is refused has passed the links up to where that was: @reason is SIO_VNTB_REASON_*. */
void emu_ntb_count_refused(struct emu_ntb_adapter *a, const struct emu_ntb_row *row, bool read,
			   uint64_t address, size_t len, uint32_t reason);

/* SIO_VNTB_COUNT_*. */
uint64_t emu_ntb_counter(const struct emu_ntb_adapter *a, unsigned which);

/* ---- window.c ---- */
/*
 * Finds what a peer, @row of ours in its table @self, reaches at @address of @to: all of its bytes
 * in one granted range. Return: 0, *ret: the range; SIO_VNTB_REASON_*.
 */
uint32_t emu_ntb_find_range(const struct emu_ntb_adapter *to, uint32_t self, uint64_t address,
			    size_t len, const void *data, unsigned *ret);
/*
 * Copies to or from memory that a machine's QEMU has described: one access of a processor is one
 * access there, too.
 */
void emu_ntb_copy_in(void *to, const uint8_t *from, size_t len);
void emu_ntb_copy_out(uint8_t *to, const void *from, size_t len);
/* What is at an address of a machine, as its QEMU has sent it. */
enum emu_ntb_end { EMU_NTB_MEMORY, EMU_NTB_DEVICE, EMU_NTB_NOTHING };
enum emu_ntb_end emu_ntb_look_at(const struct emu_ntb_adapter *to, uint64_t address, size_t len,
				 bool write);
/* Of memory that was found there: into @buf, or out of @data. */
void emu_ntb_copy(const struct emu_ntb_adapter *to, uint64_t address, void *buf, const void *data,
		  size_t len);
/* Return: 0; SIO_VFIO_LATER. A refused read returns ones. */
int emu_ntb_window_read(struct emu_ntb_adapter *a, uint64_t offset, void *buf, size_t len);
void emu_ntb_window_write(struct emu_ntb_adapter *a, uint64_t offset, const void *buf, size_t len);

/* ---- group.c ---- */
/* A store to a member's CONTROL. */
void emu_ntb_member_control(struct emu_ntb_adapter *a, unsigned member, uint32_t control);
/* All members of the adapter leave their groups. */
void emu_ntb_members_leave(struct emu_ntb_adapter *a);
/*
 * A write of @a to a group, from @offset in its window. Return: 0: it has gone to all members;
 * SIO_VNTB_REASON_*: it is refused. One that some miss is reported here.
 */
uint32_t emu_ntb_group_write(struct emu_ntb_adapter *a, unsigned group, uint64_t at,
			     uint64_t offset, const void *data, size_t len);

/* ---- registers.c ---- */
void emu_ntb_load(struct emu_ntb_adapter *a, uint64_t offset, void *buf, size_t len);
void emu_ntb_store(struct emu_ntb_adapter *a, uint64_t offset, const void *buf, size_t len);

#endif
