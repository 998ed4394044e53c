/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues (NVMe 1.4, section 4.1): heads, tails and phases, fetching entries, posting completions,
 * and the round robin among the I/O submission queues. Everything on the path of a command is here,
 * in io.c and in prp.c.
 */
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "core/probe.h"
#include "emu/devices/nvme/model.h"
#include "smartio/io.h"

static inline uint32_t distance(uint32_t from, uint32_t to, uint32_t size)
{
	return to >= from ? to - from : to + size - from;
}

void emu_nvme_cq_init(struct emu_nvme *m, unsigned id, uint64_t addr, uint32_t size,
		      unsigned vector)
{
	emu_nvme_doorbell_zero(m, 2 * id + 1);
	emu_nvme_shadow_anew(m, 2 * id + 1);
	m->cq[id] = (struct emu_nvme_cq){
		.addr = addr,
		.size = size,
		.phase = 1,
		.id = (uint16_t)id,
		.interrupts = vector < m->vectors,
		.vector = (uint16_t)vector,
	};
	m->n_cqs += id != 0;
}

void emu_nvme_cq_fini(struct emu_nvme *m, unsigned id)
{
	m->cq[id].size = 0;
	m->n_cqs -= id != 0;
	emu_nvme_doorbell_zero(m, 2 * id + 1);
}

void emu_nvme_sq_init(struct emu_nvme *m, unsigned id, uint64_t addr, uint32_t size, unsigned cq)
{
	emu_nvme_doorbell_zero(m, 2 * id);
	emu_nvme_shadow_anew(m, 2 * id);
	m->sq[id] = (struct emu_nvme_sq){
		.addr = addr, .size = size, .id = (uint16_t)id, .cq = &m->cq[cq]};
	m->cq[cq].users++;
	if (id != 0)
		m->active[m->n_active++] = &m->sq[id];
}

/* Entries that were not fetched are forgotten with the queue. */
void emu_nvme_sq_fini(struct emu_nvme *m, unsigned id)
{
	struct emu_nvme_sq *sq = &m->sq[id];

	emu_nvme_held_end(m, sq);
	emu_nvme_jobs_end(m, sq);
	sq->cq->users--;
	sq->size = 0;
	for (unsigned i = 0; i < m->n_active; i++) {
		if (m->active[i] == sq) {
			m->active[i] = m->active[--m->n_active];
			break;
		}
	}
	emu_nvme_doorbell_zero(m, 2 * id);
}

void emu_nvme_queues_gone(struct emu_nvme *m)
{
	emu_nvme_held_end(m, NULL);
	emu_nvme_jobs_end(m, NULL);
	memset(m->sq, 0, (m->queue_pairs + 1) * sizeof(m->sq[0]));
	memset(m->cq, 0, (m->queue_pairs + 1) * sizeof(m->cq[0]));
	m->n_active = m->next = m->n_cqs = 0;
	m->queues_were_made = false;
	emu_nvme_doorbells_zero(m);
}

/* A new value: right if it is in the queue and takes nothing back that was announced. */
static void sq_doorbell_changed(struct emu_nvme *m, struct emu_nvme_sq *sq, uint32_t value)
{
	SIO_PROBE(smartio_emu, doorbell, sq->id, value);
	sq->doorbell_seen = value;
	if (emu_nvme_unlikely(m->faults) && emu_nvme_fault_hides(m, sq))
		return;
	if (emu_nvme_unlikely(value >= sq->size || distance(sq->head, value, sq->size) <
							   distance(sq->head, sq->tail, sq->size)))
		emu_nvme_doorbell_invalid(m, 2u * sq->id, value, NVME_AER_ERROR_INVALID_DB_VAL);
	else
		sq->tail = value;
}

uint32_t emu_nvme_sq_waiting(struct emu_nvme *m, struct emu_nvme_sq *sq)
{
	uint32_t value = sio_read32(m->doorbells + 2 * sq->id);

	if (value != sq->doorbell_seen)
		sq_doorbell_changed(m, sq, value);
	return distance(sq->head, sq->tail, sq->size);
}

