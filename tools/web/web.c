/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio web: the cluster in a browser of this machine. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/hosts.h"
#include "base/output.h"
#include "web/web.h"

static const char *port_text;
static const struct tool_option options[] = {
	{"port", 'p', .value = &port_text, .takes = "PORT", .kind = TOOL_ANY,
	 .text = "of 127.0.0.1 to listen on; default: a free one"},
	{.name = NULL}};

static bool read_port(uint16_t *ret)
{
	unsigned long n;
	char *end;

	*ret = 0;
	if (!port_text)
		return true;
	n = strtoul(port_text, &end, 10);
	if (*port_text < '0' || *port_text > '9' || *end || strlen(port_text) > 5 || n == 0 ||
	    n > UINT16_MAX)
		return false;
	*ret = (uint16_t)n;
	return true;
}

static int web(const struct tool_command *self, int argc, char **argv)
{
	char cluster[SIO_NAME_LEN], dir[PATH_MAX];
	struct tool_hosts *h;
	struct sio_err err;
	uint16_t port;
	int status = 0, r;

	if (tool_options(self, argc, argv, &status) < 0)
		return status;
	if (!read_port(&port))
		return tool_usage(self->name, "--port %s: 1 to 65535 is right", port_text);
	/* The cluster is chosen once: another one that comes up meanwhile changes nothing. */
	if (tool_hosts_open_only(TOOL_NO_OTHER, &h, &err) < 0)
		return tool_fail(&err);
	memcpy(cluster, h->topology->name, sizeof(cluster));
	memcpy(dir, h->dir, sizeof(dir));
	tool_hosts_close(h);
	r = tool_web_serve(dir, cluster, port, &status, &err);
	return r < 0 ? tool_fail(&err) : status;
}

const struct tool_command tool_web_command = {
	.name = "web",
	.summary = "Show the cluster in a browser, live: its graph, rates, faults and borrowers",
	.help = "The first line printed is the address to open; its token is what lets a browser read. It\n"
		"listens on this machine alone, asks the cluster once a second while a page is open, changes\n"
		"nothing, and ends by Ctrl-C. From another machine: ssh -L PORT:127.0.0.1:PORT. With --json\n"
		"the address is printed as JSON; what the page reads, /live.json, is of the schema web-live.\n",
	.schemas = "web web-live",
	.options = options,
	.run = web};
