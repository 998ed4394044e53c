/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of PCI functions for display: from libpci's list where the build has it, otherwise by their
 * ids.
 */
#ifndef TOOLS_FUNCTION_NAME_H
#define TOOLS_FUNCTION_NAME_H

#include <stddef.h>

/* Writes the names of vendor and device into @ret of @size bytes. Any thread. */
void tool_function_name(unsigned vendor, unsigned device, char *ret, size_t size);

#endif
