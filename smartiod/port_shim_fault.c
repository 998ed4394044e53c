/* SPDX-License-Identifier: BSD-2-Clause */
/* Pure: what a line of the kernel's log says. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/port_shim.h"

/*
 * "DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr 0x1234000 [fault reason 0x05]
 * ...", as it is in 6.1 and 6.12; on machines of several segments the place is still without one.
 */
bool port_shim_parse_fault(const char *line, uint32_t *ret_bdf, uint64_t *ret_address,
			   uint32_t *ret_access)
{
	static const char device[] = "] Request device [";
	const char *at = strstr(line, "DMAR: [DMA "), *place;
	unsigned bus, slot, function;

	if (!at)
		return false;
	at += sizeof("DMAR: [DMA ") - 1;
	place = strstr(at, device);
	if (!place ||
	    sscanf(place + sizeof(device) - 1, "%x:%x.%u] fault addr %" SCNx64, &bus, &slot,
		   &function, ret_address) != 4 ||
	    bus > 0xff || slot > 0x1f || function > 7)
		return false;
	*ret_bdf = bus << 8 | slot << 3 | function;
	*ret_access = strncmp(at, "Write", 5) == 0 ? SIO_FAULT_WRITE : SIO_FAULT_READ;
	return true;
}
