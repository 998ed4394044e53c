/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counts of an audit, without ids, process numbers and addresses: always the same lines in the
 * same order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "doctor/audit.h"
#include "base/output.h"

/* A kind of objects, and what is counted beside their number. */
struct kind {
	const char *name; /* NULL: not counted */
	bool quarantine, bytes;
};

static const struct kind daemon_kind[AUDIT_DAEMON_KINDS] = {
	[SIO_LIST_SEGMENTS] = {"segments", true, true},
	[SIO_LIST_CLIENTS] = {"clients", false, false},
	[SIO_LIST_CONNECTIONS] = {"connections", false, true},
	[SIO_LIST_BORROWS] = {"borrows", true, false},
	[SIO_LIST_DMA_MAPS] = {"DMA maps", true, true},
	[SIO_LIST_DINTS] = {"data interrupts", true, false},
};
static const struct kind port_kind[AUDIT_PORT_KINDS] = {
	[SIO_KIND_OWNER] = {"port owners", true, false},
	[SIO_KIND_MEM] = {"port memory", true, true},
	[SIO_KIND_GRANT] = {"port grants", true, true},
	[SIO_KIND_MAP] = {"port windows", true, true},
	[SIO_KIND_REQUESTER] = {"port requesters", true, false},
	[SIO_KIND_DEVICE] = {"port devices", false, false},
	[SIO_KIND_BAR] = {"port BARs", true, true},
	[SIO_KIND_DMAMAP] = {"port DMA maps", true, true},
	[SIO_KIND_IRQ] = {"port interrupts", true, false},
	[SIO_KIND_WATCH] = {"port watches", false, false},
	[SIO_KIND_DMA] = {"port DMA channels", true, false},
	[SIO_KIND_DMA_RANGE] = {"port DMA ranges", true, true},
	[SIO_KIND_VECTOR] = {"port vectors", true, false},
};
static const char *const resource_name[AUDIT_RESOURCES] = {
	[AUDIT_SOCKETS] = "sockets", [AUDIT_MEMFDS] = "memory files",
	[AUDIT_PIPES] = "pipes",     [AUDIT_EVENTS] = "event descriptors",
	[AUDIT_FILES] = "files",     [AUDIT_MAPS] = "mappings of memory files",
};

static void line(struct audit_report *r, const char *where, const char *what, uint64_t count)
{
	r->line = tool_grow(r->line, r->n_lines + 1, sizeof(*r->line));
	r->line[r->n_lines].where = tool_strdup(where);
	r->line[r->n_lines].what = tool_strdup(what);
	r->line[r->n_lines++].count = count;
}

static void list_lines(struct audit_report *r, const char *where, const struct kind *kind,
		       const struct audit_list *l)
{
	uint64_t quarantined = 0, bytes = 0;
	char text[64];

	for (size_t i = 0; i < l->n; i++) {
		quarantined += (l->row[i].flags & SIO_ROW_QUARANTINED) != 0;
		bytes += l->row[i].bytes;
	}
	line(r, where, kind->name, l->n);
	if (kind->quarantine) {
		snprintf(text, sizeof(text), "%s quarantined", kind->name);
		line(r, where, text, quarantined);
	}
	if (kind->bytes) {
		snprintf(text, sizeof(text), "%s bytes", kind->name);
		line(r, where, text, bytes);
	}
}

static void process_lines(struct audit_report *r, const char *where, const struct audit_process *p)
{
	line(r, where, "process", p->runs);
	for (unsigned i = 0; i < AUDIT_RESOURCES; i++)
		line(r, where, resource_name[i], p->count[i]);
}

static void host_lines(struct audit_report *r, const struct audit_host *h)
{
	unsigned peers = 0;
	char text[64];

	line(r, h->name, "up", h->up);
	for (size_t i = 0; i < h->daemon[SIO_LIST_NODES].n; i++)
		peers += (h->daemon[SIO_LIST_NODES].row[i].flags & SIO_ROW_UP) != 0;
	line(r, h->name, "hosts in reach", peers);
	for (unsigned i = 0; i < h->n_adapters; i++) {
		snprintf(text, sizeof(text), "adapter %u entries in use", i);
		line(r, h->name, text, h->entries_used[i]);
		snprintf(text, sizeof(text), "adapter %u requesters in use", i);
		line(r, h->name, text, h->requesters_used[i]);
	}
	for (unsigned i = 0; i < AUDIT_DAEMON_KINDS; i++)
		if (daemon_kind[i].name)
			list_lines(r, h->name, &daemon_kind[i], &h->daemon[i]);
	for (unsigned i = 0; i < AUDIT_PORT_KINDS; i++)
		if (port_kind[i].name)
			list_lines(r, h->name, &port_kind[i], &h->port[i]);
	for (unsigned i = 0; h->device && i < h->n_devices; i++) {
		snprintf(text, sizeof(text), "%s queue pairs in use", h->device[i].name);
		line(r, h->name, text, h->device[i].queue_pairs);
		snprintf(text, sizeof(text), "%s fatal errors", h->device[i].name);
		line(r, h->name, text, h->device[i].fatal);
	}
	process_lines(r, h->name, &h->process);
}

void audit_summary(const struct audit *a, struct audit_report *r)
{
	process_lines(r, "machine room", &a->room);
	line(r, "system", "orphaned programs", a->orphans);
	line(r, "system", "strange files", a->strangers);
	for (unsigned i = 0; i < a->n_hosts; i++)
		if (!a->host[i].far)
			host_lines(r, &a->host[i]);
}

void audit_report_done(struct audit_report *r)
{
	for (size_t i = 0; i < r->n_problems; i++)
		free(r->problem[i]);
	for (size_t i = 0; i < r->n_lines; i++) {
		free(r->line[i].where);
		free(r->line[i].what);
	}
	free(r->problem);
	free(r->line);
	*r = (struct audit_report){0};
}
