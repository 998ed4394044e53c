/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses belong to domains: a struct says whose an address is, so mixing does not compile. */
#ifndef CORE_TYPES_H
#define CORE_TYPES_H

#include <stdint.h>

#define SIO_PAGE_SIZE 4096u
/*
 * Node ids are multiples of 4 from 4 on. One is the multicast group's, so no host's. The paper's
 * cluster has those up to 240; those beyond 252 are an extension of ours.
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

/* As the buses of node @node address it: what a grant hands to a peer. */
struct sio_bus_addr {
	uint32_t node;
	uint64_t addr;
};

/* As one device addresses it: what is put into its queues. */
struct sio_dev_addr {
	uint64_t addr;
};

/* In the physical address map of node @node. */
struct sio_phys_addr {
	uint32_t node;
	uint64_t addr;
};

#endif
