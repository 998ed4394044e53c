/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's state in a process, and what all of its objects have in common.
 *
 * Locks: one of the session (sio_session_lock()), for the state of objects and the lists; one in
 * each data interrupt, for its rings, taken under the former or alone. References keep the memory
 * of an object; its fields say whether it still lives.
 */
#ifndef SISCI_LIBRARY_H
#define SISCI_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/hash.h"
#include "session/handle.h"
#include "session/session.h"
#include "sisci_api.h"
#include "sisci/base/error.h"
#include "wire/client.h"

enum sio_kind {
	SIO_DESC = 1,
	SIO_LOCAL_SEGMENT,
	SIO_REMOTE_SEGMENT,
	SIO_MAPPING,
	SIO_LOCAL_DINT,
	SIO_REMOTE_DINT,
	SIO_DEVICE,
	SIO_DEVICE_MAP, /* of a segment; has no handle that is told */
	SIO_SEQUENCE,
	SIO_LOCAL_INT,
	SIO_REMOTE_INT,
	SIO_DMA_QUEUE,
	SIO_DMA_CHANNEL,
	SIO_BLOCK_TRANSFER,
};

struct sio_object {
	enum sio_kind kind;
	uint32_t id; /* smartiod's handle; 0: it does not know this object */
	uintptr_t handle;
	struct sio_library *lib;
	struct sio_object *parent; /* with a reference */
	struct sio_object *next, **prev;
	struct sio_object *first_child, *sibling, **prev_sibling; /* those in no end yet */
	struct sio_hash_node by_id;
	struct sio_post *post; /* for sio_object_leave(): its end can always be told */
	unsigned children;
	bool removing;	  /* a thread is at it */
	bool ending;	  /* and cannot fail any more */
	bool ended;	  /* out of all lists */
	bool in_callback; /* the event thread is in its callback */
	bool muted;	  /* no more callbacks */
	uint32_t lost;	  /* what it stands for is gone; read without the lock, too */
	void (*free)(struct sio_object *o);
	void (*on_lost)(struct sio_object *o); /* under the lock, once; may be NULL */
};

struct sio_task;
struct sio_dma_queue;
struct sio_block;

struct sio_library {
	struct sio_world *world;
	struct sio_session *session;
	struct sio_handles *handles;
	struct sio_library *before_fork; /* the parent's, not to be used */
	uint32_t pid;
	uint32_t up;	      /* initialised; read without the lock */
	unsigned initialized; /* how often */
	bool changing;	      /* a thread is initialising or terminating it */
	struct sio_object *objects;
	struct sio_hash by_id;		     /* by smartiod's handles */
	unsigned n_queues;		     /* DMA queues among the objects */
	struct sio_task *tasks, **tasks_end; /* for the event thread */
	struct sio_dma_queue *called;	     /* likewise: those with a callback to be made */
	/* block.c: transfers to be made, and those that are over and have a callback. */
	struct sio_block *blocks, **blocks_end, *blocks_over, **blocks_over_end;
	struct sio_world_thread *copier; /* makes them; NULL: none was started */
	bool copying;			 /* it has not ended yet */

	unsigned special_maps; /* sio_mapping_find() knows; read without the lock, too */

	/* Of this host, from HELLO. */
	int owner_fd;
	uint32_t node, n_adapters;
	char host[32], cluster[32];
	void *status; /* the status page: sequence.h */
};

/* The library of this process if it is initialised; NULL: @err says why not. */
struct sio_library *sio_api_enter(struct sio_err *err);
/* Tell the caller of the API: @rc is 0, -errno, or a sci_error_t (which is positive). */
void sio_api_leave(sci_error_t *error, int rc, const struct sio_err *err);
/* Drop what waits for the event thread; called when that has ended. */
void sio_task_purge(struct sio_library *lib);
/* Session operations of task.c. */
bool sio_task_waits(void *ctx);
void sio_task_run(void *ctx);
/* The library, whether it is initialised or not; NULL: never was. */
struct sio_library *sio_library_get(void);

/* SCI_ERR_ILLEGAL_ADAPTERNO, or SCI_ERR_NO_SUCH_ADAPTERNO if this host has no such adapter. */
int sio_check_adapter(const struct sio_library *lib, unsigned adapter, struct sio_err *err);
/* -EINVAL if it is NULL. */
int sio_check_pointer(const void *p, const char *name, struct sio_err *err);
/* SCI_ERR_FLAG_NOT_IMPLEMENTED for bits of @known that are not in @served; _ILLEGAL_FLAG else. */
int sio_check_flags(unsigned flags, unsigned served, unsigned known, struct sio_err *err);

/* The object of a caller's handle, with a reference; NULL: @err says so. */
void *sio_object_get(struct sio_library *lib, const void *handle, enum sio_kind kind,
		     struct sio_err *err);
void sio_object_put(struct sio_object *o);
static inline void *sio_object_handle(const struct sio_object *o)
{
	return (void *)o->handle;
}

/*
 * Begin the life of @o (zeroed, with kind, free and on_lost set): it gets a handle and counts as a
 * child of @parent. Success leaves the caller a reference. On failure it was freed.
 * Errors: -EINVAL: the parent is being removed; -ENOMEM.
 */
int sio_object_add(struct sio_library *lib, struct sio_object *o, struct sio_object *parent,
		   struct sio_err *err);
/* For struct sio_call: take smartiod's handle for the object in arg from the reply. */
void sio_object_adopt(struct sio_call *call);
/* Under the lock: smartiod's handle of @o, which is not ended, is @id. */
void sio_object_take_id(struct sio_object *o, sio_le32 id);
/*
 * Claim the right to remove it; waits for another thread that has it, but not in a callback.
 * -EBUSY: it has children; -EINVAL: it is removed, or being removed.
 */
