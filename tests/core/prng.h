/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers for tests: the same for the same seed. SIO_TEST_SEED sets the seed, SIO_TEST_ROUNDS how
 * many rounds; both are printed, so that a failure can be had again.
 */
#ifndef TESTS_CORE_PRNG_H
#define TESTS_CORE_PRNG_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t prng_state;

/* splitmix64 */
static inline uint64_t prng(void)
{
	uint64_t z = prng_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 to @n - 1. */
static inline uint64_t prng_below(uint64_t n)
{
	return prng() % n;
}

static inline bool prng_chance(unsigned percent)
{
	return prng_below(100) < percent;
}

/* Seed it. Return: how many rounds to do. */
static inline unsigned prng_start(uint64_t seed, unsigned rounds)
{
	const char *s = getenv("SIO_TEST_SEED"), *r = getenv("SIO_TEST_ROUNDS");

	if (s)
		seed = strtoull(s, NULL, 0);
	if (r)
		rounds = (unsigned)strtoul(r, NULL, 0);
	prng_state = seed;
	printf("# seed %" PRIu64 ", rounds %u\n", seed, rounds);
	fflush(stdout);
	return rounds;
}

#endif
