/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole cluster in one thread and virtual time, from one seed: the real daemons, machine room,
 * drive model, library and driver, joined by queues instead of sockets and by coroutines instead of
 * threads. Nothing here reads a clock or draws from anything but the seed.
 *
 *   sched.c    virtual time, the event queue, coroutines
 *   object.c   descriptors: what a process holds and what its death closes
 *   world.c    struct sio_world for a process of the simulator
 *   cluster.c  daemons and room, and the messages between them
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/topology.h"
#include "emu/room.h"
#include "session/world.h"
#include "smartiod/daemon.h"

#define SIM_HOSTS 8
#define SIM_PROCS 16

/* ---- sched.c ---- */
struct sim_coro;
typedef void (*sim_fn)(void *arg);

void sim_start(uint64_t seed);
void sim_end(void);
uint64_t sim_now(void);
uint64_t sim_random(void);
/* Work that the running code does takes time. */
void sim_advance(uint64_t ns);
/* Run @fn(@arg) @delay nanoseconds from now; those of one instant run in an order of the seed's. */
void sim_after(uint64_t delay, sim_fn fn, void *arg);
/* As sim_after, but behind what was sent on the same channel before: queues keep their order. */
void sim_after_ordered(uint64_t *channel, uint64_t delay, sim_fn fn, void *arg);
/* Run events until @done says so or nothing is left or @limit of virtual time. Return: done. */
bool sim_run(bool (*done)(void *arg), void *arg, uint64_t limit);
/* A line of the trace; goes into the hash and, if a file is set, to it. No address, no fd. */
void sim_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint64_t sim_trace_hash(void);
void sim_trace_file(const char *path);

struct sim_proc;
struct sim_coro *sim_coro_new(struct sim_proc *p, sim_fn fn, void *arg);
struct sim_coro *sim_coro_current(void);
struct sim_proc *sim_coro_proc(struct sim_coro *c);
bool sim_coro_finished(const struct sim_coro *c);
/* Sleep until sim_proc_notify() of its process, or @deadline. */
void sim_coro_block(uint64_t deadline);
/* Give up the processor for @delay. */
void sim_coro_pause(uint64_t delay);
/* The current coroutine never runs again. */
void sim_coro_exit(void) __attribute__((noreturn));
void sim_coros_free(struct sim_proc *p);
/* Wake what sleeps in @p; NULL: in every process. */
void sim_notify(struct sim_proc *p);

/* ---- object.c ---- */
enum sim_kind { SIM_MEM, SIM_EVENT, SIM_OWNER, SIM_CONN };

struct sim_conn;
struct sim_object {
	enum sim_kind kind;
	unsigned refs;
	int memfd; /* SIM_MEM: what to map */
	bool sealed;
	uint64_t count; /* SIM_EVENT */
	unsigned host;	/* SIM_OWNER, SIM_CONN */
	uint64_t id;	/* SIM_OWNER: owner; SIM_CONN: client */
	struct sim_conn *conn;
};

/* A new descriptor for a new object of @kind; descriptors are never used again. */
int sim_fd_new(enum sim_kind kind);
struct sim_object *sim_fd(int fd);
int sim_fd_dup(int fd);
void sim_fd_close(int fd);
/* Descriptors open now; a test compares. */
unsigned sim_fd_count(void);

/* ---- world.c ---- */
struct sim_proc {
	struct sio_world world; /* first: a world is its process */
	void *library;
	char name[32];
	unsigned host, index;
	uint32_t pid;
	bool dead, finished;
	uint64_t steps;	  /* calls of the table so far */
	uint64_t kill_at; /* die in this one; 0: live */
	int fds[256];
	unsigned n_fds;
	struct sim_map {
		void *at;
		size_t len;
	} * maps;
	unsigned n_maps;
	void (*main)(struct sim_proc *p);
	void *arg;
	int result;
	struct sim_coro *coros[32];
	unsigned n_coros;
};

struct sim_proc *sim_proc_new(const char *name, unsigned host, void (*main)(struct sim_proc *p),
			      void *arg);
/* SIGKILL: nothing of it runs again, its descriptors close in an order of the seed's. */
void sim_proc_kill(struct sim_proc *p);
void sim_proc_free(struct sim_proc *p);
void sim_proc_hold(struct sim_proc *p, int fd);
void sim_proc_drop(struct sim_proc *p, int fd);

/* ---- cluster.c ---- */
struct sim_cluster {
	struct sio_topology *topology;
	struct emu_room *room;
	struct smartiod *daemon[SIM_HOSTS];
	bool ready[SIM_HOSTS];
	uint64_t faults, fatal;
};
extern struct sim_cluster *sim_cluster;

void sim_cluster_start(const char *topology_text);
void sim_cluster_stop(void);
/* The client's end of a connection to its host's daemon; -ECONNREFUSED. */
int sim_conn_open(struct sim_proc *p);
ssize_t sim_conn_send(struct sim_proc *p, struct sim_conn *c, const void *buf, size_t len,
		      const int *fds, unsigned n_fds);
/* -EAGAIN: nothing there; 0: the daemon cut it. */
ssize_t sim_conn_recv(struct sim_proc *p, struct sim_conn *c, void *buf, size_t len, int *fds,
		      unsigned max_fds, unsigned *ret_fds);
bool sim_conn_readable(const struct sim_conn *c);
void sim_conn_close(struct sim_conn *c);
void sim_owner_closed(unsigned host, uint64_t owner);
/* How many objects of one SIO_KIND_* a host's port holds. */
unsigned sim_port_count(unsigned host, uint32_t kind);

#endif
