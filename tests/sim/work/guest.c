/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of a malicious host (fault/liar.c, fault/liar_answer.c): they connect to its segments and
 * map them, store and copy there, trigger its interrupts, borrow its devices and map memory for
 * them, map its memory for devices of others. The malicious host decides the result: any error, any
 * contents. But each call ends in time; calls that need no message of that host give the usual
 * results; memory that is shared with nobody keeps its contents; and when the program has ended,
 * nothing of it is left except what the malicious host refers to, which ends with that host.
 *
 * On the malicious host itself the workload has these segments and interrupts (work/bait.c).
 */
#include "work/bait.h"
#include "work/guest.h"
#include "work/life.h"
#include "smartio/io.h"
#include "run/run.h"
#include "run/listener.h"

#define WORDS 8

sci_error_t guest_judge(sci_error_t e)
{
	if (SCIGetErrorString(e) == SCIGetErrorString((sci_error_t)~0u))
		sim_fail("states", "%s: %s gives %#x, which is no error", sim_self()->name,
			 sim_coro_current()->call, (unsigned)e);
	return sim_called(e, e, SCI_ERR_OK);
}

struct guest_seen *guest_pick_seen(struct guest *s)
{
	return &s->seen[sim_pick(GUEST_SEEN)];
}

struct guest_place *guest_pick_place(struct guest *s)
{
	return &s->place[sim_pick(GUEST_PLACES)];
}

/* ---- segments ---- */
static void connect_segment(struct guest *s)
{
	struct guest_seen *v = guest_pick_seen(s);
	unsigned id = BAIT_FIRST_ID + (unsigned)sim_pick(BAIT_IDS);
	sci_error_t e;

	if (v->segment)
		return;
	*v = (struct guest_seen){.map = NULL};
	GUEST_ASK(SCIConnectSegment,
		  (s->sd, &v->segment, sim_node(sim_liar()), id, sim_pick_adapter(sim_liar()), NULL,
		   NULL, SCI_INFINITE_TIMEOUT, 0, &e),
		  &e);
	if (e != SCI_ERR_OK)
		v->segment = NULL;
}

static void unmap(struct guest_seen *v)
{
	sci_error_t e;

	if (!v->map)
		return;
	SIM_CALL(SCIUnmapSegment, (v->map, 0, &e), &e, SCI_ERR_BUSY);
	if (e != SCI_ERR_BUSY)
		v->map = NULL;
}

static void unmap_for_device(struct guest_seen *v)
{
	sci_error_t e;

	if (!v->mapped_for)
		return;
	GUEST_END(SCIUnmapRemoteSegmentForDevice, (v->segment, v->mapped_for, 0, &e), &e);
	if (e == SCI_ERR_OK)
		v->mapped_for = NULL;
}

/* Refused as busy as long as the segment is mapped or a transfer uses it. */
void guest_disconnect(struct guest_seen *v)
{
	sci_error_t e;

	if (!v->segment)
		return;
	unmap(v);
	unmap_for_device(v);
	SIM_END(SCIDisconnectSegment, (v->segment, 0, &e), &e, SCI_ERR_BUSY);
	if (e != SCI_ERR_BUSY)
		v->segment = NULL;
}

/*
 * The workload "device" writes the device's id into its device segments: a segment that the liar
 * says is of its own device must not have another device's.
 */
static void check_device(const struct guest_seen *v)
{
	uint32_t word;

	if (!v->of_device || v->offset)
		return;
	word = sio_read32(v->at);
	if (word >> 16 == 0xc000 && sim_host_of((word & 0xffff) >> 8) != sim_liar())
		sim_fail("exclusive", "%s: a segment of the liar's device is one of device %#x",
			 sim_self()->name, word & 0xffff);
}

