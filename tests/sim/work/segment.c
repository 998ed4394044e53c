/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that make segments, connect to those of others, map, write, read, copy and check them,
 * in any order, and check that each call gives what the state of its object allows. The first word
 * of each page of a segment is a tag, which identifies host and segment: a mapping that shows
 * another tag than at first leads to memory that was freed. The second word is the number of the
 * page: a mapping may begin at any page, and each of its pages has to be the right one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "work/life.h"
#include "run/run.h"
#include "work/sequence.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define OWN 4
#define OTHERS 4
#define IDS 6	/* of the segments of a host, for which its programs compete */
#define ALONE 3 /* ids up to this one are of this workload alone, others of work/share.c, too */
#define PAGE 4096u
#define PAGES 8
#define ONES 0xffffffffu

struct own {
	sci_local_segment_t segment; /* NULL: none */
	sci_map_t map;
	volatile uint32_t *at;
	uint32_t tag, id;
	unsigned pages;
	unsigned prepared; /* a bit for each adapter */
};

struct other {
	sci_remote_segment_t segment;
	sci_map_t map;
	struct sim_sequence sequence;
	volatile uint32_t *at;
	uint32_t tag; /* the first that was seen; 0: none yet */
	unsigned host, id, adapter, pages;
	unsigned first, mapped; /* the first page that is mapped; how many are */
};

/*
 * What all programs know of the segment that has an id of a host. A program that is killed leaves
 * it as it was: then checks allow more than is right.
 */
struct shown {
	bool on[SIO_MAX_ADAPTERS];	  /* it is available there, or may be */
	uint64_t until[SIO_MAX_ADAPTERS]; /* if not: until when it was */
	unsigned pages, changes;
	uint32_t tag;
};

struct state {
	sci_desc_t sd;
	struct own own[OWN];
	struct other other[OTHERS];
};

static uint32_t last_tag; /* of the whole cluster */

static struct shown shown[SIM_HOSTS][IDS + 1];

static void hide(struct shown *w, unsigned adapter)
{
	if (w->on[adapter])
		w->until[adapter] = sim_now();
	w->on[adapter] = false;
}

static void show_none(struct shown *w)
{
	for (unsigned a = 0; a < SIO_MAX_ADAPTERS; a++)
		hide(w, a);
	w->changes++;
}

/* NULL: another segment has the id now. */
static struct shown *shown_of(const struct own *o)
{
	struct shown *w = &shown[sim_self()->host][o->id];

	return w->tag == o->tag ? w : NULL;
}

static struct own *pick_own(struct state *s)
{
	return &s->own[sim_pick(OWN)];
}

static struct other *pick_other(struct state *s)
{
	return &s->other[sim_pick(OTHERS)];
}

/* ---- own segments ---- */
static void create(struct state *s)
{
	struct own *o = pick_own(s);
	unsigned pages = 1 + (unsigned)sim_pick(PAGES);
	struct shown *w;
	sci_error_t e;

	if (o->segment)
		return;
	o->id = 1 + (unsigned)sim_pick(IDS);
	SIM_CALL(SCICreateSegment, (s->sd, &o->segment, o->id, pages * PAGE, NULL, NULL, 0, &e), &e,
		 SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		o->segment = NULL;
		return;
	}
	o->pages = pages;
	o->prepared = 0;
	o->map = NULL;
	o->tag = 0xa0000000u | sim_node(sim_self()->host) << 20 | (++last_tag & 0xfffff);
	w = &shown[sim_self()->host][o->id];
	show_none(w);
	w->pages = pages;
	w->tag = o->tag;
}

