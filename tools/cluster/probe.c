/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks whether all hosts of a cluster answer each other. */
#include <errno.h>
#include <poll.h>

#include "base/client.h"
#include "base/clock.h"
#include "base/room.h"
#include "cluster/cluster.h"
#include "base/state.h"

#define PROBE_MS 20000 /* all hosts are ready, and links and peers take less time to come up */
#define PROBE_PAUSE_MS 5
#define PROBE_PATHS 16
#define PULLED_MS 500 /* a link that has been down for so long while its host is up was pulled */

/* One path from a host to another that is tried. */
struct way {
	const char *dir;
	const struct sio_topology *t;
	const struct sio_topo_host *from, *to;
	unsigned adapter, peer_adapter;
};

static bool host_runs(const char *dir, const struct sio_topo_host *h)
{
	struct tool_program p;
	char name[48];

	tool_state_daemon_name(h->node, name, sizeof(name));
	return tool_state_program(dir, name, false, &p) == 0;
}

static bool link_is_down(const char *dir, const struct sio_topo_host *host, unsigned adapter)
{
	struct sio_msg_adapter req = {.adapter = sio_to_le32(adapter)};
	struct sio_rep_adapter rep;
	struct tool_client c;
	bool down;

	if (tool_client_open(&c, dir, host->node, SIO_CLIENT_TOOL, NULL) < 0)
		return false;
	down = tool_client_call(&c, SIO_MSG_ADAPTER, &req, sizeof(req), &rep, sizeof(rep), NULL) ==
		       0 &&
	       !sio_from_le32(rep.link_up);
	tool_client_close(&c);
	return down;
}

/*
 * Are the switches of this path, or the links between them, out ('smartio fault switch', 'trunk')?
 */
static bool is_cut_off(const struct way *w)
{
	struct sio_outage *o;
	bool cut;

	if (w->t->n_switches == 0 || tool_room_outage(w->dir, w->t, &o, NULL) < 0)
		return false;
	cut = !sio_outage_joins(o, &w->from->adapter[w->adapter], &w->to->adapter[w->peer_adapter]);
	sio_outage_free(o);
	return cut;
}

/* Was a link on this path pulled ('smartio fault link')? Then the path cannot come up. */
static bool was_pulled(const struct way *w, int64_t *since)
{
	if (!is_cut_off(w) && !link_is_down(w->dir, w->from, w->adapter) &&
	    !link_is_down(w->dir, w->to, w->peer_adapter)) {
		*since = 0;
		return false;
	}
	if (*since == 0)
		*since = tool_now_ms();
	return tool_now_ms() - *since >= PULLED_MS;
}

/*
 * A host that has just come up may have to be asked twice: its links are reported by later events.
 */
static int probe_path(struct tool_client *c, const struct way *w, int cancel_fd, int64_t deadline,
		      struct sio_err *reterr)
{
	struct pollfd p = {.fd = cancel_fd, .events = POLLIN};
	int64_t down_since = 0;
	struct sio_err err;
	int r;

	for (;;) {
		struct sio_msg_node_probe req = {.adapter = sio_to_le32(w->adapter),
						 .node = sio_to_le32(w->to->node)};
		struct sio_msg rep;

		r = tool_client_call(c, SIO_MSG_NODE_PROBE, &req, sizeof(req), &rep, sizeof(rep),
				     &err);
		/* ENXIO: a reload has not come to its daemon yet, and to the file it has. */
		if (r == 0 || r == -ENXIO || (r == -ENETDOWN && was_pulled(w, &down_since)))
			return 0;
		if ((r != -ENETDOWN && r != -ETIMEDOUT && r != -ECONNRESET) ||
		    tool_now_ms() >= deadline)
			return sio_fail(reterr, r,
					"host '%s' does not reach '%s' through adapter %u: "
					"%s",
					c->host, w->to->name, w->adapter, err.text);
		if (poll(&p, 1, PROBE_PAUSE_MS) > 0)
			return sio_fail(reterr, -EINTR, "interrupted");
	}
}

static int probe_from(const char *dir, const struct sio_topology *t,
		      const struct sio_topo_host *from, const bool *up, int cancel_fd,
		      int64_t deadline, struct sio_err *reterr)
{
	struct sio_path path[PROBE_PATHS];
	struct tool_client c;
	unsigned n;
	int r;

	r = tool_client_open(&c, dir, from->node, SIO_CLIENT_TOOL, reterr);
	for (unsigned i = 0; r == 0 && i < t->n_hosts; i++) {
		if (!up[i] || &t->host[i] == from)
			continue;
		n = sio_topology_paths(t, from->node, t->host[i].node, path, PROBE_PATHS);
		for (unsigned j = 0; r == 0 && j < n && j < PROBE_PATHS; j++) {
			struct way w = {
				dir, t, from, &t->host[i], path[j].adapter, path[j].peer_adapter};

			r = probe_path(&c, &w, cancel_fd, deadline, reterr);
		}
	}
	tool_client_close(&c);
	return r;
}

int tool_cluster_probe(const char *dir, const struct sio_topology *t, int cancel_fd,
		       struct sio_err *reterr)
{
	int64_t deadline = tool_now_ms() + PROBE_MS;
	bool up[SIO_MAX_HOSTS] = {0};
	int r = 0;

	for (unsigned i = 0; i < t->n_hosts; i++)
		up[i] = host_runs(dir, &t->host[i]);
	for (unsigned i = 0; r == 0 && i < t->n_hosts; i++)
		if (up[i])
			r = probe_from(dir, t, &t->host[i], up, cancel_fd, deadline, reterr);
	return r;
}
