/* SPDX-License-Identifier: BSD-2-Clause */
/* What we inherited and must not hold on to: descriptors, the terminal. */
#ifndef TOOLS_LETGO_H
#define TOOLS_LETGO_H

/*
 * Let go of everything but @keep: 0 to @last_std become /dev/null, whatever else is open is closed.
 * The other end of a pipe waits for as long as anybody holds ours.
 */
void tool_let_go(int last_std, const int *keep, unsigned n);

/*
 * In a child, not the leader of a session: no terminal's signals reach it any more. The session
 * stays. A daemon would begin one of its own, but Linux shares a processor among sessions before it
 * does among processes (autogroup): a machine room and a client on one processor would have half of
 * it each, and what the client does not need of its half it would yield away for nothing.
 */
void tool_leave_terminal(void);

#endif
