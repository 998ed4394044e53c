/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On which adapters a segment is prepared and available: PREPARE, AVAILABLE, UNAVAILABLE; and those
 * that go.
 */
#include <errno.h>

#include "smartiod/segment/group.h"
#include "smartiod/segment/requests.h"

static int get_adapter(struct smartiod *d, struct smartiod_session *s,
		       const struct sio_msg_seg_adapter *m, struct smartiod_segment **ret,
		       uint32_t *ret_bit, struct sio_err *reterr)
{
	uint32_t adapter = sio_from_le32(m->adapter);
	struct smartiod_segment *seg;

	seg = smartiod_segment_get_ready(s, sio_from_le32(m->handle), reterr);
	if (!seg)
		return reterr->code;
	if (adapter >= d->host->n_adapters)
		return sio_fail(reterr, -ENXIO, "%s has no adapter %u; it has %u from 0 on",
				d->host->name, adapter, d->host->n_adapters);
	*ret = seg;
	*ret_bit = 1u << adapter;
	return 0;
}

int smartiod_seg_prepare(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_msg_seg_adapter *m = msg;
	uint32_t bit = 0, flags = sio_from_le32(m->flags);
	struct smartiod_segment *seg = NULL;
	int rc = get_adapter(d, s, m, &seg, &bit, reterr);

	if (rc < 0)
		return rc;
	if (flags & ~(SCI_FLAG_DMA_SOURCE_ONLY | SCI_FLAG_BROADCAST))
		return sio_fail(reterr, -EINVAL, "flags %#x do not belong to SCIPrepareSegment",
				flags);
	seg->prepared |= bit;
	smartiod_reply_ok(d, s, msg);
	return 0;
}

int smartiod_seg_available(struct smartiod *d, struct smartiod_session *s, const void *msg,
			   struct sio_err *reterr)
{
	const struct sio_msg_seg_adapter *m = msg;
	struct smartiod_segment *seg = NULL;
	uint32_t bit = 0;
	int rc = get_adapter(d, s, m, &seg, &bit, reterr);

	if (rc < 0)
		return rc;
	if (m->flags)
		return sio_fail(reterr, -EINVAL, "SCISetSegmentAvailable takes no flags");
	if (seg->is_private)
		return sio_fail(
			reterr, -EPERM,
			"segment %#x is private: one made without SCI_FLAG_PRIVATE is right",
			seg->id);
	if (!(seg->prepared & bit))
		return sio_fail(
			reterr, -EPERM,
			"segment %#x is not prepared on adapter %u: SCIPrepareSegment() comes "
			"first",
			seg->id, sio_from_le32(m->adapter));
	if (seg->broadcast)
		return smartiod_group_publish(d, s, msg, seg, sio_from_le32(m->adapter), true,
					      reterr);
	seg->available |= bit;
	smartiod_reply_ok(d, s, msg);
	return 0;
}

int smartiod_seg_unavailable(struct smartiod *d, struct smartiod_session *s, const void *msg,
			     struct sio_err *reterr)
{
	const struct sio_msg_seg_adapter *m = msg;
	uint32_t bit = 0, flags = sio_from_le32(m->flags), adapter = sio_from_le32(m->adapter);
	struct smartiod_segment *seg = NULL;
	bool publishes;
	int rc = get_adapter(d, s, m, &seg, &bit, reterr);

	if (rc < 0)
		return rc;
	if (flags & ~(SCI_FLAG_NOTIFY | SCI_FLAG_FORCE_DISCONNECT))
		return sio_fail(reterr, -EINVAL,
				"flags %#x do not belong to SCISetSegmentUnavailable", flags);
	if (!(seg->prepared & bit))
		return sio_fail(
			reterr, -EPERM,
			"segment %#x was never prepared on adapter %u: SCIPrepareSegment() comes "
			"first",
			seg->id, adapter);
	publishes = seg->broadcast && seg->available & bit;
	if (publishes)
		rc = smartiod_group_publish(d, s, msg, seg, adapter, false, reterr); /* replies */
	if (rc < 0)
		return rc;
	seg->available &= ~bit;
	if (flags & SCI_FLAG_FORCE_DISCONNECT) {
		smartiod_segment_cut(d, seg, adapter, SCI_CB_DISCONNECT);
		smartiod_segment_check(d, seg);
	} else if (flags & SCI_FLAG_NOTIFY) {
		smartiod_segment_ask_to_leave(d, seg, adapter);
	}
	if (!publishes)
		smartiod_reply_ok(d, s, msg);
	return 0;
}

void smartiod_segments_adapter_gone(struct smartiod *d, uint32_t adapter)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->segments, key))) {
		struct smartiod_segment *seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);

		key = n->key;
		if (seg->broadcast)
			smartiod_group_adapter_gone(d, seg, adapter);
		seg->prepared &= ~(1u << adapter);
		seg->available &= ~(1u << adapter);
		seg->exported &= ~(1u << adapter);
	}
}
