/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio run: a program as if on one of the cluster's hosts. */
#include <errno.h>
#include <limits.h>

#include "base/command.h"
#include "base/hint.h"
#include "cluster/keeper.h"
#include "base/output.h"
#include "base/state.h"

static int check_runs(const char *dir, const struct sio_topo_host *host, struct sio_err *reterr)
{
	char name[48], hint[TOOL_HINT_TEXT];
	struct tool_program p;

	tool_state_daemon_name(host->node, name, sizeof(name));
	if (tool_state_program(dir, name, false, &p) == 0)
		return 0;
	return sio_fail(reterr, -ENETDOWN,
			"host '%s' is down; start it with: %s cluster restart-node %s", host->name,
			tool_hint(dir, hint), host->name);
}

static const char *node;
static bool detached;
static const struct tool_option options[] = {
	{"node", 'n', .value = &node, .takes = "NODE", .kind = TOOL_NODES, .needed = true,
	 .text = "the host, by name or node id"},
	{"detach", 'd', &detached,
	 .text = "start COMMAND, print its process number, and return; its output goes to\n"
		 "run.NODE.PROCESS.log in the cluster's state directory"},
	{.name = NULL}};

static int run(const struct tool_command *self, int argc, char **argv)
{
	const struct sio_topo_host *host;
	struct sio_topology *t = NULL;
	struct tool_keep keep = {0};
	struct sio_err err;
	char dir[PATH_MAX];
	int first, r, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (!node)
		return tool_usage(self->name, "-n NODE is missing");
	if (first >= argc)
		return tool_usage(self->name, "the command is missing");
	r = tool_find_cluster(dir, sizeof(dir), &t, &err);
	if (r == 0)
		r = tool_find_host(t, node, &host, &err);
	if (r == 0)
		r = check_runs(dir, host, &err);
	if (r < 0) {
		status = tool_fail(&err);
	} else {
		if (!detached)
			tool_json_printed(); /* standard output is COMMAND's */
		keep = (struct tool_keep){.argv = argv + first,
					  .dir = dir,
					  .host = host->name,
					  .node = host->node,
					  .hold = -1,
					  .detached = detached};
		status = tool_keep(&keep);
	}
	sio_topology_free(t);
	return status;
}

const struct tool_command tool_run_command = {
	.name = "run",
	.summary = "Run a program on a host of the cluster",
	.help = "COMMAND and all that it starts die with the host, and with this command if it is killed\n"
		"(unless detached).\n"
		"What COMMAND leaves running when it ends stays tied to the host. Signals are forwarded; the\n"
		"exit status is COMMAND's, 128 + N after signal N, 126 or 127 if it cannot be run, and 137 if\n"
		"the host crashed.\n",
	.page = "smartio-run",
	.schemas = "run",
	.options = options,
	.words = {{"-- COMMAND...", TOOL_PROGRAM}},
	.run = run};