void guest_map(struct guest_seen *v, size_t offset, size_t bytes)
{
	unsigned flags = v->bar && sim_pick(2) ? SCI_FLAG_READONLY_MAP : 0;
	sci_error_t e;

	v->offset = offset;
	v->bytes = bytes;
	sim_call("SCIMapRemoteSegment", 0);
	v->at = SCIMapRemoteSegment(v->segment, &v->map, offset, bytes, NULL, flags, &e);
	if (guest_judge(e) != SCI_ERR_OK)
		v->map = NULL;
	if (e == SCI_ERR_NOT_CONNECTED)
		guest_disconnect(v);
}

/* Maps a page, or as many bytes as the whole segment has, sometimes not from its beginning. */
static void map(struct guest *s)
{
	struct guest_seen *v = guest_pick_seen(s);
	size_t offset = sim_pick(4) ? 0 : sim_pick(16) * GUEST_PAGE;

	if (v->segment && !v->map)
		guest_map(v, offset,
			  sim_pick(4) ? GUEST_PAGE : SCIGetRemoteSegmentSize(v->segment));
}

static void use(struct guest *s)
{
	struct guest_seen *v = guest_pick_seen(s);
	uint32_t word[WORDS] = {0};
	size_t at;
	sci_error_t e;

	if (!v->map || v->bytes < sizeof(word))
		return;
	check_device(v);
	at = sim_pick(v->bytes / sizeof(word)) * sizeof(word);
	if (v->bar || sim_pick(3) == 0)
		(void)sio_read32(v->at + at / 4);
	else if (sim_pick(2))
		sio_write32(v->at + at / 4, (uint32_t)sim_pick(0));
	else
		GUEST_ASK(SCIMemCpy, (NULL, word, v->map, at, sizeof(word), 0, &e), &e);
}

static void map_for_device(struct guest *s)
{
	struct guest_seen *v = guest_pick_seen(s);
	struct guest_place *p = guest_pick_place(s);
	sci_ioaddr_t at;
	sci_error_t e;

	if (!v->segment || v->bar || v->mapped_for || !p->device)
		return;
	GUEST_ASK(SCIMapRemoteSegmentForDevice, (v->segment, p->device, &at, 0, GUEST_PAGE, 0, &e),
		  &e);
	if (e == SCI_ERR_OK)
		v->mapped_for = p->device;
}

/* ---- interrupts ---- */
static void plain(struct guest *s)
{
	unsigned number = 1 + (unsigned)sim_pick(BAIT_NUMBERS);
	sci_error_t e;

	if (!s->plain) {
		GUEST_ASK(SCIConnectInterrupt,
			  (s->sd, &s->plain, sim_node(sim_liar()), sim_pick_adapter(sim_liar()),
			   number, 0, 0, &e),
			  &e);
		if (e != SCI_ERR_OK)
			s->plain = NULL;
		return;
	}
	SIM_CALL(SCITriggerInterrupt, (s->plain, 0, &e), &e, SCI_ERR_NOT_CONNECTED);
	if (e == SCI_ERR_OK && sim_pick(8))
		return;
	SIM_CALL(SCIDisconnectInterrupt, (s->plain, 0, &e), &e);
	s->plain = NULL;
}

static void data(struct guest *s)
{
	unsigned number = 1 + (unsigned)sim_pick(BAIT_NUMBERS), length;
	uint8_t message[200] = {0};
	sci_error_t e;

	if (!s->data) {
		GUEST_ASK(SCIConnectDataInterrupt,
			  (s->sd, &s->data, sim_node(sim_liar()), sim_pick_adapter(sim_liar()),
			   number, 0, 0, &e),
			  &e);
		if (e != SCI_ERR_OK)
			s->data = NULL;
		return;
	}
	length = 1 + (unsigned)sim_pick(sizeof(message));
	/* The ring's reader is malicious, and may make it look full at any time. */
	SIM_CALL(SCITriggerDataInterrupt, (s->data, message, length, 0, &e), &e,
		 SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_NOT_CONNECTED && sim_pick(8))
		return;
	SIM_CALL(SCIDisconnectDataInterrupt, (s->data, 0, &e), &e);
	s->data = NULL;
}

