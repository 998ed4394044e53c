/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BAR pages of a device that another one reaches, on real hosts, when any of their daemons is
 * started again: it knows whose they are, and when to cut them; whoever does not claim them has
 * them no more.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "bar_far_world.h"

static void restarts_change_nothing(struct fixture *f, unsigned host)
{
	unsigned before[SIO_KIND_SHADOW + 1];
	uint32_t memory, bells, again;

	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &memory), 0);
	assert_int_equal(far_map(f, f->regs, 0x1000, PAGE, &bells), 0);
	far_picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		far_restart(f, host);
		assert_int_equal(library_lost(), 0);
		far_expect_unchanged(f, before);
		assert_int_equal(far_reach(f, false), 2);
	}
	/* Who has it, and what for, is known: it goes with the last of both. */
	assert_int_equal(far_unmap(f, memory), 0);
	assert_int_equal(far_views(f, MEMORY), 0);
	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &again), 0);
	far_reset(f);
	assert_int_equal(far_reach(f, true), 1);
	assert_int_equal(far_reach(f, false), 1);
	far_restart(f, host); /* it stays cut, and its handle what it was */
	assert_int_equal(far_reach(f, true), 1);
	assert_int_equal(far_unmap(f, bells), 0);
	assert_int_equal(far_unmap(f, again), 0);
	assert_int_equal(far_reach(f, true) + far_reach(f, false), 0);
	assert_int_equal(far_views(f, MEMORY), 0);
}

static void restarts_of_the_drives_lender(void **state)
{
	restarts_change_nothing(*state, LENDER);
}

static void restarts_of_the_borrower(void **state)
{
	restarts_change_nothing(*state, BORROWER);
}

static void restarts_of_the_third(void **state)
{
	restarts_change_nothing(*state, OTHER);
}

/* Killed again at any point of their meeting: nothing changes. */
static void killed_at_each_step(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1], steps = 0;
	uint32_t memory, bells;
	bool ended = false;

	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &memory), 0);
	assert_int_equal(far_map(f, f->regs, 0x1000, PAGE, &bells), 0);
	far_picture(f, before);
	for (; !ended; steps += (unsigned)world_stride()) {
		world_restart(f->w, steps % 3);
		for (unsigned i = 0; i < steps && !ended; i++)
			ended = !world_step(f->w);
		if (steps % 4)
			world_restart(f->w, (steps + steps % 4) % 3);
		else
			world_cut(f->w, LENDER, BORROWER);
		world_pass(f->w, MEET);
		assert_int_equal(far_reach(f, false), 2);
		far_expect_unchanged(f, before);
	}
	assert_true(steps > 20);
}

/* ---- the pages are taken away ---- */

/* Nobody at @host is there to hear of it. */
static void reset_while_away(struct fixture *f, unsigned host)
{
	uint32_t memory, bells;

	if (host == f->at) /* it resets the device, or nobody does */
		return;
	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &memory), 0);
	assert_int_equal(far_map(f, f->regs, 0x1000, PAGE, &bells), 0);
	world_stop(f->w, host);
	world_run(f->w);
	far_reset(f);
	far_restart(f, host);
	assert_int_equal(far_reach(f, true), 1);
	assert_int_equal(far_reach(f, false), 1);
	assert_int_equal(far_unmap(f, bells), 0);
	assert_int_equal(far_unmap(f, memory), 0);
	assert_int_equal(far_reach(f, true), 0);
}

static void a_reset_while_one_is_away(void **state)
{
	for (unsigned host = 0; host < 3; host++)
		reset_while_away(*state, host);
}

