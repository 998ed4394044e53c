/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the programs of a cluster wake the devices that they use: not a fault, but it may be
 * expensive.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "doctor/doctor_facts.h"
#include "smartio/uapi.h"

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

static uint32_t pid_of(const struct sio_wire_row *clients, size_t n, sio_le64 owner)
{
	for (size_t i = 0; i < n; i++)
		if (sio_from_le64(clients[i].owner) == sio_from_le64(owner))
			return sio_from_le32(clients[i].pid);
	return 0;
}

/* A program with several mappings is shown once for each way of waking. */
static bool reported_before(const struct sio_wire_row *rows, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (sio_from_le64(rows[k].owner) == sio_from_le64(rows[i].owner) &&
		    sio_from_le64(rows[k].address) == sio_from_le64(rows[i].address) &&
		    sio_from_le32(rows[k].id) == sio_from_le32(rows[i].id))
			return true;
	return false;
}

static void look_at_host(struct doctor *d, const struct doctor_state *s,
			 const struct doctor_cluster *c, struct doctor_host *x)
{
	struct sio_wire_row *watch = NULL, *client = NULL;
	size_t n = 0, n_clients = 0;
	struct sio_err err;

	if (tool_client_list(&x->h.client, SIO_LIST_PORT + SIO_KIND_WATCH, &watch, &n, &err) < 0 ||
	    tool_client_list(&x->h.client, SIO_LIST_CLIENTS, &client, &n_clients, &err) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct sio_topo_device *dev =
			doctor_device(c, sio_from_le32(watch[i].id), NULL);

		if (!reported_before(watch, i))
			doctor_found(d, s, NULL, "%s: pid %" PRIu32 " wakes %s %s", x->h.topo->name,
				     pid_of(client, n_clients, watch[i].owner),
				     dev ? dev->name : "a device",
				     way_text(sio_from_le64(watch[i].address)));
	}
	free(client);
	free(watch);
}

void doctor_find_waking(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c)
		DOCTOR_EACH_HOST (c, x)
			if (x->h.up)
				look_at_host(d, s, c, x);
}
