/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion by interrupt: a vector of the drive triggers an interrupt of this host. The drive
 * writes the completion before the interrupt's message, and an interrupt that comes before anybody
 * waits is kept. So checking the queue and then waiting misses nothing.
 */
#include <errno.h>

#include "error.h"
#include "multi.h"
#include "smartio/ext.h"

#define CHECK_MS 50u /* how often who waits looks whether the drive was reset */

static int tie(struct smartio_nvme_queue *q, unsigned number)
{
	struct sio_nvme_device *d = &q->leg->d;
	unsigned vector = SMARTIO_ANY_VECTOR;
	sci_remote_interrupt_t to;
	sci_error_t err, ignored;

	SCIConnectInterrupt(d->sd, &to, d->node, d->adapter, number, SCI_INFINITE_TIMEOUT, 0, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "cannot reach interrupt %u of this host", number);
	smartio_connect_device_interrupt(d->handle, &vector, to, &err);
	SCIDisconnectInterrupt(to, 0, &ignored);
	if (err == SCI_ERR_HW_NOSPC)
		return sio_nvme_fail(-EBUSY, "all interrupt vectors of %s are taken", d->name);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: no interrupt vector", d->name);
	q->vector = vector;
	return 0;
}

int sio_nvme_interrupt_open(struct smartio_nvme_queue *q)
{
	unsigned number = 0;
	sci_error_t err;

	SCICreateInterrupt(q->leg->d.sd, &q->interrupt, q->leg->d.adapter, &number, NULL, NULL, 0,
			   &err);
	if (err != SCI_ERR_OK) {
		q->interrupt = NULL;
		return sio_nvme_fail_sci(err, "no interrupt for completions");
	}
	return tie(q, number);
}

void sio_nvme_interrupt_close(struct smartio_nvme_queue *q)
{
	sci_error_t err;

	if (q->vector)
		SIO_NVME_UNTIL_FREE(err, smartio_disconnect_device_interrupt(q->leg->d.handle,
									     q->vector, &err));
	if (q->interrupt)
		SIO_NVME_UNTIL_FREE(err, SCIRemoveInterrupt(q->interrupt, 0, &err));
	q->vector = 0;
	q->interrupt = NULL;
}

/* Milliseconds to @deadline, rounded up; CHECK_MS or a tick of the queue's time-out at most. */
static unsigned slice(const struct smartio_nvme_queue *q, uint64_t now, uint64_t deadline)
{
	uint64_t ns = q->multi ? sio_nvme_multi_tick(q->multi) : sio_nvme_limit_tick(q);

	if (ns > CHECK_MS * 1000000ull)
		ns = CHECK_MS * 1000000ull;
	if (ns > deadline - now)
		ns = deadline - now;
	return (unsigned)((ns + 999999) / 1000000);
}

static bool completion_waits(const struct smartio_nvme_queue *q)
{
	return q->multi ? sio_nvme_multi_waits(q->multi) : sio_nvme_completion_waits(q);
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
