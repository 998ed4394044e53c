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
	unsigned over;	       /* the adapter that all goes over, from 1 on; 0: any */
	bool mends;	       /* ... which is one of two: lost, it is opened again */
	unsigned next_segment; /* id of the next private segment */
	sci_desc_t sd;
	sci_smartio_device_t handle; /* NULL: not borrowed */
};

/* Finds @name; nothing is borrowed yet. -ENODEV; -ENOTSUP: not an NVMe drive. */
int sio_nvme_device_find(struct sio_nvme_device *d, const char *name);
/* Queries the device and the path to it that is open now. The same errors. */
int sio_nvme_device_query(struct sio_nvme_device *d);
/*
 * @flags: SCI_FLAG_EXCLUSIVE or 0. -EBUSY: borrowed exclusively by another program, or by any
 * program if @flags asks for exclusive use.
 */
int sio_nvme_device_borrow(struct sio_nvme_device *d, unsigned flags);
/* Ends the borrow alone. */
void sio_nvme_device_return(struct sio_nvme_device *d);
/*
 * Returns the device. A half-built one is fine. False: something of it is still mapped; it ends
 * with the process.
 */
bool sio_nvme_device_done(struct sio_nvme_device *d);

/*
 * Connects to data interrupt @number of @node, which is available at all adapters there: by the
 * adapter that leads to the drive, or where that leads elsewhere, or its link is down, by another.
 */
sci_error_t sio_nvme_connect(struct sio_nvme_device *d, unsigned node, unsigned number,
			     sci_remote_data_interrupt_t *ret);

/* Contiguous memory that the CPU reaches at @at and the drive at @ioaddr, zeroed by its maker. */
struct sio_nvme_mem {
	volatile uint8_t *at;
	uint64_t ioaddr;
	size_t size;
	struct sio_nvme_device *d;
	sci_map_t map;
	sci_smartio_device_t other;  /* the device whose BAR @remote is; NULL: none */
	sci_remote_segment_t remote; /* device segment: placed by hints */
	sci_local_segment_t local;   /* otherwise: a segment of this host */
	unsigned adapter;	     /* of @local: by which the device reaches it */
	bool available, reachable;   /* reachable: mapped for the device */
	unsigned hints, flags;	     /* of a device segment: what it was asked for */
	struct sio_nvme_mem *next;
};

/*
 * Allocates a device segment. @hints: SCI_MEMACCESS_*; @flags: SCI_FLAG_DEVICE_SIDE_ONLY,
 * SCI_FLAG_LOCAL_ONLY or 0.
 */
int sio_nvme_mem_device(struct sio_nvme_device *d, size_t size, unsigned hints, unsigned flags,
			struct sio_nvme_mem *mem);
/*
 * Makes a device segment @id that outlives this process (SMARTIO_FLAG_LASTING); later
 * sio_nvme_mem_again() finds it: mapped for the CPU, and at @ioaddr for the drive, as its maker
 * mapped it. -EEXIST; -ENOENT.
 */
int sio_nvme_mem_lasting(struct sio_nvme_device *d, unsigned id, size_t size, unsigned hints,
			 struct sio_nvme_mem *mem);
int sio_nvme_mem_again(struct sio_nvme_device *d, unsigned id, size_t size, uint64_t ioaddr,
		       struct sio_nvme_mem *mem);
/*
 * Allocates memory of this host. If the device was borrowed over one of two paths, and that path is
 * lost, the memory is not @reachable before sio_nvme_mem_join().
 */
int sio_nvme_mem_local(struct sio_nvme_device *d, size_t size, struct sio_nvme_mem *mem);
/* The same for the program's own pages that hold @size bytes at @address, with their contents. */
int sio_nvme_mem_foreign(struct sio_nvme_device *d, void *address, size_t size,
			 struct sio_nvme_mem *mem);
/* Is there a device of this name, and is it an NVMe drive? */
bool sio_nvme_is_drive(const char *name);
/*
 * @size bytes from @offset on of BAR @bar of device @name, which is borrowed for that; @flags: as
 * of sio_nvme_device_borrow().
 */
int sio_nvme_mem_bar(struct sio_nvme_device *d, const char *name, unsigned bar, unsigned flags,
		     size_t offset, size_t size, struct sio_nvme_mem *mem);
/*
 * Calls @call, which frees something, with its error in @err, again until nobody else uses that
 * thing any more and the lender can be asked to free it.
 */
#define SIO_NVME_UNTIL_FREE(err, call)                                                             \
	do                                                                                         \
		for (unsigned tries_ = 0; call, sio_nvme_not_yet_free(err, tries_); tries_++)      \
			;                                                                          \
	while (0)
/*
 * Waits a while after a failed attempt to free something. Return: whether another attempt makes
 * sense.
 */
bool sio_nvme_not_yet_free(sci_error_t err, unsigned tries);
/* Frees memory that the drive must not use any more. A half-built one is fine. */
void sio_nvme_mem_done(struct sio_nvme_mem *mem);
/* Local memory as another borrow of the same device, over another adapter, reaches it. */
struct sio_nvme_reach {
	uint64_t ioaddr;
	unsigned adapter;
	bool reachable;
};
int sio_nvme_reach_open(struct sio_nvme_device *d, struct sio_nvme_mem *mem,
			struct sio_nvme_reach *reach);
/* Unmaps it. A half-built one is fine. */
void sio_nvme_reach_close(struct sio_nvme_device *d, struct sio_nvme_mem *mem,
			  struct sio_nvme_reach *reach);
/* For local memory of a device that is borrowed again: to be called before, and after. */
void sio_nvme_mem_part(struct sio_nvme_mem *mem);
int sio_nvme_mem_join(struct sio_nvme_mem *mem);
/* Zeroes the memory by stores that the fabric carries. */
void sio_nvme_mem_clear(struct sio_nvme_mem *mem, size_t bytes);

/*
 * To be called after a store through @map: wakes the drive if it sleeps. @sleeps:
 * smartio_map_sleep_word().
 */
void sio_nvme_wake(sci_map_t map, const volatile uint32_t *sleeps);

/*
 * Pauses between two polls of something that another processor will change: yields first, later
 * sleeps for a millisecond. @n: counts the calls.
 */
void sio_nvme_pause(unsigned *n);
/* A deadline of smartio_now_ns() that is @ms milliseconds from now. */
uint64_t sio_nvme_deadline(uint64_t ms);

#endif
