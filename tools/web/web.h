/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TOOLS_WEB_H
#define TOOLS_WEB_H

#include <stdint.h>

#include "core/err.h"

/*
 * Shows the cluster in @dir, called @cluster, until SIGINT, SIGTERM or SIGHUP. Return: exit status.
 * -EOPNOTSUPP with its text: this smartio was built without libmicrohttpd.
 */
int tool_web_serve(const char *dir, const char *cluster, uint16_t port, int *ret_status,
		   struct sio_err *reterr);

#endif
