/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_CABLE_H
#define SIM_CABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Pulls the cable of a host's adapter out, or puts it back in; calls nest. Not from a coroutine. */
bool sim_cable_out(unsigned host, unsigned adapter);
void sim_cable_in(unsigned host, unsigned adapter);
/*
 * Pulls all cables of a host: they come back with other addresses. Windows between it and others
 * are dead from now on, programs' too.
 */
void sim_cables_anew(unsigned host);
/*
 * Is it out; since when is it in this state; when was it last pulled out (0: never)? Switches that
 * are down, and links between them, count for the paths of an adapter.
 */
bool sim_cable_is_out(unsigned host, unsigned adapter);
uint64_t sim_cable_changed(unsigned host, unsigned adapter);
uint64_t sim_cable_pulled(unsigned host, unsigned adapter);
/* When the path between two adapters was last lost; 0: never. */
uint64_t sim_way_lost(unsigned host, unsigned adapter, unsigned peer, unsigned peer_adapter);

/*
 * A cluster switch loses its power, or a link between two is pulled out; and back; calls nest. Not
 * from a coroutine. Return: whether hosts have lost a path to another one.
 */
bool sim_switch_out(unsigned index);
void sim_switch_in(unsigned index);
bool sim_trunk_out(unsigned index);
void sim_trunk_in(unsigned index);
/* Do switches and links that are down leave no path between these adapters; between any two? */
bool sim_is_cut_off(unsigned host, unsigned adapter, unsigned peer, unsigned peer_adapter);
bool sim_hosts_cut_off(unsigned host, unsigned peer);
/* The same of some two, though others may have one. */
bool sim_hosts_cut_somewhere(unsigned host, unsigned peer);

#endif
