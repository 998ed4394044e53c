/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCIMemCpy() where nothing is wrong and nothing unusual is asked for. A copy of 64 bytes takes
 * 2 ns, so nothing is locked, counted or called here; whatever is not plain goes to copy.c, which
 * tells what is wrong, too. All calls are the last thing done, so that no frame is needed.
 */
#include "session/quick.h"
#include "sisci/copy.h"
#include "sisci/error.h"
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
 * Return: it is done. No bytes are no case of ours: size - 1 is huge then. On the way to a short
 * copy out no jump is taken, and nothing is stored but the error: copy_middle.c tells what a store
 * may cost.
 */
static inline __attribute__((always_inline)) bool copy_plainly(void *memory, sci_map_t map,
							       size_t offset, size_t size,
							       unsigned flags, sci_error_t *error)
{
	uint8_t *at;
	size_t bytes;

	if (UNLIKELY(!memory) || UNLIKELY(flags & ~(unsigned)SCI_FLAG_BLOCK_READ) ||
	    UNLIKELY(!sio_quick_get((uintptr_t)map, &at, &bytes)) || UNLIKELY(offset >= bytes) ||
	    UNLIKELY(size - 1 >= bytes - offset))
		return false;
	if (!UNLIKELY(!error))
		*error = SCI_ERR_OK;
	sio_error_forget();
	if (UNLIKELY(flags))
		copy_in(memory, at + offset, size);
	else if (!UNLIKELY(size >= SIO_COPY_CHOSEN))
		sio_copy_middle(at + offset, memory, size);
	else
		copy_more_out(at + offset, memory, size);
	return true;
}

/* Apart, so that who gives none does not pay for the registers. */
static __attribute__((noinline)) void copy_in_sequence(sci_sequence_t sequence, void *memory,
						       sci_map_t map, size_t offset, size_t size,
						       unsigned flags, sci_error_t *error)
{
	if (!is_sequence(sequence) || !copy_plainly(memory, map, offset, size, flags, error))
		sio_copy_slowly(sequence, memory, map, offset, size, flags, error);
}

void SCIMemCpy(sci_sequence_t sequence, void *memAddr, sci_map_t remoteMap, size_t remoteOffset,
	       size_t size, unsigned int flags, sci_error_t *error)
{
	if (UNLIKELY(sequence != NULL))
		copy_in_sequence(sequence, memAddr, remoteMap, remoteOffset, size, flags, error);
	else if (!copy_plainly(memAddr, remoteMap, remoteOffset, size, flags, error))
		sio_copy_slowly(NULL, memAddr, remoteMap, remoteOffset, size, flags, error);
}
