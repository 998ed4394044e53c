/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequences of workloads, and what their status must be by what became of the way. */
#ifndef SIM_SEQUENCE_H
#define SIM_SEQUENCE_H

#include "run/run.h"

struct sim_sequence {
	sci_sequence_t handle; /* NULL: none */
	unsigned host, adapter;
	uint64_t since; /* when it began */
};

/* This seed has no fault by which a way breaks, or a daemon is away or lies. */
bool sim_ways_hold(void);

/* Of @map, which leads to @host through @adapter. */
void sim_sequence_new(struct sim_sequence *s, sci_map_t map, unsigned host, unsigned adapter);
/* Stores @word at @at, in that map, and checks. Return: the status. */
sci_sequence_status_t sim_sequence_store(struct sim_sequence *s, volatile void *at, uint32_t word);
/* Start it again, and hear how it begins. */
void sim_sequence_start(struct sim_sequence *s);
void sim_sequence_remove(struct sim_sequence *s);

#endif
