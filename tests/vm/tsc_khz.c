/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what a test machine's kernel is told of its clock. */
#include <inttypes.h>
#include <stdio.h>

#include "machine/tsc.h"

int main(void)
{
	printf("%" PRIu64 "\n", machine_tsc_khz());
	return 0;
}
