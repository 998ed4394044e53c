/* SPDX-License-Identifier: BSD-2-Clause */
/* The segments and interrupts of the malicious host's programs, which guests use (work/guest.c). */
#ifndef SIM_BAIT_H
#define SIM_BAIT_H

#include "base/sim.h"

#define BAIT_FIRST_ID 60u
#define BAIT_IDS 4
#define BAIT_NUMBERS 4 /* of interrupts, from 1 on */

/* The program that has them. It is honest, whatever its daemon tells other daemons about it. */
void bait_main(struct sim_proc *p);

#endif
