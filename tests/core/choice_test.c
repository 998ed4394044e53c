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

/* However dear the other way is, it is looked at again. */
static void test_a_pause_has_an_end(void **state)
{
	struct world w = {.cost = {1, 1000000}, .trial = {2, 0}};

	(void)state;
	while (!sio_choice_decided(&w.c))
		call(&w);
	assert_int_equal(w.c.left, 1u << 24);
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

/* ---- spans: what a call takes its caller until the next one ---- */

struct caller {
	struct sio_choice c;
	struct sio_choice_span span;
	uint64_t now, own[2], after[2]; /* ticks of a call, and of what is done until the next */
	uint64_t calls[2];
};

static const struct sio_choice_trial span_trial = {.timed = 3, .warm = 1};

static void span_call(struct caller *w, struct sio_choice *c)
{
	bool timed;
	unsigned way;

	if (w->span.c)
		sio_choice_span_end(&w->span, &span_trial, w->now);
	assert_null(w->span.c);
	timed = !sio_choice_pausing(c, 1) && sio_choice_enter(c, &span_trial);
	way = timed ? sio_choice_next(c, &span_trial) : sio_choice_way(c);
	w->now += w->own[way];
	if (timed) {
		sio_choice_span_begin(&w->span, c, &span_trial, w->now - w->own[way], w->now, 1);
		sio_choice_leave(c);
	}
	w->now += w->after[way];
	w->calls[way]++;
}

/* The way whose caller goes on sooner is taken, though its calls may take longer. */
static void test_a_span_counts_who_waits(void **state)
{
	unsigned rounds = prng_start(7, 1000);

	(void)state;
	for (unsigned r = 0; r < rounds; r++) {
		unsigned better = (unsigned)prng_below(2), n = 0;
		struct caller w = {0};

		for (unsigned way = 0; way < 2; way++) {
			w.own[way] = 1000 + prng_below(1000);
			w.after[way] = prng_below(SIO_CHOICE_SPAN * 250);
		}
		w.after[!better] = w.own[better] + w.after[better] - w.own[!better] + 2000;
		w.own[!better] += (w.own[better] + w.after[better]) / 4;
		while (!sio_choice_decided(&w.c) && n++ < 100)
			span_call(&w, &w.c);
		assert_true(n >= 2 * span_trial.timed + span_trial.warm && n < 100);
		for (unsigned i = 0; i < 10000; i++)
			span_call(&w, &w.c);
		assert_int_equal(sio_choice_way(&w.c), better);
		assert_true(w.calls[!better] * 32 < w.calls[better]);
	}
}

/* What a program does between two calls, if it is long, is not taken for what they cost. */
static void test_a_long_pause_counts_for_neither(void **state)
{
	unsigned rounds = prng_start(8, 1000);

	(void)state;
	for (unsigned r = 0; r < rounds; r++) {
		unsigned better = (unsigned)prng_below(2);
		struct caller w = {0};

		w.own[better] = 1000 + prng_below(1000);
		w.own[!better] = w.own[better] + w.own[better] / 5;
		for (unsigned i = 0; i < 10000; i++) {
			w.after[0] = w.after[1] = 100000 + prng_below(1000000);
			span_call(&w, &w.c);
		}
		assert_int_equal(sio_choice_way(&w.c), better);
		assert_true(w.calls[!better] * 32 < w.calls[better]);
	}
}

/* A ring whose places have a choice each: the next place's call ends the span of this one's. */
static void test_a_span_ends_with_a_call_of_any_choice(void **state)
{
	struct caller w = {.own = {100, 110}, .after = {100, 20}};
	struct sio_choice places[3] = {{0}};

	(void)state;
	for (unsigned i = 0; i < 30000; i++)
		span_call(&w, &places[i % 3]);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(sio_choice_way(&places[i]), 1);
	assert_true(w.calls[0] * 64 < w.calls[1]);
}

/* Two threads, one choice: who was overtaken tells nothing, and the trial ends. */
static void test_spans_of_two_threads(void **state)
{
	struct caller a = {.own = {300, 100}}, b = {.own = {300, 100}, .after = {5, 5}};
	uint32_t call;

	(void)state;
	while (!a.span.c)
		span_call(&a, &a.c);
	span_call(&b, &a.c);
	assert_non_null(b.span.c);
	call = a.c.call;
	sio_choice_span_end(&a.span, &span_trial, a.now);
	assert_int_equal(a.c.call, call + 1);
	sio_choice_span_end(&b.span, &span_trial, b.now);
	assert_int_equal(a.c.call, call + 1);
	for (unsigned i = 0; i < 1000; i++) {
		span_call(&a, &a.c);
		span_call(&b, &a.c);
	}
	assert_int_equal(sio_choice_way(&a.c), 1);
	/* Nothing to end, and a trial that is over, are no harm. */
	sio_choice_span_end(&a.span, &span_trial, a.now);
	sio_choice_span_end(&a.span, &span_trial, a.now);
	a.c.left = 100;
	sio_choice_span_begin(&a.span, &a.c, &span_trial, 0, 1, 1);
	sio_choice_span_end(&a.span, &span_trial, 2);
	assert_int_equal(a.c.call, 0);
	assert_null(a.span.c);
}

/* Each thread makes one call: nobody comes back to end a span. */
static void test_spans_that_nobody_ends(void **state)
{
	struct caller w = {.own = {1100, 1000}, .after = {5, 5}};
	unsigned n = 0;

	(void)state;
	while (!sio_choice_decided(&w.c)) {
		span_call(&w, &w.c);
		w.span.c = NULL;
		assert_true(++n < 1000);
	}
	assert_int_equal(sio_choice_way(&w.c), 1);
}

/* A clock that goes back is one slow call. */
static void test_a_span_of_a_clock_that_jumps(void **state)
{
	struct caller w = {.own = {1100, 1000}, .after = {5, 5}};

	(void)state;
	while (!w.span.c)
		span_call(&w, &w.c);
	sio_choice_span_begin(&w.span, &w.c, &span_trial, 1000, 0, 1);
	assert_true(w.span.own == SIO_CHOICE_TICKS);
	sio_choice_span_end(&w.span, &span_trial, 0);
	assert_true(w.c.sum[0] == SIO_CHOICE_TICKS * SIO_CHOICE_SPAN);
	while (!sio_choice_decided(&w.c))
		span_call(&w, &w.c);
	assert_int_equal(sio_choice_way(&w.c), 1);
}

/* More work takes longer, and is no slower for that. */
static void test_a_span_is_of_units(void **state)
{
	struct caller w = {.own = {100, 100}};

	(void)state;
	while (!w.span.c)
		span_call(&w, &w.c);
	w.span.units = 4;
	sio_choice_span_end(&w.span, &span_trial, w.span.began + 400);
	assert_int_equal(w.c.sum[0], 100);
}

/* Two see that a pause is over: who comes when the other's trial has just ended is in the next. */
static void test_enters_when_a_trial_has_just_ended(void **state)
{
	struct sio_choice_trial t = {.timed = 4};
	struct sio_choice c = {0};

	(void)state;
	while (sio_choice_pausing(&c, 1) || !sio_choice_enter(&c, &t))
		;
	assert_false(sio_choice_pausing(&c, 1)); /* the second one */
	for (unsigned i = 0; i < 2 * t.timed; i++)
		sio_choice_took(&c, &t, 100);
	sio_choice_leave(&c);
	assert_true(c.left > 0);
	for (uint32_t left = c.left, i = 0; i < 2; i++) {
		assert_false(sio_choice_enter(&c, &t));
		assert_int_equal(c.left, left); /* the pause is no other's, and nobody is in it */
		assert_false(c.busy);
	}
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
		cmocka_unit_test(test_a_pause_has_an_end),
		cmocka_unit_test(test_one_is_in_a_trial),
		cmocka_unit_test(test_enters_when_a_trial_has_just_ended),
		cmocka_unit_test(test_a_span_counts_who_waits),
		cmocka_unit_test(test_a_long_pause_counts_for_neither),
		cmocka_unit_test(test_a_span_ends_with_a_call_of_any_choice),
		cmocka_unit_test(test_spans_of_two_threads),
		cmocka_unit_test(test_spans_that_nobody_ends),
		cmocka_unit_test(test_a_span_of_a_clock_that_jumps),
		cmocka_unit_test(test_a_span_is_of_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
