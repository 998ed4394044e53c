/* SPDX-License-Identifier: BSD-2-Clause */
/* The protocol between `smartio run` and its keeper: packets on a socket pair. */
#ifndef TOOLS_KEEPER_WIRE_H
#define TOOLS_KEEPER_WIRE_H

#include <signal.h>

#include "cluster/keeper.h"

enum {
	KEEPER_EXITED = 1, /* the program ended: status, and 1 if descendants stay */
	KEEPER_CRASHED,	   /* the host did: how many were killed */
	KEEPER_SIGNAL,	   /* to the keeper: forward this signal */
	KEEPER_STARTED,	   /* a detached program runs: its process number */
};

struct keeper_msg {
	int kind, value, more;
};

/*
 * The main function of the keeper's process. @channel: to the parent. @mask: the signals that were
 * blocked when this command started; the program begins with them.
 */
void keeper_main(const struct tool_keep *k, int channel, const sigset_t *mask)
	__attribute__((noreturn));

#endif
