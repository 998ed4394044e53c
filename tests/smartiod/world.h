/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small world for daemons in one thread: two or three hosts joined by a switch, each with a fake
 * port, their connections, and clients. Nothing happens but in world_step(): what daemons and port
 * say is queued, and one packet of one channel is delivered at a time, in an order that the seed
 * chooses (0: first in, first out). The world keeps books of every descriptor and every resource of
 * the ports, so that a test can ask what is left.
 */
#ifndef TESTS_SMARTIOD_WORLD_H
#define TESTS_SMARTIOD_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smartio/uapi.h"
#include "smartiod/base/daemon.h"
#include "wire/client.h"
#include "wire/peer.h"

#define WORLD_HOSTS 3
#define WORLD_FDS 8192
#define WORLD_CLIENTS 48
#define WORLD_MESSAGES 512
#define WORLD_WATCHES 32
/* A kind of our own: an owner that has ended while something of its is in quarantine. */
#define WORLD_GRAVE 1000

struct world;

/* A resource of a port. */
struct world_res {
	struct world_res *next;
	unsigned host;
	uint32_t kind;		  /* SIO_KIND_* */
	uint64_t id, owner, size; /* owner: of an owner its parent */
	uint64_t cookie, address; /* owner, memory: user_cookie; dmamap: its IOVA */
	uint64_t grant;		  /* map: as MAP had it */
	uint64_t target;	  /* grant: memory, irq, bar; map: grant; dmamap: memory or map */
	uint32_t target_kind, node, adapter, peer_adapter;
	uint64_t device;
	uint64_t watched; /* watch, range of a DMA channel: its target's id */
	uint64_t channel; /* such a range: the channel's id */
	uint64_t length;  /* view of a BAR */
	uint32_t access;
	bool quarantined;
	bool cut; /* of a device that has been pulled out */
};

struct world_message {
	uint32_t type, id, error;
	size_t len;
	int fds[4];
	unsigned n_fds;
	_Alignas(8) unsigned char data[SIO_WIRE_MAX];
};

struct world_client {
	unsigned host;
	uint64_t number;
	bool connected, cut;
	uint64_t owner;
	const struct sio_policy_person_of *who; /* NULL: root */
	uint32_t pid;
	uint64_t started;			       /* 0: not known */
	struct world_message *message[WORLD_MESSAGES]; /* all that it received */
	unsigned n_messages;
	uint32_t next_id;
};

struct world_packet;

struct world_host {
	struct world *w;
	unsigned index;
	uint32_t node;
	struct smartiod *daemon;
	uint64_t boot_generation, timer_at;
	bool later;	 /* the daemon has asked for smartiod_later() */
	uint64_t starts; /* of daemons */
	bool ready, fatal;
	char fatal_text[256];
};

/* A shared interrupt that a daemon watches. */
struct world_watch {
	unsigned host;
	uint64_t irq;
};

