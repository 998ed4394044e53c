/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to smartiod: the state of a daemon, and the operations on it that every room may use. */
#ifndef SMARTIOD_STATE_H
#define SMARTIOD_STATE_H

#include <stdbool.h>

#include "core/err.h"
#include "core/topology.h"
#include "core/types.h"
#include "sisci_api.h"
#include "smartio/uapi.h"
#include "smartiod/base/daemon.h"
#include "smartiod/base/report.h"
#include "smartiod/base/tree.h"
#include "smartiod/policy/account.h"
#include "wire/client.h"
#include "wire/peer.h"
#include "wire/wire.h"

#define SMARTIOD_GROUPS 8     /* multicast groups: 0 to 7 */
#define SMARTIOD_MAX_PATHS 16 /* between two hosts */
/* Paths to hosts that the cluster's file does not have: as many as to those that it can have. */
#define SMARTIOD_STRANGERS (SIO_MAX_HOSTS * SMARTIOD_MAX_PATHS)

/* syslog's levels, by name. */
enum {
	SMARTIOD_ERROR = 3,
	SMARTIOD_WARNING = 4,
	SMARTIOD_NOTICE = 5,
	SMARTIOD_INFO = 6,
	SMARTIOD_DEBUG = 7,
};

struct smartiod_expected;
struct smartiod_borrow;
struct smartiod_connection;
struct smartiod_dma;
struct smartiod_op;
struct smartiod_room;
struct smartiod_segment;

/*
 * Distances of a device or a chassis of a host, in chips: to its memory, and to each of its
 * adapters: core/hops.h.
 */
struct smartiod_hops {
	uint8_t memory, adapter[SIO_MAX_ADAPTERS];
};

/* The link of an adapter itself, whatever peers are behind it. */
struct smartiod_link {
	bool up;
	uint64_t since; /* when the daemon was notified of the state */
};

struct smartiod_path_state {
	uint32_t adapter, peer_adapter;
	bool up;
	bool anew;     /* while it was down all that the two hosts shared has ended */
	uint64_t turn; /* how often it came back with other addresses; as of when it was up last */
	uint64_t generation; /* the peer's start then */
	uint32_t hops;	     /* links on the path now; 0: as the topology has it */
};

enum smartiod_peer_state {
	SMARTIOD_PEER_IDLE,
	SMARTIOD_PEER_CONNECTING, /* peer_connect was called */
	SMARTIOD_PEER_HELLO,	  /* connected; its HELLO has not come */
	SMARTIOD_PEER_READY,
};

/*
 * The bond of two hosts (glossary): what becomes of all that they share when the connection of
 * their daemons ends. bond.c has the table of transitions. The connection itself is enum
 * smartiod_peer_state.
 */
enum smartiod_bond {
	/* nothing is shared, and nothing will be before both have sent HELLO */
	SMARTIOD_BOND_APART,
	SMARTIOD_BOND_JOINED, /* the daemons are connected */
	/* they are not connected; the ports hold what is shared, and the peer may connect again */
	SMARTIOD_BOND_EXPECTED,
	SMARTIOD_BOND_STATES,
};

struct smartiod_peer {
	uint32_t node;
	const struct sio_topo_host *host;
	enum smartiod_peer_state state;
	enum smartiod_bond bond;
	/* the cluster's file does not have it any more; what it had may still be here */
	bool removed;
	bool greeted; /* its HELLO has arrived over this connection */
	/*
	 * since this daemon's start: it may have something of this host, and has not reported yet
	 */
	bool expected;
	bool unmet; /* the same, and it has not answered all that was reported to it */
	/* Over this connection, as above: RESUME_SENT, RESUME_DONE have not come. */
	bool owes_sent, owes_done;
	uint64_t until; /* EXPECTED, or it owes one of these: then it is lost; else UINT64_MAX */
	/* counts how often the two daemons have connected since this daemon's start; from 1 on */
	uint32_t meeting;
	uint64_t generation; /* its boot id, from its HELLO; 0: not connected */
	uint64_t last_start; /* the boot id of its last HELLO; 0: never */
	uint64_t retry_at;   /* UINT64_MAX: not */
	uint64_t heard;	     /* messages that have come from it */
	/* a query sent then had no answer in time, and nothing has come since; 0: none */
	uint64_t silent_since;
	struct smartiod_hops hops;	 /* of its memory */
	unsigned n_grants;		 /* grants to it, orphaned ones included */
	unsigned n_rings;		 /* of these: memory of rings */
	struct smartiod_account account; /* what it uses of this host */
	unsigned n_paths;
	struct smartiod_path_state path[SMARTIOD_MAX_PATHS];
};

struct smartiod_counters {
	uint64_t client_messages, client_events, peer_received, peer_sent, port_requests,
		port_events, faults, refusals; /* refusals: by the cluster's file */
};

/* Recovery: what was here before this daemon was started (unclaimed.h, restart/). */
struct smartiod_recovery {
	struct smartiod_tree unclaimed;	    /* by the port's id */
	struct smartiod_expected *expected; /* programs that have not connected again */
	/* while it is set no other client is served; NULL: the recovery is over */
	struct smartiod_op *grace;
	uint64_t latest; /* the recovery ends then at the latest */
};

/* The last program that was refused because of its protocol version. */
struct smartiod_refused {
	uint64_t at; /* 0: none */
	uint32_t pid, version;
};

