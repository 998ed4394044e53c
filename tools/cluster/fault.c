/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio fault: what an operator at the hardware could do. The machine room carries it out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "base/room.h"
#include "base/state.h"
#include "cluster/programs.h"

#define ERRORS_MOST 1000000u
#define DELAY_MOST_MS 10000u

static const char *wait_text, *count_text, *time_text;
static bool no_wait, re_enumerate;

/*
 * The virtual machine of that name or id; it is joined by a cable as hosts are. NULL: there is
 * none.
 */
static const struct sio_topo_host *find_machine(const struct sio_topology *t, const char *word)
{
	char *end;
	unsigned long node = strtoul(word, &end, 10);

	for (unsigned i = 0; i < t->n_machines; i++)
		if (strcmp(t->machine[i].name, word) == 0 ||
		    (*word && !*end && node == t->machine[i].node))
			return &t->machine[i];
	return NULL;
}

/* "HOST" or "HOST.ADAPTER", where HOST is a name or a node id. */
static int parse_adapter(const struct sio_topology *t, const char *word,
			 const struct sio_topo_host **ret_host, unsigned *ret_adapter,
			 struct sio_err *reterr)
{
	const char *dot = strrchr(word, '.');
	char name[SIO_NAME_LEN + 1], *end = NULL;
	int r = 0;

	*ret_adapter = 0;
	if (dot) {
		*ret_adapter = (unsigned)strtoul(dot + 1, &end, 10);
		if (dot[1] < '0' || dot[1] > '9' || *end)
			return sio_fail(reterr, -EINVAL,
					"'%s': after the dot the number of an adapter is right",
					word);
	}
	snprintf(name, sizeof(name), "%.*s", (int)(dot ? (size_t)(dot - word) : strlen(word)),
		 word);
	*ret_host = find_machine(t, name);
	if (!*ret_host)
		r = tool_find_host(t, name, ret_host, reterr);
	if (r == 0 && *ret_adapter >= (*ret_host)->n_adapters)
		r = sio_fail(reterr, -ENXIO, "host '%s' has no adapter %u; it has %u from 0 on",
			     (*ret_host)->name, *ret_adapter, (*ret_host)->n_adapters);
	return r;
}

/* A switch by name; with @ret_port also SWITCH.PORT, else @ret_port is -1. */
static int parse_switch(const struct sio_topology *t, const char *word, unsigned *ret,
			long *ret_port, struct sio_err *reterr)
{
	const char *dot = ret_port ? strrchr(word, '.') : NULL;
	size_t len = dot ? (size_t)(dot - word) : strlen(word);
	char *end;

	for (*ret = 0; *ret < t->n_switches; ++*ret)
		if (strlen(t->sw[*ret].name) == len && memcmp(t->sw[*ret].name, word, len) == 0)
			break;
	if (*ret == t->n_switches)
		return sio_fail(reterr, -ENODEV, "cluster '%s' has no switch '%.*s'", t->name,
				(int)len, word);
	if (!ret_port)
		return 0;
	*ret_port = dot ? strtol(dot + 1, &end, 10) : -1;
	if (!dot)
		return 0;
	if (dot[1] < '0' || dot[1] > '9' || *end)
		return sio_fail(reterr, -EINVAL,
				"'%s': after the dot the number of a port is right", word);
	if (t->sw[*ret].ports == 0)
		return sio_fail(reterr, -EINVAL, "'%s': the ports of switch '%s' have no numbers",
				word, t->sw[*ret].name);
	return 0;
}

static bool is_between(const struct sio_topo_trunk *l, const unsigned sw[2], const long port[2])
{
	for (unsigned turn = 0; turn < 2; turn++)
		if (l->sw[turn] == sw[0] && l->sw[!turn] == sw[1] &&
		    (port[0] < 0 || port[0] == (long)l->port[turn]) &&
		    (port[1] < 0 || port[1] == (long)l->port[!turn]))
			return true;
	return false;
}

