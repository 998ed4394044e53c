/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the commands of `smartio machine`: their machine, and their requests. */
#ifndef TOOLS_MACHINE_ASKS_H
#define TOOLS_MACHINE_ASKS_H

#include <limits.h>
#include <stdbool.h>
#include <json-c/json.h>

#include "base/command.h"

/* The machine that a command is about. */
struct machine {
	char dir[PATH_MAX]; /* of its cluster */
	struct sio_topology *topology;
	const struct sio_topo_host *host;
};

/*
 * Finds a machine by name or node id. Return: exit status; with 0 the caller calls machine_done().
 */
int machine_find(const char *name, struct machine *m);
void machine_done(struct machine *m);
/* The same for the first word of @self's command line, whose options are read. */
bool machine_of_words(const struct tool_command *self, int argc, char **argv, struct machine *m,
		      int *ret_status);

/* --kernel; NULL: not given. */
extern const char *machine_kernel;
#define MACHINE_OPTION_KERNEL                                                                      \
	{                                                                                          \
		"kernel", .value = &machine_kernel, .takes = "6.1|6.12", .kind = TOOL_CHOICES,     \
			  .text = "which of Debian's kernels; 6.1 if not given"                    \
	}
/* Checks --kernel. Return: exit status; that of an error if there is no such kernel. */
int machine_check_kernel(const struct tool_command *self);

/*
 * Makes the arguments that every call of the helper gets, about the cluster in @dir (NULL: none).
 */
struct json_object *machine_asks(const char *dir);
/*
 * Has the helper do @verb, and prints the result with --json; releases @asks.
 * @schema: of what is printed.
 * Return: exit status.
 */
int machine_ask(const char *verb, struct json_object *asks, const char *schema);

#endif
