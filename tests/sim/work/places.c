/* SPDX-License-Identifier: BSD-2-Clause */
/* The two places that programs copy between (work/places.h). */
#include "work/places.h"
#include "work/sequence.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define BYTES SIM_PLACE_BYTES
#define STRIDE 64 /* words from one marked word to the next */
#define ONES 0xffffffffu

void sim_place_own(struct sim_places *p)
{
	uint32_t word = p->mark | sim_node(sim_self()->host);
	sci_error_t e;

	if (p->own)
		return;
	SIM_CALL(SCICreateSegment,
		 (p->sd, &p->own, p->first_id + (unsigned)sim_pick(p->ids), BYTES, NULL, NULL, 0,
		  &e),
		 &e, SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		p->own = NULL;
		return;
	}
	p->own_map = NULL;
	SIM_CALL(SCIPrepareSegment, (p->own, 0, 0, &e), &e);
	if (e == SCI_ERR_OK) {
		sim_call("SCIMapLocalSegment", 0);
		p->at = SCIMapLocalSegment(p->own, &p->own_map, 0, BYTES, NULL, 0, &e);
		if (sim_called(e, SCI_ERR_OK) != SCI_ERR_OK)
			p->own_map = NULL;
	}
	if (!p->own_map)
		return;
	for (unsigned i = 0; i < BYTES / 8; i += STRIDE)
		sio_write32(p->at + i, word);
	SIM_CALL(SCISetSegmentAvailable, (p->own, 0, 0, &e), &e, SCI_ERR_SEGMENT_NOT_PREPARED);
}

void sim_place_remote(struct sim_places *p)
{
	unsigned host = sim_pick_host();
	sci_error_t e;

	if (p->remote)
		return;
	SIM_CALL(SCIConnectSegment,
		 (p->sd, &p->remote, sim_node(host), p->first_id + (unsigned)sim_pick(p->ids), 0,
		  NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &e),
		 &e, SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_CONNECTION_REFUSED);
	if (e != SCI_ERR_OK) {
		p->remote = NULL;
		return;
	}
	sim_call("SCIMapRemoteSegment", 0);
	p->remote_at = SCIMapRemoteSegment(p->remote, &p->remote_map, 0, BYTES, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) != SCI_ERR_OK)
		p->remote_map = NULL;
}

static void look(const struct sim_places *p, const volatile uint32_t *at, const char *whose)
{
	for (unsigned i = BYTES / 8; i < BYTES / 4; i += 8 * STRIDE) {
		uint32_t v = sio_read32(at + i);

		if (v != 0 && v != ONES && (v & 0xf0000000) != p->mark)
			sim_fail("memory", "%s: a copy left %#x in %s segment", sim_self()->name, v,
				 whose);
	}
}

void sim_look_own(const struct sim_places *p)
{
	if (p->own_map)
		look(p, p->at, "its own");
}

void sim_look_remote(const struct sim_places *p)
{
	if (p->remote_map)
		look(p, p->remote_at, "another's");
}

uint32_t sim_pick_from(void)
{
	return (uint32_t)sim_pick(BYTES / 512) * 256;
}

uint32_t sim_pick_to(void)
{
	return BYTES / 2 + sim_pick_from();
}

static bool unmap(const struct sim_places *p, sci_map_t *map)
{
	sci_error_t e;

	if (!*map)
		return true;
	SIM_CALL(SCIUnmapSegment, (*map, 0, &e), &e, p->maps_busy ? SCI_ERR_BUSY : SCI_ERR_OK);
	if (e == SCI_ERR_BUSY)
		return false;
	*map = NULL;
	return true;
}

bool sim_unmap_own(struct sim_places *p)
{
	sim_look_own(p);
	return unmap(p, &p->own_map);
}

bool sim_unmap_remote(struct sim_places *p)
{
	sim_look_remote(p);
	return unmap(p, &p->remote_map);
}

bool sim_remove_own(struct sim_places *p, bool force)
{
	sci_error_t e;

	if (!p->own)
		return true;
	SIM_END(SCIRemoveSegment, (p->own, force ? SCI_FLAG_FORCE_REMOVE : 0, &e), &e,
		force ? SCI_ERR_OK : SCI_ERR_BUSY);
	if (e == SCI_ERR_BUSY)
		return false;
	p->own = NULL;
	return true;
}

bool sim_disconnect_remote(struct sim_places *p)
{
	sci_error_t e;

	if (!p->remote)
		return true;
	SIM_END(SCIDisconnectSegment, (p->remote, 0, &e), &e, SCI_ERR_BUSY);
	if (e == SCI_ERR_BUSY)
		return false;
	p->remote = NULL;
	return true;
}

