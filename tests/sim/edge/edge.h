/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the cluster's edges: hosts, packets. */
#ifndef SIM_EDGE_H
#define SIM_EDGE_H

#include <sys/types.h>

#include "base/sim.h"
#include "wire/wire.h"

struct sim_wire;

struct sim_host {
	unsigned index;
	uint32_t node;
	struct smartiod *daemon; /* NULL: the host is down, or (sim_outliving) it alone */
	bool ready;
	bool powered;	/* the room has it up */
	unsigned dying; /* crashed, and not yet: its power is off; its programs are dead */
	uint64_t boot;	/* counts starts of the machine */
	uint64_t life;	/* counts daemons: what was sent to or by an earlier one is lost */
	uint64_t clock; /* how far its clock is ahead of virtual time */
	uint64_t draws; /* of random numbers by its daemons */
	uint64_t to_port, from_port;
	unsigned port_busy;  /* packets to and from the port, and owners' ends, on their way */
	uint64_t port_count; /* that arrived */
	uint64_t timer;	     /* virtual; UINT64_MAX: none */
	bool later;	     /* its daemon has asked for smartiod_later() */
	struct sim_wire *peer[SIM_HOSTS];
};

extern struct sim_host sim_host[SIM_HOSTS];
extern bool sim_stopping;

/* A packet in flight, with descriptors of its own. */
struct sim_packet {
	struct sim_packet *next;
	struct sim_host *host; /* whose daemon or port it goes to */
	uint64_t life;
	struct sim_conn *conn;
	struct sim_wire *wire;
	size_t len;
	unsigned n_fds;
	int fds[SIO_WIRE_MAX_FDS];
	unsigned char data[] __attribute__((aligned(8)));
};

struct sim_packet *sim_packet_new(const void *data, size_t len, const int *fds, unsigned n_fds);
void sim_packet_free(struct sim_packet *k);
/* The number of 32 bits at @at of a message; 0: it is shorter. */
uint32_t sim_word(const void *data, size_t len, size_t at);
/* The time that a message within one machine takes. */
#define SIM_LATENCY_MIN 1000u /* ns */
uint64_t sim_latency(void);

extern const struct smartiod_ops sim_daemon_ops;
extern const struct emu_ops sim_room_ops;
/* The same for hosts that outlive their daemon. */
const struct emu_ops *sim_room_outliving(void);

/* edge/access.c: what the memory model needs from programs and room; the hardware of a seed. */
struct fabric_access;
struct fabric_params;
extern const struct fabric_access sim_access;
void sim_access_params(struct fabric_params *p);
/* edge/daemon.c */
struct sim_irq;
void sim_irq_ready(struct sim_irq *q);
void sim_irq_gone(struct sim_irq *q);
void sim_irqs_drop(struct sim_host *h);
void sim_timer_arm(struct sim_host *h);
/* edge/client.c */
void sim_client_send(void *ctx, uint64_t client, const void *msg, size_t len, const int *fds,
		     unsigned n_fds);
void sim_client_close(void *ctx, uint64_t client);
void sim_client_take(void *ctx, uint64_t client);
void sim_clients_drop(struct sim_host *h);
void sim_clients_free(void);
int sim_conn_open(struct sim_proc *p);
ssize_t sim_conn_send(struct sim_conn *c, const void *buf, size_t len, const int *fds,
		      unsigned n_fds);
ssize_t sim_conn_recv(struct sim_proc *p, struct sim_conn *c, void *buf, size_t len, int *fds,
		      unsigned max_fds, unsigned *ret_fds);
bool sim_conn_readable(const struct sim_conn *c);
bool sim_conn_ended(const struct sim_conn *c);
void sim_conn_close(struct sim_conn *c);
/* edge/peer.c */
void sim_peer_connect(void *ctx, uint32_t node);
void sim_peer_send(void *ctx, uint32_t node, const void *msg, size_t len);
/* Changes what a daemon sends; intercepts what is sent to it. NULL: neither. */
extern void (*sim_peer_says)(unsigned host, void *data, size_t len);
extern bool (*sim_peer_hears)(unsigned host, uint32_t node, const void *data, size_t len);
void sim_peer_close(void *ctx, uint32_t node);
void sim_peers_drop(struct sim_host *h);
void sim_peers_free(void);
/* edge/engine.c */
int sim_engine_start(void *ctx, unsigned host);
int sim_engine_watch(void *ctx, unsigned host, int fd);
void sim_engine_unwatch(void *ctx, unsigned host, int fd);
/*
 * The chance by which engines fall asleep; 0: they never do. And the chance that one with work
 * sleeps on.
 */
extern uint64_t sim_engine_naps;
extern void (*sim_engine_forgotten)(unsigned host);
bool sim_has_engines(void);
unsigned sim_engines_step(void);
void sim_engines_forget(void);
/* edge/room.c */
void sim_room_start(void);
void sim_owner_closed(unsigned host, uint64_t owner);
void sim_port_request(void *ctx, const void *req, size_t len, const int *fds, unsigned n_fds);
/*
 * Called when an event that nobody asked for is to be sent; true: the port drops it. NULL: none is
 * dropped.
 */
extern bool (*sim_on_event)(unsigned host, uint32_t op);
/* Does the port's message go to another receiver than its daemon? NULL: none does. */
extern bool (*sim_port_hears)(unsigned host, const void *evt, size_t len, const int *fds,
			      unsigned n_fds);

#endif
