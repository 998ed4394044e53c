/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio fault device: a device is pulled out of its slot, has other virtual functions, or
 * misbehaves. The machine room carries it out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/hosts.h"
#include "base/output.h"
#include "base/room.h"
#include "base/state.h"
#include "cluster/cluster.h"
#include "cluster/programs.h"

#define ANY UINT32_MAX
#define MS_MOST 3600000u
#define FUNCTIONS_MOST 255u /* of a slot, as PCI has it */
#define FUNCTIONS "functions"

static const char *opcode_text, *queue_text, *after_text, *count_text, *time_text, *status_text,
	*wait_text;
static bool no_wait;

/* The numbers are those of the machine room: struct emu_dev_fault. */
static const struct wrong {
	const char *name;
	unsigned kind;
	const char *const *needs; /* an option that is required */
} wrongs[] = {
	{"clear", 0, NULL},	    {"delay", 1, &time_text}, {"drop", 2, NULL},
	{"error", 3, &status_text}, {"wrong-id", 4, NULL},    {"twice", 5, NULL},
	{"doorbell", 6, NULL},	    {"fatal", 7, NULL},
};

/* NVMe 1.4, section 6. */
static const struct {
	const char *name;
	uint32_t opcode;
} opcodes[] = {{"flush", 0x00},	 {"write", 0x01}, {"read", 0x02},  {"compare", 0x05},
	       {"zeroes", 0x08}, {"trim", 0x09},  {"verify", 0x0c}};

/* The fault, and the commands that it hits. */
struct fault {
	const struct wrong *wrong; /* NULL: the device is pulled out or put back, or: */
	bool changes_functions;	   /* to @count of them */
	uint32_t opcode, queue, after, count;
	uint64_t value;
};

/* A name of the topology file, or an id such as 0x4f4093. */
static int parse_device(const struct sio_topology *t, const char *word,
			const struct sio_topo_device **ret, struct sio_err *reterr)
{
	char *end;
	unsigned long id = strtoul(word, &end, 0);

	for (unsigned i = 0; i < t->n_hosts; i++)
		for (unsigned k = 0; k < t->host[i].n_devices; k++) {
			const struct sio_topo_device *d = &t->host[i].device[k];

			if (strcmp(d->name, word) != 0 && (!*word || *end || id != d->fdid))
				continue;
			*ret = d;
			return 0;
		}
	return sio_fail(reterr, -ENODEV, "cluster '%s' has no device '%s'", t->name, word);
}

static int parse_number(const char *option, const char *text, uint32_t otherwise, uint32_t most,
			uint32_t *ret, struct sio_err *reterr)
{
	unsigned long long value;
	char *end;

	*ret = otherwise;
	if (!text)
		return 0;
	value = strtoull(text, &end, 0);
	if (*text < '0' || *text > '9' || *end || value > most)
		return sio_fail(reterr, -EINVAL, "--%s %s: a number up to %" PRIu32 " is right",
				option, text, most);
	*ret = (uint32_t)value;
	return 0;
}

static int parse_opcode(uint32_t *ret, struct sio_err *reterr)
{
	for (unsigned i = 0; opcode_text && i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		if (strcmp(opcodes[i].name, opcode_text) != 0)
			continue;
		*ret = opcodes[i].opcode;
		return 0;
	}
	if (opcode_text && (*opcode_text < '0' || *opcode_text > '9'))
		return sio_fail(reterr, -EINVAL,
				"--opcode %s: flush, write, read, compare, zeroes, trim, verify or "
				"a number is right",
				opcode_text);
	return parse_number("opcode", opcode_text, ANY, 0xff, ret, reterr);
}

static int parse_fault(struct fault *f, struct sio_err *reterr)
{
	uint32_t ms = 0, status = 0;
	int r;

	if (f->wrong->needs && !*f->wrong->needs)
		return sio_fail(reterr, -EINVAL, "%s: --%s is missing", f->wrong->name,
				f->wrong->needs == &time_text ? "time" : "status");
	if ((time_text && f->wrong->needs != &time_text) ||
	    (status_text && f->wrong->needs != &status_text))
		return sio_fail(reterr, -EINVAL, "%s: --%s is of %s alone", f->wrong->name,
				time_text && f->wrong->needs != &time_text ? "time" : "status",
				time_text && f->wrong->needs != &time_text ? "delay" : "error");
	r = parse_opcode(&f->opcode, reterr);
	if (r == 0)
		r = parse_number("queue", queue_text, ANY, 65535, &f->queue, reterr);
	if (r == 0)
		r = parse_number("after", after_text, 0, UINT32_MAX - 1, &f->after, reterr);
	if (r == 0)
		r = parse_number("count", count_text, 1, UINT32_MAX - 1, &f->count, reterr);
	if (r == 0)
		r = parse_number("time", time_text, 0, MS_MOST, &ms, reterr);
	if (r == 0)
		r = parse_number("status", status_text, 0, 0x7ff, &status, reterr);
	f->value = status ? status : (uint64_t)ms * 1000000;
	return r;
}

