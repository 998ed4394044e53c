/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Submission queues of one client that complete in one completion queue: opened and closed while
 * others are at work, and at last closed in any order, so that the completion queue outlives the
 * one that came with it.
 */
#include <errno.h>

#include "work/several.h"

#include "client.h"
#include "run/listener.h"
#include "run/run.h"
#include "work/drives.h"

static void open_one(struct sim_several *s, unsigned i)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o),
						     .depth = s->depth,
						     .sq_placement = (uint32_t)sim_pick(4),
						     .completes_in = s->q[0]};
	int rc;

	sim_call("smartio_nvme_queue_open", 0);
	rc = smartio_nvme_queue_open(s->n, &o, &s->q[i]);
	if (rc == 0)
		sim_note_queue(s->n->d.fdid, s->q[i], s->resets);
	else
		s->q[i] = NULL;
	/* The first one is dead, or the lender has lost this host, or the drive lacks a CMB. */
	if (rc == -EPROTO || rc == -EFAULT)
		sim_nvme_called(rc, rc);
	else
		sim_nvme_called(rc, -ENOTSUP);
}

void sim_several_open(struct sim_several *s, struct smartio_nvme *n,
		      struct smartio_nvme_queue *first, uint32_t depth, uint64_t resets)
{
	*s = (struct sim_several){.n = n, .depth = depth, .resets = resets, .q = {first}};
	for (unsigned i = 1; i < SIM_SEVERAL; i++)
		if (sim_pick(4))
			open_one(s, i);
}

struct smartio_nvme_queue *sim_several_pick(const struct sim_several *s)
{
	unsigned i = (unsigned)sim_pick(SIM_SEVERAL);

	return s->q[i] ? s->q[i] : s->q[0];
}

void sim_several_change(struct sim_several *s,
			bool (*busy)(void *arg, const struct smartio_nvme_queue *q), void *arg)
{
	unsigned i = 1 + (unsigned)sim_pick(SIM_SEVERAL - 1);

	if (!s->q[i]) {
		open_one(s, i);
		return;
	}
	if (busy(arg, s->q[i]))
		return;
	sim_call("smartio_nvme_queue_close", 120000);
	smartio_nvme_queue_close(s->q[i]);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	s->q[i] = NULL;
}

void sim_several_close(struct sim_several *s, void (*close)(struct smartio_nvme_queue *q))
{
	unsigned first = (unsigned)sim_pick(SIM_SEVERAL);

	for (unsigned k = 0; k < SIM_SEVERAL; k++) {
		struct smartio_nvme_queue **q = &s->q[(first + k) % SIM_SEVERAL];

		if (*q)
			close(*q);
		*q = NULL;
	}
}
