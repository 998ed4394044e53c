/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the output of a detached program goes. */
#include "cluster/keeper.h"
#include "base/state.h"

int tool_keep_log(const struct tool_keep *k, int pid, char *path, size_t size,
		  struct sio_err *reterr)
{
	return tool_path(path, size, reterr, "%s/run.%u.%d.log", k->dir, k->node, pid);
}
