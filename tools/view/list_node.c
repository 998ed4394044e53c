/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio node list. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/command.h"
#include "base/output.h"
#include "view/view_machine.h"

/* Of how many daemons each is connected with how many. */
struct peers {
	unsigned up, all; /* all 0: nobody knows */
};

/* What is asked for the listing, beside the view. */
struct more {
	unsigned programs[SIO_MAX_HOSTS]; /* by index in the view */
	struct peers host[SIO_MAX_HOSTS], *machine;
};

static int list_rows(struct tool_view *v, struct tool_host *h, uint32_t kind,
		     struct sio_wire_row **ret, size_t *ret_n, struct sio_err *reterr)
{
	struct sio_err err;

	*ret = NULL;
	*ret_n = 0;
	if (!h->answers || tool_client_list(&h->client, kind, ret, ret_n, &err) == 0 ||
	    tool_host_lost(v->hosts, h, &err))
		return 0;
	*reterr = err;
	return err.code;
}

/* Programs of the API on a host, which own the objects there. */
static int count_programs(struct tool_view *v, struct tool_host *h, unsigned *ret,
			  struct sio_err *reterr)
{
	struct sio_wire_row *row;
	size_t n;
	int r = list_rows(v, h, SIO_LIST_CLIENTS, &row, &n, reterr);

	for (size_t i = 0; i < n; i++)
		*ret += sio_from_le64(row[i].owner) != 0;
	free(row);
	return r;
}

static void add_peer(struct peers *p, const struct sio_wire_row *row)
{
	p->all++;
	p->up += (sio_from_le32(row->flags) & SIO_ROW_UP) != 0;
}

/*
 * What a host's daemon says of its peers. No daemon of a machine can be asked here; those of the
 * hosts know of one that has an address whether they are connected with it.
 */
static int count_peers(struct tool_view *v, unsigned host, struct more *m, struct sio_err *reterr)
{
	struct sio_wire_row *row;
	size_t n;
	int r = list_rows(v, v->host[host].host, SIO_LIST_NODES, &row, &n, reterr);

	for (size_t i = 0; i < n; i++) {
		uint32_t node = sio_from_le32(row[i].node);

		if (node != v->host[host].topo->node)
			add_peer(&m->host[host], &row[i]);
		for (unsigned k = 0; k < v->n_machines; k++)
			if (v->machine[k].topo->node == node)
				add_peer(&m->machine[k], &row[i]);
	}
	free(row);
	return r;
}

static int ask(struct tool_view *v, struct more *m, struct sio_err *reterr)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < v->n; i++) {
		r = count_programs(v, v->host[i].host, &m->programs[i], reterr);
		if (r == 0)
			r = count_peers(v, i, m, reterr);
	}
	return r;
}

/* ---- as JSON ---- */

static void add_peers(struct json_object *o, const struct peers *p)
{
	if (p->all == 0)
		return;
	tool_json_number(o, "peers", p->all);
	tool_json_number(o, "peers_up", p->up);
}

static struct json_object *host_json(const struct tool_view_host *h, unsigned programs,
				     const struct peers *peers)
{
	struct json_object *o = tool_json_object(), *adapters = tool_json_array();

	tool_view_host_json(o, h);
	tool_json_string(o, "kind", h->topo->machine ? "machine" : "host");
	tool_json_number(o, "ram", h->topo->ram_size);
	tool_json_hex(o, "ram_base", h->topo->ram_base);
	if (!h->topo->real)
		tool_json_bool(o, "iommu", h->topo->iommu);
	tool_json_number(o, "devices", h->topo->n_devices);
	if (h->host->answers)
		tool_json_number(o, "programs", programs);
	add_peers(o, peers);
	for (unsigned i = 0; i < h->topo->n_adapters; i++)
		tool_json_append(adapters, tool_view_adapter_json(&h->adapter[i], i));
	tool_json_add(o, "adapters", adapters);
	return o;
}

static struct json_object *machine_json(const struct tool_view_machine *m,
					const struct peers *peers)
{
	struct json_object *o = tool_json_object(), *adapters = tool_json_array();

	tool_machine_head_json(o, m);
	tool_json_number(o, "devices", m->topo->n_devices);
	add_peers(o, peers);
	for (unsigned i = 0; i < m->topo->n_adapters; i++)
		tool_json_append(adapters, tool_machine_adapter_json(m, i));
	tool_json_add(o, "adapters", adapters);
	return o;
}

static int print_json(const struct tool_view *v, const struct more *m)
{
	struct json_object *o = tool_json_object(), *array = tool_json_array();

	for (unsigned i = 0; i < v->n; i++)
		tool_json_append(array, host_json(&v->host[i], m->programs[i], &m->host[i]));
	for (unsigned i = 0; i < v->n_machines; i++)
		tool_json_append(array, machine_json(&v->machine[i], &m->machine[i]));
	tool_json_string(o, "cluster", v->topology->name);
	tool_json_add(o, "nodes", array);
	return tool_json_print("node-list", o);
}

