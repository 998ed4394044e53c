/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kinds of objects that programs have handles of, and what the library does with an object of
 * each. Each room of the library defines the kinds that it knows (struct sio_kind_ops); kinds.c
 * lists them. The library walks that list, in its order, and names no kind.
 */
#ifndef SISCI_BASE_KIND_H
#define SISCI_BASE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "wire/client.h"

/* A number of each, which its handles carry. */
enum sio_kind {
	SIO_DESC = 1,
	SIO_LOCAL_SEGMENT,
	SIO_REMOTE_SEGMENT,
	SIO_MAPPING,
	SIO_LOCAL_DINT,
	SIO_REMOTE_DINT,
	SIO_DEVICE,
	SIO_DEVICE_MAP, /* of a segment; programs get no handle of it */
	SIO_SEQUENCE,
	SIO_LOCAL_INT,
	SIO_REMOTE_INT,
	SIO_DMA_QUEUE,
	SIO_DMA_CHANNEL,
	SIO_BLOCK_TRANSFER,
	SIO_KINDS,
};

struct sio_library;
struct sio_object;

/* What may be NULL, or false, is left out where it does not apply. */
struct sio_kind_ops {
	enum sio_kind kind;
	const char *name; /* in texts: "local segment" */

	/* The memory of an object whose last reference is gone. Never NULL. */
	void (*free)(struct sio_object *o);
	/* Under the lock, once: what it stands for is gone. */
	void (*lost)(struct sio_object *o);

	/* Which function ends it at smartiod: sio_object_leave() (it can always be sent) ... */
	bool leaves;
	/* ... and smartiod never refuses that, whether it is lost or not. */
	bool never_refused;
	/* Programs have no handle of it: it ends with its parent. */
	bool nameless;
	/* When smartiod dies it is lost before objects of the other kinds. */
	bool lost_first;
	/* It is lost with its parent alone, and for the parent's reason. */
	bool lost_with_parent;
	/* It is this program's own: only the end of smartiod can lose it. NULL: it is not. */
	bool (*is_own)(const struct sio_object *o);

	/* Under the lock: nothing that came from elsewhere is there any more, so that the parent's
	 * end need not wait for it. */
	bool (*is_stale)(const struct sio_object *o);
	/*
	 * End it, with the caller's reference, which is gone then. @claimed: what
	 * sio_object_claim() said of it.
	 */
	int (*close)(struct sio_object *o, int claimed, struct sio_err *err);
	/* End one that nobody else can name, whatever smartiod says. The reference is gone. */
	void (*drop)(struct sio_object *o);

	/* Under the lock: take notice of what is over, so that children are free. */
	void (*settle)(struct sio_object *o);
	/* Under the lock: smartiod is gone, and nothing was lost yet. */
	void (*orphaned)(struct sio_object *o);
	/* Under the lock: an event of smartiod. false: it is none of this kind. */
	bool (*event)(struct sio_library *lib, const struct sio_msg *msg, int *fds, unsigned n_fds);
	/* Event thread: the descriptor that sio_session_watch() watches for it is readable. */
	void (*ready)(struct sio_object *o);

	/* What the kind keeps for all its objects: sio_library_state(). Zeroed, then @init. */
	size_t state_bytes;
	void (*init)(void *state);
	/* Under the lock: is there work for the event thread? */
	bool (*waits)(const void *state);
	/* Event thread, no lock: do it. */
	void (*run)(struct sio_library *lib);
	/* SCITerminate(), in the order opposite to the list's: the event thread has ended; forget
	 * its work, and end one's own threads. */
	void (*purge)(struct sio_library *lib);
};

#endif
