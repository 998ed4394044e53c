/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times of PCIe transactions along a route, modelled: from what the specification says of links and
 * packets, and from what each chip on the way adds (the topology's `latency`). Pure arithmetic; it
 * knows no other traffic, no wires, and not what happens in the ends. docs/fidelity.md has what it
 * is worth.
 *
 * - A link moves a byte in 8 bits over its lanes at its rate, less the line code (PCI Express Base
 *   Specification 6.0, 4.2: 8b/10b, 128b/130b, or 236 of 256 bytes of a flit).
 * - A packet has a header for 64-bit addresses (16 bytes; a completion 12) and, but in flits, 8
 *   bytes around it (2.2, 3.5, 4.2.2). core/pcie.h says how many there are, from a page's start.
 * - Chips pass a packet on while it arrives: it takes its time on the slowest link once, and each
 *   chip adds its latency. Credits never lack.
 * - A reader keeps at most so many requests open; completions come in the order of requests.
 */
#ifndef CORE_TIMING_H
#define CORE_TIMING_H

#include "core/pcie.h"
#include "core/route.h"

/* Nanoseconds that a chip adds where the topology does not say, and where that is from. */
#define SIO_TIMING_ADAPTER_NS 132u /* PEX8733, most (data sheet; paper 7.1.5) */
#define SIO_TIMING_CHASSIS_NS 150u /* PEX8796, most (data sheet; paper 7.1.5) */
#define SIO_TIMING_SWITCH_NS 170u  /* PM8536, mean (measured; paper 7.1.5) */

struct sio_timing {
	struct sio_pcie rules;
	unsigned hops;	  /* chips between the ends */
	uint64_t chips;	  /* picoseconds that they add to a packet, one way */
	uint64_t byte_fs; /* femtoseconds of a byte on the slowest link */
	uint32_t around;  /* bytes of a packet there beside header and data */
};

/* How a device reads. */
struct sio_timing_reader {
	uint32_t tags;	 /* requests open at once, 1 to SIO_TIMING_TAGS; 32 without extended tags */
	uint64_t memory; /* picoseconds from a request at the target to its first completion */
};
#define SIO_TIMING_TAGS 1024u

/* The largest access that is computed: reads are counted request by request. */
#define SIO_TIMING_MOST (1ull << 30)

/* Femtoseconds per byte on a link: @width lanes, @generation 1 to 6. */
uint64_t sio_timing_byte(uint32_t width, uint32_t generation);
/* Bytes of a packet on it beside header and data. */
uint32_t sio_timing_around(uint32_t generation);
/* Picoseconds that a node of the graph adds to a packet that passes it. */
uint64_t sio_timing_chip(const struct sio_graph *g, unsigned node);
/* The route that sio_routes_find() gave for @from and @to. */
struct sio_timing sio_timing_of(const struct sio_routes *r, unsigned from, unsigned to,
				const struct sio_route *route);

/*
 * Picoseconds until @len bytes (at most SIO_TIMING_MOST) that the one end writes have arrived at
 * the other, or until those that it reads have arrived.
 */
uint64_t sio_timing_write(const struct sio_timing *t, uint64_t len);
uint64_t sio_timing_read(const struct sio_timing *t, const struct sio_timing_reader *reader,
			 uint64_t len);
/* The same of bytes from address @at on, which may lie across pages and take more packets. */
uint64_t sio_timing_write_at(const struct sio_timing *t, uint64_t at, uint64_t len);
uint64_t sio_timing_read_at(const struct sio_timing *t, const struct sio_timing_reader *reader,
			    uint64_t at, uint64_t len);

#endif
