/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "device/function_name.h"

void tool_function_name(unsigned vendor, unsigned device, char *ret, size_t size)
{
	snprintf(ret, size, "PCI function %04x:%04x", vendor, device);
}
