/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio cluster status: which clusters there are, and which of their programs run. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/hint.h"
#include "base/output.h"
#include "base/state.h"
#include "view/view.h"

struct status {
	char dir[PATH_MAX], name[NAME_MAX + 1];
	struct sio_topology *topology; /* NULL: its copy of the file is gone */
	pid_t room;		       /* 0: not running */
	pid_t node[SIO_MAX_HOSTS];
	unsigned up;
	struct tool_view *view; /* NULL: no daemon can be asked */
};

static void look(const char *dir, struct status *s)
{
	char name[48], given[TOOL_NAME_TEXT];
	struct tool_program p;

	*s = (struct status){0};
	snprintf(s->dir, sizeof(s->dir), "%s", dir);
	if (tool_state_topology(dir, &s->topology, NULL) < 0)
		s->topology = NULL;
	tool_cluster_name(dir, given);
	snprintf(s->name, sizeof(s->name), "%s",
		 *given ? given : (s->topology ? s->topology->name : "?"));
	if (tool_state_program(dir, "emu", false, &p) == 0)
		s->room = p.pid;
	for (unsigned i = 0; s->topology && i < s->topology->n_hosts; i++) {
		tool_state_daemon_name(s->topology->host[i].node, name, sizeof(name));
		if (tool_state_program(dir, name, false, &p) < 0)
			continue;
		s->node[i] = p.pid;
		s->up++;
	}
	if (s->topology && tool_view_open_dir(dir, &s->view, NULL) < 0)
		s->view = NULL;
}

static void forget(struct status *s)
{
	tool_view_close(s->view);
	sio_topology_free(s->topology);
}

/* How many there are of something in the cluster, and how many of them are well. */
struct count {
	unsigned n, well;
};

static struct count count_hosts(const struct status *s)
{
	struct count c = {.n = s->topology ? s->topology->n_hosts : 0};

	for (unsigned i = 0; s->view && i < s->view->n; i++)
		c.well += s->view->host[i].host->up;
	return c;
}

static struct count count_links(const struct status *s)
{
	struct count c = {0};

	for (unsigned i = 0; s->view && i < s->view->n; i++) {
		c.n += s->view->host[i].topo->n_adapters;
		c.well += s->view->host[i].links_up;
	}
	for (unsigned i = 0; s->view && i < s->view->topology->n_trunks; i++, c.n++)
		c.well += !tool_trunk_is_down(s->view, i);
	return c;
}

static struct count count_devices(const struct status *s)
{
	struct count c = {0};

	for (unsigned i = 0; s->view && i < s->view->n; i++) {
		const struct tool_view_host *h = &s->view->host[i];

		for (unsigned k = 0; k < h->topo->n_devices; k++, c.n++)
			c.well += tool_device_is_in(&h->device[k]);
	}
	return c;
}

static bool any_killed(const struct status *s)
{
	for (unsigned i = 0; s->topology && i < s->topology->n_machines; i++)
		if (tool_state_machine(s->dir, s->topology->machine[i].node, NULL) ==
		    TOOL_MACHINE_KILLED)
			return true;
	return false;
}

/* The worst of the states. */
static const char *state_of(const struct status *s)
{
	struct count hosts = count_hosts(s), links = count_links(s), devices = count_devices(s);

	if (!s->room && s->up == 0)
		return "stale";
	if (!s->room)
		return "room down";
	if (!s->topology || s->up < s->topology->n_hosts)
		return "hosts down";
	if (any_killed(s))
		return "machine killed";
	if (hosts.well < hosts.n)
		return "no answer";
	if (links.well < links.n)
		return "links down";
	return devices.well < devices.n ? "devices out" : "running";
}

static struct json_object *node_json(const struct status *s, unsigned i)
{
	struct json_object *o = tool_json_object(), *links = tool_json_array();
	struct json_object *devices = tool_json_array(), *d;
	const struct tool_view_host *h = s->view ? &s->view->host[i] : NULL;

	tool_json_string(o, "name", s->topology->host[i].name);
	tool_json_number(o, "node", s->topology->host[i].node);
	tool_json_string(o, "state", tool_host_state_name(h ? h->host->state : TOOL_HOST_DOWN));
	tool_json_number(o, "pid", (uint64_t)s->node[i]);
	for (unsigned k = 0; h && k < h->topo->n_adapters; k++)
		tool_json_append(links,
				 json_object_new_string(tool_link_state_name(h->adapter[k].link)));
	for (unsigned k = 0; h && k < h->topo->n_devices; k++) {
		d = tool_json_object();
		tool_json_string(d, "name", h->topo->device[k].name);
		tool_json_string(d, "state", tool_device_state_name(h->device[k].state));
		tool_json_append(devices, d);
	}
	tool_json_add(o, "links", links);
	tool_json_add(o, "devices", devices);
	return o;
}

static struct json_object *machine_json(const struct status *s, unsigned i)
{
	const struct sio_topo_host *h = &s->topology->machine[i];
	struct json_object *o = tool_json_object();
	enum tool_machine_state state;
	pid_t pid;

	state = tool_state_machine(s->dir, h->node, &pid);
	tool_json_string(o, "name", h->name);
	tool_json_number(o, "node", h->node);
	tool_json_string(o, "state", tool_machine_state_name(state));
	tool_json_number(o, "pid", (uint64_t)pid);
	return o;
}

static struct json_object *to_json(const struct status *s)
{
	struct json_object *o = tool_json_object(), *nodes = tool_json_array();
	struct json_object *machines = tool_json_array();

