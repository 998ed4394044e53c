/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "envelope/envelope.h"
#include "base/local.h"
#include "base/output.h"
#include "base/room.h"
#include "base/state.h"
#include "core/devstate.h"
#include "smartio/uapi.h"
#include "view/view_machine.h"

enum tool_device_state tool_device_state_of(const struct sio_rep_dev_list *info)
{
	if (sio_from_le32(info->borrowers) == 0)
		return TOOL_DEVICE_FREE;
	return sio_from_le32(info->exclusive) ? TOOL_DEVICE_EXCLUSIVE : TOOL_DEVICE_SHARED;
}

static int look_at_adapters(struct tool_view_host *h, struct sio_err *reterr)
{
	for (unsigned i = 0; i < h->topo->n_adapters; i++) {
		struct tool_view_adapter *a = &h->adapter[i];
		int r = tool_host_adapter(h->host, i, &a->info, reterr);

		if (r < 0)
			return r;
		a->link = sio_from_le32(a->info.link_up) ? TOOL_LINK_UP : TOOL_LINK_DOWN;
		h->links_up += a->link == TOOL_LINK_UP;
	}
	return 0;
}

static int look_at_devices(struct tool_view_host *h, struct sio_err *reterr)
{
	for (unsigned i = 0; i < h->topo->n_devices; i++) {
		struct tool_view_device *d = &h->device[i];
		int r = tool_host_device(h->host, d->topo->fdid, &d->info, reterr);

		if (r < 0 && r != -ENODEV)
			return r;
		d->state = r < 0 ? TOOL_DEVICE_OUT : tool_device_state_of(&d->info);
	}
	return 0;
}

/* Nothing is known of the objects of a host that cannot be asked. */
static void forget(struct tool_view_host *h)
{
	h->links_up = 0;
	for (unsigned i = 0; i < h->topo->n_adapters; i++)
		h->adapter[i].link = TOOL_LINK_UNKNOWN;
	for (unsigned i = 0; i < h->topo->n_devices; i++)
		h->device[i].state = h->host->state == TOOL_HOST_DOWN ? TOOL_DEVICE_HOST_DOWN
								      : TOOL_DEVICE_UNKNOWN;
}

static int look_at_host(struct tool_view *v, struct tool_view_host *h, struct sio_err *reterr)
{
	struct sio_err err;
	int r = 0;

	for (unsigned i = 0; i < h->topo->n_adapters; i++)
		h->adapter[i].topo = &h->topo->adapter[i];
	h->device = tool_alloc(h->topo->n_devices, sizeof(*h->device));
	for (unsigned i = 0; i < h->topo->n_devices; i++)
		h->device[i].topo = &h->topo->device[i];
	if (h->host->answers)
		r = look_at_adapters(h, &err);
	if (h->host->answers && r == 0)
		r = look_at_devices(h, &err);
	if (r < 0 && !tool_host_lost(v->hosts, h->host, &err)) {
		if (reterr)
			*reterr = err;
		return r;
	}
	if (!h->host->answers)
		forget(h);
	if (h->host->state == TOOL_HOST_SILENT)
		tool_note("smartio: note: %s", h->host->why.text);
	return 0;
}

/* The adapter at the other end of a cable; NULL: this adapter is not on a cable. */
static const struct tool_view_adapter *other_end(const struct tool_view *v,
						 const struct tool_view_adapter *a,
						 const struct tool_view_host **ret_host)
{
	for (unsigned i = 0; a->topo->attach == SIO_ATTACH_LINK && i < v->n; i++) {
		*ret_host = &v->host[i];
		for (unsigned k = 0; k < v->host[i].topo->n_adapters; k++) {
			const struct tool_view_adapter *b = &v->host[i].adapter[k];

			if (b != a && b->topo->attach == SIO_ATTACH_LINK &&
			    b->topo->attach_index == a->topo->attach_index)
				return b;
		}
	}
	return NULL;
}

/*
 * A host reports its own end of a link. A cable between two hosts is down at both ends if it is at
 * one, or if the host at one is.
 */
static void join_ends(struct tool_view *v)
{
	bool down[SIO_MAX_HOSTS][SIO_MAX_ADAPTERS] = {0};

	for (unsigned i = 0; i < v->n; i++) {
		for (unsigned k = 0; k < v->host[i].topo->n_adapters; k++) {
			const struct tool_view_host *h;
			const struct tool_view_adapter *b =
				other_end(v, &v->host[i].adapter[k], &h);

			down[i][k] =
				v->host[i].adapter[k].link == TOOL_LINK_UP && b &&
				(b->link == TOOL_LINK_DOWN || h->host->state == TOOL_HOST_DOWN);
		}
	}
	for (unsigned i = 0; i < v->n; i++) {
		for (unsigned k = 0; k < v->host[i].topo->n_adapters; k++) {
			if (!down[i][k])
				continue;
			v->host[i].adapter[k].link = TOOL_LINK_DOWN;
			v->host[i].links_up--;
		}
	}
}

