/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that use DMA queues as in version 1 of the SISCI API: copies are enqueued, posted as one
 * transfer, waited for and reset, in any order, between segments and with memory of the program. A
 * model of the queue says what each call must give; a segment of a copy that is enqueued cannot be
 * removed or disconnected.
 */
#include <string.h>

#include "work/life.h"
#include "work/places.h"
#include "smartio/ext.h"
#include "run/run.h"

#define WORDS 64u

struct state {
	struct sim_places p;
	sci_dma_queue_t queue;
	unsigned max, n;	 /* copies that it has room for; that are enqueued */
	unsigned posted, called; /* transfers with a callback; callbacks so far */
	bool unknown;		 /* after an error @n may be wrong */
	uint32_t words[WORDS];	 /* memory of the program for transfers */
};

static void wrong(const char *call, sci_dma_queue_state_t before, sci_error_t e,
		  const struct state *s)
{
	sim_fail("states", "%s: %s gives %s, the queue was in state %d and has %u of %u copies",
		 sim_self()->name, call, SCIGetErrorString(e), (int)before, s->n, s->max);
}

static void make_queue(struct state *s)
{
	sci_error_t e;

	if (s->queue)
		return;
	s->max = 1 + (unsigned)sim_pick(6);
	SIM_CALL(SCICreateDMAQueue, (s->p.sd, &s->queue, 0, s->max, 0, &e), &e,
		 SCI_ERR_DMA_NOT_AVAILABLE);
	if (e != SCI_ERR_OK)
		s->queue = NULL;
	s->n = s->posted = s->called = 0;
	s->unknown = false;
}

static bool takes_copies(sci_dma_queue_state_t state)
{
	return state == SCI_DMAQUEUE_IDLE || state == SCI_DMAQUEUE_GATHER;
}

/* While the queue is POSTED its state may change at any time, else only by this program's calls. */
static void check_enqueued(struct state *s, sci_dma_queue_state_t before, unsigned flags,
			   sci_dma_queue_state_t after, sci_error_t e)
{
	bool full = s->n == s->max;

	if (e == SCI_ERR_ILLEGAL_OPERATION && takes_copies(before))
		wrong("SCIEnqueueDMATransfer", before, e, s);
	if (e == SCI_ERR_OK && (!takes_copies(before) || (full && !s->unknown)))
		wrong("SCIEnqueueDMATransfer", before, e, s);
	if (e == SCI_ERR_MAX_ENTRIES && !full && !s->unknown)
		wrong("SCIEnqueueDMATransfer", before, e, s);
	if (!(flags & SCI_FLAG_DMA_POST)) {
		if (e == SCI_ERR_OK && after != SCI_DMAQUEUE_GATHER)
			wrong("SCIEnqueueDMATransfer", after, e, s);
		s->n += e == SCI_ERR_OK;
		return;
	}
	if (e == SCI_ERR_OK &&
	    after != (flags & SCI_FLAG_DMA_RESET ? SCI_DMAQUEUE_IDLE : SCI_DMAQUEUE_DONE))
		wrong("SCIEnqueueDMATransfer", after, e, s);
	if (e == SCI_ERR_TRANSFER_FAILED && after != SCI_DMAQUEUE_ERROR)
		wrong("SCIEnqueueDMATransfer", after, e, s);
	if (after == SCI_DMAQUEUE_GATHER)
		s->unknown = true;
	else
		s->n = 0;
}

static void enqueue(struct state *s)
{
	uint32_t from = sim_pick_from(), to, size = 256u << sim_pick(4);
	unsigned flags = sim_pick(2) ? SCI_FLAG_DMA_READ : 0;
	sci_dma_queue_state_t before, after;
	bool read = flags;
	sci_error_t e;

	to = sim_pick_to();
	if (!s->queue || !s->p.own || !s->p.remote)
		return;
	if (size > SIM_PLACE_BYTES - to)
		size = 256;
	if (sim_pick(8) == 0)
		flags |= SCI_FLAG_DMA_POST | SCI_FLAG_DMA_WAIT |
			 (sim_pick(2) ? SCI_FLAG_DMA_RESET : 0);
	before = SCIDMAQueueState(s->queue);
	sim_call("SCIEnqueueDMATransfer", 0);
	after = SCIEnqueueDMATransfer(s->queue, s->p.own, s->p.remote, read ? to : from,
				      read ? from : to, size, flags, &e);
	sim_called(e, SCI_ERR_ILLEGAL_OPERATION, SCI_ERR_MAX_ENTRIES, SCI_ERR_SEGMENT_NOT_PREPARED,
		   SCI_ERR_SEGMENT_NOT_CONNECTED, SCI_ERR_NOT_CONNECTED,
		   flags & SCI_FLAG_DMA_WAIT ? SCI_ERR_TRANSFER_FAILED : SCI_ERR_OK, SCI_ERR_OK);
	check_enqueued(s, before, flags, after, e);
}

