/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process inherits and must not keep: descriptors, the terminal. */
#ifndef TOOLS_INHERITED_H
#define TOOLS_INHERITED_H

/*
 * Closes every descriptor above 2 except those of @keep; 0 to @last_std become /dev/null, the rest
 * up to 2 stays. The reader of a pipe would otherwise wait as long as this process has its other
 * end.
 */
void tool_close_inherited(int last_std, const int *keep, unsigned n);

/*
 * In a child that is not the leader of a session: detaches it from the terminal, so that no signals
 * of the terminal reach it. The session stays. Daemons usually begin a session of their own, but
 * Linux shares a processor among sessions before it does among processes (autogroup): a machine
 * room and a client on one processor would have half of it each, and what the client does not use
 * of its half would be lost when it yields.
 */
void tool_leave_terminal(void);

#endif
