/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors that we inherited and must not hold on to. */
#ifndef TOOLS_LETGO_H
#define TOOLS_LETGO_H

/*
 * Let go of everything but @keep: 0 to @last_std become /dev/null, whatever else is open is closed.
 * The other end of a pipe waits for as long as anybody holds ours.
 */
void tool_let_go(int last_std, const int *keep, unsigned n);

#endif
