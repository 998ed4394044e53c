/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BAR pages that another device reaches, and a smartiod that is started again: it knows whose they
 * are, and when to cut them; whoever does not claim them has them no more.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "bar_target_world.h"

static void a_restart_changes_nothing(void **state)
{
	struct fixture *f = *state;
	uint32_t memory, bells, again, map_of_memory;
	struct sio_msg_seg_map look = {.handle = sio_to_le32(f->cmb), .bytes = sio_to_le64(PAGE)};
	const struct world_message *m;

	assert_int_equal(map(f, f->cmb, 0, PAGE, &memory), 0);
	assert_int_equal(map(f, f->regs, 0x1000, PAGE, &bells), 0);
	m = world_call(f->w, f->c, SIO_MSG_SEG_MAP, &look, sizeof(look));
	assert_int_equal(m->error, 0);
	map_of_memory = sio_from_le32(((const struct sio_rep_seg_map *)m->data)->map);
	for (unsigned i = 0; i < 3; i++) {
		restart(f);
		assert_int_equal(library_lost(), 0);
		assert_int_equal(reach(f, false), 2);
		assert_int_equal(views(f, MEMORY), 1);
		assert_int_equal(views(f, 0x1000), 1);
	}
	/* Who has it, and what for, is known: it goes with the last of both. */
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, map_of_memory, 0), 0);
	assert_int_equal(views(f, MEMORY), 1);
	assert_int_equal(unmap(f, memory), 0);
	assert_int_equal(views(f, MEMORY), 0);
	reset_target(f);
	assert_int_equal(reach(f, true), 1);
	restart(f); /* it stays cut, and its handle what it was */
	assert_int_equal(library_lost(), 0);
	assert_int_equal(reach(f, true), 1);
	assert_int_equal(unmap(f, bells), 0);
	assert_int_equal(reach(f, true), 0);
	assert_int_equal(lost(f, f->regs) + lost(f, f->cmb), 0);
	assert_int_equal(map(f, f->cmb, 0, PAGE, &again), 0);
	assert_int_equal(reach(f, false), 1);
}

/* Killed at each step of a reset: it was, and nothing leads to the doorbells; or it was not. */
static bool killed_at(struct fixture *f, unsigned steps, bool ignorant)
{
	struct sio_msg_handle word = {.handle = sio_to_le32(f->of.handle)};
	bool more = true, done;
	uint64_t generation = f->target.generation;
	uint32_t bells;

	f->target.ignorant = ignorant;
	assert_int_equal(map(f, f->regs, 0x1000, PAGE, &bells), 0);
	world_send(f->w, f->c, SIO_MSG_DEV_RESET, &word, sizeof(word));
	for (unsigned i = 0; more && i < steps; i++)
		more = world_step(f->w);
	world_stop(f->w, 0);
	restart(f);
	done = f->target.generation > generation;
	assert_int_equal(reach(f, done), 1);
	assert_int_equal(reach(f, !done), 0);
	assert_int_equal(views(f, 0x1000), !done);
	assert_int_equal(unmap(f, bells), 0);
	return more;
}

static void killed_at_each_step_of_a_reset(void **state)
{
	bool more = true;
	void *fixture;

	(void)state;
	for (unsigned steps = 0; more; steps++)
		for (unsigned ignorant = 0; ignorant < 2; ignorant++) {
			assert_true(steps < 100);
			assert_int_equal(setup(&fixture), 0);
			more = killed_at(fixture, steps, ignorant);
			assert_int_equal(teardown(&fixture), 0);
		}
}

/* It is stopped, and has not said a word to the daemon that resets the target for somebody else. */
static void who_is_not_back_loses_doorbells(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_dev_admin_reset reset = {.fdid = sio_to_le32(TARGET),
						.force = sio_to_le32(1)};
	struct world_client *admin;
	uint32_t bells, memory;

	f->target.ignorant = true;
	assert_int_equal(map(f, f->regs, 0x1000, PAGE, &bells), 0);
	assert_int_equal(map(f, f->cmb, 0, PAGE, &memory), 0);
	f->w->before_step = NULL;
	library_gone(f->c);
	f->w->before_step = library_pump;
	restart(f);
	world_pass(f->w, SMARTIOD_GRACE_NS);
	assert_int_equal(reach(f, false), 2);
	admin = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	assert_int_equal(
		world_call(f->w, admin, SIO_MSG_DEV_ADMIN_RESET, &reset, sizeof(reset))->error, 0);
	assert_int_equal(reach(f, true), 1);
	assert_int_equal(views(f, 0x1000), 0);
	fake_device_resets(f->w, false);
	world_kill(f->w, f->c);
	world_run(f->w);
	assert_int_equal(reach(f, false), 0);
}

