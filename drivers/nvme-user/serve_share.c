/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that programs of one host share, the manager's side. The manager knows the sharers:
 * what one of them has mapped for the drive is given back when it ends, and commands of its own may
 * be in flight in the common submission queue. So the end of one sharer ends the pair: its queues
 * are deleted before that.
 *
 * The sharers that live may be about to ring a doorbell of the pair. They keep its number until one
 * of them has closed the pair's lock, and confirms that by naming the pair as its old one: then
 * nobody rings any more.
 */
#include <errno.h>
#include <string.h>

#include "error.h"
#include "manager.h"
#include "smartio/ext.h"

#define refuse sio_nvme_refuse

bool sio_nvme_manager_may_share(const struct sio_nvme_req *req, struct sio_nvme_rep *rep)
{
	const uint32_t depth = req->create.share_depth, most = req->create.share_most;

	if (!req->create.share)
		return true;
	if (most >= 2 && most <= SIO_NVME_SHARERS && depth >= 1 && depth <= UINT16_MAX &&
	    req->create.sq_entries > most * depth && req->create.cq_entries > most * depth &&
	    req->create.share_raises <= 1 && (req->create.share_raises || !req->vector))
		return true;
	refuse(rep, -EINVAL,
	       "a shared queue pair is for 2 to %u programs, of 1 command each at least, has an "
	       "entry for each and one more, and says whether its completions raise a vector",
	       SIO_NVME_SHARERS);
	return false;
}

bool sio_nvme_manager_lacks_vector(const struct sio_nvme_req *req)
{
	return req->create.share && req->create.share_raises && !req->vector;
}

uint32_t sio_nvme_manager_join(struct smartio_nvme_manager *m, const struct sio_nvme_req *req)
{
	uint32_t place, qid = sio_nvme_ledger_joinable(
				&m->ledger, req->reply_node, req->create.share_over,
				req->create.share_depth, req->create.share_raises, &place);
	struct sio_nvme_sharer *s;

	if (!qid)
		return 0;
	s = &m->ledger.pair[qid].sharer[place];
	*s = (struct sio_nvme_sharer){.borrower = req->borrower,
				      .sequence = req->sequence,
				      .notice = req->create.share_notice};
	sio_nvme_keep_text(s->program, req->create.program, sizeof(s->program));
	sio_nvme_manager_enter(m, qid, SIO_NVME_PAIR_TAKEN);
	return qid;
}

void sio_nvme_manager_part(struct smartio_nvme_manager *m, uint32_t qid, uint32_t place)
{
	struct sio_nvme_pair *pair = &m->ledger.pair[qid];

	memset(&pair->sharer[place], 0, sizeof(pair->sharer[place]));
	if (sio_nvme_ledger_sharers(pair) == 0 && pair->state == SIO_NVME_PAIR_ENDED) {
		sio_nvme_manager_release(m, qid);
		return;
	}
	sio_nvme_manager_enter(m, qid, pair->state);
	m->place_free = true;
}

int sio_nvme_manager_shared_ended(struct smartio_nvme_manager *m, uint32_t qid)
{
	int rc = sio_nvme_manager_unhold(m, qid);

	if (rc)
		return rc;
	if (sio_nvme_ledger_sharers(&m->ledger.pair[qid]) == 0)
		sio_nvme_manager_release(m, qid);
	else
		sio_nvme_manager_enter(m, qid, SIO_NVME_PAIR_ENDED);
	m->owes = true;
	return 0;
}

int sio_nvme_manager_end_shared(struct smartio_nvme_manager *m, uint32_t qid)
{
	const enum sio_nvme_pair_state state = m->ledger.pair[qid].state;
	int rc = 0;

	/* One that was being made nobody knows. */
	if (state == SIO_NVME_PAIR_TAKING)
		return sio_nvme_manager_delete_pair(m, qid);
	if (state != SIO_NVME_PAIR_ENDED)
		rc = sio_nvme_ctrl_delete_sq(&m->ctrl, qid);
	if (rc == 0 && state != SIO_NVME_PAIR_ENDED)
		rc = sio_nvme_ctrl_delete_cq(&m->ctrl, qid);
	return rc ? rc : sio_nvme_manager_shared_ended(m, qid);
}

static void tell(struct smartio_nvme_manager *m, uint32_t qid, struct sio_nvme_sharer *to)
{
	const struct sio_nvme_pair *pair = &m->ledger.pair[qid];
	const struct sio_nvme_rep rep = {
		.h = {.magic = SIO_NVME_REP_MAGIC,
		      .version = SIO_NVME_VERSION,
		      .op = SIO_NVME_OP_ENDED,
		      .instance = m->meta.instance},
		.ended = {.qid = qid, .dead = pair->dead, .key = pair->key}};

	if (sio_nvme_manager_send(m, pair->node, to->notice, &rep))
		to->notified = pair->dead | SIO_NVME_NOTIFIED_END;
	else
		m->owes = true;
}

void sio_nvme_manager_notify_ended(struct smartio_nvme_manager *m)
{
	const bool owes = m->owes;

	m->owes = false;
	for (uint32_t qid = 1; owes && qid <= m->ledger.pairs; qid++) {
		struct sio_nvme_pair *pair = &m->ledger.pair[qid];

		if (pair->state != SIO_NVME_PAIR_ENDED)
			continue;
		for (unsigned i = 0; i < SIO_NVME_SHARERS; i++)
			if (pair->sharer[i].borrower && !(pair->dead >> i & 1) &&
			    pair->sharer[i].notified != (pair->dead | SIO_NVME_NOTIFIED_END))
				tell(m, qid, &pair->sharer[i]);
	}
}