static void fill_json(struct json_object *o, const struct sio_topo_device *d, const char *word,
		      const struct fault *f)
{
	tool_json_string(o, "name", d->name);
	tool_json_number(o, "id", d->fdid);
	if (f->changes_functions)
		tool_json_number(o, FUNCTIONS, f->count);
	else
		tool_json_string(o, f->wrong ? "fault" : "slot", word);
	if (!f->wrong || f->wrong->kind == 0)
		return;
	if (f->opcode != ANY)
		tool_json_number(o, "opcode", f->opcode);
	if (f->queue != ANY)
		tool_json_number(o, "queue", f->queue);
	tool_json_number(o, "after", f->after);
	tool_json_number(o, "count", f->count);
}

static void fill_request(char *request, size_t size, const struct sio_topo_device *d,
			 const char *word, const struct fault *f)
{
	if (f->changes_functions)
		snprintf(request, size, FUNCTIONS " %u %" PRIu32, d->fdid, f->count);
	else if (f->wrong)
		snprintf(request, size,
			 "fault %u %u %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64,
			 d->fdid, f->wrong->kind, f->opcode, f->queue, f->after, f->count,
			 f->value);
	else
		snprintf(request, size, "device %u %s", d->fdid, word);
}

static int parse_functions(const char *text, struct fault *f, struct sio_err *reterr)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n > FUNCTIONS_MOST)
		return sio_fail(reterr, -EINVAL, FUNCTIONS " %s: a number up to %u is right", text,
				FUNCTIONS_MOST);
	f->count = (uint32_t)n;
	return 0;
}