/* Its answer never came: nobody claims the pages, so nothing leads there any more. */
static void what_nobody_claims_ends(void **state)
{
	struct fixture *f = *state;
	uint32_t dma;

	library_lose_answer(f->c);
	f->w->late = SIO_OP_DMAMAP;
	assert_int_equal(map(f, f->cmb, 0, PAGE, &dma), -1);
	assert_int_equal(reach(f, false), 1);
	f->w->late = 0;
	restart(f);
	/* The library asked again: that one is there, and the first one went. */
	assert_int_equal(reach(f, false), 1);
	assert_int_equal(views(f, MEMORY), 1);
}

/* It dies when nobody is there to cut anything, and not every port does so by itself. */
static void who_dies_without_a_daemon(struct fixture *f)
{
	uint32_t dma;

	assert_int_equal(map(f, f->cmb, 0, PAGE, &dma), 0);
	f->w->before_step = NULL;
	library_gone(f->c);
	f->w->before_step = library_pump;
	world_stop(f->w, 0);
	world_kill(f->w, f->c);
	f->drive.no_reset = f->target.no_reset = true; /* by which all would go at once */
	restart(f);
	world_run(f->w);
	assert_int_equal(reach(f, false), 0);
	assert_int_equal(views(f, MEMORY), 0);
}

static void of_who_dies_without_a_daemon_all_is_cut(void **state)
{
	who_dies_without_a_daemon(*state);
}

static void nor_does_a_port_that_follows_none_keep_it(void **state)
{
	struct fixture *f = *state;

	f->target.follows_none = true;
	who_dies_without_a_daemon(f);
}

/* ---- what a program may say of what it had ---- */

/* The port's number of the only mapping. */
static uint64_t port_map(const struct fixture *f)
{
	for (const struct world_res *r = f->w->res; r; r = r->next)
		if (r->kind == SIO_KIND_DMAMAP)
			return r->id;
	return 0;
}

static struct sio_msg_restore entry_of(struct fixture *f, uint32_t type, unsigned nth)
{
	struct sio_msg_restore m = {.type = 0};
	uint64_t at = 0;

	for (unsigned step = 1; step <= SIO_RESTORE_STEPS; step++, at = 0)
		while (library_next(f->c, step, &at, &m))
			if (sio_from_le32(m.type) == type && nth-- == 0)
				return m;
	fail_msg("it has no %u", type);
	return m;
}

/* By its own mouth, up to the mapping. */
static void come_back(struct fixture *f)
{
	struct sio_msg_restore m;

	speak_to_next(f->w, f->c, 0);
	for (unsigned i = 0; i < 2; i++) {
		m = entry_of(f, SIO_MSG_DEV_BORROW, i);
		assert_int_equal(say(f->w, f->c, &m), 0);
	}
	say_step(f->w, f->c, 1);
	say_step(f->w, f->c, 2);
	for (unsigned i = 0; i < 2; i++) {
		m = entry_of(f, SIO_MSG_DEV_SEG_CONNECT, i);
		assert_int_equal(say(f->w, f->c, &m), 0);
	}
	m = entry_of(f, SIO_MSG_SEG_MAP, 0);
	assert_int_equal(say(f->w, f->c, &m), 0);
}

static struct sio_msg_dma_map *asked(struct sio_msg_restore *m)
{
	return (void *)m->request;
}

/*
 * A mapping whose view the daemon does not know would not be cut by a reset. So who names other
 * pages than those that are mapped has a mapping that is cut.
 */
