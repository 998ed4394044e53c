/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of segments that were made empty. Other hosts cannot reach pages of the program as they
 * are; so the segment gets memory like any other, which takes over their contents and their
 * addresses.
 */
#include <errno.h>

#include "core/types.h"
#include "sisci/segment/segment.h"
#include "smartio/gpu.h"

_Static_assert((int)SIO_MEMORY_PAGES == SMARTIO_MEMORY_PAGES &&
		       (int)SIO_MEMORY_PINNED == SMARTIO_MEMORY_PINNED &&
		       (int)SIO_MEMORY_GPU == SMARTIO_MEMORY_GPU &&
		       (int)SIO_MEMORY_DMABUF == SMARTIO_MEMORY_DMABUF,
	       "programs and smartiod have one number for a kind of memory");

/* Why stores of other threads could be lost. */
#define NO_FREEZE                                                                                  \
	"other threads of this program may store there meanwhile, and the kernel gives it no "     \
	"userfaultfd to let them wait (a container's seccomp profile?)"

/* What a card reaches must not move while it does. */
static int release_pages(struct sio_local_segment *seg)
{
	struct sio_world *w = seg->o.lib->world;
	const uint64_t at = (uintptr_t)seg->pages;
	const char *why;
	bool pinned;
	int rc;

	if (!seg->pages)
		return 0;
	/* A driver that knows them no more has ended, or its program has unregistered them. */
	pinned = seg->memory_kind == SMARTIO_MEMORY_PINNED && w->gpu && !w->gpu->unpin(at, &why);
	rc = w->pages_release(w, seg->pages, seg->pages_bytes, seg->fd);
	if (pinned && w->gpu->pin(at, seg->pages_bytes, &why))
		w->log(w, "pages of a removed segment are the program's again, but CUDA's driver "
			  "does not register them again");
	return rc;
}

int sio_local_segment_return_pages(struct sio_local_segment *seg, struct sio_err *err)
{
	int rc = release_pages(seg);

	if (rc == -EPERM || rc == -EOPNOTSUPP)
		return sio_fail(
			err, -ENOMEM,
			"segment %#x is removed, but %#zx bytes at %p cannot be given back: %s; "
			"remove it again",
			seg->segment_id, seg->pages_bytes, seg->pages,
			rc == -EPERM ? NO_FREEZE : "this thread's stack lies there");
	if (rc < 0)
		return sio_fail(
			err, -ENOMEM,
			"segment %#x is removed, but there is no memory to give %#zx bytes at "
			"%p back: error %d; remove it again",
			seg->segment_id, seg->pages_bytes, seg->pages, -rc);
	seg->pages = NULL;
	return 0;
}

static int check_pages(const struct sio_local_segment *seg, const void *address, size_t size,
		       struct sio_err *err)
{
	uintptr_t end;

	if (size == 0 || size % SIO_PAGE_SIZE)
		return sio_refuse(err, SCI_ERR_SIZE_ALIGNMENT,
				  "size %#zx is no multiple of a page (%#x)", size, SIO_PAGE_SIZE);
	if (!address || (uintptr_t)address % SIO_PAGE_SIZE ||
	    __builtin_add_overflow((uintptr_t)address, size, &end))
		return sio_refuse(err, SCI_ERR_ILLEGAL_ADDRESS, "address %p is not that of a page",
				  address);
	if (size > seg->bytes)
		return sio_fail(err, -ERANGE, "size %#zx; segment %#x was made for %#zx bytes",
				size, seg->segment_id, (size_t)seg->bytes);
	return 0;
}

int sio_local_segment_begin(struct sio_local_segment *seg, struct sio_err *err)
{
	int rc = 0;

	sio_session_lock(seg->o.lib->session);
	if (seg->memory == SIO_EMPTY)
		seg->memory = SIO_FILLING;
	else
		rc = sio_fail(
			err, -EPERM,
			"segment %#x has memory%s: one that SCI_FLAG_EMPTY made is filled, once",
			seg->segment_id, seg->memory == SIO_FILLING ? " in a moment" : "");
	sio_session_unlock(seg->o.lib->session);
	return rc;
}

void sio_local_segment_finish(struct sio_local_segment *seg)
{
	sio_session_lock(seg->o.lib->session);
	seg->memory = seg->memory_kind ? SIO_HAS_MEMORY : SIO_EMPTY;
	sio_session_unlock(seg->o.lib->session);
}

