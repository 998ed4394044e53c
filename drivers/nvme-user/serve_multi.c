/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Submission queues that complete in another pair's completion queue, the manager's side. Such a
 * queue takes the number of a pair, whose completion queue is not made. All that use a completion
 * queue belong to one borrower: so its end finds all of them, and nobody's completions go where
 * another program reads. The completion queue is deleted after the last of them: a drive refuses it
 * earlier (NVMe 1.4, section 5.5), and its memory is held until then. How many completions fit in
 * it is its owner's own matter, because a drive with a full one waits (section 4.1).
 */
#include <errno.h>
#include <stdio.h>

#include "manager.h"

#define refuse sio_nvme_refuse

bool sio_nvme_manager_may_complete(const struct smartio_nvme_manager *m,
				   const struct sio_nvme_req *req, struct sio_nvme_rep *rep)
{
	const uint32_t of = req->create.cq_of;
	const struct sio_nvme_pair *pair;

	if (!of)
		return true;
	if (!sio_nvme_ledger_owns(&m->ledger, of, req->borrower, req->create.cq_key)) {
		refuse(rep, -EACCES,
		       "queue pair %u, whose completion queue is asked for, is not this client's",
		       of);
		return false;
	}
	pair = &m->ledger.pair[of];
	if (pair->share || pair->cq_of || pair->state != SIO_NVME_PAIR_TAKEN ||
	    of == req->create.old_qid) {
		refuse(rep, -EINVAL,
		       "the completion queue of queue pair %u cannot be used: only that of a pair "
		       "that stays, has its own, and shares it with no program can",
		       of);
		return false;
	}
	if (req->create.cq || req->create.cq_entries || req->vector || req->create.share) {
		refuse(rep, -EINVAL,
		       "a submission queue that completes in queue pair %u has no completion queue "
		       "or interrupt of its own, and is not shared",
		       of);
		return false;
	}
	return true;
}

bool sio_nvme_manager_is_used(const struct smartio_nvme_manager *m, uint32_t qid,
			      struct sio_nvme_rep *rep)
{
	uint32_t user = sio_nvme_ledger_user(&m->ledger, qid, 0);
	char list[128];
	size_t len = 0;

	if (!user)
		return false;
	for (; user && len < sizeof(list); user = sio_nvme_ledger_user(&m->ledger, qid, user))
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%u", len ? ", " : "",
					user);
	refuse(rep, -EBUSY,
	       "queue pair %u cannot be deleted while these complete in its completion queue: %s",
	       qid, list);
	return true;
}

int sio_nvme_manager_delete_users(struct smartio_nvme_manager *m, uint32_t qid)
{
	uint32_t user = 0;
	int rc = 0;

	while (rc == 0 && (user = sio_nvme_ledger_user(&m->ledger, qid, user)))
		rc = sio_nvme_manager_delete_pair(m, user);
	return rc;
}
