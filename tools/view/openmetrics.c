/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "view/metric.h"
#include "view/openmetrics.h"

/* length of a family's name: "smartio_adapter_" and a counter's, with room to spare */
#define NAME_MOST 96

enum type { COUNTER = TOOL_METRIC_COUNTER, GAUGE = TOOL_METRIC_GAUGE, UNKNOWN, INFO };
static const char *const type_name[] = {"counter", "gauge", "unknown", "info"};

static const char *const kind_prefix[TOOL_COUNTERS_KINDS] = {
	"smartio_daemon_", "smartio_host_",    "smartio_adapter_", "smartio_device_",
	"smartio_engine_", "smartio_chassis_", "smartio_trunk_",   "smartio_machine_"};

/* ---- the text ---- */

/* A label's value in quotes: \, " and line ends are escaped. */
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
	if (t->kind == TOOL_COUNTERS_TRUNK) {
		put_label(out, "from", s->trunk[t->id].from);
		put_label(out, "to", s->trunk[t->id].to);
		fprintf(out, ",trunk=\"%" PRIu32 "\"} %" PRIu64 "\n", t->id, value);
		return;
	}
	put_label(out, "host", t->host);
	fprintf(out, ",node=\"%" PRIu32 "\"", t->node);
	if (t->kind == TOOL_COUNTERS_CHASSIS)
		put_label(out, "chassis", strchr(t->name, '/') + 1);
	if (t->kind == TOOL_COUNTERS_ADAPTER || t->kind == TOOL_COUNTERS_ENGINE)
		fprintf(out, ",adapter=\"%" PRIu32 "\"", t->id);
	if (t->kind == TOOL_COUNTERS_DEVICE)
		put_label(out, "device", t->name);
	fprintf(out, "} %" PRIu64 "\n", value);
}

/* ---- what exists now ---- */

static void put_presence(FILE *out, const struct tool_sample *s, enum tool_counters kind,
			 const char *name, const char *help)
{
	put_head(out, name, GAUGE, NULL, help);
	for (unsigned i = 0; i < s->n; i++) {
		const struct tool_counted *t = &s->thing[i];

		/* Of a machine's own device nothing but who has it is known. */
		if (t->kind == kind && t->presence != TOOL_PRESENCE_UNKNOWN &&
		    !(t->machine && kind == TOOL_COUNTERS_DEVICE))
			put_sample(out, s, t, name, "", t->presence == TOOL_PRESENT);
	}
}

static bool has_machines(const struct tool_sample *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->thing[i].kind == TOOL_COUNTERS_MACHINE)
			return true;
	return false;
}

/* Of machines: whether QEMU, or another initiator, is there. */
static void put_attached(FILE *out, const struct tool_sample *s, enum tool_counters kind,
			 const char *name, const char *help)
{
	put_head(out, name, GAUGE, NULL, help);
	for (unsigned i = 0; i < s->n; i++) {
		const struct tool_counted *t = &s->thing[i];

		if (t->kind == kind && t->machine && t->presence != TOOL_PRESENCE_UNKNOWN)
			put_sample(out, s, t, name, "", t->attached);
	}
}

static void put_machines(FILE *out, const struct tool_sample *s)
{
	if (!has_machines(s))
		return;
	put_presence(out, s, TOOL_COUNTERS_MACHINE, "smartio_machine_up",
		     "1: a virtual machine, or another initiator, has an adapter or device of it.");
	put_attached(
		out, s, TOOL_COUNTERS_ADAPTER, "smartio_adapter_attached",
		"1: the machine's adapter has a virtual machine, or another initiator, behind it.");
	put_attached(
		out, s, TOOL_COUNTERS_DEVICE, "smartio_device_attached",
		"1: the machine's own device has a virtual machine, or another initiator, behind "
		"it.");
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

			if (t->kind == TOOL_COUNTERS_DEVICE && !t->machine &&
			    t->presence == TOOL_PRESENT)
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
	put_machines(out, s);
}

/* ---- counters ---- */

static bool counts(const struct tool_sample *s, enum tool_counters kind, const char *counter)
{
	uint64_t value;

	for (unsigned i = 0; i < s->n; i++)
		if (s->thing[i].kind == kind && tool_counted_value(&s->thing[i], counter, &value))
			return true;
	return false;
}

/* @f NULL: only the counter's name is known. */
static void put_family(FILE *out, const struct tool_sample *s, enum tool_counters kind,
		       const struct tool_metric *f, const char *counter)
{
	static const char unknown[] = "A number of the device's or daemon's own.";
	enum type type = f ? (enum type)f->type : UNKNOWN;
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

/* Counters that are not in the table, each once, where it first appears. */
static void put_others(FILE *out, const struct tool_sample *s, enum tool_counters kind)
{
	for (unsigned i = 0; i < s->n; i++) {
		const struct tool_counted *t = &s->thing[i];
		const struct tool_sample before = {.n = i, .thing = s->thing};

		for (unsigned k = 0; t->kind == kind && k < t->n_counters; k++)
			if (!tool_metric_find(kind, t->counter[k].name) &&
			    !counts(&before, kind, t->counter[k].name))
				put_family(out, s, kind, NULL, t->counter[k].name);
	}
}

void tool_openmetrics_write(FILE *out, const struct tool_sample *s, const char *version)
{
	put_infos(out, s, version);
	put_states(out, s);
	for (enum tool_counters kind = 0; kind < TOOL_COUNTERS_KINDS; kind++) {
		const struct tool_metric *m = NULL;

		while ((m = tool_metric_next(m, kind)))
			if (counts(s, kind, m->counter))
				put_family(out, s, kind, m, m->counter);
		put_others(out, s, kind);
	}
	fputs("# EOF\n", out);
}