static sci_callback_action_t on_done(void *arg, sci_dma_queue_t queue, sci_error_t status)
{
	struct state *s = arg;

	if (status != SCI_ERR_OK && status != SCI_ERR_TRANSFER_FAILED)
		sim_fail("callbacks", "%s: a DMA queue's callback reports %s", sim_self()->name,
			 SCIGetErrorString(status));
	if (++s->called > s->posted || queue != s->queue)
		sim_fail("callbacks", "%s: %u callbacks for %u transfers", sim_self()->name,
			 s->called, s->posted);
	return SCI_CALLBACK_CONTINUE;
}

static void post(struct state *s)
{
	bool callback = sim_pick(3) == 0;
	sci_dma_queue_state_t before;
	sci_error_t e;

	if (!s->queue)
		return;
	before = SCIDMAQueueState(s->queue);
	s->posted += callback;
	SIM_CALL(SCIPostDMAQueue,
		 (s->queue, callback ? on_done : NULL, s, callback ? SCI_FLAG_USE_CALLBACK : 0, &e),
		 &e, SCI_ERR_ILLEGAL_OPERATION, SCI_ERR_SEGMENT_NOT_PREPARED,
		 SCI_ERR_SEGMENT_NOT_CONNECTED, SCI_ERR_NOT_CONNECTED);
	if ((e == SCI_ERR_OK) > (before == SCI_DMAQUEUE_GATHER) ||
	    (e == SCI_ERR_ILLEGAL_OPERATION && before == SCI_DMAQUEUE_GATHER))
		wrong("SCIPostDMAQueue", before, e, s);
	if (e == SCI_ERR_OK) {
		s->n = 0;
		s->unknown = false;
		return;
	}
	s->posted -= callback;
	if (before == SCI_DMAQUEUE_GATHER && SCIDMAQueueState(s->queue) != SCI_DMAQUEUE_GATHER)
		wrong("SCIPostDMAQueue", SCIDMAQueueState(s->queue), e, s);
}

static void wait_queue(struct state *s)
{
	sci_dma_queue_state_t before;
	sci_error_t e;

	if (!sim_wait_queue(s->queue, SCI_ERR_ILLEGAL_OPERATION, &before, &e))
		return;
	if (e == SCI_ERR_ILLEGAL_OPERATION && before != SCI_DMAQUEUE_GATHER &&
	    (before != SCI_DMAQUEUE_POSTED || s->posted == 0))
		wrong("SCIWaitForDMAQueue", before, e, s);
}

static void reset(struct state *s)
{
	sci_dma_queue_state_t before;
	sci_error_t e;

	if (!s->queue)
		return;
	before = SCIDMAQueueState(s->queue);
	SIM_CALL(SCIResetDMAQueue, (s->queue, 0, &e), &e, SCI_ERR_ILLEGAL_OPERATION);
	if (e == SCI_ERR_ILLEGAL_OPERATION && before != SCI_DMAQUEUE_POSTED)
		wrong("SCIResetDMAQueue", before, e, s);
	if (e != SCI_ERR_OK)
		return;
	if (SCIDMAQueueState(s->queue) != SCI_DMAQUEUE_IDLE)
		wrong("SCIResetDMAQueue", SCIDMAQueueState(s->queue), e, s);
	s->n = 0;
	s->unknown = false;
}

static void abort_queue(struct state *s)
{
	sci_dma_queue_state_t before, after;
	sci_error_t e;

	if (!s->queue)
		return;
	before = SCIDMAQueueState(s->queue);
	SIM_CALL(SCIAbortDMAQueue, (s->queue, 0, &e), &e);
	if (e != SCI_ERR_OK)
		return;
	after = SCIDMAQueueState(s->queue);
	if (after == SCI_DMAQUEUE_POSTED ||
	    (before == SCI_DMAQUEUE_GATHER && after != SCI_DMAQUEUE_ABORTED) ||
	    (before != SCI_DMAQUEUE_GATHER && before != SCI_DMAQUEUE_POSTED && after != before))
		wrong("SCIAbortDMAQueue", after, e, s);
	if (before == SCI_DMAQUEUE_GATHER) {
		s->n = 0;
		s->unknown = false;
	}
}

/*
 * Copies memory of the program to the segment or back, and waits. Then that memory may be used
 * again, or has what was read.
 */
