/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shadows whose devices reach each other, of two lenders, when any of the three daemons is started
 * again: what was mapped for them stays, and is cut when the device behind it is returned, as if
 * nobody had been started again.
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

#define OTHER 2 /* the second lender */
#define FDID2 0xc00200

static struct fake_shadows shadows;
static struct fake_device fake2;
static struct world_client *other; /* has the second device */
static struct call_borrow b2;

static int start(void **state, bool iommu)
{
	const uint32_t flags = SIO_SHADOW_WITH_PEERS | (iommu ? 0 : SIO_SHADOW_ALL_MEMORY);
	struct fixture *f = calloc(1, sizeof(*f));
	struct world *w = world_new(3, 0);

	assert_non_null(f);
	f->w = w;
	fake_device_add(w, &f->fake);
	fake_device_add_far(w, &fake2, OTHER);
	fake_shadows_add(w, &shadows);
	f->fake.iommu = fake2.iommu = iommu ? SIO_IOMMU_STRICT : SIO_IOMMU_OFF;
	w->iommu = iommu;
	w->same_message = !iommu;
	w->lossy = true; /* without an IOMMU pages of BARs are taken away at once */
	world_real(w);
	world_start(w);
	library_begin(w);
	w->before_step = library_pump;
	fake_device_resets(w, true);
	f->c = world_client(w, BORROWER, SIO_CLIENT_LIBRARY);
	other = world_client(w, BORROWER, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, f->c, FDID, SCI_FLAG_EXCLUSIVE, &f->b), 0);
	assert_int_equal(call_borrow(w, other, FDID2, SCI_FLAG_EXCLUSIVE, &b2), 0);
	assert_int_equal(fake_shadow_plug_in(w, f->c, f->b.handle, flags, NULL, 0), 0);
	assert_int_equal(fake_shadow_plug_in(w, other, b2.handle, flags, NULL, 0), 0);
	assert_int_equal(shadows.n_told, 2);
	*state = f;
	return 0;
}

static int setup_plain(void **state)
{
	return start(state, false);
}

static int setup_iommu(void **state)
{
	return start(state, true);
}

static void start_again(struct fixture *f, unsigned host)
{
	world_restart(f->w, host);
	world_pass(f->w, MEET);
	assert_true(f->w->open[LENDER][BORROWER]);
	assert_true(f->w->open[LENDER][OTHER]);
	assert_true(library_settled(f->w));
}

/* Mappings for devices of @host of BARs, by their size. */
static unsigned mapped(const struct world *w, unsigned host, bool cut)
{
	unsigned n = 0;

	for (const struct world_res *r = w->res; r; r = r->next)
		n += r->host == host && r->kind == SIO_KIND_DMAMAP && r->cut == cut &&
		     r->size < SIO_SHADOW_WINDOW_UNIT;
	return n;
}

static unsigned reaches(const struct world *w, unsigned host)
{
	return mapped(w, host, false);
}

static void nobody_notices(struct fixture *f, unsigned host)
{
	unsigned before[SIO_KIND_SHADOW + 1];

	picture(f, before);
	assert_int_equal(reaches(f->w, LENDER), 1);
	assert_int_equal(reaches(f->w, OTHER), 1);
	for (unsigned i = 0; i < 3; i++) {
		start_again(f, host);
		expect_unchanged(f, before);
		assert_int_equal(reaches(f->w, LENDER), 1);
		assert_int_equal(reaches(f->w, OTHER), 1);
	}
}

/* The second device is returned: the first one does not reach it any more. */
static void give_second_back(struct fixture *f)
{
	assert_int_equal(fake_shadow_unplug(f->w, other, b2.handle), 0);
	assert_int_equal(call_handle(f->w, other, SIO_MSG_DEV_RETURN, b2.handle, 0), 0);
	world_pass(f->w, MEET);
	assert_int_equal(reaches(f->w, LENDER), 0);
	assert_int_equal(reaches(f->w, OTHER), 0);
}

static void without_a_restart(void **state)
{
	give_second_back(*state);
}

static void the_borrower_is_started_again(void **state)
{
	nobody_notices(*state, BORROWER);
	give_second_back(*state);
}

static void the_one_that_reaches_is_started_again(void **state)
{
	nobody_notices(*state, LENDER);
	give_second_back(*state);
}

static void the_one_that_is_reached_is_started_again(void **state)
{
	nobody_notices(*state, OTHER);
	give_second_back(*state);
}

