/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio complete: names, a line each, for a shell's completion. Hosts, links and devices come
 * from the topology, so that no daemon has to answer while somebody types.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "hosts.h"
#include "output.h"
#include "state.h"

/* Names, to be printed at the end. */
struct names {
	char **name;
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct names *all, const char *fmt, ...)
{
	char text[SIO_NAME_LEN + NAME_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	all->name = tool_grow(all->name, all->n + 1, sizeof(*all->name));
	all->name[all->n++] = tool_strdup(text);
}

static int add_clusters(struct names *all, struct sio_err *reterr)
{
	static const enum tool_state states[] = {TOOL_STATE_RUNNING, TOOL_STATE_STALE};
	char **name;
	size_t n;
	int r = 0;

	for (unsigned s = 0; r == 0 && s < sizeof(states) / sizeof(states[0]); s++) {
		r = tool_state_list(&name, &n, states[s], false, reterr);
		for (size_t i = 0; r == 0 && i < n; i++) {
			add(all, "%s", name[i]);
			free(name[i]);
		}
		if (r == 0)
			free(name);
	}
	return r;
}

/* What one host has of a kind. */
typedef void add_of_host(struct names *all, const struct sio_topo_host *host);

static void add_node(struct names *all, const struct sio_topo_host *host)
{
	add(all, "%s", host->name);
}

static void add_links(struct names *all, const struct sio_topo_host *host)
{
	add(all, "%s", host->name);
	for (unsigned i = 0; host->n_adapters > 1 && i < host->n_adapters; i++)
		add(all, "%s.%u", host->name, i);
}

static void add_devices(struct names *all, const struct sio_topo_host *host)
{
	for (unsigned i = 0; i < host->n_devices; i++)
		add(all, "%s", host->device[i].name);
}

static int add_topology(struct names *all, add_of_host *of_host, struct sio_err *reterr)
{
	struct sio_topology *t;
	char dir[PATH_MAX];
	int r = tool_find_cluster(dir, sizeof(dir), &t, reterr);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < t->n_hosts; i++)
		of_host(all, &t->host[i]);
	sio_topology_free(t);
	return 0;
}

static int add_segments(struct names *all, struct sio_err *reterr)
{
	struct sio_wire_row *row;
	struct tool_hosts *h;
	size_t n;
	int r = tool_hosts_open(&h, reterr);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < h->n; i++) {
		if (!h->host[i].up ||
		    tool_client_list(&h->host[i].client, SIO_LIST_SEGMENTS, &row, &n, NULL) < 0)
			continue;
		for (size_t k = 0; k < n; k++)
			add(all, "%#x", sio_from_le32(row[k].id));
		free(row);
	}
	tool_hosts_close(h);
	return 0;
}

static int fill(struct names *all, const char *kind, struct sio_err *reterr)
{
	if (strcmp(kind, "clusters") == 0)
		return add_clusters(all, reterr);
	if (strcmp(kind, "nodes") == 0)
		return add_topology(all, add_node, reterr);
	if (strcmp(kind, "links") == 0)
		return add_topology(all, add_links, reterr);
	if (strcmp(kind, "devices") == 0)
		return add_topology(all, add_devices, reterr);
	return add_segments(all, reterr);
}

static bool is_kind(const char *word)
{
	static const char *const kinds[] = {"clusters", "nodes", "links", "devices", "segments"};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(word, kinds[i]) == 0)
			return true;
	return false;
}

static int print(const struct names *all)
{
	struct json_object *o, *array;

	if (!tool_where.json) {
		for (size_t i = 0; i < all->n; i++)
			puts(all->name[i]);
		return tool_flush();
	}
	o = tool_json_object();
	array = tool_json_array();
	for (size_t i = 0; i < all->n; i++)
		tool_json_append(array, tool_json_word(all->name[i]));
	tool_json_add(o, "names", array);
	return tool_json_print("complete", o);
}

static int complete(const struct tool_command *self, int argc, char **argv)
{
	struct names all = {0};
	struct sio_err err;
	int first, r, status = 0;

	first = tool_options_words(self, argc, argv, NULL, 1, &status);
	if (first < 0)
		return status;
	if (!is_kind(argv[first]))
		return tool_usage(self->name,
				  "'%s': clusters, nodes, links, devices or segments is right",
				  argv[first]);
	r = fill(&all, argv[first], &err);
	status = r < 0 ? tool_fail(&err) : print(&all);
	for (size_t i = 0; i < all.n; i++)
		free(all.name[i]);
	free(all.name);
	return status;
}

const struct tool_command tool_complete_command = {
	"complete", "KIND", "Print names, a line each, for a shell's completion",
	"KIND is clusters, nodes, links (of adapters, as fault link takes them), devices or segments.\n",
	complete};
