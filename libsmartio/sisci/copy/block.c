/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies from mapping to mapping. SCITransferBlock() makes them at once. SCITransferBlockAsync()
 * hands them to a thread that makes one after the other and ends when there is none left: a thread
 * that waited for more would also wait at the session's socket, and slow down each answer.
 */
#include <errno.h>
#include <stdlib.h>

#include "sisci/copy/copy.h"
#include "sisci/copy/group.h"
#include "sisci/copy/sequence.h"

#define BOUNCE 4096	       /* bytes at once */
#define ABORT_STEP (64u << 10) /* bytes between two looks at whether it is aborted */

/* One end of a copy. */
struct side {
	struct sio_mapping *map; /* with a reference, and in use while a transfer is under way */
	uint8_t *at;
};

static void bounce(const struct side *to, const struct side *from, size_t offset, size_t size)
{
	uint8_t buffer[BOUNCE];

	for (size_t done = 0, part; done < size; done += part) {
		part = size - done < sizeof(buffer) ? size - done : sizeof(buffer);
		sio_copy_in(buffer, from->at + offset + done, part, from->map->words);
		sio_copy_out(to->at + offset + done, buffer, part, to->map->words);
	}
	/* pairs with SCIFlushReadBuffers() of who reads it, or with the barrier of a copy there */
	sio_to_fabric_barrier();
}

static int get_sides(struct sio_library *lib, struct side *from, sci_map_t source,
		     size_t source_offset, struct side *to, sci_map_t target, size_t target_offset,
		     size_t size, struct sio_err *err)
{
	int rc =
		sio_copy_range(lib, source, source_offset, size, false, &from->map, &from->at, err);

	if (!rc)
		rc = sio_copy_range(lib, target, target_offset, size, true, &to->map, &to->at, err);
	return rc;
}

static void put_side(struct side *side)
{
	if (side->map)
		sio_object_put(&side->map->o);
	side->map = NULL;
}

/*
 * A copy, and what became of it: that is looked at now and then, as is *@aborted (NULL: it cannot
 * be aborted).
 */
static sci_error_t make(const struct side *from, const struct side *to, size_t size,
			const uint32_t *aborted)
{
	struct sio_copy_watch source, target;
	size_t done = 0, part;

	sio_copy_begin(from->map, &source);
	sio_copy_begin(to->map, &target);
	do {
		if (aborted && __atomic_load_n(aborted, __ATOMIC_RELAXED))
			return SCI_ERR_CANCELLED;
		part = size - done < ABORT_STEP ? size - done : ABORT_STEP;
		if (!to->map->copier)
			bounce(to, from, done, part);
		else if (sio_group_copy(to->map, from->at + done, to->at + done, part, NULL))
			return SCI_ERR_TRANSFER_FAILED;
		done += part;
		sio_sequence_wait_for_stores(to->map->window);
		if (sio_copy_judge(from->map, &source) != SCI_SEQ_OK ||
		    sio_copy_judge(to->map, &target) != SCI_SEQ_OK)
			return SCI_ERR_TRANSFER_FAILED;
	} while (done < size);
	return SCI_ERR_OK;
}

static int transfer_block(struct sio_library *lib, sci_map_t source, size_t source_offset,
			  sci_map_t target, size_t target_offset, size_t size, unsigned flags,
			  struct sio_err *err)
{
	struct side from = {.map = NULL}, to = {.map = NULL};
	int rc = sio_check_flags(flags, 0, 0, err);

	if (!rc)
		rc = get_sides(lib, &from, source, source_offset, &to, target, target_offset, size,
			       err);
	if (!rc && make(&from, &to, size, NULL) != SCI_ERR_OK)
		rc = sio_refuse(err, SCI_ERR_TRANSFER_FAILED,
				"%zu bytes: a path failed during the copy", size);
	put_side(&from);
	put_side(&to);
	return rc;
}

