/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_CABLE_H
#define SIM_CABLE_H

#include <stdbool.h>
#include <stdint.h>

/* The cable of a host's adapter is pulled out, and put in as often. Not from a coroutine. */
bool sim_cable_out(unsigned host, unsigned adapter);
void sim_cable_in(unsigned host, unsigned adapter);
/*
 * All cables of a host are out: they come back with other addresses. Windows between it and others
 * are dead from now on, programs' too.
 */
void sim_cables_anew(unsigned host);
/* Whether it is out; and since when it is as it is, and when it was pulled out last (0: never). */
bool sim_cable_is_out(unsigned host, unsigned adapter);
uint64_t sim_cable_changed(unsigned host, unsigned adapter);
uint64_t sim_cable_pulled(unsigned host, unsigned adapter);

#endif
