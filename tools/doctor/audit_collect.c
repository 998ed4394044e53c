/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks every daemon, and through it the port, for lists of all objects. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/audit.h"
#include "base/hosts.h"
#include "base/output.h"

static int collect_list(struct tool_host *h, uint32_t kind, struct audit_list *ret,
			struct sio_err *reterr)
{
	struct sio_wire_row *w;
	size_t n;
	int r;

	r = tool_client_list(&h->client, kind, &w, &n, reterr);
	if (r < 0)
		return r;
	ret->row = tool_alloc(n, sizeof(*ret->row));
	ret->n = n;
	for (size_t i = 0; i < n; i++) {
		ret->row[i] = (struct audit_row){
			.key = sio_from_le64(w[i].key),
			.owner = sio_from_le64(w[i].owner),
			.bytes = sio_from_le64(w[i].bytes),
			.address = sio_from_le64(w[i].address),
			.id = sio_from_le32(w[i].id),
			.node = sio_from_le32(w[i].node),
			.refs = sio_from_le32(w[i].refs),
			.flags = sio_from_le32(w[i].flags),
			.pid = sio_from_le32(w[i].pid),
		};
		memcpy(ret->row[i].name, w[i].name, sizeof(ret->row[i].name));
	}
	free(w);
	return 0;
}

static void mark_dead(struct audit_list *clients)
{
	for (size_t i = 0; i < clients->n; i++)
		if (clients->row[i].pid && kill((pid_t)clients->row[i].pid, 0) < 0 &&
		    errno == ESRCH)
			clients->row[i].flags |= AUDIT_DEAD;
}

static int collect_adapters(struct tool_host *h, struct audit_host *a, struct sio_err *reterr)
{
	struct sio_rep_adapter rep;
	int r;

	for (unsigned i = 0; i < a->n_adapters; i++) {
		r = tool_host_adapter(h, i, &rep, reterr);
		if (r < 0)
			return r;
		a->entries_used[i] =
			sio_from_le32(rep.entries_total) - sio_from_le32(rep.entries_free);
		a->requesters_used[i] =
			sio_from_le32(rep.requesters_total) - sio_from_le32(rep.requesters_free);
	}
	return 0;
}

static uint64_t counter(const struct sio_rep_stats *s, const char *name)
{
	uint32_t n = sio_from_le32(s->count), max = sizeof(s->counter) / sizeof(s->counter[0]);

	for (uint32_t i = 0; i < n && i < max; i++)
		if (strncmp(s->counter[i].name, name, sizeof(s->counter[i].name)) == 0)
			return sio_from_le64(s->counter[i].value);
	return 0;
}

static int collect_devices(struct tool_host *h, struct audit_host *a, struct sio_err *reterr)
{
	struct sio_rep_stats rep;
	int r;

	for (unsigned i = 0; i < a->n_devices; i++) {
		r = tool_host_counters(h, TOOL_COUNTERS_DEVICE, h->topo->device[i].fdid, &rep,
				       reterr);
		if (r < 0)
			return r;
		a->device[i].queue_pairs = counter(&rep, "queue_pairs");
		a->device[i].fatal = counter(&rep, "fatal");
	}
	return 0;
}

static int collect_host(struct tool_host *h, struct audit_host *a, struct sio_err *reterr)
{
	int r;

	r = collect_adapters(h, a, reterr);
	if (r == 0)
		r = collect_devices(h, a, reterr);
	for (uint32_t kind = SIO_LIST_NODES; r == 0 && kind < AUDIT_DAEMON_KINDS; kind++)
		r = collect_list(h, kind, &a->daemon[kind], reterr);
	for (uint32_t kind = SIO_KIND_OWNER; r == 0 && kind < AUDIT_PORT_KINDS; kind++) {
		if (kind == SIO_KIND_IOVA || (kind > SIO_KIND_IRQ && kind < SIO_KIND_WATCH))
			continue; /* the port has no list of this kind */
		r = collect_list(h, SIO_LIST_PORT + kind, &a->port[kind], reterr);
	}
	if (r == 0)
		mark_dead(&a->daemon[SIO_LIST_CLIENTS]);
	return r;
}

int audit_collect(struct audit **ret, struct sio_err *reterr)
{
	struct audit *a = tool_alloc(1, sizeof(*a));
	struct tool_hosts *h;
	int r;

	r = tool_hosts_open_only(TOOL_NO_OTHER, &h, reterr);
	if (r < 0) {
		free(a);
		return r;
	}
	a->n_hosts = h->n;
	for (unsigned i = 0; i < h->n; i++) {
		a->host[i].node = h->host[i].topo->node;
		a->host[i].address = h->host[i].topo->address.port;
		a->host[i].up = h->host[i].up;
		a->host[i].n_devices = h->host[i].topo->n_devices;
		a->host[i].n_adapters = h->host[i].topo->n_adapters;
		a->host[i].device = tool_alloc(a->host[i].n_devices, sizeof(struct audit_device));
		for (unsigned j = 0; j < a->host[i].n_devices; j++) {
			a->host[i].device[j].fdid = h->host[i].topo->device[j].fdid;
			snprintf(a->host[i].device[j].name, sizeof(a->host[i].device[j].name), "%s",
				 h->host[i].topo->device[j].name);
		}
		snprintf(a->host[i].name, sizeof(a->host[i].name), "%s", h->host[i].topo->name);
	}
	for (unsigned i = 0; r == 0 && i < h->n; i++)
		if (h->host[i].up)
			r = collect_host(&h->host[i], &a->host[i], reterr);
	/*
	 * While this command is connected everywhere, so that its own sockets are counted alike
	 * each time.
	 */
	audit_system(a, h->dir);
	tool_hosts_close(h);
	if (r < 0) {
		audit_free(a);
		return r;
	}
	*ret = a;
	return 0;
}
