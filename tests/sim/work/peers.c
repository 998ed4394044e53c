/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings from device to device: each program borrows two drives, and maps a page of the BAR of
 * one for the other: doorbells, which every borrower may have, or registers while it is their
 * owner. Such pages are taken away under the mappings by resets, deaths, returns in any order,
 * surprise removals and pulled cables. Nothing is sent there. What is judged is that every mapping
 * ends at both lenders and both ports (oracles agree, records, reach and hardware), and that a BAR
 * which is mapped cannot be disconnected.
 */
#include <string.h>

#include "work/life.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "run/listener.h"
#include "work/drives.h"

#define PAGE 4096u
#define DEVICES 2

struct device {
	sci_smartio_device_t device;
	uint32_t fdid;
	unsigned host;
	bool exclusive;
	sci_remote_segment_t bar;
	sci_map_t map; /* of its registers, writable, by which the program owns them */
	bool mapped;   /* its BAR is mapped for the other device */
};

struct peers {
	sci_desc_t sd;
	struct device d[DEVICES];
};

static unsigned n_drives(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sim_hosts(); i++)
		n += sim_cluster->topology->host[i].n_devices;
	return n;
}

static bool fits(unsigned host)
{
	(void)host;
	return n_drives() >= DEVICES;
}

static void borrow(struct peers *s, unsigned i)
{
	struct device *d = &s->d[i];
	uint64_t since = sim_now();
	sci_error_t e;

	if (d->device)
		return;
	d->fdid = sim_pick_drive(&d->host, NULL)->fdid;
	if (s->d[!i].device && s->d[!i].fdid == d->fdid)
		return;
	d->exclusive = sim_pick(2);
	SIM_CALL(SCIBorrowDevice,
		 (s->sd, &d->device, d->fdid, d->exclusive ? SCI_FLAG_EXCLUSIVE : 0, &e), &e,
		 SCI_ERR_NOT_AVAILABLE, SCI_ERR_NOT_CONNECTED, SCI_ERR_NO_SUCH_FDID);
	if (e != SCI_ERR_OK) {
		d->device = NULL;
		return;
	}
	sim_note_borrowed(d->fdid, d->exclusive, since);
	SIM_CALL(SCIConnectDeviceSegment,
		 (d->device, &d->bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &e), &e,
		 SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		d->bar = NULL;
}

static void hold_registers(struct device *d)
{
	sci_error_t e;

	if (!d->bar || d->map || !d->exclusive)
		return;
	SIM_CALL(SCIMapRemoteSegment, (d->bar, &d->map, 0, PAGE, NULL, 0, &e), &e,
		 SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		d->map = NULL;
}

static void release_registers(struct device *d)
{
	sci_error_t e;

	if (!d->map)
		return;
	SIM_END(SCIUnmapSegment, (d->map, 0, &e), &e);
	d->map = NULL;
}

/*
 * Registers of which the program is not the owner are refused; so are all BARs on a real host whose
 * IOMMU cannot cut them.
 */
static void map_for_other(struct peers *s, unsigned i)
{
	struct device *d = &s->d[i], *other = &s->d[!i];
	const bool never = sim_outliving && !sim_cluster->topology->host[other->host].iommu;
	size_t offset = d->exclusive && sim_pick(2) ? 0 : PAGE;
	sci_ioaddr_t at;
	sci_error_t e;

	if (!d->bar || d->mapped || !other->device)
		return;
	SIM_CALL(SCIMapRemoteSegmentForDevice, (d->bar, other->device, &at, offset, PAGE, 0, &e),
		 &e, SCI_ERR_NOT_CONNECTED, SCI_ERR_ACCESS, SCI_ERR_BUSY,
		 never ? SCI_ERR_NOT_SUPPORTED : SCI_ERR_OK);
	d->mapped = e == SCI_ERR_OK;
	if (d->mapped && (never || at == 0 || at % PAGE))
		sim_fail("states", "%s: a BAR was mapped at %#llx", sim_self()->name,
			 (unsigned long long)at);
}

static void unmap_for_other(struct peers *s, unsigned i)
{
	struct device *d = &s->d[i];
	sci_error_t e;

	while (d->mapped) {
		SIM_END(SCIUnmapRemoteSegmentForDevice, (d->bar, s->d[!i].device, 0, &e), &e,
			SCI_ERR_BUSY);
		d->mapped = sim_later(e);
	}
}

/* A BAR that is mapped for a device is busy, even if its pages were taken away. */
static void return_too_early(struct device *d)
{
	sci_error_t e;

	if (!d->mapped)
		return;
	SIM_CALL(SCIDisconnectSegment, (d->bar, 0, &e), &e, SCI_ERR_BUSY);
	if (e == SCI_ERR_OK)
		sim_fail("states", "%s: a BAR that is mapped for a device was disconnected",
			 sim_self()->name);
}

static void give_one_back(struct peers *s, unsigned i)
{
	struct device *d = &s->d[i];
	sci_error_t e;

	if (!d->device)
		return;
	unmap_for_other(s, i);
	unmap_for_other(s, !i);
	release_registers(d);
	if (d->bar)
		SIM_END(SCIDisconnectSegment, (d->bar, 0, &e), &e);
	d->bar = NULL;
	sim_note_returned(d->fdid);
	do {
		SIM_END(SCIReturnDevice, (d->device, 0, &e), &e);
	} while (sim_later(e));
	d->device = NULL;
}

static void give_back(void *state)
{
	unsigned first = (unsigned)sim_pick(DEVICES);

	give_one_back(state, first);
	give_one_back(state, !first);
}

/* A reset takes the doorbells away from all programs and devices that have them mapped. */
static void reset(struct device *d)
{
	sci_error_t e;

	if (!d->device || !d->exclusive)
		return;
	SIM_CALL(smartio_device_reset, (d->device, &e), &e, SCI_ERR_NOT_CONNECTED, SCI_ERR_ACCESS,
		 SCI_ERR_TIMEOUT);
}

static void act(void *state)
{
	struct peers *s = state;
	unsigned i = (unsigned)sim_pick(DEVICES);

	switch (sim_pick(12)) {
	case 0:
	case 1:
	case 2:
		borrow(s, i);
		break;
	case 3:
		if (sim_pick(2))
			hold_registers(&s->d[i]);
		else
			release_registers(&s->d[i]);
		break;
	case 4:
		unmap_for_other(s, i);
		break;
	case 5:
		return_too_early(&s->d[i]);
		break;
	case 6:
		if (sim_pick(2))
			give_one_back(s, i);
		break;
	case 7:
		reset(&s->d[i]);
		break;
	default:
		map_for_other(s, i);
	}
}

static void peers_main(struct sim_proc *p)
{
	static const struct sim_life life = {.acts = 120, .act = act, .tear_down = give_back};
	struct peers s = {.sd = NULL};

	if (!sim_live(&life, &s, &s.sd))
		return;
	for (unsigned i = 0; i < DEVICES; i++)
		if (s.d[i].device)
			sim_note_returned(s.d[i].fdid);
	sim_exit(p);
}

const struct sim_workload sim_work_peers = {
	.name = "peers", .weight = 3, .fits = fits, .named = true, .main = peers_main};
