/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that knows the daemon's protocol and has no library (work/raw.c). */
#ifndef SIM_RAW_H
#define SIM_RAW_H

#include "run/run.h"
#include "wire/check.h"
#include "wire/client.h"

struct sim_raw {
	struct sio_world *w;
	int fd;
	uint32_t id; /* of the last request */
	union {
		struct sio_msg h;
		unsigned char byte[SIO_WIRE_MAX];
	} reply;
};

/* Sends a request. Return: the answer's error; ~0: the daemon is gone. */
uint32_t sim_raw_ask(struct sim_raw *r, struct sio_msg *m, size_t len, uint32_t type);
/* Sends the first request, as a client of @kind. */
bool sim_raw_greet(struct sim_raw *r, uint32_t kind);

#endif
