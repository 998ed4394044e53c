/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shadow, which a driver of the borrower's kernel has, when the daemons lose each other or are
 * killed and started again: it stays, and so does all that it consists of. What it depends on ends
 * in order where one of the two does not come back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fake_shadow.h"
#include "resume_world.h"
#include "smartiod/daemon/bond.h"
#include "smartiod/restart/restore.h"

#define INTERRUPTS 2
#define FDID2 0x400200

static struct fake_shadows shadows;
static struct fake_device fake2;
static uint32_t interrupt[INTERRUPTS];

/* ---- fixture ---- */

static void tie_vectors(struct fixture *f)
{
	uint32_t number, link;

	for (uint32_t i = 0; i < INTERRUPTS; i++) {
		uint32_t vector = i;

		assert_int_equal(call_plain_create(f->w, f->c, &interrupt[i], &number), 0);
		assert_int_equal(call_plain_connect(f->w, f->c, NODE(BORROWER), number, &link), 0);
		assert_int_equal(call_vector(f->w, f->c, f->b.handle, &vector, link), 0);
		assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DINT_DISCONNECT, link, 0), 0);
	}
}

static int start(void **state, bool iommu)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct world *w = world_new(3, 0);

	assert_non_null(f);
	f->w = w;
	fake_device_add(w, &f->fake);
	fake_device_add_second(w, &fake2);
	fake_shadows_add(w, &shadows);
	w->iommu = iommu;
	w->same_message = !iommu; /* there is no interrupt remapping */
	world_real(w);
	world_start(w);
	library_begin(w);
	w->before_step = library_pump;
	fake_device_resets(w, true);
	f->c = world_client(w, BORROWER, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, f->c, FDID, SCI_FLAG_EXCLUSIVE, &f->b), 0);
	tie_vectors(f);
	*state = f;
	return 0;
}

static int setup_shadow(void **state)
{
	struct fixture *f;

	start(state, false);
	f = *state;
	assert_int_equal(fake_shadow_plug_in(f->w, f->c, f->b.handle, SIO_SHADOW_ALL_MEMORY,
					     interrupt, INTERRUPTS),
			 0);
	return 0;
}

/* The borrower's memory is behind an IOMMU: there is a window. */
static int setup_window(void **state)
{
	struct fixture *f;

	start(state, true);
	f = *state;
	assert_int_equal(fake_shadow_plug_in(f->w, f->c, f->b.handle, 0, interrupt, INTERRUPTS), 0);
	return 0;
}

/* Both ends still know all that there is: each thing goes when the shadow goes, and the borrow. */
static void give_all_back(struct fixture *f)
{
	struct world *w = f->w;

	assert_int_equal(world_resources(w, SIO_KIND_SHADOW), 1);
	assert_int_equal(fake_shadow_unplug(w, f->c, f->b.handle), 0);
	assert_int_equal(world_resources(w, SIO_KIND_SHADOW), 0);
	assert_int_equal(shadows.lost, 0);
	assert_int_equal(world_resources(w, SIO_KIND_DMAMAP), 0);
	assert_int_equal(world_resources(w, SIO_KIND_BAR), 0);
	assert_int_equal(world_count(w, BORROWER, SIO_KIND_MAP), 0);
	assert_int_equal(world_count(w, BORROWER, SIO_KIND_MEM), 0);
	assert_int_equal(world_resources(w, SIO_KIND_VECTOR), INTERRUPTS);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_DEV_RETURN, f->b.handle, 0), 0);
	world_run(w);
	assert_int_equal(world_resources(w, SIO_KIND_VECTOR), 0);
	assert_int_equal(world_resources(w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(w, SIO_KIND_MEM), 0);
	assert_int_equal(world_resources(w, SIO_KIND_REQUESTER), 0);
}

static void read_ids(struct fixture *f)
{
	unsigned n = shadows.n_answers;

	fake_shadow_ask(f->w, BORROWER, fake_shadow_of(f->w)->id);
	world_run(f->w);
	assert_int_equal(shadows.n_answers, n + 1);
	assert_int_equal(shadows.error, 0);
}

