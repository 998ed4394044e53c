/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The greeting of a smartiod that speaks another number of the protocol, and is as ours otherwise:
 * it takes the place of hello.c in the archive.
 */
#include "wire/client.h"

enum { OURS = SIO_CLIENT_VERSION };
#undef SIO_CLIENT_VERSION
#define SIO_CLIENT_VERSION (unsigned)(OURS + (MORE))

#include "../../smartiod/daemon/hello.c"
