/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual time, the event queue, and the one source of chance. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct event {
	uint64_t when, tie, number;
	sim_fn fn;
	void *arg;
};

static struct {
	uint64_t now, rng, number, done;
	struct event *heap;
	size_t n, room;
	uint64_t watch_at;
	void (*watch)(void);
} S;

void sim_start(uint64_t seed)
{
	memset(&S, 0, sizeof(S));
	S.rng = seed ^ 0x9e3779b97f4a7c15ull;
	S.now = 1000000;
	S.watch_at = UINT64_MAX;
	sim_trace_start();
}

void sim_end(void)
{
	free(S.heap);
	S.heap = NULL;
	S.n = S.room = 0;
}

uint64_t sim_now(void)
{
	return S.now;
}

void sim_advance(uint64_t ns)
{
	S.now += ns;
}

uint64_t sim_events(void)
{
	return S.done;
}

/* splitmix64 */
uint64_t sim_draw(uint64_t *rng)
{
	uint64_t z = (*rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint64_t sim_random(void)
{
	return sim_draw(&S.rng);
}

uint64_t sim_below(uint64_t n)
{
	return n ? sim_random() % n : 0;
}

bool sim_chance(uint64_t part, uint64_t whole)
{
	return sim_random() % whole < part;
}

static bool before(const struct event *a, const struct event *b)
{
	if (a->when != b->when)
		return a->when < b->when;
	if (a->tie != b->tie)
		return a->tie < b->tie;
	return a->number < b->number;
}

static void push(const struct event *e)
{
	size_t i;

	if (S.n == S.room) {
		S.room = S.room ? S.room * 2 : 256;
		S.heap = realloc(S.heap, S.room * sizeof(*S.heap));
		assert(S.heap);
	}
	for (i = S.n++; i > 0 && before(e, &S.heap[(i - 1) / 2]); i = (i - 1) / 2)
		S.heap[i] = S.heap[(i - 1) / 2];
	S.heap[i] = *e;
}

static struct event pop(void)
{
	struct event top = S.heap[0], last = S.heap[--S.n];
	size_t i = 0;

	for (;;) {
		size_t c = 2 * i + 1;

		if (c >= S.n)
			break;
		if (c + 1 < S.n && before(&S.heap[c + 1], &S.heap[c]))
			c++;
		if (!before(&S.heap[c], &last))
			break;
		S.heap[i] = S.heap[c];
		i = c;
	}
	S.heap[i] = last;
	return top;
}

static void push_at(uint64_t when, uint64_t tie, sim_fn fn, void *arg)
{
	struct event e = {when, tie, ++S.number, fn, arg};

	push(&e);
}

void sim_after(uint64_t delay, sim_fn fn, void *arg)
{
	uint64_t tie = sim_random();

	push_at(S.now + delay, tie, fn, arg);
}

void sim_after_ordered(uint64_t *channel, uint64_t delay, sim_fn fn, void *arg)
{
	uint64_t when = S.now + delay;

	/* Strictly later than the one before: no tie decides. */
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
	uint64_t end = S.now + limit;

	assert(!sim_coro_current());
	while (!done(arg)) {
		struct event e;

		if (S.n == 0 || S.heap[0].when > end) {
			/* Nothing more happens until then: time passes at once. */
			if (limit != UINT64_MAX && S.now < end)
				S.now = end;
			return done(arg);
		}
		e = pop();
		if (e.when > S.now)
			S.now = e.when;
		S.done++;
		e.fn(e.arg);
		if (S.now >= S.watch_at)
			S.watch();
	}
	return true;
}
