/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the audit. Pure: no I/O; tests/cli/audit_test.c makes up the states. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/audit.h"
#include "base/output.h"

static void __attribute__((format(printf, 2, 3)))
problem(struct audit_report *r, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->problem = tool_grow(r->problem, r->n_problems + 1, sizeof(*r->problem));
	r->problem[r->n_problems++] = tool_strdup(text);
}

static const struct audit_host *find_host(const struct audit *a, uint32_t node)
{
	for (unsigned i = 0; i < a->n_hosts; i++)
		if (a->host[i].node == node)
			return &a->host[i];
	return NULL;
}

static const struct audit_row *by_key(const struct audit_list *l, uint64_t key)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->row[i].key == key)
			return &l->row[i];
	return NULL;
}

static const struct audit_row *by_owner(const struct audit_list *l, uint64_t owner)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->row[i].owner == owner)
			return &l->row[i];
	return NULL;
}

static const struct audit_row *by_address(const struct audit_list *l, uint64_t address)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->row[i].address == address)
			return &l->row[i];
	return NULL;
}

static bool quarantined(const struct audit_row *row)
{
	return row->flags & SIO_ROW_QUARANTINED;
}

/* A grant without memory: an IOMMU address that is reserved because of a lost host. */
static bool is_address(const struct audit_row *grant)
{
	return strcmp(grant->name, "grant") == 0;
}

/*
 * An orphaned grant: memory that is reserved because a host that was lost may still write there.
 * Nobody else knows when that host has stopped.
 */
static const struct audit_row *orphaned(const struct audit_host *h, uint64_t owner,
					uint64_t address)
{
	const struct audit_list *l = &h->port[SIO_KIND_GRANT];

	for (size_t i = 0; i < l->n; i++)
		if (quarantined(&l->row[i]) && !is_address(&l->row[i]) &&
		    l->row[i].owner == owner && (!address || l->row[i].address == address))
			return &l->row[i];
	return NULL;
}

/* Every owner at the port belongs to a program or a borrow, and each of these has an owner. */
static void check_owners(const struct audit_host *h, struct audit_report *r)
{
	const struct audit_list *owners = &h->port[SIO_KIND_OWNER];
	const struct audit_list *clients = &h->daemon[SIO_LIST_CLIENTS];
	const struct audit_list *borrows = &h->daemon[SIO_LIST_BORROWS];

	for (size_t i = 0; i < owners->n; i++) {
		const struct audit_row *o = &owners->row[i];
		bool known = by_owner(clients, o->key) || by_owner(borrows, o->key);

		/* A program that has ended is still known by the objects that others can reach. */
		if (quarantined(o))
			known |= by_owner(&h->daemon[SIO_LIST_SEGMENTS], o->key) ||
				 by_owner(&h->daemon[SIO_LIST_DINTS], o->key) ||
				 orphaned(h, o->key, 0);
		if (!known)
			problem(r,
				"%s: the port has %s owner %" PRIu64
				", which smartiod does not know",
				h->name, quarantined(o) ? "quarantined" : "live", o->key);
	}
	for (size_t i = 0; i < clients->n; i++) {
		const struct audit_row *c = &clients->row[i];

		if (c->owner && !by_key(owners, c->owner))
			problem(r,
				"%s: client %u has owner %" PRIu64 ", which the port does not know",
				h->name, c->pid, c->owner);
		if (c->flags & AUDIT_DEAD)
			problem(r, "%s: client %u is no process any more", h->name, c->pid);
	}
	for (size_t i = 0; i < borrows->n; i++)
		if (!by_key(owners, borrows->row[i].owner))
			problem(r,
				"%s: borrower %" PRIu64 " has owner %" PRIu64
				", which the port does "
				"not know",
				h->name, borrows->row[i].key, borrows->row[i].owner);
}

/*
 * Everything at the port belongs to an existing owner; an address without memory belongs to the
 * daemon.
 */
static void check_hangs(const struct audit_host *h, struct audit_report *r)
{
	const struct audit_list *grants = &h->port[SIO_KIND_GRANT];

	for (size_t i = 0; i < grants->n; i++)
		if (is_address(&grants->row[i]) && grants->row[i].owner)
			problem(r, "%s: grant %" PRIu64 " is of nothing, and owner %" PRIu64 "'s",
				h->name, grants->row[i].key, grants->row[i].owner);
	for (unsigned kind = SIO_KIND_MEM; kind < AUDIT_PORT_KINDS; kind++) {
		for (size_t i = 0; i < h->port[kind].n; i++) {
			const struct audit_row *row = &h->port[kind].row[i];

			if (row->owner && !by_key(&h->port[SIO_KIND_OWNER], row->owner))
				problem(r,
					"%s: object %" PRIu64
					" of kind %u belongs to owner %" PRIu64
					", which is not there",
					h->name, row->key, kind, row->owner);
		}
	}
}