/* The link between two switches. If there are several, a port says which. */
static int parse_trunk(const struct sio_topology *t, char **words, unsigned *ret,
		       struct sio_err *reterr)
{
	unsigned sw[2], found = 0;
	long port[2];

	for (unsigned i = 0; i < 2; i++)
		if (parse_switch(t, words[i], &sw[i], &port[i], reterr) < 0)
			return reterr->code;
	for (unsigned i = 0; i < t->n_trunks; i++) {
		if (!is_between(&t->trunk[i], sw, port))
			continue;
		*ret = i;
		found++;
	}
	if (found == 1)
		return 0;
	if (found == 0)
		return sio_fail(reterr, -ENODEV, "cluster '%s' has no link from %s to %s", t->name,
				words[0], words[1]);
	return sio_fail(
		reterr, -EINVAL,
		"%u links lead from %s to %s; SWITCH.PORT, with the first port of one, says "
		"which",
		found, words[0], words[1]);
}

/* The request to the machine room, made from @words: the object, and what is done to it. */
struct request {
	char text[64];
	struct json_object *done; /* with --json: the result, if it succeeds */
};
typedef int fill_request(const struct sio_topology *t, char **words, struct request *ret,
			 struct sio_err *reterr);

static int parse_count(unsigned *ret, struct sio_err *reterr)
{
	unsigned long n = 1;
	char *end;

	if (count_text) {
		n = strtoul(count_text, &end, 10);
		if (*count_text < '0' || *count_text > '9' || *end || n < 1 || n > ERRORS_MOST)
			return sio_fail(reterr, -EINVAL, "--count %s: 1 to %u are right",
					count_text, ERRORS_MOST);
	}
	*ret = (unsigned)n;
	return 0;
}

/* Milliseconds, perhaps with decimals. */
static int parse_time(uint64_t *ret_ns, struct sio_err *reterr)
{
	double ms = -1;
	char *end = NULL;

	if (time_text && *time_text >= '0' && *time_text <= '9')
		ms = strtod(time_text, &end);
	if (!end || *end || !(ms >= 0 && ms <= DELAY_MOST_MS))
		return sio_fail(reterr, -EINVAL,
				"--time %s: milliseconds up to %u, such as 0.25, are right; 0: no "
				"delay any more",
				time_text ? time_text : "is missing", DELAY_MOST_MS);
	*ret_ns = (uint64_t)(ms * 1e6);
	return 0;
}

static int fill_link(const struct sio_topology *t, char **words, struct request *ret,
		     struct sio_err *reterr)
{
	const struct sio_topo_host *host = NULL;
	unsigned adapter = 0;
	int r = parse_adapter(t, words[0], &host, &adapter, reterr);
	unsigned count = 1;
	uint64_t ns = 0;

	if (r < 0)
		return r;
	tool_json_string(ret->done, "host", host->name);
	tool_json_number(ret->done, "node", host->node);
	tool_json_number(ret->done, "adapter", adapter);
	if (strcmp(words[1], "errors") == 0) {
		parse_count(&count, NULL);
		snprintf(ret->text, sizeof(ret->text), "errors %u %u %u", host->node, adapter,
			 count);
		tool_json_number(ret->done, "errors", count);
		return 0;
	}
	if (strcmp(words[1], "delay") == 0) {
		parse_time(&ns, NULL);
		snprintf(ret->text, sizeof(ret->text), "delay %u %u %" PRIu64, host->node, adapter,
			 ns);
		tool_json_number(ret->done, "delay_ns", ns);
		return 0;
	}
	snprintf(ret->text, sizeof(ret->text), "link %u %u %s", host->node, adapter,
		 re_enumerate ? "again" : words[1]);
	tool_json_string(ret->done, "link", words[1]);
	tool_json_bool(ret->done, "re_enumerated", re_enumerate);
	return 0;
}

static int fill_switch(const struct sio_topology *t, char **words, struct request *ret,
		       struct sio_err *reterr)
{
	unsigned index = 0;
	int r = parse_switch(t, words[0], &index, NULL, reterr);

