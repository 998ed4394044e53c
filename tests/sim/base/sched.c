/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual time, the event queue, and the one source of chance. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/sim.h"

struct sim_did sim_did;

#define SPAN 50000u /* ns that the heap of near events reaches ahead */

struct event {
	uint64_t when, tie, number;
	sim_fn fn;
	void *arg;
};

struct heap {
	struct event *event;
	size_t n, room;
};

uint64_t sim_time, sim_rng;
static struct {
	uint64_t number, done;
	/*
	 * Most events are near. Those beyond the horizon, such as time-outs that will never be
	 * needed, wait in a second heap, so that the first stays small.
	 */
	struct heap soon, later;
	/* between the two: all events of @later are at or after it, all of @soon before */
	uint64_t horizon;
	uint64_t watch_at;
	void (*watch)(void);
} S;

void sim_start(uint64_t seed)
{
	memset(&S, 0, sizeof(S));
	sim_rng = seed ^ 0x9e3779b97f4a7c15ull;
	sim_time = 1000000;
	S.watch_at = UINT64_MAX;
	sim_trace_start();
}

void sim_end(void)
{
	free(S.soon.event);
	free(S.later.event);
	S.soon = S.later = (struct heap){0};
}

uint64_t sim_events(void)
{
	return S.done;
}

static bool before(const struct event *a, const struct event *b)
{
	if (a->when != b->when)
		return a->when < b->when;
	if (a->tie != b->tie)
		return a->tie < b->tie;
	return a->number < b->number;
}

static void push(struct heap *h, const struct event *e)
{
	size_t i;

	if (h->n == h->room) {
		h->room = h->room ? h->room * 2 : 256;
		h->event = realloc(h->event, h->room * sizeof(*h->event));
		assert(h->event);
	}
	for (i = h->n++; i > 0 && before(e, &h->event[(i - 1) / 2]); i = (i - 1) / 2)
		h->event[i] = h->event[(i - 1) / 2];
	h->event[i] = *e;
}

static struct event pop(struct heap *h)
{
	struct event top = h->event[0], *last = &h->event[--h->n];
	size_t i = 0;

	for (;;) {
		size_t c = 2 * i + 1;

		if (c >= h->n)
			break;
		if (c + 1 < h->n && before(&h->event[c + 1], &h->event[c]))
			c++;
		if (!before(&h->event[c], last))
			break;
		h->event[i] = h->event[c];
		i = c;
	}
	h->event[i] = *last;
	return top;
}

/* The first event; NULL: there is none. */
static const struct event *first(void)
{
	if (S.soon.n == 0 && S.later.n > 0) {
		S.horizon = S.later.event[0].when + SPAN;
		while (S.later.n > 0 && S.later.event[0].when < S.horizon) {
			struct event e = pop(&S.later);

			push(&S.soon, &e);
		}
	}
	return S.soon.n ? &S.soon.event[0] : NULL;
}

static void push_at(uint64_t when, uint64_t tie, sim_fn fn, void *arg)
{
	struct event e = {when, tie, ++S.number, fn, arg};

	push(when < S.horizon ? &S.soon : &S.later, &e);
}

void sim_after(uint64_t delay, sim_fn fn, void *arg)
{
	uint64_t tie = sim_random();

	push_at(sim_time + delay, tie, fn, arg);
}

void sim_after_ordered(uint64_t *channel, uint64_t delay, sim_fn fn, void *arg)
{
	uint64_t when = sim_time + delay;

	/* Strictly later than the one before, so that order never depends on a tie. */
	if (when <= *channel)
		when = *channel + 1;
	*channel = when;
	push_at(when, 0, fn, arg);
}

void sim_watch(uint64_t when, void (*fn)(void))
{
	S.watch_at = when;
	S.watch = fn;
}

bool sim_run(bool (*done)(void *arg), void *arg, uint64_t limit)
{
	uint64_t end = sim_time + limit;

	assert(!sim_coro_current());
	while (!done(arg)) {
		const struct event *next = first();
		struct event e;

		if (!next || next->when > end) {
			/* No event is left before then, so time advances at once. */
			if (limit != UINT64_MAX && sim_time < end)
				sim_time = end;
			return done(arg);
		}
		e = pop(&S.soon);
		if (e.when > sim_time)
			sim_time = e.when;
		S.done++;
		e.fn(e.arg);
		if (sim_time >= S.watch_at)
			S.watch();
	}
	return true;
}