/* ---- as a table ---- */

static void put_peers(struct tool_table *t, const struct peers *p)
{
	if (p->all)
		tool_table_cell(t, "%u/%u", p->up, p->all);
	else
		tool_table_cell(t, "-");
}

static void host_row(struct tool_table *t, const struct tool_view_host *h, unsigned programs,
		     const struct peers *peers)
{
	char size[TOOL_SIZE_TEXT], links[TOOL_LINKS_TEXT];
	unsigned used = 0, all = 0;

	for (unsigned i = 0; h->host->answers && i < h->topo->n_adapters; i++) {
		const struct sio_rep_adapter *a = &h->adapter[i].info;

		used += sio_from_le32(a->entries_total) - sio_from_le32(a->entries_free);
		all += sio_from_le32(a->entries_total);
	}
	tool_table_cell(t, "%s", h->topo->name);
	tool_table_cell(t, "%u", h->topo->node);
	tool_table_cell(t, "%s", h->topo->machine ? "machine" : "host");
	tool_table_cell(t, "%s", tool_host_state_name(h->host->state));
	tool_table_cell(t, "%s", tool_size(h->topo->ram_size, size));
	/* Of a real host its devices say. */
	tool_table_cell(t, "%s", h->topo->real ? "-" : h->topo->iommu ? "on" : "off");
	tool_table_cell(t, "%s", tool_view_links(h, links));
	put_peers(t, peers);
	if (h->host->answers)
		tool_table_cell(t, "%u of %u", used, all);
	else
		tool_table_cell(t, "-");
	tool_table_cell(t, "%u", h->topo->n_devices);
	if (h->host->answers)
		tool_table_cell(t, "%u", programs);
	else
		tool_table_cell(t, "-");
}

/* Its memory, its IOMMU and its programs are the machine's own matter. */
static void machine_row(struct tool_table *t, const struct tool_view_machine *m,
			const struct peers *peers)
{
	char size[TOOL_SIZE_TEXT], links[TOOL_LINKS_TEXT];
	uint64_t used = 0, all = 0, value;

	for (unsigned i = 0; i < m->topo->n_adapters; i++) {
		if (tool_room_value(&m->adapter[i], "lut_used", &value))
			used += value;
		if (tool_room_value(&m->adapter[i], "lut_total", &value))
			all += value;
	}
	tool_table_cell(t, "%s", m->topo->name);
	tool_table_cell(t, "%u", m->topo->node);
	tool_table_cell(t, "machine");
	tool_table_cell(t, "%s", tool_machine_name_of_state(m));
	tool_table_cell(t, "%s", m->topo->mapped ? tool_size(m->topo->ram_size, size) : "-");
	tool_table_cell(t, "-");
	tool_table_cell(t, "%s", tool_machine_links(m, links));
	put_peers(t, peers);
	if (m->known)
		tool_table_cell(t, "%" PRIu64 " of %" PRIu64, used, all);
	else
		tool_table_cell(t, "-");
	tool_table_cell(t, "%u", m->topo->n_devices);
	tool_table_cell(t, "-");
}

static int print_table(const struct tool_view *v, const struct more *m)
{
	struct tool_table *t =
		tool_table_new("NODE|>ID|KIND|STATE|>RAM|IOMMU|LINKS|>PEERS|>ENTRIES USED|"
			       ">DEVICES|>PROGRAMS");

	for (unsigned i = 0; i < v->n; i++)
		host_row(t, &v->host[i], m->programs[i], &m->host[i]);
	for (unsigned i = 0; i < v->n_machines; i++)
		machine_row(t, &v->machine[i], &m->machine[i]);
	return tool_table_end(t);
}

static int list(const struct tool_command *self, int argc, char **argv)
{
	struct tool_view *v;
	struct sio_err err;
	struct more *m;
	int status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	m = tool_alloc(1, sizeof(*m));
	m->machine = tool_alloc(v->n_machines, sizeof(*m->machine));
	if (ask(v, m, &err) < 0)
		status = tool_fail(&err);
	else
		status = tool_where.json ? print_json(v, m) : print_table(v, m);
	free(m->machine);
	free(m);
	tool_view_close(v);
	return status;
}

const struct tool_command tool_node_list_command = {
	.name = "node list",
	.summary = "List the hosts and machines: which are up, their links, tables and programs",
	.help = "States of a host: up; down (its smartiod does not run: 'smartio cluster restart-node'); no answer\n"
		"(smartiod runs, but does not answer or takes no more clients). Of a machine: up (QEMU, or another\n"
		"initiator, has one of its adapters or devices), down, unknown (the machine room does not answer).\n"
		"PEERS: with how many daemons of other hosts a host's daemon is connected; of a machine, how many\n"
		"daemons of hosts are connected with its. Also how many entries of their adapters' look-up tables\n"
		"are in use, and how many programs of the API run there.\n",
	.schemas = "node-list",
	.run = list};
