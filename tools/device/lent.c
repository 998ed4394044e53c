/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/lent.h"

static const char head[] = "# Devices that smartio lend --persist gave away; smartio lend --again "
			   "reads it.\n";

static int parse(const char *line, struct tool_lent *ret)
{
	unsigned domain, bus, slot, function;
	int end = -1;

	if (sscanf(line, "%23s %4" SCNx32 ":%4" SCNx32 " %n", ret->bdf, &ret->vendor, &ret->device,
		   &end) != 3 ||
	    end < 0 || line[end])
		return -EINVAL;
	end = -1;
	if (sscanf(ret->bdf, "%4x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) != 4 ||
	    end < 0 || ret->bdf[end])
		return -EINVAL;
	return 0;
}

int tool_lent_read(const char *path, struct tool_lent_list *ret, struct sio_err *reterr)
{
	FILE *f = fopen(path, "re");
	struct tool_lent e;
	unsigned number = 0;
	char line[256];
	int r = 0;

	ret->n = 0;
	if (!f)
		return errno == ENOENT ? 0
				       : sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	while (r == 0 && fgets(line, sizeof(line), f)) {
		number++;
		if (*line == '#' || *line == '\n')
			continue;
		if (parse(line, &e) < 0)
			r = sio_fail(reterr, -EINVAL,
				     "%s, line %u: \"0000:05:00.0 8086:10d3\", a place and what "
				     "lies there, is right",
				     path, number);
		else
			r = tool_lent_add(ret, &e, reterr);
	}
	fclose(f);
	return r;
}

int tool_lent_write(const char *path, const struct tool_lent_list *list, struct sio_err *reterr)
{
	char fresh[PATH_MAX];
	bool good;
	FILE *f;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return sio_fail(reterr, -ENAMETOOLONG, "%s: too long", path);
	f = fopen(fresh, "we");
	if (!f)
		return sio_fail(reterr, -errno, "%s: %s", fresh, strerror(errno));
	good = fputs(head, f) >= 0;
	for (unsigned i = 0; i < list->n; i++)
		good &= fprintf(f, "%s %04" PRIx32 ":%04" PRIx32 "\n", list->entry[i].bdf,
				list->entry[i].vendor, list->entry[i].device) > 0;
	good &= fflush(f) == 0 && fsync(fileno(f)) == 0;
	good &= fclose(f) == 0;
	if (good && rename(fresh, path) == 0)
		return 0;
	sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	unlink(fresh);
	return reterr->code;
}

static struct tool_lent *find(struct tool_lent_list *list, const char *bdf)
{
	for (unsigned i = 0; i < list->n; i++)
		if (strcmp(list->entry[i].bdf, bdf) == 0)
			return &list->entry[i];
	return NULL;
}

int tool_lent_add(struct tool_lent_list *list, const struct tool_lent *e, struct sio_err *reterr)
{
	struct tool_lent *at = find(list, e->bdf);

	if (!at && list->n == TOOL_LENT_MAX)
		return sio_fail(reterr, -ENOSPC, "more than %d devices are lent", TOOL_LENT_MAX);
	if (!at)
		at = &list->entry[list->n++];
	*at = *e;
	return 0;
}

bool tool_lent_remove(struct tool_lent_list *list, const char *bdf)
{
	struct tool_lent *at = find(list, bdf);

	if (at)
		*at = list->entry[--list->n];
	return at;
}
