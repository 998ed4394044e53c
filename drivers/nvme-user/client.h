/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the client share. */
#ifndef NVME_USER_CLIENT_H
#define NVME_USER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "protocol.h"
#include "smartio/nvme.h"

/*
 * The doorbells, as mapped since a reset: the next one takes them away. Then they lead nowhere, and
 * are kept for the queues of that time, which may be about to ring.
 */
struct sio_nvme_doorbells {
	sci_map_t map;
	volatile uint8_t *at;
	const volatile uint32_t *sleeps; /* smartio_map_sleep_word(); NULL: never mind */
	uint32_t generation;
	unsigned users; /* queues; and the client, of the last ones */
};

struct smartio_nvme {
	struct sio_nvme_device d;
	sci_remote_segment_t bar;
	struct sio_nvme_doorbells *doorbells; /* the last ones; under @lock */
	const volatile uint32_t *generation;  /* of the device, a word of the library's */
	struct sio_nvme_meta meta, scratch;   /* what the manager tells; what is being read of it */
	struct smartio_nvme_namespace *ns;    /* as it was at the open, like the three below */
	uint32_t n_ns, n_pairs, stride, formats;
	/* The way to the manager; under @lock. */
	sci_local_data_interrupt_t reply;
	unsigned reply_number;
	sci_remote_data_interrupt_t manager; /* of meta.instance; NULL: not connected */
	uint64_t sequence;
	uint8_t message[8192], request[SIO_NVME_REQ_LARGEST];
	const void *request_data; /* that goes behind the request */
	unsigned patience_ms;	  /* with the manager, for one request; 0: as always */
	/* What is open under this; under @lock. */
	struct smartio_nvme_queue *queues;
	struct smartio_nvme_buffer *buffers;
	struct smartio_nvme_lease *leases;
	struct sio_nvme_mem *spare; /* queue memory to use again */
	/* Closed, but the drive may still use what is theirs: no manager could delete them. */
	struct smartio_nvme_queue *kept;
	int lock;
};

struct smartio_nvme_lease {
	struct smartio_nvme *n;
	struct smartio_nvme_lease_info info;
	uint32_t generation; /* when it was given: a reset ends it */
	struct smartio_nvme_lease *next;
};

struct smartio_nvme_buffer {
	uint64_t ioaddr;
	size_t size;
	struct smartio_nvme *n;
	struct sio_nvme_mem mem;
	struct smartio_nvme_buffer *next;
};

/*
 * A command. @buffer NULL: not in flight. A FLUSH has sio_nvme_no_buffer. Its command id is its
 * number in the lower bits and counts its uses in the others, so that a completion that comes twice
 * is not taken for the next command's.
 */
struct sio_nvme_slot {
	struct smartio_nvme_buffer *buffer;
	void *cookie;
	struct sio_nvme_slot *next; /* free one */
	union {
		uint64_t first; /* word of its command but for the opcode, as the drive reads it */
		struct {
			uint16_t opcode; /* 0 */
			uint16_t cid;	 /* little-endian */
			uint32_t nsid;
		};
	};
};
extern struct smartio_nvme_buffer sio_nvme_no_buffer;
/* Of a command whose data lies in several: they stand in the queue's @held. */
extern struct smartio_nvme_buffer sio_nvme_many_buffers;

#define SIO_NVME_PATIENT 1000u /* empty polls before a yield, at first */

