/* SPDX-License-Identifier: BSD-2-Clause */
/* A device that a program uses without a driver (work/held.h). */
#include "work/held.h"
#include "run/listener.h"
#include "work/life.h"

#define REGISTER_BAR 0u
#define MEMORY_BAR 2u /* of memory devices, accelerators, and drives with a buffer */

/* ---- a device ---- */

bool sim_held_borrow(sci_desc_t sd, struct sim_held *d, bool alone)
{
	uint64_t since = sim_now();
	sci_error_t e;

	d->since = since;
	d->boots = sim_host_boots(d->host);
	SIM_CALL(SCIBorrowDevice,
		 (sd, &d->device, d->topo->fdid, alone ? SCI_FLAG_EXCLUSIVE : 0, &e), &e,
		 SCI_ERR_NOT_AVAILABLE, SCI_ERR_NOT_CONNECTED, SCI_ERR_NO_SUCH_FDID);
	if (e != SCI_ERR_OK)
		d->device = NULL;
	else
		sim_note_borrowed(d->topo->fdid, alone, since);
	return d->device;
}

static sci_remote_segment_t connect_bar(struct sim_held *d, unsigned bar)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t e;

	SIM_CALL(SCIConnectDeviceSegment,
		 (d->device, &seg, bar, SCI_MEMTYPE_BAR, NULL, NULL, 0, &e), &e,
		 SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_NOT_CONNECTED);
	return e == SCI_ERR_OK ? seg : NULL;
}

bool sim_held_registers(struct sim_held *d, size_t bytes)
{
	sci_error_t e;

	d->bar = connect_bar(d, REGISTER_BAR);
	if (!d->bar)
		return false;
	sim_call("SCIMapRemoteSegment", 0);
	d->regs = SCIMapRemoteSegment(d->bar, &d->map, 0, bytes, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_OK) != SCI_ERR_OK)
		d->map = NULL;
	return d->map;
}

bool sim_held_memory(struct sim_held *d)
{
	d->ram = connect_bar(d, MEMORY_BAR);
	return d->ram;
}

void sim_held_drop(struct sim_held *d)
{
	sci_error_t e;

	if (d->map)
		SIM_END(SCIUnmapSegment, (d->map, 0, &e), &e);
	if (d->ram)
		SIM_END(SCIDisconnectSegment, (d->ram, 0, &e), &e);
	if (d->bar)
		SIM_END(SCIDisconnectSegment, (d->bar, 0, &e), &e);
	if (d->device) {
		sim_note_returned(d->topo->fdid);
		do {
			SIM_END(SCIReturnDevice, (d->device, 0, &e), &e);
		} while (sim_later(e));
	}
	*d = (struct sim_held){.topo = NULL};
}

void sim_held_forget(const struct sim_held *d)
{
	if (d->device)
		sim_note_returned(d->topo->fdid);
}

bool sim_held_is_sound(const struct sim_held *d)
{
	return sim_drive_pulled(d->topo->fdid) < d->since && sim_host_boots(d->host) == d->boots;
}

bool sim_is_lossy(void)
{
	return sim_has_fault("link") || sim_has_fault("between") || sim_has_fault("anew") ||
	       sim_has_fault("crash");
}

/* ---- memory for it ---- */

bool sim_own_make(sci_desc_t sd, struct sim_own *m, const struct sim_held *d, size_t bytes)
{
	sci_error_t e;

	SIM_CALL(SCICreateSegment, (sd, &m->segment, 0, bytes, NULL, NULL, SCI_FLAG_AUTO_ID, &e),
		 &e, SCI_ERR_OK);
	if (e != SCI_ERR_OK) {
		m->segment = NULL;
		return false;
	}
	SIM_CALL(SCIPrepareSegment, (m->segment, 0, 0, &e), &e, SCI_ERR_OK);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (m->segment, 0, 0, &e), &e, SCI_ERR_OK);
	if (e != SCI_ERR_OK)
		return false;
	sim_call("SCIMapLocalSegment", 0);
	m->at = SCIMapLocalSegment(m->segment, &m->map, 0, bytes, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_OK, SCI_ERR_OK) != SCI_ERR_OK) {
		m->map = NULL;
		return false;
	}
	SIM_CALL(SCIMapLocalSegmentForDevice, (m->segment, 0, d->device, &m->io, 0, bytes, 0, &e),
		 &e, SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		m->io = 0;
	return m->io;
}

void sim_own_unmap(struct sim_own *m, const struct sim_held *d)
{
	sci_error_t e;

	while (m->io) {
		SIM_END(SCIUnmapLocalSegmentForDevice, (m->segment, 0, d->device, 0, &e), &e,
			SCI_ERR_BUSY);
		if (!sim_later(e))
			m->io = 0;
	}
}

void sim_own_remove(struct sim_own *m)
{
	sci_error_t e;

	if (m->map)
		SIM_END(SCIUnmapSegment, (m->map, 0, &e), &e);
	m->map = NULL;
	while (m->segment) {
		SIM_END(SCIRemoveSegment, (m->segment, 0, &e), &e, SCI_ERR_BUSY);
		if (!sim_later(e))
			m->segment = NULL;
	}
}
