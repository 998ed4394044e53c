/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "view/openmetrics.h"

#define NAME_MOST 96 /* of a family: "smartio_adapter_" and a counter's, with room */

enum type { COUNTER, GAUGE, UNKNOWN, INFO };
static const char *const type_name[] = {"counter", "gauge", "unknown", "info"};

static const char *const kind_prefix[TOOL_COUNTERS_KINDS] = {"smartio_daemon_", "smartio_host_",
							     "smartio_adapter_", "smartio_device_"};

#define OF(kind) (1u << TOOL_COUNTERS_##kind)

/* What a counter of ours is called there. */
static const struct family {
	unsigned kinds;
	const char *counter, *name; /* name: without the prefix of its kind, and without _total */
	const char *unit;	    /* name ends with it; NULL: it is a number */
	enum type type;
	const char *help;
} table[] = {
	{OF(ADAPTER) | OF(DEVICE), "rd_req", "pcie_read_requests", NULL, COUNTER,
	 "Read requests (PCIe transactions)."},
	{OF(ADAPTER) | OF(DEVICE), "rd_cpl", "pcie_completions", NULL, COUNTER,
	 "Completions of read requests (PCIe transactions)."},
	{OF(ADAPTER) | OF(DEVICE), "rd_bytes", "pcie_read_bytes", "bytes", COUNTER,
	 "Bytes that read requests brought."},
	{OF(ADAPTER) | OF(DEVICE), "wr_tlp", "pcie_writes", NULL, COUNTER,
	 "Posted writes (PCIe transactions), interrupts among them."},
	{OF(ADAPTER) | OF(DEVICE), "wr_bytes", "pcie_written_bytes", "bytes", COUNTER,
	 "Bytes of posted writes."},
	{OF(ADAPTER) | OF(DEVICE), "msg", "pcie_interrupt_messages", NULL, COUNTER,
	 "Of the posted writes, interrupt messages."},
	{OF(DAEMON) | OF(HOST) | OF(ADAPTER) | OF(DEVICE), "faults", "faults", NULL, COUNTER,
	 "Accesses of devices and DMA engines that ended in a fault."},
	{OF(ADAPTER), "lut_total", "lookup_entries", NULL, GAUGE, "Entries of the look-up table."},
	{OF(ADAPTER), "lut_used", "lookup_entries_used", NULL, GAUGE,
	 "Entries of the look-up table in use."},
	{OF(ADAPTER), "lut_longest_run", "lookup_entries_longest_run", NULL, GAUGE,
	 "Most free entries of the look-up table in a row."},
	{OF(ADAPTER), "requesters_total", "requester_entries", NULL, GAUGE,
	 "Entries of the requester table."},
	{OF(ADAPTER), "requesters_used", "requester_entries_used", NULL, GAUGE,
	 "Entries of the requester table in use."},
	{OF(HOST), "ram_total", "memory_bytes", "bytes", GAUGE, "Memory of the host."},
	{OF(HOST), "ram_free", "memory_free_bytes", "bytes", GAUGE,
	 "Memory of the host that nothing has."},
	{OF(HOST), "requests", "port_requests", NULL, COUNTER,
	 "Requests of the daemon to the hardware."},
	{OF(HOST), "requests_refused", "port_requests_refused", NULL, COUNTER,
	 "Of the requests to the hardware, those refused."},
	{OF(HOST), "events", "port_events", NULL, COUNTER, "Events of the hardware to the daemon."},
	{OF(HOST), "owners", "owners", NULL, GAUGE, "Programs that own resources."},
	{OF(HOST), "mems", "memories", NULL, GAUGE, "Pieces of memory that were allocated."},
	{OF(HOST), "grants", "grants", NULL, GAUGE, "Ranges that peers may map."},
	{OF(HOST), "maps", "maps", NULL, GAUGE, "Windows to ranges of peers."},
	{OF(HOST), "requesters", "requesters", NULL, GAUGE,
	 "Requester entries that were asked for."},
	{OF(HOST), "devices_open", "devices_open", NULL, GAUGE, "Devices that are open."},
	{OF(HOST), "bars", "bars", NULL, GAUGE, "Views of memory and registers of devices."},
	{OF(HOST) | OF(DEVICE), "dmamaps", "dma_maps", NULL, GAUGE,
	 "Ranges that are mapped for devices."},
	{OF(HOST), "irqs", "irqs", NULL, GAUGE, "Interrupts that programs can be given."},
	{OF(HOST), "watches", "watches", NULL, GAUGE, "Watches of registers."},
	{OF(HOST), "dma_channels", "dma_channels", NULL, GAUGE, "Channels of DMA engines in use."},
	{OF(HOST), "dma_ranges", "dma_ranges", NULL, GAUGE, "Ranges that DMA engines may reach."},
	{OF(HOST), "vectors", "vectors", NULL, GAUGE, "Interrupt vectors of devices in use."},
	{OF(HOST), "room_naps", "room_naps", NULL, COUNTER,
	 "Short sleeps of the emulated hardware (of the whole cluster's)."},
	{OF(HOST), "room_sleeps", "room_sleeps", NULL, COUNTER,
	 "Sleeps of the emulated hardware (of the whole cluster's) until something wakes it."},
	{OF(DAEMON), "client_version", "client_version", NULL, GAUGE,
	 "Version of the protocol spoken with programs."},
	{OF(DAEMON), "refused_versions", "refused_versions", NULL, COUNTER,
	 "Programs refused, since they speak another version."},
	{OF(DAEMON), "refused_version", "refused_version", NULL, GAUGE,
	 "Version of the last program that was refused; 0: none was."},
	{OF(DAEMON), "refused_pid", "refused_pid", NULL, GAUGE,
	 "Process id of the last program that was refused; 0: none was."},
	{OF(DAEMON), "heap_bytes", "heap_bytes", "bytes", GAUGE,
	 "Memory that the daemon allocated."},
	{OF(DAEMON), "client_messages", "client_messages", NULL, COUNTER, "Messages of programs."},
	{OF(DAEMON), "client_events", "client_events", NULL, COUNTER, "Events to programs."},
	{OF(DAEMON), "peer_messages_received", "peer_messages_received", NULL, COUNTER,
	 "Messages of other hosts' daemons."},
	{OF(DAEMON), "peer_messages_sent", "peer_messages_sent", NULL, COUNTER,
	 "Messages to other hosts' daemons."},
	{OF(DAEMON), "port_requests", "port_requests", NULL, COUNTER, "Requests to the hardware."},
	{OF(DAEMON), "port_events", "port_events", NULL, COUNTER,
	 "Answers and events of the hardware."},
	{OF(DAEMON), "clients", "clients", NULL, GAUGE, "Programs and tools that are connected."},
	{OF(DAEMON), "operations", "operations", NULL, GAUGE, "Requests under way."},
	{OF(DAEMON), "segments", "segments", NULL, GAUGE, "Segments of the host."},
	{OF(DAEMON), "grants", "grants", NULL, GAUGE, "Ranges of segments granted to peers."},
	{OF(DAEMON), "connections", "connections", NULL, GAUGE, "Connections to segments."},
	{OF(DAEMON), "data_interrupts", "data_interrupts", NULL, GAUGE,
	 "Interrupts with data of the host's programs."},
	{OF(DAEMON), "rings", "rings", NULL, GAUGE, "Rings of senders of interrupts with data."},
	{OF(DAEMON), "data_interrupt_links", "data_interrupt_links", NULL, GAUGE,
	 "Connections to interrupts with data."},
	{OF(DEVICE), "resets", "resets", NULL, COUNTER, "Resets."},
	{OF(DEVICE), "generation", "generation", NULL, COUNTER, "Resets seen."},
	{OF(DEVICE), "writable_views", "writable_views", NULL, GAUGE,
	 "Mappings by which programs may write its registers."},
	{OF(DEVICE), "translations_missed", "translations_missed", NULL, COUNTER,
	 "Translations of addresses that were not at hand."},
	{OF(DEVICE), "wakes_by_fault", "wakes_by_fault", NULL, COUNTER,
	 "Times that a store to a watched page woke it."},
	{OF(DEVICE), "wakes_by_event", "wakes_by_event", NULL, COUNTER,
	 "Times that an event woke it."},
	{OF(DEVICE), "dmamap_bytes", "dma_mapped_bytes", "bytes", GAUGE,
	 "Bytes that are mapped for it."},
	{OF(DEVICE), "interrupts", "interrupts", NULL, COUNTER, "Interrupts."},
	{OF(DEVICE), "commands_read", "commands_read", NULL, COUNTER, "NVMe: Read commands."},
	{OF(DEVICE), "commands_write", "commands_write", NULL, COUNTER, "NVMe: Write commands."},
	{OF(DEVICE), "commands_flush", "commands_flush", NULL, COUNTER, "NVMe: Flush commands."},
	{OF(DEVICE), "commands_admin", "commands_admin", NULL, COUNTER, "NVMe: admin commands."},
	{OF(DEVICE), "commands_failed", "commands_failed", NULL, COUNTER,
	 "Commands that ended with an error."},
	{OF(DEVICE), "commands_compare", "commands_compare", NULL, COUNTER,
	 "NVMe: Compare commands."},
	{OF(DEVICE), "commands_write_zeroes", "commands_write_zeroes", NULL, COUNTER,
	 "NVMe: Write Zeroes commands."},
	{OF(DEVICE), "commands_deallocate", "commands_deallocate", NULL, COUNTER,
	 "NVMe: Dataset Management commands that deallocate."},
	{OF(DEVICE), "commands_verify", "commands_verify", NULL, COUNTER, "NVMe: Verify commands."},
	{OF(DEVICE), "formats", "formats", NULL, COUNTER, "NVMe: Format commands."},
	{OF(DEVICE), "bytes_read", "read_bytes", "bytes", COUNTER,
	 "NVMe: bytes that Read commands took from the medium."},
	{OF(DEVICE), "bytes_written", "written_bytes", "bytes", COUNTER,
	 "NVMe: bytes that Write commands put on the medium."},
	{OF(DEVICE), "queue_pairs", "queue_pairs", NULL, GAUGE, "NVMe: I/O queue pairs in use."},
	{OF(DEVICE), "queue_pairs_max", "queue_pairs_max", NULL, GAUGE,
	 "NVMe: I/O queue pairs that there are."},
	{OF(DEVICE), "fatal", "fatal", NULL, COUNTER, "NVMe: fatal states."},
	{OF(DEVICE), "invalid_doorbells", "invalid_doorbells", NULL, COUNTER,
	 "NVMe: doorbells that no queue has, or with values that it cannot have."},
	{OF(DEVICE), "lost_writes", "lost_writes", NULL, COUNTER,
	 "NVMe: writes that reached nobody."},
	{OF(DEVICE), "controller_resets", "controller_resets", NULL, COUNTER,
	 "NVMe: resets of the controller."},
	{OF(DEVICE), "descriptors", "descriptors", NULL, COUNTER,
	 "Memory device: descriptors that were carried out."},
	{OF(DEVICE), "descriptors_failed", "descriptors_failed", NULL, COUNTER,
	 "Memory device: descriptors that failed."},
	{OF(DEVICE), "bytes_copied", "copied_bytes", "bytes", COUNTER,
	 "Bytes that the device's own DMA engine copied."},
	{OF(DEVICE), "transfers", "transfers", NULL, COUNTER, "Accelerator: transfers."},
	{OF(DEVICE), "kernels", "kernels", NULL, COUNTER, "Accelerator: kernels that ran."},
};

