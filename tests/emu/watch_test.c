/* SPDX-License-Identifier: BSD-2-Clause */
/* Whoever may watch, when the room may sleep, and what ends a watch. */
#include "fake.h"

#define BOTH (SIO_ACCESS_READ | SIO_ACCESS_WRITE)
#define NAPS(f) emu_room_naps((f)->room)

static struct sio_evt_bar view(struct fake *f, uint64_t owner, uint64_t offset, uint32_t access)
{
	struct sio_req_bar req = {.h.owner = owner,
				  .device = DEV(LENDER, 0),
				  .access = access,
				  .offset = offset,
				  .length = 0x1000};
	struct sio_evt_bar evt;

	assert_int_equal(ask(f, LENDER, &req, SIO_OP_BAR, &evt), 0);
	return evt;
}

static int watch(struct fake *f, unsigned host, uint64_t owner, uint32_t target_kind,
		 uint64_t target, uint32_t kind, uint64_t *ret)
{
	struct sio_req_watch req = {.h.owner = owner,
				    .target_kind = target_kind,
				    .kind = kind,
				    .target = target,
				    .length = 0x1000,
				    .address = kind == SIO_WATCH_FAULT ? 0x7f0000000000 : 0};
	struct sio_evt_watch evt;
	int rc;

	if (kind == SIO_WATCH_FAULT)
		fake_with(f);
	rc = ask(f, host, &req, SIO_OP_WATCH, &evt);
	if (rc == 0 && ret)
		*ret = evt.id;
	if (rc == 0)
		assert_int_equal(f->answer.n_fds, kind == SIO_WATCH_EVENT ? 2 : 0);
	return rc;
}

static struct sio_evt_map granted_view(struct fake *f, uint64_t bar)
{
	struct sio_req_grant req = {.source_kind = SIO_KIND_BAR,
				    .access = BOTH,
				    .source = bar,
				    .length = 0x1000,
				    .peer_node = NODE(CLIENT)};
	struct sio_evt_grant g;

	assert_int_equal(ask(f, LENDER, &req, SIO_OP_GRANT, &g), 0);
	return fake_map(f, CLIENT, fake_owner(f, CLIENT), LENDER, &g);
}

static int setup(void **state)
{
	struct fake *f = fake_new(0);

	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	fake_open(f, LENDER, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

static void a_view_without_a_watch_needs_naps(void **state)
{
	struct fake *f = *state;
	uint64_t owner = fake_owner(f, LENDER), id = 0;
	struct sio_evt_bar b;

	assert_false(NAPS(f));
	b = view(f, owner, DOORBELLS, BOTH);
	assert_true(NAPS(f));
	assert_int_equal(watch(f, LENDER, owner, SIO_KIND_BAR, b.id, SIO_WATCH_FAULT, &id), 0);
	assert_false(NAPS(f));
	assert_int_equal(f->open_watches, 1);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNWATCH, id, owner), 0);
	assert_true(NAPS(f));
	assert_int_equal(f->open_watches, 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_BAR_CLOSE, b.id, owner), 0);
	assert_false(NAPS(f));
}

static void only_polled_pages_need_naps(void **state)
{
	struct fake *f = *state;

	view(f, 0, REGISTERS, SIO_ACCESS_READ);
	view(f, 0, MEMORY, BOTH);
	assert_false(NAPS(f));
	view(f, 0, REGISTERS, BOTH);
	assert_true(NAPS(f));
}

static void one_timer_among_others_needs_naps(void **state)
{
	struct fake *f = *state;
	uint64_t owner = fake_owner(f, LENDER), timer = 0;
	struct sio_evt_bar b = view(f, owner, DOORBELLS, BOTH);

	assert_int_equal(watch(f, LENDER, owner, SIO_KIND_BAR, b.id, SIO_WATCH_FAULT, NULL), 0);
	assert_int_equal(watch(f, LENDER, owner, SIO_KIND_BAR, b.id, SIO_WATCH_EVENT, NULL), 0);
	assert_int_equal(watch(f, LENDER, owner, SIO_KIND_BAR, b.id, SIO_WATCH_TIMER, &timer), 0);
	assert_true(NAPS(f));
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNWATCH, timer, 0), 0);
	assert_false(NAPS(f));
}

