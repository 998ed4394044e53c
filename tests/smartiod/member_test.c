/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory in a BAR as a member of multicast groups, by the daemons of lender and borrower: cut at
 * every event, refused by the port at every request, and beside another writer of the registers.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "memory_world.h"

/* ---- a program ---- */

static struct sio_msg_group_join join_of(uint32_t bar, uint32_t group, unsigned page)
{
	return (struct sio_msg_group_join){.handle = sio_to_le32(bar),
					   .group = sio_to_le32(group),
					   .offset = sio_to_le64(page * PAGE),
					   .bytes = sio_to_le64(PAGE)};
}

/* Return: as call_*(). */
static int taken(const struct world_message *m, uint32_t *ret_map)
{
	*ret_map = m && !m->error ? sio_from_le32(((const struct sio_rep_group_join *)m->data)->map)
				  : 0;
	return m ? (int)m->error : -1;
}

static int join(struct world *w, struct world_client *c, uint32_t bar, uint32_t group,
		unsigned page, uint32_t *ret_map)
{
	struct sio_msg_group_join msg = join_of(bar, group, page);

	return taken(world_call(w, c, SIO_MSG_GROUP_JOIN, &msg, sizeof(msg)), ret_map);
}

/* Whoever loses the lender meanwhile has left. */
static int leave(struct world *w, struct world_client *c, uint32_t map)
{
	int rc = call_handle(w, c, SIO_MSG_GROUP_LEAVE, map, 0);

	assert_int_not_equal(rc, ENETDOWN);
	return rc;
}

/* Calls may fail: somebody may be dead. Return: how many members it had. */
static unsigned play(struct world *w, struct world_client *c)
{
	uint32_t member[5];
	struct memory_holder h;
	unsigned n = 0;

	memory_hold(w, c, &h);
	n += join(w, c, h.memory, 3, 0, &member[0]) == 0;
	n += join(w, c, h.memory, 4, 1, &member[1]) == 0;
	n += join(w, c, h.memory, 4, 2, &member[2]) == 0; /* the second of a group */
	leave(w, c, member[0]);
	call_handle(w, c, SIO_MSG_SEG_UNMAP, member[1], 0); /* less tidy */
	n += join(w, c, h.memory, 4, 0, &member[3]) == 0;
	call_handle(w, c, SIO_MSG_SEG_UNMAP, h.map, 0);
	leave(w, c, member[3]);
	leave(w, c, member[3]);
	call_bar_map(w, c, h.bar, 0, &h.map, (uint32_t[4]){0});
	n += join(w, c, h.memory, 5, 0, &member[4]) == 0; /* which is left behind */
	return n;
}

/* ---- cuts ---- */

static void cut_at_every_event(void **state)
{
	(void)state;
	for (enum memory_cut cut = MEMORY_KILL; cut < MEMORY_CUTS; cut++)
		memory_cut_everywhere(cut, play, 4);
}

static void port_refuses_every_request(void **state)
{
	(void)state;
	memory_refuse_everywhere(play);
}

/* ---- the end of a member ---- */

/* When it is answered nothing is written there; and it can be asked for until then. */
static void leaving_waits_for_the_port(void **state)
{
	(void)state;
	for (unsigned host = 0; host < 2; host++) {
		struct sio_msg_handle msg = {.flags = sio_to_le32(0)};
		uint32_t id, member;
		struct memory_holder h;
		struct memory_run r;

		memory_start(&r, host, 0);
		memory_hold(r.w, r.c, &h);
		assert_int_equal(join(r.w, r.c, h.memory, 3, 0, &member), 0);
		assert_int_equal(world_count(r.w, 0, SIO_KIND_MEM), 1);
		r.w->fail_at = r.w->requests + 1;
		assert_int_not_equal(leave(r.w, r.c, member), 0);
		assert_int_equal(world_count(r.w, 0, SIO_KIND_MEM), 1);
		r.w->fail_at = 0;
		r.w->late = SIO_OP_FREE;
		msg.handle = sio_to_le32(member);
		id = world_send(r.w, r.c, SIO_MSG_GROUP_LEAVE, &msg, sizeof(msg));
		world_run(r.w);
		assert_null(world_reply(r.c, id));
		r.w->late = 0;
		world_run(r.w);
		assert_int_equal(world_reply(r.c, id)->error, 0);
		assert_int_equal(world_count(r.w, 0, SIO_KIND_MEM), 0);
		memory_end(&r);
	}
}

/* Two at a time, of which neither sees the other: one is a member. */
static void a_group_has_one_member_of_a_borrow(void **state)
{
	(void)state;
	for (unsigned host = 0; host < 2; host++) {
		uint32_t id[2], member;
		unsigned n[2] = {0, 0};
		struct memory_holder h;
		struct memory_run r;

		memory_start(&r, host, 0);
		memory_hold(r.w, r.c, &h);
		r.w->late = SIO_OP_MCAST;
		for (unsigned i = 0; i < 2; i++) {
			struct sio_msg_group_join msg = join_of(h.memory, 3, i);

			id[i] = world_send(r.w, r.c, SIO_MSG_GROUP_JOIN, &msg, sizeof(msg));
		}
		world_run(r.w);
		r.w->late = 0;
		world_run(r.w);
		for (unsigned i = 0; i < 2; i++) {
			int rc = taken(world_reply(r.c, id[i]), &member);

			n[0] += rc == 0;
			n[1] += rc == EEXIST;
		}
		assert_true(n[0] == 1 && n[1] == 1);
		assert_int_equal(world_count(r.w, 0, SIO_KIND_MEM), 1);
		memory_end(&r);
	}
}

