/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the manager is still to be asked, because a request for a lease, or to give one back, was
 * not answered: it may have done it and died, and its successor knows of the lease by the record.
 * That is asked ahead of the next request over the same borrow, until it is answered, or that
 * borrow has ended and its leases with it. Queues keep their own (client.h, @unanswered).
 */
#include <errno.h>
#include <stdlib.h>

#include "client.h"
#include "smartio/ext.h"

void sio_nvme_owe(struct smartio_nvme *leg, struct sio_nvme_owed *o, const struct sio_nvme_req *req)
{
	*o = (struct sio_nvme_owed){
		.req = *req, .borrower = smartio_borrower_id(leg->d.handle), .next = leg->owed};
	leg->owed = o;
}

bool sio_nvme_was_answered(int rc, const struct sio_nvme_rep *rep)
{
	return rc == 0 || (rep->h.error && rep->h.error != ENOTCONN && rep->h.error != ENODEV);
}

int sio_nvme_pay(struct smartio_nvme *leg)
{
	struct sio_nvme_owed *list = leg->owed, *o;
	struct sio_nvme_rep rep;
	int rc = 0;

	leg->owed = NULL; /* requests for it are not ahead of themselves */
	while ((o = list)) {
		if (o->borrower == smartio_borrower_id(leg->d.handle)) {
			rep.h.error = 0;
			rc = sio_nvme_ask(leg, &o->req, &rep, NULL);
			if (!sio_nvme_was_answered(rc, &rep))
				break;
		}
		list = o->next;
		free(o);
		rc = 0;
	}
	leg->owed = list;
	return rc;
}

void sio_nvme_owed_forget(struct smartio_nvme *leg)
{
	struct sio_nvme_owed *o;

	while ((o = leg->owed)) {
		leg->owed = o->next;
		free(o);
	}
}
