/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of data interrupts share. */
#ifndef TESTS_API_DATAINT_H
#define TESTS_API_DATAINT_H

#include "topology.h"

static inline sci_local_data_interrupt_t listen_on(sci_desc_t sd, unsigned number, unsigned flags)
{
	sci_local_data_interrupt_t dint = NULL;
	sci_error_t error;

	SCICreateDataInterrupt(sd, &dint, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO | flags,
			       &error);
	CHECK_OK(error);
	return dint;
}

static inline sci_remote_data_interrupt_t reach(sci_desc_t sd, unsigned node, unsigned number)
{
	sci_remote_data_interrupt_t dint = NULL;
	sci_error_t error;

	SCIConnectDataInterrupt(sd, &dint, node, 0, number, 0, 0, &error);
	CHECK_OK(error);
	return dint;
}

/* There is no message in it any more. */
static inline void remove_empty(sci_local_data_interrupt_t dint)
{
	unsigned char data[16];
	unsigned length = sizeof(data);
	sci_error_t error;

	SCIWaitForDataInterrupt(dint, data, &length, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	SCIRemoveDataInterrupt(dint, 0, &error);
	CHECK_OK(error);
}

#endif