	if (r < 0)
		return r;
	snprintf(ret->text, sizeof(ret->text), "switch %u %s", index, words[1]);
	tool_json_string(ret->done, "switch", t->sw[index].name);
	tool_json_string(ret->done, "state", words[1]);
	return 0;
}

static int fill_trunk(const struct sio_topology *t, char **words, struct request *ret,
		      struct sio_err *reterr)
{
	struct json_object *ends;
	unsigned index = 0;
	int r = parse_trunk(t, words, &index, reterr);

	if (r < 0)
		return r;
	snprintf(ret->text, sizeof(ret->text), "trunk %u %s", index, words[2]);
	ends = tool_json_array();
	for (unsigned i = 0; i < 2; i++)
		tool_json_append(ends, tool_json_word(t->sw[t->trunk[index].sw[i]].name));
	tool_json_add(ret->done, "switches", ends);
	tool_json_number(ret->done, "trunk", index);
	tool_json_string(ret->done, "state", words[2]);
	return 0;
}

/* After the options were read, and the words were checked. */
static int carry_out(char **words, fill_request *fill, const char *schema, uint32_t wait_ms)
{
	struct request request = {.done = tool_json_object()};
	struct tool_programs *programs = NULL;
	struct sio_topology *t = NULL;
	char dir[PATH_MAX];
	struct sio_err err;
	int status = 0;
	int r = tool_find_cluster(dir, sizeof(dir), &t, &err);

	if (r == 0)
		r = fill(t, words, &request, &err);
	if (r == 0 && !no_wait)
		r = tool_programs_open(dir, &programs, &err);
	if (r == 0)
		r = tool_room_ask(dir, request.text, &err);
	sio_topology_free(t);
	if (r == 0 && programs)
		status = tool_programs_await(programs, 0, wait_ms, request.done);
	tool_programs_close(programs);
	if (r == 0 && tool_where.json)
		return tool_json_print(schema, request.done) ? TOOL_EXIT_FAILURE : status;
	json_object_put(request.done);
	return r < 0 ? tool_fail(&err) : status;
}

/* The last word is "down" or "up". */
static int do_fault(const struct tool_command *self, int argc, char **argv, fill_request *fill,
		    const char *schema)
{
	uint32_t wait_ms;
	struct sio_err err;
	const char *word;
	int first, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	word = argv[argc - 1];
	if (tool_wait_parse(wait_text, &wait_ms, &err) < 0)
		return tool_usage(self->name, "%s", err.text);
	if (strcmp(word, "down") != 0 && strcmp(word, "up") != 0)
		return tool_usage(self->name, "'%s': 'down' or 'up' is right", word);
	return carry_out(argv + first, fill, schema, wait_ms);
}

static int fault_link(const struct tool_command *self, int argc, char **argv)
{
	uint32_t wait_ms;
	struct sio_err err;
	const char *word;
	int first, status = 0;
	unsigned count;
	uint64_t ns;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	word = argv[first + 1];
	if (tool_wait_parse(wait_text, &wait_ms, &err) < 0 || parse_count(&count, &err) < 0 ||
	    (strcmp(word, "delay") == 0 && parse_time(&ns, &err) < 0))
		return tool_usage(self->name, "%s", err.text);
	if (strcmp(word, "down") != 0 && strcmp(word, "up") != 0 && strcmp(word, "errors") != 0 &&
	    strcmp(word, "delay") != 0)
		return tool_usage(self->name, "'%s': 'down', 'up', 'errors' or 'delay' is right",
				  word);
	if (re_enumerate && strcmp(word, "up") != 0)
		return tool_usage(self->name, "--re-enumerate is of 'up' alone");
	if (count_text && strcmp(word, "errors") != 0)
		return tool_usage(self->name, "--count is of 'errors' alone");
	if (time_text && strcmp(word, "delay") != 0)
		return tool_usage(self->name, "--time is of 'delay' alone");
	return carry_out(argv + first, fill_link, "fault-link", wait_ms);
}