static const struct family *find(enum tool_counters kind, const char *counter)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].kinds & 1u << kind && strcmp(table[i].counter, counter) == 0)
			return &table[i];
	return NULL;
}

/* ---- the text ---- */

/* A label's value, in quotes: in it \, " and the end of a line are escaped. */
static void put_value(FILE *out, const char *value)
{
	putc('"', out);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else
			putc(*value, out);
	}
	putc('"', out);
}

static void put_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",%s=", name);
	put_value(out, value);
}

static void put_head(FILE *out, const char *name, enum type type, const char *unit,
		     const char *help)
{
	fprintf(out, "# TYPE %s %s\n", name, type_name[type]);
	if (unit)
		fprintf(out, "# UNIT %s %s\n", name, unit);
	fprintf(out, "# HELP %s %s\n", name, help);
}

/* A sample without its value; the caller adds labels of its own between the two parts. */
static void put_name(FILE *out, const struct tool_sample *s, const char *name, const char *suffix)
{
	fprintf(out, "%s%s{cluster=", name, suffix);
	put_value(out, s->cluster);
}

static void put_sample(FILE *out, const struct tool_sample *s, const struct tool_counted *t,
		       const char *name, const char *suffix, uint64_t value)
{
	put_name(out, s, name, suffix);
	put_label(out, "host", t->host);
	fprintf(out, ",node=\"%" PRIu32 "\"", t->node);
	if (t->kind == TOOL_COUNTERS_ADAPTER)
		fprintf(out, ",adapter=\"%" PRIu32 "\"", t->id);
	if (t->kind == TOOL_COUNTERS_DEVICE)
		put_label(out, "device", t->name);
	fprintf(out, "} %" PRIu64 "\n", value);
}

