/* SPDX-License-Identifier: BSD-2-Clause */
/* How drivers' texts of -ENOMEM end: what to do about it. */
#ifndef DRIVERS_BASE_MEMORY_H
#define DRIVERS_BASE_MEMORY_H

#define SIO_DRIVER_MORE_MEMORY                                                                     \
	"free some on the host, or raise the process's limit (ulimit -v, memory.max)"

#endif
