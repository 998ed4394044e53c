/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about the clusters: which daemons run, and what they report. */
#ifndef TOOLS_DOCTOR_FACTS_H
#define TOOLS_DOCTOR_FACTS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "core/outage.h"
#include "core/topology.h"
#include "doctor/doctor.h"
#include "base/hosts.h"
#include "base/state.h"

enum doctor_life {
	DOCTOR_LIVES,
	DOCTOR_DIED,  /* its pid file is there, its process is not */
	DOCTOR_ENDED, /* in order, or it was never started */
};

struct doctor_host {
	struct tool_host h; /* h.up: it answers */
	enum doctor_life life;
	pid_t pid;
	bool stopped;	    /* its process is, by a signal */
	struct sio_err why; /* lives, and does not answer */
};

struct doctor_cluster {
	char dir[PATH_MAX];
	bool local;    /* this machine's own smartiod, of real devices: no room, no topology file */
	bool hidden;   /* of `cluster run` */
	bool readable; /* we may look into its directory, or there is none */
	struct sio_err why; /* it is not, or has no topology */
	enum tool_state state;
	enum doctor_life room;
	pid_t room_pid;
	struct sio_topology *topology;
	struct sio_outage *outage; /* NULL: no switches, or no room that answers */
	unsigned n_hosts;
	struct doctor_host *host;
};

/*
 * Collects the facts of the clusters to examine: the one that was named, otherwise all below the
 * base directory, and this machine's own smartiod where real devices are examined. Asks each daemon
 * that lives.
 */
void doctor_collect(struct doctor *d);
void doctor_collect_done(struct doctor *d);
/*
 * Are real devices to be examined: --hardware, the module, a device given to it, a local smartiod?
 */
bool doctor_wants_hardware(const struct doctor *d);

/* Does VFIO serve them: functions were added to it, and smartio.ko is not loaded? */
bool doctor_by_vfio(const struct doctor *d);

/* Walks the clusters, and the hosts of one, alive or not. */
#define DOCTOR_EACH_CLUSTER(d, c)                                                                  \
	for (struct doctor_cluster * (c) = (d)->cluster; (c) < (d)->cluster + (d)->n_clusters;     \
	     (c)++)
#define DOCTOR_EACH_HOST(c, x)                                                                     \
	for (struct doctor_host * (x) = (c)->host; (x) < (c)->host + (c)->n_hosts; (x)++)

/* Is a process stopped by a signal? */
bool doctor_is_stopped(pid_t pid);
/* Reads a counter of STATS. False: it is not counted there, or there was no answer. */
bool doctor_counter(const struct sio_rep_stats *stats, const char *name, uint64_t *ret);
/* A device of a cluster, by its id; NULL: none. *ret_host is its lender. */
const struct sio_topo_device *doctor_device(const struct doctor_cluster *c, uint32_t fdid,
					    struct doctor_host **ret_host);

/* A row's function with a file of its own: the cluster's files (doctor_file.c). */
void doctor_find_files(struct doctor *d, const struct doctor_state *s);
/* A row's function with a file of its own: how the programs wake devices (doctor_waking.c). */
void doctor_find_waking(struct doctor *d, const struct doctor_state *s);
/* Rows' functions of virtual machines (doctor_virtual.c). */
void doctor_find_machine_killed(struct doctor *d, const struct doctor_state *s);
void doctor_find_machine_off(struct doctor *d, const struct doctor_state *s);
void doctor_find_machine_mapped(struct doctor *d, const struct doctor_state *s);
void doctor_find_host_pooled(struct doctor *d, const struct doctor_state *s);
void doctor_find_machine_unlinked(struct doctor *d, const struct doctor_state *s);
/* "client1" for a node id. */
const char *doctor_node_name(const struct doctor_cluster *c, uint32_t node);

#endif