static void a_grant_hands_the_duty_to_its_map(void **state)
{
	struct fake *f = *state;
	struct sio_evt_bar b = view(f, 0, DOORBELLS, BOTH);
	struct sio_evt_map m = granted_view(f, b.id);
	uint64_t id = 0;

	assert_true(NAPS(f));
	assert_int_equal(watch(f, CLIENT, 0, SIO_KIND_MAP, m.id, SIO_WATCH_FAULT, &id), 0);
	assert_false(NAPS(f));
	/* The map ends, and the watch with it. */
	assert_int_equal(fake_end(f, CLIENT, SIO_OP_UNMAP, m.id, 0), 0);
	assert_int_equal(fake_count(f, CLIENT, SIO_KIND_WATCH), 0);
	assert_int_equal(f->open_watches, 0);
	assert_int_equal(fake_end(f, CLIENT, SIO_OP_UNWATCH, id, 0), -ENOENT);
	assert_false(NAPS(f));
}

static void a_map_of_a_crashed_host_needs_nothing(void **state)
{
	struct fake *f = *state;
	struct sio_evt_bar b = view(f, 0, DOORBELLS, BOTH);
	struct sio_evt_map m = granted_view(f, b.id);

	assert_int_equal(watch(f, CLIENT, 0, SIO_KIND_MAP, m.id, SIO_WATCH_TIMER, NULL), 0);
	assert_true(NAPS(f));
	emu_room_host_down(f->room, LENDER);
	assert_false(NAPS(f));
	fake_up(f, LENDER);
	assert_false(NAPS(f));
}

static void a_watch_ends_with_its_owner(void **state)
{
	struct fake *f = *state;
	uint64_t lent = fake_owner(f, LENDER), program = fake_owner(f, LENDER);
	struct sio_evt_bar b = view(f, lent, DOORBELLS, BOTH);

	assert_int_equal(watch(f, LENDER, program, SIO_KIND_BAR, b.id, SIO_WATCH_FAULT, NULL), 0);
	assert_int_equal(watch(f, LENDER, program, SIO_KIND_BAR, b.id, SIO_WATCH_EVENT, NULL), 0);
	emu_room_owner_hup(f->room, LENDER, program);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_WATCH), 0);
	assert_int_equal(f->open_watches, 0);
	/* And with its target, whose owner is another one. */
	program = fake_owner(f, LENDER);
	assert_int_equal(watch(f, LENDER, program, SIO_KIND_BAR, b.id, SIO_WATCH_FAULT, NULL), 0);
	emu_room_owner_hup(f->room, LENDER, lent);
	assert_int_equal(f->open_watches, 0);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_WATCH), 0);
}

static void a_broken_watch_is_a_timer(void **state)
{
	struct fake *f = *state;
	struct sio_evt_bar b = view(f, 0, DOORBELLS, BOTH);
	uint64_t id = 0;

	assert_int_equal(watch(f, LENDER, 0, SIO_KIND_BAR, b.id, SIO_WATCH_FAULT, &id), 0);
	emu_room_watch_fired(f->room, LENDER, id);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_DEVICE, DEV(LENDER, 0), "wakes_by_fault"),
			 1);
	assert_false(NAPS(f));
	f->open_watches--; /* the edge forgot it */
	emu_room_watch_broken(f->room, LENDER, id);
	assert_true(NAPS(f));
	/* Words about what is gone change nothing. */
	emu_room_watch_broken(f->room, LENDER, id + 1);
	emu_room_watch_fired(f->room, CLIENT, id);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_DEVICE, DEV(LENDER, 0), "wakes_by_fault"),
			 1);
}