void SCITransferBlock(sci_map_t sourceMap, size_t sourceOffset, sci_map_t destinationMap,
		      size_t destinationOffset, size_t size, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? transfer_block(lib, sourceMap, sourceOffset, destinationMap,
				      destinationOffset, size, flags, &err)
		     : err.code;

	sio_api_leave(error, rc, &err);
}

/* ---- transfers under way ---- */

/* Of the library: transfers to be made, and those that are over and have a callback. */
struct blocks {
	struct sio_block *first, **end, *over, **over_end;
	struct sio_world_thread *copier; /* makes them; NULL: none was started */
	bool copying;			 /* it has not ended yet */
};

static void init(void *state)
{
	struct blocks *all = state;

	all->end = &all->first;
	all->over_end = &all->over;
}

static struct blocks *blocks_of(struct sio_library *lib)
{
	return sio_library_state(lib, SIO_BLOCK_TRANSFER);
}

struct sio_block {
	struct sio_object o; /* has no parent: its maps are in use while it is under way */
	struct sio_block *next;
	struct side from, to;
	size_t size;
	sci_cb_block_transfer_t callback; /* NULL: none */
	void *arg;
	uint32_t aborted;   /* written under the lock, read without */
	bool over;	    /* under the lock, as what follows */
	sci_error_t status; /* once it is over */
};

static void block_free(struct sio_object *o)
{
	struct sio_block *b = (struct sio_block *)o;

	put_side(&b->from);
	put_side(&b->to);
	free(b);
}

/* Under the lock. */
static int keep(struct side *side, struct sio_err *err)
{
	if (sio_object_is_leaving(&side->map->o))
		return sio_fail(err, -EINVAL, "the map is being removed");
	side->map->o.children++;
	return 0;
}

static void append(struct sio_block ***end, struct sio_block *b)
{
	b->next = NULL;
	**end = b;
	*end = &b->next;
}

/* Under the lock: it is no longer among those to be made. */
static void take_out(struct sio_library *lib, struct sio_block *b)
{
	struct blocks *all = blocks_of(lib);
	struct sio_block **link = &all->first;

	while (*link != b)
		link = &(*link)->next;
	*link = b->next;
	if (!b->next)
		all->end = link;
}

/*
 * Under the lock: it is over, and its maps are free. The transfer's reference goes, or is the event
 * thread's.
 */
static void over(struct sio_block *b, sci_error_t status)
{
	struct sio_library *lib = b->o.lib;

	take_out(lib, b);
	b->over = true;
	b->status = status;
	b->from.map->o.children--;
	b->to.map->o.children--;
	put_side(&b->from);
	put_side(&b->to);
	sio_session_wake(lib->session);
	if (!b->callback || b->aborted) {
		sio_object_put(&b->o);
		return;
	}
	append(&blocks_of(lib)->over_end, b);
	sio_session_kick(lib->session);
}

/* Thread body. */
static void make_all(void *arg)
{
	struct sio_library *lib = arg;
	struct blocks *all = blocks_of(lib);
	struct sio_block *b;

	sio_session_lock(lib->session);
	while ((b = all->first)) {
		sci_error_t status;

		sio_session_unlock(lib->session);
		status = make(&b->from, &b->to, b->size, &b->aborted);
		sio_session_lock(lib->session);
		over(b, status);
	}
	all->copying = false;
	sio_session_wake(lib->session);
	sio_session_unlock(lib->session);
}

/* Under the lock: a thread is at them. */
static int ensure_thread(struct sio_library *lib, struct sio_err *err)
{
	struct blocks *all = blocks_of(lib);
	struct sio_world *w = lib->world;

	if (all->copying)
		return 0;
	if (all->copier) /* it has done all that needs the lock */
		w->thread_join(w, all->copier);
	all->copier = NULL;
	all->copying = true;
	if (w->thread_start(w, make_all, lib, &all->copier) == 0)
		return 0;
	all->copying = false;
	all->copier = NULL;
	return sio_fail(
		err, -ENOMEM,
		"no thread can be started: end some, or raise the limit (ulimit -u, pids.max)");
}

