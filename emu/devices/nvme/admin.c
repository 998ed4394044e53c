/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The admin queue pair (NVMe 1.4, section 5). One command a step; a command may complete another
 * one before itself (Abort), so completions go through a short list that waits for free entries.
 */
#include <endian.h>

#include "emu/devices/nvme/model.h"

#define FLAGS_REFUSED 0xc3u /* no fused operations, and the admin queue of PCIe knows no SGLs */

/* These commands have no namespace: the field is 0. */
static bool takes_no_namespace(uint8_t opcode)
{
	switch (opcode) {
	case nvme_admin_delete_sq:
	case nvme_admin_create_sq:
	case nvme_admin_delete_cq:
	case nvme_admin_create_cq:
	case nvme_admin_abort_cmd:
	case nvme_admin_async_event:
	case nvme_admin_dbbuf:
		return true;
	default:
		return false;
	}
}

static bool is_held(const struct emu_nvme *m, uint16_t cid)
{
	for (unsigned i = 0; i < m->n_aer; i++)
		if (m->aer[i] == cid)
			return true;
	return false;
}

static unsigned execute(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint32_t *result)
{
	if (sqe->flags & FLAGS_REFUSED)
		return EMU_NVME_FAIL(INVALID_FIELD);
	if (is_held(m, le16toh(sqe->cid)))
		return EMU_NVME_FAIL(CMDID_CONFLICT);
	if (takes_no_namespace(sqe->opcode) && sqe->nsid != 0)
		return EMU_NVME_FAIL(INVALID_FIELD);

	switch (sqe->opcode) {
	case nvme_admin_delete_sq:
		return emu_nvme_delete_sq(m, sqe);
	case nvme_admin_create_sq:
		return emu_nvme_create_sq(m, sqe);
	case nvme_admin_get_log_page:
		return emu_nvme_get_log_page(m, sqe);
	case nvme_admin_delete_cq:
		return emu_nvme_delete_cq(m, sqe);
	case nvme_admin_create_cq:
		return emu_nvme_create_cq(m, sqe);
	case nvme_admin_identify:
		return emu_nvme_identify(m, sqe);
	case nvme_admin_abort_cmd:
		return emu_nvme_abort(m, sqe, result);
	case nvme_admin_set_features:
		return emu_nvme_set_features(m, sqe, result);
	case nvme_admin_get_features:
		return emu_nvme_get_features(m, sqe, result);
	case nvme_admin_async_event:
		return emu_nvme_async_event_request(m, sqe);
	case nvme_admin_dbbuf:
		return emu_nvme_doorbell_buffer(m, sqe);
	case nvme_admin_format_nvm:
		return emu_nvme_format(m, sqe);
	case nvme_admin_virtual_mgmt:
		return emu_nvme_virtualization(m, sqe);
	default:
		return EMU_NVME_FAIL(INVALID_OPCODE);
	}
}

/* Post what waits, as far as there is room. Return: how many. */
static unsigned flush_done(struct emu_nvme *m)
{
	unsigned posted = 0;

	while (posted < m->n_done && emu_nvme_cq_room(m, &m->cq[0], 1) > 0) {
		const struct emu_nvme_done *d = &m->done[posted++];

		emu_nvme_post(m, &m->sq[0], htole16(d->cid), d->status, d->result);
	}
	for (unsigned i = posted; i < m->n_done; i++)
		m->done[i - posted] = m->done[i];
	m->n_done -= posted;
	return posted;
}

/* An emu_nvme_complete, also for commands that no fault concerns. */
static void complete(struct emu_nvme *m, struct emu_nvme_sq *sq, const struct emu_nvme_sqe *sqe,
		     __le16 cid, unsigned status, unsigned times)
{
	uint32_t result = 0;

	if (!status) {
		m->serving = sq;
		m->reply = &(struct emu_nvme_reply){.cid = cid, .times = times};
		status = execute(m, sqe, &result);
		m->reply = NULL;
	}
	m->stats.admin++;
	if (status == EMU_NVME_HELD)
		return;
	if (status) {
		emu_nvme_error(m, 0, sqe, status);
		status |= NVME_SC_MORE;
	}
	while (times-- && m->n_done < EMU_NVME_DONE)
		m->done[m->n_done++] = (struct emu_nvme_done){
			.result = result, .cid = le16toh(cid), .status = (uint16_t)status};
	flush_done(m);
}

void emu_nvme_admin_done(struct emu_nvme *m, __le16 cid, unsigned status, unsigned times)
{
	while (times-- && m->n_done < EMU_NVME_DONE)
		m->done[m->n_done++] =
			(struct emu_nvme_done){.cid = le16toh(cid), .status = (uint16_t)status};
}

static void run_one(struct emu_nvme *m, struct emu_nvme_sq *sq)
{
	const struct emu_nvme_sqe *sqe = &m->fetched[0];
	bool failed; /* not used: an admin completion always interrupts at once */

	if (emu_nvme_likely(!m->faults) || !emu_nvme_fault_takes(m, sq, sqe, complete, &failed))
		complete(m, sq, sqe, sqe->cid, 0, 1);
}

static unsigned run(struct emu_nvme *m)
{
	struct emu_nvme_sq *sq = &m->sq[0];

	if (emu_nvme_unlikely(m->n_done))
		return flush_done(m);
	if (emu_nvme_unlikely(emu_nvme_event_ready(m)) && emu_nvme_cq_room(m, sq->cq, 1) > 0) {
		emu_nvme_event_report(m);
		return 1;
	}
	if (emu_nvme_likely(emu_nvme_sq_waiting(m, sq) == 0))
		return 0;
	if (emu_nvme_jobs_full(m, 1) || emu_nvme_cq_room(m, sq->cq, 1) == 0 ||
	    !emu_nvme_fetch(m, sq, 1))
		return 0;
	run_one(m, sq);
	return 1;
}

unsigned emu_nvme_admin_run(struct emu_nvme *m)
{
	struct emu_nvme_cq *cq = m->sq[0].cq;
	unsigned done = run(m);

	if (emu_nvme_unlikely(cq->untold && cq->interrupts))
		emu_nvme_interrupt(m, cq, false);
	return done;
}

bool emu_nvme_admin_idle(const struct emu_nvme *m)
{
	const struct emu_nvme_sq *sq = &m->sq[0];
	const struct emu_nvme_cq *cq = sq->cq;
	bool is_full = (cq->tail + 1) % cq->size == cq->head;

	return is_full || (!m->n_done && !emu_nvme_event_ready(m) && sq->head == sq->tail);
}
