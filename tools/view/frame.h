/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One refresh of smartio top: lines of text, or JSON, made from two samples. Pure: it does no I/O.
 */
#ifndef TOOLS_FRAME_H
#define TOOLS_FRAME_H

#include "view/sample.h"

enum tool_frame_sort {
	TOOL_SORT_NAME, /* as in the topology file */
	TOOL_SORT_READ,
	TOOL_SORT_WRITE,
	TOOL_SORT_FAULTS, /* those of the time between first, then all */
	TOOL_SORTS
};

/* "name", "read", ...; "name|read|..." */
extern const char *const tool_frame_sort_name[TOOL_SORTS];
#define TOOL_FRAME_SORTS "name|read|write|faults"

enum tool_frame_style {
	TOOL_LINE_PLAIN,
	TOOL_LINE_TITLE, /* what is seen at all */
	TOOL_LINE_HEAD,	 /* of columns */
	TOOL_LINE_BUSY,	 /* something moved */
	TOOL_LINE_WRONG, /* down, out, or it faulted in the time between */
};

struct tool_frame {
	unsigned n;
	struct tool_frame_line {
		enum tool_frame_style style;
		char *text;
	} * line;
};

/*
 * @before: NULL: no rates are known yet. Return: a frame for tool_frame_free(). The lines of one
 * section are as wide as its widest row; the caller cuts them to the screen.
 */
struct tool_frame *tool_frame_new(const struct tool_sample *before, const struct tool_sample *now,
				  enum tool_frame_sort sort);
/* NULL is fine. */
void tool_frame_free(struct tool_frame *f);

/* The same as the data of smartio/top. */
struct json_object *tool_frame_json(const struct tool_sample *before, const struct tool_sample *now,
				    enum tool_frame_sort sort);

#endif
