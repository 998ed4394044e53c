/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>

#include "core/choice.h"

#define FIRST_PAUSE 2u	   /* timed calls: the first pay for pages and caches */
#define LONGEST (1u << 24) /* calls */
#define AFTER_CHANGE 4u	   /* trials' length */
#define SHORTEST 16u	   /* trials' length: where both ways are alike, the clock is what costs */

bool sio_choice_enter(struct sio_choice *c, const struct sio_choice_trial *t)
{
	if (__atomic_exchange_n(&c->busy, 1, __ATOMIC_ACQUIRE))
		return false;
	/* Who was there before may have ended the trial just now. */
	if (c->begun && __atomic_load_n(&c->left, __ATOMIC_RELAXED) == 0)
		return true;
	if (!c->begun) {
		c->begun = 1;
		__atomic_store_n(&c->left, FIRST_PAUSE * t->timed, __ATOMIC_RELAXED);
	}
	sio_choice_leave(c);
	return false;
}

void sio_choice_leave(struct sio_choice *c)
{
	__atomic_store_n(&c->busy, 0, __ATOMIC_RELEASE);
}

/* First the way in use, then the other: its first calls pay for what the former left behind. */
unsigned sio_choice_next(const struct sio_choice *c, const struct sio_choice_trial *t)
{
	return c->call < t->timed ? c->way : !c->way;
}

/* Of as many calls as are compared but the slowest. */
static uint64_t compared(const struct sio_choice *c, unsigned way)
{
	return c->sum[way] - c->slowest[way];
}

/*
 * The share of the time that the trial took more than the same calls by the way now in use decides
 * on the pause. Who changed looks again soon: it may have been misled.
 */
static uint32_t pause_after(const struct sio_choice *c, const struct sio_choice_trial *t,
			    uint64_t used, bool changed)
{
	uint32_t calls = 2 * t->timed + t->warm;
	uint64_t took = c->sum[0] + c->sum[1] + c->warming, pause;

	if (changed)
		return calls * AFTER_CHANGE;
	used = used / (t->timed - 1) + 1; /* of one call */
	if (took <= used * calls)
		return calls * SHORTEST;
	pause = (took - used * calls) * SIO_CHOICE_SHARE / used;
	if (pause < calls * SHORTEST)
		return calls * SHORTEST;
	return pause < LONGEST ? (uint32_t)pause : LONGEST;
}

static void decide(struct sio_choice *c, const struct sio_choice_trial *t)
{
	uint64_t used = compared(c, c->way), other = compared(c, !c->way);
	bool changed = other < used - used / 16;

	if (changed)
		__atomic_store_n(&c->way, !c->way, __ATOMIC_RELAXED);
	__atomic_store_n(&c->left, pause_after(c, t, used, changed), __ATOMIC_RELAXED);
	__atomic_store_n(&c->decided, 1, __ATOMIC_RELAXED);
	c->call = 0;
	c->sum[0] = c->sum[1] = c->slowest[0] = c->slowest[1] = c->warming = 0;
}

void sio_choice_took(struct sio_choice *c, const struct sio_choice_trial *t, uint64_t ticks)
{
	unsigned way = sio_choice_next(c, t);

	if (way != c->way && c->call < t->timed + t->warm) {
		c->warming += ticks;
	} else {
		c->sum[way] += ticks;
		if (ticks > c->slowest[way])
			c->slowest[way] = ticks;
	}
	c->open = 0;
	if (++c->call >= 2 * t->timed + t->warm)
		decide(c, t);
}

void sio_choice_span_begin(struct sio_choice_span *s, struct sio_choice *c,
			   const struct sio_choice_trial *t, uint64_t began, uint64_t now,
			   uint32_t units)
{
	uint64_t own = now - began < SIO_CHOICE_TICKS ? now - began : SIO_CHOICE_TICKS;

	s->c = NULL;
	if (c->open++ < SIO_CHOICE_OPEN)
		*s = (struct sio_choice_span){
			.c = c, .began = began, .own = own, .units = units, .call = c->call};
	else
		sio_choice_took(c, t, own / units);
}

void sio_choice_span_end(struct sio_choice_span *s, const struct sio_choice_trial *t, uint64_t now)
{
	struct sio_choice *c = s->c;
	uint64_t ticks = now - s->began;

	s->c = NULL;
	if (!c || !sio_choice_enter(c, t))
		return;
	/* Another thread's call may have been told in its place. */
	if (c->call == s->call) {
		if (ticks / SIO_CHOICE_SPAN > s->own)
			ticks = s->own * SIO_CHOICE_SPAN;
		sio_choice_took(c, t, ticks / s->units);
	}
	sio_choice_leave(c);
}
