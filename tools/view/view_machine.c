/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts of kind machine in a view: what the machine room knows of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/output.h"
#include "view/view_machine.h"

/* False: the room does not answer, or is of an older build and does not understand. */
static bool look_at(const char *dir, struct tool_view_machine *m)
{
	struct timespec t;

	if (tool_room_machine(dir, m->topo->node, m->adapter, m->topo->n_adapters, NULL) < 0)
		return false;
	for (unsigned i = 0; i < m->topo->n_devices; i++)
		if (tool_room_served(dir, m->topo->device[i].fdid, &m->device[i], NULL) < 0)
			return false;
	clock_gettime(CLOCK_MONOTONIC, &t);
	m->at = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
	m->known = true;
	for (unsigned i = 0; i < m->topo->n_adapters; i++) {
		m->up |= m->adapter[i].attached;
		m->links_up += m->adapter[i].linked;
	}
	for (unsigned i = 0; i < m->topo->n_devices; i++)
		m->up |= m->device[i].attached;
	return true;
}

void tool_view_look_at_machines(struct tool_view *v)
{
	/* A room that is stopped takes its time not to answer: it is not asked again and again. */
	bool answers = v->room && (v->outage || !v->topology->n_switches);

	v->n_machines = v->topology->n_machines;
	v->machine = tool_alloc(v->n_machines, sizeof(*v->machine));
	for (unsigned i = 0; i < v->n_machines; i++) {
		struct tool_view_machine *m = &v->machine[i];

		m->topo = &v->topology->machine[i];
		m->device = tool_alloc(m->topo->n_devices, sizeof(*m->device));
		answers = answers && look_at(v->hosts->dir, m);
	}
}

void tool_view_forget_machines(struct tool_view *v)
{
	for (unsigned i = 0; i < v->n_machines; i++) {
		free(v->machine[i].device);
		tool_view_forget_lent(&v->machine[i]);
	}
	free(v->machine);
}

const char *tool_machine_name_of_state(const struct tool_view_machine *m)
{
	return !m->known ? "unknown" : m->up ? "up" : "down";
}

enum tool_link_state tool_machine_link(const struct tool_view_machine *m, unsigned adapter)
{
	if (!m->known)
		return TOOL_LINK_UNKNOWN;
	return m->adapter[adapter].linked ? TOOL_LINK_UP : TOOL_LINK_DOWN;
}

const char *tool_machine_device_state(const struct tool_view_machine *m, unsigned device)
{
	return !m->known ? "unknown" : m->device[device].attached ? "attached" : "detached";
}

const char *tool_machine_links(const struct tool_view_machine *m, char text[TOOL_LINKS_TEXT])
{
	*text = '\0';
	if (m->known)
		snprintf(text, TOOL_LINKS_TEXT, "%u/%u up", m->links_up, m->topo->n_adapters);
	return text;
}

bool tool_room_value(const struct tool_room_part *p, const char *name, uint64_t *ret)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (strcmp(p->counter[i].name, name) != 0)
			continue;
		*ret = p->counter[i].value;
		return true;
	}
	return false;
}

/* ---- as JSON ---- */

static void add_free(struct json_object *o, const struct tool_room_part *p, const char *total,
		     const char *used, const char *name)
{
	uint64_t n, taken;

	if (tool_room_value(p, total, &n) && tool_room_value(p, used, &taken))
		tool_json_number(o, name, n - taken);
}

struct json_object *tool_machine_adapter_json(const struct tool_view_machine *m, unsigned index)
{
	const struct sio_topo_adapter *a = &m->topo->adapter[index];
	const struct tool_room_part *p = &m->adapter[index];
	struct json_object *o = tool_json_object();

	tool_json_number(o, "adapter", index);
	tool_json_string(o, "link", tool_link_state_name(tool_machine_link(m, index)));
	tool_json_number(o, "link_width", a->link_width);
	tool_json_number(o, "link_generation", a->link_generation);
	tool_json_number(o, "window_size", a->window_size);
	tool_json_number(o, "entries_total", a->lut_entries);
	tool_json_number(o, "requesters_total", a->requesters);
	if (!m->known)
		return o;
	tool_json_bool(o, "attached", p->attached);
	tool_json_bool(o, "link_enabled", p->ready);
	tool_json_bool(o, "traffic_counted", p->counted);
	add_free(o, p, "lut_total", "lut_used", "entries_free");
	add_free(o, p, "requesters_total", "requesters_used", "requesters_free");
	return o;
}

static struct json_object *device_json(const struct tool_view_machine *m, unsigned index)
{
	const struct sio_topo_device *d = &m->topo->device[index];
	struct json_object *o = tool_json_object();

	tool_json_string(o, "name", d->name);
	tool_json_number(o, "id", d->fdid);
	tool_json_string(o, "type", d->type);
	tool_json_string(o, "host", m->topo->name);
	tool_json_number(o, "node", m->topo->node);
	tool_json_string(o, "host_state", tool_machine_name_of_state(m));
	tool_json_number(o, "links_up", m->links_up);
	tool_json_number(o, "links", m->topo->n_adapters);
	tool_json_number(o, "size", d->size);
	tool_json_string(o, "state", tool_machine_device_state(m, index));
	return o;
}

void tool_machine_head_json(struct json_object *o, const struct tool_view_machine *m)
{
	tool_json_string(o, "name", m->topo->name);
	tool_json_number(o, "node", m->topo->node);
	tool_json_string(o, "kind", "machine");
	tool_json_string(o, "state", tool_machine_name_of_state(m));
	tool_json_string(o, "window", m->topo->mapped ? "mapped" : "exact");
	/* Without mapped windows the size is whoever starts it to say. */
	if (m->topo->mapped)
		tool_json_number(o, "ram", m->topo->ram_size);
}

struct json_object *tool_machine_json(const struct tool_view *v, const struct tool_view_machine *m)
{
	struct json_object *o = tool_json_object(), *adapters = tool_json_array();
	struct json_object *devices = tool_json_array(), *a;

	tool_machine_head_json(o, m);
	for (unsigned i = 0; i < m->topo->n_adapters; i++) {
		a = tool_machine_adapter_json(m, i);
		tool_view_attachment_json(a, v, &m->topo->adapter[i]);
		tool_json_append(adapters, a);
	}
	for (unsigned i = 0; i < m->topo->n_devices; i++)
		tool_json_append(devices, device_json(m, i));
	tool_json_add(o, "adapters", adapters);
	tool_json_add(o, "devices", devices);
	tool_json_add(o, "chassis", tool_json_array());
	return o;
}
