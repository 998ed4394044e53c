/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Observers, as the command "smartio" and its audit: they list the objects of daemon and port, page
 * by page, and read all counters, while other programs come and go. The keys of a list ascend,
 * whatever changes between two pages; the lists have all nodes, and the observer itself; counters
 * only grow.
 */
#include <string.h>

#include "work/life.h"
#include "work/raw.h"
#include "run/run.h"

#define COUNTERS 64u

struct tool {
	struct sim_raw r;
	uint64_t counted[COUNTERS]; /* the daemon's counters, as last read */
};

static const struct sio_topo_host *host_of(uint32_t node)
{
	for (unsigned h = 0; h < sim_hosts(); h++)
		if (sim_node(h) == node)
			return &sim_cluster->topology->host[h];
	return NULL;
}

static bool has_device(const struct sio_topo_host *h, uint32_t fdid)
{
	for (unsigned i = 0; i < h->n_devices; i++)
		if (h->device[i].fdid == fdid)
			return true;
	return false;
}

/* Does the row of a list make sense? */
static bool is_right(uint32_t kind, const struct sio_wire_row *row)
{
	uint32_t node = sio_from_le32(row->node), flags = sio_from_le32(row->flags);
	const struct sio_topo_host *own = &sim_cluster->topology->host[sim_self()->host];

	if (sio_from_le64(row->key) == 0 || memchr(row->name, '\0', sizeof(row->name)) == NULL)
		return false;
	switch (kind) {
	case SIO_LIST_NODES:
		return host_of(node) && strcmp(host_of(node)->name, row->name) == 0 &&
		       (node != own->node || flags & SIO_ROW_UP);
	case SIO_LIST_SEGMENTS:
		return node == own->node && flags & (SIO_ROW_LIVE | SIO_ROW_QUARANTINED);
	case SIO_LIST_CLIENTS:
		return node == own->node && sio_from_le32(row->id) <= SIO_CLIENT_KEEPER;
	case SIO_LIST_BORROWS:
		/* A restarted daemon learns the borrower only when its program reconnects. */
		return has_device(own, sio_from_le32(row->id)) &&
		       (host_of(node) || (node == 0 && sim_outliving));
	default:
		return true;
	}
}

/*
 * Return: whether all pages were answered. *ret_rows: how many rows they have; *ret_me: whether
 * this program is in one.
 */
static bool list(struct tool *t, uint32_t kind, unsigned *ret_rows, bool *ret_me)
{
	const struct sio_rep_list *rep = (const struct sio_rep_list *)&t->r.reply;
	struct sio_msg_list m = {.kind = sio_to_le32(kind)};
	uint64_t last = 0;
	uint32_t n;

	*ret_rows = 0;
	*ret_me = false;
	do {
		m.after = sio_to_le64(last);
		if (sim_raw_ask(&t->r, &m.h, sizeof(m), SIO_MSG_LIST) != 0)
			return false;
		n = sio_from_le32(rep->count);
		if (n > SIO_LIST_ROWS || (n == 0 && sio_from_le32(rep->more)))
			sim_fail("records", "%s: a page of list %u has %u rows", sim_self()->name,
				 kind, n);
		for (uint32_t i = 0; i < n; i++) {
			const struct sio_wire_row *row = &rep->row[i];

			if (sio_from_le64(row->key) <= last || !is_right(kind, row))
				sim_fail("records",
					 "%s: list %u has %#llx behind %#llx, of node %u",
					 sim_self()->name, kind,
					 (unsigned long long)sio_from_le64(row->key),
					 (unsigned long long)last, sio_from_le32(row->node));
			last = sio_from_le64(row->key);
			*ret_me |= sio_from_le32(row->pid) == sim_self()->pid;
		}
		*ret_rows += n;
	} while (sio_from_le32(rep->more));
	return true;
}

