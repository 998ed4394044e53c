/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio complete: names, one a line, for a shell's completion. Hosts, links and devices are read
 * from the topology, so that no daemon has to answer while the user types. `smartio complete line`
 * finds out from the table of subcommands what may stand at the end of a command line.
 */
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/hosts.h"
#include "base/output.h"
#include "base/state.h"
#include "topofile/topofile.h"

/* Names, printed at the end. */
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

/* Adds the names that one host has of a kind. */
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

/* Which hosts: machines have cables, but no daemon of this cluster. */
enum whose { HOSTS = 1, MACHINES = 2 };

static void add_hosts(struct names *all, add_of_host *of_host, int whose,
		      const struct sio_topology *t)
{
	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++)
		if (whose & (t->host[i].machine ? MACHINES : HOSTS))
			of_host(all, &t->host[i]);
}

static int add_topology(struct names *all, add_of_host *of_host, int whose, struct sio_err *reterr)
{
	struct sio_topology *t;
	char dir[PATH_MAX];
	int r = tool_find_cluster(dir, sizeof(dir), &t, reterr);

	if (r < 0)
		return r;
	add_hosts(all, of_host, whose, t);
	sio_topology_free(t);
	return 0;
}

/* @file: the topology file; NULL: that of the cluster. */
static int add_keyed(struct names *all, const char *file, struct sio_err *reterr)
{
	struct sio_topology *t;
	int r;

	if (!file)
		return add_topology(all, add_node, HOSTS, reterr);
	r = sio_topofile_read(file, &t, reterr);
	if (r < 0)
		return r;
	add_hosts(all, add_node, HOSTS, t);
	sio_topology_free(t);
	return 0;
}

static int add_ends(struct names *all, struct sio_err *reterr)
{
	int r = add_topology(all, add_node, HOSTS | MACHINES, reterr);

	return r < 0 ? r : add_topology(all, add_devices, HOSTS, reterr);
}

static int add_switches(struct names *all, struct sio_err *reterr)
{
	struct sio_topology *t;
	char dir[PATH_MAX];
	int r = tool_find_cluster(dir, sizeof(dir), &t, reterr);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < t->n_switches; i++)
		add(all, "%s", t->sw[i].name);
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
		if (!h->host[i].answers ||
		    tool_client_list(&h->host[i].client, SIO_LIST_SEGMENTS, &row, &n, NULL) < 0)
			continue;
		for (size_t k = 0; k < n; k++)
			add(all, "%#x", sio_from_le32(row[k].id));
		free(row);
	}
	tool_hosts_close(h);
	return 0;
}

static int add_functions(struct names *all)
{
	DIR *dir = opendir("/sys/bus/pci/devices");
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (*e->d_name != '.')
			add(all, "%s", e->d_name);
	if (dir)
		closedir(dir);
	return 0;
}

/* @file: the topology file whose keyed hosts are wanted (TOOL_KEYED), or NULL. */
static int fill(struct names *all, enum tool_kind kind, const char *file, struct sio_err *reterr)
{
	switch (kind) {
	case TOOL_CLUSTERS:
		return add_clusters(all, reterr);
	case TOOL_NODES:
		return add_topology(all, add_node, HOSTS, reterr);
	case TOOL_MACHINES:
		return add_topology(all, add_node, MACHINES, reterr);
	case TOOL_RUNNABLE:
		return add_topology(all, add_node, HOSTS | MACHINES, reterr);
	case TOOL_ENDS:
		return add_ends(all, reterr);
	case TOOL_KEYED:
		return add_keyed(all, file, reterr);
	case TOOL_LINKS:
		return add_topology(all, add_links, HOSTS | MACHINES, reterr);
	case TOOL_SWITCHES:
		return add_switches(all, reterr);
	case TOOL_DEVICES:
		return add_topology(all, add_devices, HOSTS, reterr);
	case TOOL_SEGMENTS:
		return add_segments(all, reterr);
	case TOOL_FUNCTIONS:
		return add_functions(all);
	default:
		return 0;
	}
}

static void release(struct names *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->name[i]);
	free(all->name);
}

