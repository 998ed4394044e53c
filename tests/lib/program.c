/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs on a test's cluster, live or simulated. */
#include <time.h>

#include "cluster.h"
#include "program.h"

/* There is no event to wait for: links come up as hosts do. */
int program_probe(void *arg)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	const struct program_probe *p = arg;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	for (unsigned i = 1; i <= p->count; i++)
		while (i * 4 != p->own && !SCIProbeNode(sd, 0, i * 4, 0, &error))
			nanosleep(&pause, NULL);
	api_end(sd);
	return 0;
}

sci_desc_t api_begin(void)
{
	sci_desc_t sd = NULL;
	sci_error_t error;

	SCIInitialize(0, &error);
	CHECK_OK(error);
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	return sd;
}

void api_end(sci_desc_t sd)
{
	sci_error_t error;

	SCIClose(sd, 0, &error);
	CHECK_OK(error);
	SCITerminate();
}