/*
 * Memory that is not a segment must be rings of data interrupts: the number of rings is that of the
 * owner's senders, including lost ones.
 */
static void check_rings(const struct audit_host *h, uint64_t owner, struct audit_report *r)
{
	const struct audit_list *mem = &h->port[SIO_KIND_MEM];
	const struct audit_list *dints = &h->daemon[SIO_LIST_DINTS];
	size_t rings = 0, found = 0;

	for (size_t i = 0; i < dints->n; i++)
		rings += dints->row[i].owner == owner ? dints->row[i].refs : 0;
	for (size_t i = 0; i < mem->n; i++)
		found += mem->row[i].owner == owner &&
			 !by_address(&h->daemon[SIO_LIST_SEGMENTS], mem->row[i].address) &&
			 !orphaned(h, owner, mem->row[i].address);
	if (found > rings)
		problem(r,
			"%s: %zu pieces of memory of owner %" PRIu64 " at the port are neither "
			"segment nor ring",
			h->name, found - rings, owner);
}

static void check_memory(const struct audit_host *h, struct audit_report *r)
{
	const struct audit_list *mem = &h->port[SIO_KIND_MEM];
	const struct audit_list *segments = &h->daemon[SIO_LIST_SEGMENTS];
	const struct audit_list *owners = &h->port[SIO_KIND_OWNER];

	for (size_t i = 0; i < mem->n; i++) {
		const struct audit_row *s = by_address(segments, mem->row[i].address);

		if (s && s->bytes != mem->row[i].bytes)
			problem(r, "%s: segment %#x has %" PRIu64 " bytes, its memory %" PRIu64,
				h->name, s->id, s->bytes, mem->row[i].bytes);
	}
	for (size_t i = 0; i < segments->n; i++)
		if (segments->row[i].address && !by_address(mem, segments->row[i].address))
			problem(r, "%s: segment %#x has no memory at the port", h->name,
				segments->row[i].id);
	check_rings(h, 0, r);
	for (size_t i = 0; i < owners->n; i++)
		check_rings(h, owners->row[i].key, r);
}

/* Every DMA mapping of a device has a borrower, and one in quarantine a borrower that has ended. */
static void check_dma(const struct audit_host *h, struct audit_report *r)
{
	const struct audit_list *port = &h->port[SIO_KIND_DMAMAP];
	const struct audit_list *daemon = &h->daemon[SIO_LIST_DMA_MAPS];

	for (size_t i = 0; i < port->n; i++) {
		const struct audit_row *p = &port->row[i], *d = by_key(daemon, p->key), *b;

		if (!d)
			problem(r,
				"%s: DMA map %" PRIu64 " of device %#x at the port is unknown to "
				"smartiod",
				h->name, p->key, p->id);
		if (!quarantined(p))
			continue;
		b = by_owner(&h->daemon[SIO_LIST_BORROWS], p->owner);
		if (!b || !quarantined(b))
			problem(r,
				"%s: DMA map %" PRIu64 " of device %#x is quarantined without a "
				"borrower that ended",
				h->name, p->key, p->id);
	}
	for (size_t i = 0; i < daemon->n; i++)
		if (!by_key(port, daemon->row[i].key))
			problem(r, "%s: DMA map %" PRIu64 " of device %#x is not at the port",
				h->name, daemon->row[i].key, daemon->row[i].id);
}

/*
 * The memory of every queue of a device is pinned, even if the program that made the queue has
 * ended: otherwise the queue would point to memory that may belong to others by now.
 */
static void check_queues(const struct audit_host *h, struct audit_report *r)
{
	const struct audit_list *maps = &h->daemon[SIO_LIST_DMA_MAPS];

	for (unsigned i = 0; h->device && i < h->n_devices; i++) {
		const struct audit_device *dev = &h->device[i];
		uint64_t held = 0;

		for (size_t j = 0; j < maps->n; j++)
			held += maps->row[j].id == dev->fdid ? maps->row[j].refs : 0;
		if (dev->queue_pairs > held / 2)
			problem(r,
				"%s: %s has %" PRIu64 " queue pairs in use, but memory is held for "
				"%" PRIu64 " queues",
				h->name, dev->name, dev->queue_pairs, held);
	}
}