static int look(struct tool_hosts *hosts, struct tool_view **ret, struct sio_err *reterr)
{
	struct tool_view *v = tool_alloc(1, sizeof(*v));
	struct tool_program room;
	int r = 0;

	v->hosts = hosts;
	v->topology = hosts->topology;
	v->room = strcmp(hosts->dir, TOOL_LOCAL_STATE) == 0 ||
		  tool_state_program(hosts->dir, "emu", false, &room) == 0;
	/* A real machine has no machine room to ask. */
	if (v->room && v->topology->n_switches)
		tool_room_outage(hosts->dir, v->topology, &v->outage, NULL);
	v->n = hosts->n;
	for (unsigned i = 0; i < v->n; i++) {
		v->host[i].host = &hosts->host[i];
		v->host[i].topo = hosts->host[i].topo;
	}
	for (unsigned i = 0; r == 0 && i < v->n; i++)
		r = look_at_host(v, &v->host[i], reterr);
	if (r < 0) {
		tool_view_close(v);
		return r;
	}
	join_ends(v);
	tool_view_look_at_machines(v);
	tool_view_look_at_lent(v);
	*ret = v;
	return 0;
}

int tool_view_open(struct tool_view **ret, struct sio_err *reterr)
{
	return tool_view_open_only(NULL, ret, reterr);
}

int tool_view_open_only(const char *node, struct tool_view **ret, struct sio_err *reterr)
{
	struct tool_hosts *hosts;
	int r = tool_hosts_open_only(node, &hosts, reterr);

	return r < 0 ? r : look(hosts, ret, reterr);
}

int tool_view_open_dir(const char *dir, struct tool_view **ret, struct sio_err *reterr)
{
	struct tool_hosts *hosts;
	int r = tool_hosts_open_dir(dir, &hosts, reterr);

	return r < 0 ? r : look(hosts, ret, reterr);
}

void tool_view_close(struct tool_view *v)
{
	if (!v)
		return;
	for (unsigned i = 0; i < v->n; i++)
		free(v->host[i].device);
	tool_view_forget_machines(v);
	sio_outage_free(v->outage);
	tool_hosts_close(v->hosts);
	free(v);
}

const char *tool_link_state_name(enum tool_link_state state)
{
	static const char *const name[] = {
		[TOOL_LINK_UNKNOWN] = "unknown", [TOOL_LINK_UP] = "up", [TOOL_LINK_DOWN] = "down"};

	return name[state];
}

bool tool_trunk_is_down(const struct tool_view *v, unsigned trunk)
{
	const unsigned *sw = v->topology->trunk[trunk].sw;

	return v->outage &&
	       (!sio_outage_trunk_in(v->outage, trunk) || !sio_outage_switch_in(v->outage, sw[0]) ||
		!sio_outage_switch_in(v->outage, sw[1]));
}

const char *tool_device_state_name(enum tool_device_state state)
{
	static const char *const name[] = {
		[TOOL_DEVICE_UNKNOWN] = "unknown", [TOOL_DEVICE_HOST_DOWN] = "host down",
		[TOOL_DEVICE_OUT] = "out",	   [TOOL_DEVICE_FREE] = "free",
		[TOOL_DEVICE_SHARED] = "shared",   [TOOL_DEVICE_EXCLUSIVE] = "exclusive",
	};

	return name[state];
}

bool tool_device_is_in(const struct tool_view_device *d)
{
	return d->state >= TOOL_DEVICE_FREE;
}

const char *tool_view_links(const struct tool_view_host *h, char text[TOOL_LINKS_TEXT])
{
	*text = '\0';
	if (h->host->answers)
		snprintf(text, TOOL_LINKS_TEXT, "%u/%u up", h->links_up, h->topo->n_adapters);
	return text;
}

void tool_view_host_json(struct json_object *o, const struct tool_view_host *h)
{
	tool_json_string(o, "name", h->topo->name);
	tool_json_number(o, "node", h->topo->node);
	tool_json_string(o, "state", tool_host_state_name(h->host->state));
}

struct json_object *tool_view_adapter_json(const struct tool_view_adapter *a, unsigned index)
{
	struct json_object *o = tool_json_object();
	bool known = a->link != TOOL_LINK_UNKNOWN; /* of a real host the file says nothing */

	tool_json_number(o, "adapter", index);
	tool_json_string(o, "link", tool_link_state_name(a->link));
	tool_json_number(o, "link_width", a->topo->link_width);
	tool_json_number(o, "link_generation", a->topo->link_generation);
	tool_json_number(o, "window_size",
			 known ? sio_from_le64(a->info.window_size) : a->topo->window_size);
	tool_json_hex(o, "window_base", a->topo->window_base);
	tool_json_number(o, "entries_total",
			 known ? sio_from_le32(a->info.entries_total) : a->topo->lut_entries);
	tool_json_number(o, "requesters_total",
			 known ? sio_from_le32(a->info.requesters_total) : a->topo->requesters);
	if (!known)
		return o;
	tool_json_number(o, "entries_free", sio_from_le32(a->info.entries_free));
	tool_json_number(o, "requesters_free", sio_from_le32(a->info.requesters_free));
	return o;
}

