/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two paths to the drive: it is borrowed once over each of two adapters of this host. A link that
 * goes down takes only one borrow with it. The other one has doorbells, memory and a connection to
 * the manager ready, but no queue pair, of which drives have few: that is made when it is needed.
 */
#include <errno.h>
#include <stdlib.h>

#include "client.h"
#include "error.h"
#include "smartio/ext.h"

/* An adapter but @n's own that leads to the lender; a link that is down counts. -ENODEV: none. */
static int find_adapter(struct smartio_nvme *n, struct smartio_nvme *leg)
{
	sci_error_t err;

	for (unsigned i = 0; i < DIS_MAX_NSCIS; i++) {
		if (i == n->d.adapter)
			continue;
		smartio_borrow_device_over(leg->d.sd, &leg->d.handle, leg->d.fdid, i, 0, &err);
		if (err == SCI_ERR_NO_SUCH_ADAPTERNO)
			break;
		if (err != SCI_ERR_OK)
			leg->d.handle = NULL;
		if (err == SCI_ERR_NO_SUCH_NODEID)
			continue;
		leg->d.over = i + 1;
		leg->d.mends = true;
		sio_nvme_device_return(&leg->d);
		return 0;
	}
	return sio_nvme_fail(
		-ENODEV,
		"adapter %u of this host is the only one that leads to %s: two paths need two "
		"adapters",
		n->d.adapter, n->d.name);
}

static bool is_reached(const struct smartio_nvme *n, const struct smartio_nvme *leg,
		       const struct smartio_nvme_buffer *b)
{
	return leg == n ? b->mem.reachable : b->second.reachable;
}

/* Of the buffers, one that the drive reaches over @leg, or does not; NULL. */
static struct smartio_nvme_buffer *next_buffer(struct smartio_nvme *n, struct smartio_nvme *leg,
					       bool reached)
{
	for (struct smartio_nvme_buffer *b = n->buffers; b; b = b->next)
		if (is_reached(n, leg, b) == reached)
			return b;
	return NULL;
}

static int reach(struct smartio_nvme *n, struct smartio_nvme *leg, struct smartio_nvme_buffer *b)
{
	int rc;

	if (leg != n)
		return sio_nvme_reach_open(&leg->d, &b->mem, &b->second);
	rc = sio_nvme_mem_join(&b->mem);
	b->ioaddr = b->mem.ioaddr;
	return rc;
}

static void part(struct smartio_nvme *n, struct smartio_nvme *leg, struct smartio_nvme_buffer *b)
{
	if (leg != n)
		sio_nvme_reach_close(&leg->d, &b->mem, &b->second);
	else
		sio_nvme_mem_part(&b->mem);
}

/* Apart: first what lies in the lender's memory, then the buffers, then the borrow. */
static int step_back(struct smartio_nvme *n, struct smartio_nvme *leg)
{
	struct sio_nvme_mem *spare = leg->spare;
	struct smartio_nvme_buffer *b;
	int rc;

	if (leg->stage == SIO_NVME_LEG_CLOSING && spare) {
		leg->spare = spare->next;
		sio_nvme_mem_done(spare);
		free(spare);
	} else if (leg->stage == SIO_NVME_LEG_CLOSING) {
		leg->stage = SIO_NVME_LEG_PARTING;
	} else if ((b = next_buffer(n, leg, true))) {
		part(n, leg, b);
	} else {
		rc = sio_nvme_remains_leave(n, leg);
		if (rc)
			return rc;
		leg->generation = &sio_nvme_no_generation;
		leg->stage = SIO_NVME_LEG_SHUT;
	}
	return 1;
}

static int borrow(struct smartio_nvme *leg)
{
	struct sio_nvme_wait w;
	int rc;

	sio_nvme_wait_start(&w, 0);
	rc = sio_nvme_device_query(&leg->d);
	return rc ? rc : sio_nvme_leg_borrow(leg, &w);
}

static int find(struct smartio_nvme *leg)
{
	struct sio_nvme_wait w;

	sio_nvme_wait_start(&w, 0);
	return sio_nvme_leg_find(leg, &w);
}

/*
 * The last step. The manager's host is another one than the lender's: while it does not answer a
 * queue may get a pair over the other path, if it gets the lock. A request that comes meanwhile may
 * find another manager; then this one is of no use.
 */
