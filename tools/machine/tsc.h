/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TOOLS_MACHINE_TSC_H
#define TOOLS_MACHINE_TSC_H

#include <stdint.h>

/*
 * The frequency of the time stamp counter of an emulated processor, in kHz: QEMU uses this
 * machine's. Kernels measure it when they start, and where this machine is busy they are wrong by
 * factors: then their clock runs too fast, and every time limit is too short. Takes 0.2 s.
 */
uint64_t machine_tsc_khz(void);

#endif