struct world {
	struct sio_topology *topology;
	struct world_host host[WORLD_HOSTS];
	unsigned n_hosts, n_adapters; /* n_adapters: that each port has */
	uint32_t entries;	      /* of each adapter, as ports say; 0: as many as ever */
	bool real;		      /* ports of real hosts: they outlive the daemon */
	bool lossy;		      /* a path was down: grants may end before maps */
	bool iommu;		      /* of all hosts; set before world_start() */
	bool same_message; /* all interrupts of a host have one address, as on real ones */
	bool link[WORLD_HOSTS][WORLD_HOSTS];
	/* Bits of those of a link's adapters whose path is down alone (world_path()). */
	unsigned down[WORLD_HOSTS][WORLD_HOSTS];
	uint64_t turn; /* how often links came back with other addresses */
	/* The connection of daemons: epoch, and whether each end still has it. */
	uint64_t epoch[WORLD_HOSTS][WORLD_HOSTS];
	bool told[WORLD_HOSTS][WORLD_HOSTS]; /* the daemon of the first that it has the second */
	bool open[WORLD_HOSTS][WORLD_HOSTS];
	struct world_packet *head, *tail;
	struct world_res *res;
	struct world_client client[WORLD_CLIENTS];
	unsigned n_clients;
	bool fd_open[WORLD_FDS];
	bool falling; /* the ports' numbers, as if they were drawn */
	uint64_t now, next_id, next_epoch, random, randoms, steps;
	uint64_t bad_ends; /* grants ended under a live map while the link was up */
	uint64_t wild;	   /* grants ended that somebody had mapped, and no IOMMU holds him off */
	uint64_t fail_at;  /* the port request with this number fails; 0: none */
	uint64_t requests;
	uint32_t no_fds_for; /* the port answers this SIO_OP_* without descriptors: EMFILE */
	unsigned deaf;	     /* bits of hosts whose ports drop events */
	uint32_t late;	     /* the ports' answers to this SIO_OP_* wait until this is 0 */
	enum { WORLD_KILL, WORLD_HANG_UP, WORLD_OWNER_FIRST } style; /* of world_kill() */
	uint64_t shown; /* the owner whose descriptor came with the request that is sent */
	/* Called for each request of a client and for each message to one. */
	void (*on_request)(struct world *w, struct world_client *c, const void *msg, size_t len);
	void (*on_message)(struct world *w, struct world_client *c, const struct world_message *m);
	/*
	 * The cluster's file: as it is read again, for a client of user @uid, the daemon's; NULL
	 * with *err. And as each host has it in force; NULL: none.
	 */
	struct sio_topology *(*file_read)(struct world *w, uint32_t uid, bool next,
					  struct sio_err *err);
	const char *file_text[WORLD_HOSTS];
	unsigned file_kept;	 /* how often one was taken */
	bool drop_peer_messages; /* peers hear nothing: for time-outs */
	/* Announcements of devices by a daemon to another. */
	unsigned announced[WORLD_HOSTS][WORLD_HOSTS];
	struct world_watch watch[WORLD_WATCHES];
	unsigned n_watches;
	uint64_t signals, signalled; /* writes to triggers, and their sum */
	unsigned port_fds;	     /* descriptors beside the port request that is carried out */
	int log_level;
	/* Requests that world.c does not know; true: answered. */
	bool (*port_other)(struct world *w, unsigned host, const struct sio_req *req, size_t len);
	/* An owner ends: resources of other kinds. */
	void (*owner_other)(struct world *w, unsigned host, uint64_t owner);
	/* Called before each delivery. */
	void (*before_step)(struct world *w, void *arg);
	void *before_arg;
};

struct world *world_new(unsigned n_hosts, uint64_t seed);
/* Hosts with @n adapters each, adapter i on switch i; before world_start(). */
void world_adapters(struct world *w, unsigned n);
/* The world's own memory: weak, so that a test can keep it from the failures it makes. */
void *world_calloc(size_t n, size_t size);
/* A test that does something at every event does it at one in so many: WORLD_STRIDE; every one. */
uint64_t world_stride(void);
/* Daemons, queue and books; every allocation is returned. */
void world_free(struct world *w);
/* All hosts up and their daemons connected. */
void world_start(struct world *w);
/* Before that: all are real hosts, whose devices are those that their ports find. */
void world_real(struct world *w);
/* Deliver one packet; false: nothing is queued. */
bool world_step(struct world *w);
/* Until nothing is queued. */
void world_run(struct world *w);
/* The time passes, and timers run that are due; nothing is delivered. */
void world_tick(struct world *w, uint64_t ns);
/* Let the time pass and timers run. */
void world_pass(struct world *w, uint64_t ns);
void world_link(struct world *w, unsigned a, unsigned b, bool up);
/* One of several paths: through adapter @adapter of both. Who is away hears at its start. */
void world_path(struct world *w, unsigned a, unsigned b, unsigned adapter, bool up);
/* The same, but @host alone hears of it: the other one is told by another such call. */
void world_hear(struct world *w, unsigned host, unsigned peer, unsigned adapter, bool up);
/* The port tells of an adapter's own link; paths are as they were. */
void world_cable(struct world *w, unsigned host, unsigned adapter, bool up);
/* The connection of two daemons breaks, and nothing else: both lose each other. */
void world_cut(struct world *w, unsigned a, unsigned b);
/* The host's daemon is killed: its port forgets all. */
void world_crash(struct world *w, unsigned host);
void world_boot(struct world *w, unsigned host);
/* The daemon alone is killed. In a real world it can be started again. */
void world_stop(struct world *w, unsigned host);
void world_restart(struct world *w, unsigned host);

