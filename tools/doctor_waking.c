/* SPDX-License-Identifier: BSD-2-Clause */
/* How each program of the running cluster wakes the devices it uses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "hosts.h"
#include "output.h"
#include "smartio/uapi.h"
#include "wire/client.h"

static const char *way_text(uint64_t way)
{
	switch (way) {
	case SIO_WATCH_FAULT:
		return "by a page fault";
	case SIO_WATCH_EVENT:
		return "by an event descriptor";
	case SIO_WATCH_TIMER:
		return "not: a timer looks, for some 3 % of a core (docs/waking.md)";
	default:
		return "in a way that this smartio does not know";
	}
}

static const char *device_name(const struct sio_topology *t, uint32_t id)
{
	for (unsigned i = 0; i < t->n_hosts; i++)
		for (unsigned k = 0; k < t->host[i].n_devices; k++)
			if (t->host[i].device[k].fdid == id)
				return t->host[i].device[k].name;
	return "a device";
}

static uint32_t pid_of(const struct sio_wire_row *clients, size_t n, sio_le64 owner)
{
	for (size_t i = 0; i < n; i++)
		if (sio_from_le64(clients[i].owner) == sio_from_le64(owner))
			return sio_from_le32(clients[i].pid);
	return 0;
}

/* A program with several mappings has a line for each way. */
static bool told_before(const struct sio_wire_row *rows, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (sio_from_le64(rows[k].owner) == sio_from_le64(rows[i].owner) &&
		    sio_from_le64(rows[k].address) == sio_from_le64(rows[i].address) &&
		    sio_from_le32(rows[k].id) == sio_from_le32(rows[i].id))
			return true;
	return false;
}

static void tell_host(struct tool_hosts *all, struct tool_host *h, struct tool_findings *ret)
{
	struct sio_wire_row *watch = NULL, *client = NULL;
	size_t n = 0, n_clients = 0;
	struct sio_err err;

	if (tool_client_list(&h->client, SIO_LIST_PORT + SIO_KIND_WATCH, &watch, &n, &err) < 0 ||
	    tool_client_list(&h->client, SIO_LIST_CLIENTS, &client, &n_clients, &err) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		struct tool_finding *f;

		if (told_before(watch, i))
			continue;
		f = tool_findings_add(ret, "waking");
		snprintf(f->found, sizeof(f->found), "%s: pid %" PRIu32 " wakes %s %s",
			 h->topo->name, pid_of(client, n_clients, watch[i].owner),
			 device_name(all->topology, sio_from_le32(watch[i].id)),
			 way_text(sio_from_le64(watch[i].address)));
	}
	free(client);
	free(watch);
}

void tool_doctor_waking(struct tool_findings *ret)
{
	struct tool_hosts *h = NULL;
	struct sio_err err;

	if (tool_hosts_open(&h, &err) < 0)
		return;
	for (unsigned i = 0; i < h->n; i++)
		if (h->host[i].up)
			tell_host(h, &h->host[i], ret);
	tool_hosts_close(h);
}
