/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What queues need that may wait for other hosts: a lost path made anew, and what a queue wants on
 * its own path before it returns. A thread of the library does it, one task at a time, so that a
 * lender whose daemon has been stopped, or a manager that does not answer, holds no queue's I/O.
 * The thread has the client's lock meanwhile; what a queue does while it is polled tries the lock,
 * and never waits for it.
 */
#include "client.h"
#include "error.h"

static void work(void *arg)
{
	struct smartio_nvme *n = arg;
	struct sio_nvme_aside *a = &n->aside;
	bool more = true;

	while (more) {
		sio_nvme_lock(n);
		/* That of a queue which was closed meanwhile is none any more. */
		more = a->task && a->task(n, a->of) > 0;
		sio_nvme_unlock(n);
	}
	/* pairs with sio_nvme_aside_claim() and sio_nvme_aside_end() */
	__atomic_store_n(&a->working, false, __ATOMIC_RELEASE);
}

bool sio_nvme_aside_claim(struct smartio_nvme *n, sio_nvme_task *task, void *of)
{
	struct sio_nvme_aside *a = &n->aside;

	/* pairs with work() */
	if (__atomic_exchange_n(&a->working, true, __ATOMIC_ACQUIRE))
		return false;
	a->task = task;
	a->of = of;
	return true;
}

void sio_nvme_aside_start(struct smartio_nvme *n)
{
	struct sio_nvme_aside *a = &n->aside;
	smartio_thread_t before = a->thread;
	sci_error_t err;

	a->thread = NULL;
	smartio_thread_join(before); /* it has nothing left to do */
	smartio_thread_start(work, n, &a->thread, &err);
	if (err == SCI_ERR_OK)
		return;
	/* The next look tries again. */
	a->thread = NULL;
	/* pairs with sio_nvme_aside_claim() */
	__atomic_store_n(&a->working, false, __ATOMIC_RELEASE);
}

void sio_nvme_aside_forget(const struct smartio_nvme_queue *q)
{
	struct sio_nvme_aside *a = &q->n->aside;

	if (a->of == q)
		a->task = NULL;
}

void sio_nvme_aside_end(struct smartio_nvme *n)
{
	struct sio_nvme_aside *a = &n->aside;
	unsigned pauses = 0;

	sio_nvme_lock(n);
	a->task = NULL; /* after the step that it does now */
	sio_nvme_unlock(n);
	/* pairs with work() */
	while (__atomic_load_n(&a->working, __ATOMIC_ACQUIRE))
		sio_nvme_pause(&pauses);
	smartio_thread_join(a->thread);
	a->thread = NULL;
}
