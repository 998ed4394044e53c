/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio device list, smartio device info. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "view/view.h"

static void to_row(struct tool_table *t, const struct tool_view_host *h,
		   const struct tool_view_device *d)
{
	char size[TOOL_SIZE_TEXT], links[TOOL_LINKS_TEXT];
	bool in = tool_device_is_in(d);

	tool_table_cell(t, "%s", d->topo->name);
	tool_table_cell(t, "%#x", d->topo->fdid);
	tool_table_cell(t, "%s", d->topo->type);
	/* Of a real drive its manager alone knows. */
	tool_table_cell(t, "%s", d->topo->size ? tool_size(d->topo->size, size) : "-");
	tool_table_cell(t, "%s", h->topo->name);
	tool_table_cell(t, "%s", tool_view_links(h, links));
	tool_table_cell(t, "%s", tool_device_state_name(d->state));
	if (in) {
		tool_table_cell(t, "%u", sio_from_le32(d->info.borrowers));
		tool_table_cell(t, "%u", sio_from_le32(d->info.quarantined));
	} else {
		tool_table_cell(t, "-");
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
	tool_json_add(o, "devices", array);
	return tool_json_print("device-list", o);
}

static int list(const struct tool_command *self, int argc, char **argv)
{
	struct json_object *array = NULL;
	struct tool_table *t = NULL;
	struct tool_view *v;
	struct sio_err err;
	int status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	if (tool_where.json)
		array = tool_json_array();
	else
		t = tool_table_new(
			"DEVICE|ID|TYPE|>SIZE|LENDER|LINKS|STATE|>BORROWERS|>QUARANTINED");
	for (unsigned i = 0; i < v->n; i++) {
		const struct tool_view_host *h = &v->host[i];

		for (unsigned k = 0; k < h->topo->n_devices; k++) {
			if (array)
				tool_json_append(array, tool_view_device_json(h, &h->device[k]));
			else
				to_row(t, h, &h->device[k]);
		}
	}
	status = finish(v, array, t);
	tool_view_close(v);
	return status;
}

const struct tool_command tool_device_list_command = {
	.name = "device list",
	.summary = "List the devices that hosts lend, and who uses them",
	.help = "States: free, shared or exclusive (borrowed); out (not in its slot); host down; unknown (its\n"
		"host does not answer). LINKS are those of the lender: with none up, its own programs alone can\n"
		"borrow. QUARANTINED counts the borrowers that ended while the device may still use their\n"
		"memory.\n",
	.schemas = "device-list",
	.run = list};

static int print_info(const struct tool_view_host *h, const struct tool_view_device *d)
{
	struct tool_table *t = tool_table_new("PROPERTY|VALUE");
	char size[TOOL_SIZE_TEXT], links[TOOL_LINKS_TEXT];
	uint32_t bdf;

#define ROW(name, ...) (tool_table_cell(t, name), tool_table_cell(t, __VA_ARGS__))
	ROW("name", "%s", d->topo->name);
	ROW("id", "%#x", d->topo->fdid);
	ROW("type", "%s", d->topo->type);
	ROW("size", "%s (%" PRIu64 " bytes)", tool_size(d->topo->size, size), d->topo->size);
	ROW("lender", "%s (node %u)", h->topo->name, h->topo->node);
	ROW("lender's links", "%s", tool_view_links(h, links));
	ROW("state", "%s", tool_device_state_name(d->state));
	if (tool_device_is_in(d)) {
		bdf = sio_from_le32(d->info.bdf);
		ROW("borrowers", "%u", sio_from_le32(d->info.borrowers));
		ROW("quarantined", "%u", sio_from_le32(d->info.quarantined));
		ROW("resets seen", "%u", sio_from_le32(d->info.generation));
		ROW("kind of reset", "%s", tool_device_reset_name(d));
		ROW("since its last reset", "%s", tool_device_use_name(d));
		ROW("slot, bdf", "%u, %02x:%02x.%u", sio_from_le32(d->info.slot), bdf >> 8 & 0xff,
		    bdf >> 3 & 0x1f, bdf & 7);
		ROW("class", "%06x", sio_from_le32(d->info.class_code));
		ROW("vendor, device", "%04x, %04x", sio_from_le32(d->info.vendor),
		    sio_from_le32(d->info.device));
		for (unsigned i = 0; i < 6; i++)
			if (sio_from_le64(d->info.bar_size[i]))
				ROW("memory (BAR)", "%u: %s", i,
				    tool_size(sio_from_le64(d->info.bar_size[i]), size));
	}
#undef ROW
	return tool_table_end(t);
}

static int info(const struct tool_command *self, int argc, char **argv)
{
	const struct tool_view_device *d = NULL;
	const struct tool_view_host *h = NULL;
	struct tool_view *v;
	struct sio_err err;
	int first, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	if (tool_view_find_device(v, argv[first], &h, &d, &err) < 0)
		status = tool_fail(&err);
	else if (tool_where.json)
		status = tool_json_print("device-info", tool_view_device_json(h, d));
	else
		status = print_info(h, d);
	tool_view_close(v);
	return status;
}

const struct tool_command tool_device_info_command = {
	.name = "device info",
	.summary = "Tell all that is known of a device",
	.help = "DEVICE is a name of the topology file, or an id such as 0x401.\n",
	.schemas = "device-info",
	.words = {{"DEVICE", TOOL_DEVICES}},
	.run = info};
