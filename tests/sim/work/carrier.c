/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that borrow a memory device exclusively and drive its engine: data go from their own
 * memory to another device, which is a memory device or the controller memory buffer of a drive,
 * and from there back. The engine's read does not pass its own writes, so what comes back is what
 * was sent, unless the other device was lost meanwhile.
 */
#include "fabric/fabric.h"
#include "work/held.h"
#include "work/life.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/memdev.h"
#include "run/listener.h"
#include "work/drives.h"

#define PAGE 4096u
#define ENTRIES 8u
#define OUT_AT PAGE /* the program's memory: ring, data to be sent, data that came back */
#define BACK_AT (2 * PAGE)
#define BYTES (3 * PAGE)
#define DONE_AT (PAGE - (uint32_t)sizeof(struct sio_memdev_completion))
#define PLACES 32u /* pages of a target; each program has one */
#define GROUPS 6u  /* the others are the stranger's (fault/stranger_group.c) */

struct carrier {
	sci_desc_t sd;
	struct sim_held engine, target;
	struct sim_own own;
	sci_ioaddr_t there; /* the target, for the engine; 0: it is not mapped */
	uint32_t n, place;  /* entries so far; the program's page of the target */
	unsigned group;	    /* if @joined: the one that this page is a member of */
	bool runs, joined;
};

/* ---- which devices ---- */

static bool is_target(const struct sio_topo_device *d)
{
	return sim_is_memory(d) || d->cmb;
}

/* ---- the engine ---- */

static uint32_t status(const struct carrier *s)
{
	return sio_read32(s->engine.regs + SIO_MEMDEV_STATUS);
}

static void start(struct carrier *s)
{
	volatile uint8_t *r = s->engine.regs;
	uint64_t until = sim_now() + SIM_PATIENCE;

	sio_write32(r + SIO_MEMDEV_RING_BASE, (uint32_t)s->own.io);
	sio_write32(r + SIO_MEMDEV_RING_BASE + 4, (uint32_t)(s->own.io >> 32));
	sio_write32(r + SIO_MEMDEV_RING_ENTRIES, ENTRIES);
	sio_to_fabric_barrier();
	sio_write32(r + SIO_MEMDEV_CONTROL, SIO_MEMDEV_ENABLE);
	while (status(s) != SIO_MEMDEV_RUNNING && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
	s->runs = status(s) == SIO_MEMDEV_RUNNING;
	s->n = 0;
}

static void have_engine(struct carrier *s)
{
	s->engine.topo = sim_pick_device(sim_is_memory, &s->engine.host);
	if (sim_held_borrow(s->sd, &s->engine, true) && sim_held_registers(&s->engine, 2 * PAGE) &&
	    sim_own_make(s->sd, &s->own, &s->engine, BYTES))
		start(s);
}

/* A drive is borrowed exclusively: its CMB is for the owner of its registers. */
static void have_target(struct carrier *s)
{
	static struct sim_shares shares;
	const bool never = sim_outliving && !sim_cluster->topology->host[s->engine.host].iommu;
	struct sim_held *d = &s->target;
	bool drive;
	sci_error_t e;

	d->topo = sim_pick_device(is_target, &d->host);
	drive = sim_is_drive(d->topo);
	s->place = drive ? 0 : sim_next_share(&shares);
	if (d->topo == s->engine.topo || s->place >= PLACES || !sim_held_borrow(s->sd, d, drive) ||
	    (drive && !sim_held_registers(d, PAGE)) || !sim_held_memory(d))
		return;
	SIM_CALL(SCIMapRemoteSegmentForDevice,
		 (d->ram, s->engine.device, &s->there, s->place * PAGE, PAGE, 0, &e), &e,
		 SCI_ERR_NOT_CONNECTED, SCI_ERR_ACCESS, SCI_ERR_BUSY,
		 never ? SCI_ERR_NOT_SUPPORTED : SCI_ERR_OK);
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
	sim_held_drop(&s->target);
}

/* A transfer may still be in flight; it has to be over before anything is unmapped. */
static void stop(struct carrier *s)
{
	uint64_t until = sim_now() + SIM_PATIENCE;

	s->runs = false;
	if (!s->engine.map)
		return;
	sio_write32(s->engine.regs + SIO_MEMDEV_CONTROL, 0);
	while (status(s) == SIO_MEMDEV_RUNNING && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
}

static void drop_engine(struct carrier *s)
{
	stop(s);
	drop_target(s);
	sim_own_unmap(&s->own, &s->engine);
	sim_held_drop(&s->engine);
	sim_own_remove(&s->own);
}

/* ---- carrying ---- */

/* Return: whether the engine reports success. */
static bool copy(struct carrier *s, uint64_t from, uint64_t to, uint32_t bytes)
{
	struct sio_memdev_entry entry = {
		.source = from, .target = to, .length = bytes, .completion = s->own.io + DONE_AT};
	volatile uint8_t *done = s->own.at + DONE_AT;
	uint64_t until = sim_now() + SIM_PATIENCE;

	sio_copy_to(s->own.at + (s->n++ % ENTRIES) * sizeof(entry), &entry, sizeof(entry));
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

static void carry(struct carrier *s)
{
	uint32_t bytes = 8 * (1 + (uint32_t)sim_pick(PAGE / 8)), word;
	uint64_t seed = sim_pick(1ull << 32), drawn = seed;

	for (uint32_t i = 0; i < bytes; i += 4) {
		sio_write32(s->own.at + OUT_AT + i, (uint32_t)sim_draw(&drawn));
		sio_write32(s->own.at + BACK_AT + i, 0);
	}
	if (!copy(s, s->own.io + OUT_AT, s->there, bytes) ||
	    !copy(s, s->there, s->own.io + BACK_AT, bytes) || s->joined || sim_is_lossy() ||
	    !sim_held_is_sound(&s->target) || !sim_held_is_sound(&s->engine))
		return;
	drawn = seed;
	for (uint32_t i = 0; i < bytes; i += 4) {
		word = (uint32_t)sim_draw(&drawn);
		if (sio_read32(s->own.at + BACK_AT + i) != word)
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
	sim_held_forget(&s.engine);
	sim_held_forget(&s.target);
	sim_exit(p);
}

const struct sim_workload sim_work_carrier = {
	.name = "carrier", .weight = 4, .named = true, .main = carrier_main};
