/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of the controller, for tests of drivers: commands that come late, get no completion or
 * another's, fail, or are not seen. They concern I/O queues, and the admin queue only where it is
 * named. A command that is delayed waits before it is carried out, so it can be aborted.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "emu/devices/nvme/model.h"

#define STATUS_MOST 0x7ffu /* status code type and status code */

int emu_nvme_fault_set(struct emu_nvme *m, const struct emu_dev_fault *f, struct sio_err *reterr)
{
	if (!f) {
		if (m->faults)
			m->faults->n = 0;
		return 0;
	}
	if (f->kind == EMU_FAULT_NONE || f->kind >= EMU_FAULT_KINDS)
		return sio_fail(reterr, -EINVAL, "%s: fault %u; 1 to %u are right", m->name,
				f->kind, EMU_FAULT_KINDS - 1);
	if (f->kind == EMU_FAULT_ERROR && (f->value == 0 || f->value > STATUS_MOST))
		return sio_fail(reterr, -EINVAL,
				"%s: status %#" PRIx64 " is no error; 0x1 to %#x is right", m->name,
				f->value, STATUS_MOST);
	if (!m->faults)
		m->faults = calloc(1, sizeof(*m->faults));
	if (!m->faults)
		return sio_fail(reterr, -ENOMEM, "%s: no memory for faults: " SIO_MORE_MEMORY,
				m->name);
	if (m->faults->n == EMU_NVME_FAULTS)
		return sio_fail(reterr, -ENOSPC, "%s has %u faults already; no more are possible",
				m->name, EMU_NVME_FAULTS);
	m->faults->fault[m->faults->n++] = *f;
	return 0;
}

/* The fault has occurred as often as requested: those behind it move up. */
static void expire(struct emu_nvme_faults *f, unsigned i)
{
	f->n--;
	for (; i < f->n; i++)
		f->fault[i] = f->fault[i + 1];
}

/*
 * The first fault that concerns this; it is used up by one. @opcode EMU_FAULT_ANY: a doorbell.
 * False: none, and each that would has seen it pass.
 */
static bool find(struct emu_nvme *m, uint32_t opcode, uint32_t queue, struct emu_dev_fault *ret)
{
	struct emu_nvme_faults *all = m->faults;

	for (unsigned i = 0; i < all->n; i++) {
		struct emu_dev_fault *f = &all->fault[i];

		if ((f->kind == EMU_FAULT_DOORBELL) != (opcode == EMU_FAULT_ANY) ||
		    (f->queue != queue && (queue == 0 || f->queue != EMU_FAULT_ANY)) ||
		    (f->opcode != EMU_FAULT_ANY && f->opcode != opcode))
			continue;
		if (f->after) {
			f->after--;
			continue;
		}
		*ret = *f;
		m->stats.faults++;
		if (f->count && --f->count == 0)
			expire(all, i);
		return true;
	}
	return false;
}

bool emu_nvme_fault_hides(struct emu_nvme *m, const struct emu_nvme_sq *sq)
{
	struct emu_dev_fault f;

	return find(m, EMU_FAULT_ANY, sq->id, &f);
}

static bool hold(struct emu_nvme *m, struct emu_nvme_sq *sq, const struct emu_nvme_sqe *sqe,
		 emu_nvme_complete *complete, uint64_t ns)
{
	struct emu_nvme_faults *f = m->faults;

	if (f->n_held == EMU_NVME_HELD_MOST)
		return false;
	f->held[f->n_held++] = (struct emu_nvme_held){
		.sqe = *sqe, .sq = sq, .complete = complete, .due = m->dev->now(m->dev) + ns};
	return true;
}

bool emu_nvme_fault_takes(struct emu_nvme *m, struct emu_nvme_sq *sq,
			  const struct emu_nvme_sqe *sqe, emu_nvme_complete *complete, bool *failed)
{
	struct emu_dev_fault f;

	if (!find(m, sqe->opcode, sq->id, &f))
		return false;
	switch (f.kind) {
	case EMU_FAULT_DELAY:
		return hold(m, sq, sqe, complete, f.value);
	case EMU_FAULT_DROP:
		complete(m, sq, sqe, sqe->cid, 0, 0);
		return true;
	case EMU_FAULT_ERROR:
		complete(m, sq, sqe, sqe->cid, (unsigned)f.value, 1);
		*failed = true;
		return true;
	case EMU_FAULT_WRONG_ID:
		complete(m, sq, sqe, (__le16)(sqe->cid ^ htole16(0x8000)), 0, 1);
		return true;
	case EMU_FAULT_TWICE:
		complete(m, sq, sqe, sqe->cid, 0, 2);
		return true;
	case EMU_FAULT_FATAL:
		emu_nvme_log(m, "fatal status, as a fault was asked for");
		emu_nvme_fatal(m);
		return true;
	default:
		return false;
	}
}

static void forget(struct emu_nvme_faults *f, unsigned i)
{
	f->n_held--;
	for (; i < f->n_held; i++)
		f->held[i] = f->held[i + 1];
}

static void tell(struct emu_nvme *m, const struct emu_nvme_sq *sq, bool urgent)
{
	if (sq->cq->interrupts)
		emu_nvme_interrupt(m, sq->cq, urgent);
}

unsigned emu_nvme_held_run(struct emu_nvme *m)
{
	struct emu_nvme_faults *f = m->faults;
	uint64_t now = m->dev->now(m->dev);
	unsigned done = 0;

	for (unsigned i = 0; i < f->n_held && m->running;) {
		struct emu_nvme_held h = f->held[i];

		if (now < h.due || emu_nvme_jobs_full(m, 1) ||
		    emu_nvme_cq_room(m, h.sq->cq, 1) == 0 || (h.sq->id == 0 && m->n_done)) {
			i++;
			continue;
		}
		forget(f, i);
		h.complete(m, h.sq, &h.sqe, h.sqe.cid, 0, 1);
		tell(m, h.sq, true);
		done++;
	}
	return done;
}

bool emu_nvme_held_any(const struct emu_nvme *m)
{
	return m->faults && m->faults->n_held;
}

static bool abort_one(struct emu_nvme *m, unsigned i, unsigned status)
{
	const struct emu_nvme_held *h = &m->faults->held[i];
	const struct emu_nvme_sq *sq = h->sq;

	if (emu_nvme_cq_room(m, sq->cq, 1) == 0)
		return false;
	m->stats.aborted++;
	emu_nvme_post(m, sq, h->sqe.cid, status, 0);
	forget(m->faults, i);
	tell(m, sq, true);
	return true;
}

bool emu_nvme_held_abort(struct emu_nvme *m, const struct emu_nvme_sq *sq, __le16 cid,
			 unsigned status)
{
	for (unsigned i = 0; emu_nvme_held_any(m) && i < m->faults->n_held; i++)
		if (m->faults->held[i].sq == sq && m->faults->held[i].sqe.cid == cid)
			return abort_one(m, i, status);
	return false;
}

void emu_nvme_held_end(struct emu_nvme *m, const struct emu_nvme_sq *sq)
{
	if (!emu_nvme_held_any(m))
		return;
	if (!sq) {
		m->faults->n_held = 0;
		return;
	}
	for (unsigned i = 0; i < m->faults->n_held;) {
		if (m->faults->held[i].sq != sq)
			i++;
		else if (!abort_one(m, i, NVME_SC_ABORT_QUEUE))
			forget(m->faults, i);
	}
}
