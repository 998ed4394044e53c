/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * Queue pairs of libsmartio-nvme for somebody else than this library: a device that builds
 * commands, rings doorbells and polls completions by itself (an accelerator, a GPU), or a driver in
 * the kernel (smartio/disk.h). The library makes the queue pair, and ends it; what happens in
 * between is the other's. Errors as in smartio/nvme.h.
 * Source: Markussen et al., "SmartIO", ACM TOCS 38 (2021), section 6.4.
 */
#ifndef SMARTIO_NVMERAW_H
#define SMARTIO_NVMERAW_H

#include "sisci_api.h"
#include "smartio/nvme.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/** What SCIMapRemoteSegmentForDevice() maps for the device; the segments are the library's. */
struct smartio_nvme_raw {
	size_t size;			 /* sizeof(struct smartio_nvme_raw), set by the caller */
	sci_remote_segment_t sq, cq;	 /* from their first byte on */
	sci_remote_segment_t bar;	 /* BAR 0 of the drive */
	size_t sq_doorbell, cq_doorbell; /* bytes from its start */
	uint32_t id, entries;		 /* entries of each of the two queues */
	uint32_t namespace_id, block_size;
	uint64_t first, blocks; /* the blocks that it may use: from @first up to @blocks */
	uint32_t max_transfer;	/* bytes of one command */
	/*
	 * The pair is of this generation of the drive (smartio_device_generation()). Who maps the
	 * doorbells looks at that afterwards: if it is another, the map may be of doorbells that
	 * are somebody else's since.
	 */
	uint32_t generation;
	sci_smartio_device_t device; /* the borrow that the pair is of; the library's */
	/* What the drive triggers when it has completed something; NULL: the queue has none. */
	sci_local_interrupt_t interrupt;
};

/**
 * Hand a queue pair over that nothing was submitted to yet: its queues are empty, tail and head 0,
 * the phase of its first completions 1. From then on all of the library's functions for it fail
 * with -EBUSY, but for smartio_nvme_queue_close(), which deletes it whatever the device does. If no
 * manager does that, the drive may go on: the client's buffers are all in use until the drive is
 * reset, the process ends, or its next queue is opened, before which this one is deleted. What
 * a queue may do the drive cannot enforce: a lease, or other clients' blocks, are the device's to
 * respect. A reset of the drive is not told to the device: its doorbells are cut.
 * -EBUSY: something was submitted, or it is handed over already; -EINVAL: size; -ECONNRESET as
 * smartio_nvme_poll().
 */
int smartio_nvme_queue_hand_over(struct smartio_nvme_queue *q, struct smartio_nvme_raw *ret);
/** Of its first byte, as the drive addresses it: for PRP entries. Pages follow one another. */
uint64_t smartio_nvme_buffer_address(const struct smartio_nvme_buffer *b);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
