/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/local.h"
#include "base/state.h"
#include "device/underway.h"

static int path_of(const struct tool_function *f, const char *end, char ret[PATH_MAX],
		   struct sio_err *reterr)
{
	return tool_path(ret, PATH_MAX, reterr, "%s/device-%s" TOOL_UNDERWAY "%s", TOOL_LOCAL_STATE,
			 f->bdf, end);
}

void tool_underway(const struct tool_function *f, char ret[TOOL_FUNCTION_WORD])
{
	char path[PATH_MAX];
	struct sio_err err;
	FILE *file = path_of(f, "", path, &err) == 0 ? fopen(path, "re") : NULL;

	if (!file || !fgets(ret, TOOL_FUNCTION_WORD, file))
		*ret = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* In one step, because a file that is there already may not be lost by the attempt. */
int tool_underway_begin(const struct tool_function *f, const char *driver, struct sio_err *reterr)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	FILE *file;

	if (mkdir(TOOL_LOCAL_STATE, 0755) < 0 && errno != EEXIST)
		return sio_fail(reterr, -errno, TOOL_LOCAL_STATE ": %s", strerror(errno));
	if (path_of(f, "", path, reterr) < 0 || path_of(f, ".new", fresh, reterr) < 0)
		return reterr->code;
	file = fopen(fresh, "we");
	if (!file)
		return sio_fail(reterr, -errno, "%s: %s", fresh, strerror(errno));
	fprintf(file, "%s\n", driver);
	if (fclose(file) != 0 || rename(fresh, path) < 0)
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

void tool_underway_end(const struct tool_function *f)
{
	char path[PATH_MAX];
	struct sio_err err;

	if (path_of(f, "", path, &err) == 0)
		unlink(path);
}
