/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device segments after a restart of this daemon, and where two daemons meet again. What memory of
 * this host is a device segment of a borrow of another host the port says (user_cookie of ALLOC),
 * so it is there before anybody who is connected to it comes back. Who has heard of it, and whether
 * somebody is connected to it, the daemons say when they are met.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/lender/devseg.h"
#include "smartiod/lender/requests.h"

/* ---- of before our start ---- */

int smartiod_dev_seg_again(struct smartiod *d, struct smartiod_loan *l, uint32_t id,
			   uint32_t memtype, struct smartiod_unclaimed *left,
			   struct sio_err *reterr)
{
	uint64_t private_to = memtype == SCI_MEMTYPE_PRIVATE ? l->id : 0;
	struct smartiod_dev_seg *s;
	int rc = smartiod_dev_seg_check_type(memtype, reterr);

	if (rc < 0)
		return rc;
	if (smartiod_dev_seg_find(l->device, private_to, id))
		return sio_fail(reterr, -EEXIST, "device segment id %#" PRIx32 " is taken", id);
	s = calloc(1, sizeof(*s));
	if (!s)
		return sio_fail(reterr, -ENOMEM,
				"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
	rc = smartiod_segment_new(d, NULL, l->owner, false, id, left->length, &s->segment, reterr);
	if (rc < 0) {
		free(s);
		return rc;
	}
	smartiod_segment_take_unclaimed(d, s->segment, left);
	smartiod_dev_seg_charge(d, l, s->segment);
	s->segment->device = l->device->fdid;
	s->private_to = private_to;
	s->creator = l->id;
	s->id = id;
	s->node = d->node;
	s->bytes = s->segment->bytes;
	s->uid = s->segment->uid;
	s->next = l->device->lent->segs;
	l->device->lent->segs = s;
	smartiod_dma_claim(d, s->segment); /* for those, too, who are dead and in quarantine */
	return 0;
}

static void adopt(struct smartiod *d, struct smartiod_loan *l, struct smartiod_unclaimed *left)
{
	uint32_t memtype =
		left->cookie & SMARTIOD_COOKIE_PRIVATE ? SCI_MEMTYPE_PRIVATE : SCI_MEMTYPE_SHARED;
	uint64_t mem = left->by_id.key;
	struct sio_err err;

	if (smartiod_dev_seg_again(d, l, (uint32_t)left->cookie, memtype, left, &err) == 0)
		l->device->lent->segs->adopted = true;
	else
		smartiod_log(d, SMARTIOD_WARNING, "%s: memory %" PRIu64 " of a device segment: %s",
			     l->device->topo->name, mem, err.text);
}

/* What programs of this host made their libraries restore. */
void smartiod_dev_segs_adopt(struct smartiod *d)
{
	struct smartiod_unclaimed *left, *next;
	struct smartiod_loan *l;

	for (left = smartiod_unclaimed_after(d, 0); left; left = next) {
		next = smartiod_unclaimed_after(d, left->by_id.key);
		if (left->kind != SIO_KIND_MEM || !(left->cookie & SMARTIOD_COOKIE_DEV_SEG) ||
		    left->owner == 0 || left->fd[0] < 0)
			continue;
		l = smartiod_loan_by_owner(d, left->owner);
		if (l && l->state == SMARTIOD_LOAN_DISTANT)
			adopt(d, l, left);
	}
}

/* ---- where two daemons meet again ---- */

static bool may_have(const struct smartiod_loan *l, const struct smartiod_dev_seg *s)
{
	return (!s->private_to || s->private_to == l->id) &&
	       (!s->lasting || s->creator == l->id ||
		(l->device->ledger.holder == l->id && smartiod_dev_seg_is_for(s, l)));
}

struct smartiod_segment *smartiod_dev_seg_of(const struct smartiod_loan *l, uint64_t uid)
{
	struct smartiod_dev_seg *s = l->device->lent->segs;

	while (s && (!s->segment || s->uid != uid || !may_have(l, s)))
		s = s->next;
	return s ? s->segment : NULL;
}

int smartiod_dev_seg_placed(struct smartiod *d, struct smartiod_loan *l,
			    const struct sio_peer_resume_placed *m, struct sio_err *reterr)
{
	uint32_t id = sio_from_le32(m->segment_id), memtype = sio_from_le32(m->memtype);
	uint64_t private_to = memtype == SCI_MEMTYPE_PRIVATE ? l->id : 0;
	struct smartiod_dev_seg *s = smartiod_dev_seg_find(l->device, private_to, id);

	(void)d;
	if (smartiod_dev_seg_check_type(memtype, reterr) < 0)
		return reterr->code;
	if (!s && smartiod_dev_seg_count(l) < SMARTIOD_MAX_OBJECTS) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return sio_fail(reterr, -ENOMEM,
					"the lender's daemon is out of memory: " SIO_MORE_MEMORY);
		*s = (struct smartiod_dev_seg){.next = l->device->lent->segs,
					       .private_to = private_to,
					       .creator = l->id,
					       .id = id,
					       .node = l->node,
					       .uid = sio_from_le64(m->uid),
					       .bytes = sio_from_le64(m->bytes)};
		l->device->lent->segs = s;
	}
	if (!s || s->node != l->node || s->creator != l->id || s->uid != sio_from_le64(m->uid))
		return sio_fail(reterr, -EEXIST, "device segment id %#" PRIx32 " of %s is taken",
				id, l->device->topo->name);
	s->meeting = l->meeting;
	return 0;
}

