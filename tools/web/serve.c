/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of smartio web, and when they end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/command.h"
#include "base/output.h"
#include "web/server.h"
#include "web/web.h"

static int make_token(char token[TOOL_WEB_TOKEN + 1], struct sio_err *reterr)
{
	unsigned char bytes[TOOL_WEB_TOKEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return sio_fail(reterr, -errno, "no random numbers: %s", strerror(errno));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int print_address(const char *cluster, uint16_t port, const char *token)
{
	struct json_object *o;
	char url[64 + TOOL_WEB_TOKEN];

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/?token=%s", port, token);
	if (!tool_where.json) {
		puts(url);
		return tool_flush();
	}
	o = tool_json_object();
	tool_json_string(o, "cluster", cluster);
	tool_json_string(o, "url", url);
	tool_json_number(o, "port", port);
	return tool_json_print("web", o);
}

int tool_web_serve(const char *dir, const char *cluster, uint16_t port, int *ret_status,
		   struct sio_err *reterr)
{
	char token[TOOL_WEB_TOKEN + 1];
	struct tool_web_server *server;
	struct tool_web_watch *watch;
	sigset_t ends;
	int r, number;

	/* Before threads start: a signal must reach this thread. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	tool_notes_off();
	r = make_token(token, reterr);
	if (r < 0)
		return r;
	r = tool_web_watch_start(dir, cluster, &watch, reterr);
	if (r < 0)
		return r;
	r = tool_web_server_start(port, token, watch, &server, &port, reterr);
	if (r == 0) {
		*ret_status = print_address(cluster, port, token);
		if (*ret_status == 0)
			sigwait(&ends, &number);
		tool_web_server_stop(server);
	}
	tool_web_watch_stop(watch);
	return r;
}