/* A program whose daemon went connects to the next one, without a HELLO. */
void world_reconnect(struct world *w, struct world_client *c);
/* Clients. @kind SIO_CLIENT_*; with HELLO answered unless @kind is 0. */
struct world_client *world_client(struct world *w, unsigned host, uint32_t kind);
/* The same for a program of @who, which is to stay. */
struct world_client *world_client_of(struct world *w, unsigned host, uint32_t kind,
				     const struct sio_policy_person_of *who);
/* Another connection of the process that has @of. */
struct world_client *world_client_again(struct world *w, struct world_client *of);
/*
 * The program is killed: its socket and its owner's descriptor are closed. WORLD_HANG_UP: somebody
 * still holds the owner; WORLD_OWNER_FIRST: the daemon hears of the owner first.
 */
void world_kill(struct world *w, struct world_client *c);
/* Drop all that it received. */
void world_forget(struct world_client *c);
/* Send a request as it is. */
void world_send_raw(struct world *w, struct world_client *c, const void *msg, size_t len);
/* Fill the header, send it with @n_fds descriptors, which become the daemon's. Return: its id. */
uint32_t world_send_with(struct world *w, struct world_client *c, uint32_t type, void *msg,
			 size_t len, unsigned n_fds);
/* Fill the header, send it. Return: its id. */
uint32_t world_send(struct world *w, struct world_client *c, uint32_t type, void *msg, size_t len);
/* The reply to a request; NULL: none came (yet). */
const struct world_message *world_reply(struct world_client *c, uint32_t id);
/* Send, run until nothing is queued, and the reply. NULL: none. */
const struct world_message *world_call(struct world *w, struct world_client *c, uint32_t type,
				       void *msg, size_t len);
/* The @nth event of a type from 0 on; NULL. */
const void *world_event(struct world_client *c, uint32_t type, unsigned nth);

/* Books. */
unsigned world_open_fds(const struct world *w);
unsigned world_resources(const struct world *w, uint32_t kind); /* 0: of all kinds */
unsigned world_count(const struct world *w, unsigned host, uint32_t kind);
struct world_res *world_res_find(struct world *w, unsigned host, uint32_t kind, uint64_t id);
/* Of a BAR whose pages are gone: a view, a grant of it, or a window to that. */
bool world_leads_nowhere(struct world *w, const struct world_res *r);
struct world_res *world_res_new(struct world *w, unsigned host, uint32_t kind, uint64_t owner);
void world_res_free(struct world *w, struct world_res *r);
int world_fd(struct world *w);
/* Answer a port request. @evt: whole answer but for its header; @fds become the daemon's. */
void world_answer(struct world *w, unsigned host, const struct sio_req *req, void *evt, size_t len,
		  const int *fds, unsigned n_fds);
void world_answer_error(struct world *w, unsigned host, const struct sio_req *req, int error,
			const char *text);
void world_answer_ok(struct world *w, unsigned host, const struct sio_req *req);
/* An event of the port. */
void world_port_event(struct world *w, unsigned host, uint32_t op, uint64_t owner, void *evt,
		      size_t len);
/* A quarantined thing may have lost its last user. */
void world_settle_memory(struct world *w, unsigned host);
void world_owner_end(struct world *w, unsigned host, uint64_t owner, bool tell);

#endif
