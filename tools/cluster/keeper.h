/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a program so that no process that it ever starts can outlive what it is tied to. Two
 * processes supervise it. The keeper is the subreaper of all descendants, also of those that became
 * daemons, and is connected to the host's smartiod: when the connection ends, the host has crashed
 * and the keeper kills them all. Its parent, the command that the user sees, forwards signals and
 * returns the exit status. When the parent dies before the program has ended, the keeper kills;
 * when the keeper dies, the parent, a subreaper too, kills.
 */
#ifndef TOOLS_KEEPER_H
#define TOOLS_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define TOOL_EXIT_NO_EXEC 126 /* the program cannot be run, as in a shell */
#define TOOL_EXIT_NO_FILE 127 /* there is no such program */

struct tool_keep {
	char *const *argv;
	const char *dir;  /* of the cluster: SMARTIO_STATE for the program */
	const char *host; /* name of the host it is tied to; NULL: to this command alone */
	uint32_t node;
	int hold;	/* a descriptor of the caller's to keep open; -1: none */
	bool kill_rest; /* when the program has ended, kill what it left running */
	/*
	 * In a session of its own, input empty, output to tool_keep_log(): tool_keep() returns 0
	 * when the program has begun, and its process number is printed. The keeper stays.
	 */
	bool detached;
};

/* The file to which a detached program's output goes. */
int tool_keep_log(const struct tool_keep *k, int pid, char *path, size_t size,
		  struct sio_err *reterr);
/*
 * Reports that the output goes to @log, and prints the process number. @machine: the machine that
 * it runs in; NULL: none.
 */
int tool_keep_say_log(const char *log, int pid, const char *machine);

/* Return: the program's exit status; 128 + signal; TOOL_EXIT_KILLED if its host crashed. */
int tool_keep(const struct tool_keep *k);

#endif
