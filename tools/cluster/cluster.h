/* SPDX-License-Identifier: BSD-2-Clause */
/* An emulated cluster: bringing it up and down, and restarting one host. */
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
 * Blocks SIGINT, SIGTERM and SIGHUP; the descriptor is readable when one has arrived. For as long
 * as this command has something to undo.
 */
int tool_cancel_fd(void);

/*
 * Brings a cluster up in @dir: either all programs are ready and all hosts that the topology
 * connects answer each other, or nothing is left. @tied: the cluster ends when this process dies.
 * @ret_cleaned: true if @dir contained files of a crashed cluster. -EBUSY: a cluster runs there.
 */
int tool_cluster_up(const struct tool_topofile *f, const char *dir, bool tied, int cancel_fd,
		    bool *ret_cleaned, struct sio_err *reterr);
/* Takes the cluster down and removes @dir. @ret_was: how many of its programs were running. */
int tool_cluster_down(const char *dir, unsigned *ret_was, struct sio_err *reterr);
/* Starts the daemon of a host that crashed. -EBUSY: it is up. */
int tool_cluster_restart(const char *dir, const struct sio_topology *t,
			 const struct sio_topo_host *host, int cancel_fd, struct sio_err *reterr);
/*
 * Stops the daemons of hosts that @t lacks; returns when what their hosts' programs are kept by has
 * ended, too.
 */
void tool_cluster_stop_others(const char *dir, const struct sio_topology *t);
/*
 * Starts the daemons of hosts that are new in a cluster that runs, as tool_cluster_up() does. The
 * first error; the others are up all the same, and tool_cluster_restart() starts what is not.
 */
struct tool_room_item;
int tool_cluster_start_new(const char *dir, const struct sio_topology *t,
			   const struct tool_room_item *item, unsigned n, unsigned *ret_started,
			   struct sio_err *reterr);
/*
 * Waits until every host that runs answers every other one that it is connected to, by every link
 * that was not pulled.
 */
int tool_cluster_probe(const char *dir, const struct sio_topology *t, int cancel_fd,
		       struct sio_err *reterr);
/*
 * Waits until all hosts of @hosts that are up list the devices that came by a reload, and no longer
 * those that went; not forever, and then it says which. @before: the topology with the names of
 * those.
 */
struct tool_hosts;
void tool_devices_await(struct tool_hosts *hosts, const struct sio_topology *before,
			const struct tool_room_item *item, unsigned n);
/*
 * The same for devices of @host that were put into their slots, or pulled out: up to ten seconds,
 * of a host that cannot reach @host two. Hosts that do not answer are named.
 */
struct tool_device_there {
	const struct sio_topo_device *device;
	bool listed; /* it is in its slot */
};
void tool_device_await(struct tool_hosts *hosts, const struct sio_topo_host *host,
		       const struct tool_device_there *there, unsigned n);

#endif
