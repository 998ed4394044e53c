/* SPDX-License-Identifier: BSD-2-Clause */
/* The client protocol's types, their sizes and reserved fields. */
#include <errno.h>
#include <string.h>

#include "wire/check.h"

struct client_type {
	uint16_t type, request, reply, reserved; /* sizes; reserved: offset of a field, or 0 */
};

#define TYPE(name, req, rep)                                                                       \
	{                                                                                          \
		SIO_MSG_##name, sizeof(req), sizeof(rep), 0                                        \
	}
#define TYPE_RESERVED(name, req, rep)                                                              \
	{                                                                                          \
		SIO_MSG_##name, sizeof(req), sizeof(rep), offsetof(req, reserved)                  \
	}

static const struct client_type types[] = {
	TYPE(HELLO, struct sio_msg_hello, struct sio_rep_hello),
	TYPE_RESERVED(ADAPTER, struct sio_msg_adapter, struct sio_rep_adapter),
	TYPE(NODE_PROBE, struct sio_msg_node_probe, struct sio_msg),
	TYPE(RESTORE, struct sio_msg_restore, struct sio_msg),
	TYPE(RESTORE_STEP, struct sio_msg_restore_step, struct sio_msg),
	TYPE(BYE, struct sio_msg_bye, struct sio_msg),
	TYPE_RESERVED(LINK, struct sio_msg_adapter, struct sio_rep_link),
	TYPE(SEG_CREATE, struct sio_msg_seg_create, struct sio_rep_seg_create),
	TYPE_RESERVED(SEG_PREPARE, struct sio_msg_seg_adapter, struct sio_msg),
	TYPE_RESERVED(SEG_AVAILABLE, struct sio_msg_seg_adapter, struct sio_msg),
	TYPE_RESERVED(SEG_UNAVAILABLE, struct sio_msg_seg_adapter, struct sio_msg),
	TYPE(SEG_REMOVE, struct sio_msg_handle, struct sio_msg),
	TYPE(SEG_CONNECT, struct sio_msg_seg_connect, struct sio_rep_seg_connect),
	TYPE(SEG_DISCONNECT, struct sio_msg_handle, struct sio_msg),
	TYPE(SEG_MAP, struct sio_msg_seg_map, struct sio_rep_seg_map),
	TYPE(SEG_UNMAP, struct sio_msg_handle, struct sio_msg),
	TYPE(SEG_WATCH, struct sio_msg_seg_watch, struct sio_rep_seg_watch),
	TYPE(SEG_FILL, struct sio_msg_handle, struct sio_rep_seg_create),
	TYPE(SEG_SHARE, struct sio_msg_handle, struct sio_msg),
	TYPE(SEG_ATTACH, struct sio_msg_seg_attach, struct sio_rep_seg_attach),
	TYPE_RESERVED(DINT_CREATE, struct sio_msg_dint_create, struct sio_rep_dint_create),
	TYPE(DINT_REMOVE, struct sio_msg_handle, struct sio_msg),
	TYPE(DINT_CONNECT, struct sio_msg_dint_connect, struct sio_rep_dint_connect),
	TYPE(DINT_DISCONNECT, struct sio_msg_handle, struct sio_msg),
	TYPE(DINT_RING_FREE, struct sio_msg_dint_ring_free, struct sio_msg),
	TYPE_RESERVED(DEV_LIST, struct sio_msg_dev_list, struct sio_rep_dev_list),
	TYPE(DEV_BORROW, struct sio_msg_dev_borrow, struct sio_rep_dev_borrow),
	TYPE(DEV_RETURN, struct sio_msg_handle, struct sio_msg),
	TYPE(DEV_RELEASE_EXCLUSIVE, struct sio_msg_handle, struct sio_msg),
	TYPE_RESERVED(DEV_SEG_CREATE, struct sio_msg_dev_seg_create, struct sio_rep_dev_seg_create),
	TYPE(DEV_SEG_CONNECT, struct sio_msg_dev_seg_connect, struct sio_rep_seg_connect),
	TYPE_RESERVED(DMA_MAP, struct sio_msg_dma_map, struct sio_rep_dma_map),
	TYPE(DMA_UNMAP, struct sio_msg_handle, struct sio_msg),
	TYPE(DEV_SETTLED, struct sio_msg_dev_settled, struct sio_msg),
	TYPE(DEV_RESET, struct sio_msg_handle, struct sio_msg),
	TYPE_RESERVED(DEV_HOLD, struct sio_msg_dev_hold, struct sio_rep_dev_hold),
	TYPE_RESERVED(DEV_UNHOLD, struct sio_msg_dev_unhold, struct sio_msg),
	TYPE_RESERVED(DEV_VECTOR, struct sio_msg_dev_vector, struct sio_rep_dev_vector),
	TYPE_RESERVED(DEV_UNVECTOR, struct sio_msg_dev_vector, struct sio_msg),
	TYPE(DEV_ADMIN_RESET, struct sio_msg_dev_admin_reset, struct sio_rep_dev_admin_reset),
	TYPE_RESERVED(SHADOW, struct sio_msg_shadow, struct sio_rep_shadow),
	TYPE(SHADOW_DEL, struct sio_msg_handle, struct sio_msg),
	TYPE(QUEUE_CREATE, struct sio_msg_queue_create, struct sio_rep_queue_create),
	TYPE(QUEUE_REMOVE, struct sio_msg_handle, struct sio_msg),
	TYPE_RESERVED(QUEUE_ATTACH, struct sio_msg_queue_attach, struct sio_rep_queue_attach),
	TYPE(QUEUE_DETACH, struct sio_msg_queue_detach, struct sio_msg),
	TYPE_RESERVED(LIST, struct sio_msg_list, struct sio_rep_list),
	TYPE(STATS, struct sio_msg_stats, struct sio_rep_stats),
};

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

size_t sio_client_reply_size(uint32_t type)
{
	const struct client_type *t = find(type);

	return t ? t->reply : 0;
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
	if (t->reserved) {
		memcpy(&reserved, (const char *)msg + t->reserved, sizeof(reserved));
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
				"event %u happened %u times, a word tells of %u at most",
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
