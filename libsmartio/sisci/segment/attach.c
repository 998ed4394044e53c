/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of devices for segments that were made empty: memory of a CUDA card, whose driver exports
 * it as a dma-buf, and dma-bufs of other drivers. Where a card has mapped pages of the program they
 * are taken as SCIRegisterSegmentMemory() takes pages, but the card must not access them meanwhile,
 * because they move.
 */
#include <errno.h>

#include "core/types.h"
#include "sisci/segment/segment.h"
#include "smartio/gpu.h"

/* ---- what a card of CUDA's reaches ---- */

/* The range of a card's memory, or of what was registered with its driver. */
static int check_range(const struct sio_local_segment *seg, uint64_t at, size_t size,
		       struct sio_err *err)
{
	if (size % SIO_PAGE_SIZE)
		return sio_refuse(err, SCI_ERR_SIZE_ALIGNMENT,
				  "size %#zx is no multiple of a page (%#x)", size, SIO_PAGE_SIZE);
	if (at % SIO_PAGE_SIZE)
		return sio_refuse(err, SCI_ERR_ILLEGAL_ADDRESS,
				  "address %#llx is not that of a page", (unsigned long long)at);
	if (size != seg->bytes)
		return sio_fail(err, -ERANGE, "size %#zx; segment %#x was made for %#zx bytes",
				size, seg->segment_id, (size_t)seg->bytes);
	return 0;
}

static int attach_device_memory(struct sio_local_segment *seg, const struct sio_gpu_ops *gpu,
				uint64_t at, size_t size, struct sio_err *err)
{
	struct sio_world *w = seg->o.lib->world;
	const char *why = "";
	int fd = gpu->export(at, size, &why), rc;

	if (fd < 0)
		return sio_refuse(err, SCI_ERR_HW_NOSPC,
				  "CUDA's driver exports no dma-buf of %#zx bytes at %#llx: %s",
				  size, (unsigned long long)at, why);
	rc = sio_local_segment_ask_memory(seg, fd, 0, SMARTIO_MEMORY_GPU, err);
	w->close(w, fd);
	if (!rc)
		seg->memory_kind = SMARTIO_MEMORY_GPU;
	return sio_error_as(rc, -EOPNOTSUPP, SCI_ERR_HW_NOSPC);
}

/* Memory whose pages move while a card reaches them would have the card write to freed pages. */
static int attach_pinned(struct sio_local_segment *seg, const struct sio_gpu_ops *gpu, uint64_t at,
			 size_t size, struct sio_err *err)
{
	const char *why = "";
	int rc = gpu->unpin(at, &why), again;

	if (rc)
		return sio_fail(err, -EOPNOTSUPP,
				"%#zx bytes at %#llx are no pages of the program's that it "
				"registered with cudaHostRegister(): %s. What cudaHostAlloc() gave "
				"stays where CUDA's driver has it",
				size, (unsigned long long)at, why);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): it is the program's pointer. */
	rc = sio_local_segment_adopt(seg, (void *)(uintptr_t)at, size, SMARTIO_MEMORY_PINNED, err);
	again = gpu->pin(at, size, &why);
	if (rc)
		return rc;
	seg->memory_kind = SMARTIO_MEMORY_PINNED;
	if (again)
		return sio_refuse(
			err, SCI_ERR_HW_NOSPC,
			"%#zx bytes at %#llx are the segment's now, but CUDA's driver does "
			"not register them again: %s; remove the segment",
			size, (unsigned long long)at, why);
	return 0;
}

static int check_registered(const struct sio_gpu_memory *m, uint64_t at, size_t size,
			    struct sio_err *err)
{
	const uint64_t bytes = (m->bytes + SIO_PAGE_SIZE - 1) / SIO_PAGE_SIZE * SIO_PAGE_SIZE;