static void map_own(struct state *s)
{
	struct own *o = pick_own(s);
	sci_error_t e;

	if (!o->segment || o->map)
		return;
	sim_call("SCIMapLocalSegment", 0);
	o->at = SCIMapLocalSegment(o->segment, &o->map, 0, o->pages * PAGE, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_OK) != SCI_ERR_OK) {
		o->map = NULL;
		return;
	}
	if (sim_pick(8) == 0 && sio_read32(o->at) != 0 && sio_read32(o->at) != o->tag &&
	    sio_read32(o->at) != ONES)
		sim_fail("memory", "%s: a segment begins with %#x", sim_self()->name,
			 sio_read32(o->at));
	/*
	 * A processor's stores to its host's memory become visible in their order: a program that
	 * sees the tag sees the number, too.
	 */
	for (unsigned i = 0; i < o->pages; i++) {
		sio_write32(o->at + i * PAGE / 4 + 1, i);
		sio_write32(o->at + i * PAGE / 4, o->tag);
	}
}

static void unmap_own(struct own *o)
{
	sci_error_t e;

	if (!o->map)
		return;
	SIM_CALL(SCIUnmapSegment, (o->map, 0, &e), &e);
	o->map = NULL;
}

/* Prepares the segment, or makes it available or unavailable, on one adapter. */
static void change(struct state *s)
{
	struct own *o = pick_own(s);
	unsigned n = sim_cluster->topology->host[sim_self()->host].n_adapters;
	unsigned a = (unsigned)sim_pick(n), bit = 1u << a;
	struct shown *w;
	sci_error_t e;

	if (!o->segment)
		return;
	w = shown_of(o);
	switch (sim_pick(4)) {
	case 0:
		SIM_CALL(SCIPrepareSegment, (o->segment, a, 0, &e), &e);
		if (e == SCI_ERR_OK)
			o->prepared |= bit;
		break;
	case 1:
	case 2:
		if (w)
			w->on[a] = true; /* first: others may connect before the call returns */
		SIM_CALL(SCISetSegmentAvailable, (o->segment, a, 0, &e), &e,
			 SCI_ERR_SEGMENT_NOT_PREPARED);
		if ((e == SCI_ERR_OK && !(o->prepared & bit)) ||
		    (e == SCI_ERR_SEGMENT_NOT_PREPARED && o->prepared & bit))
			sim_fail("states", "%s: available gives %s where the segment is %sprepared",
				 sim_self()->name, SCIGetErrorString(e),
				 o->prepared & bit ? "" : "not ");
		if (e == SCI_ERR_SEGMENT_NOT_PREPARED && w)
			hide(w, a);
		break;
	default:
		SIM_END(SCISetSegmentUnavailable,
			(o->segment, a, sim_pick(2) ? SCI_FLAG_FORCE_DISCONNECT : 0, &e), &e,
			SCI_ERR_ILLEGAL_OPERATION);
		if ((e == SCI_ERR_OK) != !!(o->prepared & bit) && e != SCI_ERR_NO_LINK_ACCESS)
			sim_fail("states",
				 "%s: unavailable gives %s where the segment is %sprepared",
				 sim_self()->name, SCIGetErrorString(e),
				 o->prepared & bit ? "" : "not ");
		if (e == SCI_ERR_OK && w)
			hide(w, a);
	}
}

static void remove_own(struct own *o, bool force)
{
	sci_error_t e;

	if (!o->segment)
		return;
	SIM_END(SCIRemoveSegment, (o->segment, force ? SCI_FLAG_FORCE_REMOVE : 0, &e), &e,
		SCI_ERR_BUSY);
	if (e == SCI_ERR_OK || e == SCI_ERR_NO_LINK_ACCESS) {
		if (o->map && !force && e == SCI_ERR_OK)
			sim_fail("states", "%s: a mapped segment is removed", sim_self()->name);
		if (o->map)
			unmap_own(o);
		if (shown_of(o))
			show_none(shown_of(o));
		o->segment = NULL;
	} else if (force || (e == SCI_ERR_BUSY && !o->map)) {
		sim_fail("states", "%s: %sremoval of %s segment gives %s", sim_self()->name,
			 force ? "forced " : "", o->map ? "a mapped" : "an unmapped",
			 SCIGetErrorString(e));
	}
}

/* ---- others' ---- */
/*
 * A connect to @o that began at @begin has succeeded: the segment must have been available
 * meanwhile. @changes: struct shown's then.
 */
