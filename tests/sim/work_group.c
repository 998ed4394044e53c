/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that join fused multicast groups with a segment, and reach whole groups: what one writes is seen
 * by the members as one of the words that anybody writes.
 */
#include "life.h"
#include "run.h"
#include "smartio/io.h"
#include "tables.h"
#include "dis/dis_types.h"

#define GROUPS 3
#define BYTES 4096u
#define ONES 0xffffffffu

struct state {
	sci_desc_t sd;
	sci_local_segment_t member[GROUPS];
	sci_map_t member_map[GROUPS];
	volatile uint32_t *member_at[GROUPS];
	sci_remote_segment_t all[GROUPS];
	sci_map_t all_map[GROUPS];
	volatile uint32_t *all_at[GROUPS];
};

static void join(struct state *s, unsigned g)
{
	sci_error_t e;

	if (s->member[g])
		return;
	SIM_CALL(SCICreateSegment,
		 (s->sd, &s->member[g], g, BYTES, NULL, NULL, SCI_FLAG_BROADCAST, &e), &e,
		 SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		s->member[g] = NULL;
		return;
	}
	s->member_map[g] = NULL;
	SIM_CALL(SCIPrepareSegment, (s->member[g], 0, SCI_FLAG_BROADCAST, &e), &e);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (s->member[g], 0, 0, &e), &e);
	sim_call("SCIMapLocalSegment", 0);
	s->member_at[g] =
		SCIMapLocalSegment(s->member[g], &s->member_map[g], 0, BYTES, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_OK) != SCI_ERR_OK)
		s->member_map[g] = NULL;
}

static void leave(struct state *s, unsigned g)
{
	sci_error_t e;

	if (!s->member[g])
		return;
	if (s->member_map[g])
		SIM_CALL(SCIUnmapSegment, (s->member_map[g], 0, &e), &e);
	s->member_map[g] = NULL;
	SIM_CALL(SCIRemoveSegment, (s->member[g], 0, &e), &e);
	s->member[g] = NULL;
}

static void reach(struct state *s, unsigned g)
{
	sci_error_t e;

	if (s->all[g])
		return;
	SIM_CALL(SCIConnectSegment,
		 (s->sd, &s->all[g], DIS_BROADCAST_NODEID_GROUP_ALL, g, 0, NULL, NULL,
		  SCI_INFINITE_TIMEOUT, SCI_FLAG_BROADCAST, &e),
		 &e, SCI_ERR_NO_SUCH_SEGMENT);
	if (e != SCI_ERR_OK) {
		s->all[g] = NULL;
		return;
	}
	sim_call("SCIMapRemoteSegment", 0);
	s->all_at[g] = SCIMapRemoteSegment(s->all[g], &s->all_map[g], 0, BYTES, NULL,
					   SCI_FLAG_BROADCAST, &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) != SCI_ERR_OK)
		s->all_map[g] = NULL;
}

static void drop(struct state *s, unsigned g)
{
	sci_error_t e;

	if (!s->all[g])
		return;
	if (s->all_map[g])
		SIM_CALL(SCIUnmapSegment, (s->all_map[g], 0, &e), &e);
	s->all_map[g] = NULL;
	SIM_CALL(SCIDisconnectSegment, (s->all[g], 0, &e), &e);
	s->all[g] = NULL;
}

static void look(volatile uint32_t *at, unsigned g)
{
	uint32_t v = sio_read32(at + 16 * sim_pick(BYTES / 64));

	if (v != 0 && v != ONES && v >> 8 != (0xe00000u | g))
		sim_fail("memory", "%s: %#x in group %u", sim_self()->name, v, g);
}

static void act(void *state)
{
	struct state *s = state;
	unsigned g = (unsigned)sim_pick(GROUPS);

	switch (sim_pick(10)) {
	case 0:
	case 1:
		join(s, g);
		break;
	case 2:
		if (sim_pick(3) == 0)
			leave(s, g);
		break;
	case 3:
	case 4:
		reach(s, g);
		break;
	case 5:
		if (sim_pick(3) == 0)
			drop(s, g);
		break;
	default:
		if (s->member_map[g])
			look(s->member_at[g], g);
		if (!s->all_map[g])
			break;
		look(s->all_at[g], g);
		sio_write32(s->all_at[g] + 16 * sim_pick(BYTES / 64),
			    0xe0000000u | g << 8 | sim_node(sim_self()->host));
		SCIFlush(NULL, 0);
	}
}

static void tear_down(void *state)
{
	for (unsigned g = 0; g < GROUPS; g++) {
		drop(state, g);
		leave(state, g);
	}
}

static void group_main(struct sim_proc *p)
{
	struct state s = {0};
	static const struct sim_life life = {.acts = 200, .act = act, .tear_down = tear_down};

	if (sim_live(&life, &s, &s.sd))
		sim_exit(p);
}

static bool fits(unsigned host)
{
	return sim_adapters(host) && !sim_exact_groups(host);
}

const struct sim_workload sim_work_group = {.name = "group", .weight = 1, .fits = fits, .main = group_main};
