/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks that every message must pass first, whoever sent it. */
#include <errno.h>
#include <string.h>

#include "smartio/uapi.h"
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
		return sio_fail(reterr, -EPROTO,
				"message %u says %u bytes and has %zu; the same is right",
				sio_from_le32(h.type), sio_from_le32(h.size), len);
	ret->size = sio_from_le32(h.size);
	ret->type = sio_from_le32(h.type);
	ret->id = sio_from_le32(h.id);
	ret->error = sio_from_le32(h.error);
	return 0;
}

int sio_wire_zero(const void *msg, const struct sio_wire_zero *zero, const char *kind,
		  const char *name, int rc, struct sio_err *reterr)
{
	sio_le32 value;

	if (!zero->at)
		return 0;
	memcpy(&value, (const char *)msg + zero->at, sizeof(value));
	if (value == 0)
		return 0;
	return sio_fail(reterr, rc, "%s %s: %s is %#x, 0 is right", kind, name, zero->field,
			sio_from_le32(value));
}

int sio_wire_refusal(const struct sio_msg_error *msg, struct sio_err *reterr)
{
	uint32_t type = sio_from_le32(msg->h.type), reason = sio_from_le32(msg->reason);

	if (!memchr(msg->text, 0, sizeof(msg->text)))
		return sio_fail(reterr, -EPROTO,
				"refusal %#x has a text without end; a NUL in its %zu bytes is "
				"right",
				type, sizeof(msg->text));
	if (reason >= SIO_OUT_OF_COUNT)
		return sio_fail(reterr, -EPROTO, "refusal %#x has reason %u, up to %d are known",
				type, reason, SIO_OUT_OF_COUNT - 1);
	if (msg->reserved)
		return sio_fail(reterr, -EPROTO, "refusal %#x: reserved is %#x, 0 is right", type,
				sio_from_le32(msg->reserved));
	return 0;
}
