/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * Memory of graphics cards, and of whatever else has a driver, as memory of segments.
 *
 * A program of CUDA's needs nothing of this: SCIAttachPhysicalMemory() with SCI_FLAG_CUDA_BUFFER
 * takes the pointer of cudaMalloc(). What lies behind it, and the same for other vendors' cards, is
 * here. docs/gpu.md says what runs where. Handles, errors and threads as in smartio/ext.h.
 */
#ifndef SMARTIO_GPU_H
#define SMARTIO_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "sisci_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the memory of a segment is. */
enum smartio_memory {
	SMARTIO_MEMORY_NONE = 0,  /* made EMPTY, and given none yet */
	SMARTIO_MEMORY_HOST = 1,  /* of its host, made for it */
	SMARTIO_MEMORY_PAGES = 2, /* the program's own pages: SCIRegisterSegmentMemory() */
	/*
	 * Pages of the program that it has registered with CUDA (cudaHostRegister()), so that its
	 * card reaches them: they stand in for the card's own memory, and are in the host.
	 */
	SMARTIO_MEMORY_PINNED = 3,
	SMARTIO_MEMORY_GPU = 4,	    /* of a card of CUDA's */
	SMARTIO_MEMORY_DMABUF = 5,  /* that another driver exported */
	SMARTIO_MEMORY_FILE = 6,    /* of a file of the program's: smartio_import_segment() */
	SMARTIO_MEMORY_UNKNOWN = 7, /* another program made it (SCIAttachLocalSegment()) */
};

/**
 * What a local segment's memory is. Return: enum smartio_memory; SMARTIO_MEMORY_NONE on error, too.
 * Errors: SCI_ERR_ILLEGAL_PARAMETER wrong handle, SCI_ERR_NOT_INITIALIZED. Source: our own.
 */
unsigned int smartio_segment_memory(sci_local_segment_t segment, sci_error_t *error);
/**
 * "pinned host memory of a CUDA program" for SMARTIO_MEMORY_PINNED; "" for unknown numbers. Never
 * NULL; static storage; may be called before SCIInitialize().
 */
const char *smartio_memory_name(unsigned int memory);

/**
 * Give a segment that was made with SCI_FLAG_EMPTY the memory of a dma-buf: of a card
 * (cuMemGetHandleForAddressRange() gives one for CUDA, the drivers of other vendors likewise), a
 * frame grabber, udmabuf, a DMA heap. Real hosts with smartio.ko alone. @fd stays the caller's; the
 * memory is held until the segment's end, and its driver is asked to leave it in place.
 * @offset, @size: bytes, whole pages of it; @size: what the segment was made for, rounded up to
 * pages.
 * @flags: 0. The segment is prepared, made available and mapped for devices as any other. A device
 * or an adapter behind no IOMMU reaches one piece of memory only, so what lies in several is
 * refused when it is mapped for that. SCIMapLocalSegment() of it works where its driver lets
 * programs map it.
 * Errors: SCI_ERR_ILLEGAL_OPERATION the segment has memory, SCI_ERR_SIZE_ALIGNMENT no whole pages,
 * SCI_ERR_OUT_OF_RANGE another size than the segment's, SCI_ERR_ILLEGAL_PARAMETER no dma-buf, or it
 * ends before, SCI_ERR_NOT_SUPPORTED an emulated cluster, or a host by VFIO,
 * SCI_ERR_ILLEGAL_FLAG, SCI_ERR_NOT_INITIALIZED.
 * Source: the Linux kernel's Documentation/driver-api/dma-buf.rst; our own call.
 */
void smartio_attach_dmabuf(int fd, uint64_t offset, size_t size, sci_local_segment_t segment,
			   unsigned int flags, sci_error_t *error);

/**
 * Stores through @map, of a device's doorbells or registers, come from somebody whose stores raise
 * no page fault: a GPU, to which the pages were given by cudaHostRegister(), or another mapping of
 * the same pages. A device of an emulated cluster, which sleeps when nobody uses it and is woken by
 * such a fault, looks again and again from now on, until SCIUnmapSegment() of @map; call this
 * before the first such store. smartio_map_sleep_word() of it is NULL then, or of no use any more.
 * Hardware never sleeps, and of other maps there is nothing to do: success.
 * Errors: SCI_ERR_ILLEGAL_PARAMETER wrong handle, SCI_ERR_NOT_CONNECTED the map is lost,
 * SCI_ERR_NOT_INITIALIZED. Source: docs/waking.md; our own call.
 */
void smartio_map_keep_awake(sci_map_t map, sci_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
