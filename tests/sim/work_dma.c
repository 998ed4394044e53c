/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that copy between segments by the adapters' DMA engines: transfers that are waited for,
 * polled, aborted, and left behind. What is copied are words that say which segment they come from;
 * nothing else may ever be seen where transfers write. The queue's states follow the sheet.
 */
#include "run.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "tables.h"

#define BYTES (64u << 10)
#define IDS 3 /* 20, 21, 22 */
#define ONES 0xffffffffu

struct state {
	sci_desc_t sd;
	sci_local_segment_t own;
	sci_map_t own_map;
	volatile uint32_t *at;
	sci_remote_segment_t remote;
	sci_map_t remote_map;
	volatile uint32_t *remote_at;
	sci_dma_queue_t queue;
	bool reading; /* the transfer under way brings the other's words */
};

/* First half: our own word everywhere. Second half: where others' transfers, and ours, write. */
static void make_own(struct state *s)
{
	uint32_t word = 0xd0000000u | sim_node(sim_self()->host);
	sci_error_t e;

	if (s->own)
		return;
	SIM_CALL(SCICreateSegment,
		 (s->sd, &s->own, 20 + (unsigned)sim_pick(IDS), BYTES, NULL, NULL, 0, &e), &e,
		 SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		s->own = NULL;
		return;
	}
	s->own_map = NULL;
	SIM_CALL(SCIPrepareSegment, (s->own, 0, 0, &e), &e);
	if (e == SCI_ERR_OK) {
		sim_call("SCIMapLocalSegment", 0);
		s->at = SCIMapLocalSegment(s->own, &s->own_map, 0, BYTES, NULL, 0, &e);
		if (sim_called(e, SCI_ERR_OK) != SCI_ERR_OK)
			s->own_map = NULL;
	}
	if (!s->own_map)
		return;
	for (unsigned i = 0; i < BYTES / 8; i += 64)
		sio_write32(s->at + i, word);
	SIM_CALL(SCISetSegmentAvailable, (s->own, 0, 0, &e), &e, SCI_ERR_SEGMENT_NOT_PREPARED);
}

static void look(const struct state *s, volatile uint32_t *at, const char *whose)
{
	for (unsigned i = BYTES / 8; i < BYTES / 4; i += 512) {
		uint32_t v = sio_read32(at + i);

		if (v != 0 && v != ONES && v >> 28 != 0xd)
			sim_fail("memory", "%s: DMA left %#x in %s segment", sim_self()->name, v,
				 whose);
	}
	(void)s;
}

static void make_remote(struct state *s)
{
	unsigned host = sim_pick_host();
	sci_error_t e;

	if (s->remote)
		return;
	SIM_CALL(SCIConnectSegment,
		 (s->sd, &s->remote, sim_node(host), 20 + (unsigned)sim_pick(IDS), 0, NULL, NULL,
		  SCI_INFINITE_TIMEOUT, 0, &e),
		 &e, SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_CONNECTION_REFUSED);
	if (e != SCI_ERR_OK) {
		s->remote = NULL;
		return;
	}
	sim_call("SCIMapRemoteSegment", 0);
	s->remote_at = SCIMapRemoteSegment(s->remote, &s->remote_map, 0, BYTES, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) != SCI_ERR_OK)
		s->remote_map = NULL;
}

static void make_queue(struct state *s)
{
	sci_error_t e;

	if (s->queue)
		return;
	SIM_CALL(SCICreateDMAQueue, (s->sd, &s->queue, 0, 1, 0, &e), &e, SCI_ERR_DMA_NOT_AVAILABLE);
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

	if (!s->queue || !s->own || !s->remote)
		return;
	for (unsigned i = 0; i < n; i++) {
		uint32_t from = (uint32_t)sim_pick(BYTES / 512) * 256;
		uint32_t to = BYTES / 2 + (uint32_t)sim_pick(BYTES / 512) * 256;

		/* Whole strides of words, so that what arrives is words and zeros. */
		vec[i] = (dis_dma_vec_t){.size = 256,
					 .local_offset = flags ? to : from,
					 .remote_offset = flags ? from : to};
	}
	before = SCIDMAQueueState(s->queue);
	SIM_CALL(SCIStartDmaTransferVec,
		 (s->queue, s->own, s->remote, n, vec, NULL, NULL, flags, &e), &e,
		 SCI_ERR_ILLEGAL_OPERATION, SCI_ERR_SEGMENT_NOT_PREPARED,
		 SCI_ERR_SEGMENT_NOT_CONNECTED, SCI_ERR_NOT_CONNECTED);
	if (before == SCI_DMAQUEUE_POSTED && e == SCI_ERR_OK &&
	    SCIDMAQueueState(s->queue) == SCI_DMAQUEUE_IDLE)
		sim_fail("states", "%s: a started DMA queue is idle", sim_self()->name);
	s->reading = flags;
}

