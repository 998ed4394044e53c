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
#include "sisci/base/kind.h"
#include "sisci/base/life.h"
#include "wire/client.h"

extern const struct sio_kind_ops sio_desc_kind;

struct sio_object {
	enum sio_kind kind;
	uint32_t id; /* smartiod's handle; 0: it does not know this object */
	uintptr_t handle;
	struct sio_library *lib;
	struct sio_object *parent; /* with a reference */
	struct sio_object *next, **prev;
	struct sio_object *first_child, *sibling, **prev_sibling; /* those in no end yet */
	struct sio_hash_node by_id;
	struct sio_post *post; /* for sio_object_leave(): its end can always be sent */
	unsigned children;
	enum sio_life life;
	bool in_callback; /* the event thread is in its callback */
	bool muted;	  /* no more callbacks */
	uint32_t lost;	  /* what it stands for is gone; read without the lock, too */
};

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
	struct sio_hash by_id;			    /* by smartiod's handles */
	unsigned n_settling;			    /* objects whose kind has settle() */
	const struct sio_kind_ops *const *kinds;    /* all of them; NULL ends the list */
	const struct sio_kind_ops *kind[SIO_KINDS]; /* the same by their numbers */
	void *state[SIO_KINDS];			    /* what each keeps: state_bytes */
	unsigned special_maps; /* sio_mapping_find() knows; read without the lock, too */

	/* From HELLO: properties of this host. */
	int owner_fd;
	uint32_t node, n_adapters;
	char host[32], cluster[32];
	void *status; /* the status page: sequence.h */
};

/* Is what the object stands for lost? */
static inline bool sio_object_is_lost(const struct sio_object *o)
{
	return __atomic_load_n(&o->lost, __ATOMIC_ACQUIRE); /* pairs with sio_object_lose() */
}

/* Is the library between SCIInitialize() and SCITerminate()? */
static inline bool sio_library_is_up(const struct sio_library *lib)
{
	return __atomic_load_n(&lib->up, __ATOMIC_ACQUIRE); /* pairs with initialize() */
}

/* The library of this process if it is initialised; NULL: @err says why not. */
struct sio_library *sio_api_enter(struct sio_err *err);
/* Reports to the caller of the API: @rc is 0, -errno, or a sci_error_t (which is positive). */
void sio_api_leave(sci_error_t *error, int rc, const struct sio_err *err);
/* The library, whether it is initialised or not; NULL: it never was. */
struct sio_library *sio_library_get(void);
/* SCIInitialize() with these kinds of objects (kinds.c). */
void sio_library_initialize(const struct sio_kind_ops *const *kinds, unsigned flags,
			    sci_error_t *error);
/* The state that a kind keeps for all its objects. */
static inline void *sio_library_state(struct sio_library *lib, enum sio_kind kind)
{
	return lib->state[kind];
}
static inline const struct sio_kind_ops *sio_object_ops(const struct sio_object *o)
{
	return o->lib->kind[o->kind];
}

/* The most that its host was seen to have: a reload of the cluster adds and removes some. */
static inline uint32_t sio_adapters(const struct sio_library *lib)
{
	return __atomic_load_n(&lib->n_adapters, __ATOMIC_RELAXED);
}
/* SCI_ERR_ILLEGAL_ADAPTERNO, or SCI_ERR_NO_SUCH_ADAPTERNO if this host has no such adapter. */
int sio_check_adapter(struct sio_library *lib, unsigned adapter, struct sio_err *err);
/* -EINVAL if @p is NULL. */
int sio_check_pointer(const void *p, const char *name, struct sio_err *err);
/*
 * SCI_ERR_FLAG_NOT_IMPLEMENTED for bits of @known that are not in @served; _ILLEGAL_FLAG for
 * others.
 */
int sio_check_flags(unsigned flags, unsigned served, unsigned known, struct sio_err *err);

/* Finds the object of a caller's handle, with a reference; NULL: @err has the reason. */
void *sio_object_get(struct sio_library *lib, const void *handle, enum sio_kind kind,
		     struct sio_err *err);
void sio_object_put(struct sio_object *o);
/* The object's last reference was released. For sio_handles_new(). */
void sio_object_free(void *object);
/* Under the lock: is a thread removing the object, or is it removed? */
static inline bool sio_object_is_leaving(const struct sio_object *o)
{
	return o->life != SIO_LIVE;
}
/* Under the lock: a transition of the object's life, which its state allows. */
void sio_object_step(struct sio_object *o, enum sio_life_event event);
static inline void *sio_object_handle(const struct sio_object *o)
{
	return (void *)o->handle;
}

/*
 * Begins the life of @o (zeroed, with its kind set): it gets a handle and counts as a child of
 * @parent. Success leaves the caller a reference. On failure it was freed.
 * Errors: -EINVAL: the parent is being removed; -ENOMEM.
 */
int sio_object_add(struct sio_library *lib, struct sio_object *o, struct sio_object *parent,
		   struct sio_err *err);