	if (m->start == at && bytes == size)
		return 0;
	return sio_refuse(err, SCI_ERR_ILLEGAL_ADDRESS,
			  "%#zx bytes at %#llx; what is registered with CUDA there are %#llx bytes "
			  "at %#llx: all of it is right, and nothing else",
			  size, (unsigned long long)at, (unsigned long long)m->bytes,
			  (unsigned long long)m->start);
}

static int attach_cuda(struct sio_local_segment *seg, uint64_t at, size_t size, struct sio_err *err)
{
	const struct sio_gpu_ops *gpu = seg->o.lib->world->gpu;
	struct sio_gpu_memory m = {.kind = SIO_GPU_MOVING};
	const char *why = "this world has no cards";
	int rc = gpu ? gpu->memory(at, &m, &why) : -ENODEV;

	if (rc == -ENODEV)
		return sio_refuse(err, SCI_ERR_HW_NOSPC, "no GPU of this host can be asked: %s",
				  why);
	if (rc)
		return sio_refuse(
			err, SCI_ERR_ILLEGAL_ADDRESS,
			"CUDA's driver knows nothing of memory at %#llx: %s; the program's "
			"own pages are for SCIRegisterSegmentMemory()",
			(unsigned long long)at, why);
	rc = check_range(seg, at, size, err);
	if (rc)
		return rc;
	if (m.kind == SIO_GPU_MOVING)
		return sio_fail(
			err, -EOPNOTSUPP,
			"memory at %#llx is managed, so CUDA's driver moves it: cudaMalloc() "
			"is right",
			(unsigned long long)at);
	if (m.kind == SIO_GPU_DEVICE)
		return attach_device_memory(seg, gpu, at, size, err);
	rc = check_registered(&m, at, size, err);
	return rc ? rc : attach_pinned(seg, gpu, at, size, err);
}

/* ---- SCIAttachPhysicalMemory ---- */

/* In one convention the pointer is the address, in another the I/O address. */
static int cuda_pointer(sci_ioaddr_t ioaddress, const void *address, uint64_t *ret,
			struct sio_err *err)
{
	if (ioaddress && address && ioaddress != (uintptr_t)address)
		return sio_refuse(
			err, SCI_ERR_ILLEGAL_ADDRESS,
			"with SCI_FLAG_CUDA_BUFFER the pointer is address, and ioaddress 0");
	*ret = address ? (uintptr_t)address : ioaddress;
	return 0;
}

/*
 * Of other memory: what lies at a physical address belongs to the system or to a driver, and no
 * unprivileged library can hand it on.
 */
static int attach_to(struct sio_local_segment *seg, sci_ioaddr_t ioaddress, const void *address,
		     size_t size, unsigned flags, struct sio_err *err)
{
	uint64_t at = 0;
	int rc;

	if (size == 0)
		return sio_refuse(err, SCI_ERR_SIZE_ALIGNMENT, "size 0; at least 1 byte is needed");
	if (!(flags & SCI_FLAG_CUDA_BUFFER))
		return sio_fail(err, -EOPNOTSUPP, "physical memory cannot be attached");
	rc = cuda_pointer(ioaddress, address, &at, err);
	return rc ? rc : attach_cuda(seg, at, size, err);
}

static int attach(struct sio_library *lib, sci_ioaddr_t ioaddress, const void *address, size_t size,
		  sci_local_segment_t segment, unsigned flags, struct sio_err *err)
{
	struct sio_local_segment *seg;
	int rc = sio_check_flags(flags, SCI_FLAG_CUDA_BUFFER | SCI_FLAG_SCIF_BUFFER, 0, err);

	if (rc)
		return rc;
	seg = sio_object_get(lib, segment, SIO_LOCAL_SEGMENT, err);
	if (!seg)
		return err->code;
	rc = sio_local_segment_begin(seg, err);
	if (!rc) {
		rc = attach_to(seg, ioaddress, address, size, flags, err);
		sio_local_segment_finish(seg);
	}
	sio_object_put(&seg->o);
	return rc;
}

