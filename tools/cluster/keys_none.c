/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds without GnuTLS: no keys, and therefore no clusters whose hosts have addresses. */
#include <errno.h>

#include "cluster/keys.h"

int tool_keys_make(const char *folder, const struct sio_topology *t, unsigned days,
		   struct sio_err *reterr)
{
	(void)folder;
	(void)days;
	return sio_fail(reterr, -EOPNOTSUPP,
			"the hosts of cluster '%s' have addresses, and this smartio was built "
			"without GnuTLS (option tls)",
			t->name);
}
