/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCIMemCpy() where nothing is wrong and nothing unusual is asked for. A copy of 64 bytes takes
 * 2 ns, so nothing is locked, counted or called here; whatever is not plain goes to copy.c, which
 * tells what is wrong, too. All calls are the last thing done, so that no frame is needed.
 */
#include "session/quick.h"
#include "sisci/copy.h"
#include "smartio/io.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static __attribute__((noinline)) void copy_more_out(uint8_t *to, const uint8_t *from, size_t size)
{
	struct sio_choice *c;
	bool due;

	if (UNLIKELY(size >= SIO_COPY_LARGE)) {
		sio_copy_out(to, from, size);
		return;
	}
	c = sio_copy_choice(to, size);
	due = !sio_choice_pausing(c, sio_copy_counted(size));
	if (due || sio_choice_way(c))
		sio_copy_out_chosen(c, due, to, from, size);
	else
		sio_copy_middle(to, from, size);
}

static __attribute__((noinline)) void copy_in(uint8_t *to, const uint8_t *from, size_t size)
{
	if (size < SIO_COPY_LARGE) {
		sio_copy_middle(to, from, size);
	} else {
		sio_copy_large(to, from, size);
		sio_to_fabric_barrier();
	}
}

static bool is_sequence(sci_sequence_t sequence)
{
	uint8_t *at;
	size_t bytes;

	return sio_quick_get((uintptr_t)sequence, &at, &bytes) && bytes == 0;
}

/*
 * What is stored takes a place in the queue of stores even if it changes nothing, and copy_middle.c
 * tells what that may cost. So @error is looked at first, which perhaps nobody has written yet;
 * where valgrind would report that, no copy comes here (world_live.c). The thread's text is of its
 * last call that failed, and stays.
 */
static inline __attribute__((always_inline)) void tell_success(sci_error_t *error)
{
	if (!UNLIKELY(!error) && UNLIKELY(*error != SCI_ERR_OK))
		*error = SCI_ERR_OK;
}

/* Apart, so that a copy out in no sequence does not pay for the registers. */
static __attribute__((noinline)) void copy_unusually(sci_sequence_t sequence, void *memory,
						     sci_map_t map, size_t offset, size_t size,
						     unsigned flags, sci_error_t *error)
{
	uint8_t *at;
	size_t bytes;

	if ((sequence && !is_sequence(sequence)) || (flags & ~(unsigned)SCI_FLAG_BLOCK_READ) ||
	    !memory || !size || !sio_quick_get((uintptr_t)map, &at, &bytes) || size > bytes ||
	    offset > bytes - size) {
		sio_copy_slowly(sequence, memory, map, offset, size, flags, error);
		return;
	}
	tell_success(error);
	if (flags)
		copy_in(memory, at + offset, size);
	else if (size < SIO_COPY_CHOSEN)
		sio_copy_middle(at + offset, memory, size);
	else
		copy_more_out(at + offset, memory, size);
}

/* On the way to a short copy out no jump is taken, and nothing is stored. */
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
	    UNLIKELY(size > bytes) || UNLIKELY(remoteOffset > bytes - size) || UNLIKELY(!size)) {
		sio_copy_slowly(NULL, memAddr, remoteMap, remoteOffset, size, 0, error);
		return;
	}
	tell_success(error);
	if (!UNLIKELY(size >= SIO_COPY_CHOSEN))
		sio_copy_middle(at + remoteOffset, memAddr, size);
	else
		copy_more_out(at + remoteOffset, memAddr, size);
}
