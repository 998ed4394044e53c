/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that uses the daemon's protocol without the library (work/raw.c). */
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

/* Sends a request and waits for its reply. Return: the reply's error; ~0: the daemon has gone. */
uint32_t sim_raw_ask(struct sim_raw *r, struct sio_msg *m, size_t len, uint32_t type);
/* Sends HELLO, as a client of @kind. False: it was refused. */
bool sim_raw_greet(struct sim_raw *r, uint32_t kind);

#endif
