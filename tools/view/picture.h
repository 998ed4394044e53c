/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster drawn with characters: switches, links, hosts and their devices. */
#ifndef TOOLS_PICTURE_H
#define TOOLS_PICTURE_H

#include <stdio.h>

#include "view/view.h"

/* Draws to @out. Return: 0; -EIO: @out failed. */
int tool_picture(FILE *out, const struct tool_view *v);

#endif
