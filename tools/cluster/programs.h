/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs of an emulated cluster, while something of its hardware is changed: which of them
 * have not handled yet what their daemons sent them because of that.
 */
#ifndef TOOLS_PROGRAMS_H
#define TOOLS_PROGRAMS_H

#include <stdint.h>

#include "base/command.h"
#include "base/output.h"

#define TOOL_EXIT_LATE 3 /* of the commands below: it was done, and not all programs know */

/* The options of commands that wait for programs. */
#define TOOL_OPTION_WAIT(seconds)                                                                  \
	{                                                                                          \
		"wait", .value = (seconds), .takes = "SECONDS",                                    \
			.text = "how long to wait for programs; default 5"                         \
	}
#define TOOL_OPTION_NO_WAIT(set)                                                                   \
	{                                                                                          \
		"no-wait", .flag = (set), .text = "do not ask the hosts' programs at all"          \
	}

/* From the text of --wait (NULL: not given). -EINVAL. */
int tool_wait_parse(const char *seconds, uint32_t *ret_ms, struct sio_err *reterr);

struct tool_programs;
/* Before the change. A host that does not answer is no error. */
int tool_programs_open(const char *dir, struct tool_programs **ret, struct sio_err *reterr);
/*
 * After it: waits until all programs have handled what they were sent, up to @ms. Others know of
 * the change from the daemon of @node (0: each from its own port). Programs that have not are
 * printed, or added to @doc as "late"; hosts that do not answer are noted, and added to @doc as
 * "silent". Return: exit status.
 */
int tool_programs_await(struct tool_programs *p, uint32_t node, uint32_t ms,
			struct json_object *doc);
void tool_programs_close(struct tool_programs *p);

#endif