struct smartio_nvme_queue {
	/* Of each command. */
	struct sio_nvme_slot *free; /* last in first out; NULL: none, or the queue is dead */
	struct smartio_nvme *n;
	uint64_t blocks, block_size; /* blocks: the end of the namespace, or of the lease */
	uint32_t plain_blocks;	     /* most that need no look at @first: 0, or max_blocks */
	uint32_t depth;
	volatile uint8_t *sq, *sq_end, *sqe; /* begin, end, next entry to fill */
	volatile uint8_t *rung;		     /* up to here the drive knows them */
	volatile uint8_t *cq, *cq_end, *cqe; /* begin, end, next one to come */
	uint64_t expected; /* SQ id and phase of the next completion, where they stand in it */
	struct sio_nvme_slot *slot;
	uint32_t slot_mask; /* the lower bits of command ids, times the size of a slot */
	uint16_t use;	    /* what a command id grows by with each use of its slot */
	int error;	    /* -errno: the queue is dead */
	volatile uint32_t *sq_doorbell, *cq_doorbell;
	const volatile uint32_t *generation_word;
	uint32_t generation;	  /* when the queues were made */
	uint32_t plain;		  /* the same; no generation at all if rings must look at @sleeps */
	uint32_t empty, patience; /* empty polls in a row; so many before each that yields */
	uint32_t probes;	  /* waits that were longer than the patience */
	bool flushes;		  /* completions may come before their data: took() */
	struct smartio_nvme_counters counters;
	uint32_t list_shift;	/* log2 of the bytes of PRP list per command */
	volatile uint8_t *list; /* of command id 0 */
	uint64_t list_ioaddr;
	/* ---- end of the data path ---- */
	uint64_t key;
	uint32_t max_blocks;
	uint64_t first;				/* block that it may use: 0, or of its lease */
	const struct smartio_nvme_lease *lease; /* NULL: none */
	uint32_t id, nsid, entries, block_shift, max_transfer;
	struct sio_nvme_mem *sq_mem, *cq_mem;
	struct sio_nvme_doorbells *doorbells; /* NULL: none yet */
	sci_local_interrupt_t interrupt;      /* NULL: none */
	unsigned vector;		      /* of the drive, that triggers it; 0: none */
	struct smartio_nvme_buffer *bounce;   /* of the blocking helpers; NULL until used */
	struct smartio_nvme_buffer **held;    /* SMARTIO_NVME_PIECES for each command, or NULL */
	struct smartio_nvme_queue *next;
};

/* The library has no mutex of its own: taken for control calls, never on the data path. */
void sio_nvme_lock(struct smartio_nvme *n);
void sio_nvme_unlock(struct smartio_nvme *n);

/* client.c: the namespaces that n->meta tells of become the client's. Under the lock. */
int sio_nvme_copy_namespaces(struct smartio_nvme *n);

/* doorbell.c */
/* Connect BAR 0 and map the doorbells of as many queue pairs as there are. */
int sio_nvme_doorbells_open(struct smartio_nvme *n);
/* No queue is left. Half-built is fine. */
void sio_nvme_doorbells_close(struct smartio_nvme *n);
/*
 * Under the lock. Those of @q, which has its number and generation. The queue is dead if it is of
 * before a reset.
 */
int sio_nvme_doorbells_take(struct smartio_nvme_queue *q);
/* @b may be NULL. */
void sio_nvme_doorbells_put(struct sio_nvme_doorbells *b);

/* wait.c: for a manager that is on its way, until a deadline. */
struct sio_nvme_wait {
	uint64_t deadline;
	unsigned pause_ms; /* the next one, unless an event ends it */
};
/* @timeout_ms: UINT32_MAX: for ever. */
void sio_nvme_wait_start(struct sio_nvme_wait *w, uint32_t timeout_ms);
/*
 * Sleep until it is time for another look. @device: its events end the sleep, and are taken; NULL:
 * not borrowed yet. Return: false: the deadline has passed, nothing was done.
 */
bool sio_nvme_wait_more(struct sio_nvme_wait *w, sci_smartio_device_t device);

/* Take the events of @device that there are. */
void sio_nvme_take_events(sci_smartio_device_t device);

/* turn.c: for a queue pair that somebody gives back. */
struct sio_nvme_turn {
	sci_local_data_interrupt_t notice; /* told by the manager; NULL: no wait */
	unsigned number;
	uint64_t deadline;
};
/* @timeout_ms: 0: no wait; UINT32_MAX: for ever. Only the error of an interrupt that cannot be. */
int sio_nvme_turn_open(struct smartio_nvme *n, uint32_t timeout_ms, struct sio_nvme_turn *t);
void sio_nvme_turn_close(struct sio_nvme_turn *t);
/*
 * Under the lock, which is open while it sleeps; the manager has refused a queue pair and knows
 * t->number. Return: 1: ask again; 0: the deadline has passed; -ENOTCONN: no manager; -ENODEV.
 */
