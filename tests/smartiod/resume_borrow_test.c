/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real hosts, of which one has borrowed a device of another, whose daemon is killed and started
 * again: the device, its memory and its queues go on, and nobody is told anything. What ended
 * meanwhile is told when the two have met; until then the program's calls wait.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "resume_world.h"
#include "smartiod/daemon/bond.h"
#include "smartiod/lender/lend.h"
#include "smartiod/restart/restore.h"

static void start_again(struct fixture *f)
{
	world_stop(f->w, BORROWER);
	world_run(f->w);
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	assert_true(f->w->open[LENDER][BORROWER]);
	assert_true(library_settled(f->w));
}

static void nobody_notices(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1];

	picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		start_again(f);
		expect_unchanged(f, before);
		/* Each start of the borrower's daemon makes another ticket, as the lender knows. */
		assert_true(smartiod_loan_find(f->w->host[LENDER].daemon, f->b.id)->ticket ==
			    f->w->host[BORROWER].daemon->borrows->ticket);
	}
	give_back(f);
}

static void both_are_started_again(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1];

	picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		world_stop(f->w, BORROWER);
		world_stop(f->w, LENDER);
		world_run(f->w);
		world_restart(f->w, i % 2 ? BORROWER : LENDER);
		world_run(f->w);
		world_restart(f->w, i % 2 ? LENDER : BORROWER);
		world_pass(f->w, MEET);
		expect_unchanged(f, before);
	}
	give_back(f);
}

static void it_is_killed_at_every_step(void **state)
{
	kill_at_every_step(*state, BORROWER);
	give_back(*state);
}

static void queues_keep_their_memory(void **state)
{
	struct fixture *f = *state;
	uint32_t dma;
	uint64_t at, number;

	assert_int_equal(
		call_dma_map_at(f->w, f->c, f->b.handle, f->segment, 0, 4096, 4096, &dma, &at), 0);
	number = hold_twice(f, at);
	start_again(f);
	world_restart(f->w, LENDER); /* which then hears of the holds from the borrower */
	world_pass(f->w, MEET);
	expect_held_twice(f, dma, number);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), 0);
	give_back(f);
}

/* A device segment that lies in the borrower's own memory, which its port has kept. */
static void a_segment_of_its_own_memory(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1];
	uint32_t own, node, map, dma;

	assert_int_equal(call_dev_seg_create(f->w, f->c, f->b.handle, 8, 8192, SCI_MEMTYPE_PRIVATE,
					     0, SCI_FLAG_LOCAL_ONLY),
			 0);
	assert_int_equal(
		call_dev_seg_connect(f->w, f->c, f->b.handle, 8, SCI_MEMTYPE_PRIVATE, &own, &node),
		0);
	assert_int_equal(node, NODE(BORROWER));
	assert_int_equal(call_seg_map(f->w, f->c, own, 0, 8192, &map), 0);
	assert_int_equal(call_dma_map(f->w, f->c, f->b.handle, own, 1, 0, 4096, &dma), 0);
	picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		start_again(f);
		if (i)
			world_restart(f->w, LENDER); /* whose directory has it from the borrower */
		world_pass(f->w, MEET);
		expect_unchanged(f, before);
	}
	assert_int_equal(
		call_dev_seg_create(f->w, f->c, f->b.handle, 8, 4096, SCI_MEMTYPE_PRIVATE, 0, 0),
		EEXIST);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, map, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_DISCONNECT, own, 0), 0);
	give_back(f);
}

/* What a program has counts, however little it may have by now. */
static void a_smaller_quota_takes_nothing_away(void **state)
{
	struct fixture *f = *state;
	struct sio_limit *most = f->w->topology->policy.program;
	unsigned before[SIO_KIND_SHADOW + 1];
	uint32_t map;

	picture(f, before);
	for (unsigned q = 0; q < SIO_QUOTAS; q++)
		most[q] = (struct sio_limit){true, 1};
	start_again(f);
	expect_unchanged(f, before);
	assert_int_equal(call_seg_map(f->w, f->c, f->near, 0, 4096, &map), ENOSPC);
	give_back(f);
}

