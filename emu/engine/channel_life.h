/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a channel of a DMA engine, which follow from its ring. The ring belongs to the
 * program, which may be hostile.
 */
#ifndef EMU_CHANNEL_LIFE_H
#define EMU_CHANNEL_LIFE_H

#include <stdbool.h>

enum emu_channel_state {
	EMU_CHANNEL_IDLE,   /* it looks at the tail of its ring */
	EMU_CHANNEL_BUSY,   /* the entry at the head is under way */
	EMU_CHANNEL_LATE,   /* it is copied, and its link delays the end */
	EMU_CHANNEL_BROKEN, /* its ring makes no sense: it is not looked at any more */
	EMU_CHANNEL_STATES,
};

enum emu_channel_event {
	EMU_CHANNEL_TAKE,     /* there is an entry */
	EMU_CHANNEL_DELAY,    /* the last entry of a transfer over slow links is copied */
	EMU_CHANNEL_DONE,     /* the entry is copied, has failed, or is aborted */
	EMU_CHANNEL_NONSENSE, /* the tail is further than a ring reaches */
	EMU_CHANNEL_EVENTS,
};

/* Return: is @event possible in @state? Then *ret_next is the state after it. */
bool emu_channel_next(enum emu_channel_state state, enum emu_channel_event event,
		      enum emu_channel_state *ret_next);

#endif
