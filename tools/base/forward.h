/* SPDX-License-Identifier: BSD-2-Clause */
/* The signals of a command that stands for a program which runs elsewhere. */
#ifndef TOOLS_FORWARD_H
#define TOOLS_FORWARD_H

#include <stdbool.h>

/*
 * Blocks the signals that such a program is to get, and with @children SIGCHLD. Signals that were
 * ignored (nohup) stay ignored. Return: a descriptor from which struct signalfd_siginfo is read
 * without blocking, and which the caller closes; -1: errno.
 */
int tool_forward_open(bool children);

#endif