static void look(struct tool *t)
{
	static const uint32_t kinds[] = {SIO_LIST_NODES,       SIO_LIST_SEGMENTS, SIO_LIST_CLIENTS,
					 SIO_LIST_CONNECTIONS, SIO_LIST_BORROWS,  SIO_LIST_DMA_MAPS,
					 SIO_LIST_DINTS};
	uint32_t kind = SIO_LIST_PORT + 1 + (uint32_t)sim_pick(SIO_KIND_VECTOR);
	uint64_t daemons = sim_pick(3);
	unsigned rows;
	bool me;

	if (daemons)
		kind = kinds[sim_pick(sizeof(kinds) / sizeof(kinds[0]))];
	if (!list(t, kind, &rows, &me))
		return;
	if (kind == SIO_LIST_NODES && rows != sim_hosts())
		sim_fail("records", "%s: %u nodes are listed of %u", sim_self()->name, rows,
			 sim_hosts());
	if (kind == SIO_LIST_CLIENTS && !me)
		sim_fail("records", "%s: who asks is not among the clients", sim_self()->name);
}

/*
 * The daemon's counters of messages and requests only grow; that of clients' by this one at least.
 */
static void compare(struct tool *t, const struct sio_rep_stats *rep, uint32_t n)
{
	static const char *const grow[] = {"client_messages", "peer_messages_received",
					   "peer_messages_sent", "port_requests", "port_events"};

	for (uint32_t i = 0; i < n; i++) {
		uint64_t value = sio_from_le64(rep->counter[i].value);

		for (unsigned k = 0; k < sizeof(grow) / sizeof(grow[0]); k++)
			if (strcmp(rep->counter[i].name, grow[k]) == 0 &&
			    value < t->counted[i] + (k == 0))
				sim_fail("records", "%s: %s is %llu, was %llu", sim_self()->name,
					 grow[k], (unsigned long long)value,
					 (unsigned long long)t->counted[i]);
		t->counted[i] = value;
	}
}

static void count(struct tool *t)
{
	const struct sio_rep_stats *rep = (const struct sio_rep_stats *)&t->r.reply;
	uint32_t kind = (uint32_t)sim_pick(8), id = (uint32_t)sim_pick(3), n;
	struct sio_msg_stats m = {.kind = sio_to_le32(kind)};
	uint32_t error;

	if (kind == 3 && sim_has_drives(0))
		id = sim_pick_drive(NULL, NULL)->fdid;
	m.id = sio_to_le32(id);
	error = sim_raw_ask(&t->r, &m.h, sizeof(m), SIO_MSG_STATS);
	if (error == 0 && kind > 6)
		sim_fail("states", "%s: there are counters of kind %u", sim_self()->name, kind);
	if (error != 0)
		return;
	n = sio_from_le32(rep->count);
	if (n > COUNTERS)
		sim_fail("records", "%s: %u counters", sim_self()->name, n);
	for (uint32_t i = 0; i < n; i++)
		if (!*rep->counter[i].name ||
		    !memchr(rep->counter[i].name, '\0', sizeof(rep->counter[i].name)))
			sim_fail("records", "%s: counter %u has no name", sim_self()->name, i);
	if (kind == 0)
		compare(t, rep, n);
}

static void tool_main(struct sim_proc *p)
{
	struct tool t = {.r = {.w = &p->world, .fd = p->world.connect(&p->world)}};
	uint64_t acts = 4 + sim_pick(100);

	if (t.r.fd < 0)
		return;
	if (sim_raw_greet(&t.r, SIO_CLIENT_TOOL)) {
		for (; acts > 0 && !sim_stopping_programs(); acts--) {
			if (sim_pick(2))
				look(&t);
			else
				count(&t);
			sim_sleep(sim_pick(20 * SIM_MS));
		}
	}
	p->world.close(&p->world, t.r.fd);
	p->result = 0;
}

const struct sim_workload sim_work_tool = {.name = "tool", .weight = 1, .main = tool_main};
