/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio node list. */
#include <stdio.h>
#include <stdlib.h>

#include "base/command.h"
#include "base/output.h"
#include "view/view.h"

/* Programs of the API on a host, which own the objects there. */
static int count_programs(struct tool_view *v, struct tool_host *h, unsigned *ret,
			  struct sio_err *reterr)
{
	struct sio_wire_row *row;
	struct sio_err err;
	size_t n;

	*ret = 0;
	if (!h->up)
		return 0;
	if (tool_client_list(&h->client, SIO_LIST_CLIENTS, &row, &n, &err) < 0) {
		if (tool_host_lost(v->hosts, h, &err))
			return 0;
		*reterr = err;
		return err.code;
	}
	for (size_t i = 0; i < n; i++)
		*ret += sio_from_le64(row[i].owner) != 0;
	free(row);
	return 0;
}

static struct json_object *to_json(const struct tool_view_host *h, unsigned programs)
{
	struct json_object *o = tool_json_object(), *adapters = tool_json_array();

	tool_view_host_json(o, h);
	tool_json_number(o, "ram", h->topo->ram_size);
	tool_json_hex(o, "ram_base", h->topo->ram_base);
	tool_json_bool(o, "iommu", h->topo->iommu);
	tool_json_number(o, "devices", h->topo->n_devices);
	if (h->host->up)
		tool_json_number(o, "programs", programs);
	for (unsigned i = 0; i < h->topo->n_adapters; i++)
		tool_json_append(adapters, tool_view_adapter_json(&h->adapter[i], i));
	tool_json_add(o, "adapters", adapters);
	return o;
}

static void to_row(struct tool_table *t, const struct tool_view_host *h, unsigned programs)
{
	char size[TOOL_SIZE_TEXT], links[TOOL_LINKS_TEXT];
	unsigned used = 0, all = 0;

	for (unsigned i = 0; h->host->up && i < h->topo->n_adapters; i++) {
		const struct sio_rep_adapter *a = &h->adapter[i].info;

		used += sio_from_le32(a->entries_total) - sio_from_le32(a->entries_free);
		all += sio_from_le32(a->entries_total);
	}
	tool_table_cell(t, "%s", h->topo->name);
	tool_table_cell(t, "%u", h->topo->node);
	tool_table_cell(t, "%s", tool_host_state_name(h->host->state));
	tool_table_cell(t, "%s", tool_size(h->topo->ram_size, size));
	tool_table_cell(t, "%s", h->topo->iommu ? "on" : "off");
	tool_table_cell(t, "%s", tool_view_links(h, links));
	if (h->host->up) {
		tool_table_cell(t, "%u of %u", used, all);
		tool_table_cell(t, "%u", h->topo->n_devices);
		tool_table_cell(t, "%u", programs);
	} else {
		tool_table_cell(t, "-");
		tool_table_cell(t, "%u", h->topo->n_devices);
		tool_table_cell(t, "-");
	}
}

static int finish(const struct tool_view *v, struct json_object *array, struct tool_table *t)
{
	struct json_object *o;

	if (t)
		return tool_table_end(t);
	o = tool_json_object();
	tool_json_string(o, "cluster", v->topology->name);
	tool_json_add(o, "nodes", array);
	return tool_json_print("node-list", o);
}

static int list(const struct tool_command *self, int argc, char **argv)
{
	struct json_object *array = NULL;
	struct tool_table *t = NULL;
	struct tool_view *v;
	struct sio_err err;
	unsigned programs;
	int r = 0, status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	if (tool_where.json)
		array = tool_json_array();
	else
		t = tool_table_new(
			"NODE|>ID|STATE|>RAM|IOMMU|LINKS|>ENTRIES USED|>DEVICES|>PROGRAMS");
	for (unsigned i = 0; r == 0 && i < v->n; i++) {
		r = count_programs(v, v->host[i].host, &programs, &err);
		if (r < 0)
			break;
		if (array)
			tool_json_append(array, to_json(&v->host[i], programs));
		else
			to_row(t, &v->host[i], programs);
	}
	if (r < 0) {
		json_object_put(array);
		tool_table_free(t);
		status = tool_fail(&err);
	} else {
		status = finish(v, array, t);
	}
	tool_view_close(v);
	return status;
}

const struct tool_command tool_node_list_command = {
	.name = "node list",
	.summary = "List the hosts: which are up, their links, tables and programs",
	.help = "States: up; down (its smartiod does not run: 'smartio cluster restart-node'); no answer\n"
		"(smartiod runs, but does not answer or takes no more clients). Also how many entries of their\n"
		"adapters' look-up tables are in use, and how many programs of the API run there.\n",
	.schemas = "node-list",
	.run = list};
