/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process behind smartio borrow. It owns all resources of the borrow, so that they are released
 * as those of any program when the process ends, for whatever reason.
 */
#ifndef TOOLS_DEVICE_HOLDER_H
#define TOOLS_DEVICE_HOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct tool_hold {
	unsigned fdid;
	uint64_t window; /* bytes that the device reaches of this host at a time; 0: none */
	bool all_memory, peers;
	bool waits;	       /* until nobody has the device; else it must be so now */
	volatile bool *placed; /* set when the device is in place; NULL: nowhere */
};

#define TOOL_PLACE_TEXT 32
/* Writes a PCI address as the kernel does. */
void tool_place_text(uint32_t place, char ret[TOOL_PLACE_TEXT]);

/* The report when the device is in place, or when it cannot be. */
struct tool_verdict {
	uint32_t place; /* as of smartio_plug_in() */
	int error;	/* -errno; 0: it is there */
	char text[512];
};

/*
 * Borrows the device, inserts it into the PCI tree, writes a struct tool_verdict to @tell (-1:
 * nowhere), and keeps it until SIGTERM or SIGINT, or until it is lost or removed from the PCI tree;
 * then ends the process, with 0 if it was in place.
 */
_Noreturn void tool_hold(const struct tool_hold *hold, int tell);
/*
 * The same in a process of its own, and another process follows each that ends, until SIGTERM or
 * SIGINT; if the first one does not get the device there is no other.
 */
_Noreturn void tool_hold_again(const struct tool_hold *hold, int tell);

#endif
