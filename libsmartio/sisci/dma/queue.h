/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA queues: a ring that the port's engine works through (docs/dma.md), one transfer at a time. A
 * transfer is any number of copies between segments of this program and segments it is connected
 * to.
 */
#ifndef SISCI_QUEUE_H
#define SISCI_QUEUE_H

#include "sisci/dma/life.h"
#include "sisci/segment/segment.h"
#include "smartio/uapi.h"

extern const struct sio_kind_ops sio_dma_queue_kind, sio_dma_channel_kind;

/* A slot of the queue, by which the engine reaches a segment. */
struct sio_dma_slot {
	uint64_t range; /* smartiod's; 0: free */
	uint32_t id;	/* smartiod's handle of the segment, and never another's */
	bool remote, bar;
	unsigned resumes; /* of the session, when it was attached */
	uint32_t slot;
	uint64_t first, length; /* of a BAR: the bytes that it reaches; else all */
	uint64_t used;		/* the transfer that did so last */
};

/* A callback of a transfer that has completed. */
struct sio_dma_call {
	struct sio_dma_call *next;
	sci_cb_dma_t callback;
	void *arg;
	sci_error_t status;
};

struct sio_dma_copy;

#define SIO_DMA_LONG (1u << 20) /* bytes: it may be worth to sleep while they are copied */

struct sio_dma_queue {
	struct sio_object o; /* parent: a virtual device */
	unsigned adapter, max_entries;
	struct sio_dma_ring *ring;
	size_t bytes;
	int doorbell, finished; /* descriptors */
	uint32_t state;		/* sci_dma_queue_state_t; written under the lock, read without */
	bool starting;		/* a thread is about to post */
	uint32_t tail, number;	/* entries and transfers that the engine was given */
	bool aborting;
	/*
	 * For an estimate of when a long transfer completes: its bytes, and when it was posted; 0:
	 * it is not long.
	 */
	uint64_t posted, begun;
	uint64_t ns_per_mib; /* of the last one; 0: nobody knows */
	bool watched;	     /* the event thread looks at @finished */
	unsigned waiters;    /* other threads do */
	/*
	 * The segments of the transfer under way, with references, and counted as their children.
	 */
	struct sio_object **users, *few[2];
	unsigned n_users;
	struct sio_dma_call *call;		 /* NULL: it has no callback */
	bool called;				 /* it has a callback: waiting is not for others */
	struct sio_dma_call *calls, **calls_end; /* of transfers that are over */
	struct sio_dma_queue *next_called;	 /* in the list of those, while it is listed */
	bool listed;
	/*
	 * API 1.x: copies that were enqueued; their segments are referenced, and counted as their
	 * children.
	 */
	struct sio_dma_copy *gathered;
	unsigned n_gathered, room_gathered;
	/* Copies that a thread has taken out to post them; NULL: none, or the engine has them. */
	const struct sio_dma_copy *posting;
	/* memory.c: the segment that stands in for memory of the program; NULL: none yet. */
	struct sio_local_segment *through; /* with a reference */
	uint8_t *through_at;
	size_t through_bytes;
	/* For the transfer under way: where its bytes are copied from that segment. */
	void *out; /* NULL: nowhere */
	size_t out_bytes;
	/* Used by the thread that is starting a transfer. */
	struct sio_dma_slot slot[SIO_DMA_SLOTS];
	unsigned n_slots;
	uint64_t uses;
};

/* One side of a copy. */
struct sio_dma_side {
	const struct sio_object *segment;
	bool remote, bar;
	uint64_t offset, bytes;
};

/*
 * slot.c, by the thread that is starting a transfer, whose first use of a slot has number @first:
 * where the engine finds @side. Its segment is attached now if need be, in the place of what was
 * used longest ago. Errors as of sio_dma_post(); -EACCES: no memory of the BAR that may be written.
 */
int sio_dma_place(struct sio_dma_queue *q, const struct sio_dma_side *side, uint64_t first,
		  uint32_t *ret_slot, uint64_t *ret_offset, struct sio_err *err);

/* One copy. The references to the objects are the caller's. */
struct sio_dma_copy {
	struct sio_local_segment *local;
	struct sio_remote_segment *remote;
	uint64_t local_offset, remote_offset, size;
	bool read; /* from the remote segment */
};

