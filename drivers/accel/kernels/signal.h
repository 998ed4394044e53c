/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernels that wait for stores of another device or processor: wait, ping-pong. Words have 32 bits.
 */
#ifndef SMARTIO_ACCEL_SIGNAL_H
#define SMARTIO_ACCEL_SIGNAL_H

#include "kernel.h"

/*
 * Arguments: 0: address, 1: the value to wait for, 2: polls before it gives up; 0: it never does.
 * Result: the polls that found another value; if it gave up: the value that it found last.
 */
ACCEL_FUNCTION enum sio_accel_progress accel_kernel_wait(struct accel *a, struct sio_accel_task *t)
{
	uint32_t found;

	if (t->argument[0] & 3 || t->argument[1] > UINT32_MAX)
		return SIO_ACCEL_KERNEL_REFUSES;
	found = accel_load32(a, t->argument[0]);
	t->result = t->at;
	if (found == t->argument[1])
		return SIO_ACCEL_KERNEL_DONE;
	if (++t->at != t->argument[2])
		return SIO_ACCEL_KERNEL_WAITS;
	t->result = found;
	return SIO_ACCEL_KERNEL_FAILS;
}

/*
 * Two of these kernels work together: each writes 1, 2, 3 ... to the other's word. The one that
 * begins writes a number when the previous one has come back, the other one writes a number when it
 * has arrived. Arguments: 0: the own word, which is 0 at the start, 1: the other's word, 2: round
 * trips, 1 to 2^32 - 1, 3: 1: this kernel begins, 0: the other one, 4: where the kernel that begins
 * records the ticks of each round trip, one word each; 0: nowhere. Result: round trips.
 */
ACCEL_FUNCTION enum sio_accel_progress accel_kernel_ping_pong(struct accel *a,
							      struct sio_accel_task *t)
{
	const uint64_t begins = t->argument[3];
	uint64_t now;

	if ((t->argument[0] | t->argument[1] | t->argument[4]) & 3 || begins > 1 ||
	    t->argument[2] == 0 || t->argument[2] > UINT32_MAX)
		return SIO_ACCEL_KERNEL_REFUSES;
	if (begins && t->state[0] == t->at) { /* the next one is not sent yet */
		t->state[1] = accel_clock(a);
		accel_store32(a, t->argument[1], (uint32_t)++t->state[0]);
		return SIO_ACCEL_KERNEL_MORE;
	}
	if (accel_load32(a, t->argument[0]) != (uint32_t)(t->at + 1))
		return SIO_ACCEL_KERNEL_WAITS;
	if (!begins)
		accel_store32(a, t->argument[1], (uint32_t)(t->at + 1));
	if (begins && t->argument[4]) {
		now = accel_clock(a);
		accel_store32(a, t->argument[4] + t->at * 4, (uint32_t)(now - t->state[1]));
	}
	t->result = ++t->at;
	return t->at == t->argument[2] ? SIO_ACCEL_KERNEL_DONE : SIO_ACCEL_KERNEL_MORE;
}

#endif
