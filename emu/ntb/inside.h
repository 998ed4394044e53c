/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual NTBs, inside: for the files of this folder. */
#ifndef EMU_NTB_INSIDE_H
#define EMU_NTB_INSIDE_H

#include "core/outage.h"
#include "emu/ntb/ntb.h"
#include "emu/vfio/config.h"
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
	unsigned under_way;
};

struct emu_ntb_entry {
	uint32_t control;
	uint64_t address, start;
};

struct emu_ntb_range {
	uint32_t control;
	uint64_t base, size;
};

struct emu_ntb_piece {
	uint32_t row;
	uint64_t bus, size, offset;
};

struct emu_ntb_fault {
	uint32_t kind, row, length, reason;
	uint64_t address;
};

/* The value that was read last at a place: for a reader that must not wait. */
struct emu_ntb_last {
	const struct emu_ntb_adapter *peer; /* NULL: none */
	uint64_t start;			    /* of the peer */
	uint64_t address;
	size_t len;
	uint8_t value[8];
};

/* What the guest programs; a reset clears it. */
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
	/* The low half of a register of 8 bytes, until the high one comes. */
	uint32_t half_at, half;
};

struct emu_ntb_adapter {
	struct emu_ntb *ntb;
	const struct sio_topo_host *host;
	const struct sio_topo_adapter *topo;
	unsigned machine, index; /* number of the host among machines; of the adapter in it */
	char name[SIO_NAME_LEN + 12];
	struct emu_config space;
	struct emu_vfio_session *session;
	bool cable; /* in its socket */
	uint64_t start;
	uint32_t stale_reads;
	uint32_t fixed[16]; /* registers that do not change */
	unsigned entry_shift;
	struct emu_ntb_row *row;
	unsigned n_rows;
	struct emu_ntb_piece *piece;
	unsigned n_pieces;
	uint8_t msix[SIO_VNTB_VECTORS * 16]; /* the table's bytes, for whoever reads them back */
	struct emu_ntb_last last[EMU_NTB_LAST];
	struct emu_ntb_tables tables;
};

/* An access that a peer's session was sent, and has not answered. */
struct emu_ntb_access {
	struct emu_ntb_access *prev, *next;
	struct emu_ntb_adapter *from, *to;
	struct emu_ntb_row *row; /* of @from */
	uint64_t start;		 /* of @from: what comes after another one is nobody's */
	unsigned range;		 /* of @to */
	bool read;
	int ticket; /* of a read that @from waits for; -1: not, or not any more */
	uint64_t deadline;
	uint64_t offset, address; /* in the window; on the peer's bus */
	size_t len;
};

struct emu_ntb {
	const struct sio_topology *topo;
	const struct emu_ntb_ops *ops;
	void *ctx;
	struct emu_ntb_pool pool;
	struct emu_ntb_adapter **adapter;
	unsigned n;
	struct sio_outage *outage;
	struct emu_ntb_access *accesses; /* the oldest first */
};

/* ---- ntb.c ---- */
/* The cables and what lies between them lead from one to the other. */
bool emu_ntb_joined(const struct emu_ntb_adapter *a, const struct emu_ntb_adapter *peer);
/* The tables after a reset, in another start. */
void emu_ntb_clear(struct emu_ntb_adapter *a);
/* Show @a and its peers what has become of the way between them, of states and starts. */
void emu_ntb_refresh(struct emu_ntb_adapter *a);

/* ---- function.c ---- */
/* Bytes of BAR 4. */
uint64_t emu_ntb_mapped_bar(const struct emu_ntb *n);

/* ---- signal.c: what reaches a machine's driver ---- */
void emu_ntb_raise(struct emu_ntb_adapter *a, unsigned vector);
void emu_ntb_ring(struct emu_ntb_adapter *a, uint32_t bells);
void emu_ntb_mask_bells(struct emu_ntb_adapter *a, uint32_t mask);
/* Of @row's MESSAGE(@k): to the peer, or into our own status. */
void emu_ntb_message(struct emu_ntb_adapter *a, struct emu_ntb_row *row, unsigned k,
		     uint32_t value);
void emu_ntb_mask_messages(struct emu_ntb_adapter *a, uint32_t mask);
void emu_ntb_fault(struct emu_ntb_adapter *a, struct emu_ntb_fault fault);
void emu_ntb_next_fault(struct emu_ntb_adapter *a);

/* ---- access.c: what is under way ---- */
/*
 * Have the peer do an access, which is set up but for its links and deadline; @data: of a write.
 * Return: 0; -ENOMEM; as emu_vfio_session_dma_read().
 */
int emu_ntb_send(const struct emu_ntb_access *access, const void *data);
/* Would whoever @to is wait for @from in the end? */
bool emu_ntb_waits(const struct emu_ntb *n, const struct emu_ntb_adapter *to,
		   const struct emu_ntb_adapter *from);
/* What @a read there last, or ones. */
void emu_ntb_recall(const struct emu_ntb_adapter *a, const struct emu_ntb_adapter *peer,
		    uint64_t address, void *buf, size_t len);
/* Its session ends: reads to @a are answered with ones, those from it not at all. */
void emu_ntb_abandon(struct emu_ntb_adapter *a);
/* Reads between adapters that are joined no more are answered with ones. */
void emu_ntb_abandon_cut(struct emu_ntb *n);
bool emu_ntb_range_busy(const struct emu_ntb_adapter *a, unsigned range);
/* Both ends hear that an access was refused; @row: NULL: it led nowhere. */
void emu_ntb_refused(struct emu_ntb_adapter *a, struct emu_ntb_row *row, bool read, uint64_t offset,
		     uint64_t address, size_t len, uint32_t reason);

/* ---- window.c ---- */
/* Return: 0; EMU_VFIO_LATER. What is refused reads ones. */
int emu_ntb_window_read(struct emu_ntb_adapter *a, uint64_t offset, void *buf, size_t len);
void emu_ntb_window_write(struct emu_ntb_adapter *a, uint64_t offset, const void *buf, size_t len);

/* ---- registers.c ---- */
void emu_ntb_load(struct emu_ntb_adapter *a, uint64_t offset, void *buf, size_t len);
void emu_ntb_store(struct emu_ntb_adapter *a, uint64_t offset, const void *buf, size_t len);

#endif