static int link_manager(struct smartio_nvme *n, struct smartio_nvme *leg)
{
	sci_remote_data_interrupt_t manager;
	uint64_t instance;
	sci_error_t err;
	int rc = sio_nvme_seek_manager(leg);

	if (rc <= 0)
		return rc;
	instance = leg->meta.instance;
	rc = sio_nvme_connect_manager(n, leg, &manager);
	if (rc)
		return rc;
	if (leg->manager || leg->meta.instance != instance) {
		SCIDisconnectDataInterrupt(manager, 0, &err);
		return leg->manager ? 0 : -EAGAIN;
	}
	leg->manager = manager;
	return 0;
}

/* The next thing that @leg lacks. */
static int step_on(struct smartio_nvme *n, struct smartio_nvme *leg)
{
	struct smartio_nvme_buffer *b;

	switch (leg->stage) {
	case SIO_NVME_LEG_SHUT:
		return borrow(leg);
	case SIO_NVME_LEG_BORROWED:
		return find(leg);
	case SIO_NVME_LEG_FOUND:
		return sio_nvme_doorbells_open(leg);
	default:
		b = next_buffer(n, leg, false);
		return b ? reach(n, leg, b) : link_manager(n, leg);
	}
}

/* While there was no way at all the drive may have been off: queues of before do not go on. */
static void opened(struct smartio_nvme *n, const struct smartio_nvme *leg)
{
	if (!sio_nvme_leg_open(leg == n ? n->second : n))
		n->absences++;
}

static int start(struct smartio_nvme *n, struct smartio_nvme *leg)
{
	int rc = step_on(n, leg);
	bool more = false;

	/* Buffers that others have made meanwhile are reached before it is open. */
	if (leg->stage == SIO_NVME_LEG_RINGS)
		more = !leg->manager || next_buffer(n, leg, false);
	if (rc == 0 && !more)
		leg->stage++;
	if (rc && leg->d.handle)
		leg->stage = SIO_NVME_LEG_CLOSING;
	if (rc)
		return rc;
	if (leg->stage != SIO_NVME_LEG_OPEN)
		return 1;
	opened(n, leg);
	return 0;
}

int sio_nvme_second_open(struct smartio_nvme *n)
{
	struct smartio_nvme *leg = calloc(1, sizeof(*leg));
	sci_error_t err;
	int rc;

	if (!leg)
		return sio_nvme_no_memory("the second path");
	n->second = leg;
	rc = sio_nvme_device_find(&leg->d, n->d.name);
	if (rc == 0)
		rc = find_adapter(n, leg);
	if (rc)
		return rc;
	SCICreateDataInterrupt(leg->d.sd, &leg->reply, SMARTIO_ALL_ADAPTERS, &leg->reply_number,
			       NULL, NULL, 0, &err);
	if (err != SCI_ERR_OK) {
		leg->reply = NULL;
		return sio_nvme_fail_sci(err, "no data interrupt for replies");
	}
	leg->sequence = smartio_random();
	leg->generation = &sio_nvme_no_generation;
	/* The link of this path may be down now. */
	sio_nvme_lock(n);
	while (sio_nvme_leg_step(n, leg) > 0)
		;
	sio_nvme_unlock(n);
	return 0;
}

void sio_nvme_second_close(struct smartio_nvme *n)
{
	struct smartio_nvme *leg = n->second;
	sci_error_t err;

	if (!leg)
		return;
	n->second = NULL;
	sio_nvme_leg_end(leg);
	if (leg->reply)
		SCIRemoveDataInterrupt(leg->reply, 0, &err);
	sio_nvme_device_done(&leg->d);
	free(leg->ns);
	free(leg);
}

struct smartio_nvme *sio_nvme_leg_for(struct smartio_nvme *n, const struct smartio_nvme_queue *q)
{
	const struct smartio_nvme_queue *of = q->options.completes_in;
	struct smartio_nvme *leg = n;

	if (of && of->n == n && q->options.lease)
		return of->leg;
	/* Others cannot move, and name buffers by the first way alone, unless they have a lease. */
	if (!n->second || (!(q->options.flags & SMARTIO_NVME_SURVIVE) && !q->options.lease))
		return n;
	if (q->options.flags & SMARTIO_NVME_SURVIVE && n->homes++ % 2)
		leg = n->second;
	if (sio_nvme_leg_open(leg))
		return leg;
	return leg == n ? n->second : n;
}

int sio_nvme_leg_step(struct smartio_nvme *n, struct smartio_nvme *leg)
{
	if (sio_nvme_leg_open(leg))
		return 0;
	if (leg->stage == SIO_NVME_LEG_OPEN) {
		sio_nvme_queues_forget(n, false);
		leg->stage = SIO_NVME_LEG_CLOSING;
	}
	if (leg->stage < SIO_NVME_LEG_OPEN)
		return start(n, leg);
	return step_back(n, leg);
}
