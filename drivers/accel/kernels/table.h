/* SPDX-License-Identifier: BSD-2-Clause */
/* All kernels, by name; enum sio_accel_kernel of smartio/acceldev.h has their numbers. */
#ifndef SMARTIO_ACCEL_TABLE_H
#define SMARTIO_ACCEL_TABLE_H

#include "memory.h"
#include "nvme.h"
#include "signal.h"
#include "train.h"

#define ACCEL_KERNELS(X)                                                                           \
	X(COPY, copy)                                                                              \
	X(FILL, fill)                                                                              \
	X(CHECKSUM, checksum)                                                                      \
	X(REDUCE, reduce)                                                                          \
	X(WAIT, wait)                                                                              \
	X(PING_PONG, ping_pong)                                                                    \
	X(NVME, nvme)                                                                              \
	X(TRAIN, train)

#endif
