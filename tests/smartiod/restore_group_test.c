/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of a real host over a restart of its daemon: who says that he had a member, or a
 * way to write to a group, has what the port's list has of it, and nothing else.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "restore_world.h"
#include "smartiod/segment/segment.h"

#define OTHER_GROUP (GROUP + 1)

/* The test says itself what two programs had, to a daemon that was started again. */
static void come_back(struct fixture *f)
{
	struct world_client *const both[] = {f->p.a.c, f->p.b.c};

	library_gone(both[0]);
	library_gone(both[1]);
	f->w->before_step = NULL;
	restart(f->w);
	for (unsigned i = 0; i < 2; i++) {
		world_reconnect(f->w, both[i]);
		assert_int_equal(say_hello(f->w, both[i], both[i]->owner, SIO_CLIENT_LIBRARY), 0);
	}
}

/* Both have said all that belongs before the end of @step; the third one has nothing. */
static void end_step(struct fixture *f, uint32_t step)
{
	f->w->before_step = library_pump;
	say_step(f->w, f->p.a.c, step);
	say_step(f->w, f->p.b.c, step);
}

/* Memory is a member or none, and of one group. */
static void members_are_what_the_port_lists(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct sio_msg_restore member, plain, lie;
	struct sio_msg_seg_create *r = (void *)lie.request;
	uint32_t handle, segment;

	OK(call_seg_create(f->w, p->a.c, GROUP, 8192, SCI_FLAG_BROADCAST, &handle, NULL));
	OK(call_seg_adapter(f->w, p->a.c, SIO_MSG_SEG_PREPARE, handle, 0, 0));
	OK(call_seg_adapter(f->w, p->a.c, SIO_MSG_SEG_AVAILABLE, handle, 0, 0));
	member = entry_of(p->a.c, SIO_MSG_SEG_CREATE);
	OK(call_seg_create(f->w, p->b.c, OTHER_GROUP, 8192, 0, &segment, NULL));
	plain = entry_of(p->b.c, SIO_MSG_SEG_CREATE);
	come_back(f);
	lie = member;
	r->flags = sio_to_le32(0);
	assert_int_equal(say(f->w, p->a.c, &lie), ENOENT);
	assert_int_equal(say(f->w, p->a.c, &member), 0);
	assert_int_not_equal(say(f->w, p->a.c, &member), 0);
	lie = plain;
	r->flags = sio_to_le32(SCI_FLAG_BROADCAST);
	assert_int_equal(say(f->w, p->b.c, &lie), ENOENT);
	assert_int_equal(say(f->w, p->b.c, &plain), 0);
	for (uint32_t i = 1; i <= SIO_RESTORE_STEPS; i++)
		end_step(f, i);
	/* This host has one member of the group, which is still available. */
	assert_int_equal(
		call_seg_create(f->w, p->b.c, GROUP, 8192, SCI_FLAG_BROADCAST, &segment, NULL),
		EEXIST);
	assert_int_equal(f->w->host[0].daemon->member[GROUP]->published, 1);
	OK(call_seg_adapter(f->w, p->a.c, SIO_MSG_SEG_UNAVAILABLE, handle, 0, 0));
	OK(call_seg_remove(f->w, p->a.c, handle));
	OK(call_seg_create(f->w, p->b.c, GROUP, 8192, SCI_FLAG_BROADCAST, &segment, NULL));
}

/* Nobody has another's way to write to a group, nor writes to one that he was not connected to. */
static void ways_to_a_group_are_theirs_who_made_them(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct sio_msg_restore truth, lie;
	struct sio_msg_seg_connect *r = (void *)lie.request;
	uint32_t handle, map;

	OK(call_group_connect(f->w, p->a.c, GROUP, &handle));
	OK(call_group_map(f->w, p->a.c, handle, &map));
	truth = entry_of(p->a.c, SIO_MSG_SEG_CONNECT);
	come_back(f);
	end_step(f, 1);
	end_step(f, 2);
	assert_int_equal(say(f->w, p->b.c, &truth), ENOENT);
	lie = truth;
	r->segment_id = sio_to_le32(OTHER_GROUP);
	assert_int_equal(say(f->w, p->a.c, &lie), ENOENT);
	lie = truth;
	r->adapter = sio_to_le32(1);
	assert_int_equal(say(f->w, p->a.c, &lie), ENOENT);
	assert_int_equal(say(f->w, p->a.c, &truth), 0);
	end_step(f, SIO_RESTORE_STEPS);
	OK(call_group_map(f->w, p->a.c, handle, &map));
	OK(call_handle(f->w, p->a.c, SIO_MSG_SEG_UNMAP, map, 0));
	OK(call_handle(f->w, p->a.c, SIO_MSG_SEG_DISCONNECT, handle, 0));
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
}

/* What nobody tells of leaves the group. */
static void what_nobody_had_goes(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	uint32_t handle;

	OK(call_seg_create(f->w, p->a.c, GROUP, 8192, SCI_FLAG_BROADCAST, &handle, NULL));
	OK(call_group_connect(f->w, p->a.c, GROUP, &handle));
	come_back(f);
	for (uint32_t i = 1; i <= SIO_RESTORE_STEPS; i++)
		end_step(f, i);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_null(f->w->host[0].daemon->member[GROUP]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(members_are_what_the_port_lists),
		TEST(ways_to_a_group_are_theirs_who_made_them),
		TEST(what_nobody_had_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
