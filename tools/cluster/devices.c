/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits until all hosts know which devices have come and gone: daemons tell each other, and whoever
 * has the end of a reload or of a fault behind him may borrow what is there.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hosts.h"
#include "base/output.h"
#include "base/room.h"
#include "cluster/cluster.h"

#define AWAIT_MS 10000
#define MEET_MS 2000 /* daemons that do not know each other by then have no way to each other */
#define PAUSE_MS 2

static bool is_up(const struct tool_hosts *hosts, uint32_t node)
{
	for (unsigned i = 0; i < hosts->n; i++)
		if (hosts->host[i].topo->node == node)
			return hosts->host[i].up;
	return false;
}

/*
 * Does @h know the host of @node to be up? If not, nobody tells it of devices there; but daemons
 * may be about to meet. 1, 0, or the error of a host that cannot be asked.
 */
static int meets(struct tool_host *h, uint32_t node, struct sio_err *reterr)
{
	struct sio_wire_row *row;
	int met = 0;
	size_t n;
	int r;

	if (h->topo->node == node)
		return 1;
	r = tool_client_list(&h->client, SIO_LIST_NODES, &row, &n, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (sio_from_le32(row[i].node) == node)
			met = (sio_from_le32(row[i].flags) & SIO_ROW_UP) != 0;
	free(row);
	return met;
}

/* @listed: it is there. A host that ends meanwhile has nothing to list. */
static void await(struct tool_hosts *hosts, uint32_t fdid, const char *name, bool listed,
		  int64_t begin)
{
	const int wrong = listed ? -ENODEV : 0;
	struct sio_rep_dev_list rep;
	struct sio_err err;

	for (unsigned i = 0; i < hosts->n; i++) {
		struct tool_host *h = &hosts->host[i];
		int r = 0;

		while (h->up) {
			r = tool_host_device(h, fdid, &rep, &err);
			if (r != wrong || tool_now_ms() >= begin + AWAIT_MS)
				break;
			r = meets(h, sio_topology_fdid_node(fdid), &err);
			if (r < 0 || (r == 0 && tool_now_ms() >= begin + MEET_MS))
				break;
			poll(NULL, 0, PAUSE_MS);
		}
		if (h->up && r < 0 && r != -ENODEV)
			tool_host_lost(hosts, h, &err);
		else if (h->up && r == wrong && tool_now_ms() >= begin + AWAIT_MS)
			tool_note("host '%s' %s device %s", h->topo->name,
				  listed ? "does not list" : "still lists", name);
	}
}

static void name_silent(const struct tool_hosts *hosts)
{
	for (unsigned i = 0; i < hosts->n; i++)
		if (hosts->host[i].state == TOOL_HOST_SILENT)
			tool_note("host '%s' does not answer: whether it knows which devices are "
				  "there is not known",
				  hosts->host[i].topo->name);
}

void tool_device_await(struct tool_hosts *hosts, const struct sio_topo_host *host,
		       const struct tool_device_there *there, unsigned n)
{
	int64_t begin = tool_now_ms();

	for (unsigned i = 0; i < n && is_up(hosts, host->node); i++)
		await(hosts, there[i].device->fdid, there[i].device->name, there[i].listed, begin);
	name_silent(hosts);
}

void tool_devices_await(struct tool_hosts *hosts, const struct sio_topology *before,
			const struct tool_room_item *item, unsigned n)
{
	int64_t begin = tool_now_ms();

	for (unsigned i = 0; i < n; i++) {
		bool listed = item[i].what == TOOL_ROOM_NEW;
		const struct sio_topo_device *dev = sio_topology_device(
			listed ? hosts->topology : before, item[i].number, NULL);

		if (listed && !is_up(hosts, sio_topology_fdid_node(item[i].number)))
			continue;
		if (listed || item[i].what == TOOL_ROOM_OUT)
			await(hosts, item[i].number, dev ? dev->name : "of before", listed, begin);
	}
	name_silent(hosts);
}
