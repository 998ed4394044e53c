/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bond of two hosts: all that they share, and the connection of their daemons (glossary: bond).
 * Its states are a table of transitions. The bond ends when the fabric reports it (a link that is
 * down, a new start of the peer). Where ports outlive their daemons the end of the connection alone
 * does not end it: then the peer is expected to connect again.
 */
#ifndef SMARTIOD_BOND_H
#define SMARTIOD_BOND_H

#include "smartiod/base/state.h"

/* How long a peer is expected: longer than a daemon that was started again waits for programs. */
#define SMARTIOD_EXPECT_NS 30000000000ULL

enum smartiod_bond_event {
	SMARTIOD_BOND_EXPECT, /* our start: a daemon before us may have shared something with it */
	SMARTIOD_BOND_MEET,   /* both daemons have said HELLO */
	SMARTIOD_BOND_PART,   /* the connection has ended, and the port holds what is shared */
	SMARTIOD_BOND_END,    /* the host is lost: link, start, limit, or a lie */
	SMARTIOD_BOND_EVENTS,
};

/* Return: can @event come in @bond? Then *ret_next is the bond after it. */
bool smartiod_bond_next(enum smartiod_bond bond, enum smartiod_bond_event event,
			enum smartiod_bond *ret_next);

#endif
