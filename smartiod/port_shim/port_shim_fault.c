/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses a line of the kernel's log. Pure. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/port_shim/port_shim.h"

#define AMD_WRITE 0x20 /* among the flags of an event */

/* "01:00.0" */
static bool parse_place(const char *text, uint32_t *ret_bdf)
{
	unsigned bus, slot, function;

	if (sscanf(text, "%x:%x.%u", &bus, &slot, &function) != 3 || bus > 0xff || slot > 0x1f ||
	    function > 7)
		return false;
	*ret_bdf = bus << 8 | slot << 3 | function;
	return true;
}

/*
 * "DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr 0x1234000 [fault reason 0x05]
 * ...", as it is in 6.1 and 6.12; on machines of several segments the place is still without one.
 */
static bool parse_intel(const char *line, uint32_t *ret_bdf, uint64_t *ret_address,
			uint32_t *ret_access)
{
	static const char device[] = "] Request device [";
	const char *at = strstr(line, "DMAR: [DMA "), *place, *address;

	if (!at)
		return false;
	at += sizeof("DMAR: [DMA ") - 1;
	place = strstr(at, device);
	address = place ? strstr(place, "] fault addr ") : NULL;
	if (!address || sscanf(address, "] fault addr %" SCNx64, ret_address) != 1)
		return false;
	*ret_access = strncmp(at, "Write", 5) == 0 ? SIO_FAULT_WRITE : SIO_FAULT_READ;
	return parse_place(place + sizeof(device) - 1, ret_bdf);
}

/*
 * "smartio 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0013 address=0x1234000
 * flags=0x0020]", as it is in 6.1 and 6.12.
 */
static bool parse_amd(const char *line, uint32_t *ret_bdf, uint64_t *ret_address,
		      uint32_t *ret_access)
{
	static const char event[] = ": AMD-Vi: Event logged [IO_PAGE_FAULT domain=";
	const char *at = strstr(line, event), *place = at;
	unsigned domain, flags;

	if (!at || sscanf(at + sizeof(event) - 1, "%x address=%" SCNx64 " flags=%x]", &domain,
			  ret_address, &flags) != 3)
		return false;
	while (place > line && place[-1] != ' ')
		place--;
	place = strchr(place, ':'); /* behind the segment */
	*ret_access = flags & AMD_WRITE ? SIO_FAULT_WRITE : SIO_FAULT_READ;
	return parse_place(place + 1, ret_bdf);
}

bool port_shim_parse_fault(const char *line, uint32_t *ret_bdf, uint64_t *ret_address,
			   uint32_t *ret_access)
{
	return parse_intel(line, ret_bdf, ret_address, ret_access) ||
	       parse_amd(line, ret_bdf, ret_address, ret_access);
}
