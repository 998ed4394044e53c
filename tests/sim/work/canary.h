/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a program shares with nobody, so its contents must not change. */
#ifndef SIM_CANARY_H
#define SIM_CANARY_H

#include "run/run.h"

struct sim_canary {
	sci_desc_t sd;
	sci_local_segment_t segment;
	sci_map_t map; /* NULL: there is none */
	volatile uint32_t *at;
	bool lost;	/* smartiod has notified the program of that */
	uint64_t boots; /* of the program's host, when the memory was filled */
};

/* Allocates and fills it, with an SCIOpen() of its own; @c->map is NULL if that fails. */
void sim_canary_put(struct sim_canary *c);
/* Checks that the contents are unchanged, or @oracle fails. */
void sim_canary_look(struct sim_canary *c, const char *oracle);

#endif
