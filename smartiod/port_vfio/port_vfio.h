/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port of a real host by the kernel's VFIO: the connection to smartio-vfio's socket, and the
 * kernel's log.
 */
#ifndef SMARTIOD_PORT_VFIO_H
#define SMARTIOD_PORT_VFIO_H

#include "smartiod/live/live.h"

/* Starts smartio-vfio if it does not run. It lies beside this program. */
extern const struct live_port live_port_vfio;

#endif