struct smartiod {
	const struct sio_topology *topology;
	const struct sio_topo_host *host;
	uint32_t node;
	const struct smartiod_ops *ops;
	void *ctx;
	const struct sio_policy *policy;	  /* the access rules in force */
	struct sio_topology *reloaded;		  /* the file in force, if RELOAD took one; ours */
	struct smartiod_report report;		  /* of the last RELOAD */
	const struct smartiod_room *const *rooms; /* room.h; ends with NULL */
	unsigned starting; /* so many of them, from the last on, have started */

	bool ready, failed;
	bool overflow; /* the port dropped events before we were ready */
	/* lists what the port has, because it dropped events; NULL: none */
	struct smartiod_op *look;
	uint32_t world;
	/* a bit of each one of the topology that the port has, as it said; others have no link */
	uint32_t port_adapters;
	uint32_t anew; /* a bit of each that may be another one when its link is reported */
	uint64_t boot_generation;
	uint8_t boot_id[16];
	uint64_t served;
	uint64_t descriptors; /* that this process may have; 0: unknown */
	char no_descriptor[160];
	int status_fd;
	struct sio_evt_adapter adapter[SIO_MAX_ADAPTERS];
	struct smartiod_hops hops;		     /* of this host's memory */
	struct smartiod_link link[SIO_MAX_ADAPTERS]; /* down: those that the port has not */

	uint64_t next_uid; /* segments, connections, dints, rings, links: one space */
	uint32_t next_cookie;
	uint64_t timer_at;
	bool later;	    /* smartiod_later() will come */
	bool device_missed; /* one has come that is still to be looked at */

	struct smartiod_tree sessions;	   /* by client */
	struct smartiod_program *programs; /* that have them */
	struct smartiod_tree ops_all;	   /* by id */
	struct smartiod_tree waiting;	   /* by cookie */
	struct smartiod_tree segments;	   /* by uid */
	struct smartiod_tree segment_ids;  /* by id + 1 */
	struct smartiod_tree grants;	   /* by id */
	struct smartiod_tree connections;  /* by id */
	struct smartiod_connection *unmapping;
	struct smartiod_tree dints;	   /* by uid */
	struct smartiod_tree dint_numbers; /* by adapter and number */
	struct smartiod_tree rings;	   /* by uid */
	struct smartiod_tree dint_links;   /* by id */
	struct smartiod_tree queues;	   /* by uid */
	struct smartiod_segment *member[SMARTIOD_GROUPS];
	/*
	 * In the order in which they were added: none is moved, because charges point to its
	 * account.
	 */
	unsigned n_peers;
	struct smartiod_peer peer[SIO_MAX_HOSTS];
	/* paths that the port has reported to hosts that are not in the file */
	unsigned n_strangers;
	struct sio_evt_link stranger[SMARTIOD_STRANGERS];
	struct smartiod_counters count;
	struct smartiod_recovery recovery;
	struct smartiod_refused refused;
	struct {
		uint64_t since;
		unsigned lines;
	} refusals; /* that were logged */

	struct smartiod_tree devices;	/* by fdid */
	struct smartiod_await *awaits;	/* programs that wait for one of them: device/await.c */
	struct smartiod_events *events; /* tools that wait for programs: daemon/events.c */
	/* As the lender. */
	struct smartiod_tree loans; /* by id */
	struct smartiod_tree dmas;  /* by the port's id */
	struct smartiod_dma *loose; /* see lender/dma.c */
	uint32_t last_loan;
	/* As the borrower. */
	struct smartiod_borrow *borrows;
	struct smartiod_held *held; /* borrower/resume.c */
};

/* Is this host a real one, by smartio.ko or VFIO? */
static inline bool smartiod_is_real(const struct smartiod *d)
{
	return SIO_WORLD_IS_REAL(d->world);
}

/* Bits of adapters 0 to @n - 1. */
static inline uint32_t smartiod_first_adapters(uint32_t n)
{
	return (1u << n) - 1;
}

static inline uint32_t smartiod_file_adapters(const struct smartiod *d)
{
	return smartiod_first_adapters(d->host->n_adapters);
}

/* Are there such an adapter in the cluster's file, and one at the port, which said what it is? */
static inline bool smartiod_has_adapter(const struct smartiod *d, uint32_t adapter)
{
	return adapter < SIO_MAX_ADAPTERS && d->port_adapters >> adapter & 1;
}

/*
 * Does what this host shares with @p outlive the connection of the daemons, and a restart of
 * either? It does if ports that outlive their daemons hold it on both sides. Elsewhere the end of a
 * daemon is its host's end.
 */
static inline bool smartiod_outlives(const struct smartiod *d, const struct smartiod_peer *p)
{
	return smartiod_is_real(d) && p->host->real;
}

/* A line of the log, of the room whose source calls. */
void smartiod_log_from(struct smartiod *d, const char *file, int level, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define smartiod_log(d, level, ...) smartiod_log_from(d, __FILE__, level, __VA_ARGS__)
uint64_t smartiod_uid(struct smartiod *d);
/* The text for -EMFILE: which limit was reached, and how to raise it. */
const char *smartiod_no_descriptor(struct smartiod *d);
/* Closes *fd, if there is one, and sets it to -1. */
void smartiod_close_fd(struct smartiod *d, int *fd);
void smartiod_fatal(struct smartiod *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Arranges that the rooms' later() are called, once for all that ask until then. */
void smartiod_ask_later(struct smartiod *d);
/* Arranges that smartiod_timer() is called at @when, or before. */
void smartiod_arm(struct smartiod *d, uint64_t when);

#endif
