/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer protocol's types and sizes. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "wire/check.h"

struct peer_type {
	uint16_t type, request, reply; /* sizes; reply 0: news */
};

#define ASK(name, req, rep)                                                                        \
	{                                                                                          \
		SIO_PEER_##name, sizeof(req), sizeof(rep)                                          \
	}
#define NEWS(name, req)                                                                            \
	{                                                                                          \
		SIO_PEER_##name, sizeof(req), 0                                                    \
	}

static const struct peer_type types[] = {
	NEWS(HELLO, struct sio_peer_hello),
	ASK(PING, struct sio_peer_ping, struct sio_msg),
	ASK(SEG_LOOKUP, struct sio_peer_seg_lookup, struct sio_prep_seg_lookup),
	NEWS(SEG_RELEASE, struct sio_peer_seg_release),
	ASK(SEG_GRANT, struct sio_peer_seg_grant, struct sio_prep_seg_grant),
	NEWS(GRANT_RELEASE, struct sio_peer_grant_release),
	NEWS(SEG_EVENT, struct sio_peer_seg_event),
	NEWS(GRANT_QUERY, struct sio_peer_grant_query),
	ASK(DINT_LOOKUP, struct sio_peer_dint_lookup, struct sio_prep_dint_lookup),
	NEWS(DINT_RELEASE, struct sio_peer_dint_release),
	NEWS(DINT_EVENT, struct sio_peer_dint_event),
	ASK(STATS, struct sio_peer_stats, struct sio_rep_stats),
	NEWS(DEVICES, struct sio_peer_devices),
	ASK(BORROW, struct sio_peer_borrow, struct sio_prep_borrow),
	ASK(RETURN, struct sio_peer_borrower, struct sio_msg),
	ASK(RELEASE_EXCLUSIVE, struct sio_peer_borrower, struct sio_msg),
	NEWS(BORROW_END, struct sio_peer_borrower),
	NEWS(BORROW_LOST, struct sio_peer_borrower),
	ASK(DEV_SEG_CREATE, struct sio_peer_dev_seg_create, struct sio_prep_dev_seg),
	ASK(DEV_SEG_LOOKUP, struct sio_peer_dev_seg_lookup, struct sio_prep_dev_seg),
	ASK(BAR_GRANT, struct sio_peer_bar_grant, struct sio_prep_bar_grant),
	NEWS(BAR_RELEASE, struct sio_peer_bar_release),
	ASK(DMA_MAP, struct sio_peer_dma_map, struct sio_prep_dma_map),
	ASK(DMA_UNMAP, struct sio_peer_dma_unmap, struct sio_msg),
	ASK(SETTLED, struct sio_peer_settled, struct sio_msg),
	ASK(RESET, struct sio_peer_borrower, struct sio_msg),
	NEWS(DEVICE_EVENT, struct sio_peer_device_event),
	NEWS(DEV_SEG_END, struct sio_peer_dev_seg_end),
	ASK(HOLD, struct sio_peer_hold, struct sio_prep_hold),
	ASK(UNHOLD, struct sio_peer_unhold, struct sio_msg),
	NEWS(HOLD_RELEASE, struct sio_peer_hold_release),
	ASK(VECTOR, struct sio_peer_vector, struct sio_prep_vector),
	ASK(UNVECTOR, struct sio_peer_vector, struct sio_msg),
	NEWS(BAR_CUT, struct sio_peer_bar_cut),
};

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

int sio_peer_is_news(uint32_t type)
{
	const struct peer_type *t = find(type);

	return t && t->reply == 0;
}

int sio_peer_check(const void *msg, size_t len, struct sio_wire_header *ret, struct sio_err *reterr)
{
	int rc = sio_wire_header(msg, len, ret, reterr);
	bool reply;
	size_t want;

	if (rc < 0)
		return rc;
	reply = ret->type & SIO_PEER_REPLY;
	want = sio_peer_size(ret->type);
	if (want == 0)
		return sio_fail(reterr, -EPROTO, "message type %#x is not known", ret->type);
	if (reply && ret->error)
		want = sizeof(struct sio_msg_error);
	if (len != want)
		return sio_fail(reterr, -EPROTO, "message %#x has %zu bytes, not %zu", ret->type,
				len, want);
	if (reply && ret->error)
		return sio_wire_refusal(msg, reterr);
	if (!reply && (ret->error || (ret->id == 0) != (sio_peer_is_news(ret->type) != 0)))
		return sio_fail(reterr, -EPROTO, "message %#x has id %u and error %u", ret->type,
				ret->id, ret->error);
	return 0;
}