void sim_must_disconnect_remote(struct sim_places *p, const char *why)
{
	if (!sim_disconnect_remote(p))
		sim_fail("states", "%s: %s, and a segment is busy", sim_self()->name, why);
}

bool sim_place_by(struct sim_places *p, uint64_t what)
{
	if (what == 0)
		sim_place_own(p);
	else if (what <= 2)
		sim_place_remote(p);
	return what <= 2;
}

bool sim_wait_queue(sci_dma_queue_t queue, sci_error_t may, sci_dma_queue_state_t *ret_before,
		    sci_error_t *ret)
{
	unsigned timeout = (unsigned)sim_pick(20);
	sci_dma_queue_state_t state;

	if (!queue)
		return false;
	if (ret_before)
		*ret_before = SCIDMAQueueState(queue);
	sim_call("SCIWaitForDMAQueue", timeout + 1000);
	state = SCIWaitForDMAQueue(queue, timeout, 0, ret);
	sim_called(*ret, SCI_ERR_TIMEOUT, may, SCI_ERR_OK);
	if (*ret == SCI_ERR_OK && (state == SCI_DMAQUEUE_POSTED || state == SCI_DMAQUEUE_GATHER))
		sim_fail("states", "%s: a DMA queue that was waited for has state %d",
			 sim_self()->name, state);
	return true;
}

void sim_queue_judge(const char *call, sci_dma_queue_state_t before, sci_error_t e)
{
	if (before != SCI_DMAQUEUE_POSTED && e == SCI_ERR_ILLEGAL_OPERATION)
		sim_fail("states", "%s: %s is refused in state %d", sim_self()->name, call, before);
}

/* Is the segment that @map leads to still there? */
static bool is_there(sci_map_t map)
{
	sci_sequence_status_t status;
	sci_sequence_t sequence;
	sci_error_t e;

	sim_sleep(SIM_MS); /* by then the program has been notified of the segment's end */
	SIM_CALL(SCICreateMapSequence, (map, &sequence, 0, &e), &e, SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		return false;
	SIM_CALL(status = SCIStartSequence, (sequence, 0, &e), &e);
	SIM_CALL(SCIRemoveSequence, (sequence, 0, &e), &e);
	return status == SCI_SEQ_OK;
}

void sim_queue_aborted(sci_dma_queue_t queue, sci_dma_queue_state_t before, sci_map_t map)
{
	sci_dma_queue_state_t after = SCIDMAQueueState(queue);

	if (after == SCI_DMAQUEUE_POSTED)
		sim_fail("states", "%s: an aborted DMA queue is posted", sim_self()->name);
	if (before == SCI_DMAQUEUE_POSTED && after == SCI_DMAQUEUE_ERROR && map &&
	    sim_ways_hold() && !sim_has_fault("memory") && is_there(map))
		sim_fail("states", "%s: an aborted DMA queue has failed, and its way is fine",
			 sim_self()->name);
}

void sim_remove_queue(sci_dma_queue_t *queue, void (*abort)(void *state), void *state)
{
	sci_dma_queue_state_t before;
	sci_error_t e;

	if (!*queue)
		return;
	before = SCIDMAQueueState(*queue);
	SIM_CALL(SCIRemoveDMAQueue, (*queue, 0, &e), &e, SCI_ERR_ILLEGAL_OPERATION);
	sim_queue_judge("SCIRemoveDMAQueue", before, e);
	if (e == SCI_ERR_ILLEGAL_OPERATION) {
		abort(state);
		SIM_CALL(SCIRemoveDMAQueue, (*queue, 0, &e), &e);
	}
	*queue = NULL;
}

void sim_abort_queue(struct sim_places *p)
{
	sci_dma_queue_state_t before;
	sci_error_t e;

	if (!p->queue)
		return;
	before = SCIDMAQueueState(p->queue);
	SIM_CALL(SCIAbortDMAQueue, (p->queue, 0, &e), &e);
	if (e == SCI_ERR_OK)
		sim_queue_aborted(p->queue, before, p->remote_map);
}

static void abort_queue(void *places)
{
	sim_abort_queue(places);
}

void sim_drop_queue(struct sim_places *p)
{
	sim_remove_queue(&p->queue, abort_queue, p);
}

void sim_drop_remote(struct sim_places *p)
{
	sim_unmap_remote(p);
	if (sim_disconnect_remote(p))
		return;
	sim_drop_queue(p);
	sim_must_disconnect_remote(p, "the queue is gone");
}

void sim_drop_own(struct sim_places *p)
{
	if (!p->own)
		return;
	sim_unmap_own(p);
	sim_drop_queue(p);
	sim_remove_own(p, true);
}
