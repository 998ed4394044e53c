/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of the bond between two hosts, as a table of transitions. */
#include "smartiod/daemon/bond.h"

/* No transition: the event cannot come in this state. */
#define NONE SMARTIOD_BOND_STATES

static const unsigned char table[SMARTIOD_BOND_STATES][SMARTIOD_BOND_EVENTS] = {
	[SMARTIOD_BOND_APART] =
		{
			[SMARTIOD_BOND_EXPECT] = SMARTIOD_BOND_EXPECTED,
			[SMARTIOD_BOND_MEET] = SMARTIOD_BOND_JOINED,
			[SMARTIOD_BOND_PART] = SMARTIOD_BOND_APART,
			[SMARTIOD_BOND_END] = SMARTIOD_BOND_APART,
		},
	[SMARTIOD_BOND_JOINED] =
		{
			[SMARTIOD_BOND_EXPECT] = NONE,
			[SMARTIOD_BOND_MEET] = NONE,
			[SMARTIOD_BOND_PART] = SMARTIOD_BOND_EXPECTED,
			[SMARTIOD_BOND_END] = SMARTIOD_BOND_APART,
		},
	[SMARTIOD_BOND_EXPECTED] =
		{
			[SMARTIOD_BOND_EXPECT] = NONE,
			[SMARTIOD_BOND_MEET] = SMARTIOD_BOND_JOINED,
			[SMARTIOD_BOND_PART] = SMARTIOD_BOND_EXPECTED,
			[SMARTIOD_BOND_END] = SMARTIOD_BOND_APART,
		},
};

bool smartiod_bond_next(enum smartiod_bond bond, enum smartiod_bond_event event,
			enum smartiod_bond *ret_next)
{
	unsigned char next = table[bond][event];

	if (next == NONE)
		return false;
	*ret_next = (enum smartiod_bond)next;
	return true;
}
