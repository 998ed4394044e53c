/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that back a drive's media, as a table of operations: emu/live/ has one over io_uring, tests
 * have one of their own. Nothing here blocks but open(), close() and wait().
 */
#ifndef EMU_DEVICES_STORE_H
#define EMU_DEVICES_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum emu_store_op {
	EMU_STORE_READ,
	EMU_STORE_WRITE,
	EMU_STORE_ZERO, /* reads as zeros afterwards, and gives the room on the disk back */
	EMU_STORE_SYNC, /* what was written before is on the disk */
};

struct emu_store_io;

/* Operations in their order: what has ended and waits for its owner, what a store has not begun. */
struct emu_store_queue {
	struct emu_store_io *head, *tail;
};

/* One operation. It and @data are the store's from start() until it is in @queue. */
struct emu_store_io {
	struct emu_store_io *next; /* the store's, then the queue's */
	struct emu_store_queue *queue;
	void *file;
	enum emu_store_op op;
	bool durable; /* WRITE: it ends when the data are on the disk */
	uint64_t offset, length;
	void *data;
	int64_t result; /* bytes, perhaps fewer than asked for; 0: ZERO, SYNC; else -errno */
};

struct emu_store;

struct emu_store_ops {
	/*
	 * Opens the file @path, which has @size bytes, for this store alone; one that is not there,
	 * or is empty, is given them. 0; -errno, with a text that names the file and what is right.
	 */
	int (*open)(struct emu_store *s, const char *path, uint64_t size, void **ret,
		    struct sio_err *reterr);
	/* Nothing of the file is under way. */
	void (*close)(struct emu_store *s, void *file);
	/* Never fails and never blocks; ends in the io's queue, in a later poll() or wait(). */
	void (*start)(struct emu_store *s, struct emu_store_io *io);
	/*
	 * What began is not wanted any more: it ends as it would have, or undone with -ECANCELED,
	 * but it ends in its queue, and no sooner than others.
	 */
	void (*cancel)(struct emu_store *s, struct emu_store_io *io);
	/* Moves what has ended to its queue: of all owners. */
	void (*poll)(struct emu_store *s);
	/* The same, and first waits until something has: for the end of a model alone. */
	void (*wait)(struct emu_store *s);
};

struct emu_store {
	const struct emu_store_ops *ops;
};

static inline void emu_store_put(struct emu_store_queue *q, struct emu_store_io *io)
{
	io->next = NULL;
	if (q->tail)
		q->tail->next = io;
	else
		q->head = io;
	q->tail = io;
}

static inline void emu_store_ended(struct emu_store_io *io)
{
	emu_store_put(io->queue, io);
}

/* NULL: none. */
static inline struct emu_store_io *emu_store_take(struct emu_store_queue *q)
{
	struct emu_store_io *io = q->head;

	if (!io)
		return NULL;
	q->head = io->next;
	if (!q->head)
		q->tail = NULL;
	return io;
}

#endif
