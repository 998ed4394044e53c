/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory device of the emulated cluster (`type: memory` in a topology file): a BAR of RAM that
 * every borrower may map, and that other devices may be given as a target of DMA
 * (SCIMapRemoteSegmentForDevice()), and one DMA engine with a ring of descriptors. The device is
 * this project's own; docs/memory-device.md explains it.
 *
 * Registers are of 4 bytes, or (marked u64) two of 4, little endian and aligned. Who has the
 * registers writes them; the others read. A word that is not said to be writable is put right.
 * @thread-safety: a register, a descriptor and the doorbell have one writer at a time.
 */
#ifndef SMARTIO_MEMDEV_H
#define SMARTIO_MEMDEV_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ids of PCI. The vendor's is Red Hat's, as of all that emulated machines have. */
#define SIO_MEMDEV_VENDOR 0x1b36
#define SIO_MEMDEV_DEVICE 0x11f0
#define SIO_MEMDEV_CLASS 0x058000 /* another memory controller */

#define SIO_MEMDEV_BAR_REGISTERS 0 /* a page of registers, one with the doorbell, MSI-X behind */
#define SIO_MEMDEV_BAR_RAM 2	   /* SIO_MEMDEV_RAM_BYTES; a function reset zeroes it */
#define SIO_MEMDEV_DOORBELL 0x1000 /* in BAR 0: entries written to the ring so far; it wraps */

/* What it is; they do not change. */
#define SIO_MEMDEV_MAGIC 0x00 /* SIO_MEMDEV_MAGIC_VALUE */
#define SIO_MEMDEV_MAGIC_VALUE 0x56454d53
#define SIO_MEMDEV_VERSION 0x04 /* 1 */
#define SIO_MEMDEV_RAM_BYTES 0x08
#define SIO_MEMDEV_VECTORS 0x0c /* interrupt vectors; 0: it has none */

/*
 * CONTROL, writable: SIO_MEMDEV_ENABLE starts the engine with the ring that RING_BASE (u64, as the
 * device addresses it; 32-byte aligned) and RING_ENTRIES (a power of 2, 2 to
 * SIO_MEMDEV_MOST_ENTRIES) name then, the doorbell at 0; without it the engine stands, and errors
 * are forgotten. VECTOR, writable: of the interrupts that descriptors ask for. STATUS:
 * SIO_MEMDEV_RUNNING, or why it is not. DONE: descriptors that are done since it was started; it
 * wraps.
 */
#define SIO_MEMDEV_CONTROL 0x10
#define SIO_MEMDEV_STATUS 0x14
#define SIO_MEMDEV_RING_BASE 0x18
#define SIO_MEMDEV_RING_ENTRIES 0x20
#define SIO_MEMDEV_VECTOR 0x24
#define SIO_MEMDEV_DONE 0x28
#define SIO_MEMDEV_REGISTERS 0x40 /* bytes; what follows in the page is not looked at */

#define SIO_MEMDEV_ENABLE 1
#define SIO_MEMDEV_RUNNING 1
#define SIO_MEMDEV_BAD_RING 2	  /* RING_BASE or RING_ENTRIES is none */
#define SIO_MEMDEV_BAD_DOORBELL 3 /* more entries than the ring has */
#define SIO_MEMDEV_RING_LOST 4	  /* the ring could not be read */

#define SIO_MEMDEV_MOST_ENTRIES 4096
#define SIO_MEMDEV_MOST_BYTES (16u << 20) /* of a descriptor */

/*
 * Entry n lies at n % RING_ENTRIES. Entries are done in order; what one wrote is there before its
 * completion, and that before its interrupt.
 */
struct sio_memdev_entry {
	uint64_t source, target; /* as the device addresses it, or an offset in its RAM */
	uint32_t length;	 /* 1 to SIO_MEMDEV_MOST_BYTES */
	uint32_t flags;		 /* SIO_MEMDEV_* below */
	uint64_t completion;	 /* where struct sio_memdev_completion is written to; 0: nowhere */
};
#define SIO_MEMDEV_FROM_RAM 1  /* source is an offset */
#define SIO_MEMDEV_TO_RAM 2    /* target is one */
#define SIO_MEMDEV_INTERRUPT 4 /* raise VECTOR when it is done */

/* 8 bytes, written by one transaction; aligned. */
struct sio_memdev_completion {
	uint32_t number; /* descriptors done with this one: the first one's is 1 */
	uint32_t status; /* SIO_MEMDEV_OK, ... */
};
#define SIO_MEMDEV_OK 0
#define SIO_MEMDEV_INVALID 1	  /* length, flags, or an offset beyond the RAM */
#define SIO_MEMDEV_READ_FAILED 2  /* the source could not be read */
#define SIO_MEMDEV_WRITE_FAILED 3 /* something of the target could not be written */

#ifdef __cplusplus
}
#endif
#endif