/* Right if it is in the queue and frees only what was posted. */
void emu_nvme_cq_poll(struct emu_nvme *m, struct emu_nvme_cq *cq)
{
	uint32_t value = sio_read32(m->doorbells + 2 * cq->id + 1);

	if (value == cq->doorbell_seen)
		return;
	cq->doorbell_seen = value;
	if (value >= cq->size ||
	    distance(cq->head, value, cq->size) > distance(cq->head, cq->tail, cq->size))
		emu_nvme_doorbell_invalid(m, 2u * cq->id + 1, value, NVME_AER_ERROR_INVALID_DB_VAL);
	else
		cq->head = value;
}

static inline uint32_t cq_room(const struct emu_nvme_cq *cq)
{
	return cq->size - 1 - distance(cq->head, cq->tail, cq->size);
}

uint32_t emu_nvme_cq_room(struct emu_nvme *m, struct emu_nvme_cq *cq, uint32_t wanted)
{
	uint32_t room = cq_room(cq);

	if (emu_nvme_likely(room >= wanted))
		return room;
	emu_nvme_cq_poll(m, cq);
	return cq_room(cq);
}

bool emu_nvme_fetch(struct emu_nvme *m, struct emu_nvme_sq *sq, uint32_t n)
{
	uint64_t addr = sq->addr + (uint64_t)sq->head * sizeof(m->fetched[0]);

	/*
	 * The entries are read after the doorbell that announced them. Pairs with the barrier
	 * before the host's doorbell store: announce(), put(), sio_nvme_share_ring().
	 */
	sio_from_fabric_barrier();
	if (emu_nvme_unlikely(emu_nvme_read(m, addr, m->fetched, n * sizeof(m->fetched[0])))) {
		emu_nvme_log(m,
			     "entry %" PRIu32 " of submission queue %u cannot be fetched from "
			     "%#" PRIx64 ": controller fatal status",
			     sq->head, sq->id, addr);
		emu_nvme_fatal(m);
		return false;
	}
	sq->head += n;
	if (sq->head == sq->size)
		sq->head = 0;
	return true;
}

void emu_nvme_post(struct emu_nvme *m, const struct emu_nvme_sq *sq, __le16 cid, unsigned status,
		   uint32_t result)
{
	struct emu_nvme_cq *cq = sq->cq;
	/* Aligned, so that the room can store it in two words, the phase in the last. */
	struct emu_nvme_cqe cqe __attribute__((aligned(16))) = {
		.result = htole32(result),
		.sq_head = htole16((uint16_t)sq->head),
		.sq_id = htole16(sq->id),
		.cid = cid,
		.status = htole16((uint16_t)(status << 1 | cq->phase)),
	};

	if (emu_nvme_unlikely(emu_nvme_write(m, cq->addr + (uint64_t)cq->tail * sizeof(cqe), &cqe,
					     sizeof(cqe))))
		m->stats.lost_writes++;
	cq->untold++;
	if (++cq->tail == cq->size) {
		cq->tail = 0;
		cq->phase ^= 1;
	}
}

/*
 * How many entries of a queue are done in a row: bounded by budget, burst, wrap, and room for their
 * completions. What they cost shows when they are fetched and must be done: they are expected to be
 * like those before.
 */
static uint32_t run_length(struct emu_nvme *m, struct emu_nvme_sq *sq, unsigned budget)
{
	uint32_t n = emu_nvme_sq_waiting(m, sq), room;

	if (n == 0)
		return 0;
	if (n > sq->size - sq->head)
		n = sq->size - sq->head;
	if (n > m->burst)
		n = m->burst;
	if (emu_nvme_unlikely(sq->cost > 1))
		budget = budget > sq->cost ? budget / sq->cost : 1;
	if (n > budget)
		n = budget;
	if (emu_nvme_unlikely(m->files) && n > emu_nvme_jobs_room(m))
		n = emu_nvme_jobs_room(m);
	room = emu_nvme_cq_room(m, sq->cq, n);
	return emu_nvme_unlikely(n > room) ? room : n;
}

