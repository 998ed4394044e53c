/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs with segments of all kinds: private ones, empty ones that receive pages of the program,
 * ones whose ids smartiod chooses, and shared ones, which other programs of the host attach to.
 * Each segment has a tag in its first word; a program that attached or connected to it never sees
 * another tag there.
 */
#include "work/life.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "run/run.h"

#define OWN 4
#define FIRST_ID 34
#define IDS 4
#define PAGE 4096u
#define ONES 0xffffffffu
#define MARK 0x90000000u
/* For lists of errors: @e only if @when. */
#define MAY(when, e) ((when) ? (e) : SCI_ERR_NOSPC)

struct own {
	sci_local_segment_t segment; /* NULL: none */
	sci_map_t map;
	volatile uint32_t *at;
	volatile uint32_t *pages; /* pages of the program that are the segment's memory; NULL */
	size_t size;
	unsigned id;
	uint32_t tag; /* if attached: the first that was seen; 0: none yet */
	bool attached, is_private, empty, tagged;
	bool leaving; /* removed, but smartiod has not given back its pages yet */
};

struct other {
	sci_remote_segment_t segment;
	sci_map_t map;
	volatile uint32_t *at;
	unsigned host;
	uint32_t tag;
};

struct state {
	sci_desc_t sd;
	struct own own[OWN];
	struct other other;
};

static uint32_t last_tag;		/* of the whole cluster */
static bool was_shared[SIM_HOSTS][IDS]; /* ever */

static bool remove_own(struct own *o, bool force);

/* First finishes the removals of segments whose pages have not been given back. */
static struct own *pick_own(struct state *s)
{
	for (unsigned i = 0; i < OWN; i++)
		while (s->own[i].leaving && !remove_own(&s->own[i], true))
			;
	return &s->own[sim_pick(OWN)];
}

static void wrong(const struct own *o, const char *call, sci_error_t e)
{
	sim_fail("states", "%s: %s gives %s: segment %u is %s, %s, %s, %s", sim_self()->name, call,
		 SCIGetErrorString(e), o->id, o->attached ? "attached" : "its own",
		 o->is_private ? "private" : "not private", o->empty ? "empty" : "not empty",
		 o->map ? "mapped" : "not mapped");
}

static void look(const volatile uint32_t *at, uint32_t *tag, uint32_t node)
{
	uint32_t v = sio_read32(at);

	if (v == ONES || v == 0)
		return;
	if (*tag == 0)
		*tag = v;
	if (v != *tag || v >> 28 != MARK >> 28 || (v >> 20 & 0xff) != node)
		sim_fail("memory", "%s: a segment of node %u begins with %#x, was %#x",
			 sim_self()->name, node, v, *tag);
}

/* ---- own ones ---- */
static void create(struct state *s)
{
	unsigned kind = (unsigned)sim_pick(8), asked = FIRST_ID + (unsigned)sim_pick(IDS);
	unsigned flags = kind == 0 ? SCI_FLAG_PRIVATE : kind < 3 ? SCI_FLAG_EMPTY : 0;
	struct own *o = pick_own(s);
	sci_error_t e;

	if (o->segment)
		return;
	*o = (struct own){.size = PAGE * (1 + sim_pick(4))};
	if (sim_pick(3) == 0)
		flags |= SCI_FLAG_AUTO_ID;
	SIM_CALL(SCICreateSegment, (s->sd, &o->segment, asked, o->size - 3, NULL, NULL, flags, &e),
		 &e, MAY(!(flags & SCI_FLAG_AUTO_ID), SCI_ERR_SEGMENTID_USED));
	if (e != SCI_ERR_OK) {
		o->segment = NULL;
		return;
	}
	o->id = SCIGetLocalSegmentId(o->segment);
	o->is_private = flags & SCI_FLAG_PRIVATE;
	o->empty = flags & SCI_FLAG_EMPTY;
	if (flags & SCI_FLAG_AUTO_ID ? o->id < asked : o->id != asked)
		sim_fail("states", "%s: asked for id %u, it is %u", sim_self()->name, asked, o->id);
	if (SCIGetLocalSegmentSize(o->segment) != o->size)
		sim_fail("states", "%s: a segment of %zu bytes has %zu", sim_self()->name, o->size,
			 SCIGetLocalSegmentSize(o->segment));
	for (unsigned i = 0; i < OWN; i++)
		if (&s->own[i] != o && s->own[i].segment && !s->own[i].attached &&
		    s->own[i].id == o->id)
			sim_fail("states", "%s: two segments have id %u", sim_self()->name, o->id);
	o->tag = MARK | sim_node(sim_self()->host) << 20 | (++last_tag & 0xfffff);
}

/*
 * An attached one ends with the program that made it. One of its own has its number taken by
 * another program if the next smartiod has that first.
 */
