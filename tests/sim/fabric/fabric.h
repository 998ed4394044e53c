/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PCIe as it is: what programs, devices and DMA engines of the simulator do to memory, registers
 * and doorbells, and when others see it. docs/simulation.md tells the rules.
 *
 *   space.c   memory, and the addresses by which programs and room know it: none can be
 *             dereferenced
 *   path.c    posted writes on their way: a queue per path
 *   past.c    what memory held a moment ago, for loads that were done early
 *   core.c    a processor: store buffer, write combining, loads
 *   act.c     devices, DMA engines, the room: whose access it is, and when it is done
 *   hook.c    the accessors of smartio/io.h
 *   timing.c  how long things take
 */
#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fabric/chance.h"
#include "core/topology.h"
#include "fabric/timing.h"

#define FABRIC_LINE 64u
#define FABRIC_PAGE 4096u
#define FABRIC_HOSTS 64u
#define FABRIC_PIECE 256u /* most bytes of one posted write */

struct sim_proc;
struct fabric_core;
struct fabric_post;

/* ---- fabric/space.c ---- */
enum fabric_kind {
	FABRIC_RAM,	 /* nobody looks at it unasked */
	FABRIC_REGISTER, /* registers, doorbells */
	FABRIC_BAR,	 /* memory of a device, where nobody looks unasked either */
	FABRIC_RING,	 /* memory that a DMA engine looks at */
	FABRIC_STATUS,	 /* a host's status page */
};

struct fabric_mem {
	struct fabric_mem *prev, *next;
	unsigned refs, host;
	unsigned in; /* of a device: the chassis that it is in, as the topology has it */
	enum fabric_kind kind;
	bool sealed;
	bool freed; /* by the room: it is nobody's any more */
	bool gone;  /* with its host or its device: what is in flight to it ends nowhere */
	const char *name;
	uint64_t number; /* counts all */
	uint64_t size;
	/*
	 * Each exclusive-ored with @flip, so that zeros, which cost nothing until somebody writes
	 * there, may stand for ones: fabric_mem_get(), fabric_mem_put().
	 */
	uint8_t *bytes;
	uint8_t flip;
	uint64_t stores; /* done so far */
};

static inline void fabric_flip(uint8_t *bytes, size_t len, uint8_t flip)
{
	for (size_t i = 0; flip && i < len; i++)
		bytes[i] ^= flip;
}

static inline void fabric_mem_get(const struct fabric_mem *m, uint64_t offset, void *buf,
				  size_t len)
{
	memcpy(buf, m->bytes + offset, len);
	fabric_flip(buf, len, m->flip);
}

static inline void fabric_mem_put(struct fabric_mem *m, uint64_t offset, const void *buf,
				  size_t len)
{
	memcpy(m->bytes + offset, buf, len);
	fabric_flip(m->bytes + offset, len, m->flip);
}

/* Is the memory a device's, not the memory of its host? */
static inline bool fabric_is_device(const struct fabric_mem *m)
{
	return m->kind == FABRIC_REGISTER || m->kind == FABRIC_BAR;
}

/* Rings of each host's DMA engines. */
struct fabric_rings {
	unsigned open;	 /* that the room has */
	uint64_t stores; /* into all of them so far */
};
extern struct fabric_rings fabric_rings[FABRIC_HOSTS];

/* What an address refers to. */
struct fabric_view {
	struct fabric_mem *mem; /* NULL: reads as ones, stores vanish */
	uint64_t offset;
};

/*
 * Makes the model of @t's cluster, empty, with random numbers from @seed; @p NULL: the default
 * parameters.
 */
void fabric_start(const struct sio_topology *t, const struct fabric_params *p, uint64_t seed);
void fabric_end(void);
/* Counts starts; another number after the end. */
uint64_t fabric_model(void);
/*
 * The model handles the signals of bare dereferences, from the first start on; to be called again
 * if others took them.
 */
void fabric_guard(void);
/* Called for crashes at addresses that are not the arena's; NULL: not called. */
extern void (*fabric_on_crash)(int sig);
/*
 * Allocates memory in @host, zeroed, with one reference; @name as the room calls it. *ret_at: the
 * room's view.
 */
struct fabric_mem *fabric_mem_new(unsigned host, const char *name, uint64_t size, void **ret_at);
/* Ends the room's view. */
void fabric_mem_close(void *at);
/* All of it reads as zeros, or ones, from now on; what is still on its way there arrives after. */
void fabric_mem_zero(struct fabric_mem *m);
void fabric_mem_ones(struct fabric_mem *m);
/* From now on only the room writes to the memory. */
void fabric_mem_seal(struct fabric_mem *m);
void fabric_mem_ref(struct fabric_mem *m);
void fabric_mem_unref(struct fabric_mem *m);
/* Addresses of a process. Reserved addresses refer to nothing until they are mapped. */
void *fabric_reserve(const struct sim_proc *p, size_t len);
void fabric_map(void *at, size_t len, struct fabric_mem *m, uint64_t offset, bool write);
void fabric_map_ones(void *at, size_t len);
/* From now on @to refers to what @from refers to, and @from to nothing. */
void fabric_move(void *from, void *to, size_t len);
void fabric_unmap(void *at, size_t len);
#define FABRIC_ARENA (1ull << 44) /* bytes of addresses */
extern uint8_t *fabric_arena;	  /* fabric/space.c's own; NULL before the first start */
static inline bool fabric_is_ours(const volatile void *at)
{
	return fabric_arena && (uintptr_t)at - (uintptr_t)fabric_arena < FABRIC_ARENA;
}
/*
 * The target of @len bytes at @at, within a page. Ends the run if there is none or it may not be
 * written.
 */
