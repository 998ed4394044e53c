/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs of live tests begin with, whichever of the drive's they are. */
#ifndef TESTS_NVME_DRIVER_PROGRAM_H
#define TESTS_NVME_DRIVER_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>

#include "../../lib/cluster.h"
#include "smartio/nvme.h"

/* In a program of a test: the test fails if @call does, with the driver's words. */
#define OK(call)                                                                                   \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_ < 0) {                                                                     \
			fprintf(stderr, "%s:%d: %s: %d: %s\n", __FILE__, __LINE__, #call, rc_,     \
				smartio_nvme_error());                                             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static inline void begin(void)
{
	sci_error_t error;

	SCIInitialize(0, &error);
	CHECK_OK(error);
}

/* @flags: of SCIBorrowDevice(). */
static inline sci_smartio_device_t borrow(sci_desc_t sd, const char *name, unsigned flags)
{
	sci_smartio_device_t device = NULL;
	sci_error_t error;
	unsigned fdid;

	smartio_find_device(name, &fdid, &error);
	CHECK_OK(error);
	SCIBorrowDevice(sd, &device, fdid, flags, &error);
	CHECK_OK(error);
	return device;
}

#endif
