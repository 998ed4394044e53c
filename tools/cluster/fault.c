/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio fault: what an operator at the hardware could do. The machine room carries it out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "base/room.h"
#include "base/state.h"
#include "cluster/programs.h"

static const char *wait_text;
static bool no_wait;

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

static int fill_link(const struct sio_topology *t, char **words, struct request *ret,
		     struct sio_err *reterr)
{
	const struct sio_topo_host *host = NULL;
	unsigned adapter = 0;
	int r = parse_adapter(t, words[0], &host, &adapter, reterr);

	if (r < 0)
		return r;
	snprintf(ret->text, sizeof(ret->text), "link %u %u %s", host->node, adapter, words[1]);
	tool_json_string(ret->done, "host", host->name);
	tool_json_number(ret->done, "node", host->node);
	tool_json_number(ret->done, "adapter", adapter);
	tool_json_string(ret->done, "link", words[1]);
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

/* The last word is @bad or @good. */
static int do_fault(const struct tool_command *self, int argc, char **argv, const char *bad,
		    const char *good, fill_request *fill, const char *schema)
{
	struct tool_programs *programs = NULL;
	struct sio_topology *t = NULL;
	struct request request;
	uint32_t wait_ms;
	char dir[PATH_MAX];
	struct sio_err err;
	int r, first, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (tool_wait_parse(wait_text, &wait_ms, &err) < 0)
		return tool_usage(self->name, "%s", err.text);
	if (strcmp(argv[argc - 1], bad) != 0 && strcmp(argv[argc - 1], good) != 0)
		return tool_usage(self->name, "'%s': '%s' or '%s' is right", argv[argc - 1], bad,
				  good);
	request.done = tool_json_object();
	r = tool_find_cluster(dir, sizeof(dir), &t, &err);
	if (r == 0)
		r = fill(t, argv + first, &request, &err);
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

static int fault_link(const struct tool_command *self, int argc, char **argv)
{
	return do_fault(self, argc, argv, "down", "up", fill_link, "fault-link");
}

static int fault_switch(const struct tool_command *self, int argc, char **argv)
{
	return do_fault(self, argc, argv, "down", "up", fill_switch, "fault-switch");
}

static int fault_trunk(const struct tool_command *self, int argc, char **argv)
{
	return do_fault(self, argc, argv, "down", "up", fill_trunk, "fault-trunk");
}

static const struct tool_option wait_options[] = {
	TOOL_OPTION_WAIT(&wait_text), TOOL_OPTION_NO_WAIT(&no_wait), {.name = NULL}};

#define AND_WAIT                                                                                   \
	"\nThe command returns when the programs that are told of it have switched, and prints\n"  \
	"those that have not in time: then its exit status is 3.\n"

const struct tool_command tool_fault_link_command = {
	.name = "fault link",
	.summary = "Pull the cable out of an adapter, or put it back",
	.help = "Of an emulated cluster; adapter 0 is meant where none is named. Programs connected through it\n"
		"get SCI_CB_NOT_OPERATIONAL, and their mappings read as all ones; they get SCI_CB_OPERATIONAL\n"
		"when it is back, and all is as it was. Hosts that lend each other devices take the end of their\n"
		"last link for the other's end.\n" AND_WAIT,
	.schemas = "fault-link",
	.options = wait_options,
	.words = {{"HOST[.ADAPTER]", TOOL_LINKS}, {"down|up", TOOL_CHOICES}},
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
