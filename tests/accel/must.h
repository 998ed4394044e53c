/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs of these tests ask of the driver. */
#ifndef TESTS_ACCEL_MUST_H
#define TESTS_ACCEL_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include "smartio/accel.h"

/* In a program of a test: the test fails if @call does, with the driver's words. */
#define MUST_ACCEL(call)                                                                           \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_ < 0) {                                                                     \
			fprintf(stderr, "%s:%d: %s: %d, %s\n", __FILE__, __LINE__, #call, rc_,     \
				smartio_accel_error());                                            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#endif
