/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels that wait for somebody else's stores: wait, ping-pong. Words are of 32 bits. */
#ifndef SMARTIO_ACCEL_SIGNAL_H
#define SMARTIO_ACCEL_SIGNAL_H

#include "kernel.h"

/*
 * 0: where, 1: the value, 2: looks before it gives up; 0: it never does. Result: looks that found
 * another value; of one that gave up: the value that it found last.
 */
ACCEL_FUNCTION enum accel_progress accel_kernel_wait(struct accel *a, struct accel_task *t)
{
	uint32_t found;

	if (t->argument[0] & 3 || t->argument[1] > UINT32_MAX)
		return ACCEL_REFUSES;
	found = accel_load32(a, t->argument[0]);
	t->result = t->at;
	if (found == t->argument[1])
		return ACCEL_DONE;
	if (++t->at != t->argument[2])
		return ACCEL_WAITS;
	t->result = found;
	return ACCEL_FAILS;
}

/*
 * Two of them: each writes 1, 2, 3 ... to the other's word, one as it has seen the last number come
 * back, the other as it comes. 0: the own word, which holds 0 at the start, 1: the other's, 2:
 * round trips, 1 to 2^32 - 1, 3: 1: this one begins, 0: the other, 4: where the one that begins
 * records the ticks of each round trip, a word each; 0: nowhere. Result: round trips.
 */
ACCEL_FUNCTION enum accel_progress accel_kernel_ping_pong(struct accel *a, struct accel_task *t)
{
	const uint64_t begins = t->argument[3];
	uint64_t now;

	if ((t->argument[0] | t->argument[1] | t->argument[4]) & 3 || begins > 1 ||
	    t->argument[2] == 0 || t->argument[2] > UINT32_MAX)
		return ACCEL_REFUSES;
	if (begins && t->state[0] == t->at) { /* the next one is not sent yet */
		t->state[1] = accel_clock(a);
		accel_store32(a, t->argument[1], (uint32_t)++t->state[0]);
		return ACCEL_MORE;
	}
	if (accel_load32(a, t->argument[0]) != (uint32_t)(t->at + 1))
		return ACCEL_WAITS;
	if (!begins)
		accel_store32(a, t->argument[1], (uint32_t)(t->at + 1));
	if (begins && t->argument[4]) {
		now = accel_clock(a);
		accel_store32(a, t->argument[4] + t->at * 4, (uint32_t)(now - t->state[1]));
	}
	t->result = ++t->at;
	return t->at == t->argument[2] ? ACCEL_DONE : ACCEL_MORE;
}

#endif