/* It came while nobody could be told: doorbells are gone at both ends, and the program hears. */
static void the_device_is_reset_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct smartiod_device *dev = smartiod_device_known(f->w->host[LENDER].daemon, FDID);
	const struct sio_evm_device *evm;

	world_stop(f->w, BORROWER);
	world_run(f->w);
	f->fake.generation++;
	dev->generation = smartiod_generation(f->fake.generation);
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	evm = call_device_event(f->c, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->event), SIO_DEVICE_EV_RESET);
	assert_int_equal(sio_from_le32(evm->generation), dev->generation);
	assert_null(call_device_event(f->c, 1));
	give_back(f);
}

/* The lender has not heard of it, and does not know that a private segment is reached over it. */
static void its_path_is_down_when_it_comes_back(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, f->bar_map, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, f->near_dma, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, f->dma, 0), 0);
	world_stop(f->w, BORROWER);
	world_run(f->w);
	world_restart(f->w, BORROWER);
	world_hear(f->w, BORROWER, LENDER, 0, false);
	world_run(f->w);
	world_hear(f->w, BORROWER, LENDER, 0, true);
	world_pass(f->w, MEET);
	assert_non_null(call_device_event(f->c, 0));
	assert_int_equal(sio_from_le32(call_device_event(f->c, 0)->event), SIO_DEVICE_EV_LOST);
}

static void the_lenders_host_starts_again_meanwhile(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	world_stop(f->w, BORROWER);
	world_run(f->w);
	world_crash(f->w, LENDER);
	world_boot(f->w, LENDER);
	world_run(f->w);
	f->w->link[LENDER][BORROWER] = f->w->link[BORROWER][LENDER] = true;
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	assert_true(f->w->open[LENDER][BORROWER]);
	expect_lost(f);
}

/* Its calls wait as long as the lender is expected. */
static void the_lender_does_not_come_back(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	world_stop(f->w, LENDER);
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	assert_false(library_settled(f->w));
	assert_null(call_device_event(f->c, 0));
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 3);
	world_pass(f->w, SMARTIOD_EXPECT_NS);
	assert_true(library_settled(f->w));
	expect_lost(f);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
}

/* It may not come back: nothing waits for it. */
static void the_lender_is_revoked(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	smartiod_peer_expelled(f->w->host[BORROWER].daemon, NODE(LENDER));
	world_cut(f->w, LENDER, BORROWER);
	world_run(f->w);
	expect_lost(f);
	world_pass(f->w, MEET);
}

/* It greets, and then says nothing: it is lost after a time, as one that does not come back. */
static void the_lender_says_nothing(void **state)
{
	struct fixture *f = *state;
	struct smartiod *d;

	world_restart(f->w, BORROWER);
	do {
		assert_true(world_step(f->w));
		d = f->w->host[BORROWER].daemon;
	} while (smartiod_peer_find(d, NODE(LENDER))->state != SMARTIOD_PEER_READY);
	f->w->drop_peer_messages = true;
	world_pass(f->w, MEET);
	assert_false(library_settled(f->w));
	f->w->lossy = true;
	world_pass(f->w, SMARTIOD_LENDERS_NS);
	assert_true(library_settled(f->w));
	f->w->drop_peer_messages = false;
	world_cut(f->w, LENDER, BORROWER);
	world_pass(f->w, MEET);
	expect_lost(f);
}

/* Another program of its host is stopped: that costs time, and nothing else. */
static void another_program_does_not_come_back(void **state)
{
	struct fixture *f = *state;
	struct world_client *silent = world_client(f->w, BORROWER, SIO_CLIENT_LIBRARY);
	unsigned before[SIO_KIND_SHADOW + 1];
	uint32_t segment;

	assert_int_equal(call_seg_export(f->w, silent, 77, 4096, &segment), 0);
	world_forget(f->c);
	picture(f, before);
	library_gone(silent);
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	assert_false(library_settled(f->w));
	world_pass(f->w, SMARTIOD_GRACE_NS);
	world_pass(f->w, MEET);
	assert_true(library_settled(f->w));
	expect_unchanged(f, before);
}

static void its_program_dies_meanwhile(void **state)
{
	struct fixture *f = *state;

	world_stop(f->w, BORROWER);
	world_run(f->w);
	library_gone(f->c);
	world_kill(f->w, f->c);
	world_run(f->w);
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	/* The device may still write to it: that waits for a reset, as ever. */
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 0);
}

