/* SPDX-License-Identifier: BSD-2-Clause */
/* What a client sees of a drive's standby managers. */
#include <errno.h>

#include "client.h"
#include "error.h"
#include "smartio/ext.h"
#include "standby_look.h"

int smartio_nvme_get_standbys(struct smartio_nvme *n, struct smartio_nvme_standby *standby,
			      unsigned max)
{
	struct smartio_nvme *leg;
	unsigned found = 0;
	bool lost;

	sio_nvme_lock(n);
	leg = sio_nvme_way(n);
	for (unsigned i = 0; i < SIO_NVME_STANDBYS && found < max; i++)
		found += sio_nvme_standby_at(&leg->d, i, &standby[found]);
	lost = smartio_device_lost(leg->d.handle);
	sio_nvme_unlock(n);
	if (lost)
		return sio_nvme_fail(-ENODEV, "%s or its host is gone", n->d.name);
	return (int)found;
}
