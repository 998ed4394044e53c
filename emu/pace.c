/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>

#include "emu/pace.h"

#define FIRST_STEP_NS 10000u /* from a smallest window of 0 on */

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
	*p = (struct emu_pace){.min = min * 1000, .max = max * 1000, .window = min * 1000};
	return 0;
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
