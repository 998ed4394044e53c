/* SPDX-License-Identifier: BSD-2-Clause */
/* Which disks a PCI function has, and what this machine does with them. */
#ifndef TOOLS_DISK_H
#define TOOLS_DISK_H

#include <stddef.h>

/*
 * Is a disk of function @bdf in use: mounted, swapped to, below another block device, or claimed by
 * the kernel for something else? @root: "", or a folder with another machine's /sys, /proc and
 * /dev. Return: 1: yes, @ret says by what; 0: no; -errno: it cannot be told, @ret says why.
 */
int tool_disk_in_use(const char *root, const char *bdf, char *ret, size_t size);

#endif