static void with_memory(struct state *s)
{
	bool read = sim_pick(2);
	uint32_t at = read ? sim_pick_from() : sim_pick_to();
	sci_dma_queue_state_t before;
	sci_error_t e;

	if (!s->queue || !s->p.remote)
		return;
	before = SCIDMAQueueState(s->queue);
	memset(s->words, read ? 0x77 : 0, sizeof(s->words));
	if (!read)
		s->words[0] = s->p.mark | sim_node(sim_self()->host);
	SIM_CALL(SCIStartDmaTransferMem,
		 (s->queue, s->words, s->p.remote, sizeof(s->words), at, NULL, NULL,
		  SCI_FLAG_DMA_WAIT | (read ? SCI_FLAG_DMA_READ : 0), &e),
		 &e, SCI_ERR_ILLEGAL_OPERATION, SCI_ERR_SEGMENT_NOT_CONNECTED,
		 SCI_ERR_NOT_CONNECTED, SCI_ERR_TRANSFER_FAILED);
	if (e == SCI_ERR_OK && before == SCI_DMAQUEUE_GATHER)
		wrong("SCIStartDmaTransferMem", before, e, s);
	if (e == SCI_ERR_ILLEGAL_OPERATION && before != SCI_DMAQUEUE_GATHER &&
	    before != SCI_DMAQUEUE_POSTED)
		wrong("SCIStartDmaTransferMem", before, e, s);
	for (unsigned i = 0; read && e == SCI_ERR_OK && i < WORDS; i++)
		if (s->words[i] != 0 && s->words[i] != 0xffffffff &&
		    (s->words[i] & 0xf0000000) != s->p.mark)
			sim_fail("memory", "%s: DMA brought %#x", sim_self()->name, s->words[i]);
}

static void abort_first(void *state)
{
	abort_queue(state);
}

static void drop_queue(struct state *s)
{
	if (!s->queue)
		return;
	sim_remove_queue(&s->queue, abort_first, s);
	s->n = 0;
	s->unknown = false;
}

/* The segments of copies that are enqueued are busy, those of other copies are not. */
static void drop_remote(struct state *s)
{
	bool gathers = s->queue && SCIDMAQueueState(s->queue) == SCI_DMAQUEUE_GATHER;
	bool posted = s->queue && SCIDMAQueueState(s->queue) == SCI_DMAQUEUE_POSTED;

	if (!s->p.remote)
		return;
	sim_unmap_remote(&s->p);
	if (sim_disconnect_remote(&s->p)) {
		if (gathers && s->n > 0 && !s->unknown)
			sim_fail("states", "%s: a segment of %u copies is disconnected",
				 sim_self()->name, s->n);
		return;
	}
	if (!gathers && !posted)
		sim_fail("states", "%s: no copy needs the segment, and it is busy",
			 sim_self()->name);
	drop_queue(s);
	sim_must_disconnect_remote(&s->p, "the queue is gone");
}

static void drop_own(struct state *s)
{
	bool gathers = s->queue && SCIDMAQueueState(s->queue) == SCI_DMAQUEUE_GATHER;

	if (!s->p.own)
		return;
	sim_unmap_own(&s->p);
	if (gathers && s->n > 0 && !s->unknown && sim_remove_own(&s->p, false))
		sim_fail("states", "%s: a segment of %u copies is removed", sim_self()->name, s->n);
	drop_queue(s);
	sim_remove_own(&s->p, true);
}

static void act(void *state)
{
	static void (*const acts[])(struct state * s) = {
		enqueue, enqueue, enqueue,    enqueue,	  post,	       post,	    reset,
		reset,	 reset,	  wait_queue, wait_queue, abort_queue, with_memory, make_queue,
	};
	unsigned what = (unsigned)sim_pick(sizeof(acts) / sizeof(acts[0]) + 4);
	struct state *s = state;

	if (what < sizeof(acts) / sizeof(acts[0]))
		acts[what](s);
	else if (sim_pick(12) == 0)
		drop_own(s);
	else if (sim_pick(8) == 0)
		drop_remote(s);
	else if (sim_pick(2))
		sim_place_own(&s->p);
	else
		sim_place_remote(&s->p);
	sim_look_own(&s->p);
}

static void tear_down(void *state)
{
	drop_queue(state);
	drop_remote(state);
	drop_own(state);
}

static void gather_main(struct sim_proc *p)
{
	struct state s = {.p = {.first_id = 24, .ids = 3, .mark = 0xe0000000u}};
	static const struct sim_life life = {.acts = 200, .act = act, .tear_down = tear_down};

	sim_live_and_exit(p, &life, &s, &s.p.sd);
}

const struct sim_workload sim_work_gather = {.name = "gather", .weight = 2, .main = gather_main};