/* ---- what is, now ---- */

static void put_presence(FILE *out, const struct tool_sample *s, enum tool_counters kind,
			 const char *name, const char *help)
{
	put_head(out, name, GAUGE, NULL, help);
	for (unsigned i = 0; i < s->n; i++) {
		const struct tool_counted *t = &s->thing[i];

		if (t->kind == kind && t->presence != TOOL_PRESENCE_UNKNOWN)
			put_sample(out, s, t, name, "", t->presence == TOOL_PRESENT);
	}
}

static void put_device_facts(FILE *out, const struct tool_sample *s)
{
	static const char *const name[] = {"smartio_device_borrowers", "smartio_device_quarantined",
					   "smartio_device_exclusive"};
	static const char *const help[] = {
		"Programs that have borrowed the device.",
		"Borrowers that ended while the device may still use their memory.",
		"1: one program has the device for itself."};

	for (unsigned f = 0; f < 3; f++) {
		put_head(out, name[f], GAUGE, NULL, help[f]);
		for (unsigned i = 0; i < s->n; i++) {
			const struct tool_counted *t = &s->thing[i];
			const uint64_t value[] = {t->borrowers, t->quarantined, t->exclusive};

			if (t->kind == TOOL_COUNTERS_DEVICE && t->presence == TOOL_PRESENT)
				put_sample(out, s, t, name[f], "", value[f]);
		}
	}
}