static bool may_be_lost(const struct own *o)
{
	return o->attached || sim_has_fault("restart");
}

static void map(struct state *s)
{
	struct own *o = pick_own(s);
	sci_error_t e;

	if (!o->segment || o->map)
		return;
	sim_call("SCIMapLocalSegment", 0);
	o->at = SCIMapLocalSegment(o->segment, &o->map, 0, PAGE, NULL, 0, &e);
	sim_called(e, MAY(o->empty, SCI_ERR_ILLEGAL_OPERATION),
		   MAY(may_be_lost(o), SCI_ERR_NOT_CONNECTED), SCI_ERR_OK);
	if (e != SCI_ERR_OK) {
		o->map = NULL;
		return;
	}
	if (o->empty)
		wrong(o, "SCIMapLocalSegment", e);
	if (!o->attached && !o->tagged)
		sio_write32(o->at, o->tag);
	o->tagged = true;
}

/* More pages than the segment was made for are refused. */
static void give_too_much(struct own *o)
{
	size_t size = o->size + PAGE * (1 + sim_pick(2));
	void *pages = sim_pages_new(size);
	sci_error_t e;

	SIM_CALL(SCIRegisterSegmentMemory, (pages, size, o->segment, SCI_FLAG_LOCK_USER_MEM, &e),
		 &e, SCI_ERR_OUT_OF_RANGE, MAY(!o->empty, SCI_ERR_ILLEGAL_OPERATION));
	if (e == SCI_ERR_OK)
		wrong(o, "SCIRegisterSegmentMemory of too much", e);
	sim_pages_free(pages, size);
}

/* The pages have contents already, which stay. They outlive the crash of the host's daemon. */
static void give_memory(struct state *s)
{
	volatile uint32_t *pages;
	struct own *o = pick_own(s);
	sci_error_t e;

	if (!o->segment || o->pages || o->attached)
		return;
	if (sim_pick(4) == 0)
		give_too_much(o);
	pages = sim_pages_new(o->size);
	sio_write32(pages, o->tag);
	SIM_CALL(SCIRegisterSegmentMemory,
		 ((void *)(uintptr_t)pages, o->size, o->segment, SCI_FLAG_LOCK_USER_MEM, &e), &e,
		 MAY(!o->empty, SCI_ERR_ILLEGAL_OPERATION));
	if (e == SCI_ERR_OK && !o->empty)
		wrong(o, "SCIRegisterSegmentMemory", e);
	if (sio_read32(pages) != o->tag)
		sim_fail("memory", "%s: pages that were registered begin with %#x, not %#x",
			 sim_self()->name, sio_read32(pages), o->tag);
	if (e != SCI_ERR_OK) {
		sim_pages_free((void *)(uintptr_t)pages, o->size);
		return;
	}
	o->pages = pages;
	o->empty = false;
	o->tagged = true;
}

static void change(struct state *s)
{
	struct own *o = pick_own(s);
	bool prepare = sim_pick(2);
	sci_error_t e;

	if (!o->segment)
		return;
	if (prepare)
		SIM_CALL(SCIPrepareSegment, (o->segment, 0, 0, &e), &e,
			 MAY(o->empty, SCI_ERR_ILLEGAL_OPERATION),
			 MAY(may_be_lost(o), SCI_ERR_NOT_CONNECTED));
	else
		SIM_CALL(SCISetSegmentAvailable, (o->segment, 0, 0, &e), &e,
			 MAY(o->is_private || o->empty || o->attached, SCI_ERR_ILLEGAL_OPERATION),
			 SCI_ERR_SEGMENT_NOT_PREPARED, MAY(may_be_lost(o), SCI_ERR_NOT_CONNECTED));
	if (e == SCI_ERR_OK && (o->empty || (o->is_private && !prepare)))
		wrong(o, prepare ? "SCIPrepareSegment" : "SCISetSegmentAvailable", e);
}

static void share(struct state *s)
{
	struct own *o = pick_own(s);
	sci_error_t e;

	if (!o->segment || !o->tagged)
		return;
	if (o->id - FIRST_ID < IDS)
		was_shared[sim_self()->host][o->id - FIRST_ID] = true;
	SIM_CALL(SCIShareSegment, (o->segment, 0, &e), &e,
		 MAY(may_be_lost(o), SCI_ERR_NOT_CONNECTED));
}

static void attach(struct state *s)
{
	unsigned id = (unsigned)sim_pick(IDS);
	struct own *o = pick_own(s);
	sci_error_t e;

	if (o->segment)
		return;
	*o = (struct own){.id = FIRST_ID + id, .attached = true, .tagged = true};
	SIM_CALL(SCIAttachLocalSegment, (s->sd, &o->segment, o->id, &o->size, NULL, NULL, 0, &e),
		 &e, SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_ACCESS);
	if (e != SCI_ERR_OK) {
		o->segment = NULL;
		return;
	}
	if (!was_shared[sim_self()->host][id] || o->size == 0 || o->size % PAGE)
		wrong(o, "SCIAttachLocalSegment", e);
}

