/* SPDX-License-Identifier: BSD-2-Clause */
/* What people call a PCI function: by libpci's list where the build has it, else by its ids. */
#ifndef TOOLS_FUNCTION_NAME_H
#define TOOLS_FUNCTION_NAME_H

#include <stddef.h>

/* Vendor and device in words, in @ret of @size bytes. Any thread. */
void tool_function_name(unsigned vendor, unsigned device, char *ret, size_t size);

#endif
