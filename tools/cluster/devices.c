/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits until all hosts know which devices have come and gone: daemons tell each other, and whoever
 * has a reload's end behind him may borrow what is new.
 */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/hosts.h"
#include "base/output.h"
#include "cluster/cluster.h"

#define AWAIT_MS 10000
#define PAUSE_MS 2

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool is_up(const struct tool_hosts *hosts, uint32_t node)
{
	for (unsigned i = 0; i < hosts->n; i++)
		if (hosts->host[i].topo->node == node)
			return hosts->host[i].up;
	return false;
}

/* @listed: it is new. A host that ends meanwhile has nothing to list. */
static void await(struct tool_hosts *hosts, const struct sio_topo_device *dev, bool listed,
		  int64_t deadline)
{
	struct sio_rep_dev_list rep;
	struct sio_err err;

	for (unsigned i = 0; i < hosts->n; i++) {
		struct tool_host *h = &hosts->host[i];
		int r = 0;

		if (!h->up)
			continue;
		for (;;) {
			r = tool_host_device(h, dev->fdid, &rep, &err);
			if (r == (listed ? 0 : -ENODEV) || (r < 0 && r != -ENODEV) ||
			    now_ms() >= deadline)
				break;
			poll(NULL, 0, PAUSE_MS);
		}
		if (r == (listed ? -ENODEV : 0))
			tool_note("host '%s' %s device %s", h->topo->name,
				  listed ? "does not list" : "still lists", dev->name);
	}
}

/* What @a has and @b lacks, on hosts that are up. */
static void await_difference(struct tool_hosts *hosts, const struct sio_topology *a,
			     const struct sio_topology *b, bool listed, int64_t deadline)
{
	for (unsigned i = 0; i < a->n_hosts; i++)
		for (unsigned k = 0; is_up(hosts, a->host[i].node) && k < a->host[i].n_devices; k++)
			if (!sio_topology_device(b, a->host[i].device[k].fdid, NULL))
				await(hosts, &a->host[i].device[k], listed, deadline);
}

void tool_devices_await(struct tool_hosts *hosts, const struct sio_topology *before,
			const struct sio_topology *now)
{
	int64_t deadline = now_ms() + AWAIT_MS;

	await_difference(hosts, before, now, false, deadline);
	await_difference(hosts, now, before, true, deadline);
}
