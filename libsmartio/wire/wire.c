/* SPDX-License-Identifier: BSD-2-Clause */
/* What every message is checked for first, whoever sent it. */
#include <errno.h>
#include <string.h>

#include "wire/check.h"

int sio_wire_header(const void *msg, size_t len, struct sio_wire_header *ret,
		    struct sio_err *reterr)
{
	struct sio_msg h;

	if (len < sizeof(h) || len > SIO_WIRE_MAX)
		return sio_fail(reterr, -EPROTO, "a packet of %zu bytes; a message has %zu to %u",
				len, sizeof(h), SIO_WIRE_MAX);
	memcpy(&h, msg, sizeof(h));
	if (sio_from_le32(h.size) != len)
		return sio_fail(reterr, -EPROTO, "message %u says %u bytes and has %zu",
				sio_from_le32(h.type), sio_from_le32(h.size), len);
	ret->size = sio_from_le32(h.size);
	ret->type = sio_from_le32(h.type);
	ret->id = sio_from_le32(h.id);
	ret->error = sio_from_le32(h.error);
	return 0;
}