int sio_nvme_turn_wait(struct smartio_nvme *n, const struct sio_nvme_turn *t);

/* manager_link.c */
/* Read what the manager tells of itself into n->meta. -ENOTCONN: none serves; nothing changed. */
int sio_nvme_find_manager(struct smartio_nvme *n);
/*
 * Ask the manager and wait for the reply; @req's head is filled in. Under the lock.
 * @ret_sent: whether the manager may have got it; may be NULL.
 * -ENOTCONN: no manager; -ETIMEDOUT: it does not answer; else what it says, with its text.
 */
int sio_nvme_ask(struct smartio_nvme *n, struct sio_nvme_req *req, struct sio_nvme_rep *rep,
		 bool *ret_sent);
/* No manager serves: wait a moment for one that stands by. Whether one serves. */
bool sio_nvme_await_successor(struct smartio_nvme *n);
/* The manager that serves, or one that takes the place of a dead one in a moment. -ENOTCONN. */
int sio_nvme_find_serving(struct smartio_nvme *n);
void sio_nvme_unlink_manager(struct smartio_nvme *n);

/* io.c: whether the device was reset since the queues were made; then the queue is dead. */
bool sio_nvme_queue_stale(struct smartio_nvme_queue *q);
/* Commands that were submitted and not completed; of a dead queue, when it died. */
uint32_t sio_nvme_in_flight(const struct smartio_nvme_queue *q);
uint64_t sio_nvme_expected(uint32_t id, bool phase);
/* Has the next completion come? A look; it is not taken. */
bool sio_nvme_completion_waits(const struct smartio_nvme_queue *q);
/* Why the queue is dead, as an error with its text. */
int sio_nvme_queue_dead(struct smartio_nvme_queue *q);
/* interrupt.c, under the lock. Half-made is fine for the end. */
int sio_nvme_interrupt_open(struct smartio_nvme_queue *q);
void sio_nvme_interrupt_close(struct smartio_nvme_queue *q);
/* The error of blocks that the queue may not use. */
int sio_nvme_out_of_range(const struct smartio_nvme_queue *q, uint64_t lba, uint64_t blocks);
/* The same as smartio_nvme_submit() does, unchecked; there is a free command. */
void sio_nvme_put(struct smartio_nvme_queue *q, uint32_t op, uint64_t lba, uint64_t nlb,
		  uint64_t prp1, uint64_t prp2, struct smartio_nvme_buffer *b, void *cookie);
/* blocking.c: may the helpers use the queue for these bytes? */
int sio_nvme_check_bytes(struct smartio_nvme_queue *q, uint64_t offset, uint64_t bytes);
/* Until something completes, or the drive has been silent for too long. */
int sio_nvme_wait_some(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
		       unsigned max);
/* Memory for the helpers' data. */
int sio_nvme_get_bounce(struct smartio_nvme_queue *q);

/*
 * prp.c: both pointers of a transfer in @n pieces, which are as smartio_nvme_submit_commands() asks
 * for them.
 */
void sio_nvme_prp_pieces(struct smartio_nvme_queue *q, uint32_t cid,
			 const struct smartio_nvme_piece *piece, uint32_t n, uint64_t *ret_prp1,
			 uint64_t *ret_prp2);
/* The second pointer of a transfer of @bytes from @addr on that does not fit one page. */
uint64_t sio_nvme_prp2(struct smartio_nvme_queue *q, uint32_t cid, uint64_t addr, uint64_t bytes);
/* Bytes of list that a transfer of @max_transfer bytes may need, as a power of two's log2. */
uint32_t sio_nvme_prp_shift(uint32_t max_transfer);

/* lease.c: give all back, as far as a manager can be told. */
void sio_nvme_leases_close(struct smartio_nvme *n);

/* buffer.c, under the lock: end it; what the drive may still use is left to SCITerminate(). */
void sio_nvme_buffer_end(struct smartio_nvme_buffer *b);
/* queue.c, under the lock: the same for the kept ones; those that the drive has forgotten are
 * freed. */
void sio_nvme_queues_forget(struct smartio_nvme *n, bool all);

#endif
