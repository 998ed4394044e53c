/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device segments that borrows of this host have made in their lenders' memory. A lender whose
 * answer to DEV_SEG_CREATE was lost is asked again, and has to know whether the program has heard
 * of the segment that is there (lender/devseg_again.c); a lender that was started again does not
 * know whether one without a connection has had its last one.
 */
#include <stdlib.h>

#include "smartiod/borrower/borrow.h"
#include "smartiod/borrower/requests.h"
#include "smartiod/segment/segment.h"

static struct smartiod_made **find(struct smartiod_borrow *b, uint64_t uid)
{
	struct smartiod_made **at = &b->made;

	while (*at && (*at)->uid != uid)
		at = &(*at)->next;
	return at;
}

static void forget(struct smartiod_made **at)
{
	struct smartiod_made *m = *at;

	*at = m->next;
	free(m);
}

void smartiod_made_note(struct smartiod_borrow *b, uint64_t uid)
{
	struct smartiod_made *m = *find(b, uid);
	unsigned n = 0;

	for (const struct smartiod_made *i = b->made; i; i = i->next)
		n++;
	if (m || n >= SMARTIOD_MAX_OBJECTS)
		return;
	m = calloc(1, sizeof(*m));
	if (!m)
		return;
	*m = (struct smartiod_made){.next = b->made, .uid = uid};
	b->made = m;
}

void smartiod_made_connected(struct smartiod *d, uint32_t node, uint64_t uid)
{
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next) {
		struct smartiod_made *m = b->node == node ? *find(b, uid) : NULL;

		if (m)
			m->connected = true;
	}
}

void smartiod_made_forget(struct smartiod_borrow *b)
{
	while (b->made)
		forget(&b->made);
}

int smartiod_peer_dev_seg_gone(struct smartiod *d, const struct smartiod_from *from,
			       const void *msg, struct sio_err *reterr)
{
	const struct sio_peer_dev_seg_end *m = msg;

	(void)reterr;
	for (struct smartiod_borrow *b = d->borrows; b; b = b->next) {
		struct smartiod_made **at = find(b, sio_from_le64(m->uid));

		if (b->node == from->node && b->device->fdid == sio_from_le32(m->fdid) && *at)
			forget(at);
	}
	return 0;
}

void smartiod_made_resume(struct smartiod *d, const struct smartiod_borrow *b)
{
	for (const struct smartiod_made *m = b->made; m; m = m->next) {
		struct sio_peer_resume_made msg = {
			.h.type = sio_to_le32(SIO_PEER_RESUME_MADE),
			.borrower = sio_to_le64(b->id),
			.uid = sio_to_le64(m->uid),
			.fdid = sio_to_le32(b->device->fdid),
			.connected = sio_to_le32(m->connected),
		};

		smartiod_peer_send(d, b->node, &msg, sizeof(msg));
	}
}
