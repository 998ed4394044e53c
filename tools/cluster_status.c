/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio cluster status: which clusters there are, and what of them runs. */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "output.h"
#include "state.h"

struct status {
	char dir[PATH_MAX], name[NAME_MAX + 1];
	struct sio_topology *topology; /* NULL: its copy of the file is gone */
	pid_t room;		       /* 0: does not run */
	pid_t node[SIO_MAX_HOSTS];
	unsigned up;
};

static void look(const char *dir, struct status *s)
{
	struct tool_program p;
	char name[48];

	*s = (struct status){0};
	snprintf(s->dir, sizeof(s->dir), "%s", dir);
	if (tool_state_topology(dir, &s->topology, NULL) < 0)
		s->topology = NULL;
	snprintf(s->name, sizeof(s->name), "%s", s->topology ? s->topology->name : "?");
	if (tool_state_program(dir, "emu", false, &p) == 0)
		s->room = p.pid;
	for (unsigned i = 0; s->topology && i < s->topology->n_hosts; i++) {
		tool_state_daemon_name(s->topology->host[i].node, name, sizeof(name));
		if (tool_state_program(dir, name, false, &p) < 0)
			continue;
		s->node[i] = p.pid;
		s->up++;
	}
}

static const char *state_of(const struct status *s)
{
	if (!s->room && s->up == 0)
		return "stale";
	if (s->room && s->topology && s->up == s->topology->n_hosts)
		return "running";
	return s->room ? "hosts down" : "room down";
}

static struct json_object *to_json(const struct status *s)
{
	struct json_object *o = tool_json_object(), *nodes = tool_json_array(), *n;

	tool_json_string(o, "name", s->name);
	tool_json_string(o, "state", state_of(s));
	tool_json_string(o, "directory", s->dir);
	tool_json_number(o, "room_pid", (uint64_t)s->room);
	for (unsigned i = 0; s->topology && i < s->topology->n_hosts; i++) {
		n = tool_json_object();
		tool_json_string(n, "name", s->topology->host[i].name);
		tool_json_number(n, "node", s->topology->host[i].node);
		tool_json_bool(n, "up", s->node[i] != 0);
		tool_json_number(n, "pid", (uint64_t)s->node[i]);
		tool_json_append(nodes, n);
	}
	tool_json_add(o, "nodes", nodes);
	return o;
}

static void to_row(struct tool_table *t, const struct status *s)
{
	char down[200] = "";
	size_t used = 0;

	for (unsigned i = 0; s->topology && i < s->topology->n_hosts && used < sizeof(down); i++)
		if (!s->node[i])
			used += (size_t)snprintf(down + used, sizeof(down) - used, "%s%s",
						 used ? "," : "", s->topology->host[i].name);
	tool_table_cell(t, "%s", s->name);
	tool_table_cell(t, "%s", state_of(s));
	tool_table_cell(t, "%u/%u", s->up, s->topology ? s->topology->n_hosts : 0);
	tool_table_cell(t, "%s", down);
	tool_table_cell(t, "%s", s->dir);
}

static void add_all(char ***dirs, size_t *n, enum tool_state state, bool hidden)
{
	char **names, dir[PATH_MAX], base[PATH_MAX];
	size_t count;

	if (tool_state_base(base, sizeof(base), NULL) < 0 ||
	    tool_state_list(&names, &count, state, hidden, NULL) < 0)
		return;
	*dirs = tool_grow(*dirs, *n + count, sizeof(**dirs));
	for (size_t i = 0; i < count; i++) {
		if (tool_path(dir, sizeof(dir), NULL, "%s/%s", base, names[i]) == 0)
			(*dirs)[(*n)++] = tool_strdup(dir);
		free(names[i]);
	}
	free(names);
}

/* The one that is meant, or all under the base directory. */
static int choose(const char *name, char ***dirs, size_t *n, struct sio_err *reterr)
{
	const char *env = getenv("SMARTIO_STATE");
	char dir[PATH_MAX];
	int r;

	if (name || tool_where.state || (env && *env)) {
		r = tool_state_find(name ? NULL : tool_where.state, name, dir, sizeof(dir), reterr);
		if (r < 0)
			return r;
		*dirs = tool_alloc(1, sizeof(**dirs));
		(*dirs)[(*n)++] = tool_strdup(dir);
		return 0;
	}
	r = tool_state_base(dir, sizeof(dir), reterr);
	if (r < 0)
		return r;
	add_all(dirs, n, TOOL_STATE_RUNNING, false);
	add_all(dirs, n, TOOL_STATE_RUNNING, true);
	add_all(dirs, n, TOOL_STATE_STALE, false);
	add_all(dirs, n, TOOL_STATE_STALE, true);
	return 0;
}

static int print(char **dirs, size_t n)
{
	struct json_object *array = tool_where.json ? tool_json_array() : NULL;
	struct tool_table *t =
		array ? NULL : tool_table_new("CLUSTER|STATE|>HOSTS UP|DOWN|DIRECTORY");
	struct status *s = tool_alloc(1, sizeof(*s));

	for (size_t i = 0; i < n; i++) {
		look(dirs[i], s);
		if (array)
			tool_json_append(array, to_json(s));
		else
			to_row(t, s);
		sio_topology_free(s->topology);
	}
	free(s);
	return array ? tool_json_end(array) : tool_table_end(t);
}

static int status(const struct tool_command *self, int argc, char **argv)
{
	char **dirs = NULL;
	struct sio_err err;
	size_t n = 0;
	int first, result = 0;

	first = tool_options(self, argc, argv, NULL, false, &result);
	if (first < 0)
		return result;
	if (argc - first > 1)
		return tool_usage(self->name, "'%s' is one word too many", argv[first + 1]);
	if (choose(first < argc ? argv[first] : tool_where.cluster, &dirs, &n, &err) < 0)
		return tool_fail(&err);
	result = print(dirs, n);
	for (size_t i = 0; i < n; i++)
		free(dirs[i]);
	free(dirs);
	return result;
}

const struct tool_command tool_cluster_status_command = {
	"cluster status", "[NAME]", "Show the clusters of this machine, and which hosts are up",
	"States: running; hosts down (some crashed: 'smartio cluster restart-node'); room down (its\n"
	"hosts are about to end); stale (nothing runs: 'smartio cluster down' cleans up).\n",
	status};
