/* SPDX-License-Identifier: BSD-2-Clause */
/* What the examples with an accelerator share: every error ends the program, with its text. */
#ifndef EXAMPLE_ACCEL_H
#define EXAMPLE_ACCEL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "smartio/accel.h"

static inline void must_accel(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, smartio_accel_error());
	exit(1);
}

#endif
