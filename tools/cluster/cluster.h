/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of an emulated cluster: up, down, and one host again. */
#ifndef TOOLS_CLUSTER_H
#define TOOLS_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/topology.h"

/* A topology file, read once: what was checked is what the cluster gets. */
struct tool_topofile {
	char *text;
	size_t len;
	struct sio_topology *topology;
};

int tool_topofile_load(const char *path, struct tool_topofile *ret, struct sio_err *reterr);
void tool_topofile_done(struct tool_topofile *f);

/*
 * Block SIGINT, SIGTERM and SIGHUP; the descriptor is readable when one came. For as long as this
 * command has something to undo.
 */
int tool_cancel_fd(void);

/*
 * Bring a cluster up in @dir: all programs are ready and all hosts that the topology joins answer
 * each other, or nothing is left. @tied: it ends when this process dies. @ret_cleaned: true if @dir
 * held what a crashed cluster had left. -EBUSY: a cluster runs there.
 */
int tool_cluster_up(const struct tool_topofile *f, const char *dir, bool tied, int cancel_fd,
		    bool *ret_cleaned, struct sio_err *reterr);
/* Take it down and remove @dir. @ret_was: how many of its programs were running. */
int tool_cluster_down(const char *dir, unsigned *ret_was, struct sio_err *reterr);
/* Start the daemon of a host that crashed. -EBUSY: it is up. */
int tool_cluster_restart(const char *dir, const struct sio_topology *t,
			 const struct sio_topo_host *host, int cancel_fd, struct sio_err *reterr);
/*
 * Every host that runs answers every other one that it is joined to, by every link that was not
 * pulled; waits for that.
 */
int tool_cluster_probe(const char *dir, const struct sio_topology *t, int cancel_fd,
		       struct sio_err *reterr);

#endif