/* The pages are another's by then. */
static void killed_in_a_reset(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_handle word = {.handle = sio_to_le32(f->of.handle)};
	bool done = false, more = true;

	for (unsigned steps = 0; more; steps += (unsigned)world_stride()) {
		uint64_t generation = f->target.generation;
		uint32_t bells;

		f->target.ignorant = steps % 2;
		assert_int_equal(far_map(f, f->regs, 0x1000, PAGE, &bells), 0);
		world_send(f->w, f->c, SIO_MSG_DEV_RESET, &word, sizeof(word));
		for (unsigned i = 0; more && i < steps; i++)
			more = world_step(f->w);
		world_stop(f->w, f->at);
		far_restart(f, f->at);
		done = f->target.generation > generation;
		assert_int_equal(far_reach(f, done), 1);
		assert_int_equal(far_reach(f, !done), 0);
		assert_int_equal(far_unmap(f, bells), 0);
		world_run(f->w);
		assert_int_equal(far_reach(f, true) + far_reach(f, false), 0);
		world_forget(f->c);
	}
	assert_true(done);
}

/* What its drive still does goes nowhere, and its address is nobody else's before it is settled. */
static void dies(struct fixture *f, unsigned away)
{
	uint32_t dma;

	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &dma), 0);
	assert_int_equal(far_map(f, f->regs, 0, PAGE, &dma), 0);
	fake_device_resets(f->w, false); /* by which all would go at once */
	library_gone(f->c);
	if (away < f->w->n_hosts)
		world_stop(f->w, away);
	world_kill(f->w, f->c);
	world_run(f->w);
	if (away < f->w->n_hosts)
		far_restart(f, away);
	assert_int_equal(far_leads(f), 0);
	assert_int_equal(far_views(f, MEMORY) + far_views(f, 0), 0);
}

static void the_end_of_the_program_cuts_all(void **state)
{
	struct fixture *f = *state;

	dies(f, f->w->n_hosts);
}

static void so_does_it_while_the_lender_is_away(void **state)
{
	dies(*state, LENDER);
}

static void so_does_it_while_the_second_is_away(void **state)
{
	dies(*state, BORROWER);
}

static void so_does_it_while_the_third_is_away(void **state)
{
	dies(*state, OTHER);
}

/* Its answer never came: nobody claims the pages, so nothing leads there any more. */
static void what_nobody_claims_ends(void **state)
{
	struct fixture *f = *state;
	uint32_t dma;

	library_lose_answer(f->c);
	f->w->late = SIO_OP_DMAMAP;
	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &dma), -1);
	assert_int_equal(far_reach(f, false), 1);
	f->w->late = 0;
	far_restart(f, f->who);
	/* The library asked again: that one is there, and the first one went. */
	assert_int_equal(far_reach(f, false), 1);
	assert_int_equal(far_views(f, MEMORY), 1);
}

/* Its descriptor could not be opened again, and so the view is not its any more: it is told. */
static void without_its_view_the_device_is_lost(void **state)
{
	struct fixture *f = *state;
	const struct sio_evm_device *evm;
	uint32_t dma;

	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &dma), 0);
	world_forget(f->c);
	f->w->no_fds_for = SIO_OP_REOPEN;
	far_restart(f, f->at);
	f->w->no_fds_for = 0;
	assert_int_equal(far_reach(f, false), 0);
	assert_int_equal(far_views(f, MEMORY), 0);
	evm = call_device_event(f->c, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), f->of.handle);
	assert_int_equal(sio_from_le32(evm->event), SIO_DEVICE_EV_LOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ANYWHERE(restarts_of_the_drives_lender),
		AT(cut, restarts_of_the_drives_lender),
		ANYWHERE(restarts_of_the_borrower),
		ANYWHERE(restarts_of_the_third),
		AT(cut, restarts_of_the_third),
		ANYWHERE(killed_at_each_step),
		ANYWHERE(a_reset_while_one_is_away),
		AT(cut, a_reset_while_one_is_away),
		ANYWHERE(killed_in_a_reset),
		AT(cut, killed_in_a_reset),
		ANYWHERE(the_end_of_the_program_cuts_all),
		ANYWHERE(so_does_it_while_the_lender_is_away),
		ANYWHERE(so_does_it_while_the_second_is_away),
		ANYWHERE(so_does_it_while_the_third_is_away),
		AT(cut, so_does_it_while_the_third_is_away),
		ANYWHERE(what_nobody_claims_ends),
		AT(beside, without_its_view_the_device_is_lost),
		AT(third, without_its_view_the_device_is_lost),
		AT(near, without_its_view_the_device_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
