/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole cluster in one thread and virtual time, from one seed: the real daemons, machine room,
 * drive model, library and driver, joined by queues instead of sockets and by coroutines instead of
 * threads. Nothing here reads a clock or draws from anything but the seed. docs/simulation.md tells
 * how it works and how to add to it.
 *
 *   base/sched.c    virtual time, the event queue, chance
 *   base/coro.c     coroutines
 *   base/trace.c    what happened: lines, hash, Perfetto
 *   base/object.c   descriptors: what a process holds and what its death closes
 *   base/proc.c     processes
 *   base/world.c    struct sio_world for a process: connection, time, threads, locks
 *   base/space.c    struct sio_world: the address space
 *   base/branch.c   deaths in each step, as branches of one run (branch.h)
 *   edge/cluster.c  hosts and room: start, crash, boot, stop
 *   edge/access.c   where the memory model (fabric/fabric.h) meets programs and room
 *   edge/           what daemons and room reach the world through, and all messages
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/chance.h"
#include "core/topology.h"
#include "base/did.h"
#include "emu/machine/room.h"
#include "session/world.h"
#include "smartiod/base/daemon.h"

#define SIM_MS UINT64_C(1000000)
#define SIM_SECOND UINT64_C(1000000000)
#define SIM_HOSTS 60
#define SIM_DRIVES 12 /* of a host, at most: with their virtual functions */

typedef void (*sim_fn)(void *arg);
struct sim_proc;
struct sim_coro;
struct sim_conn;
struct fabric_core;
struct fabric_mem;

/* ---- base/sched.c ---- */
void sim_start(uint64_t seed);
void sim_end(void);
extern uint64_t sim_time, sim_rng; /* base/sched.c's own: others take the functions */
static inline uint64_t sim_now(void)
{
	return sim_time;
}
/* Time passes for the work of the running code. */
static inline void sim_advance(uint64_t ns)
{
	sim_time += ns;
}
uint64_t sim_events(void);
/*
 * Chance. No expression may draw twice: compilers choose the order. sim_draw() (fabric/chance.h)
 * draws from a stream of its own, so that other code's draws do not change it.
 */
static inline uint64_t sim_random(void)
{
	return sim_draw(&sim_rng);
}
/* A number from 0 to n - 1. */
static inline uint64_t sim_below(uint64_t n)
{
	return n ? sim_random() % n : 0;
}
static inline bool sim_chance(uint64_t part, uint64_t whole)
{
	return sim_random() % whole < part;
}
/*
 * Runs @fn(@arg) @delay nanoseconds from now; events of one instant run in an order that the seed
 * decides.
 */
void sim_after(uint64_t delay, sim_fn fn, void *arg);
/* As sim_after, but behind what was sent on the same channel before: queues keep their order. */
void sim_after_ordered(uint64_t *channel, uint64_t delay, sim_fn fn, void *arg);
/* Calls @fn after the first event at @when or later: it is no event itself, and makes none. */
void sim_watch(uint64_t when, void (*fn)(void));
/* Runs events until @done returns true, or @limit of virtual time is over. Return: done. */
bool sim_run(bool (*done)(void *arg), void *arg, uint64_t limit);

