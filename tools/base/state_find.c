/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the cluster that is meant, where several may run. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hint.h"
#include "base/state.h"

static int find_only(char *dir, size_t size, struct sio_err *reterr)
{
	char **names = NULL, list[160] = "", hint[TOOL_HINT_TEXT];
	size_t n = 0, used = 0;
	int r;

	r = tool_state_list(&names, &n, TOOL_STATE_RUNNING, false, reterr);
	if (r < 0)
		return r;
	if (n == 1)
		r = tool_state_path(names[0], dir, size, reterr);
	else if (n == 0)
		r = sio_fail(reterr, -ENOENT,
			     "no cluster is running; start one with: %s cluster up TOPOLOGY",
			     tool_hint(NULL, hint));
	for (size_t i = 0; i < n; i++) {
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 i ? ", " : "", names[i]);
		free(names[i]);
	}
	free(names);
	if (n > 1)
		r = sio_fail(reterr, -EEXIST,
			     "several clusters are running (%s); choose one with "
			     "--cluster NAME",
			     list);
	return r;
}

int tool_state_find(const char *state, const char *name, char *dir, size_t size,
		    struct sio_err *reterr)
{
	const char *env = getenv("SMARTIO_STATE");
	char real[PATH_MAX];
	enum tool_state s;
	int r = 0;

	if (!state && !name && env && *env)
		state = env;
	if (state)
		r = tool_path(dir, size, reterr, "%s", state);
	else if (name)
		r = tool_state_path(name, dir, size, reterr);
	else
		r = find_only(dir, size, reterr);
	if (r < 0)
		return r;
	if (realpath(dir, real))
		r = tool_path(dir, size, reterr, "%s", real);
	if (r < 0)
		return r;
	s = tool_state_probe(dir);
	if (s == TOOL_STATE_RUNNING || s == TOOL_STATE_STALE)
		return 0;
	return sio_fail(reterr, -ENOENT, "there is no cluster in %s%s", dir,
			s == TOOL_STATE_FOREIGN ? " (but other files)" : "");
}
