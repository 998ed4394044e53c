/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The quick table: which handles live, and where their memory is, for copies of a few bytes that
 * have no time for the library's table of handles. A look-up takes three loads and one comparison.
 * An entry is found by the low bits of a handle's slot, so two handles may want the same entry: the
 * later one gets it. A caller that finds another handle than its own, or none, takes the slow path,
 * which knows all handles.
 */
#ifndef SESSION_QUICK_H
#define SESSION_QUICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session/handle.h"
#include "session/world.h"

#define SIO_QUICK_ENTRIES 4096u

struct sio_quick {
	uintptr_t handle; /* 0: none */
	uint8_t *at;
	size_t bytes;		/* 0: it has no memory */
} __attribute__((aligned(32))); /* within a cache line, and easily found */

/*
 * The table of the one process that has this image of memory in a live world; other worlds have
 * many processes, and leave it empty.
 */
extern struct sio_quick sio_quick_table[SIO_QUICK_ENTRIES] __attribute__((visibility("hidden")));

/* Under the session's lock: @handle lives, and its memory may be written to; or no longer. */
void sio_quick_set(struct sio_world *w, uintptr_t handle, void *at, size_t bytes);
/*
 * Sets an entry again that was cleared. A handle that lost its entry to another does not get it
 * back: a reader that slept meanwhile would find its handle as before, and take the other's memory.
 */
void sio_quick_again(struct sio_world *w, uintptr_t handle, void *at, size_t bytes);
void sio_quick_clear(struct sio_world *w, uintptr_t handle);
/* Empties the table in a child of fork(), which has no handles. */
void sio_quick_forget(void);

static inline struct sio_quick *sio_quick_entry(uintptr_t handle)
{
	return &sio_quick_table[handle >> SIO_HANDLE_INDEX_SHIFT & (SIO_QUICK_ENTRIES - 1)];
}

/*
 * Reads the memory of a handle, and its size; false: take the slow path. The handle is compared
 * after the rest was read: a caller has its handle from an earlier call, which filled the entry,
 * and an entry that becomes another handle's is emptied before anything else of it changes.
 */
static inline bool sio_quick_get(uintptr_t handle, uint8_t **ret_at, size_t *ret_bytes)
{
	const struct sio_quick *q = sio_quick_entry(handle);

	__asm__("" : "+r"(q)); /* one address: else each member's is made from the table's again */
	/* pairs with the releases in sio_quick_set() */
	*ret_at = __atomic_load_n(&q->at, __ATOMIC_ACQUIRE);
	*ret_bytes = __atomic_load_n(&q->bytes, __ATOMIC_ACQUIRE);
	return __builtin_expect(__atomic_load_n(&q->handle, __ATOMIC_RELAXED) == handle, 1);
}

#endif
