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
#include "base/room.h"
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
static void await(struct tool_hosts *hosts, uint32_t fdid, const char *name, bool listed,
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
			r = tool_host_device(h, fdid, &rep, &err);
			if (r == (listed ? 0 : -ENODEV) || (r < 0 && r != -ENODEV) ||
			    now_ms() >= deadline)
				break;
			poll(NULL, 0, PAUSE_MS);
		}
		if (r == (listed ? -ENODEV : 0))
			tool_note("host '%s' %s device %s", h->topo->name,
				  listed ? "does not list" : "still lists", name);
	}
}

void tool_devices_await(struct tool_hosts *hosts, const struct sio_topology *before,
			const struct tool_room_item *item, unsigned n)
{
	int64_t deadline = now_ms() + AWAIT_MS;

	for (unsigned i = 0; i < n; i++) {
		bool listed = item[i].what == TOOL_ROOM_NEW;
		const struct sio_topo_device *dev = sio_topology_device(
			listed ? hosts->topology : before, item[i].number, NULL);

		if (listed && !is_up(hosts, sio_topology_fdid_node(item[i].number)))
			continue;
		if (listed || item[i].what == TOOL_ROOM_OUT)
			await(hosts, item[i].number, dev ? dev->name : "of before", listed,
			      deadline);
	}
}
