/* SPDX-License-Identifier: BSD-2-Clause */
/* A conversation with every host of the cluster that answers. */
#ifndef TOOLS_HOSTS_H
#define TOOLS_HOSTS_H

#include <limits.h>
#include <stdbool.h>

#include "base/client.h"
#include "core/topology.h"

enum tool_host_state {
	TOOL_HOST_DOWN,	  /* its smartiod does not run */
	TOOL_HOST_UP,	  /* it answers */
	TOOL_HOST_SILENT, /* smartiod runs, but does not answer, or takes no more clients */
	TOOL_HOST_AWAY,	  /* another machine's: our smartiod asks it for us */
};

struct tool_host {
	const struct sio_topo_host *topo;
	struct tool_client client; /* fd -1 unless it answers; away: of this machine's smartiod */
	enum tool_host_state state;
	bool up;	    /* state is TOOL_HOST_UP */
	bool answers;	    /* up or away: @client can be asked about it */
	struct sio_err why; /* silent: what happened */
};

struct tool_hosts {
	char dir[PATH_MAX];
	struct sio_topology *topology;
	unsigned n, n_up;
	struct tool_host host[SIO_MAX_HOSTS];
};

/* Connects to the cluster of the command. A host that is down or silent is no error. */
int tool_hosts_open(struct tool_hosts **ret, struct sio_err *reterr);
/* The same; of other machines' hosts only @node, a name or an id, will be asked; NULL: all. */
#define TOOL_NO_OTHER "" /* none: one that does not answer makes nobody wait */
int tool_hosts_open_only(const char *node, struct tool_hosts **ret, struct sio_err *reterr);
/* Asks those that tool_hosts_open_only() left out, all at once: which of them answer? */
void tool_hosts_ask_others(struct tool_hosts *h);
/* The same as the first for the cluster in @dir. */
int tool_hosts_open_dir(const char *dir, struct tool_hosts **ret, struct sio_err *reterr);
void tool_hosts_close(struct tool_hosts *h);
/* Is spoken with no more, nor counted: the cluster's next file does not have it. */
void tool_hosts_remove(struct tool_hosts *h, unsigned index);
/*
 * A request to @h failed with @error, -errno and text: did the host disappear, or stop answering?
 * Then its state says so from now on. False: it refused the request. Of another machine's host any
 * error says so: what one of them answers must not cost the view of the others.
 */
bool tool_host_lost(struct tool_hosts *h, struct tool_host *host, const struct sio_err *error);
/* The name of a state: "up", "down", "no answer"; "up" for another machine's, too. */
const char *tool_host_state_name(enum tool_host_state state);
/*
 * Asks a host that answers for its adapter @index, one of the cluster's file. While a reload has
 * not come to its daemon yet it has nothing, and no link.
 */
int tool_host_adapter(struct tool_host *h, unsigned index, struct sio_rep_adapter *ret,
		      struct sio_err *reterr);
/* Asks @h for device @fdid. -ENODEV: it does not know the device. */
int tool_host_device(struct tool_host *h, uint32_t fdid, struct sio_rep_dev_list *ret,
		     struct sio_err *reterr);
/*
 * Asks a host that answers for counters; @id: device id, or number of the adapter, chassis, or
 * link.
 */
enum tool_counters {
	TOOL_COUNTERS_DAEMON,
	TOOL_COUNTERS_HOST,
	TOOL_COUNTERS_ADAPTER,
	TOOL_COUNTERS_DEVICE,
	TOOL_COUNTERS_ENGINE,  /* of an adapter */
	TOOL_COUNTERS_CHASSIS, /* its link towards the host */
	TOOL_COUNTERS_TRUNK,   /* a link between two switches: any host's */
	TOOL_COUNTERS_MACHINE, /* the machine room knows them, and no daemon is asked */
	TOOL_COUNTERS_KINDS
};
int tool_host_counters(struct tool_host *h, enum tool_counters kind, uint32_t id,
		       struct sio_rep_stats *ret, struct sio_err *reterr);

#endif
