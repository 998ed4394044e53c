/* SPDX-License-Identifier: BSD-2-Clause */
/* The client protocol's types, their sizes and reserved fields. */
#include <errno.h>
#include <string.h>

#include "wire/check.h"

struct client_type {
	const char *name;
	uint16_t type, request, reply; /* sizes */
	struct sio_wire_zero zero, reply_zero;
};

#define TYPE(NAME, name, number, request, zero, reply, reply_zero)                                 \
	{#NAME,                                                                                    \
	 number,                                                                                   \
	 sizeof(struct request),                                                                   \
	 sizeof(struct reply),                                                                     \
	 {SIO_WIRE_ZERO(request, zero)},                                                           \
	 {SIO_WIRE_ZERO(reply, reply_zero)}},

static const struct client_type types[] = {SIO_CLIENT_REQUESTS(TYPE)};

struct event_type {
	const char *name;
	uint16_t type, size;
	struct sio_wire_zero zero;
};

#define EVENT(NAME, number, event, zero)                                                           \
	{#NAME, number, sizeof(struct event), {SIO_WIRE_ZERO(event, zero)}},

static const struct event_type events[] = {SIO_CLIENT_EVENTS(EVENT)};

static const struct client_type *find(uint32_t type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return &types[i];
	return NULL;
}

static const struct event_type *find_event(uint32_t type)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i].type == type)
			return &events[i];
	return NULL;
}

size_t sio_client_request_size(uint32_t type)
{
	const struct client_type *t = find(type);

	return t ? t->request : 0;
}

size_t sio_client_event_size(uint32_t type)
{
	const struct event_type *e = find_event(type);

	return e ? e->size : 0;
}

int sio_client_check_request(const void *msg, size_t len, struct sio_wire_header *ret,
			     struct sio_err *reterr)
{
	int rc = sio_wire_header(msg, len, ret, reterr);
	const struct client_type *t;

	if (rc < 0)
		return rc;
	t = find(ret->type);
	if (!t)
		return sio_fail(reterr, -EPROTO,
				"request type %u is not known; those of protocol version %d are "
				"right",
				ret->type, SIO_CLIENT_VERSION);
	if (len != t->request)
		return sio_fail(reterr, -EPROTO, "request %u has %zu bytes, not %u", ret->type, len,
				t->request);
	if (ret->id == 0 || ret->error != 0)
		return sio_fail(reterr, -EPROTO,
				"request %u has id %u and error %u; an id from 1 on and error 0 "
				"are right",
				ret->type, ret->id, ret->error);
	return sio_wire_zero(msg, &t->zero, "request", t->name, -EINVAL, reterr);
}

int sio_client_check_reply(uint32_t type, const void *msg, size_t len, struct sio_wire_header *ret,
			   struct sio_err *reterr)
{
	int rc = sio_wire_header(msg, len, ret, reterr);
	const struct client_type *t = find(type);
	size_t want;

	if (rc < 0)
		return rc;
	if (!t || ret->type != type)
		return sio_fail(reterr, -EPROTO,
				"a reply of type %u to a request of type %u; the same is right",
				ret->type, type);
	if (ret->error >= SIO_WIRE_ERRORS)
		return sio_fail(reterr, -EPROTO, "the reply to %u has error %u, up to %u are known",
				type, ret->error, SIO_WIRE_ERRORS - 1);
	want = ret->error ? sizeof(struct sio_msg_error) : t->reply;
	if (len != want)
		return sio_fail(reterr, -EPROTO, "the reply to %u has %zu bytes, not %zu", type,
				len, want);
	if (ret->error)
		return sio_wire_refusal(msg, reterr);
	return sio_wire_zero(msg, &t->reply_zero, "reply to", t->name, -EPROTO, reterr);
}

/* So often does its receiver do something. */
static int check_segment(const void *msg, struct sio_err *reterr)
{
	struct sio_evm_segment evm;

	memcpy(&evm, msg, sizeof(evm));
	if (sio_from_le32(evm.count) > SIO_EVM_TIMES)
		return sio_fail(reterr, -EPROTO,
				"event %u happened %u times, a message reports %u at most",
				sio_from_le32(evm.h.type), sio_from_le32(evm.count), SIO_EVM_TIMES);
	if (sio_from_le32(evm.loss) > SIO_LOSS_REMOVED)
		return sio_fail(reterr, -EPROTO, "event %u of loss %u, up to %d are known",
				sio_from_le32(evm.h.type), sio_from_le32(evm.loss),
				SIO_LOSS_REMOVED);
	return 0;
}

int sio_client_check_event(const void *msg, size_t len, struct sio_wire_header *ret,
			   struct sio_err *reterr)
{
	int rc = sio_wire_header(msg, len, ret, reterr);
	const struct event_type *e;

	if (rc < 0)
		return rc;
	e = find_event(ret->type);
	if (!e)
		return sio_fail(reterr, -EPROTO,
				"event type %u is not known; those of protocol version %d are "
				"right",
				ret->type, SIO_CLIENT_VERSION);
	if (len != e->size || ret->id != 0 || ret->error != 0)
		return sio_fail(reterr, -EPROTO,
				"event %s has %zu bytes, id %u and error %u; %u bytes and twice 0 "
				"are right",
				e->name, len, ret->id, ret->error, e->size);
	if (ret->type == SIO_EVM_SEGMENT_LOCAL || ret->type == SIO_EVM_SEGMENT_REMOTE)
		return check_segment(msg, reterr);
	return sio_wire_zero(msg, &e->zero, "event", e->name, -EPROTO, reterr);
}
