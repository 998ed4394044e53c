/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * libsmartio-accel: a driver for the accelerator of emulated clusters (smartio/acceldev.h,
 * docs/accelerator.md), on this host or on another.
 *
 * One program drives an accelerator: it has its registers, opens queues of its DMA engine and its
 * compute units, and moves data and runs kernels by them without daemon or system call. What it
 * reaches, memory of hosts and of other accelerators, it is told by address. Source: our own.
 *
 * SCIInitialize() comes first. Functions return 0 or -errno unless told otherwise;
 * smartio_accel_error() explains the calling thread's last failure. A queue belongs to one thread
 * at a time; everything else of an accelerator to one thread at a time, too.
 */
#ifndef SMARTIO_ACCEL_H
#define SMARTIO_ACCEL_H

#include <stddef.h>
#include <stdint.h>

#include "sisci_api.h"
#include "smartio/acceldev.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/** The calling thread's last failure, with names and numbers. Never NULL. */
const char *smartio_accel_error(void);

/* ---- accelerators ---- */
struct smartio_accel;

struct smartio_accel_info {
	uint64_t memory_bytes;
	uint32_t dma_queues, units, vectors;
	uint32_t lender_node, adapter; /* adapter: of this host, that leads to it */
};

/** Nobody else borrows it meanwhile: its memory is this program's alone. */
#define SMARTIO_ACCEL_EXCLUSIVE 1u

/**
 * Borrow the accelerator @device, by name or number, take its registers, reset it and map its
 * memory, which is zero then (where its lender can reset it; else as it was).
 * @flags: SMARTIO_ACCEL_EXCLUSIVE or 0.
 * -ENODEV: no such device, or it is gone; -ENETDOWN, -EHOSTUNREACH, -ETIMEDOUT: no way leads to its
 * host, or that does not answer; -ENOTSUP: not an accelerator; -EBUSY: another
 * program drives it, or has borrowed it exclusively; -EINVAL: flags; -ENOSPC: no window or look-up
 * entries for its memory; -ENOMEM.
 */
int smartio_accel_open(const char *device, uint32_t flags, struct smartio_accel **ret);
/**
 * Closes what is open under it, too, and gives it back. Its memory is out of reach then for those
 * that reached it (smartio_accel_reach()): their accesses fail. NULL is fine.
 */
void smartio_accel_close(struct smartio_accel *a);
void smartio_accel_get_info(const struct smartio_accel *a, struct smartio_accel_info *info);
/** Its memory, mapped for the processor. Valid until smartio_accel_close(). */
volatile void *smartio_accel_memory(const struct smartio_accel *a);
/** Its own address for byte @offset of its memory. */
static inline uint64_t smartio_accel_local(uint64_t offset)
{
	return SIO_ACCEL_LOCAL | offset;
}
/**
 * The borrowed device, for calls of SISCI and smartio/ext.h: to map what else the accelerator is to
 * reach, to map its memory (smartio_accel_segment()) for another device, to wait for its events.
 * The library's; valid until smartio_accel_close().
 */
sci_smartio_device_t smartio_accel_device(const struct smartio_accel *a);
/** Its memory as a segment. The library's; valid until smartio_accel_close(). */
sci_remote_segment_t smartio_accel_segment(const struct smartio_accel *a);

/**
 * Map all memory of @other for @a, wherever the two are: what goes from one to the other passes no
 * host's RAM. @ret_address: of its first byte, as @a addresses it. Ends with the first of the two
 * that is closed. When @other is lost, accesses fail. One thread at a time does this for both.
 * -EINVAL: @other is @a; -EEXIST: it reaches it already; -ENOSPC: no look-up entries or addresses.
 */
int smartio_accel_reach(struct smartio_accel *a, struct smartio_accel *other,
			uint64_t *ret_address);

/* ---- memory of this host ---- */
struct smartio_accel_buffer;

