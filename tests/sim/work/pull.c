/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that pull cables of their own host, one at a time in the whole cluster. */
#include <stdlib.h>

#include "edge/cable.h"
#include "run/run.h"
#include "work/drives.h"

bool sim_pulling;

struct pull {
	unsigned host, adapter;
};

static void out(void *arg)
{
	struct pull *p = arg;

	sim_cable_out(p->host, p->adapter);
}

/* By now both daemons know that the cable is in again. */
static void over(void *arg)
{
	(void)arg;
	sim_pulling = false;
}

static void in(void *arg)
{
	struct pull *p = arg;

	sim_cable_in(p->host, p->adapter);
	free(p);
	sim_after(50 * SIM_MS, over, NULL);
}

void sim_pull(unsigned adapter)
{
	struct pull *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	*p = (struct pull){.host = sim_self()->host, .adapter = adapter};
	sim_pulling = true;
	sim_after(0, out, p);
	sim_after((1 + sim_pick(3)) * 200 * SIM_MS, in, p);
}