/*
 * A command of many ranges ends its run, for what it costs shows when it is done: the entries
 * behind it are fetched again. Return: how many are left of @n.
 */
static uint32_t give_back(const struct emu_nvme *m, struct emu_nvme_sq *sq, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		if (emu_nvme_likely(m->fetched[i - 1].opcode != nvme_cmd_dsm))
			continue;
		sq->head = (sq->head + sq->size - (n - i)) % sq->size;
		return i;
	}
	return n;
}

/* The emu_nvme_complete of I/O commands that a fault concerns. */
static void complete_wrong(struct emu_nvme *m, struct emu_nvme_sq *sq,
			   const struct emu_nvme_sqe *sqe, __le16 cid, unsigned status,
			   unsigned times)
{
	if (!status) {
		m->serving = sq;
		m->reply = &(struct emu_nvme_reply){.cid = cid, .times = times};
		status = emu_nvme_io(m, sqe);
		m->reply = NULL;
	}
	if (status == EMU_NVME_HELD)
		return;
	if (status) {
		emu_nvme_error(m, sq->id, sqe, status);
		status |= NVME_SC_MORE;
	}
	while (times-- && emu_nvme_cq_room(m, sq->cq, 1))
		emu_nvme_post(m, sq, cid, status, 0);
}

/* Return: units of work done. */
static unsigned sq_serve(struct emu_nvme *m, struct emu_nvme_sq *sq, unsigned budget)
{
	uint32_t n = run_length(m, sq, budget);
	unsigned pages = m->pages;
	bool failed = false;

	if (n == 0 || !emu_nvme_fetch(m, sq, n))
		return 0;
	n = give_back(m, sq, n);
	m->serving = sq;
	for (uint32_t i = 0; i < n; i++) {
		const struct emu_nvme_sqe *sqe = &m->fetched[i];
		unsigned status;

		if (i + 1 < n)
			emu_nvme_io_soon(m, sqe + 1);
		if (emu_nvme_unlikely(m->faults) &&
		    emu_nvme_fault_takes(m, sq, sqe, complete_wrong, &failed)) {
			if (!m->running)
				return i + 1;
			continue;
		}
		status = emu_nvme_io(m, sqe);
		if (emu_nvme_unlikely(status)) {
			if (status == EMU_NVME_HELD)
				continue;
			emu_nvme_error(m, sq->id, sqe, status);
			status |= NVME_SC_MORE;
			failed = true;
		}
		emu_nvme_post(m, sq, sqe->cid, status, 0);
	}
	if (emu_nvme_unlikely(sq->cq->interrupts && sq->cq->untold))
		emu_nvme_interrupt(m, sq->cq, failed);
	pages = m->pages - pages;
	sq->cost = 1 + (pages + n - 1) / n;
	return n + pages;
}

unsigned emu_nvme_queues_run(struct emu_nvme *m, unsigned budget)
{
	const volatile uint32_t *doorbells = m->doorbells;
	unsigned done = 0, next = m->next;

	for (unsigned i = m->n_active; i > 0; i--) {
		struct emu_nvme_sq *sq;

		if (next >= m->n_active)
			next = 0;
		sq = m->active[next++];
		/* Most looks find nothing: they cost no call. */
		if (sq->head == sq->tail && sio_read32(doorbells + 2 * sq->id) == sq->doorbell_seen)
			continue;
		done += sq_serve(m, sq, budget - done);
		if (done >= budget || !m->running)
			break;
	}
	m->next = next;
	return done;
}

bool emu_nvme_queues_idle(const struct emu_nvme *m)
{
	for (unsigned i = 0; i < m->n_active; i++) {
		const struct emu_nvme_sq *sq = m->active[i];

		if (sq->head != sq->tail && cq_room(sq->cq) > 0)
			return false;
	}
	return true;
}
