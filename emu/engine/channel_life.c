/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of a channel of a DMA engine, as a table of transitions. */
#include "emu/engine/channel_life.h"

/* No transition: the event cannot come in this state. */
#define NONE EMU_CHANNEL_STATES

static const unsigned char table[EMU_CHANNEL_STATES][EMU_CHANNEL_EVENTS] = {
	[EMU_CHANNEL_IDLE] =
		{
			[EMU_CHANNEL_TAKE] = EMU_CHANNEL_BUSY,
			[EMU_CHANNEL_DELAY] = NONE,
			[EMU_CHANNEL_DONE] = NONE,
			[EMU_CHANNEL_NONSENSE] = EMU_CHANNEL_BROKEN,
		},
	[EMU_CHANNEL_BUSY] =
		{
			[EMU_CHANNEL_TAKE] = NONE,
			[EMU_CHANNEL_DELAY] = EMU_CHANNEL_LATE,
			[EMU_CHANNEL_DONE] = EMU_CHANNEL_IDLE,
			[EMU_CHANNEL_NONSENSE] = NONE,
		},
	[EMU_CHANNEL_LATE] =
		{
			[EMU_CHANNEL_TAKE] = NONE,
			[EMU_CHANNEL_DELAY] = NONE,
			[EMU_CHANNEL_DONE] = EMU_CHANNEL_IDLE,
			[EMU_CHANNEL_NONSENSE] = NONE,
		},
	[EMU_CHANNEL_BROKEN] =
		{
			[EMU_CHANNEL_TAKE] = NONE,
			[EMU_CHANNEL_DELAY] = NONE,
			[EMU_CHANNEL_DONE] = NONE,
			[EMU_CHANNEL_NONSENSE] = NONE,
		},
};

bool emu_channel_next(enum emu_channel_state state, enum emu_channel_event event,
		      enum emu_channel_state *ret_next)
{
	unsigned char next = table[state][event];

	if (next == NONE)
		return false;
	*ret_next = next;
	return true;
}
