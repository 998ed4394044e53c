/* SPDX-License-Identifier: BSD-2-Clause */
/* Two hosts, and a program on each: one has segments, the other connects to them. */
#ifndef TESTS_SMARTIOD_SEGMENT_WORLD_H
#define TESTS_SMARTIOD_SEGMENT_WORLD_H

#include "world.h"

struct fixture {
	struct world *w;
	struct world_client *exporter, *importer; /* on nodes 4 and 8 */
	struct world_client *other;		  /* on node 4; NULL unless a test makes it */
};

int segment_setup(void **state);
/* Every test ends with its programs dead and nothing left of them anywhere. */
int segment_teardown(void **state);

#endif
