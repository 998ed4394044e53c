/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many packets an access takes on a PCIe link. Pure arithmetic, constant time except for reads
 * of at most two pages.
 *
 * Rules (PCI Express Base Specification 4.0, 2.2.7, 2.3.1.1): a packet's data are whole 4-byte
 * words with byte enables, so a packet with a payload of n bytes may carry fewer; no request
 * crosses a multiple of 4 KiB; a write carries at most the maximum payload, a read asks for at most
 * the maximum read request; a completion carries at most the maximum payload and, if it is not the
 * request's last, ends at a multiple of the read completion boundary. Where the rules leave a
 * choice (they allow more and smaller packets), the fewest are counted, each as long as it may be.
 */
#ifndef CORE_PCIE_H
#define CORE_PCIE_H

#include <stdbool.h>
#include <stdint.h>

struct sio_pcie {
	uint32_t max_payload;		   /* bytes: power of 2, 128 to 4096 */
	uint32_t max_read_request;	   /* bytes: power of 2, 128 to 4096 */
	uint32_t read_completion_boundary; /* bytes: 64 or 128 */
};

struct sio_pcie_count {
	uint64_t write_tlps;	/* posted; they carry write_bytes */
	uint64_t read_requests; /* non-posted */
	uint64_t completions;	/* they carry read_bytes */
	uint64_t write_bytes, read_bytes;
};

/* Are the three values allowed by PCIe? */
bool sio_pcie_valid(const struct sio_pcie *p);
/*
 * Adds the packets of a write or read of @len bytes at @addr; @len 0: nothing. @addr + @len may
 * wrap.
 */
void sio_pcie_write(const struct sio_pcie *p, uint64_t addr, uint64_t len,
		    struct sio_pcie_count *count);
void sio_pcie_read(const struct sio_pcie *p, uint64_t addr, uint64_t len,
		   struct sio_pcie_count *count);

#endif