/* Nobody is there to hear of it. */
static void it_is_returned_meanwhile(void **state)
{
	struct fixture *f = *state;

	world_stop(f->w, LENDER);
	world_run(f->w);
	assert_int_equal(fake_shadow_unplug(f->w, other, b2.handle), 0);
	assert_int_equal(call_handle(f->w, other, SIO_MSG_DEV_RETURN, b2.handle, 0), 0);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	assert_int_equal(reaches(f->w, LENDER), 0);
}

/* Their connection is away: its word is lost. */
static void nobody_says_so(void **state)
{
	struct fixture *f = *state;

	f->w->link[LENDER][OTHER] = f->w->link[OTHER][LENDER] = true;
	world_cut(f->w, LENDER, OTHER);
	assert_int_equal(fake_shadow_unplug(f->w, other, b2.handle), 0);
	assert_int_equal(call_handle(f->w, other, SIO_MSG_DEV_RETURN, b2.handle, 0), 0);
	world_pass(f->w, MEET);
	assert_int_equal(reaches(f->w, LENDER), 0);
}

/* The first device's driver may still use the address, which leads nowhere. */
static void what_is_cut_stays_so(void **state)
{
	struct fixture *f = *state;

	give_second_back(f);
	assert_int_equal(mapped(f->w, LENDER, true), 1);
	for (unsigned i = 0; i < 3; i++) {
		start_again(f, LENDER);
		assert_int_equal(mapped(f->w, LENDER, true), 1);
		assert_int_equal(reaches(f->w, LENDER), 0);
	}
}

static uint32_t plug_in_second(struct fixture *f)
{
	struct sio_msg_shadow msg = {.device = sio_to_le32(b2.handle),
				     .flags = sio_to_le32(SIO_SHADOW_WITH_PEERS)};

	if (f->w->iommu)
		msg.window = sio_to_le64(SIO_SHADOW_WINDOW_UNIT);
	else
		msg.flags = sio_to_le32(SIO_SHADOW_WITH_PEERS | SIO_SHADOW_ALL_MEMORY);
	return world_send(f->w, other, SIO_MSG_SHADOW, &msg, sizeof(msg));
}

/* What was granted before, and is mapped at a step of the meeting, is not taken for another's. */
static void they_meet_while_it_is_mapped(void **state)
{
	struct fixture *f = *state;
	unsigned steps = 0;
	bool more = true;
	uint32_t id;

	for (; more; steps++) {
		assert_int_equal(fake_shadow_unplug(f->w, other, b2.handle), 0);
		assert_int_equal(call_handle(f->w, other, SIO_MSG_DEV_RETURN, b2.handle, 0), 0);
		world_pass(f->w, MEET);
		assert_int_equal(call_borrow(f->w, other, FDID2, SCI_FLAG_EXCLUSIVE, &b2), 0);
		id = plug_in_second(f);
		while (world_resources(f->w, SIO_KIND_SHADOW) < 2)
			assert_true(world_step(f->w));
		f->w->late = SIO_OP_DMAMAP;
		world_run(f->w);
		assert_null(world_reply(other, id));
		world_cut(f->w, LENDER, OTHER);
		world_run(f->w);
		world_tick(f->w, MEET);
		for (unsigned i = 0; i < steps && more; i++)
			more = world_step(f->w);
		f->w->late = 0;
		world_pass(f->w, MEET);
		assert_non_null(world_reply(other, id));
		assert_int_equal(world_reply(other, id)->error, 0);
		if (reaches(f->w, LENDER) != 1 || reaches(f->w, OTHER) != 1)
			fail_msg("after %u steps: %u and %u", steps, reaches(f->w, LENDER),
				 reaches(f->w, OTHER));
		world_forget(other);
		world_forget(f->c);
	}
	assert_true(steps > 5);
}

/* Its host is given up. */
static void the_reached_host_is_lost(void **state)
{
	struct fixture *f = *state;

	nobody_notices(f, LENDER);
	world_stop(f->w, OTHER);
	world_run(f->w);
	world_pass(f->w, 2 * SMARTIOD_EXPECT_NS);
	assert_int_equal(reaches(f->w, LENDER), 0);
	world_restart(f->w, OTHER);
	world_pass(f->w, MEET);
}

#undef TEST
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, setup_plain, teardown),                              \
		cmocka_unit_test_setup_teardown(name, setup_iommu, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_restart),
		TEST(the_borrower_is_started_again),
		TEST(the_one_that_reaches_is_started_again),
		TEST(the_one_that_is_reached_is_started_again),
		TEST(it_is_returned_meanwhile),
		TEST(nobody_says_so),
		TEST(what_is_cut_stays_so),
		TEST(they_meet_while_it_is_mapped),
		TEST(the_reached_host_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