/* ---- nothing is noticed ---- */

static void start_again(struct fixture *f, unsigned host)
{
	world_stop(f->w, host);
	world_run(f->w);
	world_restart(f->w, host);
	world_pass(f->w, MEET);
	assert_true(f->w->open[LENDER][BORROWER]);
	assert_true(library_settled(f->w));
}

static void they_lose_each_other(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1];

	picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		world_cut(f->w, LENDER, BORROWER);
		world_pass(f->w, MEET);
		assert_true(f->w->open[LENDER][BORROWER]);
		expect_unchanged(f, before);
		read_ids(f);
	}
	give_all_back(f);
}

static void the_lender_is_started_again(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1];

	picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		start_again(f, LENDER);
		expect_unchanged(f, before);
		read_ids(f);
	}
	give_all_back(f);
}

static void the_lender_is_killed_at_every_step(void **state)
{
	kill_at_every_step(*state, LENDER);
	give_all_back(*state);
}

static void the_borrower_is_started_again(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1];

	picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		start_again(f, BORROWER);
		expect_unchanged(f, before);
		read_ids(f);
	}
	give_all_back(f);
}

static void both_are_started_again(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1];

	picture(f, before);
	for (unsigned i = 0; i < 4; i++) {
		world_stop(f->w, BORROWER);
		world_stop(f->w, LENDER);
		world_run(f->w);
		world_restart(f->w, i % 2 ? BORROWER : LENDER);
		world_run(f->w);
		world_restart(f->w, i % 2 ? LENDER : BORROWER);
		world_pass(f->w, MEET);
		expect_unchanged(f, before);
		read_ids(f);
	}
	give_all_back(f);
}

static void the_borrower_is_killed_at_every_step(void **state)
{
	kill_at_every_step(*state, BORROWER);
	give_all_back(*state);
}

/* ---- configuration space ---- */

static void a_question_waits_for_the_lender(void **state)
{
	struct fixture *f = *state;

	read_ids(f);
	world_stop(f->w, LENDER);
	world_run(f->w);
	fake_shadow_ask(f->w, BORROWER, fake_shadow_of(f->w)->id);
	world_run(f->w);
	assert_int_equal(shadows.n_answers, 1);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	assert_int_equal(shadows.n_answers, 2);
	assert_int_equal(shadows.error, 0);
	give_all_back(f);
}

/* The next daemon has it asked again; it does not know the lender's yet. */
static void a_question_waits_for_the_borrowers_daemon(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 2; i++) {
		world_stop(f->w, BORROWER);
		if (i)
			world_stop(f->w, LENDER);
		world_run(f->w);
		fake_shadow_ask(f->w, BORROWER, fake_shadow_of(f->w)->id);
		world_restart(f->w, BORROWER);
		world_run(f->w);
		if (i) { /* there is nobody who could say */
			assert_int_equal(shadows.n_answers, 2 * i);
			world_restart(f->w, LENDER);
		}
		world_pass(f->w, MEET);
		assert_int_equal(shadows.n_answers, 2 * i + 1);
		assert_int_equal(shadows.error, 0);
		read_ids(f);
	}
	give_all_back(f);
}

/* One that comes before the daemon has it again is dropped, and repeated. */
static void a_question_comes_before_the_shadow_is_known(void **state)
{
	struct fixture *f = *state;
	uint64_t id = fake_shadow_of(f->w)->id;
	unsigned steps = 0, asked = 0;

	for (bool more = true; more; steps++) {
		world_restart(f->w, BORROWER);
		for (unsigned i = 0; i < steps && more; i++)
			more = world_step(f->w);
		fake_shadow_ask(f->w, BORROWER, id);
		world_pass(f->w, MEET);
		assert_int_equal(shadows.n_answers, ++asked);
		assert_int_equal(shadows.error, 0);
		world_forget(f->c);
	}
	assert_true(steps > 20);
	give_all_back(f);
}

/* ---- who does not come back ---- */

