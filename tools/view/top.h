/* SPDX-License-Identifier: BSD-2-Clause */
/* What smartio top shows, and its options. */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include <limits.h>

#include "view/frame.h"

struct tool_top {
	char dir[PATH_MAX]; /* of the cluster */
	int64_t delay_ms;   /* between the end of one look and the next */
	unsigned frames;    /* 0: until it is told to stop */
	enum tool_frame_sort sort;
};

/* Takes one sample of the cluster, by connections of its own, which are closed again. */
int tool_top_take(const struct tool_top *top, struct tool_sample **ret, struct sio_err *reterr);

/*
 * Draws on the terminal and handles its keys until q. Return: exit status. -EOPNOTSUPP with its
 * text: this smartio was built without ncurses, or the terminal cannot be used.
 */
int tool_top_screen(const struct tool_top *top, int *ret_status, struct sio_err *reterr);

#endif
