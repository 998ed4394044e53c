/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restart: shared segments that a library restores by attached handles. The maker may have released
 * its own handle, so that only those who attached can restore the segment.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/unclaimed.h"
#include "smartiod/base/room.h"
#include "smartiod/segment/connection.h"
#include "smartiod/segment/restore.h"

/*
 * May who attached to it restore it? *ret_maker: who is to have it. If the port was given it,
 * nobody. If the port had refused, its maker; and before that has said all of its own, what is left
 * may be memory that it never shared.
 */
static bool was_released(struct smartiod *d, const struct smartiod_unclaimed *l,
			 struct smartiod_session **ret_maker)
{
	struct smartiod_session *maker;

	*ret_maker = NULL;
	if (l->kind != SIO_KIND_MEM || l->fd[0] < 0)
		return false;
	if (l->owner == 0)
		return true;
	*ret_maker = maker = smartiod_session_by_owner(d, l->owner);
	return maker && !maker->ending && maker->state == SMARTIOD_RESTORING && maker->step > 0;
}

/*
 * Whoever made it has released its handle before: it has nothing to say of it, but its memory is
 * there, and others have handles, which the seals prove.
 */
static struct smartiod_segment *without_maker(struct smartiod *d, uint64_t mem, bool named,
					      uint32_t id, struct sio_err *reterr)
{
	struct smartiod_tree_node *n = smartiod_tree_find(&d->recovery.unclaimed, mem);
	struct smartiod_unclaimed *l = SMARTIOD_OF(n, struct smartiod_unclaimed, by_id);
	struct smartiod_session *maker;
	struct smartiod_segment *seg;
	int rc;

	if (!n || !was_released(d, l, &maker)) {
		sio_fail(reterr, -ENOENT, "no segment lies in memory %" PRIu64, mem);
		return NULL;
	}
	if (named)
		smartiod_restore_take_number(d, id);
	if (maker)
		maker->forced = SMARTIOD_RELEASED_HANDLES + (uint32_t)(mem & 0xffffff);
	rc = smartiod_segment_new(d, maker, l->owner, named, id, l->length, &seg, reterr);
	if (maker)
		maker->forced = 0;
	if (rc < 0)
		return NULL;
	seg->maker_released = true;
	seg->memory = SIO_MEMORY_UNKNOWN;
	smartiod_segment_take_unclaimed(d, seg, l);
	return seg;
}

static struct smartiod_segment *
restore_released(struct smartiod *d, const struct sio_msg_restore *m, struct sio_err *reterr)
{
	struct smartiod_segment *seg =
		without_maker(d, sio_from_le64(m->key), true, sio_from_le32(m->number), reterr);

	if (!seg)
		return NULL;
	smartiod_restore_state(d, seg, m);
	seg->shared = true;
	smartiod_segment_mapped(d, seg);
	return seg;
}

struct smartiod_segment *smartiod_restore_kept(struct smartiod *d, uint64_t mem, uint32_t id,
					       struct sio_err *reterr)
{
	struct smartiod_segment *seg = without_maker(d, mem, false, id, reterr);

	if (seg) {
		smartiod_segment_leave(d, seg, SMARTIOD_SEGMENT_KEEP);
		smartiod_segment_mapped(d, seg);
		/* It was available on some: importers of other hosts may be connected to it. */
		seg->exported = (1u << d->host->n_adapters) - 1;
		seg->reserved = smartiod_segments_expected(d);
	}
	return seg;
}

bool smartiod_segment_reserve(struct smartiod *d, const struct smartiod_unclaimed *l)
{
	bool has_number = (l->cookie & ~0xffffffffULL) == SMARTIOD_COOKIE_SEGMENT;
	struct smartiod_segment *seg;
	struct sio_err err;

	if (l->owner || l->device || !smartiod_segments_expected(d))
		return false;
	seg = smartiod_restore_kept(d, l->by_id.key, (uint32_t)(has_number ? l->cookie : 0), &err);
	if (seg)
		seg->numberless = !has_number;
	return seg;
}

int smartiod_restore_attachment(struct smartiod *d, struct smartiod_session *s,
				const struct sio_msg_restore *m, struct sio_err *reterr)
{
	uint32_t handle = s->forced; /* the maker may be this very session */
	struct smartiod_segment *seg;
	struct smartiod_attachment *a;

	if (smartiod_seal_check(s, m, SIO_MSG_SEG_ATTACH, sio_from_le32(m->number), 0, reterr) < 0)
		return reterr->code;
	seg = smartiod_segment_by_mem(d, sio_from_le64(m->key), reterr);
	if (!seg)
		seg = restore_released(d, m, reterr);
	if (!seg)
		return reterr->code;
	if (!seg->shared)
		return sio_fail(reterr, -EACCES, "segment %#x is not shared", seg->id);
	a = calloc(1, sizeof(*a));
	if (!a)
		return sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
	s->forced = handle;
	if (smartiod_object_add(s, &a->o, SMARTIOD_ATTACHMENT, reterr) < 0) {
		free(a);
		return reterr->code;
	}
	a->segment = seg;
	a->next = seg->attachments;
	seg->attachments = a;
	return 0;
}
