/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "protocol.h"
#include "shared.h"
#include "smartio/io.h"
#include "standby_look.h"

bool sio_nvme_standby_at(struct sio_nvme_device *d, unsigned number,
			 struct smartio_nvme_standby *ret)
{
	struct sio_nvme_wire_standby wire;
	struct sio_nvme_shared segment;
	int rc = sio_nvme_shared_open(d, SIO_NVME_STANDBY_SEGMENT + number, sizeof(wire), false,
				      &segment);

	if (rc)
		return false;
	/* Behind the magic number stands the rest: pairs with publish_standby(). */
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

bool sio_nvme_has_standby(struct sio_nvme_device *d)
{
	struct smartio_nvme_standby ignored;

	for (unsigned i = 0; i < SIO_NVME_STANDBYS; i++)
		if (sio_nvme_standby_at(d, i, &ignored))
			return true;
	return false;
}
