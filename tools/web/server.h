/* SPDX-License-Identifier: BSD-2-Clause */
/* The HTTP server of smartio web: for browsers of this machine only. */
#ifndef TOOLS_WEB_SERVER_H
#define TOOLS_WEB_SERVER_H

#include <stdint.h>

#include "core/err.h"
#include "web/access.h"
#include "web/watch.h"

struct tool_web_server;

/*
 * Listens on 127.0.0.1 and answers from a thread of its own, with the documents of @watch, which
 * outlives it. @port: 0: a free one. *@ret_port is the port.
 * Return: 0; -EADDRINUSE, -EACCES, ... with their text.
 */
int tool_web_server_start(uint16_t port, const char token[TOOL_WEB_TOKEN + 1],
			  struct tool_web_watch *watch, struct tool_web_server **ret,
			  uint16_t *ret_port, struct sio_err *reterr);
void tool_web_server_stop(struct tool_web_server *s);

/*
 * The page, and the policy that it is served with, which allows its style and script by their
 * hashes.
 */
extern const char tool_web_html[], tool_web_policy[];

#endif