/* @what: the kind of the names, for "complete line"; or NULL. */
static int print(const char *what, const struct names *all)
{
	struct json_object *o, *array;

	if (!tool_where.json) {
		if (what)
			puts(what);
		for (size_t i = 0; i < all->n; i++)
			puts(all->name[i]);
		return tool_flush();
	}
	o = tool_json_object();
	array = tool_json_array();
	for (size_t i = 0; i < all->n; i++)
		tool_json_append(array, tool_json_word(all->name[i]));
	if (what)
		tool_json_string(o, "what", what);
	tool_json_add(o, "names", array);
	return tool_json_print("complete", o);
}

/* ---- names of a kind ---- */
static const struct {
	const char *name;
	enum tool_kind kind;
} kinds[] = {{"clusters", TOOL_CLUSTERS}, {"nodes", TOOL_NODES},     {"links", TOOL_LINKS},
	     {"switches", TOOL_SWITCHES}, {"devices", TOOL_DEVICES}, {"segments", TOOL_SEGMENTS}};

static int complete(const struct tool_command *self, int argc, char **argv)
{
	struct names all = {0};
	struct sio_err err;
	int first, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[first], kinds[i].name) != 0)
			continue;
		status = fill(&all, kinds[i].kind, NULL, &err) < 0 ? tool_fail(&err)
								   : print(NULL, &all);
		release(&all);
		return status;
	}
	return tool_usage(self->name, "'%s': %s is right", argv[first], self->words[0].name);
}

const struct tool_command tool_complete_command = {
	.name = "complete",
	.summary = "Print names, a line each, for a shell's completion",
	.help = "Links are those of adapters, as fault link takes them. Completion for bash is installed\n"
		"for smartio and smartio-nvme.\n",
	.schemas = "complete",
	.words = {{"clusters|nodes|links|switches|devices|segments", TOOL_CHOICES}},
	.run = complete};

/* ---- what may stand at the end of a line ---- */
struct line {
	const struct tool_command *command; /* NULL: not known yet */
	int name_words;
	char **word; /* words that are neither options nor values of options */
	int n;
	const struct tool_option *waits; /* the option whose value comes next */
	const char *state, *cluster;	 /* the values of these options on the line */
	int program;			 /* where the words of another program begin; 0: nowhere */
};

static const struct tool_option *find_in(const struct tool_option *options, const char *word)
{
	size_t len = strcspn(word, "=");

	for (const struct tool_option *o = options; o && o->name; o++)
		if ((strncmp(word, "--", 2) == 0 && strlen(o->name) == len - 2 &&
		     strncmp(word + 2, o->name, len - 2) == 0) ||
		    (o->letter && word[1] == o->letter && word[2] == '\0'))
			return o;
	return NULL;
}

static const struct tool_option *find_option(const struct line *l, const char *word)
{
	const struct tool_option *o = find_in(tool_common_options, word);

	return o || !l->command ? o : find_in(l->command->options, word);
}

static void take_value(struct line *l, const struct tool_option *o, const char *value)
{
	if (o->value == &tool_where.state)
		l->state = value;
	else if (o->value == &tool_where.cluster)
		l->cluster = value;
}

/* Reads the words before the last one. Readline treats a "=" as a word of its own. */
static void read_line(struct line *l, int n, char **words)
{
	for (int i = 0; i < n; i++) {
		const struct tool_option *o;
		const char *value;

		if (l->waits && strcmp(words[i], "=") == 0)
			continue;
		if (l->waits) {
			take_value(l, l->waits, words[i]);
			l->waits = NULL;
		} else if (strcmp(words[i], "--") == 0) {
			l->program = i + 1;
			return;
		} else if (words[i][0] == '-') {
			o = find_option(l, words[i]);
			value = strchr(words[i], '=');
			if (o && o->value && value)
				take_value(l, o, value + 1);
			else if (o && o->value)
				l->waits = o;
		} else {
			l->word[l->n++] = words[i];
			l->command = tool_command_find(l->n, l->word, &l->name_words);
		}
	}
}

static void add_options(struct names *all, const struct tool_option *options)
{
	for (const struct tool_option *o = options; o && o->name; o++) {
		if (o->letter)
			add(all, "-%c", o->letter);
		add(all, "--%s", o->name);
	}
}