/* ---- base/trace.c: the first word of a line is the track in Perfetto's viewer ---- */
void sim_trace_start(void);
void sim_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sim_span_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sim_span_end(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint64_t sim_trace_hash(void);
int sim_trace_file(const char *path); /* 0; -1: cannot be written */
int sim_perfetto_file(const char *path);
void sim_trace_end(void);

/* ---- base/coro.c ---- */
struct sim_waiter {
	struct sim_object *object;
	struct sim_coro *coro;
	struct sim_waiter *next, **at;
};

struct sim_wake {
	struct sim_coro *coro;
};

struct sim_coro {
	void *sp, *stack;
	struct sim_proc *proc;
	struct fabric_core *core; /* NULL: it made no access yet */
	struct sim_coro *next;
	sim_fn fn;
	void *arg;
	bool blocked, finished, queued;
	unsigned refs;
	struct sim_wake *wake; /* the scheduled wake-up that counts */
	void *fake_stack;
	struct sim_waiter *waiters; /* what it waits for in poll */
	unsigned n_waiters, max_waiters;
	/* The API call that the coroutine is in, for the oracle of time-outs. */
	const char *call;
	uint64_t call_since, call_limit;
};

struct sim_coro *sim_coro_new(struct sim_proc *p, sim_fn fn, void *arg);
extern struct sim_coro *sim_coro_running; /* base/coro.c's own */
/* NULL: the event loop itself. */
static inline struct sim_coro *sim_coro_current(void)
{
	return sim_coro_running;
}
/* Sleeps until the coroutine is notified, or virtual time @when. */
void sim_coro_block(uint64_t when);
/* Gives up the processor for @delay. */
void sim_coro_pause(uint64_t delay);
/* The current coroutine never runs again. */
void sim_coro_exit(void) __attribute__((noreturn));
void sim_coros_free(struct sim_proc *p);
void sim_coro_notify(struct sim_coro *c);
/* Wakes the coroutines that sleep in @p. */
void sim_notify(struct sim_proc *p);

/* ---- base/object.c ---- */
enum sim_kind { SIM_MEM, SIM_EVENT, SIM_OWNER, SIM_CONN, SIM_GATE };

struct sim_irq;
struct sim_object {
	enum sim_kind kind;
	unsigned refs;
	struct fabric_mem *mem; /* SIM_MEM */
	bool hardware;		/* SIM_EVENT: an interrupt of @host, not of a program */
	uint64_t count;		/* SIM_EVENT */
	unsigned host;		/* SIM_OWNER, SIM_CONN, SIM_EVENT of hardware */
	uint64_t id;		/* SIM_OWNER: owner; SIM_CONN: client */
	struct sim_conn *conn;
	int behind; /* SIM_GATE: what it is a gate of */
	bool shut;  /* SIM_GATE */
	struct sim_waiter *waiters;
	struct sim_irq *watch; /* a daemon that reads it */
};

/* Makes a descriptor for a new object of @kind; descriptor numbers are never used again. */
int sim_fd_new(enum sim_kind kind);
struct sim_object *sim_fd(int fd);
bool sim_fd_open(int fd);
int sim_fd_dup(int fd);
void sim_fd_close(int fd);
/* The last descriptor made: all later ones are greater. */
int sim_fd_last(void);
/* The number of open descriptors, for tests to compare. */
unsigned sim_fd_count(void);
/* Writes to an event descriptor. */
void sim_event_add(int fd, uint64_t count);
/* From now on the current coroutine is notified when @fd is ready, until sim_wait_clear(). */
void sim_wait_add(int fd);
void sim_wait_clear(struct sim_coro *c);
/* Wakes the coroutines that wait for @o. */
void sim_object_ready(struct sim_object *o);

/* ---- base/proc.c ---- */
struct sim_map {
	void *at;
	size_t len;
};

/* Calls that fail rarely, each counted by itself. */
#define SIM_SEND_TRIES 4 /* of each message, while there is no memory to send it */
enum sim_scarce { SIM_SEND, SIM_MAP_FD, SIM_MAP_ASIDE, SIM_MAP_BACK, SIM_SCARCE };

struct sim_proc {
	struct sio_world world; /* first: a world is its process */
	void *library;
	char name[32];
	unsigned host;
	uint32_t pid;
	bool dead, finished, reaped;
	uint64_t steps;			/* calls of the table so far */
	uint64_t kill_at;		/* die in this one; 0: live */
	uint64_t kill_later;		/* not then, but so many ns after it */
	uint64_t fail_at;		/* this one fails, if it can; 0: none */
	uint64_t scarce_in[SIM_SCARCE]; /* the so-manieth from now of a kind fails; 0: none */
	uint64_t scarce_more;		/* and so many more packets behind the first */
	unsigned unsent;		/* packets that failed so, one after the other */
	uint64_t stopped;		/* until then nothing of it runs (SIGSTOP) */
	uint64_t stopped_last;		/* ... by the longest of its stops */
	uint64_t stop_ring;  /* to be stopped at the so-manieth of its next doorbells; 0: not */
	uint64_t stop_until; /* ... if it comes there before, until then */
	uint64_t rung;	     /* stores to registers and doorbells */
	uint64_t triggered;  /* data interrupts that it sent (oracle/queues.c) */
	uint64_t given_up;   /* sessions that it ended, and lost what it had */
	bool perjurer;	     /* it lies to the next smartiod (work/perjurer.c) */
	int *fds;
	unsigned n_fds, max_fds;
	struct sim_map *maps;
	unsigned n_maps;
	void (*main)(struct sim_proc *p);
	void *arg;
	void (*gone)(struct sim_proc *p); /* it is dead, and its stacks are free; NULL */
	/* Asked in step kill_at whether it dies there; it may name another step. NULL: it dies. */
	bool (*dies_here)(struct sim_proc *p);
	int result;
	struct sim_coro *coros;
	struct sim_proc *prev, *next, *dead_next;
};

extern struct sim_proc *sim_procs; /* all that were not freed */
#define SIM_EACH_PROC(p) for (struct sim_proc *p = sim_procs; p; p = p->next)
/* The process of that number; NULL: it has died. */
struct sim_proc *sim_living(uint32_t pid);

struct sim_proc *sim_proc_new(const char *name, unsigned host, void (*main)(struct sim_proc *p),
			      void *arg);
/*
 * SIGKILL: the process never runs again, its descriptors close in an order that the seed decides.
 */
void sim_proc_kill(struct sim_proc *p);
/* SIGSTOP: the process does not run until @when. */
void sim_proc_stop(struct sim_proc *p, uint64_t when);
/* Frees the record, killing it if need be; NULL is fine. Not from its own coroutines. */
void sim_proc_free(struct sim_proc *p);
void sim_proc_hold(struct sim_proc *p, int fd);
void sim_proc_drop(struct sim_proc *p, int fd);
/* The running process; NULL: none runs. */
struct sim_proc *sim_self(void);
/* To be called after a coroutine has stopped: frees the stacks of the dead. */
void sim_proc_reap(void);

/* ---- base/world.c ---- */
extern const struct sio_world sim_world;
/* For experiments: programs run without pauses drawn from the seed. */
extern bool sim_steady;
/*
 * Every call of the table begins with this: the process may be switched, die, or the call may fail
 * here. Return: the process.
 */
struct sim_proc *sim_step(struct sio_world *w);
/* Is the call that sim_step() began to fail for lack of a resource? */
bool sim_fails(struct sim_proc *p);
/* The number of calls of a kind, of whatever program, until one fails; 0: none. */
extern uint64_t sim_scarce_in[SIM_SCARCE];
/* The same for the calls that the fault "scarce" counts. */
bool sim_is_scarce(struct sim_proc *p, enum sim_scarce what);
/* The running program sleeps. */
void sim_sleep(uint64_t ns);
/* Called when the running program's library logs something; NULL. */
extern void (*sim_on_log)(const char *text);

/* base/coro.c: the running program made a system call, which orders its accesses. */
void sim_sync(void);

/* ---- what processes and descriptors need from the cluster around them ---- */
struct sim_irq;
struct sim_edge {
	/* The time of the host's clocks; and the virtual time at which they show @when. */
	uint64_t (*clock)(unsigned host);
	uint64_t (*from_clock)(unsigned host, uint64_t when);
	/* Opens the client's end of a connection to its host's daemon; -ECONNREFUSED. */
	int (*conn_open)(struct sim_proc *p);
	ssize_t (*conn_send)(struct sim_conn *c, const void *buf, size_t len, const int *fds,
			     unsigned n_fds);
	/* -EAGAIN: nothing there; 0: the daemon closed it. */
	ssize_t (*conn_recv)(struct sim_proc *p, struct sim_conn *c, void *buf, size_t len,
			     int *fds, unsigned max_fds, unsigned *ret_fds);
	bool (*conn_readable)(const struct sim_conn *c);
	bool (*conn_ended)(const struct sim_conn *c);
	void (*conn_close)(struct sim_conn *c);
	/* The last descriptor of an owner of the port is closed. */
	void (*owner_closed)(unsigned host, uint64_t owner);
	/* A descriptor that a daemon waits for is ready; is closed. */
	void (*irq_ready)(struct sim_irq *q);
	void (*irq_gone)(struct sim_irq *q);
};
extern const struct sim_edge *sim_edge; /* the cluster sets it as it starts */

/* ---- base/space.c ---- */
/*
 * Cuts the windows that programs of @host have to other hosts, and others to it, and descriptors of
 * such windows: stores there are lost, loads return ones, forever.
 */
void sim_windows_end(unsigned host);
void sim_windows_start(void);
/* Is descriptor @fd, of a resource of host @to, which a program of @from has, cut? */
bool sim_window_ended(int fd, unsigned from, unsigned to);
int sim_world_reserve(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret);
int sim_world_map(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset);
int sim_world_map_ones(struct sio_world *w, void *at, size_t len);
int sim_world_map_aside(struct sio_world *w, void *at, size_t len, void **ret);
int sim_world_map_back(struct sio_world *w, void *aside, void *at, size_t len);
int sim_world_pages_adopt(struct sio_world *w, void *at, size_t len, int fd);
int sim_world_pages_release(struct sio_world *w, void *at, size_t len, int fd);
void sim_world_unmap(struct sio_world *w, void *at, size_t len);
void sim_space_free(struct sim_proc *p);
/* Zeroed memory of the running program's own, which it may register; accessible by io.h only. */
void *sim_pages_new(size_t len);
void sim_pages_free(void *at, size_t len);
/* The room's memory: operations of struct emu_ops. */
int sim_mem_new(void *ctx, const char *name, uint64_t size, struct emu_mem *ret);
int sim_mem_seal(void *ctx, struct emu_mem *m);
void sim_mem_zero(void *ctx, const struct emu_mem *m);
void sim_mem_ones(void *ctx, const struct emu_mem *m);
void sim_mem_free(void *ctx, struct emu_mem *m);
/* The host for which the room makes memory and interrupts from now on. */
extern unsigned sim_room_host;

/* ---- edge/cluster.c ---- */
struct sim_cluster {
	struct sio_topology *topology;
	struct emu_room *room;
	uint64_t faults, fatal; /* of devices: told by the room; fatal status */
	uint64_t daemons_fatal; /* daemons that could not go on */
};
extern struct sim_cluster *sim_cluster;

/*
 * Hosts outlive their daemon, as with smartio.ko: to be set before sim_cluster_start(). They have
 * no adapters.
 */
extern bool sim_outliving;
/* The room does not check its tables, as in a release build. */
extern bool sim_unchecked;

void sim_cluster_start(const char *topology_text);
void sim_cluster_stop(void);
static inline unsigned sim_hosts(void)
{
	return sim_cluster->topology->n_hosts;
}
uint32_t sim_node(unsigned host);
unsigned sim_host_of(uint32_t node);
/* Does the host's daemon serve clients? */
bool sim_host_ready(unsigned host);
/* The host crashes, its programs die. Not from a coroutine. */
void sim_host_crash(unsigned host);
/* SIGKILL of the daemon alone, where hosts outlive it; and the start of another one. */
void sim_daemon_kill(unsigned host);
void sim_daemon_start(unsigned host);
/* Pulls a drive out of its slot, or puts it back. Return: false: it is in that state already. */
bool sim_drive_move(unsigned host, unsigned device, bool in);
/* A physical function was reset, which takes its virtual ones away: as if they were pulled out. */
void sim_functions_gone(uint32_t physical);
/* When the drive was last pulled out; 0: never. */
uint64_t sim_drive_pulled(uint32_t fdid);
/* The daemon ended by itself: the host crashes, or the daemon is started again. */
void sim_daemon_lost(unsigned host);
/*
 * As for programs of the live cluster that were not started by "smartio run": a crash does not kill
 * them.
 */
extern bool sim_programs_outlive_hosts;
/* Has the host not crashed? */
bool sim_host_alive(unsigned host);
/* Is everything on the host gone? Then it can be booted, with another layout of its addresses. */
bool sim_host_off(unsigned host);
void sim_host_boot(unsigned host);
/* How often the host was booted: earlier contents of its memory and drives are lost. */
unsigned sim_host_boots(unsigned host);
/* The time of the host's clocks: they differ, and jump forward in sim_clock_jump(). */
uint64_t sim_host_clock(unsigned host);
uint64_t sim_from_clock(unsigned host, uint64_t when);
void sim_clock_jump(unsigned host, uint64_t ns);
struct sio_list_entry;
/* Calls @fn for every object that a host's port holds. */
void sim_port_each(unsigned host, void (*fn)(void *arg, const struct sio_list_entry *e), void *arg);
/*
 * The number of messages to and from the port so far, while none is in flight. 0: one is, or the
 * port is down.
 */
uint64_t sim_port_quiet(unsigned host);
/* Does a process have the owner's descriptor, or is it in flight? */
bool sim_owner_held(unsigned host, uint64_t owner);
/* Called when the room reports an access of a device or engine that it refused; NULL. */
struct sio_evt_fault;
extern void (*sim_on_refusal)(unsigned host, const struct sio_evt_fault *fault);
/* Called when a port is about to carry out a RESET. */
extern void (*sim_on_reset)(unsigned host, const struct sio_req_reset *req);
/* Free bytes of the host's memory, as its port reports them. */
uint64_t sim_port_ram_free(unsigned host);
/* How many objects of one SIO_KIND_* a host's port holds. */
unsigned sim_port_count(unsigned host, uint32_t kind);

/* ---- edge/access.c ---- */
/* The hardware of a seed; or, if not NULL, that of an experiment. */
struct fabric_params;
extern const struct fabric_params *sim_hardware;

/* ---- edge/client.c ---- */
/* Is a connection of such a client open, to the daemon that runs now? */
bool sim_client_lives(unsigned host, uint64_t client);
/*
 * Called for the messages between programs and their daemon; NULL: not called. The first sees what
 * a program sends, and may change it; the second answers as they are sent; the third packets as the
 * program takes them.
 */
struct sio_msg;
struct sim_ears {
	void (*said)(struct sim_proc *p, uint64_t client, void *msg, size_t len);
	void (*answered)(struct sim_proc *p, uint64_t client, const struct sio_msg *rep);
	void (*heard)(struct sim_proc *p, const void *msg, size_t len);
};
extern const struct sim_ears *sim_ears;

/* ---- edge/peer.c ---- */
/* The connection of two daemons breaks, as by a reset. */
void sim_peer_cut(unsigned a, unsigned b);
/*
 * No path is left between the hosts: what they borrow of each other ends, though the daemons are
 * still connected.
 */
void sim_peer_unlinked(unsigned a, unsigned b);
/*
 * A path between the two is lost, the last or not: what was borrowed over it is lost. Return: how
 * often.
 */
void sim_path_gone(unsigned a, unsigned b);
uint64_t sim_paths_gone(unsigned a, unsigned b);
/* Are their daemons connected, as both know, with no message in flight between them? */
bool sim_peer_settled(unsigned a, unsigned b);
/* How often the two lost each other, or all paths; for one host: how often it booted. */
uint64_t sim_peer_breaks(unsigned a, unsigned b);
/* When two hosts last lost each other, or a path to each other; 0: never. */
uint64_t sim_peer_lost_last(unsigned a, unsigned b);
/* Messages between daemons take up to this long; 0: the usual time. */
extern uint64_t sim_peer_delay;

/* ---- edge/room.c ---- */
/* The number of requests to any port for something new until one fails; 0: none does. */
extern uint64_t sim_port_fail_in;
/* The number of answers of ports until one before whose delivery it is called; 0: never. */
extern uint64_t sim_unheard_in;
extern void (*sim_on_unheard)(void);
/* Something happened: devices step, often at first. */
void sim_room_kick(void);
/* Something was stored where a device polls: it steps soon. */
void sim_room_look(void);

#endif
