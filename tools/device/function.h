/* SPDX-License-Identifier: BSD-2-Clause */
/* PCI functions of this machine, as sysfs shows them: the driver of each, and its users. */
#ifndef TOOLS_FUNCTION_H
#define TOOLS_FUNCTION_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define TOOL_FUNCTION_DRIVER "smartio"
#define TOOL_FUNCTION_BDF 24
#define TOOL_FUNCTION_WORD 64

struct tool_function {
	char bdf[TOOL_FUNCTION_BDF];	 /* 0000:05:00.0 */
	char name[160];			 /* vendor and device, for people */
	char driver[TOOL_FUNCTION_WORD]; /* that it is bound to; "" */
	uint32_t class_code;
	bool bridge;
	int group; /* IOMMU group; -1: none */
};

/*
 * Finds a function by "0000:05:00.0" or "05:00.0". -EINVAL: no such word; -ENODEV: no such
 * function.
 */
int tool_function_find(const char *word, struct tool_function *ret, struct sio_err *reterr);
/*
 * Does this machine use the function: a mounted disk, swap, a disk under another block device, a
 * network interface that is up? Return: 0: no; -EBUSY: yes, with the use; -errno.
 */
int tool_function_unused(const struct tool_function *f, struct sio_err *reterr);
/* The type of its IOMMU group ("DMA", "DMA-FQ", "identity"); "" without an IOMMU. */
void tool_function_iommu(const struct tool_function *f, char ret[TOOL_FUNCTION_WORD]);
/* The number of other functions in its IOMMU group; the address of the first one in @ret. */
unsigned tool_function_neighbours(const struct tool_function *f, char ret[TOOL_FUNCTION_BDF]);

/* The steps by which a function changes its driver. Each returns 0 or -errno with a text. */
int tool_function_unbind(const struct tool_function *f, struct sio_err *reterr);
int tool_function_override(const struct tool_function *f, const char *driver,
			   struct sio_err *reterr);
/* Only while no driver of the group's functions is bound. */
int tool_function_set_iommu(const struct tool_function *f, const char *type,
			    struct sio_err *reterr);
/* Has the kernel look for a driver. */
int tool_function_probe(const struct tool_function *f, struct sio_err *reterr);
/* Reads again which driver it has. */
void tool_function_reread(struct tool_function *f);

#endif