/* The next words of the subcommands that begin with the words so far. */
static void add_next_words(struct names *all, const struct line *l)
{
	for (unsigned i = 0; tool_commands[i]; i++) {
		const char *name = tool_commands[i]->name;
		int n = 0;

		while (n < l->n && strncmp(name, l->word[n], strlen(l->word[n])) == 0 &&
		       name[strlen(l->word[n])] == ' ')
			name += strlen(l->word[n++]) + 1;
		if (n == l->n)
			add(all, "%.*s", (int)strcspn(name, " "), name);
	}
}

static void add_choices(struct names *all, const char *choices)
{
	while (*choices) {
		size_t len = strcspn(choices, "|");

		add(all, "%.*s", (int)len, choices);
		choices += len + (choices[len] == '|');
	}
}

/* The topology file on the line, or NULL. */
static const char *topology_of(const struct line *l)
{
	for (int i = 0; l->command && l->name_words + i < l->n && l->command->words[i].name; i++)
		if (l->command->words[i].kind == TOOL_TOPOLOGIES)
			return l->word[l->name_words + i];
	return NULL;
}

/* Adds what may stand at a place of that kind: names, or a hint to the shell, which knows files. */
static const char *add_kind(struct names *all, const struct line *l, enum tool_kind kind,
			    const char *choices)
{
	struct sio_err err;

	switch (kind) {
	case TOOL_FILES:
		return "files";
	case TOOL_FOLDERS:
		return "folders";
	case TOOL_TOPOLOGIES:
		return "topologies";
	case TOOL_CHOICES:
		add_choices(all, choices);
		return "words";
	default:
		fill(all, kind, topology_of(l), &err); /* without a cluster there are no names */
		return "words";
	}
}

static const char *add_word(struct names *all, const struct line *l)
{
	int at = l->n - l->name_words;

	add_next_words(all, l);
	for (int i = 0; l->command && l->command->words[i].name; i++)
		if (i == at)
			return add_kind(all, l, l->command->words[i].kind,
					l->command->words[i].name);
	return "words";
}

static const char *answer(struct names *all, const struct line *l, const char *last)
{
	if (l->waits)
		return add_kind(all, l, l->waits->kind, l->waits->takes);
	if (*last != '-')
		return add_word(all, l);
	add_options(all, tool_common_options);
	add(all, "--help");
	if (l->command)
		add_options(all, l->command->options);
	else if (l->n == 0)
		add(all, "--version");
	return "words";
}

/* Tells where the other program's words begin, and which options name the cluster for it. */
static const char *answer_program(struct names *all, const struct line *l)
{
	add(all, "%d", l->program);
	if (l->state) {
		add(all, "--state");
		add(all, "%s", l->state);
	}
	if (l->cluster) {
		add(all, "--cluster");
		add(all, "%s", l->cluster);
	}
	return "program";
}

static int complete_line(const struct tool_command *self, int argc, char **argv)
{
	struct names all = {0};
	struct line l = {0};
	const char *what;
	int first, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (first >= argc)
		return tool_usage(self->name, "the words are missing");
	l.word = tool_grow(NULL, (size_t)(argc - first), sizeof(*l.word));
	read_line(&l, argc - first - 1, argv + first);
	if (l.state || l.cluster) {
		tool_where.state = l.state;
		tool_where.cluster = l.cluster;
	}
	what = l.program ? answer_program(&all, &l) : answer(&all, &l, argv[argc - 1]);
	status = print(what, &all);
	release(&all);
	free(l.word);
	return status;
}

const struct tool_command tool_complete_line_command = {
	.name = "complete line",
	.summary = "Print what may stand at the end of a command line",
	.help = "WORD... are the words behind smartio, the last one perhaps empty, as readline splits\n"
		"them. The first line says what follows: words; files, folders or topologies, which the\n"
		"shell is to look for; or program: where the words of another program begin, and the\n"
		"options that name the cluster for it.\n",
	.schemas = "complete",
	.words = {{"-- WORD...", TOOL_PROGRAM}},
	.run = complete_line};
