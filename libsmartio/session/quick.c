/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes to the quick table: one thread at a time, under the session's lock. */
#include "session/quick.h"

struct sio_quick sio_quick_table[SIO_QUICK_ENTRIES];

void sio_quick_set(struct sio_world *w, uintptr_t handle, void *at, size_t bytes)
{
	struct sio_quick *q = sio_quick_entry(handle);

	/*
	 * The first entry stays empty: it belongs to the handle NULL, which every empty entry
	 * contains.
	 */
	if (!w->alone || q == sio_quick_table)
		return;
	/*
	 * Whoever sees the new place no longer sees the old handle: pairs with the loads of both in
	 * sio_quick_get(). The new handle needs no ordering, because nobody has it before this call
	 * returns.
	 */
	__atomic_store_n(&q->handle, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->at, (uint8_t *)at, __ATOMIC_RELEASE);
	__atomic_store_n(&q->bytes, bytes, __ATOMIC_RELEASE);
	__atomic_store_n(&q->handle, handle, __ATOMIC_RELAXED);
}

void sio_quick_again(struct sio_world *w, uintptr_t handle, void *at, size_t bytes)
{
	const struct sio_quick *q = sio_quick_entry(handle);

	if (!q->handle && q->at == (uint8_t *)at && q->bytes == bytes)
		sio_quick_set(w, handle, at, bytes);
}

void sio_quick_clear(struct sio_world *w, uintptr_t handle)
{
	struct sio_quick *q = sio_quick_entry(handle);

	if (w->alone && q->handle == handle)
		__atomic_store_n(&q->handle, 0, __ATOMIC_RELAXED);
}

/* Entries that are empty are not written, so that pages nobody has used stay unallocated. */
void sio_quick_forget(void)
{
	for (unsigned i = 0; i < SIO_QUICK_ENTRIES; i++)
		if (sio_quick_table[i].handle)
			__atomic_store_n(&sio_quick_table[i].handle, 0, __ATOMIC_RELAXED);
}