static void check_connected(const struct other *o, uint64_t begin, unsigned changes)
{
	const struct shown *w = &shown[o->host][o->id];
	unsigned there = sim_adapters_behind(o->adapter, o->host);
	bool was = false;

	if (o->id > ALONE)
		return;
	for (unsigned a = 0; a < SIO_MAX_ADAPTERS; a++)
		was |= there >> a & 1 && (w->on[a] || w->until[a] >= begin);
	if (!was)
		sim_fail("states",
			 "%s: connected to segment %u of node %u, not available behind adapter %u",
			 sim_self()->name, o->id, sim_node(o->host), o->adapter);
	if (changes == w->changes && o->pages != w->pages)
		sim_fail("states", "%s: segment %u of node %u has %u pages, not %u",
			 sim_self()->name, o->id, sim_node(o->host), o->pages, w->pages);
}

static void connect_other(struct state *s)
{
	struct other *o = pick_other(s);
	uint64_t begin = sim_now();
	unsigned changes;
	sci_error_t e;

	if (o->segment)
		return;
	o->host = sim_pick_host();
	o->id = 1 + (unsigned)sim_pick(IDS);
	o->adapter = sim_pick_adapter(o->host);
	changes = shown[o->host][o->id].changes;
	SIM_CALL(SCIConnectSegment,
		 (s->sd, &o->segment, sim_node(o->host), o->id, o->adapter, NULL, NULL,
		  SCI_INFINITE_TIMEOUT, 0, &e),
		 &e, SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_CONNECTION_REFUSED);
	o->map = NULL;
	o->sequence.handle = NULL;
	o->tag = 0;
	if (e != SCI_ERR_OK) {
		o->segment = NULL;
		return;
	}
	o->pages = (unsigned)(SCIGetRemoteSegmentSize(o->segment) / PAGE);
	check_connected(o, begin, changes);
}

/* A mapping that extends beyond the end of its segment is refused. */
static void map_behind(const struct other *o)
{
	size_t first = sim_pick(o->pages + 2) * PAGE, bytes = (o->pages + 1) * PAGE;
	sci_map_t map;
	sci_error_t e;

	sim_call("SCIMapRemoteSegment", 0);
	(void)SCIMapRemoteSegment(o->segment, &map, first, bytes, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_OUT_OF_RANGE, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) == SCI_ERR_OK)
		sim_fail("states", "%s: %zu bytes at %#zx are mapped of a segment of %u pages",
			 sim_self()->name, bytes, first, o->pages);
}

static void map_other(struct state *s)
{
	struct other *o = pick_other(s);
	sci_error_t e;

	if (!o->segment || o->map)
		return;
	if (sim_pick(8) == 0)
		map_behind(o);
	o->first = (unsigned)sim_pick(o->pages);
	o->mapped = 1 + (unsigned)sim_pick(o->pages - o->first);
	sim_call("SCIMapRemoteSegment", 0);
	o->at = SCIMapRemoteSegment(o->segment, &o->map, o->first * PAGE, o->mapped * PAGE, NULL, 0,
				    &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) != SCI_ERR_OK)
		o->map = NULL;
	if (!o->map)
		return;
	sim_sequence_new(&o->sequence, o->map, o->host, o->adapter);
}

static void look(struct other *o)
{
	unsigned page = (unsigned)sim_pick(o->mapped);
	volatile uint32_t *at = o->at + page * PAGE / 4;
	uint32_t tag = sio_read32(at), number;

	if (tag == 0 || tag == ONES)
		return;
	if (o->tag == 0)
		o->tag = tag;
	if (tag != o->tag || (tag >> 20 & 0xff) != sim_node(o->host))
		sim_fail("memory", "%s: segment %u of node %u begins with %#x, was %#x",
			 sim_self()->name, o->id, sim_node(o->host), tag, o->tag);
	sio_from_fabric_barrier();
	number = sio_read32(at + 1);
	if (number != ONES && number != o->first + page)
		sim_fail("memory", "%s: page %u of segment %u of node %u is page %u",
			 sim_self()->name, o->first + page, o->id, sim_node(o->host), number);
}

