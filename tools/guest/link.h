/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket at which a virtual machine's emulator connects to the device, one at a time. */
#ifndef TOOLS_GUEST_LINK_H
#define TOOLS_GUEST_LINK_H

#include "guest/relay.h"

/*
 * Serves @r at @path until @stop (a descriptor) is readable: each emulator gets the device when it
 * connects, and it is returned to other users when the emulator disconnects.
 * Return: 0: stopped; -errno: the socket cannot be made.
 */
int relay_serve(struct relay *r, const char *path, int stop, struct sio_err *reterr);

#endif
