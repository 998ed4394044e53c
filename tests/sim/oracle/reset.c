/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resets that a lender does by itself. It does none of a physical function, which would take
 * virtual ones away, nor while a live borrower has an object of the device, by the port's lists;
 * the daemon's own records say that it is such a reset. And where no program lives any more, and
 * the device is in its slot, nothing is in quarantine for want of a program that could settle it,
 * except of a drive with virtual functions, which its lender resets when that is asked for alone.
 * The workload "device" checks what an exclusive borrower finds.
 */
#include <inttypes.h>
#include <stdio.h>

#include "edge/daemon_state.h"
#include "run/run.h"
#include "smartio/uapi.h"
#include "run/listener.h"

#define SETTLED_IN (5 * SIM_SECOND) /* a reset that fails is repeated each second */

static struct {
	uint64_t device;
	unsigned host;
} now_reset;

static void look(void *arg, const struct sio_list_entry *e)
{
	(void)arg;
	if (e->device == now_reset.device && e->owner != 0 && e->state == SIO_STATE_LIVE &&
	    (e->kind == SIO_KIND_BAR || e->kind == SIO_KIND_DMAMAP || e->kind == SIO_KIND_VECTOR))
		sim_fail("reset",
			 "node %u resets device %#" PRIx64 " by itself, and owner %" PRIu64
			 ", who lives, has object %" PRIu64 " of kind %u of it",
			 sim_node(now_reset.host), now_reset.device, (uint64_t)e->owner,
			 (uint64_t)e->id, e->kind);
}

static void on_reset(unsigned host, const struct sio_req_reset *req)
{
	uint32_t fdid = req->kind == SIO_RESET_DONE ? 0 : tables_own_reset(host, req->h.cookie);

	if (fdid == 0)
		return;
	if (sio_topology_device(sim_cluster->topology, fdid, NULL)->virtual_functions)
		sim_fail("reset", "node %u resets device %#x by itself, with its virtual functions",
			 sim_node(host), fdid);
	sim_note_lender_reset(fdid);
	now_reset.device = req->device;
	now_reset.host = host;
	sim_port_each(host, look, NULL);
}

static void start(void)
{
	sim_on_reset = on_reset;
}

/* ---- when no program lives ---- */

static unsigned waiting;

static void count(void *arg, const struct sio_list_entry *e)
{
	const struct sio_topo_device *d;

	(void)arg;
	if (e->kind != SIO_KIND_DMAMAP || e->state != SIO_STATE_QUARANTINED)
		return;
	d = sio_topology_device(sim_cluster->topology, (uint32_t)e->device, NULL);
	waiting += !d || d->virtual_functions == 0;
}

static bool none_waits(void *arg)
{
	(void)arg;
	waiting = 0;
	for (unsigned h = 0; h < sim_hosts(); h++)
		sim_port_each(h, count, NULL);
	return waiting == 0;
}

static void ended(void)
{
	if (!sim_run(none_waits, NULL, SETTLED_IN))
		sim_fail(
			"reset",
			"no program has lived for %u s, and %u mappings for devices are in quarantine",
			(unsigned)(SETTLED_IN / SIM_SECOND), waiting);
}

const struct sim_oracle sim_oracle_reset = {.name = "reset", .start = start, .ended = ended};