/* ---- transfers ---- */
static void transfer(struct guest *s)
{
	struct guest_seen *v = guest_pick_seen(s);
	dis_dma_vec_t vec = {.size = GUEST_PAGE};
	sci_error_t e;

	if (!v->segment || v->bar)
		return;
	guest_make_own(s);
	if (!s->queue) {
		SIM_CALL(SCICreateDMAQueue, (s->sd, &s->queue, 0, 1, 0, &e), &e,
			 SCI_ERR_DMA_NOT_AVAILABLE);
		if (e != SCI_ERR_OK)
			s->queue = NULL;
	}
	if (!s->queue || !s->own)
		return;
	GUEST_ASK(SCIStartDmaTransferVec,
		  (s->queue, s->own, v->segment, 1, &vec, NULL, NULL,
		   sim_pick(2) ? SCI_FLAG_DMA_READ : 0, &e),
		  &e);
	sim_call("SCIWaitForDMAQueue", 1020);
	SCIWaitForDMAQueue(s->queue, (unsigned)sim_pick(20), 0, &e);
	guest_judge(e);
}

static void drop_queue(struct guest *s)
{
	sci_error_t e;

	if (!s->queue)
		return;
	SIM_CALL(SCIAbortDMAQueue, (s->queue, 0, &e), &e);
	SIM_CALL(SCIRemoveDMAQueue, (s->queue, 0, &e), &e);
	s->queue = NULL;
}

/* ---- the program ---- */
static void act(void *state)
{
	static void (*const acts[])(struct guest * s) = {
		connect_segment,
		connect_segment,
		map,
		map,
		map,
		use,
		use,
		use,
		plain,
		data,
		guest_borrow,
		guest_borrow,
		guest_device_segment,
		guest_device_segment,
		guest_own_for_device,
		map_for_device,
		guest_tie,
		guest_hear,
		transfer,
	};
	struct guest *s = state;

	if (!s->canary.sd)
		sim_canary_put(&s->canary);
	sim_canary_look(&s->canary, "memory");
	switch (sim_pick(24)) {
	case 0:
		guest_disconnect(guest_pick_seen(s));
		break;
	case 1:
		unmap(guest_pick_seen(s));
		break;
	case 2:
		if (sim_pick(3) == 0)
			guest_give_back(s, guest_pick_place(s));
		break;
	case 3:
		if (sim_pick(4) == 0)
			drop_queue(s);
		break;
	default:
		acts[sim_pick(sizeof(acts) / sizeof(acts[0]))](s);
	}
}

static void tear_down(void *state)
{
	struct guest *s = state;
	sci_error_t e;

	sim_canary_look(&s->canary, "memory");
	drop_queue(s);
	for (unsigned i = 0; i < GUEST_SEEN; i++)
		guest_disconnect(&s->seen[i]);
	for (unsigned i = 0; i < GUEST_PLACES; i++)
		guest_give_back(s, &s->place[i]);
	if (s->plain)
		SIM_CALL(SCIDisconnectInterrupt, (s->plain, 0, &e), &e);
	if (s->data)
		SIM_CALL(SCIDisconnectDataInterrupt, (s->data, 0, &e), &e);
	if (s->own)
		GUEST_END(SCIRemoveSegment, (s->own, SCI_FLAG_FORCE_REMOVE, &e), &e);
}

static void guest_main(struct sim_proc *p)
{
	struct guest s = {.plain = NULL};
	static const struct sim_life life = {
		.acts = 300, .act = act, .tear_down = tear_down, .close_may = SCI_ERR_BUSY};

	if (p->host == sim_liar()) {
		bait_main(p);
		return;
	}
	if (!sim_live(&life, &s, &s.sd))
		return;
	if (s.place[1].device)
		sim_note_returned(s.place[1].fdid);
	sim_exit(p);
}

static bool seen(unsigned hosts)
{
	return sim_has_fault("liar") && !sim_outliving && hosts > 2;
}

const struct sim_workload sim_work_guest = {
	.name = "guest", .weight = 4, .seen = seen, .main = guest_main};