static int ask(struct sio_local_segment *seg, struct sio_call *call, struct sio_err *err)
{
	struct sio_rep_seg_create rep;
	int rc;

	call->rep = &rep;
	call->rep_len = sizeof(rep);
	call->fds = &seg->fd;
	call->max_fds = 1;
	rc = sio_session_call(seg->o.lib->session, call, err);
	if (rc < 0)
		return sio_error_as(rc, -ENOSPC, SCI_ERR_NOSPC);
	rc = sio_session_check_fds(seg->o.lib->session, call, 1, err);
	if (!rc) {
		seg->phys_addr = sio_from_le64(rep.phys_addr);
		seg->fd_offset = sio_from_le64(rep.fd_offset);
	}
	return rc;
}

/* Kept if the rest fails: the next try finds it, and may be for pages of another kind. */
static int get_memory(struct sio_local_segment *seg, unsigned kind, struct sio_err *err)
{
	struct sio_world *w = seg->o.lib->world;
	struct sio_msg_handle req = {.handle = sio_to_le32(seg->o.id), .flags = sio_to_le32(kind)};
	struct sio_call call = {.req = &req.h, .req_len = sizeof(req), .type = SIO_MSG_SEG_FILL};

	if (seg->fd >= 0)
		w->close(w, seg->fd);
	seg->fd = -1;
	return ask(seg, &call, err);
}

int sio_local_segment_ask_memory(struct sio_local_segment *seg, int fd, uint64_t offset,
				 unsigned kind, struct sio_err *err)
{
	struct sio_msg_seg_take req = {.handle = sio_to_le32(seg->o.id),
				       .memory = sio_to_le32(kind),
				       .offset = sio_to_le64(offset)};
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_SEG_TAKE,
				.req_fds = &fd,
				.n_req_fds = 1};

	if (seg->fd >= 0) /* of a try with the program's pages, that failed */
		return sio_fail(
			err, -EPERM,
			"segment %#x has host memory by now: another one that SCI_FLAG_EMPTY made "
			"is right",
			seg->segment_id);
	return ask(seg, &call, err);
}

int sio_local_segment_adopt(struct sio_local_segment *seg, void *address, size_t size,
			    unsigned kind, struct sio_err *err)
{
	struct sio_world *w = seg->o.lib->world;
	int rc = get_memory(seg, kind, err);

	if (rc)
		return rc;
	rc = w->pages_adopt(w, address, size, seg->fd);
	switch (rc) {
	case 0:
		seg->pages = address;
		seg->pages_bytes = size;
		return 0;
	case -EFAULT:
		return sio_refuse(err, SCI_ERR_ILLEGAL_ADDRESS,
				  "%#zx bytes at %p are not all memory that can be written", size,
				  address);
	case -EOPNOTSUPP:
		return sio_fail(err, rc,
				"%#zx bytes at %p are not all private memory of this program "
				"(heap, or anonymous pages, but no stack in use)",
				size, address);
	case -EBUSY:
		return sio_fail(err, -EOPNOTSUPP,
				"%#zx bytes at %p: this program has a userfaultfd of its own there",
				size, address);
	case -EPERM:
		return sio_fail(err, -EOPNOTSUPP, "%#zx bytes at %p: %s", size, address, NO_FREEZE);
	default:
		return sio_fail(err, -ENOMEM, "no memory to exchange %#zx bytes at %p: error %d",
				size, address, -rc);
	}
}

static int register_memory(struct sio_library *lib, void *address, size_t size,
			   sci_local_segment_t segment, unsigned flags, struct sio_err *err)
{
	struct sio_local_segment *seg;
	int rc = sio_check_flags(flags, SCI_FLAG_LOCK_USER_MEM, 0, err);

	if (rc)
		return rc;
	seg = sio_object_get(lib, segment, SIO_LOCAL_SEGMENT, err);
	if (!seg)
		return err->code;
	rc = check_pages(seg, address, size, err);
	if (!rc)
		rc = sio_local_segment_begin(seg, err);
	if (!rc) {
		rc = sio_local_segment_adopt(seg, address, size, SMARTIO_MEMORY_PAGES, err);
		if (!rc)
			seg->memory_kind = SMARTIO_MEMORY_PAGES;
		sio_local_segment_finish(seg);
	}
	sio_object_put(&seg->o);
	return rc;
}

void SCIRegisterSegmentMemory(void *address, size_t size, sci_local_segment_t segment,
			      unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? register_memory(lib, address, size, segment, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}
