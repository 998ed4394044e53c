/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Somebody who asks the ports of all hosts beside their daemons, and knows what each answer must
 * be.
 *
 *   stranger.c         when; what it has is compared with what ports tell
 *   stranger_owner.c   what it has, and how that ends
 *   stranger_ask.c     what it asks: owners, memory, grants, windows
 *   stranger_dma.c     DMA engines and drives that go there: every byte is known
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
	uint64_t owner;		 /* an owner: its parent; 0: none */
	uint64_t boot;		 /* sim_host_boots() of then */
	bool ended;		 /* its owner has; an owner: it has, and something is left */
	int fd;			 /* of an owner that is no child, a memory, a ring; -1 */
	unsigned refs;		 /* grants of a memory; DMA maps of a window */
	struct thing *source;	 /* of a grant: its memory; of a range: memory or window */
	struct thing *channel;	 /* of a range */
	uint64_t offset, length; /* in the source; memory: its size */
	uint32_t access;
	unsigned adapter, peer, peer_adapter; /* of grants and windows; adapter: of channels */
	uint64_t bus;			      /* address: of grants and windows; memory: physical */
	uint64_t generation;
	uint8_t token[SIO_TOKEN];
	unsigned slot;			/* of a range */
	uint32_t tail;			/* of a channel: entries, each a transfer */
	uint8_t *bytes;			/* of a memory: what must be there */
	bool member, published, sender; /* of group @group */
	unsigned group;
	struct thing *prev, *next;
};

/* A grant that has ended, to be tried again. */
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
	bool acting;	/* what ports say now is for us */
	unsigned n_fds; /* of the last answer: copies of our own */
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
/* Ends an owner's objects as the room does. */
void stranger_owner_ends(struct thing *w);
/* Drops all objects on hosts that have crashed. */
void stranger_forget_dead(void);
/*
 * Sends a request to a port; stranger.answer is its answer. Return: its error. @errors, which 0
 * ends: one of them must be the answer; none: it succeeds, or lacks room.
 */
int stranger_ask(unsigned host, void *req, size_t size, uint32_t op, const int *errors);
/* The errors that a request must get, one after the other. */
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
/* The owner that sends a request about @t: its own, most times. *ret_foreign: another one. */
uint64_t stranger_asker(const struct thing *t, bool *ret_foreign);
/* An object of the port must end by @op. */
int stranger_end(unsigned host, uint32_t op, uint64_t id, uint64_t owner, const int *errors);
/* Ends an object of @kind on @host, if there is one: its owner asks, or one that may not. */
void stranger_end_any(unsigned host, uint32_t kind, uint32_t op);
struct emu_path *stranger_path(const struct thing *map);

/* ---- fault/stranger_ask.c, fault/stranger_dma.c, fault/stranger_group.c ---- */
void stranger_act(unsigned host);
void stranger_act_dma(unsigned host);
void stranger_act_group(unsigned host);
/* Checks that all memory has its expected contents. */
void stranger_compare_memory(void);
/* @req: which part, for what. NULL: it is refused, as it must be, or there is no room. */
struct thing *stranger_attach(struct thing *channel, struct thing *target, uint64_t owner,
			      struct sio_req_dma_attach *req);
/* Lets a DMA engine copy. Return: its status word. */
int stranger_transfer(struct thing *channel, const struct sio_dma_entry *entry);

#endif
