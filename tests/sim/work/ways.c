/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two paths to a drive, of which one is lost: a program that has borrowed the drive over it is
 * notified by an event within LOST_MS of virtual time, and can at once borrow it again over the
 * other path, with registers and memory. If the seed has no fault that breaks anything else both
 * must succeed; otherwise any error is allowed. Each program pulls a cable of its own host, one at
 * a time in the whole cluster.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "work/life.h"
#include "smartio/ext.h"
#include "run/run.h"
#include "work/drives.h"

#define PAGE 4096u
#define LOST_MS 100u
#define TURNS 6u

struct ways {
	sci_desc_t sd;
	sci_smartio_device_t device;
	sci_remote_segment_t bar, beside;
	sci_map_t bar_map;
	sci_local_segment_t segment;
	unsigned adapter; /* by which the drive reaches the segment */
	bool mapped;	  /* for the drive */
};

static unsigned n_ways(unsigned from, unsigned to)
{
	struct sio_path path[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS];

	return sio_topology_paths(sim_cluster->topology, sim_node(from), sim_node(to), path,
				  SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS);
}

static const struct sio_topo_device *far_drive(unsigned host)
{
	for (unsigned i = 0; i < sim_hosts(); i++)
		if (i != host && sim_cluster->topology->host[i].n_devices && n_ways(host, i) > 1)
			return &sim_cluster->topology->host[i].device[0];
	return NULL;
}

static bool fits(unsigned host)
{
	return far_drive(host) != NULL;
}

static bool must(sci_error_t e, const char *what)
{
	if (e != SCI_ERR_OK && e != SCI_ERR_NOT_AVAILABLE && sim_drives_alone())
		sim_fail("ways", "%s: %s over what is left: %s (%s)", sim_self()->name, what,
			 SCIGetErrorString(e), smartio_last_error());
	return e == SCI_ERR_OK;
}

static bool borrow(struct ways *w, const struct sio_topo_device *d)
{
	sci_smartio_device_info_t info = {0};
	sci_smartio_query_device_t q = {
		.fdid = d->fdid, .subcommand = SCI_Q_DEVICE_INFO, .data = &info};
	sci_error_t e;

	SIM_CALL(SCIQuery, (SCI_Q_DEVICE, &q, 0, &e), &e, SCI_ERR_NO_SUCH_FDID);
	if (!must(e, "query"))
		return false;
	w->adapter = info.adapter;
	SIM_CALL(SCIBorrowDevice, (w->sd, &w->device, d->fdid, 0, &e), &e, SCI_ERR_NOT_AVAILABLE,
		 SCI_ERR_NOT_CONNECTED, SCI_ERR_NO_SUCH_FDID);
	if (e != SCI_ERR_OK)
		w->device = NULL;
	return must(e, "borrow");
}

/* The program reaches the registers: both daemons know the path of that. */
static bool take_registers(struct ways *w)
{
	sci_error_t e;

	SIM_CALL(SCIConnectDeviceSegment,
		 (w->device, &w->bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &e), &e,
		 SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		w->bar = NULL;
	if (!must(e, "connect"))
		return false;
	SIM_CALL(SCIMapRemoteSegment,
		 (w->bar, &w->bar_map, 0, PAGE, NULL, SCI_FLAG_READONLY_MAP, &e), &e,
		 SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		w->bar_map = NULL;
	return must(e, "map");
}

/* The device reaches memory of the program: only the lender's daemon knows the path of that. */
static bool take_memory(struct ways *w)
{
	sci_ioaddr_t at;
	sci_error_t e;

	SIM_CALL(SCICreateSegment,
		 (w->sd, &w->segment, 1 + (unsigned)sim_pick(1000), PAGE, NULL, NULL,
		  SCI_FLAG_AUTO_ID, &e),
		 &e);
	if (e != SCI_ERR_OK)
		w->segment = NULL;
	if (e == SCI_ERR_OK)
		SIM_CALL(SCIPrepareSegment, (w->segment, w->adapter, 0, &e), &e);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (w->segment, w->adapter, 0, &e), &e);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCIMapLocalSegmentForDevice,
			 (w->segment, w->adapter, w->device, &at, 0, PAGE, 0, &e), &e,
			 SCI_ERR_NOT_CONNECTED);
	w->mapped = e == SCI_ERR_OK;
	return must(e, "memory");
}

