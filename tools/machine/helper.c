/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/command.h"
#include "base/output.h"
#include "cluster/start.h"
#include "machine/helper.h"

#define NAME "smartio-machine"

/* Reads the helper's output, a line at a time: "error: ...", "result: JSON", or progress. */
static void take_lines(FILE *f, struct json_object **ret_result)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	while ((len = getline(&line, &size, f)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (strncmp(line, "error: ", 7) == 0)
			tool_error("%s", line + 7);
		else if (strncmp(line, "result: ", 8) == 0 && !*ret_result)
			*ret_result = json_tokener_parse(line + 8);
		else
			tool_note("%s", line);
	}
	free(line);
}

static void __attribute__((noreturn))
exec_helper(const char *path, const char *verb, const char *asks, int said, pid_t parent)
{
	/* The helper undoes what it has begun when this command is killed. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	dup2(said, 1);
	dup2(said, 2);
	execl(path, NAME, verb, asks, (char *)NULL);
	dprintf(2, "error: %s: %s\n", path, strerror(errno));
	_exit(1);
}

/* @ret_words: JSON, owned by @asks. */
static int find(struct json_object *asks, char *path, size_t size, const char **ret_words)
{
	struct sio_err err;

	if (tool_find_binary(NAME, path, size, &err) < 0)
		return tool_fail(&err);
	*ret_words = json_object_to_json_string_ext(asks, JSON_C_TO_STRING_PLAIN);
	return 0;
}

int machine_helper(const char *verb, struct json_object *asks, struct json_object **ret_result)
{
	struct json_object *result = NULL;
	pid_t parent = getpid(), pid;
	char path[PATH_MAX];
	const char *words = NULL;
	int said[2], status;
	FILE *f;

	if (find(asks, path, sizeof(path), &words) != 0)
		return TOOL_EXIT_FAILURE;
	if (pipe2(said, O_CLOEXEC) < 0)
		return tool_error("pipe: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return tool_error("fork: %s", strerror(errno));
	if (pid == 0)
		exec_helper(path, verb, words, said[1], parent);
	close(said[1]);
	signal(SIGINT,
	       /* signals of the terminal reach the helper, too, which undoes what it did */
	       SIG_IGN);
	f = fdopen(said[0], "r");
	if (f) {
		take_lines(f, &result);
		fclose(f);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, SIG_DFL);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		json_object_put(result);
		if (WIFSIGNALED(status))
			tool_error("%s was killed by signal %d", NAME, WTERMSIG(status));
		return TOOL_EXIT_FAILURE;
	}
	*ret_result = result;
	return 0;
}

int machine_helper_exec(const char *verb, struct json_object *asks)
{
	char path[PATH_MAX];
	const char *words = NULL;

	if (find(asks, path, sizeof(path), &words) != 0)
		return TOOL_EXIT_FAILURE;
	fflush(NULL);
	execl(path, NAME, verb, words, (char *)NULL);
	return tool_error("%s: %s", path, strerror(errno));
}
