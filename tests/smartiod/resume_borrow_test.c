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

static void expect_quiet(struct fixture *f, const unsigned *before)
{
	for (uint32_t kind = 1; kind <= SIO_KIND_SHADOW; kind++)
		if (world_resources(f->w, kind) != before[kind])
			fail_msg("%u resources of kind %u, not %u", world_resources(f->w, kind),
				 kind, before[kind]);
	for (unsigned i = 0; i < f->c->n_messages; i++)
		if (f->c->message[i]->type >= SIO_EVM_SEGMENT_LOCAL)
			fail_msg("the program received event %#x", f->c->message[i]->type);
	world_forget(f->c);
}

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
		expect_quiet(f, before);
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
		expect_quiet(f, before);
	}
	give_back(f);
}

/* Killed once more at any point of the meeting, or its lender is; or the connection breaks. */
static void it_is_killed_at_every_step(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1], steps = 0;
	bool ended = false;

	picture(f, before);
	for (; !ended; steps++) {
		world_restart(f->w, BORROWER);
		for (unsigned i = 0; i < steps && !ended; i++)
			ended = !world_step(f->w);
		if (steps % 2)
			world_restart(f->w, steps % 4 == 1 ? BORROWER : LENDER);
		else
			world_cut(f->w, LENDER, BORROWER);
		world_pass(f->w, MEET);
		f->w->lossy = false;
		expect_quiet(f, before);
	}
	assert_true(steps > 40);
	give_back(f);
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

static void expect_lost(struct fixture *f)
{
	const struct sio_evm_device *evm = call_device_event(f->c, 0);

	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->event), SIO_DEVICE_EV_LOST);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 0);
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

