/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers from a seed (xorshift64*), so that a failure can be had again. */
#ifndef TESTS_LIB_RANDOM_H
#define TESTS_LIB_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1du;
}

static inline uint32_t random_below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)((random_next(seed) >> 32) * n >> 32);
}

#endif
