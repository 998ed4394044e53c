/* SPDX-License-Identifier: BSD-2-Clause */
/* What a host hears of jobs (job.c): data, statuses, completions and their interrupts. */
#include "emu/devices/nvme/job.h"

/* What the host gets of the data. */
static unsigned deliver(struct emu_nvme *m, struct emu_nvme_job *j)
{
	size_t bytes = (size_t)(j->all.end - j->all.at);

	if (j->status || j->sq->id == 0)
		return j->status;
	switch (j->sqe.opcode) {
	case nvme_cmd_read:
		return emu_nvme_prp_to_host(m, &j->sqe, j->data, bytes);
	case nvme_cmd_compare:
		return emu_nvme_prp_compare(m, &j->sqe, j->data, bytes);
	default:
		return 0;
	}
}

/* False: the completion queue has no room, or the controller does not run. */
static bool answer(struct emu_nvme *m, struct emu_nvme_job *j, bool *failed)
{
	struct emu_nvme_sq *sq = j->sq;
	unsigned status;

	if (!sq) {
		emu_nvme_shutdown_done(m);
		return true;
	}
	if (!m->running || (sq->id == 0 && m->n_done) || emu_nvme_cq_room(m, sq->cq, 1) == 0)
		return false;
	status = deliver(m, j);
	if (status) {
		emu_nvme_error(m, sq->id, &j->sqe, status);
		status |= NVME_SC_MORE;
		*failed = true;
	}
	if (sq->id == 0) {
		emu_nvme_admin_done(m, j->cid, status, j->times);
		return true;
	}
	for (unsigned i = 0; i < j->times && emu_nvme_cq_room(m, sq->cq, 1); i++)
		emu_nvme_post(m, sq, j->cid, status, 0);
	return true;
}

/* By Abort, or with its queue: as those that a fault delays. */
static bool abort_job(struct emu_nvme *m, const struct emu_nvme_job *j, unsigned status)
{
	struct emu_nvme_cq *cq = j->sq->cq;

	if (emu_nvme_cq_room(m, cq, 1) == 0)
		return false;
	m->stats.aborted++;
	emu_nvme_post(m, j->sq, j->cid, status, 0);
	if (cq->interrupts)
		emu_nvme_interrupt(m, cq, true);
	return true;
}

static void raise(struct emu_nvme *m, bool failed)
{
	for (unsigned i = 0; i < m->n_active; i++) {
		struct emu_nvme_cq *cq = m->active[i]->cq;

		if (cq->interrupts && cq->untold)
			emu_nvme_interrupt(m, cq, failed);
	}
}

const struct emu_nvme_answers emu_nvme_answers = {
	.answer = answer, .abort = abort_job, .raise = raise};
