/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Litmus tests: a few agents with a few steps each, run in an order and at times that the seed
 * decides. Each test asks whether an outcome was seen, in any of many seeds, and states whether it
 * is allowed.
 */
#ifndef SIM_LITMUS_H
#define SIM_LITMUS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"

#define AGENTS 4u
/* Hosts a, b and c of the model that has no topology; their devices are requesters 3, 4 and 5. */
enum { HOST_A, HOST_B, HOST_C, DEVICE_A, DEVICE_B, DEVICE_C, ENGINE_A };

/* What a step returns about its agent. */
enum litmus_next {
	NEXT, /* the next step */
	WAIT, /* this one again, later */
	DONE,
};

struct litmus_agent {
	unsigned who; /* a host: a processor of it; a device; an engine; FABRIC_NOBODY: the room */
	enum litmus_next (*step)(unsigned n);
};

struct litmus {
	const char *name;
	unsigned variant; /* for the steps to distinguish */
	bool allowed;	  /* the outcome */
	struct litmus_agent agent[AGENTS];
	bool (*seen)(void);
};

/* The memory that the agents access, new for each seed. */
extern struct litmus_memory {
	uint8_t *x, *y, *z;  /* RAM of a, b, c: a page each */
	uint32_t *bell;	     /* a register of b's device */
	uint32_t *own_bell;  /* of a's device */
	uint8_t *ring;	     /* RAM of a that its DMA engine looks at */
	uint8_t *status;     /* a's status page */
	uint64_t r[8];	     /* what was read */
	unsigned interrupts; /* that arrived */
	unsigned variant;
	bool link_up;
} M;

/* The model's environment: no programs, and a time that only waiting advances. */
extern const struct fabric_access litmus_access;

/* Runs @n tests and prints a line for each. Return: how many failed. */
unsigned litmus_run(const struct litmus *t, unsigned n, unsigned seeds);

#endif
