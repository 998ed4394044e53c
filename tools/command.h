/* SPDX-License-Identifier: BSD-2-Clause */
/* The subcommands, and what the command line says to all of them. */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/topology.h"

struct tool_command {
	const char *name;    /* "cluster up" */
	const char *args;    /* "TOPOLOGY" */
	const char *summary; /* one line */
	const char *help;    /* options and what else there is to know */
	/* argv[0] is the last word of the name. Return: exit status. */
	int (*run)(const struct tool_command *self, int argc, char **argv);
};

/* Which cluster, and in which form; may stand before the subcommand, too. */
struct tool_where {
	const char *state, *cluster;
	bool json;
};
extern struct tool_where tool_where;

struct tool_option {
	const char *name;
	char letter; /* 0: none */
	bool *flag;  /* one of these two is set */
	const char **value;
};

/*
 * Read @options (ended by a NULL name), the common ones and --help. @in_order: options end at the
 * first other word (a command follows).
 * Return: index of the first word that is no option; -1: *ret_status is the exit status.
 */
int tool_options(const struct tool_command *self, int argc, char **argv,
		 const struct tool_option *options, bool in_order, int *ret_status);
/* The same where nothing may follow, or exactly @words words. */
int tool_options_words(const struct tool_command *self, int argc, char **argv,
		       const struct tool_option *options, int words, int *ret_status);

/* The cluster that is meant: its directory and its topology (sio_topology_free()). */
int tool_find_cluster(char *dir, size_t size, struct sio_topology **ret, struct sio_err *reterr);
/* A cluster is called by what it was brought up under, in @dir, not by what its file calls it. */
void tool_name_topology(struct sio_topology *t, const char *dir);
/* A host by name or node id. -EHOSTUNREACH with the names that there are. */
int tool_find_host(const struct sio_topology *t, const char *name, const struct sio_topo_host **ret,
		   struct sio_err *reterr);
/* Print an error. Return: exit status. */
int tool_fail(const struct sio_err *err);

extern const struct tool_command tool_cluster_up_command, tool_cluster_down_command,
	tool_cluster_status_command, tool_cluster_validate_command, tool_cluster_restart_command,
	tool_cluster_run_command, tool_run_command, tool_node_list_command, tool_topology_command,
	tool_device_add_command, tool_device_remove_command, tool_device_list_command,
	tool_device_info_command, tool_device_reset_command, tool_segment_list_command,
	tool_stats_command, tool_doctor_command, tool_fault_link_command, tool_fault_device_command,
	tool_complete_command;

#endif
