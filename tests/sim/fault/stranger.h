/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second user of the ports, beside the daemons, which knows what each answer must be.
 *
 *   stranger.c         the events of the fault; its objects are compared with the ports' lists
 *   stranger_owner.c   its objects, how they end; how it sends requests
 *   stranger_ask.c     requests: owners, memory, grants, windows, vectors
 *   stranger_dma.c     DMA channels; every byte that they copy is known
 *   stranger_group.c   multicast groups
 */
#ifndef SIM_STRANGER_H
#define SIM_STRANGER_H

#include "emu/machine/requests.h"
#include "fabric/fabric.h"
#include "run/run.h"
#include "smartio/uapi.h"

/* An object that a port holds for the stranger. */
struct thing {
	uint32_t kind; /* SIO_KIND_* */
	unsigned host;
	uint64_t id;
	uint64_t owner;		 /* of an owner: its parent; 0: none */
	uint64_t boot;		 /* sim_host_boots() when it was made */
	bool ended;		 /* its owner has; an owner: it has, but not all its objects */
	int fd;			 /* of a memory, a ring, or an owner without a parent; else -1 */
	unsigned refs;		 /* grants of a memory; DMA maps of a window */
	struct thing *source;	 /* of a grant: the memory; of a DMA range: the memory or window */
	struct thing *channel;	 /* of a DMA range */
	uint64_t offset, length; /* in the source; of a memory: 0, and its size */
	uint32_t access;
	unsigned adapter, peer, peer_adapter; /* of grants and windows; @adapter: of channels */
	uint64_t bus;			      /* address of grants, windows; memory: physical */
	uint64_t generation;
	uint8_t token[SIO_TOKEN];
	unsigned slot;			/* of a range */
	uint32_t tail;			/* of a channel: entries so far, each a transfer */
	uint8_t *bytes;			/* of a memory: the contents that it must have */
	bool member, published, sender; /* of group @group */
	unsigned group;
	struct thing *prev, *next;
};

/* A grant that has ended, which must not be mapped any more. */
struct old_grant {
	unsigned host, adapter, peer, peer_adapter;
	uint64_t bus, length, generation;
	uint8_t token[SIO_TOKEN];
};

struct stranger {
	uint64_t rng;
	struct thing *things;
	unsigned n_old;
	struct old_grant old[16];
	bool acting;	/* an answer of a port is for the stranger now */
	unsigned n_fds; /* copies of the descriptors of the last answer */
	int fds[SIO_PORT_MAX_FDS];
	int error;
	union {
		struct sio_evt h;
		struct sio_evt_error refusal;
		struct sio_evt_owner_new owner;
		struct sio_evt_alloc alloc;
		struct sio_evt_grant grant;
		struct sio_evt_map map;
		struct sio_evt_dma dma;
		struct sio_evt_dma_attach range;
		struct sio_evt_mcast group;
		struct sio_evt_requester_add requester;
		struct sio_evt_dmamap dmamap;
		struct sio_evt_irq_new irq;
		struct sio_evt_stats stats;
		uint64_t words[SIO_PORT_MAX_PACKET / 8];
	} answer;
};
extern struct stranger stranger;

/* ---- fault/stranger_owner.c ---- */
uint64_t stranger_draw(uint64_t n);
/* Draws an object of @kind for which @fits is true (NULL: any); NULL: there is none. */
struct thing *stranger_any(uint32_t kind, bool (*fits)(const struct thing *t, const void *arg),
			   const void *arg);
static inline bool stranger_is_on(const struct thing *t, const void *host)
{
	return t->host == *(const unsigned *)host;
}
struct thing *stranger_find(unsigned host, uint64_t id);
struct thing *stranger_new(uint32_t kind, unsigned host, uint64_t id, uint64_t owner);
/* The object has ended, and all that cannot exist without it. */
void stranger_gone(struct thing *t);
/* Records the end of an owner and of its objects, as the emulated hardware ends them. */
void stranger_owner_ends(struct thing *w);
/* Drops the records of all objects on hosts that have crashed. */
void stranger_forget_dead(void);
/*
 * Sends a request to a port; the answer is in stranger.answer. @errors: a list that ends with 0. If
 * it has errors the port must answer with one of them; else the request must succeed, or fail for
 * lack of room. Return: the error.
 */
int stranger_ask(unsigned host, void *req, size_t size, uint32_t op, const int *errors);
/* The errors of which a request must get one; none: it must not be refused. */
struct errors {
	int e[8];
	unsigned n;
};
static inline void errors_add(struct errors *s, bool wrong, int error)
{
	if (wrong && s->n < 7)
		s->e[s->n++] = error;
}
/* Draws a living owner of @host; 0: none. */
uint64_t stranger_owner(unsigned host);
bool stranger_lives(unsigned host, uint64_t owner);
/*
 * The owner in whose name a request about @t is sent: mostly its own, or 0, which is the daemon.
 * *ret_foreign: it is another one, so the request must be refused.
 */
uint64_t stranger_asker(const struct thing *t, bool *ret_foreign);
/* Sends the request @op, which ends object @id; @errors as in stranger_ask(). */
int stranger_end(unsigned host, uint32_t op, uint64_t id, uint64_t owner, const int *errors);
/* Ends an object of @kind on @host, if there is one; the owner as in stranger_asker(). */
void stranger_end_any(unsigned host, uint32_t kind, uint32_t op);
/* The path of window @map. */
struct emu_path *stranger_path(const struct thing *map);

/* ---- fault/stranger_ask.c, fault/stranger_dma.c, fault/stranger_group.c ---- */
void stranger_act(unsigned host);
void stranger_act_dma(unsigned host);
void stranger_act_group(unsigned host);
/* Checks that all memory has its expected contents. */
void stranger_compare_memory(void);
/*
 * Attaches @target to @channel; @req has offset, length and access. NULL: it was refused, as it had
 * to be, or there is no room.
 */
struct thing *stranger_attach(struct thing *channel, struct thing *target, uint64_t owner,
			      struct sio_req_dma_attach *req);
/* Has a DMA engine copy. Return: the result in the ring: 0 or -errno. */
int stranger_transfer(struct thing *channel, const struct sio_dma_entry *entry);

#endif
