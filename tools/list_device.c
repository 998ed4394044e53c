/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio device list, smartio device info. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "hosts.h"
#include "output.h"

/* A device as the topology places it, and as its lender sees it while that is up. */
struct device {
	const struct sio_topo_device *topo;
	const struct sio_topo_host *host;
	bool up, gone;		      /* gone: its host is up, and it is not in its slot */
	struct sio_rep_dev_list info; /* valid if up */
};

static int collect(struct tool_hosts *h, struct device **ret, size_t *ret_n, struct sio_err *reterr)
{
	struct device *list = NULL;
	size_t n = 0;
	int r;

	for (unsigned i = 0; i < h->n; i++) {
		for (unsigned j = 0; j < h->host[i].topo->n_devices; j++) {
			struct device d = {.topo = &h->host[i].topo->device[j],
					   .host = h->host[i].topo,
					   .up = h->host[i].up};

			r = d.up ? tool_host_device(&h->host[i], d.topo->fdid, &d.info, reterr) : 0;
			d.gone = r == -ENODEV;
			d.up &= !d.gone;
			if (r < 0 && !d.gone)
				goto fail;
			list = tool_grow(list, n + 1, sizeof(*list));
			list[n++] = d;
		}
	}
	*ret = list;
	*ret_n = n;
	return 0;
fail:
	free(list);
	return r;
}

static const char *state_of(const struct device *d)
{
	if (d->gone)
		return "gone";
	if (!d->up)
		return "down";
	if (sio_from_le32(d->info.borrowers) == 0)
		return "free";
	return sio_from_le32(d->info.exclusive) ? "exclusive" : "shared";
}

static struct json_object *to_json(const struct device *d)
{
	struct json_object *o = tool_json_object(), *bars;

	tool_json_string(o, "name", d->topo->name);
	tool_json_number(o, "id", d->topo->fdid);
	tool_json_string(o, "type", d->topo->type);
	tool_json_string(o, "host", d->host->name);
	tool_json_number(o, "node", d->host->node);
	tool_json_number(o, "size", d->topo->size);
	tool_json_string(o, "state", state_of(d));
	if (!d->up)
		return o;
	tool_json_number(o, "borrowers", sio_from_le32(d->info.borrowers));
	tool_json_bool(o, "exclusive", sio_from_le32(d->info.exclusive));
	tool_json_number(o, "quarantined", sio_from_le32(d->info.quarantined));
	tool_json_number(o, "generation", sio_from_le32(d->info.generation));
	tool_json_number(o, "class", sio_from_le32(d->info.class_code));
	tool_json_number(o, "vendor", sio_from_le32(d->info.vendor));
	tool_json_number(o, "device", sio_from_le32(d->info.device));
	tool_json_number(o, "bdf", sio_from_le32(d->info.bdf));
	tool_json_number(o, "slot", sio_from_le32(d->info.slot));
	tool_json_number(o, "serial", sio_from_le64(d->info.serial));
	bars = tool_json_array();
	for (unsigned i = 0; i < 6; i++)
		tool_json_append(bars, json_object_new_uint64(sio_from_le64(d->info.bar_size[i])));
	tool_json_add(o, "bar_sizes", bars);
	return o;
}

static void to_row(struct tool_table *t, const struct device *d)
{
	char size[TOOL_SIZE_TEXT];

	tool_table_cell(t, "%s", d->topo->name);
	tool_table_cell(t, "%#x", d->topo->fdid);
	tool_table_cell(t, "%s", d->topo->type);
	/* Of a real drive its manager alone knows. */
	tool_table_cell(t, "%s", d->topo->size ? tool_size(d->topo->size, size) : "-");
	tool_table_cell(t, "%s", d->host->name);
	tool_table_cell(t, "%s", state_of(d));
	tool_table_cell(t, "%u", d->up ? sio_from_le32(d->info.borrowers) : 0);
	tool_table_cell(t, "%u", d->up ? sio_from_le32(d->info.quarantined) : 0);
}

static int list(const struct tool_command *self, int argc, char **argv)
{
	struct json_object *array = NULL;
	struct tool_table *t = NULL;
	struct tool_hosts *h;
	struct device *d;
	struct sio_err err;
	size_t n;
	int r, status = 0;

	if (tool_options_words(self, argc, argv, NULL, 0, &status) < 0)
		return status;
	if (tool_hosts_open(&h, &err) < 0)
		return tool_fail(&err);
	r = collect(h, &d, &n, &err);
	if (r < 0) {
		tool_hosts_close(h);
		return tool_fail(&err);
	}
	if (tool_where.json)
		array = tool_json_array();
	else
		t = tool_table_new("DEVICE|ID|TYPE|>SIZE|LENDER|STATE|>BORROWERS|>QUARANTINED");
	for (size_t i = 0; i < n; i++) {
		if (array)
			tool_json_append(array, to_json(&d[i]));
		else
			to_row(t, &d[i]);
	}
	free(d);
	tool_hosts_close(h);
	return array ? tool_json_end(array) : tool_table_end(t);
}

const struct tool_command tool_device_list_command = {
	"device list", "", "List the devices that hosts lend, and who uses them",
	"QUARANTINED counts the borrowers that ended while the device may still use their memory.\n",
	list};

static int print_info(const struct device *d)
{
	struct tool_table *t = tool_table_new("PROPERTY|VALUE");
	char size[TOOL_SIZE_TEXT];
	uint32_t bdf;

#define ROW(name, ...) (tool_table_cell(t, name), tool_table_cell(t, __VA_ARGS__))
	ROW("name", "%s", d->topo->name);
	ROW("id", "%#x", d->topo->fdid);
	ROW("type", "%s", d->topo->type);
	ROW("size", "%s (%" PRIu64 " bytes)", tool_size(d->topo->size, size), d->topo->size);
	ROW("lender", "%s (node %u)", d->host->name, d->host->node);
	ROW("state", "%s", state_of(d));
	if (d->up) {
		bdf = sio_from_le32(d->info.bdf);
		ROW("borrowers", "%u", sio_from_le32(d->info.borrowers));
		ROW("quarantined", "%u", sio_from_le32(d->info.quarantined));
		ROW("resets seen", "%u", sio_from_le32(d->info.generation));
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

static bool is_named(const struct device *d, const char *name)
{
	char *end;
	unsigned long id = strtoul(name, &end, 0);

	return strcmp(d->topo->name, name) == 0 || (*name && *end == '\0' && id == d->topo->fdid);
}

static int info(const struct tool_command *self, int argc, char **argv)
{
	char names[160] = "none";
	struct device *d = NULL;
	struct tool_hosts *h;
	struct sio_err err;
	size_t n = 0, i, used = 0;
	int first, r, status = 0;

	first = tool_options_words(self, argc, argv, NULL, 1, &status);
	if (first < 0)
		return status;
	if (tool_hosts_open(&h, &err) < 0)
		return tool_fail(&err);
	r = collect(h, &d, &n, &err);
	for (i = 0; r == 0 && i < n && !is_named(&d[i], argv[first]); i++)
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 i ? ", " : "", d[i].topo->name);
	if (r < 0)
		status = tool_fail(&err);
	else if (i == n)
		status = tool_error("cluster '%s' has no device '%s'; it has %s", h->topology->name,
				    argv[first], names);
	else
		status = tool_where.json ? tool_json_end(to_json(&d[i])) : print_info(&d[i]);
	free(d);
	tool_hosts_close(h);
	return status;
}

const struct tool_command tool_device_info_command = {
	"device info", "DEVICE", "Tell all that is known of a device",
	"DEVICE is a name of the topology file, or an id such as 0x401.\n", info};
