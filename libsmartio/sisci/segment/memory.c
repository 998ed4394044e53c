/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of segments that were made empty. Pages of the program cannot be reached by others as they
 * are; so the segment gets memory as any other, which takes their contents and their place.
 */
#include <errno.h>

#include "core/types.h"
#include "sisci/segment/segment.h"

/* Why stores of other threads could be lost. */
#define NO_FREEZE                                                                                  \
	"other threads of this program may store there meanwhile, and the kernel gives it no "     \
	"userfaultfd to let them wait (a container's seccomp profile?)"

int sio_local_segment_return_pages(struct sio_local_segment *seg, struct sio_err *err)
{
	struct sio_world *w = seg->o.lib->world;
	int rc = seg->pages ? w->pages_release(w, seg->pages, seg->pages_bytes, seg->fd) : 0;

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

/* The one thread that gives it memory. */
static int begin(struct sio_local_segment *seg, struct sio_err *err)
{
	int rc = 0;

	sio_session_lock(seg->o.lib->session);
	if (seg->memory == SIO_EMPTY)
		seg->memory = SIO_FILLING;
	else
		rc = sio_fail(err, -EPERM, "segment %#x has memory%s", seg->segment_id,
			      seg->memory == SIO_FILLING ? " in a moment" : "");
	sio_session_unlock(seg->o.lib->session);
	return rc;
}

static void finish(struct sio_local_segment *seg, bool filled)
{
	sio_session_lock(seg->o.lib->session);
	seg->memory = filled ? SIO_HAS_MEMORY : SIO_EMPTY;
	sio_session_unlock(seg->o.lib->session);
}

/* Kept if the rest fails: the next try finds it. */
static int get_memory(struct sio_local_segment *seg, struct sio_err *err)
{
	struct sio_msg_handle req = {.handle = sio_to_le32(seg->o.id)};
	struct sio_rep_seg_create rep;
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_SEG_FILL,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.fds = &seg->fd,
				.max_fds = 1};
	int rc;

	if (seg->fd >= 0)
		return 0;
	rc = sio_session_call(seg->o.lib->session, &call, err);
	if (rc < 0)
		return sio_error_as(rc, -ENOSPC, SCI_ERR_NOSPC);
	rc = sio_session_check_fds(seg->o.lib->session, &call, 1, err);
	if (!rc)
		seg->phys_addr = sio_from_le64(rep.phys_addr);
	return rc;
}

static int adopt(struct sio_local_segment *seg, void *address, size_t size, struct sio_err *err)
{
	struct sio_world *w = seg->o.lib->world;
	int rc = w->pages_adopt(w, address, size, seg->fd);

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
		rc = begin(seg, err);
	if (!rc) {
		rc = get_memory(seg, err);
		if (!rc)
			rc = adopt(seg, address, size, err);
		finish(seg, !rc);
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

/*
 * What lies at a physical address belongs to the system or to a driver, and no unprivileged library
 * can hand it on. A graphics card's memory would be for its driver to export.
 */
static int attach(struct sio_library *lib, size_t size, sci_local_segment_t segment, unsigned flags,
		  struct sio_err *err)
{
	struct sio_local_segment *seg;
	int rc = sio_check_flags(flags, SCI_FLAG_CUDA_BUFFER | SCI_FLAG_SCIF_BUFFER, 0, err);

	if (rc)
		return rc;
	seg = sio_object_get(lib, segment, SIO_LOCAL_SEGMENT, err);
	if (!seg)
		return err->code;
	rc = begin(seg, err);
	if (!rc)
		finish(seg, false);
	sio_object_put(&seg->o);
	if (rc)
		return rc;
	if (size == 0)
		return sio_refuse(err, SCI_ERR_SIZE_ALIGNMENT, "size 0; at least 1 byte is needed");
	if (flags & SCI_FLAG_CUDA_BUFFER)
		return sio_refuse(err, SCI_ERR_HW_NOSPC,
				  "no graphics card of this host can share its memory");
	return sio_fail(err, -EOPNOTSUPP, "physical memory cannot be attached");
}

void SCIAttachPhysicalMemory(sci_ioaddr_t ioaddress, void *address, unsigned int busNo, size_t size,
			     sci_local_segment_t segment, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? attach(lib, size, segment, flags, &err) : err.code;

	(void)ioaddress;
	(void)address;
	(void)busNo;
	sio_api_leave(error, rc, &err);
}
