/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of random numbers: each draw advances the stream's state. */
#ifndef SIM_CHANCE_H
#define SIM_CHANCE_H

#include <stdint.h>

/* splitmix64 */
static inline uint64_t sim_draw(uint64_t *rng)
{
	uint64_t z = (*rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

#endif