/* @number: the word behind it; NULL: there is none. */
static int parse_word(const char *word, const char *number, struct fault *f, struct sio_err *reterr)
{
	const bool options =
		opcode_text || queue_text || after_text || count_text || time_text || status_text;

	*f = (struct fault){.opcode = ANY, .queue = ANY};
	for (unsigned i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
		if (strcmp(wrongs[i].name, word) == 0)
			f->wrong = &wrongs[i];
	f->changes_functions = strcmp(word, FUNCTIONS) == 0;
	if (number && !f->changes_functions)
		return sio_fail(reterr, -EINVAL, "'%s' takes no number", word);
	if (f->wrong && f->wrong->kind)
		return parse_fault(f, reterr);
	if (options)
		return sio_fail(reterr, -EINVAL, "'%s' takes no options", word);
	if (!f->changes_functions)
		return 0;
	if (!number)
		return sio_fail(reterr, -EINVAL, "'%s': how many is missing", word);
	return parse_functions(number, f, reterr);
}

static bool is_word(const char *word)
{
	if (strcmp(word, "in") == 0 || strcmp(word, "out") == 0 || strcmp(word, FUNCTIONS) == 0)
		return true;
	for (unsigned i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
		if (strcmp(wrongs[i].name, word) == 0)
			return true;
	return false;
}

/*
 * Returns when all hosts know which devices are there now: whoever put one in may borrow it. A
 * device that comes or goes takes its virtual functions with it.
 */
static void await_devices(const char *dir, const struct sio_topo_device *d, const struct fault *f,
			  bool in)
{
	struct tool_device_there there[1 + FUNCTIONS_MOST];
	const struct sio_topo_host *host;
	struct tool_hosts *hosts;
	uint32_t functions = 0;
	struct sio_err err;
	unsigned n = 0;

	if (f->wrong)
		return;
	if (tool_hosts_open_dir(dir, &hosts, &err) < 0) {
		tool_note("who knows of it is not known: %s", err.text);
		return;
	}
	d = sio_topology_device(hosts->topology, d->fdid, &host);
	if (d && !f->changes_functions)
		there[n++] = (struct tool_device_there){d, in};
	for (unsigned i = 0; d && i < host->n_devices && n <= FUNCTIONS_MOST; i++)
		if (host->device[i].physical && &host->device[host->device[i].physical - 1] == d)
			there[n++] = (struct tool_device_there){
				&host->device[i],
				f->changes_functions ? functions++ < f->count : in};
	if (d)
		tool_device_await(hosts, host, there, n);
	tool_hosts_close(hosts);
}

static int fault_device(const struct tool_command *self, int argc, char **argv)
{
	const struct sio_topo_device *d = NULL;
	struct tool_programs *programs = NULL;
	struct sio_topology *t = NULL;
	struct json_object *done;
	uint32_t wait_ms;
	char dir[PATH_MAX], request[128];
	struct sio_err err;
	struct fault f;
	int r, first, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (!is_word(argv[first + 1]))
		return tool_usage(self->name, "'%s': one of %s is right", argv[first + 1],
				  self->words[1].name);
	if (parse_word(argv[first + 1], first + 2 < argc ? argv[first + 2] : NULL, &f, &err) < 0 ||
	    tool_wait_parse(wait_text, &wait_ms, &err) < 0)
		return tool_usage(self->name, "%s", err.text);
	done = tool_json_object();
	r = tool_find_cluster(dir, sizeof(dir), &t, &err);
	if (r == 0)
		r = parse_device(t, argv[first], &d, &err);
	if (r == 0 && !f.wrong && !no_wait)
		r = tool_programs_open(dir, &programs, &err);
	if (r == 0) {
		fill_json(done, d, argv[first + 1], &f);
		fill_request(request, sizeof(request), d, argv[first + 1], &f);
		r = tool_room_ask(dir, request, &err);
		if (r == 0)
			await_devices(dir, d, &f, strcmp(argv[first + 1], "in") == 0);
	}
	if (r == 0 && programs)
		status = tool_programs_await(programs, sio_topology_fdid_node(d->fdid), wait_ms,
					     done);
	tool_programs_close(programs);
	sio_topology_free(t);
	if (r == 0 && tool_where.json)
		return tool_json_print("fault-device", done) ? TOOL_EXIT_FAILURE : status;
	json_object_put(done);
	return r < 0 ? tool_fail(&err) : status;
}

static const struct tool_option fault_device_options[] = {
	{"opcode", .value = &opcode_text, .takes = "NAME",
	 .text = "of these commands alone: flush, write, read, compare,\n"
		 "zeroes, trim, verify or a number"},
	{"queue", .value = &queue_text, .takes = "ID",
	 .text = "of this queue pair alone; 0: of the admin queue"},
	{"after", .value = &after_text, .takes = "N", .text = "so many of them pass before"},
	{"count", .value = &count_text, .takes = "N",
	 .text = "then so many; default 1, 0: until they are cleared"},
	{"time", .value = &time_text, .takes = "MS", .text = "of a delay, in milliseconds"},
	{"status", .value = &status_text, .takes = "CODE",
	 .text = "of an error: status code type * 256 + status code"},
	TOOL_OPTION_WAIT(&wait_text),
	TOOL_OPTION_NO_WAIT(&no_wait),
	{.name = NULL}};

const struct tool_command tool_fault_device_command = {
	.name = "fault device",
	.summary =
		"Pull a device out of its slot, put it back, set its virtual functions, or have a drive do wrong",
	.help = "Of an emulated cluster. DEVICE is a name of the topology file, or an id such as 0x4f4093. Who\n"
		"uses a device that is pulled out gets an error and reads ones where its registers were; it\n"
		"comes back with what its media hold, for whoever borrows it then. The command returns when all\n"
		"hosts know of it that reach its host, and names those that do not within ten seconds. It also\n"
		"waits until the programs that are notified of it have switched, and prints those that have not\n"
		"in time: then its exit status is 3.\n\n"
		"'functions N' does what a number in sriov_numvfs does on a real host: all virtual functions of\n"
		"a drive are taken away, from whoever uses them, and the first N come back as new.\n\n"
		"A drive does wrong to I/O commands, or to admin commands with --queue 0: it carries them out\n"
		"late (delay), never reports their completion (drop), fails them (error), completes one that\n"
		"is not in flight (wrong-id), or twice (twice), does not see a doorbell that announces some\n"
		"(doorbell), or stops with fatal status (fatal). Clear ends what was asked for; a drive takes 8\n"
		"at once.\n",
	.schemas = "fault-device",
	.options = fault_device_options,
	.words = {{"DEVICE", TOOL_DEVICES},
		  {"out|in|functions|delay|drop|error|wrong-id|twice|doorbell|fatal|clear",
		   TOOL_CHOICES},
		  {"[N]", TOOL_ANY}},
	.run = fault_device};