static void the_word_says_who_sleeps(void **state)
{
	struct fake *f = *state;
	struct sio_evt_bar b = view(f, 0, DOORBELLS, BOTH);
	struct emu_device *d = f->room->host[LENDER].device[0];
	uint64_t id = 0, second = 0;

	emu_room_doze(f->room, true); /* nobody asked for the page yet */
	assert_int_equal(watch(f, LENDER, 0, SIO_KIND_BAR, b.id, SIO_WATCH_EVENT, &id), 0);
	assert_int_equal(*(uint32_t *)d->doze.data, 0);
	emu_room_doze(f->room, true);
	assert_int_not_equal(*(uint32_t *)d->doze.data, 0);
	emu_room_doze(f->room, false);
	assert_int_equal(*(uint32_t *)d->doze.data, 0);
	/* The page lives as long as somebody looks at it. */
	assert_int_equal(watch(f, LENDER, 0, SIO_KIND_BAR, b.id, SIO_WATCH_EVENT, &second), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNWATCH, id, 0), 0);
	assert_non_null(d->doze.data);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNWATCH, second, 0), 0);
	assert_null(d->doze.data);
}

static void a_crash_takes_the_word_along(void **state)
{
	struct fake *f = *state;
	struct sio_evt_bar b = view(f, 0, DOORBELLS, BOTH);
	struct sio_evt_map m = granted_view(f, b.id);
	struct emu_device *d = f->room->host[LENDER].device[0];
	uint64_t old = 0, id = 0;

	assert_int_equal(watch(f, CLIENT, 0, SIO_KIND_MAP, m.id, SIO_WATCH_EVENT, &old), 0);
	emu_room_host_down(f->room, LENDER);
	assert_null(d->doze.data);
	fake_up(f, LENDER);
	fake_open(f, LENDER, 0);
	b = view(f, 0, DOORBELLS, BOTH);
	assert_int_equal(watch(f, LENDER, 0, SIO_KIND_BAR, b.id, SIO_WATCH_EVENT, &id), 0);
	/* What is left of the time before is none of the new page's. */
	assert_int_equal(fake_end(f, CLIENT, SIO_OP_UNWATCH, old, 0), 0);
	assert_non_null(d->doze.data);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNWATCH, id, 0), 0);
	assert_null(d->doze.data);
}

static void a_host_has_its_share_of_watches(void **state)
{
	struct fake *f = *state;
	struct sio_evt_bar b = view(f, 0, DOORBELLS, BOTH);

	for (unsigned i = 0; i < EMU_WATCHES; i++)
		assert_int_equal(watch(f, LENDER, 0, SIO_KIND_BAR, b.id, SIO_WATCH_TIMER, NULL), 0);
	assert_int_equal(watch(f, LENDER, 0, SIO_KIND_BAR, b.id, SIO_WATCH_TIMER, NULL), -ENOSPC);
	assert_non_null(strstr(fake_text(f), "host0 has 1024"));
	assert_int_equal(fake_reason(f), SIO_OUT_OF_WATCHES);
}

static void every_failure_gives_all_back(void **state)
{
	struct fake *f = *state;
	struct sio_evt_bar b = view(f, 0, DOORBELLS, BOTH);

	for (uint32_t kind = SIO_WATCH_FAULT; kind <= SIO_WATCH_EVENT; kind++)
		for (unsigned n = 1;; n++) {
			unsigned fds = f->open_fds, mems = f->open_mems, calls = f->calls;

			f->fail_at = calls + n;
			if (watch(f, LENDER, 0, SIO_KIND_BAR, b.id, kind, NULL) == 0)
				break;
			assert_int_equal(f->open_fds, fds);
			assert_int_equal(f->open_mems, mems);
			assert_int_equal(f->open_watches, kind - SIO_WATCH_FAULT);
		}
	f->fail_at = 0;
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_WATCH), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_view_without_a_watch_needs_naps),
		T(only_polled_pages_need_naps),
		T(one_timer_among_others_needs_naps),
		T(a_grant_hands_the_duty_to_its_map),
		T(a_map_of_a_crashed_host_needs_nothing),
		T(a_watch_ends_with_its_owner),
		T(a_broken_watch_is_a_timer),
		T(the_word_says_who_sleeps),
		T(a_crash_takes_the_word_along),
		T(a_host_has_its_share_of_watches),
		T(every_failure_gives_all_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