int smartiod_resume_made(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_resume_made *m = msg;
	struct smartiod_loan *l =
		smartiod_loan_of(d, from, sio_from_le64(m->borrower), sio_from_le32(m->fdid));
	struct smartiod_dev_seg *s = l ? l->device->lent->segs : NULL;

	(void)reterr;
	while (s && (!s->segment || s->uid != sio_from_le64(m->uid) || s->creator != l->id))
		s = s->next;
	if (s) {
		s->meeting = l->meeting;
		s->unheard = false;
		s->connected |= s->adopted && sio_from_le32(m->connected);
	} else if (l) {
		smartiod_dev_seg_notify_gone(d, l->device, l->node, sio_from_le64(m->uid));
	}
	return 0;
}

/*
 * Of before our start, of a borrow that was returned: what it maps there proves that it was let in.
 * If it maps nothing, any host that may have the device may have been, unless its maker has it
 * alone; of one that is not back it is not known yet (smartiod_dev_segs_alone()).
 */
static bool may_have_been(struct smartiod *d, const struct smartiod_device *dev,
			  const struct smartiod_dev_seg *s, uint32_t node)
{
	const struct sio_borrow *maker = sio_ledger_find(&dev->ledger, s->creator);
	struct sio_err err;

	if (!s->adopted || smartiod_allow_device(d, dev->fdid, node, &err) < 0)
		return false;
	return smartiod_segment_granted(d, s->segment, node) ||
	       (smartiod_peer_find(d, node)->expected &&
		(!maker || !maker->exclusive || maker->adopted));
}

void smartiod_dev_segs_alone(struct smartiod *d, const struct smartiod_loan *l)
{
	const struct sio_borrow *maker = sio_ledger_find(&l->device->ledger, l->id);

	if (!maker || !maker->exclusive)
		return;
	for (struct smartiod_dev_seg *s = l->device->lent->segs; s; s = s->next)
		if (s->segment && s->adopted && s->creator == l->id)
			smartiod_segment_cut(d, s->segment, SIO_ADAPTER_ANY, SCI_CB_LOST);
}

/* The same of a connection whose borrow was returned, or is lost. */
static struct smartiod_segment *without_borrow(struct smartiod *d, uint32_t node,
					       const struct sio_peer_resume_dev_seg *m)
{
	struct smartiod_segment *seg = smartiod_segment_by_uid(d, sio_from_le64(m->uid));
	struct smartiod_device *dev = smartiod_device_known(d, sio_from_le32(m->fdid));
	const struct smartiod_dev_seg *s = dev && dev->lent ? dev->lent->segs : NULL;

	while (s && (!seg || s->segment != seg))
		s = s->next;
	if (!s || s->private_to || s->lasting)
		return NULL;
	if (smartiod_segment_has_ref(seg, node, sio_from_le64(m->connection)))
		return seg;
	return may_have_been(d, dev, s, node) ? seg : NULL;
}

int smartiod_resume_dev_seg(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			    struct sio_err *reterr)
{
	const struct sio_peer_resume_dev_seg *m = msg;
	struct smartiod_loan *l =
		smartiod_loan_of(d, from, sio_from_le64(m->borrower), sio_from_le32(m->fdid));
	struct smartiod_segment *seg = l ? smartiod_dev_seg_of(l, sio_from_le64(m->uid)) : NULL;
	uint32_t adapter = sio_from_le32(m->adapter);

	(void)reterr;
	if (!seg)
		seg = without_borrow(d, from->node, m);
	smartiod_segment_ref_resume(d, seg, from->node, adapter, sio_from_le64(m->connection),
				    seg && adapter < d->host->n_adapters);
	return 0;
}

/* What @node has not named: its own memory is not a device segment any more. */
static void resumed(struct smartiod *d, struct smartiod_device *dev, uint32_t node, uint32_t but)
{
	struct smartiod_dev_seg *s, *next;
	const struct smartiod_loan *l;

	for (s = dev->lent->segs; s; s = next) {
		next = s->next;
		l = smartiod_loan_find(d, s->creator);
		if (s->node == node && !s->segment && s->meeting != but)
			smartiod_dev_seg_drop(d, dev, s, false);
		else if (s->segment && l && l->node == node && s->meeting != but)
			s->unheard = true;
	}
}

/* Its last connection was given back while we were not there, or before all were reported. */
static bool is_over(struct smartiod *d, const struct smartiod_dev_seg *s)
{
	return s->adopted && s->connected && smartiod_dev_seg_is_known(d, s) &&
	       s->segment->n_refs == 0;
}

static struct smartiod_device *next_lent(struct smartiod *d, uint64_t *key)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->devices, *key))) {
		struct smartiod_device *dev = SMARTIOD_OF(n, struct smartiod_device, by_fdid);

		*key = n->key;
		if (dev->lent)
			return dev;
	}
	return NULL;
}

void smartiod_dev_segs_idle(struct smartiod *d)
{
	struct smartiod_dev_seg *s, *next;
	struct smartiod_device *dev;
	bool all = smartiod_all_have_reported(d);
	uint64_t key = 0;

	while ((dev = next_lent(d, &key)))
		for (s = dev->lent->segs; s; s = next) {
			next = s->next;
			if (is_over(d, s))
				smartiod_dev_seg_drop(d, dev, s, false);
			else if (all)
				s->adopted = false;
		}
}

void smartiod_dev_segs_resumed(struct smartiod *d, uint32_t node, uint32_t but)
{
	struct smartiod_device *dev;
	uint64_t key = 0;

	while ((dev = next_lent(d, &key)))
		resumed(d, dev, node, but);
	smartiod_dev_segs_idle(d);
}