/* For struct sio_call: takes smartiod's handle for the object in arg from the reply. */
void sio_object_adopt(struct sio_call *call);
/* Under the lock: smartiod's handle of @o, which has not ended, is @id. */
void sio_object_take_id(struct sio_object *o, sio_le32 id);
/*
 * Claims the right to remove the object; waits for another thread that has claimed it, but not in a
 * callback. -EBUSY: it has children; -EINVAL: it is removed, or being removed.
 */
int sio_object_claim(struct sio_object *o, bool force, struct sio_err *err);
void sio_object_unclaim(struct sio_object *o);
/*
 * Ends the object (added, or claimed): no more handle, no more callback, no more child of its
 * parent. Drops the caller's reference, too.
 */
void sio_object_end(struct sio_object *o);
/*
 * Under the lock: detaches the object from its parent; its reference to the parent is now the
 * caller's.
 */
void sio_object_orphan(struct sio_object *o);
/* Under the lock: finds an object by smartiod's handle; NULL: none. */
struct sio_object *sio_object_by_id(struct sio_library *lib, enum sio_kind kind, uint32_t id);
/* Under the lock: what @o stands for is lost. */
void sio_object_lose(struct sio_object *o);
/* Under the lock: the same for the object of a kind that smartiod names; false: there is none. */
bool sio_object_lose_by_id(struct sio_library *lib, enum sio_kind kind, uint32_t id);
/* Closes the nameless children of @parent, before it is removed by force. */
int sio_object_close_nameless(struct sio_object *parent, struct sio_err *err);
/*
 * For lost(): makes the range read as ones, because the memory behind it may be another's by now.
 * Without memory for that, accesses fault.
 */
void sio_object_cut(struct sio_object *o, void *at, size_t len);

/* Why a lost object cannot be used: -ESHUTDOWN or -ECONNRESET, with a text. Not under the lock. */
int sio_object_fail_lost(struct sio_object *o, struct sio_err *err);

/*
 * Asks smartiod to end @o, which is claimed. Success also if there is nothing left to be ended. On
 * an error, -ENOMEM too, nothing has changed, and the caller may try again.
 */
int sio_object_dismiss(struct sio_object *o, uint32_t type, unsigned flags, struct sio_err *err);
/*
 * The same for an object that ends in any case: without memory to send the request now it is sent
 * before any later request. An error is smartiod's own.
 */
int sio_object_leave(struct sio_object *o, uint32_t type, struct sio_err *err);
/*
 * @claimed: the result of sio_object_claim(). If it is 0: as sio_object_dismiss(), or as
 * sio_object_leave() where smartiod refuses nothing; otherwise fails with it. On an error @o stays,
 * no longer claimed, and the caller's reference is dropped; on success the caller must call
 * sio_object_end().
 */
int sio_object_close(struct sio_object *o, int claimed, uint32_t type, unsigned flags,
		     struct sio_err *err);

/* Replaces SCI_LOCAL_HOST by this node's id; SCI_ERR_ILLEGAL_NODEID for 0. */
int sio_check_node(const struct sio_library *lib, unsigned *node, struct sio_err *err);

/* A shorter sio_session_call(): no descriptors, a reply of @rep_len bytes. */
int sio_ask(struct sio_library *lib, uint32_t type, void *req, size_t req_len, void *rep,
	    size_t rep_len, struct sio_err *err);
/* Sends a request of a handle and flags alone, answered by success alone. */
int sio_ask_handle(struct sio_library *lib, uint32_t type, uint32_t handle, unsigned flags,
		   struct sio_err *err);

/* Event thread: runs one callback of @o through @run, unless @o is muted or being removed. */
void sio_object_callback(struct sio_object *o,
			 sci_callback_action_t (*run)(struct sio_object *o, void *arg), void *arg);

/* object.c: fails with -ENOMEM: there is no room in memory for a mapping of @bytes. */
int sio_fail_mapping(const struct sio_library *lib, uint64_t bytes, struct sio_err *err);
/* status.c: -ENETDOWN while the path with this place (sio_status_place(); 0: none) is down. */
int sio_status_check(const struct sio_library *lib, uint32_t place, uint32_t node,
		     struct sio_err *err);
/*
 * Translates -ENETDOWN of a connect or a probe through @adapter: to SCI_ERR_NO_REMOTE_LINK_ACCESS
 * when a path of the adapter is up, so that the link at this end is not the cause. Other @rc are
 * returned unchanged.
 */
int sio_status_link(const struct sio_library *lib, unsigned adapter, int rc);
/* The place in the page of a path (of a reply to a connect) to @node, from 1; 0: there is none. */
uint32_t sio_status_place(const struct sio_library *lib, uint32_t wire_path, uint32_t node);
/* Maps the page, at the first time and whenever the library is initialised again. */
int sio_status_open(struct sio_library *lib, int fd, struct sio_err *err);

/* adapter.c: asks smartiod for an adapter; SCI_ERR_DMA_NOT_AVAILABLE if it has no DMA engine. */
int sio_ask_adapter(struct sio_library *lib, unsigned adapter, struct sio_rep_adapter *rep,
		    struct sio_err *err);
int sio_need_engine(const struct sio_rep_adapter *rep, unsigned adapter, struct sio_err *err);

#endif
