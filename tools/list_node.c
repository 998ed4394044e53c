/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio node list, smartio topology. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "hosts.h"
#include "output.h"
#include "picture.h"

/* Programs of the API on a host: what owns things there. */
static int count_programs(struct tool_host *h, unsigned *ret, struct sio_err *reterr)
{
	struct sio_wire_row *row;
	size_t n;
	int r;

	*ret = 0;
	if (!h->up)
		return 0;
	r = tool_client_list(&h->client, SIO_LIST_CLIENTS, &row, &n, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		*ret += sio_from_le64(row[i].owner) != 0;
	free(row);
	return 0;
}

static struct json_object *adapter_json(struct tool_host *h, unsigned index,
					const struct sio_rep_adapter *a)
{
	const struct sio_topo_adapter *topo = &h->topo->adapter[index];
	struct json_object *o = tool_json_object();

	tool_json_number(o, "adapter", index);
	tool_json_number(o, "link_width", topo->link_width);
	tool_json_number(o, "link_generation", topo->link_generation);
	tool_json_number(o, "window_size", topo->window_size);
	tool_json_number(o, "entries_total", topo->lut_entries);
	tool_json_number(o, "requesters_total", topo->requesters);
	if (a) {
		tool_json_bool(o, "link_up", sio_from_le32(a->link_up));
		tool_json_number(o, "entries_free", sio_from_le32(a->entries_free));
		tool_json_number(o, "requesters_free", sio_from_le32(a->requesters_free));
	}
	return o;
}

static int node_json(struct tool_host *h, unsigned programs, struct json_object *array,
		     struct sio_err *reterr)
{
	struct json_object *o = tool_json_object(), *adapters = tool_json_array();
	struct sio_rep_adapter a;
	int r = 0;

	tool_json_string(o, "name", h->topo->name);
	tool_json_number(o, "node", h->topo->node);
	tool_json_bool(o, "up", h->up);
	tool_json_number(o, "ram", h->topo->ram_size);
	tool_json_bool(o, "iommu", h->topo->iommu);
	tool_json_number(o, "devices", h->topo->n_devices);
	tool_json_number(o, "programs", programs);
	for (unsigned i = 0; r == 0 && i < h->topo->n_adapters; i++) {
		if (h->up)
			r = tool_host_adapter(h, i, &a, reterr);
		tool_json_append(adapters, adapter_json(h, i, h->up && r == 0 ? &a : NULL));
	}
	tool_json_add(o, "adapters", adapters);
	tool_json_append(array, o);
	return r;
}

static int node_row(struct tool_host *h, unsigned programs, struct tool_table *t,
		    struct sio_err *reterr)
{
	char size[TOOL_SIZE_TEXT], links[64] = "";
	unsigned up = 0, free_entries = 0, all = 0;
	struct sio_rep_adapter a;
	int r = 0;

	for (unsigned i = 0; r == 0 && h->up && i < h->topo->n_adapters; i++) {
		r = tool_host_adapter(h, i, &a, reterr);
		if (r < 0)
			break;
		up += sio_from_le32(a.link_up) != 0;
		free_entries += sio_from_le32(a.entries_free);
		all += sio_from_le32(a.entries_total);
	}
	if (r < 0)
		return r;
	if (h->up)
		snprintf(links, sizeof(links), "%u/%u up", up, h->topo->n_adapters);
	tool_table_cell(t, "%s", h->topo->name);
	tool_table_cell(t, "%u", h->topo->node);
	tool_table_cell(t, "%s", h->up ? "up" : "down");
	tool_table_cell(t, "%s", tool_size(h->topo->ram_size, size));
	tool_table_cell(t, "%s", h->topo->iommu ? "on" : "off");
	tool_table_cell(t, "%s", links);
	if (h->up)
		tool_table_cell(t, "%u of %u", all - free_entries, all);
	else
		tool_table_cell(t, "-");
	tool_table_cell(t, "%u", h->topo->n_devices);
	tool_table_cell(t, "%u", programs);
	return 0;
}

static int list(const struct tool_command *self, int argc, char **argv)
{
	struct json_object *array = NULL;
	struct tool_table *t = NULL;
	struct tool_hosts *h;
	struct sio_err err;
	unsigned programs;
	int r = 0, status = 0;

	if (tool_options_words(self, argc, argv, NULL, 0, &status) < 0)
		return status;
	if (tool_hosts_open(&h, &err) < 0)
		return tool_fail(&err);
	if (tool_where.json)
		array = tool_json_array();
	else
		t = tool_table_new(
			"NODE|>ID|STATE|>RAM|IOMMU|LINKS|>ENTRIES USED|>DEVICES|>PROGRAMS");
	for (unsigned i = 0; r == 0 && i < h->n; i++) {
		r = count_programs(&h->host[i], &programs, &err);
		if (r == 0)
			r = array ? node_json(&h->host[i], programs, array, &err)
				  : node_row(&h->host[i], programs, t, &err);
	}
	tool_hosts_close(h);
	if (r < 0) {
		json_object_put(array);
		tool_table_free(t);
		return tool_fail(&err);
	}
	return array ? tool_json_end(array) : tool_table_end(t);
}

const struct tool_command tool_node_list_command = {
	"node list", "", "List the hosts: which are up, their links, tables and programs", "",
	list};

static bool host_up(void *ctx, uint32_t node)
{
	struct tool_host *h = tool_hosts_find(ctx, node);

	return h && h->up;
}

/* The lender knows its device best. Valid until the next call. */
static const char *device_note(void *ctx, uint32_t fdid)
{
	static char text[80];
	struct tool_host *h = tool_hosts_find(ctx, fdid >> 8);
	struct sio_rep_dev_list d;

	if (!h || !h->up || tool_host_device(h, fdid, &d, NULL) < 0)
		return NULL;
	if (sio_from_le32(d.borrowers) == 0)
		return "not lent";
	snprintf(text, sizeof(text), "lent %u time%s%s", sio_from_le32(d.borrowers),
		 sio_from_le32(d.borrowers) == 1 ? "" : "s",
		 sio_from_le32(d.exclusive) ? ", exclusively" : "");
	return text;
}

static int draw(const struct tool_command *self, int argc, char **argv)
{
	struct tool_picture_live live = {.host_up = host_up, .device_note = device_note};
	struct tool_hosts *h;
	struct sio_err err;
	int status = 0;

	if (tool_options_words(self, argc, argv, NULL, 0, &status) < 0)
		return status;
	if (tool_where.json)
		return tool_usage(self->name,
				  "a picture has no JSON; 'smartio node list --json' has");
	if (tool_hosts_open(&h, &err) < 0)
		return tool_fail(&err);
	live.ctx = h;
	if (tool_picture(stdout, h->topology, &live) < 0 || fflush(stdout) != 0)
		status = tool_error("cannot write to standard output");
	tool_hosts_close(h);
	return status;
}

const struct tool_command tool_topology_command = {
	"topology", "", "Draw the cluster: switches, links, hosts and devices", "", draw};