struct fabric_view fabric_look(const volatile void *at, size_t len, bool write);
/* The memory that is mapped at @at; NULL: nothing, or ones. */
const struct fabric_mem *fabric_mem_at(const void *at);
/* Describes a target: "segment 12 of host 1 + 0x40", in a buffer of its own. */
const char *fabric_where(const struct fabric_view *v);

/* ---- fabric/path.c ---- */
/* Posted writes, and interrupts among them, in order. */
struct fabric_queue {
	struct fabric_post *first, **last;
	uint64_t last_sent, last_due;
	uint64_t number;
	size_t heap; /* place in the heap + 1; 0: empty */
	void (*arrive)(struct fabric_queue *q, struct fabric_post *post);
	struct fabric_core *core;
};

struct fabric_post {
	struct fabric_post *next;
	struct fabric_mem *mem;
	uint64_t offset;
	uint64_t sent; /* it left whoever sent it: what pushes, pushes it */
	uint64_t due;  /* it arrives, if nothing pushes it before */
	uint32_t len;
	unsigned from; /* requester */
	unsigned host; /* where it goes to */
	int fd;	       /* an event descriptor to write to: an interrupt; -1: a write */
	uint8_t data[FABRIC_PIECE];
};

/* Requesters: host h is number h, with its DMA engines; devices follow. */
unsigned fabric_device_requester(const struct sio_topo_device *d);
void fabric_paths_start(const struct sio_topology *t);
void fabric_paths_end(void);
struct fabric_post *fabric_post_new(struct fabric_mem *m, uint64_t offset, const void *data,
				    size_t len);
void fabric_post_free(struct fabric_post *post);
void fabric_queue_init(struct fabric_queue *q,
		       void (*arrive)(struct fabric_queue *q, struct fabric_post *post));
/* Appends to @q; @sent and @due are no earlier than those of the last entry. */
void fabric_queue_add(struct fabric_queue *q, struct fabric_post *post, uint64_t sent,
		      uint64_t due);
/* Delivers the first entry now; or all that were sent until @when. */
void fabric_queue_take(struct fabric_queue *q);
void fabric_queue_push(struct fabric_queue *q, uint64_t when);
/* Drops the entries that would be sent after @when. */
void fabric_queue_cut(struct fabric_queue *q, uint64_t when);
void fabric_arrive(uint64_t now);
extern uint64_t fabric_next_due; /* fabric/path.c's own */
/* Delivers all that is due until @now, in order of time. */
static inline void fabric_settle(uint64_t now)
{
	if (fabric_next_due <= now)
		fabric_arrive(now);
}
struct fabric_queue *fabric_path(unsigned requester, unsigned host);
/* Puts @post on its path: it leaves at @sent or later. Return: when it arrives. */
uint64_t fabric_path_post(unsigned requester, struct fabric_post *post, uint64_t sent);
/* Sends an interrupt behind all that. Takes a descriptor of its own. */
void fabric_path_signal(unsigned requester, unsigned host, int fd, uint64_t sent);
/* Delivers what a read pushes: all of @requester's writes to @host sent until @when. */
void fabric_path_read(unsigned requester, unsigned host, uint64_t when);
/* Delivers what the answer to a read of @from's registers pushes: its devices' writes to @to. */
void fabric_path_answer(unsigned from, unsigned to, uint64_t when);
/* Delivers everything in flight to @host. */
void fabric_path_all(unsigned host, uint64_t when);
/* Drops what @requester would send after @when. */
void fabric_paths_cut(unsigned requester, uint64_t when);
/* What @requester has sent until @when arrives at @when at the latest, wherever it goes. */
void fabric_paths_hasten(unsigned requester, uint64_t when);
/* Called when a device's write arrives in memory that was freed meanwhile; NULL. */
extern void (*fabric_on_freed)(const struct fabric_post *post);
/* Called when a drive reads or writes, with its own addresses; NULL. */
extern void (*fabric_on_dma)(const struct sio_topo_device *device, uint64_t at, size_t len,
			     bool write);
/* Called when that access has reached @mem; NULL. */
extern void (*fabric_on_reached)(const struct sio_topo_device *device, uint64_t at, size_t len,
				 const struct fabric_mem *mem);
