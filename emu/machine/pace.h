/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pacing of the room: how long it polls before it sleeps, when it yields, and when its sockets are
 * served. Pure logic: times come from the caller.
 */
#ifndef EMU_PACE_H
#define EMU_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

#define EMU_PACE_LIMIT_US 100000u
/*
 * Units of work between two checks of the sockets; as pages of 4 KiB about a millisecond's work. A
 * request to a busy room waits this long.
 */
#define EMU_PACE_TURNS 64u
#define EMU_PACE_UNITS 4096u

struct emu_pace {
	uint64_t min, max, window; /* nanoseconds; window: look so long after the last work */
	uint64_t looked;	   /* nanoseconds, after the last work */
	uint64_t await;		   /* look at least so long: a store is to come */
	uint64_t last_rest;	   /* when; 0: none since the last work */
	unsigned rests;
	unsigned empty;	       /* looks that found nothing, in a row */
	unsigned patience;     /* such looks before a yield */
	unsigned waits;	       /* for work, that came */
	unsigned turns, units; /* of work since the sockets had theirs */
};

/* What to do after a few polls without work. */
enum emu_rest { EMU_REST_YIELD, EMU_REST_POLL /* the sockets */, EMU_REST_SLEEP };

/* Parses "MIN" or "MIN:MAX" in microseconds; -EINVAL says what is right. */
int emu_pace_parse(struct emu_pace *p, const char *text, struct sio_err *reterr);
/* A poll found @units of work. Return: whether the sockets are to be served now. */
bool emu_pace_worked(struct emu_pace *p, unsigned units);
/* A poll found no work. Return: whether to rest now. */
static inline bool emu_pace_found_nothing(struct emu_pace *p)
{
	return ++p->empty >= p->patience;
}
enum emu_rest emu_pace_rest(struct emu_pace *p, uint64_t now);
/* Something happened that may bring work: polls for another window. */
void emu_pace_look_on(struct emu_pace *p);
/* A program waits for the room's answer before it can store: polls for longer. */
void emu_pace_await(struct emu_pace *p);
/* A sleep ended after @ns because there was something to do. */
void emu_pace_slept(struct emu_pace *p, uint64_t ns);

#endif