int sio_object_claim(struct sio_object *o, bool force, struct sio_err *err);
void sio_object_unclaim(struct sio_object *o);
/*
 * The end of @o (added, or claimed): no more handle, no more callback, no more child of its parent.
 * Drops the caller's reference, too.
 */
void sio_object_end(struct sio_object *o);
/*
 * Under the lock: it belongs to nothing any more; its reference to the parent is now the caller's.
 */
void sio_object_orphan(struct sio_object *o);
/* Under the lock; NULL: none. */
struct sio_object *sio_object_by_id(struct sio_library *lib, enum sio_kind kind, uint32_t id);
/* Under the lock: what @o stands for is gone. */
void sio_object_lose(struct sio_object *o);
/* For on_lost: what is @at may be another's by now. It reads as ones; without memory it faults. */
void sio_object_cut(struct sio_object *o, void *at, size_t len);

/* Why a lost object cannot be used: -ESHUTDOWN or -ECONNRESET, with a text. Not under the lock. */
int sio_object_fail_lost(struct sio_object *o, struct sio_err *err);

/*
 * Ask smartiod to end @o, which is claimed. Success also if there is nothing left to be ended.
 * On an error, -ENOMEM too, nothing has changed, and it may be asked once more.
 */
int sio_object_dismiss(struct sio_object *o, uint32_t type, unsigned flags, struct sio_err *err);
/*
 * The same for one that ends whatever comes of it: without memory to say it now it is said before
 * anything that is asked later. An error is smartiod's own.
 */
int sio_object_leave(struct sio_object *o, uint32_t type, struct sio_err *err);
/*
 * When @claimed, what sio_object_claim() said, is 0: as sio_object_dismiss(), or as
 * sio_object_leave() where smartiod refuses nothing; else that. On an error @o stays, no longer
 * claimed, and the caller's reference is dropped; else the caller owes sio_object_end().
 */
int sio_object_close(struct sio_object *o, int claimed, uint32_t type, unsigned flags,
		     struct sio_err *err);

/* SCI_LOCAL_HOST becomes this node's id; SCI_ERR_ILLEGAL_NODEID for 0. */
int sio_check_node(const struct sio_library *lib, unsigned *node, struct sio_err *err);

/* Shorter sio_session_call(): no descriptors, a reply of @rep_len bytes. */
int sio_ask(struct sio_library *lib, uint32_t type, void *req, size_t req_len, void *rep,
	    size_t rep_len, struct sio_err *err);
/* A request of a handle and flags alone, answered by success alone. */
int sio_ask_handle(struct sio_library *lib, uint32_t type, uint32_t handle, unsigned flags,
		   struct sio_err *err);

/*
 * Under the lock: something happened to segment @o. Queue its callback for the event thread;
 * without one, keep it for who waits.
 */
void sio_task_segment(struct sio_object *o, unsigned reason, unsigned node, unsigned adapter,
		      sci_error_t status);
/* Event thread: run one callback of @o through @run, unless it is muted or being removed. */
void sio_object_callback(struct sio_object *o,
			 sci_callback_action_t (*run)(struct sio_object *o, void *arg), void *arg);

/* object.c: -ENOMEM: there is no room in memory for a mapping of @bytes. */
int sio_fail_mapping(const struct sio_library *lib, uint64_t bytes, struct sio_err *err);
/* dataint.c */
void sio_dint_ready(struct sio_library *lib, uintptr_t handle);
void sio_dint_ring_event(struct sio_library *lib, const struct sio_evm_dint_ring *e, int *fds,
			 unsigned n_fds);
/* status.c: -ENETDOWN while the path with this place (sio_status_place(); 0: none) is down. */
int sio_status_check(const struct sio_library *lib, uint32_t place, uint32_t node,
		     struct sio_err *err);
/*
 * What -ENETDOWN of a connect or a probe through @adapter means: SCI_ERR_NO_REMOTE_LINK_ACCESS when
 * a path of the adapter is up, so that it is not the link at this end. Other @rc stay as they are.
 */
int sio_status_link(const struct sio_library *lib, unsigned adapter, int rc);
/* The place in the page of a path (of a reply to a connect) to @node, from 1; 0: there is none. */
uint32_t sio_status_place(const struct sio_library *lib, uint32_t wire_path, uint32_t node);
/* interrupt.c */
void sio_int_ready(struct sio_library *lib, uintptr_t handle);
/* queue.c */
void sio_dma_ready(struct sio_library *lib, uintptr_t handle);
/* Event thread: make the callbacks. */
void sio_dma_run(struct sio_library *lib);
void sio_dma_purge(struct sio_library *lib);
/* Under the lock: what queues kept and no longer need is free. */
void sio_dma_settle_all(struct sio_library *lib);
/* block.c: event thread: make the callbacks; for SCITerminate(): abort all, and end the thread. */
void sio_block_run(struct sio_library *lib);
void sio_block_end_all(struct sio_library *lib);
/* device.c */
void sio_device_event(struct sio_library *lib, const struct sio_evm_device *e);
/* segment.c, remote.c: run the callback. */
sci_callback_action_t sio_local_segment_callback(struct sio_object *o, unsigned reason,
						 unsigned node, unsigned adapter);
sci_callback_action_t sio_remote_segment_callback(struct sio_object *o, unsigned reason,
						  sci_error_t status);
bool sio_local_segment_has_callback(const struct sio_object *o);
bool sio_remote_segment_has_callback(const struct sio_object *o);

#endif