static void of_other_pages_it_is_cut(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_restore m;
	uint32_t bells;

	assert_int_equal(map(f, f->regs, 0x1000, PAGE, &bells), 0);
	m = entry_of(f, SIO_MSG_DMA_MAP, 0);
	come_back(f);
	asked(&m)->segment = sio_to_le32(f->cmb);
	assert_int_equal(say(f->w, f->c, &m), 0);
	assert_int_equal(reach(f, true), 1);
	assert_int_equal(say(f->w, f->c, &m), ENOENT); /* once only */
	say_step(f->w, f->c, 3);
	assert_int_equal(views(f, 0x1000), 1); /* its own map's */
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, f->regs_map, 0), 0);
	assert_int_equal(views(f, 0x1000), 0);
	library_gone(f->c);
	f->w->before_step = library_pump;
}

static void of_memory_it_is_cut(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_restore m;
	uint32_t bells, segment;

	assert_int_equal(call_seg_create(f->w, f->c, 5, PAGE, 0, &segment, NULL), 0);
	assert_int_equal(map(f, f->regs, 0x1000, PAGE, &bells), 0);
	m = entry_of(f, SIO_MSG_DMA_MAP, 0);
	come_back(f);
	asked(&m)->segment = sio_to_le32(segment);
	asked(&m)->remote = sio_to_le32(0);
	assert_int_equal(say(f->w, f->c, &m), ENOENT);
	assert_int_equal(reach(f, true), 1);
	say_step(f->w, f->c, 3);
	library_gone(f->c);
	f->w->before_step = library_pump;
}

/* Memory that it names as a BAR is neither, and stays: a queue may lie there. */
static void memory_is_no_bar(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_restore m;
	uint32_t segment, dma;
	uint64_t id;

	assert_int_equal(call_seg_create(f->w, f->c, 5, PAGE, 0, &segment, NULL), 0);
	assert_int_equal(call_dma_map(f->w, f->c, f->on.handle, segment, 0, 0, PAGE, &dma), 0);
	id = port_map(f);
	m = entry_of(f, SIO_MSG_DMA_MAP, 0);
	come_back(f);
	asked(&m)->segment = sio_to_le32(f->cmb);
	asked(&m)->remote = sio_to_le32(1);
	assert_int_equal(say(f->w, f->c, &m), ENOENT);
	assert_false(world_res_find(f->w, 0, SIO_KIND_DMAMAP, id)->cut);
	say_step(f->w, f->c, 3);
	assert_non_null(world_res_find(f->w, 0, SIO_KIND_DMAMAP, id));
	library_gone(f->c);
	f->w->before_step = library_pump;
}

/* Its descriptor could not be opened again, and so the view is not its any more. */
static void without_its_view_it_is_lost(void **state)
{
	struct fixture *f = *state;
	uint32_t dma;

	assert_int_equal(map(f, f->cmb, 0, PAGE, &dma), 0);
	f->w->no_fds_for = SIO_OP_REOPEN;
	restart(f);
	f->w->no_fds_for = 0;
	assert_int_equal(reach(f, false), 0);
	assert_int_equal(reach(f, true), 1);
	assert_int_equal(views(f, MEMORY), 0);
	assert_int_equal(lost(f, f->cmb), 1);
	assert_true(library_lost() > 0);
}

/* ---- members of multicast groups ---- */

static unsigned members(const struct fixture *f)
{
	return world_count(f->w, 0, SIO_KIND_MEM);
}

static void a_member_of_a_group_goes_on(void **state)
{
	struct fixture *f = *state;
	uint32_t member, second;

	assert_int_equal(call_group_join(f->w, f->c, f->cmb, 3, PAGE, &member), 0);
	for (unsigned i = 0; i < 3; i++) {
		restart(f);
		assert_int_equal(library_lost(), 0);
		assert_int_equal(members(f), 1);
		assert_int_equal(views(f, MEMORY), 1);
	}
	assert_int_equal(call_group_join(f->w, f->c, f->cmb, 3, 0, &second), EEXIST);
	assert_int_equal(call_group_leave(f->w, f->c, member), 0);
	assert_int_equal(members(f), 0);
	assert_int_equal(views(f, MEMORY), 0);
	restart(f); /* what has left is not told of */
	assert_int_equal(library_lost(), 0);
	assert_int_equal(call_group_join(f->w, f->c, f->cmb, 3, 0, &second), 0);
}

