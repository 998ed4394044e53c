/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that borrow drives, exclusively or together with others, create device segments and
 * connect to them, map BARs, map memory for the drive, and, where a borrow is exclusive, reset it.
 * The drives are not used: the controller is never enabled. Commands are the workload "nvme".
 */
#include <string.h>

#include "work/life.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "run/listener.h"

#define SEGMENTS 3
#define IDS 3
#define PAGE 4096u
#define NVME_VS 8     /* register: version */
#define NVME_AQA 0x24 /* register: depths of the admin queues, unused while it is disabled */
#define MINE 0x00070007u
#define LOSS_TOLD (100 * SIM_MS)

struct segment {
	sci_remote_segment_t segment;
	sci_map_t map;
	volatile uint32_t *at;
	bool mapped; /* for the device */
	bool bar;
};

struct state {
	sci_desc_t sd;
	sci_smartio_device_t device;
	uint32_t fdid;
	bool exclusive;
	bool alone;	   /* exclusive from the beginning */
	bool wrote;	   /* MINE into NVME_AQA */
	uint64_t borrowed; /* when */
	bool lost;	   /* it was notified of that */
	struct segment segment[SEGMENTS];
	unsigned placed[IDS + 1]; /* flags of private segments: where they may lie */
	sci_local_segment_t own;
	bool own_mapped;
};

static void borrow(struct state *s)
{
	uint64_t since;
	sci_error_t e;

	if (s->device)
		return;
	since = sim_now();
	s->fdid = sim_pick_drive(NULL, NULL)->fdid;
	s->exclusive = sim_pick(3) == 0;
	SIM_CALL(SCIBorrowDevice,
		 (s->sd, &s->device, s->fdid, s->exclusive ? SCI_FLAG_EXCLUSIVE : 0, &e), &e,
		 SCI_ERR_NOT_AVAILABLE, SCI_ERR_NOT_CONNECTED, SCI_ERR_NO_SUCH_FDID);
	if (e != SCI_ERR_OK) {
		s->device = NULL;
		return;
	}
	memset(s->placed, 0, sizeof(s->placed));
	s->borrowed = sim_now();
	s->lost = false;
	s->alone = s->exclusive;
	/* The lender does not reset the physical function of others between two borrowers. */
	s->wrote = sio_topology_device(sim_cluster->topology, s->fdid, NULL)->virtual_functions;
	sim_note_borrowed(s->fdid, s->exclusive, since);
}

/* A private segment that was to lie on the program's host, or on the device's, lies there. */
static void check_place(const struct state *s, unsigned id, unsigned node)
{
	if ((s->placed[id] == SCI_FLAG_LOCAL_ONLY && node != sim_node(sim_self()->host)) ||
	    (s->placed[id] == SCI_FLAG_DEVICE_SIDE_ONLY && node != sio_topology_fdid_node(s->fdid)))
		sim_fail("states", "%s: device segment %u of flags %#x lies at node %u",
			 sim_self()->name, id, s->placed[id], node);
}

static void connect_segment(struct state *s)
{
	struct segment *g = &s->segment[sim_pick(SEGMENTS)];
	unsigned type = 1u << sim_pick(3), id;
	sci_error_t e;

	if (!s->device || g->segment)
		return;
	id = type == SCI_MEMTYPE_BAR ? 0 : 1 + (unsigned)sim_pick(IDS);
	g->bar = type == SCI_MEMTYPE_BAR;
	SIM_CALL(SCIConnectDeviceSegment, (s->device, &g->segment, id, type, NULL, NULL, 0, &e), &e,
		 SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		g->segment = NULL;
	else if (type == SCI_MEMTYPE_PRIVATE)
		check_place(s, id, SCIGetRemoteSegmentNodeId(g->segment));
	g->map = NULL;
	g->mapped = false;
}

static void make_segment(struct state *s)
{
	unsigned type = sim_pick(2) ? SCI_MEMTYPE_PRIVATE : SCI_MEMTYPE_SHARED;
	static const unsigned places[] = {0, SCI_FLAG_LOCAL_ONLY, SCI_FLAG_DEVICE_SIDE_ONLY};
	unsigned hints = (unsigned)sim_pick(16), id = 1 + (unsigned)sim_pick(IDS);
	unsigned flags = places[sim_pick(3)];
	sci_error_t e;

	if (!s->device)
		return;
	SIM_CALL(SCICreateDeviceSegment, (s->device, id, PAGE, type, hints, flags, &e), &e,
		 SCI_ERR_SEGMENTID_USED, SCI_ERR_NOT_CONNECTED);
	/* A request that failed may have made the segment: then its place is not known. */
	if (type == SCI_MEMTYPE_PRIVATE && e != SCI_ERR_SEGMENTID_USED)
		s->placed[id] = e == SCI_ERR_OK ? flags : 0;
}

/* Only an exclusive borrow maps registers writable. */
static void map_segment(struct state *s)
{
	struct segment *g = &s->segment[sim_pick(SEGMENTS)];
	unsigned flags = g->bar && !s->exclusive ? SCI_FLAG_READONLY_MAP : 0;
	sci_error_t e;

	if (!g->segment || g->map)
		return;
	sim_call("SCIMapRemoteSegment", 0);
	g->at = SCIMapRemoteSegment(g->segment, &g->map, 0, PAGE, NULL, flags, &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) != SCI_ERR_OK)
		g->map = NULL;
}

