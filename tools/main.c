/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio: the one command. Words to subcommands. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "output.h"

static const struct tool_command *const commands[] = {
	&tool_cluster_up_command,
	&tool_cluster_down_command,
	&tool_cluster_status_command,
	&tool_cluster_validate_command,
	&tool_cluster_restart_command,
	&tool_cluster_run_command,
	&tool_run_command,
	&tool_node_list_command,
	&tool_topology_command,
	&tool_device_list_command,
	&tool_device_info_command,
	&tool_device_reset_command,
	&tool_device_add_command,
	&tool_device_remove_command,
	&tool_segment_list_command,
	&tool_stats_command,
	&tool_doctor_command,
	&tool_fault_link_command,
	&tool_fault_device_command,
	&tool_complete_command,
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int print_help(const char *group)
{
	size_t len = strlen(group);

	printf("usage: smartio [--state DIR | --cluster NAME] %s%sCOMMAND...\n\n", group,
	       len ? " " : "");
	for (size_t i = 0; i < N_COMMANDS; i++) {
		const char *name = commands[i]->name;

		if (len && (strncmp(name, group, len) != 0 || name[len] != ' '))
			continue;
		printf("  %-20s %s\n", name, commands[i]->summary);
	}
	puts("\n'smartio COMMAND --help' tells more; 'smartio --version' the version.");
	if (fflush(stdout) != 0)
		return tool_error("cannot write to standard output: %s", strerror(errno));
	return 0;
}

/* How many of the words of @name argv begins with, if all of them; else 0. */
static int matches(const char *name, int argc, char **argv)
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

static bool is_group(const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strncmp(commands[i]->name, word, len) == 0 && commands[i]->name[len] == ' ')
			return true;
	return false;
}

/* @ret_command: its name, once it is known. */
static int dispatch(int argc, char **argv, const char **ret_command)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		int words = matches(commands[i]->name, argc, argv);

		if (!words)
			continue;
		*ret_command = commands[i]->name;
		return commands[i]->run(commands[i], argc - words + 1, argv + words - 1);
	}
	if (!is_group(argv[0]))
		return tool_usage("", "unknown command '%s'", argv[0]);
	if (argc == 1)
		return tool_usage(argv[0], "a subcommand is missing");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_help(argv[0]);
	return tool_usage(argv[0], "unknown subcommand '%s'", argv[1]);
}

/* An option in front of the subcommand: words used; 0: none; -1: its value is missing. */
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

/* What we open must not become somebody's standard output. */
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

/* A wrong word may stand before --json; behind "--" it is another command's. */
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
			return print_help("");
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

	if (fill_stdio() != 0)
		return TOOL_EXIT_FAILURE;
	status = run(argc - 1, argv + 1, &command);
	if (status == TOOL_EXIT_USAGE && wants_json(argc, argv))
		tool_where.json = true;
	return status && tool_where.json ? tool_json_failed(command, status) : status;
}
