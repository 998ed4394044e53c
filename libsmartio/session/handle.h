/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles that programs have: numbers in the form of pointers, checked at each use. A handle names
 * a slot, the generation of the slot and a kind; a removed, foreign or invented one is refused.
 *
 * new and remove are called under the session's lock; all others from any thread without a lock.
 */
#ifndef SESSION_HANDLE_H
#define SESSION_HANDLE_H

#include <stdint.h>

#define SIO_HANDLE_WORDS 7
#define SIO_HANDLE_INDEX_SHIFT 4 /* of the number of a handle's slot in the handle */

struct sio_handles;

/*
 * @object_free is called when the last reference to a removed object is released, in whatever
 * thread.
 */
int sio_handles_new(void (*object_free)(void *object), struct sio_handles **ret);
/* Frees a table without handles. NULL is fine. */
void sio_handles_free(struct sio_handles *t);

/* The kind that a handle states; not checked. */
unsigned sio_handle_kind(uintptr_t handle);

/* Makes a handle of @kind (1 to 15) for @object, with one reference, the table's own. -ENOMEM. */
int sio_handle_new(struct sio_handles *t, unsigned kind, void *object, uintptr_t *ret);
/* The object, with a reference for the caller; NULL: no such handle of @kind. */
void *sio_handle_get(struct sio_handles *t, uintptr_t handle, unsigned kind);
/* Takes another reference to an object of which the caller has one. */
void sio_handle_ref(struct sio_handles *t, uintptr_t handle);
void sio_handle_put(struct sio_handles *t, uintptr_t handle);
/* From now on every get fails; drops the table's reference. */
void sio_handle_remove(struct sio_handles *t, uintptr_t handle);

/*
 * Words beside a handle that can be read without a reference; 0 at first. The memory stays as long
 * as the table, but belongs to the next handle of the slot once this one is freed. NULL: no such
 * handle.
 */
volatile uint32_t *sio_handle_words(struct sio_handles *t, uintptr_t handle, unsigned kind);

#endif
