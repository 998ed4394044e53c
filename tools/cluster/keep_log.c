/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the output of a detached program goes. */
#include <stdio.h>

#include "base/command.h"
#include "base/output.h"
#include "base/state.h"
#include "cluster/keeper.h"

int tool_keep_log(const struct tool_keep *k, int pid, char *path, size_t size,
		  struct sio_err *reterr)
{
	return tool_path(path, size, reterr, "%s/run.%u.%d.log", k->dir, k->node, pid);
}

int tool_keep_say_log(const char *log, int pid, const char *machine)
{
	struct json_object *data;

	if (tool_where.json) {
		data = tool_json_object();
		tool_json_number(data, "process", (uint64_t)pid);
		tool_json_string(data, "log", log);
		return tool_json_print("run", data);
	}
	if (machine)
		tool_note("the output of process %d of machine '%s' goes to %s", pid, machine, log);
	else
		tool_note("the output of process %d goes to %s", pid, log);
	printf("%d\n", pid);
	return tool_flush();
}