static void wait_queue(struct state *s)
{
	unsigned timeout = (unsigned)sim_pick(20);
	sci_dma_queue_state_t state;
	sci_error_t e;

	if (!s->queue)
		return;
	sim_call("SCIWaitForDMAQueue", timeout + 1000);
	state = SCIWaitForDMAQueue(s->queue, timeout, 0, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_OK);
	if (e == SCI_ERR_OK && (state == SCI_DMAQUEUE_POSTED || state == SCI_DMAQUEUE_GATHER))
		sim_fail("states", "%s: a DMA queue that was waited for has state %d",
			 sim_self()->name, state);
}

static void abort_queue(struct state *s)
{
	sci_error_t e;

	if (!s->queue)
		return;
	SIM_CALL(SCIAbortDMAQueue, (s->queue, 0, &e), &e);
	if (e == SCI_ERR_OK && SCIDMAQueueState(s->queue) == SCI_DMAQUEUE_POSTED)
		sim_fail("states", "%s: an aborted DMA queue is posted", sim_self()->name);
}

static void drop_queue(struct state *s)
{
	sci_error_t e;

	if (!s->queue)
		return;
	SIM_CALL(SCIRemoveDMAQueue, (s->queue, 0, &e), &e, SCI_ERR_ILLEGAL_OPERATION);
	if (e == SCI_ERR_ILLEGAL_OPERATION) {
		abort_queue(s);
		SIM_CALL(SCIRemoveDMAQueue, (s->queue, 0, &e), &e);
	}
	s->queue = NULL;
}

static void drop_remote(struct state *s)
{
	sci_error_t e;

	if (!s->remote)
		return;
	if (s->remote_map) {
		look(s, s->remote_at, "another's");
		SIM_CALL(SCIUnmapSegment, (s->remote_map, 0, &e), &e);
	}
	s->remote_map = NULL;
	SIM_CALL(SCIDisconnectSegment, (s->remote, 0, &e), &e, SCI_ERR_BUSY);
	if (e == SCI_ERR_BUSY) {
		drop_queue(s);
		SIM_CALL(SCIDisconnectSegment, (s->remote, 0, &e), &e);
	}
	s->remote = NULL;
}

static void drop_own(struct state *s)
{
	sci_error_t e;

	if (!s->own)
		return;
	if (s->own_map) {
		look(s, s->at, "its own");
		SIM_CALL(SCIUnmapSegment, (s->own_map, 0, &e), &e);
	}
	s->own_map = NULL;
	drop_queue(s);
	SIM_CALL(SCIRemoveSegment, (s->own, SCI_FLAG_FORCE_REMOVE, &e), &e);
	s->own = NULL;
}

static void act(struct state *s)
{
	switch (sim_pick(16)) {
	case 0:
		make_own(s);
		break;
	case 1:
	case 2:
		make_remote(s);
		break;
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
		if (s->own_map)
			look(s, s->at, "its own");
		wait_queue(s);
		break;
	default:
		transfer(s);
	}
}

static void dma_main(struct sim_proc *p)
{
	struct state s = {0};
	uint64_t acts = 10 + sim_pick(200);
	sci_error_t e;

	SIM_CALL(SCIInitialize, (0, &e), &e, SCI_ERR_NOT_INITIALIZED);
	if (e != SCI_ERR_OK)
		return;
	SIM_CALL(SCIOpen, (&s.sd, 0, &e), &e);
	if (e != SCI_ERR_OK)
		goto terminate;
	for (; acts > 0 && !sim_stopping_programs(); acts--) {
		act(&s);
		sim_sleep(sim_pick(4) ? sim_pick(100000) : sim_pick(100 * SIM_MS));
	}
	if (sim_pick(4) == 0)
		goto terminate;
	drop_queue(&s);
	drop_remote(&s);
	drop_own(&s);
	SIM_CALL(SCIClose, (s.sd, 0, &e), &e);
terminate:
	if (sim_pick(8) == 0)
		return;
	sim_call("SCITerminate", 0);
	SCITerminate();
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	p->result = 0;
}

const struct sim_workload sim_work_dma = {.name = "dma", .weight = 2, .main = dma_main};