/* An exclusive borrower finds the registers as after a reset, until it changes them. */
static void look_at_registers(struct state *s, const struct segment *g)
{
	uint32_t v = sio_read32(g->at + NVME_AQA / 4);

	if (!s->wrote && v != 0 && v != 0xffffffffu)
		sim_fail("reset",
			 "%s has device %#x exclusively, and finds a register that it did not "
			 "write: %#x",
			 sim_self()->name, s->fdid, v);
	if (!smartio_holds_registers(s->device))
		return;
	sio_write32(g->at + NVME_AQA / 4, MINE);
	s->wrote = true;
}

static void look(struct state *s)
{
	struct segment *g = &s->segment[sim_pick(SEGMENTS)];
	uint32_t v;

	if (!g->map)
		return;
	v = sio_read32(g->at + (g->bar ? NVME_VS / 4 : 0));
	if (g->bar && v >> 16 != 1 && v != 0xffffffffu)
		sim_fail("memory", "%s: version register of device %#x is %#x", sim_self()->name,
			 s->fdid, v);
	if (!g->bar)
		sio_write32(g->at, 0xc0000000u | s->fdid);
	else if (s->alone && s->exclusive)
		look_at_registers(s, g);
}

static void map_for_device(struct state *s)
{
	struct segment *g = &s->segment[sim_pick(SEGMENTS)];
	sci_ioaddr_t address;
	sci_error_t e;

	if (!s->device || !g->segment || g->bar || g->mapped)
		return;
	SIM_CALL(SCIMapRemoteSegmentForDevice, (g->segment, s->device, &address, 0, PAGE, 0, &e),
		 &e, SCI_ERR_NOT_CONNECTED);
	g->mapped = e == SCI_ERR_OK;
}

static void own_for_device(struct state *s)
{
	sci_ioaddr_t address;
	sci_error_t e;

	if (!s->device || s->own)
		return;
	SIM_CALL(SCICreateSegment, (s->sd, &s->own, 100, PAGE, NULL, NULL, SCI_FLAG_AUTO_ID, &e),
		 &e, SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		s->own = NULL;
		return;
	}
	s->own_mapped = false;
	SIM_CALL(SCIPrepareSegment, (s->own, 0, 0, &e), &e);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (s->own, 0, 0, &e), &e);
	if (e != SCI_ERR_OK)
		return;
	SIM_CALL(SCIMapLocalSegmentForDevice, (s->own, 0, s->device, &address, 0, PAGE, 0, &e), &e,
		 SCI_ERR_NOT_CONNECTED);
	s->own_mapped = e == SCI_ERR_OK;
}

static void drop_own(struct state *s)
{
	sci_error_t e;

	if (!s->own)
		return;
	/* Otherwise the removal unmaps it. */
	if (s->own_mapped && sim_pick(2)) {
		SIM_END(SCIUnmapLocalSegmentForDevice, (s->own, 0, s->device, 0, &e), &e,
			SCI_ERR_BUSY);
		s->own_mapped = e != SCI_ERR_OK;
	}
	do {
		SIM_END(SCIRemoveSegment, (s->own, SCI_FLAG_FORCE_REMOVE, &e), &e, SCI_ERR_BUSY);
	} while (sim_later(e));
	s->own = NULL;
}

