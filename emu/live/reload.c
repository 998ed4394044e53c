/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster's file changes while the cluster runs, in steps that smartio cluster reload takes
 * after the daemons have said that they can follow: "prepare" makes what is new, "commit" puts it
 * in place of what is in force. In between the file takes its name and the daemons read it. Whoever
 * goes away in between leaves what was prepared to be dropped by the next reload.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "emu/live/live.h"
#include "topofile/topofile.h"

#define NEXT ".new" /* behind the file's name: the one that is to take its place */

void live_share_descriptors(struct live *l)
{
	uint64_t own = l->own_fds;

	for (unsigned i = 0; i < l->topo->n_hosts; i++)
		own += 2 * (uint64_t)l->topo->host[i].n_devices;
	emu_room_descriptors(l->room, l->max_fds > own ? l->max_fds - own : 0);
}

void live_reload_drop(struct live *l)
{
	emu_room_drop(l->room, l->change);
	sio_topology_free(l->next);
	l->change = NULL;
	l->next = NULL;
}

/* @try: nothing is kept. */
static int prepare(struct live *l, bool next, bool try, struct sio_err *reterr)
{
	char path[PATH_MAX];
	int rc;

	live_reload_drop(l);
	snprintf(path, sizeof(path), "%s%s", l->topology_path, next ? NEXT : "");
	rc = sio_topofile_read_next(path, l->topo, &l->next, reterr);
	if (rc == 0)
		rc = emu_room_prepare(l->room, l->next, try, &l->change, reterr);
	if (rc == 0)
		rc = live_store_watch(l, reterr);
	if (rc < 0 || try)
		live_reload_drop(l);
	return rc;
}

static int commit(struct live *l, struct sio_err *reterr)
{
	int rc;

	if (!l->change)
		return sio_fail(reterr, -EINVAL, "no file was prepared");
	rc = emu_room_commit(l->room, l->topo, l->next, l->change, reterr);
	l->change = NULL;
	live_reload_drop(l);
	live_share_descriptors(l);
	live_log("the cluster's file was read anew");
	return rc;
}

int live_reload(struct live *l, const char *step, const char *file, struct sio_err *reterr)
{
	bool next = strcmp(file, "new") == 0, try = strcmp(step, "check") == 0;

	if (try || strcmp(step, "prepare") == 0) {
		if (next || strcmp(file, "now") == 0)
			return prepare(l, next, try, reterr);
		return sio_fail(reterr, -EINVAL, "the file is the 'new' one, or the one 'now'");
	}
	if (*file == '\0' && strcmp(step, "commit") == 0)
		return commit(l, reterr);
	if (*file || strcmp(step, "drop") != 0)
		return sio_fail(reterr, -EINVAL,
				"'reload check|prepare new|now', 'reload commit' or 'reload drop' "
				"is right");
	live_reload_drop(l);
	return 0;
}
