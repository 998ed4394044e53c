/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Liveness: when the faults are over, a program on every host maps a segment of its neighbours and
 * borrows each device, and whoever holds a device ends its quarantine. All must succeed in time.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdio.h>

#include "../../lib/topology_path.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define PROBE_SEGMENT 0xfffe
#define MAX_PEERS 4

static unsigned done, wanted;
/* Programs that have used the devices of their own hosts; that hold a function of one drive. */
static unsigned used, holding;

static void must(const char *what, sci_error_t e)
{
	if (e != SCI_ERR_OK)
		sim_fail("liveness", "%s: %s gives %s: %s", sim_self()->name, what,
			 SCIGetErrorString(e), smartio_last_error());
}

static const struct sio_topo_host *topo(unsigned host)
{
	return &sim_cluster->topology->host[host];
}

static void offer(sci_desc_t sd, sci_local_segment_t *segment, sci_map_t *map)
{
	volatile uint32_t *at;
	sci_error_t e;

	SCICreateSegment(sd, segment, PROBE_SEGMENT, 4096, NULL, NULL, 0, &e);
	must("SCICreateSegment", e);
	at = SCIMapLocalSegment(*segment, map, 0, 4096, NULL, 0, &e);
	must("SCIMapLocalSegment", e);
	sio_write32(at, 0x50000000u | sim_node(sim_self()->host));
	for (unsigned a = 0; a < topo(sim_self()->host)->n_adapters; a++) {
		SCIPrepareSegment(*segment, a, 0, &e);
		must("SCIPrepareSegment", e);
		SCISetSegmentAvailable(*segment, a, 0, &e);
		must("SCISetSegmentAvailable", e);
	}
}

/* The other host's program may not have started yet, or the daemons may not have connected yet. */
static void visit(sci_desc_t sd, unsigned host, unsigned adapter)
{
	sci_remote_segment_t segment;
	volatile uint32_t *at;
	sci_map_t map;
	sci_error_t e;

	do {
		sim_sleep(SIM_MS);
		SCIConnectSegment(sd, &segment, sim_node(host), PROBE_SEGMENT, adapter, NULL, NULL,
				  SCI_INFINITE_TIMEOUT, 0, &e);
	} while (e == SCI_ERR_NO_SUCH_SEGMENT || e == SCI_ERR_NODE_NOT_RESPONDING ||
		 e == SCI_ERR_NO_LINK_ACCESS || e == SCI_ERR_NO_REMOTE_LINK_ACCESS);
	must("SCIConnectSegment", e);
	/* Windows may be in a quarantine that another program is about to end. */
	do {
		at = SCIMapRemoteSegment(segment, &map, 0, 4096, NULL, 0, &e);
		sim_sleep(SIM_MS);
	} while (e == SCI_ERR_HW_NOSPC);
	must("SCIMapRemoteSegment", e);
	if (sio_read32(at) != (0x50000000u | sim_node(host)))
		sim_fail("memory", "%s: %#x in the segment of node %u", sim_self()->name,
			 sio_read32(at), sim_node(host));
	SCIUnmapSegment(map, 0, &e);
	must("SCIUnmapSegment", e);
	SCIDisconnectSegment(segment, 0, &e);
	must("SCIDisconnectSegment", e);
}

/* Others have the device, or the daemons are about to connect. */
static bool retries(sci_error_t e)
{
	return e == SCI_ERR_NOT_AVAILABLE || e == SCI_ERR_NODE_NOT_RESPONDING ||
	       e == SCI_ERR_NO_LINK_ACCESS || e == SCI_ERR_NO_SUCH_FDID;
}

static sci_smartio_device_t borrow(sci_desc_t sd, uint32_t fdid, unsigned flags)
{
	sci_smartio_device_t device;
	sci_error_t e;

	do {
		sim_sleep(SIM_MS);
		SCIBorrowDevice(sd, &device, fdid, flags, &e);
	} while (retries(e));
	must("SCIBorrowDevice", e);
	return device;
}

static void give_back(sci_smartio_device_t device)
{
	sci_error_t e;

	SCIReturnDevice(device, 0, &e);
	must("SCIReturnDevice", e);
}

/*
 * What the dead had, registers too, does not keep others from it, though they are in quarantine.
 * Another program that is about to end may hold them still.
 */
static void take_registers(sci_smartio_device_t device)
{
	sci_remote_segment_t bar;
	bool holds = false;
	sci_error_t e;
	sci_map_t map;

	while (!holds) {
		SCIConnectDeviceSegment(device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &e);
		must("SCIConnectDeviceSegment", e);
		(void)SCIMapRemoteSegment(bar, &map, 0, 4096, NULL, 0, &e);
		if (e != SCI_ERR_ACCESS) {
			must("SCIMapRemoteSegment", e);
			holds = smartio_holds_registers(device);
			SCIUnmapSegment(map, 0, &e);
			must("SCIUnmapSegment", e);
		}
		SCIDisconnectSegment(bar, 0, &e);
		must("SCIDisconnectSegment", e);
		sim_sleep(SIM_MS);
	}
}

/* Beside others, then alone: its reset ends what dead borrowers left in quarantine. */
static void use_device(sci_desc_t sd, uint32_t fdid)
{
	sci_smartio_device_t device = borrow(sd, fdid, 0);
	sci_error_t e;

	take_registers(device);
	give_back(device);
	device = borrow(sd, fdid, SCI_FLAG_EXCLUSIVE);
	smartio_device_reset(device, &e);
	must("smartio_device_reset", e);
	give_back(device);
}