/* Stores the bytes into memory. @at: since when they are there. */
void fabric_store(struct fabric_mem *m, uint64_t offset, const void *data, size_t len, uint64_t at);
/* @m is freed: it is no host's status page any more. */
void fabric_status_gone(const struct fabric_mem *m);
/* Does a link lead from @from to @to, as @from's status page says? */
bool fabric_is_joined(unsigned from, unsigned to);
/* Nanoseconds of a read of @len bytes of @m by @requester. */
uint64_t fabric_read_time(unsigned requester, const struct fabric_mem *m, size_t len);
extern struct fabric_params fabric_params;
/* Counts of stores and of delivered interrupts, and a hash over all of them in order. */
struct fabric_sum {
	uint64_t stores, interrupts, hash;
};
extern struct fabric_sum fabric_sum;
/* Stores into registers so far, of all runs. */
extern uint64_t fabric_register_stores;
extern uint64_t fabric_rng; /* fabric/path.c's own */
/* Draws from the model's own stream: 0 to n - 1. */
static inline uint64_t fabric_below(uint64_t n)
{
	return sim_draw(&fabric_rng) % n;
}

/* ---- fabric/past.c ---- */
void fabric_past_start(void);
void fabric_past_add(const struct fabric_mem *m, uint64_t offset, size_t len, uint64_t at);
/* The contents of @len bytes at @when. */
void fabric_past_read(const struct fabric_mem *m, uint64_t offset, void *buf, size_t len,
		      uint64_t when);

/* ---- fabric/core.c ---- */
enum { FABRIC_TO = 1, FABRIC_FROM, FABRIC_FULL }; /* barriers, as io.h numbers them */
struct fabric_core *fabric_core_new(unsigned host);
/* The processor stops: its stores still arrive. */
void fabric_core_free(struct fabric_core *c);
/* Loads within a line. */
void fabric_core_load(struct fabric_core *c, const struct fabric_view *v, void *buf, size_t len);
/* @streaming: the stores of a copy, in no order. */
void fabric_core_store(struct fabric_core *c, const struct fabric_view *v, const void *buf,
		       size_t len, bool streaming);
void fabric_core_barrier(struct fabric_core *c, int which);
/*
 * A call that has a locked instruction: of a lock, a descriptor, another thread. It orders loads
 * and stores, but not write-combined ones: those need a barrier of io.h.
 */
void fabric_core_sync(struct fabric_core *c);
/*
 * A locked compare and exchange of a word of the processor's own host's memory: @desired is there
 * from now on if @expected was; *ret_is: what was there.
 */
void fabric_core_exchange(struct fabric_core *c, const struct fabric_view *v, uint32_t expected,
			  uint32_t desired, uint32_t *ret_is);
/* The processor writes to an interrupt of @host by descriptor @fd. */
void fabric_core_signal(struct fabric_core *c, unsigned host, int fd);

/* ---- fabric/act.c ---- */
/* Whose accesses follow that no program makes: a requester's; FABRIC_NOBODY: the room's own. */
#define FABRIC_NOBODY (~0u)
void fabric_act(unsigned requester);
struct fabric_actor {
	unsigned who;
	bool far;	/* by PCIe: not its own registers */
	uint64_t clock; /* its own: ahead of all others' while it waits for what it reads */
	uint64_t hold;	/* it sends nothing before */
	struct fabric_mem *last; /* that it read */
	struct fabric_mem *sent; /* where its last write goes to */
	bool looks; /* it made a full barrier: its next read is of whether somebody waits */
};
extern struct fabric_actor fabric_actor;
/* Sends an interrupt to @host, behind what the acting requester wrote. */
void fabric_act_signal(unsigned host, int fd);
void fabric_act_load(const struct fabric_view *v, void *buf, size_t len);
void fabric_act_store(const struct fabric_view *v, const void *buf, size_t len);
void fabric_act_barrier(int which);
/* The requester copied @len bytes from what it read last: that took time. */
void fabric_act_copied(size_t len);

/* ---- fabric/hook.c ---- */
/* Called when a doorbell is rung there; NULL. */
extern void (*fabric_on_ring)(const struct fabric_view *v);

/* What the model needs from the code that runs programs and devices. */
struct fabric_access {
	struct fabric_core *(*core)(void); /* the running program's processor; NULL: none runs */
	void (*wait)(uint64_t ns); /* a program's access takes so long; others may run meanwhile */
	void (*ring)(void);	   /* a program is about to store to a register or a doorbell */
	void (*polled)(void);	   /* something was stored where a device or an engine looks */
	void (*settle)(uint64_t when); /* fabric_settle() is to be called at @when */
	void (*look)(uint64_t when);   /* the devices are to look at @when */
	void (*signal)(int fd);	       /* an interrupt arrives; closes @fd, too */
	void (*forget)(int fd);	       /* closes @fd */
	int (*dup)(int fd);
	uint64_t (*now)(void);
	const char *(*who)(void); /* for messages: who runs */
};
/* To be set before fabric_start(). */
extern const struct fabric_access *fabric_access;

#endif
