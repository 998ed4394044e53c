/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kinds of objects that programs have handles of, and what the library does with an object of
 * each kind. Each room of the library defines its kinds (struct sio_kind_ops); kinds.c lists them.
 * The library walks that list, in its order, and names no kind.
 */
#ifndef SISCI_BASE_KIND_H
#define SISCI_BASE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "wire/client.h"

/* The number of each kind, which its handles carry. */
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
	SIO_OVERLAY, /* of a BAR, as a member of a group; programs get no handle of it */
	SIO_KINDS,
};

struct sio_library;
struct sio_object;

/* Functions may be NULL, and flags false, where they do not apply to the kind. */
struct sio_kind_ops {
	enum sio_kind kind;
	const char *name; /* in texts: "local segment" */

	/* Frees the memory of an object after its last reference was released. Never NULL. */
	void (*free)(struct sio_object *o);
	/* Under the lock, once: what the object stands for is lost. */
	void (*lost)(struct sio_object *o);

	/*
	 * Which function ends the object at smartiod: sio_object_leave() (it can always be sent)
	 * ...
	 */
	bool leaves;
	/* ... and smartiod never refuses that, whether the object is lost or not. */
	bool never_refused;
	/* Programs have no handle of the object: it ends with its parent. */
	bool nameless;
	/* When smartiod dies the object is lost before objects of the other kinds. */
	bool lost_first;
	/* The object is lost with its parent only, and for the parent's reason. */
	bool lost_with_parent;
	/*
	 * The object belongs to this program alone: only the end of smartiod can lose it. NULL: it
	 * does not.
	 */
	bool (*is_own)(const struct sio_object *o);

	/*
	 * Under the lock: nothing that arrived from elsewhere is left, so the parent's end need not
	 * wait for the object.
	 */
	bool (*is_stale)(const struct sio_object *o);
	/*
	 * Ends the object, and consumes the caller's reference. @claimed: the result of
	 * sio_object_claim().
	 */
	int (*close)(struct sio_object *o, int claimed, struct sio_err *err);
	/*
	 * Ends an object that nobody else can name, whatever smartiod answers. Consumes the
	 * reference.
	 */
	void (*drop)(struct sio_object *o);

	/* Under the lock: handles what has completed, so that children are free. */
	void (*settle)(struct sio_object *o);
	/* Under the lock: smartiod is gone, and no object was lost yet. */
	void (*orphaned)(struct sio_object *o);
	/* Under the lock: an event of smartiod. false: it does not concern this kind. */
	bool (*event)(struct sio_library *lib, const struct sio_msg *msg, int *fds, unsigned n_fds);
	/*
	 * Event thread: the descriptor that sio_session_watch() watches for the object is readable.
	 */
	void (*ready)(struct sio_object *o);

	/*
	 * The size of the state that the kind keeps for all its objects: sio_library_state().
	 * Zeroed, then @init.
	 */
	size_t state_bytes;
	void (*init)(void *state);
	/* Under the lock: is there work for the event thread? */
	bool (*waits)(const void *state);
	/* Event thread, no lock: does that work. */
	void (*run)(struct sio_library *lib);
	/*
	 * SCITerminate(), in the reverse order of the list: the event thread has ended; the kind
	 * forgets its work, and ends its own threads.
	 */
	void (*purge)(struct sio_library *lib);
};

#endif
