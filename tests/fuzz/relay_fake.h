/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library that the relay of smartio passthrough calls, played by the fuzzer: devices, memory
 * and interrupts as they are made and ended. It aborts where the real one would refuse what a
 * relay must not ask, and any call can be made to fail.
 */
#ifndef TESTS_FUZZ_RELAY_FAKE_H
#define TESTS_FUZZ_RELAY_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#define FAKE_DEVICES 2u
#define FAKE_BAR0 0x4000u
#define FAKE_BAR2 0x100000u /* of device 1 alone */

struct fake_segment;

/* What a device reaches. */
struct fake_map {
	struct fake_map *next;
	const struct fake_segment *of;
	uint64_t at, offset, size;
};

struct fake_device {
	bool borrowed, lost;
	unsigned resets, forced; /* events that wait */
	unsigned connected, vectors;
	struct fake_map *maps;
};

extern struct fake_device fake_device[FAKE_DEVICES];

void fake_begin(void);
/* The @call-th call from now on that can fail fails; 0: none. */
void fake_fail(unsigned call);
/* Aborts unless everything was given back. */
void fake_end(void);
/* Is the map of a BAR? Of which device, and which BAR? */
bool fake_is_bar(const struct fake_map *map, unsigned *ret_device, unsigned *ret_bar);

#endif