/* Under the lock: the caller's reference becomes the transfer's. */
static int begin(struct sio_block *b, struct sio_err *err)
{
	struct sio_library *lib = b->o.lib;
	int rc = lib->up ? keep(&b->from, err)
			 : sio_fail(err, -ESHUTDOWN, "the library was terminated meanwhile");

	if (rc)
		return rc;
	rc = keep(&b->to, err);
	if (!rc) {
		append(&blocks_of(lib)->end, b);
		rc = ensure_thread(lib, err);
		if (!rc)
			return 0;
		take_out(lib, b);
		b->to.map->o.children--;
	}
	b->from.map->o.children--;
	return rc;
}

static int start(struct sio_library *lib, struct sio_block *b, sci_block_transfer_t *ret,
		 struct sio_err *err)
{
	int rc;

	b->o.kind = SIO_BLOCK_TRANSFER;
	rc = sio_object_add(lib, &b->o, NULL, err);
	if (rc)
		return rc;
	sio_session_lock(lib->session);
	rc = begin(b, err);
	if (!rc)
		*ret = sio_object_handle(&b->o); /* the callback may want it */
	sio_session_unlock(lib->session);
	if (rc)
		sio_object_end(&b->o);
	return rc;
}

void SCITransferBlockAsync(sci_map_t sourceMap, unsigned int sourceOffset, sci_map_t destinationMap,
			   unsigned int destinationOffset, unsigned int size,
			   sci_block_transfer_t *block, sci_cb_block_transfer_t callback,
			   void *callbackArg, unsigned int flags, sci_error_t *error)
{
	struct sio_block *b = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? sio_check_pointer(block, "block", &err) : err.code;

	if (!rc)
		rc = sio_check_flags(flags, SCI_FLAG_BLOCK_READ | SCI_FLAG_USE_CALLBACK, 0, &err);
	if (!rc && flags & SCI_FLAG_USE_CALLBACK)
		rc = sio_check_pointer((const void *)(uintptr_t)callback, "callback", &err);
	if (!rc) {
		b = calloc(1, sizeof(*b));
		rc = b ? 0 : sio_no_memory(&err, "a block transfer");
	}
	if (!rc) {
		b->size = size;
		b->callback = flags & SCI_FLAG_USE_CALLBACK ? callback : NULL;
		b->arg = callbackArg;
		rc = get_sides(lib, &b->from, sourceMap, sourceOffset, &b->to, destinationMap,
			       destinationOffset, size, &err);
		if (rc)
			block_free(&b->o);
		else
			rc = start(lib, b, block, &err);
	}
	sio_api_leave(error, rc, &err);
}

/* ---- waiting and giving up ---- */

/* Under the lock: until it is over, and nobody is about to end it. */
static int await(struct sio_block *b, unsigned timeout, struct sio_err *err)
{
	struct sio_session *s = b->o.lib->session;
	uint64_t deadline = sio_session_deadline(b->o.lib->world, timeout);
	bool late = deadline == 0;

	while ((!b->over || b->o.life != SIO_LIVE) && b->o.life != SIO_ENDED && !late)
		late = sio_session_wait(s, NULL, 0, deadline) == -ETIMEDOUT;
	if (b->o.life == SIO_ENDED)
		return sio_fail(err, -ECANCELED, "the transfer was aborted or waited for");
	if (!b->over || b->o.life != SIO_LIVE)
		return sio_refuse(err, SCI_ERR_TIMEOUT, "the transfer is not over after %u ms",
				  timeout);
	sio_object_step(&b->o, SIO_LIFE_CLAIM); /* who took its result ends it */
	return b->status == SCI_ERR_OK ? 0
				       : sio_refuse(err, b->status, "the path failed on the way");
}

