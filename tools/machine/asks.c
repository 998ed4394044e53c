/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/hint.h"
#include "base/output.h"
#include "machine/asks.h"
#include "machine/helper.h"

const char *machine_kernel;

int machine_find(const char *name, struct machine *m)
{
	struct sio_err err;
	int r;

	m->topology = NULL;
	r = tool_find_cluster(m->dir, sizeof(m->dir), &m->topology, &err);
	if (r == 0)
		r = tool_find_machine(m->topology, name, &m->host, &err);
	if (r == 0)
		return 0;
	sio_topology_free(m->topology);
	return tool_fail(&err);
}

void machine_done(struct machine *m)
{
	sio_topology_free(m->topology);
}

bool machine_of_words(const struct tool_command *self, int argc, char **argv, struct machine *m,
		      int *ret_status)
{
	int first = tool_options(self, argc, argv, ret_status);

	if (first < 0)
		return false;
	*ret_status = machine_find(argv[first], m);
	return *ret_status == 0;
}

static const char *which_kernel(void)
{
	return machine_kernel ? machine_kernel : "6.1";
}

int machine_check_kernel(const struct tool_command *self)
{
	if (strcmp(which_kernel(), "6.1") != 0 && strcmp(which_kernel(), "6.12") != 0)
		return tool_usage(self->name, "--kernel %s: 6.1 or 6.12 is right", machine_kernel);
	return 0;
}

struct json_object *machine_asks(const char *dir)
{
	struct json_object *o = tool_json_object();
	char hint[TOOL_HINT_TEXT];

	tool_json_string(o, "kernel", which_kernel());
	tool_json_string(o, "version", SMARTIO_VERSION);
	tool_json_string(o, "smartio", tool_hint(dir, hint));
	return o;
}

int machine_ask(const char *verb, struct json_object *asks, const char *schema)
{
	struct json_object *result = NULL;
	int status = machine_helper(verb, asks, &result);

	json_object_put(asks);
	if (status == 0 && tool_where.json && result)
		return tool_json_print(schema, result);
	json_object_put(result);
	return status;
}
