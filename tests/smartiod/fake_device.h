/* SPDX-License-Identifier: BSD-2-Clause */
/* The device half of the fake ports: an NVMe-like device of host 0, or two. */
#ifndef TESTS_SMARTIOD_FAKE_DEVICE_H
#define TESTS_SMARTIOD_FAKE_DEVICE_H

#include "world.h"

#define FAKE_BAD_ADDRESS 0xbad000 /* a FAULT watch with it is refused */
#define FAKE_VECTORS 4u
#define FAKE_BAR_ADDRESS 0xf0000000u
#define FAKE_CMB_ADDRESS 0xf1000000u
#define FAKE_APART 0x2000000u /* BARs of the second device from those of the first */
#define FAKE_PORT_ID 77	      /* of the device at its port; the second one's follows */

struct fake_device {
	struct sio_topo_device topo;
	uint64_t id;	/* at the port */
	uint32_t iommu; /* SIO_IOMMU_*, before world_start(); OFF if it is not said */
	uint64_t generation;
	uint64_t opened; /* in this boot */
	bool gone;
	unsigned no_memory; /* so many views cannot be closed */
	bool ignorant;	    /* of what pages are for: a reset leaves views as they are */
	int reset_error;    /* of each RESET; 0: none */
	bool no_reset;	    /* RESET is of kind DONE alone */
	uint64_t cmb;	    /* bytes of memory of its own, in BAR 2 */
	bool memory;	    /* a memory device: these are all its borrowers' */
	bool strange;	    /* or of a class that nobody knows: registers are all that it has */
	bool follows_none;  /* the port cuts nothing at the end of a view's owner, as VFIO's */
	unsigned resets;    /* function resets so far */
	unsigned disturbed; /* those while somebody who lives could reach it */
	uint8_t config[256];
	unsigned config_reads, config_writes;
	unsigned bad; /* requests that no correct daemon makes */
};

/* Before world_start(): host 0 has the device. */
void fake_device_add(struct world *w, struct fake_device *f);
/* Then it has this one, too. */
void fake_device_add_second(struct world *w, struct fake_device *f);
/* Or @host has that one, not host 0. */
void fake_device_add_far(struct world *w, struct fake_device *f, unsigned host);
/* At any time: it has a function reset, as at first, or none: then quarantines last. */
void fake_device_resets(struct world *w, bool can);
/* It is pulled out, or put back. Return: false: it was so already. */
bool fake_device_move(struct world *w, bool in);
bool fake_device_move_one(struct world *w, struct fake_device *f, bool in);
/* What vector @number hits: 0 nothing, else the port's id of an interrupt or a map. */
uint64_t fake_vector(const struct world *w, uint32_t number);
/* Resources of a kind that are (not) in quarantine, on all hosts. */
unsigned fake_count(const struct world *w, uint32_t kind, bool quarantined);

#endif