struct sio_dma_how {
	sci_cb_dma_t callback; /* NULL: none */
	void *arg;
	bool wait;     /* until it is over */
	bool gathered; /* the copies are those of a queue in state GATHER */
	void *out;     /* memory of the program for what was read; NULL: none */
	size_t out_bytes;
};

/*
 * Posts @n copies, which have passed sio_dma_check(), as one transfer of @q.
 * Return: 0; -EPERM: the queue is POSTED, or GATHER and not @how->gathered, or another thread is
 * starting a transfer; SCI_ERR_MAX_ENTRIES; SCI_ERR_SEGMENT_NOT_PREPARED, _NOT_CONNECTED; -ENOSPC;
 * with @how->wait also SCI_ERR_TRANSFER_FAILED and -ECANCELED.
 */
int sio_dma_post(struct sio_dma_queue *q, const struct sio_dma_copy *copy, unsigned n,
		 const struct sio_dma_how *how, struct sio_err *err);
/*
 * The same in two steps. After begin() no other thread can start a transfer of @q, until
 * post_begun() or unbegin().
 */
int sio_dma_begin(struct sio_dma_queue *q, unsigned n, bool gathered, struct sio_err *err);
void sio_dma_unbegin(struct sio_dma_queue *q);
int sio_dma_post_begun(struct sio_dma_queue *q, const struct sio_dma_copy *copy, unsigned n,
		       const struct sio_dma_how *how, struct sio_err *err);
/* Makes a queue, with a reference; @parent: NULL: none. The only user of a queue may drop() it. */
int sio_dma_queue_new(struct sio_library *lib, struct sio_object *parent, unsigned adapter,
		      unsigned max_entries, struct sio_dma_queue **ret, struct sio_err *err);
/* memory.c: SCIStartDmaTransferMem(); @copy has the remote side. */
int sio_dma_start_memory(struct sio_dma_queue *q, void *memory, struct sio_dma_copy *copy,
			 struct sio_dma_how *how, struct sio_err *err);
/* memory.c: @q does not need the segment that stands in for memory any more. */
void sio_dma_through_end(struct sio_dma_queue *q);
/*
 * Is the remote side connected, and within its range? Errors as of sio_dma_post().
 */
int sio_dma_check_remote(const struct sio_dma_copy *copy, struct sio_err *err);

/* SCI_FLAG_* that functions starting a transfer accept. */
#define SIO_DMA_START_SERVED                                                                       \
	(SCI_FLAG_USE_CALLBACK | SCI_FLAG_DMA_READ | SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_GLOBAL |     \
	 SCI_FLAG_DMA_SYSDMA | SCI_FLAG_DMA_ADAPTER | SCI_FLAG_BROADCAST)
/* May this copy be posted on @q? Errors as of sio_dma_post(). */
int sio_dma_check(struct sio_dma_queue *q, const struct sio_dma_copy *copy, struct sio_err *err);

/* Finds a queue by its handle, with a reference. */
struct sio_dma_queue *sio_dma_get(struct sio_library *lib, sci_dma_queue_t handle,
				  struct sio_err *err);
/* Under the lock: a transition. False: @event is impossible in this state, which stays. */
bool sio_dma_step(struct sio_dma_queue *q, enum sio_dma_event event);
/* Under the lock: handles a transfer that has completed. Return: the state. */
sci_dma_queue_state_t sio_dma_settle(struct sio_dma_queue *q);
/* Under the lock: waits until no transfer is under way. -ETIMEDOUT. */
int sio_dma_await(struct sio_dma_queue *q, uint64_t deadline);
/* Under the lock: smartiod is gone, and the engine with it: the transfer under way has failed. */
void sio_dma_cut_off(struct sio_dma_queue *q);
/* Under the lock, for a queue that nobody uses any more: frees its segments and calls. */
void sio_dma_forget(struct sio_dma_queue *q);
/* Under the lock: drops the copies that were enqueued. */
void sio_dma_gather_drop(struct sio_dma_queue *q);
/* queue.c, for the kinds' table: queues whose callback the event thread is to call. */
struct sio_dma_called {
	struct sio_dma_queue *first;
};
bool sio_dma_waits(const void *state);
void sio_dma_run(struct sio_library *lib);
void sio_dma_purge(struct sio_library *lib);
/* Event thread: the completion event is readable. */
void sio_dma_ready(struct sio_object *o);
/* Rings the doorbell, if the engine sleeps. */
void sio_dma_ring(struct sio_dma_queue *q);

#endif
