/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio run: runs a program as if on one of the cluster's hosts, or in one of its virtual
 * machines.
 */
#include <errno.h>
#include <limits.h>

#include "base/command.h"
#include "base/hint.h"
#include "cluster/keeper.h"
#include "base/output.h"
#include "base/state.h"
#include "machine/client.h"

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

static int check_machine(const char *dir, const struct sio_topo_host *host, struct sio_err *reterr)
{
	enum tool_machine_state state = tool_state_machine(dir, host->node, NULL);
	char hint[TOOL_HINT_TEXT];

	if (state == TOOL_MACHINE_RUNNING)
		return 0;
	return sio_fail(reterr, -ENETDOWN, "machine '%s' %s; start it with: %s machine start %s",
			host->name, state == TOOL_MACHINE_KILLED ? "was killed" : "is off",
			tool_hint(dir, hint), host->name);
}

static const char *node;
static bool detached;
static const struct tool_option options[] = {
	{"node", 'n', .value = &node, .takes = "NODE", .kind = TOOL_RUNNABLE, .needed = true,
	 .text = "the host or virtual machine, by name or node id"},
	{"detach", 'd', &detached,
	 .text = "start COMMAND, print its process number, and return; its output goes to\n"
		 "run.NODE.PROCESS.log in the cluster's state directory"},
	{.name = NULL}};

/* @words: the program and its arguments. Return: the exit status. */
static int run_on_host(const char *dir, const struct sio_topo_host *host, char **words)
{
	struct tool_keep keep = {.argv = words,
				 .dir = dir,
				 .host = host->name,
				 .node = host->node,
				 .hold = -1,
				 .detached = detached};
	struct sio_err err;

	if (check_runs(dir, host, &err) < 0)
		return tool_fail(&err);
	if (!detached)
		tool_json_printed(); /* standard output is COMMAND's */
	return tool_keep(&keep);
}

static int run_in_machine(const char *dir, const struct sio_topo_host *host, char **words)
{
	struct machine_run run = {.argv = words,
				  .dir = dir,
				  .host = host->name,
				  .node = host->node,
				  .detached = detached};
	struct sio_err err;

	if (check_machine(dir, host, &err) < 0)
		return tool_fail(&err);
	if (!detached)
		tool_json_printed();
	return machine_run(&run);
}

static int run(const struct tool_command *self, int argc, char **argv)
{
	const struct sio_topo_host *host;
	struct sio_topology *t = NULL;
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
		r = tool_find_node(t, node, &host, &err);
	if (r < 0)
		status = tool_fail(&err);
	else
		status = (host->machine ? run_in_machine : run_on_host)(dir, host, argv + first);
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
		"the host crashed. In a virtual machine COMMAND is one of those that it has, and its folder is\n"
		"/root.\n",
	.page = "smartio-run",
	.schemas = "run",
	.options = options,
	.words = {{"-- COMMAND...", TOOL_PROGRAM}},
	.run = run};
