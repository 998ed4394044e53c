/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio machine fetch, console, stop, list, demo. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/command.h"
#include "base/hint.h"
#include "base/output.h"
#include "base/state.h"
#include "cluster/start.h"
#include "machine/asks.h"
#include "machine/client.h"
#include "machine/config.h"
#include "machine/helper.h"

#define POWER_OFF_MS 30000

static bool dry_run, now;

/* ---- fetch ---- */

static int fetch(const struct tool_command *self, int argc, char **argv)
{
	struct json_object *asks;
	int status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	status = machine_check_kernel(self);
	if (status != 0)
		return status;
	asks = machine_asks(NULL);
	tool_json_bool(asks, "dry_run", dry_run);
	return machine_ask("fetch", asks, "machine-fetch");
}

static const struct tool_option fetch_options[] = {
	MACHINE_OPTION_KERNEL,
	{"dry-run", .flag = &dry_run, .text = "say what would be fetched, and fetch nothing"},
	{.name = NULL}};

const struct tool_command tool_machine_fetch_command = {
	.name = "machine fetch",
	.summary = "Fetch once what virtual machines need",
	.help = "Says first what it does. A QEMU with a vfio-user client, a Debian kernel with its headers,\n"
		"and the kernel's NTB core are fetched from the archive that apt is configured with into the\n"
		"user's cache, and SmartIO's modules are compiled for that kernel. Nothing is installed, and no\n"
		"rights of root are needed. What is there already is kept.\n",
	.page = "smartio-machine",
	.schemas = "machine-fetch",
	.options = fetch_options,
	.run = fetch};

/* ---- console ---- */

static int console(const struct tool_command *self, int argc, char **argv)
{
	struct json_object *asks;
	int status = 0;
	struct machine m;

	if (!machine_of_words(self, argc, argv, &m, &status))
		return status;
	if (tool_state_machine(m.dir, m.host->node, NULL) != TOOL_MACHINE_RUNNING) {
		char hint[TOOL_HINT_TEXT];

		status = tool_error_code(-ENETDOWN,
					 "machine '%s' does not run; what it said last is in "
					 "%s/machine.%u.log; start it with: %s machine start %s",
					 m.host->name, m.dir, m.host->node, tool_hint(m.dir, hint),
					 m.host->name);
	} else {
		asks = machine_asks(m.dir);
		tool_json_string(asks, "directory", m.dir);
		tool_json_number(asks, "node", m.host->node);
		tool_json_string(asks, "name", m.host->name);
		status = machine_helper_exec("console", asks);
		json_object_put(asks);
	}
	machine_done(&m);
	return status;
}

const struct tool_command tool_machine_console_command = {
	.name = "machine console",
	.summary = "Type at the console of a virtual machine",
	.help = "A shell of root on its serial line, and what its kernel says. Ctrl-] leaves; the machine\n"
		"stays. Where standard input is no terminal, what comes there is typed, and its end leaves.\n",
	.page = "smartio-machine",
	.words = {{"NODE", TOOL_MACHINES}},
	.run = console};

/* ---- stop ---- */

/* Return: true: the machine has ended. */
static bool power_off(const struct machine *m, int pidfd)
{
	static char *const words[] = {"poweroff", NULL};
	const struct machine_run run = {.argv = words,
					.dir = m->dir,
					.host = m->host->name,
					.node = m->host->node,
					.silent = true};

	machine_run(&run);
	return tool_wait_until(&pidfd, 1, POWER_OFF_MS);
}

static int print_stopped(const struct machine *m, const char *was)
{
	struct json_object *o = tool_json_object();

	tool_json_string(o, "name", m->host->name);
	tool_json_number(o, "node", m->host->node);
	tool_json_string(o, "was", was);
	return tool_json_print("machine-stop", o);
}

static int stop_machine(const struct machine *m)
{
	enum tool_machine_state was = tool_state_machine(m->dir, m->host->node, NULL);
	struct tool_program p = {.pidfd = -1};
	char name[48], path[PATH_MAX];
	bool in_order = false;

	tool_state_machine_name(m->host->node, name, sizeof(name));
	if (was == TOOL_MACHINE_OFF)
		return tool_error_code(-ESRCH, "machine '%s' is off", m->host->name);
	if (tool_state_program(m->dir, name, true, &p) == 0) {
		in_order = !now && power_off(m, p.pidfd);
		if (!in_order)
			tool_stop_all(&p.pidfd, 1);
		close(p.pidfd);
	}
	/* Files of a machine that was killed. */
	if (tool_path(path, sizeof(path), NULL, "%s/%s.pid", m->dir, name) == 0)
		unlink(path);
	if (was == TOOL_MACHINE_KILLED)
		tool_note("machine '%s' had been killed; it is off now", m->host->name);
	else
		tool_note("machine '%s' is off%s", m->host->name,
			  in_order || now ? "" : "; it did not switch itself off in time");
	return tool_where.json ? print_stopped(m, tool_machine_state_name(was)) : 0;
}