void SCIAttachPhysicalMemory(sci_ioaddr_t ioaddress, void *address, unsigned int busNo, size_t size,
			     sci_local_segment_t segment, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? attach(lib, ioaddress, address, size, segment, flags, &err) : err.code;

	(void)busNo;
	sio_api_leave(error, rc, &err);
}

/* ---- dma-bufs ---- */

static int take(struct sio_local_segment *seg, int fd, uint64_t offset, size_t size,
		struct sio_err *err)
{
	int rc;

	if (size == 0 || (size | offset) % SIO_PAGE_SIZE)
		return sio_refuse(err, SCI_ERR_SIZE_ALIGNMENT,
				  "%#zx bytes at %#llx are not whole pages (%#x)", size,
				  (unsigned long long)offset, SIO_PAGE_SIZE);
	if (size != seg->bytes)
		return sio_fail(err, -ERANGE, "size %#zx; segment %#x was made for %#zx bytes",
				size, seg->segment_id, (size_t)seg->bytes);
	rc = sio_local_segment_ask_memory(seg, fd, offset, SMARTIO_MEMORY_DMABUF, err);
	if (!rc)
		seg->memory_kind = SMARTIO_MEMORY_DMABUF;
	return sio_error_as(rc, -EBADF, SCI_ERR_ILLEGAL_PARAMETER);
}

static int attach_dmabuf(struct sio_library *lib, int fd, uint64_t offset, size_t size,
			 sci_local_segment_t segment, unsigned flags, struct sio_err *err)
{
	struct sio_local_segment *seg;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (!rc && fd < 0)
		rc = sio_fail(err, -EINVAL, "%d is no descriptor", fd);
	if (rc)
		return rc;
	seg = sio_object_get(lib, segment, SIO_LOCAL_SEGMENT, err);
	if (!seg)
		return err->code;
	rc = sio_local_segment_begin(seg, err);
	if (!rc) {
		rc = take(seg, fd, offset, size, err);
		sio_local_segment_finish(seg);
	}
	sio_object_put(&seg->o);
	return rc;
}

void smartio_attach_dmabuf(int fd, uint64_t offset, size_t size, sci_local_segment_t segment,
			   unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? attach_dmabuf(lib, fd, offset, size, segment, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

/* ---- what it is ---- */

static const char *const names[] = {
	[SMARTIO_MEMORY_NONE] = "none yet",
	[SMARTIO_MEMORY_HOST] = "host memory",
	[SMARTIO_MEMORY_PAGES] = "pages of the program",
	[SMARTIO_MEMORY_PINNED] = "pinned host memory of a CUDA program",
	[SMARTIO_MEMORY_GPU] = "memory of a GPU",
	[SMARTIO_MEMORY_DMABUF] = "memory of another driver (dma-buf)",
	[SMARTIO_MEMORY_FILE] = "a file of the program",
	[SMARTIO_MEMORY_UNKNOWN] = "memory of a segment that another program made",
};

const char *smartio_memory_name(unsigned int memory)
{
	return memory < sizeof(names) / sizeof(names[0]) ? names[memory] : "";
}

static unsigned memory_of(const struct sio_local_segment *seg)
{
	if (seg->memory != SIO_HAS_MEMORY)
		return SMARTIO_MEMORY_NONE;
	if (seg->attached)
		return SMARTIO_MEMORY_UNKNOWN;
	if (seg->imported)
		return SMARTIO_MEMORY_FILE;
	return seg->memory_kind ? seg->memory_kind : SMARTIO_MEMORY_HOST;
}

unsigned int smartio_segment_memory(sci_local_segment_t segment, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_local_segment *seg =
		lib ? sio_object_get(lib, segment, SIO_LOCAL_SEGMENT, &err) : NULL;
	unsigned memory = SMARTIO_MEMORY_NONE;

	if (seg) {
		sio_session_lock(lib->session);
		memory = memory_of(seg);
		sio_session_unlock(lib->session);
		sio_object_put(&seg->o);
	}
	sio_api_leave(error, seg ? 0 : err.code, &err);
	return memory;
}
