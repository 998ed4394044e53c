/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subcommands. Each is described once, in its struct tool_command, from which usage, --help,
 * its paragraph of the manual, completion by shells and the schemas of --json are made. meson.build
 * lists them.
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/topology.h"

/* The kinds of words of a command line, as far as completion can help. */
enum tool_kind {
	TOOL_ANY,
	TOOL_CHOICES, /* "down|up": one of these */
	TOOL_CLUSTERS,
	TOOL_NODES,
	TOOL_MACHINES, /* hosts of kind machine */
	TOOL_RUNNABLE, /* both */
	TOOL_ENDS,     /* of a way: hosts, machines and devices */
	TOOL_KEYED,    /* hosts of the topology file that stands on the line, else of the cluster */
	TOOL_LINKS,    /* of adapters, as fault link takes them */
	TOOL_SWITCHES, /* of the cluster */
	TOOL_DEVICES,
	TOOL_SEGMENTS,
	TOOL_FUNCTIONS, /* PCI functions of this machine */
	TOOL_FILES,
	TOOL_FOLDERS,
	TOOL_TOPOLOGIES,
	TOOL_PROGRAM, /* the last one: the words of another program's command line */
};

struct tool_option {
	const char *name;
	char letter; /* 0: none */
	bool *flag;  /* one of these two is set */
	const char **value;
	const char *takes; /* of a value: "NODE" */
	enum tool_kind kind;
	bool needed;
	const char *text; /* for --help, perhaps of several lines */
};
#define TOOL_OPTION_NODE(where)                                                                    \
	{                                                                                          \
		"node", 'n', .value = (where), .takes = "NODE", .kind = TOOL_NODES,                \
			     .text = "of this host only"                                           \
	}

struct tool_word {
	const char *name; /* "NODE", or "[NODE]" if it may be left out */
	enum tool_kind kind;
};

struct tool_command {
	const char *name;    /* "cluster up" */
	const char *summary; /* one line */
	const char *help;    /* what else there is to know, line by line; NULL */
	const char *usage;   /* what stands behind the name; NULL: made from options and words */
	const char *page;    /* its manual page, in section 1; NULL: a paragraph of smartio(1) */
	const char *schemas; /* what --json may print, but "error" */
	const struct tool_option *options; /* ended by one without a name; NULL: none */
	struct tool_word words[5];	   /* ended by one without a name */
	/* argv[0] is the last word of the name. Return: exit status. */
	int (*run)(const struct tool_command *self, int argc, char **argv);
};

/* All subcommands, ended by NULL: the table of main.c. */
extern const struct tool_command *const *tool_commands;
/* The subcommand that @argv begins with, and how many words its name has; NULL. */
const struct tool_command *tool_command_find(int argc, char *const *argv, int *ret_words);
/* Options that all subcommands take, ended by one without a name. */
extern const struct tool_option tool_common_options[];

/*
 * Options for the cluster, and for the form of the output; they may stand before the subcommand,
 * too.
 */
struct tool_where {
	const char *state, *cluster;
	bool json;
};
extern struct tool_where tool_where;

/*
 * Reads the options of @self, the common ones and --help, and counts the words; where the last one
 * is TOOL_PROGRAM, options end at the first word, and @self counts.
 * Return: index of the first word that is no option; -1: *ret_status is the exit status.
 */
int tool_options(const struct tool_command *self, int argc, char **argv, int *ret_status);

/* ---- help.c ---- */
int tool_help(const struct tool_command *c);
int tool_help_group(const char *group);
/* Prints the paragraphs of smartio(1) about commands, for scdoc. */
int tool_help_manual(void);

/* Finds the cluster of the command: its directory and its topology (sio_topology_free()). */
int tool_find_cluster(char *dir, size_t size, struct sio_topology **ret, struct sio_err *reterr);
/* Sets the cluster's name to the one it was brought up under, in @dir, in place of its file's. */
void tool_name_topology(struct sio_topology *t, const char *dir);
/* Finds a host by name or node id. -EHOSTUNREACH with the names that there are. */
int tool_find_host(const struct sio_topology *t, const char *name, const struct sio_topo_host **ret,
		   struct sio_err *reterr);
/* The same among hosts of kind machine. */
int tool_find_machine(const struct sio_topology *t, const char *name,
		      const struct sio_topo_host **ret, struct sio_err *reterr);
/* The same among both. */
int tool_find_node(const struct sio_topology *t, const char *name, const struct sio_topo_host **ret,
		   struct sio_err *reterr);
/* Prints an error. Return: exit status. */
int tool_fail(const struct sio_err *err);

#endif
