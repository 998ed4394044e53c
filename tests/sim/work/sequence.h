/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequences of workloads, and the status that they must have, given what became of the path. */
#ifndef SIM_SEQUENCE_H
#define SIM_SEQUENCE_H

#include "run/run.h"

struct sim_sequence {
	sci_sequence_t handle; /* NULL: none */
	unsigned host, adapter;
	uint64_t since; /* when it was last started */
};

/* Has this seed no fault by which a path is lost, or a daemon is absent or malicious? */
bool sim_ways_hold(void);

/* Makes a sequence of @map, which leads to @host through @adapter. */
void sim_sequence_new(struct sim_sequence *s, sci_map_t map, unsigned host, unsigned adapter);
/* Stores @word at @at, which is in that mapping, and checks the sequence. Return: the status. */
sci_sequence_status_t sim_sequence_store(struct sim_sequence *s, volatile void *at, uint32_t word);
/* Starts the sequence again, and checks its initial status. */
void sim_sequence_start(struct sim_sequence *s);
void sim_sequence_remove(struct sim_sequence *s);

#endif
