/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small file for each PCI function whose driver smartio device add or remove changes: from before
 * the first step until after the last one. Where such a command is killed the file stays, and tells
 * the next one that the function is smartio's to finish with, whatever driver has it.
 */
#ifndef TOOLS_DEVICE_UNDERWAY_H
#define TOOLS_DEVICE_UNDERWAY_H

#include "device/function.h"

/* What the names of these files end with, behind "device-0000:05:00.0". */
#define TOOL_UNDERWAY ".underway"

/* The driver that the function gets from its own one, or goes back from; "": nothing is under way. */
void tool_underway(const struct tool_function *f, char ret[TOOL_FUNCTION_WORD]);
int tool_underway_begin(const struct tool_function *f, const char *driver, struct sio_err *reterr);
void tool_underway_end(const struct tool_function *f);

#endif
