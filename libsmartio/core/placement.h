/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where device memory is placed: a cost model over candidate memories. A read that leaves its host
 * is non-posted and waits for a round trip over every link; a write is posted and costs the path
 * once. So memory that the device reads should be near the device, and memory that the CPU polls
 * near the CPU. Pure logic.
 */
#ifndef CORE_PLACEMENT_H
#define CORE_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

/* The API's values (SCI_MEMACCESS_*). */
#define SIO_HINT_DEVICE_READ 0x01u
#define SIO_HINT_DEVICE_WRITE 0x02u
#define SIO_HINT_HOST_READ 0x04u
#define SIO_HINT_HOST_WRITE 0x08u
#define SIO_HINT_MULTIHOST 0x10u /* with HOST_*: CPUs of other hosts, too */
#define SIO_HINT_P2P 0x20u	 /* with DEVICE_*: other devices, too */
#define SIO_HINTS 0x3fu

/* The API's values (SCI_FLAG_*): each is set only when all its bits are. */
#define SIO_PLACE_DEVICE_SIDE_ONLY 0x02001000u
#define SIO_PLACE_LOCAL_ONLY 0x02002000u
#define SIO_PLACE_DEVICE_PREFER_BANDWIDTH 0x04000001u
#define SIO_PLACE_HOST_PREFER_BANDWIDTH 0x04000002u
#define SIO_PLACE_FLAGS 0x06003003u

#define SIO_PLACE_SITES 4

/* A candidate memory. */
struct sio_place {
	uint32_t node;
	bool lender, borrower; /* whose it is; of a device of the borrower's host both */
	unsigned device_hops;  /* links between it and the device */
	unsigned host_hops;    /* links between it and the borrower's CPU; 0: the borrower's own */
};

/*
 * Orders the @n places by cost, cheapest first; equal costs stay in the caller's order.
 * No hints: all four accesses are expected. Prefer flags: the cost of that side's accesses decides,
 * and the other side's only where it is the same.
 * @ret_order: indices into @place. Return: how many places the flags allow; -EINVAL: contradicting
 * or unknown hints or flags.
 */
int sio_placement_rank(const struct sio_place *place, unsigned n, uint32_t hints, uint32_t flags,
		       unsigned *ret_order, struct sio_err *reterr);

#endif
