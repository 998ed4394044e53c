/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces serve.c and server.c where there is no libmicrohttpd. */
#include <errno.h>

#include "web/web.h"

int tool_web_serve(const char *dir, const char *cluster, uint16_t port, int *ret_status,
		   struct sio_err *reterr)
{
	(void)dir;
	(void)cluster;
	(void)port;
	(void)ret_status;
	return sio_fail(reterr, -EOPNOTSUPP,
			"this smartio was built without libmicrohttpd, which serves pages; "
			"smartio top shows the same on a terminal");
}
