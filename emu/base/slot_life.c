/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of a device's slot, as a table of transitions. */
#include "emu/base/slot_life.h"

/* No transition: the event cannot come in this state. */
#define NONE EMU_SLOT_STATES

static const unsigned char table[EMU_SLOT_STATES][EMU_SLOT_EVENTS] = {
	[EMU_SLOT_IN] =
		{
			[EMU_SLOT_PULL] = EMU_SLOT_OUT,
			[EMU_SLOT_PUT] = NONE,
			[EMU_SLOT_TAKE] = EMU_SLOT_OUT_UNPOWERED,
			[EMU_SLOT_SET] = NONE,
			[EMU_SLOT_POWER_OFF] = EMU_SLOT_IN,
		},
	[EMU_SLOT_OUT] =
		{
			[EMU_SLOT_PULL] = NONE,
			[EMU_SLOT_PUT] = EMU_SLOT_IN,
			[EMU_SLOT_TAKE] = NONE,
			[EMU_SLOT_SET] = NONE,
			[EMU_SLOT_POWER_OFF] = EMU_SLOT_OUT_UNPOWERED,
		},
	[EMU_SLOT_OUT_UNPOWERED] =
		{
			[EMU_SLOT_PULL] = NONE,
			[EMU_SLOT_PUT] = EMU_SLOT_IN,
			[EMU_SLOT_TAKE] = NONE,
			[EMU_SLOT_SET] = EMU_SLOT_IN,
			[EMU_SLOT_POWER_OFF] = EMU_SLOT_OUT_UNPOWERED,
		},
};

bool emu_slot_next(enum emu_slot_state state, enum emu_slot_event event,
		   enum emu_slot_state *ret_next)
{
	unsigned char next = table[state][event];

	if (next == NONE)
		return false;
	*ret_next = next;
	return true;
}
