/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that copy between segments by the adapters' DMA engines: transfers that are waited for,
 * polled, aborted, and left behind. What is copied are words that say which segment they come from;
 * nothing else may ever be seen where transfers write. The queue's states follow the sheet.
 */
#include "life.h"
#include "places.h"
#include "smartio/ext.h"
#include "tables.h"

#define AT_ONCE 8u

struct state {
	struct sim_places p;
	sci_dma_queue_t queue;
};

static void make_queue(struct state *s)
{
	sci_error_t e;

	if (s->queue)
		return;
	SIM_CALL(SCICreateDMAQueue, (s->p.sd, &s->queue, 0, 1, 0, &e), &e,
		 SCI_ERR_DMA_NOT_AVAILABLE);
	if (e != SCI_ERR_OK)
		s->queue = NULL;
	else if (SCIDMAQueueState(s->queue) != SCI_DMAQUEUE_IDLE)
		sim_fail("states", "%s: a new DMA queue is not idle", sim_self()->name);
}

/* From a first half to a second half, in one piece or several. */
static void transfer(struct state *s)
{
	dis_dma_vec_t vec[4];
	unsigned n = 1 + (unsigned)sim_pick(4), flags = sim_pick(2) ? SCI_FLAG_DMA_READ : 0;
	sci_dma_queue_state_t before;
	sci_error_t e;

	if (!s->queue || !s->p.own || !s->p.remote)
		return;
	for (unsigned i = 0; i < n; i++) {
		uint32_t from = sim_pick_from();
		uint32_t to = sim_pick_to();

		/* Whole strides of words, so that what arrives is words and zeros. */
		vec[i] = (dis_dma_vec_t){.size = 256,
					 .local_offset = flags ? to : from,
					 .remote_offset = flags ? from : to};
	}
	before = SCIDMAQueueState(s->queue);
	SIM_CALL(SCIStartDmaTransferVec,
		 (s->queue, s->p.own, s->p.remote, n, vec, NULL, NULL, flags, &e), &e,
		 SCI_ERR_ILLEGAL_OPERATION, SCI_ERR_SEGMENT_NOT_PREPARED,
		 SCI_ERR_SEGMENT_NOT_CONNECTED, SCI_ERR_NOT_CONNECTED);
	sim_queue_judge("SCIStartDmaTransferVec", before, e);
	if (before == SCI_DMAQUEUE_POSTED && e == SCI_ERR_OK &&
	    SCIDMAQueueState(s->queue) == SCI_DMAQUEUE_IDLE)
		sim_fail("states", "%s: a started DMA queue is idle", sim_self()->name);
}

static void wait_queue(struct state *s)
{
	sci_error_t e;

	sim_wait_queue(s->queue, SCI_ERR_CANCELLED, NULL, &e);
}

static void abort_queue(void *state)
{
	struct state *s = state;
	sci_dma_queue_state_t before;
	sci_error_t e;

	if (!s->queue)
		return;
	before = SCIDMAQueueState(s->queue);
	SIM_CALL(SCIAbortDMAQueue, (s->queue, 0, &e), &e);
	if (e == SCI_ERR_OK)
		sim_queue_aborted(s->queue, before, s->p.remote_map);
}

static void drop_queue(struct state *s)
{
	sim_remove_queue(&s->queue, abort_queue, s);
}

static void drop_remote(struct state *s)
{
	sim_unmap_remote(&s->p);
	if (sim_disconnect_remote(&s->p))
		return;
	drop_queue(s);
	sim_must_disconnect_remote(&s->p, "the queue is gone");
}

static void drop_own(struct state *s)
{
	if (!s->p.own)
		return;
	sim_unmap_own(&s->p);
	drop_queue(s);
	sim_remove_own(&s->p, true);
}

static void act(void *state)
{
	struct state *s = state;
	uint64_t what = sim_pick(16);

	if (sim_place_by(&s->p, what))
		return;
	switch (what) {
	case 3:
		make_queue(s);
		break;
	case 4:
		if (sim_pick(4) == 0)
			drop_own(s);
		break;
	case 5:
		if (sim_pick(4) == 0)
			drop_remote(s);
		break;
	case 6:
		if (sim_pick(4) == 0)
			drop_queue(s);
		break;
	case 7:
		abort_queue(s);
		break;
	case 8:
	case 9:
		sim_look_own(&s->p);
		wait_queue(s);
		break;
	default:
		transfer(s);
		/* One at the heels of the other: the engine is about to fall asleep. */
		for (unsigned i = 0; sim_has_fault("doze") && s->queue && i < AT_ONCE; i++) {
			wait_queue(s);
			transfer(s);
		}
	}
}

static void tear_down(void *state)
{
	drop_queue(state);
	drop_remote(state);
	drop_own(state);
}

static void dma_main(struct sim_proc *p)
{
	struct state s = {.p = {.first_id = 20, .ids = 3, .mark = 0xd0000000u}};
	static const struct sim_life life = {.acts = 200, .act = act, .tear_down = tear_down};

	sim_live_and_exit(p, &life, &s, &s.p.sd);
}

const struct sim_workload sim_work_dma = {
	.name = "dma", .weight = 2, .fits = sim_adapters, .main = dma_main};
