/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takeover: a manager goes on where one that died was, by its record; clients keep their queues and
 * notice nothing. The lender has granted the registers, so the dead manager's mappings of them are
 * gone; and it has kept record and admin queue only if it knows that the program has ended
 * (SMARTIO_FLAG_LASTING). What cannot be continued is reset, and clients are notified of that.
 */
#include <errno.h>
#include <string.h>

#include "error.h"
#include "manager.h"
#include "smartio/ext.h"

/*
 * Each pair is given, or is not there. What was read of the record is believed only if the path was
 * there until then: else it reads as ones, registers and record alike.
 */
static int settle_pairs(struct smartio_nvme_manager *m)
{
	struct sio_nvme_ledger *l = &m->ledger;
	int rc;

	for (uint32_t qid = 1; qid <= l->pairs; qid++) {
		struct sio_nvme_pair pair;

		sio_nvme_record_read_pair(&m->record, qid, &pair);
		if (pair.state != SIO_NVME_PAIR_FREE && pair.borrower)
			sio_nvme_ledger_take(l, qid, &pair);
	}
	rc = sio_nvme_ctrl_check(&m->ctrl);
	for (uint32_t qid = 1; rc == 0 && qid <= l->pairs; qid++)
		if (l->pair[qid].borrower && l->pair[qid].state != SIO_NVME_PAIR_TAKEN)
			rc = l->pair[qid].share ? sio_nvme_manager_end_shared(m, qid)
						: sio_nvme_manager_delete_pair(m, qid);
	return rc;
}

static int read_record(struct smartio_nvme_manager *m)
{
	struct sio_nvme_record_head head;
	int rc = sio_nvme_record_find(&m->record, &m->d, &head);

	if (rc)
		return rc;
	if (head.generation != smartio_device_generation(m->d.handle))
		return sio_nvme_fail(-ESTALE, "%s was reset since its manager wrote its record",
				     m->d.name);
	rc = sio_nvme_ctrl_resume(&m->ctrl, head.entries, head.segment, head.ioaddr,
				  sio_nvme_record_word(&m->record));
	if (rc == 0)
		rc = sio_nvme_ledger_init(&m->ledger, head.pairs);
	if (rc == 0)
		rc = settle_pairs(m);
	if (rc)
		return rc;
	sio_nvme_record_read_leases(&m->record, &m->leases);
	rc = sio_nvme_ctrl_check(&m->ctrl);
	if (rc)
		return rc;
	sio_nvme_manager_end_leases(m);
	m->meta.generation = head.generation;
	return sio_nvme_manager_describe(m, head.pairs);
}

int sio_nvme_manager_go_on(struct smartio_nvme_manager *m)
{
	int rc = read_record(m);

	if (rc == 0)
		rc = sio_nvme_manager_be_found(m);
	if (rc == 0) {
		m->role = SIO_NVME_SERVING;
		return 0;
	}
	sio_nvme_manager_withdraw(m);
	sio_nvme_record_close(&m->record);
	sio_nvme_ctrl_done(&m->ctrl, true);
	sio_nvme_ledger_done(&m->ledger);
	m->leases.n = 0;
	return rc;
}