static void put_infos(FILE *out, const struct tool_sample *s, const char *version)
{
	put_head(out, "smartio_build", INFO, NULL, "The program that wrote this.");
	put_name(out, s, "smartio_build", "_info");
	put_label(out, "version", version);
	fputs("} 1\n", out);
	put_head(out, "smartio_device", INFO, NULL, "What the device is.");
	for (unsigned i = 0; i < s->n; i++) {
		const struct tool_counted *t = &s->thing[i];

		if (t->kind != TOOL_COUNTERS_DEVICE)
			continue;
		put_name(out, s, "smartio_device", "_info");
		put_label(out, "host", t->host);
		fprintf(out, ",node=\"%" PRIu32 "\"", t->node);
		put_label(out, "device", t->name);
		put_label(out, "type", t->type);
		fprintf(out, ",id=\"%#" PRIx32 "\"} 1\n", t->id);
	}
}

static void put_trunks(FILE *out, const struct tool_sample *s)
{
	if (s->n_trunks == 0)
		return;
	put_head(out, "smartio_trunk_up", GAUGE, NULL,
		 "1: the link between two cluster switches can be used.");
	for (unsigned i = 0; i < s->n_trunks; i++) {
		put_name(out, s, "smartio_trunk_up", "");
		put_label(out, "from", s->trunk[i].from);
		put_label(out, "to", s->trunk[i].to);
		fprintf(out, ",trunk=\"%u\"} %d\n", i, s->trunk[i].up);
	}
}

static void put_states(FILE *out, const struct tool_sample *s)
{
	put_presence(out, s, TOOL_COUNTERS_HOST, "smartio_host_up",
		     "1: the host's daemon answers.");
	put_presence(out, s, TOOL_COUNTERS_ADAPTER, "smartio_adapter_link_up",
		     "1: the adapter's link is up.");
	put_trunks(out, s);
	put_presence(out, s, TOOL_COUNTERS_DEVICE, "smartio_device_present",
		     "1: the device is in its slot, and its host answers.");
	put_device_facts(out, s);
}

/* ---- what was counted ---- */

static bool counts(const struct tool_sample *s, enum tool_counters kind, const char *counter)
{
	uint64_t value;

	for (unsigned i = 0; i < s->n; i++)
		if (s->thing[i].kind == kind && tool_counted_value(&s->thing[i], counter, &value))
			return true;
	return false;
}

/* @f NULL: nothing more is known of this counter than its name. */
static void put_family(FILE *out, const struct tool_sample *s, enum tool_counters kind,
		       const struct family *f, const char *counter)
{
	static const char unknown[] = "A number of the device's or daemon's own.";
	enum type type = f ? f->type : UNKNOWN;
	char name[NAME_MOST];
	uint64_t value;

	snprintf(name, sizeof(name), "%s%s", kind_prefix[kind], f ? f->name : counter);
	for (char *c = name; *c; c++)
		if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') &&
		    !(*c >= '0' && *c <= '9'))
			*c = '_';
	put_head(out, name, type, f ? f->unit : NULL, f ? f->help : unknown);
	for (unsigned i = 0; i < s->n; i++)
		if (s->thing[i].kind == kind && tool_counted_value(&s->thing[i], counter, &value))
			put_sample(out, s, &s->thing[i], name, type == COUNTER ? "_total" : "",
				   value);
}

/* Counters that the table does not have, each once: where it first appears. */
static void put_others(FILE *out, const struct tool_sample *s, enum tool_counters kind)
{
	for (unsigned i = 0; i < s->n; i++) {
		const struct tool_counted *t = &s->thing[i];
		const struct tool_sample before = {.n = i, .thing = s->thing};

		for (unsigned k = 0; t->kind == kind && k < t->n_counters; k++)
			if (!find(kind, t->counter[k].name) &&
			    !counts(&before, kind, t->counter[k].name))
				put_family(out, s, kind, NULL, t->counter[k].name);
	}
}

void tool_openmetrics_write(FILE *out, const struct tool_sample *s, const char *version)
{
	put_infos(out, s, version);
	put_states(out, s);
	for (enum tool_counters kind = 0; kind < TOOL_COUNTERS_KINDS; kind++) {
		for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
			if (table[i].kinds & 1u << kind && counts(s, kind, table[i].counter))
				put_family(out, s, kind, &table[i], table[i].counter);
		put_others(out, s, kind);
	}
	fputs("# EOF\n", out);
}
