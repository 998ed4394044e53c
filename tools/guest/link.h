/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets at which a virtual machine's emulator connects to its devices, one at a time. */
#ifndef TOOLS_GUEST_LINK_H
#define TOOLS_GUEST_LINK_H

#include "guest/relay.h"

/*
 * Serves the @n devices @r, RELAY_DEVICES at most, at @path, @path.2 and so on, until @stop (a
 * descriptor) is readable: an emulator gets a device when it connects, and it is returned to other
 * users when the emulator disconnects. At any time all that are had are one emulator's.
 * Return: 0: stopped; -errno: a socket cannot be made.
 */
int relay_serve(struct relay *r, unsigned n, const char *path, int stop, struct sio_err *reterr);

#endif
