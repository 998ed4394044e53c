/* SPDX-License-Identifier: BSD-2-Clause */
/* What a client sees of a drive's standby managers. */
#include <errno.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "shared.h"
#include "smartio/ext.h"
#include "smartio/io.h"

/* False: there is none with that number, or it comes, or goes, just now. */
static bool look_at(struct smartio_nvme *n, unsigned number, struct smartio_nvme_standby *ret)
{
	struct sio_nvme_wire_standby wire;
	struct sio_nvme_shared segment;
	int rc = sio_nvme_shared_open(&n->d, SIO_NVME_STANDBY_SEGMENT + number, sizeof(wire), false,
				      &segment);

	if (rc)
		return false;
	/* Pairs with the standby's: behind the magic number stands the rest. */
	rc = sio_read32(segment.at) == 0 ? -EAGAIN : 0;
	sio_from_fabric_barrier();
	if (rc == 0) {
		sio_copy_from(&wire, segment.at, sizeof(wire));
		rc = sio_nvme_standby_decode(&wire, &wire);
	}
	sio_nvme_shared_close(&segment);
	if (rc)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->node = wire.node;
	memcpy(ret->program, wire.program, sizeof(ret->program));
	for (char *c = ret->program; *c; c++)
		*c = *c >= ' ' && *c <= '~' ? *c : '?';
	return true;
}

bool sio_nvme_has_standby(struct smartio_nvme *n)
{
	struct smartio_nvme_standby ignored;

	for (unsigned i = 0; i < SIO_NVME_STANDBYS; i++)
		if (look_at(n, i, &ignored))
			return true;
	return false;
}

int smartio_nvme_get_standbys(struct smartio_nvme *n, struct smartio_nvme_standby *standby,
			      unsigned max)
{
	unsigned found = 0;

	sio_nvme_lock(n);
	for (unsigned i = 0; i < SIO_NVME_STANDBYS && found < max; i++)
		found += look_at(n, i, &standby[found]);
	sio_nvme_unlock(n);
	if (smartio_device_lost(n->d.handle))
		return sio_nvme_fail(-ENODEV, "%s or its host is gone", n->d.name);
	return (int)found;
}
