/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the room looks before it sleeps. Pure: times come from the caller. */
#ifndef EMU_PACE_H
#define EMU_PACE_H

#include <stdint.h>

#include "core/err.h"

#define EMU_PACE_LIMIT_US 100000u

struct emu_pace {
	uint64_t min, max, window; /* nanoseconds; window: look so long after the last work */
};

/* "MIN" or "MIN:MAX" in microseconds; -EINVAL says what is right. */
int emu_pace_parse(struct emu_pace *p, const char *text, struct sio_err *reterr);
/* A sleep ended after @ns because there was something to do. */
void emu_pace_slept(struct emu_pace *p, uint64_t ns);

#endif
