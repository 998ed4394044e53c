/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio: one command with subcommands. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "base/output.h"
#include "tool_commands.h" /* X(name) for each subcommand that meson.build lists */

#define X(name) extern const struct tool_command tool_##name##_command;
TOOL_COMMANDS
#undef X

#define X(name) &tool_##name##_command,
static const struct tool_command *const table[] = {TOOL_COMMANDS NULL};
#undef X

static bool is_group(const char *word)
{
	size_t len = strlen(word);

	for (unsigned i = 0; tool_commands[i]; i++)
		if (strncmp(tool_commands[i]->name, word, len) == 0 &&
		    tool_commands[i]->name[len] == ' ')
			return true;
	return false;
}

/* @ret_command: its name, once it is known. */
static int dispatch(int argc, char **argv, const char **ret_command)
{
	const struct tool_command *c;
	int words;

	c = tool_command_find(argc, argv, &words);
	if (c) {
		*ret_command = c->name;
		return c->run(c, argc - words + 1, argv + words - 1);
	}
	if (!is_group(argv[0]))
		return tool_usage("", "unknown command '%s'", argv[0]);
	if (argc == 1)
		return tool_usage(argv[0], "a subcommand is missing");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return tool_help_group(argv[0]);
	return tool_usage(argv[0], "unknown subcommand '%s'", argv[1]);
}

/*
 * An option before the subcommand. Return: how many words it takes; 0: there is none; -1: its value
 * is missing.
 */
static int global_option(int argc, char **argv)
{
	const char **value;

	if (strncmp(argv[0], "--state=", 8) == 0) {
		tool_where.state = argv[0] + 8;
		return 1;
	}
	if (strncmp(argv[0], "--cluster=", 10) == 0) {
		tool_where.cluster = argv[0] + 10;
		return 1;
	}
	if (strcmp(argv[0], "--json") == 0) {
		tool_where.json = true;
		return 1;
	}
	if (strcmp(argv[0], "--state") == 0)
		value = &tool_where.state;
	else if (strcmp(argv[0], "--cluster") == 0)
		value = &tool_where.cluster;
	else
		return 0;
	if (argc < 2)
		return -1;
	*value = argv[1];
	return 2;
}

/* A file opened here must not become another program's standard output. */
static int fill_stdio(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			return tool_error("/dev/null: %s", strerror(errno));
	} while (fd <= 2);
	close(fd);
	return 0;
}

/* A wrong word may stand before --json; after "--" it belongs to another command. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

static int print_version(int argc, char **argv)
{
	struct json_object *o;

	if (!tool_where.json && !wants_json(argc, argv)) {
		puts("smartio " SMARTIO_VERSION);
		return 0;
	}
	o = tool_json_object();
	tool_json_string(o, "version", SMARTIO_VERSION);
	return tool_json_print("version", o);
}

static int run(int argc, char **argv, const char **ret_command)
{
	int n;

	while (argc > 0 && argv[0][0] == '-') {
		if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
			return tool_help_group("");
		if (strcmp(argv[0], "--help=manual") == 0)
			return tool_help_manual();
		if (strcmp(argv[0], "--version") == 0)
			return print_version(argc, argv);
		n = global_option(argc, argv);
		if (n < 0)
			return tool_usage("", "%s needs a value", argv[0]);
		if (n == 0)
			return tool_usage("", "unknown option '%s'", argv[0]);
		argc -= n;
		argv += n;
	}
	if (argc == 0)
		return tool_usage("", "a command is missing");
	return dispatch(argc, argv, ret_command);
}

int main(int argc, char **argv)
{
	const char *command = "";
	int status;

	tool_commands = table;
	if (fill_stdio() != 0)
		return TOOL_EXIT_FAILURE;
	status = run(argc - 1, argv + 1, &command);
	if (status == TOOL_EXIT_USAGE && wants_json(argc, argv))
		tool_where.json = true;
	return status && tool_where.json ? tool_json_failed(command, status) : status;
}
