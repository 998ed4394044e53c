/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_CABLE_H
#define SIM_CABLE_H

/* The cable of a host's adapter is pulled out, and put in as often. Not from a coroutine. */
void sim_cable_out(unsigned host, unsigned adapter);
void sim_cable_in(unsigned host, unsigned adapter);

#endif
