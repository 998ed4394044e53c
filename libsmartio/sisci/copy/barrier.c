/* SPDX-License-Identifier: BSD-2-Clause */
/* Barriers for programs that write through pointers. */
#include "sisci/copy/sequence.h"
#include "smartio/io.h"

void SCIFlush(sci_sequence_t sequence, unsigned int flags)
{
	(void)sequence;
	(void)flags;
	sio_to_fabric_barrier(); /* pairs with SCIFlushReadBuffers() there, or a device's order */
}

void SCIStoreBarrier(sci_sequence_t sequence, unsigned int flags)
{
	struct sio_library *lib = sio_library_get();

	(void)flags;
	/* pairs with SCIFlushReadBuffers() of the reader, or a device's order */
	sio_to_fabric_barrier();
	if (lib && sio_library_is_up(lib))
		sio_sequence_push(lib, sequence);
	else
		sio_full_barrier();
}

void SCIFlushReadBuffers(sci_sequence_t sequence)
{
	(void)sequence;
	sio_from_fabric_barrier(); /* pairs with SCIFlush() or SCIStoreBarrier() of the writer */
}

void SCICacheSync(sci_map_t map, void *addr, size_t length, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	(void)map;
	(void)addr;
	(void)length;
	if (lib)
		rc = sio_check_flags(flags, SCI_FLAG_CACHE_FLUSH | SCI_FLAG_CACHE_INVALIDATE, 0,
				     &err);
	/* pairs with the same call, or with SCIFlushReadBuffers(), at the other end */
	sio_to_fabric_barrier();
	sio_full_barrier();
	sio_api_leave(error, rc, &err);
}
