/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that borrow a memory device exclusively and drive its engine: data go from their own
 * memory to another device, which is a memory device or the controller memory buffer of a drive,
 * and from there back. The engine's read does not pass its own writes, so what comes back is what
 * was sent, unless the other device was lost meanwhile.
 */
#include "fabric/fabric.h"
#include "work/life.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/memdev.h"
#include "run/listener.h"
#include "work/drives.h"

#define PAGE 4096u
#define RAM_BAR 2u /* of a memory device; and the controller memory buffer of a drive */
#define ENTRIES 8u
#define OUT_AT PAGE /* the program's memory: ring, data to be sent, data that came back */
#define BACK_AT (2 * PAGE)
#define BYTES (3 * PAGE)
#define DONE_AT (PAGE - (uint32_t)sizeof(struct sio_memdev_completion))
#define PATIENCE (200 * SIM_MS)
#define PLACES 32u /* pages of a target; each program has one */
#define GROUPS 6u  /* the others are the stranger's (fault/stranger_group.c) */

struct device {
	const struct sio_topo_device *topo;
	unsigned host, boots;
	uint64_t since; /* when it was requested */
	sci_smartio_device_t device;
	sci_remote_segment_t bar, ram;
	sci_map_t map; /* of its registers, and its doorbell */
	volatile uint8_t *regs;
};

struct carrier {
	sci_desc_t sd;
	struct device engine, target;
	sci_local_segment_t memory;
	sci_map_t map;
	volatile uint8_t *at;
	sci_ioaddr_t own, there; /* for the engine; 0: it is not mapped */
	uint32_t n, place;	 /* entries so far; the program's page of the target */
	unsigned group;		 /* if @joined: the one that this page is a member of */
	bool runs, joined;
};

/* ---- which devices ---- */

static bool is_target(const struct sio_topo_device *d)
{
	return !sim_is_drive(d) || d->cmb;
}

/* ---- borrowing ---- */

static void drop_device(struct device *d)
{
	sci_error_t e;

	if (d->map)
		SIM_END(SCIUnmapSegment, (d->map, 0, &e), &e);
	if (d->ram)
		SIM_END(SCIDisconnectSegment, (d->ram, 0, &e), &e);
	if (d->bar)
		SIM_END(SCIDisconnectSegment, (d->bar, 0, &e), &e);
	if (d->device) {
		sim_note_returned(d->topo->fdid);
		do {
			SIM_END(SCIReturnDevice, (d->device, 0, &e), &e);
		} while (sim_later(e));
	}
	*d = (struct device){.topo = NULL};
}

static sci_remote_segment_t connect_bar(struct device *d, unsigned bar)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t e;

	SIM_CALL(SCIConnectDeviceSegment,
		 (d->device, &seg, bar, SCI_MEMTYPE_BAR, NULL, NULL, 0, &e), &e,
		 SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_NOT_CONNECTED);
	return e == SCI_ERR_OK ? seg : NULL;
}

/* Maps @bytes of BAR 0, which makes the program the owner of the registers. */
static bool hold(struct device *d, size_t bytes)
{
	sci_error_t e;

	d->bar = connect_bar(d, 0);
	if (!d->bar)
		return false;
	sim_call("SCIMapRemoteSegment", 0);
	d->regs = SCIMapRemoteSegment(d->bar, &d->map, 0, bytes, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) != SCI_ERR_OK)
		d->map = NULL;
	return d->map;
}

static bool have(struct carrier *s, struct device *d, bool alone)
{
	uint64_t since = sim_now();
	sci_error_t e;

	d->since = since;
	d->boots = sim_host_boots(d->host);
	SIM_CALL(SCIBorrowDevice,
		 (s->sd, &d->device, d->topo->fdid, alone ? SCI_FLAG_EXCLUSIVE : 0, &e), &e,
		 SCI_ERR_NOT_AVAILABLE, SCI_ERR_NOT_CONNECTED, SCI_ERR_NO_SUCH_FDID);
	if (e != SCI_ERR_OK)
		d->device = NULL;
	else
		sim_note_borrowed(d->topo->fdid, alone, since);
	return d->device;
}

/* ---- the engine ---- */

static uint32_t status(const struct carrier *s)
{
	return sio_read32(s->engine.regs + SIO_MEMDEV_STATUS);
}