/* The program reaches memory beside the device: only its own host's daemon knows the path. */
static bool take_beside(struct ways *w)
{
	sci_error_t e;

	SIM_CALL(SCICreateDeviceSegment,
		 (w->device, 1, PAGE, SCI_MEMTYPE_PRIVATE, 0, SCI_FLAG_DEVICE_SIDE_ONLY, &e), &e,
		 SCI_ERR_SEGMENTID_USED, SCI_ERR_NOT_CONNECTED);
	if (!must(e, "device segment"))
		return false;
	SIM_CALL(SCIConnectDeviceSegment,
		 (w->device, &w->beside, 1, SCI_MEMTYPE_PRIVATE, NULL, NULL, 0, &e), &e,
		 SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		w->beside = NULL;
	return must(e, "connect beside");
}

static bool take(struct ways *w, const struct sio_topo_device *d, unsigned what)
{
	return borrow(w, d) && (!(what & 1) || take_registers(w)) &&
	       (!(what & 2) || take_memory(w)) && (!(what & 4) || take_beside(w));
}

static void give_back(struct ways *w)
{
	sci_error_t e;

	if (w->mapped)
		SIM_END(SCIUnmapLocalSegmentForDevice, (w->segment, w->adapter, w->device, 0, &e),
			&e, SCI_ERR_NOT_CONNECTED);
	if (w->segment)
		SIM_END(SCIRemoveSegment, (w->segment, 0, &e), &e, SCI_ERR_BUSY);
	if (w->bar_map)
		SIM_END(SCIUnmapSegment, (w->bar_map, 0, &e), &e);
	if (w->beside)
		SIM_END(SCIDisconnectSegment, (w->beside, 0, &e), &e, SCI_ERR_BUSY);
	if (w->bar)
		SIM_END(SCIDisconnectSegment, (w->bar, 0, &e), &e, SCI_ERR_BUSY);
	if (w->device)
		SIM_END(SCIReturnDevice, (w->device, 0, &e), &e, SCI_ERR_BUSY);
	*w = (struct ways){.sd = w->sd};
}

static void await_loss(const struct ways *w)
{
	uint64_t since = sim_now();
	struct smartio_device_event event;
	sci_error_t e;

	do {
		sim_call("smartio_wait_device_event", LOST_MS + 1000);
		smartio_wait_device_event(w->device, &event, LOST_MS, &e);
		sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_NOT_CONNECTED, SCI_ERR_CANCELLED,
			   SCI_ERR_OK);
	} while (e == SCI_ERR_OK && event.kind != SMARTIO_DEVICE_LOST);
	if (sim_drives_alone() &&
	    (!smartio_device_lost(w->device) || sim_now() - since > LOST_MS * SIM_MS))
		sim_fail("ways", "%s: adapter %u went, and the borrow was not lost in %u ms",
			 sim_self()->name, w->adapter, LOST_MS);
}

static void ways_main(struct sim_proc *p)
{
	const struct sio_topo_device *d = far_drive(p->host);
	struct ways w = {.sd = NULL};
	unsigned what;
	sci_error_t e;

	if (!sim_initialize())
		return;
	SIM_CALL(SCIOpen, (&w.sd, 0, &e), &e);
	for (unsigned i = 0; e == SCI_ERR_OK && i < TURNS && !sim_stopping_programs(); i++) {
		sim_sleep(sim_pick(400 * SIM_MS));
		if (sim_pulling)
			continue;
		sim_pulling = true;
		what = 1 + (unsigned)sim_pick(7);
		if (take(&w, d, what)) {
			sim_pull(w.adapter);
			await_loss(&w);
			give_back(&w);
			take(&w, d, what);
		} else {
			sim_pulling = false;
		}
		give_back(&w);
	}
	if (e == SCI_ERR_OK)
		SIM_CALL(SCIClose, (w.sd, 0, &e), &e, SCI_ERR_BUSY);
	sim_terminate(p);
}

const struct sim_workload sim_work_ways = {
	.name = "ways", .weight = 1, .fits = fits, .named = true, .main = ways_main};
