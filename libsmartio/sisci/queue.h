/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA queues: a ring that the port's engine works through (docs/dma.md), one transfer at a time. A
 * transfer is any number of copies between segments of this program and segments it is connected
 * to.
 */
#ifndef SISCI_QUEUE_H
#define SISCI_QUEUE_H

#include "sisci/segment.h"
#include "smartio/uapi.h"

/* What the engine can reach: which slot a segment has. */
struct sio_dma_slot {
	uint64_t range; /* smartiod's; 0: free */
	uint32_t id;	/* smartiod's handle of the segment, and never another's */
	bool remote;
	uint32_t slot;
	uint64_t used; /* the transfer that did so last */
};

/* The end of a transfer that is to be told. */
struct sio_dma_call {
	struct sio_dma_call *next;
	sci_cb_dma_t callback;
	void *arg;
	sci_error_t status;
};

struct sio_dma_copy;

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
	bool watched;	  /* the event thread looks at @finished */
	unsigned waiters; /* other threads do */
	/* Of the transfer under way: segments, with references, and counted as their children. */
	struct sio_object **users, *few[2];
	unsigned n_users;
	struct sio_dma_call *call;		 /* NULL: nobody is told */
	bool called;				 /* it has a callback: waiting is not for others */
	struct sio_dma_call *calls, **calls_end; /* of transfers that are over */
	struct sio_dma_queue *next_called;	 /* in lib->called, while it is listed */
	bool listed;
	/* API 1.x: what was enqueued; the segments are referred to, and counted as their children. */
	struct sio_dma_copy *gathered;
	unsigned n_gathered, room_gathered;
	/* What a thread has taken out, to post it; NULL: nothing, or the engine has it. */
	const struct sio_dma_copy *posting;
	/* Of the thread that is starting. */
	struct sio_dma_slot slot[SIO_DMA_SLOTS];
	unsigned n_slots;
	uint64_t uses;
};

/* One copy. The objects are the caller's references. */
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
};

/*
 * Post @n copies, which sio_dma_check() found good, as one transfer of @q.
 * Return: 0; -EPERM: POSTED, or GATHER and not @how->gathered, or another thread is starting;
 * SCI_ERR_MAX_ENTRIES; SCI_ERR_SEGMENT_NOT_PREPARED, _NOT_CONNECTED; -ENOSPC; with @how->wait also
 * SCI_ERR_TRANSFER_FAILED and -ECANCELED.
 */
int sio_dma_post(struct sio_dma_queue *q, const struct sio_dma_copy *copy, unsigned n,
		 const struct sio_dma_how *how, struct sio_err *err);
/* May this copy be posted on @q? As sio_dma_post(). */
int sio_dma_check(struct sio_dma_queue *q, const struct sio_dma_copy *copy, struct sio_err *err);

/* A queue by its handle, with a reference. */
struct sio_dma_queue *sio_dma_get(struct sio_library *lib, sci_dma_queue_t handle,
				  struct sio_err *err);
/* Under the lock: take notice of a transfer that is over. Return: the state. */
sci_dma_queue_state_t sio_dma_settle(struct sio_dma_queue *q);
/* Under the lock: wait until no transfer is under way. -ETIMEDOUT. */
int sio_dma_await(struct sio_dma_queue *q, uint64_t deadline);
/* Under the lock: forget what was enqueued. */
void sio_dma_gather_drop(struct sio_dma_queue *q);
/* The doorbell, if the engine sleeps. */
void sio_dma_ring(struct sio_dma_queue *q);

#endif
