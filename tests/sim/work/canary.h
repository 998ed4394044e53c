/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a program's own that it shows to nobody: what is written there stays. */
#ifndef SIM_CANARY_H
#define SIM_CANARY_H

#include "run/run.h"

struct sim_canary {
	sci_desc_t sd;
	sci_local_segment_t segment;
	sci_map_t map; /* NULL: there is none */
	volatile uint32_t *at;
	uint64_t boots; /* of our host, when it was put there */
};

/* In a session of its own; where that cannot be had there is none. */
void sim_canary_put(struct sim_canary *c);
/* It is as it was, or @oracle fails. */
void sim_canary_look(const struct sim_canary *c, const char *oracle);

#endif
