/* SPDX-License-Identifier: BSD-2-Clause */
/* A cluster as it is now, as the data of smartio/topology. */
#include "base/output.h"
#include "view/view.h"

static const char *attach_name(enum sio_attach_kind kind)
{
	static const char *const name[] = {[SIO_ATTACH_NONE] = "none",
					   [SIO_ATTACH_SWITCH] = "switch",
					   [SIO_ATTACH_LINK] = "link"};

	return name[kind];
}

void tool_view_attachment_json(struct json_object *o, const struct tool_view *v,
			       const struct sio_topo_adapter *a)
{
	tool_json_string(o, "attached_to", attach_name(a->attach));
	if (a->attach == SIO_ATTACH_SWITCH)
		tool_json_string(o, "switch", v->topology->sw[a->attach_index].name);
	else if (a->attach == SIO_ATTACH_LINK)
		tool_json_number(o, "cable", a->attach_index);
}

/* Of a machine, whose own firmware decides, there is no range. */
static struct json_object *chassis_json(const struct sio_topo_host *h, unsigned index)
{
	const struct sio_topo_chassis *c = &h->chassis[index];
	struct json_object *o = tool_json_object();
	char in[TOOL_CHASSIS_TEXT];

	tool_json_string(o, "name", tool_view_chassis(h, index + 1, in));
	tool_json_number(o, "link_width", c->link_width);
	tool_json_number(o, "link_generation", c->link_generation);
	if (c->range_size) {
		tool_json_hex(o, "range_base", c->range_base);
		tool_json_number(o, "range_size", c->range_size);
	}
	return o;
}

static struct json_object *host_json(const struct tool_view *v, const struct tool_view_host *h)
{
	struct json_object *o = tool_json_object(), *adapters = tool_json_array();
	struct json_object *devices = tool_json_array(), *chassis = tool_json_array(), *a;
	char in[TOOL_CHASSIS_TEXT];

	tool_view_host_json(o, h);
	tool_json_string(o, "kind", h->topo->machine ? "machine" : "host");
	tool_json_number(o, "ram", h->topo->ram_size);
	tool_json_hex(o, "ram_base", h->topo->ram_base);
	if (h->topo->pool_size)
		tool_json_number(o, "pool", h->topo->pool_size);
	if (!h->topo->real)
		tool_json_bool(o, "iommu", h->topo->iommu);
	for (unsigned i = 0; i < h->topo->n_chassis; i++)
		tool_json_append(chassis, chassis_json(h->topo, i));
	for (unsigned i = 0; i < h->topo->n_adapters; i++) {
		a = tool_view_adapter_json(&h->adapter[i], i);
		tool_view_attachment_json(a, v, h->adapter[i].topo);
		if (h->topo->adapter[i].in)
			tool_json_string(a, "in",
					 tool_view_chassis(h->topo, h->topo->adapter[i].in, in));
		tool_json_append(adapters, a);
	}
	for (unsigned i = 0; i < h->topo->n_devices; i++)
		tool_json_append(devices, tool_view_device_json(h, &h->device[i]));
	tool_json_add(o, "adapters", adapters);
	tool_json_add(o, "devices", devices);
	tool_json_add(o, "chassis", chassis);
	return o;
}

static struct json_object *switch_json(const struct tool_view *v, unsigned index)
{
	struct json_object *o = tool_json_object();

	tool_json_string(o, "name", v->topology->sw[index].name);
	tool_json_string(o, "state",
			 !v->outage				  ? "unknown"
			 : sio_outage_switch_in(v->outage, index) ? "up"
								  : "down");
	return o;
}

static struct json_object *trunk_json(const struct tool_view *v, unsigned index)
{
	const struct sio_topo_trunk *l = &v->topology->trunk[index];
	struct json_object *o = tool_json_object(), *ends = tool_json_array();

	for (unsigned i = 0; i < 2; i++)
		tool_json_append(ends, tool_json_word(v->topology->sw[l->sw[i]].name));
	tool_json_add(o, "switches", ends);
	tool_json_string(o, "link",
			 tool_link_state_name(!v->outage		     ? TOOL_LINK_UNKNOWN
					      : tool_trunk_is_down(v, index) ? TOOL_LINK_DOWN
									     : TOOL_LINK_UP));
	tool_json_number(o, "link_width", l->link_width);
	tool_json_number(o, "link_generation", l->link_generation);
	return o;
}

struct json_object *tool_view_json(const struct tool_view *v)
{
	struct json_object *o = tool_json_object(), *switches = tool_json_array();
	struct json_object *hosts = tool_json_array(), *trunks = tool_json_array();

	tool_json_string(o, "cluster", v->topology->name);
	tool_json_string(o, "machine_room", v->room ? "up" : "down");
	for (unsigned i = 0; i < v->topology->n_switches; i++)
		tool_json_append(switches, switch_json(v, i));
	for (unsigned i = 0; i < v->topology->n_trunks; i++)
		tool_json_append(trunks, trunk_json(v, i));
	for (unsigned i = 0; i < v->n; i++)
		tool_json_append(hosts, host_json(v, &v->host[i]));
	for (unsigned i = 0; i < v->n_machines; i++)
		tool_json_append(hosts, tool_machine_json(v, &v->machine[i]));
	tool_json_add(o, "switches", switches);
	tool_json_add(o, "trunks", trunks);
	tool_json_add(o, "hosts", hosts);
	return o;
}