static void start(struct carrier *s)
{
	volatile uint8_t *r = s->engine.regs;
	uint64_t until = sim_now() + PATIENCE;

	sio_write32(r + SIO_MEMDEV_RING_BASE, (uint32_t)s->own);
	sio_write32(r + SIO_MEMDEV_RING_BASE + 4, (uint32_t)(s->own >> 32));
	sio_write32(r + SIO_MEMDEV_RING_ENTRIES, ENTRIES);
	sio_to_fabric_barrier();
	sio_write32(r + SIO_MEMDEV_CONTROL, SIO_MEMDEV_ENABLE);
	while (status(s) != SIO_MEMDEV_RUNNING && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
	s->runs = status(s) == SIO_MEMDEV_RUNNING;
	s->n = 0;
}

static bool have_memory(struct carrier *s)
{
	sci_error_t e;

	SIM_CALL(SCICreateSegment, (s->sd, &s->memory, 0, BYTES, NULL, NULL, SCI_FLAG_AUTO_ID, &e),
		 &e, SCI_ERR_OK);
	if (e != SCI_ERR_OK) {
		s->memory = NULL;
		return false;
	}
	SIM_CALL(SCIPrepareSegment, (s->memory, 0, 0, &e), &e, SCI_ERR_OK);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (s->memory, 0, 0, &e), &e, SCI_ERR_OK);
	if (e != SCI_ERR_OK)
		return false;
	sim_call("SCIMapLocalSegment", 0);
	s->at = SCIMapLocalSegment(s->memory, &s->map, 0, BYTES, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_OK, SCI_ERR_OK) != SCI_ERR_OK) {
		s->map = NULL;
		return false;
	}
	SIM_CALL(SCIMapLocalSegmentForDevice,
		 (s->memory, 0, s->engine.device, &s->own, 0, BYTES, 0, &e), &e,
		 SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		s->own = 0;
	return s->own;
}

static void have_engine(struct carrier *s)
{
	s->engine.topo = sim_pick_device(sim_is_memory, &s->engine.host);
	if (have(s, &s->engine, true) && hold(&s->engine, 2 * PAGE) && have_memory(s))
		start(s);
}

/* A drive is borrowed exclusively: its CMB is for the owner of its registers. */
static void have_target(struct carrier *s)
{
	static struct sim_shares shares;
	struct device *d = &s->target;
	bool drive;
	sci_error_t e;

	d->topo = sim_pick_device(is_target, &d->host);
	drive = sim_is_drive(d->topo);
	s->place = drive ? 0 : sim_next_share(&shares);
	if (d->topo == s->engine.topo || s->place >= PLACES || !have(s, d, drive) ||
	    (drive && !hold(d, PAGE)))
		return;
	d->ram = connect_bar(d, RAM_BAR);
	if (!d->ram)
		return;
	SIM_CALL(SCIMapRemoteSegmentForDevice,
		 (d->ram, s->engine.device, &s->there, s->place * PAGE, PAGE, 0, &e), &e,
		 SCI_ERR_NOT_CONNECTED, SCI_ERR_ACCESS, SCI_ERR_BUSY,
		 sim_outliving ? SCI_ERR_NOT_SUPPORTED : SCI_ERR_OK);
	if (e != SCI_ERR_OK)
		s->there = 0;
}

/*
 * Makes the program's page of the target a member of a group for a while. Others may write to the
 * group, so the page's contents are not judged then. BARs are members of exact groups only, and of
 * none on a real host.
 */
static void join(struct carrier *s)
{
	sci_error_t e;

	s->group = (unsigned)sim_pick(GROUPS);
	SIM_CALL(smartio_join_group, (s->target.ram, s->group, s->place * PAGE, PAGE, 0, &e), &e,
		 SCI_ERR_NOT_CONNECTED, SCI_ERR_NOT_SUPPORTED, SCI_ERR_SEGMENTID_USED,
		 SCI_ERR_OUT_OF_RANGE);
	s->joined = e == SCI_ERR_OK;
	if (s->joined && (sim_outliving || !sim_cluster->topology->exact_multicast))
		sim_fail("states", "%s: a BAR is a member of a group that has none",
			 sim_self()->name);
	if (e == SCI_ERR_ACCESS)
		sim_fail("states", "%s: memory that it has is refused", sim_self()->name);
}

static void leave(struct carrier *s)
{
	sci_error_t e;

	while (s->joined) {
		SIM_END(smartio_leave_group, (s->target.ram, s->group, 0, &e), &e);
		s->joined = sim_later(e);
	}
}

static void drop_target(struct carrier *s)
{
	sci_error_t e;

	leave(s);
	while (s->there) {
		SIM_END(SCIUnmapRemoteSegmentForDevice, (s->target.ram, s->engine.device, 0, &e),
			&e, SCI_ERR_BUSY);
		if (!sim_later(e))
			s->there = 0;
	}
	drop_device(&s->target);
}