/* ---- another writer ---- */

/*
 * The holder releases the registers while its memory becomes a member: it is one, and keeps them,
 * or is none, and the next has them.
 */
static void memory_has_one_writer(void **state)
{
	(void)state;
	for (unsigned host = 0; host < 2; host++) {
		struct sio_msg_group_join msg;
		uint32_t id, member, access[4];
		struct world_client *other;
		struct memory_holder h, next;
		struct memory_run r;
		bool joined;

		memory_start(&r, host, 0);
		other = world_client(r.w, 2, SIO_CLIENT_LIBRARY);
		memory_hold(r.w, r.c, &h);
		r.w->late = SIO_OP_BAR;
		msg = join_of(h.memory, 3, 0);
		id = world_send(r.w, r.c, SIO_MSG_GROUP_JOIN, &msg, sizeof(msg));
		world_run(r.w);
		assert_int_equal(call_handle(r.w, r.c, SIO_MSG_SEG_UNMAP, h.map, 0), 0);
		r.w->late = 0;
		world_run(r.w);
		joined = taken(world_reply(r.c, id), &member) == 0;
		assert_int_equal(call_borrow(r.w, other, FDID, 0, &next.b), 0);
		call_dev_seg_connect(r.w, other, next.b.handle, 0, SCI_MEMTYPE_BAR, &next.bar,
				     NULL);
		assert_int_equal(call_bar_map(r.w, other, next.bar, 0, &next.map, access), 0);
		assert_int_equal(access[0], joined ? SIO_ACCESS_READ : BOTH);
		memory_end(&r);
	}
}

/* The same of a map, which is under way while its program unmaps the registers. */
static void mapped_memory_has_one_writer(void **state)
{
	(void)state;
	for (unsigned order = 0; order < 4; order++) {
		const bool meanwhile = order & 1; /* somebody else takes the registers */
		struct sio_msg_seg_map msg = {.bytes = sio_to_le64(PAGE)};
		struct world_client *other;
		const struct world_message *m;
		struct memory_holder h, next;
		uint32_t id, access[4];
		struct memory_run r;

		memory_start(&r, order >> 1, 0);
		other = world_client(r.w, 2, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_borrow(r.w, other, FDID, 0, &next.b), 0);
		call_dev_seg_connect(r.w, other, next.b.handle, 0, SCI_MEMTYPE_BAR, &next.bar,
				     NULL);
		memory_hold(r.w, r.c, &h);
		r.w->late = SIO_OP_BAR;
		msg.handle = sio_to_le32(h.memory);
		id = world_send(r.w, r.c, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
		world_run(r.w);
		assert_int_equal(call_handle(r.w, r.c, SIO_MSG_SEG_UNMAP, h.map, 0), 0);
		if (meanwhile)
			world_send(r.w, other, SIO_MSG_SEG_MAP,
				   &(struct sio_msg_seg_map){.handle = sio_to_le32(next.bar),
							     .bytes = sio_to_le64(4 * PAGE)},
				   sizeof(msg));
		world_run(r.w);
		r.w->late = 0;
		world_run(r.w);
		m = world_reply(r.c, id);
		assert_non_null(m);
		assert_int_equal(m->error, meanwhile ? EACCES : 0);
		if (!meanwhile) {
			assert_int_equal(call_bar_map(r.w, other, next.bar, 0, &next.map, access),
					 0);
			assert_int_equal(access[0], SIO_ACCESS_READ);
		}
		memory_end(&r);
	}
}

/* A member is a segment of the lender with the group's number: the cluster's file may refuse it. */
static void rules_of_segments_are_those_of_members(void **state)
{
	static uint32_t twelve[] = {12};
	static struct sio_policy_person nobody[] = {{"nobody", 4242}};
	struct sio_policy_rule rule[] = {{.kind = SIO_POLICY_SEGMENTS,
					  .host = 4,
					  .first = 3,
					  .last = 3,
					  .has_nodes = true,
					  .node = twelve,
					  .n_nodes = 1},
					 {.kind = SIO_POLICY_SEGMENTS,
					  .host = 4,
					  .first = 4,
					  .last = 4,
					  .has_people = true,
					  .user = nobody,
					  .n_users = 1}};

	(void)state;
	for (unsigned host = 0; host < 3; host++) {
		const bool refused = host == 1; /* node 8; the lender's own are not asked */
		uint32_t map;
		struct memory_holder h;
		struct memory_run r;

		memory_start(&r, host, 0);
		r.w->topology->policy.rule = rule;
		r.w->topology->policy.n_rules = 2;
		memory_hold(r.w, r.c, &h);
		assert_int_equal(join(r.w, r.c, h.memory, 3, 0, &map), refused ? EACCES : 0);
		assert_int_equal(join(r.w, r.c, h.memory, 4, 1, &map), EACCES);
		assert_int_equal(join(r.w, r.c, h.memory, 5, 2, &map), 0);
		r.w->topology->policy.n_rules = 0;
		r.w->topology->policy.rule = NULL;
		memory_end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_at_every_event),
		cmocka_unit_test(port_refuses_every_request),
		cmocka_unit_test(leaving_waits_for_the_port),
		cmocka_unit_test(a_group_has_one_member_of_a_borrow),
		cmocka_unit_test(memory_has_one_writer),
		cmocka_unit_test(mapped_memory_has_one_writer),
		cmocka_unit_test(rules_of_segments_are_those_of_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
