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
/*
 * Whether it is out; and since when it is as it is, and when it was pulled out last (0: never),
 * where switches that are out, and what joins them, count for the ways of an adapter.
 */
bool sim_cable_is_out(unsigned host, unsigned adapter);
uint64_t sim_cable_changed(unsigned host, unsigned adapter);
uint64_t sim_cable_pulled(unsigned host, unsigned adapter);
/* When the way between two adapters was lost last; 0: never. */
uint64_t sim_way_lost(unsigned host, unsigned adapter, unsigned peer, unsigned peer_adapter);

/*
 * A cluster switch loses its power, or a link between two is pulled out; and back, as often. Not
 * from a coroutine. Return: whether hosts have lost a way to another one by it.
 */
bool sim_switch_out(unsigned index);
void sim_switch_in(unsigned index);
bool sim_trunk_out(unsigned index);
void sim_trunk_in(unsigned index);
/* Switches and links between them that are out leave no way between these adapters; any two. */
bool sim_is_cut_off(unsigned host, unsigned adapter, unsigned peer, unsigned peer_adapter);
bool sim_hosts_cut_off(unsigned host, unsigned peer);

#endif
