/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long things take on PCIe: core/timing.h, which `smartio route` has, too, with what both ends
 * of a way take by a few parameters more. Pure arithmetic, without clock, state or chance. Times
 * are picoseconds inside and nanoseconds, rounded up, outside. What comes out is modelled, never
 * measured: docs/simulation.md lists the parameters and where they come from.
 *
 * A transaction's time is the sum of what each place on its way adds, and its bytes once at the
 * slowest link (switches cut through: they do not wait for a packet's end). Links carry both ways
 * at once and nothing else at the same time, but for what the caller adds.
 */
#ifndef SIM_FABRIC_TIME_H
#define SIM_FABRIC_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/pcie.h"

struct fabric_link {
	uint32_t width, generation; /* lanes 1 to 32; PCIe 1 to 6 */
};

struct fabric_params {
	struct sio_pcie limits;		/* payload, read request, completion boundary */
	uint32_t tags;			/* reads that one requester has outstanding */
	uint32_t adapter_ps;		/* through an NTB adapter's chip, one way */
	uint32_t switch_ps;		/* through a switch, one way */
	uint32_t chassis_ps;		/* the same through the switch of a chassis */
	uint32_t cable_ps;		/* of a cable, one way */
	uint32_t root_write_ps;		/* from a host's root port until its memory shows it */
	uint32_t root_read_ps;		/* from a host's root port to its memory and back */
	uint32_t cpu_out_ps;		/* from a store until it leaves the root port */
	uint32_t cpu_load_ps;		/* a load of the host's own memory, from its cache */
	uint32_t cpu_store_ps;		/* the same of a store */
	uint32_t iommu_ps;		/* what a host's IOMMU adds, a translation that it knows */
	uint32_t register_ps;		/* inside a device, from its port to a register and back */
	struct fabric_link device_link; /* between a drive and its host */
	/* A drive. */
	uint64_t media_read_ns, media_write_ns, command_ns; /* the last: what every command costs */
	uint32_t media_units;				    /* commands at once on the media */
	/* Parameters of experiments. */
	uint32_t more_switches; /* on every way between hosts, each with a cable */
	bool steady;		/* nothing is left to chance: no delay, no early load */
};

/* The places that a transaction passes, in order from requester to memory. */
struct fabric_way {
	struct fabric_link slowest;
	uint32_t adapters, switches, chassis, cables;
	uint32_t iommus; /* on the way of a request */
	uint32_t from_cpu, to_register;
};

/* Fills in the defaults. */
void fabric_params_default(struct fabric_params *p);
/* NULL: all are valid; otherwise the name of one that is not. */
const char *fabric_params_wrong(const struct fabric_params *p);
/* @ret: the slower of two. */
struct fabric_link fabric_slower(struct fabric_link a, struct fabric_link b);

/*
 * The time of a posted write of @len bytes at @addr, from the requester until its last byte is in
 * place.
 */
uint64_t fabric_write_ns(const struct fabric_params *p, const struct fabric_way *w, uint64_t addr,
			 uint64_t len);
/* How long that write keeps the slowest link busy. */
uint64_t fabric_write_busy_ns(const struct fabric_params *p, const struct fabric_way *w,
			      uint64_t addr, uint64_t len);
/* The time of a read, from the requester until its last byte is back. */
uint64_t fabric_read_ns(const struct fabric_params *p, const struct fabric_way *w, uint64_t addr,
			uint64_t len);

/* Prints one parameter a line, with "modelled:" in front. */
void fabric_params_print(const struct fabric_params *p, FILE *f);

#endif