static int wait_for(struct sio_library *lib, sci_block_transfer_t block, unsigned timeout,
		    unsigned flags, struct sio_err *err)
{
	struct sio_block *b;
	bool taken = false;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	b = sio_object_get(lib, block, SIO_BLOCK_TRANSFER, err);
	if (!b)
		return err->code;
	if (b->callback) {
		sio_object_put(&b->o);
		return sio_fail(
			err, -EPERM,
			"the transfer has a callback, which is called: wait for one without");
	}
	sio_session_lock(lib->session);
	rc = await(b, timeout, err);
	taken = rc != (int)SCI_ERR_TIMEOUT && rc != -ECANCELED;
	sio_session_unlock(lib->session);
	if (taken)
		sio_object_end(&b->o);
	else
		sio_object_put(&b->o);
	return rc;
}

void SCIWaitForBlockTransfer(sci_block_transfer_t block, unsigned int timeout, unsigned int flags,
			     sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? wait_for(lib, block, timeout, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

/* Under the lock; @b is claimed. */
static int give_up(struct sio_block *b, struct sio_err *err)
{
	struct sio_library *lib = b->o.lib;

	if (b->over)
		return sio_fail(err, -EPERM, "the transfer is over: one under way can be aborted");
	__atomic_store_n(&b->aborted, 1, __ATOMIC_RELAXED);
	if (blocks_of(lib)->first != b)
		over(b, SCI_ERR_CANCELLED);
	while (!b->over)
		sio_session_wait(lib->session, NULL, 0, SIO_FOREVER);
	return 0;
}

static int abort_block(struct sio_library *lib, sci_block_transfer_t block, unsigned flags,
		       struct sio_err *err)
{
	struct sio_block *b;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	b = sio_object_get(lib, block, SIO_BLOCK_TRANSFER, err);
	if (!b)
		return err->code;
	rc = sio_object_claim(&b->o, false, err);
	if (!rc) {
		sio_session_lock(lib->session);
		rc = give_up(b, err);
		sio_session_unlock(lib->session);
		if (rc)
			sio_object_unclaim(&b->o);
	}
	if (rc)
		sio_object_put(&b->o);
	else
		sio_object_end(&b->o);
	return rc;
}

void SCIAbortBlockTransfer(sci_block_transfer_t block, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? abort_block(lib, block, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

/* ---- callbacks, and the end ---- */

static struct sio_block *next_over(struct sio_library *lib)
{
	struct blocks *all = blocks_of(lib);
	struct sio_block *b;

	sio_session_lock(lib->session);
	b = all->over;
	if (b) {
		all->over = b->next;
		if (!all->over)
			all->over_end = &all->over;
	}
	sio_session_unlock(lib->session);
	return b;
}

static sci_callback_action_t run_callback(struct sio_object *o, void *arg)
{
	struct sio_block *b = (struct sio_block *)o;

	(void)arg;
	b->callback(b->arg, sio_object_handle(o), b->status);
	return SCI_CALLBACK_CONTINUE;
}

static bool waits(const void *state)
{
	return ((const struct blocks *)state)->over != NULL;
}

static void run(struct sio_library *lib)
{
	struct sio_block *b;

	while ((b = next_over(lib))) {
		sio_object_callback(&b->o, run_callback, NULL);
		sio_object_end(&b->o);
	}
}

/* Abort all, and end the thread. */
static void purge(struct sio_library *lib)
{
	struct blocks *all = blocks_of(lib);
	struct sio_world_thread *t;
	struct sio_block *b;

	sio_session_lock(lib->session);
	for (b = all->first; b; b = b->next)
		__atomic_store_n(&b->aborted, 1, __ATOMIC_RELAXED);
	while (all->copying)
		sio_session_wait(lib->session, NULL, 0, SIO_FOREVER);
	t = all->copier;
	all->copier = NULL;
	sio_session_unlock(lib->session);
	if (t)
		lib->world->thread_join(lib->world, t);
	while ((b = next_over(lib)))
		sio_object_put(&b->o);
}

const struct sio_kind_ops sio_block_transfer_kind = {
	.kind = SIO_BLOCK_TRANSFER,
	.name = "block transfer",
	.free = block_free,
	.state_bytes = sizeof(struct blocks),
	.init = init,
	.waits = waits,
	.run = run,
	.purge = purge,
};