/* Its lender's way to the group is found by the port's list, whichever daemon was killed when. */
static void a_group_that_the_device_writes_to(void **state)
{
	struct fixture *f = *state;
	uint32_t group, dma;

	assert_int_equal(call_group_connect(f->w, f->c, 2, &group), 0);
	assert_int_equal(call_dma_map(f->w, f->c, f->b.handle, group, 1, 0, 4096, &dma), 0);
	f->messages = f->c->n_messages;
	kill_at_every_step(f, LENDER);
	kill_at_every_step(f, BORROWER);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_DISCONNECT, group, 0), 0);
	give_back(f);
}

/* Memory of the device that DMA queues reach: through windows of their own. */
static void what_queues_reach_of_a_bar(void **state)
{
	struct fixture *f = *state;
	uint32_t memory, queue[2];
	uint64_t range[2];

	assert_int_equal(
		call_dev_seg_connect(f->w, f->c, f->b.handle, 2, SCI_MEMTYPE_BAR, &memory, NULL),
		0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(call_queue_create(f->w, f->c, 0, &queue[i]), 0);
		assert_int_equal(
			call_queue_attach_bar(f->w, f->c, queue[i], memory, 8 * i, &range[i]), 0);
	}
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_DMA_RANGE), 2);
	f->messages = f->c->n_messages;
	kill_at_every_step(f, BORROWER);
	kill_at_every_step(f, LENDER);
	assert_int_equal(call_queue_detach(f->w, f->c, queue[0], range[0]), 0);
	world_run(f->w);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_DMA_RANGE), 1);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_DISCONNECT, memory, 0), 0);
	world_run(f->w);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_DMA_RANGE), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_handle(f->w, f->c, SIO_MSG_QUEUE_REMOVE, queue[i], 0), 0);
	give_back(f);
}

/* Memory of the device that is a member of a group: it belongs to the lender. */
static void a_member_of_a_group(void **state)
{
	struct fixture *f = *state;
	uint32_t memory, member;

	assert_int_equal(
		call_dev_seg_connect(f->w, f->c, f->b.handle, 2, SCI_MEMTYPE_BAR, &memory, NULL),
		0);
	assert_int_equal(call_group_join(f->w, f->c, memory, 2, 0, &member), 0);
	f->messages = f->c->n_messages;
	kill_at_every_step(f, BORROWER);
	kill_at_every_step(f, LENDER);
	assert_int_equal(call_group_join(f->w, f->c, memory, 2, 4096, &(uint32_t){0}), EEXIST);
	assert_int_equal(call_group_leave(f->w, f->c, member), 0);
	f->messages = f->c->n_messages;
	kill_at_every_step(f, LENDER); /* which does not hear of it again */
	assert_int_equal(call_group_join(f->w, f->c, memory, 2, 0, &member), 0);
	assert_int_equal(call_group_leave(f->w, f->c, member), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_DISCONNECT, memory, 0), 0);
	give_back(f);
}

static void the_lender_leaves_the_file(void **state)
{
	struct fixture *f = *state;
	uint32_t node = f->w->topology->host[LENDER].node;

	f->w->lossy = true;
	world_stop(f->w, BORROWER);
	world_run(f->w);
	f->w->topology->host[LENDER].node = 40;
	world_restart(f->w, BORROWER);
	world_run(f->w);
	expect_lost(f);
	assert_true(library_settled(f->w));
	f->w->topology->host[LENDER].node = node;
	world_restart(f->w, BORROWER); /* which meets it again, for what it has of the borrower */
	world_pass(f->w, MEET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_notices),
		TEST(both_are_started_again),
		TEST(it_is_killed_at_every_step),
		TEST(queues_keep_their_memory),
		TEST(a_segment_of_its_own_memory),
		TEST(a_smaller_quota_takes_nothing_away),
		TEST(the_device_is_reset_meanwhile),
		TEST(its_path_is_down_when_it_comes_back),
		TEST(the_lenders_host_starts_again_meanwhile),
		TEST(the_lender_does_not_come_back),
		TEST(the_lender_is_revoked),
		TEST(the_lender_says_nothing),
		TEST(a_group_that_the_device_writes_to),
		TEST(what_queues_reach_of_a_bar),
		TEST(a_member_of_a_group),
		TEST(the_lender_leaves_the_file),
		TEST(another_program_does_not_come_back),
		TEST(its_program_dies_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