static int stop(const struct tool_command *self, int argc, char **argv)
{
	int status = 0;
	struct machine m;

	if (!machine_of_words(self, argc, argv, &m, &status))
		return status;
	status = stop_machine(&m);
	machine_done(&m);
	return status;
}

static const struct tool_option stop_options[] = {
	{"now", .flag = &now, .text = "as if its power were cut"}, {.name = NULL}};

const struct tool_command tool_machine_stop_command = {
	.name = "machine stop",
	.summary = "Switch a virtual machine off",
	.help = "In order, or, where that takes more than 30 seconds, by cutting its power.\n",
	.page = "smartio-machine",
	.schemas = "machine-stop",
	.options = stop_options,
	.words = {{"NODE", TOOL_MACHINES}},
	.run = stop};

/* ---- list ---- */

static int list(const struct tool_command *self, int argc, char **argv)
{
	struct json_object *array = NULL, *o;
	struct sio_topology *t = NULL;
	struct tool_table *table = NULL;
	char dir[PATH_MAX], ip[MACHINE_ADDRESS_TEXT];
	struct sio_err err;
	int status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	if (tool_find_cluster(dir, sizeof(dir), &t, &err) < 0)
		return tool_fail(&err);
	if (tool_where.json)
		array = tool_json_array();
	else
		table = tool_table_new("MACHINE|>NODE|STATE|>PROCESS|ADDRESS");
	for (unsigned i = 0; i < t->n_machines; i++) {
		const struct sio_topo_host *h = &t->machine[i];
		pid_t pid;
		const char *state = tool_machine_state_name(tool_state_machine(dir, h->node, &pid));

		if (table) {
			tool_table_cell(table, "%s", h->name);
			tool_table_cell(table, "%u", h->node);
			tool_table_cell(table, "%s", state);
			if (pid)
				tool_table_cell(table, "%d", (int)pid);
			else
				tool_table_cell(table, "-");
			tool_table_cell(table, "%s", machine_address(t, i, ip));
			continue;
		}
		o = tool_json_object();
		tool_json_string(o, "name", h->name);
		tool_json_number(o, "node", h->node);
		tool_json_string(o, "state", state);
		tool_json_number(o, "pid", (uint64_t)pid);
		tool_json_string(o, "address", machine_address(t, i, ip));
		tool_json_append(array, o);
	}
	sio_topology_free(t);
	if (table)
		return tool_table_end(table);
	o = tool_json_object();
	tool_json_add(o, "machines", array);
	return tool_json_print("machine-list", o);
}

const struct tool_command tool_machine_list_command = {
	.name = "machine list",
	.summary = "Show the virtual machines of the cluster",
	.help = "States: off; running; killed (its QEMU ended otherwise than by 'machine stop', or by the\n"
		"machine itself).\n",
	.page = "smartio-machine",
	.schemas = "machine-list",
	.run = list};

/* ---- demo ---- */

static int demo(const struct tool_command *self, int argc, char **argv)
{
	struct json_object *asks;
	char path[PATH_MAX];
	struct sio_err err;
	int status = 0;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	status = machine_check_kernel(self);
	if (status != 0)
		return status;
	if (tool_find_binary("smartio", path, sizeof(path), &err) < 0)
		return tool_fail(&err);
	asks = machine_asks(NULL);
	tool_json_bool(asks, "dry_run", false);
	tool_json_string(asks, "program", path);
	return machine_ask("demo", asks, "machine-demo");
}

static const struct tool_option demo_options[] = {MACHINE_OPTION_KERNEL, {.name = NULL}};

const struct tool_command tool_machine_demo_command = {
	.name = "machine demo",
	.summary = "Have one virtual machine use the drive of another",
	.help = "Fetches what is missing, brings a cluster of two machines up in a folder of its own, writes\n"
		"from one to the drive of the other and reads it, and takes all down.\n",
	.page = "smartio-machine",
	.schemas = "machine-demo",
	.options = demo_options,
	.run = demo};
