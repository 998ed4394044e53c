/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer protocol's types and sizes. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "wire/check.h"

struct peer_type {
	const char *name;
	uint16_t type, request, reply; /* sizes; reply 0: notification */
	struct sio_wire_zero zero, reply_zero;
};

#define TYPE(NAME, name, number, message, zero, reply, reply_zero)                                 \
	{#NAME,                                                                                    \
	 number,                                                                                   \
	 sizeof(struct message),                                                                   \
	 sizeof(struct reply),                                                                     \
	 {SIO_WIRE_ZERO(message, zero)},                                                           \
	 {SIO_WIRE_ZERO(reply, reply_zero)}},

static const struct peer_type types[] = {SIO_PEER_MESSAGES(TYPE)};

static const struct peer_type *find(uint32_t type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return &types[i];
	return NULL;
}

size_t sio_peer_size(uint32_t type)
{
	const struct peer_type *t = find(SIO_PEER_TYPE(type));

	if (!t)
		return 0;
	return type & SIO_PEER_REPLY ? t->reply : t->request;
}

int sio_peer_is_notification(uint32_t type)
{
	const struct peer_type *t = find(type);

	return t && t->reply == 0;
}

int sio_peer_check(const void *msg, size_t len, struct sio_wire_header *ret, struct sio_err *reterr)
{
	int rc = sio_wire_header(msg, len, ret, reterr);
	const struct peer_type *t;
	bool reply;
	size_t want;

	if (rc < 0)
		return rc;
	reply = ret->type & SIO_PEER_REPLY;
	want = sio_peer_size(ret->type);
	if (want == 0)
		return sio_fail(reterr, -EPROTO,
				"message type %#x is not known; those of protocol version %d are "
				"right",
				ret->type, SIO_PEER_VERSION);
	if (reply && ret->error)
		want = sizeof(struct sio_msg_error);
	if (len != want)
		return sio_fail(reterr, -EPROTO, "message %#x has %zu bytes, not %zu", ret->type,
				len, want);
	if (reply && ret->error)
		return sio_wire_refusal(msg, reterr);
	if (!reply && (ret->error || (ret->id == 0) != (sio_peer_is_notification(ret->type) != 0)))
		return sio_fail(reterr, -EPROTO,
				"message %#x has id %u and error %u; error 0 is right, and %s",
				ret->type, ret->id, ret->error,
				sio_peer_is_notification(ret->type) ? "id 0" : "an id from 1 on");
	t = find(SIO_PEER_TYPE(ret->type));
	return sio_wire_zero(msg, reply ? &t->reply_zero : &t->zero, reply ? "reply to" : "message",
			     t->name, -EPROTO, reterr);
}