static void unmap(struct own *o)
{
	sci_error_t e;

	if (!o->map)
		return;
	look(o->at, &o->tag, sim_node(sim_self()->host));
	SIM_CALL(SCIUnmapSegment, (o->map, 0, &e), &e);
	o->map = NULL;
}

/*
 * Without force the removal is refused as busy while the segment is mapped, and if it is the last
 * handle while others are connected. If the daemon has no memory for its requests to the port,
 * nothing changes. Return: whether it was removed.
 */
static bool remove_own(struct own *o, bool force)
{
	sci_error_t e;

	if (!o->segment)
		return true;
	SIM_END(SCIRemoveSegment, (o->segment, force ? SCI_FLAG_FORCE_REMOVE : 0, &e), &e,
		MAY(!force, SCI_ERR_BUSY));
	if (e == SCI_ERR_OK && o->map && !force)
		wrong(o, "SCIRemoveSegment", e);
	if (e == SCI_ERR_BUSY || e == SCI_ERR_NOSPC) {
		o->leaving = e == SCI_ERR_NOSPC && o->pages;
		return false;
	}
	o->leaving = false;
	if (o->map)
		unmap(o);
	o->segment = NULL;
	if (!o->pages)
		return true;
	if (sio_read32(o->pages) != o->tag)
		sim_fail("memory", "%s: pages that came back begin with %#x, not %#x",
			 sim_self()->name, sio_read32(o->pages), o->tag);
	sim_pages_free((void *)(uintptr_t)o->pages, o->size);
	o->pages = NULL;
	return true;
}

/* ---- others' ---- */
static void leave(struct other *o)
{
	sci_error_t e;

	if (!o->segment)
		return;
	if (o->map) {
		look(o->at, &o->tag, sim_node(o->host));
		SIM_CALL(SCIUnmapSegment, (o->map, 0, &e), &e);
	}
	SIM_END(SCIDisconnectSegment, (o->segment, 0, &e), &e);
	o->segment = NULL;
}

static void reach(struct state *s)
{
	struct other *o = &s->other;
	sci_error_t e;

	leave(o);
	*o = (struct other){.host = sim_pick_host()};
	SIM_CALL(SCIConnectSegment,
		 (s->sd, &o->segment, sim_node(o->host), FIRST_ID + (unsigned)sim_pick(IDS), 0,
		  NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &e),
		 &e, SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_CONNECTION_REFUSED);
	if (e != SCI_ERR_OK) {
		o->segment = NULL;
		return;
	}
	sim_call("SCIMapRemoteSegment", 0);
	o->at = SCIMapRemoteSegment(o->segment, &o->map, 0, PAGE, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) != SCI_ERR_OK)
		o->map = NULL;
}

/* ---- the program ---- */
static void look_at_all(struct state *s)
{
	for (unsigned i = 0; i < OWN; i++)
		if (s->own[i].segment && s->own[i].map)
			look(s->own[i].at, &s->own[i].tag, sim_node(sim_self()->host));
	if (s->other.segment && s->other.map)
		look(s->other.at, &s->other.tag, sim_node(s->other.host));
}

static void act(void *state)
{
	struct state *s = state;
	struct own *o;

	switch (sim_pick(12)) {
	case 0:
		create(s);
		break;
	case 1:
	case 2:
		map(s);
		break;
	case 3:
		give_memory(s);
		break;
	case 4:
	case 5:
		change(s);
		break;
	case 6:
		share(s);
		break;
	case 7:
	case 8:
		attach(s);
		break;
	case 9:
		o = pick_own(s);
		if (sim_pick(2))
			unmap(o);
		else
			remove_own(o, sim_pick(4) == 0);
		break;
	case 10:
		reach(s);
		break;
	default:
		look_at_all(s);
	}
}

static void tear_down(void *state)
{
	struct state *s = state;

	leave(&s->other);
	for (unsigned i = 0; i < OWN; i++) {
		unmap(&s->own[i]);
		while (!remove_own(&s->own[i], true))
			sim_sleep(SIM_MS);
	}
}

static void kinds_main(struct sim_proc *p)
{
	struct state s = {0};
	static const struct sim_life life = {.acts = 200, .act = act, .tear_down = tear_down};

	sim_live_and_exit(p, &life, &s, &s.sd);
}

const struct sim_workload sim_work_kinds = {.name = "kinds", .weight = 2, .main = kinds_main};
