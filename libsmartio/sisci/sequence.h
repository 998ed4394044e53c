/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of paths, as the port's status page tells it, and what a transfer that began at some
 * instant may be said of. Reading it takes no lock and no system call.
 */
#ifndef SISCI_SEQUENCE_H
#define SISCI_SEQUENCE_H

#include "sisci/segment.h"

struct sio_status_page;

/* What was seen when a transfer began; a sequence has them beside its handle. */
enum { SIO_SEQUENCE_PATH, SIO_SEQUENCE_GENERATION, SIO_SEQUENCE_ERRORS, SIO_SEQUENCE_LOST };

/*
 * The generation of each path, or its next one while it is down: what a connection has that is made
 * from now on. The port counts changes from "down" on, so odd generations are up.
 */
struct sio_status_seen {
	uint32_t generation[127];
};

/* Put the page in place, at the first time and whenever the library is initialised again. */
int sio_status_open(struct sio_library *lib, int fd, struct sio_err *err);
void sio_status_look(const struct sio_library *lib, struct sio_status_seen *ret);
/*
 * The place in the page of @wire_path (of a reply to a connect) to @node, counted from 1; 0: this
 * segment is reached through none.
 */
uint32_t sio_status_place(const struct sio_library *lib, uint32_t wire_path, uint32_t node);

/* A transfer through @m begins. */
void sio_sequence_begin(const struct sio_mapping *m, volatile uint32_t *words);
/* What became of it until now. */
sci_sequence_status_t sio_sequence_judge(const struct sio_library *lib,
					 const volatile uint32_t *words);
/* Under the lock: what the sequences of @m stand for is gone. */
void sio_sequence_lose(struct sio_mapping *m);

#endif
