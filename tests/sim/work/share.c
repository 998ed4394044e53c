/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that make segments to which others of their host attach, and release the handles in any
 * order. The ids are among those of work/segment.c, whose programs connect to them. A handle always
 * leads to the same segment, which is lost only if its creator was killed before it had released
 * its own handle.
 */
#include "work/life.h"
#include "run/run.h"
#include "smartio/io.h"

#define HANDLES 4
#define FIRST_ID 4
#define IDS 3
#define PAGE 4096u
#define ONES 0xffffffffu
#define TAGS (1u << 12)

struct handle {
	sci_local_segment_t segment; /* NULL: none */
	sci_map_t map;		     /* NULL: none */
	volatile uint32_t *at;
	uint32_t tag; /* of the segment; 0: not seen yet */
	bool mine;
};

struct state {
	sci_desc_t sd;
	struct handle handle[HANDLES];
};

static uint32_t last_tag;	 /* of the whole cluster */
static bool left_in_order[TAGS]; /* by tag: its creator has released it */

static struct handle *pick(struct state *s, bool used)
{
	struct handle *h = &s->handle[sim_pick(HANDLES)];

	return !!h->segment == used ? h : NULL;
}

static void make(struct state *s)
{
	unsigned id = FIRST_ID + (unsigned)sim_pick(IDS);
	struct handle *h = pick(s, false);
	sci_error_t e;

	if (!h)
		return;
	SIM_CALL(SCICreateSegment, (s->sd, &h->segment, id, PAGE, NULL, NULL, 0, &e), &e,
		 SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		h->segment = NULL;
		return;
	}
	h->map = NULL;
	h->mine = true;
	h->tag = 0xa0000000u | sim_node(sim_self()->host) << 20 | (++last_tag & (TAGS - 1));
	left_in_order[last_tag & (TAGS - 1)] = false;
	sim_call("SCIMapLocalSegment", 0);
	h->at = SCIMapLocalSegment(h->segment, &h->map, 0, PAGE, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_OK) != SCI_ERR_OK) {
		h->map = NULL;
		return;
	}
	sio_write32(h->at, h->tag);
	SCIFlush(NULL, 0);
	SIM_CALL(SCIShareSegment, (h->segment, 0, &e), &e);
	SIM_CALL(SCIPrepareSegment, (h->segment, 0, 0, &e), &e);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (h->segment, 0, 0, &e), &e);
}

static void attach(struct state *s)
{
	unsigned id = FIRST_ID + (unsigned)sim_pick(IDS);
	struct handle *h = pick(s, false);
	sci_error_t e;

	if (!h)
		return;
	*h = (struct handle){0};
	SIM_CALL(SCIAttachLocalSegment, (s->sd, &h->segment, id, NULL, NULL, NULL, 0, &e), &e,
		 SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_ACCESS);
	if (e != SCI_ERR_OK)
		h->segment = NULL;
}

/*
 * The segment reads as ones: its creator was killed, or this host's smartiod has ended. A creator
 * that released it in order is no reason, except where smartiod is restarted, because the memory
 * cannot be taken over then.
 */
static void expect_lost(struct handle *h)
{
	sci_error_t e;

	if (h->mine)
		return;
	SIM_CALL(SCIPrepareSegment, (h->segment, 0, 0, &e), &e, SCI_ERR_NOT_CONNECTED);
	if (e == SCI_ERR_NOT_CONNECTED && !sim_outliving && h->tag &&
	    left_in_order[h->tag & (TAGS - 1)])
		sim_fail("memory", "%s: the segment of tag %#x is lost; who made it left in order",
			 sim_self()->name, h->tag);
}

static void look(struct handle *h)
{
	uint32_t tag;

	if (!h->map)
		return;
	tag = sio_read32(h->at);
	if (tag == ONES)
		expect_lost(h);
	if (tag == 0 || tag == ONES)
		return;
	if (h->tag == 0)
		h->tag = tag;
	if (tag != h->tag || (tag >> 20 & 0xff) != sim_node(sim_self()->host))
		sim_fail("memory", "%s: a shared segment begins with %#x, was %#x",
			 sim_self()->name, tag, h->tag);
}

static void map(struct handle *h)
{
	sci_error_t e;

	if (h->map)
		return;
	sim_call("SCIMapLocalSegment", 0);
	h->at = SCIMapLocalSegment(h->segment, &h->map, 0, PAGE, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) != SCI_ERR_OK)
		h->map = NULL;
}

static void unmap(struct handle *h)
{
	sci_error_t e;

	look(h);
	if (h->map)
		SIM_CALL(SCIUnmapSegment, (h->map, 0, &e), &e);
	h->map = NULL;
}

static void release_handle(struct handle *h, bool force)
{
	sci_error_t e;

	unmap(h);
	SIM_END(SCIRemoveSegment, (h->segment, force ? SCI_FLAG_FORCE_REMOVE : 0, &e), &e,
		SCI_ERR_BUSY);
	if (e == SCI_ERR_OK && h->mine)
		left_in_order[h->tag & (TAGS - 1)] = true;
	if (e == SCI_ERR_OK || e == SCI_ERR_NO_LINK_ACCESS)
		h->segment = NULL;
	else if (force &&
		 e != SCI_ERR_NOSPC) /* the daemon had no memory to take over the creator's */
		sim_fail("states", "%s: forced removal gives %s", sim_self()->name,
			 SCIGetErrorString(e));
}

static void act(void *state)
{
	struct state *s = state;
	unsigned which = (unsigned)sim_pick(8);
	struct handle *h;

	if (which == 0) {
		make(s);
		return;
	}
	if (which < 3) {
		attach(s);
		return;
	}
	h = pick(s, true);
	if (!h)
		return;
	if (which < 5)
		map(h);
	else if (which < 7)
		look(h);
	else
		release_handle(h, sim_pick(2));
}

static void tear_down(void *state)
{
	struct state *s = state;

	/* Twice, because the daemon may have had no memory the first time. */
	for (unsigned i = 0; i < 2 * HANDLES; i++)
		if (s->handle[i % HANDLES].segment)
			release_handle(&s->handle[i % HANDLES], true);
}

static void share_main(struct sim_proc *p)
{
	static const struct sim_life life = {.acts = 200, .act = act, .tear_down = tear_down};
	struct state s = {0};

	sim_live_and_exit(p, &life, &s, &s.sd);
}

const struct sim_workload sim_work_share = {.name = "share", .weight = 1, .main = share_main};