/* A transfer may still be in flight; it has to be over before anything is unmapped. */
static void stop(struct carrier *s)
{
	uint64_t until = sim_now() + PATIENCE;

	s->runs = false;
	if (!s->engine.map)
		return;
	sio_write32(s->engine.regs + SIO_MEMDEV_CONTROL, 0);
	while (status(s) == SIO_MEMDEV_RUNNING && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
}

static void drop_engine(struct carrier *s)
{
	sci_error_t e;

	stop(s);
	drop_target(s);
	while (s->own) {
		SIM_END(SCIUnmapLocalSegmentForDevice, (s->memory, 0, s->engine.device, 0, &e), &e,
			SCI_ERR_BUSY);
		if (!sim_later(e))
			s->own = 0;
	}
	drop_device(&s->engine);
	if (s->map)
		SIM_END(SCIUnmapSegment, (s->map, 0, &e), &e);
	s->map = NULL;
	while (s->memory) {
		SIM_END(SCIRemoveSegment, (s->memory, 0, &e), &e, SCI_ERR_BUSY);
		if (!sim_later(e))
			s->memory = NULL;
	}
}

/* ---- carrying ---- */

/* Return: whether the engine reports success. */
static bool copy(struct carrier *s, uint64_t from, uint64_t to, uint32_t bytes)
{
	struct sio_memdev_entry entry = {
		.source = from, .target = to, .length = bytes, .completion = s->own + DONE_AT};
	volatile uint8_t *done = s->at + DONE_AT;
	uint64_t until = sim_now() + PATIENCE;

	sio_copy_to(s->at + (s->n++ % ENTRIES) * sizeof(entry), &entry, sizeof(entry));
	sio_to_fabric_barrier();
	sio_write32(s->engine.regs + SIO_MEMDEV_DOORBELL, s->n);
	while (sio_read32(done) != s->n && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
	if (sio_read32(done) != s->n) {
		s->runs = false; /* it may still be done: the engine is given back */
		return false;
	}
	sio_from_fabric_barrier();
	return sio_read32(done + 4) == SIO_MEMDEV_OK;
}

/* Has nothing been lost there since the device was borrowed? */
static bool is_sound(const struct device *d)
{
	return sim_drive_pulled(d->topo->fdid) < d->since && sim_host_boots(d->host) == d->boots;
}

static bool lossy(void)
{
	return sim_has_fault("link") || sim_has_fault("between") || sim_has_fault("anew") ||
	       sim_has_fault("crash");
}

static void carry(struct carrier *s)
{
	uint32_t bytes = 8 * (1 + (uint32_t)sim_pick(PAGE / 8)), word;
	uint64_t seed = sim_pick(1ull << 32), drawn = seed;

	for (uint32_t i = 0; i < bytes; i += 4) {
		sio_write32(s->at + OUT_AT + i, (uint32_t)sim_draw(&drawn));
		sio_write32(s->at + BACK_AT + i, 0);
	}
	if (!copy(s, s->own + OUT_AT, s->there, bytes) ||
	    !copy(s, s->there, s->own + BACK_AT, bytes) || s->joined || lossy() ||
	    !is_sound(&s->target) || !is_sound(&s->engine))
		return;
	drawn = seed;
	for (uint32_t i = 0; i < bytes; i += 4) {
		word = (uint32_t)sim_draw(&drawn);
		if (sio_read32(s->at + BACK_AT + i) != word)
			sim_fail("states", "%s: %s took %u bytes to %s, and brought others back",
				 sim_self()->name, s->engine.topo->name, bytes,
				 s->target.topo->name);
	}
}

static void act(void *state)
{
	struct carrier *s = state;

	if (!s->engine.topo)
		have_engine(s);
	else if (!s->runs || sim_pick(40) == 0)
		drop_engine(s);
	else if (!s->target.topo)
		have_target(s);
	else if (!s->there || sim_pick(20) == 0)
		drop_target(s);
	else if (s->joined && sim_pick(4) == 0)
		leave(s);
	else if (!s->joined && sim_pick(10) == 0)
		join(s);
	else
		carry(s);
}

static void give_back(void *state)
{
	drop_engine(state);
}

static void carrier_main(struct sim_proc *p)
{
	static const struct sim_life life = {.acts = 120, .act = act, .tear_down = give_back};
	struct carrier s = {.sd = NULL};

	if (!sim_live(&life, &s, &s.sd))
		return;
	if (s.engine.device)
		sim_note_returned(s.engine.topo->fdid);
	if (s.target.device)
		sim_note_returned(s.target.topo->fdid);
	sim_exit(p);
}

const struct sim_workload sim_work_carrier = {
	.name = "carrier", .weight = 4, .named = true, .main = carrier_main};