	tool_json_string(o, "name", s->name);
	if (s->topology)
		tool_json_string(o, "cluster", s->topology->name);
	else
		tool_json_null(o, "cluster");
	tool_json_string(o, "state", state_of(s));
	tool_json_string(o, "directory", s->dir);
	tool_json_number(o, "room_pid", (uint64_t)s->room);
	for (unsigned i = 0; s->topology && i < s->topology->n_hosts; i++)
		tool_json_append(nodes, node_json(s, i));
	tool_json_add(o, "nodes", nodes);
	for (unsigned i = 0; s->topology && i < s->topology->n_machines; i++)
		tool_json_append(machines, machine_json(s, i));
	tool_json_add(o, "machines", machines);
	return o;
}

/* A list in a table cell, cut off where the cell is full. */
struct words {
	char text[200];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void add_words(struct words *w, const char *fmt, ...)
{
	va_list ap;

	if (w->used && w->used < sizeof(w->text))
		w->used += (size_t)snprintf(w->text + w->used, sizeof(w->text) - w->used, ", ");
	if (w->used >= sizeof(w->text))
		return;
	va_start(ap, fmt);
	w->used += (size_t)vsnprintf(w->text + w->used, sizeof(w->text) - w->used, fmt, ap);
	va_end(ap);
}

static void list_host(struct words *w, const struct tool_view_host *h)
{
	if (h->host->state == TOOL_HOST_SILENT)
		add_words(w, "%s gives no answer", h->topo->name);
	for (unsigned i = 0; i < h->topo->n_adapters; i++)
		if (h->adapter[i].link == TOOL_LINK_DOWN)
			add_words(w, "link %s.%u", h->topo->name, i);
	for (unsigned i = 0; i < h->topo->n_devices; i++)
		if (h->device[i].state == TOOL_DEVICE_OUT)
			add_words(w, "device %s", h->topo->device[i].name);
}

static void list_machines(struct words *w, const struct status *s)
{
	for (unsigned i = 0; s->topology && i < s->topology->n_machines; i++)
		if (tool_state_machine(s->dir, s->topology->machine[i].node, NULL) ==
		    TOOL_MACHINE_KILLED)
			add_words(w, "machine %s was killed", s->topology->machine[i].name);
}

static void list_between(struct words *w, const struct tool_view *v)
{
	const struct sio_topology *t = v->topology;

	for (unsigned i = 0; v->outage && i < t->n_switches; i++)
		if (!sio_outage_switch_in(v->outage, i))
			add_words(w, "switch %s", t->sw[i].name);
	for (unsigned i = 0; v->outage && i < t->n_trunks; i++)
		if (!sio_outage_trunk_in(v->outage, i))
			add_words(w, "trunk %s %s", t->sw[t->trunk[i].sw[0]].name,
				  t->sw[t->trunk[i].sw[1]].name);
}

static void put_count(struct tool_table *t, struct count c)
{
	if (c.n)
		tool_table_cell(t, "%u/%u", c.well, c.n);
	else
		tool_table_cell(t, "-");
}

static void to_row(struct tool_table *t, const struct status *s)
{
	struct words down = {0};

	for (unsigned i = 0; s->topology && i < s->topology->n_hosts; i++)
		if (!s->node[i])
			add_words(&down, "%s", s->topology->host[i].name);
	list_machines(&down, s);
	for (unsigned i = 0; s->view && i < s->view->n; i++)
		list_host(&down, &s->view->host[i]);
	if (s->view)
		list_between(&down, s->view);
	tool_table_cell(t, "%s", s->name);
	tool_table_cell(t, "%s", state_of(s));
	tool_table_cell(t, "%u/%u", count_hosts(s).well, count_hosts(s).n);
	put_count(t, count_links(s));
	put_count(t, count_devices(s));
	tool_table_cell(t, "%s", down.text);
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

/* The cluster that is meant, or all below the base directory. */
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
	struct json_object *array = tool_where.json ? tool_json_array() : NULL, *o;
	struct tool_table *t =
		array ? NULL
		      : tool_table_new(
				"CLUSTER|STATE|>HOSTS UP|>LINKS UP|>DEVICES IN|DOWN|DIRECTORY");
	struct status *s = tool_alloc(1, sizeof(*s));

	for (size_t i = 0; i < n; i++) {
		look(dirs[i], s);
		if (array)
			tool_json_append(array, to_json(s));
		else
			to_row(t, s);
		forget(s);
	}
	free(s);
	if (!array)
		return tool_table_end(t);
	o = tool_json_object();
	tool_json_add(o, "clusters", array);
	return tool_json_print("cluster-status", o);
}

static int status(const struct tool_command *self, int argc, char **argv)
{
	char **dirs = NULL;
	struct sio_err err;
	size_t n = 0;
	int first, result = 0;

	first = tool_options(self, argc, argv, &result);
	if (first < 0)
		return result;
	if (choose(first < argc ? argv[first] : tool_where.cluster, &dirs, &n, &err) < 0)
		return tool_fail(&err);
	result = print(dirs, n);
	for (size_t i = 0; i < n; i++)
		free(dirs[i]);
	free(dirs);
	return result;
}

const struct tool_command tool_cluster_status_command = {
	.name = "cluster status",
	.summary = "Show the clusters of this machine, and which hosts are up",
	.help = "States: running; hosts down (some crashed: 'smartio cluster restart-node'); machine killed\n"
		"('smartio machine start'); no answer (a smartiod runs, but does not answer); links down; devices\n"
		"out (of their slots); room down (its hosts are about to end); stale (nothing runs: 'smartio cluster down' cleans up). DOWN lists\n"
		"what is not as it should be.\n",
	.page = "smartio-cluster",
	.schemas = "cluster-status",
	.words = {{"[NAME]", TOOL_CLUSTERS}},
	.run = status};