bool tool_device_is_named(const struct tool_view_device *d, const char *name)
{
	char *end;
	unsigned long id = strtoul(name, &end, 0);

	return strcmp(d->topo->name, name) == 0 || (*name && *end == '\0' && id == d->topo->fdid);
}

int tool_view_find_device(const struct tool_view *v, const char *name,
			  const struct tool_view_host **ret_host,
			  const struct tool_view_device **ret, struct sio_err *reterr)
{
	char names[160] = "";
	size_t used = 0;

	for (unsigned i = 0; i < v->n; i++) {
		const struct tool_view_host *h = &v->host[i];

		for (unsigned k = 0; k < h->topo->n_devices; k++) {
			if (tool_device_is_named(&h->device[k], name)) {
				*ret_host = h;
				*ret = &h->device[k];
				return 0;
			}
			if (used < sizeof(names))
				used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
							 used ? ", " : "", h->device[k].topo->name);
		}
	}
	return sio_fail(reterr, -ENODEV, "cluster '%s' has no device '%s'; it has %s",
			v->topology->name, name, *names ? names : "none");
}

const char *tool_device_reset_name(const struct tool_view_device *d)
{
	uint32_t resets = sio_from_le32(d->info.resets);

	if (resets & 1u << SIO_RESET_FUNCTION)
		return "function";
	return resets & 1u << SIO_RESET_BUS ? "bus" : "none";
}

const char *tool_device_use_name(const struct tool_view_device *d)
{
	return sio_dev_state_name((enum sio_dev_state)sio_from_le32(d->info.state));
}

const char *tool_device_vfio_name(const struct tool_view_host *h, const struct tool_view_device *d)
{
	if (h->host->client.world != SIO_WORLD_VFIO)
		return NULL;
	return sio_from_le32(d->info.iommu) == SIO_IOMMU_IOMMUFD ? "iommufd" : "group";
}

const char *tool_physical_function(const struct tool_view_host *h, const struct tool_view_device *d)
{
	return d->topo->physical ? h->topo->device[d->topo->physical - 1].name : NULL;
}

const char *tool_view_chassis(const struct sio_topo_host *h, unsigned in,
			      char text[TOOL_CHASSIS_TEXT])
{
	size_t at = TOOL_CHASSIS_TEXT - 1;

	text[at] = '\0';
	for (; in; in = h->chassis[in - 1].in) {
		const char *name = h->chassis[in - 1].name;

		if (text[at])
			text[--at] = '/';
		at -= strlen(name);
		memcpy(text + at, name, strlen(name));
	}
	return text + at;
}

struct json_object *tool_view_device_json(const struct tool_view_host *h,
					  const struct tool_view_device *d)
{
	struct json_object *o = tool_json_object(), *bars;
	const struct sio_rep_dev_list *info = &d->info;
	char in[TOOL_CHASSIS_TEXT];

	tool_json_string(o, "name", d->topo->name);
	tool_json_number(o, "id", d->topo->fdid);
	tool_json_string(o, "type", d->topo->type);
	if (tool_physical_function(h, d))
		tool_json_string(o, "physical_function", tool_physical_function(h, d));
	tool_json_string(o, "host", h->topo->name);
	tool_json_number(o, "node", h->topo->node);
	tool_json_string(o, "host_state", tool_host_state_name(h->host->state));
	tool_json_number(o, "links_up", h->links_up);
	tool_json_number(o, "links", h->topo->n_adapters);
	tool_json_number(o, "size", d->topo->size);
	tool_json_string(o, "state", tool_device_state_name(d->state));
	if (d->topo->in)
		tool_json_string(o, "in", tool_view_chassis(h->topo, d->topo->in, in));
	if (!tool_device_is_in(d))
		return o;
	tool_json_number(o, "memory_hops", info->hops[0]);
	tool_json_number(o, "borrowers", sio_from_le32(info->borrowers));
	tool_json_bool(o, "exclusive", sio_from_le32(info->exclusive));
	tool_json_number(o, "quarantined", sio_from_le32(info->quarantined));
	tool_json_number(o, "generation", sio_from_le32(info->generation));
	tool_json_string(o, "reset", tool_device_reset_name(d));
	tool_json_string(o, "reset_state", tool_device_use_name(d));
	tool_json_number(o, "class", sio_from_le32(info->class_code));
	tool_json_number(o, "vendor", sio_from_le32(info->vendor));
	tool_json_number(o, "device", sio_from_le32(info->device));
	tool_json_number(o, "bdf", sio_from_le32(info->bdf));
	tool_json_number(o, "slot", sio_from_le32(info->slot));
	tool_json_hex(o, "serial", sio_from_le64(info->serial));
	bars = tool_json_array();
	for (unsigned i = 0; i < 6; i++)
		tool_json_append(bars, sio_json_hex(sio_from_le64(info->bar_size[i])));
	tool_json_add(o, "bar_sizes", bars);
	if (tool_device_vfio_name(h, d))
		tool_json_string(o, "vfio", tool_device_vfio_name(h, d));
	return o;
}