static bool reaches(unsigned host, unsigned lender)
{
	struct sio_path path;

	return host == lender || sio_topology_paths(sim_cluster->topology, sim_node(host),
						    sim_node(lender), &path, 1) > 0;
}

/* The cluster's first drive with virtual functions, and its host; NULL: there is none. */
static const struct sio_topo_device *drive_with_functions(unsigned *ret_host)
{
	for (unsigned h = 0; h < sim_hosts() && h != sim_liar(); h++)
		for (unsigned i = 0; i < topo(h)->n_devices; i++)
			if (topo(h)->device[i].virtual_functions) {
				*ret_host = h;
				return &topo(h)->device[i];
			}
	return NULL;
}

/*
 * Virtual functions of one drive, each alone and all at once, by as many hosts: a program holds the
 * one that is its host's until all others hold theirs. First nobody may reset the physical function
 * any more.
 */
static void hold_functions(sci_desc_t sd, unsigned host)
{
	unsigned lender, mine = 0, holders = 0;
	const struct sio_topo_device *d = drive_with_functions(&lender);
	sci_smartio_device_t device;

	if (!d)
		return;
	for (unsigned h = 0; h < sim_hosts() && holders < d->virtual_functions; h++)
		if (reaches(h, lender)) {
			holders++;
			if (h == host)
				mine = holders;
		}
	for (used++; used < wanted;)
		sim_sleep(SIM_MS);
	for (unsigned i = 0, n = 0; mine && i < topo(lender)->n_devices; i++) {
		if (topo(lender)->device[i].physical != (unsigned)(d - topo(lender)->device) + 1 ||
		    ++n != mine)
			continue;
		device = borrow(sd, topo(lender)->device[i].fdid, SCI_FLAG_EXCLUSIVE);
		for (holding++; holding < holders;)
			sim_sleep(SIM_MS);
		if (smartio_device_lost(device))
			sim_fail("liveness", "%s: %s is lost while others have its siblings",
				 sim_self()->name, topo(lender)->device[i].name);
		give_back(device);
	}
}

/* The first device of the next host that has one and can be reached. */
static void borrow_elsewhere(sci_desc_t sd, unsigned host)
{
	struct sio_path path;

	for (unsigned i = 1; i < sim_hosts(); i++) {
		const struct sio_topo_host *t = topo((host + i) % sim_hosts());

		if (!t->n_devices || sio_topology_paths(sim_cluster->topology, sim_node(host),
							t->node, &path, 1) == 0)
			continue;
		give_back(borrow(sd, t->device[0].fdid, 0));
		return;
	}
}

static void visit_peers(sci_desc_t sd, unsigned host)
{
	unsigned n = sim_hosts(), peers = n - 1 < MAX_PEERS ? n - 1 : MAX_PEERS;
	struct sio_path path;

	for (unsigned i = 1; i <= peers; i++) {
		unsigned other = (host + i) % n;

		for (unsigned a = 0; a < topo(host)->n_adapters; a++)
			if (topology_path(sim_cluster->topology, sim_node(host), a, sim_node(other),
					  &path) == 0)
				visit(sd, other, a);
	}
}

static void probe_main(struct sim_proc *p)
{
	sci_local_segment_t segment;
	sci_map_t map;
	sci_error_t e;
	sci_desc_t sd;

	SCIInitialize(0, &e);
	must("SCIInitialize", e);
	SCIOpen(&sd, 0, &e);
	must("SCIOpen", e);
	offer(sd, &segment, &map);
	for (unsigned i = 0; i < topo(p->host)->n_devices; i++)
		use_device(sd, topo(p->host)->device[i].fdid);
	visit_peers(sd, p->host);
	borrow_elsewhere(sd, p->host);
	hold_functions(sd, p->host);
	done++;
	/* Others may still be about to read this program's segment. */
	while (done < wanted)
		sim_sleep(SIM_MS);
	SCIUnmapSegment(map, 0, &e);
	must("SCIUnmapSegment", e);
	do {
		SCIRemoveSegment(segment, 0, &e);
	} while (e == SCI_ERR_BUSY);
	must("SCIRemoveSegment", e);
	SCIClose(sd, 0, &e);
	must("SCIClose", e);
	SCITerminate();
}

static bool all_dead(void *arg)
{
	(void)arg;
	SIM_EACH_PROC(p)
	if (!p->dead)
		return false;
	return true;
}

bool sim_probe(uint64_t limit)
{
	struct sim_proc *probe[SIM_HOSTS];
	char name[32];
	bool ended;

	done = used = holding = 0;
	wanted = sim_hosts();
	for (unsigned i = 0; i < sim_hosts(); i++) {
		snprintf(name, sizeof(name), "probe@%u", sim_node(i));
		probe[i] = sim_proc_new(name, i, probe_main, NULL);
	}
	ended = sim_run(all_dead, NULL, limit > sim_now() ? limit - sim_now() : 0);
	for (unsigned i = 0; !ended && i < sim_hosts(); i++)
		if (!probe[i]->dead)
			sim_fail("liveness", "%s is not done 60 s after the faults: %u of %u are",
				 probe[i]->name, done, wanted);
	for (unsigned i = 0; i < sim_hosts(); i++)
		sim_proc_free(probe[i]);
	return true;
}
