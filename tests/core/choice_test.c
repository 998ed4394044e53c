/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of two ways is taken, when what they take is drawn, changes, and is disturbed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/choice.h"
#include "prng.h"

struct world {
	struct sio_choice c;
	uint64_t cost[2];   /* ticks of a call */
	unsigned disturbed; /* one call in so many takes a hundred times as long; 0: none */
	struct sio_choice_trial trial;
	unsigned last;	  /* way of the last call */
	unsigned strange; /* calls by the same way: the first ones after the other cost more */
	uint64_t calls[2], time, least; /* what all took; what the better way alone takes */
};

/* Return: it was timed. */
static bool call(struct world *w)
{
	bool timed = !sio_choice_pausing(&w->c, 1) && sio_choice_enter(&w->c, &w->trial);
	unsigned way = timed ? sio_choice_next(&w->c, &w->trial) : sio_choice_way(&w->c);
	uint64_t ticks = w->cost[way];

	w->strange = way == w->last ? w->strange + 1 : 0;
	w->last = way;
	if (w->strange < w->trial.warm)
		ticks += w->cost[!way];
	if (w->disturbed && prng_below(w->disturbed) == 0)
		ticks *= 100;
	if (timed) {
		sio_choice_took(&w->c, &w->trial, ticks);
		sio_choice_leave(&w->c);
	}
	w->calls[way]++;
	w->time += ticks;
	w->least += w->cost[0] < w->cost[1] ? w->cost[0] : w->cost[1];
	return timed;
}

static void calls(struct world *w, uint64_t n)
{
	w->calls[0] = w->calls[1] = w->time = w->least = 0;
	while (n--)
		call(w);
}

/* Until the way is no longer the one it was; then the trial is over. Return: calls. */
static uint64_t until_way(struct world *w, unsigned way, uint64_t most)
{
	uint64_t n = 0;

	for (; sio_choice_way(&w->c) != way && n < most; n++)
		call(w);
	return n;
}

static struct sio_choice_trial draw_trial(void)
{
	return (struct sio_choice_trial){.timed = 2 + (unsigned)prng_below(8),
					 .warm = (unsigned)prng_below(64)};
}

/* Costs that are at least a fifth apart, so that the better one is to be found. */
static void draw_costs(struct world *w)
{
	unsigned better = (unsigned)prng_below(2);

	w->cost[better] = 1 + prng_below(100000);
	w->cost[!better] =
		w->cost[better] + w->cost[better] / 5 + 1 + prng_below(w->cost[better] * 30);
}

static void test_finds_the_faster_way_and_stays(void **state)
{
	unsigned rounds = prng_start(1, 2000);

	(void)state;
	for (unsigned r = 0; r < rounds; r++) {
		struct world w = {.strange = 64, .trial = draw_trial()};
		unsigned better, trial = 2 * w.trial.timed + w.trial.warm;

		draw_costs(&w);
		better = w.cost[1] < w.cost[0];
		until_way(&w, better, 100 + trial);
		assert_int_equal(sio_choice_way(&w.c), better);
		for (unsigned i = 0; i < 20000; i++) {
			call(&w);
			assert_int_equal(sio_choice_way(&w.c), better);
		}
	}
}

/*
 * What is lost on looking at the other way: a share of the time, and what the warming costs here.
 */
static void test_trials_cost_their_share(void **state)
{
	unsigned rounds = prng_start(2, 50);

	(void)state;
	for (unsigned r = 0; r < rounds; r++) {
		struct world w = {.strange = 64, .trial = draw_trial()};

		draw_costs(&w);
		until_way(&w, w.cost[1] < w.cost[0], 1000);
		calls(&w, 1000000);
		assert_true((w.time - w.least) * (SIO_CHOICE_SHARE / 4) <= w.least);
	}
}

static void test_follows_a_change(void **state)
{
	unsigned rounds = prng_start(3, 100);

	(void)state;
	for (unsigned r = 0; r < rounds; r++) {
		struct world w = {.strange = 64, .trial = draw_trial()};
		uint64_t swap, n, most;

		draw_costs(&w);
		calls(&w, 100000);
		/* A pause hangs on the costs of before: the dearer the other way, the longer. */
		most = (64 + 2 * 10) * (1 + 64 * (uint64_t)SIO_CHOICE_SHARE);
		swap = w.cost[0];
		w.cost[0] = w.cost[1];
		w.cost[1] = swap;
		n = until_way(&w, w.cost[1] < w.cost[0], most);
		assert_true(n < most);
	}
}

/* One call in fifty takes a hundred times as long: a wrong choice is put right soon. */
static void test_survives_what_disturbs(void **state)
{
	unsigned rounds = prng_start(4, 50);

	(void)state;
	for (unsigned r = 0; r < rounds; r++) {
		struct world w = {.strange = 64, .trial = draw_trial(), .disturbed = 50};

		draw_costs(&w);
		calls(&w, 200000);
		assert_true(w.calls[w.cost[1] < w.cost[0]] > 150000);
	}
}

static void test_stays_where_both_are_alike(void **state)
{
	struct world w = {.cost = {100, 95}, .strange = 64, .trial = {8, 8}};

	(void)state;
	calls(&w, 100000);
	assert_int_equal(sio_choice_way(&w.c), 0);
	assert_true(w.calls[1] < 100000 / 16);
}

/* Who gets the trial's length wrong ends it late or early, but ends it. */
static void test_a_trial_ends_whoever_counts(void **state)
{
	unsigned rounds = prng_start(6, 100);

	(void)state;
	for (unsigned r = 0; r < rounds; r++) {
		struct world w = {.cost = {100, 3000}, .strange = 64};

		for (unsigned i = 0; i < 100000; i++) {
			w.trial = draw_trial();
			call(&w);
		}
		assert_true(w.calls[1] < 100000 / 4);
	}
}

/* Calls that are told many at once, and none in between, make the pause no longer. */
static void test_calls_counted_at_once(void **state)
{
	struct sio_choice c = {.left = 100};

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		assert_true(sio_choice_pausing(&c, 0));
		assert_true(sio_choice_pausing(&c, 16));
	}
	assert_int_equal(c.left, 4);
	assert_true(sio_choice_pausing(&c, 16));
	assert_false(sio_choice_pausing(&c, 0));
}

static void test_one_is_in_a_trial(void **state)
{
	struct sio_choice_trial t = {.timed = 4};
	struct sio_choice c = {0};
	unsigned n = 0;

	(void)state;
	while (sio_choice_pausing(&c, 1) || !sio_choice_enter(&c, &t))
		assert_true(++n < 100);
	assert_true(n > 0); /* the first calls pay for pages and caches */
	assert_false(sio_choice_pausing(&c, 1));
	assert_false(sio_choice_enter(&c, &t));
	sio_choice_leave(&c);
	assert_true(sio_choice_enter(&c, &t));
	sio_choice_leave(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_the_faster_way_and_stays),
		cmocka_unit_test(test_trials_cost_their_share),
		cmocka_unit_test(test_follows_a_change),
		cmocka_unit_test(test_survives_what_disturbs),
		cmocka_unit_test(test_stays_where_both_are_alike),
		cmocka_unit_test(test_a_trial_ends_whoever_counts),
		cmocka_unit_test(test_calls_counted_at_once),
		cmocka_unit_test(test_one_is_in_a_trial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
