/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that copy between segments by the adapters' DMA engines: transfers that are waited for,
 * polled, aborted, or abandoned. The source contains words that identify their segment, and zeros;
 * nothing else may ever be seen where transfers write. The states of the queue are checked.
 */
#include "work/life.h"
#include "work/places.h"
#include "smartio/ext.h"
#include "run/run.h"

#define AT_ONCE 8u

static void make_queue(struct sim_places *p)
{
	sci_error_t e;

	if (p->queue)
		return;
	SIM_CALL(SCICreateDMAQueue, (p->sd, &p->queue, 0, 1, 0, &e), &e, SCI_ERR_DMA_NOT_AVAILABLE);
	if (e != SCI_ERR_OK)
		p->queue = NULL;
	else if (SCIDMAQueueState(p->queue) != SCI_DMAQUEUE_IDLE)
		sim_fail("states", "%s: a new DMA queue is not idle", sim_self()->name);
}

/* Copies from the first half of one segment to the second half of the other, in 1 to 4 pieces. */
static void transfer(struct sim_places *p)
{
	dis_dma_vec_t vec[4];
	unsigned n = 1 + (unsigned)sim_pick(4), flags = sim_pick(2) ? SCI_FLAG_DMA_READ : 0;
	sci_dma_queue_state_t before;
	sci_error_t e;

	if (!p->queue || !p->own || !p->remote)
		return;
	for (unsigned i = 0; i < n; i++) {
		uint32_t from = sim_pick_from();
		uint32_t to = sim_pick_to();

		/* Each piece is as long as the distance of two words: one of them, and zeros. */
		vec[i] = (dis_dma_vec_t){.size = 256,
					 .local_offset = flags ? to : from,
					 .remote_offset = flags ? from : to};
	}
	before = SCIDMAQueueState(p->queue);
	SIM_CALL(SCIStartDmaTransferVec,
		 (p->queue, p->own, p->remote, n, vec, NULL, NULL, flags, &e), &e,
		 SCI_ERR_ILLEGAL_OPERATION, SCI_ERR_SEGMENT_NOT_PREPARED,
		 SCI_ERR_SEGMENT_NOT_CONNECTED, SCI_ERR_NOT_CONNECTED);
	sim_queue_judge("SCIStartDmaTransferVec", before, e);
	if (before == SCI_DMAQUEUE_POSTED && e == SCI_ERR_OK &&
	    SCIDMAQueueState(p->queue) == SCI_DMAQUEUE_IDLE)
		sim_fail("states", "%s: a started DMA queue is idle", sim_self()->name);
}

static void wait_queue(struct sim_places *p)
{
	sci_error_t e;

	sim_wait_queue(p->queue, SCI_ERR_CANCELLED, NULL, &e);
}

static void act(void *state)
{
	struct sim_places *p = state;
	uint64_t what = sim_pick(16);

	if (sim_place_by(p, what))
		return;
	switch (what) {
	case 3:
		make_queue(p);
		break;
	case 4:
		if (sim_pick(4) == 0)
			sim_drop_own(p);
		break;
	case 5:
		if (sim_pick(4) == 0)
			sim_drop_remote(p);
		break;
	case 6:
		if (sim_pick(4) == 0)
			sim_drop_queue(p);
		break;
	case 7:
		sim_abort_queue(p);
		break;
	case 8:
	case 9:
		sim_look_own(p);
		wait_queue(p);
		break;
	default:
		transfer(p);
		/* Close to one another, so that the next finds the engine falling asleep. */
		for (unsigned i = 0; sim_has_fault("doze") && p->queue && i < AT_ONCE; i++) {
			wait_queue(p);
			transfer(p);
		}
	}
}

static void tear_down(void *state)
{
	struct sim_places *p = state;

	sim_drop_queue(p);
	sim_drop_remote(p);
	sim_drop_own(p);
}

static void dma_main(struct sim_proc *p)
{
	struct sim_places s = {.first_id = 20, .ids = 3, .mark = 0xd0000000u};
	static const struct sim_life life = {.acts = 200, .act = act, .tear_down = tear_down};

	sim_live_and_exit(p, &life, &s, &s.sd);
}

const struct sim_workload sim_work_dma = {
	.name = "dma", .weight = 2, .fits = sim_adapters, .main = dma_main};
