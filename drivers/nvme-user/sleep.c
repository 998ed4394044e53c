/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for completions: asleep, or polling first. The drive writes a completion before the
 * interrupt's message, and an interrupt that comes before anybody waits is kept. So checking the
 * queue and then waiting misses nothing. Of a pair that programs share there is no vector if its
 * maker polls; who sleeps in such a pair looks each millisecond.
 */
#include <errno.h>

#include "error.h"
#include "hybrid.h"
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
static bool completion_waits(struct smartio_nvme_queue *q, bool polling)
{
	if (q->multi)
		return sio_nvme_multi_waits(q->multi);
	if (!q->share)
		return sio_nvme_completion_waits(q);
	return polling ? sio_nvme_share_take(q) : sio_nvme_share_await(q);
}

/* Before the deadline: who only looks counts, too. @polling: it looks again at once. */
static void look(struct smartio_nvme_queue *q, bool polling)
{
	if (!q->multi) {
		sio_nvme_limit_look(q, !polling);
		return;
	}
	for (struct smartio_nvme_queue *of = q->multi->users; of; of = of->peer)
		smartio_nvme_ring(of);
	sio_nvme_multi_look(q->multi, !polling);
}

/* Return: 1: there is a completion, or a queue that survives has ended; 0: none; -errno. */
static int look_once(struct smartio_nvme_queue *q, bool polling)
{
	for (;;) {
		if (q->error || sio_nvme_queue_stale(q))
			return sio_nvme_survives(q) ? 1 : sio_nvme_queue_dead(q);
		if (completion_waits(q, polling))
			return 1;
		if (q->share) /* entries that found the lock held */
			smartio_nvme_ring(q);
		look(q, polling);
		if (!q->error)
			return 0;
	}
}

static void give_way(struct smartio_nvme_queue *q)
{
	q->counters.yields++;
	if (q->life)
		sio_nvme_look(q);
	smartio_yield();
}

/*
 * Looks again and again until @until. Before the sleep it yields once at least: a drive that shares
 * this processor has not had it while the queue looked, so the next ones are impatient. Return: as
 * look_once().
 */
static int poll_first(struct smartio_nvme_queue *q, uint64_t until)
{
	int rc;

	do {
		if (++q->empty > q->patience)
			give_way(q);
		rc = look_once(q, true);
	} while (rc == 0 && smartio_now_ns() < until);
	if (rc || q->empty > q->patience)
		return rc;
	q->empty = q->patience + 1;
	give_way(q);
	return look_once(q, true);
}

/* Sleeps for @ms at most. */
static int sleep_once(struct smartio_nvme_queue *q, const struct smartio_nvme_queue *told,
		      unsigned ms)
{
	sci_error_t err;

	SCIWaitForInterrupt(told->interrupt, ms, 0, &err);
	if (err == SCI_ERR_OK)
		q->counters.interrupts++;
	else if (err != SCI_ERR_TIMEOUT)
		return sio_nvme_fail(-EIO, "the interrupt of queue pair %u is lost: %s", told->id,
				     SCIGetErrorString(err));
	return 0;
}

/* Return: as smartio_nvme_wait(). @ret_slept: set if it slept. */
static int sleep_until(struct smartio_nvme_queue *q, const struct smartio_nvme_queue *told,
		       uint64_t deadline, bool *ret_slept)
{
	int rc;

	while ((rc = look_once(q, false)) == 0) {
		const uint64_t now = smartio_now_ns();

		if (now >= deadline)
			return 0;
		if (q->life)
			sio_nvme_look(q);
		*ret_slept = true;
		rc = sleep_once(q, told, slice(q, now, deadline));
		if (rc)
			return rc;
	}
	return rc;
}

/*
 * Polls, then sleeps. Interrupts of what polling has found are still pending, and end the next
 * sleep at once; the look behind it finds nothing, and the one after it is a sleep. A wait that
 * sleeps at once is measured, so it takes them before. The look comes behind that: an interrupt
 * that was taken is that of a completion which the look finds, one that comes later ends the sleep.
 */
static int wait_hybrid(struct smartio_nvme_queue *q, const struct smartio_nvme_queue *told,
		       uint64_t deadline)
{
	struct sio_nvme_hybrid *h = told->hybrid;
	const uint64_t begin = smartio_now_ns();
	const uint64_t ns = sio_nvme_hybrid_begin(h);
	/* What came before the wait may have taken all the time. */
	const uint64_t left = begin < deadline ? deadline - begin : 0;
	bool slept = false;
	int rc = 0;

	if (ns)
		rc = poll_first(q, begin + (ns < left ? ns : left));
	else
		rc = sleep_once(q, told, 0);
	if (rc == 0)
		rc = sleep_until(q, told, deadline, &slept);
	if (rc == 0)
		sio_nvme_hybrid_timeout(h);
	if (rc != 1 || q->error)
		return rc;
	sio_nvme_hybrid_end(h, slept, smartio_now_ns() - begin);
	if (slept)
		q->counters.waits_slept++;
	else
		q->counters.waits_polled++;
	return 1;
}

int smartio_nvme_wait(struct smartio_nvme_queue *q, uint32_t timeout_ms)
{
	uint64_t deadline = timeout_ms == UINT32_MAX ? UINT64_MAX : sio_nvme_deadline(timeout_ms);
	const struct smartio_nvme_queue *told = sio_nvme_told_by(q);
	bool slept;
	int rc;

	if (!(told->options.flags & SMARTIO_NVME_INTERRUPT))
		return sio_nvme_fail(-EINVAL, "queue pair %u was opened without an interrupt",
				     told->id);
	smartio_nvme_ring(q);
	if (!told->hybrid || timeout_ms == 0)
		return sleep_until(q, told, deadline, &slept);
	rc = look_once(q, true);
	return rc ? rc : wait_hybrid(q, told, deadline);
}
