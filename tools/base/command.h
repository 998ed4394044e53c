/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subcommands. All that is said of one stands once, in its struct tool_command: usage, --help,
 * its paragraph of the manual, completion by shells and the schemas of what --json prints come from
 * there. meson.build lists them.
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/topology.h"

/* What may stand in a place of the command line, as far as completion can help. */
enum tool_kind {
	TOOL_ANY,
	TOOL_CHOICES, /* "down|up": one of these */
	TOOL_CLUSTERS,
	TOOL_NODES,
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
	struct tool_word words[4];
	/* argv[0] is the last word of the name. Return: exit status. */
	int (*run)(const struct tool_command *self, int argc, char **argv);
};

/* All of them, ended by NULL: the table of main.c. */
extern const struct tool_command *const *tool_commands;
/* The one that @argv begins with, and how many words its name has; NULL. */
const struct tool_command *tool_command_find(int argc, char *const *argv, int *ret_words);
/* Options that all of them take, ended by one without a name. */
extern const struct tool_option tool_common_options[];

/* Which cluster, and in which form; may stand before the subcommand, too. */
struct tool_where {
	const char *state, *cluster;
	bool json;
};
extern struct tool_where tool_where;

/*
 * Read the options of @self, the common ones and --help, and count the words; where the last one is
 * TOOL_PROGRAM, options end at the first word, and it is for @self to count.
 * Return: index of the first word that is no option; -1: *ret_status is the exit status.
 */
int tool_options(const struct tool_command *self, int argc, char **argv, int *ret_status);

/* ---- help.c ---- */
int tool_help(const struct tool_command *c);
int tool_help_group(const char *group);
/* The paragraphs of smartio(1) about commands, for scdoc. */
int tool_help_manual(void);

/* The cluster that is meant: its directory and its topology (sio_topology_free()). */
int tool_find_cluster(char *dir, size_t size, struct sio_topology **ret, struct sio_err *reterr);
/* A cluster is called by what it was brought up under, in @dir, not by what its file calls it. */
void tool_name_topology(struct sio_topology *t, const char *dir);
/* A host by name or node id. -EHOSTUNREACH with the names that there are. */
int tool_find_host(const struct sio_topology *t, const char *name, const struct sio_topo_host **ret,
		   struct sio_err *reterr);
/* Print an error. Return: exit status. */
int tool_fail(const struct sio_err *err);

#endif