/* It greets, and then says nothing: calls go on after a time, and wait one by one. */
static void the_lender_says_nothing(void **state)
{
	struct fixture *f = *state;
	struct smartiod *d;
	uint32_t map;

	world_restart(f->w, BORROWER);
	do {
		assert_true(world_step(f->w));
		d = f->w->host[BORROWER].daemon;
	} while (smartiod_peer_find(d, NODE(LENDER))->state != SMARTIOD_PEER_READY);
	f->w->drop_peer_messages = true;
	world_pass(f->w, MEET);
	assert_false(library_settled(f->w));
	world_pass(f->w, SMARTIOD_LENDERS_NS);
	assert_true(library_settled(f->w));
	f->w->drop_peer_messages = false;
	world_cut(f->w, LENDER, BORROWER);
	world_pass(f->w, MEET);
	assert_int_equal(call_seg_map(f->w, f->c, f->near, 0, 4096, &map), 0);
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
	expect_quiet(f, before);
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

/* ---- half the truth ---- */

#define ENTRIES 16

static int say(struct fixture *f, const struct sio_msg_restore *m)
{
	struct sio_msg_restore copy = *m;
	const struct world_message *rep =
		world_call(f->w, f->c, SIO_MSG_RESTORE, &copy, sizeof(copy));

	return rep ? (int)rep->error : -1;
}

static void step(struct fixture *f, uint32_t number)
{
	struct sio_msg_restore_step end = {.step = sio_to_le32(number)};

	world_send(f->w, f->c, SIO_MSG_RESTORE_STEP, &end, sizeof(end));
	world_run(f->w);
}

/* A map of a segment's window has other words than one of a BAR. */
static uint32_t what(const struct sio_msg_restore *m)
{
	uint32_t type = sio_from_le32(m->type);

	if (!m->seal)
		return 0;
	return type == SIO_MSG_SEG_MAP && !m->claim[1].map ? 0xffff : type;
}

/* The words that are sealed, of what @m is; NULL: that is all. */
static sio_le32 *sealed_half(struct sio_msg_restore *m, unsigned i)
{
	sio_le32 *const of_borrow[] = {&m->bdf, &m->class_code, &m->handle};
	sio_le32 *const of_connection[] = {&m->node, &m->path, &m->number, &m->handle};
	sio_le32 *const of_map[] = {&m->path, &m->doorbells, &m->handle};

	switch (what(m)) {
	case SIO_MSG_DEV_BORROW:
		return i < 3 ? of_borrow[i] : NULL;
	case SIO_MSG_DEV_SEG_CONNECT:
		return i < 4 ? of_connection[i] : NULL;
	case SIO_MSG_SEG_MAP:
		return i < 3 ? of_map[i] : NULL;
	case SIO_MSG_DEV_HOLD:
	case 0xffff:
		return i < 1 ? &m->handle : NULL;
	}
	return NULL;
}

static sio_le64 *sealed_word(struct sio_msg_restore *m, unsigned i)
{
	sio_le64 *const of_any[] = {&m->key, &m->seal};
	sio_le64 *const of_connection[] = {&m->key, &m->extra, &m->bytes, &m->peer_boot, &m->seal};
	sio_le64 *const of_map[] = {&m->claim[0].view, &m->claim[0].grant, &m->claim[0].map,
				    &m->claim[2].view, &m->seal};

	switch (what(m)) {
	case SIO_MSG_DEV_BORROW:
	case SIO_MSG_DEV_HOLD:
	case 0xffff:
		return i < 2 ? of_any[i] : NULL;
	case SIO_MSG_DEV_SEG_CONNECT:
		return i < 5 ? of_connection[i] : NULL;
	case SIO_MSG_SEG_MAP:
		return i < 5 ? of_map[i] : NULL;
	}
	return NULL;
}

static unsigned only_the_truth(struct fixture *f, const struct sio_msg_restore *truth)
{
	struct sio_msg_restore lie = *truth;
	unsigned lies = 0;

	for (unsigned i = 0; sealed_half(&lie, i); lie = *truth, i++, lies++) {
		sio_le32 *at = sealed_half(&lie, i);

		*at = sio_to_le32(sio_from_le32(*at) + 1);
		assert_int_equal(say(f, &lie), ENOENT);
	}
	for (unsigned i = 0; sealed_word(&lie, i); lie = *truth, i++, lies++) {
		sio_le64 *at = sealed_word(&lie, i);

		*at = sio_to_le64(sio_from_le64(*at) + 1);
		assert_int_equal(say(f, &lie), ENOENT);
	}
	assert_int_equal(say(f, truth), 0);
	return lies;
}

/* The program speaks for itself from now on, to the next smartiod. */
static void speak(struct fixture *f)
{
	struct sio_msg_hello m = {.version = sio_to_le32(SIO_CLIENT_VERSION),
				  .kind = sio_to_le32(SIO_CLIENT_LIBRARY)};

	f->w->before_step = NULL;
	world_restart(f->w, BORROWER);
	world_run(f->w);
	world_reconnect(f->w, f->c);
	f->w->shown = f->c->owner;
	world_send_with(f->w, f->c, SIO_MSG_HELLO, &m, sizeof(m), 1);
	world_run(f->w);
}

/* All that it has, in the order in which it would be said. */
struct truth {
	struct sio_msg_restore m[SIO_RESTORE_STEPS][ENTRIES];
	unsigned n[SIO_RESTORE_STEPS];
};

static void get_truth(struct fixture *f, struct truth *ret)
{
	uint64_t at;

	for (unsigned i = 0; i < SIO_RESTORE_STEPS; i++)
		for (ret->n[i] = at = 0; library_next(f->c, i + 1, &at, &ret->m[i][ret->n[i]]);)
			assert_true(++ret->n[i] < ENTRIES);
}

/* The first map of a BAR, or (@bar false) of a segment's window. */
static struct sio_msg_restore *map_in(struct truth *t, bool bar)
{
	for (unsigned i = 0; i < t->n[2]; i++)
		if (what(&t->m[2][i]) == (bar ? SIO_MSG_SEG_MAP : 0xffff))
			return &t->m[2][i];
	fail();
	return NULL;
}

static void a_word_is_wrong(void **state)
{
	struct fixture *f = *state;
	struct truth t;
	unsigned before[SIO_KIND_SHADOW + 1], lies = 0;
	uint32_t dma;
	uint64_t at;

	assert_int_equal(
		call_dma_map_at(f->w, f->c, f->b.handle, f->segment, 0, 4096, 4096, &dma, &at), 0);
	hold_twice(f, at);
	picture(f, before);
	get_truth(f, &t);
	speak(f);
	for (unsigned i = 0; i < SIO_RESTORE_STEPS; i++) {
		for (unsigned j = 0; j < t.n[i]; j++)
			lies += only_the_truth(f, &t.m[i][j]);
		step(f, i + 1);
	}
	/* A borrow, a connection, a map of each kind, two holds. */
	assert_int_equal(lies, 5 + 9 + 8 + 3 + 2 * 3);
	world_pass(f->w, MEET);
	for (uint32_t kind = 1; kind <= SIO_KIND_SHADOW; kind++)
		assert_int_equal(world_resources(f->w, kind), before[kind]);
	assert_non_null(call_device_event(f->c, 4)); /* so many lies were about the borrow */
	assert_null(call_device_event(f->c, 5));
}

/* The window of a BAR as a segment's: the grant would go with the BAR, and not with the window. */
static void a_window_is_of_something_else(void **state)
{
	struct fixture *f = *state;
	struct truth t;
	struct sio_msg_restore lie;

	get_truth(f, &t);
	speak(f);
	for (unsigned i = 0; i < SIO_RESTORE_STEPS; i++) {
		for (unsigned j = 0; j < t.n[i]; j++) {
			if (what(&t.m[i][j]) == SIO_MSG_SEG_MAP) {
				lie = *map_in(&t, false);
				lie.key = map_in(&t, true)->claim[0].map;
				assert_int_equal(say(f, &lie), ENOENT);
			}
			assert_int_equal(say(f, &t.m[i][j]), 0);
		}
		step(f, i + 1);
	}
	world_pass(f->w, MEET);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, f->bar_map, 0), 0);
	world_run(f->w);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 1);
}