/* Its driver goes before what it needs; its program hears of it, and takes it out. */
static void the_lender_does_not_come_back(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	world_stop(f->w, LENDER);
	world_pass(f->w, MEET);
	assert_null(call_device_event(f->c, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_SHADOW), 1);
	world_pass(f->w, SMARTIOD_EXPECT_NS);
	assert_non_null(call_device_event(f->c, 0));
	assert_int_equal(sio_from_le32(call_device_event(f->c, 0)->event), SIO_DEVICE_EV_LOST);
	assert_int_equal(fake_shadow_unplug(f->w, f->c, f->b.handle), 0);
	assert_int_equal(shadows.lost, 1);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 0);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
}

static void the_lender_has_forgotten_it(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	world_stop(f->w, LENDER);
	world_run(f->w);
	world_crash(f->w, LENDER);
	world_boot(f->w, LENDER);
	world_run(f->w);
	f->w->link[LENDER][BORROWER] = f->w->link[BORROWER][LENDER] = true;
	world_pass(f->w, MEET);
	assert_non_null(call_device_event(f->c, 0));
	assert_int_equal(sio_from_le32(call_device_event(f->c, 0)->event), SIO_DEVICE_EV_LOST);
	assert_int_equal(fake_shadow_unplug(f->w, f->c, f->b.handle), 0);
	assert_int_equal(shadows.lost, 1);
}

/* Its kernel has ended the shadow by then; the lender ends the borrow, as it is not named. */
static void its_program_dies_meanwhile(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	world_stop(f->w, BORROWER);
	world_run(f->w);
	library_gone(f->c);
	world_kill(f->w, f->c);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_SHADOW), 0);
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
}

/* Nobody claims it. Its driver goes first; what it consisted of ends then. */
static void its_program_does_not_come_back(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	library_gone(f->c);
	world_restart(f->w, BORROWER);
	world_pass(f->w, SMARTIOD_GRACE_NS);
	world_pass(f->w, MEET);
	assert_int_equal(world_resources(f->w, SIO_KIND_SHADOW), 0);
	assert_int_equal(shadows.lost, 1);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
}

/* It was gone from the port when its program said that it had it: that hears that it is lost. */
static void it_has_gone_by_itself_meanwhile(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	world_stop(f->w, BORROWER);
	world_run(f->w);
	world_res_free(f->w, fake_shadow_of(f->w));
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	assert_non_null(call_device_event(f->c, 0));
	assert_int_equal(sio_from_le32(call_device_event(f->c, 0)->event), SIO_DEVICE_EV_LOST);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DEV_RETURN, f->b.handle, 0), 0);
}

/* Without its interrupts its driver would wait for ever: the device is lost. */
static void its_interrupts_are_lost(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	world_stop(f->w, BORROWER);
	world_run(f->w);
	f->w->no_fds_for = SIO_OP_REOPEN;
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	f->w->no_fds_for = 0;
	assert_true(library_lost() > 0);
	assert_non_null(call_device_event(f->c, 0));
	assert_int_equal(sio_from_le32(call_device_event(f->c, 0)->event), SIO_DEVICE_EV_LOST);
	assert_int_equal(world_resources(f->w, SIO_KIND_SHADOW), 0);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 0);
}

/* The daemon dies while it is plugged in, or unplugged: the library asks once more. */
static void the_daemon_dies_in_the_middle(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_handle del = {.handle = sio_to_le32(f->b.handle)};
	unsigned before[SIO_KIND_SHADOW + 1], steps = 0;
	bool more = true;
	uint32_t id;

	picture(f, before);
	for (; more; steps++) {
		id = world_send(f->w, f->c, SIO_MSG_SHADOW_DEL, &del, sizeof(del));
		for (unsigned i = 0; i < steps && more; i++)
			more = world_step(f->w);
		world_restart(f->w, BORROWER);
		world_pass(f->w, MEET);
		assert_non_null(world_reply(f->c, id));
		assert_int_equal(world_reply(f->c, id)->error, 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_SHADOW), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_DMAMAP), 0);
		assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 0);
		assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MEM), 0);
		assert_int_equal(fake_shadow_plug_in(f->w, f->c, f->b.handle, SIO_SHADOW_ALL_MEMORY,
						     interrupt, INTERRUPTS),
				 0);
		expect_unchanged(f, before);
	}
	assert_true(steps > 5);
	give_all_back(f);
}

