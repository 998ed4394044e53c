/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A build without GnuTLS: hosts that have an address cannot be reached, because nothing is sent
 * without encryption.
 */
#include <errno.h>

#include "smartiod/live/transport.h"

static int none_open(struct live *l, void (*accepted)(struct live *l, int fd),
		     struct sio_err *reterr)
{
	(void)accepted;
	return sio_fail(reterr, -EOPNOTSUPP,
			"host '%s' has an address, and this smartiod was built without GnuTLS "
			"(option tls); daemons speak over the network by TLS alone",
			l->host->name);
}

static void none_close(struct live *l)
{
	(void)l;
}

const struct live_transport live_transport_tls = {.open = none_open, .close = none_close};
