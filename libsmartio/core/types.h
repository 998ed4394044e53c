/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of addresses. Each domain of addresses is a struct of its own, so that mixing them does not
 * compile.
 */
#ifndef CORE_TYPES_H
#define CORE_TYPES_H

#include <stdint.h>

#define SIO_PAGE_SIZE 4096u
/*
 * Node ids are multiples of 4 from 4 on. One is the multicast group's, so no host has it. The
 * paper's cluster has ids up to 240; those beyond 252 are our extension.
 */
#define SIO_MAX_NODE 508
#define SIO_MULTICAST_NODE 252
#define SIO_MAX_HOSTS (SIO_MAX_NODE / 4 - 1)
#define SIO_MAX_ADAPTERS 4
#define SIO_MAX_SWITCHES 64
#define SIO_MAX_TRUNKS 256
#define SIO_MAX_CHASSIS 16 /* of a host */
#define SIO_NAME_LEN 32
#define SIO_DEVICE_NAME_LEN 40 /* a real one has its host's name and its place */

/* An address as the buses of node @node see it: what a grant gives to a peer. */
struct sio_bus_addr {
	uint32_t node;
	uint64_t addr;
};

/*
 * An address as one device sees it: what is put into its queues, and what its IOMMU domain
 * translates.
 */
struct sio_dev_addr {
	uint64_t addr;
};

/* An offset from the start of the window of one adapter: what its look-up table translates. */
struct sio_window_at {
	uint64_t offset;
};

#endif
