/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a device's slot. A device loses the contents of its media only with its own power,
 * that is when it is outside its slot while its host is switched off; hence there are three states.
 */
#ifndef EMU_SLOT_LIFE_H
#define EMU_SLOT_LIFE_H

#include <stdbool.h>

enum emu_slot_state {
	EMU_SLOT_IN,		/* it is in its slot */
	EMU_SLOT_OUT,		/* it was pulled out: it does nothing and has no pages */
	EMU_SLOT_OUT_UNPOWERED, /* the same, and its host has lost its power since */
	EMU_SLOT_STATES,
};

enum emu_slot_event {
	EMU_SLOT_PULL,	    /* it is pulled out of a host that is on */
	EMU_SLOT_PUT,	    /* it is put into a host that is on */
	EMU_SLOT_TAKE,	    /* it is taken out of a host that is off */
	EMU_SLOT_SET,	    /* it is put into a host that is off */
	EMU_SLOT_POWER_OFF, /* its host is switched off, or crashes */
	EMU_SLOT_EVENTS,
};

/* Return: is @event possible in @state? Then *ret_next is the state after it. */
bool emu_slot_next(enum emu_slot_state state, enum emu_slot_event event,
		   enum emu_slot_state *ret_next);

#endif