/* A map by a handle that is taken: its window is being unmapped when the next one is named. */
static void two_windows_of_one_connection(void **state)
{
	struct fixture *f = *state;
	struct truth t;
	struct sio_msg_restore m;
	uint32_t other;

	assert_int_equal(call_seg_map(f->w, f->c, f->near, 0, 4096, &other), 0);
	get_truth(f, &t);
	speak(f);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned j = 0; j < t.n[i]; j++)
			assert_int_equal(say(f, &t.m[i][j]), 0);
		step(f, i + 1);
	}
	f->w->late = SIO_OP_UNMAP;
	m = *map_in(&t, false);
	for (unsigned j = 0; j < t.n[2]; j++)
		if (what(&t.m[2][j]) == SIO_MSG_DEV_SEG_CONNECT)
			assert_int_equal(say(f, &t.m[2][j]), 0);
	m.handle = sio_to_le32(f->near);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(say(f, &m), ENOENT);
	f->w->late = 0;
	world_run(f->w);
	step(f, 3);
	world_pass(f->w, MEET);
}

/* It is here, but does not say the rest in time: it hears that the device is lost. */
static void it_does_not_come_to_the_end(void **state)
{
	struct fixture *f = *state;
	struct truth t;

	get_truth(f, &t);
	speak(f);
	for (unsigned j = 0; j < t.n[0]; j++)
		assert_int_equal(say(f, &t.m[0][j]), 0);
	step(f, 1);
	world_forget(f->c);
	world_pass(f->w, SMARTIOD_GRACE_NS - 1);
	assert_null(call_device_event(f->c, 0));
	world_pass(f->w, 1);
	expect_lost(f);
	for (unsigned j = 0; j < t.n[2]; j++)
		if (what(&t.m[2][j]))
			assert_int_equal(say(f, &t.m[2][j]), EINVAL); /* before step 2 ends */
	step(f, 2);
	for (unsigned j = 0; j < t.n[2]; j++)
		if (what(&t.m[2][j]))
			assert_int_equal(say(f, &t.m[2][j]), ENOENT);
	step(f, 3);
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
		TEST(the_device_is_reset_meanwhile),
		TEST(the_lenders_host_starts_again_meanwhile),
		TEST(the_lender_does_not_come_back),
		TEST(the_lender_says_nothing),
		TEST(the_lender_leaves_the_file),
		TEST(another_program_does_not_come_back),
		TEST(its_program_dies_meanwhile),
		TEST(a_word_is_wrong),
		TEST(a_window_is_of_something_else),
		TEST(two_windows_of_one_connection),
		TEST(it_does_not_come_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
