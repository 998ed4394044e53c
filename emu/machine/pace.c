/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>

#include "emu/machine/pace.h"

#define FIRST_STEP_NS 10000u /* from a smallest window of 0 on */
#define PATIENT 32u	     /* looks: longer than a client at work needs for its next command */
#define IMPATIENT 1u
#define WAITS_PER_PROBE 64u
/* Between two rests, if nobody else had the processor. */
#define STRETCH_NS 4000u
#define RESTS_PER_POLL 16u
/* Between a fault and its store the program must get a processor, perhaps this very one. */
#define AWAIT_NS 500000u

static bool number(const char **at, uint64_t *ret)
{
	const char *p = *at;
	uint64_t value = 0;

	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++) {
		value = value * 10 + (uint64_t)(*p - '0');
		if (value > EMU_PACE_LIMIT_US)
			return false;
	}
	*at = p;
	*ret = value;
	return true;
}

int emu_pace_parse(struct emu_pace *p, const char *text, struct sio_err *reterr)
{
	const char *at = text;
	uint64_t min = 0, max;
	bool good = number(&at, &min);

	max = min;
	if (good && *at == ':') {
		at++;
		good = number(&at, &max);
	}
	if (!good || *at || max < min)
		return sio_fail(reterr, -EINVAL,
				"'%s': MIN or MIN:MAX in microseconds is right, 0 to %u, MIN not "
				"above MAX",
				text, EMU_PACE_LIMIT_US);
	*p = (struct emu_pace){
		.min = min * 1000, .max = max * 1000, .window = min * 1000, .patience = PATIENT};
	return 0;
}

/*
 * A wait is over. Where clients share this processor nothing can come before the yield: looking on
 * longer than needed is their time. Where they run elsewhere a yield is late. So a wait that ended
 * while looking makes the next ones patient, one that took a yield makes them impatient; now and
 * then one is patient all the same, to find out.
 */
static void waited(struct emu_pace *p)
{
	bool probe = ++p->waits % WAITS_PER_PROBE == 0;

	p->patience = p->empty < p->patience || probe ? PATIENT : IMPATIENT;
	p->empty = 0;
}

/* By work, not by time: what a look at the sockets waits for is what was done before. */
bool emu_pace_worked(struct emu_pace *p, unsigned units)
{
	if (p->empty)
		waited(p);
	emu_pace_look_on(p);
	p->await = 0;
	p->units += units;
	if (++p->turns < EMU_PACE_TURNS && p->units < EMU_PACE_UNITS)
		return false;
	p->turns = p->units = 0;
	return true;
}

/*
 * The time that others had the processor for does not count: the room did not look then, and
 * clients of a processor that is shared by many need it to come to their next command.
 */
enum emu_rest emu_pace_rest(struct emu_pace *p, uint64_t now)
{
	uint64_t ns = p->last_rest ? now - p->last_rest : 0;

	p->looked += ns < STRETCH_NS ? ns : STRETCH_NS;
	p->last_rest = now;
	if (p->looked >= p->window && p->looked >= p->await) {
		p->await = 0;
		return EMU_REST_SLEEP;
	}
	return ++p->rests % RESTS_PER_POLL ? EMU_REST_YIELD : EMU_REST_POLL;
}

void emu_pace_look_on(struct emu_pace *p)
{
	p->looked = 0;
	p->last_rest = 0;
}

/* What it waited for while it slept says nothing about who is where. */
void emu_pace_await(struct emu_pace *p)
{
	p->await = AWAIT_NS;
	p->patience = PATIENT;
	p->empty = 0;
}

/*
 * Grow only where the largest window would have met the work: longer sleeps cost the same wake, and
 * looking before them is for nothing.
 */
void emu_pace_slept(struct emu_pace *p, uint64_t ns)
{
	if (ns >= p->max) {
		p->window = p->min;
		return;
	}
	p->window = p->window ? p->window * 2 : FIRST_STEP_NS;
	if (p->window > p->max)
		p->window = p->max;
}