static int fault_switch(const struct tool_command *self, int argc, char **argv)
{
	return do_fault(self, argc, argv, fill_switch, "fault-switch");
}

static int fault_trunk(const struct tool_command *self, int argc, char **argv)
{
	return do_fault(self, argc, argv, fill_trunk, "fault-trunk");
}

static const struct tool_option wait_options[] = {
	TOOL_OPTION_WAIT(&wait_text), TOOL_OPTION_NO_WAIT(&no_wait), {.name = NULL}};
static const struct tool_option link_options[] = {
	{"re-enumerate", .flag = &re_enumerate,
	 .text = "of up: what is connected over it finds its hosts with\n"
		 "other addresses; a link that is up goes down before"},
	{"count", .value = &count_text, .takes = "N", .text = "of errors: how many; default 1"},
	{"time", .value = &time_text, .takes = "MS",
	 .text = "of a delay, in milliseconds, such as 0.25; 0: no delay\n"
		 "any more"},
	TOOL_OPTION_WAIT(&wait_text),
	TOOL_OPTION_NO_WAIT(&no_wait),
	{.name = NULL}};

#define AND_WAIT                                                                                   \
	"\nThe command returns when the programs that are notified of it have switched, and\n"     \
	"prints those that have not in time: then its exit status is 3.\n"

const struct tool_command tool_fault_link_command = {
	.name = "fault link",
	.summary =
		"Pull the cable out of an adapter, put it back, or have its link count errors or be slow",
	.help = "Of an emulated cluster; adapter 0 is meant where none is named. Programs connected through it\n"
		"get SCI_CB_NOT_OPERATIONAL, and their mappings read as all ones; they get SCI_CB_OPERATIONAL\n"
		"when it is back, and all is as it was. Hosts that lend each other devices take the end of their\n"
		"last link for the other's end.\n\n"
		"After 'up --re-enumerate' no address of before leads anywhere: connections and borrows\n"
		"over that link are lost (SCI_CB_LOST), and all can be connected and mapped again.\n\n"
		"'errors' changes nothing but counters: SCICheckSequence() and SCIStartSequence() of sequences\n"
		"that go over the link return SCI_SEQ_RETRIABLE until they are started\n"
		"again, and what was stored is to be stored again.\n\n"
		"With 'delay' transfers of DMA engines over the link end so much later for each time that they\n"
		"cross it, twice for what is read. Loads and stores of processors, which nothing can hold up, and\n"
		"accesses of devices are as before: a drive's commands are late by 'fault device DRIVE delay'.\n" AND_WAIT,
	.schemas = "fault-link",
	.options = link_options,
	.words = {{"HOST[.ADAPTER]", TOOL_LINKS}, {"down|up|errors|delay", TOOL_CHOICES}},
	.run = fault_link};

const struct tool_command tool_fault_switch_command = {
	.name = "fault switch",
	.summary = "Take a cluster switch's power away, or give it back",
	.help = "Of an emulated cluster. The links of all adapters at it are down, and ways that led over it\n"
		"lead around it where they can; hosts that nothing joins any more are told as of a pulled cable.\n" AND_WAIT,
	.schemas = "fault-switch",
	.options = wait_options,
	.words = {{"SWITCH", TOOL_SWITCHES}, {"down|up", TOOL_CHOICES}},
	.run = fault_switch};

const struct tool_command tool_fault_trunk_command = {
	.name = "fault trunk",
	.summary = "Pull a link between two cluster switches out, or put it back",
	.help = "Of an emulated cluster. Ways that led over it lead around it where they can; hosts that\n"
		"nothing joins any more are told as of a pulled cable. Of links side by side SWITCH.PORT, with\n"
		"the first port of one, says which.\n" AND_WAIT,
	.schemas = "fault-trunk",
	.options = wait_options,
	.words = {{"SWITCH[.PORT]", TOOL_SWITCHES},
		  {"SWITCH[.PORT]", TOOL_SWITCHES},
		  {"down|up", TOOL_CHOICES}},
	.run = fault_trunk};
