/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notices: the owner of a device's registers has all other borrowers look again at what they share,
 * for example whether a manager serves. A notice says no more than that, so it may come twice and
 * never gets lost: one that a borrower may have missed, because its daemon or its program was away,
 * is sent again when it is back.
 */
#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

static void notify(struct smartiod *d, struct smartiod_loan *l)
{
	/* No answer tells whether another host's daemon has heard it. */
	l->unheard = l->node != d->node || l->state != SMARTIOD_LOAN_LIVE;
	smartiod_loan_notify(d, l, SIO_DEVICE_EV_NOTICE, 0);
}

void smartiod_notice_again(struct smartiod *d, struct smartiod_loan *l)
{
	if (l->unheard)
		notify(d, l);
}

int smartiod_lend_notify(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_borrower *m = msg;
	struct sio_msg ok = {.size = sio_to_le32(sizeof(ok))};
	struct smartiod_loan *holder, *l;
	uint64_t after = 0;

	holder = smartiod_loan_get_holder(d, from, sio_from_le32(m->fdid),
					  sio_from_le64(m->borrower), reterr);
	if (!holder)
		return reterr->code;
	while ((l = smartiod_loan_after(d, after))) {
		after = l->id;
		if (l->device == holder->device && l != holder && !smartiod_loan_ended(l))
			notify(d, l);
	}
	smartiod_from_reply(d, from, msg, &ok, sizeof(ok));
	return 0;
}
