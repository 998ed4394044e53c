/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside smartiod: what a daemon is, and what each room may do with it. */
#ifndef SMARTIOD_STATE_H
#define SMARTIOD_STATE_H

#include <stdbool.h>

#include "core/err.h"
#include "core/topology.h"
#include "core/types.h"
#include "sisci_api.h"
#include "smartio/uapi.h"
#include "smartiod/base/daemon.h"
#include "smartiod/base/tree.h"
#include "wire/client.h"
#include "wire/peer.h"
#include "wire/wire.h"

#define SMARTIOD_GROUPS 8     /* multicast groups: 0 to 7 */
#define SMARTIOD_MAX_PATHS 16 /* between two hosts */

/* syslog's levels, by name. */
enum {
	SMARTIOD_ERROR = 3,
	SMARTIOD_WARNING = 4,
	SMARTIOD_NOTICE = 5,
	SMARTIOD_INFO = 6,
	SMARTIOD_DEBUG = 7,
};

struct smartiod_awaited;
struct smartiod_borrow;
struct smartiod_connection;
struct smartiod_dma;
struct smartiod_op;
struct smartiod_room;
struct smartiod_segment;

/* An adapter's own, whoever is behind it. */
struct smartiod_link {
	bool up;
	uint64_t since; /* when we heard so */
};

struct smartiod_path_state {
	uint32_t adapter, peer_adapter;
	bool up;
	bool anew;     /* all that we had with the host has ended while it was down */
	uint64_t turn; /* how often it came back with other addresses; as of when it was up last */
};

enum smartiod_peer_state {
	SMARTIOD_PEER_IDLE,
	SMARTIOD_PEER_CONNECTING, /* peer_connect was called */
	SMARTIOD_PEER_HELLO,	  /* connected; its HELLO has not come */
	SMARTIOD_PEER_READY,
};

struct smartiod_peer {
	uint32_t node;
	const struct sio_topo_host *host;
	enum smartiod_peer_state state;
	uint64_t generation; /* its boot, as it says; 0: not connected */
	uint64_t last_start; /* the same, when it said HELLO last; 0: never */
	uint64_t retry_at;   /* UINT64_MAX: not */
	unsigned n_grants;   /* that it has of us, adrift ones among them */
	unsigned n_rings;    /* of these: memory of rings */
	unsigned n_paths;
	struct smartiod_path_state path[SMARTIOD_MAX_PATHS];
};

struct smartiod_counters {
	uint64_t client_messages, client_events, peer_received, peer_sent, port_requests,
		port_events, faults;
};

/* What was here before this daemon was started: leftover.h, and restart/. */
struct smartiod_recovery {
	struct smartiod_tree leftovers;	  /* by the port's id */
	struct smartiod_awaited *awaited; /* programs that are not back */
	struct smartiod_op *grace;	  /* nobody else is served; NULL: that is over */
	uint64_t latest;		  /* when it is over, whoever comes further */
};

/* The last program that was refused for the version it speaks. */
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
	const struct smartiod_room *const *rooms; /* room.h; ends with NULL */
	unsigned starting; /* so many of them, from the last on, have started */

	bool ready, failed;
	bool overflow;		  /* the port dropped events before we were ready */
	struct smartiod_op *look; /* at what the port has, for it dropped events; NULL: none */
	uint32_t world;
	uint32_t n_port_adapters; /* those of the topology that the port has; others have no link */
	uint64_t boot_generation;
	uint8_t boot_id[16];
	uint64_t served;
	uint64_t descriptors; /* that this process may have; 0: unknown */
	char no_descriptor[160];
	int status_fd;
	struct sio_evt_adapter adapter[SIO_MAX_ADAPTERS];
	struct smartiod_link link[SIO_MAX_ADAPTERS]; /* down: those that the port has not */

	uint64_t next_uid; /* segments, connections, dints, rings, links: one space */
	uint32_t next_cookie;
	uint64_t timer_at;

	struct smartiod_tree sessions;	  /* by client */
	struct smartiod_tree ops_all;	  /* by id */
	struct smartiod_tree waiting;	  /* by cookie */
	struct smartiod_tree segments;	  /* by uid */
	struct smartiod_tree segment_ids; /* by id + 1 */
	struct smartiod_tree grants;	  /* by id */
	struct smartiod_tree connections; /* by id */
	struct smartiod_connection *unmapping;
	struct smartiod_tree dints;	   /* by uid */
	struct smartiod_tree dint_numbers; /* by adapter and number */
	struct smartiod_tree rings;	   /* by uid */
	struct smartiod_tree dint_links;   /* by id */
	struct smartiod_tree queues;	   /* by uid */
	struct smartiod_segment *member[SMARTIOD_GROUPS];
	unsigned n_peers;
	struct smartiod_peer peer[SIO_MAX_HOSTS];
	struct smartiod_counters count;
	struct smartiod_recovery recovery;
	struct smartiod_refused refused;

	struct smartiod_tree devices; /* by fdid */
	unsigned n_found_devices;     /* of ours, that the topology does not know */
	/* As the lender. */
	struct smartiod_tree loans; /* by id */
	struct smartiod_tree dmas;  /* by the port's id */
	struct smartiod_dma *loose; /* see dmalend.c */
	uint32_t last_loan;
	/* As the borrower. */
	struct smartiod_borrow *borrows;
};

/* A line of the log, of the room whose source calls. */
void smartiod_log_from(struct smartiod *d, const char *file, int level, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define smartiod_log(d, level, ...) smartiod_log_from(d, __FILE__, level, __VA_ARGS__)
uint64_t smartiod_uid(struct smartiod *d);
/* The text of -EMFILE: which limit it is, and how it is raised. */
const char *smartiod_no_descriptor(struct smartiod *d);
/* Close *fd if it is one, and set it to -1. */
void smartiod_close_fd(struct smartiod *d, int *fd);
void smartiod_fatal(struct smartiod *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Call smartiod_timer() at @when, or before. */
void smartiod_arm(struct smartiod *d, uint64_t when);

#endif
