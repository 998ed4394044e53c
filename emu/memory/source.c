/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects that grants, DMA mappings, messages and watches can be made of: those that have
 * addresses.
 */
#include "emu/memory/memory.h"

uint64_t emu_source_physical(const struct emu_object *source, uint64_t offset)
{
	return emu_kind_of(source)->physical(source, offset);
}

int emu_range_check(struct emu_request *rq, const char *what, const struct emu_object *source,
		    uint64_t offset, uint64_t length)
{
	uint64_t end, size = emu_kind_of(source)->length(source);

	if (offset % EMU_PAGE || length % EMU_PAGE || length == 0)
		return sio_fail(&rq->err, -EINVAL,
				"%s: range %#" PRIx64 " + %#" PRIx64 " is not of whole pages", what,
				offset, length);
	if (__builtin_add_overflow(offset, length, &end) || end > size)
		return sio_fail(&rq->err, -EINVAL,
				"%s: range %#" PRIx64 " + %#" PRIx64 " ends behind %s %#" PRIx64
				" of %#" PRIx64 " bytes",
				what, offset, length, emu_object_name(source), source->id, size);
	return 0;
}

int emu_no_iova(struct emu_request *rq)
{
	rq->err.reason = SIO_OUT_OF_IOVA;
	rq->err.code = -ENOSPC;
	return -ENOSPC;
}
