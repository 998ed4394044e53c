/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/hint.h"
#include "base/output.h"
#include "base/state.h"

#define MAX_OPTIONS 16
#define HELP_WANTED 1000

struct tool_where tool_where;

const struct tool_option tool_common_options[] = {
	{"state", .value = &tool_where.state, .takes = "DIR", .kind = TOOL_FOLDERS,
	 .text = "the cluster whose state lies in DIR"},
	{"cluster", .value = &tool_where.cluster, .takes = "NAME", .kind = TOOL_CLUSTERS,
	 .text = "the cluster that was brought up under this name"},
	{"json", .flag = &tool_where.json, .text = "print data as JSON"},
	{.name = NULL}};

/* Fills getopt's tables from ours: option i has the value i + 1. */
static unsigned fill(const struct tool_option *options, const struct tool_option **all,
		     struct option *longs, char *letters, bool in_order)
{
	unsigned n = 0;
	char *l = letters;

	if (in_order)
		*l++ = '+';
	*l++ = ':';
	*l++ = 'h';
	for (const struct tool_option *o = options; o && o->name; o++)
		all[n++] = o;
	for (const struct tool_option *o = tool_common_options; o->name; o++)
		all[n++] = o;
	for (unsigned i = 0; i < n; i++) {
		longs[i] = (struct option){all[i]->name,
					   all[i]->value ? required_argument : no_argument, NULL,
					   (int)i + 256};
		if (!all[i]->letter)
			continue;
		*l++ = all[i]->letter;
		if (all[i]->value)
			*l++ = ':';
	}
	*l = '\0';
	longs[n] = (struct option){"help", no_argument, NULL, HELP_WANTED};
	return n;
}

static void take(const struct tool_option *o)
{
	if (o->flag)
		*o->flag = true;
	else
		*o->value = optarg;
}

static int bad_option(const struct tool_command *self, int c, char **argv)
{
	if (c == ':')
		return tool_usage(self->name, "%s needs a value", argv[optind - 1]);
	if (optopt && optopt < 256)
		return tool_usage(self->name, "unknown option '-%c'", optopt);
	return tool_usage(self->name, "unknown option '%s'", argv[optind - 1]);
}

static int read_options(const struct tool_command *self, int argc, char **argv, bool in_order,
			int *ret_status)
{
	struct option longs[MAX_OPTIONS + 2] = {0};
	const struct tool_option *all[MAX_OPTIONS];
	char letters[2 * MAX_OPTIONS + 4];
	unsigned n = fill(self->options, all, longs, letters, in_order);
	int c;

	opterr = 0;
	optind = 0; /* glibc: start over */
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == 'h' || c == HELP_WANTED) {
			*ret_status = tool_help(self);
			return -1;
		}
		if (c >= 256 && (unsigned)c < 256 + n) {
			take(all[c - 256]);
			continue;
		}
		for (unsigned i = 0; i < n && c != '?' && c != ':'; i++) {
			if (all[i]->letter != c)
				continue;
			take(all[i]);
			c = 0;
			break;
		}
		if (c != 0) {
			*ret_status = bad_option(self, c, argv);
			return -1;
		}
	}
	return optind;
}

/* Does the command accept this number of words? */
static bool count_words(const struct tool_command *self, int n, char **words, int *ret_status)
{
	int most = 0;

	while (self->words[most].name)
		most++;
	if (n > most) {
		*ret_status = tool_usage(self->name, "'%s' is one word too many", words[most]);
		return false;
	}
	if (n < most && *self->words[n].name != '[') {
		*ret_status = tool_usage(self->name, "%s is missing", self->words[n].name);
		return false;
	}
	return true;
}

static bool runs_a_program(const struct tool_command *self)
{
	for (const struct tool_word *w = self->words; w->name; w++)
		if (w->kind == TOOL_PROGRAM)
			return true;
	return false;
}

int tool_options(const struct tool_command *self, int argc, char **argv, int *ret_status)
{
	bool in_order = runs_a_program(self);
	int first = read_options(self, argc, argv, in_order, ret_status);

	if (first >= 0 && !in_order && !count_words(self, argc - first, argv + first, ret_status))
		return -1;
	return first;
}

int tool_find_cluster(char *dir, size_t size, struct sio_topology **ret, struct sio_err *reterr)
{
	int r = tool_state_find(tool_where.state, tool_where.cluster, dir, size, reterr);

	if (r == 0)
		r = tool_state_topology(dir, ret, reterr);
	if (r == 0)
		tool_name_topology(*ret, dir);
	return r;
}

void tool_name_topology(struct sio_topology *t, const char *dir)
{
	char name[TOOL_NAME_TEXT];

	if (*tool_cluster_name(dir, name))
		snprintf(t->name, sizeof(t->name), "%.*s", (int)sizeof(t->name) - 1, name);
}

/* One of @n hosts by name or node id; NULL: none. */
static const struct sio_topo_host *find_among(const struct sio_topo_host *host, unsigned n,
					      const char *name)
{
	unsigned long node = 0;
	char *end = NULL;

	if (*name >= '0' && *name <= '9')
		node = strtoul(name, &end, 10);
	for (unsigned i = 0; i < n; i++)
		if (strcmp(host[i].name, name) == 0)
			return &host[i];
	for (unsigned i = 0; end && *end == '\0' && i < n; i++)
		if (host[i].node == node)
			return &host[i];
	return NULL;
}

/* @what: "host", for error texts. */
static int find_host(const struct sio_topology *t, const struct sio_topo_host *host, unsigned n,
		     const char *what, const char *name, const struct sio_topo_host **ret,
		     struct sio_err *reterr)
{
	const struct sio_topo_host *h = find_among(host, n, name);
	char names[160] = "";
	size_t used = 0;

	if (h) {
		*ret = h;
		return 0;
	}
	for (unsigned i = 0; i < n && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
					 host[i].name);
	return sio_fail(reterr, -EHOSTUNREACH, "cluster '%s' has no %s '%s'; it has %s", t->name,
			what, name, n ? names : "none");
}

int tool_find_host(const struct sio_topology *t, const char *name, const struct sio_topo_host **ret,
		   struct sio_err *reterr)
{
	return find_host(t, t->host, t->n_hosts, "host", name, ret, reterr);
}

int tool_find_machine(const struct sio_topology *t, const char *name,
		      const struct sio_topo_host **ret, struct sio_err *reterr)
{
	return find_host(t, t->machine, t->n_machines, "host of kind machine", name, ret, reterr);
}

int tool_find_node(const struct sio_topology *t, const char *name, const struct sio_topo_host **ret,
		   struct sio_err *reterr)
{
	return find_host(t, t->host, t->n_hosts + t->n_machines, "host", name, ret, reterr);
}

int tool_fail(const struct sio_err *err)
{
	return tool_error_code(err->code, "%s", err->text);
}