static void drop_segment(struct state *s, struct segment *g)
{
	sci_error_t e;

	if (!g->segment)
		return;
	if (g->map)
		SIM_CALL(SCIUnmapSegment, (g->map, 0, &e), &e);
	g->map = NULL;
	/* Tried again until the lender answers. */
	while (g->mapped) {
		SIM_END(SCIUnmapRemoteSegmentForDevice, (g->segment, s->device, 0, &e), &e,
			SCI_ERR_BUSY);
		g->mapped = sim_later(e);
	}
	SIM_END(SCIDisconnectSegment, (g->segment, 0, &e), &e);
	g->segment = NULL;
}

static void give_back(void *state)
{
	struct state *s = state;
	sci_error_t e;

	if (!s->device)
		return;
	drop_own(s);
	for (unsigned i = 0; i < SEGMENTS; i++)
		drop_segment(s, &s->segment[i]);
	sim_note_returned(s->fdid);
	do {
		SIM_END(SCIReturnDevice, (s->device, 0, &e), &e);
	} while (sim_later(e));
	s->device = NULL;
}

static void reset(struct state *s)
{
	sci_error_t e;

	if (!s->device || !s->exclusive)
		return;
	if (sim_pick(2)) {
		SIM_CALL(smartio_device_reset, (s->device, &e), &e, SCI_ERR_NOT_CONNECTED,
			 SCI_ERR_ACCESS, SCI_ERR_TIMEOUT);
		return;
	}
	sim_note_shares(s->fdid);
	/* ILLEGAL_OPERATION: an earlier release was carried out, but answered too late. */
	SIM_CALL(SCIReleaseExclusiveBorrow, (s->device, 0, &e), &e, SCI_ERR_NOT_CONNECTED,
		 SCI_ERR_ILLEGAL_OPERATION);
	s->exclusive = e != SCI_ERR_OK && e != SCI_ERR_ILLEGAL_OPERATION;
}

/*
 * A borrower is notified when its drive is pulled out, unless a fault may have kept the lender's
 * daemon or the program from being notified.
 */
static void check_loss(const struct state *s)
{
	const struct sim_proc *p = sim_self();
	uint64_t pulled = sim_drive_pulled(s->fdid);
	unsigned lender = sim_host_of(sio_topology_fdid_node(s->fdid));

	if (s->lost || pulled <= s->borrowed || pulled + LOSS_TOLD > sim_now() ||
	    p->stopped_last + LOSS_TOLD > sim_now() || sim_has_fault("memory") || sim_outliving ||
	    !sim_host_alive(lender) ||
	    (lender != p->host && (sim_has_fault("delay") || !sim_peer_settled(p->host, lender))))
		return;
	sim_fail("states", "%s: device %#x was pulled out, and its borrower was not told", p->name,
		 s->fdid);
}

static void wait_event(struct state *s)
{
	unsigned timeout = (unsigned)sim_pick(10);
	struct smartio_device_event event;
	sci_error_t e;

	if (!s->device)
		return;
	sim_call("smartio_wait_device_event", timeout + 1000);
	smartio_wait_device_event(s->device, &event, timeout, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_OK);
	s->lost |= e == SCI_ERR_OK && event.kind == SMARTIO_DEVICE_LOST;
	if (e == SCI_ERR_TIMEOUT)
		check_loss(s);
}

static void act(void *state)
{
	struct state *s = state;

	switch (sim_pick(16)) {
	case 0:
	case 1:
		borrow(s);
		break;
	case 2:
		if (sim_pick(3) == 0)
			give_back(s);
		break;
	case 3:
		make_segment(s);
		break;
	case 4:
	case 5:
	case 6:
		connect_segment(s);
		break;
	case 7:
	case 8:
		map_segment(s);
		break;
	case 9:
		map_for_device(s);
		break;
	case 10:
		if (sim_pick(2))
			own_for_device(s);
		else
			drop_own(s);
		break;
	case 11:
		drop_segment(s, &s->segment[sim_pick(SEGMENTS)]);
		break;
	case 12:
		reset(s);
		break;
	case 13:
		wait_event(s);
		break;
	default:
		look(s);
	}
}

static void device_main(struct sim_proc *p)
{
	struct state s = {0};
	static const struct sim_life life = {.acts = 200, .act = act, .tear_down = give_back};

	if (!sim_live(&life, &s, &s.sd))
		return;
	if (s.device)
		sim_note_returned(s.fdid);
	sim_exit(p);
}

const struct sim_workload sim_work_device = {
	.name = "device", .weight = 2, .fits = sim_has_drives, .main = device_main};
