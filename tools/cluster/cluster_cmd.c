/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio cluster up, down, validate, restart-node. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "base/command.h"
#include "base/hint.h"
#include "base/output.h"
#include "base/state.h"

static const char *plural(unsigned n)
{
	return n == 1 ? "" : "s";
}

static unsigned count_devices(const struct sio_topology *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->n_hosts; i++)
		n += t->host[i].n_devices;
	return n;
}

/* The directory of a new cluster: where tool_state_find() will look for it. */
static int new_dir(const char *name, char *dir, size_t size, struct sio_err *reterr)
{
	const char *env = getenv("SMARTIO_STATE");
	char cwd[PATH_MAX];

	if (!tool_where.state && !tool_where.cluster && env && *env)
		tool_where.state = env;
	if (!tool_where.state)
		return tool_state_path(tool_where.cluster ? tool_where.cluster : name, dir, size,
				       reterr);
	if (*tool_where.state == '/')
		return tool_path(dir, size, reterr, "%s", tool_where.state);
	if (!getcwd(cwd, sizeof(cwd)))
		return sio_fail(reterr, -errno, "getcwd: %s", strerror(errno));
	return tool_path(dir, size, reterr, "%s/%s", cwd, tool_where.state);
}

/* Adds the numbers of hosts, adapters and devices. */
static void add_counts(struct json_object *o, const struct sio_topology *t)
{
	tool_json_number(o, "hosts", t->n_hosts);
	tool_json_number(o, "switches", t->n_switches);
	tool_json_number(o, "devices", count_devices(t));
}

/* Adds the cluster's name and directory. The name is null if --state gives the directory. */
static void add_cluster(struct json_object *o, const char *dir)
{
	char name[TOOL_NAME_TEXT];

	if (*tool_cluster_name(dir, name))
		tool_json_string(o, "name", name);
	else
		tool_json_null(o, "name");
	tool_json_string(o, "directory", dir);
}

static int print_up(const struct sio_topology *t, const char *dir, bool cleaned)
{
	struct json_object *o = tool_json_object();

	add_cluster(o, dir);
	tool_json_string(o, "cluster", t->name);
	add_counts(o, t);
	tool_json_bool(o, "removed_stale", cleaned);
	return tool_json_print("cluster-up", o);
}

static int up(const struct tool_command *self, int argc, char **argv)
{
	struct tool_topofile f;
	struct sio_err err;
	char dir[PATH_MAX], name[TOOL_NAME_TEXT];
	bool cleaned = false;
	int first, r, cancel, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (tool_topofile_load(argv[first], &f, &err) < 0)
		return tool_fail(&err);
	r = new_dir(f.topology->name, dir, sizeof(dir), &err);
	cancel = tool_cancel_fd();
	if (r == 0)
		r = tool_cluster_up(&f, dir, false, cancel, &cleaned, &err);
	if (cleaned)
		tool_note("removed what a cluster that crashed had left in %s", dir);
	if (r < 0)
		status = tool_fail(&err);
	else
		tool_note("cluster '%s' is up: %u host%s, %u device%s; state in %s",
			  *tool_cluster_name(dir, name) ? name : f.topology->name,
			  f.topology->n_hosts, plural(f.topology->n_hosts),
			  count_devices(f.topology), plural(count_devices(f.topology)), dir);
	if (r == 0 && tool_where.json)
		status = print_up(f.topology, dir, cleaned);
	tool_topofile_done(&f);
	return status;
}

static const struct tool_option up_options[] = {
	{"name", .value = &tool_where.cluster, .takes = "NAME",
	 .text = "run it under this name; otherwise under the one in the file"},
	{.name = NULL}};

const struct tool_command tool_cluster_up_command = {
	.name = "cluster up",
	.summary = "Bring up an emulated cluster from a topology file",
	.help = "Starts the machine room and one daemon per host in the background and returns when all\n"
		"hosts answer each other. If anything fails, nothing stays behind. What a cluster that\n"
		"crashed left in the same place is removed first.\n",
	.page = "smartio-cluster",
	.schemas = "cluster-up",
	.options = up_options,
	.words = {{"TOPOLOGY", TOOL_TOPOLOGIES}},
	.run = up};