/**
 * Memory of this host that @a reaches: contiguous, zeroed, rounded up to pages. Ends by
 * smartio_accel_buffer_free(), or with @a.
 * -EINVAL: 0 bytes; -ENOMEM; -ENOSPC: no window, or requester entry.
 */
int smartio_accel_buffer_alloc(struct smartio_accel *a, size_t bytes,
			       struct smartio_accel_buffer **ret);
/** No command that uses it may be under way. NULL is fine. */
void smartio_accel_buffer_free(struct smartio_accel_buffer *b);
volatile void *smartio_accel_buffer_data(const struct smartio_accel_buffer *b);
/** Of its first byte, as the accelerator addresses it. */
uint64_t smartio_accel_buffer_address(const struct smartio_accel_buffer *b);

/* ---- queues ---- */
struct smartio_accel_queue;

enum smartio_accel_engine { SMARTIO_ACCEL_DMA, SMARTIO_ACCEL_UNIT };

/** smartio_accel_wait() sleeps until the queue's interrupt comes, instead of polling. */
#define SMARTIO_ACCEL_WITH_INTERRUPT 1u

/**
 * Open a queue of the DMA engine, or of a compute unit: any that is free.
 * @entries: commands in flight at once, a power of 2 from 2 to SIO_ACCEL_MOST_ENTRIES; 0: 64.
 * @flags: SMARTIO_ACCEL_WITH_INTERRUPT or 0.
 * -EBUSY: all are open, or all interrupt vectors are taken; -EINVAL; -ENOTSUP: interrupts of an
 * accelerator that has none; -ENODEV: it is lost; -ETIMEDOUT: it does not start; as
 * smartio_accel_buffer_alloc().
 */
int smartio_accel_queue_open(struct smartio_accel *a, enum smartio_accel_engine engine,
			     uint32_t entries, uint32_t flags, struct smartio_accel_queue **ret);
/** What is under way is given up, also a kernel that waits for ever. NULL is fine. */
void smartio_accel_queue_close(struct smartio_accel_queue *q);

/**
 * Put a command into the queue; the accelerator sees it at the next ring, poll or wait. No
 * allocation, lock or system call.
 * @operation: SIO_ACCEL_TRANSFER of a DMA queue, enum sio_accel_kernel of a unit's; @argument: 6.
 * -EAGAIN: as many as it has entries are in flight; -ENODEV: the accelerator was reset or is lost.
 */
int smartio_accel_submit(struct smartio_accel_queue *q, uint32_t operation,
			 const uint64_t argument[6]);
/** Ring the doorbell for what was submitted since the last ring: at most one store. */
void smartio_accel_ring(struct smartio_accel_queue *q);
/**
 * Take the next completion, in the order of the commands; rings first. An empty poll yields.
 * Return: 1; 0: there is none; -ENODEV as smartio_accel_submit(), or: the queue stands.
 */
int smartio_accel_poll(struct smartio_accel_queue *q, struct sio_accel_completion *ret);
/**
 * The same, but wait for it, for @timeout_ms (UINT32_MAX: for ever). -ETIMEDOUT; -ENOENT: nothing
 * is in flight; -ENODEV.
 */
int smartio_accel_wait(struct smartio_accel_queue *q, uint32_t timeout_ms,
		       struct sio_accel_completion *ret);

/**
 * Submit a command and wait for its completion; nothing else may be in flight. @argument: 6.
 * @ret_result: may be NULL. -EBUSY: something is in flight; -EIO: the command failed, the text says
 * how; -ETIMEDOUT: it is still under way; -ENODEV.
 */
int smartio_accel_do(struct smartio_accel_queue *q, uint32_t operation, const uint64_t argument[6],
		     uint32_t timeout_ms, uint64_t *ret_result);
/** "a source could not be read" for SIO_ACCEL_READ_FAILED, and so on. Static storage. */
const char *smartio_accel_status_string(uint32_t status);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
