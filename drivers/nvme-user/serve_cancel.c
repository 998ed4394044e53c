/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests whose answers did not come, and which their client takes back. A request is known by its
 * borrower and its number, as one is that is asked again of the next manager. Both stand in the
 * same ring, in their order: so what is not found here was not done, and never will be.
 */
#include "manager.h"

int sio_nvme_manager_cancel(struct smartio_nvme_manager *m, const struct sio_nvme_req *req)
{
	const uint64_t borrower = req->borrower, sequence = req->cancel.sequence;
	const uint32_t qid = sio_nvme_ledger_asked(&m->ledger, borrower, sequence);
	uint32_t place;

	sio_nvme_leases_cancel(&m->leases, borrower, sequence);
	sio_nvme_record_leases(&m->record, &m->leases);
	if (!qid)
		return 0;
	place = sio_nvme_ledger_place(&m->ledger.pair[qid], borrower, sequence);
	/* Of place 0 the pair is, whose maker has closed the lock: others that joined it end. */
	if (place == 0)
		return sio_nvme_manager_delete_pair(m, qid);
	sio_nvme_manager_part(m, qid, place);
	return 0;
}