/* A requester entry exists for the windows that the device uses. */
static void check_requesters(const struct audit_host *h, struct audit_report *r)
{
	const struct audit_list *q = &h->port[SIO_KIND_REQUESTER];
	const struct audit_list *maps = &h->daemon[SIO_LIST_DMA_MAPS];

	for (size_t i = 0; i < q->n; i++) {
		bool used = false;

		for (size_t j = 0; j < maps->n; j++)
			used |= maps->row[j].id == q->row[i].id && maps->row[j].node != h->node;
		if (q->row[i].id && !used)
			problem(r, "%s: device %#x has a requester entry and no window", h->name,
				q->row[i].id);
	}
}

static void check_maps(const struct audit_host *h, struct audit_report *r)
{
	const struct audit_list *c = &h->daemon[SIO_LIST_CONNECTIONS];
	size_t irqs = h->port[SIO_KIND_IRQ].n, dints = h->daemon[SIO_LIST_DINTS].n;

	for (size_t i = 0; i < c->n; i++)
		if (c->row[i].address && (c->row[i].flags & SIO_ROW_LIVE) &&
		    !by_address(&h->port[SIO_KIND_MAP], c->row[i].address))
			problem(r,
				"%s: the connection to segment %#x of node %u has a window that the "
				"port does not know",
				h->name, c->row[i].id, c->row[i].node);
	if (irqs != dints)
		problem(r, "%s: the port has %zu interrupts, smartiod %zu data interrupts", h->name,
			irqs, dints);
	if (h->port[SIO_KIND_DEVICE].n != h->n_devices)
		problem(r, "%s: %zu devices are open at the port, the host has %u", h->name,
			h->port[SIO_KIND_DEVICE].n, h->n_devices);
}

/* Every borrower is a program of a host that is up. */
static void check_borrowers(const struct audit *a, const struct audit_host *h,
			    struct audit_report *r)
{
	const struct audit_list *b = &h->daemon[SIO_LIST_BORROWS];

	for (size_t i = 0; i < b->n; i++) {
		const struct audit_host *at = find_host(a, b->row[i].node);
		const struct audit_list *clients = at ? &at->daemon[SIO_LIST_CLIENTS] : NULL;
		bool found = at && at->far;

		if (quarantined(&b->row[i]))
			continue;
		for (size_t j = 0; clients && at->up && j < clients->n; j++)
			found |= !b->row[i].pid || clients->row[j].pid == b->row[i].pid;
		if (!found)
			problem(r,
				"%s: device %#x is lent to process %u of node %u, which is no client "
				"there",
				h->name, b->row[i].id, b->row[i].pid, b->row[i].node);
	}
}

/* @all: count those in quarantine, too. */
static void count_rows(const struct audit_list *l, uint32_t node, bool all, size_t *n,
		       uint64_t *bytes)
{
	*n = 0;
	*bytes = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (l->row[i].node != node || (!all && quarantined(&l->row[i])))
			continue;
		(*n)++;
		*bytes += l->row[i].bytes;
	}
}

/*
 * What @from has granted to @to is what @to has mapped of it. A grant in quarantine waits until a
 * lost host says that it has released it, or starts again; it may be mapped or not.
 */
static void check_windows(const struct audit_host *from, const struct audit_host *to,
			  struct audit_report *r)
{
	uint64_t granted_bytes, all_bytes, mapped_bytes;
	size_t granted, all, mapped;

	count_rows(&from->port[SIO_KIND_GRANT], to->node, false, &granted, &granted_bytes);
	count_rows(&from->port[SIO_KIND_GRANT], to->node, to->up, &all, &all_bytes);
	count_rows(&to->port[SIO_KIND_MAP], from->node, true, &mapped, &mapped_bytes);
	if (!from->up)
		granted = all = 0;
	if (!to->up)
		mapped = 0;
	if (mapped < granted || mapped > all)
		problem(r, "%s granted %zu ranges to %s%s, which mapped %zu of %s", from->name,
			granted, to->name, to->up ? "" : " (down)", mapped,
			from->up ? "it" : "it (down)");
	else if (granted && granted == all && granted_bytes != mapped_bytes)
		problem(r, "%s granted %" PRIu64 " bytes to %s, which mapped %" PRIu64, from->name,
			granted_bytes, to->name, mapped_bytes);
}

