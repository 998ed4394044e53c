/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster's file that daemons have in force, and the differences between two such files. */
#ifndef TOOLS_CLUSTERFILE_H
#define TOOLS_CLUSTERFILE_H

#include <stdbool.h>

#include "base/client.h"

struct tool_file {
	char *text; /* free() */
	size_t len, total;
	uint64_t sum; /* another one of another text */
};

/*
 * Fetches the file of @node (0: of the daemon that is asked) from the daemon of @c. @whole false:
 * the sum alone. -ENOENT: it has none; -EHOSTUNREACH: the other daemon is not connected; -EAGAIN:
 * the file changed during each attempt; -EPROTO: the parts do not make a file.
 */
int tool_file_fetch(struct tool_client *c, uint32_t node, bool whole, struct tool_file *ret,
		    struct sio_err *reterr);

#define TOOL_FILE_LINE 200  /* characters of a line that are reported */
#define TOOL_FILE_LINES 100 /* so many lines are reported, the others counted */

/* @text: printable ASCII; other bytes are replaced by a question mark. */
typedef void tool_file_line(void *ctx, bool mine, unsigned line, const char *text);
/*
 * Does @node have another file than the daemon of @c? @tell: is called for each line that only one
 * of them has, the first TOOL_FILE_LINES of them. *ret_lines: how many there are.
 */
int tool_file_compare(struct tool_client *c, uint32_t node, tool_file_line *tell, void *ctx,
		      unsigned *ret_lines, struct sio_err *reterr);

#endif
