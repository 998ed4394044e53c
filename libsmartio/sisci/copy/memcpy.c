/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCIMemCpy(), the fast path: nothing is wrong and nothing unusual is asked for. A copy of 64 bytes
 * takes a few ns, so nothing is locked or counted here; every other case goes to copy.c, which also
 * reports errors.
 */
#include "session/quick.h"
#include "sisci/copy/copy.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static bool is_sequence(sci_sequence_t sequence)
{
	uint8_t *at;
	size_t bytes;

	return sio_quick_get((uintptr_t)sequence, &at, &bytes) && bytes == 0;
}

/*
 * What is stored takes a place in the processor's queue of stores even if it changes nothing, and
 * while a line that somebody else reads is on its way here that queue decides how many copies can
 * be under way. So @error is looked at first, which perhaps nobody has written yet; where valgrind
 * would report that, no copy comes here (world_live.c). The thread's text is of its last call that
 * failed, and stays.
 */
static inline __attribute__((always_inline)) void set_success(sci_error_t *error)
{
	if (!UNLIKELY(!error) && UNLIKELY(*error != SCI_ERR_OK))
		*error = SCI_ERR_OK;
}

/*
 * Sizes that do not fit are 0, too: size - 1 >= bytes. Apart, so that a copy out in no sequence
 * does not pay for the registers.
 */
static __attribute__((noinline)) void copy_unusually(sci_sequence_t sequence, void *memory,
						     sci_map_t map, size_t offset, size_t size,
						     unsigned flags, sci_error_t *error)
{
	uint8_t *at;
	size_t bytes;

	if ((sequence && !is_sequence(sequence)) || (flags & ~(unsigned)SCI_FLAG_BLOCK_READ) ||
	    !memory || !sio_quick_get((uintptr_t)map, &at, &bytes) || size - 1 >= bytes ||
	    offset > bytes - size) {
		sio_copy_slowly(sequence, memory, map, offset, size, flags, error);
		return;
	}
	set_success(error);
	/* Each barrier pairs with that of the other direction, or SCIFlush(), at the other end. */
	if (flags) {
		sio_copy_in(memory, at + offset, size, false);
		sio_from_fabric_barrier();
	} else {
		sio_copy_out(at + offset, memory, size, false);
		sio_to_fabric_barrier();
	}
}

void SCIMemCpy(sci_sequence_t sequence, void *memAddr, sci_map_t remoteMap, size_t remoteOffset,
	       size_t size, unsigned int flags, sci_error_t *error)
{
	uint8_t *at;
	size_t bytes;

	if (UNLIKELY((uintptr_t)sequence | flags)) {
		copy_unusually(sequence, memAddr, remoteMap, remoteOffset, size, flags, error);
		return;
	}
	if (UNLIKELY(!memAddr) || UNLIKELY(!sio_quick_get((uintptr_t)remoteMap, &at, &bytes)) ||
	    UNLIKELY(size - 1 >= bytes) || UNLIKELY(remoteOffset > bytes - size)) {
		sio_copy_slowly(NULL, memAddr, remoteMap, remoteOffset, size, 0, error);
		return;
	}
	set_success(error);
	sio_copy_out(at + remoteOffset, memAddr, size, false);
	/* pairs with SCIFlushReadBuffers() of who reads it */
	sio_to_fabric_barrier();
}
