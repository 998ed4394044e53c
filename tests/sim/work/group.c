/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that join fused multicast groups with a segment, and map whole groups. All write words
 * that identify the group, and none sees another word in a group.
 */
#include "work/groups.h"
#include "work/life.h"
#include "run/run.h"
#include "smartio/io.h"

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
	if (s->member[g])
		return;
	s->member[g] = sim_join(s->sd, g, BYTES);
	if (!s->member[g])
		return;
	sim_show_member(s->member[g]);
	s->member_at[g] = sim_map_member(s->member[g], BYTES, &s->member_map[g]);
}

static void leave(struct state *s, unsigned g)
{
	if (s->member[g])
		sim_leave(s->member[g], s->member_map[g]);
	s->member_map[g] = NULL;
	s->member[g] = NULL;
}

static void reach(struct state *s, unsigned g)
{
	if (!s->all[g])
		s->all[g] = sim_reach(s->sd, g, BYTES, 0, &s->all_map[g], &s->all_at[g]);
}

static void drop(struct state *s, unsigned g)
{
	if (s->all[g])
		sim_drop_group(s->all[g], s->all_map[g]);
	s->all_map[g] = NULL;
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

	sim_live_and_exit(p, &life, &s, &s.sd);
}

static bool fits(unsigned host)
{
	return sim_adapters(host) && !sim_exact_groups(host);
}

const struct sim_workload sim_work_group = {
	.name = "group", .weight = 1, .fits = fits, .main = group_main};
