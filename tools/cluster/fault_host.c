/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio fault host: a host loses its power, or gets it back. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/command.h"
#include "base/output.h"
#include "base/room.h"
#include "base/state.h"
#include "cluster/cluster.h"
#include "cluster/programs.h"

static const char *wait_text;
static bool no_wait, other_addresses;

/* Its daemon ends at once, without a word to anybody. */
static void kill_daemon(const char *dir, const struct sio_topo_host *host)
{
	struct tool_program p = {.pidfd = -1};
	struct pollfd end = {.events = POLLIN};
	char name[48];

	tool_state_daemon_name(host->node, name, sizeof(name));
	if (tool_state_program(dir, name, true, &p) < 0)
		return;
	pidfd_send_signal(p.pidfd, SIGKILL, NULL, 0);
	end.fd = p.pidfd;
	while (poll(&end, 1, -1) < 0 && errno == EINTR)
		;
	close(p.pidfd);
}

static int ask(const char *dir, const struct sio_topo_host *host, const char *what,
	       struct sio_err *reterr)
{
	char request[64];

	snprintf(request, sizeof(request), "host %u %s", host->node, what);
	return tool_room_ask(dir, request, reterr);
}

/* When the room answers, it has told all other hosts. */
static int take_down(const char *dir, const struct sio_topo_host *host, uint32_t wait_ms,
		     struct json_object *done, int *ret_status, struct sio_err *reterr)
{
	struct tool_programs *programs = NULL;
	int r = tool_room_ask(dir, "outage", reterr); /* a real host has no room: not its daemon */

	if (r == 0 && !no_wait)
		r = tool_programs_open(dir, &programs, reterr);
	if (r < 0)
		return r;
	kill_daemon(dir, host);
	r = ask(dir, host, "down", reterr);
	if (r == 0 && programs)
		*ret_status = tool_programs_await(programs, host->node, wait_ms, done);
	tool_programs_close(programs);
	return r;
}

static int bring_up(const char *dir, const struct sio_topology *t, const struct sio_topo_host *host,
		    struct sio_err *reterr)
{
	int r = other_addresses ? ask(dir, host, "move", reterr) : 0;

	return r < 0 ? r : tool_cluster_restart(dir, t, host, tool_cancel_fd(), reterr);
}

static int fault_host(const struct tool_command *self, int argc, char **argv)
{
	const struct sio_topo_host *host = NULL;
	struct sio_topology *t = NULL;
	struct json_object *done;
	uint32_t wait_ms;
	char dir[PATH_MAX];
	struct sio_err err;
	int r, first, status = 0;
	bool up;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	up = strcmp(argv[first + 1], "up") == 0;
	if (!up && strcmp(argv[first + 1], "down") != 0)
		return tool_usage(self->name, "'%s': 'down' or 'up' is right", argv[first + 1]);
	if (other_addresses && !up)
		return tool_usage(self->name, "--other-addresses is of 'up' alone");
	if (tool_wait_parse(wait_text, &wait_ms, &err) < 0)
		return tool_usage(self->name, "%s", err.text);
	done = tool_json_object();
	r = tool_find_cluster(dir, sizeof(dir), &t, &err);
	if (r == 0)
		r = tool_find_host(t, argv[first], &host, &err);
	if (r == 0) {
		tool_json_string(done, "host", host->name);
		tool_json_number(done, "node", host->node);
		tool_json_string(done, "state", argv[first + 1]);
		tool_json_bool(done, "other_addresses", other_addresses);
		r = up ? bring_up(dir, t, host, &err)
		       : take_down(dir, host, wait_ms, done, &status, &err);
	}
	sio_topology_free(t);
	if (r == 0 && tool_where.json)
		return tool_json_print("fault-host", done) ? TOOL_EXIT_FAILURE : status;
	json_object_put(done);
	return r < 0 ? tool_fail(&err) : status;
}

static const struct tool_option fault_host_options[] = {
	{"other-addresses", .flag = &other_addresses,
	 .text = "of up: RAM, windows and BARs lie elsewhere than before"},
	TOOL_OPTION_WAIT(&wait_text),
	TOOL_OPTION_NO_WAIT(&no_wait),
	{.name = NULL}};

const struct tool_command tool_fault_host_command = {
	.name = "fault host",
	.summary = "Take a host's power away, or start it again",
	.help = "Of an emulated cluster. The host crashes: its smartiod, and programs that smartio run keeps, are\n"
		"killed, its memory is empty, its devices are reset; what others had of it is lost. The command\n"
		"returns when the other hosts' programs that are notified of it have switched, and prints those\n"
		"that have not in time: then its exit status is 3.\n\n"
		"'up' does what smartio cluster restart-node does. With --other-addresses the host finds another\n"
		"layout of its addresses first, as after a change of its firmware. It keeps that until the cluster\n"
		"is taken down: node list and topology show the file's all the same, and the file cannot be\n"
		"reloaded.\n",
	.schemas = "fault-host",
	.options = fault_host_options,
	.words = {{"HOST", TOOL_NODES}, {"down|up", TOOL_CHOICES}},
	.run = fault_host};
