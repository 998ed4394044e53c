/* SPDX-License-Identifier: BSD-2-Clause */
/* The disks of a PCI function, and how this machine uses them. */
#ifndef TOOLS_DISK_H
#define TOOLS_DISK_H

#include <stddef.h>

/*
 * Is a disk of function @bdf in use: mounted, used as swap, below another block device, or claimed
 * by the kernel for another purpose? @root: "", or a folder with another machine's /sys, /proc and
 * /dev. Return: 1: yes, @ret names the use; 0: no; -errno: this cannot be determined, @ret has the
 * reason.
 */
int tool_disk_in_use(const char *root, const char *bdf, char *ret, size_t size);

#endif
