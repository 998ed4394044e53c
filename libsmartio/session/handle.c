/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of live handles. Its slots lie in chunks that never move, so a look-up needs no lock.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "session/handle.h"

#define CHUNK_SLOTS 256u
#define CHUNKS 4096u
#define INDEX_BITS 20
#define KIND_SHIFT 24
#define GENERATION_SHIFT 32

_Static_assert(CHUNK_SLOTS *CHUNKS == 1u << INDEX_BITS, "an index fits its bits");
_Static_assert(sizeof(uintptr_t) == 8, "a handle has 64 bits");

/*
 * The state of a slot: generation << 32 | DEAD | number of references. A slot without references is
 * free.
 */
#define DEAD (1ull << 31)
#define REFS (DEAD - 1)

struct slot {
	uint64_t state;
	unsigned kind;
	void *object;
	volatile uint32_t words[SIO_HANDLE_WORDS];
};

struct sio_handles {
	void (*object_free)(void *object);
	unsigned used, capacity, cursor; /* used: changed from any thread */
	struct slot *chunk[CHUNKS];
};

static struct slot *slot_at(struct sio_handles *t, unsigned index)
{
	/* pairs with the release in ensure_space() */
	struct slot *chunk = __atomic_load_n(&t->chunk[index / CHUNK_SLOTS], __ATOMIC_ACQUIRE);

	return chunk ? &chunk[index % CHUNK_SLOTS] : NULL;
}

static struct slot *slot_of(struct sio_handles *t, uintptr_t handle)
{
	return slot_at(t, (unsigned)(handle >> SIO_HANDLE_INDEX_SHIFT) & ((1u << INDEX_BITS) - 1));
}

int sio_handles_new(void (*object_free)(void *object), struct sio_handles **ret)
{
	struct sio_handles *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->object_free = object_free;
	*ret = t;
	return 0;
}

void sio_handles_free(struct sio_handles *t)
{
	for (unsigned i = 0; t && i < CHUNKS; i++)
		free(t->chunk[i]);
	free(t);
}

/* Keeps half of the slots free, so that the search for one is short and a slot is reused late. */
static int ensure_space(struct sio_handles *t)
{
	struct slot *chunk;

	if (__atomic_load_n(&t->used, __ATOMIC_RELAXED) < t->capacity / 2)
		return 0;
	if (t->capacity == CHUNK_SLOTS * CHUNKS)
		return t->used < t->capacity ? 0 : -ENOMEM;
	chunk = calloc(CHUNK_SLOTS, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	/* Whoever finds the chunk sees zeroed slots; pairs with the load in slot_at(). */
	__atomic_store_n(&t->chunk[t->capacity / CHUNK_SLOTS], chunk, __ATOMIC_RELEASE);
	t->capacity += CHUNK_SLOTS;
	return 0;
}

int sio_handle_new(struct sio_handles *t, unsigned kind, void *object, uintptr_t *ret)
{
	struct slot *slot;
	uint64_t state, generation;

	if (ensure_space(t) < 0)
		return -ENOMEM;
	/*
	 * The last user of a free slot has finished with it; pairs with the release in slot_free().
	 */
	for (;;) {
		t->cursor = (t->cursor + 1) % t->capacity;
		slot = slot_at(t, t->cursor);
		state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
		if (!(state & (REFS | DEAD)))
			break;
	}
	generation = ((state >> GENERATION_SHIFT) + 1) & 0xffffffff;
	if (generation == 0)
		generation = 1;
	slot->kind = kind;
	slot->object = object;
	for (unsigned i = 0; i < SIO_HANDLE_WORDS; i++)
		slot->words[i] = 0;
	__atomic_add_fetch(&t->used, 1, __ATOMIC_RELAXED);
	/* pairs with the loads in sio_handle_get() and sio_handle_words() */
	__atomic_store_n(&slot->state, generation << GENERATION_SHIFT | 1, __ATOMIC_RELEASE);
	*ret = (uintptr_t)(generation << GENERATION_SHIFT | (uint64_t)kind << KIND_SHIFT |
			   (uint64_t)t->cursor << SIO_HANDLE_INDEX_SHIFT);
	return 0;
}

static int is_current(uint64_t state, uintptr_t handle)
{
	return state >> GENERATION_SHIFT == (uint64_t)handle >> GENERATION_SHIFT &&
	       !(state & DEAD) && (state & REFS);
}

unsigned sio_handle_kind(uintptr_t handle)
{
	return handle >> KIND_SHIFT & 0xff;
}

static int has_form(uintptr_t handle, unsigned kind)
{
	return sio_handle_kind(handle) == kind && !(handle & ((1u << SIO_HANDLE_INDEX_SHIFT) - 1));
}

void *sio_handle_get(struct sio_handles *t, uintptr_t handle, unsigned kind)
{
	struct slot *slot = has_form(handle, kind) ? slot_of(t, handle) : NULL;
	uint64_t state;

	if (!slot)
		return NULL;
	/* pairs with the release in sio_handle_new() */
	state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
	do {
		if (!is_current(state, handle))
			return NULL;
	} while (!__atomic_compare_exchange_n(&slot->state, &state, state + 1, 1, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	if (slot->kind == kind)
		return slot->object;
	sio_handle_put(t, handle);
	return NULL;
}

void sio_handle_ref(struct sio_handles *t, uintptr_t handle)
{
	__atomic_add_fetch(&slot_of(t, handle)->state, 1, __ATOMIC_RELAXED);
}

static void slot_free(struct sio_handles *t, struct slot *slot, uint64_t state)
{
	t->object_free(slot->object);
	/* pairs with the load in sio_handle_new() */
	__atomic_store_n(&slot->state, state & ~(DEAD | REFS), __ATOMIC_RELEASE);
	__atomic_sub_fetch(&t->used, 1, __ATOMIC_RELAXED);
}

void sio_handle_put(struct sio_handles *t, uintptr_t handle)
{
	struct slot *slot = slot_of(t, handle);
	/* All accesses of all users come before the object is freed: pairs with itself. */
	uint64_t state = __atomic_sub_fetch(&slot->state, 1, __ATOMIC_ACQ_REL);

	if (!(state & REFS))
		slot_free(t, slot, state);
}

void sio_handle_remove(struct sio_handles *t, uintptr_t handle)
{
	/* pairs with sio_handle_get(), which no longer finds it */
	__atomic_or_fetch(&slot_of(t, handle)->state, DEAD, __ATOMIC_ACQ_REL);
	sio_handle_put(t, handle);
}

volatile uint32_t *sio_handle_words(struct sio_handles *t, uintptr_t handle, unsigned kind)
{
	struct slot *slot = has_form(handle, kind) ? slot_of(t, handle) : NULL;

	/* pairs with the release in sio_handle_new() */
	if (!slot || !is_current(__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE), handle))
		return NULL;
	return slot->words;
}
