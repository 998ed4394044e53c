/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster's file changes while the cluster runs, in steps that smartio cluster reload takes
 * after the daemons have said that they can follow: "prepare" makes what is new, "commit" puts it
 * in place of what is in force. In between the file takes its name and the daemons read it. When
 * the command goes away in between, what was prepared is dropped (control.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "emu/live/live.h"
#include "topofile/topofile.h"

#define NEXT ".new" /* behind the file's name: the one that is to take its place */

#define HOST_FDS 8 /* of one that comes: its port, its engine, what the room still opens */

void live_share_descriptors(struct live *l)
{
	uint64_t own = l->own_fds + HOST_FDS * (uint64_t)(l->topo->n_hosts - l->own_hosts);

	for (unsigned i = 0; i < l->topo->n_hosts; i++)
		own += 2 * (uint64_t)l->topo->host[i].n_devices;
	emu_room_descriptors(l->room, l->max_fds > own ? l->max_fds - own : 0);
}

/* ---- hosts ---- */

/* Which number has a host in @a, and none in @b? */
static bool lacks(const struct sio_topology *a, const struct sio_topology *b, unsigned host)
{
	return host < a->n_hosts && !sio_topology_is_vacant(&a->host[host]) &&
	       (host >= b->n_hosts || sio_topology_is_vacant(&b->host[host]));
}

static int open_hosts(struct live *l, struct sio_err *reterr)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < l->next->n_hosts; i++) {
		if (!lacks(l->next, l->topo, i))
			continue;
		rc = live_engine_open(l, i);
		if (rc < 0)
			return sio_fail(reterr, rc, "host %s: descriptors of its DMA engine: %s",
					l->next->host[i].name, strerror(-rc));
		rc = live_port_prepare(l, i, l->next->host[i].node, reterr);
	}
	return rc;
}

static void close_hosts(struct live *l, const struct sio_topology *of,
			const struct sio_topology *not_of)
{
	for (unsigned i = 0; i < of->n_hosts; i++)
		if (lacks(of, not_of, i)) {
			live_port_close(l, i);
			live_engine_close(l, i);
		}
}

/* ---- what comes and goes ---- */

static void say(char answer[LIVE_ANSWER], const char *what, uint32_t number)
{
	size_t at = strlen(answer);

	if (at + 24 < LIVE_ANSWER)
		snprintf(answer + at, LIVE_ANSWER - at, " %s %" PRIu32, what, number);
}

static void say_lacking(const struct sio_topology *a, const struct sio_topology *b,
			const char *host, const char *device, char answer[LIVE_ANSWER])
{
	for (unsigned i = 0; i < a->n_hosts; i++)
		if (lacks(a, b, i))
			say(answer, host, a->host[i].node);
	for (unsigned i = 0; i < a->n_hosts; i++)
		for (unsigned k = 0; k < a->host[i].n_devices; k++)
			if (!sio_topology_device(b, a->host[i].device[k].fdid, NULL))
				say(answer, device, a->host[i].device[k].fdid);
}

/* ---- steps ---- */

void live_reload_drop(struct live *l)
{
	if (l->change && l->port)
		close_hosts(l, l->next, l->topo);
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
	if (l->moved)
		return sio_fail(reterr, -EBUSY,
				"the host of node id %" PRIu32
				" has started with other addresses than the file's: the cluster "
				"has to be taken down and brought up first",
				l->moved);
	snprintf(path, sizeof(path), "%s%s", l->topology_path, next ? NEXT : "");
	rc = sio_topofile_read_next(path, l->topo, &l->next, reterr);
	if (rc == 0 && l->topo->n_machines + l->next->n_machines == 0 &&
	    sio_topology_align(l->next, l->topo) < 0)
		rc = sio_no_memory(reterr, "the hosts of the new file");
	if (rc == 0)
		rc = emu_room_prepare(l->room, l->next, try, &l->change, reterr);
	if (rc == 0 && !try)
		rc = open_hosts(l, reterr);
	if (rc == 0)
		rc = live_store_watch(l, reterr);
	if (rc < 0 || try)
		live_reload_drop(l);
	return rc;
}

/* @next has what was in force. The first error is kept. */
static int open_new(struct live *l, int rc, struct sio_err *reterr)
{
	struct sio_err err;

	for (unsigned i = 0; i < l->topo->n_hosts; i++)
		if (lacks(l->topo, l->next, i) && live_port_open(l, i, &err) < 0 && rc == 0) {
			*reterr = err;
			rc = err.code;
		}
	return rc;
}

static int commit(struct live *l, char answer[LIVE_ANSWER], struct sio_err *reterr)
{
	int rc;

	if (!l->change)
		return sio_fail(reterr, -EINVAL, "no file was prepared");
	say_lacking(l->next, l->topo, "host", "new", answer);
	say_lacking(l->topo, l->next, "gone", "out", answer);
	close_hosts(l, l->topo, l->next);
	rc = emu_room_commit(l->room, l->topo, l->next, l->change, reterr);
	l->change = NULL;
	rc = open_new(l, rc, reterr);
	live_reload_drop(l);
	live_share_descriptors(l);
	live_log("the cluster's file was read anew");
	return rc;
}

int live_reload(struct live *l, const char *step, const char *file, char answer[LIVE_ANSWER],
		struct sio_err *reterr)
{
	bool next = strcmp(file, "new") == 0, try = strcmp(step, "check") == 0;

	if (try || strcmp(step, "prepare") == 0) {
		if (next || strcmp(file, "now") == 0)
			return prepare(l, next, try, reterr);
		return sio_fail(reterr, -EINVAL, "the file is the 'new' one, or the one 'now'");
	}
	if (*file == '\0' && strcmp(step, "commit") == 0)
		return commit(l, answer, reterr);
	if (*file || strcmp(step, "drop") != 0)
		return sio_fail(reterr, -EINVAL,
				"'reload check|prepare new|now', 'reload commit' or 'reload drop' "
				"is right");
	live_reload_drop(l);
	return 0;
}
