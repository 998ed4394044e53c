/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a copy of a few bytes has no time to find by the library and its table of handles: which
 * handles live, and where their memory is. Three loads and one comparison tell.
 *
 * An entry is found by the low bits of a handle's place, so two handles may want the same: the
 * later one has it. Who finds another handle than its own, or none, takes the long way, which knows
 * all.
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
 * Of the one process that has this image of memory in a live world; other worlds have many
 * processes, and leave it empty.
 */
extern struct sio_quick sio_quick_table[SIO_QUICK_ENTRIES] __attribute__((visibility("hidden")));

/* Under the session's lock: @handle lives, and its memory may be written to; or no longer. */
void sio_quick_set(struct sio_world *w, uintptr_t handle, void *at, size_t bytes);
/*
 * After it was cleared: once more as it was set. Who lost the entry to another handle does not get
 * it back: a reader that slept meanwhile would find its handle as before, and take the other's
 * memory.
 */
void sio_quick_again(struct sio_world *w, uintptr_t handle, void *at, size_t bytes);
void sio_quick_clear(struct sio_world *w, uintptr_t handle);
/* In a child of fork(), which has no handles. */
void sio_quick_forget(void);

static inline struct sio_quick *sio_quick_entry(uintptr_t handle)
{
	return &sio_quick_table[handle >> SIO_HANDLE_INDEX_SHIFT & (SIO_QUICK_ENTRIES - 1)];
}

/*
 * Its memory, and how much; false: take the long way. The handle is compared when the rest was
 * read: who has one has it from a call that happened before and filled the entry, and an entry that
 * becomes another's is empty before anything else of it changes.
 */
static inline bool sio_quick_get(uintptr_t handle, uint8_t **ret_at, size_t *ret_bytes)
{
	const struct sio_quick *q = sio_quick_entry(handle);

	__asm__("" : "+r"(q)); /* one address: else each member's is made from the table's anew */
	*ret_at = __atomic_load_n(&q->at, __ATOMIC_ACQUIRE);
	*ret_bytes = __atomic_load_n(&q->bytes, __ATOMIC_ACQUIRE);
	return __builtin_expect(__atomic_load_n(&q->handle, __ATOMIC_RELAXED) == handle, 1);
}

#endif
