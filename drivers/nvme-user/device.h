/* SPDX-License-Identifier: BSD-2-Clause */
/* A borrowed drive, and memory that it reaches. Manager and clients each have one. */
#ifndef NVME_USER_DEVICE_H
#define NVME_USER_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sisci_api.h"

#define SIO_NVME_PAGE 4096u /* memory page size of controller and fabric */

struct sio_nvme_device {
	char name[64];
	unsigned fdid, adapter, lender, node; /* adapter: of this host; node: this host */
	unsigned next_segment;		      /* id of the next private segment */
	sci_desc_t sd;
	sci_smartio_device_t handle; /* NULL: not borrowed */
};

/* Find @name; nothing is borrowed yet. -ENODEV; -ENOTSUP: not an NVMe drive. */
int sio_nvme_device_find(struct sio_nvme_device *d, const char *name);
/* What it is, and the way there that is open now. The same errors. */
int sio_nvme_device_query(struct sio_nvme_device *d);
/* @flags: SCI_FLAG_EXCLUSIVE or 0. -EBUSY: held exclusively, or by anybody if we want it so. */
int sio_nvme_device_borrow(struct sio_nvme_device *d, unsigned flags);
/* Undo the borrow alone. */
void sio_nvme_device_return(struct sio_nvme_device *d);
/* Give it back. Half-built is fine. False: something of it is still mapped; it ends with the
 * process. */
bool sio_nvme_device_done(struct sio_nvme_device *d);

/*
 * Connect to data interrupt @number of @node, which is at all adapters there: by the adapter that
 * leads to the drive, or where that leads elsewhere, or its link is down, by another.
 */
sci_error_t sio_nvme_connect(struct sio_nvme_device *d, unsigned node, unsigned number,
			     sci_remote_data_interrupt_t *ret);

/* Memory for the CPU at @at, for the drive at @ioaddr, contiguous, zeroed by its maker. */
struct sio_nvme_mem {
	volatile uint8_t *at;
	uint64_t ioaddr;
	size_t size;
	struct sio_nvme_device *d;
	sci_map_t map;
	sci_smartio_device_t other;  /* whose BAR @remote is; NULL: of none */
	sci_remote_segment_t remote; /* device segment: placed by hints */
	sci_local_segment_t local;   /* else: of this host */
	unsigned adapter;	     /* of @local: by which the device reaches it */
	bool available, reachable;   /* reachable: mapped for the device */
	unsigned hints, flags;	     /* of a device segment: what it was asked for */
	struct sio_nvme_mem *next;
};

/* @hints: SCI_MEMACCESS_*; @flags: SCI_FLAG_DEVICE_SIDE_ONLY, SCI_FLAG_LOCAL_ONLY or 0. */
int sio_nvme_mem_device(struct sio_nvme_device *d, size_t size, unsigned hints, unsigned flags,
			struct sio_nvme_mem *mem);
/*
 * Of segment @id, which outlives us: SMARTIO_FLAG_LASTING; then sio_nvme_mem_again() has it: for
 * the CPU, and at @ioaddr for the drive, as its maker has mapped it. -EEXIST; -ENOENT.
 */
int sio_nvme_mem_lasting(struct sio_nvme_device *d, unsigned id, size_t size, unsigned hints,
			 struct sio_nvme_mem *mem);
int sio_nvme_mem_again(struct sio_nvme_device *d, unsigned id, size_t size, uint64_t ioaddr,
		       struct sio_nvme_mem *mem);
int sio_nvme_mem_local(struct sio_nvme_device *d, size_t size, struct sio_nvme_mem *mem);
/*
 * @size bytes from @offset on of BAR @bar of device @name, which is borrowed for that; @flags: as
 * of sio_nvme_device_borrow().
 */
int sio_nvme_mem_bar(struct sio_nvme_device *d, const char *name, unsigned bar, unsigned flags,
		     size_t offset, size_t size, struct sio_nvme_mem *mem);
/*
 * Free by @call, with its error in @err, until nobody else uses it any more, and the lender can be
 * asked for it.
 */
#define SIO_NVME_UNTIL_FREE(err, call)                                                             \
	do                                                                                         \
		for (unsigned tries_ = 0; call, sio_nvme_not_yet_free(err, tries_); tries_++)      \
			;                                                                          \
	while (0)
/* After a while of waiting: whether it may be tried once more. */
bool sio_nvme_not_yet_free(sci_error_t err, unsigned tries);
/* The drive must not use it any more. Half-built is fine. */
void sio_nvme_mem_done(struct sio_nvme_mem *mem);
/* Zero it by stores that the fabric carries. */
void sio_nvme_mem_clear(struct sio_nvme_mem *mem, size_t bytes);

/* After a store through @map: wake the drive if it sleeps. @sleeps: smartio_map_sleep_word(). */
void sio_nvme_wake(sci_map_t map, const volatile uint32_t *sleeps);

/*
 * Between two looks at something that another processor will change: yields first, later sleeps of
 * a millisecond. @n: how often it was called, counted here.
 */
void sio_nvme_pause(unsigned *n);
/* Milliseconds from now on, as a deadline of smartio_now_ns(). */
uint64_t sio_nvme_deadline(uint64_t ms);

#endif
