/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of functions that are lent again whenever this machine starts: a file of lines. */
#ifndef TOOLS_DEVICE_LENT_H
#define TOOLS_DEVICE_LENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

#define TOOL_LENT_FILE "/etc/smartio/lent"
#define TOOL_LENT_MAX 64
#define TOOL_LENT_BDF 24

/* The device that was in a place when it was lent: another device there is not lent. */
struct tool_lent {
	char bdf[TOOL_LENT_BDF];
	uint32_t vendor, device;
};

struct tool_lent_list {
	unsigned n;
	struct tool_lent entry[TOOL_LENT_MAX];
};

/*
 * Reads the list. No file: an empty list. -EINVAL: a line is not of this form; the text says which.
 */
int tool_lent_read(const char *path, struct tool_lent_list *ret, struct sio_err *reterr);
/* Replaces the file atomically; on failure it stays as it was. */
int tool_lent_write(const char *path, const struct tool_lent_list *list, struct sio_err *reterr);
/* Adds an entry, or replaces the one of the same place. -ENOSPC: there are TOOL_LENT_MAX. */
int tool_lent_add(struct tool_lent_list *list, const struct tool_lent *e, struct sio_err *reterr);
/* False: there was no such entry. */
bool tool_lent_remove(struct tool_lent_list *list, const char *bdf);

#endif
