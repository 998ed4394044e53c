/* SPDX-License-Identifier: BSD-2-Clause */
/* A program in a virtual machine, as its user sees it: the client of the machine's agent. */
#ifndef TOOLS_MACHINE_CLIENT_H
#define TOOLS_MACHINE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

struct machine_run {
	char *const *argv;
	const char *dir;  /* of the cluster */
	const char *host; /* the machine's name */
	uint32_t node;
	bool detached; /* as of tool_keep(): print its process number, and stay in the background */
	bool silent;   /* no input, and its output and its end with the machine are not shown */
};

/*
 * Runs the program until it ends; signals are forwarded.
 * Return: its exit status; 128 + signal; TOOL_EXIT_KILLED if the machine ended before it.
 */
int machine_run(const struct machine_run *r);

#endif
