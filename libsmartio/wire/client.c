/* SPDX-License-Identifier: BSD-2-Clause */
/* The client protocol's types, their sizes and reserved fields. */
#include <errno.h>
#include <string.h>

#include "wire/check.h"

struct client_type {
	uint16_t type, request, reply, zero; /* sizes; zero: offset of a field, or 0 */
};

#define TYPE(NAME, name, number, request, reply, zero)                                             \
	{number, sizeof(struct request), sizeof(struct reply), offsetof(struct request, zero)},

static const struct client_type types[] = {SIO_CLIENT_REQUESTS(TYPE)};

static const struct client_type *find(uint32_t type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return &types[i];
	return NULL;
}

size_t sio_client_request_size(uint32_t type)
{
	const struct client_type *t = find(type);

	return t ? t->request : 0;
}

size_t sio_client_event_size(uint32_t type)
{
	switch (type) {
	case SIO_EVM_SEGMENT_LOCAL:
	case SIO_EVM_SEGMENT_REMOTE:
		return sizeof(struct sio_evm_segment);
	case SIO_EVM_DINT_RING:
	case SIO_EVM_DINT_RING_END:
	case SIO_EVM_DINT_LOST:
		return sizeof(struct sio_evm_dint_ring);
	case SIO_EVM_DEVICE:
		return sizeof(struct sio_evm_device);
	}
	return 0;
}

int sio_client_check_request(const void *msg, size_t len, struct sio_wire_header *ret,
			     struct sio_err *reterr)
{
	int rc = sio_wire_header(msg, len, ret, reterr);
	const struct client_type *t;
	sio_le32 reserved;

	if (rc < 0)
		return rc;
	t = find(ret->type);
	if (!t)
		return sio_fail(reterr, -EPROTO, "request type %u is not known", ret->type);
	if (len != t->request)
		return sio_fail(reterr, -EPROTO, "request %u has %zu bytes, not %u", ret->type, len,
				t->request);
	if (ret->id == 0 || ret->error != 0)
		return sio_fail(reterr, -EPROTO, "request %u has id %u and error %u", ret->type,
				ret->id, ret->error);
	if (t->zero) {
		memcpy(&reserved, (const char *)msg + t->zero, sizeof(reserved));
		if (reserved != 0)
			return sio_fail(reterr, -EINVAL, "request %u: a reserved field is not 0",
					ret->type);
	}
	return 0;
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
		return sio_fail(reterr, -EPROTO, "a reply of type %u to a request of type %u",
				ret->type, type);
	if (ret->error >= SIO_WIRE_ERRORS)
		return sio_fail(reterr, -EPROTO, "the reply to %u has error %u, up to %u are known",
				type, ret->error, SIO_WIRE_ERRORS - 1);
	want = ret->error ? sizeof(struct sio_msg_error) : t->reply;
	if (len != want)
		return sio_fail(reterr, -EPROTO, "the reply to %u has %zu bytes, not %zu", type,
				len, want);
	return ret->error ? sio_wire_refusal(msg, reterr) : 0;
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
		return sio_fail(reterr, -EPROTO, "event %u of loss %u", sio_from_le32(evm.h.type),
				sio_from_le32(evm.loss));
	return 0;
}

int sio_client_check_event(const void *msg, size_t len, struct sio_wire_header *ret,
			   struct sio_err *reterr)
{
	int rc = sio_wire_header(msg, len, ret, reterr);

	if (rc < 0)
		return rc;
	if (len != sio_client_event_size(ret->type) || ret->id != 0 || ret->error != 0)
		return sio_fail(reterr, -EPROTO, "event %u of %zu bytes, id %u", ret->type, len,
				ret->id);
	if (ret->type == SIO_EVM_SEGMENT_LOCAL || ret->type == SIO_EVM_SEGMENT_REMOTE)
		return check_segment(msg, reterr);
	return 0;
}
