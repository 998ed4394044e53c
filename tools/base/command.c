/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/command.h"

const struct tool_command *const *tool_commands;

/* The number of words in @name, if argv begins with these words; else 0. */
static int matches(const char *name, int argc, char *const *argv)
{
	int n = 0;

	while (*name) {
		size_t len = strcspn(name, " ");

		if (n >= argc || strlen(argv[n]) != len || strncmp(argv[n], name, len) != 0)
			return 0;
		name += len + (name[len] == ' ');
		n++;
	}
	return n;
}

const struct tool_command *tool_command_find(int argc, char *const *argv, int *ret_words)
{
	const struct tool_command *found = NULL;

	*ret_words = 0;
	for (unsigned i = 0; tool_commands[i]; i++) {
		int words = matches(tool_commands[i]->name, argc, argv);

		if (words > *ret_words) {
			*ret_words = words;
			found = tool_commands[i];
		}
	}
	return found;
}