/* A command that runs on the cluster would die before the cluster is down. */
static int check_outside(const char *dir, struct sio_err *reterr)
{
	const char *keeper = getenv("SMARTIO_KEEPER"), *state = getenv("SMARTIO_STATE");

	if (keeper && state && strcmp(state, dir) == 0)
		return sio_fail(reterr, -EPERM,
				"this command runs on a host of that very cluster; "
				"take it down from outside of 'smartio run'");
	return 0;
}

static int print_down(const char *dir, unsigned was)
{
	struct json_object *o = tool_json_object();

	add_cluster(o, dir);
	tool_json_number(o, "ended", was);
	return tool_json_print("cluster-down", o);
}

static int down(const struct tool_command *self, int argc, char **argv)
{
	unsigned was = 0;
	struct sio_err err;
	char dir[PATH_MAX];
	int first, r, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (first < argc) {
		tool_where.cluster = argv[first];
		tool_where.state = NULL;
	}
	r = tool_state_find(tool_where.state, tool_where.cluster, dir, sizeof(dir), &err);
	if (r == 0)
		r = check_outside(dir, &err);
	if (r == 0)
		r = tool_cluster_down(dir, &was, &err);
	if (r < 0)
		return tool_fail(&err);
	if (tool_where.json)
		status = print_down(dir, was);
	if (was)
		tool_note("the cluster in %s is down", dir);
	else
		tool_note("the cluster in %s did not run any more; removed what it had left", dir);
	return status;
}

const struct tool_command tool_cluster_down_command = {
	.name = "cluster down",
	.summary = "Take a cluster down, with all that runs on it",
	.help = "Ends the daemons, the programs started by 'smartio run' with them, and the machine room;\n"
		"what does not end by SIGTERM in 5 seconds is killed. Removes the state directory.\n",
	.page = "smartio-cluster",
	.schemas = "cluster-down",
	.words = {{"[NAME]", TOOL_CLUSTERS}},
	.run = down};

static int validate(const struct tool_command *self, int argc, char **argv)
{
	struct tool_topofile f;
	struct sio_err err;
	int first, status = 0;
	unsigned devices;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (tool_topofile_load(argv[first], &f, &err) < 0)
		return tool_fail(&err);
	devices = count_devices(f.topology);
	if (tool_where.json) {
		struct json_object *o = tool_json_object();

		tool_json_string(o, "cluster", f.topology->name);
		add_counts(o, f.topology);
		status = tool_json_print("cluster-validate", o);
	} else {
		tool_note("%s: cluster '%s': %u host%s, %u device%s: correct", argv[first],
			  f.topology->name, f.topology->n_hosts, plural(f.topology->n_hosts),
			  devices, plural(devices));
	}
	tool_topofile_done(&f);
	return status;
}

const struct tool_command tool_cluster_validate_command = {
	.name = "cluster validate",
	.summary = "Check a topology file and say what is wrong in it",
	.help = "Every error names file, line, key, value and what would be right. Starts nothing.\n",
	.page = "smartio-cluster",
	.schemas = "cluster-validate",
	.words = {{"TOPOLOGY", TOOL_TOPOLOGIES}},
	.run = validate};

static int print_restart(const char *dir, const struct sio_topo_host *host)
{
	struct json_object *o = tool_json_object();

	add_cluster(o, dir);
	tool_json_string(o, "host", host->name);
	tool_json_number(o, "node", host->node);
	return tool_json_print("cluster-restart-node", o);
}

static int restart(const struct tool_command *self, int argc, char **argv)
{
	const struct sio_topo_host *host;
	struct sio_topology *t = NULL;
	struct sio_err err;
	char dir[PATH_MAX];
	int first, r, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	r = tool_find_cluster(dir, sizeof(dir), &t, &err);
	if (r == 0)
		r = tool_find_host(t, argv[first], &host, &err);
	if (r == 0)
		r = tool_cluster_restart(dir, t, host, tool_cancel_fd(), &err);
	if (r < 0)
		status = tool_fail(&err);
	else
		tool_note("host '%s' is up again, with empty memory", host->name);
	if (r == 0 && tool_where.json)
		status = print_restart(dir, host);
	sio_topology_free(t);
	return status;
}

const struct tool_command tool_cluster_restart_command = {
	.name = "cluster restart-node",
	.summary = "Start a host that crashed",
	.help = "The host comes back with empty memory; nothing that it had held is there any more.\n",
	.page = "smartio-cluster",
	.schemas = "cluster-restart-node",
	.words = {{"NODE", TOOL_NODES}},
	.run = restart};
