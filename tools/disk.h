/* SPDX-License-Identifier: BSD-2-Clause */
/* Which disks a PCI function has, and what this machine does with them. */
#ifndef TOOLS_DISK_H
#define TOOLS_DISK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Is a disk of function @bdf in use: mounted, swapped to, below another block device, or claimed by
 * the kernel for something else? If so @ret says by what. @root: "", or a folder with another
 * machine's /sys, /proc and /dev.
 */
bool tool_disk_in_use(const char *root, const char *bdf, char *ret, size_t size);

#endif
