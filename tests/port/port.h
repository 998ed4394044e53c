/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of the port: what each request is answered with, in whatever world. A row takes a good
 * request of its operation, changes one field, and says what must come back. Each row has things of
 * its own to ask about, made again; after each, nothing of them may be left.
 */
#ifndef TESTS_PORT_PORT_H
#define TESTS_PORT_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smartio/uapi.h"

/* How a world is reached. Two hosts: 0 has a device, both have adapter 0, joined with each other.
 */
struct port_transport {
	bool one_host; /* there is no host 1, and no adapter */
	/* Return: 0 and a world, all hosts up; -errno. */
	int (*open)(const char *where, void **ret);
	/* Return: 0: there will be an answer; -errno: refused without one. */
	int (*send)(void *world, unsigned host, const void *req, size_t len, const int *fds,
		    unsigned n_fds);
	/*
	 * The next event of @host, at most @size bytes; the caller closes @fds. Return: its length;
	 * 0: the world cut us off; -ETIMEDOUT: nothing came for seconds.
	 */
	long (*event)(void *world, unsigned host, void *evt, size_t size, int *fds,
		      unsigned *ret_fds);
	/* Descriptors that the world itself holds; -1: cannot be told. */
	long (*descriptors)(void *world);
	/* Connect @host again after it was cut off. */
	int (*reopen)(void *world, unsigned host);
	/* Return: 0: the world ended in order and left nothing behind. */
	int (*close)(void *world);
};
extern const struct port_transport port_socket, port_device, port_vfio;

union port_packet {
	struct sio_req req;
	struct sio_evt evt;
	struct sio_evt_error error;
	uint64_t words[SIO_PORT_MAX_PACKET / 8];
};

/* Things that a field can name. "busy": something refers to it. */
enum port_thing {
	T_NUMBER, /* nothing: the row's value is a number */
	T_OWNER,
	T_OTHER_OWNER,
	T_ENDED_OWNER, /* keeps a grant in quarantine, and a DMA mapping */
	T_MEM,	       /* with PORT_COOKIE */
	T_MEM_BUSY,
	T_GRANT,
	T_GRANT_ENDED,
	T_MAP,
	T_MAP_BUSY,
	T_REQUESTER,
	T_REQUESTER_BUSY,
	T_DEVICE,
	T_BAR,
	T_DMAMAP,
	T_DMAMAP_ENDED,
	T_IRQ,
	T_IRQ_BUSY,
	T_WATCH,
	T_CHANNEL,
	T_RANGE,
	T_MIRROR,   /* a view of registers, read-only */
	T_PEER_BUS, /* of a grant of host 1 to host 0 */
	T_PEER_GENERATION,
	T_NODE0,
	T_NODE1,
	T_COUNT
};

struct port_row {
	const char *what;
	uint32_t op;
	uint32_t offset, width; /* of the field; width 0: nothing is changed */
	uint64_t value;		/* added to the thing's number */
	enum port_thing thing;
	int error;	  /* 0 or -errno */
	const char *text; /* must be in the refusal; may be NULL */
	uint32_t reason;  /* SIO_OUT_OF_* that it tells */
};
extern const struct port_row port_rows[];
extern const unsigned port_n_rows;

/* A row that smartio.ko or VFIO answers otherwise: one of two ways, by the IOMMU. */
struct port_other {
	const char *what;
	int error, or_error;
};
/* Of smartio.ko, of VFIO; NULL: as all others do. */
const struct port_other *port_otherwise(const struct port_row *row);
const struct port_other *port_vfio_otherwise(const struct port_row *row);

struct port_world {
	const struct port_transport *t;
	/* What is answered otherwise than by the machine room; NULL: nothing is. */
	const struct port_other *(*otherwise)(const struct port_row *row);
	void *ctx;
	bool loop; /* one host whose adapter 0 leads to its adapter 1, which says it is host 1's */
	uint64_t cookie;
	uint64_t served; /* by its INFO */
	uint64_t thing[T_COUNT];
	uint64_t extra_mem; /* of the ended owner */
	uint64_t peer_mem, peer_grant;
	uint8_t token[SIO_TOKEN];
	uint64_t unasked;  /* events that were no answers */
	uint32_t news[64]; /* shim.c: their operations, while an answer was awaited */
	unsigned n_events;
	int owner_fd[4]; /* keep the owners of this row alive */
	unsigned n_owner_fds;
	char why[256]; /* of the first check that failed */
};

#define PORT_COOKIE 0x8000000300000007ULL /* what ALLOC has beside memory */

/* Ask and wait. Return: 0 or -errno of the answer; 1: a check failed, see w->why. */
int port_ask(struct port_world *w, unsigned host, union port_packet *req, size_t len,
	     union port_packet *answer, unsigned *ret_fds);
/* The answer to @cookie, behind events that nobody asked for. 0; 1: a check failed. */
int port_await(struct port_world *w, unsigned host, uint64_t cookie, union port_packet *answer,
	       unsigned *ret_fds);
/* What every answer must be; returns its error, or 1. */
int port_check_answer(struct port_world *w, const struct sio_req *req,
		      const union port_packet *answer, unsigned fds, unsigned *ret_fds);
/* A good request of @op; its size, or 0: the operation is unknown. */
size_t port_good(const struct port_world *w, uint32_t op, union port_packet *req);
uint32_t port_size(uint32_t op);
/* Make what rows can name, and end it all. Return: 0; 1: see w->why. */
int port_things_make(struct port_world *w);
int port_things_end(struct port_world *w);
/* Does the world serve @op? If not, rows expect no more than that it is refused. */
bool port_served(const struct port_world *w, uint32_t op);
/* What there is at both hosts, as a number that is equal for equal situations. */
int port_digest(struct port_world *w, uint64_t *ret);
/* watch.c: WATCH with good and bad descriptors. */
void port_watch(struct port_world *w);
/* events.c: descriptors that hostile programs hold. */
void port_events(struct port_world *w);
/* overflow.c: events that nobody reads. */
void port_overflow(struct port_world *w);
/* shim.c: what only smartio.ko serves. */
void port_shim(struct port_world *w);
/* vfio.c: what is asked of VFIO besides the table. */
void port_of_vfio(struct port_world *w);
/* shim_adapter.c: what goes through the adapters of a loop. */
void port_adapters(struct port_world *w);
/* shim_fault.c: each request while the kernel fails on demand. */
void port_failures(struct port_world *w);
/* One line of the protocol; forgets why the row failed. */
void port_report(struct port_world *w, const char *what);
int port_failed(struct port_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
