/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake ports, as world.c sees them. */
#ifndef TESTS_SMARTIOD_PORT_H
#define TESTS_SMARTIOD_PORT_H

#include "world.h"

void world_port_request(struct world *w, unsigned host, const void *req, size_t len);
/* Queue an event; @fds become the daemon's. */
void world_port_push(struct world *w, unsigned host, const void *evt, size_t len, const int *fds,
		     unsigned n_fds);

/* port_tables.c: something of its host refers to @r. */
bool world_port_in_use(const struct world *w, const struct world_res *r);
/* port_query.c. Return: whether it is a question, and answered. */
bool world_port_asked(struct world *w, unsigned host, const struct sio_req *req);

#endif