/* @host is killed at each step of the making of a shadow. Return: steps. */
static unsigned die_while_one_is_made(struct fixture *f, unsigned host)
{
	struct sio_msg_shadow msg = {.device = sio_to_le32(f->b.handle),
				     .flags = sio_to_le32(SIO_SHADOW_ALL_MEMORY),
				     .n_interrupts = sio_to_le32(INTERRUPTS)};
	unsigned before[SIO_KIND_SHADOW + 1], steps = 0, waited = 0;
	bool more = true;
	uint32_t id;

	for (uint32_t i = 0; i < INTERRUPTS; i++)
		msg.interrupt[i] = sio_to_le32(interrupt[i]);
	picture(f, before);
	for (; more; steps++) {
		assert_int_equal(fake_shadow_unplug(f->w, f->c, f->b.handle), 0);
		id = world_send(f->w, f->c, SIO_MSG_SHADOW, &msg, sizeof(msg));
		for (unsigned i = 0; i < steps && more; i++)
			more = world_step(f->w);
		shadows.slow = host == BORROWER;
		world_restart(f->w, host);
		world_pass(f->w, MEET);
		waited += shadows.held.id && !world_reply(f->c, id);
		fake_shadows_go(f->w);
		world_pass(f->w, MEET);
		assert_non_null(world_reply(f->c, id));
		/* A lender that is started again may have the view that it had made still. */
		if (host == LENDER && world_reply(f->c, id)->error) {
			assert_int_equal(world_reply(f->c, id)->error, EBUSY);
			assert_int_equal(fake_shadow_plug_in(f->w, f->c, f->b.handle,
							     SIO_SHADOW_ALL_MEMORY, interrupt,
							     INTERRUPTS),
					 0);
		}
		assert_true(host == LENDER || world_reply(f->c, id)->error == 0);
		expect_unchanged(f, before);
	}
	assert_true(host == LENDER || waited);
	return steps;
}

/* What was half made goes, and its library asks once more: that waits until it has gone. */
static void it_dies_while_one_is_made(void **state)
{
	struct fixture *f = *state;

	assert_true(die_while_one_is_made(f, BORROWER) > 10);
	/* At the meeting the lender releases what nobody named, though the driver has not gone. */
	f->w->bad_ends = f->w->wild = 0;
	assert_true(die_while_one_is_made(f, LENDER) > 10);
	shadows.lost = 0;
	give_all_back(f);
}

/* What a program says of it that is not as the daemon had told it; @change makes it so. */
static void lie(struct fixture *f, void (*change)(struct sio_msg_restore *m))
{
	struct sio_msg_restore m = {.flags = sio_to_le32(0)};
	uint64_t at;

	f->w->lossy = true;
	speak_to_next(f->w, f->c, BORROWER);
	for (unsigned step = 1; step <= 3; step++) {
		for (at = 0; library_next(f->c, step, &at, &m);) {
			bool shadow = sio_from_le32(m.type) == SIO_MSG_SHADOW;

			if (shadow)
				change(&m);
			assert_int_equal(say(f->w, f->c, &m), shadow ? ENOENT : 0);
		}
		say_step(f->w, f->c, step);
	}
	world_pass(f->w, MEET);
	assert_non_null(call_device_event(f->c, 0));
	assert_int_equal(sio_from_le32(call_device_event(f->c, 0)->event), SIO_DEVICE_EV_LOST);
	assert_int_equal(world_resources(f->w, SIO_KIND_SHADOW), 0);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 0);
}

static void other_view(struct sio_msg_restore *m)
{
	m->claim[0].view = sio_to_le64(sio_from_le64(m->claim[0].view) + 1);
}

