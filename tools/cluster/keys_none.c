/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds without GnuTLS: no keys, and therefore no clusters whose hosts have addresses. */
#include <errno.h>

#include "cluster/keys.h"

static int refuse(const struct sio_topology *t, struct sio_err *reterr)
{
	return sio_fail(reterr, -EOPNOTSUPP,
			"the hosts of cluster '%s' have addresses, and this smartio was built "
			"without GnuTLS (option tls)",
			t->name);
}

int tool_keys_make(const char *folder, const struct sio_topology *t, unsigned days,
		   struct sio_err *reterr)
{
	(void)folder;
	(void)days;
	return refuse(t, reterr);
}

int tool_keys_renew(const char *folder, const struct sio_topology *t,
		    const struct sio_topo_host *host, unsigned days, struct sio_err *reterr)
{
	(void)folder;
	(void)host;
	(void)days;
	return refuse(t, reterr);
}

int tool_keys_revoke_removed(const char *folder, const struct sio_topology *t, unsigned *ret,
			     struct sio_err *reterr)
{
	(void)folder;
	*ret = 0;
	return refuse(t, reterr);
}
