/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live edge of smartiod: it connects the step machine of daemon.h with the system. There is one
 * thread and one sd-event loop. Each callback of the loop is at most one event of the machine, and
 * the machine is never entered from inside one of its own operations.
 */
#ifndef SMARTIOD_LIVE_H
#define SMARTIOD_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "core/err.h"
#include "core/topology.h"
#include "smartiod/base/daemon.h"
#include "smartiod/live/clusterfile.h"
#include "smartiod/live/conn.h"
#include "smartiod/live/log.h"

#define LIVE_PATH 4096

struct live;

/* The hardware port that a daemon drives. */
struct live_port {
	int (*open)(struct live *l, struct sio_err *reterr);
	/* A request; its answer goes to smartiod_port_event(), never from inside this call. */
	void (*send)(struct live *l, const void *req, size_t len, const int *fds, unsigned n_fds);
	/* Also when open() failed or was not called. */
	void (*close)(struct live *l);
};
extern const struct live_port live_port_emu; /* the machine room's socket */

struct live_options {
	const struct live_port *port;
	const char *topology, *state, *node;
	const char *device;    /* the shim's node */
	const char *backend;   /* of smartio-vfio; NULL: as the kernel has it */
	const char *keys;      /* folder of this host's key and certificates; NULL: STATE/keys */
	const char *group;     /* who may connect, besides root; NULL: as the umask says */
	int ready_fd;	       /* -1: none */
	struct live_file file; /* what @topology was read from; live_run() takes it */
};

/* A listening socket; accepting goes on when descriptors run out (see listener.c). */
struct live_listener {
	struct live *live;
	char path[LIVE_PATH];
	int fd, reserve;
	bool stays;		/* its file, when it is done */
	uint64_t complained_at; /* monotonic, in microseconds; 0: never */
	sd_event_source *io;
	void (*accepted)(struct live *l, int fd);
};

struct live_client;
struct live_peer;
struct port_shim;
#define LIVE_DIGEST 32 /* bytes of a SHA-256 */

struct live_irq;
struct live_tls;
struct live_transport;
struct sio_eventfd;

/* A warning about a peer that may come again. */
struct live_complaint {
	char text[512];
	unsigned repeated, unsaid; /* how often it was logged again, and has come since */
	uint64_t pause, again;	   /* when it is logged once more */
	uint64_t came;		   /* the last time */
};

/* Warnings about peers, as many as a log can bear. Times are monotonic, in microseconds. */
struct live_complaints {
	uint64_t since; /* 0: never */
	unsigned told, untold;
	struct live_complaint recent[8];
};

struct live {
	struct live_options options;
	const struct sio_topology *topology;
	const struct sio_topo_host *host;
	struct smartiod *daemon;
	sd_event *event;
	sd_event_source *timer, *later, *sigterm, *sigint;
	char pid_path[LIVE_PATH];
	int pid_fd;
	bool ready;
	int exit_code;
	struct live_conn port; /* port_emu.c's */
	bool port_open;
	struct port_shim *shim; /* port_shim.c's */
	struct live_listener clients_listener, peers_listener;
	struct live_client *clients; /* by number */
	uint64_t last_client;
	const struct live_transport *transport; /* to other hosts' daemons */
	struct live_tls *tls;			/* transport_tls.c's */
	struct live_file file, next; /* the cluster's: in force; read last, and not in force */
	uint8_t digest[LIVE_DIGEST]; /* of the one in force; the transport's, too */
	struct live_peer *peers;
	struct live_failures {
		unsigned count;		  /* to connect, since a connection lasted */
		bool brief;		  /* the last one did not last */
	} failures[SIO_MAX_NODE / 4 + 1]; /* by node / 4 */
	struct live_complaints complaints;
	struct live_irq *irqs;	    /* by number */
	struct sio_eventfd *events; /* to add to those that programs hold, too */
};

/* Run one host's daemon until it is told to end. Return: the exit status; -errno with a text. */
int live_run(const struct live_options *options, const struct sio_topology *t,
	     const struct sio_topo_host *host, struct sio_err *reterr);

/* A line of the room that calls, if its level says so; see log.h. */
#define live_log(l, level, ...) ((void)(l), live_log_from(__FILE__, level, __VA_ARGS__))

int live_listener_init(struct live_listener *s, struct live *l, const char *path,
		       void (*accepted)(struct live *l, int fd), struct sio_err *reterr);
/* The same of a socket that listens already and has no file; takes @fd. @name: for the log. */
int live_listener_init_fd(struct live_listener *s, struct live *l, const char *name, int fd,
			  void (*accepted)(struct live *l, int fd), struct sio_err *reterr);
/* Begin to accept what has come since. */
int live_listener_start(struct live_listener *s);
void live_listener_done(struct live_listener *s);

void live_client_accepted(struct live *l, int fd);
void live_clients_free(struct live *l);
void live_client_send(void *ctx, uint64_t client, const void *msg, size_t len, const int *fds,
		      unsigned n_fds);
void live_client_close(void *ctx, uint64_t client);
void live_client_take(void *ctx, uint64_t client);

int live_irqs_open(struct live *l);
int live_irq_watch(void *ctx, int fd, uint64_t irq);
void live_irq_unwatch(void *ctx, uint64_t irq);
void live_irq_signal(void *ctx, int fd, uint64_t count);
void live_irqs_free(struct live *l);

void live_peer_accepted(struct live *l, int fd);
void live_peers_free(struct live *l);
/* Whoever is at the other end may have lost the right to: each connection is looked at again. */
void live_peers_check(struct live *l);
void live_peer_connect(void *ctx, uint32_t node);
void live_peer_send(void *ctx, uint32_t node, const void *msg, size_t len);
void live_peer_close(void *ctx, uint32_t node);

#endif