/* Every connection of others to a segment of this host leads to an existing segment. */
static void check_connections(const struct audit *a, const struct audit_host *h,
			      struct audit_report *r)
{
	const struct audit_list *segments = &h->daemon[SIO_LIST_SEGMENTS];

	for (unsigned i = 0; i < a->n_hosts; i++) {
		const struct audit_list *c = &a->host[i].daemon[SIO_LIST_CONNECTIONS];

		for (size_t j = 0; j < c->n; j++) {
			bool found = false;

			if (c->row[j].node != h->node || !(c->row[j].flags & SIO_ROW_LIVE) ||
			    strcmp(c->row[j].name, "bar") == 0)
				continue;
			for (size_t k = 0; h->up && k < segments->n; k++)
				found |= segments->row[k].id == c->row[j].id;
			if (!found)
				problem(r,
					"%s: process %u is connected to segment %#x of %s, which is "
					"not there",
					a->host[i].name, c->row[j].pid, c->row[j].id, h->name);
		}
	}
}

static bool sees(const struct audit_host *h, uint32_t node)
{
	const struct audit_row *row = by_key(&h->daemon[SIO_LIST_NODES], node);

	return row && (row->flags & SIO_ROW_UP);
}

static void check_pair(const struct audit_host *a, const struct audit_host *b,
		       struct audit_report *r)
{
	if (a->far || b->far)
		return;
	if (a->up && b->up && sees(a, b->node) != sees(b, a->node))
		problem(r, "%s says that %s is %s, but %s says that %s is %s", a->name, b->name,
			sees(a, b->node) ? "up" : "down", b->name, a->name,
			sees(b, a->node) ? "up" : "down");
	if (a->up && !b->up && sees(a, b->node))
		problem(r, "%s says that %s is up, but it is down", a->name, b->name);
	if (b->up && !a->up && sees(b, a->node))
		problem(r, "%s says that %s is up, but it is down", b->name, a->name);
	check_windows(a, b, r);
	check_windows(b, a, r);
}

static void check_system(const struct audit *a, struct audit_report *r)
{
	if (!a->room.runs && !a->machine)
		problem(r, "the machine room does not run");
	if (a->orphans)
		problem(r, "%u program%s outlived the keeper that tied %s to a host", a->orphans,
			a->orphans == 1 ? "" : "s", a->orphans == 1 ? "it" : "them");
	if (a->strangers)
		problem(r, "%u file%s in the state directory that no program of the cluster makes",
			a->strangers, a->strangers == 1 ? "" : "s");
	for (unsigned i = 0; i < a->n_hosts; i++) {
		const struct audit_host *h = &a->host[i];

		if (h->far)
			continue;
		if (h->up != h->process.runs)
			problem(r, "%s: smartiod %s", h->name,
				h->up ? "answers, but its pid file names no process that runs"
				      : "runs, but does not answer");
		if (a->room.runs && !h->port_socket)
			problem(r, "%s: port.%u is missing", h->name, h->node);
		if (h->up && (!h->node_socket || !h->peer_socket))
			problem(r, "%s: node.%u or peer.%u is missing", h->name, h->node, h->node);
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void audit_check(const struct audit *a, struct audit_report *r)
{
	check_system(a, r);
	for (unsigned i = 0; i < a->n_hosts; i++) {
		const struct audit_host *h = &a->host[i];

		if (h->far)
			continue;
		for (unsigned j = i + 1; j < a->n_hosts; j++)
			check_pair(h, &a->host[j], r);
		check_connections(a, h, r);
		if (!h->up)
			continue;
		check_owners(h, r);
		check_hangs(h, r);
		check_memory(h, r);
		check_dma(h, r);
		check_queues(h, r);
		check_requesters(h, r);
		check_maps(h, r);
		check_borrowers(a, h, r);
	}
	if (r->n_problems > 1)
		qsort(r->problem, r->n_problems, sizeof(*r->problem), by_text);
}

void audit_free(struct audit *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < a->n_hosts; i++) {
		free(a->host[i].device);
		for (unsigned kind = 0; kind < AUDIT_DAEMON_KINDS; kind++)
			free(a->host[i].daemon[kind].row);
		for (unsigned kind = 0; kind < AUDIT_PORT_KINDS; kind++)
			free(a->host[i].port[kind].row);
	}
	free(a);
}
