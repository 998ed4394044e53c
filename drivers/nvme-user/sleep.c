/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping for completions. The drive writes a completion before the interrupt's message, and an
 * interrupt that comes before anybody waits is kept. So checking the queue and then waiting misses
 * nothing. Of a pair that programs share there is no vector if its maker polls; who sleeps in such
 * a pair looks each millisecond.
 */
#include <errno.h>

#include "error.h"
#include "multi.h"
#include "smartio/ext.h"

#define CHECK_MS 50u /* how often who waits looks whether the drive was reset */
/* The same where no interrupt comes: sio_nvme_share_is_silent(). */
#define SILENT_NS 1000000ull

/* Milliseconds to @deadline, rounded up; CHECK_MS or a tick of the queue's time-out at most. */
static unsigned slice(const struct smartio_nvme_queue *q, uint64_t now, uint64_t deadline)
{
	uint64_t ns = q->multi ? sio_nvme_multi_tick(q->multi) : sio_nvme_limit_tick(q);

	if (ns > CHECK_MS * 1000000ull)
		ns = CHECK_MS * 1000000ull;
	if (q->share && ns > SILENT_NS && sio_nvme_share_is_silent(q))
		ns = SILENT_NS;
	if (ns > deadline - now)
		ns = deadline - now;
	return (unsigned)((ns + 999999) / 1000000);
}

/* What others of a shared pair wait for is handed on to them. */
static bool completion_waits(struct smartio_nvme_queue *q)
{
	if (q->multi)
		return sio_nvme_multi_waits(q->multi);
	return q->share ? sio_nvme_share_await(q) : sio_nvme_completion_waits(q);
}

/* Before the deadline: who only looks counts, too. */
static void look(struct smartio_nvme_queue *q)
{
	if (!q->multi) {
		sio_nvme_limit_look(q, true);
		return;
	}
	for (struct smartio_nvme_queue *of = q->multi->users; of; of = of->peer)
		smartio_nvme_ring(of);
	sio_nvme_multi_look(q->multi, true);
}

int smartio_nvme_wait(struct smartio_nvme_queue *q, uint32_t timeout_ms)
{
	uint64_t deadline = timeout_ms == UINT32_MAX ? UINT64_MAX : sio_nvme_deadline(timeout_ms);
	const struct smartio_nvme_queue *told = sio_nvme_told_by(q);

	if (!(told->options.flags & SMARTIO_NVME_INTERRUPT))
		return sio_nvme_fail(-EINVAL, "queue pair %u was opened without an interrupt",
				     told->id);
	smartio_nvme_ring(q);
	for (;;) {
		sci_error_t err;
		uint64_t now;

		if (q->error || sio_nvme_queue_stale(q))
			return sio_nvme_survives(q) ? 1 : sio_nvme_queue_dead(q);
		if (completion_waits(q))
			return 1;
		if (q->share) /* entries that found the lock held */
			smartio_nvme_ring(q);
		look(q);
		if (q->error)
			continue;
		now = smartio_now_ns();
		if (now >= deadline)
			return 0;
		if (q->life)
			sio_nvme_look(q);
		SCIWaitForInterrupt(told->interrupt, slice(q, now, deadline), 0, &err);
		if (err == SCI_ERR_OK)
			q->counters.interrupts++;
		else if (err != SCI_ERR_TIMEOUT)
			return sio_nvme_fail(-EIO, "the interrupt of queue pair %u is lost: %s",
					     told->id, SCIGetErrorString(err));
	}
}
