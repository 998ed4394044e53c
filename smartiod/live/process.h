/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of this host, as the kernel shows them. */
#ifndef LIVE_PROCESS_H
#define LIVE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/*
 * When process @pid, the one that connected socket @fd, was started: with @pid it is one process
 * and no other. 0: it is not known, as the process is gone, or hidden.
 */
uint64_t live_process_start(int fd, pid_t pid);

#endif
