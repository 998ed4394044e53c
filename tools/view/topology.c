/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio topology: the cluster as it is now, drawn or as JSON. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "view/picture.h"

static const char *attach_name(enum sio_attach_kind kind)
{
	static const char *const name[] = {[SIO_ATTACH_NONE] = "none",
					   [SIO_ATTACH_SWITCH] = "switch",
					   [SIO_ATTACH_LINK] = "link"};

	return name[kind];
}

/* What an adapter is joined to: a switch by name, a cable by its number. */
static void add_attachment(struct json_object *o, const struct tool_view *v,
			   const struct sio_topo_adapter *a)
{
	tool_json_string(o, "attached_to", attach_name(a->attach));
	if (a->attach == SIO_ATTACH_SWITCH)
		tool_json_string(o, "switch", v->topology->sw[a->attach_index].name);
	else if (a->attach == SIO_ATTACH_LINK)
		tool_json_number(o, "cable", a->attach_index);
}

static struct json_object *host_json(const struct tool_view *v, const struct tool_view_host *h)
{
	struct json_object *o = tool_json_object(), *adapters = tool_json_array();
	struct json_object *devices = tool_json_array(), *a;

	tool_view_host_json(o, h);
	tool_json_number(o, "ram", h->topo->ram_size);
	tool_json_hex(o, "ram_base", h->topo->ram_base);
	tool_json_bool(o, "iommu", h->topo->iommu);
	for (unsigned i = 0; i < h->topo->n_adapters; i++) {
		a = tool_view_adapter_json(&h->adapter[i], i);
		add_attachment(a, v, h->adapter[i].topo);
		tool_json_append(adapters, a);
	}
	for (unsigned i = 0; i < h->topo->n_devices; i++)
		tool_json_append(devices, tool_view_device_json(h, &h->device[i]));
	tool_json_add(o, "adapters", adapters);
	tool_json_add(o, "devices", devices);
	return o;
}

static int print_json(const struct tool_view *v)
{
	struct json_object *o = tool_json_object(), *switches = tool_json_array();
	struct json_object *hosts = tool_json_array(), *name;

	tool_json_string(o, "cluster", v->topology->name);
	tool_json_string(o, "machine_room", v->room ? "up" : "down");
	for (unsigned i = 0; i < v->topology->n_switches; i++) {
		name = json_object_new_string(v->topology->sw[i].name);
		tool_json_append(switches, name);
	}
	for (unsigned i = 0; i < v->n; i++)
		tool_json_append(hosts, host_json(v, &v->host[i]));
	tool_json_add(o, "switches", switches);
	tool_json_add(o, "hosts", hosts);
	return tool_json_print("topology", o);
}

static int topology(const struct tool_command *self, int argc, char **argv)
{
	struct tool_view *v;
	struct sio_err err;
	int status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	if (tool_where.json)
		status = print_json(v);
	else if (tool_picture(stdout, v) < 0 || fflush(stdout) != 0)
		status = tool_error_code(-EIO, "cannot write to standard output");
	tool_view_close(v);
	return status;
}

const struct tool_command tool_topology_command = {
	.name = "topology",
	.summary = "Draw the cluster as it is now: switches, links, hosts and devices",
	.help = "The picture is drawn with characters.\n",
	.schemas = "topology",
	.run = topology};