/*
 * Each word that is stored in a page's second half differs from all before, so a store is noticed.
 */
static uint32_t new_word(void)
{
	return 0xb0000000u | (++last_tag & 0xfffffff);
}

/* Stores a word in the second half of the first page, as all do, and reads there. */
static void use(struct state *s)
{
	struct other *o = pick_other(s);
	uint32_t mine = new_word(), back[4];
	unsigned at = PAGE / 2 + 16 * (unsigned)sim_pick(64);
	sci_error_t e;

	if (!o->map)
		return;
	look(o);
	sio_write32((volatile char *)o->at + at, mine);
	SCIFlush(NULL, 0);
	SIM_CALL(SCIMemCpy, (NULL, back, o->map, at, sizeof(back), SCI_FLAG_BLOCK_READ, &e), &e,
		 SCI_ERR_NOT_CONNECTED, SCI_ERR_TRANSFER_FAILED);
	if (e == SCI_ERR_OK && back[0] != ONES && back[0] >> 28 != 0xb)
		sim_fail("memory", "%s: %#x where %#x was written", sim_self()->name, back[0],
			 mine);
}

static void check_sequence(struct state *s)
{
	struct other *o = pick_other(s);
	unsigned at = PAGE / 2 + 16 * (unsigned)sim_pick(64);
	uint32_t word = new_word();
	sci_sequence_status_t status;

	if (!o->sequence.handle)
		return;
	status = sim_sequence_store(&o->sequence, (volatile char *)o->at + at, word);
	if (status != SCI_SEQ_OK || word % 8 == 0)
		sim_sequence_start(&o->sequence);
}

static void unmap_other(struct other *o)
{
	sci_error_t e;

	sim_sequence_remove(&o->sequence);
	if (!o->map)
		return;
	look(o);
	SIM_CALL(SCIUnmapSegment, (o->map, 0, &e), &e);
	o->map = NULL;
}

static void disconnect(struct other *o)
{
	sci_error_t e;

	if (!o->segment)
		return;
	SIM_END(SCIDisconnectSegment, (o->segment, 0, &e), &e, SCI_ERR_BUSY);
	if (!!o->map != (e == SCI_ERR_BUSY) && e != SCI_ERR_NO_LINK_ACCESS)
		sim_fail("states", "%s: disconnecting %s segment gives %s", sim_self()->name,
			 o->map ? "a mapped" : "an unmapped", SCIGetErrorString(e));
	if (e != SCI_ERR_BUSY)
		o->segment = NULL;
}

/* ---- the program ---- */
static void act(void *state)
{
	struct state *s = state;
	bool force;

	switch (sim_pick(12)) {
	case 0:
	case 1:
		create(s);
		break;
	case 2:
		map_own(s);
		break;
	case 3:
		change(s);
		change(s);
		break;
	case 4:
		force = sim_pick(3) == 0; /* here: compilers choose the order of arguments */
		if (sim_pick(2))
			unmap_own(pick_own(s));
		else
			remove_own(pick_own(s), force);
		break;
	case 5:
	case 6:
		connect_other(s);
		break;
	case 7:
		map_other(s);
		break;
	case 8:
		check_sequence(s);
		break;
	case 9:
		if (sim_pick(2))
			unmap_other(pick_other(s));
		else
			disconnect(pick_other(s));
		break;
	default:
		use(s);
	}
}

static void tear_down(void *state)
{
	struct state *s = state;

	for (unsigned i = 0; i < OTHERS; i++) {
		unmap_other(&s->other[i]);
		disconnect(&s->other[i]);
	}
	for (unsigned i = 0; i < OWN; i++) {
		unmap_own(&s->own[i]);
		remove_own(&s->own[i], true);
	}
}

static void segment_main(struct sim_proc *p)
{
	struct state s = {0};
	static const struct sim_life life = {.acts = 300, .act = act, .tear_down = tear_down};

	sim_live_and_exit(p, &life, &s, &s.sd);
}

const struct sim_workload sim_work_segment = {.name = "segment", .weight = 4, .main = segment_main};