/* What a class has that nobody knows may be memory, for the owner of its registers. */
static void of_a_strange_device_too(void **state)
{
	struct fixture *f = *state;
	uint32_t map, member;

	assert_int_equal(call_group_join(f->w, f->c, f->cmb, 3, 0, &member), EACCES);
	assert_int_equal(call_seg_map(f->w, f->c, f->cmb, 0, PAGE, &map), 0);
	assert_int_equal(call_group_join(f->w, f->c, f->cmb, 3, 0, &member), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, map, 0), 0);
	restart(f);
	assert_int_equal(library_lost(), 0);
	assert_int_equal(members(f), 1);
	/* As long as it is a member the registers are nobody else's. */
	assert_int_equal(call_group_join(f->w, f->c, f->cmb, 4, 0, &map), 0);
	assert_int_equal(call_group_leave(f->w, f->c, member), 0);
	assert_int_equal(call_group_leave(f->w, f->c, map), 0);
	assert_int_equal(call_group_join(f->w, f->c, f->cmb, 3, 0, &member), EACCES);
	assert_int_equal(members(f), 0);
}

/* Its program does not come back; or it had left, and nobody heard of that. */
static void what_nobody_had_is_no_member(void **state)
{
	struct fixture *f = *state;
	uint32_t member;

	assert_int_equal(call_group_join(f->w, f->c, f->cmb, 3, 0, &member), 0);
	f->w->before_step = NULL;
	library_gone(f->c);
	f->w->before_step = library_pump;
	restart(f);
	assert_int_equal(members(f), 1);
	world_kill(f->w, f->c);
	world_run(f->w);
	assert_int_equal(members(f), 0);
	assert_int_equal(views(f, MEMORY), 0);
}

/* A program cannot have what is in another group, or in another view, for a member; nor twice. */
static void say_members(struct fixture *f, const struct sio_msg_restore *truth)
{
	struct sio_msg_restore lie = *truth;
	struct sio_msg_group_join *r = (void *)lie.request;

	r->group = sio_to_le32(4);
	assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	lie = *truth;
	lie.claim[0].view = sio_to_le64(sio_from_le64(truth->claim[0].view) + 1);
	assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	lie = *truth;
	lie.claim[0].grant = truth->claim[0].view;
	assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	assert_int_equal(say(f->w, f->c, truth), 0);
	assert_int_not_equal(say(f->w, f->c, truth), 0);
}

static void members_are_what_the_port_lists(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_restore m;
	uint32_t member;

	assert_int_equal(call_group_join(f->w, f->c, f->cmb, 3, 0, &member), 0);
	speak_to_next(f->w, f->c, 0);
	for (unsigned i = 1; i <= SIO_RESTORE_STEPS; i++) {
		for (uint64_t at = 0; library_next(f->c, i, &at, &m);)
			if (sio_from_le32(m.type) == SIO_MSG_GROUP_JOIN)
				say_members(f, &m);
			else
				assert_int_equal(say(f->w, f->c, &m), 0);
		say_step(f->w, f->c, i);
	}
	assert_int_equal(members(f), 1);
	assert_int_equal(call_group_leave(f->w, f->c, member), 0);
	assert_int_equal(members(f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_restart_changes_nothing),
		cmocka_unit_test(killed_at_each_step_of_a_reset),
		TEST(who_is_not_back_loses_doorbells),
		TEST(what_nobody_claims_ends),
		cmocka_unit_test_setup_teardown(what_nobody_claims_ends, setup_target_first,
						teardown),
		TEST(of_who_dies_without_a_daemon_all_is_cut),
		TEST(nor_does_a_port_that_follows_none_keep_it),
		TEST(of_other_pages_it_is_cut),
		TEST(of_memory_it_is_cut),
		TEST(memory_is_no_bar),
		TEST(without_its_view_it_is_lost),
		TEST(a_member_of_a_group_goes_on),
		cmocka_unit_test_setup_teardown(a_member_of_a_group_goes_on, setup_memory,
						teardown),
		cmocka_unit_test_setup_teardown(of_a_strange_device_too, setup_strange, teardown),
		TEST(what_nobody_had_is_no_member),
		TEST(members_are_what_the_port_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