static void other_mapping(struct sio_msg_restore *m)
{
	m->claim[SIO_SHADOW_CLAIM_DMA].view = sio_to_le64(1);
}

static void other_memory(struct sio_msg_restore *m)
{
	m->extra = sio_to_le64(sio_from_le64(m->extra) + 1);
}

static void with_peers(struct sio_msg_restore *m)
{
	m->flags = sio_to_le32(SIO_RESTORE_PEERS);
}

static void a_lie_of_a_view(void **state)
{
	lie(*state, other_view);
}

static void a_lie_of_a_mapping(void **state)
{
	lie(*state, other_mapping);
}

static void a_lie_of_the_memory(void **state)
{
	lie(*state, other_memory);
}

static void a_lie_of_peers(void **state)
{
	lie(*state, with_peers);
}

/* ---- peer-to-peer ---- */

static void peers_keep_each_other(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, BORROWER, SIO_CLIENT_LIBRARY);
	const uint32_t flags = SIO_SHADOW_ALL_MEMORY | SIO_SHADOW_WITH_PEERS;
	unsigned before[SIO_KIND_SHADOW + 1];
	struct call_borrow b;

	assert_int_equal(fake_shadow_unplug(f->w, f->c, f->b.handle), 0);
	assert_int_equal(call_borrow(f->w, other, FDID2, SCI_FLAG_EXCLUSIVE, &b), 0);
	assert_int_equal(fake_shadow_plug_in(f->w, f->c, f->b.handle, flags, interrupt, INTERRUPTS),
			 0);
	assert_int_equal(fake_shadow_plug_in(f->w, other, b.handle, flags, NULL, 0), 0);
	assert_int_equal(shadows.n_told, 2);
	picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		world_cut(f->w, LENDER, BORROWER);
		world_pass(f->w, MEET);
		expect_unchanged(f, before);
		start_again(f, LENDER);
		expect_unchanged(f, before);
		start_again(f, BORROWER);
		expect_unchanged(f, before);
		assert_int_equal(fake_shadow_peer_maps(f->w), 2);
	}
	assert_int_equal(fake_shadow_unplug(f->w, other, b.handle), 0);
	assert_int_equal(call_handle(f->w, other, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
	world_run(f->w);
	assert_int_equal(fake_shadow_peer_maps(f->w), 0);
	library_gone(other);
	world_kill(f->w, other);
	world_run(f->w);
}

#define SHADOW(name) cmocka_unit_test_setup_teardown(name, setup_shadow, teardown)
#define WINDOW(name) cmocka_unit_test_setup_teardown(name, setup_window, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHADOW(they_lose_each_other),
		WINDOW(they_lose_each_other),
		SHADOW(the_lender_is_started_again),
		WINDOW(the_lender_is_started_again),
		SHADOW(the_lender_is_killed_at_every_step),
		WINDOW(the_lender_is_killed_at_every_step),
		SHADOW(the_borrower_is_started_again),
		WINDOW(the_borrower_is_started_again),
		SHADOW(both_are_started_again),
		WINDOW(both_are_started_again),
		SHADOW(the_borrower_is_killed_at_every_step),
		WINDOW(the_borrower_is_killed_at_every_step),
		SHADOW(a_question_waits_for_the_lender),
		SHADOW(a_question_waits_for_the_borrowers_daemon),
		SHADOW(a_question_comes_before_the_shadow_is_known),
		SHADOW(the_lender_does_not_come_back),
		SHADOW(the_lender_has_forgotten_it),
		WINDOW(the_lender_has_forgotten_it),
		SHADOW(its_program_dies_meanwhile),
		SHADOW(its_program_does_not_come_back),
		SHADOW(it_has_gone_by_itself_meanwhile),
		SHADOW(its_interrupts_are_lost),
		SHADOW(the_daemon_dies_in_the_middle),
		SHADOW(it_dies_while_one_is_made),
		SHADOW(a_lie_of_a_view),
		SHADOW(a_lie_of_a_mapping),
		SHADOW(a_lie_of_the_memory),
		SHADOW(a_lie_of_peers),
		SHADOW(peers_keep_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
